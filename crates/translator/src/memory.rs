//! Loads and stores of general registers: in line where the table of translations has their granule, by the
//! interpreter's function where it has not.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use sidestep_ia64::encoding::{BaseUpdate, Instruction, LoadKind, Size, StoreKind};
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::UNAT;

use crate::emitter::Emitter;
use crate::slots::{Slot, Slots};

/// The type that an access moves.
fn kind_of(size: Size) -> Type {
    match size {
        Size::One => I8,
        Size::Two => I16,
        Size::Four => I32,
        Size::Eight => I64,
    }
}

/// The slots that an access changes, memory aside.
pub fn targets(instruction: &Instruction) -> Slots {
    Slots::written_by(instruction)
}

/// What an access adds to its base register, if anything.
pub fn increment(emitter: &mut Emitter, instruction: &Instruction, update: BaseUpdate) -> Option<Value> {
    match update {
        BaseUpdate::None => None,
        BaseUpdate::Register => Some(emitter.general(instruction.r2())),
        BaseUpdate::Immediate => Some(emitter.constant(instruction.immediate)),
    }
}

/// Changes the base register of an access.
pub fn update_base(
    emitter: &mut Emitter,
    instruction: &Instruction,
    address: Value,
    increment: Option<Value>,
) {
    if let Some(increment) = increment {
        let sum = emitter.ins().iadd(address, increment);
        emitter.set(Slot::general(instruction.r3()), sum);
    }
}

/// Finds the entry of the table of translations for an address. Answers whether the address, aligned and in its
/// granule, differs from the one that the entry serves for the access; and the host address.
pub fn translate(emitter: &mut Emitter, address: Value, bytes: u32, tag: usize) -> (Value, Value) {
    const GRANULE: u32 = layout::TRANSLATION_GRANULE_LOG2;
    const ENTRY_LOG2: u32 = layout::TRANSLATION_SIZE.trailing_zeros();
    const _: () =
        assert!(layout::TRANSLATION_SIZE.is_power_of_two() && layout::TRANSLATIONS_COUNT.is_power_of_two());
    let flags = emitter.state_memory();
    let index = emitter.ins().ushr_imm_u(address, i64::from(GRANULE - ENTRY_LOG2));
    let last = (layout::TRANSLATIONS_COUNT - 1) << ENTRY_LOG2;
    let index = emitter.ins().band_imm_u(index, last as i64);
    let translations = emitter.translations();
    let entry = emitter.ins().iadd(translations, index);
    let served = emitter.ins().load(I64, flags, entry, tag as i32);
    let looked_at = -1i64 << GRANULE | i64::from(bytes - 1);
    let looked_at = emitter.constant(looked_at);
    let wanted = emitter.ins().band(address, looked_at);
    let differs = emitter.ins().icmp(IntCC::NotEqual, wanted, served);
    let delta = emitter
        .ins()
        .load(I64, flags, entry, layout::TRANSLATION_DELTA as i32);
    (differs, emitter.ins().iadd(address, delta))
}

/// A value that is not zero where an advanced load may be remembered that what is stored at an address, aligned, has to
/// make forgotten.
pub fn remembers(emitter: &mut Emitter, address: Value) -> Value {
    let places = emitter.load_state(I64, layout::ADVANCED_LOADS);
    let place = emitter.ins().ushr_imm_u(address, i64::from(layout::PLACE_LOG2));
    // The host takes the low six bits of a count.
    let bit = emitter.ins().ushr(places, place);
    emitter.ins().band_imm_u(bit, 1)
}

/// Loads that write their register and nothing else, unless they do not hit.
pub fn load(
    emitter: &mut Emitter,
    instruction: &Instruction,
    size: Size,
    kind: LoadKind,
    update: BaseUpdate,
) {
    let is_ordered = kind == LoadKind::Acquire;
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let increment = increment(emitter, instruction, update);
        let (rare, host) = translate(emitter, address, size.bytes(), layout::TRANSLATION_READ);
        emitter.in_line(instruction, rare, |emitter, aside| {
            if is_ordered {
                // It may have to forget advanced loads.
                let advanced = emitter.load_state(I64, layout::ADVANCED_LOADS);
                emitter.unless(advanced, aside);
            }
            if kind == LoadKind::Fill {
                let nat = nat_bit(emitter, address);
                let nats = emitter.get(Slot::application(UNAT));
                let nat = emitter.ins().band(nats, nat);
                emitter.unless(nat, aside);
            }
            let (flags, kind) = (emitter.guest_memory(), kind_of(size));
            let value = match is_ordered {
                true => emitter.ins().atomic_load(kind, flags, host),
                false => emitter.ins().load(kind, flags, host, 0),
            };
            let value = match size {
                Size::Eight => value,
                _ => emitter.ins().uextend(I64, value),
            };
            update_base(emitter, instruction, address, increment);
            emitter.set(Slot::general(instruction.r1()), value);
        });
    });
}

/// The bit of AR.UNAT that belongs to an address.
fn nat_bit(emitter: &mut Emitter, address: Value) -> Value {
    let number = emitter.ins().ushr_imm_u(address, 3);
    let one = emitter.constant(1);
    // The host takes the low six bits of a count.
    emitter.ins().ishl(one, number)
}

/// Stores; those of registers with their NaT bit (`st8.spill`) note that it is clear.
pub fn store(
    emitter: &mut Emitter,
    instruction: &Instruction,
    size: Size,
    kind: StoreKind,
    update: BaseUpdate,
) {
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let value = emitter.general(instruction.r2());
        let increment = increment(emitter, instruction, update);
        let (rare, host) = translate(emitter, address, size.bytes(), layout::TRANSLATION_WRITE);
        emitter.in_line(instruction, rare, |emitter, aside| {
            let advanced = remembers(emitter, address);
            emitter.unless(advanced, aside);
            let value = match size {
                Size::Eight => value,
                _ => emitter.ins().ireduce(kind_of(size), value),
            };
            let flags = emitter.guest_memory();
            emitter.ins().store(flags, value, host, 0);
            if kind == StoreKind::Spill {
                let nat = nat_bit(emitter, address);
                let nats = emitter.get(Slot::application(UNAT));
                let nats = emitter.ins().band_not(nats, nat);
                emitter.set(Slot::application(UNAT), nats);
            }
            update_base(emitter, instruction, address, increment);
        });
    });
}

/// A prefetch that raises no fault only changes its base.
pub fn prefetch(emitter: &mut Emitter, instruction: &Instruction, update: BaseUpdate) {
    let address = emitter.general(instruction.r3());
    if let Some(increment) = increment(emitter, instruction, update) {
        let sum = emitter.ins().iadd(address, increment);
        emitter.set_under(instruction.predicate(), Slot::general(instruction.r3()), sum);
    }
}
