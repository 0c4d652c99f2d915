//! The activation control memory: for every thread its counter, fan-in, code entry, mode and lock.
//!
//! 1K pages of 8 entries of 5 bytes (CEFOS section 3.1). A page belongs to one instance of a function; a header
//! beside the entries holds what the instance's threads share: where its frame is and who made it. An instance's page
//! is found as the lowest free one, so allocation is a priority encoder over one bit a page.

use super::thread::{ENTRIES_PER_PAGE, Mode, ThreadId};

/// The largest code entry: 19 bits of instruction number, so two megabytes of text.
pub const CODE_ENTRIES: u32 = 1 << 19;

/// One entry; [`Entry::packed`] shows that it fits the paper's five bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// Number of the thread's first instruction; 19 bits.
    pub code: u32,
    /// Continuations still awaited; at zero the thread has been made ready.
    pub count: u8,
    /// What the counter is set back to.
    pub fan_in: u8,
    /// The thread's mode; `None` marks the empty entry.
    pub mode: Option<Mode>,
    /// The lock that serialises those who want to continue here.
    pub locked: bool,
    /// The thread is ready: in the queue, or spilled.
    pub ready: bool,
    /// The thread is ready but found the queue full.
    pub spilled: bool,
}

impl Entry {
    /// The entry as the 40 bits of the hardware: code 0..18, count 19..26, fan-in 27..34, mode 35..36, lock 37,
    /// ready 38, spilled 39.
    #[cfg(test)]
    fn packed(&self) -> u64 {
        u64::from(self.code)
            | u64::from(self.count) << 19
            | u64::from(self.fan_in) << 27
            | self.mode.map_or(0, |mode| mode as u64) << 35
            | u64::from(self.locked) << 37
            | u64::from(self.ready) << 38
            | u64::from(self.spilled) << 39
    }
}

/// Who made a page, and so who may change its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A user thread.
    User,
    /// A kernel or kernel interface thread.
    System,
}

/// What the threads of an instance share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Who made it.
    pub level: Level,
    /// The byte address of the instance's frame.
    pub frame: u32,
    /// The frame's length in words.
    pub words: u16,
}

/// The activation control memory.
#[derive(Debug, Clone)]
pub struct ActivationMemory {
    entries: Vec<Entry>,
    pages: Vec<Option<Page>>,
    /// One bit a page, set while the page is free.
    free: Vec<u64>,
    /// One bit a page, set while one of its entries is spilled.
    spilled_pages: Vec<u64>,
    spilled: u32,
    /// The page at which the search for spilled entries goes on.
    refill_page: u16,
}

impl ActivationMemory {
    /// An empty memory of `pages` pages.
    pub fn new(pages: u16) -> ActivationMemory {
        let count = usize::from(pages);
        let mut free = vec![0u64; count.div_ceil(64)];
        for page in 0..count {
            free[page / 64] |= 1 << (page % 64);
        }
        ActivationMemory {
            entries: vec![Entry::default(); count * usize::from(ENTRIES_PER_PAGE)],
            pages: vec![None; count],
            spilled_pages: vec![0; free.len()],
            free,
            spilled: 0,
            refill_page: 0,
        }
    }

    /// How many pages there are.
    pub fn pages(&self) -> u16 {
        self.pages.len() as u16
    }

    /// How many pages are free.
    #[cfg(test)]
    fn free_pages(&self) -> u32 {
        self.free.iter().map(|word| word.count_ones()).sum()
    }

    /// How many threads are ready but not in the queue.
    pub fn spilled(&self) -> u32 {
        self.spilled
    }

    /// Takes the lowest free page; its entries are empty.
    pub fn allocate(&mut self, page: Page) -> Option<u16> {
        let word = self.free.iter().position(|word| *word != 0)?;
        let number = word * 64 + self.free[word].trailing_zeros() as usize;
        self.free[word] &= self.free[word] - 1;
        self.pages[number] = Some(page);
        Some(number as u16)
    }

    /// Frees a page and empties its entries.
    ///
    /// # Panics
    /// When one of its threads is ready: its activation would be lost.
    pub fn release(&mut self, page: u16) {
        let first = usize::from(page) * usize::from(ENTRIES_PER_PAGE);
        for entry in &mut self.entries[first..first + usize::from(ENTRIES_PER_PAGE)] {
            assert!(!entry.ready, "a page with a ready thread is not released");
            *entry = Entry::default();
        }
        self.pages[usize::from(page)] = None;
        self.free[usize::from(page) / 64] |= 1 << (page % 64);
    }

