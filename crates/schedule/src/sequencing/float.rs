//! The partitions of the floating-point registers, and the fields of FPSR.

use sidestep_ia64::encoding::StatusField;
use sidestep_ia64::registers::status::psr;

use super::{Effects, State};

/// The controls and the flags of a status field.
fn fields(status: StatusField) -> (State, State) {
    let number = status as u64;
    (
        State::from_bits_truncate(State::CONTROLS_0.bits() << number),
        State::from_bits_truncate(State::FLAGS_0.bits() << number),
    )
}

impl Effects {
    /// What the registers that it names say of PSR: whether their partition is disabled, and that it is modified.
    pub(super) fn add_partitions(&mut self) {
        const LOW: u128 = 0xffff_fffc;
        const HIGH: u128 = !0xffff_ffff;
        let used = self.reads.float | self.writes.float;
        for (part, disabled, modified) in [(LOW, psr::DFL, psr::MFL), (HIGH, psr::DFH, psr::MFH)] {
            if used & part != 0 {
                self.reads.status |= disabled;
            }
            if self.writes.float & part != 0 {
                self.raises.status |= modified;
            }
        }
    }

    /// A computation under a status field.
    pub(super) fn add_status_field(&mut self, status: StatusField) {
        let (controls, flags) = fields(status);
        self.reads.state |= controls | State::TRAPS;
        self.raises.state |= flags;
    }

    /// `fsetc`, which goes by the controls of field 0.
    pub(super) fn add_set_controls(&mut self, status: StatusField) {
        self.reads.state |= State::CONTROLS_0;
        self.writes.state |= fields(status).0;
    }

    /// `fclrf`.
    pub(super) fn add_clear_flags(&mut self, status: StatusField) {
        self.writes.state |= fields(status).1;
    }

    /// `fchkf`, which compares with the flags of field 0.
    pub(super) fn add_check_flags(&mut self, status: StatusField) {
        self.reads.state |= State::FLAGS_0 | State::TRAPS | fields(status).1;
    }
}
