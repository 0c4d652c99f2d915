//! When to look and when to rest.
//!
//! Pages that fault cost the watched programs time. As long as it is not known who belongs together, the watcher looks
//! all the time. Each look that finds the same sets as the one before is followed by a rest twice as long as the last,
//! up to eight looks: programs in which nothing changes then pay a ninth. A look that finds other sets, and a thread
//! that begins or ends, end the resting.

use std::time::Duration;

use sidestep_gang::CoscheduledSets;

/// The longest rest, in looks.
const REST_MOST: u32 = 8;

/// What the watcher does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Look,
    Rest,
}

/// The watcher's alternation of looking and resting; time is an argument.
#[derive(Debug)]
pub(super) struct Pace {
    look: Duration,
    turn: Turn,
    since: Duration,
    /// The length of the last rest, in looks.
    rested: u32,
    found: Option<CoscheduledSets>,
}

impl Pace {
    /// Looks of this length; without rests if it is zero.
    pub(super) fn new(look: Duration) -> Self {
        Self {
            look,
            turn: Turn::Look,
            since: Duration::ZERO,
            rested: 0,
            found: None,
        }
    }

    pub(super) fn is_resting(&self) -> bool {
        self.turn == Turn::Rest
    }

    /// The threads are not the same any more.
    pub(super) fn stir(&mut self, now: Duration) {
        if self.is_resting() {
            self.turn = Turn::Look;
            self.since = now;
        }
        self.rested = 0;
        self.found = None;
    }

    /// Ends a look or a rest whose time is over. `sets` is asked for what is known at the end of a look; `None` if
    /// nothing was seen yet.
    pub(super) fn step(&mut self, now: Duration, sets: impl FnOnce() -> Option<CoscheduledSets>) {
        let gone = now.saturating_sub(self.since);
        match self.turn {
            Turn::Look if !self.look.is_zero() && gone >= self.look => {
                let sets = sets();
                let is_known = sets.is_some() && sets == self.found;
                self.rested = if is_known {
                    (2 * self.rested).clamp(1, REST_MOST)
                } else {
                    0
                };
                self.turn = if is_known { Turn::Rest } else { Turn::Look };
                self.found = sets;
                self.since = now;
            }
            Turn::Rest if gone >= self.look * self.rested => {
                self.turn = Turn::Look;
                self.since = now;
            }
            Turn::Look | Turn::Rest => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidestep_gang::TaskId;

    const LOOK: Duration = Duration::from_secs(5);

    fn sets(groups: &[&[usize]]) -> Option<CoscheduledSets> {
        let groups = groups
            .iter()
            .map(|group| group.iter().copied().map(TaskId::new).collect());
        CoscheduledSets::new(groups.collect()).ok()
    }

    /// Steps once a second; the seconds in which it looked.
    fn looked(pace: &mut Pace, seconds: std::ops::Range<u64>, found: &[&[usize]]) -> Vec<u64> {
        seconds
            .filter(|&second| {
                pace.step(Duration::from_secs(second), || sets(found));
                !pace.is_resting()
            })
            .collect()
    }

    #[test]
    fn rests_double_while_nothing_changes_up_to_eight_looks() {
        let mut pace = Pace::new(LOOK);
        let looked = looked(&mut pace, 0..175, &[&[0, 1]]);
        let expected: Vec<u64> = [0..10, 15..20, 30..35, 55..60, 100..105, 145..150]
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(looked, expected);
    }

    #[test]
    fn other_sets_or_other_threads_end_the_resting() {
        let mut pace = Pace::new(LOOK);
        assert!(looked(&mut pace, 0..90, &[&[0, 1]]).len() < 40);
        assert!(pace.is_resting());
        pace.stir(Duration::from_secs(90));
        assert_eq!(
            looked(&mut pace, 90..100, &[&[0, 1]]).len(),
            10,
            "two looks to be sure"
        );
        assert!(
            looked(&mut pace, 100..105, &[&[0, 1]]).is_empty(),
            "the rest that was due"
        );
        assert_eq!(looked(&mut pace, 105..115, &[&[0], &[1]]).len(), 10, "other sets");
    }

    #[test]
    fn there_is_no_rest_before_anything_was_seen_nor_when_not_wanted() {
        for (mut pace, found) in [
            (Pace::new(LOOK), None),
            (Pace::new(Duration::ZERO), sets(&[&[0]])),
        ] {
            for second in 0..100 {
                pace.step(Duration::from_secs(second), || found.clone());
                assert!(!pace.is_resting());
            }
        }
    }
}
