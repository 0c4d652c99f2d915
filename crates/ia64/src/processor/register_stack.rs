//! The register stack engine (RSE): frames of stacked registers, and their backing store in memory.
//!
//! Manual volume 2, chapter 6. The stacked registers of the current frame stand in
//! [`GeneralRegisters`](crate::registers::general::GeneralRegisters), and below them those of the callers, youngest
//! first: the *dirty* ones, which memory does not hold yet, and below them the *clean* ones, which it does. So a call
//! and a return move the frame's beginning, and nothing else. Current, clean and dirty registers together never exceed
//! the physical stacked registers: the 96 of an Itanium 2, or more where nobody wants one. Registers are stored
//! ("spilled") when a frame grows beyond that and loaded ("filled") when a return needs more than is held.
//!
//! The engine stores and loads only when it must. That is enforced lazy mode, and every other RSC mode
//! permits it.
//!
//! ```text
//!   memory:    ... | clean (also in the file) |  dirty (only in the file)  | current frame
//!                  ^ loaded                   ^ stored (BSPSTORE)          ^ position (BSP)
//! ```
//!
//! Where the three stand is counted in registers, since addresses also count the NaT collections between them: a
//! *position* is how many registers a backing store has that begins at address zero.

mod backing_store;

use std::mem::offset_of;

use serde::{Deserialize, Serialize};

use crate::processor::{Processor, Raised, pending};
use crate::registers::frame::{FrameMarker, ROTATING_FLOATING, ROTATING_PREDICATES, STACKED_REGISTERS};
use crate::registers::general::CAPACITY_MAX;
use crate::registers::predicate;
use crate::registers::status::rsc;

/// How many NaT bits of callers' registers are kept: a power of two above the number of physical stacked registers.
const RING: u64 = 512;
/// A NaT collection stands in the backing store at every address whose bits 8 to 3 are all ones.
const COLLECTION_SLOT: u64 = 63;

/// No position is further from zero: an address has three bits less than its number of registers.
const POSITION_MAX: u64 = 1 << 61;

/// A fill of the current frame that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fill {
    /// The frame's oldest registers, which memory must still provide.
    missing: u32,
    /// The registers above those that memory holds as well.
    clean: u32,
    /// BSPSTORE before the return: memory holds every NaT collection below it.
    limit: u64,
    /// Whether an interruption handler runs now, with the frame as it is (RSE.CFLE is clear).
    suspended: bool,
}

/// What is known of the callers' registers, and where the backing store stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct RegisterStack {
    /// NaT bits of the callers' registers, by their depth modulo [`RING`].
    nats: [u64; RING as usize / 64],
    /// BSP's position, where the current frame's first register belongs.
    position: i64,
    /// The position of the oldest dirty register.
    stored: i64,
    /// The position of the oldest clean register.
    loaded: i64,
    /// The position of depth zero: the depth goes on counting when the backing store is moved.
    origin: i64,
    /// How many stacked registers the file has: no more are dirty, clean or the frame's.
    capacity: i64,
    /// Whether a NaT bit is set or a fill under way: what makes a call or a return an unusual one.
    is_unusual: u32,
    /// What a return still has to load from memory.
    fill: Option<Fill>,
    collection: u64,
    configuration: u64,
    spills: u64,
    fills: u64,
}

impl RegisterStack {
    /// Where BSP's position stands, in bytes from its start.
    pub(crate) const POSITION: usize = offset_of!(RegisterStack, position);
    pub(crate) const ORIGIN: usize = offset_of!(RegisterStack, origin);
    /// Where the position of the oldest dirty register does.
    pub(crate) const STORED: usize = offset_of!(RegisterStack, stored);
    /// Where that of the oldest clean one does.
    pub(crate) const LOADED: usize = offset_of!(RegisterStack, loaded);
    /// Where the number of registers of the file does.
    pub(crate) const CAPACITY: usize = offset_of!(RegisterStack, capacity);
    /// Where the word is that says whether something is unusual.
    pub(crate) const UNUSUAL: usize = offset_of!(RegisterStack, is_unusual);

    /// An empty stack with its backing store at zero.
    pub fn new() -> RegisterStack {
        RegisterStack {
            nats: [0; RING as usize / 64],
            position: 0,
            stored: 0,
            loaded: 0,
            origin: 0,
            capacity: i64::from(STACKED_REGISTERS),
            is_unusual: 0,
            fill: None,
            collection: 0,
            configuration: 0,
            spills: 0,
            fills: 0,
        }
    }

