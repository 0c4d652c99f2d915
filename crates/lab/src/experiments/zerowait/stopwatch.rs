//! Measuring two things in turns on a host that is not alone.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::experiment::{Context, PointError};
use crate::number::Number;

/// What some work took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// How many operations there were.
    pub operations: u64,
    /// Nanoseconds that processors spent in this process.
    pub processor_ns: u64,
    /// Nanoseconds that passed.
    pub wall_ns: u64,
}

impl Sample {
    /// Measures `work`, which does `operations`.
    pub fn of(operations: u64, work: impl FnOnce()) -> Sample {
        let (processor, wall) = (processor_ns(), Instant::now());
        work();
        Sample {
            operations,
            wall_ns: u64::try_from(wall.elapsed().as_nanos()).unwrap_or(u64::MAX),
            processor_ns: processor_ns() - processor,
        }
    }

    /// Processor time for each operation.
    pub fn processor_per_operation(self) -> Number {
        Number::ratio(self.processor_ns, self.operations.max(1))
    }

    /// Time for each operation.
    pub fn wall_per_operation(self) -> Number {
        Number::ratio(self.wall_ns, self.operations.max(1))
    }
}

/// Nanoseconds that processors have spent in this process.
pub fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs both sides in turns, once to warm up and then `rounds` times; each side's median by processor time.
pub fn in_turns(
    rounds: u64,
    context: &Context,
    baseline: &mut dyn FnMut() -> Result<Sample, PointError>,
    sidestep: &mut dyn FnMut() -> Result<Sample, PointError>,
) -> Result<(Sample, Sample), PointError> {
    let mut samples = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        if context.cancelled() {
            return Err(PointError::Cancelled);
        }
        let pair = (baseline()?, sidestep()?);
        if round > 0 {
            samples.0.push(pair.0);
            samples.1.push(pair.1);
        }
    }
    Ok((middle(samples.0), middle(samples.1)))
}

fn middle(mut samples: Vec<Sample>) -> Sample {
    samples.sort_by_key(|sample| sample.processor_per_operation());
    samples[samples.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_warm_up_does_not_count_and_the_median_is_reported() {
        let cancelled = AtomicBool::new(false);
        let context = Context::new(0, false, &cancelled);
        let side = |first: u64| {
            let mut next = first;
            move || {
                next += 10;
                Ok(Sample {
                    operations: 1,
                    processor_ns: next,
                    wall_ns: 1,
                })
            }
        };
        let (baseline, sidestep) = in_turns(3, &context, &mut side(0), &mut side(100)).unwrap();
        assert_eq!((baseline.processor_ns, sidestep.processor_ns), (30, 130));
    }
}
