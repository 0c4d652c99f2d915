//! Where in a buffer a translation can be.
//!
//! Pages of up to 64 kB are kept by some bits of their address, so that to look for one, which is most often in vain,
//! does not take a look at every entry. Larger pages are looked at whatever the address.

use std::ops::Range;

use super::entry::TranslationEntry;
use crate::address::VirtualAddress;

/// Pages up to this size lie within one unit of addresses.
const UNIT_LOG2: u32 = 16;
/// How many sets of small pages there are.
const SETS: usize = 64;
/// Sets of places are of so many words of 64.
const WORDS: usize = 3;
/// How many places there can be.
pub(super) const PLACES_MAX: usize = 64 * WORDS;

/// A set of places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set([u64; WORDS]);

impl Set {
    fn add(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn remove(&mut self, place: usize) {
        self.0[place / 64] &= !(1 << (place % 64));
    }

    fn with(self, other: Set) -> Set {
        Set(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Those in a range.
    pub(super) fn within(self, range: Range<usize>) -> Set {
        let below = |end: usize, word: usize| match end.saturating_sub(64 * word) {
            64.. => u64::MAX,
            bits => (1 << bits) - 1,
        };
        Set(std::array::from_fn(|word| {
            self.0[word] & below(range.end, word) & !below(range.start, word)
        }))
    }
}

/// From the first place on.
impl Iterator for Set {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        let bit = self.0[word].trailing_zeros() as usize;
        self.0[word] &= self.0[word] - 1;
        Some(64 * word + bit)
    }
}

/// The places of a buffer's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    small: [Set; SETS],
    large: Set,
    taken: Set,
}

impl Default for Places {
    fn default() -> Self {
        Places {
            small: [Set::default(); SETS],
            large: Set::default(),
            taken: Set::default(),
        }
    }
}

impl Places {
    /// The set that a page is in.
    fn set_of(&mut self, entry: &TranslationEntry) -> &mut Set {
        match entry.size_log2 {
            ..=UNIT_LOG2 => &mut self.small[set_index(entry.page)],
            _ => &mut self.large,
        }
    }

    /// An entry has come to a place that was free.
    pub(super) fn take(&mut self, place: usize, entry: &TranslationEntry) {
        self.set_of(entry).add(place);
        self.taken.add(place);
    }

    /// An entry has left its place.
    pub(super) fn free(&mut self, place: usize, entry: &TranslationEntry) {
        self.set_of(entry).remove(place);
        self.taken.remove(place);
    }

    /// Where a translation of an address can be.
    pub(super) fn of(&self, address: VirtualAddress) -> Set {
        self.small[set_index(address)].with(self.large)
    }

    /// Where a translation of a part of the `1 << size_log2` bytes around an address can be.
    pub(super) fn around(&self, address: VirtualAddress, size_log2: u32) -> Set {
        match size_log2 {
            ..=UNIT_LOG2 => self.of(address),
            _ => self.taken,
        }
    }

    /// The first free place of a range.
    pub(super) fn first_free(&self, range: Range<usize>) -> Option<usize> {
        Set(self.taken.0.map(|taken| !taken)).within(range).next()
    }
}

/// Region numbers play no part: purges do not look at them.
fn set_index(address: VirtualAddress) -> usize {
    (address.0 >> UNIT_LOG2) as usize % SETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_in_order_and_from_a_range_alone() {
        let mut set = Set::default();
        [191, 0, 64, 63, 130].iter().for_each(|&place| set.add(place));
        set.remove(63);
        assert_eq!(set.collect::<Vec<_>>(), [0, 64, 130, 191]);
        assert_eq!(set.within(1..191).collect::<Vec<_>>(), [64, 130]);
        assert_eq!(set.within(64..192).collect::<Vec<_>>(), [64, 130, 191]);
        assert_eq!(set.within(70..70).next(), None);
    }
}
