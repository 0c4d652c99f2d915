//! The software TLB: host addresses of recently used guest pages.
//!
//! Its first level is direct-mapped by the guest page number. A tag comparison checks the page, the permission and the
//! alignment of an access at once: the address is compared with its low, must-be-zero bits left in. The second
//! level is larger and knows whole pages, so that a program that touches much memory does not ask the address
//! space again and again.

use super::{GRANULE_LOG2, HostPage};
use crate::address::VirtualAddress;
use crate::fault::Access;

/// Number of entries; 512 cover 2 MB of 4 kB granules and fit into a first-level data cache.
const ENTRIES: usize = 512;
/// A tag that no masked address equals: bits between the alignment mask and the page mask are never set.
const NEVER: u64 = u64::MAX;
/// Number of entries of the second level.
const PAGES: usize = 4096;
/// Addresses this close together share an entry of the second level: the usual page size of Linux/ia64.
const PAGE_INDEX_LOG2: u32 = 14;
/// Areas (data, stack, register backing store) are this far apart at least.
const AREA_LOG2: u32 = 40;
/// The bits that select a granule.
const GRANULE_MASK: u64 = !((1 << GRANULE_LOG2) - 1);

#[derive(Clone, Copy)]
#[repr(align(32))]
struct Entry {
    read: u64,
    write: u64,
    /// Host address minus guest address.
    delta: u64,
}

/// A page in the second level.
#[derive(Clone, Copy)]
struct KnownPage {
    page: HostPage,
    /// The flush count when it was entered; an older one makes the entry stale.
    generation: u64,
}

/// Recently used data pages: the granules used last, and behind them whole pages.
pub(crate) struct TranslationCache {
    entries: [Entry; ENTRIES],
    pages: Vec<Option<KnownPage>>,
    generation: u64,
}

impl TranslationCache {
    pub(crate) fn new() -> TranslationCache {
        let entries = [Entry {
            read: NEVER,
            write: NEVER,
            delta: 0,
        }; ENTRIES];
        TranslationCache {
            entries,
            pages: Vec::new(),
            generation: 0,
        }
    }

    /// The page of the second level that holds `address`.
    pub(crate) fn page(&self, address: u64) -> Option<&HostPage> {
        let known = self.pages.get(page_index(address))?.as_ref()?;
        let is_current = known.generation == self.generation;
        (is_current && known.page.holds(VirtualAddress(address))).then_some(&known.page)
    }

    #[inline(always)]
    fn entry(&self, address: u64) -> &Entry {
        &self.entries[(address >> GRANULE_LOG2) as usize % ENTRIES]
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

    /// Remembers `page` and its granule that holds `address`.
    pub(crate) fn insert(&mut self, address: u64, page: &HostPage) {
        self.insert_granule(address, page);
        if self.pages.is_empty() {
            self.pages.resize(PAGES, None);
        }
        self.pages[page_index(address)] = Some(KnownPage {
            page: *page,
            generation: self.generation,
        });
    }

    /// Remembers the granule of `page` that holds `address`.
    pub(crate) fn insert_granule(&mut self, address: u64, page: &HostPage) {
        let granule = address & GRANULE_MASK;
        self.entries[(address >> GRANULE_LOG2) as usize % ENTRIES] = Entry {
            read: if page.readable { granule } else { NEVER },
            write: if page.writable { granule } else { NEVER },
            delta: (page.host as u64).wrapping_sub(page.start.0),
        };
    }

    /// Forgets everything.
    pub(crate) fn flush(&mut self) {
        self.entries.fill(Entry {
            read: NEVER,
            write: NEVER,
            delta: 0,
        });
        self.generation += 1;
    }
}

impl Default for TranslationCache {
    fn default() -> Self {
        TranslationCache::new()
    }
}

/// The place in the second level of the page that holds `address`. Areas of a program begin at round addresses:
/// the high bits keep the first pages of one from those of another.
fn page_index(address: u64) -> usize {
    (address >> PAGE_INDEX_LOG2 ^ address >> AREA_LOG2) as usize % PAGES
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
