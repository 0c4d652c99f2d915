//! The native part of the Python package `sidestep`: a thin layer on the crates below, which decides nothing.
//!
//! - `attention`: what Python wants while something runs: Ctrl-C, progress. `errors`: one exception.
//! - `experiments`: studies, plans and comparisons; `own`: experiments that are written in Python;
//!   `policies`: scheduling policies that are; `services`: services of sidecores that are.
//! - `programs`: Linux programs, in a process of their own; `machines`: machines, with `callbacks`; `hosts`:
//!   hosts with virtual machines.
//!
//! What is shown to people of Python is the package around it, `sidestep/`; the types of what is here are in
//! `sidestep/_native.pyi`.

#![cfg(feature = "package")]

mod attention;
mod callbacks;
mod errors;
mod experiments;
mod hosts;
mod machines;
mod own;
mod policies;
mod programs;
mod services;

use pyo3::prelude::*;

/// What the package is made of.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<errors::Error>())?;
    module.add("VERSION", sidestep_experiments::VERSION)?;
    experiments::fill(module)?;
    programs::fill(module)?;
    machines::fill(module)?;
    hosts::fill(module)
}
