//! Exact positive fractions, for the factor *t* and for dependency values.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A fraction of two integers; never a float, so that comparisons are exact and runs repeat.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    /// Above the line.
    pub numerator: u128,
    /// Below the line; never zero.
    pub denominator: u128,
}

/// Why a text is not a ratio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a positive decimal number such as 1.5 (at most six digits on either side of the point)"
)]
pub struct RatioError {
    text: String,
}

impl Ratio {
    /// The fraction `numerator / denominator`.
    ///
    /// # Panics
    /// When the denominator is zero.
    pub fn new(numerator: u128, denominator: u128) -> Self {
        assert!(denominator != 0, "a ratio's denominator is not zero");
        Self {
            numerator,
            denominator,
        }
    }

    /// Whether `left > self * right`: exact while the products fit 128 bits, as those of a factor below 2^20 and of
    /// dependency values of 65,536 tasks with 2^60 events a pair do; beyond, they saturate.
    pub fn is_exceeded(self, left: Ratio, right: Ratio) -> bool {
        let scaled = Ratio::new(
            self.numerator.saturating_mul(right.numerator),
            self.denominator.saturating_mul(right.denominator),
        );
        left > scaled
    }

    /// The value rounded to the nearest `1 / scale`, as a whole number of those parts; half rounds up.
    pub fn rounded(self, scale: u128) -> u128 {
        let whole = self.numerator / self.denominator;
        let rest = self.numerator % self.denominator;
        whole * scale + (2 * rest * scale + self.denominator) / (2 * self.denominator)
    }
}

/// The 256-bit product of two 128-bit numbers, high half first.
fn product(left: u128, right: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (left_high, left_low) = (left >> 64, left & LOW);
    let (right_high, right_low) = (right >> 64, right & LOW);
    let low = left_low * right_low;
    let middle = left_high * right_low + (low >> 64);
    let (middle, carry) = middle.overflowing_add(left_low * right_high);
    let high = left_high * right_high + (middle >> 64) + (u128::from(carry) << 64);
    (high, (middle << 64) | (low & LOW))
}

impl Ord for Ratio {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // Parts of 64 bits are the rule, and their products fit.
        let parts = [
            self.numerator,
            self.denominator,
            other.numerator,
            other.denominator,
        ];
        if parts.iter().fold(0, |all, part| all | part) >> 64 == 0 {
            return (parts[0] * parts[3]).cmp(&(parts[2] * parts[1]));
        }
        product(self.numerator, other.denominator).cmp(&product(other.numerator, self.denominator))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Self, RatioError> {
        let error = || RatioError {
            text: text.to_owned(),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.len() <= 6 && part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || text.ends_with('.') {
            return Err(error());
        }
        let denominator = 10_u128.pow(fraction.len() as u32);
        let numerator = format!("{whole}{fraction}").parse().map_err(|_| error())?;
        if numerator == 0 {
            return Err(error());
        }
        Ok(Self {
            numerator,
            denominator,
        })
    }
}

/// With three decimals less zeros at the end, or with as many as a precision up to three asks for.
impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = formatter.precision().map_or(3, |precision| precision.min(3));
        let scale = 10_u128.pow(digits as u32);
        let scaled = self.rounded(scale);
        let mut text = (scaled / scale).to_string();
        if digits > 0 {
            text.push_str(&format!(".{:0digits$}", scaled % scale));
        }
        let shown = match formatter.precision() {
            None => text.trim_end_matches('0').trim_end_matches('.'),
            Some(_) => &text,
        };
        // `pad` would take the precision for a greatest length.
        formatter.pad_integral(true, "", shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_precision_is_a_number_of_decimals() {
        let ratio = |text: &str| text.parse::<Ratio>().expect("a decimal number");
        assert_eq!(format!("{:.1}", ratio("85")), "85.0");
        assert_eq!(
            format!("{:.1}|{:.0}", ratio("110.25"), ratio("110.25")),
            "110.3|110"
        );
        assert_eq!(format!("{}|{:>6}", ratio("1.50"), ratio("100")), "1.5|   100");
    }

    #[test]
    fn a_factor_is_parsed_exactly_and_printed_back() {
        for (text, numerator, denominator) in [("1.5", 15, 10), ("2", 2, 1), ("0.125", 125, 1000)] {
            let ratio: Ratio = text.parse().expect("a ratio");
            assert_eq!((ratio.numerator, ratio.denominator), (numerator, denominator));
            assert_eq!(ratio.to_string(), text);
        }
        for text in [
            "", ".", "1.", ".5", "-1", "0", "0.0", "1e3", "1.5.2", "12345678", " 1", "nan",
        ] {
            assert!(text.parse::<Ratio>().is_err(), "{text:?} must be refused");
        }
    }

    #[test]
    fn the_largest_products_compare_without_overflow() {
        let large = Ratio::new(u128::MAX, u128::MAX - 1);
        assert!(large > Ratio::new(1, 1));
        assert!(Ratio::new(u128::MAX, 1) > Ratio::new(u128::MAX - 1, 1));
    }

    proptest! {
        #[test]
        fn order_agrees_with_cross_multiplication(a in 0_u64.., b in 1_u64.., c in 0_u64.., d in 1_u64..) {
            let expected = (u128::from(a) * u128::from(d)).cmp(&(u128::from(c) * u128::from(b)));
            prop_assert_eq!(Ratio::new(a.into(), b.into()).cmp(&Ratio::new(c.into(), d.into())), expected);
        }

        #[test]
        fn products_are_exact(a: u64, b: u64, c: u64) {
            // (a * 2^64 + b) * c, computed by halves.
            let wide = (u128::from(a) << 64) | u128::from(b);
            let low = u128::from(b) * u128::from(c);
            let high = u128::from(a) * u128::from(c) + (low >> 64);
            prop_assert_eq!(product(wide, c.into()), (high >> 64, (high << 64) | (low & u128::from(u64::MAX))));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,12}") {
            let _ = text.parse::<Ratio>();
        }
    }
}
