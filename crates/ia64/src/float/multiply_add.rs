//! The multiply-add family: `fma`, `fms`, `fnma` and the multiplications, additions and normalisations that are
//! written with them.
//!
//! The exact product is 128 bits; the addend is aligned with it, the sum keeps a sticky bit, and one rounding follows.
//! Values with a zero exponent field or without integer bit (which processors hand to software assistance) give here
//! what the assisting software delivers: the exactly rounded result and the D flag.
//!
//! `fmpy`, `fnmpy` and `fnorm` name f0 as the addend, which is no addition of +0: the product alone is rounded and
//! keeps its own sign of zero. They are [`multiply()`].
//!
//! Source: Itanium manual, volume 3, `fma`, `fms`, `fnma`; volume 1, figure 5-11 for the order of checks.

use std::hint::select_unpredictable;

use super::control::{Control, Flags, FloatFault, Precision, Rounded, Rounding};
use super::host;
use super::nearest::{self, Nearest};
use super::register::{Class, EXPONENT_BIAS, FloatRegister, Normalized};
use super::round::{Unrounded, shift_right};
use crate::encoding::MultiplyAdd;

impl MultiplyAdd {
    #[inline(always)]
    const fn negates_product(self) -> bool {
        matches!(self, Self::NegateAdd)
    }

    #[inline(always)]
    const fn negates_addend(self) -> bool {
        matches!(self, Self::Subtract)
    }
}

/// `f1 = ±(f3 * f4) ± f2` with one rounding; `addend` is f2 and not the register f0 (see [`multiply()`]).
///
/// # Errors
/// The fault, if an operand is invalid or denormal and that condition is not disabled.
#[inline(always)]
pub fn multiply_add(
    multiplicand: FloatRegister,
    multiplier: FloatRegister,
    addend: FloatRegister,
    operation: MultiplyAdd,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    if let Some(value) = host::multiply_add([multiplicand, multiplier, addend], operation, control) {
        return Ok(Rounded::exact(value, Flags::empty()));
    }
    multiply_add_integers(multiplicand, multiplier, addend, operation, control)
}

/// `f1 = ±f3 ± f2` with one rounding: [`multiply_add()`] with f1 as the multiplier, as `fadd` and `fsub` are written.
///
/// # Errors
/// As [`multiply_add()`].
#[inline(always)]
pub fn add(
    augend: FloatRegister,
    addend: FloatRegister,
    operation: MultiplyAdd,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    if let Some(value) = host::add([augend, addend], operation, control) {
        return Ok(Rounded::exact(value, Flags::empty()));
    }
    multiply_add_integers(augend, FloatRegister::ONE, addend, operation, control)
}

/// [`multiply_add()`] without the host.
#[inline(never)]
fn multiply_add_integers(
    multiplicand: FloatRegister,
    multiplier: FloatRegister,
    addend: FloatRegister,
    operation: MultiplyAdd,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    if control.is_nearest {
        let factor = multiplicand.negated_if(operation.negates_product());
        let term = addend.negated_if(operation.negates_addend());
        let sum = match control.precision {
            Precision::Single => nearest::multiply_add::<24>(factor, multiplier, term),
            Precision::Double => nearest::multiply_add::<53>(factor, multiplier, term),
            Precision::Extended => nearest::multiply_add::<64>(factor, multiplier, term),
        };
        if let Some(sum) = sum {
            return Ok(sum.delivered());
        }
    }
    let sum = if multiplicand.is_normal() && multiplier.is_normal() {
        let product = Product::new(
            multiplicand.fields(),
            multiplier.fields(),
            operation.negates_product(),
        );
        match addend.class() {
            Class::Normal => product.plus(addend.fields(), operation.negates_addend()),
            Class::Zero => Some(product.unrounded()),
            _ => None,
        }
    } else {
        None
    };
    if let Some(sum) = sum
        && let Some(rounded) = sum.round_in_range(control)
    {
        return Ok(rounded);
    }
    any_operands(multiplicand, multiplier, Some(addend), operation, control)
}

/// `f1 = ±(f3 * f4)` with one rounding: the family's members with f0 as the addend. `NegateAdd` negates the product.
///
/// # Errors
/// As [`multiply_add()`].
#[inline(always)]
pub fn multiply(
    multiplicand: FloatRegister,
    multiplier: FloatRegister,
    operation: MultiplyAdd,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    if let Some(value) = host::multiply([multiplicand, multiplier], operation, control) {
        return Ok(Rounded::exact(value, Flags::empty()));
    }
    multiply_integers(multiplicand, multiplier, operation, control)
}

