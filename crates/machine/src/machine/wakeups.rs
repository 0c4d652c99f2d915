//! Waiting for something to happen: an interrupt, work on the agenda, a request to stop.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A counter of things that happened, which threads wait on.
#[derive(Default)]
pub struct Wakeups {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Wakeups {
    /// Wakes everyone who waits.
    pub fn wake(&self) {
        *self.lock() += 1;
        self.changed.notify_all();
    }

    /// How often something has happened: to be read before looking whether there is something to do.
    pub fn count(&self) -> u64 {
        *self.lock()
    }

    /// Waits until the count differs from `seen`, at most as long as `limit`.
    pub fn wait(&self, seen: u64, limit: Option<Duration>) {
        let count = self.lock();
        match limit {
            Some(limit) => drop(
                self.changed
                    .wait_timeout_while(count, limit, |count| *count == seen),
            ),
            None => drop(self.changed.wait_while(count, |count| *count == seen)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
