//! Double and single precision on the host's floating-point unit, where it gives the same result and the same flags.
//!
//! The host computes only when everything that could differ is excluded beforehand or afterwards:
//! - the status field rounds to nearest and its precision and range are both those of the host's format;
//! - the inexact trap is disabled; and the I flag is already set, so that it does not matter whether the result is
//!   exact, or the host's own error terms prove that it is;
//! - every operand is a normal value that the host's format holds exactly, far from the ends of its range, so that
//!   neither V nor D can be raised and the operand's encoding is the only one of its value;
//! - the result is a normal value above the smallest one, so that neither O nor U was raised and the sign of a zero
//!   is not asked for.
//!
//! A fused multiply-add also needs the host's instruction for it; [`Host::of`] finds that out.

use std::ops::{Add, Mul, Neg, Sub};

use super::control::{Control, Flags, Precision, Range, Rounding};
use super::register::{EXPONENT_BIAS, FloatRegister};
use crate::encoding::MultiplyAdd;

/// Which of the host's formats an operation may be computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// None: integer arithmetic.
    Unused,
    /// `f64`.
    Double,
    /// `f32`.
    Single,
    /// `f64`, and only an exact result is taken.
    ExactDouble,
    /// `f32`, and only an exact result is taken.
    ExactSingle,
}

impl Host {
    /// The host's format for a control's parts and the flags that are set already.
    pub(super) fn of(
        precision: Precision,
        range: Range,
        rounding: Rounding,
        disabled: Flags,
        raised: Flags,
    ) -> Self {
        if rounding != Rounding::Nearest || !disabled.contains(Flags::INEXACT) || !has_fused_multiply_add() {
            return Self::Unused;
        }
        match (precision, range, raised.contains(Flags::INEXACT)) {
            (Precision::Double, Range::Double, true) => Self::Double,
            (Precision::Single, Range::Single, true) => Self::Single,
            (Precision::Double, Range::Double, false) => Self::ExactDouble,
            (Precision::Single, Range::Single, false) => Self::ExactSingle,
            _ => Self::Unused,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_fused_multiply_add() -> bool {
    std::arch::is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
const fn has_fused_multiply_add() -> bool {
    cfg!(target_arch = "aarch64")
}

/// A format of the host's.
trait Format:
    Copy + PartialEq + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    const FRACTION_BITS: u32;
    const EXPONENT_BITS: u32;
    const ZERO: Self;
    fn from_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;
    /// # Safety
    /// The host must have an instruction for it ([`has_fused_multiply_add`]).
    unsafe fn multiply_add(self, factor: Self, term: Self) -> Self;
}

macro_rules! format {
    ($float:ty, $bits:ty, $fraction_bits:literal, $exponent_bits:literal) => {
        impl Format for $float {
            const FRACTION_BITS: u32 = $fraction_bits;
            const EXPONENT_BITS: u32 = $exponent_bits;
            const ZERO: Self = 0.0;
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                <$float>::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            #[inline]
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = "fma"))]
            unsafe fn multiply_add(self, factor: Self, term: Self) -> Self {
                self.mul_add(factor, term)
            }
        }
    };
}

format!(f64, u64, 52, 11);
format!(f32, u32, 23, 8);

/// Whether the rounded product of two operands is their product. Operands in the middle quarter of the exponents keep
/// the error term in range.
///
/// # Safety
/// As [`Format::multiply_add`].
#[inline(always)]
unsafe fn product_is_exact<F: Format>(a: F, b: F) -> bool {
    let product = a * b;
    // SAFETY: the caller's promise.
    (unsafe { a.multiply_add(b, -product) }) == F::ZERO
}

/// Whether the rounded sum of two values is their sum: Knuth's error term is zero.
#[inline(always)]
fn sum_is_exact<F: Format>(a: F, c: F) -> bool {
    let sum = a + c;
    let part = sum - a;
    (a - (sum - part)) + (c - part) == F::ZERO
}

