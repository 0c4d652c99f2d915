//! Translations: lookups, insertions and purges.

use sidestep_ia64::encoding::PurgeScope;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control::{IFA, ITIR, PTA};

use super::serialization::TRANSLATIONS;
use super::{Effects, Kind, Position, State};

impl Effects {
    /// What is translated as references are, and is none: `probe`, `tpa`, `tak`, `lfetch` and `fc`.
    pub(super) fn add_lookup(&mut self) {
        self.reads.status |= psr::CPL | psr::DT | psr::PK | psr::DB;
        self.reads.state |= State::ADDRESSING;
        self.reads.control |= 1 << PTA;
    }

    /// `itc` and `itr`.
    pub(super) fn add_insertion(&mut self) {
        self.reads.status |= psr::CPL | psr::IC;
        self.reads.state |= State::REGION | State::PROTECTION_KEY;
        self.reads.state |= TRANSLATIONS;
        self.add_late_translation();
        self.at_once.control = 1 << IFA | 1 << ITIR;
    }

    /// `ptc` and `ptr`.
    pub(super) fn add_purge(&mut self) {
        self.kind = Kind::Purge;
        self.reads.status |= psr::CPL;
        self.reads.state |= State::REGION;
        self.add_late_translation();
    }

    /// Translations change behind serialisation alone.
    fn add_late_translation(&mut self) {
        self.writes.state |= TRANSLATIONS;
        self.pending.state = TRANSLATIONS;
        self.deferred.state = TRANSLATIONS;
        self.at_once.state = TRANSLATIONS;
    }

    /// Which processors a purge is for.
    pub(super) fn add_purge_scope(&mut self, scope: PurgeScope) {
        match scope {
            PurgeScope::Local => {}
            PurgeScope::Global => self.add_global_purge(),
            PurgeScope::GlobalAlat => {
                self.add_global_purge();
                self.writes.state |= State::ALAT;
                self.pending.state |= State::ALAT;
            }
        }
    }

    fn add_global_purge(&mut self) {
        self.kind = Kind::GlobalPurge;
        self.position = Some(Position::Last);
    }
}
