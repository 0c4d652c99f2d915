//! What each instruction costs on an Itanium 2: a model of the pipeline that consumes retired instructions.
//!
//! The model is apart from function: [`Pipeline`] observes a [`Processor`](sidestep_ia64::Processor), owns no
//! architectural state, and never changes a result. It knows the order in which instructions retired, the
//! addresses they referenced and where branches went, and computes in which cycle each of them issued.
//!
//! - [`parameters`]: latencies, caches, penalties, each with its source; the presets.
//! - [`dispersal`]: ports and split issue; [`rules`]: latencies between pairs of instructions (Tables 4 and 5).
//! - [`classes`]: ports and latencies by class of instructions; [`instruction`]: what is known of one before it runs;
//!   [`scoreboard`]: when registers are ready.
//! - [`memory`]: caches and translation buffers; [`branches`]: branch prediction; [`queues`]: stores and system
//!   registers on their way.
//! - [`pipeline`]: puts these together, cycle by cycle.
//! - [`event`], [`sums`], [`stall`], [`counters`]: what is counted, under its documented names; the tree of bubbles.
//! - [`monitor`], [`captures`], [`tagging`]: the performance monitor as guest code programs it; [`profile`]: cycles by
//!   place.
//! - [`single`]: single events and which are wanted; [`selection`], [`sampling`]: samples for the host.
//!
//! ```text
//!   retired instruction ─► fetch ─► dispersal ─► waits: operands, rules, queues ─► issue group ─► counters, profile
//! ```

pub mod branches;
pub mod captures;
pub mod classes;
pub mod counters;
pub mod dispersal;
pub mod event;
pub mod instruction;
pub mod memory;
pub mod monitor;
pub mod names;
pub mod parameters;
pub mod pipeline;
pub mod profile;
pub mod queues;
pub mod rules;
pub mod sampling;
pub mod scoreboard;
pub mod selection;
pub mod single;
pub mod stall;
pub mod sums;
pub mod tagging;

pub use counters::Counters;
pub use event::Event;
pub use parameters::Parameters;
pub use pipeline::Pipeline;
pub use profile::{Group, Profile};
pub use sampling::{Pace, Sampler};
pub use selection::Selection;
pub use stall::Stall;
