//! Floating-point registers: transfers, loads and stores of the usual formats, and the multiplication of integers.
//!
//! A register is a significand and a word of sign and exponent, as in the spill format. What a NaTVal or an unusual
//! number needs is left to the interpreter's functions. The region has seen that no register is disabled.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::encoding::{BaseUpdate, FixedPart, FloatFormat, FloatTransfer, Instruction, LoadKind};
use sidestep_ia64::float::register::EXPONENT_INTEGER;
use sidestep_ia64::layout;
use sidestep_ia64::registers::frame::ROTATING_FLOATING;
use sidestep_ia64::registers::status::psr;

use crate::emitter::Emitter;
use crate::memory::{increment, targets, translate, update_base};
use crate::slots::Slot;

/// The first register that rotates.
const FIRST_ROTATING: u8 = 32;
const REGISTER_SIZE: usize = 16;
const REGISTER_SIZE_LOG2: i64 = 4;
/// Where a register has its sign and exponent.
const SIGN_EXPONENT: i32 = 8;
/// The sign in the word of sign and exponent, and the exponent.
const SIGN_SHIFT: i64 = 17;
const EXPONENT_MASK: i64 = 0x1ffff;
const INTEGER_BIT: i64 = i64::MIN;
/// The word of sign and exponent of a NaTVal.
const NATVAL: i64 = 0x1fffe;

/// The parts of a register.
#[derive(Clone, Copy)]
struct Register {
    significand: Value,
    sign_exponent: Value,
}

/// The address of a register, as the rotation names it now, less a displacement.
fn place(emitter: &mut Emitter, register: u8) -> (Value, i32) {
    let processor = emitter.processor();
    let register = register & 127;
    if register < FIRST_ROTATING {
        let offset = layout::FLOATING + usize::from(register) * REGISTER_SIZE;
        return (processor, offset as i32);
    }
    let base = emitter.load_state(I32, layout::FRAME_RENAME_FLOATING);
    let base = emitter.ins().uextend(I64, base);
    let renamed = emitter.ins().iadd_imm_s(base, i64::from(register));
    let wrapped = emitter.ins().iadd_imm_s(renamed, -i64::from(ROTATING_FLOATING));
    let is_beyond = emitter
        .ins()
        .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, renamed, 128);
    let number = emitter.ins().select(is_beyond, wrapped, renamed);
    let offset = emitter.ins().ishl_imm_u(number, REGISTER_SIZE_LOG2);
    (emitter.ins().iadd(processor, offset), layout::FLOATING as i32)
}

fn read(emitter: &mut Emitter, register: u8) -> Register {
    let (address, offset) = place(emitter, register);
    let flags = emitter.floating_memory();
    Register {
        significand: emitter.ins().load(I64, flags, address, offset),
        sign_exponent: emitter.ins().load(I64, flags, address, offset + SIGN_EXPONENT),
    }
}

/// Writes a register, which is no constant, and notes in PSR that it was.
fn write(emitter: &mut Emitter, register: u8, value: Register) {
    let (address, offset) = place(emitter, register);
    let flags = emitter.floating_memory();
    emitter.ins().store(flags, value.significand, address, offset);
    emitter
        .ins()
        .store(flags, value.sign_exponent, address, offset + SIGN_EXPONENT);
    let written = if register & 127 < FIRST_ROTATING {
        psr::MFL
    } else {
        psr::MFH
    };
    let status = emitter.load_state(I64, layout::STATUS);
    let status = emitter.ins().bor_imm_u(status, written.cast_signed());
    emitter.store_state(status, layout::STATUS);
}

/// Whether a register may be written: f0 and f1 are constants.
fn is_writable(register: u8) -> bool {
    register > 1
}

/// Whether a register is a NaTVal.
fn is_natval(emitter: &mut Emitter, register: Register) -> Value {
    emitter
        .ins()
        .icmp_imm_u(IntCC::Equal, register.sign_exponent, NATVAL)
}

/// An integer as a register holds it.
fn integer(emitter: &mut Emitter, significand: Value) -> Register {
    Register {
        significand,
        sign_exponent: emitter.constant(i64::from(EXPONENT_INTEGER)),
    }
}

