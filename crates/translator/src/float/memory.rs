//! Loads and stores of the formats that one access moves.

use cranelift_codegen::ir::types::{F32, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::encoding::{BaseUpdate, FloatFormat, Instruction, LoadKind};
use sidestep_ia64::layout;

use super::{
    DOUBLE, EXPONENT_MASK, Register, SIGN_SHIFT, SINGLE, deliver, integer, is_natval, is_writable, read,
    unless_number, write,
};
use crate::emitter::Emitter;
use crate::memory::{increment, remembers, targets, translate, update_base};

/// Bytes of a spill image.
const SPILL_BYTES: u32 = 16;

/// `ldf`.
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
        FloatFormat::Register => return fill(emitter, instruction, kind, update),
        FloatFormat::Extended => return emitter.perform(Some(instruction)),
    };
    if !is_usual || !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let increment = increment(emitter, instruction, update);
        let (rare, host) = translate(emitter, address, format.bytes(), layout::TRANSLATION_READ);
        let flags = emitter.guest_memory();
        let Some(precision) = precision else {
            return emitter.in_line(instruction, rare, |emitter, _| {
                let bits = emitter.ins().load(I64, flags, host, 0);
                let value = integer(emitter, bits);
                update_base(emitter, instruction, address, increment);
                write(emitter, instruction.f1(), value);
            });
        };
        deliver(
            emitter,
            instruction,
            format == FloatFormat::Single,
            Some(rare),
            |emitter, aside| {
                let bits = emitter.ins().load(precision.host, flags, host, 0);
                let bits = match format {
                    FloatFormat::Single => emitter.ins().uextend(I64, bits),
                    _ => bits,
                };
                let (register, is_unusual) = precision.to_register(emitter, bits);
                emitter.unless(is_unusual, aside);
                update_base(emitter, instruction, address, increment);
                let value = precision.value(emitter, bits);
                (register, value)
            },
        );
    });
}

/// `ldf.fill`: both words of a spill image, as registers are kept.
fn fill(emitter: &mut Emitter, instruction: &Instruction, kind: LoadKind, update: BaseUpdate) {
    if !matches!(kind, LoadKind::Normal | LoadKind::Fill) || !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let increment = increment(emitter, instruction, update);
        let (rare, host) = translate(emitter, address, SPILL_BYTES, layout::TRANSLATION_READ);
        emitter.in_line(instruction, rare, |emitter, _| {
            let flags = emitter.guest_memory();
            let [significand, upper] = [0, 8].map(|offset| emitter.ins().load(I64, flags, host, offset));
            let sign_exponent = emitter.ins().band_imm_u(upper, 1 << SIGN_SHIFT | EXPONENT_MASK);
            update_base(emitter, instruction, address, increment);
            let value = Register {
                significand,
                sign_exponent,
            };
            write(emitter, instruction.f1(), value);
        });
    });
}

/// `stf.spill`.
fn spill(emitter: &mut Emitter, instruction: &Instruction, update: BaseUpdate) {
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let increment = increment(emitter, instruction, update);
        let (rare, host) = translate(emitter, address, SPILL_BYTES, layout::TRANSLATION_WRITE);
        emitter.in_line(instruction, rare, |emitter, aside| {
            let advanced = remembers(emitter, address);
            emitter.unless(advanced, aside);
            let register = read(emitter, instruction.f2());
            let flags = emitter.guest_memory();
            emitter.ins().store(flags, register.significand, host, 0);
            emitter.ins().store(flags, register.sign_exponent, host, 8);
            update_base(emitter, instruction, address, increment);
        });
    });
}

/// `stf`.
pub fn store(emitter: &mut Emitter, instruction: &Instruction, format: FloatFormat, update: BaseUpdate) {
    match format {
        FloatFormat::Register => return spill(emitter, instruction, update),
        FloatFormat::Extended => return emitter.perform(Some(instruction)),
        FloatFormat::Single | FloatFormat::Double | FloatFormat::Significand => {}
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let increment = increment(emitter, instruction, update);
        let (rare, host) = translate(emitter, address, format.bytes(), layout::TRANSLATION_WRITE);
        let (rare, stored) = match number(emitter, instruction.f2() & 127, format, rare) {
            Some(known) => known,
            None => {
                let register = read(emitter, instruction.f2());
                let is_natval = is_natval(emitter, register);
                let bits = match format {
                    FloatFormat::Single => {
                        let bits = SINGLE.of_register(emitter, register);
                        emitter.ins().ireduce(I32, bits)
                    }
                    FloatFormat::Double => DOUBLE.of_register(emitter, register),
                    _ => register.significand,
                };
                (emitter.ins().bor(rare, is_natval), bits)
            }
        };
        emitter.in_line(instruction, rare, |emitter, aside| {
            let advanced = remembers(emitter, address);
            emitter.unless(advanced, aside);
            let flags = emitter.guest_memory();
            emitter.ins().store(flags, stored, host, 0);
            update_base(emitter, instruction, address, increment);
        });
    });
}

/// The value to store of a register that is at hand as a double, if the format holds that, and what is true in place of
/// `rare` where it is another.
fn number(emitter: &mut Emitter, register: u8, format: FloatFormat, rare: Value) -> Option<(Value, Value)> {
    let double = emitter.known.floats.double(register)?;
    let number = match format {
        FloatFormat::Double => double.value,
        FloatFormat::Single if double.is_single => emitter.ins().fdemote(F32, double.value),
        _ => return None,
    };
    let mut rare = Some(rare);
    unless_number(emitter, double, &mut rare);
    Some((rare?, number))
}
