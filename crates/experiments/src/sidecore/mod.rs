//! Sidecores: requests of virtual machines served by a core that is already in the monitor, against leaving the guest.
//!
//! Source: S. Kumar, H. Raj, K. Schwan, I. Ganev, "Re-architecting VMMs for Multicore Systems: The Sidecore Approach".
//! All experiments but `host`, `dynamic-host` and `syscalls`, which measure this machine, run the guests of
//! `guests/ia64/sidecore` in IA-64 virtual machines on modelled hosts; what transitions cost is one table, an input, of
//! which no entry comes from the paper's results.

mod calls;
mod dynamic;
mod dynamic_host;
mod host;
mod interrupts;
mod isolation;
mod lmbench;
mod network;
pub mod own_service;
mod pollution;
mod receive;
mod setup;
mod syscalls;
mod table;
mod unmap;
mod updates;

use sidestep_lab::{Experiment, PointError};

/// The experiments of this area.
pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &calls::Calls,
    &lmbench::Lmbench,
    &unmap::Unmap,
    &pollution::Pollution,
    &updates::Updates,
    &dynamic::Dynamic,
    &interrupts::Interrupts,
    &receive::Receive,
    &isolation::Isolation,
    &host::Host,
    &dynamic_host::DynamicHost,
    &syscalls::Syscalls,
];

/// A point that this machine cannot measure, with the cause.
fn unavailable(error: impl std::error::Error) -> PointError {
    let cause = error.source().map(|cause| format!(": {cause}"));
    PointError::Unavailable(format!("{error}{}", cause.unwrap_or_default()))
}
