//! A gate's lock and software queue: who runs the gate next.
//!
//! The lock is one word. [`enter`](GateLock::enter) either makes the caller responsible for starting the
//! gate, or leaves the entry in the queue for whoever holds the lock; [`finish`](GateLock::finish) passes the
//! lock to the next entry or frees it. No entry is lost between the two: the one who queues looks at the lock
//! afterwards, the one who frees the lock looks at the queue afterwards, each behind a sequentially
//! consistent fence, so at least one of them sees the other.
//!
//! The lock may outlast the body: a device's gate stays taken until its completion arrives
//! ([`hold`](GateLock::hold), [`release`](GateLock::release)).

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::payload::Words;
use crate::queue::Bounded;
use crate::sync::{AtomicU32, fence};

/// Nobody is in the gate.
const FREE: u32 = 0;
/// An entry is about to run, runs, or has been released.
const RUNNING: u32 = 1;
/// The body runs and has asked to stay locked after it ends.
const RUNNING_HELD: u32 = 2;
/// The body has ended; somebody else will release the lock.
const HELD: u32 = 3;
/// The body panicked; nobody enters any more.
const POISONED: u32 = 4;

/// The lock of one gate, with its software queue if its policy has one.
#[derive(Debug)]
pub struct GateLock {
    state: AtomicU32,
    waiting: Option<Bounded<Words>>,
}

/// The outcome of [`GateLock::enter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// The caller took the lock and must start the gate with these words (not always its own).
    Start(Words),
    /// The entry waits.
    Waits,
    /// The gate is taken and has no queue.
    Busy,
    /// The queue is full.
    Full,
    /// The gate is out of order.
    Poisoned,
}

