//! Divisions and square roots, of integers, too: approximations from the architecture's tables, the steps in the
//! double-extended format and in the range of the registers, and what makes integers of such numbers.
//!
//! No host has the format. A function of the interpreter's does the multiply-adds of usual operands; all else that is
//! not usual is left to the interpreter's handlers.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, I8, I16, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use sidestep_ia64::encoding::{FixedRounding, Instruction, MultiplyAdd, Signedness, StatusField};
use sidestep_ia64::float::nearest::{self, EXPONENTS_LOG2, LOWEST_EXPONENT, Nearest};
use sidestep_ia64::float::reciprocal::{RECIPROCAL_ROOTS, RECIPROCALS};
use sidestep_ia64::float::register::{EXPONENT_BIAS, EXPONENT_INTEGER};
use sidestep_ia64::float::{FloatRegister, Precision, StatusRegister};
use sidestep_ia64::registers::application::FPSR;

use super::arithmetic::unless_controls;
use super::{
    DOUBLE, EXPONENT_MASK, INTEGER_BIT, Precision as Format, Register, SIGN_SHIFT, deliver, deliver_integer,
    either, is_writable, read, write,
};
use crate::emitter::Emitter;
use crate::memory::targets;
use crate::slots::Slot;

/// Where the functions answer whether a result is inexact, in the word of sign and exponent.
const INEXACT_SHIFT: i64 = 32;
/// What they answer there of a zero, whose significand is that of no answer.
const ZERO: i64 = 1 << 33;

/// `fma`, `fms`, `fnma` to so many bits: f0 as the addend is no addend.
pub fn multiply_add(
    emitter: &mut Emitter,
    instruction: &Instruction,
    function: MultiplyAdd,
    precision: Precision,
    status: StatusField,
) {
    if !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    if (instruction.f4() & 127, instruction.f2() & 127, precision) == (1, 0, Precision::Extended) {
        return normalize(emitter, instruction, function, status);
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let mut rare = None;
        let controls = StatusRegister::nearest_controls(status, precision);
        let is_known_inexact = unless_controls(emitter, status, controls, &mut rare);
        let rare = rare.expect("the controls decide");
        emitter.in_line(instruction, rare, |emitter, aside| {
            let result = rounded(
                emitter,
                instruction,
                function,
                precision,
                (is_known_inexact, aside),
            );
            write(emitter, instruction.f1(), result);
        });
    });
    if precision == Precision::Extended {
        emitter.known.floats.note_extended(instruction.f1() & 127);
    }
}

/// A product with one, to as many bits as registers have: `fnorm`, and the conversion of unsigned integers
/// (`fcvt.xuf`), which are no normal values unless their uppermost bit is set.
fn normalize(emitter: &mut Emitter, instruction: &Instruction, function: MultiplyAdd, status: StatusField) {
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let mut rare = None;
        let controls = StatusRegister::normalizing_controls(status);
        unless_controls(emitter, status, controls, &mut rare);
        let Register {
            significand,
            sign_exponent,
        } = read(emitter, instruction.f3());
        let exponent = emitter.ins().band_imm_u(sign_exponent, EXPONENT_MASK);
        let is_outside = is_outside(emitter, exponent);
        let rare = either(emitter, rare, is_outside);
        let fpsr = emitter.load_state(I64, Slot::application(FPSR).offset());
        let flag = emitter.constant(StatusRegister::denormal_flag(status).cast_signed());
        let flag = emitter.ins().band(fpsr, flag);
        let is_clear = emitter.ins().icmp_imm_u(IntCC::Equal, flag, 0);
        let is_unnormal = emitter
            .ins()
            .icmp_imm_s(IntCC::SignedGreaterThanOrEqual, significand, 0);
        let raises = emitter.ins().band(is_clear, is_unnormal);
        let rare = emitter.ins().bor(rare, raises);
        emitter.in_line(instruction, rare, |emitter, _| {
            let sign = emitter.ins().bxor(sign_exponent, exponent);
            let sign = match function {
                MultiplyAdd::NegateAdd => emitter.ins().bxor_imm_u(sign, 1 << SIGN_SHIFT),
                MultiplyAdd::Add | MultiplyAdd::Subtract => sign,
            };
            let shift = emitter.ins().clz(significand);
            let exponent = emitter.ins().isub(exponent, shift);
            // A zero has the exponent of zeros.
            let exponent = emitter.ins().select(significand, exponent, significand);
            let result = Register {
                // The host takes the low six bits of a count.
                significand: emitter.ins().ishl(significand, shift),
                sign_exponent: emitter.ins().bor(sign, exponent),
            };
            write(emitter, instruction.f1(), result);
        });
    });
    emitter.known.floats.note_extended(instruction.f1() & 127);
}

