//! The translation buffer of one side: translation registers, which stay until purged, and the translation
//! cache, which the processor replaces.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};

use super::entry::TranslationEntry;
use super::places::{PLACES_MAX, Places};
use crate::address::VirtualAddress;

/// Number of translation registers, as on the Itanium 2.
pub const REGISTERS: usize = 64;
/// Number of translation cache entries: the second level of the Itanium 2's buffers.
pub const CACHE_ENTRIES: usize = 128;
/// Of both together registers are the first.
const CACHE: Range<usize> = REGISTERS..REGISTERS + CACHE_ENTRIES;
const _: () = assert!(CACHE.end <= PLACES_MAX);

/// Translation registers and translation cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "State", into = "State")]
pub struct TranslationBuffer {
    entries: Vec<Option<TranslationEntry>>,
    /// The cache entry that the next insertion replaces: first in, first out.
    next: usize,
    places: Places,
    hints: Hints,
}

/// What is saved of it.
#[derive(Serialize, Deserialize)]
struct State {
    registers: Vec<Option<TranslationEntry>>,
    cache: Vec<Option<TranslationEntry>>,
    next: usize,
}

impl From<State> for TranslationBuffer {
    fn from(state: State) -> Self {
        let State {
            mut registers,
            mut cache,
            next,
        } = state;
        // A state with more or fewer is none that was saved: it is told by a place that does not exist.
        let is_whole = registers.len() == REGISTERS && cache.len() == CACHE_ENTRIES;
        registers.resize(REGISTERS, None);
        cache.resize(CACHE_ENTRIES, None);
        let mut buffer = TranslationBuffer {
            next: if is_whole { next } else { CACHE_ENTRIES },
            ..TranslationBuffer::default()
        };
        for (place, entry) in registers.into_iter().chain(cache).enumerate() {
            buffer.replace(place, entry);
        }
        buffer
    }
}

impl From<TranslationBuffer> for State {
    fn from(buffer: TranslationBuffer) -> Self {
        let mut registers = buffer.entries;
        let cache = registers.split_off(REGISTERS);
        State {
            registers,
            cache,
            next: buffer.next,
        }
    }
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
        let hinted = self.entries[usize::from(hint.load(Ordering::Relaxed))].as_ref();
        if hinted.is_some_and(|entry| entry.matches(address, region)) {
            return hinted;
        }
        let matches = |entry: &TranslationEntry| entry.matches(address, region);
        let mut places = self.places.of(address);
        let found = places.find(|place| self.entries[*place].as_ref().is_some_and(matches))?;
        hint.store(found as u8, Ordering::Relaxed);
        self.entries[found].as_ref()
    }

    /// Every valid translation, registers first.
    pub fn entries(&self) -> impl Iterator<Item = &TranslationEntry> {
        self.entries.iter().flatten()
    }

    /// What translation register `index` holds; none if it is empty or there is no such register.
    pub fn register(&self, index: usize) -> Option<&TranslationEntry> {
        self.entries[..REGISTERS].get(index)?.as_ref()
    }

    /// Inserts into the cache. Overlapping cache entries go, and the oldest one if the cache is full, each by way of
    /// `removed`; a translation register that overlaps keeps its page.
    pub fn insert(&mut self, entry: TranslationEntry, mut removed: impl FnMut(&TranslationEntry)) {
        self.purge_cache(entry.page, entry.region, entry.size_log2, &mut removed);
        if let Some(free) = self.places.first_free(CACHE) {
            self.replace(free, Some(entry));
            return;
        }
        if let Some(oldest) = self.replace(CACHE.start + self.next, Some(entry)) {
            removed(&oldest);
        }
        self.next = (self.next + 1) % CACHE_ENTRIES;
    }

    /// Sets translation register `index`; overlapping cache entries go. False if there is no such register.
    pub fn set_register(&mut self, index: usize, entry: TranslationEntry) -> bool {
        if index >= REGISTERS {
            return false;
        }
        self.replace(index, Some(entry));
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
        self.purge(CACHE, address, region, size_log2, removed);
    }

    /// Purges every translation register and cache entry that overlaps the page.
    pub fn purge_all(&mut self, address: VirtualAddress, region: u32, size_log2: u32) {
        self.purge(0..CACHE.end, address, region, size_log2, |_| {});
    }

    /// Purges every entry in some of the places that overlaps the page, each by way of `removed`.
    fn purge(
        &mut self,
        among: Range<usize>,
        address: VirtualAddress,
        region: u32,
        size_log2: u32,
        mut removed: impl FnMut(&TranslationEntry),
    ) {
        for place in self.places.around(address, size_log2).within(among) {
            if let Some(entry) =
                self.entries[place].filter(|entry| entry.overlaps(address, region, size_log2))
            {
                removed(&entry);
                self.replace(place, None);
            }
        }
    }

    /// Puts an entry, or none, into a place; answers what was there.
    fn replace(&mut self, place: usize, entry: Option<TranslationEntry>) -> Option<TranslationEntry> {
        let before = std::mem::replace(&mut self.entries[place], entry);
        if let Some(before) = &before {
            self.places.free(place, before);
        }
        if let Some(entry) = &entry {
            self.places.take(place, entry);
        }
        before
    }

    /// Whether the buffer could be a processor's: each of its entries one that can be inserted.
    pub(crate) fn is_valid(&self) -> bool {
        self.next < CACHE_ENTRIES && self.entries().all(TranslationEntry::is_valid)
    }

    /// Empties the cache.
    pub fn clear_cache(&mut self) {
        for place in CACHE {
            self.replace(place, None);
        }
        self.next = 0;
    }
}

