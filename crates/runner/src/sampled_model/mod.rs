//! A program of which the model sees samples: what it takes is estimated, with a margin of error.
//!
//! Of every period of so many instructions one stretch is executed on the model, at a place that is drawn anew in each
//! (stratified sampling): first a part that warms caches, buffers and predictors and does not count, then the unit
//! whose cycles do. Between them the program runs as if nobody watched, translated if that is wanted. The cycles of the
//! whole are the mean of the units', times the instructions; how much units differ says how far that may be off (R. E.
//! Wunderlich et al., "SMARTS", ISCA 2003). What this margin does not know of is what the caches have missed between
//! two samples: for that there is the part that warms them. The beginning of each thread, which is like nothing behind
//! it, is on the model as a whole and counts as what it is.
//!
//! - [`Sampling`]: the period and its parts. `thread`: one thread, in turns on the model and off it. `estimate`: what
//!   follows from the units.

mod estimate;
mod thread;

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use sidestep_ia64::Driver;
use sidestep_ia64::execution::{Drivers, Untimed};
use sidestep_itanium2::{Counters, Parameters, Pipeline};
use sidestep_linux_user::code_names::CodeNames;
use sidestep_linux_user::engine::Engine;

use crate::program::heading;
use crate::shared::Shared;
pub use estimate::Estimate;
use thread::SampledThread;

/// How samples are taken, in instructions of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// One sample is taken in each of them.
    pub period: u64,
    /// What goes before a unit on the model, uncounted.
    pub warm: u64,
    /// What is counted.
    pub unit: u64,
}

/// Units at least for an estimate with a margin: with fewer the mean need not be distributed normally.
pub const UNITS_MIN: usize = 30;

/// Instructions at the beginning of a thread that are on the model as a whole.
const FIRST: u64 = 1_000_000;

/// The least of each: a unit must be long beside the group in which it begins.
const UNIT_MIN: u64 = 1_000;

impl Sampling {
    /// A sample in every so many instructions, of which one in a hundred counts. Half a million fills a third-level
    /// cache again, for most programs.
    pub fn every(period: u64) -> Sampling {
        Sampling {
            period,
            warm: (period / 4).min(500_000),
            unit: (period / 100).max(UNIT_MIN),
        }
    }

    fn check(self) -> Result<Sampling, String> {
        let Sampling { period, warm, unit } = self;
        if unit < UNIT_MIN {
            return Err(format!("a unit has {UNIT_MIN} instructions at least, not {unit}"));
        }
        match warm.checked_add(unit) {
            Some(followed) if followed <= period => Ok(self),
            _ => Err(format!(
                "a period of {period} instructions has no room for {warm} to warm and a unit of {unit}"
            )),
        }
    }
}

impl FromStr for Sampling {
    type Err = String;

    /// `sample=PERIOD`, and behind it as wanted `warm=N` and `unit=N`, by commas; with `k`, `M`, `G` for thousands.
    fn from_str(text: &str) -> Result<Sampling, String> {
        let mut parts = text
            .split(',')
            .map(|part| part.split_once('=').unwrap_or((part, "")));
        let mut sampling = match parts.next() {
            Some(("sample", period)) => Sampling::every(count(period)?),
            _ => return Err(format!("`{text}` is not `sample=PERIOD[,warm=N][,unit=N]`")),
        };
        for (key, value) in parts {
            match key {
                "warm" => sampling.warm = count(value)?,
                "unit" => sampling.unit = count(value)?,
                _ => return Err(format!("`{key}` is neither `warm` nor `unit`")),
            }
        }
        sampling.check()
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sampling { period, warm, unit } = self;
        write!(out, "sample={period},warm={warm},unit={unit}")
    }
}

