//! A source with its functions scheduled: the text, and what each block gained.

use std::path::Path;

use sidestep_ia64::encoding::{Bundle, Effects, Instruction, Operation};

use super::function::{Speculation, Text, code, slots, write};
use super::macros::expand;
use super::registers::rename;
use super::{AssemblyError, Function, Piece, Source, Unfaithful};
use crate::bundle::Content;
use crate::groups::Checker;
use crate::optimize::{Options, Outcome, optimize};
use crate::speculate::{Speculated, speculate};
use crate::tools::assemble;
use crate::verify;
use crate::verify::equivalence::{Compared, compare};

/// Random states in which each block that is written is compared with what it was.
const STATES: u64 = 128;

/// What became of a block.
#[derive(Clone, Debug)]
pub struct BlockReport {
    /// The line of the source where it begins.
    pub line: usize,
    /// Its instructions, without `nop`s.
    pub instructions: usize,
    /// Its cycles on the model as it was.
    pub before: u32,
    /// What is known of the schedule.
    pub outcome: Outcome,
    /// Whether it was written anew: it is shorter then.
    pub is_written: bool,
    /// In how many random states it was compared with what it was.
    pub compared: Compared,
}

/// What became of a function.
#[derive(Clone, Debug)]
pub struct FunctionReport {
    /// Its name.
    pub name: String,
    /// Its blocks.
    pub blocks: Vec<BlockReport>,
    /// Cycles from its first bundle to its last on the model, no branch taken, as it was.
    pub before: u32,
    /// The same as it is.
    pub after: u32,
}

/// A source with its functions scheduled.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// The functions.
    pub functions: Vec<FunctionReport>,
}

/// Schedules the functions of a source, or the one of a name. `path` is the source's, for messages.
///
/// # Errors
/// [`AssemblyError`].
pub fn rewrite(
    text: &str,
    path: &Path,
    wanted: Option<&str>,
    speculation: Speculation,
    options: &Options,
) -> Result<Rewritten, AssemblyError> {
    let text = expand(text, path)?;
    let source = Source::parse(&text);
    let object = assemble(&text, path)?;
    let functions = Function::all(&source, &object, wanted, (&options.parameters, speculation), path)?;
    let mut work = Vec::new();
    for function in functions {
        work.push(Work::new(&source, function, speculation, options, path)?);
    }
    loop {
        let text = compose(&source, &work);
        let object = assemble(&text, path)?;
        let file = object::File::parse(&*object).map_err(|source| AssemblyError::Object {
            path: path.display().to_string(),
            source,
        })?;
        let mut is_slower = false;
        for work in &mut work {
            let bundles = code(&file, &work.function.name).unwrap_or_default();
            work.check(&bundles, path)?;
            work.check_groups(&bundles, path)?;
            work.after = verify::cycles(&bundles, &options.parameters);
            // What blocks gain by themselves they can lose where they meet: then the function stays as it was.
            if work.after > work.before && work.blocks.iter().any(|block| block.is_written) {
                work.blocks.iter_mut().for_each(|block| block.is_written = false);
                is_slower = true;
            }
        }
        if !is_slower {
            let functions = work.into_iter().map(|work| FunctionReport {
                name: work.function.name,
                blocks: work.blocks,
                before: work.before,
                after: work.after,
            });
            return Ok(Rewritten {
                text,
                functions: functions.collect(),
            });
        }
    }
}

/// A function and what is known of its blocks, which are those of its pieces in order.
struct Work {
    function: Function,
    blocks: Vec<BlockReport>,
    before: u32,
    after: u32,
}

impl Work {
    fn new(
        source: &Source,
        mut function: Function,
        speculation: Speculation,
        options: &Options,
        path: &Path,
    ) -> Result<Work, AssemblyError> {
        let parameters = &options.parameters;
        let mut blocks = Vec::new();
        for piece in &mut function.pieces {
            let Piece::Block {
                lines,
                block,
                texts,
                bundles,
                ..
            } = piece
            else {
                continue;
            };
            let before = verify::cycles(bundles, parameters);
            let original = (**block).clone();
            let (outcome, origins) = match speculation {
                Speculation::None => (optimize(block, options), (0..block.items.len()).collect()),
                Speculation::Asserted => {
                    let speculated = speculate(block, options);
                    if speculated.outcome.modelled < before {
                        *texts = renamed(texts, &speculated);
                        **block = speculated.block;
                    }
                    (speculated.outcome, speculated.origins)
                }
            };
            let line = source.lines[lines.start].number;
            let is_written = outcome.modelled < before;
            let mut compared = Compared::default();
            if is_written {
                let schedule = (&**block, &*origins, &*outcome.bundles);
                compared =
                    compare(&original, schedule, STATES).map_err(|source| AssemblyError::Different {
                        path: path.display().to_string(),
                        line,
                        source,
                    })?;
            }
            blocks.push(BlockReport {
                line,
                instructions: block.items.len(),
                before,
                is_written,
                compared,
                outcome,
            });
        }
        let before = verify::cycles(&function.bundles, parameters);
        Ok(Work {
            blocks,
            before,
            after: before,
            function,
        })
    }

