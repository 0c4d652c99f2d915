//! Bit fields, bit tests and the I unit's miscellany: formats I10 to I30.

use super::compare::update_suffix;
use super::{Bits, Field, Form, field, form, major};
use crate::encoding::completers::{BitRelation, Half, PredicateUpdate, Signedness, Size, Source};
use crate::encoding::form::{Condition, Hint};
use crate::encoding::instruction::UnitClass::I;
use crate::encoding::operand::Operand::*;
use crate::encoding::operation::Operation;

pub(super) fn rows(forms: &mut Vec<Form>) {
    bit_fields(forms);
    bit_tests(forms);
    moves(forms);
    miscellany(forms);
}

/// Formats I10 to I15.
fn bit_fields(forms: &mut Vec<Form>) {
    const X2: Field = field(34, 2);
    const X: Field = field(33, 1);
    /// y of I11, bit 13.
    const YA: Field = field(13, 1);
    /// y of I12 and I13, bit 26.
    const YB: Field = field(26, 1);
    let bits = |x2, x| major(5).set(X2, x2).set(X, x);
    let extract = |signedness| Operation::Extract { signedness };
    let (register, immediate) = (Source::Register, Source::Immediate);
    let shift_pair = Operation::ShiftRightPair;
    let unsigned = bits(1, 0).set(YA, 0);
    let signed = bits(1, 0).set(YA, 1);
    let zero = bits(1, 1).set(YB, 0);
    let zero_immediate = bits(1, 1).set(YB, 1);
    let extract_operands = &[R1, R3, Position6, Length6];
    let to_the_end = Condition::ToTheEnd;
    let deposit = |value| Operation::Deposit { value };
    let deposit_zero = |value| Operation::DepositZero { value };
    forms.extend([
        form((I, "I10"), "shrp", bits(3, 0), 1, &[R1, R2, R3, Count6], shift_pair),
        form((I, "I11"), "extr.u", unsigned, 1, extract_operands, extract(Signedness::Unsigned)).alias(
            "shr.u",
            unsigned,
            to_the_end,
            1,
            &[R1, R3, Position6],
        ),
        form((I, "I11"), "extr", signed, 1, extract_operands, extract(Signedness::Signed)).alias(
            "shr",
            signed,
            to_the_end,
            1,
            &[R1, R3, Position6],
        ),
        form((I, "I12"), "dep.z", zero, 1, &[R1, R2, Cposition6a, Length6], deposit_zero(register)).alias(
            "shl",
            zero,
            to_the_end,
            1,
            &[R1, R2, Cposition6a],
        ),
        form((I, "I13"), "dep.z", zero_immediate, 1, &[R1, Imm8, Cposition6a, Length6], deposit_zero(immediate)),
        form((I, "I14"), "dep", bits(3, 1), 1, &[R1, Imm1, R3, Cposition6b, Length6], deposit(immediate)),
        form((I, "I15"), "dep", major(4), 1, &[R1, R2, R3, Cposition6c, Length4], deposit(register)),
    ]);
}

/// Formats I16, I17 and I30.
fn bit_tests(forms: &mut Vec<Form>) {
    const X2: Field = field(34, 2);
    const TA: Field = field(33, 1);
    const TB: Field = field(36, 1);
    const C: Field = field(12, 1);
    const Y: Field = field(13, 1);
    const X: Field = field(19, 1);
    /// tb, ta, c, what is tested for, how the targets are written.
    const KINDS: [(u64, u64, u64, BitRelation, PredicateUpdate); 8] = [
        (0, 0, 0, BitRelation::Zero, PredicateUpdate::Normal),
        (0, 0, 1, BitRelation::Zero, PredicateUpdate::Unconditional),
        (1, 0, 0, BitRelation::Zero, PredicateUpdate::And),
        (1, 0, 1, BitRelation::NotZero, PredicateUpdate::And),
        (0, 1, 0, BitRelation::Zero, PredicateUpdate::Or),
        (0, 1, 1, BitRelation::NotZero, PredicateUpdate::Or),
        (1, 1, 0, BitRelation::Zero, PredicateUpdate::OrAndComplement),
        (1, 1, 1, BitRelation::NotZero, PredicateUpdate::OrAndComplement),
    ];
    for (tb, ta, c, relation, update) in KINDS {
        let relation_suffix = match relation {
            BitRelation::Zero => ".z",
            BitRelation::NotZero => ".nz",
        };
        let name = |base| format!("{base}{relation_suffix}{}", update_suffix(update));
        let bits = major(5).set(X2, 0).set(TA, ta).set(TB, tb).set(C, c);
        let bit = Operation::TestBit { relation, update };
        let nat = Operation::TestNat { relation, update };
        let feature = Operation::TestFeature { relation, update };
        let miscellaneous = bits.set(Y, 1);
        forms.extend([
            form((I, "I16"), name("tbit"), bits.set(Y, 0), 2, &[P1, P2, R3, Position6], bit),
            form((I, "I17"), name("tnat"), miscellaneous.set(X, 0), 2, &[P1, P2, R3], nat),
            form((I, "I30"), name("tf"), miscellaneous.set(X, 1), 2, &[P1, P2, Immu5], feature),
        ]);
    }
}

