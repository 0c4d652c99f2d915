//! The floating-point status register (FPSR, ar40): trap-disable bits and four status fields, each with its controls
//! and its flags.
//!
//! Source: Itanium manual, volume 1, section 5.2, figures 5-3 and 5-4; `fsetc`, `fclrf` and `fchkf` in volume 3.

use super::control::{Completer, Control, Flags, Precision, Range, Rounding};
use super::host::Host;
use crate::encoding::{FixedRounding, StatusField};

const FIELD_WIDTH: u32 = 13;
const FIRST_FIELD: u32 = 6;
const CONTROL_MASK: u64 = 0x7F;
const FLAGS_SHIFT: u32 = 7;
const RESERVED_MASK: u64 = !0 << 58;

const FLUSH_TO_ZERO: u64 = 1;
const WIDEST_RANGE: u64 = 1 << 1;
const PRECISION: u64 = 3 << 2;
const ROUNDING: u64 = 3 << 4;
const TRAPS_DISABLED: u64 = 1 << 6;

/// The four fields, in order.
const FIELDS: [StatusField; 4] = [StatusField::S0, StatusField::S1, StatusField::S2, StatusField::S3];

/// The position of a field's controls.
#[inline]
const fn shift(field: StatusField) -> u32 {
    FIRST_FIELD + FIELD_WIDTH * field as u32
}

/// A value for the FPSR that sets a reserved field: writing it raises a Reserved Register/Field fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reserved field in FPSR value {0:#x}")]
pub struct ReservedField(pub u64);

/// The floating-point status register; its reserved fields are always valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRegister(u64);

impl Default for StatusRegister {
    /// The value Linux and the software conventions start a program with.
    fn default() -> Self {
        Self::LINUX
    }
}

impl StatusRegister {
    /// The software conventions' initial value: traps disabled; s0 double-extended; s1 double-extended with the
    /// widest range and traps disabled; s2 and s3 double-extended with traps disabled.
    pub const LINUX: Self = Self(0x0009_804C_0270_033F);

    /// Takes a value from `mov ar40`.
    ///
    /// # Errors
    /// [`ReservedField`] if bits 63:58 or sf0.td are set or a pc field has its reserved value 1.
    pub const fn new(value: u64) -> Result<Self, ReservedField> {
        let trap_bit_of_main_field = TRAPS_DISABLED << shift(StatusField::S0);
        let mut reserved = value & (RESERVED_MASK | trap_bit_of_main_field) != 0;
        let mut field = 0;
        while field < FIELDS.len() {
            reserved |= precision_control(value >> shift(FIELDS[field])) == 1;
            field += 1;
        }
        if reserved {
            Err(ReservedField(value))
        } else {
            Ok(Self(value))
        }
    }

    /// Takes a value as it is: a reserved pc means double-extended, other reserved fields nothing.
    #[inline]
    pub(crate) const fn from_bits(value: u64) -> Self {
        Self(value)
    }

    /// The register's 64 bits.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The trap-disable bits.
    #[inline]
    pub const fn traps_disabled(self) -> Flags {
        Flags::from_bits_truncate(self.0 as u8)
    }

    /// The flags a status field has gathered.
    #[inline]
    pub const fn flags(self, field: StatusField) -> Flags {
        Flags::from_bits_truncate((self.0 >> (shift(field) + FLAGS_SHIFT)) as u8)
    }

    /// Adds to a status field's flags.
    #[inline]
    pub const fn raise(&mut self, field: StatusField, flags: Flags) {
        self.0 |= (flags.bits() as u64) << (shift(field) + FLAGS_SHIFT);
    }

    /// `fclrf`: clears a status field's flags.
    pub const fn clear_flags(&mut self, field: StatusField) {
        self.0 &= !((Flags::all().bits() as u64) << (shift(field) + FLAGS_SHIFT));
    }

    /// `fsetc`: gives a status field the controls of s0, first masked by `and_mask`, then set by `or_mask`.
    ///
    /// # Errors
    /// [`ReservedField`] if the result has pc 1, or td in s0; the register is unchanged.
    pub const fn set_controls(
        &mut self,
        field: StatusField,
        and_mask: u8,
        or_mask: u8,
    ) -> Result<(), ReservedField> {
        let main = self.0 >> shift(StatusField::S0);
        let controls = (main & and_mask as u64 | or_mask as u64) & CONTROL_MASK;
        match Self::new(self.0 & !(CONTROL_MASK << shift(field)) | controls << shift(field)) {
            Ok(register) => {
                *self = register;
                Ok(())
            }
            Err(reserved) => Err(reserved),
        }
    }

    /// `fchkf`: whether a status field's flags hold one that would have trapped, or one that s0 does not hold.
    pub const fn flags_need_attention(self, field: StatusField) -> bool {
        let flags = self.flags(field);
        let enabled = flags.difference(self.traps_disabled());
        let new = flags.difference(self.flags(StatusField::S0));
        !enabled.is_empty() || !new.is_empty()
    }

