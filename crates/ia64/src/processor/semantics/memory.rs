//! Loads, stores, semaphores, prefetches and the ALAT (manual volume 1, section 4.4; formats M1 to M5, M13
//! to M17, M24, M26 to M28 and M41 for the general registers).
//!
//! A load's kind and base update are type parameters, so that the common loads carry no test for the rare
//! ones.

use crate::alat::Target;
use crate::encoding::{BaseUpdate, LoadKind, Ordering, Size, StoreKind};
use crate::fault::{Access, Fault, isr};
use crate::memory::Value;
use crate::processor::execution::{Execute, Flow, HOST_PAGE_LOG2, MicroOperation, Step};
use crate::processor::{Processor, Raised};
use crate::registers::application::{CCV, CSD, UNAT};
use crate::registers::status::psr;

use super::frequent::{Code, Handler, call, inline};
use super::system::nothing;

/// ISR.code of a fault of `lfetch`.
const ISR_CODE_LINE_FETCH: u64 = 4;
/// ISR.code of a fault of `fc`.
const ISR_CODE_FLUSH_CACHE: u64 = 1;

pub(super) fn load_handler(size: Size, kind: LoadKind, update: BaseUpdate) -> Handler {
    let is_plain = matches!(kind, LoadKind::Normal | LoadKind::Bias);
    match (size, update) {
        (Size::One, BaseUpdate::None) if is_plain => inline(Code::Load1),
        (Size::Two, BaseUpdate::None) if is_plain => inline(Code::Load2),
        (Size::Four, BaseUpdate::None) if is_plain => inline(Code::Load4),
        (Size::Eight, BaseUpdate::None) if is_plain => inline(Code::Load8),
        (Size::One, BaseUpdate::Immediate) if is_plain => inline(Code::Load1Update),
        (Size::Four, BaseUpdate::Immediate) if is_plain => inline(Code::Load4Update),
        (Size::Eight, BaseUpdate::Immediate) if is_plain => inline(Code::Load8Update),
        (Size::One, _) => call(load_by_kind::<u8>(kind, update)),
        (Size::Two, _) => call(load_by_kind::<u16>(kind, update)),
        (Size::Four, _) => call(load_by_kind::<u32>(kind, update)),
        (Size::Eight, _) => call(load_by_kind::<u64>(kind, update)),
    }
}

pub(super) fn store_handler(size: Size, kind: StoreKind, update: BaseUpdate) -> Handler {
    let is_plain = matches!(kind, StoreKind::Normal | StoreKind::Release);
    match (size, update) {
        (Size::One, BaseUpdate::None) if is_plain => inline(Code::Store1),
        (Size::Four, BaseUpdate::None) if is_plain => inline(Code::Store4),
        (Size::Eight, BaseUpdate::None) if is_plain => inline(Code::Store8),
        (Size::One, BaseUpdate::Immediate) if is_plain => inline(Code::Store1Update),
        (Size::Four, BaseUpdate::Immediate) if is_plain => inline(Code::Store4Update),
        (Size::Eight, BaseUpdate::Immediate) if is_plain => inline(Code::Store8Update),
        (Size::One, _) => call(store_by_kind::<u8>(kind, update)),
        (Size::Two, _) => call(store_by_kind::<u16>(kind, update)),
        (Size::Four, _) => call(store_by_kind::<u32>(kind, update)),
        (Size::Eight, _) => call(store_by_kind::<u64>(kind, update)),
    }
}

pub(super) fn load_sixteen_handler(ordering: Ordering) -> Handler {
    match ordering {
        Ordering::Acquire => call(load_sixteen::<true>),
        Ordering::None | Ordering::Release => call(load_sixteen::<false>),
    }
}

pub(super) fn compare_exchange_handler(size: Size) -> Handler {
    call(match size {
        Size::One => compare_exchange::<u8>,
        Size::Two => compare_exchange::<u16>,
        Size::Four => compare_exchange::<u32>,
        Size::Eight => compare_exchange::<u64>,
    })
}

pub(super) fn exchange_handler(size: Size) -> Handler {
    call(match size {
        Size::One => exchange::<u8>,
        Size::Two => exchange::<u16>,
        Size::Four => exchange::<u32>,
        Size::Eight => exchange::<u64>,
    })
}

pub(super) fn fetch_add_handler(size: Size) -> Handler {
    match size {
        Size::Four => call(fetch_add::<u32>),
        Size::One | Size::Two | Size::Eight => call(fetch_add::<u64>),
    }
}

