//! Floating-point registers: [`moves`] between them and general ones, loads and stores ([`memory`]), [`arithmetic`],
//! and that of pairs of numbers ([`parallel`]).
//!
//! Memory has the value of each register: what emitted code has loaded or computed as a [`Double`] of the host stands
//! there as it is, everything else as a significand and a word of sign and exponent, as in the spill format. Beside it
//! the doubles that were just loaded or computed are at hand. What a NaTVal or an unusual number needs is left to the
//! interpreter's functions. The region has seen that no register is disabled.

pub mod arithmetic;
pub mod division;
pub mod memory;
pub mod moves;
pub mod nearest;
pub mod parallel;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, I32, I64};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Type, Value};
use sidestep_ia64::encoding::{Effects, FloatFormat, Instruction, LoadKind, Operation, Resource};
use sidestep_ia64::float::register::{EXPONENT_BIAS, EXPONENT_INTEGER};
use sidestep_ia64::layout::{self, FLOATING_DOUBLE, FLOATING_STEP};
use sidestep_ia64::registers::status::psr;

use crate::emitter::{Double, Emitter, FLOATING_SIZE_LOG2, NO_DOUBLE, rotates};

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

impl Register {
    fn arguments(self) -> [BlockArg; 2] {
        [self.significand.into(), self.sign_exponent.into()]
    }
}

impl From<[Value; 2]> for Register {
    fn from([significand, sign_exponent]: [Value; 2]) -> Register {
        Register {
            significand,
            sign_exponent,
        }
    }
}

/// The address of a register, as the rotation names it now, less a displacement.
fn place(emitter: &mut Emitter, register: u8) -> (Value, i32) {
    let processor = emitter.processor();
    let register = register & 127;
    if !rotates(register) {
        let offset = layout::FLOATING + (usize::from(register) << FLOATING_SIZE_LOG2);
        return (processor, offset as i32);
    }
    if let Some(place) = emitter.known.floats.place(register) {
        return (place, layout::FLOATING as i32);
    }
    let offset = emitter.rotating_floating_offset(register);
    let place = emitter.ins().iadd(processor, offset);
    emitter.known.floats.note_place(register, place);
    (place, layout::FLOATING as i32)
}

/// The two words of a register in memory, and whether they are a double's.
fn load_words(emitter: &mut Emitter, register: u8) -> (Register, Value) {
    if let Some(late) = emitter.known.floats.late_value(register & 127) {
        store_late(emitter, register & 127, late);
        emitter.known.floats.note_settled(register & 127);
    }
    let (address, offset) = place(emitter, register);
    let flags = emitter.floating_memory();
    let words = Register {
        significand: emitter.ins().load(I64, flags, address, offset),
        sign_exponent: emitter.ins().load(I64, flags, address, offset + SIGN_EXPONENT),
    };
    let is_double =
        emitter
            .ins()
            .icmp_imm_u(IntCC::Equal, words.sign_exponent, FLOATING_DOUBLE.cast_signed());
    (words, is_double)
}

/// As [`load_words`], of a register that stands for a step of a division no longer.
fn load_settled_words(emitter: &mut Emitter, register: u8) -> (Register, Value) {
    let (words, is_double) = load_words(emitter, register);
    if rotates(register) {
        // Steps are noted in none of these.
        return (words, is_double);
    }
    let [step, join] = [(); 2].map(|()| emitter.builder.create_block());
    let parts = [(); 2].map(|()| emitter.builder.append_block_param(join, I64));
    emitter.builder.set_cold_block(step);
    let is_step = emitter
        .ins()
        .icmp_imm_u(IntCC::Equal, words.sign_exponent, FLOATING_STEP.cast_signed());
    emitter.ins().brif(is_step, step, &[], join, &words.arguments());
    emitter.begin(step);
    emitter.call_preserving(u64::from(register), division::settle as *const () as i64);
    let (settled, _) = load_words(emitter, register);
    emitter.ins().jump(join, &settled.arguments());
    emitter.begin(join);
    (parts.into(), is_double)
}

/// Writes the two words of a register that holds no double, and nothing else.
fn store_words(emitter: &mut Emitter, register: u8, words: [Value; 2]) {
    emitter.known.floats.note_stored(register & 127, false);
    store_both(emitter, register, words);
}

