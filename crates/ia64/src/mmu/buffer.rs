//! The translation buffer of one side: translation registers, which stay until purged, and the translation
//! cache, which the processor replaces.

use serde::{Deserialize, Serialize};

use super::entry::TranslationEntry;

/// Number of translation registers, as on the Itanium 2.
pub const REGISTERS: usize = 64;
/// Number of translation cache entries: the second level of the Itanium 2's buffers.
pub const CACHE_ENTRIES: usize = 128;

/// Translation registers and translation cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationBuffer {
    registers: Vec<Option<TranslationEntry>>,
    cache: Vec<Option<TranslationEntry>>,
    /// The cache entry that the next insertion replaces: first in, first out.
    next: usize,
}

impl TranslationBuffer {
    /// The translation of `address` in region `region`.
    pub fn find(&self, address: u64, region: u32) -> Option<&TranslationEntry> {
        self.entries().find(|entry| entry.matches(address, region))
    }

    /// Every valid translation, registers first.
    pub fn entries(&self) -> impl Iterator<Item = &TranslationEntry> {
        self.registers.iter().chain(&self.cache).flatten()
    }

    /// Inserts into the cache. Overlapping cache entries go, and the oldest one if the cache is full; a
    /// translation register that overlaps keeps its page.
    pub fn insert(&mut self, entry: TranslationEntry) {
        self.purge_cache(entry.page, entry.region, entry.size_log2);
        if let Some(free) = self.cache.iter_mut().find(|entry| entry.is_none()) {
            *free = Some(entry);
            return;
        }
        self.cache[self.next] = Some(entry);
        self.next = (self.next + 1) % CACHE_ENTRIES;
    }

    /// Sets translation register `index`; overlapping cache entries go. False if there is no such register.
    pub fn set_register(&mut self, index: usize, entry: TranslationEntry) -> bool {
        let Some(register) = self.registers.get_mut(index) else {
            return false;
        };
        *register = Some(entry);
        self.purge_cache(entry.page, entry.region, entry.size_log2);
        true
    }

    /// Purges every cache entry that overlaps the page.
    pub fn purge_cache(&mut self, address: u64, region: u32, size_log2: u32) {
        purge(&mut self.cache, address, region, size_log2);
    }

    /// Purges every translation register and cache entry that overlaps the page.
    pub fn purge_all(&mut self, address: u64, region: u32, size_log2: u32) {
        purge(&mut self.registers, address, region, size_log2);
        self.purge_cache(address, region, size_log2);
    }

    /// Whether the buffer could be a processor's: as many registers and cache entries as there are, and each of them
    /// one that can be inserted.
    pub(crate) fn is_valid(&self) -> bool {
        self.registers.len() == REGISTERS
            && self.cache.len() == CACHE_ENTRIES
            && self.next < CACHE_ENTRIES
            && self.entries().all(TranslationEntry::is_valid)
    }

    /// Empties the cache.
    pub fn clear_cache(&mut self) {
        self.cache.fill(None);
        self.next = 0;
    }
}

impl Default for TranslationBuffer {
    fn default() -> Self {
        TranslationBuffer {
            registers: vec![None; REGISTERS],
            cache: vec![None; CACHE_ENTRIES],
            next: 0,
        }
    }
}

fn purge(entries: &mut [Option<TranslationEntry>], address: u64, region: u32, size_log2: u32) {
    for entry in entries {
        if entry.is_some_and(|entry| entry.overlaps(address, region, size_log2)) {
            *entry = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u64) -> TranslationEntry {
        TranslationEntry::new(number << 12, 1, 0x61, 12 << 2).expect("a valid insertion")
    }

    #[test]
    fn a_full_cache_replaces_its_oldest_entry_and_registers_stay() {
        let mut buffer = TranslationBuffer::default();
        assert!(buffer.set_register(3, page(1000)));
        for number in 0..=CACHE_ENTRIES as u64 {
            buffer.insert(page(number));
        }
        assert!(buffer.find(0, 1).is_none());
        assert!(buffer.find(1 << 12, 1).is_some());
        assert!(buffer.find(1000 << 12, 1).is_some());
        buffer.purge_cache(1000 << 12, 1, 12);
        assert!(buffer.find(1000 << 12, 1).is_some());
        buffer.purge_all(1000 << 12, 1, 12);
        assert!(buffer.find(1000 << 12, 1).is_none());
        assert!(!buffer.set_register(REGISTERS, page(0)));
    }
}
