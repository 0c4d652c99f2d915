//! A bounded queue for many producers and many consumers, without locks.
//!
//! Every slot has a sequence number that says whose turn it is (Vyukov's bounded queue): a producer that
//! claimed position `p` may write when the number is `p` and publishes with `p + 1`; a consumer of `p` may
//! read at `p + 1` and frees the slot for the next lap with `p + slots`. Values are `Copy`, so a queue
//! dropped with values in it leaks nothing.
//!
//! Limits: a producer preempted between claiming and publishing hides the values behind its slot until it
//! goes on. None is lost: [`Bounded::pop`] reports empty, and whoever waits is woken by that producer's own
//! notification.

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::sync::{AtomicUsize, CacheLine, UnsafeCell};

/// A first-in, first-out queue of fixed capacity that any thread may push to and pop from.
#[derive(Debug)]
pub struct Bounded<T> {
    slots: Box<[Slot<T>]>,
    limit: usize,
    tail: CacheLine<AtomicUsize>,
    head: CacheLine<AtomicUsize>,
}

#[derive(Debug)]
struct Slot<T> {
    turn: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a slot's value is written only by the producer that claimed its position and read only by the
// consumer that claimed it, with the release store and acquire load of `turn` between them; values are sent,
// not shared.
unsafe impl<T: Copy + Send> Sync for Bounded<T> {}
// SAFETY: the queue owns its values, and they may be sent.
unsafe impl<T: Copy + Send> Send for Bounded<T> {}

impl<T: Copy> Bounded<T> {
    /// An empty queue that holds up to `capacity` values.
    ///
    /// # Panics
    /// If `capacity` is 0.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a queue holds at least one value");
        // Twice as many as values, so that a consumer in the middle of a pop is in no producer's way: where one
        // consumer at a time pops, a push is refused only if the queue is full. (With a single slot, "free for the next
        // lap" and "published" would even be the same number.)
        let slots = (2 * capacity).next_power_of_two();
        Self {
            slots: (0..slots)
                .map(|position| Slot {
                    turn: AtomicUsize::new(position),
                    value: UnsafeCell::new(MaybeUninit::uninit()),
                })
                .collect(),
            limit: capacity,
            tail: CacheLine(AtomicUsize::new(0)),
            head: CacheLine(AtomicUsize::new(0)),
        }
    }

    /// Appends `value`, or gives it back if the queue is full.
    #[inline]
    pub fn push(&self, value: T) -> Result<(), T> {
        let mut position = self.tail.0.load(Relaxed);
        loop {
            let slot = &self.slots[position & (self.slots.len() - 1)];
            let turn = slot.turn.load(Acquire);
            let lead = turn.wrapping_sub(position) as isize;
            if lead > 0 {
                position = self.tail.0.load(Relaxed);
                continue;
            }
            // `head` only grows, so a successful claim below never exceeds the limit, and a refusal was true
            // when `head` was read.
            let full = position.wrapping_sub(self.head.0.load(Acquire)) as isize >= self.limit as isize;
            if lead < 0 || full {
                // Another producer may have moved on since `position` was read.
                let now = self.tail.0.load(Relaxed);
                if now == position {
                    return Err(value);
                }
                position = now;
                continue;
            }
            match self
                .tail
                .0
                .compare_exchange_weak(position, position.wrapping_add(1), Relaxed, Relaxed)
            {
                Ok(_) => {
                    // SAFETY: the exchange gave this thread sole use of `position`, and its slot's turn says
                    // that the previous lap's consumer is done with it.
                    slot.value.with_mut(|cell| unsafe { (*cell).write(value) });
                    slot.turn.store(position.wrapping_add(1), Release);
                    return Ok(());
                }
                Err(now) => position = now,
            }
        }
    }

    /// Takes the oldest value, if one is published, where nobody else takes any.
    ///
    /// # Safety
    /// No other [`pop`](Self::pop) or `pop_alone` may run at the same time: each must happen before the next.
    #[inline]
    pub unsafe fn pop_alone(&self) -> Option<T> {
        let position = self.head.0.load(Relaxed);
        let slot = &self.slots[position & (self.slots.len() - 1)];
        if slot.turn.load(Acquire) != position.wrapping_add(1) {
            return None;
        }
        self.head.0.store(position.wrapping_add(1), Release);
        // SAFETY: the turn says that the producer has published, and no other consumer reads it; the value is
        // `Copy`, so reading it moves nothing twice.
        let value = slot.value.with(|cell| unsafe { (*cell).assume_init_read() });
        slot.turn.store(position.wrapping_add(self.slots.len()), Release);
        Some(value)
    }