/// Below this, the exponents of operands and results are those of the register less this.
const fn rebias<F: Format>() -> u32 {
    EXPONENT_BIAS - bias::<F>()
}

const fn bias<F: Format>() -> u32 {
    (1 << (F::EXPONENT_BITS - 1)) - 1
}

/// Whether all registers hold normal values of the format, their exponents in the middle quarter of its range.
#[inline(always)]
fn all_hold<F: Format, const N: usize>(registers: [FloatRegister; N]) -> bool {
    let low_bits = (1u64 << (63 - F::FRACTION_BITS)) - 1;
    let lowest = EXPONENT_BIAS - (1 << (F::EXPONENT_BITS - 3));
    let (mut integer_bits, mut fraction, mut exponents) = (u64::MAX, 0, 0);
    for register in registers {
        integer_bits &= register.significand();
        fraction |= register.significand();
        exponents |= register.exponent().wrapping_sub(lowest);
    }
    integer_bits >> 63 != 0 && fraction & low_bits == 0 && exponents >> (F::EXPONENT_BITS - 2) == 0
}

/// The value of a register that [`all_hold`] accepts.
#[inline(always)]
fn value<F: Format>(register: FloatRegister, negate: bool) -> F {
    let sign = u64::from(register.is_negative() ^ negate) << (F::FRACTION_BITS + F::EXPONENT_BITS);
    let exponent = u64::from(register.exponent() - rebias::<F>()) << F::FRACTION_BITS;
    F::from_bits(sign | exponent | register.significand() << 1 >> (64 - F::FRACTION_BITS))
}

/// The register of a result that is normal and not of the smallest exponent.
#[inline(always)]
fn register<F: Format>(result: F) -> Option<FloatRegister> {
    let bits = result.to_bits();
    let exponent_mask = (1u32 << F::EXPONENT_BITS) - 1;
    let exponent = (bits >> F::FRACTION_BITS) as u32 & exponent_mask;
    if exponent.wrapping_sub(2) >= exponent_mask - 2 {
        return None;
    }
    let negative = bits >> (F::FRACTION_BITS + F::EXPONENT_BITS) != 0;
    let significand = 1 << 63 | bits << (64 - F::FRACTION_BITS) >> 1;
    Some(FloatRegister::new(
        negative,
        exponent + rebias::<F>(),
        significand,
    ))
}

/// An operation on `N` registers, in any of the host's formats.
trait Operation<const N: usize> {
    /// The result, or `None` if it must be exact and is not known to be. All registers hold values that
    /// [`all_hold`] accepts, and the host has an instruction for fused multiply-adds.
    fn compute<F: Format, const EXACT: bool>(
        operands: [FloatRegister; N],
        function: MultiplyAdd,
    ) -> Option<F>;
}

/// Does an operation in the format that a control names, if the host can compute it.
#[inline(always)]
fn compute<O: Operation<N>, const N: usize>(
    operands: [FloatRegister; N],
    function: MultiplyAdd,
    control: &Control,
) -> Option<FloatRegister> {
    #[inline(always)]
    fn in_format<O: Operation<N>, F: Format, const EXACT: bool, const N: usize>(
        operands: [FloatRegister; N],
        function: MultiplyAdd,
    ) -> Option<FloatRegister> {
        if !all_hold::<F, N>(operands) {
            return None;
        }
        O::compute::<F, EXACT>(operands, function).and_then(register)
    }
    match control.host {
        Host::Double => in_format::<O, f64, false, N>(operands, function),
        Host::Single => in_format::<O, f32, false, N>(operands, function),
        Host::ExactDouble => in_format::<O, f64, true, N>(operands, function),
        Host::ExactSingle => in_format::<O, f32, true, N>(operands, function),
        Host::Unused => None,
    }
}

/// `±(a * b) ± c`.
struct FusedMultiplyAdd;

