//! The caches and translation buffers: which level answers, and how long it takes.
//!
//! Caches keep tags only, replaced least recently used first. The first level is looked up by virtual address and
//! region, the others by physical address, which is only asked for when the first level misses. A line of the first
//! data cache is there for as long as the entry of the first data TLB that it was brought in by: its tags are compared
//! with these entries, not with addresses (Lyon et al., "Data Cache Design Considerations for the Itanium 2 Processor",
//! ICCD 2002). The second level and the third are written back.

use sidestep_ia64::execution::{State, Translation as PhysicalAddresses, UNCACHEABLE};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::{PhysicalAddress, TranslationSide};

use crate::cache::{Cache, EMPTY};
use crate::parameters::{Cost, Parameters};
use crate::pmu::event::Event;
use crate::pmu::event_address::TranslatedBy;
use crate::recency::Recency;

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
/// The lines of such a page, of 64 bytes at the least, by number: they fit into a word.
const LINES_OF_PAGE: u64 = 63;
/// Pages of a program without a kernel: those of Linux/ia64.
const PROGRAM_PAGE_LOG2: u32 = 14;
/// Where the page table of such a program would lie, of 8 bytes a page.
const PROGRAM_TABLE: u64 = 1 << 60;

/// Lines of instructions that are asked for one after the other, a cycle each, from the target of a branch on. In front
/// of the pipeline a line lasts two cycles, so that the further behind the target, the less has to be waited for.
struct Stream {
    first: u64,
    /// Cycles that were waited for lines so far.
    waited: u64,
}

impl Stream {
    fn from(first: u64) -> Stream {
        Stream { first, waited: 0 }
    }

    /// The cycles that a line comes late which takes so many more than a hit.
    fn wait(&mut self, line: u64, more: u64) -> u64 {
        let behind = line.wrapping_sub(self.first);
        let late = more.saturating_sub(behind).saturating_sub(self.waited);
        self.waited += late;
        late
    }
}

/// The caches and translation buffers of one processor.
pub struct Memory {
    l1i: Cache,
    l1d: Cache,
    l2: Cache,
    l3: Cache,
    tlb_first: [Recency; 2],
    /// Which lines of its page each entry of the first data TLB has brought into the first data cache, by the place
    /// of the entry. Some may be there no more, and lines that came without an entry (of the register stack) are not
    /// among them.
    brought_in: Vec<u64>,
    tlb_second: [Recency; 2],
    latency_l2: u64,
    latency_l2_instruction: u64,
    latency_l3: u64,
    latency_memory: u64,
    last_line: [u64; 2],
    last_page: [u64; 2],
    /// Whether lines of instructions are fetched ahead behind a branch that says so, and those that are.
    prefetches: bool,
    stream: Option<Stream>,
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

    /// The physical address behind a virtual one of instructions, as the second level sees it.
    fn physical_instruction(self, address: u64) -> u64 {
        let physical = self.memory.physical(TranslationSide::Instruction, address);
        if self.state.is_system {
            physical & !UNCACHEABLE
        } else {
            physical
        }
    }

    /// The same of data; `None` for what is not cached.
    #[inline]
    fn physical_data(self, address: u64) -> Option<u64> {
        let physical = self.memory.physical(TranslationSide::Data, address);
        (physical & UNCACHEABLE == 0 || !self.state.is_system).then_some(physical)
    }
}