/// [`multiply()`] without the host.
#[inline(never)]
fn multiply_integers(
    multiplicand: FloatRegister,
    multiplier: FloatRegister,
    operation: MultiplyAdd,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    if control.is_nearest {
        let factor = multiplicand.negated_if(operation.negates_product());
        let product = match control.precision {
            Precision::Single => nearest::multiply::<24>(factor, multiplier),
            Precision::Double => nearest::multiply::<53>(factor, multiplier),
            Precision::Extended => nearest::multiply::<64>(factor, multiplier),
        };
        if let Some(product) = product {
            return Ok(product.delivered());
        }
    }
    if multiplicand.is_normal() && multiplier.is_normal() {
        let product = Product::new(
            multiplicand.fields(),
            multiplier.fields(),
            operation.negates_product(),
        );
        if let Some(rounded) = product.unrounded().round_in_range(control) {
            return Ok(rounded);
        }
    }
    any_operands(multiplicand, multiplier, None, operation, control)
}

impl Nearest {
    #[inline(always)]
    const fn delivered(self) -> Rounded {
        let flags = if self.is_inexact {
            Flags::INEXACT
        } else {
            Flags::empty()
        };
        Rounded::exact(self.value, flags)
    }
}

impl FloatRegister {
    /// The normalised form of a [`Class::Normal`] value: its own fields.
    #[inline(always)]
    const fn fields(self) -> Normalized {
        Normalized {
            negative: self.is_negative(),
            exponent: self.exponent() as i32,
            significand: self.significand(),
        }
    }
}

/// A non-zero exact product, normalised.
#[derive(Clone, Copy)]
struct Product(Unrounded);

impl Product {
    #[inline(always)]
    fn new(multiplicand: Normalized, multiplier: Normalized, negate: bool) -> Self {
        let exact = u128::from(multiplicand.significand) * u128::from(multiplier.significand);
        let shift = u32::from(exact >> 127 == 0);
        Self(Unrounded {
            negative: multiplicand.negative ^ multiplier.negative ^ negate,
            exponent: multiplicand.exponent + multiplier.exponent - EXPONENT_BIAS as i32 + 1 - shift as i32,
            significand: exact << shift,
        })
    }

    #[inline(always)]
    fn unrounded(self) -> Unrounded {
        self.0
    }

    /// The sum with a non-zero addend; `None` if it is exactly zero.
    #[inline(always)]
    fn plus(self, addend: Normalized, negate: bool) -> Option<Unrounded> {
        let product = self.0;
        let addend = Unrounded {
            negative: addend.negative ^ negate,
            exponent: addend.exponent,
            significand: u128::from(addend.significand) << 64,
        };
        let difference = product.exponent - addend.exponent;
        let swapped = difference < 0;
        let distance = difference.unsigned_abs();
        let large = select_unpredictable(swapped, addend.significand, product.significand);
        let small = select_unpredictable(swapped, product.significand, addend.significand);
        let exponent = product.exponent.max(addend.exponent);
        let mut negative = select_unpredictable(swapped, addend.negative, product.negative);
        let (aligned, lost) = shift_right(small, distance);

        if product.negative == addend.negative {
            let (sum, carried) = large.overflowing_add(aligned);
            let shift = u32::from(carried);
            return Some(Unrounded {
                negative,
                exponent: exponent + shift as i32,
                significand: sum >> shift | sum & 1 | u128::from(lost) | u128::from(carried) << 127,
            });
        }
        if lost && distance == 1 {
            return Some(difference_by_one_place(
                Unrounded {
                    negative,
                    exponent,
                    significand: large,
                },
                small,
            ));
        }
        // Bits lost below put the true difference under the computed one: one less, and bit 0 for the rest.
        let (difference, exceeded) = large.overflowing_sub(aligned);
        let mut significand = (difference - u128::from(lost)) | u128::from(lost);
        if exceeded {
            // Equal exponents, and the addend was the larger one.
            significand = significand.wrapping_neg();
            negative = !negative;
        }
        if significand == 0 {
            return None;
        }
        Some(
            Unrounded {
                negative,
                exponent,
                significand,
            }
            .normalized(),
        )
    }
}

