//! Queues of limited size: accesses to system registers, stores that have just issued, and requests to the
//! second-level cache.

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

    /// What is outstanding behind `cycle`, as when it is done and whether a value comes back, in the order of time.
    pub fn outstanding(&self, cycle: u64) -> impl Iterator<Item = (u64, bool)> + '_ {
        let outstanding = self.outstanding.iter();
        outstanding
            .filter(move |access| access.done > cycle)
            .map(|access| (access.done, access.reads))
    }

    /// When the next access to a slow register may issue.
    pub fn timer_free(&self) -> u64 {
        self.timer_free
    }

    /// Puts back what is outstanding, in the order of time, and when a slow register is free.
    pub fn put_back(&mut self, outstanding: impl Iterator<Item = (u64, bool)>, timer_free: u64) {
        self.outstanding.clear();
        self.outstanding
            .extend(outstanding.map(|(done, reads)| Outstanding { done, reads }));
        self.timer_free = timer_free;
    }

    /// Whether a value comes back at `cycle`.
    pub fn returns_at(&self, cycle: u64) -> bool {
        self.outstanding
            .iter()
            .any(|access| access.reads && access.done == cycle)
    }
}

/// Stores that a load within the store window can meet: two a cycle.
pub const RECENT: usize = 8;

/// When the last stores issued, which loads of the same data wait for.
#[derive(Default)]
pub struct RecentStores {
    issued: [u64; RECENT],
    next: usize,
}

impl RecentStores {
    /// Takes a store that issues at `cycle`.
    #[inline]
    pub fn push(&mut self, cycle: u64) {
        self.issued[self.next] = cycle;
        self.next = (self.next + 1) % RECENT;
    }

    /// When the youngest of some of the last stores issued, of which the very last is in bit 0; `None` for none, or
    /// for such as issued before the last [`RECENT`].
    #[inline]
    pub fn last_of(&self, stores: u16) -> Option<u64> {
        let age = stores.trailing_zeros() as usize;
        (age < RECENT).then(|| self.issued(age))
    }

    /// When a store issued behind which so many others have: fewer than [`RECENT`].
    pub fn issued(&self, age: usize) -> u64 {
        self.issued[(self.next + RECENT - 1 - age) % RECENT]
    }

    /// Puts back when the last stores issued, the very last first.
    pub fn put_back(&mut self, issued: impl Iterator<Item = u64>) {
        *self = RecentStores::default();
        for (place, cycle) in self.issued.iter_mut().rev().zip(issued) {
            *place = cycle;
        }
    }
}

/// The queue of requests to the second-level cache: its entries are taken in turn, by loads that the first level does
/// not answer, by stores and by prefetches, each for as long as the second level has not done with it.
pub struct RequestQueue {
    /// When each entry is free again.
    free: Vec<u64>,
    oldest: usize,
}

impl RequestQueue {
    /// An empty queue of `entries`.
    pub fn new(entries: usize) -> RequestQueue {
        RequestQueue {
            free: vec![0; entries],
            oldest: 0,
        }
    }

    /// The cycle at which another request may issue behind so many of its group.
    #[inline]
    pub fn free_at(&self, before: usize) -> u64 {
        self.free[(self.oldest + before) % self.free.len()]
    }

    /// Takes a request that issues at `cycle` and is done `duration` later.
    #[inline]
    pub fn push(&mut self, cycle: u64, duration: u64) {
        self.free[self.oldest] = cycle + duration;
        self.oldest += 1;
        if self.oldest == self.free.len() {
            self.oldest = 0;
        }
    }

    /// When each entry is free, the one that is used next first.
    pub fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        let (behind, first) = self.free.split_at(self.oldest);
        first.iter().chain(behind).copied()
    }

    /// Puts back when each entry is free, the next one first; those that are not told of are.
    pub fn put_back(&mut self, free: impl Iterator<Item = u64>) {
        self.free.fill(0);
        self.oldest = 0;
        for (place, cycle) in self.free.iter_mut().zip(free) {
            *place = cycle;
        }
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
    fn a_request_waits_for_the_entry_whose_turn_it_is() {
        let mut queue = RequestQueue::new(3);
        for (cycle, duration) in [(10, 100), (11, 5), (12, 5)] {
            assert!(queue.free_at(0) <= cycle);
            queue.push(cycle, duration);
        }
        // The first is still there, though those behind it are not.
        assert_eq!((queue.free_at(0), queue.free_at(1)), (110, 16));
        queue.push(110, 5);
        assert_eq!(queue.entries().collect::<Vec<_>>(), [16, 17, 115]);
        let mut other = RequestQueue::new(3);
        other.put_back(queue.entries());
        assert_eq!(other.free_at(2), 115);
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
