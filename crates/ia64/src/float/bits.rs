//! Operations that move and combine bits without arithmetic: merges, mixes, packs, swaps and logic.
//!
//! All but the merges of whole registers treat significands only and deliver them in integer form. A NaTVal operand
//! makes the result NaTVal. No flags are raised.
//!
//! Source: Itanium manual, volume 3, `fmerge`, `fmix`, `fsxt`, `fpack`, `fswap`, `fand`, `fandcm`, `for`, `fxor`,
//! `fselect`, `fpmerge`.

use super::register::FloatRegister;

const SIGN: u64 = 1 << 17;
const SIGNS_OF_PAIR: u64 = 0x8000_0000_8000_0000;
const SIGNS_AND_EXPONENTS_OF_PAIR: u64 = 0xFF80_0000_FF80_0000;
const HIGH: u64 = 0xFFFF_FFFF_0000_0000;
const LOW: u64 = 0x0000_0000_FFFF_FFFF;

/// The two-operand operations, f2 first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOperation {
    /// `fmerge.s`: sign of f2, exponent and significand of f3.
    MergeSign,
    /// `fmerge.ns`: negated sign of f2, exponent and significand of f3.
    MergeNegatedSign,
    /// `fmerge.se`: sign and exponent of f2, significand of f3.
    MergeSignExponent,
    /// `fpmerge.s`: each half's sign of f2, the rest of f3.
    ParallelMergeSign,
    /// `fpmerge.ns`: each half's negated sign of f2, the rest of f3.
    ParallelMergeNegatedSign,
    /// `fpmerge.se`: each half's sign and exponent of f2, fraction of f3.
    ParallelMergeSignExponent,
    /// `fmix.l`: left half of f2, left half of f3.
    MixLeft,
    /// `fmix.r`: right half of f2, right half of f3.
    MixRight,
    /// `fmix.lr`: left half of f2, right half of f3.
    MixLeftRight,
    /// `fsxt.l`: the sign of f2's left half repeated, left half of f3.
    SignExtendLeft,
    /// `fsxt.r`: the sign of f2's right half repeated, right half of f3.
    SignExtendRight,
    /// `fpack`: f2 and f3 as singles.
    Pack,
    /// `fswap`: right half of f3, left half of f2.
    Swap,
    /// `fswap.nl`: as `fswap`, the left half's sign negated.
    SwapNegateLeft,
    /// `fswap.nr`: as `fswap`, the right half's sign negated.
    SwapNegateRight,
    /// `fand`.
    And,
    /// `fandcm`: f2 and not f3.
    AndComplement,
    /// `for`.
    Or,
    /// `fxor`.
    Xor,
}

impl BitOperation {
    /// The result for f2 and f3.
    #[inline]
    pub const fn apply(self, f2: FloatRegister, f3: FloatRegister) -> FloatRegister {
        if f2.is_natval() || f3.is_natval() {
            return FloatRegister::NATVAL;
        }
        let (a, b) = (f2.significand(), f3.significand());
        let swapped = b << 32 | a >> 32;
        FloatRegister::from_significand(match self {
            Self::MergeSign => return with_sign_exponent(f3, f2.sign_exponent(), SIGN),
            Self::MergeNegatedSign => return with_sign_exponent(f3, f2.sign_exponent() ^ SIGN, SIGN),
            Self::MergeSignExponent => return with_sign_exponent(f3, f2.sign_exponent(), !0),
            Self::ParallelMergeSign => select_bits(SIGNS_OF_PAIR, a, b),
            Self::ParallelMergeNegatedSign => select_bits(SIGNS_OF_PAIR, !a, b),
            Self::ParallelMergeSignExponent => select_bits(SIGNS_AND_EXPONENTS_OF_PAIR, a, b),
            Self::MixLeft => a & HIGH | b >> 32,
            Self::MixRight => a << 32 | b & LOW,
            Self::MixLeftRight => a & HIGH | b & LOW,
            Self::SignExtendLeft => (a as i64 >> 63) as u64 & HIGH | b >> 32,
            Self::SignExtendRight => (a as i32 >> 31) as u64 & HIGH | b & LOW,
            Self::Pack => (f2.to_single() as u64) << 32 | f3.to_single() as u64,
            Self::Swap => swapped,
            Self::SwapNegateLeft => swapped ^ 1 << 63,
            Self::SwapNegateRight => swapped ^ 1 << 31,
            Self::And => a & b,
            Self::AndComplement => a & !b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        })
    }
}

