//! What can be wrong with a graph.

use crate::mode::Mode;

/// Why a graph is not a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// The modes of the two threads forbid the continuation.
    #[error(
        "thread `{from}` ({from_mode} mode) may not continue to `{to}` ({to_mode} mode): \
         a user thread reaches the kernel through a kernel interface thread"
    )]
    Forbidden {
        /// Name of the continuing thread.
        from: String,
        /// Its mode.
        from_mode: Mode,
        /// Name of the target.
        to: String,
        /// Its mode.
        to_mode: Mode,
    },
    /// A gate's lock is shared memory, which partitions do not share.
    #[error(
        "thread `{from}` of partition {from_partition} cannot use gate `{gate}` of partition {gate_partition}: \
         continue to a thread of the gate's partition and enter there"
    )]
    GateInOtherPartition {
        /// Name of the thread.
        from: String,
        /// Its partition.
        from_partition: u16,
        /// Name of the gate.
        gate: String,
        /// Its partition.
        gate_partition: u16,
    },
    /// Two threads have one name.
    #[error("two threads are called `{name}`: reports tell threads apart by name")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A thread was declared and never defined.
    #[error("thread `{thread}` has no body: define it before building the program")]
    Undefined {
        /// Name of the thread.
        thread: String,
    },
    /// A thread was defined more than once.
    #[error("thread `{thread}` has two bodies: define it once")]
    DefinedTwice {
        /// Name of the thread.
        thread: String,
    },
    /// A gate's software queue has no room for a single entry.
    #[error(
        "gate `{gate}` has a queue of capacity 0: use the lock-or-retry policy for a gate without a queue"
    )]
    EmptyGateQueue {
        /// Name of the gate.
        gate: String,
    },
    /// A permanent activation would never start its thread.
    #[error("join `{join}` has a permanent activation with counter 0: it would never start")]
    ZeroCounter {
        /// Name of the join.
        join: String,
    },
}
