//! Integer compares: formats A6, A7 and A8.

use super::{Field, Form, field, form, major};
use crate::encoding::completers::{CompareSource, CompareWidth, PredicateUpdate, Relation};
use crate::encoding::instruction::UnitClass::A;
use crate::encoding::operand::Operand::*;
use crate::encoding::operation::Operation;

const X2: Field = field(34, 2);
const TA: Field = field(33, 1);
const TB: Field = field(36, 1);
const C: Field = field(12, 1);

/// Per major opcode: the relation of the ordinary compare and the update of the parallel ones.
const OPCODES: [(u64, Relation, PredicateUpdate); 3] = [
    (0xc, Relation::Less, PredicateUpdate::And),
    (0xd, Relation::LessUnsigned, PredicateUpdate::Or),
    (0xe, Relation::Equal, PredicateUpdate::OrAndComplement),
];

/// The relations of a parallel compare against zero, by ta and c.
const AGAINST_ZERO: [(u64, u64, Relation); 4] = [
    (0, 0, Relation::Greater),
    (0, 1, Relation::LessOrEqual),
    (1, 0, Relation::GreaterOrEqual),
    (1, 1, Relation::Less),
];

/// The widths, by the low bit of x2.
const WIDTHS: [(u64, &str, CompareWidth); 2] =
    [(0, "cmp", CompareWidth::DoubleWord), (1, "cmp4", CompareWidth::Word)];

fn relation_suffix(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => ".eq",
        Relation::NotEqual => ".ne",
        Relation::Less => ".lt",
        Relation::LessOrEqual => ".le",
        Relation::Greater => ".gt",
        Relation::GreaterOrEqual => ".ge",
        Relation::LessUnsigned => ".ltu",
    }
}

/// The suffix of a compare's or test's update.
pub(super) fn update_suffix(update: PredicateUpdate) -> &'static str {
    match update {
        PredicateUpdate::Normal => "",
        PredicateUpdate::Unconditional => ".unc",
        PredicateUpdate::And => ".and",
        PredicateUpdate::Or => ".or",
        PredicateUpdate::OrAndComplement => ".or.andcm",
    }
}

pub(super) fn rows(forms: &mut Vec<Form>) {
    for (opcode, ordinary, parallel) in OPCODES {
        for (x2, mnemonic, width) in WIDTHS {
            let name = |relation, update| format!("{mnemonic}{}{}", relation_suffix(relation), update_suffix(update));
            let compare = |relation, update, first| Operation::Compare { relation, width, update, first };
            let kinds = [
                (0, 0, ordinary, PredicateUpdate::Normal),
                (0, 1, ordinary, PredicateUpdate::Unconditional),
                (1, 0, Relation::Equal, parallel),
                (1, 1, Relation::NotEqual, parallel),
            ];
            for (ta, c, relation, update) in kinds {
                let register = major(opcode).set(X2, x2).set(TB, 0).set(TA, ta).set(C, c);
                let immediate = major(opcode).set(X2, x2 + 2).set(TA, ta).set(C, c);
                let of = |first| compare(relation, update, first);
                let name = name(relation, update);
                forms.extend([
                    form((A, "A6"), &name, register, 2, &[P1, P2, R2, R3], of(CompareSource::Register)),
                    form((A, "A8"), &name, immediate, 2, &[P1, P2, Imm8, R3], of(CompareSource::Immediate)),
                ]);
            }
            for (ta, c, relation) in AGAINST_ZERO {
                let zero = major(opcode).set(X2, x2).set(TB, 1).set(TA, ta).set(C, c);
                let operation = compare(relation, parallel, CompareSource::Zero);
                let name = name(relation, parallel);
                forms.push(form((A, "A7"), name, zero, 2, &[P1, P2, Gr0, R3], operation));
            }
        }
    }
}
