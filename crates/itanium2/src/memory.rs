//! The caches and translation buffers: which level answers, and how long it takes.
//!
//! Caches keep tags only, replaced least recently used first. The first level is looked up by virtual address and
//! region, the others by physical address, which is only asked for when the first level misses.

use sidestep_ia64::TranslationSide;
use sidestep_ia64::execution::{State, Translation as PhysicalAddresses};
use sidestep_ia64::registers::status::psr;

use crate::parameters::{CacheShape, Cost, Parameters};
use crate::pmu::event::Event;
use crate::pmu::event_address::TranslatedBy;
use crate::recency::Recency;

/// A cache's tags.
struct Cache {
    /// Ways of each set next to each other, the most recently used first.
    tags: Vec<u64>,
    ways: usize,
    sets_mask: u64,
    line_log2: u32,
    /// Whether the line that was brought in last took the place of another.
    has_replaced: bool,
}

/// A tag that no line has.
const EMPTY: u64 = u64::MAX;

impl Cache {
    fn new(shape: CacheShape) -> Cache {
        let sets = shape.size / shape.ways / shape.line;
        Cache {
            tags: vec![EMPTY; (sets * shape.ways) as usize],
            ways: shape.ways as usize,
            sets_mask: u64::from(sets) - 1,
            line_log2: shape.line.trailing_zeros(),
            has_replaced: false,
        }
    }

    /// Looks a line up and makes it the most recently used; where it is missing and `fill` says so, brings it in.
    #[inline]
    fn access(&mut self, address: u64, fill: bool) -> bool {
        let line = address >> self.line_log2;
        let first = (line & self.sets_mask) as usize * self.ways;
        let set = &mut self.tags[first..first + self.ways];
        if set[0] == line {
            return true;
        }
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
        found.is_some()
    }
}

/// Where a translation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// In the first level.
    First,
    /// In the second level.
    Second,
    /// In the VHPT, whose entry took this many cycles to come.
    Walk(u64),
}

impl Translation {
    /// Where it was found, if not in the first level.
    pub fn by(self) -> Option<TranslatedBy> {
        match self {
            Translation::First => None,
            Translation::Second => Some(TranslatedBy::SecondLevel),
            Translation::Walk(_) => Some(TranslatedBy::Walker),
        }
    }
}

/// Pages of the first level of a TLB: 4 kB whatever the translation says (manual, TLB hierarchy).
const FIRST_PAGE_LOG2: u32 = 12;
/// Pages of a program without a kernel: those of Linux/ia64.
const PROGRAM_PAGE_LOG2: u32 = 14;

/// The caches and translation buffers of one processor.
pub struct Memory {
    l1i: Cache,
    l1d: Cache,
    l2: Cache,
    l3: Cache,
    tlb_first: [Recency; 2],
    tlb_second: [Recency; 2],
    latency_l2: u64,
    latency_l2_instruction: u64,
    latency_l3: u64,
    latency_memory: u64,
    last_line: [u64; 2],
    last_page: [u64; 2],
    /// What tells virtual lines and pages of different address spaces apart, beside their regions.
    space: u64,
    /// Insertions by the walker that have been seen.
    seen_walks: u64,
}

/// The instruction or the data side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Fetches.
    Instruction,
    /// Loads and stores.
    Data,
}

/// What the second-level cache is asked for.
#[derive(Clone, Copy)]
enum Request {
    /// Data to read, or a translation's entry.
    Read,
    /// Data to be stored to.
    Write,
    /// Instructions.
    Fetch,
}

type Values = [u64; Event::COUNT];

/// The address space that a reference is made in.
#[derive(Clone, Copy)]
pub struct Space<'a> {
    /// What decides how addresses are translated.
    pub state: &'a State,
    /// What answers for physical addresses.
    pub memory: &'a dyn PhysicalAddresses,
}

