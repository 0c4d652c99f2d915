//! What the operation of an instruction alone says of its dependencies.

use sidestep_ia64::encoding::*;

use super::{Effects, Kind, Memory, State};

/// What decides about the dependencies of an instruction that need no stop.
pub(super) fn kind(instruction: &Instruction) -> Kind {
    use Operation as O;
    match instruction.operation {
        O::Return => Kind::Return,
        O::Branch { kind, .. } => match kind {
            BranchKind::Conditional | BranchKind::CountedLoop => Kind::Branch,
            _ => Kind::Rotate,
        },
        O::Call { .. } => Kind::Branch,
        O::Break | O::Nop | O::Hint if instruction.unit_class() == UnitClass::B => Kind::Branch,
        O::Allocate => Kind::Allocate,
        O::PurgeTranslationCache {
            scope: PurgeScope::Global | PurgeScope::GlobalAlat,
        } => Kind::GlobalPurge,
        O::PurgeTranslationCache { .. }
        | O::PurgeTranslationCacheEntry
        | O::PurgeTranslationRegister { .. } => Kind::Purge,
        O::MoveToBranch => Kind::MoveToBranch,
        _ if matches!(
            load_kind(instruction),
            Some(LoadKind::CheckKeep | LoadKind::CheckClear | LoadKind::CheckClearAcquire)
        ) =>
        {
            Kind::CheckLoad
        }
        O::MoveToApplication { .. } => Kind::MoveToApplication,
        O::FloatCompare { .. }
        | O::FloatClass { .. }
        | O::FloatReciprocalApproximation { .. }
        | O::FloatReciprocalSquareRootApproximation { .. }
        | O::ParallelFloatReciprocalApproximation { .. }
        | O::ParallelFloatReciprocalSquareRootApproximation { .. } => Kind::FloatPredicate,
        O::Compare { update, .. }
        | O::TestBit { update, .. }
        | O::TestNat { update, .. }
        | O::TestFeature { update, .. }
            if update == PredicateUpdate::OrAndComplement =>
        {
            Kind::Complement
        }
        _ => Kind::Other,
    }
}

/// Whether control may go elsewhere behind the instruction.
pub(super) fn is_transfer(instruction: &Instruction) -> bool {
    use Operation as O;
    matches!(
        instruction.operation,
        O::Branch { .. }
            | O::Call { .. }
            | O::Return
            | O::CheckSpeculative
            | O::CheckSpeculativeFloat
            | O::CheckAdvanced { .. }
            | O::CheckAdvancedFloat { .. }
            | O::FloatCheckFlags { .. }
    )
}

/// How an instruction refers to memory.
pub(super) fn memory(instruction: &Instruction) -> Memory {
    use Operation as O;
    let reads = |acquires| Memory {
        reads: true,
        acquires,
        ..Memory::default()
    };
    let writes = |releases| Memory {
        writes: true,
        releases,
        ..Memory::default()
    };
    let both = |ordering: Ordering| Memory {
        reads: true,
        writes: true,
        acquires: ordering == Ordering::Acquire,
        releases: ordering == Ordering::Release,
    };
    match instruction.operation {
        O::Load { kind, .. } => reads(matches!(kind, LoadKind::Acquire | LoadKind::CheckClearAcquire)),
        O::LoadSixteen { ordering } => reads(ordering == Ordering::Acquire),
        O::LoadFloat { .. } | O::LoadFloatPair { .. } => reads(false),
        O::Store { kind, .. } => writes(kind == StoreKind::Release),
        O::StoreSixteen { ordering } => writes(ordering == Ordering::Release),
        O::StoreFloat { .. } => writes(false),
        O::CompareExchange { ordering, .. }
        | O::CompareExchangeSixteen { ordering }
        | O::FetchAdd { ordering, .. } => both(ordering),
        O::Exchange { .. } => both(Ordering::Acquire),
        O::MemoryFence | O::MemoryFenceAcceptance => Memory {
            acquires: true,
            releases: true,
            ..Memory::default()
        },
        // They act on what was stored, and on what is stored next.
        O::FlushCache { .. } => Memory {
            writes: true,
            ..Memory::default()
        },
        // The register stack goes to memory, which others may look at.
        O::FlushRegisterStack => writes(false),
        O::LoadRegisterStack => reads(false),
        _ => Memory::default(),
    }
}

/// Whether a load is control speculative.
pub(super) fn is_speculative(instruction: &Instruction) -> bool {
    matches!(
        load_kind(instruction),
        Some(LoadKind::Speculative | LoadKind::SpeculativeAdvanced)
    )
}

/// Whether a load makes, uses or removes an entry of the ALAT.
pub(super) fn is_advanced(instruction: &Instruction) -> bool {
    load_kind(instruction).is_some_and(|kind| {
        matches!(
            kind,
            LoadKind::Advanced
                | LoadKind::SpeculativeAdvanced
                | LoadKind::CheckKeep
                | LoadKind::CheckClear
                | LoadKind::CheckClearAcquire
        )
    })
}

/// What kind of load the instruction is.
pub(super) fn load_kind(instruction: &Instruction) -> Option<LoadKind> {
    match instruction.operation {
        Operation::Load { kind, .. }
        | Operation::LoadFloat { kind, .. }
        | Operation::LoadFloatPair { kind, .. } => Some(kind),
        _ => None,
    }
}

/// Whether the instruction writes a predicate and its complement, and then whether also when its own is off.
pub fn complements(instruction: &Instruction) -> Option<bool> {
    match instruction.operation {
        Operation::Compare { update, .. }
        | Operation::TestBit { update, .. }
        | Operation::TestNat { update, .. } => match update {
            PredicateUpdate::Normal => Some(false),
            PredicateUpdate::Unconditional => Some(true),
            PredicateUpdate::And | PredicateUpdate::Or | PredicateUpdate::OrAndComplement => None,
        },
        Operation::FloatCompare { unconditional, .. } | Operation::FloatClass { unconditional, .. } => {
            Some(unconditional)
        }
        _ => None,
    }
}

/// Whether the instruction writes something although its predicate is off.
pub fn writes_always(instruction: &Instruction) -> bool {
    match instruction.operation {
        Operation::FloatReciprocalApproximation { .. }
        | Operation::FloatReciprocalSquareRootApproximation { .. }
        | Operation::ParallelFloatReciprocalApproximation { .. }
        | Operation::ParallelFloatReciprocalSquareRootApproximation { .. } => true,
        _ => complements(instruction) == Some(true),
    }
}

impl Effects {
    /// The effects of the instruction when its qualifying predicate is off: it reads that, and a few write although it
    /// is; loop branches go by it and do their work in any case.
    pub fn when_off(&self, instruction: &Instruction) -> Effects {
        if instruction.predicate() == 0 || self.kind == Kind::Rotate {
            return *self;
        }
        let mut off = Effects {
            qualifier: self.qualifier,
            kind: self.kind,
            ..Effects::default()
        };
        off.reads.predicate = 1 << self.qualifier;
        if writes_always(instruction) {
            off.writes.predicate = self.writes.predicate;
        }
        if (off.reads.predicate | off.writes.predicate) >> 16 != 0 {
            off.reads.state = State::FRAME;
        }
        off
    }
}
