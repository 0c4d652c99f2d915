//! The software TLB: host addresses of recently used guest pages.
//!
//! Its first level is direct-mapped by the guest page number. A tag comparison checks the page, the permission and the
//! alignment of an access at once: the address is compared with its low, must-be-zero bits left in. The second
//! level is larger and knows whole pages, so that a program that touches much memory does not ask the address
//! space again and again.

use std::mem::offset_of;

use super::{GRANULE_LOG2, HostPage};
use crate::address::VirtualAddress;
use crate::fault::Access;

/// Number of entries; 512 cover 2 MB of 4 kB granules and fit into a first-level data cache.
const ENTRIES: usize = 512;
/// A tag that no masked address equals: bits between the alignment mask and the page mask are never set.
const NEVER: u64 = u64::MAX;
/// Number of entries of the second level at first, and at most: most programs end before they have touched many pages.
const PAGES_FEW: usize = 128;
const PAGES_MAX: usize = 4096;
/// Addresses this close together share an entry of the second level: the usual page size of Linux/ia64.
const PAGE_INDEX_LOG2: u32 = 14;
/// Areas (data, stack, register backing store) are this far apart at least: programs have half a region for each stack.
const AREA_LOG2: u32 = 31;
/// Half a region, and more, is above this bit.
const HALF_REGION_LOG2: u32 = 53;
/// The bits that select a granule.
const GRANULE_MASK: u64 = !((1 << GRANULE_LOG2) - 1);

/// Regions of the virtual address space, by the top three bits of an address.
const REGIONS: usize = 8;
/// Ranges up to this size are forgotten granule by granule, larger ones by a look at every entry.
const SMALL_RANGE_LOG2: u32 = 16;

#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Entry {
    read: u64,
    write: u64,
    /// Host address minus guest address.
    delta: u64,
}

impl Entry {
    const EMPTY: Entry = Entry {
        read: NEVER,
        write: NEVER,
        delta: 0,
    };

    /// The guest address of its granule; something else if it is empty.
    fn granule(&self) -> u64 {
        if self.read == NEVER { self.write } else { self.read }
    }
}

/// A page in the second level.
#[derive(Clone, Copy)]
struct KnownPage {
    page: HostPage,
    /// How often its region had been forgotten when it was entered; an older count makes the entry stale.
    generation: u64,
}

/// Recently used data pages: the granules used last, and behind them whole pages.
#[repr(C)]
pub(crate) struct TranslationCache {
    entries: [Entry; ENTRIES],
    /// Which entries hold something, one bit each: forgetting costs no more than was remembered.
    filled: [u64; ENTRIES / 64],
    pages: Vec<Option<KnownPage>>,
    /// How often each region's pages were forgotten.
    generations: [u64; REGIONS],
}

impl TranslationCache {
    /// How many entries the first level has; it stands at the table's start.
    pub(crate) const ENTRIES: usize = ENTRIES;
    /// The size of one, in bytes.
    pub(crate) const ENTRY_SIZE: usize = size_of::<Entry>();
    /// Where an entry has what it compares loads with, in bytes from its start.
    pub(crate) const READ: usize = offset_of!(Entry, read);
    /// Where it has what it compares stores with.
    pub(crate) const WRITE: usize = offset_of!(Entry, write);
    /// Where it has the way from guest to host addresses.
    pub(crate) const DELTA: usize = offset_of!(Entry, delta);

    pub(crate) fn new() -> TranslationCache {
        TranslationCache {
            entries: [Entry::EMPTY; ENTRIES],
            filled: [0; ENTRIES / 64],
            pages: Vec::new(),
            generations: [0; REGIONS],
        }
    }

    /// The page of the second level that holds `address`.
    pub(crate) fn page(&self, address: u64) -> Option<&HostPage> {
        let known = self.pages.get(self.page_index(address))?.as_ref()?;
        let is_current = known.generation == self.generations[VirtualAddress(address).region()];
        (is_current && known.page.holds(VirtualAddress(address))).then_some(&known.page)
    }

    #[inline(always)]
    fn entry(&self, address: u64) -> &Entry {
        &self.entries[entry_index(address)]
    }

    /// The host address for an aligned load of `size` bytes (a power of two), if it is known.
    #[inline(always)]
    pub(crate) fn for_load(&self, address: u64, size: u64) -> Option<*mut u8> {
        let entry = self.entry(address);
        (address & (GRANULE_MASK | (size - 1)) == entry.read)
            .then(|| address.wrapping_add(entry.delta) as *mut u8)
    }

