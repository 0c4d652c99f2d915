//! Loads and stores of the formats that one access moves.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F64, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use sidestep_ia64::encoding::{BaseUpdate, FloatFormat, Instruction, LoadKind};
use sidestep_ia64::layout;

use super::{
    DOUBLE, EXPONENT_MASK, Precision, Register, SIGN_SHIFT, SINGLE, deliver, deliver_integer, double, either,
    is_natval, is_writable, load_words, read, unless_number, write, write_double,
};
use crate::advanced::{self, Entry, Standing, Target};
use crate::emitter::{Double, Emitter};
use crate::memory::{Place, find_for_load, find_for_store, made, targets, update_base};

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
    let precision = match format {
        FloatFormat::Single => Some(SINGLE),
        FloatFormat::Double => Some(DOUBLE),
        FloatFormat::Significand => None,
        FloatFormat::Register => return fill(emitter, instruction, kind, update),
        FloatFormat::Extended => return emitter.perform(Some(instruction)),
    };
    let is_usual = match kind {
        LoadKind::Normal | LoadKind::Speculative => true,
        LoadKind::Advanced | LoadKind::CheckClear => precision.is_some(),
        _ => false,
    };
    if !is_usual || !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    let target = Target::Floating(instruction.f1());
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        if let (LoadKind::CheckClear, Some(precision)) = (kind, precision) {
            return check_load(emitter, instruction, (format, precision), (address, update));
        }
        let place = find_for_load(emitter, address, format.bytes(), kind);
        let updated = update_base(emitter, instruction, address, update);
        let Some(precision) = precision else {
            return deliver_integer(emitter, instruction, None, |emitter, aside| {
                let (flags, host) = place.enter(emitter, aside);
                let bits = emitter.ins().load(I64, flags, host, 0);
                made(emitter, updated);
                bits
            });
        };
        deliver(
            emitter,
            instruction,
            format == FloatFormat::Single,
            None,
            |emitter, aside| {
                let bits = load_number(emitter, place, precision, aside);
                if kind == LoadKind::Advanced {
                    let entry = Entry::find(emitter, target, aside);
                    entry.enter(emitter, address, format.bytes());
                }
                made(emitter, updated);
                precision.value(emitter, bits)
            },
        );
    });
}

/// The bits of a number that stands in memory. Goes aside where a register does not hold it as a double.
fn load_number(emitter: &mut Emitter, place: Place, precision: Precision, aside: Block) -> Value {
    let (flags, host) = place.enter(emitter, aside);
    let bits = emitter.ins().load(precision.host, flags, host, 0);
    let bits = match precision.host {
        I64 => bits,
        _ => emitter.ins().uextend(I64, bits),
    };
    precision.unless_double(emitter, bits, aside);
    bits
}

/// `ldf.c.clr`: a load that is done where the advanced load to its register no longer stands, or others may have
/// written memory.
fn check_load(
    emitter: &mut Emitter,
    instruction: &Instruction,
    (format, precision): (FloatFormat, Precision),
    (address, update): (Value, BaseUpdate),
) {
    let register = instruction.f1() & 127;
    let kept = double(emitter, register);
    let place = find_for_load(emitter, address, format.bytes(), LoadKind::CheckClear);
    let updated = update_base(emitter, instruction, address, update);
    let is_single = kept.is_single && format == FloatFormat::Single;
    emitter.deliver(instruction, (register, is_single), None, |emitter, aside| {
        let [again, join] = [(); 2].map(|()| emitter.builder.create_block());
        let value = emitter.builder.append_block_param(join, F64);
        let standing = Standing::find(emitter, Target::Floating(register), aside, again);
        standing.forget(emitter);
        let is_shared = emitter.load_state(I64, layout::SHARED);
        emitter
            .ins()
            .brif(is_shared, again, &[], join, &[kept.value.into()]);
        emitter.begin(again);
        let before = emitter.known.floats.clone();
        // Another check finds nothing to forget.
        let bits = load_number(emitter, place, precision, aside);
        advanced::count_failed(emitter);
        let loaded = precision.value(emitter, bits);
        write_double(emitter, register, loaded);
        emitter.ins().jump(join, &[loaded.into()]);
        emitter.begin(join);
        emitter.known.floats.meet(&before);
        made(emitter, updated);
        value
    });
}

