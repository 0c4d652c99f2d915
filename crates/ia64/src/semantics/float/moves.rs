//! Operations that move bits: merges and their kin, transfers between the register files, checks of speculation, and
//! the FPSR's own operations (formats F3, F9, F12 to F14, M18, M19, M21 to M23, M27).

use super::super::branch::{branch, check_advanced_load};
use super::{Names, Rotating, Static, status_operand};
use crate::alat::Target;
use crate::encoding::{FloatMix, FloatSwap, FloatTransfer, Half, Instruction, Logical, Merge, Operation};
use crate::execution::{Execute, Flow, MicroOperation, Step};
use crate::fault::Fault;
use crate::float::FloatRegister;
use crate::float::bits::{BitOperation, select};
use crate::processor::Processor;

/// Chooses the function and operands of a move.
pub(super) fn lower(instruction: &Instruction) -> Option<MicroOperation> {
    use Operation as O;
    if let Some(combination) = bit_operation(&instruction.operation) {
        let registers = [instruction.f1(), instruction.f2(), instruction.f3()];
        let execute = if super::are_static(&registers) {
            combine_function::<Static>(combination)
        } else {
            combine_function::<Rotating>(combination)
        };
        return Some(super::with_target(execute, instruction));
    }
    let execute: Execute = match instruction.operation {
        O::FloatSelect => return Some(super::with_target(float_select, instruction)),
        O::SetFloat { form } => return Some(super::with_target(set_function(form), instruction)),
        O::GetFloat { form } => get_function(form),
        O::CheckSpeculativeFloat => check_speculative,
        O::CheckAdvancedFloat { clear: true } => check_advanced::<true>,
        O::CheckAdvancedFloat { clear: false } => check_advanced::<false>,
        O::InvalidateAlatEntryFloat => invalidate_entry,
        O::FloatSetControls { status } => {
            let operation = super::super::fields(set_controls, instruction);
            return Some(MicroOperation {
                extra: status as u8,
                r4: instruction.omask(),
                ..operation
            });
        }
        O::FloatClearFlags { status } => {
            return Some(MicroOperation {
                extra: status as u8,
                ..super::super::fields(clear_flags, instruction)
            });
        }
        O::FloatCheckFlags { status } => {
            return Some(MicroOperation {
                extra: status as u8,
                ..super::super::fields(check_flags, instruction)
            });
        }
        _ => return None,
    };
    Some(super::super::fields(execute, instruction))
}

/// The combination of f2 and f3 that an operation is, if it is one.
fn bit_operation(operation: &Operation) -> Option<BitOperation> {
    use BitOperation as B;
    use Operation as O;
    Some(match operation {
        O::FloatMerge { merge: Merge::Sign } => B::MergeSign,
        O::FloatMerge {
            merge: Merge::NegatedSign,
        } => B::MergeNegatedSign,
        O::FloatMerge {
            merge: Merge::SignExponent,
        } => B::MergeSignExponent,
        O::ParallelFloatMerge { merge: Merge::Sign } => B::ParallelMergeSign,
        O::ParallelFloatMerge {
            merge: Merge::NegatedSign,
        } => B::ParallelMergeNegatedSign,
        O::ParallelFloatMerge {
            merge: Merge::SignExponent,
        } => B::ParallelMergeSignExponent,
        O::FloatMix { mix: FloatMix::Left } => B::MixLeft,
        O::FloatMix { mix: FloatMix::Right } => B::MixRight,
        O::FloatMix {
            mix: FloatMix::LeftRight,
        } => B::MixLeftRight,
        O::FloatSignExtend { half: Half::Left } => B::SignExtendLeft,
        O::FloatSignExtend { half: Half::Right } => B::SignExtendRight,
        O::FloatPack => B::Pack,
        O::FloatSwap {
            swap: FloatSwap::Plain,
        } => B::Swap,
        O::FloatSwap {
            swap: FloatSwap::NegateLeft,
        } => B::SwapNegateLeft,
        O::FloatSwap {
            swap: FloatSwap::NegateRight,
        } => B::SwapNegateRight,
        O::FloatLogical {
            function: Logical::And,
        } => B::And,
        O::FloatLogical {
            function: Logical::AndComplement,
        } => B::AndComplement,
        O::FloatLogical {
            function: Logical::Or,
        } => B::Or,
        O::FloatLogical {
            function: Logical::ExclusiveOr,
        } => B::Xor,
        _ => return None,
    })
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

fn check_speculative(processor: &mut Processor, operation: &MicroOperation) -> Step {
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

fn invalidate_entry(processor: &mut Processor, operation: &MicroOperation) -> Step {
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
