//! Multiply-adds of the double-extended format and in the range of the registers: the steps of divisions and square
//! roots. No host has the format. A function of the interpreter's delivers what they do of usual operands; the
//! interpreter's handler does the rest.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I8;
use sidestep_ia64::encoding::{Instruction, MultiplyAdd, StatusField};
use sidestep_ia64::float::nearest::{self, Nearest};
use sidestep_ia64::float::{FloatRegister, Precision, StatusRegister};

use super::arithmetic::unless_controls;
use super::{EXPONENT_MASK, Register, SIGN_SHIFT, is_writable, read, write};
use crate::emitter::Emitter;
use crate::memory::targets;

/// Where the functions answer whether a result is inexact, in the word of sign and exponent.
const INEXACT_SHIFT: i64 = 32;

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
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let mut rare = None;
        let controls = StatusRegister::nearest_controls(status, precision);
        let is_known_inexact = unless_controls(emitter, status, controls, &mut rare);
        let rare = rare.expect("the controls decide");
        emitter.in_line(instruction, rare, |emitter, aside| {
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
            emitter.unless(is_other, aside);
            let sign_exponent = emitter.ins().band_imm_u(rest, 1 << SIGN_SHIFT | EXPONENT_MASK);
            let result = Register {
                significand,
                sign_exponent,
            };
            write(emitter, instruction.f1(), result);
        });
    });
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

/// What the functions answer: a register, with its integer bit set if there is an answer, and whether it is inexact.
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
                rest: value.sign_exponent() | u64::from(is_inexact) << INEXACT_SHIFT,
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
