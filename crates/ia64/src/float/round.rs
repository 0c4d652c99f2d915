//! From an exact or sticky sum to a register value: rounding, overflow, underflow, and the traps they raise.
//!
//! Tininess is detected after rounding, as if the exponent were unbounded. While underflow traps are disabled a tiny
//! result is denormalised and rounded once, and underflow is flagged only if that was inexact; with flush-to-zero it
//! becomes zero and is always flagged. An enabled overflow or underflow trap delivers the unbounded result with its
//! exponent wrapped to the register's 17 bits (8 bits in a parallel operation).
//!
//! Source: Itanium manual, volume 1, sections 5.4.2 and 5.4.3.

use super::control::{Control, Flags, FloatTrap, Precision, Rounded, Rounding};
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

/// How a significand is rounded, worked out so that one addition rounds in any mode at any precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SignificandRounding {
    /// Ones in the places that are kept of the high 64 bits.
    kept: u64,
    /// The place of the last kept bit among them.
    last_place: u32,
    /// 1 if an odd last bit makes a tie round up, else 0.
    ties_to_even: u64,
    /// What is added to a positive and to a negative significand before the places below are cut off.
    increments: [u128; 2],
}

impl SignificandRounding {
    pub(super) const fn new(precision: Precision, rounding: Rounding) -> Self {
        let dropped = 128 - precision as u32;
        let (below_half, below_unit) = ((1 << (dropped - 1)) - 1, (1 << dropped) - 1);
        let increments = match rounding {
            Rounding::Nearest => [below_half; 2],
            Rounding::Down => [0, below_unit],
            Rounding::Up => [below_unit, 0],
            Rounding::Zero => [0; 2],
        };
        Self {
            kept: u64::MAX << (dropped - 64),
            last_place: dropped - 64,
            ties_to_even: matches!(rounding, Rounding::Nearest) as u64,
            increments,
        }
    }

    #[inline(always)]
    fn apply(&self, negative: bool, significand: u128) -> RoundedSignificand {
        let (high, low) = ((significand >> 64) as u64, significand as u64);
        let odd = high >> self.last_place & self.ties_to_even;
        let increment = self.increments[usize::from(negative)] + u128::from(odd);
        let (sum, carried) = significand.overflowing_add(increment);
        let bits = (sum >> 64) as u64 & self.kept | u64::from(carried) << 63;
        RoundedSignificand {
            bits,
            carried,
            inexact: high & !self.kept | low != 0,
            incremented: bits != high & self.kept,
        }
    }
}

/// A significand rounded to a precision.
struct RoundedSignificand {
    /// The kept bits, left aligned; if `carried`, the value 1.0 of the next exponent.
    bits: u64,
    carried: bool,
    inexact: bool,
    incremented: bool,
}

/// The 128 bits of two words.
#[inline(always)]
const fn join(high: u64, low: u64) -> u128 {
    (high as u128) << 64 | low as u128
}

/// `value` shifted right, and whether a set bit fell out.
#[inline(always)]
pub(super) const fn shift_right(value: u128, distance: u32) -> (u128, bool) {
    if distance < 64 {
        // The usual case, in the few instructions it takes on 64-bit words.
        let (high, low) = ((value >> 64) as u64, value as u64);
        let from_high = high << 1 << (63 - distance);
        let shifted = join(high >> distance, low >> distance | from_high);
        return (shifted, low << 1 << (63 - distance) != 0);
    }
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
        let mut normalized = self;
        if normalized.significand >> 64 == 0 {
            normalized.significand <<= 64;
            normalized.exponent -= 64;
        }
        let (high, low) = (
            (normalized.significand >> 64) as u64,
            normalized.significand as u64,
        );
        let shift = high.leading_zeros() & 63;
        let high = high << shift | low >> 1 >> (63 - shift);
        normalized.significand = join(high, low << shift);
        normalized.exponent -= shift as i32;
        normalized
    }

    /// Rounds a value whose rounded form is normal and raises no enabled trap; `None` leaves the rest to
    /// [`Unrounded::round`].
    #[inline(always)]
    pub fn round_in_range(self, control: &Control) -> Option<Rounded> {
        let rounded = control.significand.apply(self.negative, self.significand);
        let exponent = self.exponent + i32::from(rounded.carried);
        let flags = Flags::from_bits_retain(u8::from(rounded.inexact) * Flags::INEXACT.bits());
        if !control.in_range(exponent) || !control.disabled.contains(flags) {
            return None;
        }
        Some(Rounded::exact(
            FloatRegister::new(self.negative, exponent as u32, rounded.bits),
            flags,
        ))
    }

    /// Rounds any value.
    pub fn round(self, control: &Control) -> Rounded {
        let rounded = control.significand.apply(self.negative, self.significand);
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
        let rounded = control
            .significand
            .apply(self.negative, shifted | u128::from(lost));
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
        FloatRegister::new(negative, control.exponent_max as u32, control.significand.kept)
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