const X3: Field = field(33, 3);
const X6: Field = field(27, 6);

/// The fixed bits of the formats with x3 = 0.
fn by_x6(x6: u64) -> Bits {
    major(0).set(X3, 0).set(X6, x6)
}

/// Formats I21 to I28.
fn moves(forms: &mut Vec<Form>) {
    /// The branch-prediction hints of `mov b1 = r2`: return, whether, importance.
    const BRANCH_HINTS: &[Hint] = &[
        Hint { fields: &[field(22, 1)], suffixes: &[Some(""), Some("ret")] },
        Hint { fields: &[field(20, 2)], suffixes: &[Some("sptk"), Some(""), Some("dptk"), None] },
        Hint { fields: &[field(23, 1)], suffixes: &[Some(""), Some("imp")] },
    ];
    let to_application = |value| Operation::MoveToApplication { value };
    let to_branch = major(0).set(X3, 7);
    let to_predicates = major(0).set(X3, 3);
    // Without hints the tag is left out too, whatever it is.
    let no_hints = to_branch.set(field(20, 4), 1);
    forms.extend([
        form((I, "I21"), "mov", to_branch, 1, &[B1, R2, Tag13b], Operation::MoveToBranch).hints(BRANCH_HINTS).alias(
            "mov",
            no_hints,
            Condition::None,
            1,
            &[B1, R2],
        ),
        form((I, "I22"), "mov", by_x6(0x31), 1, &[R1, B2], Operation::MoveFromBranch),
        form((I, "I23"), "mov", to_predicates, 1, &[Pr, R2, Imm17], Operation::MoveToPredicates),
        form((I, "I24"), "mov", major(0).set(X3, 2), 1, &[PrRot, Imm44], Operation::MoveToRotatingPredicates),
        form((I, "I25"), "mov", by_x6(0x30), 1, &[R1, Ip], Operation::MoveFromIp),
        form((I, "I25"), "mov", by_x6(0x33), 1, &[R1, Pr], Operation::MoveFromPredicates),
        form((I, "I26"), "mov.i", by_x6(0x2a), 1, &[Ar3, R2], to_application(Source::Register)),
        form((I, "I27"), "mov.i", by_x6(0x0a), 1, &[Ar3, Imm8], to_application(Source::Immediate)),
        form((I, "I28"), "mov.i", by_x6(0x32), 1, &[R1, Ar3], Operation::MoveFromApplication),
    ]);
}

/// Formats I18, I19, I20 and I29.
fn miscellany(forms: &mut Vec<Form>) {
    const Y: Field = field(26, 1);
    forms.extend([
        form((I, "I19"), "break.i", by_x6(0x00), 0, &[Immu21], Operation::Break),
        form((I, "I18"), "nop.i", by_x6(0x01).set(Y, 0), 0, &[Immu21], Operation::Nop),
        form((I, "I18"), "hint.i", by_x6(0x01).set(Y, 1), 0, &[Immu21], Operation::Hint),
        form((I, "I20"), "chk.s.i", major(0).set(X3, 1), 0, &[R2, Target25b], Operation::CheckSpeculative),
    ]);
    for (index, size) in [Size::One, Size::Two, Size::Four].into_iter().enumerate() {
        let bytes = size.bytes();
        let bits = |x6| by_x6(x6 + index as u64);
        let operands = &[R1, R3];
        forms.extend([
            form((I, "I29"), format!("zxt{bytes}"), bits(0x10), 1, operands, Operation::ZeroExtend { size }),
            form((I, "I29"), format!("sxt{bytes}"), bits(0x14), 1, operands, Operation::SignExtend { size }),
        ]);
    }
    for (size, x6) in [(Size::One, 0x18), (Size::Two, 0x19)] {
        let bytes = size.bytes();
        let compute = |half| Operation::ComputeZeroIndex { size, half };
        forms.extend([
            form((I, "I29"), format!("czx{bytes}.l"), by_x6(x6), 1, &[R1, R3], compute(Half::Left)),
            form((I, "I29"), format!("czx{bytes}.r"), by_x6(x6 + 4), 1, &[R1, R3], compute(Half::Right)),
        ]);
    }
}
