//! Multiply-adds of usual operands, rounded to nearest in a range that their result cannot leave: the steps of a
//! division or a square root, most of all.
//!
//! Operands are normal values whose exponents are in a middle in which neither a product nor what cancellation leaves
//! of a sum comes near the ends of the double-extended range. So nothing but I can be raised, and one comparison
//! rounds. Everything else is left to [`multiply_add()`](super::multiply_add()), whose results these are.

use std::hint::select_unpredictable;

use super::control::{Flags, Range, Rounding};
use super::register::{EXPONENT_BIAS, FloatRegister};
use super::round::shift_right;

/// The smallest exponent of an operand, and how many there are, as a power of two: the same on both sides of 1.0.
pub const LOWEST_EXPONENT: u32 = EXPONENT_BIAS - (1 << (EXPONENTS_LOG2 - 1));
/// See [`LOWEST_EXPONENT`].
pub const EXPONENTS_LOG2: u32 = 13;

/// So many bits of a difference may cancel where bits of an operand were lost below it: the sticky bit that stands for
/// them is still below those that decide how a 64-bit significand is rounded.
const CANCELLED_MAX: u32 = 62;

/// A result: a zero, or with the integer bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The rounded value.
    pub value: FloatRegister,
    /// Whether it is not the precise one.
    pub is_inexact: bool,
}

/// Whether these functions answer what an operation delivers: it rounds to nearest, results in the middle are in range,
/// and inexact ones only raise their flag.
pub(super) const fn applies(range: Range, rounding: Rounding, disabled: Flags) -> bool {
    matches!(rounding, Rounding::Nearest)
        && matches!(range, Range::Extended | Range::Register)
        && disabled.contains(Flags::INEXACT)
}

/// `multiplicand * multiplier + addend`, rounded once to `PRECISION` bits (24 to 64); `None` where an operand is not
/// usual, or too many bits cancel.
#[inline(always)]
pub fn multiply_add<const PRECISION: u32>(
    multiplicand: FloatRegister,
    multiplier: FloatRegister,
    addend: FloatRegister,
) -> Option<Nearest> {
    if !are_usual([multiplicand, multiplier, addend]) {
        return None;
    }
    let (product, exponent) = product(multiplicand, multiplier);
    let is_negative = multiplicand.is_negative() ^ multiplier.is_negative();
    let term = u128::from(addend.significand()) << 64;
    let difference = exponent.cast_signed() - addend.exponent().cast_signed();
    // The product may have its highest bit clear: by exponents that are equal or differ by one it is not always the
    // larger one. Then the addend loses nothing.
    let is_swapped = difference < 0;
    let large = select_unpredictable(is_swapped, term, product);
    let small = select_unpredictable(is_swapped, product, term);
    let exponent = select_unpredictable(is_swapped, addend.exponent(), exponent);
    let (aligned, is_lost) = shift_right(small, difference.unsigned_abs());

    if is_negative == addend.is_negative() {
        let (sum, carried) = large.overflowing_add(aligned);
        let shift = u32::from(carried);
        let sum = sum >> shift | sum & 1 | u128::from(is_lost) | u128::from(carried) << 127;
        return Some(rounded::<PRECISION>(is_negative, exponent + shift, sum));
    }
    let (difference, is_exceeded) = large.overflowing_sub(aligned);
    let below = (difference - u128::from(is_lost)) | u128::from(is_lost);
    let magnitude = select_unpredictable(is_exceeded, difference.wrapping_neg(), below);
    if is_lost && magnitude.leading_zeros() > CANCELLED_MAX {
        return None;
    }
    if magnitude == 0 {
        // Rounded to nearest it is positive.
        return Some(Nearest {
            value: FloatRegister::ZERO,
            is_inexact: false,
        });
    }
    let is_negative = is_negative ^ is_swapped ^ is_exceeded;
    Some(rounded::<PRECISION>(is_negative, exponent, magnitude))
}

/// `multiplicand * multiplier`, rounded to `PRECISION` bits (24 to 64); `None` where an operand is not usual.
#[inline(always)]
pub fn multiply<const PRECISION: u32>(
    multiplicand: FloatRegister,
    multiplier: FloatRegister,
) -> Option<Nearest> {
    if !are_usual([multiplicand, multiplier]) {
        return None;
    }
    let (product, exponent) = product(multiplicand, multiplier);
    let is_negative = multiplicand.is_negative() ^ multiplier.is_negative();
    Some(rounded::<PRECISION>(is_negative, exponent, product))
}

