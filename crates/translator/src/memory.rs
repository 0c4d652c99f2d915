//! Loads and stores of general registers, semaphores and fences: in line where they lie in a window of the program's
//! memory or the table of translations has their granule, by the interpreter's function where not.

mod checked;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, Block, InstBuilder, MemFlagsData, Type, Value};
use sidestep_ia64::encoding::{BaseUpdate, Instruction, LoadKind, Size, StoreKind};
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::{CCV, UNAT};

use crate::advanced::{self, Entry, Standing, Target};
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
fn increment(emitter: &mut Emitter, instruction: &Instruction, update: BaseUpdate) -> Option<Value> {
    match update {
        BaseUpdate::None => None,
        BaseUpdate::Register => Some(emitter.general(instruction.r2())),
        BaseUpdate::Immediate => Some(emitter.constant(instruction.immediate)),
    }
}

/// A base register that an access changes, and its value then: at hand from now on, and in memory once the access has
/// been [made](made).
pub type Updated = Option<(Slot, Value)>;

/// Changes the base register of an access to an address, before that is made.
pub fn update_base(
    emitter: &mut Emitter,
    instruction: &Instruction,
    address: Value,
    update: BaseUpdate,
) -> Updated {
    let increment = increment(emitter, instruction, update)?;
    let sum = emitter.ins().iadd(address, increment);
    if update == BaseUpdate::Immediate {
        emitter.known.windows.note_near(address, sum);
    }
    let base = Slot::general(instruction.r3());
    emitter.settle(base, sum);
    Some((base, sum))
}

/// Stores the base register of an access that was made.
pub fn made(emitter: &mut Emitter, updated: Updated) {
    if let Some((base, sum)) = updated {
        emitter.keep(sum, base);
    }
}

/// Where an access goes in the host's memory, if it may.
#[derive(Clone, Copy)]
pub struct Place {
    address: Value,
    check: Check,
}

/// What tells whether the access may go there.
#[derive(Clone, Copy)]
enum Check {
    /// The bits that the window changes in the address, and where the processor has which of its bits are zero if it
    /// is in the window; then the host tells.
    Window(Value, usize),
    /// What is to be added to the address, and a value that is zero if it may.
    Table(Value, Value),
}

/// Finds the place of a load of so many bytes from an address: in the windows if there are any, or else in the table of
/// translations. Where a speculative load is to find nothing, the host would take its time to tell.
pub fn find_for_load(emitter: &mut Emitter, address: Value, bytes: u32, kind: LoadKind) -> Place {
    match emitter.has_windows() && kind != LoadKind::Speculative {
        true => find_in_window(emitter, address, bytes),
        false => find_in_table(emitter, address, bytes, layout::TRANSLATION_READ),
    }
}

/// As [`find_for_load`], of a store.
pub fn find_for_store(emitter: &mut Emitter, address: Value, bytes: u32) -> Place {
    match emitter.has_windows() {
        true => find_in_window(emitter, address, bytes),
        false => find_in_table(emitter, address, bytes, layout::TRANSLATION_WRITE),
    }
}

fn find_in_window(emitter: &mut Emitter, address: Value, bytes: u32) -> Place {
    let outside = layout::WINDOW_OUTSIDE + bytes.trailing_zeros() as usize * 8;
    Place {
        address,
        check: Check::Window(emitter.window_difference(address), outside),
    }
}

/// The table's entries have in `tag` what they serve for.
fn find_in_table(emitter: &mut Emitter, address: Value, bytes: u32, tag: usize) -> Place {
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
    Place {
        address,
        check: Check::Table(delta, differs),
    }
}

impl Place {
    /// Goes aside unless the access may go there; answers the host address and the flags of the access, which is to
    /// follow at once.
    pub fn enter(self, emitter: &mut Emitter, aside: Block) -> (MemFlagsData, Value) {
        let Place { address, check } = self;
        match check {
            Check::Table(delta, is_elsewhere) => {
                emitter.unless(is_elsewhere, aside);
                (emitter.guest_memory(), emitter.ins().iadd(address, delta))
            }
            Check::Window(difference, outside) => {
                let outside = emitter.load_state(I64, outside);
                // As late as may be: so that it is in a register of the host's where the access stands.
                let host = emitter.ins().bxor(address, difference);
                let is_elsewhere = emitter.ins().band(address, outside);
                emitter.unless(is_elsewhere, aside);
                (emitter.window_memory(), host)
            }
        }
    }
}