fn store_both(emitter: &mut Emitter, register: u8, [first, second]: [Value; 2]) {
    let (address, offset) = place(emitter, register);
    let flags = emitter.floating_memory();
    emitter.ins().store(flags, first, address, offset);
    emitter
        .ins()
        .store(flags, second, address, offset + SIGN_EXPONENT);
}

/// The parts of a register. One that stands in memory as a double does so no longer: who reads parts reads them again.
fn read(emitter: &mut Emitter, register: u8) -> Register {
    let register = register & 127;
    if !is_writable(register) {
        let (significand, sign_exponent) = match register {
            0 => (0, 0),
            _ => (INTEGER_BIT, i64::from(EXPONENT_BIAS)),
        };
        return [significand, sign_exponent]
            .map(|part| emitter.constant(part))
            .into();
    }
    if let Some(significand) = emitter.known.floats.integer(register) {
        return integer(emitter, significand);
    }
    let (words, is_double) = load_settled_words(emitter, register);
    let [double, join] = [(); 2].map(|()| emitter.builder.create_block());
    let parts = [(); 2].map(|()| emitter.builder.append_block_param(join, I64));
    emitter.builder.set_cold_block(double);
    emitter
        .ins()
        .brif(is_double, double, &[], join, &words.arguments());
    emitter.begin(double);
    let image = of_double(emitter, words.significand);
    store_words(emitter, register, [image.significand, image.sign_exponent]);
    emitter.ins().jump(join, &image.arguments());
    emitter.begin(join);
    parts.into()
}

/// Writes a register, which is no constant, and notes in PSR that it was. The value is no longer at hand as a double.
fn write(emitter: &mut Emitter, register: u8, value: Register) {
    emitter.known.floats.note(register, None);
    store_words(emitter, register, [value.significand, value.sign_exponent]);
    mark_written(emitter, register);
}

/// The significand of a register, where `rare` becomes true if it holds no integer.
fn significand(emitter: &mut Emitter, register: u8, rare: &mut Option<Value>) -> Value {
    let register = register & 127;
    if !is_writable(register) {
        return read(emitter, register).significand;
    }
    if let Some(known) = emitter.known.floats.integer(register) {
        return known;
    }
    let (words, _) = load_words(emitter, register);
    let is_other = is_no_integer(emitter, words);
    *rare = Some(either(emitter, *rare, is_other));
    words.significand
}

/// Whether the words of a register are not those of an integer.
fn is_no_integer(emitter: &mut Emitter, words: Register) -> Value {
    let integer = i64::from(EXPONENT_INTEGER);
    emitter
        .ins()
        .icmp_imm_u(IntCC::NotEqual, words.sign_exponent, integer)
}

/// Writes an integer to a register, which is no constant.
fn write_integer(emitter: &mut Emitter, register: u8, significand: Value) {
    let value = integer(emitter, significand);
    write(emitter, register, value);
    emitter.known.floats.note_integer(register & 127, significand);
}

/// Notes that a source of an instruction, which reads it as an integer, is one; not where the instruction writes it.
fn note_integer_source(emitter: &mut Emitter, instruction: &Instruction, register: u8, significand: Value) {
    let register = register & 127;
    let is_kept = is_writable(register) && register != instruction.f1() & 127;
    if is_kept && !emitter.may_be_late(register) {
        emitter.known.floats.note_found_integer(register, significand);
    }
}

/// Emits an instruction that delivers an integer to f1, which `common` answers; the rest is as for
/// [`Emitter::in_line`].
fn deliver_integer(
    emitter: &mut Emitter,
    instruction: &Instruction,
    rare: Option<Value>,
    common: impl FnOnce(&mut Emitter, Block) -> Value,
) {
    deliver_integer_among(emitter, instruction, (rare, None), common);
}

/// As [`deliver_integer`], but that the interpreter goes on behind the function where `others` is true, if it is given,
/// as it does where another thing than an integer was delivered.
fn deliver_integer_among(
    emitter: &mut Emitter,
    instruction: &Instruction,
    (rare, others): (Option<Value>, Option<Value>),
    common: impl FnOnce(&mut Emitter, Block) -> Value,
) {
    let register = instruction.f1() & 127;
    // Where it rotates, its place is then known on both ways.
    place(emitter, register);
    let found = |emitter: &mut Emitter| {
        let (words, _) = load_words(emitter, register);
        let is_other = is_no_integer(emitter, words);
        (words.significand, either(emitter, others, is_other))
    };
    emitter.deliver_integer(instruction, register, rare, found, |emitter, aside| {
        let significand = common(emitter, aside);
        write_integer(emitter, register, significand);
        significand
    });
    emitter.known.floats.mark(modified(register));
}

