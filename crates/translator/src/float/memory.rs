//! Loads and stores of the formats that one access moves.

use std::mem::replace;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I16, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use sidestep_ia64::encoding::{BaseUpdate, FloatFormat, Instruction, LoadKind};
use sidestep_ia64::layout;

use super::{
    DOUBLE, EXPONENT_MASK, Precision, Register, SIGN_SHIFT, SINGLE, deliver_integer, deliver_loaded, double,
    is_natval, is_writable, load_settled_words, read, unless_number, write, write_double, write_integer,
};
use crate::advanced::{self, Entry, Standing, Target};
use crate::checked_loads::{CheckedLoad, tag_of};
use crate::emitter::{Double, Emitter, rotates};
use crate::memory::{Place, find_for_load, find_for_store, made, targets, update_base};

/// Bytes of an image that has all of a register, and of what such ones are aligned to that leave the upper word's high
/// bits out.
const IMAGE_BYTES: u32 = 16;
/// Sign and exponent of the double-extended format, and what makes its exponent a register's.
const EXTENDED_SIGN_SHIFT: i64 = 15;
const EXTENDED_EXPONENT_MASK: i64 = 0x7fff;
const EXTENDED_REBIAS: i64 = 0xffff - 0x3fff;

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
        FloatFormat::Register | FloatFormat::Extended => {
            return load_image(emitter, instruction, format, kind, update);
        }
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
            let waiting = emitter.take_checked_load(tag_of(instruction.f1(), true));
            return match waiting {
                Some(load) => check(emitter, instruction, (load, format, precision), (address, update)),
                None => check_load(emitter, instruction, (format, precision), (address, update)),
            };
        }
        // The table does not have one that is checked in its block.
        let is_checked = emitter.is_checked_load();
        let kind = if is_checked { LoadKind::Normal } else { kind };
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
        let is_single = format == FloatFormat::Single;
        deliver_loaded(emitter, instruction, (kind, is_single), |emitter, asides| {
            let value = load_number(emitter, place, precision, asides);
            if kind == LoadKind::Advanced {
                let entry = Entry::find(emitter, target, asides[0]);
                entry.enter(emitter, address, format.bytes());
            }
            made(emitter, updated);
            value
        });
        if is_checked {
            let tag = tag_of(instruction.f1(), true);
            emitter.note_checked_load(tag, address, format.bytes());
        }
    });
}

/// The check of a load that waits for it: done again where a store has hit that, or others may have written memory.
fn check(
    emitter: &mut Emitter,
    instruction: &Instruction,
    (load, format, precision): (CheckedLoad, FloatFormat, Precision),
    (address, update): (Value, BaseUpdate),
) {
    let register = instruction.f1();
    let kept = double(emitter, register);
    let is_single = kept.is_single && format == FloatFormat::Single;
    let place = find_for_load(emitter, address, format.bytes(), LoadKind::Normal);
    let updated = update_base(emitter, instruction, address, update);
    emitter.load_or_leave((register, is_single), |emitter, asides| {
        let [again, join] = [(); 2].map(|()| emitter.builder.create_block());
        let value = emitter.builder.append_block_param(join, F64);
        emitter.keep_or_load_again(&load, kept.value, (again, join));
        load_again(emitter, register, (again, join), |emitter| {
            load_number(emitter, place, precision, asides)
        });
        made(emitter, updated);
        value
    });
}

/// Emits in a block what loads a double to a register once more, and goes on in another one.
fn load_again(
    emitter: &mut Emitter,
    register: u8,
    (again, join): (Block, Block),
    load: impl FnOnce(&mut Emitter) -> Value,
) {
    let was_rare = replace(&mut emitter.known.is_rare, true);
    emitter.begin(again);
    let before = emitter.known.floats.clone();
    let loaded = load(emitter);
    advanced::count_failed(emitter);
    write_double(emitter, register, loaded);
    emitter.ins().jump(join, &[loaded.into()]);
    emitter.known.is_rare = was_rare;
    emitter.begin(join);
    emitter.known.floats.meet(&before);
}

