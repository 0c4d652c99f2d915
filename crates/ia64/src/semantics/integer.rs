//! Integer arithmetic, logic, shifts, bit fields and extensions (manual volume 3, formats A1 to A5, I5 to
//! I19, I29).
//!
//! All of these are [computations](super::computation) of one general register.

use crate::encoding::{Instruction, Logical, Operation, Signedness, Size, Source};
use crate::execution::{Execute, Flow, MicroOperation, Step};
use crate::processor::Processor;

use super::computation::{of_second, of_third, of_two};

/// Chooses the function and operands of an integer operation.
pub(super) fn lower(instruction: &Instruction) -> Option<MicroOperation> {
    let execute: Execute = match instruction.operation {
        Operation::Add { carry: false } => add,
        Operation::Add { carry: true } => add_one,
        Operation::Subtract { borrow: false } => subtract,
        Operation::Subtract { borrow: true } => subtract_one,
        Operation::SubtractFromImmediate => subtract_from_immediate,
        Operation::AddPointer {
            first: Source::Register,
        } => add_pointer,
        Operation::AddPointer {
            first: Source::Immediate,
        } => add_pointer_immediate,
        Operation::AddImmediate if instruction.r3() == 0 => move_immediate,
        Operation::AddImmediate if instruction.immediate == 0 => copy,
        Operation::AddImmediate => add_immediate,
        Operation::AddLongImmediate => {
            let base = instruction.r3_short();
            let execute: Execute = if base == 0 { move_immediate } else { add_immediate };
            return Some(MicroOperation {
                r3: base,
                ..super::fields(execute, instruction)
            });
        }
        Operation::MoveLong => move_immediate,
        Operation::Logical { function, first } => match (function, first) {
            (Logical::And, Source::Register) => and,
            (Logical::And, Source::Immediate) => and_immediate,
            (Logical::AndComplement, Source::Register) => and_complement,
            (Logical::AndComplement, Source::Immediate) => and_complement_immediate,
            (Logical::Or, Source::Register) => or,
            (Logical::Or, Source::Immediate) => or_immediate,
            (Logical::ExclusiveOr, Source::Register) => exclusive_or,
            (Logical::ExclusiveOr, Source::Immediate) => exclusive_or_immediate,
        },
        Operation::ShiftLeftAdd => shift_left_add,
        Operation::ShiftLeftAddPointer => shift_left_add_pointer,
        Operation::ShiftRight {
            signedness: Signedness::Signed,
        } => shift_right,
        Operation::ShiftRight {
            signedness: Signedness::Unsigned,
        } => shift_right_unsigned,
        Operation::ShiftLeft => shift_left,
        Operation::ShiftRightPair => shift_right_pair,
        Operation::Extract { signedness } => {
            let length = instruction.length.min(64 - instruction.position);
            let execute: Execute = match signedness {
                Signedness::Signed => extract,
                Signedness::Unsigned => extract_unsigned,
            };
            return Some(MicroOperation {
                extra: instruction.position,
                r4: 64 - length,
                ..super::fields(execute, instruction)
            });
        }
        Operation::DepositZero {
            value: Source::Register,
        } => return Some(deposit(deposit_zero, instruction)),
        Operation::DepositZero {
            value: Source::Immediate,
        } => {
            let field = (instruction.immediate as u64) << instruction.position & mask(instruction);
            return Some(MicroOperation {
                immediate: field,
                ..super::fields(move_immediate, instruction)
            });
        }
        Operation::Deposit {
            value: Source::Register,
        } => return Some(deposit(deposit_register, instruction)),
        Operation::Deposit {
            value: Source::Immediate,
        } => {
            let execute: Execute = if instruction.immediate == 0 {
                deposit_zeros
            } else {
                deposit_ones
            };
            return Some(deposit(execute, instruction));
        }
        Operation::ZeroExtend { size } => match size {
            Size::One => zero_extend_1,
            Size::Two => zero_extend_2,
            Size::Four | Size::Eight => zero_extend_4,
        },
        Operation::SignExtend { size } => match size {
            Size::One => sign_extend_1,
            Size::Two => sign_extend_2,
            Size::Four | Size::Eight => sign_extend_4,
        },
        Operation::PopulationCount => population_count,
        Operation::CountLeadingZeros => count_leading_zeros,
        Operation::MultiplyWord => multiply_word,
        Operation::MultiplyShiftLeftWord => multiply_shift_left_word,
        _ => return None,
    };
    Some(super::fields(execute, instruction))
}

