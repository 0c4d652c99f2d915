//! The operations that programs execute most, inlined into the execution loop.
//!
//! Calling a function through a pointer costs as much as most integer operations do. The operations in this
//! table are executed inside the loop instead, by a jump on their [`Code`]; all others are called. Rows of the table of
//! operations name either. This table changes speed only: both ways run the same function.

use crate::processor::Processor;
use crate::processor::execution::{Execute, MicroOperation, Step};

use super::compare::{
    DoubleWord, Equal, Less, LessUnsigned, Normal, NotEqual, Word, compare_immediate, compare_registers,
};
use super::memory::{Kind, NoUpdate, Plain, UpdateByImmediate, store};
use super::{branch, integer, leave_block, moves};

macro_rules! frequent {
    ($($code:ident = $function:expr;)+) => {
        /// A frequent operation, or none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Code {
            /// Called through its pointer.
            ByPointer,
            $($code,)+
        }

        impl Code {
            /// The function that executes the operation.
            const fn function(self) -> Execute {
                match self {
                    Code::ByPointer => panic!("a function of its own"),
                    $(Code::$code => $function,)+
                }
            }
        }

        /// Executes an operation.
        #[inline(always)]
        pub(crate) fn execute(processor: &mut Processor, operation: &MicroOperation) -> Step {
            match operation.code {
                Code::ByPointer => (operation.execute)(processor, operation),
                $(Code::$code => $function(processor, operation),)+
            }
        }
    };
}

/// What executes an operation in the interpreter.
#[derive(Clone, Copy)]
pub(crate) struct Handler {
    pub execute: Execute,
    pub code: Code,
}

/// A handler that is called.
pub(super) const fn call(execute: Execute) -> Handler {
    Handler {
        execute,
        code: Code::ByPointer,
    }
}

/// A handler that is inlined into the loop.
pub(super) const fn inline(code: Code) -> Handler {
    Handler {
        execute: code.function(),
        code,
    }
}

frequent! {
    Leave = leave_block;
    Add = integer::add;
    AddImmediate = integer::add_immediate;
    Copy = integer::copy;
    MoveImmediate = integer::move_immediate;
    Subtract = integer::subtract;
    And = integer::and;
    AndImmediate = integer::and_immediate;
    Or = integer::or;
    ExclusiveOr = integer::exclusive_or;
    ShiftLeftAdd = integer::shift_left_add;
    ShiftLeft = integer::shift_left;
    Extract = integer::extract;
    ExtractUnsigned = integer::extract_unsigned;
    DepositZero = integer::deposit_zero;
    ZeroExtend1 = integer::zero_extend_1;
    ZeroExtend4 = integer::zero_extend_4;
    SignExtend4 = integer::sign_extend_4;
    CompareEqual = compare_registers::<DoubleWord, Equal, Normal>;
    CompareLess = compare_registers::<DoubleWord, Less, Normal>;
    CompareLessUnsigned = compare_registers::<DoubleWord, LessUnsigned, Normal>;
    CompareEqualImmediate = compare_immediate::<DoubleWord, Equal, Normal>;
    CompareNotEqualImmediate = compare_immediate::<DoubleWord, NotEqual, Normal>;
    CompareLessImmediate = compare_immediate::<DoubleWord, Less, Normal>;
    CompareLessUnsignedImmediate = compare_immediate::<DoubleWord, LessUnsigned, Normal>;
    CompareWordEqual = compare_registers::<Word, Equal, Normal>;
    CompareWordLess = compare_registers::<Word, Less, Normal>;
    CompareWordLessUnsigned = compare_registers::<Word, LessUnsigned, Normal>;
    CompareWordEqualImmediate = compare_immediate::<Word, Equal, Normal>;
    CompareWordLessImmediate = compare_immediate::<Word, Less, Normal>;
    CompareWordLessUnsignedImmediate = compare_immediate::<Word, LessUnsigned, Normal>;
    Load1 = Plain::load::<u8, NoUpdate>;
    Load2 = Plain::load::<u16, NoUpdate>;
    Load4 = Plain::load::<u32, NoUpdate>;
    Load8 = Plain::load::<u64, NoUpdate>;
    Load1Update = Plain::load::<u8, UpdateByImmediate>;
    Load4Update = Plain::load::<u32, UpdateByImmediate>;
    Load8Update = Plain::load::<u64, UpdateByImmediate>;
    Store1 = store::<u8, NoUpdate>;
    Store4 = store::<u32, NoUpdate>;
    Store8 = store::<u64, NoUpdate>;
    Store1Update = store::<u8, UpdateByImmediate>;
    Store4Update = store::<u32, UpdateByImmediate>;
    Store8Update = store::<u64, UpdateByImmediate>;
    Branch = branch::branch;
    BranchIndirect = branch::branch_indirect;
    BranchCountedLoop = branch::branch_counted_loop;
    MoveFromBranch = moves::from_branch;
    MoveToBranch = moves::to_branch;
}
