//! The register stack engine (RSE): frames of stacked registers, and their backing store in memory.
//!
//! Manual volume 2, chapter 6. The stacked registers of the current frame stand in
//! [`GeneralRegisters`](crate::registers::general::GeneralRegisters) at the index that instructions use;
//! those of the callers are kept here, in a ring, youngest first: the *dirty* ones, which memory does not
//! hold yet, and below them the *clean* ones, which it does. Current, clean and dirty registers together
//! never exceed the 96 physical stacked registers of an Itanium 2; registers are stored ("spilled") when
//! a frame grows beyond that and loaded ("filled") when a return needs more than is held.
//!
//! The engine stores and loads only when it must. That is enforced lazy mode, and every other RSC mode
//! permits it.
//!
//! ```text
//!   memory:    ... | clean (also in the ring) |  dirty (only in the ring)  | current frame
//!                  ^ load point               ^ BSPSTORE                   ^ BSP
//! ```

mod usual;

use std::mem::offset_of;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::processor::{Processor, Raised, pending};
use crate::registers::frame::{FrameMarker, ROTATING_FLOATING, ROTATING_PREDICATES, STACKED_REGISTERS};
use crate::registers::general::copy_values;
use crate::registers::predicate;
use crate::registers::status::rsc;

/// Ring size: a power of two above the number of physical stacked registers.
const RING: usize = 128;
/// A NaT collection stands in the backing store at every address whose bits 8 to 3 are all ones.
const COLLECTION_SLOT: u64 = 63;

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

/// The registers of the callers' frames, and where the backing store stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct RegisterStack {
    #[serde(with = "serde_big_array::BigArray")]
    values: [u64; RING],
    #[serde(with = "crate::registers::two_words")]
    nats: u128,
    /// The ring index where the current frame's first register would stand.
    top: usize,
    dirty: u32,
    clean: u32,
    /// What a return still has to load from memory.
    fill: Option<Fill>,
    backing_store: u64,
    collection: u64,
    configuration: u64,
    /// How many registers lie below the current frame since the start; names registers across calls.
    depth: u64,
    spills: u64,
    fills: u64,
}

impl RegisterStack {
    /// Where the number of dirty registers stands, in bytes from its start.
    pub(crate) const DIRTY: usize = offset_of!(RegisterStack, dirty);
    /// Where the number of clean ones does.
    pub(crate) const CLEAN: usize = offset_of!(RegisterStack, clean);

    /// An empty stack with its backing store at zero.
    pub fn new() -> RegisterStack {
        RegisterStack {
            values: [0; RING],
            nats: 0,
            top: 0,
            dirty: 0,
            clean: 0,
            fill: None,
            backing_store: 0,
            collection: 0,
            configuration: 0,
            depth: 0,
            spills: 0,
            fills: 0,
        }
    }

    /// BSP: where the current frame's first register belongs in memory.
    pub fn backing_store_pointer(&self) -> u64 {
        self.backing_store
    }

    /// BSPSTORE: where the next register will be stored.
    pub fn store_pointer(&self) -> u64 {
        below(self.backing_store, self.dirty)
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
    pub fn dirty(&self) -> u32 {
        self.dirty
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
        self.depth
    }

    /// Moves the backing store: BSPSTORE becomes `pointer`, the dirty registers stay, the clean ones go.
    pub fn set_store_pointer(&mut self, pointer: u64) {
        self.backing_store = above(first_slot(pointer), self.dirty);
        self.clean = 0;
    }

    /// Forgets all callers' registers and starts at `pointer`.
    pub fn restart(&mut self, pointer: u64, collection: u64) {
        self.dirty = 0;
        self.clean = 0;
        self.fill = None;
        self.backing_store = first_slot(pointer);
        self.set_collection(collection);
    }

    /// Whether the stack could be a processor's whose current frame has `frame` registers.
    pub(crate) fn is_valid(&self, frame: u32) -> bool {
        let held = [self.dirty, self.clean, frame];
        self.top < RING
            && held.iter().all(|&count| count <= STACKED_REGISTERS)
            && held.iter().sum::<u32>() <= STACKED_REGISTERS
            && self.backing_store.is_multiple_of(8)
            && self.collection >> COLLECTION_SLOT == 0
            && self
                .fill
                .is_none_or(|fill| fill.missing <= STACKED_REGISTERS && fill.clean <= STACKED_REGISTERS)
    }

    /// The value and NaT bit of the dirty register `distance` below BSP, counted from 1.
    pub(crate) fn pushed(&self, distance: usize) -> (u64, bool) {
        let index = self.top.wrapping_sub(distance);
        (self.values[index % RING], self.nat(index))
    }

    /// Changes the dirty register `distance` below BSP, counted from 1; its NaT bit becomes zero.
    pub(crate) fn set_pushed(&mut self, distance: usize, value: u64) {
        self.set(self.top.wrapping_sub(distance), value, false);
    }

    fn set(&mut self, index: usize, value: u64, nat: bool) {
        self.values[index % RING] = value;
        self.set_nat(index, nat);
    }

    fn set_nat(&mut self, index: usize, nat: bool) {
        self.nats = self.nats & !(1 << (index % RING)) | u128::from(nat) << (index % RING);
    }

    fn nat(&self, index: usize) -> bool {
        self.nats >> (index % RING) & 1 != 0
    }
}

impl Default for RegisterStack {
    fn default() -> Self {
        RegisterStack::new()
    }
}

/// Where the first register goes when the backing store is set to `pointer`: a collection's place is skipped.
fn first_slot(pointer: u64) -> u64 {
    let aligned = pointer & !7;
    if aligned >> 3 & COLLECTION_SLOT == COLLECTION_SLOT {
        aligned.wrapping_add(8)
    } else {
        aligned
    }
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
        if !self.call_usual_frame() {
            self.call_unusual_frame();
        }
    }