/// The bits of the field that a deposit writes.
fn mask(instruction: &Instruction) -> u64 {
    let length = u32::from(instruction.length.min(64 - instruction.position));
    (u64::MAX >> (64 - length)) << instruction.position
}

/// A deposit: the immediate is the mask of the field, `extra` its position.
fn deposit(execute: Execute, instruction: &Instruction) -> MicroOperation {
    MicroOperation {
        immediate: mask(instruction),
        extra: instruction.position,
        ..super::fields(execute, instruction)
    }
}

of_two! {
    add = |a, b, operation| a.wrapping_add(b);
    add_one = |a, b, operation| a.wrapping_add(b).wrapping_add(1);
    subtract = |a, b, operation| a.wrapping_sub(b);
    subtract_one = |a, b, operation| a.wrapping_sub(b).wrapping_sub(1);
    add_pointer = |a, b, operation| pointer(a.wrapping_add(b), b);
    and = |a, b, operation| a & b;
    and_complement = |a, b, operation| a & !b;
    or = |a, b, operation| a | b;
    exclusive_or = |a, b, operation| a ^ b;
    shift_left_add = |a, b, operation| (a << (operation.immediate & 63)).wrapping_add(b);
    shift_left_add_pointer = |a, b, operation| pointer((a << (operation.immediate & 63)).wrapping_add(b), b);
    shift_right = |count, value, operation| (value as i64 >> count.min(63)) as u64;
    shift_right_unsigned = |count, value, operation| if count < 64 { value >> count } else { 0 };
    shift_left = |value, count, operation| if count < 64 { value << count } else { 0 };
    shift_right_pair = |high, low, operation| {
        ((u128::from(high) << 64 | u128::from(low)) >> (operation.immediate & 63)) as u64
    };
    multiply_word = |a, b, operation| (a & 0xffff_ffff).wrapping_mul(b & 0xffff_ffff);
    multiply_shift_left_word = |a, b, operation| (a >> 32).wrapping_mul(b & 0xffff_ffff) << 32;
    deposit_register = |a, b, operation| b & !operation.immediate | a << (operation.extra & 63) & operation.immediate;
}

of_third! {
    subtract_from_immediate = |b, operation| operation.immediate.wrapping_sub(b);
    add_pointer_immediate = |b, operation| pointer(operation.immediate.wrapping_add(b), b);
    add_immediate = |b, operation| operation.immediate.wrapping_add(b);
    copy = |b, operation| b;
    and_immediate = |b, operation| operation.immediate & b;
    and_complement_immediate = |b, operation| operation.immediate & !b;
    or_immediate = |b, operation| operation.immediate | b;
    exclusive_or_immediate = |b, operation| operation.immediate ^ b;
    extract = |b, operation| {
        let left = operation.r4.wrapping_sub(operation.extra) & 63;
        ((b << left) as i64 >> (operation.r4 & 63)) as u64
    };
    extract_unsigned = |b, operation| {
        let left = operation.r4.wrapping_sub(operation.extra) & 63;
        b << left >> (operation.r4 & 63)
    };
    deposit_zeros = |b, operation| b & !operation.immediate;
    deposit_ones = |b, operation| b | operation.immediate;
    zero_extend_1 = |b, operation| b & 0xff;
    zero_extend_2 = |b, operation| b & 0xffff;
    zero_extend_4 = |b, operation| b & 0xffff_ffff;
    sign_extend_1 = |b, operation| b as i8 as u64;
    sign_extend_2 = |b, operation| b as i16 as u64;
    sign_extend_4 = |b, operation| b as i32 as u64;
    population_count = |b, operation| u64::from(b.count_ones());
    count_leading_zeros = |b, operation| u64::from(b.leading_zeros());
}

of_second! {
    deposit_zero = |a, operation| a << (operation.extra & 63) & operation.immediate;
}

/// A 32-bit pointer: the low 32 bits of a sum, with bits 31 and 30 of the base as the virtual region number.
fn pointer(sum: u64, base: u64) -> u64 {
    sum & 0xffff_ffff | (base >> 30 & 3) << 61
}

pub(super) fn move_immediate(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.general.set(operation.r1, operation.immediate);
    Ok(Flow::Next)
}
