//! Histograms of durations: logarithmic, eight buckets to a power of two, so an answer is at most an eighth
//! too large.
//!
//! [`Histogram`] is a plain value; the live one that cores record into and anyone may read meanwhile is
//! `Live`.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// log2 of the buckets in one power of two.
const PRECISION_BITS: u32 = 3;
const PER_OCTAVE: usize = 1 << PRECISION_BITS;
/// Values below `PER_OCTAVE` have a bucket each; every power of two from there to 2^63 has `PER_OCTAVE`.
const BUCKETS: usize = PER_OCTAVE * (u64::BITS - PRECISION_BITS + 1) as usize;

fn bucket_of(value: u64) -> usize {
    if value < PER_OCTAVE as u64 {
        return value as usize;
    }
    let octave = value.ilog2() - PRECISION_BITS;
    let within = (value >> octave) as usize - PER_OCTAVE;
    PER_OCTAVE * (octave as usize + 1) + within
}

/// The greatest value that falls into a bucket.
fn upper_bound(bucket: usize) -> u64 {
    if bucket < PER_OCTAVE {
        return bucket as u64;
    }
    let octave = (bucket / PER_OCTAVE - 1) as u32;
    let within = (bucket % PER_OCTAVE) as u64;
    let next = u128::from(PER_OCTAVE as u64 + within + 1) << octave;
    (next - 1) as u64
}

/// How often each duration occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum: u128,
    greatest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS].into(),
            count: 0,
            sum: 0,
            greatest: 0,
        }
    }
}

impl Histogram {
    /// Counts one `value`.
    pub fn record(&mut self, value: u64) {
        self.counts[bucket_of(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.greatest = self.greatest.max(value);
    }

    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.greatest = self.greatest.max(other.greatest);
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, rounded down; 0 if there is no value.
    pub fn mean(&self) -> u64 {
        if self.count == 0 {
            0
        } else {
            (self.sum / u128::from(self.count)) as u64
        }
    }

    /// The greatest value; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.greatest
    }

    /// A value that `per_mille` thousandths of the values do not exceed, at most an eighth above the true
    /// one; 0 if there is no value.
    pub fn quantile(&self, per_mille: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(per_mille.min(1000)))
            .div_ceil(1000)
            .max(1) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound(bucket).min(self.greatest);
            }
        }
        self.greatest
    }
}

/// Count, mean, median, 99 %, 99.9 % and maximum on one line.
impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "n {} mean {} p50 {} p99 {} p99.9 {} max {}",
            self.count,
            self.mean(),
            self.quantile(500),
            self.quantile(990),
            self.quantile(999),
            self.greatest
        )
    }
}

/// A histogram that several cores record into while others read it.
#[derive(Debug)]
pub(crate) struct Live {
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
    greatest: AtomicU64,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            greatest: AtomicU64::new(0),
        }
    }
}

impl Live {
    pub(crate) fn record(&self, value: u64) {
        self.counts[bucket_of(value)].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
        self.greatest.fetch_max(value, Relaxed);
    }

    /// What was recorded until about now, each value multiplied by `scale.0 / scale.1`.
    ///
    /// Recorded values in clock ticks become nanoseconds here rather than on the hot path; a bucket moves as
    /// a whole.
    pub(crate) fn read(&self, scale: (u64, u64)) -> Histogram {
        let scaled =
            |value: u64| (u128::from(value) * u128::from(scale.0) / u128::from(scale.1.max(1))) as u64;
        let mut histogram = Histogram::default();
        for (bucket, count) in self.counts.iter().enumerate() {
            let count = count.load(Relaxed);
            histogram.counts[bucket_of(scaled(upper_bound(bucket)))] += count;
            histogram.count += count;
        }
        histogram.sum = u128::from(scaled(self.sum.load(Relaxed)));
        histogram.greatest = scaled(self.greatest.load(Relaxed));
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_bucket_ends_where_the_next_begins() {
        for bucket in 0..BUCKETS {
            let last = upper_bound(bucket);
            assert_eq!(bucket_of(last), bucket);
            if bucket + 1 < BUCKETS {
                assert_eq!(bucket_of(last + 1), bucket + 1);
            }
        }
        assert_eq!(upper_bound(BUCKETS - 1), u64::MAX);
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "arithmetic without unsafe code, and slow there")]
        fn a_quantile_is_at_most_an_eighth_too_large(
            mut values in proptest::collection::vec(0u64..1 << 40, 1..200),
            per_mille in 0u64..=1000,
        ) {
            let mut histogram = Histogram::default();
            let live = Live::default();
            for value in &values {
                histogram.record(*value);
                live.record(*value);
            }
            prop_assert_eq!(&live.read((1, 1)), &histogram);
            values.sort_unstable();
            let rank = (values.len() as u64 * per_mille).div_ceil(1000).max(1) as usize;
            let exact = values[rank - 1];
            let answer = histogram.quantile(per_mille);
            prop_assert!(answer >= exact && answer <= exact + exact / 8, "{answer} for {exact}");
        }
    }
}
