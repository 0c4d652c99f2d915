//! The translation buffer of one side: translation registers, which stay until purged, and the translation
//! cache, which the processor replaces.

use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};

use super::entry::TranslationEntry;
use crate::address::VirtualAddress;

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
    #[serde(skip)]
    hints: Hints,
}

/// Where translations were found before, by address: a first guess, which is checked. It is no part of the state, and
/// whoever looks for a translation leaves the next one a better guess.
#[derive(Debug)]
struct Hints([AtomicU8; HINTS]);

const HINTS: usize = 256;

impl Hints {
    fn of(&self, address: VirtualAddress) -> &AtomicU8 {
        &self.0[(address.0 >> 12 ^ address.0 >> 53) as usize % HINTS]
    }
}

impl Default for Hints {
    fn default() -> Self {
        Hints([const { AtomicU8::new(0) }; HINTS])
    }
}

impl Clone for Hints {
    fn clone(&self) -> Self {
        Hints::default()
    }
}

impl PartialEq for Hints {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Hints {}

impl TranslationBuffer {
    /// The translation of `address` in region `region`.
    pub fn find(&self, address: VirtualAddress, region: u32) -> Option<&TranslationEntry> {
        let hint = self.hints.of(address);
        let hinted = self.place(hint.load(Ordering::Relaxed).into());
        if hinted.is_some_and(|entry| entry.matches(address, region)) {
            return hinted;
        }
        let mut places = self.registers.iter().chain(&self.cache);
        let found =
            places.position(|entry| entry.as_ref().is_some_and(|entry| entry.matches(address, region)))?;
        hint.store(found as u8, Ordering::Relaxed);
        self.place(found)
    }

    /// The translation at a place, of which registers are the first.
    #[inline]
    fn place(&self, index: usize) -> Option<&TranslationEntry> {
        match index.checked_sub(REGISTERS) {
            None => self.registers.get(index)?.as_ref(),
            Some(index) => self.cache.get(index)?.as_ref(),
        }
    }

    /// Every valid translation, registers first.
    pub fn entries(&self) -> impl Iterator<Item = &TranslationEntry> {
        self.registers.iter().chain(&self.cache).flatten()
    }

    /// What translation register `index` holds; none if it is empty or there is no such register.
    pub fn register(&self, index: usize) -> Option<&TranslationEntry> {
        self.registers.get(index)?.as_ref()
    }

    /// Inserts into the cache. Overlapping cache entries go, and the oldest one if the cache is full, each by way of
    /// `removed`; a translation register that overlaps keeps its page.
    pub fn insert(&mut self, entry: TranslationEntry, mut removed: impl FnMut(&TranslationEntry)) {
        self.purge_cache(entry.page, entry.region, entry.size_log2, &mut removed);
        if let Some(free) = self.cache.iter_mut().find(|entry| entry.is_none()) {
            *free = Some(entry);
            return;
        }
        if let Some(oldest) = self.cache[self.next].replace(entry) {
            removed(&oldest);
        }
        self.next = (self.next + 1) % CACHE_ENTRIES;
    }

    /// Sets translation register `index`; overlapping cache entries go. False if there is no such register.
    pub fn set_register(&mut self, index: usize, entry: TranslationEntry) -> bool {
        let Some(register) = self.registers.get_mut(index) else {
            return false;
        };
        *register = Some(entry);
        self.purge_cache(entry.page, entry.region, entry.size_log2, |_| {});
        // A register before another one that overlaps it hides that one from now on.
        self.hints = Hints::default();
        true
    }

    /// Purges every cache entry that overlaps the page, each by way of `removed`.
    pub fn purge_cache(
        &mut self,
        address: VirtualAddress,
        region: u32,
        size_log2: u32,
        removed: impl FnMut(&TranslationEntry),
    ) {
        purge(&mut self.cache, address, region, size_log2, removed);
    }

    /// Purges every translation register and cache entry that overlaps the page.
    pub fn purge_all(&mut self, address: VirtualAddress, region: u32, size_log2: u32) {
        purge(&mut self.registers, address, region, size_log2, |_| {});
        self.purge_cache(address, region, size_log2, |_| {});
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
            hints: Hints::default(),
        }
    }
}

fn purge(
    entries: &mut [Option<TranslationEntry>],
    address: VirtualAddress,
    region: u32,
    size_log2: u32,
    mut removed: impl FnMut(&TranslationEntry),
) {
    for place in entries {
        if let Some(entry) = place
            && entry.overlaps(address, region, size_log2)
        {
            removed(entry);
            *place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(number: u64) -> VirtualAddress {
        VirtualAddress(number << 12)
    }

    fn page(number: u64) -> TranslationEntry {
        TranslationEntry::new(address(number), 1, 0x61, 12 << 2).expect("a valid insertion")
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_a_search_finds(
            steps in prop::collection::vec((0u64..40, 0u32..3, 0usize..8, 12u32..17), 1..120),
        ) {
            let mut buffer = TranslationBuffer::default();
            let mut removed = 0;
            for (number, kind, register, size_log2) in steps {
                let address = address(number);
                let entry = TranslationEntry::new(address, 1, 0x61, u64::from(size_log2) << 2);
                match (kind, entry) {
                    (0, Ok(entry)) => buffer.insert(entry, |_| removed += 1),
                    (1, Ok(entry)) => assert!(buffer.set_register(register, entry)),
                    _ => buffer.purge_all(address, 1, size_log2),
                }
                for number in 0..40 {
                    let address = VirtualAddress(number << 12);
                    let searched = buffer.entries().find(|entry| entry.matches(address, 1));
                    prop_assert_eq!(buffer.find(address, 1), searched);
                    prop_assert_eq!(buffer.find(address, 1), searched, "by what the first one found");
                }
            }
        }
    }

    #[test]
    fn a_full_cache_replaces_its_oldest_entry_and_registers_stay() {
        let mut buffer = TranslationBuffer::default();
        assert!(buffer.set_register(3, page(1000)));
        for number in 0..=CACHE_ENTRIES as u64 {
            buffer.insert(page(number), |_| {});
        }
        assert!(buffer.find(address(0), 1).is_none());
        assert!(buffer.find(address(1), 1).is_some());
        assert!(buffer.find(address(1000), 1).is_some());
        buffer.purge_cache(address(1000), 1, 12, |_| {});
        assert!(buffer.find(address(1000), 1).is_some());
        buffer.purge_all(address(1000), 1, 12);
        assert!(buffer.find(address(1000), 1).is_none());
        assert!(!buffer.set_register(REGISTERS, page(0)));
    }
}
