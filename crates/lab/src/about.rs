//! What an experiment says about itself, as data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::number::Number;

/// What an experiment asks, of which paper, and how it measures.
#[derive(Clone, Debug)]
pub struct About {
    /// The name on the command line: `area.experiment`.
    pub name: &'static str,
    /// What it asks, one line ending in a question mark.
    pub question: &'static str,
    /// The paper and the figure or table that it takes up; `none` with a reason where it goes beyond the papers.
    pub source: &'static str,
    /// How it is set up: machine, workload, what stays fixed; a paragraph.
    pub setting: &'static str,
    /// What the baseline is.
    pub baseline: &'static str,
    /// What the sidestep is.
    pub sidestep: &'static str,
    /// What is compared.
    pub metric: Metric,
    /// Where its numbers come from.
    pub nature: Nature,
    /// About how long it takes with `--quick` and in full, on two cores.
    pub takes: (Duration, Duration),
    /// How to read the result, and its limits; a paragraph.
    pub reading: &'static str,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name: `clocks a system call`.
    pub name: &'static str,
    /// Its unit, short: `clocks`, `ns`, `calls/s`; empty for a plain number.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
}

impl Metric {
    /// A metric of which less is better.
    pub const fn lower(name: &'static str, unit: &'static str) -> Metric {
        Metric {
            name,
            unit,
            better: Better::Lower,
        }
    }

    /// How many times better the sidestep is; `None` where that is a division by zero.
    pub fn gain(&self, baseline: Number, sidestep: Number) -> Option<Number> {
        match self.better {
            Better::Lower => baseline.over(sidestep),
            Better::Higher => sidestep.over(baseline),
        }
    }

    /// A metric of which more is better.
    pub const fn higher(name: &'static str, unit: &'static str) -> Metric {
        Metric {
            name,
            unit,
            better: Better::Higher,
        }
    }
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less is better: the ratio is baseline over sidestep.
    Lower,
    /// More is better: the ratio is sidestep over baseline.
    Higher,
}

/// Where an experiment's numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nature {
    /// Virtual time, no randomness: the same bytes always. Runs once, whatever `--repeat` and `--seed` say.
    Deterministic,
    /// Virtual time with a seed: the same seed gives the same bytes. Repeated with the seeds that follow.
    Seeded,
    /// Real time on this host: repeated, median and confidence interval. Points run alone.
    Measured,
}

impl About {
    /// A deterministic experiment of one's own. An experiment that ships fills in every field.
    pub const fn new(name: &'static str, metric: Metric) -> About {
        About {
            name,
            question: "Which of the two is better?",
            source: "none",
            setting: "",
            baseline: "",
            sidestep: "",
            metric,
            nature: Nature::Deterministic,
            takes: (Duration::ZERO, Duration::ZERO),
            reading: "",
        }
    }
}