/// The number that stands in memory, for a register. Goes to one of two blocks where the access is unusual, or where a
/// register does not hold the number as a double.
fn load_number(
    emitter: &mut Emitter,
    place: Place,
    precision: Precision,
    [aside, unusual]: [Block; 2],
) -> Value {
    let (flags, host) = place.enter(emitter, aside);
    if precision.host == I64 && emitter.may_raise_by_loading() {
        let value = emitter.ins().load(F64, flags, host, 0);
        // The host raises an exception where it is denormal.
        let is_nan = emitter.ins().fcmp(FloatCC::Unordered, value, value);
        emitter.unless(is_nan, unusual);
        emitter.note_number(value);
        emitter.known.floats.note_unlooked();
        return value;
    }
    let bits = emitter.ins().load(precision.host, flags, host, 0);
    let bits = match precision.host {
        I64 => bits,
        _ => emitter.ins().uextend(I64, bits),
    };
    precision.loaded(emitter, bits, unusual)
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
        // Another check finds nothing to forget.
        load_again(emitter, register, (again, join), |emitter| {
            load_number(emitter, place, precision, [aside; 2])
        });
        made(emitter, updated);
        value
    });
}

/// `ldf.fill`, both words of a spill image, as registers are kept; and `ldfe`.
fn load_image(
    emitter: &mut Emitter,
    instruction: &Instruction,
    format: FloatFormat,
    kind: LoadKind,
    update: BaseUpdate,
) {
    if !matches!(kind, LoadKind::Normal | LoadKind::Fill) || !is_writable(instruction.f1()) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let place = find_for_load(emitter, address, IMAGE_BYTES, kind);
        let updated = update_base(emitter, instruction, address, update);
        emitter.in_line(instruction, None, |emitter, aside| {
            let (flags, host) = place.enter(emitter, aside);
            let significand = emitter.ins().load(I64, flags, host, 0);
            // Both words are aligned in one page.
            let flags = emitter.guest_memory();
            let sign_exponent = match format {
                FloatFormat::Extended => {
                    let upper = emitter.ins().uload16(I64, flags, host, 8);
                    of_extended(emitter, upper)
                }
                _ => {
                    let upper = emitter.ins().load(I64, flags, host, 8);
                    emitter.ins().band_imm_u(upper, 1 << SIGN_SHIFT | EXPONENT_MASK)
                }
            };
            made(emitter, updated);
            let value = Register {
                significand,
                sign_exponent,
            };
            write(emitter, instruction.f1(), value);
        });
    });
    emitter.known.floats.note_extended(instruction.f1() & 127);
}

/// The word of sign and exponent for that of the double-extended format.
fn of_extended(emitter: &mut Emitter, upper: Value) -> Value {
    let sign = emitter.ins().ushr_imm_u(upper, EXTENDED_SIGN_SHIFT);
    let sign = emitter.ins().ishl_imm_u(sign, SIGN_SHIFT);
    let exponent = emitter.ins().band_imm_u(upper, EXTENDED_EXPONENT_MASK);
    let rebiased = emitter.ins().iadd_imm_s(exponent, EXTENDED_REBIAS);
    let is_special = emitter
        .ins()
        .icmp_imm_u(IntCC::Equal, exponent, EXTENDED_EXPONENT_MASK);
    let special = emitter.constant(EXPONENT_MASK);
    let rebiased = emitter.ins().select(is_special, special, rebiased);
    let rebiased = emitter.ins().select(exponent, rebiased, exponent);
    emitter.ins().bor(sign, rebiased)
}

/// `stf.spill` and `stfe`.
fn store_image(emitter: &mut Emitter, instruction: &Instruction, format: FloatFormat, update: BaseUpdate) {
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let place = find_for_store(emitter, address, IMAGE_BYTES);
        let updated = update_base(emitter, instruction, address, update);
        emitter.in_line(instruction, None, |emitter, aside| {
            let register = read(emitter, instruction.f2());
            let significand = emitter.at_hand(register.significand);
            if format == FloatFormat::Extended {
                let is_natval = is_natval(emitter, register);
                emitter.unless(is_natval, aside);
            }
            let (flags, host) = place.enter(emitter, aside);
            emitter.ins().store(flags, significand, host, 0);
            let flags = emitter.guest_memory();
            if format == FloatFormat::Extended {
                let upper = to_extended(emitter, register.sign_exponent);
                emitter.ins().store(flags, upper, host, 8);
                advanced::store(emitter, address, 8);
                let upper = emitter.ins().iadd_imm_s(address, 8);
                advanced::store(emitter, upper, 2);
            } else {
                emitter.ins().store(flags, register.sign_exponent, host, 8);
                advanced::store(emitter, address, IMAGE_BYTES);
            }
            made(emitter, updated);
        });
        emitter.look_at_checked_loads(address, format.bytes());
    });
}

