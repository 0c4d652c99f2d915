//! Whether the watcher looks: as its pace wants it, as long as its budget allows it.
//!
//! While it does not look, pages are not taken away and faults are not reported, so the programs run as if nobody
//! watched. For what counts as recent that time does not pass: two touches, one before and one after, are as far apart
//! as if the watcher had looked on.

use std::time::Duration;

use sidestep_gang::CoscheduledSets;

use super::budget::{Budget, Spent};
use super::pace::Pace;
use super::source::Source;
use crate::HostError;

/// When to look, and the switches of that.
pub(super) struct Attention {
    pace: Pace,
    budget: Budget,
    /// Not to look, whatever pace and budget say.
    is_aside: bool,
    is_looking: bool,
    stepped: Duration,
    /// How long it did not look.
    blind: Duration,
    /// How much of that it would have looked but for the budget: the pace's clock stands still.
    paused: Duration,
}

impl Attention {
    pub(super) fn new(pace: Pace, budget: Budget) -> Self {
        Self {
            pace,
            budget,
            is_aside: false,
            is_looking: true,
            stepped: Duration::ZERO,
            blind: Duration::ZERO,
            paused: Duration::ZERO,
        }
    }

    pub(super) fn is_looking(&self) -> bool {
        self.is_looking
    }

    pub(super) fn is_resting(&self) -> bool {
        self.pace.is_resting()
    }

    /// How long it did not look so far.
    pub(super) fn blind(&self) -> Duration {
        self.blind
    }

    /// What watching has cost, in thousandths of what the watched threads ran.
    pub(super) fn cost_permille(&self) -> f64 {
        self.budget.spent_permille()
    }

    /// The threads are not the same any more, or all was forgotten.
    pub(super) fn stir(&mut self, now: Duration) {
        self.pace.stir(now.saturating_sub(self.paused));
    }

    /// Enters what the watched processes ran since the last time, and what pages that had been taken away before a
    /// pause cost in it.
    pub(super) fn earn(&mut self, ran_ns: u64, source: &mut Source) {
        if !self.is_looking {
            let (hint_faults, scanned) = source.caused(u64::MAX);
            self.budget.spend(Spent {
                hint_faults,
                scanned,
                ..Spent::default()
            });
        }
        self.budget.earn(ran_ns);
    }

    /// Decides whether to look from now on. `reports` are the watched threads' faults since the last step, `own_ns`
    /// what the watcher itself took; `sets` is asked for what is known.
    pub(super) fn step(
        &mut self,
        now: Duration,
        reports: u64,
        own_ns: u64,
        source: &mut Source,
        sets: impl FnOnce() -> Option<CoscheduledSets>,
    ) {
        self.pass(now);
        if self.is_looking {
            let (hint_faults, scanned) = source.caused(reports);
            self.budget.spend(Spent {
                hint_faults,
                scanned,
                reports,
                own_ns,
            });
        }
        self.pace.step(now.saturating_sub(self.paused), sets);
        // The setting could be written when the watch began; if it cannot be now, the cost is all that differs.
        let _ = self.switch(source);
    }

    /// Leaves pages alone, or not, whatever pace and budget say.
    pub(super) fn set_aside(
        &mut self,
        now: Duration,
        is_aside: bool,
        source: &mut Source,
    ) -> Result<(), HostError> {
        self.pass(now);
        self.is_aside = is_aside;
        self.switch(source)
    }

    fn pass(&mut self, now: Duration) {
        let gone = now.saturating_sub(self.stepped);
        self.stepped = now;
        if !self.is_looking {
            self.blind += gone;
            if !self.pace.is_resting() {
                self.paused += gone;
            }
        }
    }

    fn switch(&mut self, source: &mut Source) -> Result<(), HostError> {
        let wants_to_look = !self.is_aside && !self.pace.is_resting() && !self.budget.is_spent();
        if wants_to_look == self.is_looking {
            return Ok(());
        }
        self.is_looking = wants_to_look;
        source.look(wants_to_look)
    }
}
