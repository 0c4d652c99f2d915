//! PSR: what reads and writes which of its bits, and what its changes wait for.

use sidestep_ia64::encoding::Side;
use sidestep_ia64::registers::application::BSP;
use sidestep_ia64::registers::status::psr;

use super::serialization::STATUS;
use super::{Effects, Parts, Position, State};

/// What `mov psr.l=` writes and `mov =psr` reads, beside PSR.mc and PSR.it.
const LOWER: u64 = 0xffff_ffff;

impl Effects {
    /// What may go elsewhere: taken branches trap by PSR.tb.
    pub(super) fn add_transfer(&mut self) {
        self.reads.status |= psr::TB;
    }

    /// `br.ret`, which may lower the privilege.
    pub(super) fn add_privilege_change(&mut self) {
        self.writes.status = psr::CPL;
    }

    /// `epc`, which goes by the page that it is on.
    pub(super) fn add_enter_privileged_code(&mut self) {
        self.writes.status = psr::CPL;
        self.reads.state |= State::INSTRUCTION_TRANSLATION;
    }

    /// `sum`, `rum` and `mov psr.um=`, of these bits.
    pub(super) fn add_user_mask(&mut self, mask: u64) {
        self.writes.status = mask & psr::USER_MASK;
    }

    /// `mov =psr.um`.
    pub(super) fn add_move_from_user_mask(&mut self) {
        self.reads.status = psr::USER_MASK;
        self.at_once.status = !0;
    }

    /// `ssm` and `rsm`, of these bits.
    pub(super) fn add_system_mask(&mut self, mask: u64) {
        self.add_late_status(mask & psr::SYSTEM_MASK);
    }

    /// `mov psr.l=`.
    pub(super) fn add_move_to_status(&mut self) {
        self.add_late_status(LOWER);
    }

    /// Bits that change behind serialisation alone.
    fn add_late_status(&mut self, bits: u64) {
        self.reads.status |= psr::CPL;
        self.writes.status = bits;
        self.pending.status = bits;
        self.deferred.status = bits & STATUS;
    }

    /// `mov =psr`.
    pub(super) fn add_move_from_status(&mut self) {
        self.reads.status = LOWER | psr::MC | psr::IT | psr::CPL;
        self.at_once.status = !0;
    }

    /// `bsw`.
    pub(super) fn add_bank_switch(&mut self) {
        self.position = Some(Position::Last);
        self.reads.status |= psr::CPL;
        self.writes.status = psr::BN;
    }

    /// `vmsw`.
    pub(super) fn add_virtual_machine_switch(&mut self) {
        self.reads.status |= psr::CPL;
        self.writes.status = psr::VM;
    }

    /// `rfi`, which serialises by itself.
    pub(super) fn add_return_from_interruption(&mut self) {
        self.position = Some(Position::Last);
        self.reads.status |= psr::CPL;
        self.writes.status = !0;
        self.reads.state |= State::STACK;
        self.reads.application |= 1 << BSP;
        self.add_all_at_once();
    }

    /// `srlz`: what was written before takes effect here, for what reads it behind.
    pub(super) fn add_serialize(&mut self, side: Side) {
        const SYSTEM: State = State::ADDRESSING
            .union(State::INSTRUCTION_TRANSLATION)
            .union(State::INSTRUCTION_BREAKPOINT)
            .union(State::MONITOR_CONFIGURATION)
            .union(State::MONITOR_DATA)
            .union(State::MODEL_SPECIFIC)
            .union(State::IN_SERVICE);
        self.serializes = Some(side);
        let all = Parts {
            control: !0,
            status: !0,
            state: SYSTEM,
            ..Parts::NONE
        };
        self.reads = self.reads.or(all);
        self.writes = self.writes.or(all);
        self.add_all_at_once();
    }

    fn add_all_at_once(&mut self) {
        self.at_once = Parts {
            control: !0,
            status: !0,
            state: State::all(),
            ..Parts::NONE
        };
    }
}