/// As [`write`], of a double.
fn write_double(emitter: &mut Emitter, register: u8, value: Value) {
    emitter.known.floats.note(register, None);
    match emitter.known.floats.is_stored(register & 127) {
        true => {
            let (address, offset) = place(emitter, register);
            let flags = emitter.floating_memory();
            emitter.ins().store(flags, value, address, offset);
        }
        false => store_double(emitter, register, value),
    }
    emitter.known.floats.note_stored(register & 127, true);
    mark_written(emitter, register);
}

/// Writes the two words of a register that holds a double, and nothing else.
fn store_double(emitter: &mut Emitter, register: u8, value: Value) {
    let form = emitter.constant(FLOATING_DOUBLE.cast_signed());
    store_both(emitter, register, [value, form]);
}

/// As [`write_double`], of a double that is no NaN, which is noted next: memory may get it later.
fn keep_double(emitter: &mut Emitter, register: u8, value: Value) {
    if !emitter.may_be_late(register) {
        return write_double(emitter, register, value);
    }
    emitter.known.floats.note(register, None);
    emitter.known.floats.note_late(register, value);
    mark_written(emitter, register);
}

/// Stores a double that memory lacks of a register. Where it is none memory has what the register holds.
pub fn store_late(emitter: &mut Emitter, register: u8, value: Value) {
    if emitter.is_number(value) {
        return store_double(emitter, register, value);
    }
    // Both ways find it.
    place(emitter, register);
    let is_none = emitter.is_no_double(value);
    let [store, rest] = [(); 2].map(|()| emitter.builder.create_block());
    emitter.ins().brif(is_none, rest, &[], store, &[]);
    emitter.begin(store);
    store_double(emitter, register, value);
    emitter.ins().jump(rest, &[]);
    emitter.begin(rest);
}

/// Notes in PSR that a register was written.
fn mark_written(emitter: &mut Emitter, register: u8) {
    let written = modified(register);
    if emitter.known.floats.mark(written) {
        return;
    }
    // Looking costs a loop less than changing a word in each iteration.
    let status = emitter.load_state(I64, layout::STATUS);
    let is_marked = emitter.ins().band_imm_u(status, written.cast_signed());
    let [mark, rest] = [(); 2].map(|()| emitter.builder.create_block());
    emitter.builder.set_cold_block(mark);
    emitter.ins().brif(is_marked, rest, &[], mark, &[]);
    emitter.begin(mark);
    let status = emitter.ins().bor_imm_u(status, written.cast_signed());
    emitter.store_state(status, layout::STATUS);
    emitter.ins().jump(rest, &[]);
    emitter.begin(rest);
}

