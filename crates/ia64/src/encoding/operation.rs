//! What an instruction does: one variant per operation of the architecture.
//!
//! A variant carries the completers that change the result. Registers and immediates are not part of an
//! operation: they are read from the [`Instruction`](super::Instruction) at the fields the variant's comment
//! names (`r1`, `f2`, `p1`, `immediate`, ...). Sections follow the units of the manual, volume 3, chapter 4.
//! The rows are in `operations`.

use super::completers::*;
use crate::operations::operations;

macro_rules! variants {
    ($instruction:ident; $(
        $(#[$comment:meta])*
        $name:ident $({ $($completer:ident: $kind:ty = $about:literal,)+ })?
            => $memory:expr, $effects:expr, $implicit:expr, $handler:expr;
    )+) => {
        /// One operation of the architecture with its semantic completers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operation {
            $($(#[$comment])* $name $({ $(#[doc = $about] $completer: $kind,)+ })?,)+
        }

        /// An [`Operation`] without its completers: what tables are indexed by.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Opcode {
            $($(#[$comment])* $name,)+
        }

        impl Opcode {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$name,)+];
        }

        impl Operation {
            /// Which operation it is, whatever its completers are.
            #[inline]
            pub const fn opcode(&self) -> Opcode {
                match self {
                    $(Operation::$name { .. } => Opcode::$name,)+
                }
            }
        }
    };
}

operations!(variants);
