//! Shadow translation: the monitor's long-format VHPT, which the hardware walks instead of the guest's tables.
//!
//! Each virtual processor has a table of its own, because guests pin different pages at one address on different
//! processors. An entry maps one page of the region's preferred size to machine memory; a smaller page of the guest
//! stays out of the table and goes to the TLB only. The fourth word of an entry holds its virtual address.

use std::sync::Arc;

use sidestep_ia64::mmu::entry::{MemoryAttribute, TranslationEntry};
use sidestep_ia64::mmu::vhpt::{PageTableAddress, RegionRegister, hash, tag};
use sidestep_ia64::{PhysicalAddress, VirtualAddress};
use sidestep_machine::memory::{GuestMemory, MemoryRange};

use super::machine_address::MachineAddress;

/// The table's size: 2 to this power; 8192 entries, which cover 128 MB of 16 kB pages.
const SIZE_LOG2: u32 = 18;
/// Where the table stands in the part of region 7 that belongs to the monitor.
const ADDRESS: VirtualAddress = VirtualAddress(7 << 61 | 1 << 60);
/// The page table address register of every shadow: long format, walker on.
pub(super) const PAGE_TABLE_ADDRESS: u64 = ADDRESS.0 | (SIZE_LOG2 as u64) << 2 | 1 << 8 | 1;
/// The tag of an entry that maps nothing.
const INVALID: u64 = 1 << 63;
/// More pages than this are purged by a look at every entry.
const PROBES_MAX: u64 = 64;
const ENTRY_SIZE: u64 = 32;

/// One virtual processor's shadow table.
pub(super) struct ShadowTable {
    memory: Arc<GuestMemory>,
    /// Nothing was entered since it was cleared: a guest that purges in a loop is not to cost this program a walk each
    /// time.
    is_empty: bool,
}

impl ShadowTable {
    pub fn new() -> ShadowTable {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, 1 << SIZE_LOG2)]).expect("a good layout");
        let mut table = ShadowTable {
            memory: Arc::new(memory),
            is_empty: false,
        };
        table.clear();
        table
    }

    pub fn memory(&self) -> Arc<GuestMemory> {
        Arc::clone(&self.memory)
    }

    /// The translation of the table itself, to be pinned: for the walker alone, at level 0.
    pub fn pinned(owner: usize, processor: usize, region: u32) -> TranslationEntry {
        TranslationEntry {
            page: ADDRESS,
            region,
            size_log2: SIZE_LOG2,
            physical: MachineAddress::of_table(owner, processor).on_hardware(),
            key: 0,
            present: true,
            attribute: MemoryAttribute::WriteBack,
            accessed: true,
            dirty: true,
            level: 0,
            rights: 0,
            deferral: false,
        }
    }

    /// Where the entry for an address is in the table.
    pub fn offset(address: VirtualAddress, region: RegionRegister) -> u64 {
        let entry = hash(address, region, PageTableAddress(PAGE_TABLE_ADDRESS));
        entry.offset_from(ADDRESS).expect("entries lie in the table")
    }

    /// Enters a page of the region's preferred size.
    pub fn insert(&mut self, region: RegionRegister, entry: &TranslationEntry) {
        self.is_empty = false;
        let words = [
            page_table_entry(entry),
            u64::from(entry.key) << 8 | u64::from(entry.size_log2) << 2,
            tag(entry.page, region),
            entry.page.0,
        ];
        self.write(ShadowTable::offset(entry.page, region), words);
    }

    /// Whether the table has an entry for the page of an address.
    fn holds(&self, address: VirtualAddress, region: RegionRegister) -> bool {
        self.word(ShadowTable::offset(address, region) + 16) == tag(address, region)
    }

    /// Removes what overlaps `1 << size_log2` bytes around an address.
    pub fn purge(&self, address: VirtualAddress, region: RegionRegister, size_log2: u32) {
        if self.is_empty {
            return;
        }
        let page_log2 = region.size_log2();
        let pages = 1u64 << size_log2.saturating_sub(page_log2).min(63);
        if pages > PROBES_MAX {
            return self.purge_every(region.identifier(), address, size_log2);
        }
        let first = address.aligned_down(size_log2.max(page_log2));
        for page in 0..pages {
            let page = first + (page << page_log2);
            if self.holds(page, region) {
                self.invalidate(ShadowTable::offset(page, region));
            }
        }
    }

    fn purge_every(&self, identifier: u32, address: VirtualAddress, size_log2: u32) {
        for offset in (0..1 << SIZE_LOG2).step_by(ENTRY_SIZE as usize) {
            let [_, itir, found, page] = [0, 8, 16, 24].map(|word| self.word(offset + word));
            let page_log2 = (itir >> 2 & 63) as u32;
            if found & INVALID != 0 || page_log2 == 0 {
                continue;
            }
            let page = VirtualAddress(page);
            let owner = ((found ^ page.offset() >> page_log2) >> 39) as u32 & 0xff_ffff;
            let apart = (page.offset() ^ address.offset()) >> size_log2.max(page_log2);
            if owner == identifier && apart == 0 {
                self.invalidate(offset);
            }
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        if std::mem::replace(&mut self.is_empty, true) {
            return;
        }
        for offset in (0..1 << SIZE_LOG2).step_by(ENTRY_SIZE as usize) {
            self.invalidate(offset);
        }
    }

    fn invalidate(&self, offset: u64) {
        self.write(offset, [0, 0, INVALID, 0]);
    }

    fn word(&self, offset: u64) -> u64 {
        self.memory
            .read_value(PhysicalAddress(offset))
            .expect("entries lie in the table")
    }

    fn write(&self, offset: u64, words: [u64; 4]) {
        self.memory
            .write_value(PhysicalAddress(offset), words)
            .expect("entries lie in the table");
    }
}

