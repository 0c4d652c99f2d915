//! Memory as a debugger addresses it.
//!
//! An address is first looked up as the processor would now, but whatever the access rights, and without any effect:
//! in the data translations, then in the instruction translations, then in the VHPT where the walker is on. With
//! data translation off, and where no translation is found, the address stands for the physical address in its low 61
//! bits: that is what the identity-mapped regions of kernels mean. Words of the backing store that are still in
//! registers come from there. Devices are not read.

use sidestep_ia64::mmu::entry::TranslationEntry;
use sidestep_ia64::mmu::vhpt::{PageTableAddress, RegionRegister, hash, tag};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{PhysicalAddress, Processor, VirtualAddress};

use crate::memory::GuestMemory;

/// The physical address behind an address as a debugger means it.
pub fn translate(processor: &Processor, memory: &GuestMemory, address: VirtualAddress) -> PhysicalAddress {
    let is_virtual = processor.status & (psr::DT | psr::IT) != 0;
    let entry = is_virtual.then(|| find(processor, memory, address)).flatten();
    match entry {
        Some(entry) => entry.physical_address(address),
        None => PhysicalAddress(address.offset()),
    }
}

/// The translation of a virtual address, if the processor has one or would find one in the VHPT.
fn find(processor: &Processor, memory: &GuestMemory, address: VirtualAddress) -> Option<TranslationEntry> {
    let mmu = processor.mmu()?;
    let region_of = |address: VirtualAddress| RegionRegister(processor.system.region[address.region()]);
    let region = region_of(address);
    let held = mmu
        .data
        .find(address, region.identifier())
        .or_else(|| mmu.instruction.find(address, region.identifier()));
    if let Some(entry) = held {
        return Some(*entry);
    }
    let table = PageTableAddress(processor.system.control[usize::from(control::PTA)]);
    if !table.is_enabled() || !region.walker_enabled() {
        return None;
    }
    let at = hash(address, region, table);
    let page = mmu.data.find(at, region_of(at).identifier())?;
    let physical = page.physical_address(at);
    let word = |offset: u64| {
        let value = memory.read_value::<u64>(physical + offset).ok()?;
        let is_big_endian = processor.system.control[usize::from(control::DCR)] >> 1 & 1 != 0;
        Some(if is_big_endian { value.swap_bytes() } else { value })
    };
    let itir = if table.is_long() {
        if word(16)? != tag(address, region) {
            return None;
        }
        word(8)?
    } else {
        region.default_itir()
    };
    let entry = TranslationEntry::new(address, region.identifier(), word(0)?, itir).ok()?;
    entry.present.then_some(entry)
}

/// Reads bytes as far as memory answers; returns how many.
pub fn read(processor: &Processor, memory: &GuestMemory, address: VirtualAddress, bytes: &mut [u8]) -> usize {
    for (index, byte) in bytes.iter_mut().enumerate() {
        let at = address + index as u64;
        *byte = match processor.unstored_word(at.0 & !7) {
            Some(word) => stored_bytes(processor, word)[(at.0 & 7) as usize],
            None => match memory.read_value::<u8>(translate(processor, memory, at)) {
                Ok(value) => value,
                Err(_) => return index,
            },
        };
    }
    bytes.len()
}

/// Writes bytes, ROM included. False if memory does not hold all of them; some are written then.
pub fn write(processor: &mut Processor, memory: &GuestMemory, address: VirtualAddress, bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(index, &byte)| {
        let at = address + index as u64;
        match processor.unstored_word(at.0 & !7) {
            Some(word) => {
                let mut stored = stored_bytes(processor, word);
                stored[(at.0 & 7) as usize] = byte;
                let value = if processor.register_stack().is_big_endian() {
                    u64::from_be_bytes(stored)
                } else {
                    u64::from_le_bytes(stored)
                };
                processor.set_unstored_word(at.0 & !7, value)
            }
            None => memory.write(translate(processor, memory, at), &[byte]).is_ok(),
        }
    })
}

fn stored_bytes(processor: &Processor, word: u64) -> [u8; 8] {
    if processor.register_stack().is_big_endian() {
        word.to_be_bytes()
    } else {
        word.to_le_bytes()
    }
}
