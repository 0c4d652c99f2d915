//! References to memory, their order, and the ALAT.

use sidestep_ia64::encoding::*;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control::{DCR, PTA};

use super::{Effects, Kind, State};

impl Effects {
    /// What every reference is translated and checked by, and what every store removes.
    pub(super) fn add_reference(&mut self) {
        if self.memory.reads || self.memory.writes {
            self.reads.status |= psr::BE | psr::AC | psr::DT | psr::PK | psr::CPL | psr::DB | psr::VM;
            self.reads.state |= State::ADDRESSING;
            // The walker goes by it.
            self.reads.control |= 1 << PTA;
        }
        if self.memory.writes {
            self.raises.state |= State::ALAT;
        }
    }

    /// A read; `acquires` says whether what follows waits for it.
    pub(super) fn add_read(&mut self, acquires: bool) {
        self.memory.reads = true;
        self.memory.acquires = acquires;
    }

    /// A write; `releases` says whether it waits for what is before it.
    pub(super) fn add_write(&mut self, releases: bool) {
        self.memory.writes = true;
        self.memory.releases = releases;
    }

    /// A read and a write that nothing comes between.
    pub(super) fn add_semaphore(&mut self, ordering: Ordering) {
        self.add_read(ordering == Ordering::Acquire);
        self.add_write(ordering == Ordering::Release);
    }

    /// What waits for all before it, and all behind it for it.
    pub(super) fn add_fence(&mut self) {
        self.memory.acquires = true;
        self.memory.releases = true;
    }

    /// A load of a register or two.
    pub(super) fn add_load(&mut self, instruction: &Instruction, kind: LoadKind) {
        self.add_read(false);
        match kind {
            LoadKind::Normal | LoadKind::Bias | LoadKind::Fill => {}
            LoadKind::Acquire => self.memory.acquires = true,
            LoadKind::Speculative => self.add_speculation(),
            LoadKind::Advanced => self.add_alat_check(),
            LoadKind::SpeculativeAdvanced => {
                self.add_speculation();
                self.add_alat_check();
            }
            LoadKind::CheckKeep | LoadKind::CheckClear | LoadKind::CheckClearAcquire => {
                self.kind = Kind::CheckLoad;
                self.memory.acquires = kind == LoadKind::CheckClearAcquire;
                self.add_alat_check();
                if self.writes.float == 0 {
                    self.loaded = 1 << instruction.r1();
                }
            }
        }
    }

    /// What decides whether a speculative load faults or defers.
    fn add_speculation(&mut self) {
        self.reads.status |= psr::IC | psr::IT | psr::ED;
        self.reads.control |= 1 << DCR;
        self.at_once.status = psr::IC | psr::IT;
    }

    /// An entry of the ALAT, made or looked for.
    pub(super) fn add_alat_check(&mut self) {
        self.reads.state |= State::ALAT;
        self.writes.state |= State::ALAT;
    }

    /// `invala`.
    pub(super) fn add_alat_removal(&mut self) {
        self.writes.state |= State::ALAT;
    }

    /// The entry of a register goes by its name: a check must find the load's.
    pub(super) fn add_alat_name(&mut self, instruction: &Instruction) {
        if instruction.r1() >= 32 {
            self.reads.state |= State::FRAME;
        }
    }

    /// `fc`: it acts on what was stored, and on what is stored next.
    pub(super) fn add_flush(&mut self) {
        self.add_write(false);
        self.add_lookup();
        self.at_once.status = psr::BE | psr::AC;
    }
}
