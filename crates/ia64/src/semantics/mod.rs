//! What each operation does, by family.
//!
//! A family is a module with two parts: the functions that execute its operations, each reading its
//! operands, computing, and writing only when nothing can fault any more; and a `lower` that chooses the
//! function and operands for a decoded instruction. To add an operation, add its row in
//! [`encoding`](crate::encoding) and its arm in the family's `lower`.
//!
//! The execution loop tests [`MicroOperation::predicate`], so these functions run only when the qualifying
//! predicate is true. Operations that act under a false predicate too (`.unc` compares, loop branches) are
//! lowered by [`always`] and test their own predicate.

mod branch;
mod compare;
mod computation;
mod float;
mod frequent;
mod integer;
mod memory;
mod moves;
mod parallel;
mod stack;
mod system;

use crate::encoding::{BaseUpdate, BranchKind, Instruction, Operation, Target};
use crate::execution::{Execute, Flow, MicroOperation, Step};
use crate::fault::Fault;
use crate::processor::Processor;
pub(crate) use frequent::{Code, execute};
pub use system::IDENTIFICATION;

/// The families; each answers for the operations it knows.
const FAMILIES: &[fn(&Instruction) -> Option<MicroOperation>] = &[
    integer::lower,
    memory::lower,
    compare::lower,
    branch::lower,
    moves::lower,
    stack::lower,
    parallel::lower,
    system::lower,
    float::lower,
];

/// Lowers an instruction whose bundle stands `bundle_offset` bytes into its block.
pub(crate) fn lower(instruction: &Instruction, slot: u8, bundle_offset: u64) -> MicroOperation {
    let predicate = instruction.predicate();
    if !is_well_formed(instruction, slot) {
        return illegal(predicate);
    }
    let mut operation = FAMILIES
        .iter()
        .find_map(|lower| lower(instruction))
        .unwrap_or_else(|| illegal(predicate));
    if is_relative_branch(&instruction.operation) {
        operation.immediate = operation.immediate.wrapping_add(bundle_offset);
    }
    operation.code = Code::of(operation.execute);
    operation
}

/// An operation with the registers of the instruction's fields, its immediate and its predicate.
fn fields(execute: Execute, instruction: &Instruction) -> MicroOperation {
    MicroOperation {
        immediate: instruction.immediate as u64,
        predicate: instruction.predicate(),
        r1: instruction.r1(),
        r2: instruction.r2(),
        r3: instruction.r3(),
        r4: instruction.f4(),
        p1: instruction.p1(),
        p2: instruction.p2(),
        ..MicroOperation::new(execute)
    }
}

/// As [`fields`], for an operation that also acts when its predicate, then in `extra`, is false.
fn always(execute: Execute, instruction: &Instruction) -> MicroOperation {
    MicroOperation {
        predicate: 0,
        extra: instruction.predicate(),
        ..fields(execute, instruction)
    }
}

/// The illegal operation fault under a predicate.
pub(crate) fn illegal(predicate: u8) -> MicroOperation {
    fn raise(processor: &mut Processor, _: &MicroOperation) -> Step {
        Err(processor.raise(Fault::illegal_operation()))
    }
    MicroOperation {
        predicate,
        ..MicroOperation::new(raise)
    }
}

/// Goes on behind a block: the immediate is the distance of the next bundle, with the slot in its low bits.
pub(crate) fn leave_block(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.target = processor.block_start.wrapping_add(operation.immediate);
    Ok(Flow::Branch)
}

/// The general registers that an instruction writes: its target and its updated base.
fn general_targets(instruction: &Instruction) -> (Option<u8>, Option<u8>) {
    let updates = instruction.base_update() != BaseUpdate::None;
    (instruction.general_target(), updates.then_some(instruction.r3()))
}

/// The highest general register that an instruction writes; 0 for none.
pub(crate) fn highest_general_target(instruction: &Instruction) -> u8 {
    let (target, base) = general_targets(instruction);
    target.unwrap_or(0).max(base.unwrap_or(0))
}

