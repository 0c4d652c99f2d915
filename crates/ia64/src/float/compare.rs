//! Comparisons, minima and maxima, and classification.
//!
//! Source: Itanium manual, volume 3, `fcmp`, `fclass`, `fmin`, `fmax`, `famin`, `famax`.

use std::cmp::Ordering;

use super::control::{Control, Flags, FloatFault, Rounded};
use super::register::{Class, FloatRegister};
use crate::encoding::{Extremum, FloatRelation};

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Whether the relation holds; `None` if an operand is NaTVal, which clears both predicates.
    pub holds: Option<bool>,
    /// What is added to the status field's flags.
    pub flags: Flags,
}

/// `fcmp`: whether `left` stands in `relation` to `right`.
///
/// # Errors
/// The fault, if an operand is invalid or denormal and that condition is not disabled.
#[inline]
pub fn compare(
    left: FloatRegister,
    right: FloatRegister,
    relation: FloatRelation,
    control: &Control,
) -> Result<Compared, FloatFault> {
    if left.is_normal() && right.is_normal() {
        let holds = Some(relation_holds(relation, Some(order(left, right))));
        return Ok(Compared {
            holds,
            flags: Flags::empty(),
        });
    }
    compare_any(left, right, relation, control)
}

#[inline(never)]
fn compare_any(
    left: FloatRegister,
    right: FloatRegister,
    relation: FloatRelation,
    control: &Control,
) -> Result<Compared, FloatFault> {
    if left.is_natval() || right.is_natval() {
        return Ok(Compared {
            holds: None,
            flags: Flags::empty(),
        });
    }
    let quiet = matches!(relation, FloatRelation::Equal | FloatRelation::Unordered);
    let invalid = [left, right].iter().any(|operand| match operand.class() {
        Class::Unsupported | Class::SignalingNan => true,
        Class::QuietNan => !quiet,
        _ => false,
    });
    let raised = if invalid { Flags::INVALID } else { Flags::empty() };
    let ordering = numbers(left, right).then(|| order(left, right));
    let raised = if ordering.is_some() {
        left.denormal_flag() | right.denormal_flag()
    } else {
        raised
    };
    let flags = control.check_fault(raised)?;
    Ok(Compared {
        holds: Some(relation_holds(relation, ordering)),
        flags,
    })
}

#[inline(always)]
fn relation_holds(relation: FloatRelation, ordering: Option<Ordering>) -> bool {
    match relation {
        FloatRelation::Equal => ordering == Some(Ordering::Equal),
        FloatRelation::Less => ordering == Some(Ordering::Less),
        FloatRelation::LessOrEqual => ordering.is_some_and(Ordering::is_le),
        FloatRelation::Unordered => ordering.is_none(),
    }
}

/// Whether both operands have a place on the number line: neither NaN nor unsupported (nor NaTVal).
fn numbers(left: FloatRegister, right: FloatRegister) -> bool {
    [left, right].iter().all(|operand| {
        !matches!(
            operand.class(),
            Class::NaTVal | Class::Unsupported | Class::SignalingNan | Class::QuietNan
        )
    })
}

