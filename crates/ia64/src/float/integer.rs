//! `xma`: 64-bit integer multiply-add on significands.
//!
//! Source: Itanium manual, volume 3, `xma`.

use super::register::FloatRegister;
use crate::encoding::FixedPart;

/// `xma`: `f1 = f3 * f4 + f2`, the part of it asked for; the addend is unsigned, extended with zeros.
#[inline]
pub const fn multiply_add_integers(
    f3: FloatRegister,
    f4: FloatRegister,
    f2: FloatRegister,
    part: FixedPart,
) -> FloatRegister {
    if f2.is_natval() || f3.is_natval() || f4.is_natval() {
        return FloatRegister::NATVAL;
    }
    let (a, b, c) = (f3.significand(), f4.significand(), f2.significand());
    FloatRegister::from_significand(match part {
        FixedPart::Low => a.wrapping_mul(b).wrapping_add(c),
        FixedPart::High => ((a as i64 as i128 * b as i64 as i128).wrapping_add(c as i128) >> 64) as u64,
        FixedPart::HighUnsigned => ((a as u128 * b as u128 + c as u128) >> 64) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn apply(a: u64, b: u64, c: u64, part: FixedPart) -> u64 {
        let [a, b, c] = [a, b, c].map(FloatRegister::from_significand);
        multiply_add_integers(a, b, c, part).significand()
    }

    #[test]
    fn the_addend_carries_into_the_high_half() {
        assert_eq!(
            apply(u64::MAX, u64::MAX, u64::MAX, FixedPart::HighUnsigned),
            u64::MAX
        );
        assert_eq!(apply(u64::MAX, 1, 1, FixedPart::High), 0);
        assert_eq!(apply(u64::MAX, 1, 0, FixedPart::High), u64::MAX);
        assert_eq!(apply(u64::MAX, 1, 1, FixedPart::HighUnsigned), 1);
        assert_eq!(apply(1 << 63, 1 << 63, 0, FixedPart::High), 1 << 62);
    }

    proptest! {
        #[test]
        fn unsigned_halves_form_the_product(a: u64, b: u64, c: u64) {
            let low = u128::from(apply(a, b, c, FixedPart::Low));
            let high = u128::from(apply(a, b, c, FixedPart::HighUnsigned));
            prop_assert_eq!(high << 64 | low, u128::from(a) * u128::from(b) + u128::from(c));
        }
    }
}