    /// The host address for an aligned store of `size` bytes (a power of two), if it is known.
    #[inline(always)]
    pub(crate) fn for_store(&self, address: u64, size: u64) -> Option<*mut u8> {
        let entry = self.entry(address);
        (address & (GRANULE_MASK | (size - 1)) == entry.write)
            .then(|| address.wrapping_add(entry.delta) as *mut u8)
    }

    /// The host address for an aligned load, or a store, of the register stack engine, if its page is known. Data of
    /// the program keeps its place in the first level, which the stack of registers would often take from it.
    #[inline]
    pub(crate) fn for_register_stack(&self, address: u64, access: Access) -> Option<*mut u8> {
        let page = self.page(address).filter(|page| page.allows(access))?;
        Some(page.host_address(VirtualAddress(address)))
    }

    /// Remembers `page` and its granule that holds `address`.
    pub(crate) fn insert(&mut self, address: u64, page: &HostPage) {
        self.insert_granule(address, page);
        let known = KnownPage {
            page: *page,
            generation: self.generations[VirtualAddress(address).region()],
        };
        let has_place = match self.pages.get(self.page_index(address)) {
            None => false,
            Some(place) => place.is_none_or(|other| other.page.start == page.start),
        };
        if !has_place && self.pages.len() < PAGES_MAX {
            self.grow();
        }
        let index = self.page_index(address);
        self.pages[index] = Some(known);
    }

    /// Makes more room in the second level: two pages want one place, or there is none yet.
    fn grow(&mut self) {
        let size = (self.pages.len() * 4).clamp(PAGES_FEW, PAGES_MAX);
        let before = std::mem::replace(&mut self.pages, vec![None; size]);
        for known in before.into_iter().flatten() {
            let index = self.page_index(known.page.start.0);
            self.pages[index] = Some(known);
        }
    }

    /// The place in the second level of the page that holds `address`. Areas of a program begin at round addresses:
    /// the high bits keep the first pages of one from those of another.
    fn page_index(&self, address: u64) -> usize {
        let hash = address >> PAGE_INDEX_LOG2 ^ address >> AREA_LOG2 ^ address >> HALF_REGION_LOG2;
        hash as usize & self.pages.len().wrapping_sub(1)
    }

    /// Remembers the granule of `page` that holds `address`.
    pub(crate) fn insert_granule(&mut self, address: u64, page: &HostPage) {
        let granule = address & GRANULE_MASK;
        let index = entry_index(address);
        self.filled[index / 64] |= 1 << (index % 64);
        self.entries[index] = Entry {
            read: if page.readable { granule } else { NEVER },
            write: if page.writable { granule } else { NEVER },
            delta: (page.host as u64).wrapping_sub(page.start.0),
        };
    }

    /// Forgets everything.
    pub(crate) fn flush(&mut self) {
        self.forget_granules(|_| true);
        for generation in &mut self.generations {
            *generation += 1;
        }
    }

    /// Forgets the addresses of one region.
    pub(crate) fn forget_region(&mut self, region: usize) {
        self.forget_granules(|granule| VirtualAddress(granule).region() == region);
        self.generations[region] += 1;
    }

    /// Forgets the `1 << size_log2` bytes at `start`, which is a multiple of that: a granule at least.
    pub(crate) fn forget(&mut self, start: u64, size_log2: u32) {
        let is_inside = |address: u64| (address ^ start) >> size_log2 == 0;
        if size_log2 > SMALL_RANGE_LOG2 {
            self.forget_granules(is_inside);
            self.generations[VirtualAddress(start).region()] += 1;
            return;
        }
        // Its granules are neighbours in the first level, and within one word of `filled`.
        let (first, count) = (entry_index(start), 1 << size_log2 >> GRANULE_LOG2);
        let granules = ((1_u64 << count) - 1) << (first % 64);
        self.forget_granules_of(first / 64, granules, is_inside);
        for offset in (0..1 << size_log2).step_by(1 << PAGE_INDEX_LOG2) {
            let index = self.page_index(start + offset);
            if let Some(place) = self.pages.get_mut(index)
                && place.is_some_and(|known| is_inside(known.page.start.0))
            {
                *place = None;
            }
        }
    }

