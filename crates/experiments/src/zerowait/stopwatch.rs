//! Measuring two things in turns on a host that is not alone.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use sidestep_lab::{Context, Number, PointError, Rounds};

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

/// Runs both sides in turns, once to warm up and then `rounds` times; each side's median by processor time, and when
/// its rounds ran.
pub fn in_turns<'a>(
    rounds: u64,
    context: &Context,
    baseline: &'a mut dyn FnMut() -> Result<Sample, PointError>,
    sidestep: &'a mut dyn FnMut() -> Result<Sample, PointError>,
) -> Result<[(Sample, Rounds); 2], PointError> {
    let mut sides: [&'a mut dyn FnMut() -> Result<Sample, PointError>; 2] = [baseline, sidestep];
    let mut records = Rounds::of_both_sides(context);
    let mut samples = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for ((side, record), samples) in sides.iter_mut().zip(&mut records).zip(&mut samples) {
            if context.cancelled() {
                return Err(PointError::Cancelled);
            }
            match round {
                0 => drop(record.note("warm-up", side)?),
                _ => samples.push(record.note(format!("round {round}"), side)?),
            }
        }
    }
    let [baseline, sidestep] = samples.map(middle);
    let [first, second] = records;
    Ok([(baseline, first), (sidestep, second)])
}

fn middle(mut samples: Vec<Sample>) -> Sample {
    samples.sort_by_key(|sample| sample.processor_per_operation());
    samples[samples.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidestep_lab::Shared;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_warm_up_does_not_count_and_the_median_is_reported() {
        let (cancelled, shared) = (AtomicBool::new(false), Shared::new());
        let context = Context::new(0, false, &cancelled, &shared);
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
        let [(baseline, _), (sidestep, _)] = in_turns(3, &context, &mut side(0), &mut side(100))
            .unwrap_or_else(|_| panic!("neither side fails"));
        assert_eq!((baseline.processor_ns, sidestep.processor_ns), (30, 130));
    }
}
