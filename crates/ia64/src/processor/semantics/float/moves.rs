//! Operations that move bits: merges and their kin, transfers between the register files, checks of speculation, and
//! the FPSR's own operations (formats F3, F9, F12 to F14, M18, M19, M21 to M23, M27).

use super::super::branch::{branch, check_advanced_load};
use super::super::fields;
use super::super::frequent::{Handler, call};
use super::{Names, Rotating, Static, status_operand};
use crate::alat::Target;
use crate::encoding::{FloatMix, FloatSwap, FloatTransfer, Half, Instruction, Logical, Merge, StatusField};
use crate::fault::Fault;
use crate::float::FloatRegister;
use crate::float::bits::{BitOperation, select};
use crate::processor::Processor;
use crate::processor::execution::{Execute, Flow, MicroOperation, Step};

/// A combination of bits of f2 and f3.
fn combining(instruction: &Instruction, combination: BitOperation) -> MicroOperation {
    let registers = [instruction.f1(), instruction.f2(), instruction.f3()];
    let execute = if super::are_static(&registers) {
        combine_function::<Static>(combination)
    } else {
        combine_function::<Rotating>(combination)
    };
    super::with_target(execute, instruction)
}

pub(in crate::processor::semantics) fn lower_merge(
    instruction: &Instruction,
    merge: Merge,
) -> MicroOperation {
    let combination = match merge {
        Merge::Sign => BitOperation::MergeSign,
        Merge::NegatedSign => BitOperation::MergeNegatedSign,
        Merge::SignExponent => BitOperation::MergeSignExponent,
    };
    combining(instruction, combination)
}

pub(in crate::processor::semantics) fn lower_parallel_merge(
    instruction: &Instruction,
    merge: Merge,
) -> MicroOperation {
    let combination = match merge {
        Merge::Sign => BitOperation::ParallelMergeSign,
        Merge::NegatedSign => BitOperation::ParallelMergeNegatedSign,
        Merge::SignExponent => BitOperation::ParallelMergeSignExponent,
    };
    combining(instruction, combination)
}

pub(in crate::processor::semantics) fn lower_mix(instruction: &Instruction, mix: FloatMix) -> MicroOperation {
    let combination = match mix {
        FloatMix::Left => BitOperation::MixLeft,
        FloatMix::Right => BitOperation::MixRight,
        FloatMix::LeftRight => BitOperation::MixLeftRight,
    };
    combining(instruction, combination)
}

pub(in crate::processor::semantics) fn lower_sign_extend(
    instruction: &Instruction,
    half: Half,
) -> MicroOperation {
    let combination = match half {
        Half::Left => BitOperation::SignExtendLeft,
        Half::Right => BitOperation::SignExtendRight,
    };
    combining(instruction, combination)
}

pub(in crate::processor::semantics) fn lower_pack(instruction: &Instruction) -> MicroOperation {
    combining(instruction, BitOperation::Pack)
}

pub(in crate::processor::semantics) fn lower_swap(
    instruction: &Instruction,
    swap: FloatSwap,
) -> MicroOperation {
    let combination = match swap {
        FloatSwap::Plain => BitOperation::Swap,
        FloatSwap::NegateLeft => BitOperation::SwapNegateLeft,
        FloatSwap::NegateRight => BitOperation::SwapNegateRight,
    };
    combining(instruction, combination)
}

pub(in crate::processor::semantics) fn lower_logical(
    instruction: &Instruction,
    function: Logical,
) -> MicroOperation {
    let combination = match function {
        Logical::And => BitOperation::And,
        Logical::AndComplement => BitOperation::AndComplement,
        Logical::Or => BitOperation::Or,
        Logical::ExclusiveOr => BitOperation::Xor,
    };
    combining(instruction, combination)
}

pub(in crate::processor::semantics) fn lower_select(instruction: &Instruction) -> MicroOperation {
    super::with_target(float_select, instruction)
}

pub(in crate::processor::semantics) fn lower_set(
    instruction: &Instruction,
    form: FloatTransfer,
) -> MicroOperation {
    super::with_target(set_function(form), instruction)
}

pub(in crate::processor::semantics) fn get_handler(form: FloatTransfer) -> Handler {
    call(get_function(form))
}

pub(in crate::processor::semantics) fn check_advanced_handler(clear: bool) -> Handler {
    match clear {
        true => call(check_advanced::<true>),
        false => call(check_advanced::<false>),
    }
}

pub(in crate::processor::semantics) fn lower_set_controls(
    instruction: &Instruction,
    status: StatusField,
) -> MicroOperation {
    MicroOperation {
        r4: instruction.omask(),
        ..of_status(set_controls, instruction, status)
    }
}

pub(in crate::processor::semantics) fn lower_clear_flags(
    instruction: &Instruction,
    status: StatusField,
) -> MicroOperation {
    of_status(clear_flags, instruction, status)
}

pub(in crate::processor::semantics) fn lower_check_flags(
    instruction: &Instruction,
    status: StatusField,
) -> MicroOperation {
    of_status(check_flags, instruction, status)
}

/// An operation of a status field.
fn of_status(execute: Execute, instruction: &Instruction, status: StatusField) -> MicroOperation {
    MicroOperation {
        extra: status as u8,
        ..fields(call(execute), instruction)
    }
}

