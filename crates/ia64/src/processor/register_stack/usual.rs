//! Calls and returns of small frames where nothing is unusual: their registers are copied in chunks of one size.

use super::{COLLECTION_SLOT, RING};
use crate::processor::Processor;
use crate::registers::frame::{FrameMarker, STACKED_REGISTERS};

/// How many registers are copied at once.
const CHUNK: usize = 8;

/// As [`above`](super::above) for a frame's registers, between which two NaT collections stand at most.
#[inline(always)]
fn above_few(pointer: u64, count: u32) -> u64 {
    let slot = pointer >> 3 & COLLECTION_SLOT;
    let registers = u64::from(count);
    pointer.wrapping_add((registers + collections_among(slot + registers)) * 8)
}

/// As [`below`](super::below), likewise.
#[inline(always)]
fn below_few(pointer: u64, count: u32) -> u64 {
    let slot = pointer >> 3 & COLLECTION_SLOT;
    let registers = u64::from(count);
    pointer.wrapping_sub((registers + collections_among(registers + COLLECTION_SLOT - 1 - slot)) * 8)
}

/// How many multiples of a collection's registers a number below three of them reaches: dividing takes longer.
#[inline(always)]
fn collections_among(registers: u64) -> u64 {
    debug_assert!(registers < 3 * COLLECTION_SLOT);
    u64::from(registers >= COLLECTION_SLOT) + u64::from(registers >= 2 * COLLECTION_SLOT)
}

impl Processor {
    /// Whether no register of the frame or the stack is renamed or NaT, or still has to be loaded.
    #[inline(always)]
    fn is_usual(&self) -> bool {
        let (frame, stack) = (self.frame, &self.register_stack);
        frame.rename_general | frame.rename_floating | frame.rename_predicate == 0
            && !self.general.any_nat()
            && stack.nats == 0
            && stack.fill.is_none()
    }

    /// As [`Processor::call_frame`] for a small frame where nothing is unusual; changes nothing and answers false where
    /// it is another. Chunks of one size are copied quickest: what stands behind a frame may change.
    #[inline(always)]
    pub(super) fn call_usual_frame(&mut self) -> bool {
        let frame = self.frame;
        let (locals, outputs) = (
            frame.locals as usize,
            frame.size.wrapping_sub(frame.locals) as usize,
        );
        let top = self.register_stack.top;
        let end = top + locals.next_multiple_of(CHUNK);
        if !self.is_usual() || outputs > CHUNK || end > RING {
            return false;
        }
        let stack = &mut self.register_stack;
        let (pushed, _) = stack.values[top..end].as_chunks_mut::<CHUNK>();
        for (index, pushed) in pushed.iter_mut().enumerate() {
            *pushed = self.general.chunk(32 + index * CHUNK);
        }
        let passed = self.general.chunk::<CHUNK>(32 + locals);
        self.general.set_chunk(32, passed);
        stack.top = (top + locals) % RING;
        stack.dirty += frame.locals;
        stack.backing_store = above_few(stack.backing_store, frame.locals);
        stack.depth = stack.depth.wrapping_add(u64::from(frame.locals));
        self.frame = FrameMarker {
            size: outputs as u32,
            ..FrameMarker::default()
        };
        true
    }

    /// As [`Processor::return_frame`] for a small frame all of whose registers are at hand where nothing is unusual;
    /// changes nothing and answers false where it is another.
    #[inline(always)]
    pub(super) fn return_usual_frame(&mut self, marker: FrameMarker, preserved: u32) -> bool {
        let count = preserved as usize;
        let kept = marker.size.wrapping_sub(preserved);
        let stack = &mut self.register_stack;
        let base = stack.top.wrapping_sub(count);
        let end = base.wrapping_add(count.next_multiple_of(CHUNK));
        let fits = preserved <= stack.dirty
            && kept <= CHUNK as u32
            && stack.dirty + kept <= STACKED_REGISTERS
            && count <= stack.top
            && end <= RING
            && marker.locals.max(marker.rotating) <= marker.size
            && marker.rename_general | marker.rename_floating | marker.rename_predicate == 0;
        if !fits || !self.is_usual() {
            return false;
        }
        let stack = &mut self.register_stack;
        let passed = self.general.chunk::<CHUNK>(32);
        let (pushed, _) = stack.values[base..end].as_chunks::<CHUNK>();
        for (index, pushed) in pushed.iter().enumerate() {
            self.general.set_chunk(32 + index * CHUNK, *pushed);
        }
        self.general.set_chunk(32 + count, passed);
        stack.top = base;
        stack.dirty -= preserved;
        stack.backing_store = below_few(stack.backing_store, preserved);
        stack.depth = stack.depth.wrapping_sub(u64::from(preserved));
        self.frame = marker;
        self.trim_clean();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::{above, below};
    use super::*;

    #[test]
    fn addresses_of_few_registers_are_those_of_many() {
        for slot in 0..COLLECTION_SLOT {
            let pointer = 0x6000_0000_0000_0000 + 8 * slot;
            for count in 0..=STACKED_REGISTERS {
                assert_eq!(
                    above_few(pointer, count),
                    above(pointer, count),
                    "{slot}, {count}"
                );
                assert_eq!(
                    below_few(pointer, count),
                    below(pointer, count),
                    "{slot}, {count}"
                );
            }
        }
    }
}
