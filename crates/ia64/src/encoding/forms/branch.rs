//! The B unit: formats B1 to B9.

use super::{Bits, Field, Form, field, form, major};
use crate::encoding::completers::{BranchKind, Target};
use crate::encoding::form::{Condition, Hint};
use crate::encoding::instruction::UnitClass::B;
use crate::encoding::operand::Operand::*;
use crate::encoding::operation::Operation;

/// The branch type, of B1, B2 and B4.
pub(super) const TYPE: Field = field(6, 3);
const X6: Field = field(27, 6);

/// Hints of branches: whether taken, how much to prefetch, what to do with the branch cache.
pub(super) const BRANCH_HINTS: &[Hint] = &[
    Hint { fields: &[field(33, 2)], suffixes: &[Some("sptk"), Some("spnt"), Some("dptk"), Some("dpnt")] },
    PREFETCH,
    DEALLOCATE,
];
/// The same for indirect calls, whose first hint is three bits wide.
const INDIRECT_CALL_HINTS: &[Hint] = &[
    Hint {
        fields: &[field(32, 3)],
        suffixes: &[None, Some("sptk"), None, Some("spnt"), None, Some("dptk"), None, Some("dpnt")],
    },
    PREFETCH,
    DEALLOCATE,
];
const PREFETCH: Hint = Hint { fields: &[field(12, 1)], suffixes: &[Some("few"), Some("many")] };
const DEALLOCATE: Hint = Hint { fields: &[field(35, 1)], suffixes: &[Some(""), Some("clr")] };

/// The hints of `brp`: whether taken, importance.
const PREDICT_HINTS: &[Hint] = &[
    Hint { fields: &[field(3, 2)], suffixes: &[Some("sptk"), Some("loop"), Some("dptk"), Some("exit")] },
    IMPORTANCE,
];
const PREDICT_INDIRECT_HINTS: &[Hint] =
    &[Hint { fields: &[field(3, 2)], suffixes: &[Some("sptk"), None, Some("dptk"), None] }, IMPORTANCE];
const IMPORTANCE: Hint = Hint { fields: &[field(35, 1)], suffixes: &[Some(""), Some("imp")] };

/// Fixed bits on top of a conditional branch's under which it is written `br` without its first hint:
/// statically taken, predicate 0.
pub(super) fn always(bits: Bits) -> Bits {
    bits.set(field(0, 6), 0).set(field(33, 2), 0)
}

pub(super) fn rows(forms: &mut Vec<Form>) {
    relative(forms);
    indirect(forms);
    predictions(forms);
    miscellany(forms);
}

/// Formats B1, B2 and B3.
fn relative(forms: &mut Vec<Form>) {
    /// Type, mnemonic, kind, whether the qualifying predicate has its meaning.
    const KINDS: [(u64, &str, BranchKind, bool); 6] = [
        (0, "br.cond", BranchKind::Conditional, true),
        (2, "br.wexit", BranchKind::WhileExit, true),
        (3, "br.wtop", BranchKind::WhileTop, true),
        (5, "br.cloop", BranchKind::CountedLoop, false),
        (6, "br.cexit", BranchKind::CountedExit, false),
        (7, "br.ctop", BranchKind::CountedTop, false),
    ];
    for (branch_type, name, kind, predicated) in KINDS {
        let format = if predicated { "B1" } else { "B2" };
        let bits = major(4).set(TYPE, branch_type);
        let operation = Operation::Branch { kind, target: Target::Relative };
        let mut row = form((B, format), name, bits, 0, &[Target25c], operation).hints(BRANCH_HINTS);
        if kind == BranchKind::Conditional {
            row = row.alias("br", always(bits), Condition::None, 0, &[Target25c]).without_first_hint();
        }
        forms.push(if predicated { row } else { row.unpredicated() });
    }
    let call = Operation::Call { target: Target::Relative };
    forms.push(form((B, "B3"), "br.call", major(5), 1, &[B1, Target25c], call).hints(BRANCH_HINTS));
}

/// Formats B4 and B5.
fn indirect(forms: &mut Vec<Form>) {
    let bits = |x6, branch_type| major(0).set(X6, x6).set(TYPE, branch_type);
    let conditional = bits(0x20, 0);
    let branch = Operation::Branch { kind: BranchKind::Conditional, target: Target::Indirect };
    let call = Operation::Call { target: Target::Indirect };
    forms.extend([
        form((B, "B4"), "br.cond", conditional, 0, &[B2], branch)
            .hints(BRANCH_HINTS)
            .alias("br", always(conditional), Condition::None, 0, &[B2])
            .without_first_hint(),
        form((B, "B4"), "br.ia", bits(0x20, 1), 0, &[B2], Operation::BranchIa32).hints(BRANCH_HINTS),
        form((B, "B4"), "br.ret", bits(0x21, 4), 0, &[B2], Operation::Return).hints(BRANCH_HINTS),
        form((B, "B5"), "br.call", major(1), 1, &[B1, B2], call).hints(INDIRECT_CALL_HINTS),
    ]);
}

/// Formats B6 and B7.
fn predictions(forms: &mut Vec<Form>) {
    let indirect = |return_| Operation::BranchPredictIndirect { return_ };
    let by_x6 = |x6| major(2).set(X6, x6);
    let (predict, tagged) = (Operation::BranchPredict, &[B2, Tag13]);
    forms.extend([
        form((B, "B6"), "brp", major(7), 0, &[Target25c, Tag13], predict).hints(PREDICT_HINTS).unpredicated(),
        form((B, "B7"), "brp", by_x6(0x10), 0, tagged, indirect(false)).hints(PREDICT_INDIRECT_HINTS).unpredicated(),
        form((B, "B7"), "brp.ret", by_x6(0x11), 0, tagged, indirect(true))
            .hints(PREDICT_INDIRECT_HINTS)
            .unpredicated(),
    ]);
}

/// Formats B8 and B9.
fn miscellany(forms: &mut Vec<Form>) {
    let clear = |predicates_only| Operation::ClearRegisterRename { predicates_only };
    let bank = |bank| Operation::BankSwitch { bank };
    let virtual_machine = |enter| Operation::VirtualMachineSwitch { enter };
    let unpredicated = [
        (0x02, "cover", Operation::Cover),
        (0x04, "clrrrb", clear(false)),
        (0x05, "clrrrb.pr", clear(true)),
        (0x08, "rfi", Operation::ReturnFromInterruption),
        (0x0c, "bsw.0", bank(0)),
        (0x0d, "bsw.1", bank(1)),
        (0x10, "epc", Operation::EnterPrivilegedCode),
        (0x18, "vmsw.0", virtual_machine(false)),
        (0x19, "vmsw.1", virtual_machine(true)),
    ];
    for (x6, name, operation) in unpredicated {
        forms.push(form((B, "B8"), name, major(0).set(X6, x6), 0, &[], operation).unpredicated());
    }
    forms.extend([
        form((B, "B9"), "break.b", major(0).set(X6, 0x00), 0, &[Immu21], Operation::Break),
        form((B, "B9"), "nop.b", major(2).set(X6, 0x00), 0, &[Immu21], Operation::Nop),
        form((B, "B9"), "hint.b", major(2).set(X6, 0x01), 0, &[Immu21], Operation::Hint),
    ]);
    // Opcodes kept for prediction: what is not known here is ignored.
    for bits in [major(0).set(X6, 0x01), major(2), major(3), major(6)] {
        forms.push(form((B, "B9"), "ignored.b", bits, 0, &[], Operation::Nop).unspelt());
    }
}