    /// BSP: where the current frame's first register belongs in memory.
    pub fn backing_store_pointer(&self) -> u64 {
        address_of(self.position)
    }

    /// BSPSTORE: where the next register will be stored.
    pub fn store_pointer(&self) -> u64 {
        address_of(self.stored)
    }

    /// Makes the file as large as possible for a processor that is not to be an Itanium 2 in this: fewer registers are
    /// stored and loaded. What programs compute does not depend on it.
    pub fn deepen(&mut self) {
        self.capacity = i64::from(CAPACITY_MAX);
    }

    /// How many stacked registers the file has.
    fn capacity(&self) -> u32 {
        self.capacity as u32
    }

    /// RNAT: NaT bits of stored registers whose collection is not stored yet.
    pub fn collection(&self) -> u64 {
        self.collection
    }

    /// Sets RNAT.
    pub fn set_collection(&mut self, collection: u64) {
        self.collection = collection & (u64::MAX >> 1);
    }

    /// RSC.
    pub fn configuration(&self) -> u64 {
        self.configuration
    }

    /// Sets RSC; the caller has checked the fields.
    pub fn set_configuration(&mut self, configuration: u64) {
        self.configuration = configuration;
    }

    /// Whether RSC.mode is enforced lazy, which some register moves demand.
    pub fn is_enforced_lazy(&self) -> bool {
        self.configuration & rsc::MODE == 0
    }

    /// Whether the backing store is big-endian.
    pub fn is_big_endian(&self) -> bool {
        self.configuration & rsc::BIG_ENDIAN != 0
    }

    /// Number of dirty registers.
    #[inline]
    pub fn dirty(&self) -> u32 {
        self.position.wrapping_sub(self.stored) as u32
    }

    /// Number of callers' registers that are at hand.
    #[inline]
    pub(crate) fn at_hand(&self) -> u32 {
        self.position.wrapping_sub(self.loaded) as u32
    }

    /// Registers stored to the backing store so far, without NaT collections.
    pub fn spills(&self) -> u64 {
        self.spills
    }

    /// Registers loaded from the backing store so far, without NaT collections.
    pub fn fills(&self) -> u64 {
        self.fills
    }

    /// How many registers lie below the current frame; names a stacked register across calls.
    pub fn depth(&self) -> u64 {
        self.position.wrapping_sub(self.origin) as u64
    }

    /// Moves the backing store: BSPSTORE becomes `pointer`, the dirty registers stay, the clean ones go.
    pub fn set_store_pointer(&mut self, pointer: u64) {
        self.restart_at(position_of(pointer), self.dirty());
    }

    /// Forgets all callers' registers and starts at `pointer`.
    pub fn restart(&mut self, pointer: u64, collection: u64) {
        self.restart_at(position_of(pointer), 0);
        self.set_fill(None);
        self.set_collection(collection);
    }

    fn restart_at(&mut self, stored: i64, dirty: u32) {
        let depth = self.depth() as i64;
        self.stored = stored;
        self.loaded = stored;
        self.position = stored.wrapping_add(i64::from(dirty));
        self.origin = self.position.wrapping_sub(depth);
    }

    /// Whether the stack could be a processor's whose current frame has `frame` registers.
    pub(crate) fn is_valid(&self, frame: u32) -> bool {
        let counts = [
            self.position.wrapping_sub(self.stored),
            self.stored.wrapping_sub(self.loaded),
            i64::from(frame),
        ];
        let (least, most) = (STACKED_REGISTERS.into(), CAPACITY_MAX.into());
        self.position.unsigned_abs() <= POSITION_MAX
            && (least..=most).contains(&self.capacity)
            && counts.iter().all(|count| (0..=self.capacity).contains(count))
            && counts.iter().sum::<i64>() <= self.capacity
            && self.collection >> COLLECTION_SLOT == 0
            && self.is_unusual == self.unusual()
            && self
                .fill
                .is_none_or(|fill| fill.missing <= STACKED_REGISTERS && fill.clean <= STACKED_REGISTERS)
    }

    /// The NaT bit of the caller's register `distance` below BSP, counted from 1.
    pub(crate) fn nat_below(&self, distance: u32) -> bool {
        let place = self.ring_place(-i64::from(distance));
        self.nats[place / 64] >> (place % 64) & 1 != 0
    }