/// Whether an exponent is not in the middle.
fn is_outside(emitter: &mut Emitter, exponent: Value) -> Value {
    let exponent = emitter.ins().iadd_imm_s(exponent, -i64::from(LOWEST_EXPONENT));
    emitter
        .ins()
        .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, exponent, 1 << EXPONENTS_LOG2)
}

/// As [`multiply_add`], where some operand is none of double precision, to a value in the range of its precision.
pub(super) fn last_multiply_add(
    emitter: &mut Emitter,
    instruction: &Instruction,
    function: MultiplyAdd,
    (precision, is_single, format): (Precision, bool, Format),
    status: StatusField,
) {
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let mut rare = None;
        let controls = StatusRegister::host_controls(status);
        let is_known_inexact = unless_controls(emitter, status, controls, &mut rare);
        deliver(emitter, instruction, is_single, rare, |emitter, aside| {
            let result = rounded(
                emitter,
                instruction,
                function,
                precision,
                (is_known_inexact, aside),
            );
            let exponent = emitter.ins().band_imm_u(result.sign_exponent, EXPONENT_MASK);
            let sign = emitter.ins().bxor(result.sign_exponent, exponent);
            // As for the host's results: a normal value above the smallest exponent.
            let above = emitter.ins().iadd_imm_s(exponent, -format.rebias() - 2);
            let is_outside =
                emitter
                    .ins()
                    .icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, above, format.special() - 2);
            emitter.unless(is_outside, aside);
            let exponent = emitter.ins().iadd_imm_s(exponent, -DOUBLE.rebias());
            let exponent = emitter.ins().ishl_imm_u(exponent, DOUBLE.fraction_bits);
            let fraction = emitter.ins().ishl_imm_u(result.significand, 1);
            let fraction = emitter.ins().ushr_imm_u(fraction, 64 - DOUBLE.fraction_bits);
            let sign = emitter.ins().ishl_imm_u(sign, 63 - SIGN_SHIFT);
            let bits = emitter.ins().bor(exponent, fraction);
            let bits = emitter.ins().bor(bits, sign);
            emitter.ins().bitcast(F64, MemFlagsData::new(), bits)
        });
    });
}

