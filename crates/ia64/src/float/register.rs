//! The 82-bit floating-point register: a 64-bit significand with an explicit integer bit, a 17-bit exponent
//! biased by 65535, and a sign.
//!
//! A [`FloatRegister`] is stored as its spill image (two little-endian doublewords), so `stf.spill` and
//! `ldf.fill` are copies. Every bit pattern is a value; [`Class`] names the groups that arithmetic tells apart.
//!
//! Source: Itanium Architecture Software Developer's Manual, volume 1, section 5.1 and table 5-2.

use serde::{Deserialize, Serialize};

use super::control::Flags;

/// Bias of the 17-bit register exponent.
pub const EXPONENT_BIAS: u32 = 0xFFFF;
/// Exponent of infinities and NaNs: all ones.
pub const EXPONENT_SPECIAL: u32 = 0x1FFFF;
/// Exponent of 64-bit integers and of parallel single-precision pairs: 63, biased.
pub const EXPONENT_INTEGER: u32 = 0x1003E;
/// Exponent that a zero exponent field stands for when the significand is not zero: the smallest exponent of the
/// double-extended format, -16382, biased.
pub const EXPONENT_EXTENDED_MIN: u32 = 0xC001;

const EXPONENT_NATVAL: u32 = 0x1FFFE;
const EXPONENT_MASK: u64 = 0x1FFFF;
const SIGN_BIT: u64 = 1 << 17;
const INTEGER_BIT: u64 = 1 << 63;
const QUIET_BIT: u64 = 1 << 62;

/// One floating-point register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "SpillImage", into = "SpillImage")]
#[repr(C, align(16))]
pub struct FloatRegister {
    significand: u64,
    /// Bits 16:0 the exponent, bit 17 the sign, the rest zero.
    sign_exponent: u64,
}

/// What kind of value a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The deferred-exception token of speculation.
    NaTVal,
    /// A pseudo-NaN or pseudo-infinity: all-ones exponent without the integer bit.
    Unsupported,
    /// A signalling NaN.
    SignalingNan,
    /// A quiet NaN.
    QuietNan,
    /// An infinity.
    Infinity,
    /// A true zero: exponent and significand zero.
    Zero,
    /// A finite value without its integer bit, one with a zero exponent, or a pseudo-zero.
    Unnormal,
    /// A finite value with its integer bit and a non-zero exponent.
    Normal,
}

/// A finite value brought to the form with the integer bit set; a zero keeps a zero significand.
///
/// The exponent is biased by [`EXPONENT_BIAS`] and may leave the 17-bit range downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Normalized {
    pub negative: bool,
    pub exponent: i32,
    pub significand: u64,
}

/// A register's spill image: significand, then sign and exponent.
type SpillImage = (u64, u64);

impl From<SpillImage> for FloatRegister {
    fn from((significand, sign_exponent): SpillImage) -> Self {
        Self::from_sign_exponent(sign_exponent, significand)
    }
}

impl From<FloatRegister> for SpillImage {
    fn from(register: FloatRegister) -> Self {
        (register.significand, register.sign_exponent)
    }
}

impl FloatRegister {
    /// Positive zero, the content of f0.
    pub const ZERO: Self = Self::new(false, 0, 0);
    /// Positive one, the content of f1.
    pub const ONE: Self = Self::new(false, EXPONENT_BIAS, INTEGER_BIT);
    /// The token of a deferred exception.
    pub const NATVAL: Self = Self::new(false, EXPONENT_NATVAL, 0);
    /// The quiet NaN that an invalid operation delivers.
    pub const DEFAULT_NAN: Self = Self::new(true, EXPONENT_SPECIAL, INTEGER_BIT | QUIET_BIT);

    /// A register from its fields; bits of `exponent` above the 17th are dropped.
    #[inline]
    pub const fn new(negative: bool, exponent: u32, significand: u64) -> Self {
        Self {
            significand,
            sign_exponent: (exponent as u64 & EXPONENT_MASK) | ((negative as u64) << 17),
        }
    }

    /// A 64-bit integer or a parallel pair: sign 0, exponent [`EXPONENT_INTEGER`].
    #[inline]
    pub const fn from_significand(significand: u64) -> Self {
        Self::new(false, EXPONENT_INTEGER, significand)
    }

    /// A register from sign and exponent as `getf.exp`, `setf.exp` and the spill image hold them (bit 17 and bits
    /// 16:0, the rest ignored) and a significand.
    #[inline]
    pub const fn from_sign_exponent(sign_exponent: u64, significand: u64) -> Self {
        Self {
            significand,
            sign_exponent: sign_exponent & (SIGN_BIT | EXPONENT_MASK),
        }
    }

    /// A register from a spill image that has no other bits than those of a register.
    #[inline(always)]
    pub(crate) const fn from_image(significand: u64, sign_exponent: u64) -> Self {
        debug_assert!(sign_exponent & !(SIGN_BIT | EXPONENT_MASK) == 0);
        Self {
            significand,
            sign_exponent,
        }
    }

    /// An infinity.
    #[inline]
    pub const fn infinity(negative: bool) -> Self {
        Self::new(negative, EXPONENT_SPECIAL, INTEGER_BIT)
    }

    /// A true zero.
    #[inline]
    pub const fn zero(negative: bool) -> Self {
        Self::new(negative, 0, 0)
    }

    /// The 64-bit significand: `getf.sig`.
    #[inline]
    pub const fn significand(self) -> u64 {
        self.significand
    }

    /// Sign in bit 17, exponent in bits 16:0: `getf.exp`.
    #[inline]
    pub const fn sign_exponent(self) -> u64 {
        self.sign_exponent
    }

