//! From an exact or sticky sum to a register value: rounding, overflow, underflow, and the traps they raise.
//!
//! Tininess is detected after rounding, as if the exponent were unbounded. While underflow traps are disabled a tiny
//! result is denormalised and rounded once, and underflow is flagged only if that was inexact; with flush-to-zero it
//! becomes zero and is always flagged. An enabled overflow or underflow trap delivers the unbounded result with its
//! exponent wrapped to the register's 17 bits (8 bits in a parallel operation).
//!
//! Source: Itanium manual, volume 1, sections 5.4.2 and 5.4.3.

use super::control::{Control, Flags, FloatTrap, Precision, Rounded};
use super::register::{EXPONENT_BIAS, EXPONENT_EXTENDED_MIN, FloatRegister};

/// The bias of the single format: a parallel operation's unbounded exponent wraps around it.
const SINGLE_BIAS: i32 = 127;

/// A non-zero value before rounding: `significand * 2^(exponent - bias - 127)`, bit 127 set, bit 0 sticky (it is
/// set when anything below it is not zero).
#[derive(Clone, Copy, Debug)]
pub(super) struct Unrounded {
    pub negative: bool,
    /// Biased by [`EXPONENT_BIAS`], of any size.
    pub exponent: i32,
    pub significand: u128,
}

/// A significand rounded to a precision.
struct RoundedSignificand {
    /// The kept bits, left aligned; if `carried`, the value 1.0 of the next exponent.
    bits: u64,
    carried: bool,
    inexact: bool,
    incremented: bool,
}

#[inline(always)]
fn round_significand(negative: bool, significand: u128, control: &Control) -> RoundedSignificand {
    let (high, low) = ((significand >> 64) as u64, significand as u64);
    let dropped_bits = 64 - control.precision as u32;
    let (kept, dropped, half, unit) = if matches!(control.precision, Precision::Extended) {
        (high, low, 1 << 63, 1)
    } else {
        let unit = 1u64 << dropped_bits;
        let sticky = high | u64::from(low != 0);
        (sticky & !(unit - 1), sticky & (unit - 1), unit >> 1, unit)
    };
    let incremented = control
        .rounding
        .increments(negative, kept & unit != 0, dropped, half);
    let (sum, carried) = kept.overflowing_add(if incremented { unit } else { 0 });
    RoundedSignificand {
        bits: sum | (u64::from(carried) << 63),
        carried,
        inexact: dropped != 0,
        incremented,
    }
}

/// `value` shifted right, and whether a set bit fell out.
#[inline(always)]
pub(super) fn shift_right(value: u128, distance: u32) -> (u128, bool) {
    if distance >= 128 {
        return (0, value != 0);
    }
    let shifted = value >> distance;
    (shifted, shifted << distance != value)
}

impl Unrounded {
    /// The same value with bit 127 set.
    #[inline(always)]
    pub fn normalized(self) -> Self {
        let shift = self.significand.leading_zeros();
        Self {
            exponent: self.exponent - shift as i32,
            significand: self.significand << shift,
            ..self
        }
    }

    /// Rounds a value whose rounded form is normal and raises no enabled trap; `None` leaves the rest to
    /// [`Unrounded::round`].
    #[inline(always)]
    pub fn round_in_range(self, control: &Control) -> Option<Rounded> {
        let rounded = round_significand(self.negative, self.significand, control);
        let exponent = self.exponent + i32::from(rounded.carried);
        let in_range = (control.exponent_min..=control.exponent_max).contains(&exponent);
        if !in_range || (rounded.inexact && !control.disabled.contains(Flags::INEXACT)) {
            return None;
        }
        let flags = if rounded.inexact {
            Flags::INEXACT
        } else {
            Flags::empty()
        };
        Some(Rounded::exact(
            FloatRegister::new(self.negative, exponent as u32, rounded.bits),
            flags,
        ))
    }

