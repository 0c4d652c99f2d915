//! The lock of a virtual machine's page tables, which cores take that update them after an exit.
//!
//! Cores take it in the order in which they ask, as with a ticket. A core that gets it after another has its cache line
//! to fetch. A sidecore takes none: it is the only one that updates tables of its virtual machines by sidecall.

use serde::Serialize;

use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;

/// How often a lock was taken, and what that cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LockCounts {
    /// How often.
    pub taken: u64,
    /// How often it was not free.
    pub contended: u64,
    /// Cycles of cores that waited for it, or for its line.
    pub cycles: u64,
}

/// The lock.
#[derive(Default)]
pub(super) struct PageTableLock {
    /// Who had it last.
    holder: Option<usize>,
    /// From when on it is free.
    free: Cycle,
    pub counts: LockCounts,
}

impl PageTableLock {
    /// Processor `index` takes it at `time` for so many cycles. The cycles that it waits before.
    pub fn take(&mut self, costs: &HostCosts, index: usize, time: Cycle, held_cycles: u64) -> u64 {
        let line = match self.holder.replace(index) {
            Some(holder) if holder != index => costs.cycles(Cost::Transfer),
            _ => 0,
        };
        let until_free = self.free.since(time);
        let waited = until_free + line;
        self.free = time + waited + held_cycles;
        self.counts.taken += 1;
        self.counts.contended += u64::from(until_free > 0);
        self.counts.cycles += waited;
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_while_it_is_held_waits_until_it_is_free_and_for_its_line() {
        let costs = HostCosts::preset("pentium-d").expect("a preset");
        let line = costs.cycles(Cost::Transfer);
        let mut lock = PageTableLock::default();
        assert_eq!(lock.take(&costs, 0, Cycle(1000), 400), 0);
        // Free again at 1400: nobody waits, and the line is where it was.
        assert_eq!(lock.take(&costs, 0, Cycle(1400), 400), 0);
        assert_eq!(lock.take(&costs, 1, Cycle(1500), 400), 300 + line);
        assert_eq!(lock.take(&costs, 2, Cycle(1600), 400), 200 + line + 400 + line);
        let counts = LockCounts {
            taken: 4,
            contended: 2,
            cycles: 900 + 3 * line,
        };
        assert_eq!(lock.counts, counts);
    }
}
