//! A gate's lock and software queue: who runs the gate next.
//!
//! The lock is one word: what the gate does, and how many entries have been announced.
//! [`enter`](GateLock::enter) either makes the caller responsible for starting the gate, or leaves the entry
//! in the queue and announces it to whoever holds the lock; [`finish`](GateLock::finish) passes the lock to
//! the next entry or frees it. No entry is lost between the two: both change the same word, and it is freed
//! only if nobody has announced an entry since the queue was seen to be empty; whoever announces one later
//! finds the lock free and takes it.
//!
//! Only the holder of the lock takes entries from the queue, so it need not compete for them.
//!
//! The lock may outlast the body: a device's gate stays taken until its completion arrives
//! ([`hold`](GateLock::hold), [`release`](GateLock::release)).

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::payload::Words;
use crate::queue::Bounded;
use crate::sync::AtomicU64;

/// The bits of the lock word that say what the gate does.
const MODE: u64 = 0b111;
/// Nobody is in the gate.
const FREE: u64 = 0;
/// An entry is about to run, runs, or has been released.
const RUNNING: u64 = 1;
/// The body runs and has asked to stay locked after it ends.
const RUNNING_HELD: u64 = 2;
/// The body has ended; somebody else will release the lock.
const HELD: u64 = 3;
/// The body panicked; nobody enters any more.
const POISONED: u64 = 4;
/// One announced entry; the count wraps after 2^61, and only a change of it matters.
const ENTRY: u64 = MODE + 1;

/// The lock of one gate, with its software queue if its policy has one.
#[derive(Debug)]
pub struct GateLock {
    state: AtomicU64,
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
            state: AtomicU64::new(FREE),
            waiting: capacity.map(Bounded::new),
        }
    }

    #[inline]
    fn mode(&self) -> u64 {
        self.state.load(Relaxed) & MODE
    }

    /// Goes from one mode to another, whatever is announced meanwhile; whether it was in that mode.
    #[inline]
    fn change(&self, from: u64, to: u64) -> bool {
        let mut state = self.state.load(Acquire);
        while state & MODE == from {
            let changed = state - from + to;
            match self.state.compare_exchange_weak(state, changed, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.change(FREE, RUNNING)
    }

    /// Comes to the gate with `words`.
    #[inline]
    pub fn enter(&self, words: Words) -> Entered {
        let Some(waiting) = &self.waiting else {
            return match self.try_lock() {
                true => Entered::Start(words),
                false if self.is_poisoned() => Entered::Poisoned,
                false => Entered::Busy,
            };
        };
        match self.mode() {
            FREE if !waiting.has_value() && self.try_lock() => return Entered::Start(words),
            POISONED => return Entered::Poisoned,
            _ => {}
        }
        if waiting.push(words).is_err() {
            return Entered::Full;
        }
        // Release: whoever frees the lock later sees the entry. Acquire pairs with the one that freed it.
        if self.state.fetch_add(ENTRY, AcqRel) & MODE != FREE || !self.try_lock() {
            return Entered::Waits;
        }
        match self.finish() {
            Some(next) => Entered::Start(next),
            None => Entered::Waits,
        }
    }

    /// Ends the lock holder's turn: the next entry to start, which takes over the lock, or `None` and the
    /// lock is free. Only the lock holder may.
    #[inline]
    pub fn finish(&self) -> Option<Words> {
        let Some(waiting) = &self.waiting else {
            self.state.store(FREE, Release);
            return None;
        };
        loop {
            // All entries that are announced in this word are seen by the pop.
            let seen = self.state.load(Acquire);
            assert_eq!(seen & MODE, RUNNING, "a gate's turn is ended by the lock holder");
            // SAFETY: the lock's holder alone takes from this queue, and the lock passes from one holder to
            // the next with release and acquire.
            if let Some(next) = unsafe { waiting.pop_alone() } {
                return Some(next);
            }
            let freed = seen - RUNNING + FREE;
            if self.state.compare_exchange(seen, freed, Release, Relaxed).is_ok() {
                return None;
            }
        }
    }

    /// While the body runs: keeps the lock beyond its end, until [`release`](Self::release).
    pub fn hold(&self) {
        assert!(
            self.change(RUNNING, RUNNING_HELD),
            "only the running body of a gate holds it, and once"
        );
    }

    /// The body has ended. `true` if the lock holder's turn is over, so that [`finish`](Self::finish) is due.
    #[inline]
    pub fn body_ended(&self) -> bool {
        !self.change(RUNNING_HELD, HELD)
    }

    /// Ends a hold. `Ok(true)` if the caller now has the turn and must [`finish`](Self::finish) it;
    /// `Ok(false)` if the body still runs and will; `Err(())` if the gate was not held.
    #[allow(clippy::result_unit_err)]
    pub fn release(&self) -> Result<bool, ()> {
        if self.change(RUNNING_HELD, RUNNING) {
            return Ok(false);
        }
        // Acquire pairs with the end of the body: the next run sees what this one wrote.
        match self.change(HELD, RUNNING) {
            true => Ok(true),
            false => Err(()),
        }
    }

    /// Puts the gate out of order; only the lock holder may.
    pub fn poison(&self) {
        let poisoned = [RUNNING, RUNNING_HELD]
            .into_iter()
            .any(|mode| self.change(mode, POISONED));
        assert!(poisoned, "only the running body of a gate poisons it");
    }

    /// Whether the gate is out of order.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.mode() == POISONED
    }

    /// Whether an ended body left the gate locked.
    pub fn is_held(&self) -> bool {
        self.mode() == HELD
    }

    /// How many entries found the gate taken and were queued, so far.
    pub fn queued(&self) -> u64 {
        self.waiting.as_ref().map_or(0, Bounded::pushed)
    }

    /// How many entries wait.
    #[inline]
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
