//! Parallel single-precision operations: the same arithmetic on both 32-bit halves of a significand.
//!
//! The halves are computed apart and committed together: their flags are united, and a fault in either leaves both
//! undone. Faults and traps report the high half where a scalar operation does and the low half beside it.
//!
//! Source: Itanium manual, volume 3, `fpma`, `fpms`, `fpnma`, `fpmin`, `fpmax`, `fpamin`, `fpamax`, `fpcmp`,
//! `fpcvt.fx`, `fprcpa`, `fprsqrta`.

use super::compare::{self, Compared};
use super::control::{Control, Flags, FloatFault, FloatTrap, Rounded};
use super::convert;
use super::multiply_add::{self, propagate_nan};
use super::reciprocal::{
    Approximation, approximate_reciprocal, approximate_reciprocal_root, special_quotient,
};
use super::register::{Class, EXPONENT_BIAS, FloatRegister};
use crate::encoding::{Extremum, FloatRelation, MultiplyAdd, Signedness};

const BIAS: i32 = EXPONENT_BIAS as i32;
/// The largest unbiased exponent of the single format.
const EXPONENT_MAX: i32 = 127;
/// At most this biased exponent, a dividend or radicand loses bits in the iterations.
const SMALL_EXPONENT: i32 = BIAS - EXPONENT_MAX + 24;

/// Applies `operation` to the high halves, then to the low halves, of up to three registers.
#[inline]
fn on_halves<const N: usize>(
    operands: [FloatRegister; N],
    mut operation: impl FnMut([FloatRegister; N]) -> Result<Half, FloatFault>,
) -> Result<Rounded, FloatFault> {
    if operands.iter().any(|operand| operand.is_natval()) {
        return Ok(Rounded::exact(FloatRegister::NATVAL, Flags::empty()));
    }
    let high =
        operation(operands.map(|operand| FloatRegister::from_single((operand.significand() >> 32) as u32)));
    let low = operation(operands.map(|operand| FloatRegister::from_single(operand.significand() as u32)));
    match (high, low) {
        (Ok(high), Ok(low)) => Ok(Rounded {
            value: FloatRegister::from_significand(u64::from(high.bits) << 32 | u64::from(low.bits)),
            flags: high.flags | low.flags,
            trap: high.trap | low.trap.for_low_half(),
        }),
        (high, low) => {
            let code = |half: Result<Half, FloatFault>| half.err().map_or(0, |fault| fault.isr_code);
            Err(FloatFault {
                isr_code: code(high) | code(low) << 4,
            })
        }
    }
}

/// One half of a result.
struct Half {
    bits: u32,
    flags: Flags,
    trap: FloatTrap,
}

impl Half {
    /// A scalar result as a single.
    fn single(rounded: Rounded) -> Self {
        Self {
            bits: rounded.value.to_single(),
            flags: rounded.flags,
            trap: rounded.trap,
        }
    }

    /// A scalar result's low significand bits.
    fn integer(rounded: Rounded) -> Self {
        Self {
            bits: rounded.value.significand() as u32,
            flags: rounded.flags,
            trap: rounded.trap,
        }
    }
}

/// `fpma`, `fpms`, `fpnma`; `control` is that of [`super::Completer::Parallel`], and f2 is not the register f0.
///
/// # Errors
/// The fault, if an operand of either half is invalid or denormal and that condition is not disabled.
pub fn multiply_add(
    f3: FloatRegister,
    f4: FloatRegister,
    f2: FloatRegister,
    operation: MultiplyAdd,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    on_halves([f3, f4, f2], |[f3, f4, f2]| {
        multiply_add::multiply_add(f3, f4, f2, operation, control).map(Half::single)
    })
}

/// `fpmpy`, `fpnmpy`: the family with f0 as f2.
///
/// # Errors
/// As [`multiply_add()`].
pub fn multiply(
    f3: FloatRegister,
    f4: FloatRegister,
    operation: MultiplyAdd,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    on_halves([f3, f4], |[f3, f4]| {
        multiply_add::multiply(f3, f4, operation, control).map(Half::single)
    })
}

/// `fpmin`, `fpmax`, `fpamin`, `fpamax`.
///
/// # Errors
/// As [`compare::extremum`], for either half.
pub fn extremum(
    f2: FloatRegister,
    f3: FloatRegister,
    wanted: Extremum,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    on_halves([f2, f3], |[f2, f3]| {
        compare::extremum(f2, f3, wanted, control).map(Half::single)
    })
}

/// `fpcmp`: all ones in each half where the relation holds (where it does not, with `negated`).
///
/// # Errors
/// As [`compare::compare`], for either half.
pub fn compare(
    f2: FloatRegister,
    f3: FloatRegister,
    relation: FloatRelation,
    negated: bool,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    on_halves([f2, f3], |[f2, f3]| {
        let Compared { holds, flags } = compare::compare(f2, f3, relation, control)?;
        let bits = if holds == Some(!negated) { u32::MAX } else { 0 };
        Ok(Half {
            bits,
            flags,
            trap: FloatTrap::empty(),
        })
    })
}

