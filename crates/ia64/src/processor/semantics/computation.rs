//! Operations that compute one general register from up to two others and an immediate; the result is NaT when a source
//! is.
//!
//! The families state only what is computed, as rows of [`of_two`], [`of_second`] and [`of_third`].

use crate::processor::Processor;
use crate::processor::execution::{Flow, MicroOperation, Step};

/// Writes r1 with a result that depends on r2 and r3.
#[inline(always)]
pub(super) fn from_two(processor: &mut Processor, operation: &MicroOperation, result: u64) -> Step {
    let registers = &mut processor.general;
    if registers.any_nat() {
        let nat = registers.nat(operation.r2) || registers.nat(operation.r3);
        registers.set_with_nat(operation.r1, result, nat);
    } else {
        registers.set(operation.r1, result);
    }
    Ok(Flow::Next)
}

/// Writes r1 with a result that depends on one register.
#[inline(always)]
pub(super) fn from_one(
    processor: &mut Processor,
    operation: &MicroOperation,
    source: u8,
    result: u64,
) -> Step {
    let registers = &mut processor.general;
    if registers.any_nat() {
        let nat = registers.nat(source);
        registers.set_with_nat(operation.r1, result, nat);
    } else {
        registers.set(operation.r1, result);
    }
    Ok(Flow::Next)
}

/// Functions that compute r1 from r2, r3 and the fields of the operation.
macro_rules! of_two {
    ($($name:ident = |$a:ident, $b:ident, $operation:ident| $result:expr;)+) => {$(
        // The frequent ones are inlined into the loop, whatever their number.
        #[inline(always)]
        pub(super) fn $name(
            processor: &mut $crate::processor::Processor,
            $operation: &$crate::processor::execution::MicroOperation,
        ) -> $crate::processor::execution::Step {
            let $a = processor.general.value($operation.r2);
            let $b = processor.general.value($operation.r3);
            $crate::processor::semantics::computation::from_two(processor, $operation, $result)
        }
    )+};
}

/// Functions that compute r1 from one register, `$source`, and the fields of the operation.
macro_rules! of_one {
    ($source:ident: $($name:ident = |$value:ident, $operation:ident| $result:expr;)+) => {$(
        #[inline(always)]
        pub(super) fn $name(
            processor: &mut $crate::processor::Processor,
            $operation: &$crate::processor::execution::MicroOperation,
        ) -> $crate::processor::execution::Step {
            let $value = processor.general.value($operation.$source);
            $crate::processor::semantics::computation::from_one(processor, $operation, $operation.$source, $result)
        }
    )+};
}

/// Functions that compute r1 from r2.
macro_rules! of_second {
    ($($rows:tt)+) => { $crate::processor::semantics::computation::of_one! { r2: $($rows)+ } };
}

/// Functions that compute r1 from r3.
macro_rules! of_third {
    ($($rows:tt)+) => { $crate::processor::semantics::computation::of_one! { r3: $($rows)+ } };
}

pub(super) use {of_one, of_second, of_third, of_two};
