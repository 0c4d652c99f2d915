//! The register's forms outside the register file: single, double, double-extended, integer and spill images.
//!
//! The conversions move bits and never round: a store truncates what the memory format has no room for, as the
//! hardware does (software rounds with `fnorm` first). NaTVal needs no case here: loads and stores check it before.
//!
//! Source: Itanium manual, volume 1, section 5.3.1 and figures 5-5 to 5-9; `getf` and `setf` in volume 3.

use super::register::{EXPONENT_SPECIAL, FloatRegister};

const INTEGER_BIT: u64 = 1 << 63;
/// Register exponents of single and double denormals, and what a biased memory exponent adds to become a register's.
const SINGLE_REBIAS: u32 = 0xFF80;
const DOUBLE_REBIAS: u32 = 0xFC00;
const EXTENDED_REBIAS: u32 = 0xC000;

impl FloatRegister {
    /// `ldfs`, `setf.s`: from the 32-bit single format.
    #[inline]
    pub const fn from_single(bits: u32) -> Self {
        let fraction = ((bits & 0x7F_FFFF) as u64) << 40;
        let (exponent, significand) = match bits >> 23 & 0xFF {
            0 if fraction == 0 => (0, 0),
            0 => (SINGLE_REBIAS + 1, fraction),
            0xFF => (EXPONENT_SPECIAL, INTEGER_BIT | fraction),
            exponent => (exponent + SINGLE_REBIAS, INTEGER_BIT | fraction),
        };
        Self::new(bits >> 31 != 0, exponent, significand)
    }

    /// `ldfd`, `setf.d`: from the 64-bit double format.
    #[inline]
    pub const fn from_double(bits: u64) -> Self {
        let fraction = bits << 12 >> 1;
        let (exponent, significand) = match (bits >> 52) as u32 & 0x7FF {
            0 if fraction == 0 => (0, 0),
            0 => (DOUBLE_REBIAS + 1, fraction),
            0x7FF => (EXPONENT_SPECIAL, INTEGER_BIT | fraction),
            exponent => (exponent + DOUBLE_REBIAS, INTEGER_BIT | fraction),
        };
        Self::new(bits >> 63 != 0, exponent, significand)
    }

    /// `ldfe`: from the 80-bit double-extended format, its significand and its 16 bits of sign and exponent.
    #[inline]
    pub const fn from_extended(significand: u64, sign_exponent: u16) -> Self {
        let exponent = match sign_exponent as u32 & 0x7FFF {
            0 => 0,
            0x7FFF => EXPONENT_SPECIAL,
            exponent => exponent + EXTENDED_REBIAS,
        };
        Self::new(sign_exponent >> 15 != 0, exponent, significand)
    }

    /// `ldf.fill`: from the spill image, the doubleword at the lower address first; bits above the sign are ignored.
    #[inline]
    pub const fn from_spill(image: [u64; 2]) -> Self {
        Self::from_sign_exponent(image[1], image[0])
    }

    /// `stfs`, `getf.s`: the single format, its low 40 significand bits and unrepresentable exponent bits dropped.
    #[inline]
    pub const fn to_single(self) -> u32 {
        let exponent = self.narrowed_exponent(7) as u32;
        (self.is_negative() as u32) << 31 | exponent << 23 | (self.significand() << 1 >> 41) as u32
    }

    /// `stfd`, `getf.d`: the double format, its low 11 significand bits and unrepresentable exponent bits dropped.
    #[inline]
    pub const fn to_double(self) -> u64 {
        let exponent = self.narrowed_exponent(10);
        (self.is_negative() as u64) << 63 | exponent << 52 | self.significand() << 1 >> 12
    }

    /// The double that has exactly this value, where the register holds it as doubles are loaded: a normal value or a
    /// zero.
    #[inline]
    pub const fn as_double(self) -> Option<u64> {
        let bits = self.to_double();
        let loaded = Self::from_double(bits);
        let is_same =
            loaded.significand() == self.significand() && loaded.sign_exponent() == self.sign_exponent();
        match (bits >> 52) as u32 & 0x7FF {
            0 if bits << 1 != 0 => None,
            0x7FF => None,
            _ if is_same => Some(bits),
            _ => None,
        }
    }

    /// `stfe`: the double-extended format as its significand and its 16 bits of sign and exponent.
    #[inline]
    pub const fn to_extended(self) -> (u64, u16) {
        let exponent = self.exponent();
        let narrowed = exponent >> 16 << 14 | exponent & 0x3FFF;
        (
            self.significand(),
            (self.is_negative() as u16) << 15 | narrowed as u16,
        )
    }

    /// `stf.spill`: the spill image, the doubleword at the lower address first.
    #[inline]
    pub const fn to_spill(self) -> [u64; 2] {
        [self.significand(), self.sign_exponent()]
    }

