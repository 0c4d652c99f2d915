//! Software pipelining: loops of one block that begin an iteration before the last one has ended.
//!
//! A loop that `br.cloop` closes becomes a kernel that `br.ctop` closes. In a pass of it each instruction is one of
//! another iteration, by its stage; a stage's predicate is on while its iteration exists, so the kernel is its own
//! prologue and epilogue. Values get rotating registers, a new one in each iteration. What the registers of the
//! source held behind the loop they hold behind the kernel as well.
//!
//! - `suitable`: which loops can be pipelined; `version`: increments of addresses apart;
//! - `values`: what registers hold, and which may rotate; `distances`: what instructions of any iteration wait for;
//! - `modulo`: a cycle for each; `rotation`: registers; `emit`: the text.

mod distances;
mod emit;
mod modulo;
mod rotation;
mod suitable;
mod values;
mod version;

use std::path::Path;

use sidestep_ia64::encoding::{BranchKind, Bundle, Instruction};
use sidestep_ia64::registers::application::EC;
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::registers::status::psr;
use sidestep_itanium2::Parameters;

use crate::assembly::{AssemblyError, Text, code_of, slots};
use crate::block::Block;
use crate::bound;
use crate::bundle::Packer;
use crate::capacity::Capacity;
use crate::rename::File;
use crate::sequencing::{Parts, State};
use crate::tools::{ToolError, assemble};
use crate::verify::equivalence::{Compared, Difference};
use crate::verify::loops::{self, Trial};
use distances::{distances, recurrence};
use emit::Emitter;
use modulo::schedule;
use rotation::Numbers;
use suitable::{is_counted, unsuitable};
use values::{Home, Values};
use version::Version;

/// Random states in which a loop is compared with its pipelined version.
const STATES: u64 = 128;
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
    if let Some(reason) = unsuitable(given) {
        report.outcome = Err(reason);
        return Ok(report);
    }
    let original = Trial {
        bundles: given.bundles,
        kernel: 0,
        frame: frame_of(given.surroundings),
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
    for version in Version::all(given, parameters, path)? {
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
        let chain = recurrence(&distances(&body, &free, parameters), count);
        least = least.min((units.max(chain), units, chain));
        for rotates in [false, true] {
            if rotates && given.surroundings.keeps_frame.is_some() {
                continue;
            }
            let values = Values::new(&body, &texts, |file| rotates || file != File::General, private);
            let staged = match staged(&body, &values, given.surroundings) {
                Ok(staged) => staged,
                Err(why) => {
                    reason = why;
                    continue;
                }
            };
            let distances = distances(&body, &values, parameters);
            let first = units.max(recurrence(&distances, count));
            for interval in first..first + INTERVALS {
                let limit = best.as_ref().map_or(report.before, |best| best.cycles);
                if u64::from(interval) * MEASURED >= limit {
                    break;
                }
                let Some((modulo, bundles)) = schedule(&distances, &mut packer, count, interval) else {
                    continue;
                };
                let room = 95u32.saturating_sub(frame_of(given.surroundings).size) as u8;
                let Some(numbers) = Numbers::new(&values, &modulo, room / 8 * 8) else {
                    "there are too few rotating registers".clone_into(&mut reason);
                    continue;
                };
                let emitter = Emitter {
                    block: &body,
                    texts: &version.texts,
                    values: &values,
                    schedule: &modulo,
                    numbers: &numbers,
                    surroundings: given.surroundings,
                    is_staged: &staged,
                    spare: [spare[0], spare[1]],
                    label: &given.label,
                };
                let text = emitter.text(&bundles);
                let schedule = (text, &modulo, &numbers);
                let found = judged(given, &original, schedule, &values, limit, (parameters, path));
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
    values: &Values,
    limit: u64,
    (parameters, path): (&Parameters, &Path),
) -> Result<Option<Pipelined>, Wrong> {
    let object = assemble(&format!("\t.text\n{text}"), path)?;
    let bundles = code_of(&object, path)?;
    let is_branch = |(_, instruction): &(usize, Result<Instruction, ()>)| {
        instruction.is_ok_and(|instruction| is_counted(&instruction, BranchKind::CountedTop))
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
        frame: original.frame,
    };
    let cycles = rate(&trial, parameters);
    if cycles >= limit {
        return Ok(None);
    }
    let mut dead = Parts::NONE;
    dead.application |= 1 << EC;
    // Which half of the floating-point registers was written.
    dead.status |= psr::MFL | psr::MFH;
    let rotates_floats = values
        .values
        .iter()
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

/// By instruction, whether the predicate of its stage goes before it: else it does no harm in an iteration that does
/// not exist, as its own predicate is off, or because nobody reads what it writes.
///
/// # Errors
/// Why one can have neither.
fn staged(body: &Block, values: &Values, surroundings: &Surroundings) -> Result<Vec<bool>, String> {
    let rotates = |file: File, register: u8| {
        let mut same = values
            .values
            .iter()
            .filter(|value| (value.file, value.register) == (file, register));
        same.all(|value| value.home == Home::Rotating) && !values.bound.contains(&(file, register))
    };
    for value in &values.values {
        if value.file == File::Predicate && value.is_carried() {
            return Err(format!("p{} goes from one iteration to the next", value.register));
        }
    }
    let floats = values
        .values
        .iter()
        .any(|value| value.file == File::Float && value.home == Home::Rotating);
    if floats && surroundings.used_outside.float >> 32 != 0 {
        return Err("the function keeps floating-point registers that would rotate".to_owned());
    }
    let staged = body.items.iter().map(|item| {
        let effects = &item.effects;
        let qualifier = effects.qualifier;
        if qualifier == 0 {
            return Ok(true);
        }
        let is_off = values.values.iter().any(|value| {
            let is_it = (value.file, value.register) == (File::Predicate, qualifier);
            is_it && value.home == Home::Rotating
        }) && rotates(File::Predicate, qualifier);
        let written = effects.all_writes();
        let is_private = values::FILES.iter().all(|file| {
            let registers = file.registers();
            let bits = file.all(&written);
            registers
                .into_iter()
                .all(|register| bits >> register & 1 == 0 || rotates(*file, register))
        });
        let is_computation = item
            .instruction
            .effects()
            .contains(sidestep_ia64::encoding::Effects::COMPUTES);
        match is_off || is_private && is_computation {
            true => Ok(false),
            false => Err(format!(
                "p{qualifier}, which is not made anew in each iteration, decides what it does"
            )),
        }
    });
    staged.collect()
}