impl Space<'_> {
    /// Whether references of a side are translated by a kernel's page tables.
    fn is_translated(self, side: Side) -> bool {
        let bit = if side == Side::Data { psr::DT } else { psr::IT };
        self.state.is_system && self.state.status & bit != 0
    }

    /// What tells virtual lines and pages of different regions apart.
    #[inline]
    fn name(self, side: Side, address: u64) -> u64 {
        if !self.is_translated(side) {
            return address;
        }
        let region = self.state.regions[(address >> 61) as usize] >> 8 & 0xff_ffff;
        address ^ region << 37 ^ 1 << 36
    }

    /// The physical address behind a virtual one, as the second level sees it.
    fn physical(self, side: Side, address: u64) -> u64 {
        let side = match side {
            Side::Instruction => TranslationSide::Instruction,
            Side::Data => TranslationSide::Data,
        };
        self.memory.physical(side, address)
    }
}

impl Memory {
    /// Empty caches.
    pub fn new(parameters: &Parameters) -> Memory {
        let pages = |entries: usize| [Recency::new(entries), Recency::new(entries)];
        Memory {
            l1i: Cache::new(parameters.l1i),
            l1d: Cache::new(parameters.l1d),
            l2: Cache::new(parameters.l2),
            l3: Cache::new(parameters.l3),
            tlb_first: pages(parameters.tlb_first),
            tlb_second: pages(parameters.tlb_second),
            latency_l2: parameters.l2.latency.into(),
            latency_l2_instruction: parameters.cost(Cost::InstructionL2),
            latency_l3: parameters.l3.latency.into(),
            latency_memory: parameters.memory.into(),
            last_line: [EMPTY; 2],
            last_page: [EMPTY; 2],
            space: 0,
            seen_walks: 0,
        }
    }

    /// Bytes of a line of the first instruction cache, as a power of two.
    pub fn instruction_line_log2(&self) -> u32 {
        self.l1i.line_log2
    }

    /// Whether the first data cache holds a loaded line; brings it in. That it was read is counted by whoever asks.
    ///
    /// Answers the cycles more than a hit takes; `None` for a hit.
    #[inline]
    pub fn load(&mut self, space: Space<'_>, address: u64, values: &mut Values) -> Option<u64> {
        let name = self.space ^ space.name(Side::Data, address);
        if self.l1d.access(name, true) {
            return None;
        }
        values[Event::L1dReadMisses as usize] += 1;
        Some(self.second_level(space, address, Request::Read, values) - 1)
    }

    /// A load that passes the first level by: cycles more than a hit in the second level takes.
    #[inline]
    pub fn load_second(&mut self, space: Space<'_>, address: u64, values: &mut Values) -> u64 {
        self.second_level(space, address, Request::Read, values) - self.latency_l2
    }

    /// A store: the line is updated in the first level, and written to the second. Cycles until that is done.
    #[inline]
    pub fn store(&mut self, space: Space<'_>, address: u64, values: &mut Values) -> u64 {
        let name = self.space ^ space.name(Side::Data, address);
        self.l1d.access(name, false);
        self.second_level(space, address, Request::Write, values)
    }

    fn second_level(&mut self, space: Space<'_>, address: u64, request: Request, values: &mut Values) -> u64 {
        let physical = space.physical(Side::Data, address);
        self.beyond(physical, request, values)
    }

    fn beyond(&mut self, physical: u64, request: Request, values: &mut Values) -> u64 {
        let (counted, hit, miss) = match request {
            Request::Read => (Event::L2DataReads, Event::L3DataReadHits, Event::L3DataReadMisses),
            Request::Write => (
                Event::L2DataWrites,
                Event::L3DataWriteHits,
                Event::L3DataWriteMisses,
            ),
            Request::Fetch => (Event::L1iFills, Event::L3FetchHits, Event::L3FetchMisses),
        };
        values[counted as usize] += 1;
        if self.l2.access(physical, true) {
            return match request {
                Request::Fetch => self.latency_l2_instruction,
                Request::Read | Request::Write => self.latency_l2,
            };
        }
        if self.l3.access(physical, true) {
            values[hit as usize] += 1;
            return self.latency_l3;
        }
        values[miss as usize] += 1;
        values[Event::L3Replaced as usize] += u64::from(self.l3.has_replaced);
        self.latency_memory
    }

