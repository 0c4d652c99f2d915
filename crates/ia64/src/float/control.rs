//! How an operation computes and what it reports: precision, range, rounding and traps going in; flags, faults and
//! traps coming out.
//!
//! A [`Control`] is decoded once from the FPSR, a status field and the instruction's precision completer; a
//! processor keeps decoded ones until the FPSR changes.
//!
//! Source: Itanium manual, volume 1, section 5.2 (FPSR), table 5-6 (precision and range), section 5.4 (exceptions).

use super::host::Host;
use super::nearest;
use super::register::{EXPONENT_BIAS, FloatRegister};
use super::round::SignificandRounding;

bitflags::bitflags! {
    /// The six IEEE conditions, as the flags of a status field and the trap-disable bits of the FPSR order them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags: u8 {
        /// V: invalid operation.
        const INVALID = 1;
        /// D: an operand was denormal or unnormal.
        const DENORMAL = 2;
        /// Z: division of a finite value by zero.
        const ZERO_DIVIDE = 4;
        /// O: the result is too large for the destination.
        const OVERFLOW = 8;
        /// U: the result is tiny, and inexact if underflow traps are disabled.
        const UNDERFLOW = 16;
        /// I: the result is not the infinitely precise one.
        const INEXACT = 32;
    }
}

bitflags::bitflags! {
    /// A floating-point exception trap: what ISR.code reports about an operation that has completed.
    ///
    /// The upper half describes a scalar operation or the high half of a parallel one, the lower half the low half of
    /// a parallel one. ISR.code is `bits << 7` with bit 0 set ([`FloatTrap::isr_code`]).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FloatTrap: u8 {
        /// Overflow.
        const OVERFLOW = 0x10;
        /// Underflow.
        const UNDERFLOW = 0x20;
        /// Inexact result.
        const INEXACT = 0x40;
        /// The delivered magnitude is larger than the precise one (ISR.fpa).
        const MAGNITUDE_INCREASED = 0x80;
        /// Everything about the low half of a parallel operation.
        const LOW_HALF = 0x0F;
    }
}

impl FloatTrap {
    /// The trap's contribution to ISR.code: bits 14:7, and bit 0 that marks a floating-point trap.
    pub const fn isr_code(self) -> u64 {
        (self.bits() as u64) << 7 | 1
    }

    /// The same report about the low half of a parallel operation.
    pub(super) const fn for_low_half(self) -> Self {
        Self::from_bits_retain(self.bits() >> 4)
    }
}

/// A floating-point exception fault: the operation has not been done and nothing has changed.
///
/// Bits 3:0 of `isr_code` are V, D, Z and software assistance for a scalar operation or the high half of a parallel
/// one; bits 7:4 the same for the low half. Software assistance is never requested here: see the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatFault {
    /// What ISR.code reports.
    pub isr_code: u8,
}

/// A delivered result, with the flags it raises and the trap that follows it (empty for none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounded {
    /// What goes to the target register.
    pub value: FloatRegister,
    /// What is added to the status field's flags.
    pub flags: Flags,
    /// The trap to take after the instruction has completed.
    pub trap: FloatTrap,
}

impl Rounded {
    /// A result that needed no rounding.
    #[inline]
    pub(super) const fn exact(value: FloatRegister, flags: Flags) -> Self {
        Self {
            value,
            flags,
            trap: FloatTrap::empty(),
        }
    }
}

/// The four IEEE rounding modes, as the rc field encodes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rounding {
    /// To the nearest value, ties to the even one.
    Nearest = 0,
    /// Towards minus infinity.
    Down = 1,
    /// Towards plus infinity.
    Up = 2,
    /// Towards zero.
    Zero = 3,
}

impl Rounding {
    /// All four, in the order of their encoding.
    pub const ALL: [Self; 4] = [Self::Nearest, Self::Down, Self::Up, Self::Zero];

    /// Whether a magnitude is rounded up, given whether the kept part is odd and how the dropped part compares with
    /// half a unit in the last place.
    #[inline(always)]
    pub(super) const fn increments(self, negative: bool, odd: bool, dropped: u64, half: u64) -> bool {
        match self {
            Self::Nearest => dropped > half || (dropped == half && odd),
            Self::Down => negative && dropped != 0,
            Self::Up => !negative && dropped != 0,
            Self::Zero => false,
        }
    }
}

