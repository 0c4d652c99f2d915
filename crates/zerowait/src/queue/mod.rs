//! The queues of the runtime, all of fixed capacity and allocated once.
//!
//! * [`Bounded`]: any core pushes, any core pops, without locks: a core's inbox and a gate's software queue.
//! * [`FreeList`]: which activations and buffers are free.
//! * [`Local`]: one core's own continuations, without atomics: the hot path.

mod bounded;
mod free;
mod local;

pub use bounded::Bounded;
pub use free::FreeList;
pub(crate) use local::Local;
