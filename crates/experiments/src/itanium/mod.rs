//! Itanium: what page table formats, system calls, signals and message passing cost a kernel.
//!
//! Source: C. Gray, M. Chapman, P. Chubb, D. Mosberger-Tang, G. Heiser, "Itanium: A System Implementor's Tale". The
//! experiments run a real kernel (`guests/ia64/kernel`) in system mode.

pub mod core_file;
mod ipc;
pub mod kernel;
mod latency;
pub mod path;
mod signal;
mod syscall;
pub mod timed;
mod vhpt;

use sidestep_lab::Experiment;

/// The experiments of this area.
pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &vhpt::PageTables,
    &latency::Latencies,
    &syscall::SystemCalls,
    &signal::Signals,
    &ipc::Messages,
];