/// The word of sign and exponent of the double-extended format: bits of the exponent that it lacks are dropped.
fn to_extended(emitter: &mut Emitter, sign_exponent: Value) -> Value {
    let low_bits = EXTENDED_SIGN_SHIFT - 1;
    let low = emitter.ins().band_imm_u(sign_exponent, (1 << low_bits) - 1);
    // The sign, and the uppermost bit of the exponent.
    let high = emitter.ins().ushr_imm_u(sign_exponent, SIGN_SHIFT - 1);
    let high = emitter.ins().ishl_imm_u(high, low_bits);
    let upper = emitter.ins().bor(high, low);
    emitter.ins().ireduce(I16, upper)
}

/// `ldfp`: two numbers or integers that stand beside each other.
pub fn load_pair(
    emitter: &mut Emitter,
    instruction: &Instruction,
    format: FloatFormat,
    kind: LoadKind,
    update: BaseUpdate,
) {
    let pair = [instruction.f1(), instruction.f2()].map(|register| register & 127);
    let precision = match format {
        FloatFormat::Single => Some(SINGLE),
        FloatFormat::Double => Some(DOUBLE),
        _ => None,
    };
    // One has to have an even number and the other an odd one, also where both are renamed.
    let are_legal = (pair[0] ^ pair[1]) & 1 != 0 && rotates(pair[0]) == rotates(pair[1]);
    if kind != LoadKind::Normal || !are_legal || !pair.into_iter().all(is_writable) {
        return emitter.perform(Some(instruction));
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let place = find_for_load(emitter, address, 2 * format.bytes(), kind);
        let updated = update_base(emitter, instruction, address, update);
        emitter.in_line(instruction, None, |emitter, aside| {
            let (flags, host) = place.enter(emitter, aside);
            let (first, second) = match format {
                FloatFormat::Single => {
                    let both = emitter.ins().load(I64, flags, host, 0);
                    let first = emitter.extend(both, 4, false);
                    (first, emitter.ins().ushr_imm_u(both, 32))
                }
                _ => {
                    let first = emitter.ins().load(I64, flags, host, 0);
                    // Both are aligned in one page.
                    let flags = emitter.guest_memory();
                    (first, emitter.ins().load(I64, flags, host, 8))
                }
            };
            if let Some(precision) = precision {
                for bits in [first, second] {
                    precision.unless_double(emitter, bits, aside);
                }
            }
            made(emitter, updated);
            for (register, bits) in pair.into_iter().zip([first, second]) {
                match precision {
                    Some(precision) => {
                        let value = precision.value(emitter, bits);
                        write_double(emitter, register, value);
                    }
                    None => write_integer(emitter, register, bits),
                }
            }
        });
    });
}

/// `stf`.
pub fn store(emitter: &mut Emitter, instruction: &Instruction, format: FloatFormat, update: BaseUpdate) {
    match format {
        FloatFormat::Register | FloatFormat::Extended => {
            return store_image(emitter, instruction, format, update);
        }
        FloatFormat::Single | FloatFormat::Double | FloatFormat::Significand => {}
    }
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let place = find_for_store(emitter, address, format.bytes());
        let updated = update_base(emitter, instruction, address, update);
        emitter.store_or_leave(instruction, |emitter, aside| {
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
        emitter.look_at_checked_loads(address, format.bytes());
    });
}

/// A register as a format has it in memory. Goes aside for a NaTVal, and where a number would lose bits.
pub(super) fn in_memory(emitter: &mut Emitter, register: u8, precision: Precision, aside: Block) -> Value {
    let register = register & 127;
    if !is_writable(register) || emitter.known.floats.double(register).is_some() {
        let known = double(emitter, register);
        return narrowed_in_memory(emitter, known, precision, aside);
    }
    let (words, is_double) = load_settled_words(emitter, register);
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

/// A double in the host's format of a precision. Goes aside where that has it not exactly, and where there is none.
fn narrowed_in_memory(emitter: &mut Emitter, double: Double, precision: Precision, aside: Block) -> Value {
    let mut is_none = None;
    unless_number(emitter, double, &mut is_none);
    if let Some(is_none) = is_none {
        emitter.unless(is_none, aside);
    }
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
        let rare = emitter.ins().bor(differs, is_denormal);
        emitter.unless(rare, aside);
    }
    narrow
}
