//! Integer arithmetic, logic, shifts, bit fields and extensions: what the interpreter's family `integer` computes.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::encoding::{Instruction, Logical, Signedness, Size, Source};

use crate::emitter::Emitter;
use crate::slots::Slot;

/// Writes r1.
pub fn compute(emitter: &mut Emitter, instruction: &Instruction, value: Value) {
    emitter.set_under(instruction.predicate(), Slot::general(instruction.r1()), value);
}

/// The operands r2 and r3.
pub fn two(emitter: &mut Emitter, instruction: &Instruction) -> (Value, Value) {
    (
        emitter.general(instruction.r2()),
        emitter.general(instruction.r3()),
    )
}

/// The operand that is r2 or the immediate.
fn first(emitter: &mut Emitter, instruction: &Instruction, source: Source) -> Value {
    match source {
        Source::Register => emitter.general(instruction.r2()),
        Source::Immediate => emitter.constant(instruction.immediate),
    }
}

/// A value and the operand r3, of which r0 adds nothing.
fn plus_third(emitter: &mut Emitter, instruction: &Instruction, value: Value, third: Value) -> Value {
    match instruction.r3() & 127 {
        0 => value,
        _ => emitter.ins().iadd(value, third),
    }
}

pub fn add(emitter: &mut Emitter, instruction: &Instruction, carry: bool) {
    let (a, b) = two(emitter, instruction);
    let mut sum = plus_third(emitter, instruction, a, b);
    if carry {
        sum = emitter.ins().iadd_imm_s(sum, 1);
    }
    compute(emitter, instruction, sum);
}

pub fn subtract(emitter: &mut Emitter, instruction: &Instruction, borrow: bool) {
    let (a, b) = two(emitter, instruction);
    let mut difference = emitter.ins().isub(a, b);
    if borrow {
        difference = emitter.ins().iadd_imm_s(difference, -1);
    }
    compute(emitter, instruction, difference);
}

pub fn subtract_from_immediate(emitter: &mut Emitter, instruction: &Instruction) {
    let a = emitter.constant(instruction.immediate);
    let b = emitter.general(instruction.r3());
    let difference = emitter.ins().isub(a, b);
    compute(emitter, instruction, difference);
}

/// Adds the immediate to a register; r0 makes it a move of the immediate.
pub fn add_immediate(emitter: &mut Emitter, instruction: &Instruction, base: u8) {
    let sum = match (base, instruction.immediate) {
        (0, immediate) => emitter.constant(immediate),
        (_, 0) => emitter.general(base),
        (_, immediate) => {
            let base = emitter.general(base);
            let sum = emitter.ins().iadd_imm_s(base, immediate);
            emitter.known.windows.note_near(base, sum);
            sum
        }
    };
    compute(emitter, instruction, sum);
}

pub fn move_immediate(emitter: &mut Emitter, instruction: &Instruction) {
    let value = emitter.constant(instruction.immediate);
    compute(emitter, instruction, value);
}

/// A 32-bit pointer: the low 32 bits of a sum, with bits 31 and 30 of the base as the region's number.
fn pointer(emitter: &mut Emitter, sum: Value, base: Value) -> Value {
    let low = emitter.ins().band_imm_u(sum, 0xffff_ffff);
    let region = emitter.ins().ushr_imm_u(base, 30);
    let region = emitter.ins().band_imm_u(region, 3);
    let region = emitter.ins().ishl_imm_u(region, 61);
    emitter.ins().bor(low, region)
}

pub fn add_pointer(emitter: &mut Emitter, instruction: &Instruction, source: Source) {
    let a = first(emitter, instruction, source);
    let b = emitter.general(instruction.r3());
    let sum = emitter.ins().iadd(a, b);
    let sum = pointer(emitter, sum, b);
    compute(emitter, instruction, sum);
}

pub fn logical(emitter: &mut Emitter, instruction: &Instruction, function: Logical, source: Source) {
    let a = first(emitter, instruction, source);
    let b = emitter.general(instruction.r3());
    let result = match function {
        Logical::And => emitter.ins().band(a, b),
        Logical::AndComplement => emitter.ins().band_not(a, b),
        Logical::Or => emitter.ins().bor(a, b),
        Logical::ExclusiveOr => emitter.ins().bxor(a, b),
    };
    compute(emitter, instruction, result);
}

fn shifted_sum(emitter: &mut Emitter, instruction: &Instruction) -> (Value, Value) {
    let (a, b) = two(emitter, instruction);
    let shifted = emitter.ins().ishl_imm_u(a, instruction.immediate & 63);
    (plus_third(emitter, instruction, shifted, b), b)
}

pub fn shift_left_add(emitter: &mut Emitter, instruction: &Instruction) {
    let (sum, _) = shifted_sum(emitter, instruction);
    compute(emitter, instruction, sum);
}

pub fn shift_left_add_pointer(emitter: &mut Emitter, instruction: &Instruction) {
    let (sum, base) = shifted_sum(emitter, instruction);
    let sum = pointer(emitter, sum, base);
    compute(emitter, instruction, sum);
}

/// A shift's result, and what it is for counts of 64 and more, where the host's shifts look at six bits only.
fn shift(emitter: &mut Emitter, instruction: &Instruction, count: Value, shifted: Value, beyond: Value) {
    let is_within = emitter.ins().icmp_imm_u(IntCC::UnsignedLessThan, count, 64);
    let result = emitter.ins().select(is_within, shifted, beyond);
    compute(emitter, instruction, result);
}

