//! A core's pending timers, bounded.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::continuation::Continuation;
use crate::time::Time;

#[derive(Debug)]
struct Timer {
    due: Time,
    sequence: u64,
    continuation: Continuation,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.sequence) == (other.due, other.sequence)
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.sequence).cmp(&(other.due, other.sequence))
    }
}

/// Timers by the time they are due; of one time, in the order they were set.
#[derive(Debug)]
pub(super) struct Timers {
    pending: BinaryHeap<Reverse<Timer>>,
    limit: usize,
    sequence: u64,
}

impl Timers {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            pending: BinaryHeap::with_capacity(limit),
            limit,
            sequence: 0,
        }
    }

    /// Adds a timer; whether there was room.
    pub(super) fn add(&mut self, due: Time, continuation: Continuation) -> bool {
        if self.pending.len() >= self.limit {
            return false;
        }
        self.sequence += 1;
        self.pending.push(Reverse(Timer {
            due,
            sequence: self.sequence,
            continuation,
        }));
        true
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// When the next timer is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.pending.peek().map(|Reverse(timer)| timer.due)
    }

    /// Takes the next timer if it is due at `now`.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Continuation> {
        if self.next_due()? > now {
            return None;
        }
        self.pending.pop().map(|Reverse(timer)| timer.continuation)
    }

    /// Takes all timers.
    pub(super) fn take_all(&mut self) -> Vec<(Time, Continuation)> {
        self.pending
            .drain()
            .map(|Reverse(timer)| (timer.due, timer.continuation))
            .collect()
    }
}
