//! What the register stack engine stores and loads: spills of dirty registers, fills of those that a frame lacks.

use super::{COLLECTION_SLOT, Fill, above, below, collection_address, registers_between};
use crate::fault::{Access, Fault};
use crate::processor::{Processor, Raised};
use crate::registers::status::rsc;

impl Processor {
    /// `flushrs`: stores every dirty register.
    pub fn flush_register_stack(&mut self) -> Result<(), Raised> {
        self.spill(self.register_stack.dirty())
    }

    /// `loadrs`: the registers in the RSC.loadrs bytes below BSP become dirty, all others invalid.
    pub(crate) fn load_register_stack(&mut self) -> Result<(), Raised> {
        let stack = &self.register_stack;
        let distance = stack.configuration >> rsc::LOAD_SHIFT & rsc::LOAD_MASK & !7;
        let base = stack.backing_store_pointer();
        let wanted = registers_between(base.wrapping_sub(distance), base);
        if wanted + self.frame.size > stack.capacity() {
            return Err(self.raise(Fault::illegal_operation()));
        }
        self.general.make_room(wanted, self.register_stack.at_hand());
        while self.register_stack.dirty() < wanted {
            let distance = self.register_stack.dirty() + 1;
            let address = below(base, distance);
            if address >> 3 & COLLECTION_SLOT == COLLECTION_SLOT - 1 {
                self.register_stack.collection = self.load_backing_store(address + 8)?;
            }
            let value = self.load_backing_store(address)?;
            let stack = &mut self.register_stack;
            let nat = stack.collection >> (address >> 3 & COLLECTION_SLOT) & 1 != 0;
            stack.stored = stack.stored.wrapping_sub(1);
            stack.loaded = stack.loaded.min(stack.stored);
            stack.fills += 1;
            stack.set_nat_below(distance, nat);
            self.general.set_below(distance, value);
        }
        let stack = &mut self.register_stack;
        stack.stored = stack.position.wrapping_sub(i64::from(wanted));
        stack.loaded = stack.stored;
        Ok(())
    }

    /// Fills the registers that an incomplete frame still lacks.
    pub(crate) fn complete_frame(&mut self) -> Result<(), Raised> {
        while let Some(fill) = self.register_stack.fill.filter(|fill| !fill.suspended) {
            let base = self.register_stack.backing_store_pointer();
            if fill.missing == 0 {
                // The backing store now ends in an earlier collection, of which memory holds the rest.
                if collection_address(base) < fill.limit {
                    self.register_stack.collection = self.load_backing_store(collection_address(base))?;
                }
                self.register_stack.set_fill(None);
                break;
            }
            let last = above(base, fill.missing - 1);
            let collection = if collection_address(last) < fill.limit {
                self.load_backing_store(collection_address(last))?
            } else {
                self.register_stack.collection
            };
            let slot = (last >> 3 & COLLECTION_SLOT) as u32;
            let count = self.fill_down(last, fill.missing, collection, fill.missing.min(slot + 1))?;
            self.register_stack.fill = Some(Fill {
                missing: fill.missing - count,
                clean: fill.clean + count,
                ..fill
            });
            self.register_stack.fills += u64::from(count);
        }
        Ok(())
    }

    /// Loads registers of the frame, the `number`th at `last` and `count` in all down from there, which one collection
    /// covers. Answers how many it has loaded, at least one.
    fn fill_down(&mut self, last: u64, number: u32, collection: u64, count: u32) -> Result<u32, Raised> {
        let Some(group) = self.backing_store_group(last, Access::RegisterStackRead) else {
            let value = self.load_backing_store(last)?;
            self.fill_register(
                number,
                value,
                collection >> (last >> 3 & COLLECTION_SLOT) & 1 != 0,
            );
            return Ok(1);
        };
        let slots = (0..=last >> 3 & COLLECTION_SLOT).rev().take(count as usize);
        if collection == 0 && !self.general.any_nat() {
            self.general.set_down(number, slots.map(|slot| group.load(slot)));
            return Ok(count);
        }
        for (slot, number) in slots.zip((1..=number).rev()) {
            self.fill_register(number, group.load(slot), collection >> slot & 1 != 0);
        }
        Ok(count)
    }

    fn fill_register(&mut self, number: u32, value: u64, nat: bool) {
        let register = (31 + number) as u8;
        match nat {
            false => self.general.set(register, value),
            true => self.general.set_with_nat(register, value, nat),
        }
    }

    /// Stores the `count` oldest dirty registers; they become clean.
    #[cold]
    pub(super) fn spill(&mut self, count: u32) -> Result<(), Raised> {
        let mut left = count;
        while left > 0 {
            left -= self.spill_up(left)?;
        }
        Ok(())
    }

    /// Stores the oldest dirty registers, `count` at most, which one collection covers, and the collection behind its
    /// last one. Answers how many it has stored, at least one.
    fn spill_up(&mut self, count: u32) -> Result<u32, Raised> {
        let stack = &self.register_stack;
        let (address, distance) = (stack.store_pointer(), stack.dirty());
        let first = address >> 3 & COLLECTION_SLOT;
        let count = u64::from(count).min(COLLECTION_SLOT - first);
        let group = self.backing_store_group(address, Access::RegisterStackWrite);
        let count = if group.is_some() { count } else { 1 };
        let values = self.general.callers(distance, count as u32);
        match &group {
            Some(group) => (first..)
                .zip(values)
                .for_each(|(slot, &value)| group.store(slot, value)),
            None => self.store_backing_store(address, values[0])?,
        }
        let stack = &self.register_stack;
        let mut collection = stack.collection & !(((1 << count) - 1) << first);
        if stack.any_nat() {
            for offset in 0..count {
                let nat = stack.nat_below(distance - offset as u32);
                collection |= u64::from(nat) << (first + offset);
            }
        }
        let closes = first + count == COLLECTION_SLOT;
        if closes {
            self.store_backing_store(collection_address(address), collection)?;
        }
        let stack = &mut self.register_stack;
        stack.collection = if closes { 0 } else { collection };
        stack.stored = stack.stored.wrapping_add(count as i64);
        stack.spills += count;
        Ok(count as u32)
    }
}