/// The rounded sum or product. Goes aside where the function has no answer, or an inexact one and the flag is clear.
fn rounded(
    emitter: &mut Emitter,
    instruction: &Instruction,
    function: MultiplyAdd,
    precision: Precision,
    (is_known_inexact, aside): (Value, Block),
) -> Register {
    let mut operand = |register, negates: bool| {
        let Register {
            significand,
            sign_exponent,
        } = read(emitter, register);
        let sign_exponent = match negates {
            true => emitter.ins().bxor_imm_u(sign_exponent, 1 << SIGN_SHIFT),
            false => sign_exponent,
        };
        [significand, sign_exponent]
    };
    let a = operand(instruction.f3(), function == MultiplyAdd::NegateAdd);
    let b = operand(instruction.f4(), false);
    let c = match instruction.f2() {
        0 => None,
        register => Some(operand(register, function == MultiplyAdd::Subtract)),
    };
    let [significand, rest] = match c {
        None => emitter.call_function(product_function(precision), &[a, b].concat()),
        Some(c) => emitter.call_function(sum_function(precision), &[a, b, c].concat()),
    };
    let is_none = emitter
        .ins()
        .icmp_imm_s(IntCC::SignedGreaterThanOrEqual, significand, 0);
    let is_inexact = emitter.ins().ushr_imm_u(rest, INEXACT_SHIFT);
    let is_inexact = emitter.ins().ireduce(I8, is_inexact);
    let is_flag_clear = emitter.ins().icmp_imm_u(IntCC::Equal, is_known_inexact, 0);
    let raises = emitter.ins().band(is_inexact, is_flag_clear);
    let is_other = emitter.ins().bor(is_none, raises);
    let [other, join] = [(); 2].map(|()| emitter.builder.create_block());
    let parts = [(); 2].map(|()| emitter.builder.append_block_param(join, I64));
    emitter.builder.set_cold_block(other);
    let sign_exponent = emitter.ins().band_imm_u(rest, 1 << SIGN_SHIFT | EXPONENT_MASK);
    let result = [significand.into(), sign_exponent.into()];
    emitter.ins().brif(is_other, other, &[], join, &result);
    emitter.begin(other);
    let is_zero = emitter.ins().icmp_imm_u(IntCC::Equal, rest, ZERO);
    let zero = emitter.constant(0).into();
    emitter.ins().brif(is_zero, join, &[zero, zero], aside, &[]);
    emitter.begin(join);
    parts.into()
}

/// What is true where one of some registers holds no normal value with an exponent in the middle.
fn are_unusual(emitter: &mut Emitter, registers: &[Register]) -> Value {
    let mut rare = None;
    for register in registers {
        let exponent = emitter.ins().band_imm_u(register.sign_exponent, EXPONENT_MASK);
        let is_outside = is_outside(emitter, exponent);
        let is_unnormal = emitter
            .ins()
            .icmp_imm_s(IntCC::SignedGreaterThanOrEqual, register.significand, 0);
        let is_unusual = emitter.ins().bor(is_outside, is_unnormal);
        rare = Some(either(emitter, rare, is_unusual));
    }
    rare.expect("a register")
}

/// `frcpa`: an entry of the table for usual operands.
pub fn reciprocal(emitter: &mut Emitter, instruction: &Instruction) {
    if !is_writable(instruction.f1()) || instruction.predicate() != 0 {
        return emitter.perform(Some(instruction));
    }
    let [dividend, divisor] = [instruction.f2(), instruction.f3()].map(|register| read(emitter, register));
    let rare = are_unusual(emitter, &[dividend, divisor]);
    emitter.in_line_with_predicate(instruction, instruction.p2(), rare, |emitter| {
        let index = emitter.ins().ushr_imm_u(divisor.significand, 55);
        let index = emitter.ins().band_imm_u(index, 0xff);
        let significand = entry(emitter, &RECIPROCALS, index);
        let exponent = emitter.ins().band_imm_u(divisor.sign_exponent, EXPONENT_MASK);
        let sign = emitter.ins().bxor(divisor.sign_exponent, exponent);
        let highest = emitter.constant(2 * i64::from(EXPONENT_BIAS) - 1);
        let exponent = emitter.ins().isub(highest, exponent);
        let result = Register {
            significand,
            sign_exponent: emitter.ins().bor(sign, exponent),
        };
        write(emitter, instruction.f1(), result);
    });
}

