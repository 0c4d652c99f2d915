//! Which of many changes to a program can stay, if no function may get slower by any of them: by measuring.
//!
//! What a change costs elsewhere cannot be predicted: the wait for a line of instructions, that a longer function hid,
//! moves to its caller. So all changes are measured together; blocks that got slower themselves are put back; and what
//! is left is halved until each change that slows something down is alone.

use std::ops::Range;

use sidestep_schedule::program::image::Extent;
use sidestep_schedule::program::rewrite::Change;

/// Runs a program with changes.
pub trait Measure {
    /// What a run tells.
    type Run;
    /// Why there is none.
    type Error;

    /// Runs the program with these changes.
    fn run(&mut self, changes: &[Change]) -> Result<Self::Run, Self::Error>;

    /// The first function that got slower, changed or not.
    fn slowed(&self, run: &Self::Run) -> Option<Extent>;

    /// Whether the code at these addresses got slower.
    fn is_slower(&self, run: &Self::Run, addresses: &Range<u64>) -> bool;
}

/// Changes with which nothing is slower.
pub struct Settled<Run> {
    /// What stays.
    pub kept: Vec<Change>,
    /// What does not, with the function that would get slower.
    pub put_back: Vec<(Change, Extent)>,
    /// The run with what stays; none if that is nothing.
    pub run: Option<Run>,
}

/// Chooses among changes, of which those that come first are tried first.
///
/// # Errors
/// Those of a run.
pub fn settle<M: Measure>(measure: &mut M, changes: &[Change]) -> Result<Settled<M::Run>, M::Error> {
    let mut settled = Settled {
        kept: Vec::new(),
        put_back: Vec::new(),
        run: None,
    };
    if changes.is_empty() {
        return Ok(settled);
    }
    let run = measure.run(changes)?;
    let Some(slowed) = measure.slowed(&run) else {
        settled.kept = changes.to_vec();
        settled.run = Some(run);
        return Ok(settled);
    };
    let inside = |change: &Change| {
        slowed.addresses.contains(&change.addresses.start) && measure.is_slower(&run, &change.addresses)
    };
    let (slower, others): (Vec<Change>, Vec<Change>) = changes.iter().cloned().partition(inside);
    if slower.is_empty() {
        return settled.accept(measure, changes, Some(&slowed)).map(|()| settled);
    }
    settled.put_back = slower
        .into_iter()
        .map(|change| (change, slowed.clone()))
        .collect();
    settled.accept(measure, &others, None)?;
    Ok(settled)
}

impl<Run> Settled<Run> {
    /// Keeps of some changes those that slow nothing down beside what is kept already. `slowed` is what all of them are
    /// known to slow down.
    fn accept<M: Measure<Run = Run>>(
        &mut self,
        measure: &mut M,
        changes: &[Change],
        slowed: Option<&Extent>,
    ) -> Result<(), M::Error> {
        if changes.is_empty() {
            return Ok(());
        }
        let slowed = match slowed {
            Some(slowed) => slowed.clone(),
            None => {
                let all = [&self.kept, changes].concat();
                let run = measure.run(&all)?;
                let Some(slowed) = measure.slowed(&run) else {
                    self.kept = all;
                    self.run = Some(run);
                    return Ok(());
                };
                slowed
            }
        };
        let (first, second) = changes.split_at(changes.len() / 2);
        if first.is_empty() {
            self.put_back
                .extend(second.iter().cloned().map(|change| (change, slowed.clone())));
            return Ok(());
        }
        let before = self.kept.len();
        self.accept(measure, first, None)?;
        let all_stay = self.kept.len() == before + first.len();
        self.accept(measure, second, all_stay.then_some(&slowed))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A program of functions of 16 bundles, of one change each, that get slower by what changes of others do.
    struct Rules<'a> {
        /// Changes that together slow a function down: by number, with the function's.
        slows: &'a [(&'a [u64], u64)],
        runs: usize,
    }

    fn change(number: u64) -> Change {
        Change {
            addresses: 0x100 * number..0x100 * number + 16,
            ..Change::default()
        }
    }

    impl Measure for Rules<'_> {
        type Run = Vec<u64>;
        type Error = Infallible;

        fn run(&mut self, changes: &[Change]) -> Result<Vec<u64>, Infallible> {
            self.runs += 1;
            let made: Vec<u64> = changes
                .iter()
                .map(|change| change.addresses.start / 0x100)
                .collect();
            let slowed = self
                .slows
                .iter()
                .filter(|(by, _)| by.iter().all(|it| made.contains(it)));
            Ok(slowed.map(|(_, function)| *function).collect())
        }

        fn slowed(&self, run: &Vec<u64>) -> Option<Extent> {
            run.first().map(|function| Extent {
                name: format!("f{function}"),
                addresses: 0x100 * function..0x100 * (function + 1),
            })
        }

        fn is_slower(&self, run: &Vec<u64>, addresses: &Range<u64>) -> bool {
            run.contains(&(addresses.start / 0x100))
        }
    }

    /// What stays of 16 changes, what is put back with what it slows down, and the number of runs.
    fn settled(slows: &[(&[u64], u64)]) -> (Vec<u64>, Vec<(u64, String)>, usize) {
        let mut rules = Rules { slows, runs: 0 };
        let changes: Vec<Change> = (0..16).map(change).collect();
        let Ok(settled) = settle(&mut rules, &changes);
        let number = |change: &Change| change.addresses.start / 0x100;
        assert!(settled.run.is_some_and(|run| run.is_empty()));
        (
            settled.kept.iter().map(number).collect(),
            settled
                .put_back
                .iter()
                .map(|(change, slowed)| (number(change), slowed.name.clone()))
                .collect(),
            rules.runs,
        )
    }

    #[test]
    fn what_slows_nothing_down_stays() {
        assert_eq!(settled(&[]), ((0..16).collect(), vec![], 1));
    }

    #[test]
    fn a_block_that_gets_slower_is_put_back() {
        let (kept, put_back, runs) = settled(&[(&[3], 3)]);
        assert_eq!(put_back, [(3, "f3".to_owned())]);
        assert_eq!((kept.len(), runs), (15, 2));
    }

    #[test]
    fn what_slows_a_function_down_that_is_not_changed_is_found() {
        let (kept, put_back, runs) = settled(&[(&[11], 99)]);
        assert_eq!(put_back, [(11, "f99".to_owned())]);
        assert_eq!(kept.len(), 15);
        assert!(runs <= 9, "{runs}");
    }

    #[test]
    fn of_two_that_slow_something_down_together_the_first_stays() {
        let (kept, put_back, _) = settled(&[(&[2, 9], 99), (&[5], 98)]);
        assert!(kept.contains(&2) && !kept.contains(&9) && !kept.contains(&5));
        assert_eq!(put_back, [(5, "f98".to_owned()), (9, "f99".to_owned())]);
    }

    #[test]
    fn where_each_change_slows_something_down_none_stays() {
        let mut rules = Rules {
            slows: &[(&[0], 50), (&[1], 51)],
            runs: 0,
        };
        let Ok(settled) = settle(&mut rules, &[change(0), change(1)]);
        assert!(settled.kept.is_empty() && settled.run.is_none());
        assert_eq!(settled.put_back.len(), 2);
    }
}
