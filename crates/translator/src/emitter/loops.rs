//! The loop branches that rotate registers, in line where the frame's rotating part is as large as it was when the
//! block was executed last before it was translated.
//!
//! The processor keeps general registers and predicates as the rotation shows them. So a rotation of few registers is
//! stores of values that are mostly at hand, and variables that are named anew; in a tight loop they are in a
//! [buffer](super::rotation). Floating-point registers stand unrotated: for them, only the rename base changes.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, I8, I32, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};
use sidestep_ia64::encoding::{BranchKind, Instruction};
use sidestep_ia64::registers::application::{EC, LC};
use sidestep_ia64::registers::frame::FIRST_STACKED;

use super::rotation::{rename_bases, rotating_slots};
use super::{Double, Emitter, Predicates, floats};
use crate::slots::{Slot, Slots};
use crate::tight_loops::Rotation;

/// Rotating general registers up to which a rotation is in line.
const IN_LINE_MAX: u8 = 48;
const LAST_PREDICATE: i64 = 63;

impl Emitter<'_, '_> {
    /// `br.ctop`, `br.cexit`, `br.wtop` and `br.wexit` to what is so many bytes behind the node's first bundle.
    pub fn branch_rotating(&mut self, instruction: &Instruction, kind: BranchKind, offset: i64) {
        let (is_counted, is_top) = match kind {
            BranchKind::CountedTop => (true, true),
            BranchKind::CountedExit => (true, false),
            BranchKind::WhileExit => (false, false),
            _ => (false, true),
        };
        let rotation = self.known.buffered;
        let rotation = rotation.or_else(|| self.tight_loop()?.rotation);
        if let Some(rotation) = rotation.or_else(|| self.begins_rotating(offset)) {
            return self.branch_buffered(instruction, (is_counted, is_top), offset, rotation);
        }
        let epilogue = self.get(Slot::application(EC));
        // Whether another iteration begins.
        let begins = match is_counted {
            true => {
                let count = self.get(Slot::application(LC));
                let begins = self.is_set(count);
                let one = self.ins().uextend(I64, begins);
                let left = self.ins().isub(count, one);
                self.set(Slot::application(LC), left);
                begins
            }
            false => match self.predicate(instruction.predicate()) {
                Some(predicate) => self.ins().icmp_imm_u(IntCC::NotEqual, predicate, 0),
                None => self.ins().iconst(I8, 1),
            },
        };
        let ends = self.ins().icmp_imm_u(IntCC::Equal, begins, 0);
        let is_drained = self.ins().icmp_imm_u(IntCC::Equal, epilogue, 0);
        let is_draining = self.ins().band_not(ends, is_drained);
        let is_draining = self.ins().uextend(I64, is_draining);
        let left = self.ins().isub(epilogue, is_draining);
        self.set(Slot::application(EC), left);
        let is_first = self.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, epilogue, 1);
        let goes_on = self.ins().bor(begins, is_first);
        let is_taken = match is_top {
            true => goes_on,
            false => self.not(goes_on),
        };

