//! Software pipelining: loops of one block that begin an iteration before the last one has ended.
//!
//! A loop that `br.cloop` closes becomes a kernel that `br.ctop` closes, one that a condition ends a kernel that
//! `br.wtop` closes. In a pass of it each instruction is one of another iteration, by its stage; a stage's predicate is
//! on while its iteration exists, so the kernel is its own prologue and epilogue. Values get rotating registers, a new
//! one in each iteration. What the registers of the source held behind the loop they hold behind the kernel as well.
//!
//! - `suitable`: which loops can be pipelined; `version`: increments of addresses apart; `condition`: loops that a
//!   compare ends;
//! - `values`: what registers hold, and which may rotate; `staging`: what is under the predicate of its stage;
//!   `distances`: what instructions of any iteration wait for;
//! - `kernel`: loops that rotate already;
//! - `modulo`: a cycle for each; `rotation`: registers; `emit`: the text.

mod condition;
mod distances;
mod emit;
mod kernel;
mod modulo;
mod rotation;
mod staging;
mod suitable;
mod values;
mod version;

use std::path::Path;

use sidestep_ia64::encoding::{BranchKind, Bundle, Form, Instruction, Unit, decode};
use sidestep_ia64::registers::application::EC;
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::registers::status::psr;
use sidestep_itanium2::Parameters;

use crate::assembly::{AssemblyError, Text, code_of, slots, write};
use crate::block::{Block, Item};
use crate::bound;
use crate::bundle::{Content, Packer};
use crate::capacity::Capacity;
use crate::rename::File;
use crate::sequencing::{Parts, State};
use crate::tools::{ToolError, assemble};
use crate::verify::equivalence::{self, Compared, Difference};
use crate::verify::loops::{self, Trial};
use distances::{STAGES_MAX, recurrence};
use emit::Emitter;
use modulo::schedule;
use rotation::Numbers;
use staging::{Ahead, Staging};
use suitable::{Ending, ending, is_counted};
use values::{Home, Values};
use version::Version;

/// Random states in which a loop is compared with its pipelined version.
const STATES: u64 = 128;
/// States of these in which both end, at least, for the loop to be called compared.
const COMPLETED_MIN: u32 = 16;
/// Iterations of which the rate is measured, and those before it.
const MEASURED: u64 = 64;
const WARM: u64 = 32;
/// Intervals that are tried, from the least possible on.
const INTERVALS: u32 = 8;

/// The registers of a function's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Inputs and locals.
    pub locals: u8,
    /// Outputs.
    pub outputs: u8,
}

impl Frame {
    /// That of a function which allocates none: as many as its callers give at most.
    pub const OF_LEAF: Frame = Frame {
        locals: 8,
        outputs: 0,
    };

    /// All registers.
    pub fn size(self) -> u8 {
        self.locals + self.outputs
    }
}

/// What the function around a loop says.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The frame that it allocates at its begin, if it does.
    pub frame: Option<Frame>,
    /// The registers that its instructions name.
    pub used: Parts,
    /// The same of those outside of the loop.
    pub used_outside: Parts,
    /// General registers that rotate in its frame.
    pub rotating: u8,
    /// Why general registers cannot rotate in it.
    pub keeps_frame: Option<&'static str>,
    /// Why nothing can.
    pub keeps_all: Option<&'static str>,
}

/// A loop to pipeline.
pub struct Loop<'a> {
    /// Its instructions, the branch last.
    pub block: &'a Block,
    /// Their texts.
    pub texts: &'a [Text],
    /// Its bundles.
    pub bundles: &'a [Bundle],
    /// What is around it.
    pub surroundings: &'a Surroundings,
    /// The label for the kernel.
    pub label: String,
    /// Whether instructions may be executed before it is known whether their iteration exists.
    pub speculates: bool,
}

/// A loop, pipelined.
#[derive(Clone, Debug)]
pub struct Pipelined {
    /// What is written in its place.
    pub text: String,
    /// Its instructions, without `nop`s.
    pub instructions: Vec<Instruction>,
    /// Cycles between the begins of iterations, as planned.
    pub interval: u32,
    /// Iterations at the same time.
    pub stages: u32,
    /// Cycles of so many iterations on the model, of the kernel.
    pub cycles: u64,
    /// General registers that rotate.
    pub rotating: u8,
    /// From how many iterations on it takes no more cycles than the loop did, with what goes before and behind.
    pub worth_from: Option<u64>,
    /// In how many random states it was compared with the loop.
    pub compared: Compared,
}

