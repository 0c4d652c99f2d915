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

use crate::about::About;
use crate::figure::Figure;
use crate::input::{Assumption, Input, Inputs};
use crate::measurement::Measurement;
use crate::paper::{Finding, Stated};
use crate::point::{Context, Point, PointError};
use crate::row::Row;

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

    /// The inputs whose values are assumed, with the others that a sensitivity analysis tries, numbers from their
    /// `factor`th part to their `factor`fold. An experiment whose inputs stand for tables adds the tables' entries.
    /// Errors are those of [`Experiment::points`].
    fn assumptions(&self, inputs: &Inputs, factor: u32) -> Result<Vec<Assumption>, String> {
        let of = |input: &Input| input.assumption(inputs.value(input.key), factor);
        Ok(self.inputs().iter().filter_map(of).collect())
    }

    /// The charts of its report.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }
}