impl Operation<3> for FusedMultiplyAdd {
    #[inline(always)]
    fn compute<F: Format, const EXACT: bool>(
        [a, b, c]: [FloatRegister; 3],
        function: MultiplyAdd,
    ) -> Option<F> {
        let a: F = value(a, matches!(function, MultiplyAdd::NegateAdd));
        let b = value(b, false);
        let c = value(c, matches!(function, MultiplyAdd::Subtract));
        // SAFETY: a control names a format of the host only if the host has the instruction.
        let (result, product_is_exact) = unsafe { (a.multiply_add(b, c), !EXACT || product_is_exact(a, b)) };
        (!EXACT || product_is_exact && sum_is_exact(a * b, c)).then_some(result)
    }
}

/// `±(a * b)`.
struct Multiply;

impl Operation<2> for Multiply {
    #[inline(always)]
    fn compute<F: Format, const EXACT: bool>([a, b]: [FloatRegister; 2], function: MultiplyAdd) -> Option<F> {
        let a: F = value(a, matches!(function, MultiplyAdd::NegateAdd));
        let b = value(b, false);
        // SAFETY: as in `FusedMultiplyAdd`.
        (!EXACT || unsafe { product_is_exact(a, b) }).then(|| a * b)
    }
}

/// `±a ± c`.
struct Sum;

impl Operation<2> for Sum {
    #[inline(always)]
    fn compute<F: Format, const EXACT: bool>([a, c]: [FloatRegister; 2], function: MultiplyAdd) -> Option<F> {
        let a: F = value(a, matches!(function, MultiplyAdd::NegateAdd));
        let c = value(c, matches!(function, MultiplyAdd::Subtract));
        (!EXACT || sum_is_exact(a, c)).then(|| a + c)
    }
}

/// `±(a * b) ± c`, if the host can compute it.
#[inline(always)]
pub(super) fn multiply_add(
    operands: [FloatRegister; 3],
    function: MultiplyAdd,
    control: &Control,
) -> Option<FloatRegister> {
    compute::<FusedMultiplyAdd, 3>(operands, function, control)
}

/// `±(a * b)`, if the host can compute it.
#[inline(always)]
pub(super) fn multiply(
    operands: [FloatRegister; 2],
    function: MultiplyAdd,
    control: &Control,
) -> Option<FloatRegister> {
    compute::<Multiply, 2>(operands, function, control)
}

