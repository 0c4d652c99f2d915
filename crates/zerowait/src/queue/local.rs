//! The continuations that one core issued to itself: a ring without atomics.
//!
//! Normally first in, first out, so that nobody starves. Above half of its limit the newest goes first: a
//! tree of threads then grows by its depth and no longer by its breadth, and stays within the limit. If that
//! has not helped for long, the oldest is taken once, so that nobody starves then either. A thread that
//! continues to itself to wait for something goes where it is taken last.
//!
//! A first-in, first-out ring walks over all its memory however short the queue is. So only a window at the
//! front of the memory is used as the ring, which doubles when it is full and is small again when the queue
//! was empty: a short queue stays in the fastest cache.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::continuation::Continuation;
use crate::payload::WORDS;

/// After this many pops under pressure, for each continuation of the limit, one takes the oldest.
const PATIENCE: usize = 64;
/// The length of the smallest window: 6 KiB.
const WINDOW_MIN: usize = 128;

/// One core's own queue.
#[derive(Debug)]
pub(crate) struct Local {
    slots: Box<[Slot]>,
    /// The window's length minus 1; the length is a power of two.
    mask: usize,
    /// Where the oldest is.
    head: usize,
    length: usize,
    /// How many bodies may queue before the window must be doubled or the limit is reached.
    room_at_once: usize,
    limit: usize,
    pops_under_pressure: usize,
    longest: usize,
}

/// A continuation as words: its data, its stamp, its header.
///
/// Only one core touches them. They are atomic, which costs nothing with relaxed order, because the compiler
/// then reads and writes each by itself: a short queue reads back what it wrote a few cycles ago, and the
/// processor forwards that from its store buffer only if a load is not wider than the store was.
#[derive(Debug, Default)]
struct Slot([AtomicU64; WORDS + 2]);

impl Slot {
    #[inline(always)]
    fn write(&self, continuation: &Continuation) {
        let [a, b, c, d] = continuation.words;
        self.put([a, b, c, d, continuation.stamp, continuation.header()]);
    }

    #[inline(always)]
    fn put(&self, words: [u64; WORDS + 2]) {
        for (kept, word) in self.0.iter().zip(words) {
            kept.store(word, Relaxed);
        }
    }

    #[inline(always)]
    fn words(&self) -> [u64; WORDS + 2] {
        std::array::from_fn(|word| self.0[word].load(Relaxed))
    }

    #[inline(always)]
    fn read(&self) -> Continuation {
        let [a, b, c, d, stamp, header] = self.words();
        Continuation::from_header(header, stamp, [a, b, c, d])
    }
}

impl Local {
    /// A queue that bodies may fill up to `limit`; the executor itself may go on to
    /// [`physical`](Self::physical).
    pub(crate) fn new(limit: usize) -> Self {
        let slots = (2 * limit.max(4)).next_power_of_two();
        let mut queue = Self {
            slots: (0..slots).map(|_| Slot::default()).collect(),
            mask: 0,
            head: 0,
            length: 0,
            room_at_once: 0,
            limit,
            pops_under_pressure: 0,
            longest: 0,
        };
        queue.set_window(WINDOW_MIN);
        queue
    }

    fn set_window(&mut self, length: usize) {
        self.mask = length.min(self.slots.len()) - 1;
        self.room_at_once = self.limit.min(self.mask + 1);
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The greatest length so far.
    pub(crate) fn longest(&self) -> usize {
        self.longest.max(self.length)
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Changes what bodies may fill, never beyond the ring.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(self.slots.len() / 2);
        self.room_at_once = self.limit.min(self.mask + 1);
    }

    /// Whether there is room for what another core sent: half as much again as for bodies.
    pub(crate) fn has_room_for_others(&self) -> bool {
        self.length < self.limit + self.limit / 2
    }

    /// How much room there is for what timers and devices report: nearly the whole ring, because what waits
    /// for them may be what fills the queue.
    pub(crate) fn room_for_events(&self) -> usize {
        (self.slots.len() - 4).saturating_sub(self.length)
    }

    /// How many the ring itself holds: what is beyond the limit is for what must not be refused.
    pub(crate) fn physical(&self) -> usize {
        self.slots.len()
    }

    /// Whether a body may push.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.length < self.limit
    }