    /// Rounds any value.
    pub fn round(self, control: &Control) -> Rounded {
        let rounded = round_significand(self.negative, self.significand, control);
        let exponent = self.exponent + i32::from(rounded.carried);
        if exponent > control.exponent_max {
            if control.disabled.contains(Flags::OVERFLOW) {
                overflowed(self.negative, control)
            } else {
                self.unbounded(exponent, rounded, Flags::OVERFLOW, FloatTrap::OVERFLOW, control)
            }
        } else if exponent < control.exponent_min {
            if !control.disabled.contains(Flags::UNDERFLOW) {
                self.unbounded(exponent, rounded, Flags::UNDERFLOW, FloatTrap::UNDERFLOW, control)
            } else if control.flush_to_zero {
                let flags = Flags::UNDERFLOW | Flags::INEXACT;
                delivered(FloatRegister::zero(self.negative), flags, false, control)
            } else {
                self.denormalized(control)
            }
        } else {
            let flags = if rounded.inexact {
                Flags::INEXACT
            } else {
                Flags::empty()
            };
            let value = FloatRegister::new(self.negative, exponent as u32, rounded.bits);
            delivered(value, flags, rounded.incremented, control)
        }
    }

    /// A tiny value, rounded at the place of the smallest normal one's last bit.
    fn denormalized(self, control: &Control) -> Rounded {
        let distance = (control.exponent_min - self.exponent) as u32;
        let (shifted, lost) = shift_right(self.significand, distance);
        let rounded = round_significand(self.negative, shifted | u128::from(lost), control);
        let flags = if rounded.inexact {
            Flags::UNDERFLOW | Flags::INEXACT
        } else {
            Flags::empty()
        };
        let became_normal = rounded.bits >> 63 != 0;
        let exponent = match control.exponent_min as u32 {
            _ if rounded.bits == 0 => 0,
            EXPONENT_EXTENDED_MIN if !became_normal => 0,
            exponent => exponent,
        };
        let value = FloatRegister::new(self.negative, exponent, rounded.bits);
        delivered(value, flags, rounded.incremented, control)
    }

    /// The response to an enabled overflow or underflow trap.
    fn unbounded(
        self,
        exponent: i32,
        rounded: RoundedSignificand,
        flag: Flags,
        cause: FloatTrap,
        control: &Control,
    ) -> Rounded {
        let wrapped = if control.parallel {
            let rebias = EXPONENT_BIAS as i32 - SINGLE_BIAS;
            ((exponent - rebias) & 0xFF) + rebias
        } else {
            exponent
        };
        let (mut flags, mut trap) = (flag, cause);
        if rounded.inexact {
            flags |= Flags::INEXACT;
            trap |= FloatTrap::INEXACT;
        }
        if rounded.incremented {
            trap |= FloatTrap::MAGNITUDE_INCREASED;
        }
        Rounded {
            value: FloatRegister::new(self.negative, wrapped as u32, rounded.bits),
            flags,
            trap,
        }
    }
}

/// The response to an overflow whose trap is disabled: infinity or the largest finite value.
fn overflowed(negative: bool, control: &Control) -> Rounded {
    let to_infinity = control.rounding.increments(negative, true, 1, 1);
    let value = if to_infinity {
        FloatRegister::infinity(negative)
    } else {
        let largest = u64::MAX << (64 - control.precision as u32);
        FloatRegister::new(negative, control.exponent_max as u32, largest)
    };
    delivered(value, Flags::OVERFLOW | Flags::INEXACT, to_infinity, control)
}

/// A result with an inexact trap if it is inexact and that trap is enabled.
pub(super) fn delivered(value: FloatRegister, flags: Flags, incremented: bool, control: &Control) -> Rounded {
    let mut trap = FloatTrap::empty();
    if flags.contains(Flags::INEXACT) && !control.disabled.contains(Flags::INEXACT) {
        trap |= FloatTrap::INEXACT;
        if incremented {
            trap |= FloatTrap::MAGNITUDE_INCREASED;
        }
    }
    Rounded { value, flags, trap }
}