impl Memory {
    /// Empty caches.
    pub fn new(parameters: &Parameters) -> Memory {
        let pages = |entries: usize| [Recency::new(entries), Recency::new(entries)];
        Memory {
            l1i: Cache::new(parameters.l1i),
            l1d: Cache::new(parameters.l1d),
            l2: Cache::written_back(parameters.l2),
            l3: Cache::written_back(parameters.l3),
            tlb_first: pages(parameters.tlb_first),
            brought_in: vec![0; parameters.tlb_first],
            tlb_second: pages(parameters.tlb_second),
            latency_l2: parameters.l2.latency.into(),
            latency_l2_instruction: parameters.cost(Cost::InstructionL2),
            latency_l3: parameters.l3.latency.into(),
            latency_memory: parameters.memory.into(),
            last_line: [EMPTY; 2],
            last_page: [EMPTY; 2],
            prefetches: parameters.cost(Cost::StreamingPrefetch) != 0,
            stream: None,
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
        let line = name >> self.l1d.line_log2 & LINES_OF_PAGE;
        self.brought_in[self.tlb_first[Side::Data as usize].place()] |= 1 << line;
        values[Event::L1dReadMisses as usize] += 1;
        let Some(physical) = space.physical_data(address) else {
            self.l1d.forget(name);
            values[Event::UncacheableLoads as usize] += 1;
            return Some(self.latency_memory - 1);
        };
        Some(self.beyond(physical, Request::Read, values) - 1)
    }

    /// A load that passes the first level by: cycles more than a hit in the second level takes.
    #[inline]
    pub fn load_second(&mut self, space: Space<'_>, address: u64, values: &mut Values) -> u64 {
        let Some(physical) = space.physical_data(address) else {
            values[Event::UncacheableLoads as usize] += 1;
            return self.latency_memory - self.latency_l2;
        };
        self.beyond(physical, Request::Read, values) - self.latency_l2
    }

    /// A store: the line is updated in the first level, and written to the second. Cycles until that is done.
    #[inline]
    pub fn store(&mut self, space: Space<'_>, address: u64, values: &mut Values) -> u64 {
        let name = self.space ^ space.name(Side::Data, address);
        self.l1d.access(name, false);
        let Some(physical) = space.physical_data(address) else {
            values[Event::UncacheableStores as usize] += 1;
            return self.latency_memory;
        };
        self.beyond(physical, Request::Write, values)
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
        let is_there = match request {
            Request::Write => self.l2.write(physical),
            Request::Read | Request::Fetch => self.l2.access(physical, true),
        };
        if is_there {
            return match request {
                Request::Fetch => self.latency_l2_instruction,
                Request::Read | Request::Write => self.latency_l2,
            };
        }
        if let Some(line) = self.l2.written_back.take() {
            self.write_back(line, values);
        }
        if self.l3.access(physical, true) {
            values[hit as usize] += 1;
            return self.latency_l3;
        }
        values[miss as usize] += 1;
        values[Event::L3Replaced as usize] += u64::from(self.l3.has_replaced);
        self.latency_memory
    }

    /// The second level gives a line that was stored to back to the third, which nothing waits for.
    fn write_back(&mut self, line: u64, values: &mut Values) {
        let is_there = self.l3.write(line);
        let (counted, replaced) = match is_there {
            true => (Event::L3WriteBackHits, false),
            false => (Event::L3WriteBackMisses, self.l3.has_replaced),
        };
        values[counted as usize] += 1;
        values[Event::L3Replaced as usize] += u64::from(replaced);
    }

    /// Whether a fetch is of the page of the last one, and of the line that its set of the first level has used last:
    /// then it hits, and changes nothing.
    #[inline(always)]
    pub fn fetches_again(&mut self, space: Space<'_>, address: u64) -> bool {
        if self.last_page[Side::Instruction as usize] != address >> FIRST_PAGE_LOG2 {
            return false;
        }
        let line = address >> self.l1i.line_log2;
        if self.last_line[0] == line {
            return true;
        }
        let is_there = self
            .l1i
            .used_last(self.space ^ space.name(Side::Instruction, address));
        if is_there {
            self.last_line[0] = line;
        }
        is_there
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
        let physical = space.physical_instruction(address);
        let more = self.beyond(physical, Request::Fetch, values) - 1;
        match &mut self.stream {
            Some(stream) => stream.wait(line, more),
            None => more,
        }
    }

    /// A branch was taken to an address, whose hint may say that many bundles are wanted there.
    #[inline]
    pub fn follow(&mut self, target: u64, is_many: bool) {
        let is_stream = is_many && self.prefetches;
        self.stream = is_stream.then(|| Stream::from(target >> self.l1i.line_log2));
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
        self.stream = None;
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
        if side == Side::Data {
            self.forget_lines();
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
        let entry = match is_system {
            true => space.state.walker_entry.0,
            false => PROGRAM_TABLE | (address >> PROGRAM_PAGE_LOG2) << 3,
        };
        Translation::Walk(self.beyond(entry, Request::Read, values))
    }

    /// The first data TLB has taken in an entry: the lines that came by the one in whose place it is are gone.
    fn forget_lines(&mut self) {
        let entries = &self.tlb_first[Side::Data as usize];
        let mut lines = std::mem::take(&mut self.brought_in[entries.place()]);
        let page = entries.replaced().unwrap_or_default() << FIRST_PAGE_LOG2;
        while lines != 0 {
            let line = u64::from(lines.trailing_zeros());
            self.l1d.forget(page | line << self.l1d.line_log2);
            lines &= lines - 1;
        }
    }

    /// The walker reads an entry that does not hold what it looks for: the cycles that it waits for it.
    pub fn walk_in_vain(&mut self, entry: PhysicalAddress, values: &mut Values) -> u64 {
        values[Event::WalkerReferences as usize] += 1;
        self.beyond(entry.0, Request::Read, values)
    }

    /// Whether the walker has inserted a translation since the last question.
    fn walked(&mut self, state: &State) -> bool {
        let walked = state.walker_insertions != self.seen_walks;
        self.seen_walks = state.walker_insertions;
        walked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_stream_come_the_less_late_the_further_behind() {
        let mut stream = Stream::from(0x100);
        assert_eq!(stream.wait(0x100, 6), 6);
        assert_eq!(stream.wait(0x101, 6), 0);
        assert_eq!(stream.wait(0x102, 99), 91);
        assert_eq!(stream.wait(0x103, 99), 0);
        let mut later = Stream::from(0x100);
        assert_eq!(later.wait(0x104, 6), 2);
    }

    /// References of a program to addresses, one after the other: whether the first level had each.
    fn loads(memory: &mut Memory, addresses: impl Iterator<Item = u64>) -> Vec<bool> {
        struct AsIs;
        impl PhysicalAddresses for AsIs {
            fn physical(&self, _: TranslationSide, address: u64) -> u64 {
                address
            }
        }
        let state = State::default();
        let space = Space {
            state: &state,
            memory: &AsIs,
        };
        let mut values = [0; Event::COUNT];
        let mut load = |address| {
            memory.translate(space, Side::Data, address, &mut values);
            memory.load(space, address, &mut values).is_none()
        };
        addresses.map(&mut load).collect()
    }

    #[test]
    fn what_is_not_cached_takes_as_long_as_memory_at_every_reference() {
        struct Device;
        impl PhysicalAddresses for Device {
            fn physical(&self, _: TranslationSide, address: u64) -> u64 {
                address | UNCACHEABLE
            }
        }
        let parameters = Parameters::default();
        let latency = u64::from(parameters.memory);
        let mut memory = Memory::new(&parameters);
        let state = State {
            is_system: true,
            ..State::default()
        };
        let space = Space {
            state: &state,
            memory: &Device,
        };
        let mut values = [0; Event::COUNT];
        for _ in 0..2 {
            assert_eq!(memory.load(space, 0x1000, &mut values), Some(latency - 1));
            assert_eq!(memory.store(space, 0x1000, &mut values), latency);
        }
        assert_eq!(values[Event::UncacheableLoads as usize], 2);
        assert_eq!(values[Event::UncacheableStores as usize], 2);
        assert_eq!(values[Event::L2DataReads as usize], 0);
    }

    #[test]
    fn a_line_goes_with_the_entry_that_brought_it_in() {
        // A line each of 32 pages, all in different sets: they fit into the cache, and the pages into the first TLB.
        let address = |page: u64| 0x4000_0000 + page * 0x1000 + page * 64;
        let mut memory = Memory::new(&Parameters::default());
        loads(&mut memory, (0..32).map(address));
        assert_eq!(loads(&mut memory, (0..32).map(address)), [true; 32]);
        // The 33rd takes the entry of the first, and with it its line; the others keep theirs.
        assert_eq!(
            loads(&mut memory, [address(32), address(1)].into_iter()),
            [false, true]
        );
        assert_eq!(loads(&mut memory, [address(0)].into_iter()), [false]);
    }
}
