//! Statistics in integers and exact ratios: the median with its confidence interval, and the exponent of a growth.

use crate::number::Number;

/// The exponent *k* of the power law `y = c * x^k` that fits best by least squares in logarithms; for example 2 for
/// quadratic growth. To a ten-thousandth. `None` with fewer than two different `x`, or a number that is not positive.
///
/// The logarithms are computed bit by bit in integers, so the result is the same on every machine.
pub fn growth_exponent(points: &[(Number, Number)]) -> Option<Number> {
    if points
        .iter()
        .any(|(x, y)| *x <= Number::ZERO || *y <= Number::ZERO)
    {
        return None;
    }
    let logarithms: Vec<(i128, i128)> = points
        .iter()
        .map(|(x, y)| (logarithm(*x), logarithm(*y)))
        .collect();
    let count = i128::try_from(logarithms.len()).ok()?;
    let sum = |of: fn(&(i128, i128)) -> i128| logarithms.iter().map(of).sum::<i128>();
    let covariance = count * sum(|(x, y)| x * y) - sum(|(x, _)| *x) * sum(|(_, y)| *y);
    let variance = count * sum(|(x, _)| x * x) - sum(|(x, _)| *x) * sum(|(x, _)| *x);
    if variance == 0 {
        return None;
    }
    Some(Number::decimal(
        &Number::ratio(covariance, variance).to_decimal(4),
    ))
}

/// How many bits follow the point in a logarithm.
const FRACTION_BITS: u32 = 24;

/// The binary logarithm of a positive number, in units of 2^-24.
fn logarithm(number: Number) -> i128 {
    integer_logarithm(number.numerator()) - integer_logarithm(number.denominator())
}

fn integer_logarithm(integer: i128) -> i128 {
    let whole = integer.ilog2();
    // The mantissa in [1, 2) with 62 bits after the point; each squaring yields one bit of the fraction.
    let mut mantissa: u128 = match whole {
        0..=62 => (integer as u128) << (62 - whole),
        _ => (integer as u128) >> (whole - 62),
    };
    let mut logarithm = i128::from(whole);
    for _ in 0..FRACTION_BITS {
        mantissa = (mantissa * mantissa) >> 62;
        logarithm <<= 1;
        if mantissa >= 1 << 63 {
            mantissa >>= 1;
            logarithm |= 1;
        }
    }
    logarithm
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exponent(points: impl IntoIterator<Item = (u64, u64)>) -> Option<Number> {
        let points: Vec<_> = points
            .into_iter()
            .map(|(x, y)| (Number::from(x), Number::from(y)))
            .collect();
        growth_exponent(&points)
    }

    #[test]
    fn powers_are_found() {
        let calls = [5, 10, 20, 40, 60, 80];
        assert_eq!(exponent(calls.map(|n| (n, 7 * n * n))), Some(Number::from(2)));
        assert_eq!(exponent(calls.map(|n| (n, 300 * n))), Some(Number::ONE));
        assert_eq!(exponent(calls.map(|n| (n, 9))), Some(Number::ZERO));
    }

    #[test]
    fn no_law_fits_one_place_or_what_is_not_positive() {
        assert_eq!(exponent([(5, 1), (5, 2)]), None);
        assert_eq!(exponent([(5, 0), (6, 2)]), None);
        assert_eq!(exponent([]), None);
    }

    proptest! {
        #[test]
        fn logarithms_agree_with_the_hosts(integer in 1i128..i128::from(u64::MAX)) {
            let ours = integer_logarithm(integer) as f64 / f64::from(1u32 << FRACTION_BITS);
            prop_assert!((ours - (integer as f64).log2()).abs() < 1e-6);
        }
    }
}
