//! What each instruction costs on an Itanium 2: a model of the pipeline that consumes retired instructions.
//!
//! The model is apart from function: [`Pipeline`] observes a [`Processor`](sidestep_ia64::Processor), owns no
//! architectural state, and never changes a result. It knows the order in which instructions retired, the
//! addresses they referenced and where branches went, and computes in which cycle each of them issued.
//!
//! - [`parameters`]: latencies, caches, penalties, each with its source; the presets; [`knowledge`]: what others
//!   believe.
//! - [`dispersal`]: ports and split issue; [`rules`]: latencies between pairs of instructions (Tables 4 and 5).
//! - [`classes`]: ports and latencies by class of instructions, and [`flags`] for what else they do; [`operations`]:
//!   which operation has which; [`instruction`]: what is known of one before it runs; [`scoreboard`]: when registers
//!   are ready.
//! - [`memory`]: caches and translation buffers; [`branches`]: branch prediction; [`queues`]: stores and system
//!   registers on their way.
//! - [`pipeline`]: puts these together, cycle by cycle.
//! - [`pmu`]: what is counted and sampled, by the host and by guest code; [`profile`]: cycles by place.
//!
//! ```text
//!   retired instruction ─► fetch ─► dispersal ─► waits: operands, rules, queues ─► issue group ─► counters, profile
//! ```
//!
#![doc = include_str!("../README.md")]

pub mod branches;
mod cache;
pub mod classes;
pub mod dispersal;
pub mod flags;
pub mod instruction;
pub mod knowledge;
pub mod memory;
pub mod names;
pub mod operations;
pub mod parameters;
pub mod pipeline;
pub mod pmu;
pub mod profile;
pub mod queues;
mod recency;
pub mod rules;
pub mod scoreboard;

pub use parameters::Parameters;
pub use pipeline::{Booking, ISSUED_MAX, Pipeline};
pub use pmu::counters::Counters;
pub use pmu::event::Event;
pub use pmu::sampling::{Pace, Sampler};
pub use pmu::selection::Selection;
pub use pmu::stall::Stall;
pub use profile::{Group, Profile};
