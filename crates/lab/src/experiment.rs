//! What an experiment is.
//!
//! An [`Experiment`] says as data what it asks ([`About`]), what can be changed ([`Input`]) and which points its sweep
//! visits ([`Point`]); and it measures one point at a time. Running points side by side, repeating, caching,
//! judging, showing: the laboratory does that for every experiment alike.
//!
//! Rules. A point depends on nothing but the inputs that are not axes, its coordinates and the [`Context`]: no globals,
//! no order of points. In virtual time it reads no clock and nothing whose order is not stated. It returns a
//! [`PointError`] for what can go wrong; a panic is a defect of the experiment, contained and shown as the failure of
//! that point.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::comparison::Row;
use crate::figure::Figure;
use crate::input::{Input, Inputs, Value};
use crate::measurement::Measurement;
use crate::paper::{Finding, Stated};

/// A figure or table of a paper as an experiment: baseline against sidestep over a sweep.
pub trait Experiment: Send + Sync {
    /// What it asks, of which paper, and how it measures.
    fn about(&self) -> About;

    /// What can be changed.
    fn inputs(&self) -> Vec<Input>;

    /// The points of the sweep, in the order in which they are shown; each with the same coordinates. Errors are
    /// inputs that contradict each other, in words that name the keys.
    fn points(&self, inputs: &Inputs) -> Result<Vec<Point>, String>;

    /// Measures both sides of one point. `inputs` holds no axes.
    fn run_point(&self, inputs: &Inputs, point: &Point, context: &Context)
    -> Result<Measurement, PointError>;

    /// What the paper states about one point, at most one statement for each quantity. Empty where it states nothing,
    /// which includes inputs other than the paper's.
    fn stated(&self, _inputs: &Inputs, _point: &Point) -> Vec<Stated> {
        Vec::new()
    }

    /// What the paper states about the whole sweep, held against the rows that were measured (rows of failed points
    /// have no measurement). Not asked when nothing was measured.
    fn findings(&self, _inputs: &Inputs, _rows: &[Row]) -> Vec<Finding> {
        Vec::new()
    }

    /// The charts of its report.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }
}

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// One point of a sweep: named coordinates, in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    coordinates: Vec<(String, Value)>,
}

/// What the laboratory tells a point.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The seed of this repetition: the only source of randomness.
    pub seed: u64,
    /// Whether to record what happens when. Costs time and memory: record only if asked.
    pub trace: bool,
    cancelled: &'a AtomicBool,
}

/// Why a point has no measurement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum PointError {
    /// This host cannot run it; the text says what is missing. Not a failure of the run.
    #[error("not possible here: {0}")]
    Unavailable(String),
    /// It went wrong; the text says what and why.
    #[error("{0}")]
    Failed(String),
    /// The point saw [`Context::cancelled`] and gave up.
    #[error("interrupted")]
    Cancelled,
    /// The experiment's code panicked: a defect.
    #[error("the experiment panicked: {0}")]
    Panicked(String),
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

impl Point {
    /// A point without coordinates yet.
    pub fn new() -> Point {
        Point::default()
    }

    /// Adds a coordinate.
    ///
    /// # Panics
    /// When the point already has a coordinate of that key.
    pub fn at(mut self, key: impl Into<String>, value: impl Into<Value>) -> Point {
        let key = key.into();
        assert!(self.find(&key).is_none(), "coordinate {key} occurs twice");
        self.coordinates.push((key, value.into()));
        self
    }

    /// Every coordinate.
    pub fn coordinates(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.coordinates.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The coordinate of a key, if the point has it.
    pub fn find(&self, key: &str) -> Option<&Value> {
        self.coordinates()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// The coordinate of a key.
    ///
    /// # Panics
    /// When the point has none.
    pub fn value(&self, key: &str) -> &Value {
        self.find(key)
            .unwrap_or_else(|| panic!("the point {self} has no coordinate `{key}`"))
    }
}

impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.coordinates().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(formatter, "{space}{key}={value}")?;
        }
        Ok(())
    }
}

impl<'a> Context<'a> {
    /// A context; `cancelled` turns true when the user wants to stop.
    pub fn new(seed: u64, trace: bool, cancelled: &'a AtomicBool) -> Context<'a> {
        Context {
            seed,
            trace,
            cancelled,
        }
    }

    /// Whether the user wants to stop. A point that takes longer than a second asks now and then, and answers with
    /// [`PointError::Cancelled`].
    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
