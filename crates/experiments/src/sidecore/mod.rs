//! Sidecores: requests of virtual machines served by a core that is already in the monitor, against leaving the guest.
//!
//! Source: S. Kumar, H. Raj, K. Schwan, I. Ganev, "Re-architecting VMMs for Multicore Systems: The Sidecore Approach".
//! All experiments run one guest (`guests/ia64/sidecore`) in IA-64 virtual machines on a modelled host; what
//! transitions cost is one table, an input, of which no entry comes from the paper's results.

mod calls;
mod dynamic;
mod lmbench;
mod setup;
mod unmap;

use sidestep_lab::Experiment;

/// The experiments of this area.
pub const EXPERIMENTS: &[&dyn Experiment] =
    &[&calls::Calls, &lmbench::Lmbench, &unmap::Unmap, &dynamic::Dynamic];