impl Default for TranslationBuffer {
    fn default() -> Self {
        TranslationBuffer {
            entries: vec![None; CACHE.end],
            next: 0,
            places: Places::default(),
            hints: Hints::default(),
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
            steps in prop::collection::vec((0u64..40, 0u32..4, 0usize..8, 12u32..21), 1..120),
        ) {
            let mut buffer = TranslationBuffer::default();
            let mut removed = 0;
            for (number, kind, register, size_log2) in steps {
                let address = address(4 * number);
                let entry = TranslationEntry::new(address, 1, 0x61, u64::from(size_log2) << 2);
                let overlapping = |buffer: &TranslationBuffer| {
                    let cached = buffer.entries[CACHE].iter().flatten();
                    cached.filter(|entry| entry.overlaps(address, 1, size_log2)).count()
                };
                match (kind, entry) {
                    (0 | 1, Ok(entry)) => {
                        buffer.insert(entry, |_| removed += 1);
                        prop_assert_eq!(overlapping(&buffer), 1);
                    }
                    (2, Ok(entry)) => {
                        prop_assert!(buffer.set_register(register, entry));
                        prop_assert_eq!(overlapping(&buffer), 0);
                    }
                    _ => {
                        buffer.purge_all(address, 1, size_log2);
                        prop_assert!(!buffer.entries().any(|entry| entry.overlaps(address, 1, size_log2)));
                    }
                }
                let saved = serde_json::to_string(&buffer).expect("a buffer is saved");
                prop_assert_eq!(&serde_json::from_str::<TranslationBuffer>(&saved).expect("and read"), &buffer);
                for number in 0..160 {
                    let address = VirtualAddress(number << 12);
                    let searched = buffer.entries().find(|entry| entry.matches(address, 1));
                    prop_assert_eq!(buffer.find(address, 1), searched);
                    prop_assert_eq!(buffer.find(address, 1), searched, "by what the first one found");
                }
            }
        }
    }

    #[test]
    fn a_saved_buffer_of_another_size_is_none() {
        let mut saved = serde_json::to_value(TranslationBuffer::default()).expect("a buffer is saved");
        let is_valid = |saved: &serde_json::Value| {
            let buffer: TranslationBuffer = serde_json::from_value(saved.clone()).expect("entries");
            buffer.is_valid()
        };
        assert!(is_valid(&saved));
        saved["cache"]
            .as_array_mut()
            .expect("entries")
            .push(serde_json::Value::Null);
        assert!(!is_valid(&saved));
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