/// `fselect`: the bits of f3 where f2 has ones, of f4 where it has zeros.
#[inline]
pub const fn select(f3: FloatRegister, f4: FloatRegister, f2: FloatRegister) -> FloatRegister {
    if f2.is_natval() || f3.is_natval() || f4.is_natval() {
        return FloatRegister::NATVAL;
    }
    FloatRegister::from_significand(select_bits(f2.significand(), f3.significand(), f4.significand()))
}

const fn select_bits(mask: u64, ones: u64, zeros: u64) -> u64 {
    ones & mask | zeros & !mask
}

/// `register` with the bits of its sign and exponent that `mask` selects taken from `sign_exponent`.
const fn with_sign_exponent(register: FloatRegister, sign_exponent: u64, mask: u64) -> FloatRegister {
    let merged = select_bits(mask, sign_exponent, register.sign_exponent());
    FloatRegister::from_sign_exponent(merged, register.significand())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_registers_merge_fields() {
        let a = FloatRegister::new(true, 0x12345, 0xAAAA);
        let b = FloatRegister::new(false, 0x00321, 0xBBBB);
        let table = [
            (BitOperation::MergeSign, FloatRegister::new(true, 0x00321, 0xBBBB)),
            (
                BitOperation::MergeNegatedSign,
                FloatRegister::new(false, 0x00321, 0xBBBB),
            ),
            (
                BitOperation::MergeSignExponent,
                FloatRegister::new(true, 0x12345, 0xBBBB),
            ),
        ];
        for (operation, expected) in table {
            assert_eq!(operation.apply(a, b), expected, "{operation:?}");
        }
    }

    #[test]
    fn significands_combine_in_integer_form() {
        let a = FloatRegister::new(true, 5, 0x8123_4567_F9AB_CDEF);
        let b = FloatRegister::new(true, 9, 0x7EDC_BA98_7654_3210);
        let table = [
            (BitOperation::ParallelMergeSign, 0xFEDC_BA98_F654_3210),
            (BitOperation::ParallelMergeNegatedSign, 0x7EDC_BA98_7654_3210),
            (BitOperation::ParallelMergeSignExponent, 0x815C_BA98_F9D4_3210),
            (BitOperation::MixLeft, 0x8123_4567_7EDC_BA98),
            (BitOperation::MixRight, 0xF9AB_CDEF_7654_3210),
            (BitOperation::MixLeftRight, 0x8123_4567_7654_3210),
            (BitOperation::SignExtendLeft, 0xFFFF_FFFF_7EDC_BA98),
            (BitOperation::SignExtendRight, 0xFFFF_FFFF_7654_3210),
            (BitOperation::Swap, 0x7654_3210_8123_4567),
            (BitOperation::SwapNegateLeft, 0xF654_3210_8123_4567),
            (BitOperation::SwapNegateRight, 0x7654_3210_0123_4567),
            (BitOperation::And, 0x0000_0000_7000_0000),
            (BitOperation::AndComplement, 0x8123_4567_89AB_CDEF),
            (BitOperation::Or, 0xFFFF_FFFF_FFFF_FFFF),
            (BitOperation::Xor, 0xFFFF_FFFF_8FFF_FFFF),
        ];
        for (operation, expected) in table {
            assert_eq!(
                operation.apply(a, b),
                FloatRegister::from_significand(expected),
                "{operation:?}"
            );
            assert_eq!(operation.apply(FloatRegister::NATVAL, b), FloatRegister::NATVAL);
            assert_eq!(operation.apply(a, FloatRegister::NATVAL), FloatRegister::NATVAL);
        }
        let selected = select(a, b, FloatRegister::from_significand(HIGH));
        assert_eq!(selected, FloatRegister::from_significand(0x8123_4567_7654_3210));
    }

    #[test]
    fn packing_makes_singles() {
        let pair = BitOperation::Pack.apply(FloatRegister::ONE, FloatRegister::from_single(0xC048_F5C3));
        assert_eq!(pair, FloatRegister::from_significand(0x3F80_0000_C048_F5C3));
    }
}