/// What became of a loop.
#[derive(Clone, Debug)]
pub struct LoopReport {
    /// The line of the source where it begins.
    pub line: usize,
    /// Its instructions, without `nop`s.
    pub instructions: usize,
    /// Cycles of [`LoopReport::ITERATIONS`] on the model as it was.
    pub before: u64,
    /// Cycles that the units take for an iteration, at least.
    pub units: u32,
    /// Cycles that the chains from one iteration to the next take, at least.
    pub recurrence: u32,
    /// The loop, pipelined, or why it is not.
    pub outcome: Result<Pipelined, String>,
}

impl LoopReport {
    /// Iterations whose cycles are counted.
    pub const ITERATIONS: u64 = MEASURED;
}

/// Pipelines a loop, if that gains anything.
///
/// # Errors
/// [`AssemblyError`] if the assembler fails or the result differs from the loop: broken invariants.
pub fn pipeline(
    given: &Loop<'_>,
    line: usize,
    parameters: &Parameters,
    path: &Path,
) -> Result<LoopReport, AssemblyError> {
    let mut report = LoopReport {
        line,
        instructions: given.block.items.len(),
        before: 0,
        units: 0,
        recurrence: 0,
        outcome: Err(String::new()),
    };
    if is_kernel(given) {
        reorder(given, &mut report, parameters, path)?;
        return Ok(report);
    }
    let ending = match ending(given) {
        Ok(ending) => ending,
        Err(reason) => {
            report.outcome = Err(reason);
            return Ok(report);
        }
    };
    let branch = given.block.items.last().expect("it has a branch");
    let original = Trial {
        bundles: given.bundles,
        kernel: 0,
        aims: &[],
        frame: frame_of(given.surroundings),
        condition: match ending {
            Ending::Count => None,
            Ending::Condition(predicate) => Some(predicate),
        },
    };
    report.before = rate(&original, parameters);
    let scratch = spare(given.surroundings);
    let Some((spare, private)) = scratch.split_at_checked(2) else {
        report.outcome = Err("the function uses all scratch registers, and two are needed".to_owned());
        return Ok(report);
    };
    let mut reason = "no schedule of fewer cycles has been found".to_owned();
    let mut best: Option<Pipelined> = None;
    let mut least = (u32::MAX, 0, 0);
    let speculates = given.speculates && ending != Ending::Count;
    for mut version in Version::all(given, speculates, parameters, path)? {
        if ending != Ending::Count {
            // It has its place in a bundle, as the other loop branches have.
            let last = version.block.items.last_mut().expect("it has a branch");
            *last = while_top(branch.instruction.predicate(), parameters);
        }
        let texts: Vec<&str> = version
            .texts
            .iter()
            .map(|text| text.instruction.as_str())
            .collect();
        let count = texts.len();
        let mut packer = Packer::new(&version.block.items, parameters);
        let mut present = vec![0; packer.signature_count()];
        (0..=count).for_each(|item| present[packer.signature(item)] += 1);
        let units = bound::units(&packer, &Capacity::new(&packer, &present), count + 1);
        let body = version.body();
        let free = Values::new(&body, &texts, |_| true, &[]);
        let parts = (&body, branch, ending);
        let most = if speculates { Ahead::All } else { Ahead::Nothing };
        let free = Staging::new(parts, free, most, given.surroundings, parameters);
        let chain = free.map_or(0, |free| recurrence(&free.distances(&body, parameters), count));
        least = least.min((units.max(chain), units, chain));
        for (rotates, ahead) in [
            (false, Ahead::Nothing),
            (true, Ahead::Nothing),
            (true, Ahead::Temporaries),
            (true, Ahead::All),
        ] {
            if rotates && given.surroundings.keeps_frame.is_some() || ahead > most {
                continue;
            }
            let values = Values::new(&body, &texts, |file| rotates || file != File::General, private);
            let staging = match Staging::new(parts, values, ahead, given.surroundings, parameters) {
                Ok(staging) => staging,
                Err(why) => {
                    reason = why;
                    continue;
                }
            };
            let distances = staging.distances(&body, parameters);
            let texts = staging.texts(&version.texts, &body);
            let first = units.max(recurrence(&distances, count));
            for interval in first..first + INTERVALS {
                let limit = best.as_ref().map_or(report.before, |best| best.cycles);
                if u64::from(interval) * MEASURED >= limit {
                    break;
                }
                let Some((mut modulo, bundles)) =
                    schedule(&distances, &mut packer, count, interval, STAGES_MAX)
                else {
                    continue;
                };
                let condition = staging.condition.as_ref();
                modulo.condition = condition.map_or(0, |it| it.stage(&modulo.cycles, interval));
                if condition.is_some_and(|it| !it.is_kept(&body, &staging.values, &modulo)) {
                    "what its condition excludes is asked for too early".clone_into(&mut reason);
                    continue;
                }
                if !staging.keeps_first(&body, &modulo) {
                    "what no predicate keeps from iterations before the first takes the place of what was there"
                        .clone_into(&mut reason);
                    continue;
                }
                let room = 95u32.saturating_sub(frame_of(given.surroundings).size) as u8;
                let numbers = Numbers::new(
                    &staging.values,
                    &modulo,
                    room / 8 * 8,
                    condition.map(|it| it.value),
                );
                let Some(numbers) = numbers else {
                    "there are too few rotating registers".clone_into(&mut reason);
                    continue;
                };
                let emitter = Emitter {
                    block: &body,
                    texts: &texts,
                    values: &staging.values,
                    schedule: &modulo,
                    numbers: &numbers,
                    surroundings: given.surroundings,
                    is_staged: &staging.is_staged,
                    condition,
                    spare: [spare[0], spare[1]],
                    label: &given.label,
                };
                let text = emitter.text(&bundles);
                let schedule = (text, &modulo, &numbers);
                let found = judged(given, &original, schedule, &staging, limit, (parameters, path));
                if let Some(found) = found.map_err(|error| error.in_line(path, line))? {
                    best = Some(found);
                    break;
                }
            }
        }
    }
    (_, report.units, report.recurrence) = least;
    report.outcome = best.ok_or(reason);
    Ok(report)
}

