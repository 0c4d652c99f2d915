//! Shadow translation: the monitor's long-format VHPT, which the hardware walks instead of the guest's tables.
//!
//! Each virtual processor has a table of its own, because guests pin different pages at one address on different
//! processors. An entry maps one page of the region's preferred size to machine memory; a smaller page of the guest
//! stays out of the table and goes to the TLB only. The fourth word of an entry holds its virtual address.
//!
//! The monitor may take the present bit of an entry away, to see who touches the page next. Such an entry still has all
//! that it maps, so that giving the bit back needs nothing of the guest's.

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

/// The bit of an entry's first word that says that the page is present.
const PRESENT: u64 = 1;
/// How many entries the table has.
const ENTRIES: usize = (1 << SIZE_LOG2) / ENTRY_SIZE as usize;

/// A page that the table maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShadowedPage {
    /// Its first virtual address.
    pub page: VirtualAddress,
    /// Its region's identifier.
    pub region: u32,
    /// Its size: 2 to this power.
    pub size_log2: u32,
    /// Where it is in the machine's memory.
    pub machine: MachineAddress,
}

/// One virtual processor's shadow table.
pub(super) struct ShadowTable {
    memory: Arc<GuestMemory>,
    /// A bit for each entry whose present bit may be taken away: pages of the guest's memory that have it.
    takeable: Vec<u64>,
    /// The entry from which on the next one to be taken away is looked for.
    next: usize,
    /// Nothing was entered since it was cleared: a guest that purges in a loop is not to cost this program a walk each
    /// time.
    is_empty: bool,
}

