//! Queues of limited size: accesses to system registers, and stores on their way to the second-level cache.

use std::collections::VecDeque;

/// What an access to a system register is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemAccess {
    /// Cycles until it is done.
    pub latency: u64,
    /// Whether it reads: a value comes back to the register file.
    pub reads: bool,
    /// Whether it is to one of the slow registers.
    pub is_timer: bool,
}

/// An access on its way.
#[derive(Clone, Copy)]
struct Outstanding {
    done: u64,
    reads: bool,
}

/// The queue of system-register accesses (paper 2.4.2 and 5.3.3): a few entries, one result a cycle.
pub struct SystemQueue {
    /// In the order in which they are done.
    outstanding: VecDeque<Outstanding>,
    entries: usize,
    interval: u64,
    /// When the next access to a slow register may issue.
    timer_free: u64,
}

impl SystemQueue {
    /// An empty queue of `entries`; accesses to slow registers issue `interval` cycles apart.
    pub fn new(entries: usize, interval: u64) -> SystemQueue {
        SystemQueue {
            outstanding: VecDeque::with_capacity(entries),
            entries,
            interval,
            timer_free: 0,
        }
    }

    /// The cycle at which another access may issue.
    pub fn free_at(&self, is_timer: bool) -> u64 {
        let slot = match self.outstanding.len() {
            length if length < self.entries => 0,
            length => self.outstanding[length - self.entries].done,
        };
        if is_timer { slot.max(self.timer_free) } else { slot }
    }

    /// Takes an access that issues at `cycle`; answers when it is done, which is later than its latency says if
    /// another's value comes back in that cycle.
    pub fn push(&mut self, cycle: u64, access: SystemAccess) -> u64 {
        let is_done = |first: &Outstanding| first.done <= cycle;
        while self.outstanding.len() >= self.entries || self.outstanding.front().is_some_and(is_done) {
            self.outstanding.pop_front();
        }
        if access.is_timer {
            self.timer_free = cycle + self.interval;
        }
        let mut done = cycle + access.latency.max(1);
        while access.reads && self.returns_at(done) {
            done += 1;
        }
        let place = self.outstanding.partition_point(|other| other.done <= done);
        let reads = access.reads;
        self.outstanding.insert(place, Outstanding { done, reads });
        done
    }

    /// Whether a value comes back at `cycle`.
    pub fn returns_at(&self, cycle: u64) -> bool {
        self.outstanding
            .iter()
            .any(|access| access.reads && access.done == cycle)
    }
}

/// A store that has issued: its line and when.
#[derive(Clone, Copy, Debug, Default)]
struct Store {
    line: u64,
    cycle: u64,
}

/// Stores between issue and the second-level cache.
pub struct StoreBuffer {
    recent: [Store; RECENT],
    next: usize,
    /// When each entry is free again.
    drains: Vec<u64>,
    oldest: usize,
}

/// Stores that a load within the store window can meet: two a cycle.
const RECENT: usize = 8;

impl StoreBuffer {
    /// An empty buffer.
    pub fn new(entries: usize) -> StoreBuffer {
        StoreBuffer {
            recent: [Store {
                line: u64::MAX,
                cycle: 0,
            }; RECENT],
            next: 0,
            drains: vec![0; entries],
            oldest: 0,
        }
    }

    /// The cycle at which another store may issue.
    #[inline]
    pub fn free_at(&self) -> u64 {
        self.drains[self.oldest]
    }

    /// Takes a store to `line` that issues at `cycle` and is done `duration` later.
    #[inline]
    pub fn push(&mut self, line: u64, cycle: u64, duration: u64) {
        self.recent[self.next] = Store { line, cycle };
        self.next = (self.next + 1) % RECENT;
        self.drains[self.oldest] = cycle + duration;
        self.oldest = (self.oldest + 1) % self.drains.len();
    }

    /// When the youngest store to `line` issued.
    #[inline]
    pub fn last_to(&self, line: u64) -> Option<u64> {
        self.recent
            .iter()
            .filter(|store| store.line == line)
            .map(|store| store.cycle)
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: SystemAccess = SystemAccess {
        latency: 12,
        reads: true,
        is_timer: false,
    };

    #[test]
    fn a_ninth_access_waits_for_the_first() {
        let mut queue = SystemQueue::new(8, 6);
        for cycle in 0..8 {
            assert!(queue.free_at(false) <= cycle);
            queue.push(cycle, READ);
        }
        assert_eq!(queue.free_at(false), 12);
        assert!(queue.returns_at(19) && !queue.returns_at(20));
    }

    #[test]
    fn one_value_returns_a_cycle_and_what_is_written_does_not_count() {
        let mut queue = SystemQueue::new(8, 6);
        let quick = SystemAccess { latency: 5, ..READ };
        assert_eq!(queue.push(0, READ), 12);
        assert_eq!(queue.push(7, quick), 13);
        let write = SystemAccess {
            reads: false,
            ..quick
        };
        assert_eq!(queue.push(8, write), 13);
        assert_eq!(queue.push(9, write), 14);
        assert!(!queue.returns_at(14));
    }

    #[test]
    fn slow_registers_issue_apart() {
        let mut queue = SystemQueue::new(8, 6);
        let slow = SystemAccess {
            latency: 36,
            is_timer: true,
            ..READ
        };
        queue.push(10, slow);
        assert_eq!(queue.free_at(true), 16);
        assert!(queue.free_at(false) <= 10);
    }
}