    /// Sets the NaT bit of the caller's register `distance` below BSP, counted from 1.
    pub(crate) fn set_nat_below(&mut self, distance: u32, nat: bool) {
        let place = self.ring_place(-i64::from(distance));
        let word = &mut self.nats[place / 64];
        *word = *word & !(1 << (place % 64)) | u64::from(nat) << (place % 64);
        self.is_unusual = self.unusual();
    }

    /// The NaT bits of the `count` registers above BSP as they were when these were callers'; forgets them.
    fn take_nats_above(&mut self, count: u32) -> u128 {
        if !self.any_nat() {
            return 0;
        }
        let mut taken = 0;
        for offset in 0..count {
            let place = self.ring_place(i64::from(offset));
            let word = &mut self.nats[place / 64];
            taken |= u128::from(*word >> (place % 64) & 1) << offset;
            *word &= !(1 << (place % 64));
        }
        self.is_unusual = self.unusual();
        taken
    }

    /// Where the ring has the NaT bit of the register so many above BSP.
    fn ring_place(&self, offset: i64) -> usize {
        (self.depth().wrapping_add_signed(offset) % RING) as usize
    }

    fn set_fill(&mut self, fill: Option<Fill>) {
        self.fill = fill;
        self.is_unusual = self.unusual();
    }

    fn unusual(&self) -> u32 {
        u32::from(self.any_nat() || self.fill.is_some())
    }

    fn any_nat(&self) -> bool {
        self.nats.iter().any(|&word| word != 0)
    }
}

impl Default for RegisterStack {
    fn default() -> Self {
        RegisterStack::new()
    }
}

/// The position of the first register when the backing store is set to `pointer`: a collection's place is skipped.
fn position_of(pointer: u64) -> i64 {
    let (group, slot) = (pointer >> 9, pointer >> 3 & COLLECTION_SLOT);
    (group * COLLECTION_SLOT + slot).cast_signed()
}

/// The address of a position: a NaT collection follows each 63 registers.
fn address_of(position: i64) -> u64 {
    let registers = COLLECTION_SLOT.cast_signed();
    let collections = position.div_euclid(registers);
    (position.wrapping_add(collections))
        .cast_unsigned()
        .wrapping_mul(8)
}

/// The backing store address `count` registers above `pointer`, counting NaT collections.
pub fn above(pointer: u64, count: u32) -> u64 {
    let slot = pointer >> 3 & COLLECTION_SLOT;
    let collections = (slot + u64::from(count)) / COLLECTION_SLOT;
    pointer.wrapping_add((u64::from(count) + collections) * 8)
}

/// The backing store address `count` registers below `pointer`, counting NaT collections.
pub fn below(pointer: u64, count: u32) -> u64 {
    let slot = pointer >> 3 & COLLECTION_SLOT;
    let collections = (u64::from(count) + COLLECTION_SLOT - 1 - slot) / COLLECTION_SLOT;
    pointer.wrapping_sub((u64::from(count) + collections) * 8)
}

/// How many registers stand between two backing store addresses, not counting NaT collections.
pub fn registers_between(low: u64, high: u64) -> u32 {
    let words = high.wrapping_sub(low) >> 3;
    let slot = low >> 3 & COLLECTION_SLOT;
    (words - (slot + words) / (COLLECTION_SLOT + 1)) as u32
}

/// The address of the NaT collection that covers a register stored at `pointer`.
fn collection_address(pointer: u64) -> u64 {
    pointer | COLLECTION_SLOT << 3
}

impl Processor {
    /// `br.call`: the locals of the current frame become dirty, the outputs become the callee's frame.
    #[inline]
    pub(crate) fn call_frame(&mut self) {
        self.unrotate_frame();
        let frame = self.frame;
        self.push_registers(frame.locals);
        let outputs = frame.size - frame.locals;
        self.general.clear_nats_above(31 + outputs);
        self.frame = FrameMarker {
            size: outputs,
            ..FrameMarker::default()
        };
    }

    /// `cover`: the whole current frame becomes dirty and an empty one follows.
    pub fn cover_frame(&mut self) {
        self.unrotate_frame();
        self.push_registers(self.frame.size);
        self.general.clear_nats_above(31);
        self.frame = FrameMarker::default();
    }

