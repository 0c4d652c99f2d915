//! Free address ranges: which is the lowest that has room?
//!
//! A gap is found by its start, to be merged and cut, and by its size: sets of starts, one for each power of two. The
//! lowest gap that is large enough is the lowest of all sets of larger sizes, or one of those of the same power that
//! are looked at in turn. So a search does not depend on how many mappings there are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

/// The free ranges of an address space.
#[derive(Clone, Debug)]
pub struct Gaps {
    /// End by start.
    ends: BTreeMap<u64, u64>,
    /// Starts by the logarithm of the size.
    starts: [BTreeSet<u64>; 64],
}

impl Gaps {
    /// A space that is all free.
    pub fn new(all: Range<u64>) -> Gaps {
        let mut gaps = Gaps {
            ends: BTreeMap::new(),
            starts: [const { BTreeSet::new() }; 64],
        };
        gaps.add(all);
        gaps
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    fn add(&mut self, gap: Range<u64>) {
        if !gap.is_empty() {
            self.starts[class_of(gap.end - gap.start)].insert(gap.start);
            self.ends.insert(gap.start, gap.end);
        }
    }

    fn remove(&mut self, start: u64) -> Option<Range<u64>> {
        let end = self.ends.remove(&start)?;
        self.starts[class_of(end - start)].remove(&start);
        Some(start..end)
    }

    /// Makes a range used, whatever it was.
    pub fn take(&mut self, range: &Range<u64>) {
        while let Some((&start, &end)) = self.ends.range(..range.end).next_back()
            && end > range.start
        {
            self.remove(start);
            self.add(start..range.start.max(start));
            self.add(range.end.min(end)..end);
        }
    }

    /// Makes a range free, whatever it was.
    pub fn release(&mut self, range: &Range<u64>) {
        self.take(range);
        let mut free = range.clone();
        if let Some((&start, &end)) = self.ends.range(..range.start).next_back()
            && end == range.start
        {
            self.remove(start);
            free.start = start;
        }
        if let Some(above) = self.remove(range.end) {
            free.end = above.end;
        }
        self.add(free);
    }

    /// The lowest free range of `length` bytes in `bounds`, aligned to `alignment`.
    pub fn find(&self, bounds: &Range<u64>, length: u64, alignment: u64) -> Option<u64> {
        if bounds.is_empty() || length == 0 {
            return None;
        }
        let fit = |gap: Range<u64>| {
            let start = gap.start.max(bounds.start).checked_add(alignment - 1)? & !(alignment - 1);
            let end = gap.end.min(bounds.end);
            (start < end && end - start >= length).then_some(start)
        };
        // A gap that begins below the bounds comes first.
        let below = self.ends.range(..bounds.start).next_back();
        if let Some(start) = below.and_then(|(&start, &end)| fit(start..end)) {
            return Some(start);
        }
        let classes = &self.starts[class_of(length)..];
        let next = |class: usize, from: u64| {
            let start = classes[class].range(from..bounds.end.max(from)).next();
            start.map(|start| Reverse((*start, class)))
        };
        // The next candidate of each set, the lowest on top.
        let mut candidates: BinaryHeap<_> = (0..classes.len())
            .filter_map(|class| next(class, bounds.start))
            .collect();
        while let Some(Reverse((start, class))) = candidates.pop() {
            if let Some(start) = fit(start..self.ends[&start]) {
                return Some(start);
            }
            candidates.extend(next(class, start + 1));
        }
        None
    }
}

/// The set that holds gaps of a size.
fn class_of(size: u64) -> usize {
    size.ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Gaps agree with a table of single units, whatever is taken and released.
        #[test]
        fn gaps_agree_with_single_units(
            changes in proptest::collection::vec((0u64..60, 1u64..12, any::<bool>()), 1..60),
            from in 0u64..60, length in 1u64..8, alignment in 0u32..3,
        ) {
            let mut gaps = Gaps::new(0..64);
            let mut used = [false; 64];
            for (start, size, takes) in changes {
                let range = start..(start + size).min(64);
                if takes { gaps.take(&range) } else { gaps.release(&range) }
                used[range.start as usize..range.end as usize].fill(takes);
            }
            let alignment = 1u64 << alignment;
            let free = |start: u64| start + length <= 64
                && used[start as usize..(start + length) as usize].iter().all(|used| !used);
            let expected = (from..64).find(|start| start.is_multiple_of(alignment) && free(*start));
            prop_assert_eq!(gaps.find(&(from..64), length, alignment), expected);
            let runs = (0..64).filter(|at| !used[*at] && (*at == 0 || used[at - 1])).count();
            prop_assert_eq!(gaps.count(), runs);
        }
    }
}
