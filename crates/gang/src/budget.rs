//! What watching may cost the watched, as an account.
//!
//! Where a cost is known only afterwards, [`Budget`] is overdrawn for a while. Earned is a fixed share of what the
//! watched ran, entered from time to time; nothing is saved up. Spent is whatever the watch cost them. When more is
//! owed than was earned last, and than a least allowance, the watch pauses until nothing is owed. So in any time in
//! which the watched run for R, a watch costs at most its share of R, what was earned last or the least allowance, and
//! what comes in between two entries.
//!
//! Where a cost is known before, [`Savings`] are never overdrawn: what is spent has been earned. They are bounded, so
//! that a quiet hour does not pay for a dear minute.
//!
//! Amounts are of any one unit: nanoseconds of a real host, cycles of a modelled one.

/// The account of a watch.
#[derive(Clone, Debug)]
pub struct Budget {
    /// `None`: whatever it costs.
    share_permille: Option<u32>,
    least_allowance: u64,
    allowance: u64,
    owed: u64,
    is_spent: bool,
    total: u64,
    ran: u64,
}

impl Budget {
    /// An account that earns so many thousandths of what the watched run; `None`: a watch may cost anything. So much
    /// may be owed in any case.
    pub fn new(share_permille: Option<u32>, least_allowance: u64) -> Self {
        Self {
            share_permille,
            least_allowance,
            allowance: least_allowance,
            owed: 0,
            is_spent: false,
            total: 0,
            ran: 0,
        }
    }

    /// Whether the watch is to pause.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Everything that was spent so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// All that the watched ran so far.
    pub fn ran(&self) -> u64 {
        self.ran
    }

    /// Enters what the watch has cost.
    pub fn spend(&mut self, amount: u64) {
        self.total = self.total.saturating_add(amount);
        self.owed = self.owed.saturating_add(amount);
        if self.share_permille.is_some() && self.owed > self.allowance {
            self.is_spent = true;
        }
    }

    /// Enters what the watched ran since the last entry.
    pub fn earn(&mut self, ran: u64) {
        self.ran = self.ran.saturating_add(ran);
        let Some(share_permille) = self.share_permille else {
            return;
        };
        let earned = (u128::from(ran) * u128::from(share_permille) / 1000) as u64;
        self.allowance = earned.max(self.least_allowance);
        self.owed = self.owed.saturating_sub(earned);
        if self.owed == 0 {
            self.is_spent = false;
        }
    }
}

/// What was earned and not spent yet, a share of what the watched ran.
#[derive(Clone, Debug)]
pub struct Savings {
    share_permille: u32,
    most: u64,
    /// In thousandths, so that no entry is rounded.
    left_thousandths: u128,
}

impl Savings {
    /// Savings of so many thousandths of what the watched run; at most so much is kept.
    pub fn new(share_permille: u32, most: u64) -> Self {
        Self {
            share_permille,
            most,
            left_thousandths: 0,
        }
    }

    /// What can be spent.
    pub fn left(&self) -> u64 {
        (self.left_thousandths / 1000) as u64
    }

    /// Enters what the watched ran since the last entry.
    pub fn earn(&mut self, ran: u64) {
        let earned = u128::from(ran) * u128::from(self.share_permille);
        self.left_thousandths = (self.left_thousandths + earned).min(u128::from(self.most) * 1000);
    }

    /// Spends an amount, if it was earned; else nothing.
    pub fn spend(&mut self, amount: u64) -> bool {
        let is_there = amount <= self.left();
        if is_there {
            self.left_thousandths -= u128::from(amount) * 1000;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEAST: u64 = 10_000;
    const RAN: u64 = 1_000_000;

    #[test]
    fn a_watch_pauses_when_more_is_owed_than_was_earned_last_and_goes_on_when_all_is_paid() {
        let mut budget = Budget::new(Some(15), LEAST);
        budget.earn(2 * RAN);
        budget.spend(30_000);
        assert!(!budget.is_spent(), "as much is owed as was earned");
        budget.spend(32_500);
        assert!(budget.is_spent(), "62,500 are owed");
        budget.earn(2 * RAN);
        budget.earn(2 * RAN);
        assert!(budget.is_spent(), "2,500 are still owed");
        budget.earn(2 * RAN);
        assert!(!budget.is_spent());
        assert_eq!((budget.total(), budget.ran()), (62_500, 8 * RAN));
    }

    #[test]
    fn what_does_not_run_earns_nothing_and_without_a_share_nothing_is_too_dear() {
        let mut budget = Budget::new(Some(15), LEAST);
        budget.spend(LEAST + 1);
        for _entry in 0..100 {
            budget.earn(0);
        }
        assert!(budget.is_spent());
        let mut budget = Budget::new(None, 0);
        budget.spend(u64::MAX);
        budget.spend(u64::MAX);
        assert!(!budget.is_spent());
    }

    #[test]
    fn savings_are_bounded_and_not_rounded() {
        let mut savings = Savings::new(10, 500);
        for _entry in 0..100 {
            savings.earn(99);
        }
        assert_eq!(savings.left(), 99, "a hundredth of 9,900");
        assert!(!savings.spend(100));
        assert!(savings.spend(99));
        savings.earn(1_000_000);
        assert_eq!(savings.left(), 500);
    }

    proptest! {
        /// Whatever is asked for: never more is spent than the share.
        #[test]
        fn savings_keep_the_share(
            entries in proptest::collection::vec((0..RAN, 0..2 * LEAST), 1..200),
            share in 1..1000u32,
        ) {
            let mut savings = Savings::new(share, LEAST);
            let (mut ran, mut spent) = (0u64, 0u64);
            for (part, amount) in entries {
                savings.earn(part);
                ran += part;
                spent += if savings.spend(amount) { amount } else { 0 };
                prop_assert!(spent <= ran * u64::from(share) / 1000);
            }
        }

        /// Whatever the watched do, and whatever comes in pauses: the cost is the share and at most what was earned
        /// last and one entry brings.
        #[test]
        fn the_share_is_kept(
            entries in proptest::collection::vec((0..4u64, 0..100_000u64), 1..200),
            share in 1..100u32,
        ) {
            let mut budget = Budget::new(Some(share), LEAST);
            let (mut ran, mut cost, mut most_earned, mut most_spent) = (0u64, 0u64, LEAST, 0u64);
            for (cores, amount) in entries {
                for _part in 0..20 {
                    let amount = if budget.is_spent() { 0 } else { amount };
                    budget.spend(amount);
                    cost += amount;
                    most_spent = most_spent.max(amount);
                }
                budget.earn(cores * RAN);
                ran += cores * RAN;
                most_earned = most_earned.max(cores * RAN / 1000 * u64::from(share));
                prop_assert!(cost <= ran / 1000 * u64::from(share) + most_earned + most_spent);
            }
        }
    }
}