/// The bit of PSR that says that a register was written, or one of its half.
fn modified(register: u8) -> u64 {
    match rotates(register & 127) {
        true => psr::MFH,
        false => psr::MFL,
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

    /// Zero, of the host's type of numbers.
    fn zero(self, emitter: &mut Emitter) -> Value {
        match self.host {
            I64 => emitter.ins().f64const(0.0),
            _ => emitter.ins().f32const(0.0),
        }
    }

    /// Whether the exponent among a number's bits is all ones or one of so many lowest: one less than a power of two.
    fn is_at_an_end(self, emitter: &mut Emitter, bits: Value, lowest: i64) -> Value {
        // The host's instructions have constants of 32 bits.
        let (bits, shift) = match self.host {
            I64 => (emitter.ins().ushr_imm_u(bits, self.fraction_bits), 0),
            _ => (bits, self.fraction_bits),
        };
        let bits = emitter.bits(bits, I32);
        // One more makes all ones zero.
        let next = emitter.ins().iadd_imm_s(bits, 1 << shift);
        let others = self.special() & !lowest;
        let others = emitter.ins().band_imm_u(next, others << shift);
        emitter.ins().icmp_imm_u(IntCC::Equal, others, 0)
    }

    /// Goes aside where a number in memory is none that stands in its register as a double: a denormal or a NaN.
    fn unless_double(self, emitter: &mut Emitter, bits: Value, aside: Block) {
        let is_unusual = self.is_at_an_end(emitter, bits, 1);
        let [unusual, rest] = [(); 2].map(|()| emitter.builder.create_block());
        emitter.builder.set_cold_block(unusual);
        emitter.ins().brif(is_unusual, unusual, &[], rest, &[]);
        emitter.begin(unusual);
        let magnitude = emitter
            .ins()
            .ishl_imm_u(bits, 64 - self.fraction_bits - self.exponent_bits);
        let infinity = emitter.constant(self.special() << (64 - self.exponent_bits));
        let is_finite = emitter.ins().icmp(IntCC::NotEqual, magnitude, infinity);
        let is_zero = emitter.ins().icmp_imm_u(IntCC::Equal, magnitude, 0);
        let is_other = emitter.ins().band_not(is_finite, is_zero);
        emitter.back_unless(is_other, aside, rest);
        emitter.begin(rest);
    }

    /// The double that a register holds whose number memory has. Goes aside where there is none.
    fn loaded(self, emitter: &mut Emitter, bits: Value, aside: Block) -> Value {
        self.unless_double(emitter, bits, aside);
        let value = self.value(emitter, bits);
        emitter.note_number(value);
        value
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

/// The value of a register as a double, where `rare` becomes true if it holds none.
fn number(emitter: &mut Emitter, register: u8, rare: &mut Option<Value>) -> Double {
    let double = double(emitter, register);
    if is_writable(register & 127) {
        unless_number(emitter, double, rare);
    }
    double
}

/// Makes `rare` true where a double is not at hand.
fn unless_number(emitter: &mut Emitter, double: Double, rare: &mut Option<Value>) {
    if emitter.is_number(double.value) {
        return;
    }
    let is_none = emitter.is_no_double(double.value);
    *rare = Some(either(emitter, *rare, is_none));
}

/// The value of a register as a double, which is [`NO_DOUBLE`] where the register holds neither a normal value nor a
/// zero nor an infinity as doubles are loaded.
fn double(emitter: &mut Emitter, register: u8) -> Double {
    let register = register & 127;
    if !is_writable(register) {
        let value = emitter.ins().f64const(f64::from(register));
        return Double {
            value,
            is_single: true,
        };
    }
    if let Some(known) = emitter.known.floats.double(register) {
        return known;
    }
    let (words, is_double) = load_words(emitter, register);
    let [image, join] = [(); 2].map(|()| emitter.builder.create_block());
    let bits = emitter.builder.append_block_param(join, I64);
    emitter.builder.set_cold_block(image);
    emitter
        .ins()
        .brif(is_double, join, &[words.significand.into()], image, &[]);
    emitter.begin(image);
    let (converted, is_unusual) = double_bits(emitter, words);
    let none = emitter.constant(NO_DOUBLE);
    let converted = emitter.ins().select(is_unusual, none, converted);
    emitter.ins().jump(join, &[converted.into()]);
    emitter.begin(join);
    let double = Double {
        value: emitter.ins().bitcast(F64, MemFlagsData::new(), bits),
        is_single: false,
    };
    emitter.known.floats.note_found(register, double);
    double
}

/// The value of [`double`].
pub fn at_hand(emitter: &mut Emitter, register: u8) -> Value {
    double(emitter, register).value
}

/// The bits of a register's value as a double, and whether it holds no normal value, zero or infinity as doubles are
/// loaded.
fn double_bits(emitter: &mut Emitter, register: Register) -> (Value, Value) {
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
    // The integer bit alone under the last exponent.
    let beyond = emitter.ins().bxor_imm_u(biased, EXPONENT_MASK);
    let beyond = emitter.ins().bor(beyond, others);
    let is_infinite = emitter.ins().icmp_imm_u(IntCC::Equal, beyond, 0);
    let is_unusual = emitter.ins().band_not(is_unusual, is_infinite);
    let exponent = emitter.ins().ishl_imm_u(exponent, DOUBLE.fraction_bits);
    let fraction = emitter.ins().ushr_imm_u(others, 63 - DOUBLE.fraction_bits);
    let number = emitter.ins().bor(exponent, fraction);
    let [zero, infinity] = [0, DOUBLE.special() << DOUBLE.fraction_bits].map(|bits| emitter.constant(bits));
    let number = emitter.ins().select(is_zero, zero, number);
    let number = emitter.ins().select(is_infinite, infinity, number);
    let sign = emitter.ins().ishl_imm_u(register.sign_exponent, 63 - SIGN_SHIFT);
    let sign = emitter.ins().band(sign, integer_bit);
    (emitter.ins().bor(number, sign), is_unusual)
}

/// The register for the bits of a double that is no denormal.
fn of_double(emitter: &mut Emitter, bits: Value) -> Register {
    let fraction = emitter.ins().ishl_imm_u(bits, 63 - DOUBLE.fraction_bits);
    let significand = emitter.ins().bor_imm_s(fraction, INTEGER_BIT);
    let high = emitter.ins().ushr_imm_u(bits, DOUBLE.fraction_bits);
    let biased = emitter.ins().band_imm_u(high, DOUBLE.special());
    let exponent = emitter.ins().iadd_imm_s(biased, DOUBLE.rebias());
    let [zero, special] = [0, EXPONENT_MASK].map(|exponent| emitter.constant(exponent));
    let is_special = emitter.ins().icmp_imm_u(IntCC::Equal, biased, DOUBLE.special());
    let exponent = emitter.ins().select(is_special, special, exponent);
    let significand = emitter.ins().select(biased, significand, zero);
    let exponent = emitter.ins().select(biased, exponent, zero);
    let sign = emitter.ins().ushr_imm_u(high, DOUBLE.exponent_bits);
    let sign = emitter.ins().ishl_imm_u(sign, SIGN_SHIFT);
    Register {
        significand,
        sign_exponent: emitter.ins().bor(sign, exponent),
    }
}

/// Whether a value is none that is normal and above the smallest exponents.
fn is_not_well_above(emitter: &mut Emitter, value: Value, precision: Precision) -> Value {
    let bits = emitter.ins().bitcast(precision.host, MemFlagsData::new(), value);
    precision.is_at_an_end(emitter, bits, 3)
}

/// Whether an instruction may be emitted where the host may have raised an exception for which nobody has looked: it
/// does so itself, or takes denormals for what they are. Control goes elsewhere by none of them.
pub fn goes_without_look(emitter: &Emitter, instruction: &Instruction) -> bool {
    match instruction.operation {
        Operation::FloatMultiplyAdd { .. } => arithmetic::looks_for_exceptions(emitter, instruction),
        Operation::StoreFloat { format, .. } => matches!(format, FloatFormat::Single | FloatFormat::Double),
        Operation::LoadFloat { .. } | Operation::LoadFloatPair { .. } => true,
        _ => {
            let sources = instruction.sources();
            let reads = sources.iter().any(|source| matches!(source, Resource::Float(_)));
            !reads && !instruction.effects().contains(Effects::TRANSFERS)
        }
    }
}

/// Emits an instruction that delivers a double to f1, which `common` answers: one of
/// single precision in any case if `is_single`; the rest is as for [`Emitter::deliver`].
fn deliver(
    emitter: &mut Emitter,
    instruction: &Instruction,
    is_single: bool,
    rare: Option<Value>,
    common: impl FnOnce(&mut Emitter, Block) -> Value,
) {
    deliver_settled(emitter, instruction, (is_single, false), rare, common);
}

/// As [`deliver`], of an instruction that loads it, which `common` answers or goes to one of two blocks: where the
/// access is unusual, or the number.
fn deliver_loaded(
    emitter: &mut Emitter,
    instruction: &Instruction,
    (kind, is_single): (LoadKind, bool),
    common: impl FnOnce(&mut Emitter, [Block; 2]) -> Value,
) {
    // Speculative ones are done in vain, too.
    if kind == LoadKind::Speculative || !emitter.has_exceptions() || !emitter.has_windows() {
        return deliver(emitter, instruction, is_single, None, |emitter, aside| {
            common(emitter, [aside; 2])
        });
    }
    let register = instruction.f1() & 127;
    emitter.load_or_leave((register, is_single), |emitter, asides| {
        let value = common(emitter, asides);
        keep_double(emitter, register, value);
        value
    });
    emitter.known.floats.mark(modified(register));
}

/// As [`deliver`], but that the block is left to the interpreter where something is unusual if FPSR `is_settled`.
fn deliver_settled(
    emitter: &mut Emitter,
    instruction: &Instruction,
    (is_single, is_settled): (bool, bool),
    rare: Option<Value>,
    common: impl FnOnce(&mut Emitter, Block) -> Value,
) {
    let register = instruction.f1() & 127;
    let common = |emitter: &mut Emitter, aside| {
        let value = common(emitter, aside);
        keep_double(emitter, register, value);
        value
    };
    match is_settled {
        true => emitter.deliver_or_leave((register, is_single), rare, common),
        false => emitter.deliver(instruction, (register, is_single), rare, common),
    }
    emitter.known.floats.mark(modified(register));
}