/// A difference of values whose exponents differ by one, where aligning the smaller one has lost its last bit.
#[cold]
fn difference_by_one_place(large: Unrounded, small: u128) -> Unrounded {
    let below = (large.significand - (small >> 1) - 1) | 1;
    if below >> 127 != 0 {
        return Unrounded {
            significand: below,
            ..large
        };
    }
    // Cancellation brings the lost bit into sight: twice the difference fits and loses nothing.
    let doubled = (large.significand << 1).wrapping_sub(small);
    Unrounded {
        exponent: large.exponent - 1,
        significand: doubled,
        ..large
    }
    .normalized()
}

/// The whole family for every operand and every trap; `addend` is `None` for f0.
#[inline(never)]
fn any_operands(
    multiplicand: FloatRegister,
    multiplier: FloatRegister,
    addend: Option<FloatRegister>,
    operation: MultiplyAdd,
    control: &Control,
) -> Result<Rounded, FloatFault> {
    let added = addend.unwrap_or(FloatRegister::ZERO);
    // The order in which a NaN is chosen: f4, f2, f3.
    let operands = [multiplier, added, multiplicand];
    if let Some(result) = propagate_nan(&operands, control)? {
        return Ok(result);
    }
    let classes = operands.map(FloatRegister::class);
    let product_negative =
        multiplicand.is_negative() ^ multiplier.is_negative() ^ operation.negates_product();
    let addend_negative = added.is_negative() ^ operation.negates_addend();
    let product_infinite = classes[0] == Class::Infinity || classes[2] == Class::Infinity;
    let addend_infinite = classes[1] == Class::Infinity;
    if product_infinite {
        let by_zero = classes[0] == Class::Zero || classes[2] == Class::Zero;
        if by_zero || (addend_infinite && product_negative != addend_negative) {
            return control.invalid();
        }
    }
    let denormal = operands
        .map(FloatRegister::denormal_flag)
        .into_iter()
        .fold(Flags::empty(), Flags::union);
    let operand_flags = control.check_fault(denormal)?;
    if product_infinite || addend_infinite {
        let negative = if product_infinite {
            product_negative
        } else {
            addend_negative
        };
        return Ok(Rounded::exact(FloatRegister::infinity(negative), operand_flags));
    }

    let (factor, other) = (multiplicand.normalized(), multiplier.normalized());
    let product = (factor.significand != 0 && other.significand != 0)
        .then(|| Product::new(factor, other, operation.negates_product()));
    let sum = match (product, addend.map(|register| register.normalized())) {
        (Some(product), Some(term)) if term.significand != 0 => {
            product.plus(term, operation.negates_addend())
        }
        (Some(product), _) => Some(product.unrounded()),
        (None, Some(term)) if term.significand != 0 => Some(Unrounded {
            negative: addend_negative,
            exponent: term.exponent,
            significand: u128::from(term.significand) << 64,
        }),
        (None, None) => {
            return Ok(Rounded::exact(
                FloatRegister::zero(product_negative),
                operand_flags,
            ));
        }
        (None, Some(_)) => None,
    };
    match sum {
        Some(sum) => {
            let mut rounded = sum.round(control);
            rounded.flags |= operand_flags;
            Ok(rounded)
        }
        None => {
            let negative = if product_negative == addend_negative {
                product_negative
            } else {
                control.rounding == Rounding::Down
            };
            Ok(Rounded::exact(FloatRegister::zero(negative), operand_flags))
        }
    }
}

/// NaTVal, unsupported and NaN operands, in the order in which arithmetic checks them; a NaN is taken from the first
/// operand that holds one. `None` if no operand is any of these.
pub(super) fn propagate_nan(
    operands: &[FloatRegister],
    control: &Control,
) -> Result<Option<Rounded>, FloatFault> {
    if operands.iter().any(|operand| operand.is_natval()) {
        return Ok(Some(Rounded::exact(FloatRegister::NATVAL, Flags::empty())));
    }
    if operands
        .iter()
        .any(|operand| operand.class() == Class::Unsupported)
    {
        return control.invalid().map(Some);
    }
    let Some(first) = operands.iter().find(|operand| operand.is_nan()) else {
        return Ok(None);
    };
    let signalling = operands
        .iter()
        .any(|operand| operand.class() == Class::SignalingNan);
    let flags = control.check_fault(if signalling {
        Flags::INVALID
    } else {
        Flags::empty()
    })?;
    Ok(Some(Rounded::exact(first.quieted(), flags)))
}
