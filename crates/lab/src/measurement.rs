//! What one point of an experiment measured: a value and counters for each side, and what can be drawn of it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::drawing::Drawing;
use crate::number::Number;
use crate::timeline::Timeline;

/// What one point measured, both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The conventional structure.
    pub baseline: Side,
    /// The structure with the transition sidestepped.
    pub sidestep: Side,
    /// What belongs to neither side alone: matrices, trees.
    pub drawings: Vec<Drawing>,
}

/// What one side of a point measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// The value of the experiment's metric, in the metric's unit; `None` when this side has none at this point
    /// (a rival that cannot run here; a baseline that does not exist).
    pub value: Option<Number>,
    /// What explains the value, in the order in which it is shown. A name occurs once.
    pub counters: Vec<Counter>,
    /// Pictures of this side: a breakdown of its cycles, a heat map.
    pub drawings: Vec<Drawing>,
    /// What happened when, if [`Context::trace`](crate::Context::trace) asked for it; otherwise empty.
    pub timeline: Timeline,
}

/// A named number that explains a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// The name, in the field's own words and stable: it is a column of the machine-readable formats.
    pub name: Cow<'static, str>,
    /// The number.
    pub value: Number,
    /// The unit; empty for a plain count.
    pub unit: Cow<'static, str>,
}

impl Measurement {
    /// Two sides and nothing else.
    pub fn new(baseline: Side, sidestep: Side) -> Measurement {
        Measurement {
            baseline,
            sidestep,
            drawings: Vec::new(),
        }
    }

    /// Whether there is any picture.
    pub fn has_drawings(&self) -> bool {
        [&self.drawings, &self.baseline.drawings, &self.sidestep.drawings]
            .iter()
            .any(|drawings| !drawings.is_empty())
    }

    /// Whether either side recorded what happened when.
    pub fn has_timeline(&self) -> bool {
        !self.baseline.timeline.is_empty() || !self.sidestep.timeline.is_empty()
    }

    /// Adds a picture that belongs to neither side alone.
    pub fn draw(mut self, drawing: Drawing) -> Measurement {
        self.drawings.push(drawing);
        self
    }
}

impl Side {
    /// A side with a value.
    pub fn new(value: impl Into<Number>) -> Side {
        Side {
            value: Some(value.into()),
            ..Side::default()
        }
    }

    /// A side that has no value at this point.
    pub fn absent() -> Side {
        Side::default()
    }

    /// Adds a plain count.
    pub fn count(self, name: impl Into<Cow<'static, str>>, value: impl Into<Number>) -> Side {
        self.counter(name, value, "")
    }

    /// Adds a counter with a unit.
    ///
    /// # Panics
    /// When the side already has a counter of that name.
    pub fn counter(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Number>,
        unit: impl Into<Cow<'static, str>>,
    ) -> Side {
        let counter = Counter {
            name: name.into(),
            value: value.into(),
            unit: unit.into(),
        };
        assert!(
            self.find(&counter.name).is_none(),
            "counter {} occurs twice",
            counter.name
        );
        self.counters.push(counter);
        self
    }

    /// Adds a picture of this side.
    pub fn draw(mut self, drawing: Drawing) -> Side {
        self.drawings.push(drawing);
        self
    }

    /// Sets what happened when.
    pub fn traced(mut self, timeline: Timeline) -> Side {
        self.timeline = timeline;
        self
    }

    /// The counter of a name.
    pub fn find(&self, name: &str) -> Option<&Counter> {
        self.counters.iter().find(|counter| counter.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "counter exits occurs twice")]
    fn a_counter_name_occurs_once() {
        let _ = Side::new(1).count("exits", 1).count("exits", 2);
    }

    #[test]
    fn a_measurement_reads_back_exactly() {
        let side = Side::new(Number::ratio(1, 3)).counter("wait", 7, "ns");
        let measurement = Measurement::new(side, Side::absent());
        let text = serde_json::to_string(&measurement).unwrap();
        assert_eq!(serde_json::from_str::<Measurement>(&text).unwrap(), measurement);
    }
}