pub fn shift_left(emitter: &mut Emitter, instruction: &Instruction) {
    let (value, count) = two(emitter, instruction);
    let shifted = emitter.ins().ishl(value, count);
    let zero = emitter.constant(0);
    shift(emitter, instruction, count, shifted, zero);
}

pub fn shift_right(emitter: &mut Emitter, instruction: &Instruction, signedness: Signedness) {
    let (count, value) = two(emitter, instruction);
    let (shifted, beyond) = match signedness {
        Signedness::Signed => (
            emitter.ins().sshr(value, count),
            emitter.ins().sshr_imm_u(value, 63),
        ),
        Signedness::Unsigned => (emitter.ins().ushr(value, count), emitter.constant(0)),
    };
    shift(emitter, instruction, count, shifted, beyond);
}

pub fn shift_right_pair(emitter: &mut Emitter, instruction: &Instruction) {
    let (high, low) = two(emitter, instruction);
    let result = match instruction.immediate & 63 {
        0 => low,
        count => {
            let low = emitter.ins().ushr_imm_u(low, count);
            let high = emitter.ins().ishl_imm_u(high, 64 - count);
            emitter.ins().bor(low, high)
        }
    };
    compute(emitter, instruction, result);
}

/// The position of a field and its length, as far as the register goes.
fn field(instruction: &Instruction) -> (i64, i64) {
    let length = instruction.length.min(64 - instruction.position);
    (i64::from(instruction.position), i64::from(length))
}

/// The bits of a field, at its place.
fn mask(instruction: &Instruction) -> i64 {
    let (position, length) = field(instruction);
    (u64::MAX >> (64 - length) << position).cast_signed()
}

pub fn extract(emitter: &mut Emitter, instruction: &Instruction, signedness: Signedness) {
    let (position, length) = field(instruction);
    let value = emitter.general(instruction.r3());
    let high = emitter.ins().ishl_imm_u(value, 64 - length - position);
    let result = match signedness {
        Signedness::Signed => emitter.ins().sshr_imm_u(high, 64 - length),
        Signedness::Unsigned => emitter.ins().ushr_imm_u(high, 64 - length),
    };
    compute(emitter, instruction, result);
}

pub fn deposit_zero(emitter: &mut Emitter, instruction: &Instruction, source: Source) {
    let (position, mask) = (i64::from(instruction.position), mask(instruction));
    let result = match source {
        Source::Immediate => emitter.constant(instruction.immediate << position & mask),
        Source::Register => {
            let value = emitter.general(instruction.r2());
            let shifted = emitter.ins().ishl_imm_u(value, position);
            let mask = emitter.constant(mask);
            emitter.ins().band(shifted, mask)
        }
    };
    compute(emitter, instruction, result);
}

/// The immediate of the other form is all zeros or all ones.
pub fn deposit(emitter: &mut Emitter, instruction: &Instruction, source: Source) {
    let field = mask(instruction);
    let base = emitter.general(instruction.r3());
    let others = emitter.constant(!field);
    let others = emitter.ins().band(base, others);
    let result = match (source, instruction.immediate) {
        (Source::Immediate, 0) => others,
        (Source::Immediate, _) => {
            let field = emitter.constant(field);
            emitter.ins().bor(others, field)
        }
        (Source::Register, _) => {
            let value = emitter.general(instruction.r2());
            let shifted = emitter.ins().ishl_imm_u(value, i64::from(instruction.position));
            let field = emitter.constant(field);
            let shifted = emitter.ins().band(shifted, field);
            emitter.ins().bor(others, shifted)
        }
    };
    compute(emitter, instruction, result);
}

pub fn extend(emitter: &mut Emitter, instruction: &Instruction, size: Size, signedness: Signedness) {
    let value = emitter.general(instruction.r3());
    let bytes = size.bytes().min(4);
    let result = emitter.extend(value, bytes, signedness == Signedness::Signed);
    compute(emitter, instruction, result);
}

pub fn population_count(emitter: &mut Emitter, instruction: &Instruction) {
    let value = emitter.general(instruction.r3());
    let result = emitter.ins().popcnt(value);
    compute(emitter, instruction, result);
}

pub fn count_leading_zeros(emitter: &mut Emitter, instruction: &Instruction) {
    let value = emitter.general(instruction.r3());
    let result = emitter.ins().clz(value);
    compute(emitter, instruction, result);
}

pub fn multiply_word(emitter: &mut Emitter, instruction: &Instruction) {
    let (a, b) = two(emitter, instruction);
    let [a, b] = [a, b].map(|value| emitter.ins().band_imm_u(value, 0xffff_ffff));
    let product = emitter.ins().imul(a, b);
    compute(emitter, instruction, product);
}

pub fn multiply_shift_left_word(emitter: &mut Emitter, instruction: &Instruction) {
    let (a, b) = two(emitter, instruction);
    let a = emitter.ins().ushr_imm_u(a, 32);
    let b = emitter.ins().band_imm_u(b, 0xffff_ffff);
    let product = emitter.ins().imul(a, b);
    let result = emitter.ins().ishl_imm_u(product, 32);
    compute(emitter, instruction, result);
}