impl ShadowTable {
    pub fn new() -> ShadowTable {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, 1 << SIZE_LOG2)]).expect("a good layout");
        let mut table = ShadowTable {
            memory: Arc::new(memory),
            takeable: vec![0; ENTRIES.div_ceil(64)],
            next: 0,
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

    /// Enters a page of the region's preferred size, which is memory of the guest's or a window of the monitor's.
    pub fn insert(&mut self, region: RegionRegister, entry: &TranslationEntry, is_guest_memory: bool) {
        self.is_empty = false;
        let words = [
            page_table_entry(entry),
            u64::from(entry.key) << 8 | u64::from(entry.size_log2) << 2,
            tag(entry.page, region),
            entry.page.0,
        ];
        let offset = ShadowTable::offset(entry.page, region);
        self.write(offset, words);
        self.set_takeable(offset, is_guest_memory);
    }

    /// Takes the present bit of the next page that has it away; `None` if no page of the guest's memory has it.
    pub fn take_away(&mut self) -> Option<ShadowedPage> {
        let found = self.next_takeable()?;
        self.next = (found + 1) % ENTRIES;
        let offset = found as u64 * ENTRY_SIZE;
        self.set_takeable(offset, false);
        self.write_word(offset, self.word(offset) & !PRESENT);
        Some(self.page_at(offset))
    }

    /// Gives the page of an address its present bit back; `None` if the table has no such page, or it was not taken
    /// away.
    pub fn give_back(&mut self, address: VirtualAddress, region: RegionRegister) -> Option<ShadowedPage> {
        let offset = ShadowTable::offset(address, region);
        let word = self.word(offset);
        if !self.holds(address, region) || word & PRESENT != 0 {
            return None;
        }
        self.write_word(offset, word | PRESENT);
        self.set_takeable(offset, true);
        Some(self.page_at(offset))
    }

    /// The first entry whose present bit may be taken away, from where the last search ended, around the table.
    fn next_takeable(&self) -> Option<usize> {
        let (first, bit) = (self.next / 64, self.next % 64);
        let words = self.takeable.len();
        // The first word comes twice: its upper bits first, its lower bits last.
        (0..=words).find_map(|step| {
            let index = (first + step) % words;
            let mask = match step {
                0 => u64::MAX << bit,
                step if step == words => !(u64::MAX << bit),
                _ => u64::MAX,
            };
            let bits = self.takeable[index] & mask;
            (bits != 0).then(|| index * 64 + bits.trailing_zeros() as usize)
        })
    }

    fn set_takeable(&mut self, offset: u64, takeable: bool) {
        let entry = (offset / ENTRY_SIZE) as usize;
        let bit = 1 << (entry % 64);
        match takeable {
            true => self.takeable[entry / 64] |= bit,
            false => self.takeable[entry / 64] &= !bit,
        }
    }

    /// The page of a valid entry.
    fn page_at(&self, offset: u64) -> ShadowedPage {
        let [word, itir, tag, page] = [0, 8, 16, 24].map(|word| self.word(offset + word));
        let size_log2 = (itir >> 2 & 63) as u32;
        let page = VirtualAddress(page);
        ShadowedPage {
            page,
            region: identifier_of(tag, page, size_log2),
            size_log2,
            machine: MachineAddress::from_hardware(PhysicalAddress(word & FRAME)),
        }
    }

    /// Whether the table has an entry for the page of an address.
    fn holds(&self, address: VirtualAddress, region: RegionRegister) -> bool {
        self.word(ShadowTable::offset(address, region) + 16) == tag(address, region)
    }

    /// Removes what overlaps `1 << size_log2` bytes around an address.
    pub fn purge(&mut self, address: VirtualAddress, region: RegionRegister, size_log2: u32) {
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

    fn purge_every(&mut self, identifier: u32, address: VirtualAddress, size_log2: u32) {
        for offset in (0..1 << SIZE_LOG2).step_by(ENTRY_SIZE as usize) {
            let [_, itir, found, page] = [0, 8, 16, 24].map(|word| self.word(offset + word));
            let page_log2 = (itir >> 2 & 63) as u32;
            if found & INVALID != 0 || page_log2 == 0 {
                continue;
            }
            let page = VirtualAddress(page);
            let owner = identifier_of(found, page, page_log2);
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

    fn invalidate(&mut self, offset: u64) {
        self.write(offset, [0, 0, INVALID, 0]);
        self.set_takeable(offset, false);
    }

    fn word(&self, offset: u64) -> u64 {
        self.memory
            .read_value(PhysicalAddress(offset))
            .expect("entries lie in the table")
    }

    fn write_word(&self, offset: u64, word: u64) {
        self.memory
            .write_value(PhysicalAddress(offset), word)
            .expect("entries lie in the table");
    }

    fn write(&self, offset: u64, words: [u64; 4]) {
        self.memory
            .write_value(PhysicalAddress(offset), words)
            .expect("entries lie in the table");
    }
}

/// The bits of an entry's first word that are the physical address.
const FRAME: u64 = (1 << 50) - (1 << 12);

/// The region identifier behind a page's tag, which is both, folded.
fn identifier_of(tag: u64, page: VirtualAddress, page_log2: u32) -> u32 {
    ((tag ^ page.offset() >> page_log2) >> 39) as u32 & 0xff_ffff
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

    /// Region registers and pages of a test, by numbers.
    fn register(identifier: u64) -> RegionRegister {
        RegionRegister(identifier << 8 | 14 << 2 | 1)
    }

    #[test]
    fn pages_are_taken_away_in_turn_and_windows_are_not() {
        let mut table = ShadowTable::new();
        assert_eq!(table.take_away(), None, "an empty table");
        let pages = [3, 70, 1000].map(|number: u64| VirtualAddress(number << 14));
        for page in pages {
            table.insert(register(5), &entry(page, register(5)), true);
        }
        let window = VirtualAddress(9 << 14);
        table.insert(register(5), &entry(window, register(5)), false);
        let mut taken: Vec<_> = std::iter::from_fn(|| table.take_away()).collect();
        taken.sort_by_key(|taken| taken.page);
        assert_eq!(taken.iter().map(|taken| taken.page).collect::<Vec<_>>(), pages);
        assert!(
            taken
                .iter()
                .all(|taken| taken.region == 5 && taken.size_log2 == 14)
        );
        assert_eq!(taken[0].machine.on_hardware(), PhysicalAddress(0x40_0000));
        assert_eq!(
            table.give_back(window, register(5)),
            None,
            "it was not taken away"
        );
        assert_eq!(table.give_back(pages[1] + 24, register(5)), Some(taken[1]));
        assert_eq!(table.give_back(pages[1], register(5)), None, "it was given back");
        assert_eq!(table.take_away(), Some(taken[1]));
        table.purge(pages[0], register(5), 14);
        assert_eq!(
            table.give_back(pages[0], register(5)),
            None,
            "the guest has purged it"
        );
    }

    proptest! {
        /// Whatever is entered, purged, taken away and given back: what may be taken away is what the table maps and
        /// has present.
        #[test]
        fn what_may_be_taken_away_is_what_is_present(
            steps in proptest::collection::vec((0u64..1 << 14, 0u64..3, 0u32..5), 1..60),
        ) {
            let mut table = ShadowTable::new();
            for (number, identifier, step) in steps {
                let (page, region) = (VirtualAddress(number << 14), register(identifier));
                match step {
                    0 | 1 => table.insert(region, &entry(page, region), true),
                    2 => table.purge(page, region, 14),
                    3 => drop(table.take_away()),
                    _ => drop(table.give_back(page, region)),
                }
            }
            for number in 0..ENTRIES {
                let is_present = table.word(number as u64 * ENTRY_SIZE) & PRESENT != 0;
                prop_assert_eq!(table.takeable[number / 64] >> (number % 64) & 1 != 0, is_present);
            }
        }

        #[test]
        fn a_purge_removes_what_it_covers_and_nothing_else(
            numbers in proptest::collection::vec((0u64..1 << 12, 0u64..4), 1..20),
            victim in 0u64..1 << 12,
            size_log2 in 14u32..27,
            identifier in 0u64..4,
        ) {
            let mut table = ShadowTable::new();
            let page = |number: u64| VirtualAddress(number << 14);
            for (number, identifier) in &numbers {
                table.insert(register(*identifier), &entry(page(*number), register(*identifier)), true);
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