/// `setf`.
pub fn set(emitter: &mut Emitter, instruction: &Instruction, form: FloatTransfer) {
    if !is_writable(instruction.f1()) || matches!(form, FloatTransfer::Single | FloatTransfer::Double) {
        return emitter.perform(Some(instruction));
    }
    let value = emitter.general(instruction.r2());
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let register = match form {
            FloatTransfer::Exponent => Register {
                significand: emitter.constant(INTEGER_BIT),
                sign_exponent: emitter.ins().band_imm_u(value, 1 << SIGN_SHIFT | EXPONENT_MASK),
            },
            _ => integer(emitter, value),
        };
        write(emitter, instruction.f1(), register);
    });
}

/// `getf`.
pub fn get(emitter: &mut Emitter, instruction: &Instruction, form: FloatTransfer) {
    if matches!(form, FloatTransfer::Single | FloatTransfer::Double) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let register = read(emitter, instruction.f2());
        let rare = is_natval(emitter, register);
        emitter.in_line(instruction, rare, |emitter, _| {
            let value = match form {
                FloatTransfer::Exponent => register.sign_exponent,
                _ => register.significand,
            };
            emitter.set(Slot::general(instruction.r1()), value);
        });
    });
}

/// `xma`: the addend is unsigned.
pub fn fixed_multiply_add(emitter: &mut Emitter, instruction: &Instruction, part: FixedPart) {
    if !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let sources = [instruction.f3(), instruction.f4(), instruction.f2()];
        let registers = sources.map(|register| read(emitter, register));
        let [first, second, third] = registers.map(|register| is_natval(emitter, register));
        let rare = emitter.ins().bor(first, second);
        let rare = emitter.ins().bor(rare, third);
        emitter.in_line(instruction, rare, |emitter, _| {
            let [a, b, c] = registers.map(|register| register.significand);
            let low = emitter.ins().imul(a, b);
            let sum = emitter.ins().iadd(low, c);
            let result = match part {
                FixedPart::Low => sum,
                FixedPart::High | FixedPart::HighUnsigned => {
                    let high = match part {
                        FixedPart::High => emitter.ins().smulhi(a, b),
                        _ => emitter.ins().umulhi(a, b),
                    };
                    let carry = emitter.ins().icmp(IntCC::UnsignedLessThan, sum, c);
                    let carry = emitter.ins().uextend(I64, carry);
                    emitter.ins().iadd(high, carry)
                }
            };
            let result = integer(emitter, result);
            write(emitter, instruction.f1(), result);
        });
    });
}

/// A format in memory of one number: single or double precision.
#[derive(Clone, Copy)]
struct Precision {
    fraction_bits: i64,
    exponent_bits: i64,
}

const SINGLE: Precision = Precision {
    fraction_bits: 23,
    exponent_bits: 8,
};
const DOUBLE: Precision = Precision {
    fraction_bits: 52,
    exponent_bits: 11,
};

impl Precision {
    /// The exponent of infinities and NaNs, all ones.
    fn special(self) -> i64 {
        (1 << self.exponent_bits) - 1
    }

    /// What makes its exponent a register's.
    fn rebias(self) -> i64 {
        0xffff - (self.special() >> 1)
    }

