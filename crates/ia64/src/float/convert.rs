//! Conversions between floating-point values and integers.
//!
//! `fcvt.xuf` has no function here: it is a multiplication of the integer's register by f1.
//!
//! Source: Itanium manual, volume 3, `fcvt.fx`, `fcvt.xf`.

use super::control::{Control, Flags, FloatFault, Rounded};
use super::register::{Class, EXPONENT_BIAS, EXPONENT_INTEGER, FloatRegister};
use super::round::{delivered, shift_right};
use crate::encoding::Signedness;

/// `fcvt.fx`, `fcvt.fxu`: the 64-bit integer nearest in the control's rounding mode (`.trunc`:
/// [`Control::with_rounding`]); a value out of range is invalid and gives the integer indefinite.
///
/// # Errors
/// The fault, if the operand is invalid, out of range or denormal and that condition is not disabled.
#[inline]
pub fn to_integer(
    value: FloatRegister,
    signedness: Signedness,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    if value.is_natval() {
        return Ok(Rounded::exact(FloatRegister::NATVAL, Flags::empty()));
    }
    to_integer_of_width(value, signedness, 64, control)
}

/// As [`to_integer`] for integers of `width` bits (64 or 32), held in the low bits of the result's significand.
pub(super) fn to_integer_of_width(
    value: FloatRegister,
    signedness: Signedness,
    width: u32,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    let Some((magnitude, inexact, incremented)) = rounded_magnitude(value, control) else {
        return out_of_range(width, control);
    };
    let sign_bit = 1u64 << (width - 1);
    let in_range = match (signedness, value.is_negative()) {
        (Signedness::Signed, false) => magnitude < sign_bit,
        (Signedness::Signed, true) => magnitude <= sign_bit,
        (Signedness::Unsigned, false) => magnitude >> (width - 1) <= 1,
        (Signedness::Unsigned, true) => magnitude == 0,
    };
    if !in_range {
        return out_of_range(width, control);
    }
    let operand_flags = control.check_fault(value.denormal_flag())?;
    let integer = if value.is_negative() {
        magnitude.wrapping_neg()
    } else {
        magnitude
    };
    let inexact_flag = if inexact { Flags::INEXACT } else { Flags::empty() };
    let significand = integer & (u64::MAX >> (64 - width));
    let result = FloatRegister::from_significand(significand);
    Ok(delivered(
        result,
        operand_flags | inexact_flag,
        incremented,
        control,
    ))
}

/// The magnitude rounded to an integer, whether that was inexact and whether it grew; `None` from 2^64 on.
#[inline]
fn rounded_magnitude(value: FloatRegister, control: &Control) -> Option<(u64, bool, bool)> {
    if !matches!(value.class(), Class::Normal | Class::Unnormal | Class::Zero) {
        return None;
    }
    let value = value.normalized();
    let below_integers = EXPONENT_INTEGER as i32 - value.exponent;
    if value.significand == 0 {
        return Some((0, false, false));
    }
    if below_integers < 0 {
        return None;
    }
    let (fixed_point, lost) = shift_right(u128::from(value.significand) << 64, below_integers as u32);
    let (floor, fraction) = ((fixed_point >> 64) as u64, fixed_point as u64 | u64::from(lost));
    let incremented = control
        .rounding
        .increments(value.negative, floor & 1 != 0, fraction, 1 << 63);
    Some((
        floor.checked_add(u64::from(incremented))?,
        fraction != 0,
        incremented,
    ))
}

fn out_of_range(width: u32, control: &Control) -> Result<Rounded, FloatFault> {
    let flags = control.check_fault(Flags::INVALID)?;
    Ok(Rounded::exact(
        FloatRegister::from_significand(1 << (width - 1)),
        flags,
    ))
}