    /// Empties the entries whose granule is `forgotten`.
    fn forget_granules(&mut self, forgotten: impl Fn(u64) -> bool) {
        for word in 0..self.filled.len() {
            self.forget_granules_of(word, u64::MAX, &forgotten);
        }
    }

    /// The same among some of the 64 entries of a word of `filled`.
    fn forget_granules_of(&mut self, word: usize, among: u64, forgotten: impl Fn(u64) -> bool) {
        let mut left = self.filled[word] & among;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let entry = &mut self.entries[word * 64 + bit as usize];
            if forgotten(entry.granule()) {
                *entry = Entry::EMPTY;
                self.filled[word] &= !(1 << bit);
            }
        }
    }
}

impl Default for TranslationCache {
    fn default() -> Self {
        TranslationCache::new()
    }
}

/// The place in the first level of the granule that holds `address`.
#[inline(always)]
fn entry_index(address: u64) -> usize {
    (address >> GRANULE_LOG2) as usize % ENTRIES
}

impl HostPage {
    /// Whether the page holds a guest address.
    pub(crate) fn holds(&self, address: VirtualAddress) -> bool {
        address.0.wrapping_sub(self.start.0) >> self.size_log2 == 0
    }

    /// Whether the page allows an access.
    pub(crate) fn allows(&self, access: Access) -> bool {
        (!access.reads() || self.readable) && (!access.writes() || self.writable)
    }

    /// The host address of a guest address within the page.
    pub(crate) fn host_address(&self, address: VirtualAddress) -> *mut u8 {
        let offset = address.0.wrapping_sub(self.start.0);
        assert!(
            offset >> self.size_log2 == 0,
            "{address} is outside the page that was resolved for it"
        );
        self.host.wrapping_add(offset as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A page of 16 kB; nothing reads through its host address.
    fn page(start: u64) -> HostPage {
        HostPage {
            start: VirtualAddress(start),
            size_log2: 14,
            host: (start as usize + (1 << 20)) as *mut u8,
            readable: true,
            writable: start & 1 << 14 != 0,
            executable: false,
        }
    }

    #[test]
    fn the_second_level_grows_with_the_pages_that_are_touched() {
        let mut cache = TranslationCache::new();
        let addresses: Vec<u64> = (0..2048u64).map(|number| 1 << 61 | number << 14).collect();
        for (known, &address) in addresses.iter().enumerate() {
            cache.insert(address, &page(address));
            assert!(cache.pages.len() <= (4 * known).max(PAGES_FEW));
        }
        assert!(addresses.iter().all(|&address| cache.page(address).is_some()));
        for number in 2048..2 * PAGES_MAX as u64 {
            let address = 1 << 61 | number << 14;
            cache.insert(address, &page(address));
            assert!(cache.page(address).is_some());
        }
        assert_eq!(cache.pages.len(), PAGES_MAX);
    }

    proptest! {
        #[test]
        fn what_is_forgotten_is_gone_and_the_rest_stays(
            pages in prop::collection::vec((0u64..4, 0u64..64), 1..40),
            (region, number, size_log2) in (0u64..4, 0u64..64, 12u32..22),
            whole_region: bool,
        ) {
            let mut cache = TranslationCache::new();
            let addresses: Vec<u64> = pages.iter().map(|(region, number)| region << 61 | number << 14).collect();
            for &address in &addresses {
                cache.insert(address | 0x1000, &page(address));
            }
            let is_cached = |address: u64| cache.for_load(address | 0x1000, 8).is_some();
            let before: Vec<bool> = addresses.iter().map(|&address| is_cached(address)).collect();
            let start = (region << 61 | number << 14) >> size_log2 << size_log2;
            let is_forgotten = |address: u64| {
                if whole_region { address >> 61 == region } else { ((address | 0x1000) ^ start) >> size_log2 == 0 }
            };
            if whole_region {
                cache.forget_region(region as usize);
            } else {
                cache.forget(start, size_log2);
            }
            for (&address, was_known) in addresses.iter().zip(before) {
                let known = cache.for_load(address | 0x1000, 8).is_some();
                prop_assert_eq!(known, was_known && !is_forgotten(address), "{:#x}", address);
                if is_forgotten(address) && size_log2 >= 14 {
                    prop_assert!(cache.page(address).is_none());
                }
            }
            cache.flush();
            prop_assert!(addresses.iter().all(|&address| cache.for_load(address | 0x1000, 8).is_none()));
            prop_assert!(addresses.iter().all(|&address| cache.page(address).is_none()));
        }
    }
}