        let word = self.predicate_word();
        let word = self.ins().band_imm_s(word, i64::MAX);
        let word = match is_counted {
            true => {
                let begun = self.ins().uextend(I64, begins);
                let begun = self.ins().ishl_imm_u(begun, LAST_PREDICATE);
                self.ins().bor(word, begun)
            }
            false => word,
        };
        self.known.predicates = Predicates::default();
        self.set(Slot::PREDICATES, word);
        let is_still = self.ins().band(ends, is_drained);
        self.rotate(is_still, (is_taken, offset));
        self.branch_near(Some(is_taken), offset, |emitter| emitter.go_to(offset, 0));
    }

    /// What rotates in a tight loop that begins so many bytes behind the node's first bundle, if the node rotates as
    /// much: where it is not in the loop, it is the first iteration, with what is before it.
    fn begins_rotating(&self, offset: i64) -> Option<Rotation> {
        let next = self.region.node_at(self.node, offset, 0)?;
        let rotation = self.region.tight_loop(next)?.rotation?;
        let is_alike = rotation.size == self.region.nodes[self.node].rotating();
        Some(rotation).filter(|_| is_alike && !self.leaves && !self.region.has_one_way_in[next])
    }

    /// Rotates all registers unless everything `is_still`. The predicates are in their word. Where a NaT comes to light
    /// the function is left: for a place so many bytes behind the node's first bundle where the branch `is_taken`.
    fn rotate(&mut self, is_still: Value, (is_taken, offset): (Value, i64)) {
        let rotating = self.region.nodes[self.node].rotating();
        let rare = self.is_rotation_rare(is_still, rotating);
        let [aside, call, back] = [(); 3].map(|()| self.builder.create_block());
        let join = self.begin_in_line(Some(rare), aside);
        let before = self.known.clone();
        if rotating <= IN_LINE_MAX {
            self.rotate_in_line(rotating);
            self.known.floats.rotate();
        } else {
            // Nobody comes here.
            self.known.floats.forget_rotating();
        }
        let doubles = self.known.floats.doubles();
        let doubles: Vec<(u8, Double)> = doubles
            .filter(|&(register, _)| floats::rotates(register))
            .collect();
        let merged = doubles.iter().map(|_| self.builder.append_block_param(join, F64));
        let merged: Vec<Value> = merged.collect();
        let values = doubles.iter().map(|(_, double)| double.value.into());
        let values: Vec<BlockArg> = values.collect();
        self.ins().jump(join, &values);

        let after = self.begin_aside(aside, before);
        self.ins().brif(is_still, back, &[], call, &[]);
        self.begin(call);
        let rotate = self.entry.rotate;
        self.call_aside(rotate);
        self.ins().jump(back, &[]);
        self.begin(back);
        let renamed: Slots = (FIRST_STACKED..128).map(Slot::general).collect();
        let renamed = renamed.union([Slot::PREDICATES].into_iter().collect());
        self.known.held = self.known.held.without(renamed);
        self.known.floats.forget_rotating();
        self.leave_if_nat_arrives(|emitter| {
            emitter.complete_block();
            emitter.branch(Some(is_taken), |emitter| emitter.exit_to(offset, 0));
            emitter.exit_behind();
        });
        for slot in after.held.intersection(renamed).iter() {
            self.get(slot);
        }
        // Whoever reads one of them goes to the interpreter's function.
        let values = doubles.iter().map(|_| self.no_double().into());
        let values: Vec<BlockArg> = values.collect();
        self.ins().jump(join, &values);
        self.join(join, after);
        for ((register, double), value) in doubles.into_iter().zip(merged) {
            self.known.floats.note(register, Some(Double { value, ..double }));
        }
    }

    /// A value that is not zero where a rotation is not to be in line: nothing rotates, another number of general
    /// registers does, or one of them has its NaT bit set.
    fn is_rotation_rare(&mut self, is_still: Value, rotating: u8) -> Value {
        if rotating > IN_LINE_MAX {
            return self.ins().iconst(I8, 1);
        }
        let is_unusual = self.is_rotation_unusual(rotating);
        self.ins().bor(is_still, is_unusual)
    }

    /// Rotates the predicates, so many general registers, and the rename bases.
    fn rotate_in_line(&mut self, rotating: u8) {
        for (place, size) in rename_bases(rotating) {
            let base = self.load_state(I32, place);
            let base = self.lower_rename_base(base, (I32, size), 0);
            self.store_state(base, place);
        }

        let word = self.get(Slot::PREDICATES);
        let last = self.ins().ushr_imm_u(word, LAST_PREDICATE);
        self.rotate_predicates(word, last);

        let slots: Vec<Slot> = rotating_slots(rotating).collect();
        let Some(&last) = slots.last() else { return };
        // From the last one down, so that memory has what is still to be moved. What is in no variable comes into none.
        let moves = [(last, slots[0])].into_iter();
        let moves = moves.chain(slots.windows(2).rev().map(|pair| (pair[0], pair[1])));
        let moved: Vec<(Slot, Value, bool)> = moves
            .map(|(from, to)| {
                let is_held = self.known.held.contains(from);
                let value = match is_held {
                    true => self.get(from),
                    false => self.load_slot(from),
                };
                if to != slots[0] {
                    self.store_slot(value, to);
                }
                (to, value, is_held)
            })
            .collect();
        self.store_slot(moved[0].1, slots[0]);
        for (to, value, is_held) in moved {
            self.known.held.remove(to);
            if is_held {
                let variable = self.variable(to);
                self.builder.def_var(variable, value);
                self.known.held.insert(to);
            }
        }
    }
}
