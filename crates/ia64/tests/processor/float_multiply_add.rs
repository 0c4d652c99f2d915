//! The multiply-add family against exact integer arithmetic and against the host's fused multiply-add.
//!
//! `FLOAT_TEST_CASES` sets the number of random cases of each property (default 20,000).

use crate::float_oracle::{Exact, Setting, denormal, registers, round, settings};
use proptest::prelude::*;
use sidestep_ia64::float::{
    Class, Control, Flags, FloatFault, FloatRegister, MultiplyAdd, Precision, Range, Rounded, Rounding,
    multiply, multiply_add,
};

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

fn operations() -> impl Strategy<Value = MultiplyAdd> {
    prop_oneof![
        Just(MultiplyAdd::Add),
        Just(MultiplyAdd::Subtract),
        Just(MultiplyAdd::NegateAdd)
    ]
}

/// `±(a * b) ± c` for finite operands, or `±(a * b)` without an addend.
fn expected(
    [a, b]: [FloatRegister; 2],
    c: Option<FloatRegister>,
    operation: MultiplyAdd,
    setting: &Setting,
) -> Result<Rounded, FloatFault> {
    let flags = denormal(&[a, b, c.unwrap_or(FloatRegister::ZERO)]);
    if !setting.disabled.contains(flags) {
        return Err(FloatFault { isr_code: 2 });
    }
    let product = Exact::of(a)
        .times(&Exact::of(b))
        .negated(operation == MultiplyAdd::NegateAdd);
    let addend = c.map(|c| Exact::of(c).negated(operation == MultiplyAdd::Subtract));
    let sum = addend
        .as_ref()
        .map_or(product.clone(), |addend| product.plus(addend));
    let mut rounded = if sum.is_zero() {
        let negative = match addend {
            Some(addend) if addend.negative != product.negative => setting.rounding == Rounding::Down,
            _ => product.negative,
        };
        round_zero(negative)
    } else {
        round(&sum, setting)
    };
    rounded.flags |= flags;
    Ok(rounded)
}

fn round_zero(negative: bool) -> Rounded {
    Rounded {
        value: FloatRegister::zero(negative),
        flags: Flags::empty(),
        trap: Default::default(),
    }
}

/// An addend that nearly cancels the product of two registers.
fn cancelling(a: FloatRegister, b: FloatRegister, nudge: i64, shift: i32) -> FloatRegister {
    let product = u128::from(a.significand()) * u128::from(b.significand());
    let zeros = product.leading_zeros();
    let significand = (product << zeros.min(127) >> 64) as u64;
    let exponent = a.exponent() as i32 + b.exponent() as i32 - 0xFFFF + 1 - zeros as i32 + shift;
    let negative = !(a.is_negative() ^ b.is_negative());
    FloatRegister::new(
        negative,
        exponent.clamp(0, 0x1FFFE) as u32,
        significand.wrapping_add_signed(nudge) | 1 << 63,
    )
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn finite_operands_match_exact_arithmetic(
        a in registers(true), b in registers(true), c in registers(true),
        operation in operations(), setting in settings(),
    ) {
        let result = multiply_add(a, b, c, operation, &setting.control());
        prop_assert_eq!(result, expected([a, b], Some(c), operation, &setting));
    }

    #[test]
    fn cancellation_matches_exact_arithmetic(
        a in registers(true), b in registers(true), nudge in -3i64..=3, shift in -2i32..=2, setting in settings(),
    ) {
        let c = cancelling(a, b, nudge, shift);
        let result = multiply_add(a, b, c, MultiplyAdd::Add, &setting.control());
        prop_assert_eq!(result, expected([a, b], Some(c), MultiplyAdd::Add, &setting), "addend {:?}", c);
    }

    #[test]
    fn products_match_exact_arithmetic(
        a in registers(true), b in registers(true), operation in operations(), setting in settings(),
    ) {
        let result = multiply(a, b, operation, &setting.control());
        prop_assert_eq!(result, expected([a, b], None, operation, &setting));
    }

    #[test]
    fn special_operands_follow_the_order_of_checks(
        a in registers(false), b in registers(false), c in registers(false), operation in operations(),
        setting in settings(),
    ) {
        let result = multiply_add(a, b, c, operation, &setting.control());
        let operands = [a, b, c];
        let any = |class: Class| operands.iter().any(|operand| operand.class() == class);
        let invalid_disabled = setting.disabled.contains(Flags::INVALID);
        if any(Class::NaTVal) {
            prop_assert_eq!(result.unwrap().value, FloatRegister::NATVAL);
            prop_assert_eq!(result.unwrap().flags, Flags::empty());
        } else if any(Class::Unsupported) || any(Class::SignalingNan) {
            prop_assert_eq!(result.is_err(), !invalid_disabled);
            if let Ok(result) = result {
                prop_assert_eq!(result.flags, Flags::INVALID);
                prop_assert_eq!(result.value.class(), Class::QuietNan);
            }
        } else if any(Class::QuietNan) {
            let first = [b, c, a].into_iter().find(|operand| operand.is_nan()).unwrap();
            prop_assert_eq!(result.unwrap().value, first);
            prop_assert_eq!(result.unwrap().flags, Flags::empty());
        } else if any(Class::Infinity) {
            if let Ok(result) = result {
                let infinite = result.value.class() == Class::Infinity;
                let invalid = result.value == FloatRegister::DEFAULT_NAN && result.flags == Flags::INVALID;
                prop_assert!(infinite || invalid);
            }
        } else {
            prop_assert_eq!(result, expected([a, b], Some(c), operation, &setting));
        }
    }

    #[test]
    fn doubles_match_the_host(a: u64, b: u64, c: u64, nearby: bool) {
        let near = |bits: u64| if nearby { bits & !(0x3F0 << 52) | 0x3F0 << 52 } else { bits };
        let [a, b, c] = [near(a), near(b), near(c)];
        let control = Control::new(Precision::Double, Range::Double, Rounding::Nearest, false, Flags::all());
        let [x, y, z] = [a, b, c].map(FloatRegister::from_double);
        let result = multiply_add(x, y, z, MultiplyAdd::Add, &control).unwrap().value;
        let host = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
        if host.is_nan() {
            prop_assert!(result.is_nan());
        } else {
            prop_assert_eq!(result.to_double(), host.to_bits());
        }
    }

    #[test]
    fn singles_match_the_host(a: u32, b: u32, c: u32, nearby: bool) {
        let near = |bits: u32| if nearby { bits & !(0x70 << 23) | 0x30 << 23 } else { bits };
        let [a, b, c] = [near(a), near(b), near(c)];
        let control = Control::new(Precision::Single, Range::Single, Rounding::Nearest, false, Flags::all());
        let [x, y, z] = [a, b, c].map(FloatRegister::from_single);
        let result = multiply_add(x, y, z, MultiplyAdd::Add, &control).unwrap().value;
        let host = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
        if host.is_nan() {
            prop_assert!(result.is_nan());
        } else {
            prop_assert_eq!(result.to_single(), host.to_bits());
        }
    }
}