/// `fpcvt.fx`, `fpcvt.fxu`: 32-bit integers.
///
/// # Errors
/// As [`convert::to_integer`], for either half.
pub fn to_integers(
    value: FloatRegister,
    signedness: Signedness,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    on_halves([value], |[value]| {
        convert::to_integer_of_width(value, signedness, 32, control).map(Half::integer)
    })
}

/// `fprcpa`: the predicate is set if both halves are approximations to iterate from.
///
/// # Errors
/// The fault, if an operand of either half is invalid or denormal or a divisor zero and that is not disabled.
pub fn reciprocal(
    dividend: FloatRegister,
    divisor: FloatRegister,
    control: &Control,
) -> Result<Approximation, FloatFault> {
    approximation_on_halves([dividend, divisor], |[dividend, divisor]| {
        half_reciprocal(dividend, divisor, control)
    })
}

/// `fprsqrta`: the predicate is set if both halves are approximations to iterate from.
///
/// # Errors
/// The fault, if either half is invalid (so is a negative one) or denormal and that is not disabled.
pub fn reciprocal_root(radicand: FloatRegister, control: &Control) -> Result<Approximation, FloatFault> {
    approximation_on_halves([radicand], |[radicand]| half_reciprocal_root(radicand, control))
}

fn approximation_on_halves<const N: usize>(
    operands: [FloatRegister; N],
    operation: impl Fn([FloatRegister; N]) -> Result<Approximation, FloatFault>,
) -> Result<Approximation, FloatFault> {
    let mut predicate = !operands.iter().any(|operand| operand.is_natval());
    let result = on_halves(operands, |half| {
        let approximation = operation(half)?;
        predicate &= approximation.predicate;
        Ok(Half::single(approximation.result))
    })?;
    Ok(Approximation { result, predicate })
}

fn half_reciprocal(
    dividend: FloatRegister,
    divisor: FloatRegister,
    control: &Control,
) -> Result<Approximation, FloatFault> {
    if let Some(special) = special_quotient(dividend, divisor, control)? {
        return Ok(Approximation::last(special));
    }
    let flags = control.check_fault(dividend.denormal_flag() | divisor.denormal_flag())?;
    let (numerator, denominator) = (dividend.normalized(), divisor.normalized());
    let exact = |value| Approximation::last(Rounded::exact(value, flags));
    if divisor.class() == Class::Unnormal {
        return Ok(exact(FloatRegister::infinity(denominator.negative)));
    }
    if denominator.exponent >= BIAS + EXPONENT_MAX - 2 {
        return Ok(exact(FloatRegister::zero(denominator.negative)));
    }
    let estimate = numerator.exponent - denominator.exponent;
    let leaves_range =
        estimate >= EXPONENT_MAX || estimate <= 2 - EXPONENT_MAX || numerator.exponent <= SMALL_EXPONENT;
    Ok(Approximation {
        predicate: !leaves_range,
        ..exact(approximate_reciprocal(denominator))
    })
}

