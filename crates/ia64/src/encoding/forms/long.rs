//! Long instructions of the L and X slots: formats X1 to X5.

use super::branch::{BRANCH_HINTS, TYPE, always};
use super::{Bits, Field, Form, field, form, major};
use crate::encoding::completers::{BranchKind, Target};
use crate::encoding::form::Condition;
use crate::encoding::instruction::UnitClass::LX;
use crate::encoding::operand::Operand::*;
use crate::encoding::operation::Operation;

const X3: Field = field(33, 3);
const X6: Field = field(27, 6);
const Y: Field = field(26, 1);
const VC: Field = field(20, 1);

pub(super) fn rows(forms: &mut Vec<Form>) {
    let by_x6 = |x6: u64| -> Bits { major(0).set(X3, 0).set(X6, x6) };
    let branch = Operation::Branch { kind: BranchKind::Conditional, target: Target::Long };
    let conditional = major(0xc).set(TYPE, 0);
    let call = Operation::Call { target: Target::Long };
    forms.extend([
        form((LX, "X1"), "break.x", by_x6(0x00), 0, &[Immu62], Operation::Break),
        form((LX, "X2"), "movl", major(6).set(VC, 0), 1, &[R1, Immu64], Operation::MoveLong),
        form((LX, "X3"), "brl.cond", conditional, 0, &[Target64], branch)
            .hints(BRANCH_HINTS)
            .alias("brl", always(conditional), Condition::None, 0, &[Target64])
            .without_first_hint(),
        form((LX, "X4"), "brl.call", major(0xd), 1, &[B1, Target64], call).hints(BRANCH_HINTS),
        form((LX, "X5"), "nop.x", by_x6(0x01).set(Y, 0), 0, &[Immu62], Operation::Nop),
        form((LX, "X5"), "hint.x", by_x6(0x01).set(Y, 1), 0, &[Immu62], Operation::Hint),
    ]);
}