/// The order of two finite values or infinities; zeros of either sign, pseudo-zeros too, are equal.
#[inline(always)]
fn order(left: FloatRegister, right: FloatRegister) -> Ordering {
    let (left, right) = (left.normalized(), right.normalized());
    let magnitudes = match (left.significand, right.significand) {
        (0, 0) => return Ordering::Equal,
        (0, _) => Ordering::Less,
        (_, 0) => Ordering::Greater,
        _ => (left.exponent, left.significand).cmp(&(right.exponent, right.significand)),
    };
    match (left.negative, right.negative) {
        (false, false) => magnitudes,
        (true, true) => magnitudes.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// `fmin`, `fmax`, `famin`, `famax`: f2 if it is strictly the wanted one, else f3; so f3 when either is a NaN.
///
/// # Errors
/// The fault, if an operand is invalid or denormal and that condition is not disabled.
pub fn extremum(
    first: FloatRegister,
    second: FloatRegister,
    wanted: Extremum,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    if first.is_natval() || second.is_natval() {
        return Ok(Rounded::exact(FloatRegister::NATVAL, Flags::empty()));
    }
    if !numbers(first, second) {
        return Ok(Rounded::exact(second, control.check_fault(Flags::INVALID)?));
    }
    let flags = control.check_fault(first.denormal_flag() | second.denormal_flag())?;
    let ordering = match wanted {
        Extremum::Minimum | Extremum::Maximum => order(first, second),
        Extremum::AbsoluteMinimum | Extremum::AbsoluteMaximum => order(magnitude(first), magnitude(second)),
    };
    let takes_first = match wanted {
        Extremum::Minimum | Extremum::AbsoluteMinimum => ordering.is_lt(),
        Extremum::Maximum | Extremum::AbsoluteMaximum => ordering.is_gt(),
    };
    Ok(Rounded::exact(if takes_first { first } else { second }, flags))
}

fn magnitude(register: FloatRegister) -> FloatRegister {
    FloatRegister::new(false, register.exponent(), register.significand())
}

bitflags::bitflags! {
    /// The classes `fclass` asks about, as its 9-bit immediate holds them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Classes: u16 {
        /// `@pos`: with a class of number, one of positive sign.
        const POSITIVE = 1;
        /// `@neg`: with a class of number, one of negative sign.
        const NEGATIVE = 1 << 1;
        /// `@zero`.
        const ZERO = 1 << 2;
        /// `@unorm`: denormals, unnormals and pseudo-zeros.
        const UNNORMAL = 1 << 3;
        /// `@norm`.
        const NORMAL = 1 << 4;
        /// `@inf`.
        const INFINITY = 1 << 5;
        /// `@snan`: of either sign.
        const SIGNALING_NAN = 1 << 6;
        /// `@qnan`: of either sign.
        const QUIET_NAN = 1 << 7;
        /// `@nat`: NaTVal.
        const NATVAL = 1 << 8;
    }
}

impl Classes {
    /// `fclass.m`: whether a value is a member; `None` (both predicates cleared) for a NaTVal not asked about.
    ///
    /// Unsupported encodings are members of no class.
    pub fn contain(self, value: FloatRegister) -> Option<bool> {
        let sign = if value.is_negative() {
            Self::NEGATIVE
        } else {
            Self::POSITIVE
        };
        let number = |class| self.contains(sign | class);
        Some(match value.class() {
            Class::NaTVal => return self.contains(Self::NATVAL).then_some(true),
            Class::Unsupported => false,
            Class::SignalingNan => self.contains(Self::SIGNALING_NAN),
            Class::QuietNan => self.contains(Self::QUIET_NAN),
            Class::Infinity => number(Self::INFINITY),
            Class::Zero => number(Self::ZERO),
            Class::Unnormal => number(Self::UNNORMAL),
            Class::Normal => number(Self::NORMAL),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{Completer, StatusField, StatusRegister};

    fn control() -> Control {
        StatusRegister::LINUX.control(StatusField::S0, Completer::Dynamic)
    }

    fn double(value: f64) -> FloatRegister {
        FloatRegister::from_double(value.to_bits())
    }

    const VALUES: [f64; 12] = [
        f64::NEG_INFINITY,
        -1e300,
        -2.0,
        -1.0,
        -5e-324,
        -0.0,
        0.0,
        5e-324,
        1.0,
        1.0000000000000002,
        f64::INFINITY,
        f64::NAN,
    ];

    #[test]
    fn relations_match_the_host() {
        for left in VALUES {
            for right in VALUES {
                let compared = |relation| compare(double(left), double(right), relation, &control()).unwrap();
                let unordered = left.is_nan() || right.is_nan();
                assert_eq!(compared(FloatRelation::Equal).holds, Some(left == right));
                assert_eq!(compared(FloatRelation::Less).holds, Some(left < right));
                assert_eq!(compared(FloatRelation::LessOrEqual).holds, Some(left <= right));
                assert_eq!(compared(FloatRelation::Unordered).holds, Some(unordered));
                let denormal = !unordered && (left.is_subnormal() || right.is_subnormal());
                let quiet = if denormal { Flags::DENORMAL } else { Flags::empty() };
                assert_eq!(compared(FloatRelation::Equal).flags, quiet);
                assert_eq!(
                    compared(FloatRelation::Less).flags,
                    if unordered { Flags::INVALID } else { quiet }
                );
            }
        }
    }

    #[test]
    fn extrema_match_the_host() {
        for left in VALUES {
            for right in VALUES {
                let of = |wanted| {
                    extremum(double(left), double(right), wanted, &control())
                        .unwrap()
                        .value
                };
                let pick = |first: bool| double(if first { left } else { right });
                assert_eq!(of(Extremum::Minimum), pick(left < right));
                assert_eq!(of(Extremum::Maximum), pick(left > right));
                assert_eq!(of(Extremum::AbsoluteMinimum), pick(left.abs() < right.abs()));
                assert_eq!(of(Extremum::AbsoluteMaximum), pick(left.abs() > right.abs()));
            }
        }
    }

    #[test]
    fn equal_values_of_different_form_are_equal() {
        let unnormal = FloatRegister::new(false, 0x10000, 1 << 62);
        assert_eq!(
            compare(unnormal, FloatRegister::ONE, FloatRelation::Equal, &control())
                .unwrap()
                .holds,
            Some(true)
        );
        let pseudo_zero = FloatRegister::new(true, 77, 0);
        let compared = compare(pseudo_zero, FloatRegister::ZERO, FloatRelation::Equal, &control()).unwrap();
        assert_eq!(
            compared,
            Compared {
                holds: Some(true),
                flags: Flags::DENORMAL
            }
        );
    }

    #[test]
    fn pseudo_zeros_are_ordered_as_zeros_whatever_their_exponent() {
        for negative in [false, true] {
            let pseudo_zero = FloatRegister::new(negative, 0x1FFFD, 0);
            let less = |left, right| {
                compare(left, right, FloatRelation::Less, &control())
                    .unwrap()
                    .holds
            };
            assert_eq!(less(pseudo_zero, double(1e-300)), Some(true));
            assert_eq!(less(double(-1e-300), pseudo_zero), Some(true));
            let largest = extremum(double(-0.5), pseudo_zero, Extremum::AbsoluteMaximum, &control()).unwrap();
            assert_eq!((largest.value, largest.flags), (double(-0.5), Flags::DENORMAL));
        }
    }

    #[test]
    fn natval_clears_and_unsupported_is_invalid() {
        let compared = compare(
            FloatRegister::NATVAL,
            double(f64::NAN),
            FloatRelation::Less,
            &control(),
        )
        .unwrap();
        assert_eq!(
            compared,
            Compared {
                holds: None,
                flags: Flags::empty()
            }
        );
        let unsupported = FloatRegister::new(false, 0x1FFFF, 5);
        let compared = compare(
            unsupported,
            FloatRegister::ONE,
            FloatRelation::Unordered,
            &control(),
        )
        .unwrap();
        assert_eq!(
            compared,
            Compared {
                holds: Some(true),
                flags: Flags::INVALID
            }
        );
        let enabled = Control {
            disabled: Flags::all() - Flags::INVALID,
            ..control()
        };
        let fault = compare(unsupported, FloatRegister::ONE, FloatRelation::Equal, &enabled);
        assert_eq!(fault, Err(FloatFault { isr_code: 1 }));
    }

    #[test]
    fn classes_contain_their_members() {
        let any_number = Classes::POSITIVE | Classes::NEGATIVE;
        assert_eq!((any_number | Classes::ZERO).contain(double(-0.0)), Some(true));
        assert_eq!(
            (Classes::POSITIVE | Classes::ZERO).contain(double(-0.0)),
            Some(false)
        );
        assert_eq!(Classes::ZERO.contain(double(0.0)), Some(false));
        assert_eq!(
            (any_number | Classes::UNNORMAL).contain(double(5e-324)),
            Some(true)
        );
        assert_eq!((any_number | Classes::NORMAL).contain(double(2.0)), Some(true));
        assert_eq!(
            (Classes::NEGATIVE | Classes::INFINITY).contain(double(f64::NEG_INFINITY)),
            Some(true)
        );
        assert_eq!(Classes::QUIET_NAN.contain(double(f64::NAN)), Some(true));
        assert_eq!(Classes::SIGNALING_NAN.contain(double(f64::NAN)), Some(false));
        assert_eq!(
            Classes::all().contain(FloatRegister::new(false, 0x1FFFF, 0)),
            Some(false)
        );
        assert_eq!(Classes::NATVAL.contain(FloatRegister::NATVAL), Some(true));
        assert_eq!(
            (Classes::all() - Classes::NATVAL).contain(FloatRegister::NATVAL),
            None
        );
    }
}