    /// Takes the oldest value, if one is published.
    pub fn pop(&self) -> Option<T> {
        let mut position = self.head.0.load(Relaxed);
        loop {
            let slot = &self.slots[position & (self.slots.len() - 1)];
            let lead = slot.turn.load(Acquire).wrapping_sub(position.wrapping_add(1)) as isize;
            if lead < 0 {
                return None;
            }
            if lead > 0 {
                position = self.head.0.load(Relaxed);
                continue;
            }
            match self
                .head
                .0
                .compare_exchange_weak(position, position.wrapping_add(1), Release, Relaxed)
            {
                Ok(_) => {
                    // SAFETY: the exchange gave this thread sole use of `position`, and the turn says that
                    // its producer has published; the value is `Copy`, so reading it moves nothing twice.
                    let value = slot.value.with(|cell| unsafe { (*cell).assume_init_read() });
                    slot.turn.store(position.wrapping_add(self.slots.len()), Release);
                    return Some(value);
                }
                Err(now) => position = now,
            }
        }
    }

    /// Whether a pop would find a published value now.
    pub fn has_value(&self) -> bool {
        let position = self.head.0.load(Acquire);
        let turn = self.slots[position & (self.slots.len() - 1)].turn.load(Acquire);
        turn.wrapping_sub(position.wrapping_add(1)) as isize >= 0
    }

    /// The word that every push writes, for a processor's watch on memory.
    pub(crate) fn watched(&self) -> &AtomicUsize {
        &self.tail.0
    }

    /// How many values have been pushed so far.
    pub fn pushed(&self) -> u64 {
        self.tail.0.load(Relaxed) as u64
    }

    /// How many values are queued or being pushed, at some moment during the call.
    #[inline]
    pub fn len(&self) -> usize {
        let head = self.head.0.load(Acquire);
        let tail = self.tail.0.load(Acquire);
        tail.wrapping_sub(head).min(self.limit)
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values the queue holds at most.
    pub fn capacity(&self) -> usize {
        self.limit
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn the_capacity_is_exact_also_when_it_is_no_power_of_two() {
        for capacity in [1, 2, 3, 5, 64] {
            let queue = Bounded::new(capacity);
            for value in 0..capacity {
                assert_eq!(queue.push(value), Ok(()), "value {value} of {capacity}");
            }
            assert_eq!(queue.push(99), Err(99));
            assert_eq!(queue.pop(), Some(0));
            assert_eq!(queue.push(capacity), Ok(()));
        }
    }

    proptest! {
        #[test]
        fn it_is_a_bounded_deque(capacity in 1usize..9, pushes in proptest::collection::vec(any::<bool>(), 0..200)) {
            let queue = Bounded::new(capacity);
            let mut model = VecDeque::new();
            for (step, push) in pushes.into_iter().enumerate() {
                if push {
                    let fits = model.len() < capacity;
                    prop_assert_eq!(queue.push(step).is_ok(), fits);
                    if fits {
                        model.push_back(step);
                    }
                } else {
                    // SAFETY: this thread is the only one.
                let popped = if step % 3 == 0 { unsafe { queue.pop_alone() } } else { queue.pop() };
                prop_assert_eq!(popped, model.pop_front());
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.has_value(), !model.is_empty());
            }
        }
    }

    #[test]
    fn many_producers_and_consumers_lose_and_double_nothing() {
        const EACH: usize = if cfg!(miri) { 40 } else { 4_000 };
        let queue = Bounded::new(7);
        let taken = std::sync::Mutex::new(Vec::new());
        let left = std::sync::atomic::AtomicUsize::new(3 * EACH);
        std::thread::scope(|scope| {
            for producer in 0..3 {
                let queue = &queue;
                scope.spawn(move || {
                    for number in 0..EACH {
                        let mut value = producer * EACH + number;
                        while let Err(back) = queue.push(value) {
                            value = back;
                            std::thread::yield_now();
                        }
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    while left.load(Relaxed) > 0 {
                        match queue.pop() {
                            Some(value) => {
                                left.fetch_sub(1, Relaxed);
                                mine.push(value);
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                    taken.lock().expect("no panic holds it").extend(mine);
                });
            }
        });
        let mut taken = taken.into_inner().expect("no panic holds it");
        taken.sort_unstable();
        assert_eq!(taken, (0..3 * EACH).collect::<Vec<_>>());
    }
}