    /// The 17-bit exponent field.
    #[inline]
    pub const fn exponent(self) -> u32 {
        (self.sign_exponent & EXPONENT_MASK) as u32
    }

    /// The sign bit.
    #[inline]
    pub const fn is_negative(self) -> bool {
        self.sign_exponent & SIGN_BIT != 0
    }

    /// Whether this is the deferred-exception token.
    #[inline]
    pub const fn is_natval(self) -> bool {
        self.significand == 0 && self.sign_exponent == EXPONENT_NATVAL as u64
    }

    /// Whether this is a quiet or signalling NaN.
    #[inline]
    pub const fn is_nan(self) -> bool {
        self.exponent() == EXPONENT_SPECIAL && self.significand > INTEGER_BIT
    }

    /// Whether this value has [`Class::Normal`].
    #[inline]
    pub const fn is_normal(self) -> bool {
        self.significand & INTEGER_BIT != 0 && self.exponent().wrapping_sub(1) < EXPONENT_SPECIAL - 1
    }

    /// Which kind of value this is.
    pub const fn class(self) -> Class {
        match self.exponent() {
            EXPONENT_SPECIAL => match self.significand {
                0..INTEGER_BIT => Class::Unsupported,
                INTEGER_BIT => Class::Infinity,
                significand if significand & QUIET_BIT != 0 => Class::QuietNan,
                _ => Class::SignalingNan,
            },
            0 if self.significand == 0 => Class::Zero,
            0 => Class::Unnormal,
            _ if self.is_natval() => Class::NaTVal,
            _ if self.significand & INTEGER_BIT == 0 => Class::Unnormal,
            _ => Class::Normal,
        }
    }

    /// The same value with the other sign, if it is to be negated.
    #[inline(always)]
    pub(super) const fn negated_if(self, is_negated: bool) -> Self {
        Self {
            sign_exponent: self.sign_exponent ^ (is_negated as u64) << 17,
            ..self
        }
    }

    /// The same NaN with its quiet bit set.
    pub(super) const fn quieted(self) -> Self {
        Self {
            significand: self.significand | QUIET_BIT,
            ..self
        }
    }

    /// The normalised form of a finite value ([`Class::Zero`], [`Class::Unnormal`] or [`Class::Normal`]).
    #[inline]
    pub(super) const fn normalized(self) -> Normalized {
        let exponent = match self.exponent() {
            0 => EXPONENT_EXTENDED_MIN,
            exponent => exponent,
        };
        let shift = self.significand.leading_zeros();
        Normalized {
            negative: self.is_negative(),
            exponent: exponent as i32 - shift as i32,
            significand: if shift == 64 { 0 } else { self.significand << shift },
        }
    }

    /// The denormal-operand flag if this is [`Class::Unnormal`].
    pub(super) const fn denormal_flag(self) -> Flags {
        match self.class() {
            Class::Unnormal => Flags::DENORMAL,
            _ => Flags::empty(),
        }
    }
}

impl Default for FloatRegister {
    fn default() -> Self {
        Self::ZERO
    }
}

impl std::fmt::Debug for FloatRegister {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.is_negative() { '-' } else { '+' };
        write!(
            formatter,
            "{sign}{:05x}:{:016x}",
            self.exponent(),
            self.significand
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_every_group_of_encodings() {
        let table = [
            (FloatRegister::NATVAL, Class::NaTVal),
            (FloatRegister::new(true, 0x1FFFE, 0), Class::Unnormal),
            (FloatRegister::new(false, 1, 0), Class::Unnormal),
            (FloatRegister::new(false, 0x1FFFF, 0), Class::Unsupported),
            (
                FloatRegister::new(true, 0x1FFFF, INTEGER_BIT - 1),
                Class::Unsupported,
            ),
            (FloatRegister::infinity(true), Class::Infinity),
            (
                FloatRegister::new(false, 0x1FFFF, INTEGER_BIT | 1),
                Class::SignalingNan,
            ),
            (
                FloatRegister::new(false, 0x1FFFF, INTEGER_BIT | QUIET_BIT),
                Class::QuietNan,
            ),
            (FloatRegister::DEFAULT_NAN, Class::QuietNan),
            (FloatRegister::zero(true), Class::Zero),
            (FloatRegister::new(false, 0, 1), Class::Unnormal),
            (FloatRegister::new(false, 0, INTEGER_BIT), Class::Unnormal),
            (FloatRegister::new(false, 5, INTEGER_BIT - 1), Class::Unnormal),
            (FloatRegister::new(false, 1, INTEGER_BIT), Class::Normal),
            (FloatRegister::new(false, 0x1FFFE, u64::MAX), Class::Normal),
            (FloatRegister::ONE, Class::Normal),
        ];
        for (register, class) in table {
            assert_eq!(register.class(), class, "{register:?}");
            assert_eq!(register.is_normal(), class == Class::Normal, "{register:?}");
            assert_eq!(register.is_natval(), class == Class::NaTVal, "{register:?}");
            let nan = matches!(class, Class::QuietNan | Class::SignalingNan);
            assert_eq!(register.is_nan(), nan, "{register:?}");
        }
    }

    #[test]
    fn a_zero_exponent_counts_as_the_smallest_extended_one() {
        let denormal = FloatRegister::new(true, 0, 1 << 62).normalized();
        assert_eq!(
            denormal,
            Normalized {
                negative: true,
                exponent: 0xC000,
                significand: 1 << 63
            }
        );
        let pseudo_denormal = FloatRegister::new(false, 0, 1 << 63).normalized();
        assert_eq!(
            pseudo_denormal,
            Normalized {
                negative: false,
                exponent: 0xC001,
                significand: 1 << 63
            }
        );
    }
}
