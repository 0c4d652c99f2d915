//! The experiments that ship, one folder for each area and one file for each experiment.
//!
#![doc = include_str!("../README.md")]

mod cefos;
pub mod gang;
mod hosts;
pub mod itanium;
pub mod papers;
pub mod sidecore;
mod zerowait;

use sidestep_lab::suggest::did_you_mean;
use sidestep_lab::suggest::nearest;
use sidestep_lab::{Experiment, PointError};

/// The areas: a folder each, with the table of its experiments.
const AREAS: &[&[&dyn Experiment]] = &[
    cefos::EXPERIMENTS,
    gang::EXPERIMENTS,
    itanium::EXPERIMENTS,
    sidecore::EXPERIMENTS,
    zerowait::EXPERIMENTS,
];

/// The version of what the experiments compute, `VERSION+SOURCES`: another whenever a source changes that has a part in
/// it. Two programs with the same version have the same points in virtual time.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("SIDESTEP_SOURCES"));

/// Any error as the failure of a point.
fn failed(error: impl std::fmt::Display) -> PointError {
    PointError::Failed(error.to_string())
}

/// No experiment has a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no experiment or area is called `{name}`{}; `sidestep list` names them", did_you_mean(.nearest))]
pub struct UnknownExperiment {
    /// The name as written.
    pub name: String,
    /// The nearest known name, if one is near.
    pub nearest: Option<String>,
}

/// The experiments of some names, each of an experiment or of an area; none twice.
pub fn find(names: &[String]) -> Result<Vec<&'static dyn Experiment>, UnknownExperiment> {
    let known: Vec<(&str, &'static dyn Experiment)> =
        all().into_iter().map(|each| (each.about().name, each)).collect();
    let area = |name: &'static str| name.split('.').next().unwrap_or(name);
    let mut found: Vec<(&str, &'static dyn Experiment)> = Vec::new();
    for name in names {
        let of_name: Vec<_> = (known.iter())
            .filter(|(each, _)| each == name || area(each) == name)
            .collect();
        if of_name.is_empty() {
            let candidates = known.iter().flat_map(|(each, _)| [*each, area(each)]);
            return Err(UnknownExperiment {
                name: name.clone(),
                nearest: nearest(name, candidates),
            });
        }
        for (each, experiment) in of_name {
            if !found.iter().any(|(already, _)| already == each) {
                found.push((each, *experiment));
            }
        }
    }
    Ok(found.into_iter().map(|(_, experiment)| experiment).collect())
}

/// Every experiment, area by area.
pub fn all() -> Vec<&'static dyn Experiment> {
    AREAS.concat()
}
