//! The outcome of an experiment: a row for each point, and the findings.

use std::fmt;

use crate::experiment::{About, Better, Metric, Point, PointError};
use crate::input::{Input, Inputs};
use crate::measurement::Measurement;
use crate::number::Number;
use crate::paper::{Expected, Finding, Quantity, Stated, Verdict};
use crate::report::table;
use crate::statistics::Median;

/// The outcome of one experiment.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What was asked.
    pub about: About,
    /// What could be changed.
    pub declared: Vec<Input>,
    /// What it was changed to.
    pub inputs: Inputs,
    /// The settings that were given, as given.
    pub settings: Vec<String>,
    /// Whether the defaults were those of a quick run.
    pub quick: bool,
    /// The seed of the first repetition.
    pub seed: u64,
    /// How often each point was run.
    pub repetitions: u32,
    /// A row for each point, in the order of the sweep.
    pub rows: Vec<Row>,
    /// What holds of the sweep as a whole.
    pub findings: Vec<Finding>,
    /// Why there are no findings, if the experiment's code for them panicked.
    pub defect: Option<PointError>,
    /// The charts.
    pub figures: Vec<crate::figure::Figure>,
    /// How many repetitions of points came from the cache.
    pub from_cache: usize,
}

impl Comparison {
    /// Whether every point was finished: measured, failed, or impossible here.
    pub fn is_complete(&self) -> bool {
        !self
            .rows
            .iter()
            .any(|row| row.result == Err(PointError::Cancelled))
    }

    /// The rows that were finished, of a comparison that was interrupted; none if none was. Findings are of the whole.
    pub fn finished_part(&self) -> Option<Comparison> {
        let mut part = self.clone();
        part.rows.retain(|row| row.result != Err(PointError::Cancelled));
        if !self.is_complete() {
            part.findings.clear();
            part.figures.clear();
            part.defect = None;
        }
        (!part.rows.is_empty()).then_some(part)
    }

    /// The rows whose point went wrong.
    pub fn failures(&self) -> impl Iterator<Item = (&Row, &PointError)> {
        self.rows.iter().filter_map(|row| match &row.result {
            Err(error @ (PointError::Failed(_) | PointError::Panicked(_))) => Some((row, error)),
            _ => None,
        })
    }

    /// The name and unit of every counter of either side, in order of first appearance.
    pub fn counters(&self) -> Vec<(String, String)> {
        let mut names: Vec<(String, String)> = Vec::new();
        let sides = self.rows.iter().filter_map(Row::measurement);
        let sides = sides.flat_map(|measurement| [&measurement.baseline, &measurement.sidestep]);
        for counter in sides.flat_map(|side| &side.counters) {
            if !names.iter().any(|(name, _)| *name == counter.name) {
                names.push((counter.name.to_string(), counter.unit.to_string()));
            }
        }
        names
    }

    /// How many verdicts, of points and of findings, are of a kind.
    pub fn count(&self, verdict: Verdict) -> usize {
        let rows = self.rows.iter().map(Row::verdict);
        let findings = self.findings.iter().map(|finding| finding.verdict);
        rows.chain(findings).filter(|each| *each == verdict).count()
    }
}

/// As the table that a terminal shows.
impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&table::render(std::slice::from_ref(self), TERMINAL_WIDTH))
    }
}

/// The usual width of a table.
const TERMINAL_WIDTH: usize = 120;

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

impl Metric {
    /// How many times better the sidestep is; `None` where that is a division by zero.
    pub fn gain(&self, baseline: Number, sidestep: Number) -> Option<Number> {
        match self.better {
            Better::Lower => baseline.over(sidestep),
            Better::Higher => sidestep.over(baseline),
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

    /// Whether ours agrees with one statement; `None` without a number of ours. Of a repeated point the median must lie within a
    /// value's tolerance; a bound is broken only if the whole interval lies beyond it.
    pub fn judge(&self, stated: &Stated) -> Option<Verdict> {
        let median = self.spread.and_then(|spread| spread.of(stated.quantity));
        let ours = match (stated.expected, median) {
            (Expected::AtLeast(_), Some(median)) => median.high,
            (Expected::AtMost(_), Some(median)) => median.low,
            _ => self.quantity(stated.quantity)?,
        };
        Some(stated.judge(ours))
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
