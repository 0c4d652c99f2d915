//! Application, control and indirect registers, and the register stack.

use sidestep_ia64::encoding::*;
use sidestep_ia64::registers::application::{BSP, BSPSTORE, FPSR, ITC, RNAT, RSC, RUC};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control::{EOI, IHA, IPSR, IVR, TPR};

use super::{Effects, Kind, Position, State};

const STACK_POINTERS: u128 = 1 << BSP | 1 << BSPSTORE | 1 << RNAT;

impl Effects {
    /// The frame that stacked and rotating registers are found by.
    pub(super) fn add_frame(&mut self) {
        let touches_stacked = (self.reads.general | self.writes.general) >> 32 != 0
            || (self.reads.float | self.writes.float) >> 32 != 0
            || (self.reads.predicate | self.all_writes().predicate) >> 16 != 0;
        if touches_stacked {
            self.reads.state |= State::FRAME;
        }
    }

    /// `alloc`.
    pub(super) fn add_allocate(&mut self) {
        self.kind = Kind::Allocate;
        self.position = Some(Position::First);
        self.reads.status |= psr::CPL | psr::RT;
        self.reads.application |= 1 << RSC | STACK_POINTERS;
        self.raises.application |= STACK_POINTERS & !(1 << BSP);
        self.raises.state |= State::STACK;
    }

    /// What makes another frame the current one.
    pub(super) fn add_frame_change(&mut self) {
        self.reads.status |= psr::CPL;
        self.reads.application |= 1 << RSC;
        self.writes.application |= 1 << BSP;
        // Only where the register stack spills or fills.
        self.raises.application |= STACK_POINTERS & !(1 << BSP);
        self.writes.state |= State::STACK | State::FRAME;
    }

    /// `cover`, which leaves the frame marker in IFS while interruptions are collected.
    pub(super) fn add_cover(&mut self) {
        self.position = Some(Position::Last);
        self.reads.status |= psr::IC;
    }

    /// `flushrs` and `loadrs`, which refer to memory by PSR.rt.
    pub(super) fn add_stack_move(&mut self) {
        self.position = Some(Position::First);
        self.reads.status |= psr::CPL | psr::RT;
        self.reads.state |= State::STACK | State::FRAME;
        self.reads.application |= STACK_POINTERS;
        self.writes.application |= STACK_POINTERS & !(1 << BSP);
        self.writes.state |= State::STACK;
        self.at_once.status = !psr::RT;
        self.at_once.state = State::ADDRESSING;
    }

    /// `mov ar=`.
    pub(super) fn add_move_to_application(&mut self, instruction: &Instruction) {
        self.kind = Kind::MoveToApplication;
        match instruction.ar3() {
            FPSR => self.writes.state |= State::FLOAT_STATUS,
            BSPSTORE => {
                self.reads.application |= 1 << RSC;
                self.writes.application |= STACK_POINTERS;
                self.writes.state |= State::STACK;
            }
            RNAT => {
                self.reads.application |= 1 << RSC;
                self.reads.state |= State::STACK;
            }
            0..=7 | RSC | ITC => self.reads.status |= psr::CPL,
            _ => {}
        }
    }

    /// `mov =ar`.
    pub(super) fn add_move_from_application(&mut self, instruction: &Instruction) {
        let register = instruction.ar3();
        if register == FPSR {
            self.reads.state |= State::FLOAT_STATUS;
        }
        // The manual has the time counters alone.
        if !matches!(register, ITC | RUC) {
            self.at_once.status = psr::SI;
        }
        if instruction.unit != Unit::M {
            return;
        }
        // Time is secure by it; the manual's table has all registers of this unit there.
        self.reads.status |= psr::SI;
        match register {
            BSP => self.reads.state |= State::STACK,
            // Only lazy mode lets them be read.
            BSPSTORE | RNAT => {
                self.reads.state |= State::STACK;
                self.reads.application |= 1 << RSC;
            }
            ITC => self.reads.status |= psr::CPL,
            _ => {}
        }
    }

    /// `mov cr=` and `mov =cr`.
    pub(super) fn add_control(&mut self, instruction: &Instruction) {
        self.reads.status |= psr::CPL;
        if (IPSR..=IHA).contains(&instruction.cr3()) {
            self.reads.status |= psr::IC;
        }
        if matches!(instruction.cr3(), IVR | EOI) {
            self.writes.state |= State::IN_SERVICE;
        }
        if instruction.cr3() == IVR {
            self.reads.state |= State::IN_SERVICE;
            self.reads.control |= 1 << TPR;
        }
    }

    /// What `mov cr=` writes waits for serialisation, but for the end of an interrupt.
    pub(super) fn defer_control(&mut self) {
        self.deferred.control = self.writes.control & !(1 << EOI);
        self.deferred.state = self.writes.state & State::IN_SERVICE;
    }

    /// `mov rr=` and its like.
    pub(super) fn add_move_to_indirect(&mut self, file: IndirectFile) {
        self.reads.status |= psr::CPL;
        self.pending.state = self.writes.state;
        self.at_once.state = self.reads.state | self.writes.state;
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

    /// `mov =rr` and its like.
    pub(super) fn add_move_from_indirect(&mut self, file: IndirectFile) {
        self.reads.status |= psr::CPL;
        if file == IndirectFile::MonitorData {
            self.reads.status |= psr::SP;
            self.reads.state |= State::MONITOR_CONFIGURATION;
        }
        self.at_once.state = self.reads.state | self.writes.state;
    }
}
