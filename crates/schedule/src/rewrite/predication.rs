//! Predicates in place of branches: what a branch goes around is executed under the complement of its predicate.
//!
//! The compare that makes the branch's predicate makes the complement too. It has to be in the branch's block, and what
//! lies between branch and target has to be one block, or two of which the second is what the branch goes to. Of a NaT
//! a compare says neither: the calling convention has none, and what the source makes of one is not kept.

use std::collections::BTreeSet;
use std::path::Path;

use sidestep_ia64::encoding::{BranchKind, Bundle, Instruction, Operation, Template, Unit, decode};
use sidestep_ia64::registers::frame::FrameMarker;

use super::STATES;
use crate::assembly::{
    AssemblyError, Function, Piece, Source, Speculation, Statement, Text, Ways, is_side_exit, write,
};
use crate::block::Block;
use crate::bundle::nop;
use crate::optimize::{Options, optimize};
use crate::tools::assemble;
use crate::verify;
use crate::verify::equivalence::Compared;
use crate::verify::loops::{Trial, compare_ways, cycles};

/// A branch that predicates have taken the place of.
#[derive(Clone, Debug)]
pub struct PredicatedBranch {
    /// The function that it was in.
    pub function: String,
    /// The line of the source where its block begins.
    pub line: usize,
    /// Instructions that are under predicates now.
    pub instructions: usize,
    /// Cycles on the model from the block's begin to the branch's target, if it was taken, and if not; it was predicted
    /// in both.
    pub before: [u64; 2],
    /// The same now.
    pub after: u64,
    /// In how many random states it was compared with the branch.
    pub compared: Compared,
}

/// A block that ends in a branch, and what the branch goes around.
struct Region<'a> {
    function: &'a str,
    lines: std::ops::Range<usize>,
    line: usize,
    /// The block with the branch last.
    head: Part<'a>,
    /// What is executed if the branch is not taken, and if it is.
    arms: Vec<Part<'a>>,
    /// The predicates of these.
    predicates: [u8; 2],
}

/// A block of a region.
#[derive(Clone, Copy)]
struct Part<'a> {
    block: &'a Block,
    texts: &'a [Text],
    bundles: &'a [Bundle],
}

/// A source in which predicates have taken the place of branches wherever that is slower neither where the branch was
/// taken nor where it was not, with these branches.
///
/// # Errors
/// [`AssemblyError`].
pub(super) fn predicate(
    text: &str,
    path: &Path,
    wanted: Option<&str>,
    options: &Options,
) -> Result<(String, Vec<PredicatedBranch>), AssemblyError> {
    let mut text = text.to_owned();
    let mut found: Vec<PredicatedBranch> = Vec::new();
    let mut tried: BTreeSet<(String, usize)> = BTreeSet::new();
    'again: loop {
        let source = Source::parse(&text);
        let object = assemble(&text, path)?;
        let ways = Ways::from(Speculation::None);
        let functions = Function::all(&source, &object, wanted, (&options.parameters, ways), path)?;
        for function in &functions {
            for region in regions(&source, function) {
                if !tried.insert((function.name.clone(), region.line)) {
                    continue;
                }
                let Some((branch, replacement)) = convert(&region, options) else {
                    continue;
                };
                let candidate = spliced(&source, &region, &replacement, path);
                let total = cycles_of(&candidate, &function.name, path, options)?;
                if total <= verify::cycles_of_code(&function.bundles, &options.parameters) {
                    text = candidate;
                    // A branch before it may go around what has become one block.
                    tried.clear();
                    tried.extend(found.iter().map(|known| (known.function.clone(), known.line)));
                    found.push(branch);
                    continue 'again;
                }
            }
        }
        return Ok((text, found));
    }
}

/// Cycles of a function of a source on the model, no branch taken.
pub(super) fn cycles_of(
    text: &str,
    name: &str,
    path: &Path,
    options: &Options,
) -> Result<u32, AssemblyError> {
    let object = assemble(text, path)?;
    let ways = Ways::from(Speculation::None);
    let source = Source::parse(text);
    let functions = Function::all(&source, &object, Some(name), (&options.parameters, ways), path)?;
    let cycles = functions
        .iter()
        .map(|function| verify::cycles_of_code(&function.bundles, &options.parameters));
    Ok(cycles.sum())
}

/// The regions of a function.
fn regions<'a>(source: &Source, function: &'a Function) -> Vec<Region<'a>> {
    let places = 0..function.pieces.len();
    places
        .filter_map(|place| region(source, function, place))
        .collect()
}