/// Whether an instruction obeys the rules whose violation is an illegal operation whatever the state is:
/// r0 is no target, a load's target is not its updated base, counted and modulo-scheduled loop branches
/// stand in the last slot.
fn is_well_formed(instruction: &Instruction, slot: u8) -> bool {
    let (target, base) = general_targets(instruction);
    let is_loop = matches!(
        instruction.operation,
        Operation::Branch {
            kind: BranchKind::CountedLoop
                | BranchKind::CountedTop
                | BranchKind::CountedExit
                | BranchKind::WhileTop
                | BranchKind::WhileExit,
            ..
        }
    );
    target != Some(0) && base != Some(0) && (target.is_none() || target != base) && (!is_loop || slot == 2)
}

/// Whether nothing behind the instruction belongs into its block: it always leaves, or changes what decoding
/// rests on.
pub(crate) fn ends_block(instruction: &Instruction) -> bool {
    use Operation as O;
    match instruction.operation {
        O::Branch {
            kind: BranchKind::Conditional,
            ..
        }
        | O::Call { .. }
        | O::Return => instruction.predicate() == 0,
        O::Branch { .. }
        | O::BranchIa32
        | O::Break
        | O::ReturnFromInterruption
        | O::EnterPrivilegedCode
        // Its frame is empty: registers that the block could write can no longer be written.
        | O::Cover
        | O::SynchronizeInstructionCache
        | O::Serialize { .. }
        | O::VirtualMachineSwitch { .. } => true,
        // What these change decides how the next instruction executes; a block looks only where it begins.
        O::MoveToControl
        | O::MoveToPsrLower
        | O::SetSystemMask
        | O::ResetSystemMask
        | O::MoveToUserMask
        | O::SetUserMask
        | O::ResetUserMask
        | O::MoveToIndirect { .. }
        | O::InsertTranslationCache { .. }
        | O::InsertTranslationRegister { .. }
        | O::PurgeTranslationCache { .. }
        | O::PurgeTranslationCacheEntry
        | O::PurgeTranslationRegister { .. } => true,
        _ => false,
    }
}

/// Whether an instruction references memory at the address in its r3.
pub(crate) fn references_memory(instruction: &Instruction) -> bool {
    use Operation as O;
    matches!(
        instruction.operation,
        O::Load { .. }
            | O::LoadSixteen { .. }
            | O::LoadFloat { .. }
            | O::LoadFloatPair { .. }
            | O::Store { .. }
            | O::StoreSixteen { .. }
            | O::StoreFloat { .. }
            | O::LineFetch { .. }
            | O::LineFetchCount
            | O::CompareExchange { .. }
            | O::CompareExchangeSixteen { .. }
            | O::Exchange { .. }
            | O::FetchAdd { .. }
            | O::FlushCache { .. }
    )
}

/// Whether an instruction reads or writes a performance monitor register or the interval time counter.
pub(crate) fn uses_counters(instruction: &Instruction) -> bool {
    use crate::encoding::IndirectFile;
    use crate::registers::application::{ITC, RUC};
    match instruction.operation {
        Operation::MoveFromIndirect { file } | Operation::MoveToIndirect { file } => matches!(
            file,
            IndirectFile::MonitorData | IndirectFile::MonitorConfiguration
        ),
        Operation::MoveFromApplication | Operation::MoveToApplication { .. } => {
            matches!(instruction.ar3(), ITC | RUC)
        }
        _ => false,
    }
}

/// Whether the immediate is a displacement from the bundle.
fn is_relative_branch(operation: &Operation) -> bool {
    match operation {
        Operation::Branch { target, .. } | Operation::Call { target, .. } => *target != Target::Indirect,
        Operation::CheckSpeculative
        | Operation::CheckSpeculativeFloat
        | Operation::CheckAdvanced { .. }
        | Operation::CheckAdvancedFloat { .. }
        | Operation::FloatCheckFlags { .. } => true,
        _ => false,
    }
}