fn half_reciprocal_root(radicand: FloatRegister, control: &Control) -> Result<Approximation, FloatFault> {
    let exact = |value, flags| Approximation::last(Rounded::exact(value, flags));
    if let Some(result) = propagate_nan(&[radicand], control)? {
        return Ok(Approximation::last(result));
    }
    match radicand.class() {
        Class::Zero => {
            return Ok(exact(
                FloatRegister::infinity(radicand.is_negative()),
                Flags::empty(),
            ));
        }
        _ if radicand.is_negative() => return control.invalid().map(Approximation::last),
        Class::Infinity => return Ok(exact(FloatRegister::ZERO, Flags::empty())),
        _ => {}
    }
    let flags = control.check_fault(radicand.denormal_flag())?;
    let normalized = radicand.normalized();
    let predicate = normalized.exponent > SMALL_EXPONENT;
    Ok(Approximation {
        predicate,
        ..exact(approximate_reciprocal_root(normalized), flags)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{Completer, Rounding, StatusField, StatusRegister};
    use proptest::prelude::*;

    fn control() -> Control {
        StatusRegister::LINUX.control(StatusField::S0, Completer::Parallel)
    }

    fn pair(high: f32, low: f32) -> FloatRegister {
        FloatRegister::from_significand(u64::from(high.to_bits()) << 32 | u64::from(low.to_bits()))
    }

    #[test]
    fn faults_and_traps_name_their_half() {
        let enabled = Control {
            disabled: Flags::empty(),
            ..control()
        };
        let infinity = f32::INFINITY;
        let invalid_low = multiply(pair(1.0, infinity), pair(1.0, 0.0), MultiplyAdd::Add, &enabled);
        assert_eq!(invalid_low, Err(FloatFault { isr_code: 0x10 }));
        let both = multiply(pair(1e-40, infinity), pair(1.0, 0.0), MultiplyAdd::Add, &enabled);
        assert_eq!(both, Err(FloatFault { isr_code: 0x12 }));
        let inexact_low = multiply(pair(1.0, 0.1), pair(1.0, 0.1), MultiplyAdd::Add, &enabled).unwrap();
        assert_eq!(inexact_low.trap & !FloatTrap::LOW_HALF, FloatTrap::empty());
        assert_eq!(
            inexact_low.trap,
            FloatTrap::INEXACT.for_low_half() | inexact_low.trap & FloatTrap::from_bits_retain(8)
        );
        let overflow = multiply(pair(1e38, 1.0), pair(16.0, 1.0), MultiplyAdd::Add, &enabled).unwrap();
        assert!(overflow.trap.contains(FloatTrap::OVERFLOW));
        assert_eq!(overflow.flags & Flags::OVERFLOW, Flags::OVERFLOW);
        // 2^3 times a value of exponent 126: 130 wraps to 2 (257 - 256 = 1 in the biased field).
        assert_eq!(overflow.value.significand() >> 55 & 0xFF, 1);
    }

    #[test]
    fn reciprocals_leave_the_iterations_range_at_the_single_formats_ends() {
        let approximation = |dividend, divisor| {
            let result = reciprocal(pair(dividend, 1.0), pair(divisor, 1.0), &control()).unwrap();
            let high = f32::from_bits((result.result.value.significand() >> 32) as u32);
            (high, result.predicate)
        };
        let (estimate, predicate) = approximation(1.0, 3.0);
        assert!(predicate && (estimate * 3.0 - 1.0).abs() < 0.003);
        assert_eq!(approximation(1.0, 1e-40), (f32::INFINITY, false));
        assert_eq!(approximation(1.0, -2e38), (-0.0, false));
        assert_eq!(approximation(5.0, 0.0), (f32::INFINITY, false));
        assert!(!approximation(1e-35, 2.0).1);
        assert!(!approximation(1e30, 1e-30).1);
    }

    #[test]
    fn reciprocal_roots_of_zeros_and_infinities_are_reciprocals() {
        let result = reciprocal_root(pair(-0.0, f32::INFINITY), &control()).unwrap();
        assert!(!result.predicate);
        assert_eq!(result.result.value, pair(f32::NEG_INFINITY, 0.0));
        let result = reciprocal_root(pair(-4.0, 4.0), &control()).unwrap();
        assert_eq!(result.result.flags, Flags::INVALID);
        let natval = reciprocal_root(FloatRegister::NATVAL, &control()).unwrap();
        assert_eq!(
            (natval.result.value, natval.predicate),
            (FloatRegister::NATVAL, false)
        );
    }

    #[test]
    fn comparisons_make_masks() {
        let left = pair(1.0, f32::NAN);
        let right = pair(1.0, 2.0);
        let mask = |relation, negated| {
            compare(left, right, relation, negated, &control())
                .unwrap()
                .value
                .significand()
        };
        assert_eq!(mask(FloatRelation::Equal, false), 0xFFFF_FFFF_0000_0000);
        assert_eq!(mask(FloatRelation::Equal, true), 0x0000_0000_FFFF_FFFF);
        assert_eq!(mask(FloatRelation::Unordered, false), 0x0000_0000_FFFF_FFFF);
    }

    #[test]
    fn integers_of_32_bits_have_their_own_range() {
        let truncate = control().with_rounding(Rounding::Zero);
        let result = to_integers(pair(-3.75, 3e9), Signedness::Signed, &truncate).unwrap();
        assert_eq!(result.value.significand(), 0xFFFF_FFFD_8000_0000);
        assert_eq!(result.flags, Flags::INEXACT | Flags::INVALID);
        let result = to_integers(pair(0.0, 3e9), Signedness::Unsigned, &truncate).unwrap();
        assert_eq!(result.value.significand(), 3_000_000_000);
    }

    proptest! {
        #[test]
        fn both_halves_match_the_host(a: [u32; 2], b: [u32; 2], c: [u32; 2]) {
            let register = |bits: [u32; 2]| {
                FloatRegister::from_significand(u64::from(bits[0]) << 32 | u64::from(bits[1]))
            };
            let result =
                multiply_add(register(a), register(b), register(c), MultiplyAdd::Add, &control()).unwrap();
            for half in 0..2 {
                let bits = (result.value.significand() >> (32 - 32 * half)) as u32;
                let host = f32::from_bits(a[half]).mul_add(f32::from_bits(b[half]), f32::from_bits(c[half]));
                if host.is_nan() {
                    prop_assert!(f32::from_bits(bits).is_nan());
                } else {
                    prop_assert_eq!(bits, host.to_bits());
                }
            }
        }
    }
}
