//! Integer arithmetic and logic: formats A1 to A5.

use super::{Field, Form, field, form, major};
use crate::encoding::completers::{Logical, Source};
use crate::encoding::form::Condition;
use crate::encoding::instruction::UnitClass::A;
use crate::encoding::operand::Operand::*;
use crate::encoding::operation::Operation;

const X2A: Field = field(34, 2);
const VE: Field = field(33, 1);
const X4: Field = field(29, 4);
const X2B: Field = field(27, 2);

/// The bitwise functions by their x2b.
const LOGICAL: [(&str, Logical); 4] =
    [("and", Logical::And), ("andcm", Logical::AndComplement), ("or", Logical::Or), ("xor", Logical::ExclusiveOr)];

pub(super) fn rows(forms: &mut Vec<Form>) {
    let alu = |x4| major(8).set(X2A, 0).set(VE, 0).set(X4, x4);
    let (a1, a2, a3, a4, a5) = ((A, "A1"), (A, "A2"), (A, "A3"), (A, "A4"), (A, "A5"));
    let add = |carry| Operation::Add { carry };
    let subtract = |borrow| Operation::Subtract { borrow };
    let add_pointer = |first| Operation::AddPointer { first };
    forms.extend([
        form(a1, "add", alu(0).set(X2B, 0), 1, &[R1, R2, R3], add(false)),
        form(a1, "add", alu(0).set(X2B, 1), 1, &[R1, R2, R3, One], add(true)),
        form(a1, "sub", alu(1).set(X2B, 1), 1, &[R1, R2, R3], subtract(false)),
        form(a1, "sub", alu(1).set(X2B, 0), 1, &[R1, R2, R3, One], subtract(true)),
        form(a1, "addp4", alu(2).set(X2B, 0), 1, &[R1, R2, R3], add_pointer(Source::Register)),
        form(a2, "shladd", alu(4), 1, &[R1, R2, Count2a, R3], Operation::ShiftLeftAdd),
        form(a2, "shladdp4", alu(6), 1, &[R1, R2, Count2a, R3], Operation::ShiftLeftAddPointer),
        form(a3, "sub", alu(9).set(X2B, 1), 1, &[R1, Imm8, R3], Operation::SubtractFromImmediate),
    ]);
    for (x2b, (mnemonic, function)) in LOGICAL.into_iter().enumerate() {
        let logical = |first| Operation::Logical { function, first };
        let bits = |x4| alu(x4).set(X2B, x2b as u64);
        forms.extend([
            form(a1, mnemonic, bits(3), 1, &[R1, R2, R3], logical(Source::Register)),
            form(a3, mnemonic, bits(0xb), 1, &[R1, Imm8, R3], logical(Source::Immediate)),
        ]);
    }

    let short = |x2a| major(8).set(X2A, x2a).set(VE, 0);
    let zero_immediate = short(2).set(field(13, 7), 0).set(field(27, 6), 0).set(field(36, 1), 0);
    let long = major(9);
    forms.extend([
        form(a4, "adds", short(2), 1, &[R1, Imm14, R3], Operation::AddImmediate).alias(
            "mov",
            zero_immediate,
            Condition::None,
            1,
            &[R1, R3],
        ),
        form(a4, "addp4", short(3), 1, &[R1, Imm14, R3], add_pointer(Source::Immediate)),
        form(a5, "addl", long, 1, &[R1, Imm22, R3Short], Operation::AddLongImmediate).alias(
            "mov",
            long.set(field(20, 2), 0),
            Condition::None,
            1,
            &[R1, Imm22],
        ),
    ]);
}
