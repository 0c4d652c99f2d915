//! Zero-wait threads on real cores: what a continuation costs, what an I/O service gains, what a gate's queue
//! spares.
//!
//! Measured on this host, both sides of a point in turns within one run. What is compared is time that the
//! processor spent on the work, not the time of day, wherever other programs may want the processor too.

mod gates;
mod io;
mod stopwatch;

pub(crate) use stopwatch::processor_ns;
mod tasks;

use sidestep_lab::Experiment;

/// The experiments of this area.
pub const EXPERIMENTS: &[&dyn Experiment] = &[&tasks::Tasks, &io::Io, &gates::Gates];
