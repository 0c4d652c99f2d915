//! Integer arithmetic, logic, shifts, bit fields and extensions (manual volume 3, formats A1 to A5, I5 to
//! I19, I29).
//!
//! All of these are [computations](super::computation) of one general register.

use crate::encoding::{Instruction, Logical, Signedness, Size, Source};
use crate::processor::Processor;
use crate::processor::execution::{Flow, MicroOperation, Step};

use super::computation::{of_second, of_third, of_two};
use super::frequent::{Code, Handler, call, inline};

pub(super) fn add_handler(carry: bool) -> Handler {
    match carry {
        false => inline(Code::Add),
        true => call(add_one),
    }
}

pub(super) fn subtract_handler(borrow: bool) -> Handler {
    match borrow {
        false => inline(Code::Subtract),
        true => call(subtract_one),
    }
}

pub(super) fn add_pointer_handler(first: Source) -> Handler {
    match first {
        Source::Register => call(add_pointer),
        Source::Immediate => call(add_pointer_immediate),
    }
}

pub(super) fn add_immediate_handler(instruction: &Instruction) -> Handler {
    match (instruction.r3(), instruction.immediate) {
        (0, _) => inline(Code::MoveImmediate),
        (_, 0) => inline(Code::Copy),
        _ => inline(Code::AddImmediate),
    }
}

pub(super) fn lower_add_long_immediate(instruction: &Instruction) -> MicroOperation {
    let base = instruction.r3_short();
    let handler = match base {
        0 => inline(Code::MoveImmediate),
        _ => inline(Code::AddImmediate),
    };
    MicroOperation {
        r3: base,
        ..super::fields(handler, instruction)
    }
}

pub(super) fn logical_handler(function: Logical, first: Source) -> Handler {
    match (function, first) {
        (Logical::And, Source::Register) => inline(Code::And),
        (Logical::And, Source::Immediate) => inline(Code::AndImmediate),
        (Logical::AndComplement, Source::Register) => call(and_complement),
        (Logical::AndComplement, Source::Immediate) => call(and_complement_immediate),
        (Logical::Or, Source::Register) => inline(Code::Or),
        (Logical::Or, Source::Immediate) => call(or_immediate),
        (Logical::ExclusiveOr, Source::Register) => inline(Code::ExclusiveOr),
        (Logical::ExclusiveOr, Source::Immediate) => call(exclusive_or_immediate),
    }
}

pub(super) fn shift_right_handler(signedness: Signedness) -> Handler {
    match signedness {
        Signedness::Signed => call(shift_right),
        Signedness::Unsigned => call(shift_right_unsigned),
    }
}

pub(super) fn lower_extract(instruction: &Instruction, signedness: Signedness) -> MicroOperation {
    let length = instruction.length.min(64 - instruction.position);
    let handler = match signedness {
        Signedness::Signed => inline(Code::Extract),
        Signedness::Unsigned => inline(Code::ExtractUnsigned),
    };
    MicroOperation {
        extra: instruction.position,
        r4: 64 - length,
        ..super::fields(handler, instruction)
    }
}

pub(super) fn lower_deposit_zero(instruction: &Instruction, value: Source) -> MicroOperation {
    match value {
        Source::Register => deposit(inline(Code::DepositZero), instruction),
        Source::Immediate => MicroOperation {
            immediate: (instruction.immediate as u64) << instruction.position & mask(instruction),
            ..super::fields(inline(Code::MoveImmediate), instruction)
        },
    }
}

pub(super) fn lower_deposit(instruction: &Instruction, value: Source) -> MicroOperation {
    match (value, instruction.immediate) {
        (Source::Register, _) => deposit(call(deposit_register), instruction),
        (Source::Immediate, 0) => deposit(call(deposit_zeros), instruction),
        (Source::Immediate, _) => deposit(call(deposit_ones), instruction),
    }
}

pub(super) fn zero_extend_handler(size: Size) -> Handler {
    match size {
        Size::One => inline(Code::ZeroExtend1),
        Size::Two => call(zero_extend_2),
        Size::Four | Size::Eight => inline(Code::ZeroExtend4),
    }
}

pub(super) fn sign_extend_handler(size: Size) -> Handler {
    match size {
        Size::One => call(sign_extend_1),
        Size::Two => call(sign_extend_2),
        Size::Four | Size::Eight => inline(Code::SignExtend4),
    }
}

/// The bits of the field that a deposit writes.
fn mask(instruction: &Instruction) -> u64 {
    let length = u32::from(instruction.length.min(64 - instruction.position));
    (u64::MAX >> (64 - length)) << instruction.position
}

/// A deposit: the immediate is the mask of the field, `extra` its position.
fn deposit(handler: Handler, instruction: &Instruction) -> MicroOperation {
    MicroOperation {
        immediate: mask(instruction),
        extra: instruction.position,
        ..super::fields(handler, instruction)
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

#[inline(always)]
pub(super) fn move_immediate(processor: &mut Processor, operation: &MicroOperation) -> Step {
    processor.general.set(operation.r1, operation.immediate);
    Ok(Flow::Next)
}