/// The significand's width in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Precision {
    /// 24 bits.
    Single = 24,
    /// 53 bits.
    Double = 53,
    /// 64 bits.
    Extended = 64,
}

/// The range of exponents, named by the width of the exponent in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// 8 bits.
    Single,
    /// 11 bits.
    Double,
    /// 15 bits.
    Extended,
    /// 17 bits: the widest, that of the registers.
    Register,
}

impl Range {
    /// The largest unbiased exponent; the smallest is one minus it, except in the register range.
    const fn exponent_max(self) -> i32 {
        match self {
            Self::Single => 127,
            Self::Double => 1023,
            Self::Extended => 16383,
            Self::Register => 65535,
        }
    }

    /// The smallest unbiased exponent of a normal value.
    const fn exponent_min(self) -> i32 {
        1 - self.exponent_max()
    }
}

/// The precision completer of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completer {
    /// `.s`: single.
    Single,
    /// `.d`: double.
    Double,
    /// None: the status field's pc says.
    Dynamic,
    /// A parallel operation: single, whatever the status field says.
    Parallel,
}

/// Everything about the FPSR and the instruction that an arithmetic operation depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// How significands are rounded.
    pub(super) significand: SignificandRounding,
    pub(super) precision: Precision,
    pub(super) rounding: Rounding,
    /// Where the host's floating-point unit may compute.
    pub(super) host: Host,
    /// Whether [`nearest`] has multiply-adds of usual operands.
    pub(super) is_nearest: bool,
    /// Conditions that set a flag instead of raising a fault or trap.
    pub(super) disabled: Flags,
    /// Tiny results become zero (only while underflow traps are disabled).
    pub(super) flush_to_zero: bool,
    /// Exponents wrap at 8 bits, not 17, when an overflow or underflow trap delivers the unbounded result.
    pub(super) parallel: bool,
    /// Smallest and largest biased register exponent of a normal result.
    pub(super) exponent_min: i32,
    pub(super) exponent_max: i32,
}

impl Control {
    /// A control from its parts, for a scalar operation; a condition in `disabled` sets a flag and raises nothing.
    pub const fn new(
        precision: Precision,
        range: Range,
        rounding: Rounding,
        flush_to_zero: bool,
        disabled: Flags,
    ) -> Self {
        Self {
            significand: SignificandRounding::new(precision, rounding),
            precision,
            rounding,
            host: Host::Unused,
            is_nearest: nearest::applies(range, rounding, disabled),
            disabled,
            flush_to_zero,
            parallel: false,
            exponent_min: range.exponent_min() + EXPONENT_BIAS as i32,
            exponent_max: range.exponent_max() + EXPONENT_BIAS as i32,
        }
    }

    /// The control of a parallel operation.
    pub const fn parallel(rounding: Rounding, flush_to_zero: bool, disabled: Flags) -> Self {
        let scalar = Self::new(
            Precision::Single,
            Range::Single,
            rounding,
            flush_to_zero,
            disabled,
        );
        Self {
            parallel: true,
            ..scalar
        }
    }

    /// The same control with another rounding mode (the `.trunc` completer).
    #[inline]
    pub const fn with_rounding(self, rounding: Rounding) -> Self {
        Self {
            significand: SignificandRounding::new(self.precision, rounding),
            is_nearest: self.is_nearest && matches!(rounding, Rounding::Nearest),
            rounding,
            ..self
        }
    }

    /// Whether a result of this exponent is neither tiny nor too large.
    #[inline(always)]
    pub(super) const fn in_range(&self, exponent: i32) -> bool {
        exponent.wrapping_sub(self.exponent_min) as u32 <= (self.exponent_max - self.exponent_min) as u32
    }

    /// The flags of `raised` if none of them is an enabled fault, else the fault.
    ///
    /// `raised` is one of V, Z and D: the architecture checks them in that order and reports the first only.
    #[inline]
    pub(super) const fn check_fault(&self, raised: Flags) -> Result<Flags, FloatFault> {
        if raised.difference(self.disabled).is_empty() {
            Ok(raised)
        } else {
            Err(FloatFault {
                isr_code: raised.bits(),
            })
        }
    }

    /// Raises V: the default NaN with its flag, or the fault.
    pub(super) const fn invalid(&self) -> Result<Rounded, FloatFault> {
        match self.check_fault(Flags::INVALID) {
            Ok(flags) => Ok(Rounded::exact(FloatRegister::DEFAULT_NAN, flags)),
            Err(fault) => Err(fault),
        }
    }
}
