//! Itanium: what page table formats, system calls, signals and message passing cost a kernel.
//!
//! Source: C. Gray, M. Chapman, P. Chubb, D. Mosberger-Tang, G. Heiser, "Itanium: A System Implementor's Tale". The
//! experiments run a real kernel (`guests/ia64/kernel`) in system mode.

pub mod kernel;
mod vhpt;

use crate::experiment::Experiment;

/// The experiments of this area.
pub const EXPERIMENTS: &[&dyn Experiment] = &[&vhpt::PageTables];
