//! The numbers of what is free, for any core to take one and give it back, without locks.
//!
//! A stack through an array of successors. Its head carries a tag that changes with every step, so that a core that
//! was away while the same number came back to the top notices. Unlike a bounded queue, it takes a number back at any
//! time, also while another core is in the middle of taking one.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::sync::{AtomicU32, AtomicU64};

/// No number: the end of the stack.
const NONE: u32 = u32::MAX;

/// The numbers below a bound that are free.
#[derive(Debug)]
pub struct FreeList {
    /// The tag in the upper half, the number on top in the lower.
    head: AtomicU64,
    below: Box<[AtomicU32]>,
}

impl FreeList {
    /// The numbers `first..bound`, the least on top.
    ///
    /// # Panics
    /// If `bound` is not below 2^32 - 1.
    pub fn new(first: usize, bound: usize) -> Self {
        let limit = u32::try_from(bound).ok().filter(|bound| *bound < NONE);
        let limit = limit.expect("fewer than 2^32 - 1 numbers");
        let next = |number: u32| if number + 1 < limit { number + 1 } else { NONE };
        let top = if first < bound { first as u32 } else { NONE };
        Self {
            head: AtomicU64::new(top.into()),
            below: (0..limit).map(|number| AtomicU32::new(next(number))).collect(),
        }
    }

    /// Takes a free number.
    pub fn take(&self) -> Option<u32> {
        let mut head = self.head.load(Acquire);
        loop {
            let top = head as u32;
            if top == NONE {
                return None;
            }
            // If another core takes `top` meanwhile this may be stale; then the tag has changed too.
            let below = self.below[top as usize].load(Relaxed);
            match self
                .head
                .compare_exchange_weak(head, tagged(head, below), AcqRel, Acquire)
            {
                Ok(_) => return Some(top),
                Err(now) => head = now,
            }
        }
    }

    /// Gives back a number that was taken.
    pub fn give(&self, number: u32) {
        let mut head = self.head.load(Relaxed);
        loop {
            self.below[number as usize].store(head as u32, Relaxed);
            match self
                .head
                .compare_exchange_weak(head, tagged(head, number), AcqRel, Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

/// The next head: the tag counts on.
fn tagged(head: u64, top: u32) -> u64 {
    ((head >> 32) + 1) << 32 | u64::from(top)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_out_and_come_back() {
        let free = FreeList::new(2, 4);
        assert_eq!((free.take(), free.take(), free.take()), (Some(2), Some(3), None));
        free.give(2);
        free.give(3);
        assert_eq!((free.take(), free.take(), free.take()), (Some(3), Some(2), None));
        assert_eq!(FreeList::new(0, 0).take(), None);
    }

    #[test]
    fn several_cores_never_hold_the_same_number() {
        const ROUNDS: u32 = if cfg!(miri) { 50 } else { 20_000 };
        let free = FreeList::new(0, 3);
        let held: [AtomicU32; 3] = Default::default();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let number = free.take().expect("one for each");
                        assert_eq!(held[number as usize].swap(1, Relaxed), 0);
                        held[number as usize].store(0, Relaxed);
                        free.give(number);
                    }
                });
            }
        });
    }
}