pub(super) fn line_fetch_handler(fault: bool, update: BaseUpdate) -> Handler {
    call(match (fault, update) {
        (false, BaseUpdate::None) => nothing,
        (false, BaseUpdate::Register) => line_fetch::<false, UpdateByRegister>,
        (false, BaseUpdate::Immediate) => line_fetch::<false, UpdateByImmediate>,
        (true, BaseUpdate::None) => line_fetch::<true, NoUpdate>,
        (true, BaseUpdate::Register) => line_fetch::<true, UpdateByRegister>,
        (true, BaseUpdate::Immediate) => line_fetch::<true, UpdateByImmediate>,
    })
}

/// How the base register changes after the access.
pub(super) trait Update {
    fn update(processor: &mut Processor, operation: &MicroOperation, address: u64);
}

/// The base stays.
pub(super) struct NoUpdate;
/// The base grows by r2.
pub(super) struct UpdateByRegister;
/// The base grows by the immediate.
pub(super) struct UpdateByImmediate;

impl Update for NoUpdate {
    #[inline(always)]
    fn update(_: &mut Processor, _: &MicroOperation, _: u64) {}
}

impl Update for UpdateByRegister {
    #[inline(always)]
    fn update(processor: &mut Processor, operation: &MicroOperation, address: u64) {
        let sum = address.wrapping_add(processor.general.value(operation.r2));
        let nat = processor.general.nat(operation.r3) || processor.general.nat(operation.r2);
        processor.general.set_with_nat(operation.r3, sum, nat);
    }
}

impl Update for UpdateByImmediate {
    #[inline(always)]
    fn update(processor: &mut Processor, operation: &MicroOperation, address: u64) {
        let sum = address.wrapping_add(operation.immediate);
        if processor.general.any_nat() {
            let nat = processor.general.nat(operation.r3);
            processor.general.set_with_nat(operation.r3, sum, nat);
        } else {
            processor.general.set(operation.r3, sum);
        }
    }
}

/// The address in r3 of a non-speculative access; raises NaT consumption if it is NaT.
#[inline(always)]
pub(super) fn address(
    processor: &mut Processor,
    operation: &MicroOperation,
    access: u64,
) -> Result<u64, Raised> {
    if processor.general.any_nat() && processor.general.nat(operation.r3) {
        return Err(processor.raise(Fault::register_nat_consumption(access)));
    }
    Ok(processor.general.value(operation.r3))
}

/// The value of r2 for a store; raises NaT consumption if it is NaT.
#[inline(always)]
fn stored(processor: &mut Processor, operation: &MicroOperation, access: u64) -> Result<u64, Raised> {
    if processor.general.any_nat() && processor.general.nat(operation.r2) {
        return Err(processor.raise(Fault::register_nat_consumption(access)));
    }
    Ok(processor.general.value(operation.r2))
}

fn load_by_kind<V: Value>(kind: LoadKind, update: BaseUpdate) -> Execute {
    fn by_update<V: Value, K: Kind>(update: BaseUpdate) -> Execute {
        match update {
            BaseUpdate::None => K::load::<V, NoUpdate>,
            BaseUpdate::Register => K::load::<V, UpdateByRegister>,
            BaseUpdate::Immediate => K::load::<V, UpdateByImmediate>,
        }
    }
    match kind {
        LoadKind::Normal | LoadKind::Bias => by_update::<V, Plain>(update),
        LoadKind::Acquire => by_update::<V, Acquire>(update),
        LoadKind::Speculative => by_update::<V, Speculative<false>>(update),
        LoadKind::SpeculativeAdvanced => by_update::<V, Speculative<true>>(update),
        LoadKind::Advanced => by_update::<V, Advanced>(update),
        LoadKind::CheckKeep => by_update::<V, Check<false>>(update),
        LoadKind::CheckClear | LoadKind::CheckClearAcquire => by_update::<V, Check<true>>(update),
        LoadKind::Fill => by_update::<V, Fill>(update),
    }
}

/// What a load does beside loading.
pub(super) trait Kind {
    fn load<V: Value, U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step;
}

pub(super) struct Plain;
struct Acquire;
struct Advanced;
struct Fill;
struct Speculative<const ADVANCED: bool>;
struct Check<const CLEAR: bool>;

impl Kind for Plain {
    fn load<V: Value, U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step {
        let address = address(processor, operation, isr::READ)?;
        let value = processor.load::<V>(address)?;
        U::update(processor, operation, address);
        processor.general.set(operation.r1, value);
        Ok(Flow::Next)
    }
}

impl Kind for Acquire {
    fn load<V: Value, U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step {
        let step = Plain::load::<V, U>(processor, operation)?;
        processor.forget_what_others_may_change();
        Ok(step)
    }
}