/// Goes aside where advanced loads are known, which may have to be forgotten.
fn unless_advanced(emitter: &mut Emitter, aside: Block) {
    let advanced = emitter.load_state(I64, layout::ADVANCED_LOADS);
    emitter.unless(advanced, aside);
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
    if kind == LoadKind::CheckClear {
        return match emitter.take_checked_load(instruction.r1()) {
            Some(load) => checked::check(emitter, instruction, load, size, update),
            None => check_load(emitter, instruction, size, update),
        };
    }
    // The table does not have one that is checked in its block.
    let is_checked = emitter.is_checked_load();
    let kind = if is_checked { LoadKind::Normal } else { kind };
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let place = find_for_load(emitter, address, size.bytes(), kind);
        let updated = update_base(emitter, instruction, address, update);
        let common = |emitter: &mut Emitter, aside| {
            if is_ordered {
                unless_advanced(emitter, aside);
            }
            if kind == LoadKind::Fill {
                let nat = nat_bit(emitter, address);
                let nats = emitter.get(Slot::application(UNAT));
                let nat = emitter.ins().band(nats, nat);
                emitter.unless(nat, aside);
            }
            let (flags, host) = place.enter(emitter, aside);
            let value = match (is_ordered, size) {
                (false, _) => load_extended(emitter, size, flags, host),
                (true, Size::Eight) => emitter.ins().atomic_load(I64, flags, host),
                (true, _) => {
                    let value = emitter.ins().atomic_load(kind_of(size), flags, host);
                    emitter.ins().uextend(I64, value)
                }
            };
            if kind == LoadKind::Advanced {
                let entry = Entry::find(emitter, Target::General(instruction.r1()), aside);
                entry.enter(emitter, address, size.bytes());
            }
            made(emitter, updated);
            emitter.set(Slot::general(instruction.r1()), value);
        };
        match kind {
            LoadKind::Normal | LoadKind::Bias | LoadKind::Fill => emitter.access(instruction, common),
            _ => emitter.in_line(instruction, None, common),
        }
        if is_checked {
            emitter.note_checked_load(instruction.r1(), address, size.bytes());
        }
    });
}

/// What memory holds, with zeros above.
fn load_extended(emitter: &mut Emitter, size: Size, flags: MemFlagsData, host: Value) -> Value {
    match size {
        Size::One => emitter.ins().uload8(I64, flags, host, 0),
        Size::Two => emitter.ins().uload16(I64, flags, host, 0),
        Size::Four => emitter.ins().uload32(flags, host, 0),
        Size::Eight => emitter.ins().load(I64, flags, host, 0),
    }
}

/// A load that is done where the advanced load to its register no longer stands, or others may have written memory.
fn check_load(emitter: &mut Emitter, instruction: &Instruction, size: Size, update: BaseUpdate) {
    let target = Slot::general(instruction.r1());
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let kept = emitter.get(target);
        let address = emitter.general(instruction.r3());
        let place = find_for_load(emitter, address, size.bytes(), LoadKind::CheckClear);
        let updated = update_base(emitter, instruction, address, update);
        emitter.in_line(instruction, None, |emitter, aside| {
            let [again, join] = [(); 2].map(|()| emitter.builder.create_block());
            let value = emitter.builder.append_block_param(join, I64);
            let standing = Standing::find(emitter, Target::General(instruction.r1()), aside, again);
            standing.forget(emitter);
            let is_shared = emitter.load_state(I64, layout::SHARED);
            emitter.ins().brif(is_shared, again, &[], join, &[kept.into()]);
            emitter.begin(again);
            // Another check finds nothing to forget.
            let (flags, host) = place.enter(emitter, aside);
            let loaded = load_extended(emitter, size, flags, host);
            advanced::count_failed(emitter);
            emitter.ins().jump(join, &[loaded.into()]);
            emitter.begin(join);
            made(emitter, updated);
            emitter.set(target, value);
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
        let place = find_for_store(emitter, address, size.bytes());
        let updated = update_base(emitter, instruction, address, update);
        emitter.access(instruction, |emitter, aside| {
            let value = emitter.at_hand(value);
            let value = match size {
                Size::Eight => value,
                _ => emitter.ins().ireduce(kind_of(size), value),
            };
            let (flags, host) = place.enter(emitter, aside);
            emitter.ins().store(flags, value, host, 0);
            advanced::store(emitter, address, size.bytes());
            if kind == StoreKind::Spill {
                let nat = nat_bit(emitter, address);
                let nats = emitter.get(Slot::application(UNAT));
                let nats = emitter.ins().band_not(nats, nat);
                emitter.set(Slot::application(UNAT), nats);
            }
            made(emitter, updated);
        });
        emitter.look_at_checked_loads(address, size.bytes());
    });
}

