//! `frcpa` and `frsqrta`: the approximations that division and square root sequences start from.
//!
//! The architecture fixes the approximations bit for bit as two tables of 256 eleven-bit significands. Each entry is
//! the reciprocal (or reciprocal square root) of the middle of its interval, rounded to nearest, so the tables are
//! computed here at compile time.
//!
//! Where the architecture has system software deliver the IEEE quotient or root (extreme exponents, for which the
//! iterations that follow would go out of range), it is delivered here, rounded as the status field says, and the
//! predicate is cleared.
//!
//! Source: Itanium manual, volume 3, `frcpa` and `frsqrta`; volume 1, section 5.4.1 for the order of checks.

use super::control::{Control, Flags, FloatFault, Rounded};
use super::multiply_add::propagate_nan;
use super::register::{Class, EXPONENT_BIAS, FloatRegister, Normalized};
use super::round::Unrounded;

const BIAS: i32 = EXPONENT_BIAS as i32;
/// At most this biased exponent, a dividend or radicand loses bits in the iterations.
const SMALL_EXPONENT: i32 = 64;

/// What an approximation delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approximation {
    /// The target register's value, flags and trap.
    pub result: Rounded,
    /// The target predicate: the value is an approximation to iterate from, not the final result.
    pub predicate: bool,
}

impl Approximation {
    pub(super) const fn last(result: Rounded) -> Self {
        Self {
            result,
            predicate: false,
        }
    }
}

/// Significands, eleven bits each, of the reciprocals of `1 + (index + 1/2) / 256`.
pub static RECIPROCALS: [u16; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        let divisor = 513 + 2 * index;
        table[index] = ((2 * 2048 * 512 + divisor) / (2 * divisor)) as u16;
        index += 1;
    }
    table
};

/// Significands, eleven bits each, of the reciprocal square roots of `2 + (index + 1/2) / 64` for an even exponent
/// field (index below 128) and of `1 + (index - 128 + 1/2) / 128` for an odd one.
pub static RECIPROCAL_ROOTS: [u16; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        let radicand_in_256ths = (257 + 2 * (index as u64 & 127)) << (index < 128) as u32;
        let mut entry = 2048u64;
        while (2 * entry - 1) * (2 * entry - 1) * radicand_in_256ths > 4 * 2048 * 2048 * 256 {
            entry -= 1;
        }
        table[index] = entry as u16;
        index += 1;
    }
    table
};

/// The table's reciprocal of a finite non-zero value.
#[inline]
pub(super) fn approximate_reciprocal(divisor: Normalized) -> FloatRegister {
    let significand = RECIPROCALS[(divisor.significand >> 55 & 0xFF) as usize] as u64;
    let exponent = 2 * BIAS - 1 - divisor.exponent;
    FloatRegister::new(divisor.negative, exponent as u32, significand << 53)
}

/// The table's reciprocal square root of a positive finite value.
#[inline]
pub(super) fn approximate_reciprocal_root(radicand: Normalized) -> FloatRegister {
    let index = (radicand.exponent as u64 & 1) << 7 | radicand.significand >> 56 & 0x7F;
    let significand = RECIPROCAL_ROOTS[index as usize] as u64;
    let exponent = BIAS - 1 - ((radicand.exponent - BIAS) >> 1);
    FloatRegister::new(false, exponent as u32, significand << 53)
}

/// `frcpa`: an approximation of `1 / divisor`, or the IEEE quotient of special operands. `control` is the status
/// field's with no precision completer.
///
/// # Errors
/// The fault, if an operand is invalid or denormal or the divisor zero and that condition is not disabled.
#[inline]
pub fn reciprocal(
    dividend: FloatRegister,
    divisor: FloatRegister,
    control: &Control,
) -> Result<Approximation, FloatFault> {
    if let Some(special) = special_quotient(dividend, divisor, control)? {
        return Ok(Approximation::last(special));
    }
    let flags = control.check_fault(dividend.denormal_flag() | divisor.denormal_flag())?;
    let (numerator, denominator) = (dividend.normalized(), divisor.normalized());
    if iterations_leave_range(numerator, denominator) {
        let mut result = quotient(numerator, denominator).round(control);
        result.flags |= flags;
        return Ok(Approximation::last(result));
    }
    Ok(Approximation {
        result: Rounded::exact(approximate_reciprocal(denominator), flags),
        predicate: true,
    })
}