/// `fcvt.xf`: the value of the significand as a signed integer, always exact.
#[inline]
pub const fn from_signed_integer(value: FloatRegister) -> FloatRegister {
    if value.is_natval() {
        return FloatRegister::NATVAL;
    }
    let integer = value.significand() as i64;
    let magnitude = integer.unsigned_abs();
    if magnitude == 0 {
        return FloatRegister::ZERO;
    }
    let shift = magnitude.leading_zeros();
    FloatRegister::new(integer < 0, EXPONENT_BIAS + 63 - shift, magnitude << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{Completer, FloatTrap, Rounding, StatusField, StatusRegister};
    use proptest::prelude::*;

    fn control(rounding: Rounding) -> Control {
        StatusRegister::LINUX
            .control(StatusField::S0, Completer::Dynamic)
            .with_rounding(rounding)
    }

    fn double(value: f64) -> FloatRegister {
        FloatRegister::from_double(value.to_bits())
    }

    /// Converts and reads the result as a signed integer, with its flags.
    fn signed(value: f64, rounding: Rounding) -> (i64, Flags) {
        let result = to_integer(double(value), Signedness::Signed, &control(rounding)).unwrap();
        (result.value.significand() as i64, result.flags)
    }

    #[test]
    fn each_rounding_mode_goes_its_way() {
        for (value, expected) in [
            (2.5, [2, 2, 3, 2]),
            (3.5, [4, 3, 4, 3]),
            (-2.5, [-2, -3, -2, -2]),
            (0.25, [0, 0, 1, 0]),
            (-0.75, [-1, -1, 0, 0]),
            (1e-300, [0, 0, 1, 0]),
        ] {
            let results = Rounding::ALL.map(|rounding| signed(value, rounding));
            assert_eq!(
                results,
                expected.map(|integer| (integer, Flags::INEXACT)),
                "{value}"
            );
        }
        assert_eq!(signed(-7.0, Rounding::Nearest), (-7, Flags::empty()));
    }

    #[test]
    fn out_of_range_is_invalid_and_indefinite() {
        let most = 9223372036854775808.0;
        for value in [most, -most * 1.5, f64::INFINITY, f64::NAN, 1e300] {
            assert_eq!(
                signed(value, Rounding::Zero),
                (i64::MIN, Flags::INVALID),
                "{value}"
            );
        }
        assert_eq!(signed(-most, Rounding::Zero), (i64::MIN, Flags::empty()));
        let unsigned =
            |value| to_integer(double(value), Signedness::Unsigned, &control(Rounding::Nearest)).unwrap();
        assert_eq!(unsigned(most).value.significand(), 1 << 63);
        assert_eq!(unsigned(most).flags, Flags::empty());
        assert_eq!(unsigned(2.0 * most).flags, Flags::INVALID);
        assert_eq!(unsigned(-1.0).flags, Flags::INVALID);
        assert_eq!(unsigned(-0.25).value.significand(), 0);
        assert_eq!(unsigned(-0.25).flags, Flags::INEXACT);
    }

    #[test]
    fn exceptions_follow_their_order() {
        let denormal_out_of_range = FloatRegister::new(false, 0x10080, 1 << 60);
        let enabled = Control {
            disabled: Flags::all() - Flags::DENORMAL,
            ..control(Rounding::Up)
        };
        let result = to_integer(denormal_out_of_range, Signedness::Signed, &enabled).unwrap();
        assert_eq!(result.flags, Flags::INVALID);
        let unnormal = FloatRegister::new(false, 0xFFFF, 1);
        assert_eq!(
            to_integer(unnormal, Signedness::Signed, &enabled),
            Err(FloatFault { isr_code: 2 })
        );
        let enabled = Control {
            disabled: Flags::all() - Flags::INEXACT,
            ..control(Rounding::Up)
        };
        let result = to_integer(unnormal, Signedness::Signed, &enabled).unwrap();
        assert_eq!(result.trap, FloatTrap::INEXACT | FloatTrap::MAGNITUDE_INCREASED);
        assert_eq!(result.value, FloatRegister::from_significand(1));
    }

    proptest! {
        #[test]
        fn truncation_matches_the_host(bits: u64, exponent in 0x3C0u64..0x440) {
            let value = f64::from_bits(bits & !(0x7FF << 52) | exponent << 52);
            let host = value as i64;
            if value.trunc() == host as f64 && host != i64::MAX {
                let flags = if value.fract() == 0.0 { Flags::empty() } else { Flags::INEXACT };
                prop_assert_eq!(signed(value, Rounding::Zero), (host, flags));
            } else {
                prop_assert_eq!(signed(value, Rounding::Zero), (i64::MIN, Flags::INVALID));
            }
        }

        #[test]
        fn integers_convert_exactly(integer: i64, shift in 0u32..64) {
            let integer = integer >> shift;
            let value = from_signed_integer(FloatRegister::from_significand(integer as u64));
            let back = to_integer(value, Signedness::Signed, &control(Rounding::Nearest)).unwrap();
            prop_assert_eq!((back.value.significand() as i64, back.flags), (integer, Flags::empty()));
            if i64::from(integer as i32) == integer {
                prop_assert_eq!(value, double(integer as f64));
            }
        }
    }
}
