//! Floating-point arithmetic: formats F1 to F3, and the compares, approximations, extrema and conversions that
//! use a status field (F4, F6 to F8, F10).

use super::{Bits, Field, Form, field, form, major};
use crate::encoding::completers::{
    Extremum, FixedPart, FixedRounding, FloatRelation, MultiplyAdd, ParallelFloatRelation, Precision, Signedness,
    StatusField,
};
use crate::encoding::form::Condition;
use crate::encoding::instruction::UnitClass::F;
use crate::encoding::operand::Operand::*;
use crate::encoding::operation::Operation;

const SF: Field = field(34, 2);
const X: Field = field(33, 1);
const X6: Field = field(27, 6);
const F2_FIELD: Field = field(13, 7);
const F4_FIELD: Field = field(27, 7);

/// The status fields with their suffixes, by value.
pub(super) const STATUS_FIELDS: [(&str, StatusField); 4] =
    [(".s0", StatusField::S0), (".s1", StatusField::S1), (".s2", StatusField::S2), (".s3", StatusField::S3)];

pub(super) fn rows(forms: &mut Vec<Form>) {
    for (suffix, status) in STATUS_FIELDS {
        multiply_add(forms, suffix, status);
        compares(forms, suffix, status);
        approximations(forms, suffix, status);
        extrema(forms, suffix, status);
        parallel_compares(forms, suffix, status);
        conversions(forms, suffix, status);
    }
    fixed(forms);
}

/// Format F1, with the pseudo-operations that have 1.0 as a factor (f1) or 0.0 as an addend (f0).
fn multiply_add(forms: &mut Vec<Form>, suffix: &str, status: StatusField) {
    const X: Field = field(36, 1);
    /// Major opcode, x, precision suffix, precision.
    const PRECISIONS: [(u64, u64, &str, Precision); 3] =
        [(0, 0, "", Precision::Dynamic), (0, 1, ".s", Precision::Single), (1, 0, ".d", Precision::Double)];
    struct Function {
        /// The major opcode of the first precision.
        opcode: u64,
        name: &'static str,
        /// The mnemonic with 0.0 as the addend, without precision.
        product: Option<&'static str>,
        /// The mnemonic with 1.0 as a factor.
        sum: Option<&'static str>,
        function: MultiplyAdd,
    }
    const FUNCTIONS: [Function; 3] = [
        Function { opcode: 0x8, name: "ma", product: Some("mpy"), sum: Some("add"), function: MultiplyAdd::Add },
        Function { opcode: 0xa, name: "ms", product: None, sum: Some("sub"), function: MultiplyAdd::Subtract },
        Function { opcode: 0xc, name: "nma", product: Some("nmpy"), sum: None, function: MultiplyAdd::NegateAdd },
    ];
    for Function { opcode, name, product, sum, function } in FUNCTIONS {
        for (opcode_offset, x, precision_suffix, precision) in PRECISIONS {
            let bits = major(opcode + opcode_offset).set(X, x).set(SF, status as u64);
            let full = |base: &str| format!("f{base}{precision_suffix}{suffix}");
            let operation = Operation::FloatMultiplyAdd { function, precision, status };
            let mut row = form((F, "F1"), full(name), bits, 1, &[F1, F3, F4, F2], operation);
            if function == MultiplyAdd::Add {
                let normalise = bits.set(F2_FIELD, 0).set(F4_FIELD, 1);
                row = row.alias(full("norm"), normalise, Condition::None, 1, &[F1, F3]);
            }
            if let Some(sum) = sum {
                row = row.alias(full(sum), bits.set(F4_FIELD, 1), Condition::None, 1, &[F1, F3, F2]);
            }
            if let Some(product) = product {
                row = row.alias(full(product), bits.set(F2_FIELD, 0), Condition::None, 1, &[F1, F3, F4]);
            }
            forms.push(row);
        }
        let bits = major(opcode + 1).set(X, 1).set(SF, status as u64);
        let full = |base: &str| format!("fp{base}{suffix}");
        let operation = Operation::ParallelFloatMultiplyAdd { function, status };
        let mut row = form((F, "F1"), full(name), bits, 1, &[F1, F3, F4, F2], operation);
        if let Some(product) = product {
            row = row.alias(full(product), bits.set(F2_FIELD, 0), Condition::None, 1, &[F1, F3, F4]);
        }
        forms.push(row);
    }
}

/// Formats F2 and F3.
fn fixed(forms: &mut Vec<Form>) {
    const X: Field = field(36, 1);
    const X2: Field = field(34, 2);
    const PARTS: [(u64, &str, FixedPart); 3] =
        [(0, ".l", FixedPart::Low), (2, ".hu", FixedPart::HighUnsigned), (3, ".h", FixedPart::High)];
    for (x2, suffix, part) in PARTS {
        let bits = major(0xe).set(X, 1).set(X2, x2);
        let operation = Operation::FixedMultiplyAdd { part };
        let row = form((F, "F2"), format!("xma{suffix}"), bits, 1, &[F1, F3, F4, F2], operation);
        let product = bits.set(F2_FIELD, 0);
        forms.push(row.alias(format!("xmpy{suffix}"), product, Condition::None, 1, &[F1, F3, F4]));
    }
    let select = major(0xe).set(X, 0);
    forms.push(form((F, "F3"), "fselect", select, 1, &[F1, F3, F4, F2], Operation::FloatSelect));
}