/// Quotients that are decided by the operands' classes: NaNs, infinities and zeros; `None` for the others.
pub(super) fn special_quotient(
    dividend: FloatRegister,
    divisor: FloatRegister,
    control: &Control,
) -> Result<Option<Rounded>, FloatFault> {
    if dividend.is_normal() && divisor.is_normal() {
        return Ok(None);
    }
    if let Some(result) = propagate_nan(&[dividend, divisor], control)? {
        return Ok(Some(result));
    }
    let infinite = |register: FloatRegister| register.class() == Class::Infinity;
    let zero = |register: FloatRegister| register.significand() == 0;
    let negative = dividend.is_negative() ^ divisor.is_negative();
    if (infinite(dividend) && infinite(divisor)) || (zero(dividend) && zero(divisor)) {
        return control.invalid().map(Some);
    }
    if zero(divisor) && !infinite(dividend) {
        let flags = control.check_fault(Flags::ZERO_DIVIDE)?;
        return Ok(Some(Rounded::exact(FloatRegister::infinity(negative), flags)));
    }
    let value = if infinite(dividend) {
        FloatRegister::infinity(negative)
    } else if zero(dividend) || infinite(divisor) {
        FloatRegister::zero(negative)
    } else {
        return Ok(None);
    };
    let flags = control.check_fault(dividend.denormal_flag() | divisor.denormal_flag())?;
    Ok(Some(Rounded::exact(value, flags)))
}

/// Whether the division sequence's intermediate values could leave the register's range.
const fn iterations_leave_range(dividend: Normalized, divisor: Normalized) -> bool {
    let estimate = dividend.exponent - divisor.exponent;
    divisor.exponent <= 0
        || divisor.exponent >= 2 * BIAS - 2
        || estimate >= BIAS
        || estimate <= 2 - BIAS
        || dividend.exponent <= SMALL_EXPONENT
}

/// The quotient of two finite non-zero values, before rounding.
fn quotient(dividend: Normalized, divisor: Normalized) -> Unrounded {
    let divisor_bits = u128::from(divisor.significand);
    let shifted = u128::from(dividend.significand) << 64;
    let (high, rest) = (shifted / divisor_bits, shifted % divisor_bits);
    let (low, rest) = ((rest << 63) / divisor_bits, (rest << 63) % divisor_bits);
    let significand = high << 63 | low;
    Unrounded {
        negative: dividend.negative ^ divisor.negative,
        exponent: dividend.exponent - divisor.exponent + BIAS,
        significand: significand | u128::from(rest != 0),
    }
    .normalized()
}

/// `frsqrta`: an approximation of `1 / sqrt(radicand)`, or the IEEE root of a special operand. `control` is the
/// status field's with no precision completer.
///
/// # Errors
/// The fault, if the operand is invalid (so is a negative one) or denormal and that condition is not disabled.
#[inline]
pub fn reciprocal_root(radicand: FloatRegister, control: &Control) -> Result<Approximation, FloatFault> {
    if let Some(result) = propagate_nan(&[radicand], control)? {
        return Ok(Approximation::last(result));
    }
    let zero = radicand.significand() == 0;
    if radicand.is_negative() && !zero {
        return control.invalid().map(Approximation::last);
    }
    if radicand.class() == Class::Infinity {
        return Ok(Approximation::last(Rounded::exact(radicand, Flags::empty())));
    }
    let flags = control.check_fault(radicand.denormal_flag())?;
    if zero {
        let root = FloatRegister::zero(radicand.is_negative());
        return Ok(Approximation::last(Rounded::exact(root, flags)));
    }
    let normalized = radicand.normalized();
    if normalized.exponent <= SMALL_EXPONENT {
        let mut result = square_root(normalized).round(control);
        result.flags |= flags;
        return Ok(Approximation::last(result));
    }
    Ok(Approximation {
        result: Rounded::exact(approximate_reciprocal_root(normalized), flags),
        predicate: true,
    })
}