    /// The bits of the register that an operation under a status field depends on: trap-disable bits, the field's
    /// controls, and its inexact flag, which decides whether the host may compute.
    pub const fn control_bits(field: StatusField) -> u64 {
        Flags::all().bits() as u64 | CONTROL_MASK << shift(field) | Self::inexact_flag(field)
    }

    /// When a back end may have the host compute what operations of single or double precision under a status field
    /// deliver: the register's bits that decide, and their values. It rounds to nearest in the precision's own range
    /// then, and traps no inexact result.
    ///
    /// Operands that are normal values or zeros of the precision, and a result that is a normal value above the
    /// smallest exponent, raise no flag but the [inexact one](StatusRegister::inexact_flag).
    pub const fn host_controls(field: StatusField) -> (u64, u64) {
        let inexact_disabled = Flags::INEXACT.bits() as u64;
        let controls = (ROUNDING | WIDEST_RANGE) << shift(field);
        (inexact_disabled | controls, inexact_disabled)
    }

    /// When multiply-adds of so many bits under a status field deliver what [`nearest`](super::nearest) answers: the
    /// register's bits that decide, and their values. Those of 64 bits are without a completer, which the field's own
    /// controls make them; the others are with theirs, in the range of the registers.
    pub const fn nearest_controls(field: StatusField, precision: Precision) -> (u64, u64) {
        let inexact_disabled = Flags::INEXACT.bits() as u64;
        let (mask, bits) = match precision {
            Precision::Extended => (PRECISION, PRECISION),
            Precision::Single | Precision::Double => (WIDEST_RANGE, WIDEST_RANGE),
        };
        let mask = (ROUNDING | mask) << shift(field);
        (inexact_disabled | mask, inexact_disabled | bits << shift(field))
    }

    /// When normalizing to 64 bits a value that has room in them raises nothing but the flag of unnormal operands: the
    /// register's bits that decide, and their values.
    pub const fn normalizing_controls(field: StatusField) -> (u64, u64) {
        let controls = Flags::DENORMAL.bits() as u64 | PRECISION << shift(field);
        (controls, controls)
    }

    /// The bit of the register that says whether an operation under a status field had an unnormal operand.
    pub const fn denormal_flag(field: StatusField) -> u64 {
        (Flags::DENORMAL.bits() as u64) << (shift(field) + FLAGS_SHIFT)
    }

    /// When conversions to integers trap no inexact result and, where the status field's controls say how they round,
    /// round to nearest: the register's bits that decide, and their values.
    pub const fn conversion_controls(field: StatusField, rounding: FixedRounding) -> (u64, u64) {
        let inexact_disabled = Flags::INEXACT.bits() as u64;
        let controls = match rounding {
            FixedRounding::Truncate => 0,
            FixedRounding::Dynamic => ROUNDING << shift(field),
        };
        (inexact_disabled | controls, inexact_disabled)
    }

    /// The bit of the register that says whether an operation under a status field had an inexact result.
    pub const fn inexact_flag(field: StatusField) -> u64 {
        (Flags::INEXACT.bits() as u64) << (shift(field) + FLAGS_SHIFT)
    }

    /// What an operation under a status field with a precision completer does.
    pub fn control(self, field: StatusField, completer: Completer) -> Control {
        let controls = self.0 >> shift(field);
        let disabled = if controls & TRAPS_DISABLED != 0 {
            Flags::all()
        } else {
            self.traps_disabled()
        };
        let flush_to_zero = controls & FLUSH_TO_ZERO != 0;
        let rounding = Rounding::ALL[(controls >> 4 & 3) as usize];
        let (precision, narrow) = match completer {
            Completer::Single => (Precision::Single, Range::Single),
            Completer::Double => (Precision::Double, Range::Double),
            Completer::Parallel => return Control::parallel(rounding, flush_to_zero, disabled),
            Completer::Dynamic => match precision_control(controls) {
                0 => (Precision::Single, Range::Extended),
                2 => (Precision::Double, Range::Extended),
                _ => (Precision::Extended, Range::Extended),
            },
        };
        let range = if controls & WIDEST_RANGE != 0 {
            Range::Register
        } else {
            narrow
        };
        let host = Host::of(precision, range, rounding, disabled, self.flags(field));
        Control {
            host,
            ..Control::new(precision, range, rounding, flush_to_zero, disabled)
        }
    }
}