/// `frsqrta`: an entry of the table for a usual operand that is positive.
pub fn reciprocal_root(emitter: &mut Emitter, instruction: &Instruction) {
    if !is_writable(instruction.f1()) || instruction.predicate() != 0 {
        return emitter.perform(Some(instruction));
    }
    let radicand = read(emitter, instruction.f3());
    let rare = are_unusual(emitter, &[radicand]);
    let is_negative =
        emitter
            .ins()
            .icmp_imm_u(IntCC::UnsignedGreaterThan, radicand.sign_exponent, EXPONENT_MASK);
    let rare = emitter.ins().bor(rare, is_negative);
    emitter.in_line_with_predicate(instruction, instruction.p2(), rare, |emitter| {
        let odd = emitter.ins().band_imm_u(radicand.sign_exponent, 1);
        let odd = emitter.ins().ishl_imm_u(odd, 7);
        let index = emitter.ins().ushr_imm_u(radicand.significand, 56);
        let index = emitter.ins().band_imm_u(index, 0x7f);
        let index = emitter.ins().bor(odd, index);
        let significand = entry(emitter, &RECIPROCAL_ROOTS, index);
        let exponent = emitter
            .ins()
            .iadd_imm_s(radicand.sign_exponent, -i64::from(EXPONENT_BIAS));
        let half = emitter.ins().sshr_imm_u(exponent, 1);
        let highest = emitter.constant(i64::from(EXPONENT_BIAS) - 1);
        let result = Register {
            significand,
            sign_exponent: emitter.ins().isub(highest, half),
        };
        write(emitter, instruction.f1(), result);
    });
}

/// The significand of a table's entry.
fn entry(emitter: &mut Emitter, table: &'static [u16; 256], index: Value) -> Value {
    let table = emitter.constant(table.as_ptr() as i64);
    let offset = emitter.ins().ishl_imm_u(index, 1);
    let place = emitter.ins().iadd(table, offset);
    let entry = emitter
        .ins()
        .load(I16, MemFlagsData::trusted().with_readonly(), place, 0);
    let entry = emitter.ins().uextend(I64, entry);
    emitter.ins().ishl_imm_u(entry, 53)
}

/// `fcvt.fx` and `fcvt.fxu` of a register that is not at hand as a double.
pub fn to_fixed(
    emitter: &mut Emitter,
    instruction: &Instruction,
    signedness: Signedness,
    rounding: FixedRounding,
    status: StatusField,
) {
    let mut rare = None;
    let controls = StatusRegister::conversion_controls(status, rounding);
    let is_known_inexact = unless_controls(emitter, status, controls, &mut rare);
    let register = read(emitter, instruction.f2());
    let Register {
        significand,
        sign_exponent,
    } = register;
    let exponent = emitter.ins().band_imm_u(sign_exponent, EXPONENT_MASK);
    let is_negative = emitter.ins().icmp(IntCC::NotEqual, sign_exponent, exponent);
    let is_unusual = are_unusual(emitter, &[register]);
    let bits = emitter.ins().bor(exponent, significand);
    let is_zero = emitter.ins().icmp_imm_u(IntCC::Equal, bits, 0);
    let is_unusual = emitter.ins().band_not(is_unusual, is_zero);
    // How far the last place is below that of integers.
    let last = emitter.constant(i64::from(EXPONENT_INTEGER));
    let below = emitter.ins().isub(last, exponent);
    let lowest = match signedness {
        Signedness::Signed => 1,
        Signedness::Unsigned => 0,
    };
    let is_large = emitter.ins().icmp_imm_s(IntCC::SignedLessThan, below, lowest);
    let mut is_rare = emitter.ins().bor(is_unusual, is_large);
    if signedness == Signedness::Unsigned {
        is_rare = emitter.ins().bor(is_rare, is_negative);
    }
    let rare = either(emitter, rare, is_rare);
    deliver_integer(emitter, instruction, Some(rare), |emitter, aside| {
        let zero = emitter.constant(0);
        // The host takes the low six bits of a count.
        let floor = emitter.ins().ushr(significand, below);
        let kept = emitter.ins().ishl(floor, below);
        let is_fraction = emitter.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, below, 63);
        let kept = emitter.ins().select(is_fraction, zero, kept);
        let magnitude = emitter.ins().select(is_fraction, zero, floor);
        let magnitude = match rounding {
            FixedRounding::Truncate => magnitude,
            FixedRounding::Dynamic => rounded_up(emitter, significand, below, magnitude),
        };
        if rounding == FixedRounding::Dynamic && signedness == Signedness::Signed {
            let is_beyond = emitter.ins().icmp_imm_s(IntCC::SignedLessThan, magnitude, 0);
            emitter.unless(is_beyond, aside);
        }
        let is_inexact = emitter.ins().icmp(IntCC::NotEqual, kept, significand);
        let is_flag_clear = emitter.ins().icmp_imm_u(IntCC::Equal, is_known_inexact, 0);
        let raises = emitter.ins().band(is_inexact, is_flag_clear);
        emitter.unless(raises, aside);
        let negated = emitter.ins().ineg(magnitude);
        emitter.ins().select(is_negative, negated, magnitude)
    });
}

