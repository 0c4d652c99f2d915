//! Moves: between general and floating-point registers, and of signs.

use cranelift_codegen::ir::types::{F32, F64, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use sidestep_ia64::encoding::{FloatTransfer, Instruction, Merge};

use super::{
    DOUBLE, EXPONENT_MASK, INTEGER_BIT, Precision, Register, SIGN_SHIFT, SINGLE, deliver, either, integer,
    is_natval, is_writable, read, write,
};
use crate::emitter::Emitter;
use crate::memory::targets;
use crate::slots::Slot;

impl Precision {
    /// The value of a number in memory, as a double.
    pub(super) fn value(self, emitter: &mut Emitter, bits: Value) -> Value {
        if self.host == I64 {
            return emitter.ins().bitcast(F64, MemFlagsData::new(), bits);
        }
        let bits = emitter.ins().ireduce(I32, bits);
        let value = emitter.ins().bitcast(F32, MemFlagsData::new(), bits);
        emitter.ins().fpromote(F64, value)
    }
}

/// The precision of the forms that have a number's memory format.
fn precision(form: FloatTransfer) -> Option<Precision> {
    match form {
        FloatTransfer::Single => Some(SINGLE),
        FloatTransfer::Double => Some(DOUBLE),
        FloatTransfer::Significand | FloatTransfer::Exponent => None,
    }
}

/// `setf`.
pub fn set(emitter: &mut Emitter, instruction: &Instruction, form: FloatTransfer) {
    if !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    let value = emitter.general(instruction.r2());
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        if let Some(precision) = precision(form) {
            let bits = match precision.host {
                I32 => emitter.extend(value, 4, false),
                _ => value,
            };
            let (register, is_unusual) = precision.to_register(emitter, bits);
            return deliver(
                emitter,
                instruction,
                precision.host == I32,
                Some(is_unusual),
                |emitter, _| {
                    let value = precision.value(emitter, bits);
                    (register, value)
                },
            );
        }
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
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let register = read(emitter, instruction.f2());
        let rare = is_natval(emitter, register);
        emitter.in_line(instruction, rare, |emitter, _| {
            let value = match form {
                FloatTransfer::Exponent => register.sign_exponent,
                FloatTransfer::Significand => register.significand,
                FloatTransfer::Single => SINGLE.of_register(emitter, register),
                FloatTransfer::Double => DOUBLE.of_register(emitter, register),
            };
            emitter.set(Slot::general(instruction.r1()), value);
        });
    });
}

/// `fmerge.s` and `fmerge.ns`: the sign of f2, or its opposite, and the rest of f3.
pub fn merge(emitter: &mut Emitter, instruction: &Instruction, merge: Merge) {
    let (f2, f3) = (instruction.f2() & 127, instruction.f3() & 127);
    if !is_writable(instruction.f1()) || merge == Merge::SignExponent {
        return emitter.perform(Some(instruction));
    }
    let negates = merge == Merge::NegatedSign;
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let registers = [f2, f3].map(|register| read(emitter, register));
        let mut rare = None;
        for (number, register) in [f2, f3].into_iter().zip(registers) {
            // No constant is a NaTVal.
            if is_writable(number) {
                let is_natval = is_natval(emitter, register);
                rare = Some(either(emitter, rare, is_natval));
            }
        }
        let [signed, rest] = registers.map(|register| register.sign_exponent);
        let sign = emitter.ins().band_imm_u(signed, 1 << SIGN_SHIFT);
        let sign = match negates {
            true => emitter.ins().bxor_imm_u(sign, 1 << SIGN_SHIFT),
            false => sign,
        };
        let exponent = emitter.ins().band_imm_u(rest, EXPONENT_MASK);
        let merged = Register {
            significand: registers[1].significand,
            sign_exponent: emitter.ins().bor(sign, exponent),
        };
        let signed = match emitter.known.floats.double(f3) {
            Some(double) if f2 == f3 => Some((double, double.value)),
            // f0 is positive.
            Some(double) if f2 == 0 => Some((double, emitter.ins().fabs(double.value))),
            _ => None,
        };
        let Some((double, value)) = signed else {
            let rare = rare.unwrap_or_else(|| emitter.constant(0));
            return emitter.in_line(instruction, rare, |emitter, _| {
                write(emitter, instruction.f1(), merged);
            });
        };
        let value = if negates { emitter.ins().fneg(value) } else { value };
        deliver(emitter, instruction, double.is_single, rare, |_, _| {
            (merged, value)
        });
    });
}
