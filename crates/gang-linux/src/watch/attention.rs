//! Whether the watcher looks: as its pace wants it, as long as its budget allows it.
//!
//! While it does not look, pages are not taken away and faults are not reported, so the programs run as if nobody
//! watched. For what counts as recent that time does not pass: two touches, one before and one after, are as far apart
//! as if the watcher had looked on.

use std::time::Duration;

use sidestep_gang::CoscheduledSets;

use super::budget::{Budget, Spent};
use super::fault::Faults;
use super::pace::Pace;
use crate::HostError;
use crate::setting::{self, Changed, MEMORY_EVENTS};

/// When to look, and the switches of that.
pub(super) struct Attention {
    /// The change that makes pages fault; none if they did before: then that is the host's own choice and stays.
    balancing: Option<Changed>,
    pace: Pace,
    budget: Budget,
    /// Not to look, whatever pace and budget say.
    is_aside: bool,
    is_looking: bool,
    /// Hint faults of the host when they were last read.
    hint_faults: u64,
    stepped: Duration,
    /// How long it did not look.
    blind: Duration,
    /// How much of that it would have looked but for the budget: the pace's clock stands still.
    paused: Duration,
}

impl Attention {
    pub(super) fn new(balancing: Option<Changed>, pace: Pace, budget: Budget) -> Self {
        Self {
            balancing,
            pace,
            budget,
            is_aside: false,
            is_looking: true,
            hint_faults: hint_faults(),
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

    /// Whether the kernel's setting is changed.
    pub(super) fn has_changed_a_setting(&self) -> bool {
        self.balancing.is_some()
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

    /// Enters what the watched processes ran since the last time, and what pages that had been taken away before a pause
    /// cost in it.
    pub(super) fn earn(&mut self, ran_ns: u64) {
        if !self.is_looking {
            let hint_faults = self.hint_faults_caused(u64::MAX);
            self.budget.spend(Spent {
                hint_faults,
                ..Spent::default()
            });
        }
        self.budget.earn(ran_ns);
    }

    /// Decides whether to look from now on. `reports` are the watched threads' faults since the last step, `own_ns` what
    /// the watcher itself took; `sets` is asked for what is known.
    pub(super) fn step(
        &mut self,
        now: Duration,
        reports: u64,
        own_ns: u64,
        faults: &Faults,
        sets: impl FnOnce() -> Option<CoscheduledSets>,
    ) {
        self.pass(now);
        if self.is_looking {
            let hint_faults = self.hint_faults_caused(reports);
            self.budget.spend(Spent {
                hint_faults,
                reports,
                own_ns,
            });
        }
        self.pace.step(now.saturating_sub(self.paused), sets);
        // The setting could be written when the watch began; if it cannot be now, the cost is all that differs.
        let _ = self.switch(faults);
    }

    /// Leaves pages alone, or not, whatever pace and budget say.
    pub(super) fn set_aside(
        &mut self,
        now: Duration,
        is_aside: bool,
        faults: &Faults,
    ) -> Result<(), HostError> {
        self.pass(now);
        self.is_aside = is_aside;
        self.switch(faults)
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

    /// Hint faults since the last time that are put down to the watch: all of the host's, but at most so many. While
    /// faults are reported it is known how many of them the watched threads had; in a pause any may be left over.
    fn hint_faults_caused(&mut self, most: u64) -> u64 {
        if self.balancing.is_none() || most == 0 {
            return 0;
        }
        let before = std::mem::replace(&mut self.hint_faults, hint_faults());
        self.hint_faults.saturating_sub(before).min(most)
    }

    fn switch(&mut self, faults: &Faults) -> Result<(), HostError> {
        let wants_to_look = !self.is_aside && !self.pace.is_resting() && !self.budget.is_spent();
        if wants_to_look == self.is_looking {
            return Ok(());
        }
        self.is_looking = wants_to_look;
        faults.report(wants_to_look);
        match (&mut self.balancing, wants_to_look) {
            (Some(balancing), true) => balancing.resume(),
            (Some(balancing), false) => balancing.suspend(),
            (None, _) => Ok(()),
        }
    }
}

/// Pages of the host that were taken away and came back, since it was started; zero where the kernel does not say.
fn hint_faults() -> u64 {
    let text = setting::read(MEMORY_EVENTS.as_ref()).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("numa_hint_faults "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}
