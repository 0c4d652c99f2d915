//! A source with its functions scheduled: the text, and what each block gained.

mod loops;
mod predication;
mod recovery;
mod violations;

use std::path::Path;

use sidestep_ia64::encoding::{Bundle, Effects, Instruction, Operand, Operation};

use crate::assembly::macros::expand;
use crate::assembly::registers::rename;
use crate::assembly::{
    AssemblyError, Function, Piece, Source, Speculation, Text, Unfaithful, Ways, code, expect_code, slots,
    speculative, write,
};
use crate::checks::speculate_with_checks;
use crate::optimize::{Options, Outcome, optimize, order};
use crate::pipelining::{Loop, LoopReport, Pipelined, pipeline};
use crate::speculate::{Speculated, speculate};
use crate::tools::assemble;
use crate::verify;
use crate::verify::equivalence::{Compared, compare};
use crate::worlds::Worlds;
use loops::loops;
pub use predication::PredicatedBranch;
use predication::{cycles_of, predicate};
use recovery::{Recovery, checks, has_frame};
use violations::{Asserted, Violated, expect_defined, places, violations};

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
    /// How many of its loads pass branches and have a check.
    pub checks: usize,
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
    /// The same as it is, without what pipelining changes.
    pub after: u32,
    /// Its loops of one block, if they are pipelined.
    pub loops: Vec<LoopReport>,
    /// Its branches that predicates have taken the place of.
    pub branches: Vec<PredicatedBranch>,
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
    ways: impl Into<Ways>,
    options: &Options,
) -> Result<Rewritten, AssemblyError> {
    let ways: Ways = ways.into();
    let speculation = ways.speculation;
    let given = expand(text, path)?;
    expect_code(&Source::parse(&given), wanted, path)?;
    let (text, mut branches) = match ways.is_predicated {
        true => predicate(&given, path, wanted, options)?,
        false => (given.clone(), Vec::new()),
    };
    let source = Source::parse(&text);
    let object = assemble(&text, path)?;
    let functions = Function::all(&source, &object, wanted, (&options.parameters, ways), path)?;
    let mut work = Vec::new();
    for function in functions {
        expect_defined(&source, &function, path)?;
        // Before anything else changes the blocks.
        let loops = match ways.is_pipelined {
            true => pipelined(&source, &function, speculation, options, path)?,
            false => Vec::new(),
        };
        let mut next = Work::new(&source, function, speculation, options, path)?;
        loops
            .into_iter()
            .enumerate()
            .for_each(|(block, report)| next.loops[block] = report);
        if branches
            .iter()
            .any(|branch| branch.function == next.function.name)
        {
            next.before = cycles_of(&given, &next.function.name, path, options)?;
        }
        work.push(next);
    }
    loop {
        let text = compose(&source, &work);
        let object = assemble(&text, path)?;
        let file = object::File::parse(&*object).map_err(|source| AssemblyError::Object {
            path: path.display().to_string(),
            source,
        })?;
        let mut is_changed = false;
        for work in &mut work {
            let bundles = code(&file, &work.function.name).unwrap_or_default();
            work.check(&bundles, path)?;
            if work.part(&bundles, path)? {
                is_changed = true;
                continue;
            }
            if work.shows_loops {
                continue;
            }
            // What recovers stands behind what is executed.
            let executed = bundles.len() - work.recoveries().count();
            work.after = verify::cycles_of_code(&bundles[..executed], &options.parameters);
            // What blocks gain by themselves they can lose where they meet: then the function stays as it was.
            if work.after > work.before && work.blocks.iter().any(|block| block.is_written) {
                work.blocks.iter_mut().for_each(|block| block.is_written = false);
                work.stops.fill(false);
                is_changed = true;
            }
        }
        // The cycles above are those of a pass; what loops gain is another matter.
        if !is_changed {
            for work in &mut work {
                is_changed |= work.show_loops();
            }
        }
        if !is_changed {
            let functions = work.into_iter().map(|work| FunctionReport {
                branches: branches
                    .extract_if(.., |branch| branch.function == work.function.name)
                    .collect(),
                name: work.function.name,
                blocks: work.blocks,
                before: work.before,
                after: work.after,
                loops: work.loops.into_iter().flatten().collect(),
            });
            return Ok(Rewritten {
                text,
                functions: functions.collect(),
            });
        }
    }
}

