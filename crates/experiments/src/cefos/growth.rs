//! How fast something grows: the exponent of a power law fitted to points, in integers, so that every machine gets the
//! same digits.

use sidestep_lab::Number;

/// Bits after the point of a logarithm.
const FRACTION: u32 = 20;

/// The logarithm to base two of a positive number, in units of 2^-20.
fn logarithm(value: u64) -> i128 {
    assert!(value > 0, "zero has no logarithm");
    let whole = 63 - value.leading_zeros();
    // The number as 1.f in 2.62 fixed point; squaring it yields one further bit of the logarithm at a time.
    let mut mantissa = u128::from(value) << (62 - whole.min(62));
    if whole == 63 {
        mantissa = u128::from(value >> 1);
    }
    let mut fraction = 0i128;
    for _ in 0..FRACTION {
        mantissa = (mantissa * mantissa) >> 62;
        fraction <<= 1;
        if mantissa >= 1 << 63 {
            mantissa >>= 1;
            fraction |= 1;
        }
    }
    (i128::from(whole) << FRACTION) | fraction
}

/// The exponent `e` of the law `y = c x^e` that fits the points best, by least squares of the logarithms; `None` with
/// fewer than two different `x` or a zero.
pub fn exponent(points: &[(u64, u64)]) -> Option<Number> {
    if points.len() < 2 || points.iter().any(|(x, y)| *x == 0 || *y == 0) {
        return None;
    }
    let count = points.len() as i128;
    let logarithms: Vec<(i128, i128)> = points
        .iter()
        .map(|(x, y)| (logarithm(*x), logarithm(*y)))
        .collect();
    let sum = |of: &dyn Fn(&(i128, i128)) -> i128| logarithms.iter().map(of).sum::<i128>();
    let (x, y) = (sum(&|point| point.0), sum(&|point| point.1));
    let numerator = count * sum(&|point| point.0 * point.1) - x * y;
    let denominator = count * sum(&|point| point.0 * point.0) - x * x;
    (denominator != 0).then(|| Number::ratio(numerator, denominator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_powers_of_two_are_exact_and_others_close() {
        for bit in 0..64 {
            assert_eq!(logarithm(1 << bit), i128::from(bit) << FRACTION);
        }
        let ten = logarithm(10) - (3321928 * (1 << FRACTION)) / 1_000_000;
        assert!(ten.abs() < 4, "{ten}");
        assert!(logarithm(u64::MAX) <= 64 << FRACTION);
    }

    #[test]
    fn the_exponents_of_power_laws_are_found() {
        for power in 1..4u32 {
            let points: Vec<_> = [5u64, 10, 40, 80, 1000]
                .iter()
                .map(|x| (*x, 7 * x.pow(power)))
                .collect();
            let found = exponent(&points).expect("an exponent");
            assert!(
                (found - Number::from(power)).abs() < Number::ratio(1, 10_000),
                "{found}"
            );
        }
        assert_eq!(exponent(&[(3, 4)]), None);
        assert_eq!(exponent(&[(3, 4), (3, 5)]), None);
        assert_eq!(exponent(&[(3, 0), (4, 5)]), None);
    }
}