    /// The exponent's top bit above its `low_bits` low ones; zero for a value without its integer bit.
    #[inline]
    const fn narrowed_exponent(self, low_bits: u32) -> u64 {
        if self.significand() & INTEGER_BIT == 0 {
            return 0;
        }
        let exponent = self.exponent() as u64;
        exponent >> 16 << low_bits | exponent & ((1 << low_bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::register::Class;
    use proptest::prelude::*;

    #[test]
    fn denormals_keep_the_smallest_exponent_of_their_format() {
        assert_eq!(
            FloatRegister::from_single(1),
            FloatRegister::new(false, 0xFF81, 1 << 40)
        );
        assert_eq!(
            FloatRegister::from_double(1),
            FloatRegister::new(false, 0xFC01, 1 << 11)
        );
        assert_eq!(
            FloatRegister::from_extended(1, 0x8000),
            FloatRegister::new(true, 0, 1)
        );
        assert_eq!(
            FloatRegister::from_extended(1 << 63, 0),
            FloatRegister::new(false, 0, 1 << 63)
        );
    }

    #[test]
    fn special_values_map_to_the_special_exponent() {
        assert_eq!(
            FloatRegister::from_double(f64::NEG_INFINITY.to_bits()),
            FloatRegister::infinity(true)
        );
        assert_eq!(
            FloatRegister::from_single(0x7F80_0001).class(),
            Class::SignalingNan
        );
        assert_eq!(
            FloatRegister::from_extended(0, 0x7FFF).class(),
            Class::Unsupported
        );
        assert_eq!(FloatRegister::from_single(0x8000_0000), FloatRegister::zero(true));
    }

    #[test]
    fn stores_truncate() {
        let third = FloatRegister::new(false, 0xFFFD, 0xAAAA_AAAA_AAAA_AAAA);
        assert_eq!(third.to_double(), 0x3FD5_5555_5555_5555);
        assert_eq!(third.to_single(), 0x3EAA_AAAA);
        let wide = FloatRegister::new(true, 0x1FFFE, 1 << 63);
        assert_eq!(wide.to_extended(), (1 << 63, 0xFFFE));
        assert_eq!(wide.to_double(), 0xFFE0_0000_0000_0000);
    }

    #[test]
    fn natval_spills_to_its_own_pattern() {
        assert_eq!(FloatRegister::NATVAL.to_spill(), [0, 0x1FFFE]);
        assert_eq!(FloatRegister::from_spill([0, 0x1FFFE]), FloatRegister::NATVAL);
        assert_eq!(
            FloatRegister::from_spill([7, !0]),
            FloatRegister::new(true, 0x1FFFF, 7)
        );
    }

    proptest! {
        #[test]
        fn singles_round_trip(bits: u32) {
            prop_assert_eq!(FloatRegister::from_single(bits).to_single(), bits);
        }

        #[test]
        fn doubles_round_trip(bits: u64) {
            prop_assert_eq!(FloatRegister::from_double(bits).to_double(), bits);
        }

        #[test]
        fn a_register_is_a_double_if_it_holds_one_as_doubles_are_loaded(bits: u64, lower in 0u32..12, exponent: u32) {
            let loaded = FloatRegister::from_double(bits);
            let value = f64::from_bits(bits);
            let is_usual = value.is_normal() || value == 0.0;
            prop_assert_eq!(loaded.as_double(), is_usual.then_some(bits));
            let longer = FloatRegister::from_sign_exponent(loaded.sign_exponent(), loaded.significand() | 1 << lower);
            prop_assert_eq!(longer.as_double(), (lower == 11 && value.is_normal()).then_some(bits | 1));
            let wider = FloatRegister::new(false, exponent, loaded.significand());
            if let Some(double) = wider.as_double() {
                prop_assert_eq!(FloatRegister::from_double(double), wider);
            }
        }

        #[test]
        fn extended_values_round_trip(significand: u64, sign_exponent: u16) {
            let register = FloatRegister::from_extended(significand, sign_exponent);
            prop_assert_eq!(register.to_extended(), (significand, sign_exponent));
        }

        #[test]
        fn spill_images_round_trip(significand: u64, sign_exponent in 0u64..1 << 18) {
            let image = [significand, sign_exponent];
            prop_assert_eq!(FloatRegister::from_spill(image).to_spill(), image);
        }

        #[test]
        fn a_single_has_the_value_its_double_has(bits: u32) {
            let value = f32::from_bits(bits);
            prop_assume!(!value.is_nan());
            let single = FloatRegister::from_single(bits);
            let double = FloatRegister::from_double(f64::from(value).to_bits());
            if value == 0.0 || value.is_infinite() {
                prop_assert_eq!(single, double);
            } else {
                prop_assert_eq!(single.normalized(), double.normalized());
            }
        }
    }
}
