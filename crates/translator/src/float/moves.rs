//! Moves: between general and floating-point registers, and of signs.

use cranelift_codegen::ir::types::{F32, F64, I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use sidestep_ia64::encoding::{FloatTransfer, Instruction, Merge};

use super::memory::in_memory;
use super::{
    DOUBLE, EXPONENT_MASK, INTEGER_BIT, Precision, Register, SIGN_SHIFT, SINGLE, deliver, is_natval,
    is_writable, load_settled_words, number, read, write, write_integer,
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
            let is_single = precision.host == I32;
            return deliver(emitter, instruction, is_single, None, |emitter, aside| {
                precision.loaded(emitter, bits, aside)
            });
        }
        if form != FloatTransfer::Exponent {
            return write_integer(emitter, instruction.f1(), value);
        }
        let register = Register {
            significand: emitter.constant(INTEGER_BIT),
            sign_exponent: emitter.ins().band_imm_u(value, 1 << SIGN_SHIFT | EXPONENT_MASK),
        };
        write(emitter, instruction.f1(), register);
    });
}

/// `getf`.
pub fn get(emitter: &mut Emitter, instruction: &Instruction, form: FloatTransfer) {
    let target = Slot::general(instruction.r1());
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        if let Some(precision) = precision(form) {
            let never = emitter.ins().iconst(I8, 0);
            return emitter.in_line(instruction, never, |emitter, aside| {
                let number = in_memory(emitter, instruction.f2(), precision, aside);
                let bits = emitter.bits(number, precision.host);
                let bits = match precision.host {
                    I32 => emitter.ins().uextend(I64, bits),
                    _ => bits,
                };
                emitter.set(target, bits);
            });
        }
        if let Some(known) = emitter.known.floats.integer(instruction.f2() & 127)
            && form == FloatTransfer::Significand
        {
            return emitter.set(target, known);
        }
        let register = read(emitter, instruction.f2());
        let rare = is_natval(emitter, register);
        emitter.in_line(instruction, rare, |emitter, _| {
            let value = match form {
                FloatTransfer::Exponent => register.sign_exponent,
                _ => register.significand,
            };
            emitter.set(target, value);
        });
    });
}

/// `fmerge.s` and `fmerge.ns`: the sign of f2, or its opposite, and the rest of f3.
pub fn merge(emitter: &mut Emitter, instruction: &Instruction, merge: Merge) {
    let (f1, f2, f3) = (
        instruction.f1() & 127,
        instruction.f2() & 127,
        instruction.f3() & 127,
    );
    if !is_writable(f1) || merge == Merge::SignExponent {
        return emitter.perform(Some(instruction));
    }
    let negates = merge == Merge::NegatedSign;
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        if f2 == f3 && !negates && is_writable(f2) {
            return copy(emitter, f1, f2);
        }
        let is_extended = |&register: &u8| emitter.known.floats.is_extended(register);
        if [f2, f3].iter().any(is_extended) {
            return merge_images(emitter, instruction, negates);
        }
        let mut rare = None;
        let [signed, rest] = [f2, f3].map(|register| number(emitter, register, &mut rare));
        deliver(emitter, instruction, rest.is_single, rare, |emitter, _| {
            let value = match (f2 == f3, f2) {
                (true, _) => rest.value,
                // f0 is positive.
                (false, 0) => emitter.ins().fabs(rest.value),
                (false, _) => emitter.ins().fcopysign(rest.value, signed.value),
            };
            if negates { emitter.ins().fneg(value) } else { value }
        });
    });
}

/// Writes a register as another one is, whatever that holds.
fn copy(emitter: &mut Emitter, target: u8, source: u8) {
    let floats = &emitter.known.floats;
    let (double, integer) = (floats.double(source), floats.integer(source));
    let is_extended = floats.is_extended(source);
    let (words, _) = load_settled_words(emitter, source);
    write(emitter, target, words);
    emitter.known.floats.note(target, double);
    if let Some(known) = integer {
        emitter.known.floats.note_integer(target, known);
    }
    if is_extended {
        emitter.known.floats.note_extended(target);
    }
}

/// [`merge`] of registers that are none of double precision.
fn merge_images(emitter: &mut Emitter, instruction: &Instruction, negates: bool) {
    let numbers = [instruction.f2(), instruction.f3()];
    let registers = numbers.map(|register| read(emitter, register));
    let [signed, rest] = registers;
    let are_natvals = registers.map(|register| is_natval(emitter, register));
    let rare = emitter.ins().bor(are_natvals[0], are_natvals[1]);
    let sign = emitter.ins().band_imm_u(signed.sign_exponent, 1 << SIGN_SHIFT);
    let sign = match negates {
        true => emitter.ins().bxor_imm_u(sign, 1 << SIGN_SHIFT),
        false => sign,
    };
    let exponent = emitter.ins().band_imm_u(rest.sign_exponent, EXPONENT_MASK);
    let merged = Register {
        significand: rest.significand,
        sign_exponent: emitter.ins().bor(sign, exponent),
    };
    emitter.in_line(instruction, rare, |emitter, _| {
        write(emitter, instruction.f1(), merged);
    });
}
