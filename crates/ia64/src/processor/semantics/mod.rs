//! What each operation does, by family.
//!
//! A family is a module with two parts: the functions that execute its operations, each reading its
//! operands, computing, and writing only when nothing can fault any more; and what chooses among them by an operation's
//! completers (`..._handler`), also with other operands than the fields of the instruction (`lower_...`). Rows of the
//! table of operations name either.
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

use crate::encoding::{BaseUpdate, Effects, Instruction, Operation};
use crate::fault::Fault;
use crate::operations::operations;
use crate::processor::Processor;
use crate::processor::execution::{Flow, MicroOperation, Step};
pub(crate) use frequent::{Code, Handler, execute};
use frequent::{call, inline};
pub use system::IDENTIFICATION;

/// What a row of the table of operations may name as its handler.
trait Lower {
    /// The operation for an instruction.
    fn lower(self, instruction: &Instruction) -> MicroOperation;
}

impl Lower for Handler {
    fn lower(self, instruction: &Instruction) -> MicroOperation {
        fields(self, instruction)
    }
}

impl Lower for MicroOperation {
    fn lower(self, _: &Instruction) -> MicroOperation {
        self
    }
}

macro_rules! handler_column {
    ($instruction:ident; $(
        $(#[$comment:meta])*
        $name:ident $({ $($completer:ident: $kind:ty = $about:literal,)+ })?
            => $memory:expr, $effects:expr, $implicit:expr, $handler:expr;
    )+) => {
        /// Applies the row of an instruction's operation to its operands.
        #[allow(unused_variables, reason = "most completers do not decide it")]
        fn lower_by_row($instruction: &Instruction) -> MicroOperation {
            match $instruction.operation {
                $(Operation::$name $({ $($completer),+ })? => Lower::lower($handler, $instruction),)+
            }
        }
    };
}

operations!(handler_column);

/// Lowers an instruction whose bundle stands `bundle_offset` bytes into its block.
pub(crate) fn lower(instruction: &Instruction, slot: u8, bundle_offset: u64) -> MicroOperation {
    if !is_well_formed(instruction, slot) {
        return illegal(instruction.predicate());
    }
    let mut operation = lower_by_row(instruction);
    operation.opcode = Some(instruction.operation.opcode());
    if instruction.is_relative() {
        operation.immediate = operation.immediate.wrapping_add(bundle_offset);
    }
    operation
}

/// An operation with the registers of the instruction's fields, its immediate and its predicate.
fn fields(handler: Handler, instruction: &Instruction) -> MicroOperation {
    MicroOperation {
        immediate: instruction.immediate as u64,
        predicate: instruction.predicate(),
        r1: instruction.r1(),
        r2: instruction.r2(),
        r3: instruction.r3(),
        r4: instruction.f4(),
        p1: instruction.p1(),
        p2: instruction.p2(),
        ..MicroOperation::new(handler)
    }
}

/// As [`fields`], for an operation that also acts when its predicate, then in `extra`, is false.
fn always(handler: Handler, instruction: &Instruction) -> MicroOperation {
    MicroOperation {
        predicate: 0,
        extra: instruction.predicate(),
        ..fields(handler, instruction)
    }
}

/// The illegal operation fault under a predicate.
pub(crate) fn illegal(predicate: u8) -> MicroOperation {
    fn raise(processor: &mut Processor, _: &MicroOperation) -> Step {
        Err(processor.raise(Fault::illegal_operation()))
    }
    MicroOperation {
        predicate,
        ..MicroOperation::new(call(raise))
    }
}

/// Goes on behind a block: the immediate is the distance of the next bundle, with the slot in its low bits.
#[inline(always)]
fn leave_block(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.target = processor.block_start.wrapping_add(operation.immediate);
    Ok(Flow::Branch)
}

/// The operation that goes on behind a block, in which `retired` instructions have retired. It stands in the last bundle
/// that the block executes something of.
pub(crate) fn leave_to((bundle, slot): (u16, u8), retired: u16) -> MicroOperation {
    MicroOperation {
        immediate: u64::from(bundle) * 16 | u64::from(slot),
        retired,
        place: if slot > 0 {
            bundle
        } else {
            bundle.saturating_sub(1)
        } << 2,
        ..MicroOperation::new(inline(Code::Leave))
    }
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
    let is_loop = instruction.effects().contains(Effects::LAST_SLOT);
    target != Some(0) && base != Some(0) && (target.is_none() || target != base) && (!is_loop || slot == 2)
}
