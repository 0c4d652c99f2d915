//! What an instruction does with memory at the address in its r3: the column *memory* of the table of operations.

use super::completers::*;
use super::instruction::Instruction;
use super::operation::Operation;
use crate::operations::operations;

/// What a reference does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAccessKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes at once: semaphores.
    Exchange,
    /// Only asks for a line: `lfetch`.
    Prefetch,
    /// Only writes a line back: `fc`.
    Flush,
}

/// A reference to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryAccess {
    /// What it does.
    pub kind: MemoryAccessKind,
    /// How many bytes it reads or writes: 1 to 16; 0 for lines.
    pub bytes: u8,
    /// How it changes its base register afterwards.
    pub update: BaseUpdate,
}

impl MemoryAccess {
    /// Whether it brings data to a register.
    pub fn reads(&self) -> bool {
        match self.kind {
            MemoryAccessKind::Read | MemoryAccessKind::Exchange => true,
            MemoryAccessKind::Write | MemoryAccessKind::Prefetch | MemoryAccessKind::Flush => false,
        }
    }

    /// Whether it changes memory.
    pub fn writes(&self) -> bool {
        match self.kind {
            MemoryAccessKind::Write | MemoryAccessKind::Exchange => true,
            MemoryAccessKind::Read | MemoryAccessKind::Prefetch | MemoryAccessKind::Flush => false,
        }
    }
}

const NONE: Option<MemoryAccess> = None;
const FLUSHES: Option<MemoryAccess> = access(MemoryAccessKind::Flush, 0, BaseUpdate::None);

const fn access(kind: MemoryAccessKind, bytes: u32, update: BaseUpdate) -> Option<MemoryAccess> {
    let bytes = bytes as u8;
    Some(MemoryAccess { kind, bytes, update })
}

const fn reads(bytes: u32, update: BaseUpdate) -> Option<MemoryAccess> {
    access(MemoryAccessKind::Read, bytes, update)
}

const fn writes(bytes: u32, update: BaseUpdate) -> Option<MemoryAccess> {
    access(MemoryAccessKind::Write, bytes, update)
}

const fn exchanges(bytes: u32) -> Option<MemoryAccess> {
    access(MemoryAccessKind::Exchange, bytes, BaseUpdate::None)
}

const fn prefetches(update: BaseUpdate) -> Option<MemoryAccess> {
    access(MemoryAccessKind::Prefetch, 0, update)
}

macro_rules! memory_column {
    ($instruction:ident; $(
        $(#[$comment:meta])*
        $name:ident $({ $($completer:ident: $kind:ty = $about:literal,)+ })?
            => $memory:expr, $effects:expr, $implicit:expr, $handler:expr;
    )+) => {
        impl Operation {
            /// What the operation does with memory at the address in `r3`; `None` for nothing.
            #[allow(unused_variables, reason = "most completers do not decide it")]
            pub const fn memory_access(&self) -> Option<MemoryAccess> {
                match *self {
                    $(Operation::$name $({ $($completer),+ })? => $memory,)+
                }
            }
        }
    };
}

operations!(memory_column);

impl Instruction {
    /// How the instruction changes its base register.
    pub fn base_update(&self) -> BaseUpdate {
        let access = self.operation.memory_access();
        access.map_or(BaseUpdate::None, |access| access.update)
    }
}
