//! Floating-point registers: [`moves`] between them and general ones, loads and stores ([`memory`]), [`arithmetic`].
//!
//! A register is a significand and a word of sign and exponent, as in the spill format. Memory has the value of each;
//! beside it the values of those that were just loaded or computed are at hand as [`Double`]s of the host. What a
//! NaTVal or an unusual number needs is left to the interpreter's functions. The region has seen that no register is
//! disabled.

pub mod arithmetic;
pub mod memory;
pub mod moves;
pub mod nearest;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F64, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Type, Value};
use sidestep_ia64::encoding::Instruction;
use sidestep_ia64::float::register::EXPONENT_INTEGER;
use sidestep_ia64::layout;
use sidestep_ia64::registers::frame::ROTATING_FLOATING;
use sidestep_ia64::registers::status::psr;

use crate::emitter::{Double, Emitter};

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
/// The bits of a NaN among doubles.
const NAN: i64 = 0x7ff8 << 48;
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
    if let Some(place) = emitter.known.floats.place(register) {
        return (place, layout::FLOATING as i32);
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
    let place = emitter.ins().iadd(processor, offset);
    emitter.known.floats.note_place(register, place);
    (place, layout::FLOATING as i32)
}

fn read(emitter: &mut Emitter, register: u8) -> Register {
    let (address, offset) = place(emitter, register);
    let flags = emitter.floating_memory();
    Register {
        significand: emitter.ins().load(I64, flags, address, offset),
        sign_exponent: emitter.ins().load(I64, flags, address, offset + SIGN_EXPONENT),
    }
}

/// Writes a register, which is no constant, and notes in PSR that it was. The value is no longer at hand as a double.
fn write(emitter: &mut Emitter, register: u8, value: Register) {
    emitter.known.floats.note(register, None);
    let (address, offset) = place(emitter, register);
    let flags = emitter.floating_memory();
    emitter.ins().store(flags, value.significand, address, offset);
    emitter
        .ins()
        .store(flags, value.sign_exponent, address, offset + SIGN_EXPONENT);
    let written = modified(register);
    if !emitter.known.floats.mark(written) {
        let status = emitter.load_state(I64, layout::STATUS);
        let status = emitter.ins().bor_imm_u(status, written.cast_signed());
        emitter.store_state(status, layout::STATUS);
    }
}

