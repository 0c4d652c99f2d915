//! Statistics in integers and exact ratios: the median with its confidence interval.

use crate::number::Number;

/// The middle of some numbers, and the interval that the confidence in it spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Median {
    /// The median; of an even count the mean of the two in the middle.
    pub value: Number,
    /// The least value of the interval.
    pub low: Number,
    /// The greatest value of the interval.
    pub high: Number,
    /// With which probability the interval holds the true median, whatever the distribution.
    pub confidence: Number,
}

/// How many numbers a [`median`] takes: their binomials stay within 128 bits.
pub const MOST_REPETITIONS: usize = 100;

/// The confidence that is aimed at.
const CONFIDENCE: (i128, i128) = (95, 100);

/// The median and its distribution-free confidence interval: the narrowest pair of order statistics, alike far from
/// both ends, that holds the true median with at least 95% probability; if there are too few numbers for that, all of
/// them, and the confidence says how little that is. `None` of no numbers.
///
/// The probability is that of a fair coin: between the *k*-th smallest and the *k*-th greatest of *n* independent
/// numbers lies the median unless fewer than *k* of them fell on one side of it (Conover, Practical Nonparametric
/// Statistics, the quantile interval).
///
/// # Panics
/// Of more than [`MOST_REPETITIONS`] numbers.
pub fn median(numbers: &[Number]) -> Option<Median> {
    assert!(
        numbers.len() <= MOST_REPETITIONS,
        "at most {MOST_REPETITIONS} numbers"
    );
    let mut sorted = numbers.to_vec();
    sorted.sort();
    let count = sorted.len();
    let upper = *sorted.get(count / 2)?;
    let value = match count % 2 {
        1 => upper,
        _ => (sorted[count / 2 - 1] + upper) * Number::ratio(1, 2),
    };
    let outcomes = 1i128 << count;
    let (mut depth, mut missed, mut binomial) = (0, 2, 1);
    while depth + 1 < count.div_ceil(2) {
        let next = binomial * (count - depth) as i128 / (depth as i128 + 1);
        if (outcomes - missed - 2 * next) * CONFIDENCE.1 < outcomes * CONFIDENCE.0 {
            break;
        }
        missed += 2 * next;
        binomial = next;
        depth += 1;
    }
    Some(Median {
        value,
        low: sorted[depth],
        high: sorted[count - 1 - depth],
        confidence: Number::ratio(outcomes - missed, outcomes),
    })
}

/// The binary logarithm of a positive number, to seven decimals, the same on every machine: for drawing.
pub(crate) fn binary_logarithm(number: Number) -> f64 {
    logarithm(number) as f64 / f64::from(1u32 << FRACTION_BITS)
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

    fn median_of(numbers: impl IntoIterator<Item = i32>) -> Median {
        median(&numbers.into_iter().map(Number::from).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_interval_is_that_of_the_published_tables() {
        // Order statistics of the 95% interval of the median, from the tables of nonparametric statistics.
        for (count, low, high, confidence) in [
            (1, 1, 1, "0"),
            (5, 1, 5, "0.9375"),
            (6, 1, 6, "0.9688"),
            (7, 1, 7, "0.9844"),
            (9, 2, 8, "0.9609"),
            (15, 4, 12, "0.9648"),
            (20, 6, 15, "0.9586"),
            (100, 40, 61, "0.9648"),
        ] {
            let median = median_of(1..=count);
            assert_eq!(
                (median.low, median.high),
                (Number::from(low), Number::from(high)),
                "{count}"
            );
            assert_eq!(median.confidence.to_decimal(4), confidence, "{count}");
        }
    }

    #[test]
    fn the_median_of_an_even_count_is_the_middle() {
        assert_eq!(median_of([4, 1, 3, 2]).value, Number::ratio(5, 2));
        assert_eq!(median_of([9, 1, 5]).value, Number::from(5));
        assert_eq!(median(&[]), None);
    }

    proptest! {
        #[test]
        fn logarithms_agree_with_the_hosts(integer in 1i128..i128::from(u64::MAX)) {
            let ours = integer_logarithm(integer) as f64 / f64::from(1u32 << FRACTION_BITS);
            prop_assert!((ours - (integer as f64).log2()).abs() < 1e-6);
        }
    }
}
