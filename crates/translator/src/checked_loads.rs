//! Advanced loads whose check follows in their own block, as compilers write them to move a load above a store: whether
//! one still stands is in a variable, and the table never has it, unless control leaves between the two.
//!
//! Of programs whose memory has windows, where a load or store either is done in line or leaves. In between may stand
//! what only computes, and loads and stores; each of these stores looks at the bytes that the load has read. The table
//! is to have a free row, as if the load were entered there: what would have to give way does.

use cranelift_codegen::ir::Value;
use cranelift_frontend::Variable;
use sidestep_ia64::encoding::{Effects, FloatFormat, Instruction, LoadKind, Operation, Resource, UnitClass};
use sidestep_ia64::layout::ADVANCED_FLOATING_TAGS;
use sidestep_ia64::registers::frame::{FIRST_ROTATING_FLOATING, FIRST_STACKED};

/// How many such loads may wait for their checks at once: so many rows of the table have to be free.
pub const WAITING_MAX: usize = 4;

/// An advanced load that waits for its check.
#[derive(Clone, Copy, Debug)]
pub struct CheckedLoad {
    /// The tag of the static register that it writes.
    pub tag: u8,
    /// Where it has read.
    pub address: Value,
    /// How many bytes.
    pub bytes: u32,
    /// Not zero unless a store has hit it.
    pub stands: Variable,
}

/// Where an instruction stands among those of its block, and the check of the advanced load that it is.
pub type Pair = (usize, usize);

/// The advanced loads of a block that are checked in it, as this module has it: those of numbers, too, where they are
/// done in line or leave.
pub fn pairs<'a>(
    instructions: impl Iterator<Item = Option<&'a Instruction>>,
    with_numbers: bool,
) -> Vec<Pair> {
    let instructions: Vec<Option<&Instruction>> = instructions.collect();
    let loads = (0..instructions.len()).filter_map(|load| {
        let tag = loaded(instructions[load]?, LoadKind::Advanced)?;
        if usize::from(tag) >= ADVANCED_FLOATING_TAGS && !with_numbers {
            return None;
        }
        let mut behind = instructions[load + 1..].iter();
        let check =
            behind.position(|instruction| instruction.is_none_or(|instruction| !stays(instruction, tag)))?;
        let check = load + 1 + check;
        let checked = loaded(instructions[check]?, LoadKind::CheckClear)?;
        let sizes =
            [load, check].map(|place| instructions[place].and_then(|one| one.operation.memory_access()));
        (checked == tag && sizes[0]?.bytes == sizes[1]?.bytes).then_some((load, check))
    });
    let mut pairs: Vec<Pair> = loads.collect();
    // What uses the table in between would find others there than it should.
    let is_advanced =
        |place: &usize| instructions[*place].is_some_and(|one| one.effects() == Effects::ADVANCED);
    loop {
        let in_pairs = |place: usize| pairs.iter().any(|&(load, check)| place == load || place == check);
        let is_alone = |&(load, check): &Pair| (load..check).filter(is_advanced).all(in_pairs);
        let kept: Vec<Pair> = pairs.iter().copied().filter(is_alone).collect();
        if kept.len() == pairs.len() {
            break;
        }
        pairs = kept;
    }
    let waiting = |place: usize| {
        pairs
            .iter()
            .filter(|&&(load, check)| load <= place && place < check)
            .count()
    };
    match (0..instructions.len()).all(|place| waiting(place) <= WAITING_MAX) {
        true => pairs,
        false => Vec::new(),
    }
}

/// The tag of a general register, or of a floating-point one.
pub fn tag_of(register: u8, is_floating: bool) -> u8 {
    match is_floating {
        true => ADVANCED_FLOATING_TAGS as u8 | register,
        false => register,
    }
}

/// The tag of the static register that a load of one kind writes under any circumstances.
fn loaded(instruction: &Instruction, wanted: LoadKind) -> Option<u8> {
    let (kind, register, writable, is_floating) = match instruction.operation {
        Operation::Load { kind, .. } => (kind, instruction.r1(), 1..FIRST_STACKED, false),
        Operation::LoadFloat {
            format: FloatFormat::Single | FloatFormat::Double,
            kind,
            ..
        } => (kind, instruction.f1(), 2..FIRST_ROTATING_FLOATING, true),
        _ => return None,
    };
    let is_wanted = kind == wanted && writable.contains(&register) && instruction.predicate() == 0;
    is_wanted.then(|| tag_of(register, is_floating))
}

/// Whether an instruction may stand between an advanced load to a register of a tag and its check: it does not write
/// the register, and control stays where it is unless something is rare.
fn stays(instruction: &Instruction, tag: u8) -> bool {
    let is_other = instruction.destinations().iter().all(|&resource| match resource {
        Resource::General(register) => tag != tag_of(register, false),
        Resource::Float(register) => tag != tag_of(register, true),
        _ => true,
    });
    let effects = instruction.effects();
    let is_within = match instruction.operation {
        Operation::Load { kind, .. } => kind != LoadKind::Acquire,
        Operation::Store { .. }
        | Operation::LoadFloat { .. }
        | Operation::LoadFloatPair { .. }
        | Operation::StoreFloat { .. }
        | Operation::MoveFromApplication
        | Operation::Nop => true,
        operation => {
            effects.contains(Effects::COMPUTES)
                || operation.memory_access().is_none() && instruction.unit_class() == UnitClass::F
        }
    };
    let rare = !(Effects::COMPUTES | Effects::ADVANCED | Effects::WRITES_BRANCH);
    is_other && is_within && !effects.intersects(rare)
}
