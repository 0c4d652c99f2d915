//! Loads and stores of the formats that one access moves.

use cranelift_codegen::ir::types::{F32, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::encoding::{BaseUpdate, FloatFormat, Instruction, LoadKind};
use sidestep_ia64::layout;

use super::{DOUBLE, SINGLE, deliver, integer, is_natval, is_writable, read, write};
use crate::emitter::Emitter;
use crate::memory::{increment, remembers, targets, translate, update_base};

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
        FloatFormat::Extended | FloatFormat::Register => return emitter.perform(Some(instruction)),
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

/// `stf`.
pub fn store(emitter: &mut Emitter, instruction: &Instruction, format: FloatFormat, update: BaseUpdate) {
    if matches!(format, FloatFormat::Extended | FloatFormat::Register) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let increment = increment(emitter, instruction, update);
        let (difference, host) = translate(emitter, address, format.bytes(), layout::TRANSLATION_WRITE);
        let advanced = remembers(emitter, address);
        let rare = emitter.ins().bor(difference, advanced);
        let (rare, stored) = match number(emitter, instruction.f2() & 127, format) {
            Some(number) => (rare, number),
            None => {
                let register = read(emitter, instruction.f2());
                let is_natval = is_natval(emitter, register);
                let is_natval = emitter.ins().uextend(I64, is_natval);
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
        emitter.in_line(instruction, rare, |emitter, _| {
            let flags = emitter.guest_memory();
            emitter.ins().store(flags, stored, host, 0);
            update_base(emitter, instruction, address, increment);
        });
    });
}

/// The value to store of a register that is at hand as a double, if the format holds that.
fn number(emitter: &mut Emitter, register: u8, format: FloatFormat) -> Option<Value> {
    let double = emitter.floats.double(register)?;
    match format {
        FloatFormat::Double => Some(double.value),
        FloatFormat::Single if double.is_single => Some(emitter.ins().fdemote(F32, double.value)),
        _ => None,
    }
}
