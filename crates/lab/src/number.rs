//! The one kind of number that a result is made of: an exact ratio of integers.
//!
//! A deterministic experiment must give the same bytes on every machine, so results hold no floats. A [`Number`]
//! is an integer, a fixed decimal or a ratio; it is rounded only when it is shown, by integer arithmetic.
//!
//! Limits: numerator and denominator are 128 bits wide; arithmetic that leaves that range panics, which the
//! laboratory reports as the failure of one point.

use std::fmt;
use std::str::FromStr;

use num_rational::Ratio;
use num_traits::{CheckedAdd, CheckedDiv, CheckedMul, CheckedSub, Signed, Zero};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An exact number: integer, fixed decimal or ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(Ratio<i128>);

/// What was wrong with the text of a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a number; write an integer, a decimal such as 1.5, or a ratio such as 3/2")]
pub struct NotANumber {
    text: String,
}

/// How many digits after the point a number that is not an integer is written with.
const DECIMALS: usize = 6;
/// How many digits a float gets.
const SIGNIFICANT: usize = 9;
/// How many digits may follow the point at all.
const MOST_DECIMALS: usize = 18;

impl Number {
    /// Zero.
    pub const ZERO: Number = Number(Ratio::new_raw(0, 1));
    /// One.
    pub const ONE: Number = Number(Ratio::new_raw(1, 1));

    /// The exact ratio of two integers; for example nanoseconds in all, by operations.
    ///
    /// # Panics
    /// When the denominator is zero.
    pub fn ratio(numerator: impl Into<i128>, denominator: impl Into<i128>) -> Number {
        Number(Ratio::new(numerator.into(), denominator.into()))
    }

    /// A fixed decimal in a table of constants: `Number::decimal("0.98")`.
    ///
    /// # Panics
    /// When the text is not a number.
    pub fn decimal(text: &str) -> Number {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The numerator of the reduced ratio.
    pub fn numerator(self) -> i128 {
        *self.0.numer()
    }

    /// The denominator of the reduced ratio; positive.
    pub fn denominator(self) -> i128 {
        *self.0.denom()
    }

    /// Whether the number is an integer.
    pub fn is_integer(self) -> bool {
        self.0.is_integer()
    }

    /// Whether the number is zero.
    pub fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// The distance from zero.
    pub fn abs(self) -> Number {
        Number(self.0.abs())
    }

    /// The quotient, or `None` when the divisor is zero.
    pub fn over(self, divisor: Number) -> Option<Number> {
        if divisor.is_zero() {
            return None;
        }
        Some(Number(
            self.0
                .checked_div(&divisor.0)
                .expect("a quotient within 128 bits"),
        ))
    }

    /// The nearest decimal with so many digits after the point (halves away from zero), with no trailing zeros
    /// beyond the point.
    pub fn to_decimal(self, digits: usize) -> String {
        let fixed = self.to_fixed(digits);
        match fixed.contains('.') {
            true => fixed.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => fixed,
        }
    }

    /// The nearest number with so many digits after the point, halves away from zero: sums of measured ratios, which
    /// have no common denominator within 128 bits, are sums of such.
    pub fn rounded(self, digits: usize) -> Number {
        Number::decimal(&self.to_fixed(digits))
    }

    /// The nearest decimal with exactly so many digits after the point, halves away from zero.
    pub fn to_fixed(self, digits: usize) -> String {
        let scale = 10i128
            .checked_pow(u32::try_from(digits).expect("a small count of digits"))
            .expect("a small count of digits");
        let magnitude = self.0.abs();
        let whole = magnitude.to_integer();
        let part = ((magnitude - Ratio::from_integer(whole))
            .checked_mul(&Ratio::from_integer(scale))
            .map(|scaled| scaled.round().to_integer()))
        .unwrap_or(0);
        let (whole, part) = if part == scale {
            (whole + 1, 0)
        } else {
            (whole, part)
        };
        let sign = if self.0.is_negative() && (whole, part) != (0, 0) {
            "-"
        } else {
            ""
        };
        match digits {
            0 => format!("{sign}{whole}"),
            _ => format!("{sign}{whole}.{part:0digits$}"),
        }
    }

    /// The nearest decimal with so many significant digits, or all those of the whole part if they are more.
    pub fn to_significant(self, digits: usize) -> String {
        let mut decimals = digits;
        let mut bound = Ratio::from_integer(1);
        // One digit less after the point for each digit before it; one more for each zero that follows the point.
        let magnitude = self.0.abs();
        while decimals > 0 && magnitude >= bound {
            decimals -= 1;
            bound *= 10;
        }
        let mut bound = Ratio::new(1, 10);
        while !magnitude.is_zero() && decimals < MOST_DECIMALS && magnitude < bound {
            decimals += 1;
            bound /= 10;
        }
        self.to_decimal(decimals)
    }

    /// The nearest 64-bit float: for drawing and for file formats that know no other number. Never part of a result.
    pub fn to_f64(self) -> f64 {
        // Through the decimal text: rounded once by integer arithmetic, so alike on every machine.
        self.to_significant(SIGNIFICANT)
            .parse()
            .expect("a decimal is a float")
    }
}

macro_rules! from_integer {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Number {
            fn from(value: $integer) -> Number {
                Number(Ratio::from_integer(i128::try_from(value).expect("an integer within 128 bits")))
            }
        }
    )*};
}
from_integer!(i32, i64, i128, u8, u16, u32, u64, usize);

