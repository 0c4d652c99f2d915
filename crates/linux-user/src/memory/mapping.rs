//! What is mapped where: the guest's view, in guest pages.
//!
//! A pure data structure; [`Memory`](super::Memory) keeps the host's mappings in step with it.

use std::ops::Range;
use std::sync::Arc;

use rangemap::RangeMap;

use super::Need;
use super::gaps::Gaps;
use super::window::{PAGE, REGIONS, page_floor};

/// Access rights of a mapping: the bits of `mmap`'s `prot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection(pub u8);

impl Protection {
    /// No access.
    pub const NONE: Protection = Protection(0);
    /// Read and write.
    pub const READ_WRITE: Protection = Protection(3);

    /// From the low bits of `prot`.
    pub fn from_bits(prot: u64) -> Protection {
        Protection(prot as u8 & 7)
    }

    /// Whether data may be loaded. Linux/ia64 lets a writable page be read, too.
    pub fn reads(self) -> bool {
        self.0 & 3 != 0
    }

    /// Whether data may be stored.
    pub fn writes(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether instructions may be fetched.
    pub fn executes(self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether the host would let a load read what the guest must not: to fetch instructions is to read for the host.
    pub fn is_closed_to_loads(self) -> bool {
        self.executes() && !self.reads()
    }

    /// Whether an access is allowed.
    pub fn allows(self, need: Need) -> bool {
        (!need.read || self.reads()) && (!need.write || self.writes()) && (!need.execute || self.executes())
    }

    /// The same without the right to store.
    pub fn without_stores(self) -> Protection {
        Protection(self.0 & !2 | u8::from(self.writes()))
    }

    /// The host protection that serves it: guest code is read, never executed, by the host.
    pub fn host(self) -> i32 {
        let read = if self.0 != 0 { libc::PROT_READ } else { 0 };
        read | if self.writes() { libc::PROT_WRITE } else { 0 }
    }
}

/// Whether and where a mapping grows when it is touched next to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// It does not.
    #[default]
    Fixed,
    /// To lower addresses, as a memory stack does.
    Down,
    /// To higher addresses, as a register backing store does.
    Up,
}

/// What a mapping shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Zeroed memory.
    Anonymous,
    /// Zeroed memory with a role, such as `[stack]`.
    Role(&'static str),
    /// A file.
    File {
        /// Its path when it was mapped.
        path: Arc<str>,
        /// Its device and inode.
        identity: (u64, u64),
        /// File offset minus guest address (wrapping), the same for all pages of one mapping.
        bias: u64,
    },
    /// A System V shared memory segment.
    SharedSegment(i32),
}

/// A range of pages with the same attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its rights.
    pub protection: Protection,
    /// Whether stores are seen by others who map the same.
    pub shared: bool,
    /// Whether it grows.
    pub growth: Growth,
    /// What it shows.
    pub backing: Backing,
    /// Whether the program itself brings pages that are missing (see [`watched`](super::watched)).
    pub watched: bool,
}

impl Mapping {
    /// Whether it counts as data: private, to be written, and no stack.
    pub fn is_data(&self) -> bool {
        self.protection.writes() && !self.shared && self.growth == Growth::Fixed
    }

    /// Private zeroed memory.
    pub fn anonymous(protection: Protection) -> Mapping {
        Mapping {
            protection,
            shared: false,
            growth: Growth::Fixed,
            backing: Backing::Anonymous,
            watched: false,
        }
    }
}

/// All mappings of an address space.
#[derive(Clone, Debug)]
pub struct Mappings {
    ranges: RangeMap<u64, Mapping>,
    gaps: Gaps,
}

impl Default for Mappings {
    fn default() -> Mappings {
        Mappings {
            ranges: RangeMap::new(),
            gaps: Gaps::new(0..(REGIONS as u64) << 61),
        }
    }
}

impl Mappings {
    /// The mapping at an address, with its whole range.
    pub fn at(&self, address: u64) -> Option<(&Range<u64>, &Mapping)> {
        self.ranges.get_key_value(&address)
    }

