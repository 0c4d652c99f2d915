//! Serialisation: what system instructions write is not seen by every reader before `srlz.d` or `srlz.i` (manual,
//! volume 2, section 3.2; volume 3, table 5-2, the rows of classes *data* and *instr*).
//!
//! A write has a part that is [deferred](Effects::deferred), and a reader one that it sees [at
//! once](Effects::at_once), behind a stop alone: mostly what it names itself.

use sidestep_ia64::encoding::*;
use sidestep_ia64::registers::application::{ITC, RUC};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control::{DCR, EOI, IFA, ITIR, IVA, PTA};

use super::kinds::is_speculative;
use super::{Effects, Parts, State};

/// Bits of PSR whose changes by `ssm`, `rsm` and `mov psr.l` wait for serialisation.
const STATUS: u64 = psr::BE
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
const TRANSLATIONS: State = State::DATA_TRANSLATION.union(State::INSTRUCTION_TRANSLATION);

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
    /// What of its writes waits for serialisation.
    pub(super) fn add_deferred(&mut self, instruction: &Instruction) {
        use Operation as O;
        match instruction.operation {
            O::SetSystemMask | O::ResetSystemMask | O::MoveToPsrLower => {
                self.deferred.status = self.writes.status & STATUS;
            }
            O::MoveToControl => {
                self.deferred.control = self.writes.control & !(1 << EOI);
                self.deferred.state = self.writes.state & State::IN_SERVICE;
            }
            O::MoveToIndirect { file } => {
                self.deferred.state = match file {
                    IndirectFile::Region | IndirectFile::ProtectionKey | IndirectFile::DataBreakpoint => {
                        self.writes.state
                    }
                    IndirectFile::InstructionBreakpoint
                    | IndirectFile::MonitorConfiguration
                    | IndirectFile::MonitorData
                    | IndirectFile::ModelSpecific
                    | IndirectFile::ProcessorIdentification
                    | IndirectFile::DataAccessHint => State::empty(),
                };
            }
            O::InsertTranslationCache { .. }
            | O::InsertTranslationRegister { .. }
            | O::PurgeTranslationCache { .. }
            | O::PurgeTranslationCacheEntry
            | O::PurgeTranslationRegister { .. } => self.deferred.state = self.writes.state & TRANSLATIONS,
            _ => {}
        }
    }

    /// What it sees behind a stop alone.
    pub(super) fn add_at_once(&mut self, instruction: &Instruction) {
        use Operation as O;
        match instruction.operation {
            O::MoveFromPsr | O::MoveFromUserMask => self.at_once.status = !0,
            O::MoveFromIndirect { .. } | O::MoveToIndirect { .. } => {
                self.at_once.state = self.reads.state | self.writes.state;
            }
            O::InsertTranslationCache { .. } | O::InsertTranslationRegister { .. } => {
                self.at_once.control = 1 << IFA | 1 << ITIR;
                self.at_once.state = TRANSLATIONS;
            }
            O::PurgeTranslationCache { .. }
            | O::PurgeTranslationCacheEntry
            | O::PurgeTranslationRegister { .. } => self.at_once.state = TRANSLATIONS,
            // It serialises by itself.
            O::ReturnFromInterruption | O::Serialize { .. } => {
                self.at_once = Parts {
                    control: !0,
                    status: !0,
                    state: State::all(),
                    ..Parts::NONE
                };
            }
            // They are translated as references are, and are none.
            O::FlushCache { .. } => self.at_once.status = psr::BE | psr::AC,
            // What they refer to memory by is PSR.rt.
            O::FlushRegisterStack | O::LoadRegisterStack => {
                self.at_once.status = !psr::RT;
                self.at_once.state = State::ADDRESSING;
            }
            // The manual has the time counters alone.
            O::MoveFromApplication if !matches!(instruction.ar3(), ITC | RUC) => {
                self.at_once.status = psr::SI;
            }
            _ if is_speculative(instruction) => self.at_once.status = psr::IC | psr::IT,
            _ => {}
        }
    }

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