/// Whether all operands are normal values with exponents in the middle.
#[inline(always)]
fn are_usual<const N: usize>(operands: [FloatRegister; N]) -> bool {
    let (mut integer_bits, mut exponents) = (u64::MAX, 0);
    for operand in operands {
        integer_bits &= operand.significand();
        exponents |= operand.exponent().wrapping_sub(LOWEST_EXPONENT);
    }
    integer_bits >> 63 != 0 && exponents >> EXPONENTS_LOG2 == 0
}

/// The exact product of the significands, its highest or second highest bit set, and the exponent of the highest.
#[inline(always)]
fn product(multiplicand: FloatRegister, multiplier: FloatRegister) -> (u128, u32) {
    let product = u128::from(multiplicand.significand()) * u128::from(multiplier.significand());
    let exponent = multiplicand.exponent() + multiplier.exponent() - (EXPONENT_BIAS - 1);
    (product, exponent)
}

/// Rounds a magnitude that is not zero, whose highest bit has an exponent.
#[inline(always)]
fn rounded<const PRECISION: u32>(is_negative: bool, exponent: u32, magnitude: u128) -> Nearest {
    let shift = magnitude.leading_zeros();
    let normalized = magnitude << shift;
    let (high, low) = ((normalized >> 64) as u64, normalized as u64);
    let dropped = 64 - PRECISION;
    let unit = 1 << dropped;
    let kept = high & !(unit - 1);
    // What is dropped, in units of half the last place that is kept, as far as it decides: it rounds up above one and,
    // where the kept part is odd, at one.
    let (rest, half) = match dropped {
        0 => (low, 1 << 63),
        _ => ((high & (unit - 1)) << 1 | u64::from(low != 0), unit),
    };
    let is_odd = high >> dropped & 1;
    let is_up = rest >= half + 1 - is_odd;
    let (sum, is_carried) = kept.overflowing_add(u64::from(is_up) << dropped);
    let significand = sum | u64::from(is_carried) << 63;
    Nearest {
        value: FloatRegister::new(is_negative, exponent - shift + u32::from(is_carried), significand),
        is_inexact: rest != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::MultiplyAdd;
    use crate::float::{self, Control, Precision, Rounded};
    use proptest::prelude::*;

    /// `FLOAT_TEST_CASES` sets the number of random cases.
    fn cases() -> ProptestConfig {
        let cases = std::env::var("FLOAT_TEST_CASES").ok();
        ProptestConfig {
            cases: cases.and_then(|text| text.parse().ok()).unwrap_or(8_000),
            failure_persistence: None,
            ..ProptestConfig::default()
        }
    }

    /// Significands with few changes between ones and zeros among any others, and exponents around one another, in the
    /// middle, at its ends and beyond.
    fn registers() -> impl Strategy<Value = FloatRegister> {
        let exponent = prop_oneof![
            6 => 0xFFFFu32 - 70..0xFFFF + 70,
            3 => 0xFFFFu32 - 2..0xFFFF + 2,
            1 => LOWEST_EXPONENT - 3..LOWEST_EXPONENT + 3,
            1 => LOWEST_EXPONENT + (1 << EXPONENTS_LOG2) - 3..LOWEST_EXPONENT + (1 << EXPONENTS_LOG2) + 3,
            1 => 0u32..0x20000,
        ];
        let significand = prop_oneof![
            3 => any::<u64>(),
            3 => (0u32..64, 0u32..64).prop_map(|(from, to)| (u64::MAX << from) ^ (u64::MAX << to)),
            1 => (0u64..8).prop_map(|low| low),
            1 => (0u64..8).prop_map(|low| u64::MAX - low),
        ];
        let integer_bit = prop_oneof![15 => Just(1u64 << 63), 1 => Just(0)];
        (any::<bool>(), exponent, significand, integer_bit).prop_map(
            |(negative, exponent, significand, bit)| {
                FloatRegister::new(negative, exponent, significand | bit)
            },
        )
    }

    /// The control under which an operation of so many bits rounds to nearest, and the same for any operands.
    fn controls(precision: Precision, range: Range) -> [Control; 2] {
        let quick = Control::new(precision, range, Rounding::Nearest, false, Flags::all());
        assert!(quick.is_nearest);
        let any = Control {
            is_nearest: false,
            ..quick
        };
        [quick, any]
    }

    fn quick(precision: Precision, [a, b]: [FloatRegister; 2], c: Option<FloatRegister>) -> Option<Nearest> {
        match (precision, c) {
            (Precision::Single, Some(c)) => multiply_add::<24>(a, b, c),
            (Precision::Double, Some(c)) => multiply_add::<53>(a, b, c),
            (Precision::Extended, Some(c)) => multiply_add::<64>(a, b, c),
            (Precision::Single, None) => multiply::<24>(a, b),
            (Precision::Double, None) => multiply::<53>(a, b),
            (Precision::Extended, None) => multiply::<64>(a, b),
        }
    }

    /// What is delivered by these functions is what is delivered without them, by each operation that uses them.
    fn same(a: FloatRegister, b: FloatRegister, c: FloatRegister) -> Result<u32, TestCaseError> {
        let mut answered = 0;
        for precision in [Precision::Single, Precision::Double, Precision::Extended] {
            for range in [Range::Extended, Range::Register] {
                let [control, any] = controls(precision, range);
                for (sum, expected) in [
                    (Some(c), float::multiply_add(a, b, c, MultiplyAdd::Add, &any)),
                    (None, float::multiply(a, b, MultiplyAdd::Add, &any)),
                ] {
                    let Some(Nearest { value, is_inexact }) = quick(precision, [a, b], sum) else {
                        continue;
                    };
                    answered += 1;
                    let flags = if is_inexact {
                        Flags::INEXACT
                    } else {
                        Flags::empty()
                    };
                    prop_assert_eq!(
                        Ok(Rounded::exact(value, flags)),
                        expected,
                        "{:?} {:?}",
                        precision,
                        sum
                    );
                }
                for function in [MultiplyAdd::Add, MultiplyAdd::Subtract, MultiplyAdd::NegateAdd] {
                    let [one, other] = [&control, &any].map(|control| {
                        let sum = float::multiply_add(a, b, c, function, control);
                        (
                            sum,
                            float::multiply(a, b, function, control),
                            float::add(a, c, function, control),
                        )
                    });
                    prop_assert_eq!(one, other, "{:?} {:?}", precision, function);
                }
            }
        }
        Ok(answered)
    }

    #[test]
    fn usual_operands_are_answered() {
        let [three, seven] = [3.0, 7.0].map(|value: f64| FloatRegister::from_double(value.to_bits()));
        assert_eq!(
            same(three, seven, FloatRegister::ONE).expect("the same numbers"),
            12
        );
        let third = multiply_add::<64>(three, FloatRegister::new(false, 0xFFFD, !0 / 3 << 1), seven);
        assert!(third.is_some_and(|third| third.is_inexact));
    }

    #[test]
    fn what_decides_below_a_deep_cancellation_is_left() {
        // The product's last bit, lost by aligning, is all that decides: 2^127 less a product just below it.
        let low = FloatRegister::new(false, 0xFFFF, u64::MAX);
        let power = FloatRegister::new(true, 0x10001, 1 << 63);
        assert_eq!(multiply_add::<64>(low, low, power), None);
        same(low, low, power).expect("the same numbers");
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn usual_operands_give_what_any_would(a in registers(), b in registers(), c in registers()) {
            same(a, b, c)?;
        }

        #[test]
        fn nearly_cancelling_operands_give_what_any_would(
            a in registers(), b in registers(), place in 0u32..64, nearby in 0u32..3,
        ) {
            let [_, any] = controls(Precision::Extended, Range::Register);
            let product = float::multiply(a, b, MultiplyAdd::Add, &any).unwrap().value;
            let significand = product.significand() ^ 1 << place;
            let exponent = (product.exponent() + nearby).wrapping_sub(1);
            for significand in [significand, product.significand()] {
                same(a, b, FloatRegister::new(!product.is_negative(), exponent, significand))?;
            }
        }
    }
}