impl<const ADVANCED: bool> Kind for Speculative<ADVANCED> {
    fn load<V: Value, U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step {
        let address = processor.general.value(operation.r3);
        let target = processor.advanced_general(operation.r1);
        let loaded = if processor.defers_at_once(operation.r3) {
            None
        } else {
            match processor.load_speculatively::<V>(address) {
                Ok(value) => value,
                Err(Raised) => {
                    processor.defer(V::SIZE)?;
                    None
                }
            }
        };
        U::update(processor, operation, address);
        processor
            .general
            .set_with_nat(operation.r1, loaded.unwrap_or(0), loaded.is_none());
        if ADVANCED && loaded.is_some() {
            processor.advanced_loads.insert(target, address, V::SIZE);
        } else if ADVANCED {
            processor.advanced_loads.remove(target);
        }
        Ok(Flow::Next)
    }
}

impl Kind for Advanced {
    fn load<V: Value, U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step {
        let target = processor.advanced_general(operation.r1);
        let address = address(processor, operation, isr::READ)?;
        let value = processor.load::<V>(address)?;
        U::update(processor, operation, address);
        processor.general.set(operation.r1, value);
        processor.advanced_loads.insert(target, address, V::SIZE);
        Ok(Flow::Next)
    }
}

impl<const CLEAR: bool> Kind for Check<CLEAR> {
    fn load<V: Value, U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step {
        let target = processor.advanced_general(operation.r1);
        let address = address(processor, operation, isr::READ)?;
        if !processor.keeps_advanced_load::<CLEAR>(target) {
            let value = processor.load::<V>(address)?;
            U::update(processor, operation, address);
            processor.general.set(operation.r1, value);
            if !CLEAR {
                processor.advanced_loads.insert(target, address, V::SIZE);
            }
        } else {
            U::update(processor, operation, address);
        }
        Ok(Flow::Next)
    }
}

impl Kind for Fill {
    fn load<V: Value, U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step {
        let address = address(processor, operation, isr::READ)?;
        let value = processor.load::<V>(address)?;
        U::update(processor, operation, address);
        let nat = processor.application[usize::from(UNAT)] >> (address >> 3 & 63) & 1 != 0;
        processor.general.set_with_nat(operation.r1, value, nat);
        Ok(Flow::Next)
    }
}

fn store_by_kind<V: Value>(kind: StoreKind, update: BaseUpdate) -> Execute {
    match (kind, update) {
        (StoreKind::Normal | StoreKind::Release, BaseUpdate::None) => store::<V, NoUpdate>,
        (StoreKind::Normal | StoreKind::Release, _) => store::<V, UpdateByImmediate>,
        (StoreKind::Spill, BaseUpdate::None) => spill::<NoUpdate>,
        (StoreKind::Spill, _) => spill::<UpdateByImmediate>,
    }
}

pub(super) fn store<V: Value, U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let address = address(processor, operation, isr::WRITE)?;
    let value = stored(processor, operation, isr::WRITE)?;
    processor.store::<V>(address, value)?;
    U::update(processor, operation, address);
    Ok(Flow::Next)
}

fn spill<U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let address = address(processor, operation, isr::WRITE)?;
    let value = processor.general.value(operation.r2);
    processor.store::<u64>(address, value)?;
    let bit = 1 << (address >> 3 & 63);
    let nats = &mut processor.application[usize::from(UNAT)];
    if processor.general.nat(operation.r2) {
        *nats |= bit;
    } else {
        *nats &= !bit;
    }
    U::update(processor, operation, address);
    Ok(Flow::Next)
}

fn load_sixteen<const ACQUIRE: bool>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let address = address(processor, operation, isr::READ)?;
    let (low, high) = processor.load_pair(address)?;
    processor.general.set(operation.r1, low);
    processor.application[usize::from(CSD)] = high;
    if ACQUIRE {
        processor.forget_what_others_may_change();
    }
    Ok(Flow::Next)
}

pub(super) fn store_sixteen(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let address = address(processor, operation, isr::WRITE)?;
    let value = stored(processor, operation, isr::WRITE)?;
    let high = processor.application[usize::from(CSD)];
    processor.store_pair(address, value, high)?;
    Ok(Flow::Next)
}

/// The operands of a semaphore: the address in r3 and the value in r2.
fn semaphore_operands(processor: &mut Processor, operation: &MicroOperation) -> Result<(u64, u64), Raised> {
    let access = isr::READ | isr::WRITE;
    Ok((
        address(processor, operation, access)?,
        stored(processor, operation, access)?,
    ))
}

/// Ends a semaphore: writes what memory held.
fn semaphore_result(processor: &mut Processor, operation: &MicroOperation, held: u64) -> Step {
    processor.general.set(operation.r1, held);
    processor.forget_what_others_may_change();
    Ok(Flow::Next)
}

fn compare_exchange<V: Value>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let (address, value) = semaphore_operands(processor, operation)?;
    let expected = processor.application[usize::from(CCV)];
    let held = processor.compare_exchange::<V>(address, expected, value)?;
    semaphore_result(processor, operation, held)
}