/// Format F4.
fn compares(forms: &mut Vec<Form>, suffix: &str, status: StatusField) {
    const RA: Field = field(33, 1);
    const RB: Field = field(36, 1);
    const TA: Field = field(12, 1);
    const RELATIONS: [(u64, u64, &str, FloatRelation); 4] = [
        (0, 0, ".eq", FloatRelation::Equal),
        (0, 1, ".lt", FloatRelation::Less),
        (1, 0, ".le", FloatRelation::LessOrEqual),
        (1, 1, ".unord", FloatRelation::Unordered),
    ];
    for (ra, rb, relation_suffix, relation) in RELATIONS {
        for (ta, unconditional_suffix, unconditional) in [(0, "", false), (1, ".unc", true)] {
            let bits = major(4).set(RA, ra).set(RB, rb).set(TA, ta).set(SF, status as u64);
            let operation = Operation::FloatCompare { relation, unconditional, status };
            let name = format!("fcmp{relation_suffix}{unconditional_suffix}{suffix}");
            forms.push(form((F, "F4"), name, bits, 2, &[P1, P2, F2, F3], operation));
        }
    }
}

/// The major opcode and mnemonic prefix of an operation, plain or parallel.
const SHAPES: [(u64, &str, bool); 2] = [(0, "f", false), (1, "fp", true)];

/// Formats F6 and F7.
fn approximations(forms: &mut Vec<Form>, suffix: &str, status: StatusField) {
    const Q: Field = field(36, 1);
    for (opcode, prefix, parallel) in SHAPES {
        let bits = |q| major(opcode).set(X, 1).set(Q, q).set(SF, status as u64);
        let (reciprocal, root) = match parallel {
            false => (
                Operation::FloatReciprocalApproximation { status },
                Operation::FloatReciprocalSquareRootApproximation { status },
            ),
            true => (
                Operation::ParallelFloatReciprocalApproximation { status },
                Operation::ParallelFloatReciprocalSquareRootApproximation { status },
            ),
        };
        let (reciprocal_name, root_name) = (format!("{prefix}rcpa{suffix}"), format!("{prefix}rsqrta{suffix}"));
        forms.extend([
            form((F, "F6"), reciprocal_name, bits(0), 2, &[F1, P2, F2, F3], reciprocal),
            form((F, "F7"), root_name, bits(1), 2, &[F1, P2, F3], root),
        ]);
    }
}

/// The fixed bits of a form with x6 and a status field.
fn with_status(opcode: u64, x6: u64, status: StatusField) -> Bits {
    major(opcode).set(X, 0).set(X6, x6).set(SF, status as u64)
}

/// Minimum and maximum, of format F8.
fn extrema(forms: &mut Vec<Form>, suffix: &str, status: StatusField) {
    const EXTREMA: [(u64, &str, Extremum); 4] = [
        (0x14, "min", Extremum::Minimum),
        (0x15, "max", Extremum::Maximum),
        (0x16, "amin", Extremum::AbsoluteMinimum),
        (0x17, "amax", Extremum::AbsoluteMaximum),
    ];
    for (opcode, prefix, parallel) in SHAPES {
        for (x6, name, select) in EXTREMA {
            let operation = match parallel {
                false => Operation::FloatExtremum { select, status },
                true => Operation::ParallelFloatExtremum { select, status },
            };
            let name = format!("{prefix}{name}{suffix}");
            forms.push(form((F, "F8"), name, with_status(opcode, x6, status), 1, &[F1, F2, F3], operation));
        }
    }
}

/// `fpcmp`, of format F8.
fn parallel_compares(forms: &mut Vec<Form>, suffix: &str, status: StatusField) {
    const RELATIONS: [(&str, ParallelFloatRelation); 8] = [
        ("eq", ParallelFloatRelation::Equal),
        ("lt", ParallelFloatRelation::Less),
        ("le", ParallelFloatRelation::LessOrEqual),
        ("unord", ParallelFloatRelation::Unordered),
        ("neq", ParallelFloatRelation::NotEqual),
        ("nlt", ParallelFloatRelation::NotLess),
        ("nle", ParallelFloatRelation::NotLessOrEqual),
        ("ord", ParallelFloatRelation::Ordered),
    ];
    for (index, (name, relation)) in RELATIONS.into_iter().enumerate() {
        let bits = with_status(1, 0x30 + index as u64, status);
        let operation = Operation::ParallelFloatCompare { relation, status };
        forms.push(form((F, "F8"), format!("fpcmp.{name}{suffix}"), bits, 1, &[F1, F2, F3], operation));
    }
}

/// Format F10.
fn conversions(forms: &mut Vec<Form>, suffix: &str, status: StatusField) {
    const CONVERSIONS: [(u64, &str, Signedness, FixedRounding); 4] = [
        (0x18, ".fx", Signedness::Signed, FixedRounding::Dynamic),
        (0x19, ".fxu", Signedness::Unsigned, FixedRounding::Dynamic),
        (0x1a, ".fx.trunc", Signedness::Signed, FixedRounding::Truncate),
        (0x1b, ".fxu.trunc", Signedness::Unsigned, FixedRounding::Truncate),
    ];
    for (opcode, prefix, parallel) in SHAPES {
        for (x6, name, signedness, rounding) in CONVERSIONS {
            let operation = match parallel {
                false => Operation::ConvertToFixed { signedness, rounding, status },
                true => Operation::ParallelConvertToFixed { signedness, rounding, status },
            };
            let name = format!("{prefix}cvt{name}{suffix}");
            forms.push(form((F, "F10"), name, with_status(opcode, x6, status), 1, &[F1, F2], operation));
        }
    }
}