/// The bit of PSR that says that a register was written, or one of its half.
fn modified(register: u8) -> u64 {
    match register & 127 < FIRST_ROTATING {
        true => psr::MFL,
        false => psr::MFH,
    }
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

/// A format in memory of one number: single or double precision.
#[derive(Clone, Copy)]
struct Precision {
    fraction_bits: i64,
    exponent_bits: i64,
    /// The type that holds its bits.
    host: Type,
}

const SINGLE: Precision = Precision {
    fraction_bits: 23,
    exponent_bits: 8,
    host: I32,
};
const DOUBLE: Precision = Precision {
    fraction_bits: 52,
    exponent_bits: 11,
    host: I64,
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

/// One condition or the other, of the host's 8-bit type; none is one that is never true.
fn either(emitter: &mut Emitter, one: Option<Value>, other: Value) -> Value {
    match one {
        Some(one) => emitter.ins().bor(one, other),
        None => other,
    }
}

/// The value of a register as a double, where `rare` becomes true if it holds no normal value or zero.
fn number(emitter: &mut Emitter, register: u8, rare: &mut Option<Value>) -> Double {
    let double = double(emitter, register, rare);
    if is_writable(register & 127) {
        unless_number(emitter, double, rare);
    }
    double
}

/// Makes `rare` true where a double is a NaN.
fn unless_number(emitter: &mut Emitter, double: Double, rare: &mut Option<Value>) {
    let is_none = emitter.ins().fcmp(FloatCC::Unordered, double.value, double.value);
    *rare = Some(either(emitter, *rare, is_none));
}

/// The value of a register as a double. If the register holds no normal value or zero as doubles are loaded, the
/// answer is a NaN where it was at hand, and `rare` becomes true and the answer means nothing where not.
fn double(emitter: &mut Emitter, register: u8, rare: &mut Option<Value>) -> Double {
    let register = register & 127;
    if register < 2 {
        let value = emitter.ins().f64const(f64::from(register));
        return Double {
            value,
            is_single: true,
        };
    }
    if let Some(known) = emitter.known.floats.double(register) {
        return known;
    }
    let (bits, is_unusual) = double_bits(emitter, register);
    *rare = Some(either(emitter, *rare, is_unusual));
    Double {
        value: emitter.ins().bitcast(F64, MemFlagsData::new(), bits),
        is_single: false,
    }
}

/// The value of a register as a double, which is a NaN where the register holds no normal value or zero as doubles are
/// loaded.
pub fn at_hand(emitter: &mut Emitter, register: u8) -> Value {
    if let Some(known) = emitter.known.floats.double(register) {
        return known.value;
    }
    let (bits, is_unusual) = double_bits(emitter, register);
    let nan = emitter.constant(NAN);
    let bits = emitter.ins().select(is_unusual, nan, bits);
    emitter.ins().bitcast(F64, MemFlagsData::new(), bits)
}

/// The bits of a register's value as a double, and whether it holds no normal value or zero as doubles are loaded.
fn double_bits(emitter: &mut Emitter, register: u8) -> (Value, Value) {
    let register = read(emitter, register);
    let biased = emitter.ins().band_imm_u(register.sign_exponent, EXPONENT_MASK);
    let exponent = emitter.ins().iadd_imm_s(biased, -DOUBLE.rebias());
    // The integer bit, and those below what a double has.
    let dropped = (1 << (63 - DOUBLE.fraction_bits)) - 1;
    let integer_bit = emitter.constant(INTEGER_BIT);
    let others = emitter.ins().bxor(register.significand, integer_bit);
    let outside = emitter.constant(INTEGER_BIT | dropped);
    let outside = emitter.ins().band(others, outside);
    let is_outside = emitter.ins().icmp_imm_u(IntCC::NotEqual, outside, 0);
    let below = emitter.ins().iadd_imm_s(exponent, -1);
    let last = DOUBLE.special() - 1;
    let is_beyond = emitter
        .ins()
        .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, below, last);
    let is_unusual = emitter.ins().bor(is_outside, is_beyond);
    let magnitude = emitter.ins().bor(biased, register.significand);
    let is_zero = emitter.ins().icmp_imm_u(IntCC::Equal, magnitude, 0);
    let is_unusual = emitter.ins().band_not(is_unusual, is_zero);
    let exponent = emitter.ins().ishl_imm_u(exponent, DOUBLE.fraction_bits);
    let fraction = emitter.ins().ushr_imm_u(others, 63 - DOUBLE.fraction_bits);
    let number = emitter.ins().bor(exponent, fraction);
    let zero = emitter.constant(0);
    let number = emitter.ins().select(is_zero, zero, number);
    let sign = emitter.ins().ishl_imm_u(register.sign_exponent, 63 - SIGN_SHIFT);
    let sign = emitter.ins().band(sign, integer_bit);
    (emitter.ins().bor(number, sign), is_unusual)
}

/// The register for a normal value.
fn of_normal(emitter: &mut Emitter, value: Value) -> Register {
    let bits = emitter.ins().bitcast(I64, MemFlagsData::new(), value);
    let fraction = emitter.ins().ishl_imm_u(bits, 63 - DOUBLE.fraction_bits);
    let significand = emitter.ins().bor_imm_s(fraction, INTEGER_BIT);
    let high = emitter.ins().ushr_imm_u(bits, DOUBLE.fraction_bits);
    let exponent = emitter.ins().band_imm_u(high, DOUBLE.special());
    let exponent = emitter.ins().iadd_imm_s(exponent, DOUBLE.rebias());
    let sign = emitter.ins().ushr_imm_u(high, DOUBLE.exponent_bits);
    let sign = emitter.ins().ishl_imm_u(sign, SIGN_SHIFT);
    Register {
        significand,
        sign_exponent: emitter.ins().bor(sign, exponent),
    }
}

/// Whether a value is none that is normal and above the smallest exponent.
fn is_not_well_above(emitter: &mut Emitter, value: Value, precision: Precision) -> Value {
    let (kind, fraction_bits) = (precision.host, precision.fraction_bits);
    let bits = emitter.ins().bitcast(kind, MemFlagsData::new(), value);
    let exponent = emitter.ins().ushr_imm_u(bits, fraction_bits);
    let exponent = emitter.ins().band_imm_u(exponent, precision.special());
    let exponent = emitter.ins().iadd_imm_s(exponent, -2);
    emitter.ins().icmp_imm_u(
        IntCC::UnsignedGreaterThanOrEqual,
        exponent,
        precision.special() - 2,
    )
}

/// Emits an instruction that delivers a double to f1: `common` answers its register and its value, which is one of
/// single precision in any case if `is_single`; the rest is as for [`Emitter::deliver`].
fn deliver(
    emitter: &mut Emitter,
    instruction: &Instruction,
    is_single: bool,
    rare: Option<Value>,
    common: impl FnOnce(&mut Emitter, Block) -> (Register, Value),
) {
    let register = instruction.f1() & 127;
    emitter.deliver(instruction, (register, is_single), rare, |emitter, aside| {
        let (written, value) = common(emitter, aside);
        write(emitter, register, written);
        value
    });
    emitter.known.floats.mark(modified(register));
}
