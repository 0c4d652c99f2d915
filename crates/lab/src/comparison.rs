//! The outcome of an experiment: a row for each point, and the findings.

use crate::experiment::{Better, Metric, Point, PointError};
use crate::measurement::Measurement;
use crate::number::Number;
use crate::paper::{Quantity, Stated, Verdict};

/// One point with what was measured and what the paper states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where in the sweep.
    pub point: Point,
    /// What was measured, or why nothing was. Of a repeated point: the median of each number.
    pub result: Result<Measurement, PointError>,
    /// What the paper states.
    pub stated: Vec<Stated>,
    /// What is compared.
    pub metric: Metric,
}

impl Row {
    /// The measurement, if there is one.
    pub fn measurement(&self) -> Option<&Measurement> {
        self.result.as_ref().ok()
    }

    /// A quantity of ours.
    pub fn quantity(&self, quantity: Quantity) -> Option<Number> {
        let measurement = self.measurement()?;
        let (baseline, sidestep) = (measurement.baseline.value, measurement.sidestep.value);
        match quantity {
            Quantity::Baseline => baseline,
            Quantity::Sidestep => sidestep,
            Quantity::Ratio => match self.metric.better {
                Better::Lower => baseline?.over(sidestep?),
                Better::Higher => sidestep?.over(baseline?),
            },
        }
    }

    /// Whether ours agrees with all that the paper states of this point.
    pub fn verdict(&self) -> Verdict {
        self.stated
            .iter()
            .filter_map(|stated| Some(stated.judge(self.quantity(stated.quantity)?)))
            .max()
            .unwrap_or(Verdict::NotStated)
    }
}
