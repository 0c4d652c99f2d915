//! What a watch may cost the watched programs: an [account](sidestep_gang::budget) with prices.
//!
//! Earned is a fixed share of the time that the watched threads run, entered once a second. Spent is what each page
//! that a scan takes away, each hint fault and each report of a fault takes ([`Prices`], measured when a watch begins),
//! and the watcher's own time while it looks. When more is owed than the last second earned and than 10 ms, pages are
//! left alone and nothing is reported until nothing is owed.
//!
//! Pages that had been taken away before a pause still fault in it; these are entered, and make the pause longer.

/// The usual share, in thousandths.
pub const SHARE_PERMILLE: u32 = 15;

/// What may be owed in any case: a pause for less would keep the kernel from ever getting round to a scan.
const LEAST_ALLOWANCE_NS: u64 = 10_000_000;

/// What the parts of a watch take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// A page that is taken away and comes back.
    pub hint_fault_ns: u64,
    /// A report of a fault, whatever made it.
    pub report_ns: u64,
    /// A page that a scan takes away.
    pub scanned_ns: u64,
}

/// What happened since it was last entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// Pages that came back.
    pub(super) hint_faults: u64,
    /// Pages that were taken away.
    pub scanned: u64,
    /// Faults of the watched threads that were reported.
    pub reports: u64,
    /// The watcher's own time.
    pub own_ns: u64,
}

/// The account of a watch, in nanoseconds.
#[derive(Debug)]
pub(super) struct Budget {
    account: sidestep_gang::Budget,
    prices: Prices,
}

impl Budget {
    /// An account with a share in thousandths; `None`: whatever it costs.
    pub(super) fn new(share_permille: Option<u32>, prices: Prices) -> Self {
        Self {
            account: sidestep_gang::Budget::new(share_permille, LEAST_ALLOWANCE_NS),
            prices,
        }
    }

    /// Whether pages are to be left alone now.
    pub(super) fn is_spent(&self) -> bool {
        self.account.is_spent()
    }

    /// Everything that was spent so far, in thousandths of the time that the watched threads ran.
    pub(super) fn spent_permille(&self) -> f64 {
        match self.account.ran() {
            0 => 0.0,
            ran_ns => self.account.total() as f64 * 1000.0 / ran_ns as f64,
        }
    }

    /// Enters what happened.
    pub(super) fn spend(&mut self, spent: Spent) {
        let faults_ns = spent.hint_faults.saturating_mul(self.prices.hint_fault_ns);
        let reports_ns = spent.reports.saturating_mul(self.prices.report_ns);
        let scans_ns = spent.scanned.saturating_mul(self.prices.scanned_ns);
        let parts = [faults_ns, reports_ns, scans_ns, spent.own_ns];
        self.account.spend(parts.into_iter().fold(0, u64::saturating_add));
    }

    /// Enters what the watched threads ran in the last second.
    pub(super) fn earn(&mut self, ran_ns: u64) {
        self.account.earn(ran_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices = Prices {
        hint_fault_ns: 2_000,
        report_ns: 500,
        scanned_ns: 100,
    };
    const SECOND_NS: u64 = 1_000_000_000;

    fn faults(count: u64) -> Spent {
        Spent {
            hint_faults: count,
            reports: count,
            ..Spent::default()
        }
    }

    #[test]
    fn a_watch_pauses_when_more_is_owed_than_a_second_earns_and_goes_on_when_all_is_paid() {
        let mut budget = Budget::new(Some(15), PRICES);
        budget.earn(2 * SECOND_NS);
        budget.spend(faults(12_000));
        assert!(
            !budget.is_spent(),
            "30 ms are owed, and 30 ms are what a second earns"
        );
        budget.spend(faults(13_000));
        assert!(budget.is_spent(), "62.5 ms are owed");
        budget.earn(2 * SECOND_NS);
        budget.earn(2 * SECOND_NS);
        assert!(budget.is_spent(), "2.5 ms are still owed");
        budget.earn(2 * SECOND_NS);
        assert!(!budget.is_spent());
    }

    #[test]
    fn the_watchers_own_time_scans_and_reports_of_other_faults_count() {
        let mut budget = Budget::new(Some(10), PRICES);
        budget.earn(SECOND_NS);
        budget.spend(Spent {
            reports: 8_000,
            scanned: 10_000,
            own_ns: 5_000_000,
            ..Spent::default()
        });
        assert!(!budget.is_spent(), "10 ms are owed");
        budget.spend(Spent {
            own_ns: 1,
            ..Spent::default()
        });
        assert!(budget.is_spent());
        assert!((budget.spent_permille() - 10.0).abs() < 0.1);
    }

    #[test]
    fn programs_that_do_not_run_earn_nothing() {
        let mut budget = Budget::new(Some(15), PRICES);
        budget.earn(0);
        budget.spend(faults(4_001));
        for _second in 0..100 {
            budget.earn(0);
        }
        assert!(budget.is_spent());
    }

    #[test]
    fn without_a_share_nothing_is_ever_too_dear() {
        let mut budget = Budget::new(None, PRICES);
        budget.spend(faults(u64::MAX));
        assert!(!budget.is_spent());
    }
}