/// The integer nearest to a significand so many bits above its last place, of the one below it: the even one of two
/// that are.
fn rounded_up(emitter: &mut Emitter, significand: Value, below: Value, floor: Value) -> Value {
    // What the integer lacks, with a half as the highest bit. The host takes the low six bits of a count.
    let width = emitter.constant(64);
    let left = emitter.ins().isub(width, below);
    let rest = emitter.ins().ishl(significand, left);
    let zero = emitter.constant(0);
    let rest = emitter.ins().select(below, rest, zero);
    let is_less_than_half = emitter.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, below, 64);
    let rest = emitter.ins().select(is_less_than_half, zero, rest);
    // Above a half, or at one where the integer below is odd.
    let odd = emitter.ins().band_imm_u(floor, 1);
    let last = emitter.constant(INTEGER_BIT);
    let most = emitter.ins().isub(last, odd);
    let is_up = emitter.ins().icmp(IntCC::UnsignedGreaterThan, rest, most);
    let up = emitter.ins().uextend(I64, is_up);
    emitter.ins().iadd(floor, up)
}

fn product_function(precision: Precision) -> *const () {
    match precision {
        Precision::Single => product::<24> as *const (),
        Precision::Double => product::<53> as *const (),
        Precision::Extended => product::<64> as *const (),
    }
}

fn sum_function(precision: Precision) -> *const () {
    match precision {
        Precision::Single => sum::<24> as *const (),
        Precision::Double => sum::<53> as *const (),
        Precision::Extended => sum::<64> as *const (),
    }
}

/// What the functions answer: a register, with its integer bit set if there is an answer, and whether it is inexact;
/// or [`ZERO`].
#[repr(C)]
struct Answer {
    significand: u64,
    rest: u64,
}

impl From<Option<Nearest>> for Answer {
    #[inline(always)]
    fn from(nearest: Option<Nearest>) -> Answer {
        nearest.map_or(
            Answer {
                significand: 0,
                rest: 0,
            },
            |Nearest { value, is_inexact }| Answer {
                significand: value.significand(),
                rest: match value.significand() {
                    0 => ZERO.cast_unsigned(),
                    _ => value.sign_exponent() | u64::from(is_inexact) << INEXACT_SHIFT,
                },
            },
        )
    }
}

/// The rounded product of two registers, each a significand and a word of sign and exponent.
extern "C" fn product<const PRECISION: u32>(a: u64, a_rest: u64, b: u64, b_rest: u64) -> Answer {
    let a = FloatRegister::from_sign_exponent(a_rest, a);
    let b = FloatRegister::from_sign_exponent(b_rest, b);
    nearest::multiply::<PRECISION>(a, b).into()
}

/// The rounded product of two registers and a third one, as for [`product`].
extern "C" fn sum<const PRECISION: u32>(
    a: u64,
    a_rest: u64,
    b: u64,
    b_rest: u64,
    c: u64,
    c_rest: u64,
) -> Answer {
    let a = FloatRegister::from_sign_exponent(a_rest, a);
    let b = FloatRegister::from_sign_exponent(b_rest, b);
    let c = FloatRegister::from_sign_exponent(c_rest, c);
    nearest::multiply_add::<PRECISION>(a, b, c).into()
}
