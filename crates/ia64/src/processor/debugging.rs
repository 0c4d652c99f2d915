//! What debuggers see and change: mostly the register stack, as if all of it were in memory.
//!
//! A debugger finds the stacked registers of every frame, the current one included, in the backing store below
//! [`Processor::backing_store_end`]. The words that memory does not hold yet are served from the registers.

use crate::processor::Processor;
use crate::processor::register_stack::{above, registers_between};
use crate::registers::frame::{FrameMarker, ROTATING_PREDICATES};
use crate::registers::predicate;
use crate::registers::status::psr;

/// A NaT collection stands at every address whose bits 8 to 3 are all ones.
const COLLECTION: u64 = 63;

impl Processor {
    /// Where the backing store would end if the current frame were stored as well.
    pub fn backing_store_end(&self) -> u64 {
        above(self.register_stack().backing_store_pointer(), self.frame.size)
    }

    /// The backing store's word at an 8-byte aligned address if memory does not hold it yet.
    pub fn unstored_word(&self, address: u64) -> Option<u64> {
        Some(match self.unstored_place(address)? {
            Place::Register(distance) => self.register_below_end(distance).0,
            Place::Collection => self.unstored_collection(address),
        })
    }

    /// Changes the register that stands for a word of the backing store. False if memory holds the word, or if it is
    /// a collection of NaT bits.
    pub fn set_unstored_word(&mut self, address: u64, value: u64) -> bool {
        let Some(Place::Register(distance)) = self.unstored_place(address) else {
            return false;
        };
        let frame = self.frame.size;
        if distance <= frame {
            let register = self.rotated_register(frame - distance);
            self.general.set(register, value);
        } else {
            self.general.set_below(distance - frame, value);
            self.register_stack.set_nat_below(distance - frame, false);
        }
        true
    }

    /// The predicates without rotation, as a move from `pr` reads them.
    pub fn unrotated_predicates(&self) -> u64 {
        predicate::rotate_up(self.predicates, self.frame.rename_predicate)
    }

    /// Sets the predicates from their unrotated form.
    pub fn set_unrotated_predicates(&mut self, predicates: u64) {
        let distance = (ROTATING_PREDICATES - self.frame.rename_predicate) % ROTATING_PREDICATES;
        self.predicates = predicate::rotate_up(predicates | 1, distance);
    }

    /// Makes PSR `status`, as `rfi` would but for the slot.
    pub fn set_status(&mut self, status: u64) {
        self.select_bank(u8::from(status & psr::BN != 0));
        self.change_status(status & !psr::RI);
    }

    /// The register that names the stacked register `offset` above the frame's beginning.
    fn rotated_register(&self, offset: u32) -> u8 {
        let FrameMarker {
            rotating,
            rename_general,
            ..
        } = self.frame;
        let named = if offset < rotating {
            (offset + rotating - rename_general) % rotating
        } else {
            offset
        };
        32 + named as u8
    }

    fn unstored_place(&self, address: u64) -> Option<Place> {
        let (start, end) = (self.register_stack().store_pointer(), self.backing_store_end());
        let is_unstored = address.wrapping_sub(start) < end.wrapping_sub(start) && address.is_multiple_of(8);
        if !is_unstored {
            return None;
        }
        Some(if address >> 3 & COLLECTION == COLLECTION {
            Place::Collection
        } else {
            Place::Register(registers_between(address, end))
        })
    }

    /// The value and NaT bit of the register so many below the backing store's end, counted from 1.
    fn register_below_end(&self, distance: u32) -> (u64, bool) {
        let frame = self.frame.size;
        if distance <= frame {
            let register = self.rotated_register(frame - distance);
            (self.general.value(register), self.general.nat(register))
        } else {
            let distance = distance - frame;
            (
                self.general.below(distance),
                self.register_stack.nat_below(distance),
            )
        }
    }

