//! Advanced loads whose check follows in their own block, as compilers write them to move a load above a store: whether
//! one still stands is in a variable, and the table never has it, unless control leaves between the two.
//!
//! Of programs whose memory has windows, where a load or store either is done in line or leaves. In between may stand
//! what only computes, and loads and stores; each of these stores looks at the bytes that the load has read. The table
//! is to have a free row, as if the load were entered there: what would have to give way does.

use cranelift_codegen::ir::Value;
use cranelift_frontend::Variable;
use sidestep_ia64::encoding::{Effects, Instruction, LoadKind, Operation, UnitClass};
use sidestep_ia64::registers::frame::FIRST_STACKED;

use crate::slots::{Slot, Slots};

/// How many such loads may wait for their checks at once: so many rows of the table have to be free.
pub const WAITING_MAX: usize = 4;

/// An advanced load that waits for its check.
#[derive(Clone, Copy, Debug)]
pub struct CheckedLoad {
    /// The register that it writes.
    pub register: u8,
    /// Where it has read.
    pub address: Value,
    /// How many bytes.
    pub bytes: u32,
    /// Not zero unless a store has hit it.
    pub stands: Variable,
}

/// Where an instruction stands among those of its block, and the check of the advanced load that it is.
pub type Pair = (usize, usize);

/// The advanced loads of a block that are checked in it, as this module has it.
pub fn pairs<'a>(instructions: impl Iterator<Item = Option<&'a Instruction>>) -> Vec<Pair> {
    let instructions: Vec<Option<&Instruction>> = instructions.collect();
    let loads = (0..instructions.len()).filter_map(|load| {
        let register = loaded(instructions[load]?, LoadKind::Advanced)?;
        let mut behind = instructions[load + 1..].iter();
        let check = behind
            .position(|instruction| instruction.is_none_or(|instruction| !stays(instruction, register)))?;
        let check = load + 1 + check;
        let checked = loaded(instructions[check]?, LoadKind::CheckClear)?;
        let sizes =
            [load, check].map(|place| instructions[place].and_then(|one| one.operation.memory_access()));
        (checked == register && sizes[0]?.bytes == sizes[1]?.bytes).then_some((load, check))
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

/// The static register that a load of one kind writes under any circumstances.
fn loaded(instruction: &Instruction, wanted: LoadKind) -> Option<u8> {
    let Operation::Load { kind, .. } = instruction.operation else {
        return None;
    };
    let register = instruction.r1();
    let is_static = (1..FIRST_STACKED).contains(&register);
    (kind == wanted && is_static && instruction.predicate() == 0).then_some(register)
}

/// Whether an instruction may stand between an advanced load to a register and its check: it does not write the
/// register, and control stays where it is unless something is rare.
fn stays(instruction: &Instruction, register: u8) -> bool {
    let is_other = !Slots::written_by(instruction).contains(Slot::general(register));
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
