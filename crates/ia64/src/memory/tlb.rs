//! The software TLB: host addresses of recently used guest pages.
//!
//! It is direct-mapped by the guest page number. A tag comparison checks the page, the permission and the
//! alignment of an access at once: the address is compared with its low, must-be-zero bits left in.

use super::{GRANULE_LOG2, HostPage};
use crate::address::VirtualAddress;

/// Number of entries; 512 cover 2 MB of 4 kB granules and fit into a first-level data cache.
const ENTRIES: usize = 512;
/// A tag that no masked address equals: bits between the alignment mask and the page mask are never set.
const NEVER: u64 = u64::MAX;
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

/// Recently used data pages.
pub(crate) struct TranslationCache {
    entries: [Entry; ENTRIES],
}

impl TranslationCache {
    pub(crate) fn new() -> TranslationCache {
        TranslationCache {
            entries: [Entry {
                read: NEVER,
                write: NEVER,
                delta: 0,
            }; ENTRIES],
        }
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

    /// Remembers the granule of `page` that holds `address`.
    pub(crate) fn insert(&mut self, address: u64, page: &HostPage) {
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
    }
}

impl HostPage {
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