pub(super) fn compare_exchange_sixteen(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let (address, value) = semaphore_operands(processor, operation)?;
    let expected = processor.application[usize::from(CCV)];
    let high = processor.application[usize::from(CSD)];
    let held = processor.compare_exchange_pair(address, expected, value, high)?;
    semaphore_result(processor, operation, held)
}

fn exchange<V: Value>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let (address, value) = semaphore_operands(processor, operation)?;
    let held = processor.exchange::<V>(address, value)?;
    semaphore_result(processor, operation, held)
}

fn fetch_add<V: Value>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let address = address(processor, operation, isr::READ | isr::WRITE)?;
    let held = processor.fetch_add::<V>(address, operation.immediate)?;
    semaphore_result(processor, operation, held)
}

/// A prefetch that faults if asked to; memory is not touched otherwise. Restarted with PSR.ed, by a handler that does
/// not want to map what is fetched, it fetches nothing.
fn line_fetch<const FAULT: bool, U: Update>(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let base = processor.general.value(operation.r3);
    if FAULT && processor.status & psr::ED == 0 {
        let access = isr::READ | isr::NON_ACCESS | ISR_CODE_LINE_FETCH;
        address(processor, operation, access)?;
        processor.touch(base, access, true)?;
    }
    U::update(processor, operation, base);
    Ok(Flow::Next)
}

pub(super) fn invalidate_all(processor: &mut Processor, _: &MicroOperation) -> Step {
    processor.advanced_loads.clear();
    Ok(Flow::Next)
}

pub(super) fn invalidate_entry(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let target = processor.advanced_general(operation.r1);
    processor.advanced_loads.remove(target);
    Ok(Flow::Next)
}

pub(super) fn memory_fence(processor: &mut Processor, _: &MicroOperation) -> Step {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    processor.forget_what_others_may_change();
    Ok(Flow::Next)
}

/// `fc` and `fc.i`: host memory is coherent; only decoded instructions can be stale.
pub(super) fn flush_cache(processor: &mut Processor, operation: &MicroOperation) -> Step {
    let access = isr::READ | isr::NON_ACCESS | ISR_CODE_FLUSH_CACHE;
    let address = address(processor, operation, access)?;
    let host = processor.touch(address, access, false)?;
    processor.environment.instructions_changed(address);
    processor.forget_instructions_of(host as u64 >> HOST_PAGE_LOG2);
    Ok(Flow::Next)
}

impl Processor {
    /// The ALAT's name for general register `register` of the current frame.
    pub(super) fn advanced_general(&self, register: u8) -> Target {
        if register < 32 {
            return Target::General(u64::from(register));
        }
        let offset = u32::from(register) - 32;
        let frame = self.frame;
        let unrotated = if offset < frame.rotating {
            (offset + frame.rename_general) % frame.rotating
        } else {
            offset
        };
        Target::General(
            self.register_stack
                .depth()
                .wrapping_add(32 + u64::from(unrotated)),
        )
    }

    /// Whether a speculative load through `register` has no access to make: the address is NaT, or PSR.ed
    /// asks for a deferred exception.
    pub(crate) fn defers_at_once(&self, register: u8) -> bool {
        self.general.nat(register) || self.status & psr::ED != 0
    }

    /// Whether a check load may keep what the advanced load to `target` read. Stores of others do not reach the
    /// ALAT of this processor, so that where there are others every check load loads again, as if its entry had
    /// been replaced: locks spin on check loads.
    pub(super) fn keeps_advanced_load<const CLEAR: bool>(&mut self, target: Target) -> bool {
        let stands = match CLEAR {
            true => self.advanced_loads.remove(target),
            false => self.advanced_loads.contains(target),
        };
        let keeps = stands && self.is_shared == 0;
        if !keeps {
            self.advanced_loads.note_failed_check();
        }
        keeps
    }

    /// An acquiring operation must not let a later check succeed on a value that was loaded before it and
    /// that another processor has changed since.
    #[inline(always)]
    pub(super) fn forget_what_others_may_change(&mut self) {
        if !self.advanced_loads.is_empty() && self.is_shared != 0 {
            self.advanced_loads.clear();
        }
    }

    /// Checks that a load at `address` would not fault, without loading, and gives the host address; `access` goes into
    /// the ISR. Data breakpoints matter if it is `watched`.
    fn touch(&mut self, address: u64, access: u64, watched: bool) -> Result<*mut u8, Raised> {
        let resolved = self.resolve(address, Access::Read);
        match resolved.and_then(|host| {
            if watched {
                self.check_data_breakpoints(address, 1, Access::Read)?;
            }
            Ok(host)
        }) {
            Ok(host) => Ok(host),
            Err(Raised) => {
                let fault = self.take_fault();
                Err(self.raise(Fault {
                    isr: fault.isr | access,
                    ..fault
                }))
            }
        }
    }
}