    /// A fetch of 32 bytes: cycles more than a hit takes. That it was made is counted by whoever asks.
    #[inline]
    pub fn fetch(&mut self, space: Space<'_>, address: u64, values: &mut Values) -> u64 {
        let line = address >> self.l1i.line_log2;
        if self.last_line[0] == line {
            return 0;
        }
        self.last_line[0] = line;
        let name = self.space ^ space.name(Side::Instruction, address);
        if self.l1i.access(name, true) {
            return 0;
        }
        let physical = space.physical(Side::Instruction, address);
        self.beyond(physical, Request::Fetch, values) - 1
    }

    /// Looks a page up in both levels of a TLB.
    #[inline]
    pub fn translate(
        &mut self,
        space: Space<'_>,
        side: Side,
        address: u64,
        values: &mut Values,
    ) -> Translation {
        let index = side as usize;
        let page = address >> FIRST_PAGE_LOG2;
        if self.last_page[index] == page {
            return Translation::First;
        }
        self.translate_changed(space, side, address, values)
    }

    /// Names virtual lines and pages by another address space from now on.
    pub fn enter_space(&mut self, number: u64) {
        // Regions are in the bits below.
        self.space = number << 61 | number >> 3 << 12;
        self.context_changed();
    }

    /// Brings lines in as somebody who is not counted refers to them, by physical address.
    pub fn touch(&mut self, address: u64, bytes: u64, writes: bool) {
        let line = 1 << self.l1d.line_log2;
        for address in (address & !(line - 1)..address.saturating_add(bytes)).step_by(line as usize) {
            self.l1d.access(address, !writes);
            if !self.l2.access(address, true) {
                self.l3.access(address, true);
            }
        }
    }

    /// Forgets shortcuts that rest on the current address space.
    pub fn context_changed(&mut self) {
        self.last_page = [EMPTY; 2];
        self.last_line = [EMPTY; 2];
    }

    fn translate_changed(
        &mut self,
        space: Space<'_>,
        side: Side,
        address: u64,
        values: &mut Values,
    ) -> Translation {
        let index = side as usize;
        let name = self.space ^ space.name(side, address);
        self.last_page[index] = address >> FIRST_PAGE_LOG2;
        let is_system = space.state.is_system;
        if is_system && !space.is_translated(side) {
            return Translation::First;
        }
        if self.tlb_first[index].access(name >> FIRST_PAGE_LOG2) {
            return Translation::First;
        }
        let (first, second) = match side {
            Side::Instruction => (Event::ItlbMissesFirst, Event::ItlbMissesSecond),
            Side::Data => (Event::DtlbTransfers, Event::DtlbMisses),
        };
        let is_known = if is_system {
            // The architectural translations are the second level; what the walker read is in their events.
            !self.walked(space.state)
        } else {
            self.tlb_second[index].access(name >> PROGRAM_PAGE_LOG2)
        };
        if side == Side::Instruction || is_known {
            values[first as usize] += 1;
        }
        if is_known {
            return Translation::Second;
        }
        values[second as usize] += 1;
        values[Event::WalkerReferences as usize] += 1;
        values[Event::WalkerInsertions as usize] += u64::from(side == Side::Data);
        Translation::Walk(self.walk(address, values))
    }

    /// Whether the walker has inserted a translation since the last question.
    fn walked(&mut self, state: &State) -> bool {
        let walked = state.walker_insertions != self.seen_walks;
        self.seen_walks = state.walker_insertions;
        walked
    }

    /// The cycles that the walker waits for an entry: a linear table at an address of its own.
    fn walk(&mut self, address: u64, values: &mut Values) -> u64 {
        const TABLE: u64 = 1 << 60;
        let entry = TABLE | (address >> PROGRAM_PAGE_LOG2) << 3;
        self.beyond(entry, Request::Read, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn stores_bring_no_line_into_the_first_level() {
        let mut cache = Cache::new(Parameters::default().l1d);
        assert!(!cache.access(64, false));
        assert!(!cache.access(64, true));
        assert!(cache.access(64, false));
    }
}
