//! Where a program or a machine meets a model of what it costs.
//!
//! - [`program`]: a Linux program with a pipeline for each of its threads; [`machine`]: a machine with one for each
//!   processor; [`host`]: a host whose cores have them.
//! - [`sampled_model`]: a program of which the pipeline sees samples, and an estimate of the whole.
//! - [`recording`]: what a run leaves in a file; [`annotate`] and [`samples`]: that by function, bundle and sample.
//! - [`groups`]: programs and machines whose instruction groups are watched.
//! - `translation`: a program whose hot code is translated (feature `translator`).
//! - [`debugger`]: a program under gdb.
//! - [`explain`]: a piece of code by itself. [`causes`]: errors in one line.
//!
#![doc = include_str!("../README.md")]

pub mod annotate;
pub mod causes;
pub mod debugger;
pub mod explain;
pub mod groups;
pub mod host;
pub mod machine;
pub mod processes;
pub mod program;
pub mod recording;
pub mod sampled_model;
pub mod samples;
mod shared;
#[cfg(feature = "translator")]
pub mod translation;