/// By block of a function, what becomes of it as a loop.
fn pipelined(
    source: &Source,
    function: &Function,
    speculation: Speculation,
    options: &Options,
    path: &Path,
) -> Result<Vec<Option<LoopReport>>, AssemblyError> {
    let found = loops(source, function).into_iter().map(|found| {
        let Some(found) = found else { return Ok(None) };
        if !found.is_whole {
            return Ok(Some(found.refused(
                "it is of several blocks: other branches enter or leave it in its middle",
            )));
        }
        let given = Loop {
            speculates: speculation == Speculation::Asserted,
            ..found.as_loop()
        };
        pipeline(&given, found.line, &options.parameters, path).map(Some)
    });
    found.collect()
}

/// A function and what is known of its blocks, which are those of its pieces in order.
struct Work {
    function: Function,
    blocks: Vec<BlockReport>,
    /// By block, whether a stop is written before it: a group of a block that stays as it was would go on in it.
    stops: Vec<bool>,
    /// By block, what became of it as a loop.
    loops: Vec<Option<LoopReport>>,
    /// Whether loops are written as pipelined.
    shows_loops: bool,
    /// What is executed where a check finds that a fault was deferred, by check: the block, the code.
    recoveries: Vec<(usize, Recovery)>,
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
        let mut recoveries = Vec::new();
        let has_checks = !has_frame(source, &function);
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
            let before = verify::cycles(bundles, &Worlds::of(block), parameters);
            let original = (**block).clone();
            let (outcome, origins) = match speculation {
                Speculation::None => (optimize(block, options), (0..block.items.len()).collect()),
                Speculation::Asserted => {
                    let speculated = match has_checks {
                        true => speculate_with_checks(block, options),
                        false => speculate(block, options),
                    };
                    if speculated.outcome.modelled < before {
                        *texts = renamed(texts, &speculated);
                        let found = checks(texts, &speculated.block, &function.name, recoveries.len());
                        recoveries.extend(found.into_iter().map(|recovery| (blocks.len(), recovery)));
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
                checks: block.items.iter().filter(|item| item.recovers.is_some()).count(),
                compared,
                outcome,
            });
        }
        let before = verify::cycles_of_code(&function.bundles, parameters);
        Ok(Work {
            stops: vec![false; blocks.len()],
            loops: vec![None; blocks.len()],
            shows_loops: false,
            recoveries,
            blocks,
            before,
            after: before,
            function,
        })
    }

    /// Writes loops as pipelined from now on; says whether that changes anything.
    fn show_loops(&mut self) -> bool {
        let has_any = (0..self.loops.len()).any(|block| self.pipelined_at(block).is_some());
        let is_new = has_any && !self.shows_loops;
        self.shows_loops |= has_any;
        for block in 0..self.loops.len() {
            // What goes before the kernel begins a group.
            self.stops[block] |= self.pipelined(block).is_some();
        }
        is_new
    }

    /// The pipelined loop that a block is.
    fn pipelined_at(&self, block: usize) -> Option<&Pipelined> {
        self.loops[block].as_ref()?.outcome.as_ref().ok()
    }

    /// The same, if loops are written so.
    fn pipelined(&self, block: usize) -> Option<&Pipelined> {
        self.pipelined_at(block).filter(|_| self.shows_loops)
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
    /// Where a group of a block that stays goes on in one that is written anew, what depended on it may have come into
    /// it: a stop parts them then. Says whether there is one more.
    fn part(&mut self, bundles: &[Bundle], path: &Path) -> Result<bool, AssemblyError> {
        let members = self.members();
        let block_of = |place: usize| members.get(place).map(|(block, _)| *block);
        let asserted = Asserted::of(&self.function);
        let before = asserted.left(violations(&self.function.bundles), &places(&self.function));
        let mut after = asserted.left(violations(bundles), &members);
        // What hangs on predicates that rotate was looked at in runs.
        after.retain(|violation| {
            let [first, second] = violation.places.map(block_of);
            let is_in_loop = first == second && first.is_some_and(|block| self.pipelined(block).is_some());
            !(is_in_loop && violation.is_possible)
        });
        if after.len() <= before.len() {
            return Ok(false);
        }
        let is_new = |violation: &&Violated| before.iter().all(|known| known.what != violation.what);
        let mut new: Vec<&Violated> = after.iter().filter(is_new).collect();
        if new.is_empty() {
            new = after.iter().collect();
        }
        let mut is_parted = false;
        for violation in &new {
            let [Some(first), Some(second)] = violation.places.map(block_of) else {
                continue;
            };
            if first != second && self.blocks[second].is_written && !self.stops[second] {
                self.stops[second] = true;
                is_parted = true;
            }
        }
        if is_parted {
            return Ok(true);
        }
        Err(AssemblyError::Group {
            path: path.display().to_string(),
            function: self.function.name.clone(),
            what: new[0].what.clone(),
        })
    }

    /// The code of the checks of blocks that are written anew.
    fn recoveries(&self) -> impl Iterator<Item = &Recovery> {
        let written = self
            .recoveries
            .iter()
            .filter(|(block, _)| self.blocks[*block].is_written);
        written.map(|(_, recovery)| recovery)
    }

    /// The instructions in the order in which they are written: the block of each, and which of its items it is, if it
    /// is one.
    fn members(&self) -> Vec<(usize, Option<usize>)> {
        let mut members = Vec::new();
        for (index, report) in self.blocks.iter().enumerate() {
            let items: Vec<Option<usize>> = match self.pipelined(index) {
                Some(pipelined) => vec![None; pipelined.instructions.len()],
                None if report.is_written => order(&report.outcome.bundles).into_iter().map(Some).collect(),
                None => (0..report.instructions).map(Some).collect(),
            };
            members.extend(items.into_iter().map(|item| (index, item)));
        }
        members
    }

    /// The instructions in the order in which they are written.
    fn meant(&self) -> Vec<Instruction> {
        let mut reports = self.blocks.iter().enumerate();
        let mut meant = Vec::new();
        for piece in &self.function.pieces {
            let Piece::Block { block, original, .. } = piece else {
                continue;
            };
            let Some((index, report)) = reports.next() else {
                continue;
            };
            if let Some(pipelined) = self.pipelined(index) {
                meant.extend(&pipelined.instructions);
                continue;
            }
            if !report.is_written {
                meant.extend(original.iter());
                continue;
            }
            let items = order(&report.outcome.bundles).into_iter();
            meant.extend(items.map(|item| block.items[item].instruction));
        }
        meant.extend(self.recoveries().flat_map(|recovery| recovery.instructions));
        meant
    }
}

