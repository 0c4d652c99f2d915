//! CEFOS on FUCE: what a processor buys whose hardware schedules zero-wait threads, and where it needs help.
//!
//! Source: S. Kusakabe, H. Taniguchi, M. Amamiya, "A Study of a Continuation-based Fine-grain Multithreaded Operating
//! System CEFOS". All three experiments run real guest programs (`guests/cefos`) on the cycle-level model of the chip;
//! a clock of the paper's 1 GHz chip is a nanosecond.

mod gates;
mod growth;
mod guests;
mod laws;
mod livelock;
mod machine;
mod scaling;
mod workload;

use sidestep_lab::Experiment;

/// The experiments of this area.
pub const EXPERIMENTS: &[&dyn Experiment] = &[&scaling::Scaling, &gates::Gates, &livelock::Livelock];
