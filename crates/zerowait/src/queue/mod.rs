//! The two queues of the runtime, both of fixed capacity and allocated once.
//!
//! * [`Bounded`]: any core pushes, any core pops, without locks: a core's inbox and a gate's software queue.
//! * [`Local`]: one core's own continuations, without atomics: the hot path.

mod bounded;
mod local;

pub use bounded::Bounded;
pub(crate) use local::Local;
