//! Zero-wait threads: they run to completion once started, start by *continuation*, and never wait.
//!
//! The model is that of CEFOS (Kusakabe, Taniguchi, Amamiya: "A Study of a Continuation-based Fine-grain
//! Multithreaded Operating System CEFOS", sections 1, 2 and 4), on ordinary processors instead of a chip made
//! for it:
//!
//! * A [thread](Graph::declare) starts when somebody continues to it, with data, or when the synchronisation
//!   counter of a [join](Graph::declare_join) reaches zero. It runs to its end and continues to others on the
//!   way.
//! * It continues only along [edges](Graph::edge) that were drawn when the program was built, and that the
//!   threads' [modes](Mode) permit.
//! * A [gate](Graph::declare_gate) is a thread that never runs twice at once. Who finds it taken tries again
//!   (lock-or-retry) or waits in its software queue; a full queue pushes back.
//! * An event from a [device] is a continuation, never an interrupt.
//!
//! A [`Program`] runs unchanged on [pinned cores](cores) in real time and in [deterministic virtual
//! time](virtual_time).
//!
//! Limits: a continuation carries four words; every queue is bounded and says so when it is full; a thread
//! that loops for ever blocks its core, because nothing interrupts it.
//!
#![doc = include_str!("../README.md")]

mod attributes;
mod continuation;
pub mod cores;
pub mod device;
mod gate;
mod graph;
mod handle;
mod histogram;
mod join;
mod mode;
mod payload;
mod program;
mod pushback;
mod queue;
mod report;
mod sync;
mod time;
pub mod virtual_time;

pub use attributes::{Attributes, Phase};
pub use gate::{OnPanic, Policy};
pub use graph::{Graph, GraphError};
pub use handle::{Edge, Entry, Gate, Join, JoinEdge, Origin, Port, Release, Shared, Thread};
pub use histogram::Histogram;
pub use join::{Activation, Bring};
pub use mode::Mode;
pub use payload::{Payload, WORDS, Words};
pub use program::Program;
pub use program::context::Context;
pub use pushback::{Pushback, Reason};
pub use report::{CoreReport, GateReport, JoinReport, Left, PanicReport, Report, ThreadReport};
pub use time::Time;

/// The parts whose protocols the model checker explores; not for use.
#[doc(hidden)]
pub mod model {
    pub use crate::gate::{Entered, GateLock};
    pub use crate::join::JoinTable;
    pub use crate::queue::{Bounded, FreeList};
}
