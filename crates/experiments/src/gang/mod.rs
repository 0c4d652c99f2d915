//! Coscheduling: who runs together, under which policy, and what that buys.
//!
//! After Busse et al., "Partial Coscheduling of Virtual Machines Based on Memory Access Patterns" (2015).

mod drawing;
mod groups;
mod host;
mod judged;
mod npb;
mod overhead;
mod policies;
mod scale;
pub mod scenario;
mod threshold;
mod watch;

use sidestep_lab::Experiment;

/// The experiments of this area.
pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &groups::Groups,
    &policies::Policies,
    &npb::Npb,
    &overhead::Overhead,
    &threshold::Threshold,
    &scale::Scale,
    &host::Host,
    &watch::Watch,
];

/// The paper.
const PAPER: &str = "Busse et al., Partial Coscheduling (2015)";
