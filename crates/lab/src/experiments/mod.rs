//! The experiments that ship, one folder for each area and one file for each experiment.

use crate::experiment::Experiment;

/// The areas: a folder each, with the table of its experiments.
const AREAS: &[&[&dyn Experiment]] = &[];

/// Every experiment, area by area.
pub fn all() -> Vec<&'static dyn Experiment> {
    AREAS.concat()
}