/// A translation as the VHPT holds it (manual volume 2, figure 4-5).
fn page_table_entry(entry: &TranslationEntry) -> u64 {
    let attribute = match entry.attribute {
        MemoryAttribute::WriteBack => 0,
        MemoryAttribute::Uncacheable => 4,
        MemoryAttribute::UncacheableExported => 5,
        MemoryAttribute::WriteCoalescing => 6,
        MemoryAttribute::NatPage => 7,
    };
    u64::from(entry.present)
        | attribute << 2
        | u64::from(entry.accessed) << 5
        | u64::from(entry.dirty) << 6
        | u64::from(entry.level) << 7
        | u64::from(entry.rights) << 9
        | entry.physical.0
        | u64::from(entry.deferral) << 52
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(page: VirtualAddress, region: RegionRegister) -> TranslationEntry {
        TranslationEntry {
            page,
            size_log2: region.size_log2(),
            region: region.identifier(),
            physical: PhysicalAddress(0x40_0000),
            ..ShadowTable::pinned(0, 0, 0)
        }
    }

    #[test]
    fn a_page_table_entry_reads_back() {
        let entry = TranslationEntry {
            page: VirtualAddress(0x4000),
            region: 1,
            size_log2: 14,
            physical: PhysicalAddress(0x7000_0000),
            key: 5,
            present: true,
            attribute: MemoryAttribute::UncacheableExported,
            accessed: true,
            dirty: false,
            level: 3,
            rights: 6,
            deferral: true,
        };
        let read = TranslationEntry::new(
            VirtualAddress(0x4000),
            1,
            page_table_entry(&entry),
            5 << 8 | 14 << 2,
        );
        assert_eq!(read, Ok(entry));
    }

    proptest! {
        #[test]
        fn a_purge_removes_what_it_covers_and_nothing_else(
            numbers in proptest::collection::vec((0u64..1 << 12, 0u64..4), 1..20),
            victim in 0u64..1 << 12,
            size_log2 in 14u32..27,
            identifier in 0u64..4,
        ) {
            let mut table = ShadowTable::new();
            let register = |identifier: u64| RegionRegister(identifier << 8 | 14 << 2 | 1);
            let page = |number: u64| VirtualAddress(number << 14);
            for (number, identifier) in &numbers {
                table.insert(register(*identifier), &entry(page(*number), register(*identifier)));
            }
            let holds = |table: &ShadowTable, number: &u64, id: &u64| table.holds(page(*number), register(*id));
            let held: Vec<bool> = numbers.iter().map(|(number, id)| holds(&table, number, id)).collect();
            table.purge(page(victim), register(identifier), size_log2);
            for ((number, id), before) in numbers.iter().zip(held) {
                let covered = *id == identifier && (number << 14) >> size_log2 == (victim << 14) >> size_log2;
                prop_assert_eq!(holds(&table, number, id), before && !covered);
            }
        }
    }
}
