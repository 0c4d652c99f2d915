//! A point of a sweep with what was measured there, held against what the paper states of it.

use crate::about::Metric;
use crate::measurement::Measurement;
use crate::number::Number;
use crate::paper::{Expected, Quantity, Stated, Verdict};
use crate::point::{Point, PointError};
use crate::statistics::Median;

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
    /// How the repetitions spread, of a point that was repeated.
    pub spread: Option<Spread>,
}

/// How the repetitions of a point spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many repetitions.
    pub repetitions: usize,
    /// The baseline's values.
    pub baseline: Option<Median>,
    /// The sidestep's values.
    pub sidestep: Option<Median>,
    /// The ratios, each of the two values of one repetition: what disturbs both sides alike cancels out.
    pub ratio: Option<Median>,
}

impl Spread {
    /// The median and interval of a quantity.
    pub fn of(&self, quantity: Quantity) -> Option<Median> {
        match quantity {
            Quantity::Baseline => self.baseline,
            Quantity::Sidestep => self.sidestep,
            Quantity::Ratio => self.ratio,
        }
    }
}

impl Row {
    /// The measurement, if there is one.
    pub fn measurement(&self) -> Option<&Measurement> {
        self.result.as_ref().ok()
    }

    /// A quantity of ours; of a repeated point the median.
    pub fn quantity(&self, quantity: Quantity) -> Option<Number> {
        if let Some(spread) = &self.spread {
            return spread.of(quantity).map(|median| median.value);
        }
        let measurement = self.measurement()?;
        let (baseline, sidestep) = (measurement.baseline.value, measurement.sidestep.value);
        match quantity {
            Quantity::Baseline => baseline,
            Quantity::Sidestep => sidestep,
            Quantity::Ratio => self.metric.gain(baseline?, sidestep?),
        }
    }

    /// What the paper states of a quantity.
    pub fn statement(&self, quantity: Quantity) -> Option<&Stated> {
        self.stated.iter().find(|stated| stated.quantity == quantity)
    }

    /// The verdict on one statement; `None` without a number of ours. Of a repeated point the median must lie within a
    /// value's tolerance; a bound is broken only if the whole interval lies beyond it.
    pub fn judge(&self, stated: &Stated) -> Option<Verdict> {
        Some(stated.standing.verdict(self.agrees(stated)?))
    }

    /// Whether ours lies within what is stated.
    pub fn agrees(&self, stated: &Stated) -> Option<bool> {
        let median = self.spread.and_then(|spread| spread.of(stated.quantity));
        let ours = match (stated.expected, median) {
            (Expected::AtLeast(_), Some(median)) => median.high,
            (Expected::AtMost(_), Some(median)) => median.low,
            _ => self.quantity(stated.quantity)?,
        };
        Some(stated.agrees(ours))
    }

    /// Whether ours agrees with all that the paper states of this point.
    pub fn verdict(&self) -> Verdict {
        (self.stated.iter())
            .filter_map(|stated| self.judge(stated))
            .max()
            .unwrap_or(Verdict::NotStated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Side;
    use crate::statistics::median;

    fn row(ratios: [i32; 3], stated: Stated) -> Row {
        let ratio = median(&ratios.map(|tenths| Number::ratio(tenths, 10)));
        let spread = Spread {
            repetitions: 3,
            baseline: None,
            sidestep: None,
            ratio,
        };
        Row {
            point: Point::new(),
            result: Ok(Measurement::new(Side::absent(), Side::absent())),
            stated: vec![stated],
            metric: Metric::lower("time", "ns"),
            spread: Some(spread),
        }
    }

    #[test]
    fn a_bound_is_broken_only_by_the_whole_interval() {
        let at_most = || Stated::at_most(Quantity::Ratio, 2, "");
        assert_eq!(row([19, 21, 22], at_most()).verdict(), Verdict::Holds);
        assert_eq!(row([21, 22, 23], at_most()).verdict(), Verdict::Differs);
        let at_least = || Stated::at_least(Quantity::Ratio, 2, "");
        assert_eq!(row([17, 18, 21], at_least()).verdict(), Verdict::Holds);
        assert_eq!(row([17, 18, 19], at_least()).verdict(), Verdict::Differs);
    }
}
