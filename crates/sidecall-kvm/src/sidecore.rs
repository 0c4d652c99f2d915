//! A core that stays in the monitor: a pinned thread that looks at the request pages of its guests in turn.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle, Thread};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::layout::{page, request};
use crate::memory::GuestMemory;
use crate::service::Request;

/// Looks without a pause between them: an answer that comes at once is seen at once.
const EAGER_LOOKS: u64 = 1 << 12;

/// Pins the calling thread to a core.
///
/// # Errors
/// When this process may not use the core.
pub fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    // A set holds so many cores; the kernel refuses one without any.
    if core < CpuSet::MAX_CPU {
        set.set(core);
    }
    Ok(sched_setaffinity(None, &set)?)
}

struct Shared {
    stop: AtomicBool,
    served: AtomicU64,
    refused: AtomicU64,
    slept: AtomicU64,
    processor_ns: AtomicU64,
}

/// A thread that serves requests until it is dropped.
pub struct Sidecore {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What a sidecore has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that were served, refused ones included.
    pub served: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// How often it went to sleep.
    pub slept: u64,
    /// Processor time of the thread, in nanoseconds; known when it has ended.
    pub processor_ns: u64,
}

impl Sidecore {
    /// Starts a sidecore on `core` for `guests`. It goes to sleep after `looks` at each of them that found nothing.
    ///
    /// # Errors
    /// When there can be no thread, or not on that core.
    pub fn start(core: usize, guests: Vec<Arc<GuestMemory>>, looks: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            served: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            slept: AtomicU64::new(0),
            processor_ns: AtomicU64::new(0),
        });
        let (started, starting) = std::sync::mpsc::channel();
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("sidecore".to_owned())
            .spawn(move || {
                let pinned = pin(core);
                let is_pinned = pinned.is_ok();
                // Whoever starts it waits for this.
                let _ = started.send(pinned);
                if is_pinned {
                    own.serve(&guests, looks);
                }
            })?;
        let sidecore = Self {
            shared,
            thread: Some(thread),
        };
        match starting.recv() {
            Ok(pinned) => pinned.map(|()| sidecore),
            Err(_) => Err(io::Error::other("the sidecore's thread ended before it served")),
        }
    }

    /// What wakes it.
    pub fn waker(&self) -> Option<Thread> {
        self.thread.as_ref().map(|thread| thread.thread().clone())
    }

    /// What it has done until now.
    pub fn tally(&self) -> Tally {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Tally {
            served: read(&self.shared.served),
            refused: read(&self.shared.refused),
            slept: read(&self.shared.slept),
            processor_ns: read(&self.shared.processor_ns),
        }
    }

    /// Ends it.
    pub fn end(mut self) -> Tally {
        self.join();
        self.tally()
    }

    fn join(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Sidecore {
    fn drop(&mut self) {
        self.join();
    }
}

impl Shared {
    /// One request of each guest in turn: who floods waits for its turn as all do.
    fn serve(&self, guests: &[Arc<GuestMemory>], looks: u64) {
        let mut seen: Vec<u64> = guests
            .iter()
            .map(|memory| memory.load(page::REQUEST, request::ANSWERED))
            .collect();
        let mut idle = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let mut is_idle = true;
            for (memory, seen) in guests.iter().zip(&mut seen) {
                let sequence = memory.load(page::REQUEST, request::SEQUENCE);
                if sequence == *seen {
                    continue;
                }
                *seen = sequence;
                is_idle = false;
                let status = Request::copy(memory, sequence).serve(memory);
                self.count(status as u64 != 0);
            }
            idle = if is_idle { idle + 1 } else { 0 };
            if idle > looks {
                self.sleep(guests, &seen);
                idle = 0;
            } else if idle > EAGER_LOOKS {
                std::hint::spin_loop();
            }
        }
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let processor_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        self.processor_ns.store(processor_ns, Ordering::Relaxed);
    }

    /// Only this thread counts, so no addition needs the bus.
    fn count(&self, is_refused: bool) {
        let add = |counter: &AtomicU64, by: u64| {
            counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        };
        add(&self.served, 1);
        add(&self.refused, is_refused.into());
    }

    /// Says to every guest that it sleeps, looks once more, and sleeps until somebody wakes it. A guest writes its
    /// request and then reads the word, this thread the other way round, each in one order for all: one of the two sees
    /// the other.
    fn sleep(&self, guests: &[Arc<GuestMemory>], seen: &[u64]) {
        let say = |asleep: u64| {
            for memory in guests {
                memory
                    .word(page::REQUEST, request::ASLEEP)
                    .swap(asleep, Ordering::SeqCst);
            }
        };
        say(1);
        let has_request = guests.iter().zip(seen).any(|(memory, seen)| {
            memory
                .word(page::REQUEST, request::SEQUENCE)
                .load(Ordering::SeqCst)
                != *seen
        });
        if !has_request && !self.stop.load(Ordering::Acquire) {
            self.slept.fetch_add(1, Ordering::Relaxed);
            thread::park();
        }
        say(0);
    }
}
