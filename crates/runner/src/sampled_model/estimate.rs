//! What follows from samples for the whole.

use std::fmt;

use sidestep_itanium2::{Counters, Event};

use super::UNITS_MIN;

/// The counters of a whole run by those of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Every counter, in proportion; instructions as they were counted.
    pub counters: Counters,
    /// Half the interval that holds the true number of cycles in 95 of 100 cases, as a part of the estimated number.
    pub margin: f64,
    /// How many samples it is of.
    pub units: usize,
    /// How many instructions they have together.
    pub sampled: u64,
}

/// How many standard errors of the mean 95 % are within, where the mean is distributed normally.
const QUANTILE: f64 = 1.96;

/// What units may be off together, as a part of their cycles: what runs unseen leaves other lines and histories behind
/// than on the model, and the end of a program is in no unit. Assumed; a twentieth of a percent was seen where units
/// themselves differ by less.
const SYSTEMATIC: f64 = 0.001;

impl Estimate {
    /// From the counters of the beginning and of units of the same length behind it, of a run of so many instructions;
    /// `None` if units are too few and the beginning is not the whole.
    pub fn new(first: Counters, units: &[Counters], instructions: u64) -> Option<Estimate> {
        let behind = instructions.saturating_sub(first.get(Event::InstructionsRetired));
        if behind == 0 {
            return Some(Estimate {
                counters: first,
                margin: 0.0,
                units: 0,
                sampled: 0,
            });
        }
        if units.len() < UNITS_MIN {
            return None;
        }
        let mut sum = Counters::default();
        units.iter().for_each(|unit| sum += *unit);
        let sampled = sum.get(Event::InstructionsRetired);
        let scaled = |number: u64| {
            let scaled = u128::from(number) * u128::from(behind) / u128::from(sampled.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let numbers: Vec<u64> = sum.to_numbers().into_iter().map(scaled).collect();
        let cycles: Vec<f64> = units
            .iter()
            .map(|unit| unit.get(Event::CpuCycles) as f64)
            .collect();
        let count = cycles.len() as f64;
        let mean = cycles.iter().sum::<f64>() / count;
        let squares: f64 = cycles.iter().map(|one| (one - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let mut counters = Counters::from_numbers(&numbers).expect("as many as there were");
        let of_cycles = counters.get(Event::CpuCycles) as f64;
        counters += first;
        Some(Estimate {
            margin: SYSTEMATIC.hypot(QUANTILE * error / mean) * of_cycles
                / counters.get(Event::CpuCycles) as f64,
            counters,
            units: units.len(),
            sampled,
        })
    }
}

/// The margin, and the counters.
impl fmt::Display for Estimate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cycles = self.counters.get(Event::CpuCycles) as f64;
        match self.units {
            0 => writeln!(
                out,
                "all of it was on the model: it was no longer than what is no sample"
            )?,
            units => writeln!(
                out,
                "estimated from the beginning and {units} samples of {} instructions in all: cycles to {:.2} % ({:.0}) \
                 in 95 of 100 cases",
                self.sampled,
                100.0 * self.margin,
                self.margin * cycles
            )?,
        }
        self.counters.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sidestep_itanium2::Stall;

    use super::*;

    fn unit(instructions: u64, issue: u64, bubbles: u64) -> Counters {
        let mut numbers = Counters::default().to_numbers();
        let last = numbers.len() - 1;
        numbers[Event::InstructionsRetired as usize] = instructions;
        numbers[Event::CpuCycles as usize] = issue + bubbles;
        numbers[last] = issue;
        let mut counters = Counters::from_numbers(&numbers).expect("as many");
        counters.book(Stall::General, bubbles);
        counters
    }

    #[test]
    fn equal_units_leave_no_margin_and_few_no_estimate() {
        let (first, units) = (unit(1_000, 900, 2_000), [unit(1_000, 400, 100); UNITS_MIN]);
        assert_eq!(Estimate::new(first, &units[1..], 2_000), None);
        let whole = Estimate::new(first, &[], 1_000).expect("nothing is behind it");
        assert_eq!((whole.counters, whole.margin), (first, 0.0));
        let estimate = Estimate::new(first, &units, 5_001_000).expect("enough");
        assert_eq!(estimate.counters.get(Event::CpuCycles), 2_502_900);
        assert_eq!(estimate.counters.get(Event::InstructionsRetired), 5_001_000);
        assert_eq!(estimate.counters.issue_cycles(), 2_000_900);
        assert!(
            (0.000_99..0.001).contains(&estimate.margin),
            "{}",
            estimate.margin
        );
        assert_eq!(estimate.sampled, 30_000);
    }

    proptest! {
        /// Of populations of units, drawn without an order: the margin holds the true mean in nearly 95 of 100.
        #[test]
        fn the_margin_holds_in_nearly_all_cases(seed: u64) {
            let mut random = fastrand::Rng::with_seed(seed);
            let population: Vec<u64> = (0..2_000).map(|_| 500 + random.u64(0..1_500)).collect();
            let truth = population.iter().sum::<u64>() as f64 / population.len() as f64;
            let held = (0..400).filter(|_| {
                let drawn: Vec<Counters> = (0..60)
                    .map(|_| unit(1_000, population[random.usize(0..population.len())], 0))
                    .collect();
                let estimate = Estimate::new(Counters::default(), &drawn, 1_000_000).expect("enough");
                let mean = estimate.counters.get(Event::CpuCycles) as f64 / 1_000.0;
                (mean - truth).abs() <= estimate.margin * mean
            });
            // 376 to 380 of 400 are expected; so few as 350 come once in tens of millions of cases.
            prop_assert!(held.count() > 350);
        }
    }
}