    /// `br.ret` and `rfi`: the frame `marker` comes back, whose first `preserved` registers were pushed.
    ///
    /// Registers that are neither dirty nor clean are filled from memory. A fault in that fill leaves the
    /// frame incomplete: the instruction itself is complete, and [`Processor::complete_frame`] goes on.
    #[inline]
    pub(crate) fn return_frame(&mut self, marker: FrameMarker, preserved: u32) -> Result<(), Raised> {
        self.unrotate_frame();
        let kept = marker.size.saturating_sub(preserved);
        let dirty = self.register_stack.dirty();
        // Manual volume 2, section 6.5.5: a frame that does not fit beside the dirty registers is replaced
        // by an empty one.
        let fits = marker.is_valid()
            && preserved <= marker.size
            && (dirty + kept <= self.register_stack.capacity() || kept <= self.frame.size);
        let (marker, preserved) = if fits {
            (marker, preserved)
        } else {
            (FrameMarker::default(), preserved.min(STACKED_REGISTERS))
        };
        self.pop_registers(preserved);
        self.frame = marker;
        self.trim_clean();
        self.general.clear_nats_above(31 + marker.size);
        if self.register_stack.fill.is_none() {
            self.rotate_frame();
            return Ok(());
        }
        let filled = self.complete_frame();
        self.rotate_frame();
        filled
    }

    /// Whether a fault interrupted the fill of the current frame, which goes on before the next instruction.
    pub fn is_frame_incomplete(&self) -> bool {
        self.register_stack.fill.is_some_and(|fill| !fill.suspended)
    }

    /// Leaves an incomplete frame as it is while an interruption handler runs, or goes on with it behind `rfi`.
    pub(crate) fn suspend_fill(&mut self, suspended: bool) {
        if let Some(fill) = &mut self.register_stack.fill {
            fill.suspended = suspended;
            if !suspended {
                self.pending |= pending::FRAME_INCOMPLETE;
            }
        }
    }

    /// `alloc`: resizes the current frame, spilling where it grows beyond the physical registers.
    pub(crate) fn resize_frame(&mut self, size: u32, locals: u32, rotating: u32) -> Result<(), Raised> {
        let stack = &self.register_stack;
        let excess = (stack.dirty() + size).saturating_sub(stack.capacity());
        if excess > 0 {
            self.spill(excess)?;
        }
        self.frame = FrameMarker {
            size,
            locals,
            rotating,
            ..self.frame
        };
        self.trim_clean();
        self.general.clear_nats_above(31 + size);
        Ok(())
    }

    /// Puts the renamed registers back to their unrotated places and clears the rename bases.
    #[inline]
    pub(crate) fn unrotate_frame(&mut self) {
        let frame = self.frame;
        if frame.rename_general | frame.rename_floating | frame.rename_predicate != 0 {
            self.general
                .rotate_up(frame.rotating as usize, frame.rename_general as usize);
            self.unrotate_predicates();
            self.frame.rename_general = 0;
            self.frame.rename_floating = 0;
        }
    }

    /// Puts the predicates back to their unrotated places and clears their rename base.
    pub(crate) fn unrotate_predicates(&mut self) {
        self.predicates = predicate::rotate_up(self.predicates, self.frame.rename_predicate);
        self.frame.rename_predicate = 0;
    }

    /// Puts unrotated registers where the current frame's rename bases want them.
    #[inline]
    fn rotate_frame(&mut self) {
        let frame = self.frame;
        if frame.rename_general | frame.rename_predicate != 0 {
            if frame.rename_general != 0 {
                self.general.rotate_up(
                    frame.rotating as usize,
                    (frame.rotating - frame.rename_general) as usize,
                );
            }
            let distance = (ROTATING_PREDICATES - frame.rename_predicate) % ROTATING_PREDICATES;
            self.predicates = predicate::rotate_up(self.predicates, distance);
        }
    }

    /// Rotates all three files by one, as the modulo-scheduled loop branches do.
    #[inline]
    pub fn rotate_once(&mut self) {
        let frame = &mut self.frame;
        let decrement = |base: u32, size: u32| {
            if base == 0 {
                size.saturating_sub(1)
            } else {
                base - 1
            }
        };
        frame.rename_general = decrement(frame.rename_general, frame.rotating);
        frame.rename_floating = decrement(frame.rename_floating, ROTATING_FLOATING);
        frame.rename_predicate = decrement(frame.rename_predicate, ROTATING_PREDICATES);
        self.general.rotate_up(frame.rotating as usize, 1);
        self.predicates = predicate::rotate_up(self.predicates, 1);
    }