/// The region that begins with a piece of a function.
fn region<'a>(source: &Source, function: &'a Function, place: usize) -> Option<Region<'a>> {
    let (lines, head) = part(function.pieces.get(place)?)?;
    let (branch, before) = head.block.items.split_last()?;
    let target = target(head.texts.last()?);
    let is_plain = |block: &Block| !block.items.is_empty() && block.items.iter().all(|item| !item.is_exit());
    if !is_side_exit(&branch.instruction) || before.iter().any(|item| item.is_exit()) {
        return None;
    }
    let (arm_lines, arm) = part(function.pieces.get(place + 1)?)?;
    let labels = labels(source, function.pieces.get(place + 2)?)?;
    let (mut end, mut arms) = (arm_lines.end, vec![arm]);
    if !labels.contains(&target) {
        return None;
    }
    if !is_plain(arm.block) {
        // The arm goes around another one.
        let (leaving, rest) = arm.block.items.split_last()?;
        let is_jump = is_jump(&leaving.instruction) && rest.iter().all(|item| !item.is_exit());
        let (other_lines, other) = part(function.pieces.get(place + 3)?)?;
        let ends = self::labels(source, function.pieces.get(place + 4)?)?;
        let is_diamond = is_jump
            && is_plain(other.block)
            && labels == [target]
            && references(source, target) == 1
            && ends.contains(&self::target(arm.texts.last()?));
        if !is_diamond {
            return None;
        }
        end = other_lines.end;
        arms.push(other);
    }
    let condition = branch.instruction.predicate();
    let complement = complement(before, condition)?;
    let predicates = [complement, condition];
    let keeps = |part: &Part<'_>| {
        let mut items = part.block.items.iter();
        items.all(|item| {
            let written = item.effects.all_writes().predicate | item.effects.clears | item.effects.sets;
            item.is_exit()
                || written & (1 << complement | 1 << condition) == 0
                    && item.effects.qualifier == 0
                    && !item.effects.writes_when_off
                    && item.instruction.form().predicated
                    && !item.instruction.is_long()
                    && !item.begins_group()
        })
    };
    arms.iter().all(keeps).then(|| Region {
        function: &function.name,
        line: source.lines[lines.start].number,
        lines: lines.start..end,
        head,
        arms,
        predicates,
    })
}

fn part(piece: &Piece) -> Option<(&std::ops::Range<usize>, Part<'_>)> {
    match piece {
        Piece::Block {
            lines,
            block,
            texts,
            bundles,
            ..
        } => Some((
            lines,
            Part {
                block,
                texts,
                bundles,
            },
        )),
        Piece::Verbatim { .. } => None,
    }
}

/// The labels of a piece, if it is nothing else.
fn labels<'a>(source: &'a Source, piece: &Piece) -> Option<Vec<&'a str>> {
    let Piece::Verbatim { lines } = piece else {
        return None;
    };
    let statements = source.lines[lines.clone()]
        .iter()
        .flat_map(|line| &line.statements);
    statements
        .map(|statement| match statement {
            Statement::Label(label) => Some(label.as_str()),
            _ => None,
        })
        .collect()
}

/// Where a branch goes.
fn target(text: &Text) -> &str {
    let target = text
        .instruction
        .split_whitespace()
        .next_back()
        .unwrap_or_default();
    target.trim_end_matches('#')
}

/// How often a source names a label beside where it stands.
fn references(source: &Source, label: &str) -> usize {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "._$".contains(character);
    let texts = source.lines.iter().flat_map(|line| &line.statements);
    let texts = texts.filter_map(|statement| match statement {
        Statement::Instruction(text) | Statement::Directive(text) => Some(text),
        _ => None,
    });
    texts
        .flat_map(|text| text.split(|character| !is_part(character)))
        .filter(|word| *word == label)
        .count()
}

/// Whether an instruction always goes to a label.
fn is_jump(instruction: &Instruction) -> bool {
    let is_branch = matches!(
        instruction.operation,
        Operation::Branch {
            kind: BranchKind::Conditional,
            ..
        }
    );
    is_branch && instruction.is_relative() && instruction.predicate() == 0
}

/// The predicate that is on if another one is off, by the last of some instructions that writes that.
fn complement(items: &[crate::block::Item], condition: u8) -> Option<u8> {
    let writes = |item: &crate::block::Item, predicate: u8| {
        let effects = &item.effects;
        (effects.all_writes().predicate | effects.clears | effects.sets) >> predicate & 1 != 0
    };
    let maker = items.iter().rposition(|item| writes(item, condition))?;
    let (compare, effects) = (&items[maker].instruction, &items[maker].effects);
    let both = (compare.p1(), compare.p2());
    let other = if both.0 == condition { both.1 } else { both.0 };
    let is_made = effects.complements && effects.qualifier == 0 && both.0 != both.1 && other != 0;
    let is_kept = items[maker + 1..].iter().all(|item| !writes(item, other));
    (is_made && is_kept).then_some(other)
}