/// Whether a loop rotates registers already, and counts.
fn is_kernel(given: &Loop<'_>) -> bool {
    let branch = given.block.items.last();
    let is_rotating = branch.is_some_and(|branch| is_counted(&branch.instruction, BranchKind::CountedTop));
    is_rotating && given.block.items.len() > 1
}

/// Gives the instructions of a kernel the order in which its passes take the fewest cycles, if that gains anything.
fn reorder(
    given: &Loop<'_>,
    report: &mut LoopReport,
    parameters: &Parameters,
    path: &Path,
) -> Result<(), AssemblyError> {
    let frame = FrameMarker {
        rotating: given.surroundings.rotating.into(),
        ..frame_of(given.surroundings)
    };
    let rate = |bundles: &[Bundle]| {
        let trial = Trial {
            bundles,
            kernel: 0,
            aims: &[],
            frame,
            condition: None,
        };
        rate(&trial, parameters)
    };
    report.before = rate(given.bundles);
    let orders = kernel::orders(given, parameters);
    (report.units, report.recurrence) = (orders.units, orders.recurrence);
    report.outcome =
        Err("its registers rotate already, and no order of fewer cycles has been found".to_owned());
    for (interval, placed) in orders.found {
        let items = &given.block.items;
        let bundles: Vec<Bundle> = placed.iter().map(|placed| placed.encode(items)).collect();
        let cycles = rate(&bundles);
        if cycles >= report.before {
            continue;
        }
        let own: Vec<usize> = (0..items.len()).collect();
        let compared = equivalence::compare(given.block, (given.block, &own, &placed), STATES)
            .map_err(|source| Wrong::Different(source).in_line(path, report.line))?;
        let mut text = String::new();
        write(&mut text, &placed, given.texts);
        let order = placed.iter().flat_map(|placed| placed.slots);
        report.outcome = Ok(Pipelined {
            text,
            instructions: order
                .filter_map(|content| match content {
                    Content::Item(item) => Some(items[item].instruction),
                    _ => None,
                })
                .collect(),
            interval,
            stages: 1,
            cycles,
            rotating: 0,
            worth_from: Some(1),
            compared,
        });
        break;
    }
    Ok(())
}

/// Why a pipelined text cannot be judged, or is wrong.
enum Wrong {
    Assembly(AssemblyError),
    Different(Difference),
}

impl From<AssemblyError> for Wrong {
    fn from(error: AssemblyError) -> Wrong {
        Wrong::Assembly(error)
    }
}

impl From<ToolError> for Wrong {
    fn from(error: ToolError) -> Wrong {
        Wrong::Assembly(error.into())
    }
}

impl Wrong {
    /// The same with its place.
    fn in_line(self, path: &Path, line: usize) -> AssemblyError {
        match self {
            Wrong::Assembly(error) => error,
            Wrong::Different(source) => AssemblyError::Different {
                path: path.display().to_string(),
                line,
                source,
            },
        }
    }
}

