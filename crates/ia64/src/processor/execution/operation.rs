//! A decoded instruction in the form that the execution loop wants: a function and its operands.

use crate::encoding::Opcode;
use crate::processor::semantics::{Code, Handler};
use crate::processor::{Processor, Raised};

/// Where execution goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To the processor's `target`.
    Branch,
}

/// What executing an instruction answers: where to go on, or that it raised a fault and changed nothing.
pub type Step = Result<Flow, Raised>;

/// The function that executes an instruction.
pub type Execute = fn(&mut Processor, &MicroOperation) -> Step;

/// One instruction, lowered. Which fields mean something depends on `execute`.
#[derive(Clone, Copy)]
pub struct MicroOperation {
    /// What executes it.
    pub execute: Execute,
    /// The immediate; of a relative branch, the distance from the block's first bundle.
    pub immediate: u64,
    /// The predicate that the loop tests before `execute`.
    pub predicate: u8,
    /// Target register.
    pub r1: u8,
    /// First source register.
    pub r2: u8,
    /// Second source register, or the address register of a memory reference.
    pub r3: u8,
    /// Third source register, shift count, or another small operand.
    pub r4: u8,
    /// First predicate target.
    pub p1: u8,
    /// Second predicate target.
    pub p2: u8,
    /// Which of the frequent operations it is, if any.
    pub(crate) code: Code,
    /// Which operation it is; `None` for what only the loop knows: illegal operations, the end of a block.
    pub opcode: Option<Opcode>,
    /// A further small operand: bit position, status field, the predicate of an operation that also acts
    /// when its predicate is false.
    pub extra: u8,
    /// How many instructions of the block have retired once this one has.
    pub retired: u16,
    /// Where it stands: bundles from the block's first one, times four, plus the slot.
    pub place: u16,
}

impl MicroOperation {
    /// An operation with every operand zero.
    pub(crate) fn new(handler: Handler) -> MicroOperation {
        MicroOperation {
            execute: handler.execute,
            immediate: 0,
            predicate: 0,
            r1: 0,
            r2: 0,
            r3: 0,
            r4: 0,
            p1: 0,
            p2: 0,
            code: handler.code,
            opcode: None,
            extra: 0,
            retired: 0,
            place: 0,
        }
    }

    /// The distance in bytes of its bundle from the block's first one.
    #[inline(always)]
    pub fn bundle_offset(&self) -> u64 {
        u64::from(self.place >> 2) * 16
    }

    /// Its slot.
    pub fn slot(&self) -> u8 {
        (self.place & 3) as u8
    }
}

impl Processor {
    /// The address of the bundle that holds `operation` of the running block.
    #[inline(always)]
    pub(crate) fn bundle_address(&self, operation: &MicroOperation) -> u64 {
        self.block_start.wrapping_add(operation.bundle_offset())
    }
}
