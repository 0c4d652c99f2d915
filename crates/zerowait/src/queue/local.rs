//! The continuations that one core issued to itself: a ring without atomics.
//!
//! Normally first in, first out, so that nobody starves. Above half of its limit the newest goes first: a
//! tree of threads then grows by its depth and no longer by its breadth, and stays within the limit. If that
//! has not helped for long, the oldest is taken once, so that nobody starves then either. A thread that
//! continues to itself to wait for something goes where it is taken last.

use crate::continuation::Continuation;
use crate::payload::WORDS;

/// After this many pops under pressure, for each continuation of the limit, one takes the oldest.
const PATIENCE: usize = 64;

/// One core's own queue.
#[derive(Debug)]
pub(crate) struct Local {
    ring: Box<[Slot]>,
    head: usize,
    length: usize,
    limit: usize,
    pops_under_pressure: usize,
    longest: usize,
}

/// A continuation as words: its data, its stamp, its header.
type Slot = [u64; WORDS + 2];

#[inline]
fn write(slot: &mut Slot, continuation: &Continuation) {
    let [a, b, c, d] = continuation.words;
    *slot = [a, b, c, d, continuation.stamp, continuation.header()];
}

#[inline]
fn read(slot: &Slot) -> Continuation {
    let [a, b, c, d, stamp, header] = *slot;
    Continuation::from_header(header, stamp, [a, b, c, d])
}

impl Local {
    /// A queue that bodies may fill up to `limit`; the executor itself may go on to
    /// [`physical`](Self::physical).
    pub(crate) fn new(limit: usize) -> Self {
        let slots = (2 * limit.max(4)).next_power_of_two();
        Self {
            ring: vec![[0; WORDS + 2]; slots].into_boxed_slice(),
            head: 0,
            length: 0,
            limit,
            pops_under_pressure: 0,
            longest: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The greatest length so far.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Changes what bodies may fill, never beyond the ring.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(self.ring.len() / 2);
    }

    /// Whether there is room for what another core sent: half as much again as for bodies.
    pub(crate) fn has_room_for_others(&self) -> bool {
        self.length < self.limit + self.limit / 2
    }

    /// How much room there is for what timers and devices report: nearly the whole ring, because what waits
    /// for them may be what fills the queue.
    pub(crate) fn room_for_events(&self) -> usize {
        (self.ring.len() - 4).saturating_sub(self.length)
    }

    /// How many the ring itself holds: what is beyond the limit is for what must not be refused.
    pub(crate) fn physical(&self) -> usize {
        self.ring.len()
    }

    /// Whether a body may push.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.length < self.limit
    }

    fn is_under_pressure(&self) -> bool {
        self.length > self.limit / 2
    }

    /// Appends; the caller has made sure of room within the ring.
    #[inline]
    pub(crate) fn push(&mut self, continuation: Continuation) {
        assert!(
            self.length < self.ring.len(),
            "a core's own queue has room for what the executor puts there"
        );
        let at = (self.head + self.length) & (self.ring.len() - 1);
        write(&mut self.ring[at], &continuation);
        self.length += 1;
        self.longest = self.longest.max(self.length);
    }

    /// Adds a thread's continuation to itself, where it is taken last.
    #[inline]
    pub(crate) fn push_retry(&mut self, continuation: Continuation) {
        if self.is_under_pressure() {
            self.push_oldest(continuation);
        } else {
            self.push(continuation);
        }
    }

    /// Adds a continuation before all others, as if it had been there longest.
    pub(crate) fn push_oldest(&mut self, continuation: Continuation) {
        assert!(
            self.length < self.ring.len(),
            "a core's own queue has room for what the executor puts there"
        );
        self.head = self.head.wrapping_sub(1) & (self.ring.len() - 1);
        write(&mut self.ring[self.head], &continuation);
        self.length += 1;
        self.longest = self.longest.max(self.length);
    }

    /// Takes the next to run.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Continuation> {
        if self.length == 0 {
            return None;
        }
        if !self.is_under_pressure() {
            return self.pop_oldest();
        }
        self.pops_under_pressure += 1;
        if self.pops_under_pressure > PATIENCE * self.limit {
            self.pops_under_pressure = 0;
            return self.pop_oldest();
        }
        self.length -= 1;
        let at = (self.head + self.length) & (self.ring.len() - 1);
        Some(read(&self.ring[at]))
    }

    /// Takes the oldest.
    #[inline]
    pub(crate) fn pop_oldest(&mut self) -> Option<Continuation> {
        if self.length == 0 {
            return None;
        }
        let continuation = read(&self.ring[self.head]);
        self.head = (self.head + 1) & (self.ring.len() - 1);
        self.length -= 1;
        Some(continuation)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn number(value: u64) -> Continuation {
        Continuation {
            words: [value, 0, 0, 0],
            ..Continuation::default()
        }
    }

    fn popped(queue: &mut Local) -> u64 {
        queue.pop().expect("not empty").words[0]
    }

    #[test]
    fn it_is_first_in_first_out_while_it_is_short() {
        let mut queue = Local::new(8);
        (0..4).for_each(|value| queue.push(number(value)));
        assert_eq!(
            (0..4).map(|_| popped(&mut queue)).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
        assert!(queue.pop().is_none());
    }

    #[test]
    fn above_half_of_the_limit_the_newest_goes_first_and_a_retry_last() {
        let mut queue = Local::new(8);
        (0..6).for_each(|value| queue.push(number(value)));
        queue.push_retry(number(100));
        assert_eq!(
            [popped(&mut queue), popped(&mut queue), popped(&mut queue)],
            [5, 4, 3]
        );
        assert_eq!(
            popped(&mut queue),
            100,
            "short again, and the retry has become the oldest"
        );
    }

    #[test]
    fn under_pressure_the_oldest_is_still_taken_now_and_then() {
        let mut queue = Local::new(8);
        (0..6).for_each(|value| queue.push(number(value)));
        let mut seen = Vec::new();
        for round in 0..=PATIENCE * 8 {
            seen.push(popped(&mut queue));
            queue.push(number(10 + round as u64));
        }
        assert!(seen.contains(&0), "{seen:?}");
    }
}