/// The instruction under a predicate.
fn under(instruction: &Instruction, predicate: u8) -> Option<Instruction> {
    decode(instruction.unit, instruction.slot | u64::from(predicate), 0).ok()
}

/// The region without its branches, and its text; `None` if that would be slower, or says something else.
fn convert(region: &Region<'_>, options: &Options) -> Option<(PredicatedBranch, String)> {
    let parameters = &options.parameters;
    let mut instructions = Vec::new();
    let mut texts = Vec::new();
    let mut mutex = Vec::new();
    let mut objects = Vec::new();
    let heads = std::iter::once((&region.head, 0));
    let parts = heads.chain(region.arms.iter().zip(region.predicates));
    for (part, predicate) in parts {
        let before = instructions.len();
        for (index, item) in part.block.items.iter().enumerate() {
            if item.is_exit() {
                continue;
            }
            let own = &part.texts[index];
            instructions.push(match predicate {
                0 => item.instruction,
                _ => under(&item.instruction, predicate)?,
            });
            objects.push(part.block.objects[index]);
            texts.push(match predicate {
                0 => own.clone(),
                _ => Text {
                    instruction: format!("(p{predicate}) {}", own.instruction),
                    ..own.clone()
                },
            });
        }
        let asserted = part.block.mutex.iter();
        mutex.extend(asserted.map(|(place, registers)| (before + place, *registers)));
    }
    let mut block = Block::new(&instructions, parameters).ok()?;
    (block.mutex, block.objects) = (mutex, objects);
    let outcome = optimize(&block, options);
    // What comes behind both waits for a branch taken.
    let behind = Bundle::new(Template::new(0x01), [nop(Unit::M), nop(Unit::I), nop(Unit::I)]);
    let written = outcome.bundles.iter().map(|placed| placed.encode(&block.items));
    let written: Vec<Bundle> = written.chain([behind]).collect();
    // The arm that is executed if the branch is taken stands where it goes; the other one goes around it.
    let given: Vec<Bundle> = std::iter::once(&region.head)
        .chain(&region.arms)
        .flat_map(|part| part.bundles.to_vec())
        .chain([behind])
        .collect();
    let (first, second) = (region.head.bundles.len(), region.arms[0].bundles.len());
    let aims = match region.arms.len() {
        1 => vec![(first - 1, given.len() - 1)],
        _ => vec![(first - 1, first + second), (first + second - 1, given.len() - 1)],
    };
    let condition = Some(region.predicates[1]);
    let frame = FrameMarker {
        size: 96,
        locals: 96,
        ..FrameMarker::default()
    };
    let before = Trial {
        bundles: &given,
        kernel: 0,
        aims: &aims,
        frame,
        condition,
    };
    let after = Trial {
        bundles: &written,
        kernel: 0,
        aims: &[],
        frame,
        condition,
    };
    let taken = [2, 1].map(|count| cycles(&before, count, parameters));
    let now = [2, 1].map(|count| cycles(&after, count, parameters));
    let after_cycles = now[0].max(now[1]);
    if after_cycles > taken[0].min(taken[1]) {
        return None;
    }
    let compared = compare_ways(&before, &after, STATES).ok()?;
    let mut text = "\t;;\n".to_owned();
    write(&mut text, &outcome.bundles, &texts);
    let report = PredicatedBranch {
        function: region.function.to_owned(),
        line: region.line,
        instructions: instructions
            .len()
            .saturating_sub(region.head.block.items.len() - 1),
        before: taken,
        after: after_cycles,
        compared,
    };
    Some((report, text))
}

/// A source with another text for a region. A label behind it that nothing names any more goes as well.
fn spliced(source: &Source, region: &Region<'_>, replacement: &str, path: &Path) -> String {
    let lines = &source.lines;
    let mut end = region.lines.end;
    let target = target(region.head.texts.last().expect("it has a branch"));
    let is_label = |index: usize| {
        let statements = lines.get(index).map(|line| line.statements.as_slice());
        matches!(statements, Some([Statement::Label(label)]) if label == target)
    };
    let is_empty = |index: usize| lines.get(index).is_some_and(|line| line.statements.is_empty());
    let next = (end..lines.len()).find(|index| !is_empty(*index));
    if let Some(next) = next.filter(|next| is_label(*next) && references(source, target) == 1) {
        end = next + 1;
    }
    let mut text = String::new();
    for line in &lines[..region.lines.start] {
        text.push_str(&line.text);
        text.push('\n');
    }
    // Lines keep their numbers.
    text.push_str(&format!("# {} \"{}\"\n", region.line, path.display()));
    text.push_str(replacement);
    if let Some(line) = lines.get(end) {
        text.push_str(&format!("# {} \"{}\"\n", line.number, path.display()));
    }
    for line in &lines[end.min(lines.len())..] {
        text.push_str(&line.text);
        text.push('\n');
    }
    text
}