    /// A collection: the bits of registers that memory holds from RNAT, the others from the registers.
    fn unstored_collection(&self, address: u64) -> u64 {
        let start = self.register_stack().store_pointer();
        let end = self.backing_store_end();
        let mut bits = self.register_stack().collection();
        for slot in 0..COLLECTION {
            let word = (address & !0x1ff) + slot * 8;
            if word.wrapping_sub(start) < end.wrapping_sub(start) {
                let (_, nat) = self.register_below_end(registers_between(word, end));
                bits = bits & !(1 << slot) | u64::from(nat) << slot;
            }
        }
        bits
    }
}

/// What a word of the backing store is.
enum Place {
    /// The register so many below the end, counted from 1.
    Register(u32),
    /// A collection of NaT bits.
    Collection,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PhysicalAddress;
    use crate::memory::physical::{GlobalPurge, MemoryRegion, PhysicalMemory};
    use std::sync::Arc;

    /// A machine without memory.
    struct Nothing;

    // SAFETY: there is no region.
    unsafe impl PhysicalMemory for Nothing {
        fn region(&self, _: PhysicalAddress) -> Option<MemoryRegion> {
            None
        }

        fn load_device(&self, _: PhysicalAddress, _: u64) -> Option<u64> {
            None
        }

        fn store_device(&self, _: PhysicalAddress, _: u64, _: u64) -> bool {
            false
        }

        fn purge_others(&self, _: GlobalPurge) -> Vec<GlobalPurge> {
            Vec::new()
        }
    }

    fn frame(size: u32, locals: u32) -> FrameMarker {
        FrameMarker {
            size,
            locals,
            ..FrameMarker::default()
        }
    }

    #[test]
    fn pushed_and_current_registers_are_found_across_a_collection() {
        let mut processor = Processor::new_system(Arc::new(Nothing));
        let base = 0x1_0000 + 60 * 8;
        processor.register_stack_mut().restart(base, 0b11);
        processor.frame = frame(5, 5);
        for register in 32..37 {
            processor
                .general
                .set_with_nat(register, u64::from(register), register == 34);
        }
        processor.cover_frame();
        processor.frame = frame(2, 2);
        processor.general.set(32, 100);
        processor.general.set(33, 101);
        assert_eq!(processor.backing_store_end(), base + 8 * 8);
        let words: Vec<_> = (0..9)
            .map(|word| processor.unstored_word(base + word * 8))
            .collect();
        let collection = 1 << 62 | 0b11;
        let expected = [32, 33, 34, collection, 35, 36, 100, 101].map(Some);
        assert_eq!(words[..8], expected);
        assert_eq!((words[8], processor.unstored_word(base - 8)), (None, None));
        assert!(processor.set_unstored_word(base + 8, 7));
        assert!(processor.set_unstored_word(base + 48, 8));
        assert!(!processor.set_unstored_word(base + 24, 0), "a collection");
        assert_eq!(processor.unstored_word(base + 8), Some(7));
        assert_eq!(processor.general.value(32), 8);
    }

    #[test]
    fn a_rotated_frame_is_found_unrotated() {
        let mut processor = Processor::new_system(Arc::new(Nothing));
        processor.register_stack_mut().restart(0x1_0000, 0);
        processor.frame = FrameMarker {
            rotating: 8,
            ..frame(8, 8)
        };
        for register in 32..40 {
            processor.general.set(register, u64::from(register));
        }
        processor.predicates = 1 | 1 << 16;
        processor.rotate_once();
        let words: Vec<_> = (0..8)
            .map(|word| processor.unstored_word(0x1_0000 + word * 8).expect("unstored"))
            .collect();
        assert_eq!(words, (32..40).collect::<Vec<u64>>());
        assert_eq!(processor.predicates, 1 | 1 << 17);
        assert_eq!(processor.unrotated_predicates(), 1 | 1 << 16);
        processor.set_unrotated_predicates(1 << 63);
        assert_eq!(processor.predicates, 1 | 1 << 16);
    }
}