    /// The register for a number in memory, and whether it is neither normal nor zero, which needs more than that.
    fn to_register(self, emitter: &mut Emitter, bits: Value) -> (Register, Value) {
        let exponent = emitter.ins().ushr_imm_u(bits, self.fraction_bits);
        let exponent = emitter.ins().band_imm_u(exponent, self.special());
        let sign = emitter
            .ins()
            .ushr_imm_u(bits, self.fraction_bits + self.exponent_bits);
        let magnitude = emitter
            .ins()
            .ishl_imm_u(bits, 64 - self.fraction_bits - self.exponent_bits);
        let is_zero = emitter.ins().icmp_imm_u(IntCC::Equal, magnitude, 0);
        let below = emitter.ins().iadd_imm_s(exponent, -1);
        let is_special =
            emitter
                .ins()
                .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, below, self.special() - 1);
        let is_unusual = emitter.ins().band_not(is_special, is_zero);
        let fraction = emitter.ins().ishl_imm_u(bits, 64 - self.fraction_bits);
        let fraction = emitter.ins().ushr_imm_u(fraction, 1);
        let integer_bit = emitter.constant(INTEGER_BIT);
        let significand = emitter.ins().bor(fraction, integer_bit);
        let exponent = emitter.ins().iadd_imm_s(exponent, self.rebias());
        let zero = emitter.constant(0);
        let significand = emitter.ins().select(is_zero, zero, significand);
        let exponent = emitter.ins().select(is_zero, zero, exponent);
        let sign = emitter.ins().ishl_imm_u(sign, SIGN_SHIFT);
        let register = Register {
            significand,
            sign_exponent: emitter.ins().bor(sign, exponent),
        };
        (register, is_unusual)
    }

    /// The number in memory for a register: what there is no room for is dropped.
    fn of_register(self, emitter: &mut Emitter, register: Register) -> Value {
        let low_bits = self.exponent_bits - 1;
        let exponent = emitter.ins().band_imm_u(register.sign_exponent, EXPONENT_MASK);
        let high = emitter.ins().ushr_imm_u(exponent, 16);
        let high = emitter.ins().ishl_imm_u(high, low_bits);
        let low = emitter.ins().band_imm_u(exponent, (1 << low_bits) - 1);
        let exponent = emitter.ins().bor(high, low);
        let zero = emitter.constant(0);
        let has_integer_bit = emitter
            .ins()
            .icmp_imm_s(IntCC::SignedLessThan, register.significand, 0);
        let exponent = emitter.ins().select(has_integer_bit, exponent, zero);
        let exponent = emitter.ins().ishl_imm_u(exponent, self.fraction_bits);
        let sign = emitter.ins().ushr_imm_u(register.sign_exponent, SIGN_SHIFT);
        let sign = emitter
            .ins()
            .ishl_imm_u(sign, self.fraction_bits + self.exponent_bits);
        let fraction = emitter.ins().ishl_imm_u(register.significand, 1);
        let fraction = emitter.ins().ushr_imm_u(fraction, 64 - self.fraction_bits);
        let number = emitter.ins().bor(sign, exponent);
        emitter.ins().bor(number, fraction)
    }
}

/// `ldf` of the formats that one access moves.
pub fn load(
    emitter: &mut Emitter,
    instruction: &Instruction,
    format: FloatFormat,
    kind: LoadKind,
    update: BaseUpdate,
) {
    let is_usual = matches!(kind, LoadKind::Normal | LoadKind::Speculative);
    let precision = match format {
        FloatFormat::Single => Some(SINGLE),
        FloatFormat::Double => Some(DOUBLE),
        FloatFormat::Significand => None,
        FloatFormat::Extended | FloatFormat::Register => return emitter.perform(Some(instruction)),
    };
    if !is_usual || !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let increment = increment(emitter, instruction, update);
        let (rare, host) = translate(emitter, address, format.bytes(), layout::TRANSLATION_READ);
        emitter.in_line(instruction, rare, |emitter, aside| {
            let flags = emitter.guest_memory();
            let bits = match format {
                FloatFormat::Single => {
                    let bits = emitter.ins().load(I32, flags, host, 0);
                    emitter.ins().uextend(I64, bits)
                }
                _ => emitter.ins().load(I64, flags, host, 0),
            };
            let value = match precision {
                None => integer(emitter, bits),
                Some(precision) => {
                    let (value, is_unusual) = precision.to_register(emitter, bits);
                    emitter.unless(is_unusual, aside);
                    value
                }
            };
            update_base(emitter, instruction, address, increment);
            write(emitter, instruction.f1(), value);
        });
    });
}

/// `stf` of the formats that one access moves.
pub fn store(emitter: &mut Emitter, instruction: &Instruction, format: FloatFormat, update: BaseUpdate) {
    if matches!(format, FloatFormat::Extended | FloatFormat::Register) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let increment = increment(emitter, instruction, update);
        let value = read(emitter, instruction.f2());
        let is_natval = is_natval(emitter, value);
        let is_natval = emitter.ins().uextend(I64, is_natval);
        let (difference, host) = translate(emitter, address, format.bytes(), layout::TRANSLATION_WRITE);
        // Where advanced loads are remembered, those of what is stored have to be forgotten.
        let advanced = emitter.load_state(I64, layout::ADVANCED_LOADS);
        let rare = emitter.ins().bor(difference, advanced);
        let rare = emitter.ins().bor(rare, is_natval);
        emitter.in_line(instruction, rare, |emitter, _| {
            let flags = emitter.guest_memory();
            let bits = match format {
                FloatFormat::Single => {
                    let bits = SINGLE.of_register(emitter, value);
                    emitter.ins().ireduce(I32, bits)
                }
                FloatFormat::Double => DOUBLE.of_register(emitter, value),
                _ => value.significand,
            };
            emitter.ins().store(flags, bits, host, 0);
            update_base(emitter, instruction, address, increment);
        });
    });
}
