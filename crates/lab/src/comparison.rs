//! The outcome of an experiment: a row for each point, and the findings.

use crate::about::About;
use crate::input::{Input, Inputs};
use crate::paper::{Finding, Verdict};
use crate::point::PointError;
use crate::row::Row;

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
