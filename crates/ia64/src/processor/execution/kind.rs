//! Which kind of blocks a run needs: a processor keeps those of several kinds beside each other.

use std::any::TypeId;

use super::backend::Backend;
use super::observer::Observer;

/// What a block holds of the instructions in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Detail {
    /// Only instructions that do something.
    #[default]
    Effects,
    /// Every instruction, `nop`s included, for an observer.
    Everything,
}

/// What decides whether a block that was decoded for one run serves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    code: TypeId,
    known: TypeId,
    pub detail: Detail,
    version: u64,
}

impl Kind {
    /// The kind of blocks that a back end and an observer need.
    pub(crate) fn of<B: Backend, O: Observer>(observer: &O) -> Kind {
        Kind {
            code: TypeId::of::<B::Code>(),
            known: TypeId::of::<O::Static>(),
            detail: O::DETAIL,
            version: observer.version(),
        }
    }
}