const fn precision_control(controls: u64) -> u64 {
    controls >> 2 & 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_initial_value_decodes_as_the_conventions_say() {
        let fpsr = StatusRegister::new(StatusRegister::LINUX.bits()).unwrap();
        assert_eq!(fpsr.traps_disabled(), Flags::all());
        let extended = Control::new(
            Precision::Extended,
            Range::Extended,
            Rounding::Nearest,
            false,
            Flags::all(),
        );
        let widest = Control::new(
            Precision::Extended,
            Range::Register,
            Rounding::Nearest,
            false,
            Flags::all(),
        );
        assert_eq!(fpsr.control(StatusField::S0, Completer::Dynamic), extended);
        assert_eq!(fpsr.control(StatusField::S1, Completer::Dynamic), widest);
        assert_eq!(fpsr.control(StatusField::S2, Completer::Dynamic), extended);
        assert_eq!(fpsr.control(StatusField::S3, Completer::Dynamic), extended);
        let double = fpsr.control(StatusField::S0, Completer::Double);
        assert_eq!((double.exponent_min, double.exponent_max), (0xFC01, 0x103FE));
        let single = fpsr.control(StatusField::S0, Completer::Single);
        assert_eq!((single.exponent_min, single.exponent_max), (0xFF81, 0x1007E));
        assert_eq!((widest.exponent_min, widest.exponent_max), (1, 0x1FFFE));
        assert_eq!((extended.exponent_min, extended.exponent_max), (0xC001, 0x13FFE));
    }

    proptest! {
        #[test]
        fn where_a_back_end_may_round_to_nearest_so_does_the_interpreter(others: u64, field in 0usize..4) {
            for (precision, completer) in [
                (Precision::Single, Completer::Single),
                (Precision::Double, Completer::Double),
                (Precision::Extended, Completer::Dynamic),
            ] {
                let (mask, bits) = StatusRegister::nearest_controls(FIELDS[field], precision);
                let fpsr = StatusRegister::from_bits(others & !mask | bits);
                let control = fpsr.control(FIELDS[field], completer);
                prop_assert!(control.is_nearest && control.precision == precision);
            }
        }

        #[test]
        fn where_a_back_end_may_use_the_host_so_does_the_interpreter(others: u64, field in 0usize..4) {
            let (mask, bits) = StatusRegister::host_controls(FIELDS[field]);
            let fpsr = StatusRegister::from_bits(others & !mask | bits);
            let is_set = fpsr.bits() & StatusRegister::inexact_flag(FIELDS[field]) != 0;
            let raised = if is_set { Flags::INEXACT } else { Flags::empty() };
            for (completer, precision, range) in [
                (Completer::Double, Precision::Double, Range::Double),
                (Completer::Single, Precision::Single, Range::Single),
            ] {
                let expected = Host::of(precision, range, Rounding::Nearest, Flags::INEXACT, raised);
                prop_assert_eq!(fpsr.control(FIELDS[field], completer).host, expected);
            }
        }
    }

    #[test]
    fn reserved_values_are_refused() {
        let legal = StatusRegister::LINUX.bits();
        assert!(StatusRegister::new(legal | 1 << 58).is_err());
        assert!(StatusRegister::new(legal | 1 << 63).is_err());
        assert!(StatusRegister::new(legal | TRAPS_DISABLED << 6).is_err());
        for field in FIELDS {
            let reserved = legal & !(3 << (shift(field) + 2)) | 1 << (shift(field) + 2);
            assert_eq!(StatusRegister::new(reserved), Err(ReservedField(reserved)));
        }
    }

    #[test]
    fn controls_are_copied_from_the_main_field() {
        let mut fpsr = StatusRegister::default();
        fpsr.raise(StatusField::S2, Flags::INEXACT);
        fpsr.set_controls(StatusField::S2, 0x7F, 0x40 | 3 << 4).unwrap();
        let control = fpsr.control(StatusField::S2, Completer::Dynamic);
        let main = fpsr.control(StatusField::S0, Completer::Dynamic);
        assert_eq!(control, main.with_rounding(Rounding::Zero));
        assert_eq!(fpsr.flags(StatusField::S2), Flags::INEXACT);
        let before = fpsr;
        assert!(fpsr.set_controls(StatusField::S0, 0x7F, 0x40).is_err());
        assert!(fpsr.set_controls(StatusField::S1, 0x73, 0x04).is_err());
        assert_eq!(fpsr, before);
    }

    #[test]
    fn flags_are_raised_checked_and_cleared_one_field_at_a_time() {
        let mut fpsr = StatusRegister::default();
        assert!(!fpsr.flags_need_attention(StatusField::S1));
        fpsr.raise(StatusField::S1, Flags::OVERFLOW | Flags::INEXACT);
        assert!(fpsr.flags_need_attention(StatusField::S1));
        fpsr.raise(StatusField::S0, Flags::OVERFLOW | Flags::INEXACT);
        assert!(!fpsr.flags_need_attention(StatusField::S1));
        let enabled = StatusRegister::new(fpsr.bits() & !(Flags::OVERFLOW.bits() as u64)).unwrap();
        assert!(enabled.flags_need_attention(StatusField::S1));
        fpsr.clear_flags(StatusField::S0);
        assert_eq!(fpsr.flags(StatusField::S0), Flags::empty());
        assert_eq!(fpsr.flags(StatusField::S1), Flags::OVERFLOW | Flags::INEXACT);
    }
}
