//! A point of a sweep, what its code is told, and why it may have no measurement.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::input::{Inputs, Value};
use crate::shared::Shared;

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
    shared: &'a Shared,
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
    /// A context; `cancelled` turns true when the user wants to stop, and `shared` is of points whose inputs that are
    /// not axes are the same.
    pub fn new(seed: u64, trace: bool, cancelled: &'a AtomicBool, shared: &'a Shared) -> Context<'a> {
        Context {
            seed,
            trace,
            cancelled,
            shared,
        }
    }

    /// What several points need alike, computed by the first that asks: a baseline that does not hang on the axis in
    /// which they differ. `name` says which of the coordinates it is of; nothing else of the point may reach it.
    ///
    /// # Panics
    /// When the name has a value of another type.
    pub fn once<T: Send + Sync + 'static>(
        &self,
        name: &str,
        compute: impl FnOnce() -> Result<T, PointError>,
    ) -> Result<Arc<T>, PointError> {
        self.shared.once((name, self.seed, self.trace), compute)
    }

    /// Whether the user wants to stop. A point that takes longer than a second asks now and then, and answers with
    /// [`PointError::Cancelled`].
    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Inputs {
    /// The points of a sweep over some lists: every combination, the last list the fastest.
    pub fn sweep(&self, keys: &[&str]) -> Vec<Point> {
        keys.iter().fold(vec![Point::new()], |points, key| {
            let longer = |point: Point| {
                let values = self.value(key).elements();
                values
                    .iter()
                    .map(move |value| point.clone().at(*key, value.clone()))
            };
            points.into_iter().flat_map(longer).collect()
        })
    }
}
