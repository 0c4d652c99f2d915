//! The tags of a set-associative cache in which the line used longest ago is replaced.

/// An entry without a line. No line of memory has this number: addresses have 64 bits, and lines are larger.
const EMPTY: u64 = u64::MAX;

/// Which lines a cache has.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// For each set its lines, the one used last first.
    lines: Vec<u64>,
    sets: u64,
    ways: usize,
    /// How many of the ways can be used now.
    usable: usize,
}

impl Cache {
    /// An empty cache of `sets`, a power of two, of `ways` lines each.
    pub fn new(sets: u64, ways: usize) -> Cache {
        assert!(
            sets.is_power_of_two() && ways > 0,
            "a cache has a power of two of sets"
        );
        Cache {
            lines: vec![EMPTY; sets as usize * ways],
            sets,
            ways,
            usable: ways,
        }
    }

    /// How many lines it can have.
    pub fn capacity(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Its ways, usable or not.
    pub fn ways(&self) -> usize {
        self.ways
    }

    /// Lets only so many of its ways be used, at least one; lines in the others are lost.
    pub fn limit(&mut self, usable: usize) {
        let usable = usable.clamp(1, self.ways);
        if usable < self.usable {
            for set in self.lines.chunks_exact_mut(self.ways) {
                set[usable..].fill(EMPTY);
            }
        }
        self.usable = usable;
    }

    /// Uses a line, which is there afterwards. Whether it was before.
    #[inline]
    pub fn uses(&mut self, line: u64) -> bool {
        let first = (line & (self.sets - 1)) as usize * self.ways;
        let set = &mut self.lines[first..first + self.usable];
        if set[0] == line {
            return true;
        }
        let found = set.iter().position(|known| *known == line);
        let place = found.unwrap_or(set.len() - 1);
        set[..=place].rotate_right(1);
        set[0] = line;
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_line_used_longest_ago_goes_and_a_limit_loses_lines() {
        let mut cache = Cache::new(2, 2);
        assert_eq!(
            [0, 2, 0, 4, 0, 2].map(|line| cache.uses(line)),
            [false, false, true, false, true, false]
        );
        cache.limit(1);
        assert_eq!([2, 0, 2].map(|line| cache.uses(line)), [true, false, false]);
        cache.limit(0);
        assert!(cache.uses(2), "one way is always left");
    }

    proptest! {
        /// Against a list of each set's lines, the last used first.
        #[test]
        fn it_keeps_the_lines_used_last(lines in proptest::collection::vec(0_u64..64, 0..200), ways in 1_usize..5) {
            let mut cache = Cache::new(4, ways);
            let mut lists = vec![Vec::new(); 4];
            for line in lines {
                let list: &mut Vec<u64> = &mut lists[line as usize % 4];
                let had = list.contains(&line);
                list.retain(|other| *other != line);
                list.insert(0, line);
                list.truncate(ways);
                prop_assert_eq!(cache.uses(line), had);
            }
        }
    }
}