    /// Maps a range, replacing what was there.
    pub fn insert(&mut self, range: Range<u64>, mapping: Mapping) {
        debug_assert!(range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE));
        if !range.is_empty() {
            self.gaps.take(&range);
            self.ranges.insert(range, mapping);
        }
    }

    /// Unmaps a range.
    pub fn remove(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.gaps.release(&range);
            self.ranges.remove(range);
        }
    }

    /// The parts of a range that are mapped.
    pub fn within(&self, range: Range<u64>) -> Vec<(Range<u64>, Mapping)> {
        if range.is_empty() {
            return Vec::new();
        }
        self.ranges
            .overlapping(&range)
            .map(|(found, mapping)| {
                (
                    found.start.max(range.start)..found.end.min(range.end),
                    mapping.clone(),
                )
            })
            .collect()
    }

    /// Whether every page of a range is mapped.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.ranges.gaps(range).next().is_none()
    }

    /// Whether no page of a range is mapped.
    pub fn is_free(&self, range: &Range<u64>) -> bool {
        range.is_empty() || !self.ranges.overlaps(range)
    }

    /// The lowest free range of `length` bytes in `bounds`, aligned to `alignment`.
    pub fn find_free(&self, bounds: Range<u64>, length: u64, alignment: u64) -> Option<u64> {
        self.gaps.find(&bounds, length, alignment)
    }

    /// How many mappings of the host these are at most: those that show something, and what is reserved between them.
    pub fn pieces(&self) -> usize {
        self.ranges.len() + self.gaps.count()
    }

    /// Bytes mapped, and of those the private ones that may be written (`RLIMIT_DATA`); stacks are not among them.
    pub fn sizes(&self) -> (u64, u64) {
        self.iter().fold((0, 0), |(all, data), (range, mapping)| {
            let size = range.end - range.start;
            (all + size, if mapping.is_data() { data + size } else { data })
        })
    }

    /// All mappings in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (&Range<u64>, &Mapping)> {
        self.ranges.iter()
    }

    /// The range that a growing mapping must gain so that it holds `address`, and that mapping.
    ///
    /// Only a mapping that is the nearest in its direction grows; `limit` bounds its size in bytes.
    pub fn growth_for(&self, address: u64, limit: u64) -> Option<(Range<u64>, Mapping)> {
        let page = page_floor(address);
        let region = page >> 61 << 61;
        let above = self.ranges.overlapping(&(page..region + (1 << 61) - 1)).next();
        if let Some((range, mapping)) = above
            && mapping.growth == Growth::Down
            && range.end - page <= limit
        {
            return Some((page..range.start, mapping.clone()));
        }
        let below = self.ranges.overlapping(&(region..page + 1)).next_back();
        if let Some((range, mapping)) = below
            && mapping.growth == Growth::Up
            && page + PAGE - range.start <= limit
        {
            return Some((range.end..page + PAGE, mapping.clone()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn anonymous(bits: u8) -> Mapping {
        Mapping::anonymous(Protection(bits))
    }

    proptest! {
        /// The ranges agree with a table that has one entry a page.
        #[test]
        fn ranges_agree_with_single_pages(changes in proptest::collection::vec((0u64..40, 1u64..12, 0u8..9), 1..40)) {
            let mut mappings = Mappings::default();
            let mut pages: BTreeMap<u64, u8> = BTreeMap::new();
            for (first, count, bits) in changes {
                let range = first * PAGE..(first + count) * PAGE;
                if bits == 8 {
                    mappings.remove(range);
                    for page in first..first + count {
                        pages.remove(&page);
                    }
                } else {
                    mappings.insert(range, anonymous(bits));
                    pages.extend((first..first + count).map(|page| (page, bits)));
                }
            }
            for page in 0..60 {
                let found = mappings.at(page * PAGE + 5).map(|(_, mapping)| mapping.protection.0);
                prop_assert_eq!(found, pages.get(&page).copied());
            }
            let free = mappings.find_free(0..60 * PAGE, 3 * PAGE, PAGE).map(|address| address / PAGE);
            let expected = (0..58).find(|page| (*page..page + 3).all(|page| !pages.contains_key(&page)));
            prop_assert_eq!(free, expected);
        }
    }

    #[test]
    fn stacks_grow_towards_each_other_within_their_limit() {
        let mut mappings = Mappings::default();
        let down = Mapping {
            growth: Growth::Down,
            ..anonymous(3)
        };
        let up = Mapping {
            growth: Growth::Up,
            ..anonymous(3)
        };
        mappings.insert(100 * PAGE..110 * PAGE, down.clone());
        mappings.insert(10 * PAGE..20 * PAGE, up.clone());
        let limit = 30 * PAGE;
        assert_eq!(
            mappings.growth_for(95 * PAGE + 8, limit),
            Some((95 * PAGE..100 * PAGE, down))
        );
        assert_eq!(
            mappings.growth_for(25 * PAGE + 8, limit),
            Some((20 * PAGE..26 * PAGE, up))
        );
        assert_eq!(mappings.growth_for(60 * PAGE, limit), None);
    }
}
