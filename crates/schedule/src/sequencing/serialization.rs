//! Serialisation: what system instructions write is not seen by every reader before `srlz.d` or `srlz.i` (manual,
//! volume 2, section 3.2; volume 3, table 5-2, the rows of classes *data* and *instr*).
//!
//! A write has a part that is [deferred](Effects::deferred), and a reader one that it sees [at
//! once](Effects::at_once), behind a stop alone: mostly what it names itself.

use sidestep_ia64::encoding::Side;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control::{DCR, IVA, PTA};

use super::{Effects, Parts, State};

/// Bits of PSR whose changes by `ssm`, `rsm` and `mov psr.l` wait for serialisation.
pub(super) const STATUS: u64 = psr::BE
    | psr::AC
    | psr::IC
    | psr::PK
    | psr::DT
    | psr::DFL
    | psr::DFH
    | psr::SP
    | psr::SI
    | psr::DB
    | psr::LP
    | psr::TB
    | psr::RT;

/// Translations of both kinds.
pub(super) const TRANSLATIONS: State = State::DATA_TRANSLATION.union(State::INSTRUCTION_TRANSLATION);

/// What instruction serialisation alone makes visible.
const OF_INSTRUCTIONS: Parts = Parts {
    control: 1 << IVA,
    state: State::INSTRUCTION_TRANSLATION,
    ..Parts::NONE
};

/// What of all that can be deferred only system instructions read.
const OF_SYSTEM_INSTRUCTIONS: Parts = Parts {
    control: !(1 << PTA | 1 << DCR),
    status: psr::IC | psr::SI | psr::SP,
    state: State::IN_SERVICE,
    ..Parts::NONE
};

impl Effects {
    /// What a later instruction reads of what this one wrote, and sees behind serialisation alone.
    pub fn unserialized(&self, later: &Effects) -> Parts {
        self.deferred.and(later.reads).without(later.at_once)
    }

    /// Whether it reads something that waits for serialisation and that ordinary instructions do not read.
    pub fn reads_system_state(&self) -> bool {
        !self
            .reads
            .without(self.at_once)
            .and(OF_SYSTEM_INSTRUCTIONS)
            .is_empty()
    }
}

/// The serialisation that makes a part visible: of both the one that does more.
pub fn needed(parts: Parts) -> Side {
    match parts.and(OF_INSTRUCTIONS).is_empty() {
        true => Side::Data,
        false => Side::Instruction,
    }
}

/// What of a set is still deferred behind data serialisation.
pub fn behind_data(parts: Parts) -> Parts {
    parts.and(OF_INSTRUCTIONS)
}

/// Whether ordinary instructions may read a part of a set.
pub fn is_ordinary(parts: Parts) -> bool {
    !parts.without(OF_SYSTEM_INSTRUCTIONS).is_empty()
}