impl GateLock {
    /// A free gate with room for `capacity` waiting entries, or without a queue.
    pub fn new(capacity: Option<usize>) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            waiting: capacity.map(Bounded::new),
        }
    }

    fn try_lock(&self) -> bool {
        self.state.load(Relaxed) == FREE
            && self
                .state
                .compare_exchange(FREE, RUNNING, AcqRel, Relaxed)
                .is_ok()
    }

    /// Comes to the gate with `words`.
    pub fn enter(&self, words: Words) -> Entered {
        let Some(waiting) = &self.waiting else {
            return match self.try_lock() {
                true => Entered::Start(words),
                false if self.is_poisoned() => Entered::Poisoned,
                false => Entered::Busy,
            };
        };
        if !waiting.has_value() && self.try_lock() {
            return Entered::Start(words);
        }
        if self.is_poisoned() {
            return Entered::Poisoned;
        }
        if waiting.push(words).is_err() {
            return Entered::Full;
        }
        fence(SeqCst);
        if !self.try_lock() {
            return Entered::Waits;
        }
        match self.finish() {
            Some(next) => Entered::Start(next),
            None => Entered::Waits,
        }
    }

    /// Ends the lock holder's turn: the next entry to start, which takes over the lock, or `None` and the
    /// lock is free.
    pub fn finish(&self) -> Option<Words> {
        loop {
            if let Some(next) = self.waiting.as_ref().and_then(Bounded::pop) {
                return Some(next);
            }
            self.state.store(FREE, Release);
            let waiting = self.waiting.as_ref()?;
            fence(SeqCst);
            if !waiting.has_value() || !self.try_lock() {
                return None;
            }
        }
    }

    /// While the body runs: keeps the lock beyond its end, until [`release`](Self::release).
    pub fn hold(&self) {
        let was = self.state.swap(RUNNING_HELD, AcqRel);
        assert_eq!(was, RUNNING, "only the running body of a gate holds it, and once");
    }

    /// The body has ended. `true` if the lock holder's turn is over, so that [`finish`](Self::finish) is due.
    pub fn body_ended(&self) -> bool {
        self.state.load(Relaxed) != RUNNING_HELD
            || self
                .state
                .compare_exchange(RUNNING_HELD, HELD, AcqRel, Acquire)
                .is_err()
    }

    /// Ends a hold. `Ok(true)` if the caller now has the turn and must [`finish`](Self::finish) it;
    /// `Ok(false)` if the body still runs and will; `Err(())` if the gate was not held.
    #[allow(clippy::result_unit_err)]
    pub fn release(&self) -> Result<bool, ()> {
        if self
            .state
            .compare_exchange(RUNNING_HELD, RUNNING, AcqRel, Relaxed)
            .is_ok()
        {
            return Ok(false);
        }
        // Acquire pairs with the end of the body: the next run sees what this one wrote.
        self.state
            .compare_exchange(HELD, RUNNING, AcqRel, Relaxed)
            .map(|_| true)
            .map_err(|_| ())
    }

    /// Puts the gate out of order; only the lock holder may.
    pub fn poison(&self) {
        self.state.store(POISONED, Release);
    }

    /// Whether the gate is out of order.
    pub fn is_poisoned(&self) -> bool {
        self.state.load(Relaxed) == POISONED
    }

    /// Whether an ended body left the gate locked.
    pub fn is_held(&self) -> bool {
        self.state.load(Relaxed) == HELD
    }

    /// How many entries found the gate taken and were queued, so far.
    pub fn queued(&self) -> u64 {
        self.waiting.as_ref().map_or(0, Bounded::pushed)
    }

    /// How many entries wait.
    pub fn waiting(&self) -> usize {
        self.waiting.as_ref().map_or(0, Bounded::len)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn word(value: u64) -> Words {
        [value, 0, 0, 0]
    }

    #[test]
    fn entries_wait_in_order_and_a_full_queue_refuses() {
        let gate = GateLock::new(Some(2));
        assert_eq!(gate.enter(word(1)), Entered::Start(word(1)));
        assert_eq!(gate.enter(word(2)), Entered::Waits);
        assert_eq!(gate.enter(word(3)), Entered::Waits);
        assert_eq!(gate.enter(word(4)), Entered::Full);
        assert_eq!(gate.finish(), Some(word(2)));
        assert_eq!(gate.finish(), Some(word(3)));
        assert_eq!(gate.finish(), None);
        assert_eq!(gate.enter(word(5)), Entered::Start(word(5)));
    }

    #[test]
    fn without_a_queue_a_taken_gate_refuses() {
        let gate = GateLock::new(None);
        assert_eq!(gate.enter(word(1)), Entered::Start(word(1)));
        assert_eq!(gate.enter(word(2)), Entered::Busy);
        assert_eq!(gate.finish(), None);
        assert_eq!(gate.enter(word(2)), Entered::Start(word(2)));
    }

    #[test]
    fn a_held_gate_stays_taken_until_it_is_released() {
        let gate = GateLock::new(Some(1));
        assert_eq!(gate.enter(word(1)), Entered::Start(word(1)));
        gate.hold();
        assert!(!gate.body_ended());
        assert_eq!(gate.enter(word(2)), Entered::Waits);
        assert_eq!(gate.release(), Ok(true));
        assert_eq!(gate.finish(), Some(word(2)));
        assert_eq!(gate.release(), Err(()), "the second entry does not hold it");
    }

    #[test]
    fn a_release_before_the_body_ends_is_the_bodys_to_finish() {
        let gate = GateLock::new(None);
        assert_eq!(gate.enter(word(1)), Entered::Start(word(1)));
        gate.hold();
        assert_eq!(gate.release(), Ok(false));
        assert!(gate.body_ended());
        assert_eq!(gate.finish(), None);
    }

    #[test]
    fn a_poisoned_gate_admits_nobody() {
        for capacity in [None, Some(3)] {
            let gate = GateLock::new(capacity);
            assert_eq!(gate.enter(word(1)), Entered::Start(word(1)));
            gate.poison();
            assert_eq!(gate.enter(word(2)), Entered::Poisoned);
        }
    }
}
