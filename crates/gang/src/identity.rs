//! The numbers that name tasks, programs and cores: one type each, all dense indices from zero.

use serde::{Deserialize, Serialize};

macro_rules! index {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index into a vector.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The name of the entry at `index`.
            ///
            /// # Panics
            /// When the index is beyond 32 bits.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("an index within 32 bits"))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

index! {
    /// A schedulable unit: a vCPU, or a thread of a program.
    TaskId
}
index! {
    /// A virtual machine or a process: the owner of some tasks.
    ProgramId
}
index! {
    /// A core of the host (one hardware thread where cores are multithreaded).
    CoreId
}