/// `ldf.fill`: both words of a spill image, as registers are kept.
fn fill(emitter: &mut Emitter, instruction: &Instruction, kind: LoadKind, update: BaseUpdate) {
    if !matches!(kind, LoadKind::Normal | LoadKind::Fill) || !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let place = find_for_load(emitter, address, SPILL_BYTES, kind);
        let updated = update_base(emitter, instruction, address, update);
        emitter.in_line(instruction, None, |emitter, aside| {
            let (flags, host) = place.enter(emitter, aside);
            let significand = emitter.ins().load(I64, flags, host, 0);
            // Both words are aligned in one page.
            let flags = emitter.guest_memory();
            let upper = emitter.ins().load(I64, flags, host, 8);
            let sign_exponent = emitter.ins().band_imm_u(upper, 1 << SIGN_SHIFT | EXPONENT_MASK);
            made(emitter, updated);
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
        let place = find_for_store(emitter, address, SPILL_BYTES);
        let updated = update_base(emitter, instruction, address, update);
        emitter.in_line(instruction, None, |emitter, aside| {
            let register = read(emitter, instruction.f2());
            let significand = emitter.at_hand(register.significand);
            let (flags, host) = place.enter(emitter, aside);
            emitter.ins().store(flags, significand, host, 0);
            let flags = emitter.guest_memory();
            emitter.ins().store(flags, register.sign_exponent, host, 8);
            advanced::store(emitter, address, SPILL_BYTES);
            made(emitter, updated);
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
        let place = find_for_store(emitter, address, format.bytes());
        let updated = update_base(emitter, instruction, address, update);
        emitter.in_line(instruction, None, |emitter, aside| {
            let stored = match format {
                FloatFormat::Double => in_memory(emitter, instruction.f2(), DOUBLE, aside),
                FloatFormat::Single => in_memory(emitter, instruction.f2(), SINGLE, aside),
                _ => match emitter.known.floats.integer(instruction.f2() & 127) {
                    Some(known) => known,
                    None => {
                        let register = read(emitter, instruction.f2());
                        let is_natval = is_natval(emitter, register);
                        emitter.unless(is_natval, aside);
                        register.significand
                    }
                },
            };
            let stored = emitter.number_at_hand(stored);
            let (flags, host) = place.enter(emitter, aside);
            emitter.ins().store(flags, stored, host, 0);
            advanced::store(emitter, address, format.bytes());
            made(emitter, updated);
        });
    });
}

/// A register as a format has it in memory. Goes aside for a NaTVal, and where a number would lose bits.
pub(super) fn in_memory(emitter: &mut Emitter, register: u8, precision: Precision, aside: Block) -> Value {
    let register = register & 127;
    if !is_writable(register) || emitter.known.floats.double(register).is_some() {
        let known = double(emitter, register);
        return narrowed_in_memory(emitter, known, precision, aside);
    }
    let (words, is_double) = load_words(emitter, register);
    let [number, image, join] = [(); 3].map(|()| emitter.builder.create_block());
    let stored = emitter.builder.append_block_param(join, precision.host);
    emitter.builder.set_cold_block(image);
    emitter.ins().brif(is_double, number, &[], image, &[]);
    emitter.begin(image);
    let is_natval = is_natval(emitter, words);
    emitter.unless(is_natval, aside);
    let bits = precision.of_register(emitter, words);
    let bits = emitter.bits(bits, precision.host);
    emitter.ins().jump(join, &[bits.into()]);
    emitter.begin(number);
    let bits = match precision.host {
        I64 => words.significand,
        _ => {
            let value = emitter.ins().bitcast(F64, MemFlagsData::new(), words.significand);
            let double = Double {
                value,
                is_single: false,
            };
            let narrow = narrowed_in_memory(emitter, double, precision, aside);
            emitter.bits(narrow, precision.host)
        }
    };
    emitter.ins().jump(join, &[bits.into()]);
    emitter.begin(join);
    stored
}

/// A double in the host's format of a precision. Goes aside where that has it not exactly, and for a NaN.
fn narrowed_in_memory(emitter: &mut Emitter, double: Double, precision: Precision, aside: Block) -> Value {
    let mut rare = None;
    unless_number(emitter, double, &mut rare);
    let narrow = match precision.host {
        I64 => double.value,
        _ => emitter.ins().fdemote(F32, double.value),
    };
    if precision.host != I64 && !double.is_single {
        let wide = emitter.ins().fpromote(F64, narrow);
        let differs = emitter.ins().fcmp(FloatCC::NotEqual, wide, double.value);
        // Of a number that is denormal in the format an image's bits are dropped.
        let magnitude = emitter.ins().fabs(narrow);
        let smallest = emitter.ins().f32const(f32::MIN_POSITIVE);
        let is_small = emitter.ins().fcmp(FloatCC::LessThan, magnitude, smallest);
        let zero = emitter.ins().f32const(0.0);
        let is_other = emitter.ins().fcmp(FloatCC::NotEqual, narrow, zero);
        let is_denormal = emitter.ins().band(is_small, is_other);
        let is_rare = either(emitter, Some(differs), is_denormal);
        rare = Some(either(emitter, rare, is_rare));
    }
    if let Some(rare) = rare {
        emitter.unless(rare, aside);
    }
    narrow
}