const ALL_DISABLED: Control = Control::new(
    Precision::Extended,
    Range::Extended,
    Rounding::Nearest,
    false,
    Flags::all(),
);

#[test]
fn the_constant_register_as_addend_keeps_the_sign_of_a_zero_product() {
    let minus_zero = FloatRegister::zero(true);
    let one = FloatRegister::ONE;
    assert_eq!(
        multiply(minus_zero, one, MultiplyAdd::Add, &ALL_DISABLED)
            .unwrap()
            .value,
        minus_zero
    );
    let added = multiply_add(
        minus_zero,
        one,
        FloatRegister::ZERO,
        MultiplyAdd::Add,
        &ALL_DISABLED,
    );
    assert_eq!(added.unwrap().value, FloatRegister::ZERO);
}

#[test]
fn a_pseudo_zero_times_infinity_is_infinity_and_a_zero_is_invalid() {
    let infinity = FloatRegister::infinity(true);
    let pseudo_zero = FloatRegister::new(false, 0x1234, 0);
    let result = multiply(pseudo_zero, infinity, MultiplyAdd::Add, &ALL_DISABLED).unwrap();
    assert_eq!((result.value, result.flags), (infinity, Flags::DENORMAL));
    let result = multiply(FloatRegister::ZERO, infinity, MultiplyAdd::Add, &ALL_DISABLED).unwrap();
    assert_eq!(
        (result.value, result.flags),
        (FloatRegister::DEFAULT_NAN, Flags::INVALID)
    );
}

#[test]
fn infinities_of_opposite_sign_are_invalid() {
    let (plus, minus) = (FloatRegister::infinity(false), FloatRegister::infinity(true));
    let one = FloatRegister::ONE;
    for (addend, operation, invalid) in [
        (minus, MultiplyAdd::Add, true),
        (plus, MultiplyAdd::Add, false),
        (plus, MultiplyAdd::Subtract, true),
        (plus, MultiplyAdd::NegateAdd, true),
        (minus, MultiplyAdd::NegateAdd, false),
    ] {
        let result = multiply_add(plus, one, addend, operation, &ALL_DISABLED).unwrap();
        assert_eq!(
            result.flags == Flags::INVALID,
            invalid,
            "{addend:?} {operation:?}"
        );
    }
}

#[test]
fn a_lost_bit_counts_when_the_product_nearly_cancels() {
    let ones = FloatRegister::new(false, 0xFFFF, u64::MAX);
    for exponent in 0x10000..=0x10003 {
        let addend = FloatRegister::new(true, exponent, 1 << 63);
        for rounding in Rounding::ALL {
            let setting = Setting {
                precision: Precision::Extended,
                range: Range::Register,
                rounding,
                flush_to_zero: false,
                disabled: Flags::all(),
            };
            let result = multiply_add(ones, ones, addend, MultiplyAdd::Add, &setting.control());
            assert_eq!(
                result,
                expected([ones, ones], Some(addend), MultiplyAdd::Add, &setting)
            );
        }
    }
}