    /// Whether one of a page's threads is ready.
    pub fn has_ready(&self, page: u16) -> bool {
        let first = usize::from(page) * usize::from(ENTRIES_PER_PAGE);
        self.entries[first..first + usize::from(ENTRIES_PER_PAGE)]
            .iter()
            .any(|entry| entry.ready)
    }

    /// A page's header, if the page is in use.
    pub fn page(&self, page: u16) -> Option<&Page> {
        self.pages[usize::from(page)].as_ref()
    }

    /// A thread's entry.
    pub fn entry(&self, thread: ThreadId) -> &Entry {
        &self.entries[thread.number() as usize]
    }

    /// A thread's entry, to change.
    pub fn entry_mut(&mut self, thread: ThreadId) -> &mut Entry {
        &mut self.entries[thread.number() as usize]
    }

    /// Marks a ready thread as waiting outside the full queue.
    pub fn spill(&mut self, thread: ThreadId) {
        let page = usize::from(thread.page());
        let entry = self.entry_mut(thread);
        assert!(entry.ready && !entry.spilled, "a thread is ready once");
        entry.spilled = true;
        self.spilled_pages[page / 64] |= 1 << (page % 64);
        self.spilled += 1;
    }

    /// Takes the next spilled thread: the lowest entry of the first page, from where the last search ended, that
    /// has one.
    pub fn unspill(&mut self) -> Option<ThreadId> {
        let page = self.next_spilled_page()?;
        let mut remaining = false;
        let mut found = None;
        for entry in 0..ENTRIES_PER_PAGE {
            let thread = ThreadId::new(page, entry);
            if self.entry(thread).spilled {
                match found {
                    None => found = Some(thread),
                    Some(_) => remaining = true,
                }
            }
        }
        let thread = found.expect("the summary marks pages with a spilled entry");
        self.entry_mut(thread).spilled = false;
        self.spilled -= 1;
        if !remaining {
            self.spilled_pages[usize::from(page) / 64] &= !(1 << (page % 64));
        }
        self.refill_page = (page + 1) % self.pages();
        Some(thread)
    }

    fn next_spilled_page(&self) -> Option<u16> {
        if self.spilled == 0 {
            return None;
        }
        let pages = self.pages();
        (0..pages)
            .map(|step| (self.refill_page + step) % pages)
            .find(|page| self.spilled_pages[usize::from(*page) / 64] >> (page % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page {
        level: Level::System,
        frame: 0,
        words: 0,
    };

    #[test]
    fn an_entry_fits_the_papers_five_bytes() {
        let entry = Entry {
            code: CODE_ENTRIES - 1,
            count: 255,
            fan_in: 255,
            mode: Some(Mode::Kernel),
            locked: true,
            ready: true,
            spilled: true,
        };
        assert_eq!(entry.packed(), (1 << 40) - 1);
    }

    #[test]
    fn pages_are_taken_lowest_first_and_run_out() {
        let mut memory = ActivationMemory::new(130);
        let taken: Vec<_> = std::iter::from_fn(|| memory.allocate(PAGE)).collect();
        assert_eq!(taken, (0..130).collect::<Vec<u16>>());
        memory.release(70);
        memory.release(3);
        assert_eq!(memory.free_pages(), 2);
        assert_eq!(memory.allocate(PAGE), Some(3));
        assert_eq!(memory.allocate(PAGE), Some(70));
        assert_eq!(memory.allocate(PAGE), None);
    }

    #[test]
    fn spilled_threads_come_back_once_each_in_turn() {
        let mut memory = ActivationMemory::new(4);
        let threads = [ThreadId::new(2, 5), ThreadId::new(2, 1), ThreadId::new(0, 7)];
        for thread in threads {
            memory.entry_mut(thread).ready = true;
            memory.spill(thread);
        }
        let order: Vec<_> = std::iter::from_fn(|| memory.unspill()).collect();
        assert_eq!(
            order,
            [ThreadId::new(0, 7), ThreadId::new(2, 1), ThreadId::new(2, 5)]
        );
        assert_eq!(memory.spilled(), 0);
    }
}