/// The root of a positive finite value, before rounding.
fn square_root(radicand: Normalized) -> Unrounded {
    // The 64-bit integer root of the significand, scaled to make the exponent even, then half a unit and the rest.
    let exponent = radicand.exponent - BIAS;
    let scaled = u128::from(radicand.significand) << (63 + (exponent & 1));
    let root = scaled.isqrt();
    let rest = scaled - root * root;
    let half = u128::from(rest > root);
    Unrounded {
        negative: false,
        exponent: (exponent >> 1) + BIAS,
        significand: root << 64 | half << 63 | u128::from(rest != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{Completer, StatusField, StatusRegister};
    use proptest::prelude::*;

    fn control() -> Control {
        StatusRegister::LINUX.control(StatusField::S1, Completer::Dynamic)
    }

    fn double(value: f64) -> FloatRegister {
        FloatRegister::from_double(value.to_bits())
    }

    #[test]
    fn the_tables_hold_the_manuals_entries() {
        assert_eq!(RECIPROCALS[..4], [0x7FC, 0x7F4, 0x7EC, 0x7E4]);
        assert_eq!(RECIPROCALS[126..130], [0x55B, 0x557, 0x554, 0x550]);
        assert_eq!(RECIPROCALS[253..], [0x405, 0x403, 0x401]);
        assert_eq!(RECIPROCAL_ROOTS[..4], [0x5A5, 0x5A0, 0x59A, 0x595]);
        assert_eq!(RECIPROCAL_ROOTS[126..130], [0x403, 0x401, 0x7FC, 0x7F4]);
        assert_eq!(RECIPROCAL_ROOTS[253..], [0x5AF, 0x5AC, 0x5AA]);
    }

    #[test]
    fn approximations_are_within_the_manuals_bounds() {
        // Relative errors below 2^-8.886 and 2^-8.831.
        for step in 0..4096 {
            let value = 1.0 + f64::from(step) / 1024.0;
            let approximation = reciprocal(FloatRegister::ONE, double(value), &control()).unwrap();
            assert!(approximation.predicate);
            let estimate = f64::from_bits(approximation.result.value.to_double());
            assert!((estimate * value - 1.0).abs() < (-8.886f64).exp2(), "{value}");
            let approximation = reciprocal_root(double(value), &control()).unwrap();
            let estimate = f64::from_bits(approximation.result.value.to_double());
            assert!(
                (estimate * value.sqrt() - 1.0).abs() < (-8.831f64).exp2(),
                "{value}"
            );
        }
    }

    #[test]
    fn special_quotients() {
        let (zero, one, infinity) = (
            FloatRegister::ZERO,
            FloatRegister::ONE,
            FloatRegister::infinity(false),
        );
        let minus_one = FloatRegister::new(true, 0xFFFF, 1 << 63);
        let pseudo_zero = FloatRegister::new(false, 9, 0);
        let nan = double(f64::NAN);
        let none = Flags::empty();
        for (dividend, divisor, value, flags) in [
            (zero, zero, FloatRegister::DEFAULT_NAN, Flags::INVALID),
            (infinity, infinity, FloatRegister::DEFAULT_NAN, Flags::INVALID),
            (minus_one, zero, FloatRegister::infinity(true), Flags::ZERO_DIVIDE),
            (one, pseudo_zero, infinity, Flags::ZERO_DIVIDE),
            (infinity, minus_one, FloatRegister::infinity(true), none),
            (infinity, zero, infinity, none),
            (minus_one, infinity, FloatRegister::zero(true), none),
            (zero, minus_one, FloatRegister::zero(true), none),
            (pseudo_zero, one, zero, Flags::DENORMAL),
            (nan, zero, nan, none),
            (one, FloatRegister::NATVAL, FloatRegister::NATVAL, none),
        ] {
            let result = reciprocal(dividend, divisor, &control()).unwrap();
            let expected = Approximation::last(Rounded::exact(value, flags));
            assert_eq!(result, expected, "{dividend:?} / {divisor:?}");
        }
        let enabled = Control {
            disabled: Flags::all() - Flags::ZERO_DIVIDE,
            ..control()
        };
        assert_eq!(reciprocal(one, zero, &enabled), Err(FloatFault { isr_code: 4 }));
    }

    #[test]
    fn special_roots() {
        let infinity = FloatRegister::infinity(false);
        for (radicand, value, flags) in [
            (double(-0.0), double(-0.0), Flags::empty()),
            (infinity, infinity, Flags::empty()),
            (
                FloatRegister::infinity(true),
                FloatRegister::DEFAULT_NAN,
                Flags::INVALID,
            ),
            (double(-4.0), FloatRegister::DEFAULT_NAN, Flags::INVALID),
            (
                FloatRegister::new(true, 3, 0),
                FloatRegister::zero(true),
                Flags::DENORMAL,
            ),
        ] {
            let result = reciprocal_root(radicand, &control()).unwrap();
            assert_eq!(
                result,
                Approximation::last(Rounded::exact(value, flags)),
                "{radicand:?}"
            );
        }
    }

    #[test]
    fn denormal_doubles_are_approximated() {
        let approximation = reciprocal(FloatRegister::ONE, double(5e-324), &control()).unwrap();
        assert!(approximation.predicate);
        assert_eq!(approximation.result.flags, Flags::DENORMAL);
        assert_eq!(approximation.result.value.exponent(), 0xFFFF + 1073);
    }

    proptest! {
        /// Extreme exponents take the quotient and the root themselves: shifted into the doubles, the host agrees.
        #[test]
        fn quotients_and_roots_match_the_host(a in 1.0f64..2.0, b in 1.0f64..2.0, exponent in 1u32..60) {
            let control = StatusRegister::new(StatusRegister::LINUX.bits() & !(3 << 21) | 2 << 21)
                .unwrap()
                .control(StatusField::S1, Completer::Dynamic);
            let divisor = FloatRegister::new(false, 0x1FFFD, double(b).significand());
            let dividend = FloatRegister::new(true, 0x1FFFD, double(a).significand());
            let result = reciprocal(dividend, divisor, &control).unwrap();
            prop_assert!(!result.predicate);
            prop_assert_eq!(result.result.value, double(-(a / b)));

            let radicand = FloatRegister::new(false, exponent, double(a).significand());
            let result = reciprocal_root(radicand, &control).unwrap();
            prop_assert!(!result.predicate);
            let odd = if exponent % 2 == 0 { 2.0 } else { 1.0 };
            let root = double((a * odd).sqrt());
            prop_assert_eq!(result.result.value.significand(), root.significand());
            let halved = (exponent as i32 - BIAS) >> 1;
            prop_assert_eq!(result.result.value.exponent() as i32, root.exponent() as i32 + halved);
        }
    }
}