macro_rules! combine_functions {
    ($($name:ident),+) => {
        /// The function that executes one combination.
        fn combine_function<N: Names>(combination: BitOperation) -> Execute {
            match combination {
                $(BitOperation::$name => |processor, operation| {
                    combine::<N>(processor, operation, BitOperation::$name)
                },)+
            }
        }
    };
}

combine_functions!(
    MergeSign,
    MergeNegatedSign,
    MergeSignExponent,
    ParallelMergeSign,
    ParallelMergeNegatedSign,
    ParallelMergeSignExponent,
    MixLeft,
    MixRight,
    MixLeftRight,
    SignExtendLeft,
    SignExtendRight,
    Pack,
    Swap,
    SwapNegateLeft,
    SwapNegateRight,
    And,
    AndComplement,
    Or,
    Xor
);

#[inline(always)]
fn combine<N: Names>(
    processor: &mut Processor,
    operation: &MicroOperation,
    combination: BitOperation,
) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r2, operation.r3], 0)?;
    let (f2, f3) = (N::read(processor, operation.r2), N::read(processor, operation.r3));
    N::write(processor, operation.r1, combination.apply(f2, f3));
    Ok(Flow::Next)
}

fn float_select(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.check_floating_enabled(&[operation.r1, operation.r2, operation.r3, operation.r4], 0)?;
    let [f3, f4, f2] =
        [operation.r3, operation.r4, operation.r2].map(|register| processor.floating(register));
    processor.set_floating(operation.r1, select(f3, f4, f2));
    Ok(Flow::Next)
}

fn set_function(form: FloatTransfer) -> Execute {
    match form {
        FloatTransfer::Significand => {
            |processor, operation| set(processor, operation, FloatRegister::from_significand)
        }
        FloatTransfer::Exponent => |processor, operation| {
            set(processor, operation, |value| {
                FloatRegister::from_sign_exponent(value, 1 << 63)
            })
        },
        FloatTransfer::Single => |processor, operation| {
            set(processor, operation, |value| {
                FloatRegister::from_single(value as u32)
            })
        },
        FloatTransfer::Double => |processor, operation| set(processor, operation, FloatRegister::from_double),
    }
}

#[inline(always)]
fn set(processor: &mut Processor, operation: &MicroOperation, convert: fn(u64) -> FloatRegister) -> Step {
    processor.check_floating_enabled(&[operation.r1], 0)?;
    let value = if processor.general.any_nat() && processor.general.nat(operation.r2) {
        FloatRegister::NATVAL
    } else {
        convert(processor.general.value(operation.r2))
    };
    processor.set_floating(operation.r1, value);
    Ok(Flow::Next)
}

fn get_function(form: FloatTransfer) -> Execute {
    match form {
        FloatTransfer::Significand => {
            |processor, operation| get(processor, operation, FloatRegister::significand)
        }
        FloatTransfer::Exponent => {
            |processor, operation| get(processor, operation, FloatRegister::sign_exponent)
        }
        FloatTransfer::Single => {
            |processor, operation| get(processor, operation, |value| u64::from(value.to_single()))
        }
        FloatTransfer::Double => |processor, operation| get(processor, operation, FloatRegister::to_double),
    }
}

#[inline(always)]
fn get(processor: &mut Processor, operation: &MicroOperation, convert: fn(FloatRegister) -> u64) -> Step {
    processor.check_floating_enabled(&[operation.r2], 0)?;
    let value = processor.floating(operation.r2);
    if value.is_natval() {
        processor.general.set_with_nat(operation.r1, convert(value), true);
    } else {
        processor.general.set(operation.r1, convert(value));
    }
    Ok(Flow::Next)
}

pub(in crate::processor::semantics) fn check_speculative(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    processor.check_floating_enabled(&[operation.r2], 0)?;
    if processor.floating(operation.r2).is_natval() {
        branch(processor, operation)
    } else {
        Ok(Flow::Next)
    }
}

fn check_advanced<const CLEAR: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let target = processor.advanced_floating(operation.r1);
    check_advanced_load::<CLEAR>(processor, operation, target)
}

pub(in crate::processor::semantics) fn invalidate_entry(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    let target = processor.advanced_floating(operation.r1);
    processor.advanced_loads.remove(target);
    Ok(Flow::Next)
}

/// The AND mask is the immediate, the OR mask is in `r4`.
fn set_controls(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let status = status_operand(operation);
    let set = processor.with_fpsr(|fpsr| fpsr.set_controls(status, operation.immediate as u8, operation.r4));
    match set {
        Ok(()) => Ok(Flow::Next),
        Err(_) => Err(processor.raise(Fault::reserved_register_field())),
    }
}

fn clear_flags(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.with_fpsr(|fpsr| fpsr.clear_flags(status_operand(operation)));
    Ok(Flow::Next)
}

fn check_flags(processor: &mut Processor, operation: &MicroOperation) -> Step {
    if processor.with_fpsr(|fpsr| fpsr.flags_need_attention(status_operand(operation))) {
        branch(processor, operation)
    } else {
        Ok(Flow::Next)
    }
}

impl Processor {
    /// The ALAT's name for a floating-point register.
    pub(super) fn advanced_floating(&self, register: u8) -> Target {
        Target::Floating(self.floating_index(register) as u8)
    }
}
