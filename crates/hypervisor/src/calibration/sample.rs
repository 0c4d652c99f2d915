//! Repetition: a measurement is many samples, a sample is enough operations to be longer than what the clock disturbs.

use std::time::{Duration, Instant};

use serde::Serialize;

/// The median of samples, and an interval that holds the true one with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: u64,
    /// The median.
    pub median: u64,
    /// The upper end.
    pub high: u64,
}

impl Interval {
    /// Of these samples, at least one.
    ///
    /// The interval is of order statistics: the number of samples below the median is binomial, so the true median
    /// lies between the samples whose ranks are 0.98 sqrt(n) from the middle, whatever the distribution.
    pub fn of(mut samples: Vec<u64>) -> Interval {
        samples.sort_unstable();
        let count = samples.len();
        assert!(count > 0, "there is a sample");
        let reach = ((count * 9604 / 10_000).isqrt() + 1).min(count / 2);
        let middle = count / 2;
        Interval {
            low: samples[middle - reach],
            median: samples[middle],
            high: samples[(middle + reach).min(count - 1)],
        }
    }

    /// Each end and the median, changed.
    pub fn map(self, change: impl Fn(u64) -> u64) -> Interval {
        Interval {
            low: change(self.low),
            median: change(self.median),
            high: change(self.high),
        }
    }

    /// What is left without an overhead.
    pub fn without(self, overhead: Interval) -> Interval {
        self.map(|time| time.saturating_sub(overhead.median))
    }
}

/// A sample takes at least so long.
const SAMPLE_LEAST: Duration = Duration::from_micros(200);
/// The most operations of a sample.
const OPERATIONS_MAX: u64 = 1 << 24;

/// Picoseconds an operation, where `work` does so many operations.
pub fn sampled<E>(samples: usize, mut work: impl FnMut(u64) -> Result<(), E>) -> Result<Interval, E> {
    timed_by(samples, |operations| {
        let start = Instant::now();
        work(operations)?;
        Ok(start.elapsed())
    })
}

/// The same, where `timed` says itself how long so many operations took.
pub fn timed_by<E>(samples: usize, mut timed: impl FnMut(u64) -> Result<Duration, E>) -> Result<Interval, E> {
    let mut operations = 1;
    while timed(operations)? < SAMPLE_LEAST && operations < OPERATIONS_MAX {
        operations *= 2;
    }
    let samples = (0..samples).map(|_| Ok(each(timed(operations)?, operations)));
    Ok(Interval::of(samples.collect::<Result<_, E>>()?))
}

/// Picoseconds of one of so many operations.
fn each(time: Duration, operations: u64) -> u64 {
    (time.as_nanos() * 1000 / u128::from(operations)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_interval_holds_the_median_and_lies_within_the_samples(
            samples in proptest::collection::vec(any::<u64>(), 1..200)
        ) {
            let interval = Interval::of(samples.clone());
            prop_assert!(interval.low <= interval.median && interval.median <= interval.high);
            prop_assert!(samples.contains(&interval.low) && samples.contains(&interval.high));
        }
    }

    #[test]
    fn more_samples_make_the_interval_narrower() {
        let width = |count: u64| {
            let interval = Interval::of((0..count).map(|sample| sample * 1000 / count).collect());
            interval.high - interval.low
        };
        assert!(width(1000) < width(100) && width(100) < width(10));
    }
}
