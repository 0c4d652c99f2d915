//! `xma`: 64-bit integer multiply-add on significands.
//!
//! Source: Itanium manual, volume 3, `xma`.

use super::register::FloatRegister;

/// Which half of the 128-bit result, and how the factors are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiplyPart {
    /// `xma.l`, `xma.lu`: the low 64 bits, the same for signed and unsigned factors.
    Low,
    /// `xma.h`: the high 64 bits with signed factors.
    High,
    /// `xma.hu`: the high 64 bits with unsigned factors.
    HighUnsigned,
}

/// `f1 = f3 * f4 + f2`; the addend is unsigned, extended with zeros.
#[inline]
pub const fn multiply_add_integers(
    f3: FloatRegister,
    f4: FloatRegister,
    f2: FloatRegister,
    part: MultiplyPart,
) -> FloatRegister {
    if f2.is_natval() || f3.is_natval() || f4.is_natval() {
        return FloatRegister::NATVAL;
    }
    let (a, b, c) = (f3.significand(), f4.significand(), f2.significand());
    FloatRegister::from_significand(match part {
        MultiplyPart::Low => a.wrapping_mul(b).wrapping_add(c),
        MultiplyPart::High => ((a as i64 as i128 * b as i64 as i128).wrapping_add(c as i128) >> 64) as u64,
        MultiplyPart::HighUnsigned => ((a as u128 * b as u128 + c as u128) >> 64) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn apply(a: u64, b: u64, c: u64, part: MultiplyPart) -> u64 {
        let [a, b, c] = [a, b, c].map(FloatRegister::from_significand);
        multiply_add_integers(a, b, c, part).significand()
    }

    #[test]
    fn the_addend_carries_into_the_high_half() {
        assert_eq!(
            apply(u64::MAX, u64::MAX, u64::MAX, MultiplyPart::HighUnsigned),
            u64::MAX
        );
        assert_eq!(apply(u64::MAX, 1, 1, MultiplyPart::High), 0);
        assert_eq!(apply(u64::MAX, 1, 0, MultiplyPart::High), u64::MAX);
        assert_eq!(apply(u64::MAX, 1, 1, MultiplyPart::HighUnsigned), 1);
        assert_eq!(apply(1 << 63, 1 << 63, 0, MultiplyPart::High), 1 << 62);
    }

    proptest! {
        #[test]
        fn unsigned_halves_form_the_product(a: u64, b: u64, c: u64) {
            let low = u128::from(apply(a, b, c, MultiplyPart::Low));
            let high = u128::from(apply(a, b, c, MultiplyPart::HighUnsigned));
            prop_assert_eq!(high << 64 | low, u128::from(a) * u128::from(b) + u128::from(c));
        }
    }
}