/// The texts of a block in its new order, with the registers that it has now.
fn renamed(texts: &[Text], speculated: &Speculated) -> Vec<Text> {
    let places = speculated.origins.iter().zip(&speculated.names);
    let text = places
        .zip(speculated.speculative.iter().zip(&speculated.block.items))
        .map(|((origin, names), (is_speculative, item))| {
            let instruction = match item.recovers {
                Some(_) => rename(&texts[*origin].instruction, &names.of_checked()),
                None => rename(&texts[*origin].instruction, names),
            };
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

/// Whether two instructions are the same, but for where a branch goes from.
fn is_same(first: &Instruction, second: &Instruction) -> bool {
    let tells_of_target = first.effects().contains(Effects::TRANSFERS)
        || matches!(
            first.operation,
            Operation::BranchPredict | Operation::BranchPredictIndirect { .. }
        );
    // The place of the branch that the register is for counts bundles.
    let tag = match first.operation {
        Operation::MoveToBranch => Operand::Tag13b.mask(),
        _ => 0,
    };
    first.operation == second.operation
        && (tells_of_target && first.predicate() == second.predicate()
            || first.slot & !tag == second.slot & !tag)
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
        let mut reports = work.blocks.iter().zip(&work.stops).enumerate();
        let mut behind_last = work.function.lines.start;
        for piece in &work.function.pieces {
            let Piece::Block { lines, texts, .. } = piece else {
                continue;
            };
            let last = std::mem::replace(&mut behind_last, lines.end);
            let Some((index, (report, stop))) = reports.next() else {
                continue;
            };
            let pipelined = work.pipelined(index);
            if !report.is_written && pipelined.is_none() {
                continue;
            }
            if *stop {
                // Not behind directives: `.align` ends the bundle that the stop belongs to.
                copy(&mut text, last, &mut next);
                text.push_str("\t;;\n");
            }
            copy(&mut text, lines.start, &mut next);
            match pipelined {
                Some(pipelined) => text.push_str(&pipelined.text),
                None => write(&mut text, &report.outcome.bundles, texts),
            }
            next = lines.end;
        }
        if work.recoveries().next().is_some() {
            // Before .endp, so that they are the function's.
            copy(&mut text, work.function.lines.end - 1, &mut next);
            work.recoveries()
                .for_each(|recovery| text.push_str(&recovery.text));
        }
    }
    copy(&mut text, source.lines.len(), &mut next);
    text
}
