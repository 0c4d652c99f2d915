//! What the monitor does for a guest: the same function for a request by exit and by sidecall.

use std::sync::atomic::Ordering;

use crate::layout::{PAGE_BYTES, WINDOW_PAGES, page, request};
use crate::memory::GuestMemory;

/// What identification returns.
pub const IDENTIFICATION: u64 = u64::from_le_bytes(*b"Sidestep");

/// Present, writable, for users: an entry of the window.
const ENTRY_FLAGS: u64 = 0b111;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Operation {
    /// Nothing.
    Null = 1,
    /// Who the monitor is.
    Identify = 2,
    /// A page of memory, seen through a page of the window that shows nothing.
    Map = 3,
    /// Another page of memory, seen through a page of the window.
    Change = 4,
    /// Nothing more to be seen through a page of the window.
    Unmap = 5,
}

impl Operation {
    fn of(number: u64) -> Option<Self> {
        use Operation::*;
        [Null, Identify, Map, Change, Unmap]
            .into_iter()
            .find(|operation| *operation as u64 == number)
    }
}

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Status {
    /// It was done.
    Done = 0,
    /// There is no such operation.
    NoOperation = 1,
    /// The window has no such page.
    NoPage = 2,
    /// Memory has no such page that the window may show.
    NoFrame = 3,
    /// To be mapped, and mapped already.
    Mapped = 4,
    /// To be changed or unmapped, and not mapped.
    NotMapped = 5,
}

/// A request as it was when it was copied out of the guest's memory: what the guest writes later changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The guest's number for it, any value.
    pub sequence: u64,
    operation: u64,
    page: u64,
    frame: u64,
}

impl Request {
    /// Copies a request that was announced by `sequence`, each word once.
    pub fn copy(memory: &GuestMemory, sequence: u64) -> Self {
        let word = |word| memory.word(page::REQUEST, word).load(Ordering::Relaxed);
        Self {
            sequence,
            operation: word(request::OPERATION),
            page: word(request::PAGE),
            frame: word(request::FRAME),
        }
    }

    /// Serves it and answers in the guest's memory, the sequence last.
    pub fn serve(self, memory: &GuestMemory) -> Status {
        let (status, value) = match self.answer(memory) {
            Ok(value) => (Status::Done, value),
            Err(status) => (status, 0),
        };
        let word = |word| memory.word(page::REQUEST, word);
        word(request::STATUS).store(status as u64, Ordering::Relaxed);
        word(request::VALUE).store(value, Ordering::Relaxed);
        word(request::ANSWERED).store(self.sequence, Ordering::Release);
        status
    }

    fn answer(self, memory: &GuestMemory) -> Result<u64, Status> {
        let operation = Operation::of(self.operation).ok_or(Status::NoOperation)?;
        match operation {
            Operation::Null => return Ok(0),
            Operation::Identify => return Ok(IDENTIFICATION),
            Operation::Map | Operation::Change | Operation::Unmap => {}
        }
        let index = usize::try_from(self.page)
            .ok()
            .filter(|index| *index < WINDOW_PAGES);
        let entry = memory.word(page::WINDOW, index.ok_or(Status::NoPage)?);
        let is_mapped = entry.load(Ordering::Relaxed) & 1 != 0;
        let value = match operation {
            Operation::Map if is_mapped => return Err(Status::Mapped),
            Operation::Change | Operation::Unmap if !is_mapped => return Err(Status::NotMapped),
            Operation::Unmap => 0,
            _ => self.frame_address()? | ENTRY_FLAGS,
        };
        entry.store(value, Ordering::Release);
        Ok(value)
    }

    /// Where the frame lies. Only pages that are nothing else may be shown.
    fn frame_address(self) -> Result<u64, Status> {
        let is_frame = (page::FRAMES as u64..page::COUNT as u64).contains(&self.frame);
        is_frame
            .then(|| self.frame * PAGE_BYTES as u64)
            .ok_or(Status::NoFrame)
    }
}
