//! Software pipelining: loops of one block that begin an iteration before the last one has ended.
//!
//! A loop that `br.cloop` closes becomes a kernel that `br.ctop` closes. In a pass of it each instruction is one of
//! another iteration, by its stage; a stage's predicate is on while its iteration exists, so the kernel is its own
//! prologue and epilogue. Values get rotating registers, a new one in each iteration. What the registers of the
//! source held behind the loop they hold behind the kernel as well.
//!
//! - [`values`]: what registers hold, and which may rotate; [`distances`]: what instructions of any iteration wait for;
//! - [`modulo`]: a cycle for each; [`rotation`]: registers; [`emit`]: the text.

mod distances;
mod emit;
mod modulo;
mod rotation;
mod values;

use std::path::Path;

use sidestep_ia64::encoding::{BaseUpdate, BranchKind, Bundle, Instruction, LoadKind, Operation};
use sidestep_ia64::registers::application::{EC, FPSR, LC, UNAT};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::registers::status::psr;
use sidestep_itanium2::Parameters;
use sidestep_itanium2::flags::Flags;

use crate::assembly::{AssemblyError, Text};
use crate::assembly::{code_of, slots};
use crate::block::{Block, Item};
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
use values::{Home, Values};

/// Random states in which a loop is compared with its pipelined version.
const STATES: u64 = 256;
/// Iterations of which the rate is measured, and those before it.
const MEASURED: u64 = 64;
const WARM: u64 = 32;
/// Instructions of a loop at most.
const INSTRUCTIONS_MAX: usize = 150;
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
                let room = (96 - frame_of(given.surroundings).size - 1) as u8;
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
                let found = judged(
                    given,
                    &original,
                    (text, &modulo, &numbers),
                    &values,
                    parameters,
                    path,
                );
                let found = found.map_err(|error| error.in_line(path, line))?;
                if found.cycles < limit {
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

/// A loop's instructions, its branch last in the block, with the texts of the others.
struct Version {
    block: Block,
    texts: Vec<Text>,
}

impl Version {
    /// The loop as it is; and, if others name the registers that its references to memory increment, with additions of
    /// their own for these: a value that is added to in passing is in one register.
    fn all(given: &Loop<'_>, parameters: &Parameters, path: &Path) -> Result<Vec<Version>, AssemblyError> {
        let (branch, body) = given.block.items.split_last().expect("it has a branch");
        let own = Version {
            block: given.block.clone(),
            texts: given.texts[..body.len()].to_vec(),
        };
        let is_shared = |index: usize| {
            let base = 1u128 << body[index].instruction.r3();
            let names =
                |item: &Item| (item.effects.reads.general | item.effects.all_writes().general) & base != 0;
            body.iter()
                .enumerate()
                .any(|(other, item)| other != index && names(item))
        };
        let mut texts: Vec<Text> = Vec::new();
        // By instruction, which it was.
        let mut origins = Vec::new();
        for (index, (item, text)) in body.iter().zip(&own.texts).enumerate() {
            origins.push(index);
            let increments = item.instruction.base_update() == BaseUpdate::Immediate && is_shared(index);
            match increments.then(|| parted(&text.instruction)).flatten() {
                None => texts.push(text.clone()),
                Some((reference, addition)) => {
                    texts.push(Text {
                        instruction: reference,
                        ..text.clone()
                    });
                    texts.push(Text {
                        instruction: addition,
                        ..Text::default()
                    });
                    origins.push(index);
                }
            }
        }
        if texts.len() == own.texts.len() {
            return Ok(vec![own]);
        }
        let lines: String = texts
            .iter()
            .map(|text| format!("\t{}\n\t;;\n", text.instruction))
            .collect();
        let bundles = code_of(&assemble(&format!("\t.text\n{lines}"), path)?, path)?;
        let mut instructions: Vec<Instruction> = slots(&bundles)
            .into_iter()
            .filter_map(|(_, instruction)| instruction.ok())
            .collect();
        instructions.push(branch.instruction);
        let Ok(mut block) = Block::new(&instructions, parameters) else {
            return Ok(vec![own]);
        };
        let place = |of: usize| {
            origins
                .iter()
                .position(|origin| *origin == of)
                .unwrap_or(origins.len())
        };
        let asserted = given.block.mutex.iter();
        block.mutex = asserted
            .map(|(before, registers)| (place(*before), *registers))
            .collect();
        for (index, origin) in origins.iter().enumerate() {
            let is_reference = place(*origin) == index;
            block.objects[index] = given.block.objects[*origin].filter(|_| is_reference);
            block.areas[index] = given.block.areas[*origin].filter(|_| is_reference);
        }
        Ok(vec![own, Version { block, texts }])
    }

    /// The block without its branch.
    fn body(&self) -> Block {
        let mut body = self.block.clone();
        body.items.truncate(self.texts.len());
        body
    }
}

/// The text of a reference that increments its base by a constant, without that, and the addition.
fn parted(text: &str) -> Option<(String, String)> {
    let (reference, amount) = text.rsplit_once(',')?;
    let base = reference.split_once('[')?.1.split_once(']')?.0.trim();
    let qualifier = text.strip_prefix('(').and_then(|text| text.split_once(')'));
    let qualifier = qualifier.map_or(String::new(), |(qualifier, _)| format!("({qualifier}) "));
    Some((
        reference.trim_end().to_owned(),
        format!("{qualifier}adds {base} = {}, {base}", amount.trim()),
    ))
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

/// Holds a pipelined text against the loop, in random states and on the model.
fn judged(
    given: &Loop<'_>,
    original: &Trial<'_>,
    (text, modulo, numbers): (String, &modulo::Modulo, &Numbers),
    values: &Values,
    parameters: &Parameters,
    path: &Path,
) -> Result<Pipelined, Wrong> {
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
    let cycles = rate(&trial, parameters);
    let total = |trial: &Trial<'_>, count: u64| loops::cycles(trial, count, parameters);
    // The more iterations, the more it gains.
    let counts: Vec<u64> = (1..=MEASURED).collect();
    let first = counts.partition_point(|count| total(&trial, *count) > total(original, *count));
    let worth_from = counts.get(first).copied();
    Ok(Pipelined {
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
    })
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
    let scratch = (14..32).chain([2, 3, 9, 10, 11]);
    scratch
        .filter(|register| surroundings.used.general >> register & 1 == 0)
        .collect()
}

/// Whether the instruction is a loop branch of a kind.
fn is_counted(instruction: &Instruction, wanted: BranchKind) -> bool {
    matches!(instruction.operation, Operation::Branch { kind, .. } if kind == wanted)
}

/// Why a loop cannot be pipelined, whatever its values are.
fn unsuitable(given: &Loop<'_>) -> Option<String> {
    let (branch, body) = given.block.items.split_last()?;
    if let Some(reason) = given.surroundings.keeps_all {
        return Some(reason.to_owned());
    }
    match branch.instruction.operation {
        Operation::Branch {
            kind: BranchKind::CountedLoop,
            ..
        } => {}
        Operation::Branch {
            kind: BranchKind::Conditional,
            ..
        } => {
            return Some(
                "a condition ends it: how often it runs is not known before it, as ar.lc says it for br.cloop".to_owned(),
            );
        }
        _ => return Some("its registers rotate already".to_owned()),
    }
    if body.is_empty() {
        return Some("it only counts".to_owned());
    }
    if body.len() > INSTRUCTIONS_MAX {
        return Some(format!("it has more than {INSTRUCTIONS_MAX} instructions"));
    }
    let found = body.iter().zip(given.texts).find_map(|(item, text)| {
        let why = obstacle(item)?;
        Some(format!("`{}` {why}", text.instruction))
    });
    found
}

/// Why an instruction cannot be one of several iterations at the same time.
fn obstacle(item: &Item) -> Option<&'static str> {
    let effects = &item.effects;
    let (reads, writes) = (effects.reads, effects.all_writes());
    let loop_registers = 1u128 << EC | 1 << LC;
    let known = State::FLOAT_STATUS | State::ALAT;
    let is_advanced = matches!(
        item.instruction.operation,
        Operation::Load { kind, .. } | Operation::LoadFloat { kind, .. } | Operation::LoadFloatPair { kind, .. }
            if !matches!(kind, LoadKind::Normal | LoadKind::Speculative | LoadKind::Bias | LoadKind::Acquire)
    );
    if item.is_exit() {
        Some("may leave it in the middle")
    } else if is_advanced {
        Some("is a load whose address is remembered, or that needs such a one")
    } else if item
        .flags()
        .intersects(Flags::READS_PREDICATES | Flags::ALL_PREDICATES)
    {
        Some("names all predicates, of which some rotate")
    } else if (reads.predicate | writes.predicate) >> 16 != 0 {
        Some("names a rotating predicate")
    } else if (reads.float | writes.float) >> 32 != 0 {
        Some("names a floating-point register that rotates")
    } else if reads.application & loop_registers != 0 || writes.application & !(1 << UNAT) != 0 {
        Some("is about an application register")
    } else if reads.application & !(1 << UNAT | 1 << FPSR | 1 << 32) != 0 {
        Some("reads an application register")
    } else if writes.control != 0
        || effects.writes.status != 0
        || writes.branch != 0
        || effects.serializes.is_some()
    {
        Some("is about the system")
    } else if !(writes.state - known).is_empty() {
        Some("writes state that has no register")
    } else {
        None
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_parted_from_its_increment() {
        let parts = |text| parted(text).expect("it increments its base");
        assert_eq!(
            parts("(p6) st8 [r33] = r14, 8"),
            (
                "(p6) st8 [r33] = r14".to_owned(),
                "(p6) adds r33 = 8, r33".to_owned()
            )
        );
        assert_eq!(
            parts("ldfd f6 = [r32], -16"),
            ("ldfd f6 = [r32]".to_owned(), "adds r32 = -16, r32".to_owned())
        );
    }
}
