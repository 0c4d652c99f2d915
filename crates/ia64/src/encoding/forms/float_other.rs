//! Floating-point operations without arithmetic, and the status fields' own: formats F5, F9 and F11 to F16.

use super::float_arithmetic::STATUS_FIELDS;
use super::{Bits, Field, Form, field, form, major};
use crate::encoding::completers::{FloatMix, FloatSwap, Half, Logical, Merge};
use crate::encoding::form::Condition;
use crate::encoding::instruction::UnitClass::F;
use crate::encoding::operand::Operand::*;
use crate::encoding::operation::Operation;

const X: Field = field(33, 1);
const X6: Field = field(27, 6);
const F2_FIELD: Field = field(13, 7);

pub(super) fn rows(forms: &mut Vec<Form>) {
    class(forms);
    merges(forms);
    bits(forms);
    status_fields(forms);
    any_unit(forms);
}

fn by_x6(opcode: u64, x6: u64) -> Bits {
    major(opcode).set(X, 0).set(X6, x6)
}

/// Format F5.
fn class(forms: &mut Vec<Form>) {
    for (ta, name, unconditional) in [(0, "fclass.m", false), (1, "fclass.m.unc", true)] {
        let bits = major(5).set(field(12, 1), ta);
        let operation = Operation::FloatClass { unconditional };
        forms.push(form((F, "F5"), name, bits, 2, &[P1, P2, F2, Immu9], operation));
    }
}

/// `fmerge` and `fpmerge`, of format F9, with the pseudo-operations on the sign.
fn merges(forms: &mut Vec<Form>) {
    let row =
        |opcode, x6, name: &str, operation| form((F, "F9"), name, by_x6(opcode, x6), 1, &[F1, F2, F3], operation);
    let plain = |merge| Operation::FloatMerge { merge };
    let parallel = |merge| Operation::ParallelFloatMerge { merge };
    let zero = |opcode, x6| by_x6(opcode, x6).set(F2_FIELD, 0);
    let (same, none) = (Condition::SameSources, Condition::None);
    forms.extend([
        row(0, 0x10, "fmerge.s", plain(Merge::Sign)).alias("mov", by_x6(0, 0x10), same, 1, &[F1, F3]).alias(
            "fabs",
            zero(0, 0x10),
            none,
            1,
            &[F1, F3],
        ),
        row(0, 0x11, "fmerge.ns", plain(Merge::NegatedSign)).alias("fneg", by_x6(0, 0x11), same, 1, &[F1, F3]).alias(
            "fnegabs",
            zero(0, 0x11),
            none,
            1,
            &[F1, F3],
        ),
        row(0, 0x12, "fmerge.se", plain(Merge::SignExponent)),
        row(1, 0x10, "fpmerge.s", parallel(Merge::Sign)).alias("fpabs", zero(1, 0x10), none, 1, &[F1, F3]),
        row(1, 0x11, "fpmerge.ns", parallel(Merge::NegatedSign))
            .alias("fpneg", by_x6(1, 0x11), same, 1, &[F1, F3])
            .alias("fpnegabs", zero(1, 0x11), none, 1, &[F1, F3]),
        row(1, 0x12, "fpmerge.se", parallel(Merge::SignExponent)),
    ]);
}

/// Significand and element operations, of formats F9 and F11.
fn bits(forms: &mut Vec<Form>) {
    let mix = |mix| Operation::FloatMix { mix };
    let extend = |half| Operation::FloatSignExtend { half };
    let swap = |swap| Operation::FloatSwap { swap };
    let logical = |function| Operation::FloatLogical { function };
    let rows = [
        (0x28, "fpack", Operation::FloatPack),
        (0x2c, "fand", logical(Logical::And)),
        (0x2d, "fandcm", logical(Logical::AndComplement)),
        (0x2e, "for", logical(Logical::Or)),
        (0x2f, "fxor", logical(Logical::ExclusiveOr)),
        (0x34, "fswap", swap(FloatSwap::Plain)),
        (0x35, "fswap.nl", swap(FloatSwap::NegateLeft)),
        (0x36, "fswap.nr", swap(FloatSwap::NegateRight)),
        (0x39, "fmix.lr", mix(FloatMix::LeftRight)),
        (0x3a, "fmix.r", mix(FloatMix::Right)),
        (0x3b, "fmix.l", mix(FloatMix::Left)),
        (0x3c, "fsxt.r", extend(Half::Right)),
        (0x3d, "fsxt.l", extend(Half::Left)),
    ];
    for (x6, name, operation) in rows {
        forms.push(form((F, "F9"), name, by_x6(0, x6), 1, &[F1, F2, F3], operation));
    }
    forms.push(form((F, "F11"), "fcvt.xf", by_x6(0, 0x1c), 1, &[F1, F2], Operation::ConvertFromFixed));
}

/// Formats F12, F13 and F14.
fn status_fields(forms: &mut Vec<Form>) {
    const SF: Field = field(34, 2);
    for (suffix, status) in STATUS_FIELDS {
        let bits = |x6| by_x6(0, x6).set(SF, status as u64);
        let set = Operation::FloatSetControls { status };
        let clear = Operation::FloatClearFlags { status };
        let check = Operation::FloatCheckFlags { status };
        forms.extend([
            form((F, "F12"), format!("fsetc{suffix}"), bits(0x04), 0, &[Immu7a, Immu7b], set),
            form((F, "F13"), format!("fclrf{suffix}"), bits(0x05), 0, &[], clear),
            form((F, "F14"), format!("fchkf{suffix}"), bits(0x08), 0, &[Target25], check),
        ]);
    }
}

/// Formats F15 and F16.
fn any_unit(forms: &mut Vec<Form>) {
    const Y: Field = field(26, 1);
    forms.extend([
        form((F, "F15"), "break.f", by_x6(0, 0x00), 0, &[Immu21], Operation::Break),
        form((F, "F16"), "nop.f", by_x6(0, 0x01).set(Y, 0), 0, &[Immu21], Operation::Nop),
        form((F, "F16"), "hint.f", by_x6(0, 0x01).set(Y, 1), 0, &[Immu21], Operation::Hint),
    ]);
}
