//! Where everything lies in the guest's memory, and how the words of the shared pages are numbered.
//!
//! One table for both sides: the guest's code is assembled with these constants.

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Eight-byte words of a page.
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;

/// Pages of the guest's memory, in order; they are mapped where they lie.
pub mod page {
    /// First level of the page table that the processor walks.
    pub const LEVEL_4: usize = 0;
    /// Second level.
    pub const LEVEL_3: usize = 1;
    /// Third level.
    pub const LEVEL_2: usize = 2;
    /// Last level for the guest's memory.
    pub const IDENTITY: usize = 3;
    /// Last level for the window, which the monitor fills as it is asked.
    pub const WINDOW: usize = 4;
    /// The guest's program.
    pub const CODE: usize = 5;
    /// Segments and interrupts, and the stack of interrupts at its end.
    pub const DESCRIPTORS: usize = 6;
    /// The first page that the window may show.
    pub const FRAMES: usize = 7;
    /// What the first processor shall do next, and what came of it.
    pub const ORDER: usize = 11;
    /// Its requests and answers.
    pub const REQUEST: usize = 12;
    /// The first page of its durations.
    pub const SAMPLES: usize = 13;
    /// How many pages from a processor's own pages to those of the next.
    pub const PROCESSOR: usize = 6;
    /// How many pages there are.
    pub const COUNT: usize = ORDER + super::PROCESSORS_MAX * PROCESSOR;
}

/// The most processors of a guest.
pub const PROCESSORS_MAX: usize = 4;
/// The pages that the window may show.
pub const FRAMES: std::ops::Range<usize> = page::FRAMES..page::ORDER;
/// The most samples of an order.
pub const SAMPLES_MAX: usize = (page::ORDER + page::PROCESSOR - page::SAMPLES) * PAGE_WORDS;
/// Pages of the window.
pub const WINDOW_PAGES: usize = PAGE_WORDS;
/// The first address of the window.
pub const WINDOW_ADDRESS: u64 = 2 << 20;

/// Words of the page of descriptors.
pub mod descriptors {
    /// The first of the segments' table.
    pub const SEGMENTS: usize = 0;
    /// The first of the interrupts' table.
    pub const INTERRUPTS: usize = 32;
    /// The interrupt that says that a request was answered.
    pub const VECTOR: usize = 0x40;
}

/// Words of the request page: those of a [line](sidestep_sidecall::line).
pub mod request {
    pub use sidestep_sidecall::line::word::{ANSWERED, ASLEEP, OPERATION, SEQUENCE, STATUS, VALUE};
    /// The page of the window that it is about.
    pub const PAGE: usize = sidestep_sidecall::line::word::FIRST;
    /// The page of memory that is to be seen there.
    pub const FRAME: usize = sidestep_sidecall::line::word::SECOND;
}

/// Words of the order page.
pub mod order {
    /// How the monitor is reached.
    pub const WAY: usize = 0;
    /// The request's operation.
    pub const OPERATION: usize = 1;
    /// The request's page, of the first request.
    pub const PAGE: usize = 2;
    /// The request's frame.
    pub const FRAME: usize = 3;
    /// What the page grows by from request to request.
    pub const STEP: usize = 4;
    /// Requests in a sample.
    pub const BATCH: usize = 5;
    /// Samples.
    pub const SAMPLES: usize = 6;
    /// What is done after each request: nothing, or [`TOUCH`].
    pub const AFTER: usize = 7;
    /// How the last request went.
    pub const STATUS: usize = 8;
    /// What it returned.
    pub const VALUE: usize = 9;
    /// What the window's page held when it was touched.
    pub const TOUCHED: usize = 10;
    /// How many requests were refused.
    pub const REFUSED: usize = 11;
    /// The number of the last request of all.
    pub const SEQUENCE: usize = 12;

    /// The page is read.
    pub const TOUCH: u64 = 1;
}

/// Ports by which the guest leaves for the program.
pub mod port {
    /// The order is done.
    pub const DONE: u16 = 0x10;
    /// The program is to serve the request.
    pub const SERVE: u16 = 0x11;
    /// The program is to wake the sidecore.
    pub const WAKE: u16 = 0x12;
    /// The kernel signals the eventfd of the processor's thread of the program.
    pub const NOTIFY: u16 = 0x13;
}
