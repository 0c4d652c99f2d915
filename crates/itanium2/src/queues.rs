//! Queues of limited size: accesses to system registers, and stores on their way to the second-level cache.

use std::collections::VecDeque;

/// The queue of system-register accesses (paper 2.4.2 and 5.3.3): a few entries, one result a cycle.
pub struct SystemQueue {
    /// When each access returns, in order.
    returns: VecDeque<u64>,
    entries: usize,
    interval: u64,
    /// When the next access to a slow register may issue.
    timer_free: u64,
}

impl SystemQueue {
    /// An empty queue of `entries`; accesses to slow registers issue `interval` cycles apart.
    pub fn new(entries: usize, interval: u64) -> SystemQueue {
        SystemQueue {
            returns: VecDeque::with_capacity(entries),
            entries,
            interval,
            timer_free: 0,
        }
    }

    /// The cycle at which another access may issue.
    pub fn free_at(&self, is_timer: bool) -> u64 {
        let slot = match self.returns.len() {
            length if length < self.entries => 0,
            length => self.returns[length - self.entries],
        };
        if is_timer { slot.max(self.timer_free) } else { slot }
    }

    /// Takes an access that issues at `cycle` and would return `latency` later; answers when it does.
    pub fn push(&mut self, cycle: u64, latency: u64, is_timer: bool) -> u64 {
        while self.returns.len() >= self.entries || self.returns.front().is_some_and(|at| *at <= cycle) {
            self.returns.pop_front();
        }
        if is_timer {
            self.timer_free = cycle + self.interval;
        }
        let mut at = cycle + latency;
        while self.returns.contains(&at) {
            at += 1;
        }
        let place = self.returns.partition_point(|other| *other < at);
        self.returns.insert(place, at);
        at
    }

    /// Whether a result comes back at `cycle`.
    pub fn returns_at(&self, cycle: u64) -> bool {
        self.returns.contains(&cycle)
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

    #[test]
    fn a_ninth_access_waits_for_the_first() {
        let mut queue = SystemQueue::new(8, 6);
        for cycle in 0..8 {
            assert!(queue.free_at(false) <= cycle);
            queue.push(cycle, 12, false);
        }
        assert_eq!(queue.free_at(false), 12);
        assert!(queue.returns_at(19) && !queue.returns_at(20));
    }

    #[test]
    fn one_result_returns_a_cycle() {
        let mut queue = SystemQueue::new(8, 6);
        assert_eq!(queue.push(0, 12, false), 12);
        assert_eq!(queue.push(7, 5, false), 13);
    }

    #[test]
    fn slow_registers_issue_apart() {
        let mut queue = SystemQueue::new(8, 6);
        queue.push(10, 36, true);
        assert_eq!(queue.free_at(true), 16);
        assert!(queue.free_at(false) <= 10);
    }
}