    // Apart, so that what is usual has nothing to save before it.
    #[cold]
    #[inline(never)]
    fn call_unusual_frame(&mut self) {
        self.unrotate_frame();
        let frame = self.frame;
        self.push_registers(frame.locals);
        let outputs = frame.size - frame.locals;
        self.general
            .copy(32 + frame.locals as usize, 32, outputs as usize);
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
        if self.return_usual_frame(marker, preserved) {
            return Ok(());
        }
        self.return_unusual_frame(marker, preserved)
    }

    #[cold]
    #[inline(never)]
    fn return_unusual_frame(&mut self, marker: FrameMarker, preserved: u32) -> Result<(), Raised> {
        self.unrotate_frame();
        let kept = marker.size.saturating_sub(preserved);
        let dirty = self.register_stack.dirty;
        // Manual volume 2, section 6.5.5: a frame that does not fit beside the dirty registers is replaced
        // by an empty one.
        let fits = marker.is_valid()
            && preserved <= marker.size
            && (dirty + kept <= STACKED_REGISTERS || kept <= self.frame.size);
        let (marker, preserved, kept) = if fits {
            (marker, preserved, kept)
        } else {
            (FrameMarker::default(), preserved.min(96), 0)
        };
        self.general.copy(32, 32 + preserved as usize, kept as usize);
        self.pop_registers(preserved);
        self.frame = marker;
        self.trim_clean();
        self.general.clear_nats_above(31 + marker.size);
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
        let excess = (self.register_stack.dirty + size).saturating_sub(STACKED_REGISTERS);
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

    /// `flushrs`: stores every dirty register.
    pub fn flush_register_stack(&mut self) -> Result<(), Raised> {
        self.spill(self.register_stack.dirty)
    }

    /// `loadrs`: the registers in the RSC.loadrs bytes below BSP become dirty, all others invalid.
    pub(crate) fn load_register_stack(&mut self) -> Result<(), Raised> {
        let stack = &self.register_stack;
        let distance = stack.configuration >> rsc::LOAD_SHIFT & rsc::LOAD_MASK & !7;
        let wanted = registers_between(stack.backing_store.wrapping_sub(distance), stack.backing_store);
        if wanted + self.frame.size > STACKED_REGISTERS {
            return Err(self.raise(Fault::illegal_operation()));
        }
        while self.register_stack.dirty < wanted {
            let stack = &self.register_stack;
            let address = below(stack.backing_store, stack.dirty + 1);
            if address >> 3 & COLLECTION_SLOT == COLLECTION_SLOT - 1 {
                self.register_stack.collection = self.load_backing_store(address + 8)?;
            }
            let value = self.load_backing_store(address)?;
            let stack = &mut self.register_stack;
            let nat = stack.collection >> (address >> 3 & COLLECTION_SLOT) & 1 != 0;
            stack.dirty += 1;
            stack.fills += 1;
            stack.set(stack.top.wrapping_sub(stack.dirty as usize), value, nat);
        }
        self.register_stack.dirty = wanted;
        self.register_stack.clean = 0;
        Ok(())
    }

    /// Fills the registers that an incomplete frame still lacks.
    pub(crate) fn complete_frame(&mut self) -> Result<(), Raised> {
        while let Some(fill) = self.register_stack.fill.filter(|fill| !fill.suspended) {
            let base = self.register_stack.backing_store;
            if fill.missing == 0 {
                // The backing store now ends in an earlier collection, of which memory holds the rest.
                if collection_address(base) < fill.limit {
                    self.register_stack.collection = self.load_backing_store(collection_address(base))?;
                }
                self.register_stack.fill = None;
                break;
            }
            let address = above(base, fill.missing - 1);
            let collection = if collection_address(address) < fill.limit {
                self.load_backing_store(collection_address(address))?
            } else {
                self.register_stack.collection
            };
            let value = self.load_backing_store(address)?;
            let nat = collection >> (address >> 3 & COLLECTION_SLOT) & 1 != 0;
            self.general.set_with_nat(31 + fill.missing as u8, value, nat);
            self.register_stack.fill = Some(Fill {
                missing: fill.missing - 1,
                clean: fill.clean + 1,
                ..fill
            });
            self.register_stack.fills += 1;
        }
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

    /// Moves the first `count` registers of the frame onto the stack of dirty registers.
    #[inline]
    fn push_registers(&mut self, count: u32) {
        let stack = &mut self.register_stack;
        let values = self.general.slice(32, count as usize);
        let until_end = values.len().min(RING - stack.top);
        let (first, rest) = values.split_at(until_end);
        copy_values(&mut stack.values[stack.top..stack.top + until_end], first);
        copy_values(&mut stack.values[..rest.len()], rest);
        if self.general.any_nat() || stack.nats != 0 {
            for offset in 0..count as usize {
                stack.set_nat(stack.top + offset, self.general.nat(32 + offset as u8));
            }
        }
        stack.top = (stack.top + count as usize) % RING;
        stack.dirty += count;
        if let Some(fill) = stack.fill.take() {
            // The oldest registers of an incomplete frame stayed in memory, those above them are there as well.
            stack.clean = fill.clean.min(stack.dirty - fill.missing.min(stack.dirty));
            stack.dirty = stack.dirty.saturating_sub(fill.missing + fill.clean);
        }
        stack.backing_store = above(stack.backing_store, count);
        stack.depth = stack.depth.wrapping_add(u64::from(count));
    }

    /// Takes `count` registers from the stack back to r32 and on; notes those that memory must provide.
    #[inline]
    fn pop_registers(&mut self, count: u32) {
        let stack = &mut self.register_stack;
        let store_pointer = stack.store_pointer();
        let from_dirty = count.min(stack.dirty);
        let from_clean = (count - from_dirty).min(stack.clean);
        let missing = count - from_dirty - from_clean;
        let base = stack.top.wrapping_sub(count as usize);
        let first = base.wrapping_add(missing as usize) % RING;
        let held = (count - missing) as usize;
        let until_end = held.min(RING - first);
        let registers = 32 + missing as usize;
        self.general
            .set_slice(registers, &stack.values[first..first + until_end]);
        self.general
            .set_slice(registers + until_end, &stack.values[..held - until_end]);
        if self.general.any_nat() || stack.nats != 0 {
            for offset in 0..held {
                let register = (registers + offset) as u8;
                let value = self.general.value(register);
                self.general
                    .set_with_nat(register, value, stack.nat(first + offset));
            }
        }
        stack.top = base % RING;
        stack.backing_store = below(stack.backing_store, count);
        stack.depth = stack.depth.wrapping_sub(u64::from(count));
        if count > stack.dirty {
            stack.fill = Some(Fill {
                missing,
                clean: from_clean,
                limit: store_pointer,
                suspended: false,
            });
        }
        stack.dirty -= from_dirty;
        stack.clean -= from_clean;
    }

    /// Stores the `count` oldest dirty registers; they become clean.
    #[cold]
    fn spill(&mut self, count: u32) -> Result<(), Raised> {
        for _ in 0..count {
            let stack = &self.register_stack;
            let address = stack.store_pointer();
            let slot = address >> 3 & COLLECTION_SLOT;
            let index = stack.top.wrapping_sub(stack.dirty as usize) % RING;
            let collection = stack.collection & !(1 << slot) | u64::from(stack.nat(index)) << slot;
            self.store_backing_store(address, self.register_stack.values[index])?;
            let closes = slot == COLLECTION_SLOT - 1;
            if closes {
                self.store_backing_store(address + 8, collection)?;
            }
            let stack = &mut self.register_stack;
            stack.collection = if closes { 0 } else { collection };
            stack.dirty -= 1;
            stack.clean += 1;
            stack.spills += 1;
        }
        Ok(())
    }

    /// Gives up clean registers that the current frame has grown over.
    #[inline]
    fn trim_clean(&mut self) {
        let room = STACKED_REGISTERS.saturating_sub(self.frame.size + self.register_stack.dirty);
        self.register_stack.clean = self.register_stack.clean.min(room);
    }
}