/// Holds a pipelined text against the loop, on the model and in random states; `None` if its iterations take no fewer
/// than `limit` cycles.
fn judged(
    given: &Loop<'_>,
    original: &Trial<'_>,
    (text, modulo, numbers): (String, &modulo::Modulo, &Numbers),
    staging: &Staging,
    limit: u64,
    (parameters, path): (&Parameters, &Path),
) -> Result<Option<Pipelined>, Wrong> {
    let object = assemble(&format!("\t.text\n{text}"), path)?;
    let bundles = code_of(&object, path)?;
    let kind = match staging.condition {
        None => BranchKind::CountedTop,
        Some(_) => BranchKind::WhileTop,
    };
    let is_branch = |(_, instruction): &(usize, Result<Instruction, ()>)| {
        instruction.is_ok_and(|instruction| is_counted(&instruction, kind))
    };
    let found = slots(&bundles);
    // The kernel ends with the branch, and has as many bundles as were planned.
    let end = found
        .iter()
        .find(|slot| is_branch(slot))
        .map_or(0, |(bundle, _)| bundle + 1);
    let length = text_bundles(&text, &given.label);
    let trial = Trial {
        bundles: &bundles,
        kernel: end.saturating_sub(length),
        aims: &[],
        frame: original.frame,
        condition: staging.condition.map(|condition| {
            let number = numbers.numbers[condition.value].expect("it rotates");
            numbers
                .region(File::Predicate)
                .name(number, modulo.stage(condition.maker))
        }),
    };
    let cycles = rate(&trial, parameters);
    if cycles >= limit {
        return Ok(None);
    }
    let mut dead = Parts::NONE;
    dead.application |= 1 << EC;
    // Which half of the floating-point registers was written.
    dead.status |= psr::MFL | psr::MFH;
    let values = staging.values.values.iter();
    let rotates_floats = values
        .clone()
        .any(|value| value.file == File::Float && value.home == Home::Rotating);
    if rotates_floats {
        dead.float = !0 << 32;
    }
    if given.surroundings.frame.is_none() {
        dead.state |= State::FRAME;
    }
    let scratch = spare(given.surroundings);
    scratch.iter().for_each(|register| dead.general |= 1 << register);
    let used = given.surroundings.used.general;
    // Nobody has put anything into stacked registers that the function does not name.
    dead.general |= !used & !0 << 32;
    let compared = loops::compare(given.block, original, &trial, &dead, STATES).map_err(Wrong::Different)?;
    if compared.completed < COMPLETED_MIN {
        return Ok(None);
    }
    let total = |trial: &Trial<'_>, count: u64| loops::cycles(trial, count, parameters);
    // The more iterations, the more it gains.
    let counts: Vec<u64> = (1..=MEASURED).collect();
    let first = counts.partition_point(|count| total(&trial, *count) > total(original, *count));
    let worth_from = counts.get(first).copied();
    Ok(Some(Pipelined {
        instructions: found
            .into_iter()
            .filter_map(|(_, instruction)| instruction.ok())
            .collect(),
        text,
        interval: modulo.interval,
        stages: modulo.stages(),
        cycles,
        rotating: numbers.region(File::General).size,
        worth_from,
        compared,
    }))
}

/// `br.wtop` under a predicate.
fn while_top(predicate: u8, parameters: &Parameters) -> Item {
    let form = Form::named("br.wtop").next().expect("it is an instruction");
    let encoded = form.encode(predicate, &[0], &[]).expect("no distance");
    let branch = decode(Unit::B, encoded.slot, 0).expect("what was encoded");
    Item::new(branch, parameters).expect("a branch can be placed")
}

/// Bundles between a label and what follows the loop, as they are written.
fn text_bundles(text: &str, label: &str) -> usize {
    let kernel = text
        .split_once(&format!("{label}:\n"))
        .map_or("", |(_, kernel)| kernel);
    kernel.matches("{\t").count()
}

/// Cycles of [`MEASURED`] iterations behind the first few.
fn rate(trial: &Trial<'_>, parameters: &Parameters) -> u64 {
    let cycles = |count: u64| loops::cycles(trial, count, parameters);
    cycles(WARM + MEASURED).saturating_sub(cycles(WARM))
}

/// The frame in which a loop runs.
fn frame_of(surroundings: &Surroundings) -> FrameMarker {
    let frame = surroundings.frame.unwrap_or(Frame::OF_LEAF);
    FrameMarker {
        size: frame.size().into(),
        locals: frame.locals.into(),
        ..FrameMarker::default()
    }
}

/// Scratch registers that the function does not use.
fn spare(surroundings: &Surroundings) -> Vec<u8> {
    // Not those of results: what a call left there may pass through.
    let scratch = (14..32).chain([2, 3]);
    scratch
        .filter(|register| surroundings.used.general >> register & 1 == 0)
        .collect()
}