/// What a semaphore does to memory.
#[derive(Clone, Copy)]
pub enum Semaphore {
    /// `xchg`: writes r2.
    Exchange,
    /// `cmpxchg`: writes r2 if memory holds what AR.CCV does.
    CompareExchange,
    /// `fetchadd`: adds the immediate.
    FetchAdd,
}

/// Writes to r1 what memory held. The host's semaphores order what comes before and behind them.
pub fn semaphore(emitter: &mut Emitter, instruction: &Instruction, size: Size, semaphore: Semaphore) {
    let kind = kind_of(size);
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        let address = emitter.general(instruction.r3());
        let operand = match semaphore {
            Semaphore::FetchAdd => emitter.constant(instruction.immediate),
            Semaphore::Exchange | Semaphore::CompareExchange => emitter.general(instruction.r2()),
        };
        let expected = match semaphore {
            Semaphore::CompareExchange => Some(emitter.get(Slot::application(CCV))),
            Semaphore::Exchange | Semaphore::FetchAdd => None,
        };
        let place = find_in_table(emitter, address, size.bytes(), layout::TRANSLATION_WRITE);
        emitter.in_line(instruction, None, |emitter, aside| {
            unless_advanced(emitter, aside);
            if let Some(expected) = expected
                && size != Size::Eight
            {
                // Memory never holds more.
                let beyond = emitter.ins().ushr_imm_u(expected, i64::from(size.bits()));
                emitter.unless(beyond, aside);
            }
            let narrow = |emitter: &mut Emitter, value| match size {
                Size::Eight => value,
                _ => emitter.ins().ireduce(kind, value),
            };
            let operand = narrow(emitter, operand);
            let expected = expected.map(|expected| narrow(emitter, expected));
            let (flags, host) = place.enter(emitter, aside);
            let held = match (semaphore, expected) {
                (Semaphore::CompareExchange, Some(expected)) => {
                    emitter.ins().atomic_cas(flags, host, expected, operand)
                }
                (Semaphore::FetchAdd, _) => {
                    emitter
                        .ins()
                        .atomic_rmw(kind, flags, AtomicRmwOp::Add, host, operand)
                }
                _ => emitter
                    .ins()
                    .atomic_rmw(kind, flags, AtomicRmwOp::Xchg, host, operand),
            };
            let held = match size {
                Size::Eight => held,
                _ => emitter.ins().uextend(I64, held),
            };
            emitter.set(Slot::general(instruction.r1()), held);
        });
    });
}

/// `mf`.
pub fn fence(emitter: &mut Emitter, instruction: &Instruction) {
    emitter.under(instruction.predicate(), targets(instruction), |emitter| {
        emitter.in_line(instruction, None, |emitter, aside| {
            unless_advanced(emitter, aside);
            // As good as the host's own fence, and it waits less: a semaphore on what no other thread looks at.
            let (flags, processor) = (emitter.state_memory(), emitter.processor());
            let place = emitter.ins().iadd_imm_u(processor, layout::TARGET as i64);
            let nothing = emitter.constant(0);
            emitter
                .ins()
                .atomic_rmw(I64, flags, AtomicRmwOp::Add, place, nothing);
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
