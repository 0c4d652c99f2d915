//! Waiting for something to happen: an interrupt, work on the agenda, a request to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A counter of things that happened, which threads wait on.
#[derive(Default)]
pub struct Wakeups {
    count: AtomicU64,
    /// The count grows while it is locked, so that nobody begins to wait for what has happened.
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// Who is to be told.
#[derive(Default)]
struct Waiting {
    /// How many threads wait.
    threads: usize,
    /// The attention flag of a processor that executes while all others wait.
    attention: Option<Arc<AtomicBool>>,
}

impl Wakeups {
    /// Wakes everyone who waits.
    pub fn wake(&self) {
        let waiting = self.lock();
        self.count.fetch_add(1, Ordering::Release);
        // Telling nobody would be a system call all the same.
        if waiting.threads > 0 {
            self.changed.notify_all();
        }
        if let Some(attention) = &waiting.attention {
            attention.store(true, Ordering::Release);
        }
    }

    /// Has the flag set when something happens, or none.
    pub(crate) fn call(&self, attention: Option<Arc<AtomicBool>>) {
        self.lock().attention = attention;
    }

    /// How often something has happened: to be read before looking whether there is something to do.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until the count differs from `seen`, at most as long as `limit`.
    pub fn wait(&self, seen: u64, limit: Option<Duration>) {
        let mut waiting = self.lock();
        waiting.threads += 1;
        let nothing_new = |_: &mut Waiting| self.count() == seen;
        let mut waiting = match limit {
            Some(limit) => {
                let woken = self.changed.wait_timeout_while(waiting, limit, nothing_new);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let woken = self.changed.wait_while(waiting, nothing_new);
                woken.unwrap_or_else(PoisonError::into_inner)
            }
        };
        waiting.threads -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
