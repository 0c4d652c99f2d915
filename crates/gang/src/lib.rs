//! Who runs together: from memory accesses to coscheduled sets, and from sets to who has which core.
//!
//! The pipeline follows Busse et al., "Partial Coscheduling of Virtual Machines Based on Memory Access Patterns":
//!
//! 1. [`detection`] turns accesses (task, region, time) into communication events;
//! 2. [`matrix`] counts the events of each pair of tasks;
//!    ([`amount`] estimates how much each pair shares);
//! 3. [`tree`] joins the tasks pair by pair into a dependency tree (equation 1 of the paper);
//! 4. [`sets`] cuts the tree into sets of tasks that should run together, with the paper's factor or without one;
//! 5. [`policy`] decides, for a moment in time, which runnable task has which core of a [`topology`];
//! 6. [`simulation`] runs made-up parallel programs under a policy in virtual time.
//!
//! What finding out may cost is a [`budget`].
//!
//! Rules: no clock, no thread, no floating point, no hash order; time is an argument in nanoseconds. The crate knows
//! nothing about any operating system: a task may be a vCPU of a simulated machine or a thread of a real host.
//!
#![doc = include_str!("../README.md")]

pub mod amount;
pub mod budget;
mod chance;
pub mod detection;
pub mod identity;
pub mod matrix;
pub mod policy;
pub mod ratio;
pub mod scatter;
pub mod sets;
pub mod simulation;
pub mod topology;
pub mod tree;

pub use amount::{Amounts, Touched};
pub use budget::{Budget, Savings};
pub use detection::{Detector, DetectorSettings};
pub use identity::{CoreId, ProgramId, TaskId};
pub use matrix::SharingMatrix;
pub use ratio::Ratio;
pub use sets::{CoscheduledSets, Selection};
pub use topology::Topology;
pub use tree::{DependencyTree, Pairing};