    /// Holds the bundles that the assembler made against the instructions that were meant, in order.
    fn check(&self, bundles: &[Bundle], path: &Path) -> Result<(), AssemblyError> {
        let written: Vec<Option<Instruction>> = slots(bundles)
            .into_iter()
            .map(|(_, instruction)| instruction.ok())
            .collect();
        let meant = self.meant();
        let differs = |(written, meant): (&Option<Instruction>, &Instruction)| {
            written.is_none_or(|written| !is_same(&written, meant))
        };
        let place = written.iter().zip(&meant).position(differs);
        let place = place.or((written.len() != meant.len()).then_some(written.len().min(meant.len())));
        let Some(place) = place else { return Ok(()) };
        let name = |instruction: Option<&Instruction>| {
            instruction.map_or("nothing".to_owned(), |instruction| {
                instruction.form().mnemonic.clone()
            })
        };
        Err(AssemblyError::Unfaithful(Unfaithful {
            path: path.display().to_string(),
            function: self.function.name.clone(),
            place,
            written: name(written.get(place).and_then(Option::as_ref)),
            meant: name(meant.get(place)),
        }))
    }

    /// Holds the groups of the bundles against those of the source: none may break a rule where the source's did not.
    fn check_groups(&self, bundles: &[Bundle], path: &Path) -> Result<(), AssemblyError> {
        let (before, after) = (violations(&self.function.bundles), violations(bundles));
        if after.len() <= before.len() {
            return Ok(());
        }
        let new = after.iter().find(|text| !before.contains(text));
        Err(AssemblyError::Group {
            path: path.display().to_string(),
            function: self.function.name.clone(),
            what: new.or(after.first()).cloned().unwrap_or_default(),
        })
    }

    /// The instructions in the order in which they are written.
    fn meant(&self) -> Vec<Instruction> {
        let mut reports = self.blocks.iter();
        let mut meant = Vec::new();
        for piece in &self.function.pieces {
            let Piece::Block { block, original, .. } = piece else {
                continue;
            };
            let Some(report) = reports.next() else { continue };
            if !report.is_written {
                meant.extend(original.iter());
                continue;
            }
            for content in report.outcome.bundles.iter().flat_map(|placed| placed.slots) {
                if let Content::Item(item) = content {
                    meant.push(block.items[item].instruction);
                }
            }
        }
        meant
    }
}

/// The texts of a block in its new order, with the registers that it has now.
fn renamed(texts: &[Text], speculated: &Speculated) -> Vec<Text> {
    let places = speculated.origins.iter().zip(&speculated.names);
    let text = places
        .zip(&speculated.speculative)
        .map(|((origin, names), is_speculative)| {
            let instruction = rename(&texts[*origin].instruction, names);
            Text {
                instruction: match is_speculative {
                    true => speculative(&instruction),
                    false => instruction,
                },
                ..texts[*origin].clone()
            }
        });
    text.collect()
}

/// A load's text as that of a speculative one: `ld8.s` for `ld8`, hints behind that.
fn speculative(text: &str) -> String {
    let mnemonic = text.find("ld").map(|start| start + "ld8".len());
    let (load, rest) = text.split_at(mnemonic.unwrap_or(text.len()));
    format!("{load}.s{rest}")
}

/// What the groups of bundles break.
fn violations(bundles: &[Bundle]) -> Vec<String> {
    let mut checker = Checker::default();
    let mut found = Vec::new();
    for bundle in bundles {
        checker.bundle(0, *bundle, &mut |violation| {
            let (first, second) = (
                violation.first_instruction.form(),
                violation.second_instruction.form(),
            );
            found.push(format!(
                "{} behind {} on {}",
                second.mnemonic, first.mnemonic, violation.on
            ));
        });
    }
    found
}

/// Whether two instructions are the same, but for where a branch goes from.
fn is_same(first: &Instruction, second: &Instruction) -> bool {
    let tells_of_target = first.effects().contains(Effects::TRANSFERS)
        || matches!(
            first.operation,
            Operation::BranchPredict | Operation::BranchPredictIndirect { .. }
        );
    first.operation == second.operation
        && (tells_of_target && first.predicate() == second.predicate() || first.slot == second.slot)
}

/// The text with the blocks that are written anew.
fn compose(source: &Source, work: &[Work]) -> String {
    let mut text = String::new();
    let mut next = 0;
    let copy = |text: &mut String, to: usize, next: &mut usize| {
        for line in &source.lines[*next..to.max(*next)] {
            text.push_str(&line.text);
            text.push('\n');
        }
        *next = to.max(*next);
    };
    for work in work {
        let mut reports = work.blocks.iter();
        for piece in &work.function.pieces {
            let Piece::Block { lines, texts, .. } = piece else {
                continue;
            };
            let Some(report) = reports.next().filter(|report| report.is_written) else {
                continue;
            };
            copy(&mut text, lines.start, &mut next);
            write(&mut text, &report.outcome.bundles, texts);
            next = lines.end;
        }
    }
    copy(&mut text, source.lines.len(), &mut next);
    text
}
