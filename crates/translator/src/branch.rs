//! Branches that need no function of the interpreter: conditional ones, and those of loops.

use cranelift_codegen::ir::InstBuilder;
use sidestep_ia64::encoding::{BranchKind, Instruction, Target};
use sidestep_ia64::registers::application::LC;

use crate::emitter::Emitter;
use crate::slots::Slot;

pub fn branch(emitter: &mut Emitter, instruction: &Instruction, kind: BranchKind, target: Target) {
    let offset = emitter.bundle_offset().wrapping_add(instruction.immediate);
    match (kind, target) {
        (BranchKind::Conditional, Target::Relative | Target::Long) => {
            let condition = emitter.predicate(instruction.predicate());
            emitter.branch_near(condition, offset, |emitter| emitter.go_to(offset, 0));
        }
        (BranchKind::Conditional, Target::Indirect) => {
            let condition = emitter.predicate(instruction.predicate());
            let target = emitter.get(Slot::branch(instruction.b2()));
            let target = emitter.ins().band_imm_s(target, -16);
            emitter.branch(condition, |emitter| emitter.branch_to(target));
        }
        (BranchKind::CountedLoop, _) => {
            let count = emitter.get(Slot::application(LC));
            let goes_on = emitter.is_set(count);
            emitter.branch_near(Some(goes_on), offset, |emitter| {
                let left = emitter.ins().iadd_imm_s(count, -1);
                emitter.set(Slot::application(LC), left);
                emitter.go_to(offset, 0);
            });
        }
        (
            BranchKind::CountedTop | BranchKind::CountedExit | BranchKind::WhileTop | BranchKind::WhileExit,
            _,
        ) => emitter.branch_rotating(instruction, kind, offset),
    }
}