impl std::ops::Add for Number {
    type Output = Number;
    fn add(self, other: Number) -> Number {
        Number(self.0.checked_add(&other.0).expect("a sum within 128 bits"))
    }
}

impl std::ops::Sub for Number {
    type Output = Number;
    fn sub(self, other: Number) -> Number {
        Number(
            self.0
                .checked_sub(&other.0)
                .expect("a difference within 128 bits"),
        )
    }
}

impl std::ops::Mul for Number {
    type Output = Number;
    fn mul(self, other: Number) -> Number {
        Number(self.0.checked_mul(&other.0).expect("a product within 128 bits"))
    }
}

impl std::iter::Sum for Number {
    fn sum<I: Iterator<Item = Number>>(numbers: I) -> Number {
        numbers.fold(Number::ZERO, std::ops::Add::add)
    }
}

impl fmt::Display for Number {
    /// Integers in full; others with up to six digits after the point, or the precision asked for.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = formatter.precision().unwrap_or(DECIMALS);
        formatter.pad_integral(true, "", &self.to_decimal(digits))
    }
}

impl FromStr for Number {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Number, NotANumber> {
        let bad = || NotANumber {
            text: text.to_owned(),
        };
        if let Some((numerator, denominator)) = text.split_once('/') {
            let numerator: i128 = numerator.trim().parse().map_err(|_| bad())?;
            let denominator: i128 = denominator.trim().parse().map_err(|_| bad())?;
            if denominator == 0 {
                return Err(bad());
            }
            return Ok(Number::ratio(numerator, denominator));
        }
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if digits.len() + part.len() == 0 || part.len() > 18 || !all_digits(digits) || !all_digits(part) {
            return Err(bad());
        }
        let scaled: i128 = format!("{whole}{part}").parse().map_err(|_| bad())?;
        let scale = 10i128.pow(u32::try_from(part.len()).map_err(|_| bad())?);
        Ok(Number::ratio(scaled, scale))
    }
}

impl Serialize for Number {
    /// As text that reads back exactly: `42` or `3/7`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_round_by_integer_arithmetic() {
        for (number, digits, text) in [
            (Number::ratio(1, 3), 3, "0.333"),
            (Number::ratio(2, 3), 3, "0.667"),
            (Number::ratio(-1, 2), 0, "-1"),
            (Number::ratio(1999, 1000), 2, "2"),
            (Number::ratio(-1, 10_000), 2, "0"),
            (Number::from(u64::MAX), 2, "18446744073709551615"),
        ] {
            assert_eq!(number.to_decimal(digits), text);
        }
        assert_eq!(Number::ratio(5, 2).to_fixed(2), "2.50");
    }

    #[test]
    fn significant_digits_begin_where_zeros_end() {
        for (number, text) in [
            (Number::ratio(1, 3), "0.333"),
            (Number::ratio(1, 300), "0.00333"),
            (Number::ratio(100, 3), "33.3"),
            (Number::ratio(-123_456, 10), "-12346"),
            (Number::ratio(1, 10), "0.1"),
            (Number::ZERO, "0"),
            (Number::ONE, "1"),
        ] {
            assert_eq!(number.to_significant(3), text);
        }
    }

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in ["", "-", ".", "1.2.3", "1/0", "one", "1e3", "0x10", "1/ /2", "+-1"] {
            assert!(text.parse::<Number>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn division_by_zero_is_no_number() {
        assert_eq!(Number::ONE.over(Number::ZERO), None);
    }

    proptest! {
        #[test]
        fn text_reads_back_exactly(numerator: i64, denominator in 1i64..) {
            let number = Number::ratio(numerator, denominator);
            let text = serde_json::to_string(&number).unwrap();
            prop_assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = text.parse::<Number>();
        }

        #[test]
        fn a_fixed_decimal_is_within_half_a_digit(numerator in -1_000_000i64..1_000_000, denominator in 1i64..1000) {
            let number = Number::ratio(numerator, denominator);
            let rounded: Number = number.to_fixed(3).parse().unwrap();
            prop_assert!((rounded - number).abs() <= Number::ratio(1, 2000));
        }
    }
}
