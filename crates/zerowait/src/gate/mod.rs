//! Gates: threads that never run twice at the same time.
//!
//! A gate is a thread together with its lock (figure 3 of the CEFOS paper). Whoever wants to continue to it
//! enters: if the lock is free, it is taken and the gate's thread starts. If not, the gate's [`Policy`]
//! decides: the caller is refused and continues to itself (lock-or-retry), or its entry waits in the gate's
//! software queue. As a gate's body never runs twice at once it may own mutable state.

mod lock;

pub use lock::{Entered, GateLock};

/// What a gate does with an entry that comes while it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Refuses it; the caller is expected to continue to itself and try again.
    LockOrRetry,
    /// Lets it wait in a software queue of this capacity; refuses it when that is full.
    Queue {
        /// How many entries may wait.
        capacity: usize,
    },
}

/// What becomes of a gate whose body panicked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPanic {
    /// The gate's state is not to be trusted: every later entry is refused, and what waited is reported at
    /// shutdown.
    #[default]
    Poison,
    /// The gate goes on with the next entry.
    Resume,
}