    /// Makes the first `count` registers of the frame the youngest dirty ones.
    #[inline]
    fn push_registers(&mut self, count: u32) {
        self.general.ascend(count, self.register_stack.at_hand());
        if self.general.any_nat() || self.register_stack.is_unusual != 0 {
            return self.push_unusual_registers(count);
        }
        let stack = &mut self.register_stack;
        stack.position = stack.position.wrapping_add(i64::from(count));
    }

    // Apart, so that what is usual has nothing to save before it.
    #[cold]
    #[inline(never)]
    fn push_unusual_registers(&mut self, count: u32) {
        let nats = self.general.shift_nats_down(count);
        let stack = &mut self.register_stack;
        let first = stack.position;
        stack.position = first.wrapping_add(i64::from(count));
        for offset in 0..count {
            stack.set_nat_below(count - offset, nats >> offset & 1 != 0);
        }
        if let Some(fill) = stack.fill {
            // The oldest registers of an incomplete frame stayed in memory, those above them are there as well.
            stack.loaded = first.wrapping_add(i64::from(fill.missing)).min(stack.position);
            stack.stored = stack
                .loaded
                .wrapping_add(i64::from(fill.clean))
                .min(stack.position);
            stack.set_fill(None);
        }
    }

    /// Makes the `count` youngest registers of the callers the first of the frame; notes those that memory must
    /// provide.
    #[inline]
    fn pop_registers(&mut self, count: u32) {
        self.general.descend(count, self.register_stack.at_hand());
        let stack = &mut self.register_stack;
        let is_usual = !self.general.any_nat() && stack.is_unusual == 0 && count <= stack.dirty();
        stack.position = stack.position.wrapping_sub(i64::from(count));
        if !is_usual {
            self.pop_unusual_registers(count);
        }
    }

    #[cold]
    #[inline(never)]
    fn pop_unusual_registers(&mut self, count: u32) {
        let stack = &mut self.register_stack;
        let (store_pointer, position) = (stack.store_pointer(), stack.position);
        let missing = stack.loaded.wrapping_sub(position).max(0);
        let from_memory = stack.stored.wrapping_sub(position).max(0);
        let nats = stack.take_nats_above(count) >> missing << missing;
        self.general.shift_nats_up(count, nats);
        stack.loaded = stack.loaded.min(position);
        stack.stored = stack.stored.min(position);
        if from_memory > 0 {
            stack.set_fill(Some(Fill {
                missing: missing as u32,
                clean: (from_memory - missing) as u32,
                limit: store_pointer,
                suspended: false,
            }));
        }
    }

    /// Gives up clean registers that the current frame has grown over.
    #[inline]
    fn trim_clean(&mut self) {
        let stack = &self.register_stack;
        let end = stack.position.wrapping_add(i64::from(self.frame.size));
        let lowest = end.wrapping_sub(stack.capacity);
        if lowest > stack.loaded {
            self.displace_clean(lowest);
        }
    }

    /// Gives up clean registers below a position. The frame has got their places in the file of an Itanium 2, so what
    /// it finds there is nothing of a kernel's that has cleared the others: it finds zero.
    #[cold]
    #[inline(never)]
    fn displace_clean(&mut self, lowest: i64) {
        let stack = &mut self.register_stack;
        let lowest = lowest.min(stack.stored);
        let count = lowest.wrapping_sub(stack.loaded).clamp(0, self.frame.size.into()) as u32;
        stack.loaded = stack.loaded.max(lowest);
        self.general.clear_from(self.frame.size - count, count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_are_counted_as_addresses_are(pointer: u64, count in 0u32..=200) {
            let position = position_of(pointer);
            let address = address_of(position);
            prop_assert_eq!(address, (pointer & !7) + if pointer >> 3 & 63 == 63 { 8 } else { 0 });
            let count_up = position + i64::from(count);
            prop_assert_eq!(address_of(count_up), above(address, count));
            prop_assert_eq!(address_of(position - i64::from(count)), below(address, count));
            prop_assert_eq!(position_of(address_of(count_up)), count_up);
        }
    }
}
