//! How often the kernel has taken all of a process's pages away.
//!
//! It does so once a second of run time at first, and less and less often while no page moves for it. What counts as
//! recent has to keep pace with that: after a round a page tells who touches it next, and nothing before the round
//! after. So while a round lets wait for itself, the clock that touches are compared by stands still, and a window of
//! four seconds is one of four rounds at least.

use std::collections::BTreeMap;
use std::time::Duration;

/// As long as this a round may take: the kernel's first rate.
const ROUND: Duration = Duration::from_secs(1);

/// The rounds of the watched processes.
#[derive(Debug, Default)]
pub(super) struct Rounds(BTreeMap<i32, Round>);

#[derive(Debug)]
struct Round {
    /// How many are complete.
    count: u64,
    /// When the last one was first seen to be complete.
    since: Duration,
    /// When that was looked at last.
    looked: Duration,
    /// How long the clock stood still so far.
    stood: Duration,
}

impl Rounds {
    /// Notes how many rounds over a process's pages are complete at a time at which pages are being taken away.
    pub(super) fn note(&mut self, process: i32, count: u64, now: Duration) {
        let round = self.0.entry(process).or_insert(Round {
            count,
            since: now,
            looked: now,
            stood: Duration::ZERO,
        });
        if count != round.count {
            round.count = count;
            round.since = now;
        }
        round.stood += now.saturating_sub(round.looked.max(round.since + ROUND));
        round.looked = now;
    }

    /// How long the clock of a process stood still.
    pub(super) fn stood(&self, process: i32) -> Duration {
        self.0.get(&process).map_or(Duration::ZERO, |round| round.stood)
    }

    /// Forgets a process.
    pub(super) fn forget(&mut self, process: i32) {
        self.0.remove(&process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock's time after each second, with so many rounds complete.
    fn clock(counts: &[u64]) -> Vec<u64> {
        let mut rounds = Rounds::default();
        let seconds = (0..).zip(counts).map(|(second, &count)| {
            let now = Duration::from_secs(second);
            rounds.note(7, count, now);
            (now - rounds.stood(7)).as_secs()
        });
        seconds.collect()
    }

    #[test]
    fn the_clock_stands_while_a_round_lets_wait_for_itself() {
        assert_eq!(clock(&[0, 1, 2, 3]), [0, 1, 2, 3], "a round a second");
        assert_eq!(clock(&[0, 1, 1, 1, 1, 2, 2, 2, 3]), [0, 1, 2, 2, 2, 3, 4, 4, 5]);
    }

    #[test]
    fn processes_have_clocks_of_their_own_and_ended_ones_are_forgotten() {
        let mut rounds = Rounds::default();
        for second in 0..4 {
            rounds.note(7, 40, Duration::from_secs(second));
            rounds.note(8, second, Duration::from_secs(second));
        }
        assert_eq!([7, 8].map(|process| rounds.stood(process).as_secs()), [2, 0]);
        rounds.forget(7);
        assert_eq!(rounds.stood(7), Duration::ZERO);
    }
}