    fn is_under_pressure(&self) -> bool {
        self.length > self.limit / 2
    }

    /// Whether a body may [`push_at_once`](Self::push_at_once).
    #[inline(always)]
    pub(crate) fn has_room_at_once(&self) -> bool {
        self.length < self.room_at_once
    }

    /// Appends where there is [room at once](Self::has_room_at_once).
    #[inline(always)]
    pub(crate) fn push_at_once(&mut self, continuation: &Continuation) {
        let at = (self.head + self.length) & self.mask;
        self.slots[at].write(continuation);
        self.length += 1;
    }

    /// Appends; the caller has made sure of room within the ring.
    #[inline]
    pub(crate) fn push(&mut self, continuation: Continuation) {
        if self.length > self.mask {
            self.widen();
        }
        self.push_at_once(&continuation);
    }

    /// Doubles the full window: what had wrapped around to its front moves behind it.
    #[cold]
    fn widen(&mut self) {
        let window = self.mask + 1;
        assert!(
            window < self.slots.len(),
            "a core's own queue has room for what the executor puts there"
        );
        for at in 0..self.head {
            self.slots[window + at].put(self.slots[at].words());
        }
        self.set_window(2 * window);
    }

    /// Makes the window small again if the queue is empty.
    #[inline]
    pub(crate) fn narrow(&mut self) {
        if self.length == 0 {
            self.head = 0;
            self.set_window(WINDOW_MIN);
        }
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
        if self.length > self.mask {
            self.widen();
        }
        self.head = self.head.wrapping_sub(1) & self.mask;
        self.slots[self.head].write(&continuation);
        self.length += 1;
    }

    /// The queue is longest before something is taken, so it is measured then.
    #[inline]
    fn note_length(&mut self) {
        if self.length > self.longest {
            self.longest = self.length;
        }
    }

    /// Takes the next to run.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Continuation> {
        if self.length == 0 {
            return None;
        }
        self.note_length();
        let at = match self.is_under_pressure() && self.takes_newest() {
            true => (self.head + self.length - 1) & self.mask,
            false => self.step_head(),
        };
        self.length -= 1;
        Some(self.slots[at].read())
    }

    /// Under pressure: whether the newest goes first this time too.
    #[cold]
    fn takes_newest(&mut self) -> bool {
        self.pops_under_pressure += 1;
        let waited_long = self.pops_under_pressure > PATIENCE * self.limit;
        if waited_long {
            self.pops_under_pressure = 0;
        }
        !waited_long
    }

    /// Where the oldest was.
    #[inline(always)]
    fn step_head(&mut self) -> usize {
        let oldest = self.head;
        self.head = (oldest + 1) & self.mask;
        oldest
    }

    /// Takes the oldest.
    #[inline]
    pub(crate) fn pop_oldest(&mut self) -> Option<Continuation> {
        if self.length == 0 {
            return None;
        }
        self.note_length();
        let oldest = self.step_head();
        self.length -= 1;
        Some(self.slots[oldest].read())
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
    fn the_window_widens_and_narrows_without_a_loss() {
        let mut queue = Local::new(2000);
        let (mut pushed, mut taken) = (0, 0);
        // Starts in the middle of a window each time, so that a full one has wrapped around.
        for round in [50, 100, 120, 200, 480] {
            for _ in 0..round {
                queue.push(number(pushed));
                pushed += 1;
            }
            for _ in 0..round / 2 {
                assert_eq!(popped(&mut queue), taken);
                taken += 1;
            }
        }
        while let Some(next) = queue.pop() {
            assert_eq!(next.words[0], taken);
            taken += 1;
        }
        assert_eq!((taken, queue.len()), (pushed, 0));
        queue.narrow();
        queue.push(number(7));
        assert_eq!(popped(&mut queue), 7);
    }

    #[test]
    #[should_panic(expected = "has room for what the executor puts there")]
    fn more_than_the_ring_holds_is_a_broken_invariant() {
        let mut queue = Local::new(4);
        (0..=queue.physical() as u64).for_each(|value| queue.push(number(value)));
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
