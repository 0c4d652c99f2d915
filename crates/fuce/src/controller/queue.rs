//! The ready queue: first in, first out, no priorities, 1K entries of 10 bytes (CEFOS section 3.1).

use std::collections::VecDeque;

use super::thread::{Mode, ThreadId};

/// A ready thread with all that a unit needs to start it: thread 13 bits, code 19, mode 2, frame 28 (256 MB),
/// length 14, so 76 of the paper's 80 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyThread {
    /// The thread.
    pub thread: ThreadId,
    /// Number of its first instruction.
    pub code: u32,
    /// The mode it runs in.
    pub mode: Mode,
    /// The byte address of its instance's frame.
    pub frame: u32,
    /// The frame's length in words.
    pub words: u16,
}

/// The ready queue.
#[derive(Debug, Clone)]
pub struct ReadyQueue {
    threads: VecDeque<ReadyThread>,
    capacity: usize,
    longest: usize,
}

impl ReadyQueue {
    /// An empty queue that holds `capacity` threads.
    pub fn new(capacity: u16) -> ReadyQueue {
        let capacity = usize::from(capacity);
        ReadyQueue {
            threads: VecDeque::with_capacity(capacity),
            capacity,
            longest: 0,
        }
    }

    /// Threads in the queue.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Whether no thread waits.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Whether there is no room.
    pub fn is_full(&self) -> bool {
        self.threads.len() == self.capacity
    }

    /// The most threads that ever waited at once.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Appends a thread.
    ///
    /// # Panics
    /// When the queue is full; the controller spills instead.
    pub fn push(&mut self, thread: ReadyThread) {
        assert!(!self.is_full(), "the controller never pushes into a full queue");
        self.threads.push_back(thread);
        self.longest = self.longest.max(self.threads.len());
    }

    /// Takes the oldest thread.
    pub fn pop(&mut self) -> Option<ReadyThread> {
        self.threads.pop_front()
    }
}