/// `±a ± c`, if the host can compute it.
#[inline(always)]
pub(super) fn add(
    operands: [FloatRegister; 2],
    function: MultiplyAdd,
    control: &Control,
) -> Option<FloatRegister> {
    compute::<Sum, 2>(operands, function, control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{self, Completer, StatusField, StatusRegister};
    use proptest::prelude::*;

    /// `FLOAT_TEST_CASES` sets the number of random cases.
    fn cases() -> ProptestConfig {
        let cases = std::env::var("FLOAT_TEST_CASES")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(20_000);
        ProptestConfig {
            cases,
            failure_persistence: None,
            ..ProptestConfig::default()
        }
    }

    /// The controls of a completer without the host, with it while the I flag is clear, and with it afterwards.
    fn controls(completer: Completer) -> [Control; 3] {
        let mut fpsr = StatusRegister::LINUX;
        let before = fpsr.control(StatusField::S0, completer);
        fpsr.raise(StatusField::S0, Flags::INEXACT);
        [
            Control {
                host: Host::Unused,
                ..before
            },
            before,
            fpsr.control(StatusField::S0, completer),
        ]
    }

    fn completers() -> impl Strategy<Value = Completer> {
        prop_oneof![Just(Completer::Double), Just(Completer::Single)]
    }

    fn functions() -> impl Strategy<Value = MultiplyAdd> {
        prop_oneof![
            Just(MultiplyAdd::Add),
            Just(MultiplyAdd::Subtract),
            Just(MultiplyAdd::NegateAdd)
        ]
    }

    /// Values of either format around one another and around the ends of what the host takes.
    fn values() -> impl Strategy<Value = FloatRegister> {
        let exponent = prop_oneof![
            4 => 0xFFFFu32 - 30..0xFFFF + 30,
            1 => 0xFFFFu32 - 1030..0xFFFF + 1030,
            1 => prop_oneof![Just(0xFFFFu32 - 32), Just(0xFFFF + 31), Just(0xFFFF - 256), Just(0xFFFF + 255)],
        ];
        let significand = prop_oneof![
            2 => any::<u64>(),
            2 => (0u32..64, 0u32..64).prop_map(|(from, to)| (u64::MAX << from) ^ (u64::MAX << to)),
            1 => Just(0),
        ];
        let dropped = prop_oneof![Just(11u32), Just(40), Just(0), Just(52), Just(60)];
        (any::<bool>(), exponent, significand, dropped).prop_map(
            |(negative, exponent, significand, dropped)| {
                FloatRegister::new(negative, exponent, (significand | 1 << 63) >> dropped << dropped)
            },
        )
    }

    /// The host's answers must be the integers' answer, the flags too; a flag that is set already may be missing.
    fn same(
        completer: Completer,
        compute: impl Fn(&Control) -> Result<float::Rounded, float::FloatFault>,
    ) -> Result<(), TestCaseError> {
        let [integers, before, after] = controls(completer).map(|control| compute(&control).unwrap());
        prop_assert_eq!(before, integers);
        prop_assert_eq!(after.value, integers.value);
        prop_assert_eq!(after.flags | Flags::INEXACT, integers.flags | Flags::INEXACT);
        prop_assert_eq!(after.trap, integers.trap);
        Ok(())
    }

    #[test]
    fn the_host_is_used_where_it_may_be() {
        let [_, before, after] = controls(Completer::Double);
        if has_fused_multiply_add() {
            assert_eq!((before.host, after.host), (Host::ExactDouble, Host::Double));
        }
        let traps_enabled = StatusRegister::new(StatusRegister::LINUX.bits() & !0x20).unwrap();
        assert_eq!(
            traps_enabled.control(StatusField::S0, Completer::Double).host,
            Host::Unused
        );
        let widest_range = StatusRegister::LINUX.control(StatusField::S1, Completer::Double);
        assert_eq!(widest_range.host, Host::Unused);
    }

    #[test]
    fn results_outside_the_safe_range_are_left_to_integers() {
        let smallest = f64::from_bits(1 << 52);
        for result in [0.0, -0.0, 5e-324, smallest, f64::INFINITY, f64::NAN] {
            assert_eq!(register(result), None, "{result}");
        }
        for result in [smallest * 2.0, -1.0, f64::MAX] {
            assert_eq!(
                register(result),
                Some(FloatRegister::from_double(result.to_bits())),
                "{result}"
            );
        }
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn fused_operations_are_the_integers(
            a in values(), b in values(), c in values(), function in functions(), completer in completers(),
        ) {
            same(completer, |control| float::multiply_add(a, b, c, function, control))?;
        }

        #[test]
        fn products_and_sums_are_the_integers(
            a in values(), b in values(), function in functions(), completer in completers(),
        ) {
            same(completer, |control| float::multiply(a, b, function, control))?;
            same(completer, |control| float::add(a, b, function, control))?;
        }

        #[test]
        fn near_cancellation_is_the_integers(
            a in values(), b in values(), place in 0u32..64, completer in completers(),
        ) {
            let [integers, ..] = controls(completer);
            let product = float::multiply(a, b, MultiplyAdd::Add, &integers).unwrap().value;
            let c = FloatRegister::new(!product.is_negative(), product.exponent(), product.significand() ^ 1 << place);
            same(completer, |control| float::multiply_add(a, b, c, MultiplyAdd::Add, control))?;
        }
    }
}