/// A number of instructions, with `k`, `M` or `G` for thousands.
fn count(text: &str) -> Result<u64, String> {
    let (digits, scale) = match text.strip_suffix(['k', 'M', 'G']) {
        Some(digits) if text.ends_with('k') => (digits, 1_000),
        Some(digits) if text.ends_with('M') => (digits, 1_000_000),
        Some(digits) => (digits, 1_000_000_000),
        None => (text, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(scale))
        .ok_or_else(|| format!("`{text}` is no number of instructions, such as 20M"))
}

/// What is told at the end of a run.
pub trait EstimateReport: fmt::Debug + Send + Sync {
    /// The text that goes before the estimate.
    fn label(&self) -> String;
}

/// The threads of a process, each sampled.
pub struct SampledModel<R> {
    parameters: Parameters,
    sampling: Sampling,
    /// What runs the program between samples; without, the interpreter.
    between: Option<Arc<dyn Drivers>>,
    report: R,
    threads: Mutex<Vec<Shared<SampledThread>>>,
    /// How many threads there have been: places are drawn otherwise in each.
    started: AtomicU64,
}

impl<R: EstimateReport> SampledModel<R> {
    /// Samples the model of a processor; `between` runs the program between samples.
    pub fn new(
        parameters: Parameters,
        sampling: Sampling,
        between: Option<Arc<dyn Drivers>>,
        report: R,
    ) -> SampledModel<R> {
        SampledModel {
            parameters,
            sampling,
            between,
            report,
            threads: Mutex::default(),
            started: AtomicU64::new(0),
        }
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Shared<SampledThread>>> {
        self.threads
            .lock()
            .expect("no thread panics while it adds another")
    }
}

impl<R: EstimateReport> fmt::Debug for SampledModel<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SampledModel({}, {})", self.parameters.name, self.sampling)
    }
}

impl<R: EstimateReport> Engine for SampledModel<R> {
    fn attach(&self) -> Box<dyn Driver + Send> {
        let between = match &self.between {
            Some(drivers) => drivers.driver(),
            None => Box::new(Untimed),
        };
        let seed = self.started.fetch_add(1, Ordering::Relaxed);
        let pipeline = Pipeline::new(self.parameters.clone());
        let thread = Shared::new(SampledThread::new(pipeline, between, self.sampling, seed));
        self.threads().push(thread.clone());
        Box::new(thread)
    }

    fn forget(&self) {
        self.threads().clear();
    }

    fn rest(&self) {
        if let Some(between) = &self.between {
            between.rest();
        }
    }

    fn report(&self, _: &CodeNames) -> Result<String, String> {
        let (mut first, mut units, mut instructions) = (Counters::default(), Vec::new(), 0);
        for thread in self.threads().iter() {
            let mut thread = thread.lock();
            first += thread.first();
            units.extend_from_slice(thread.units());
            instructions += thread.retired();
        }
        let label = self.report.label();
        let Some(estimate) = Estimate::new(first, &units, instructions) else {
            let (period, found) = (self.sampling.period, units.len());
            return Ok(format!(
                "{label}{}: {instructions} instructions had {found} samples, and an estimate takes {UNITS_MIN}: sample \
                 more often than once in {period}, or not at all\n",
                self.parameters.name
            ));
        };
        Ok(label + &heading(&self.parameters, &estimate.counters) + &estimate.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_a_text_form() {
        let usual = Sampling {
            period: 20_000_000,
            warm: 500_000,
            unit: 200_000,
        };
        assert_eq!("sample=20M".parse(), Ok(usual));
        assert_eq!(usual.to_string().parse(), Ok(usual));
        let own: Sampling = "sample=1M,unit=2k,warm=0".parse().expect("settings");
        assert_eq!((own.period, own.warm, own.unit), (1_000_000, 0, 2_000));
        for (text, told) in [
            ("", "is not `sample=PERIOD"),
            ("every=5", "is not `sample=PERIOD"),
            ("sample=", "`` is no number of instructions"),
            ("sample=0", "no room"),
            ("sample=20MM", "`20MM` is no number"),
            ("sample=99999999999G", "is no number"),
            ("sample=1M,unit=10", "a unit has 1000 instructions at least"),
            ("sample=1M,warm=999k,unit=2k", "no room for 999000 to warm"),
            ("sample=1M,cold=1", "`cold` is neither"),
        ] {
            let error = text.parse::<Sampling>().expect_err(text);
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
