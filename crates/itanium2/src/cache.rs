//! A cache as its tags, replaced least recently used first, and what of it has to be written back.

use crate::parameters::CacheShape;

/// A cache's tags.
pub(crate) struct Cache {
    /// Ways of each set next to each other, the most recently used first.
    tags: Vec<u64>,
    ways: usize,
    sets_mask: u64,
    /// Bytes of a line, as a power of two.
    pub line_log2: u32,
    /// Whether the line that was brought in last took the place of another.
    pub has_replaced: bool,
    /// Of a cache that is written back, which lines were stored to, way by way as `tags`; else empty.
    dirty: Vec<bool>,
    /// The line that was brought in last took the place of this one, which has to be written back.
    pub written_back: Option<u64>,
}

/// A tag that no line has.
pub(crate) const EMPTY: u64 = u64::MAX;

impl Cache {
    pub fn new(shape: CacheShape) -> Cache {
        let sets = shape.size / shape.ways / shape.line;
        Cache {
            tags: vec![EMPTY; (sets * shape.ways) as usize],
            ways: shape.ways as usize,
            sets_mask: u64::from(sets) - 1,
            line_log2: shape.line.trailing_zeros(),
            has_replaced: false,
            dirty: Vec::new(),
            written_back: None,
        }
    }

    /// One that keeps what is stored to its lines until they give way.
    pub fn written_back(shape: CacheShape) -> Cache {
        let mut cache = Cache::new(shape);
        cache.dirty = vec![false; cache.tags.len()];
        cache
    }

    /// As [`Cache::access`], for a line that is stored to and brought in.
    #[inline(always)]
    pub fn write(&mut self, address: u64) -> bool {
        let found = self.access(address, true);
        let first = (address >> self.line_log2 & self.sets_mask) as usize * self.ways;
        if let Some(is_dirty) = self.dirty.get_mut(first) {
            *is_dirty = true;
        }
        found
    }

    /// Forgets the line of an address, if it is there.
    pub fn forget(&mut self, address: u64) {
        let line = address >> self.line_log2;
        let first = (line & self.sets_mask) as usize * self.ways;
        let set = &mut self.tags[first..first + self.ways];
        if let Some(way) = set.iter().position(|tag| *tag == line) {
            set[way..].rotate_left(1);
            set[self.ways - 1] = EMPTY;
        }
    }

    /// Looks a line up and makes it the most recently used; where it is missing and `fill` says so, brings it in.
    #[inline(always)]
    pub fn access(&mut self, address: u64, fill: bool) -> bool {
        let line = address >> self.line_log2;
        let first = (line & self.sets_mask) as usize * self.ways;
        self.tags[first] == line || self.access_set(first, line, fill)
    }

    /// Whether a line is the most recently used of its set.
    #[inline(always)]
    pub fn used_last(&self, address: u64) -> bool {
        let line = address >> self.line_log2;
        self.tags[(line & self.sets_mask) as usize * self.ways] == line
    }

    /// As [`Cache::access`], for a line that is not the most recently used of its set, which begins with the tag
    /// `first`.
    fn access_set(&mut self, first: usize, line: u64, fill: bool) -> bool {
        let set = &mut self.tags[first..first + self.ways];
        let found = (1..set.len()).find(|way| set[*way] == line);
        let last = match found {
            Some(way) => way,
            None if fill => {
                let last = set.len() - 1;
                self.has_replaced = set[last] != EMPTY;
                last
            }
            None => return false,
        };
        // Each moves on by a way; a loop, as sets are too small for a call to move memory.
        let mut before = line;
        for tag in &mut set[..=last] {
            before = std::mem::replace(tag, before);
        }
        if !self.dirty.is_empty() {
            let dirty = &mut self.dirty[first..=first + last];
            dirty.rotate_right(1);
            let was_dirty = found.is_none() && std::mem::take(&mut dirty[0]);
            self.written_back = was_dirty.then_some(before << self.line_log2);
        }
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Parameters;

    #[test]
    fn a_set_forgets_the_line_that_was_used_longest_ago() {
        let mut cache = Cache::new(Parameters::default().l1d);
        let lines = |way: u64| way << 12;
        for way in 0..4 {
            assert!(!cache.access(lines(way), true));
        }
        assert!(cache.access(lines(0), true));
        assert!(!cache.access(lines(4), true));
        assert!(cache.access(lines(0), true));
        assert!(!cache.access(lines(1), true));
    }

    #[test]
    fn what_was_stored_to_is_written_back_when_it_gives_way() {
        let mut cache = Cache::written_back(Parameters::default().l2);
        let line = |way: u64| way << 15 | 0x100;
        cache.write(line(0));
        for way in 1..8 {
            cache.access(line(way), true);
            assert_eq!(cache.written_back, None);
        }
        cache.access(line(3), true);
        cache.access(line(8), true);
        assert_eq!(cache.written_back, Some(line(0)));
        // Its place is clean now, as are the others.
        for way in 9..17 {
            cache.access(line(way), true);
            assert_eq!(cache.written_back, None);
        }
    }

    #[test]
    fn a_line_that_is_forgotten_leaves_its_place_to_the_next() {
        let mut cache = Cache::new(Parameters::default().l1d);
        let line = |way: u64| way << 12;
        for way in 0..4 {
            cache.access(line(way), true);
        }
        cache.forget(line(2));
        cache.access(line(4), true);
        assert!(cache.access(line(0), true) && cache.access(line(1), true) && cache.access(line(3), true));
        assert!(!cache.access(line(2), true));
    }

    #[test]
    fn stores_bring_no_line_into_the_first_level() {
        let mut cache = Cache::new(Parameters::default().l1d);
        assert!(!cache.access(64, false));
        assert!(!cache.access(64, true));
        assert!(cache.access(64, false));
    }
}
