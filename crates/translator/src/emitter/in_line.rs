//! Instructions whose common case is in line: where something is rare the interpreter's function executes them, in a
//! block that stands apart, and both ways come together behind.

use std::mem::replace;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, I8, I64};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Type, Value};
use sidestep_ia64::encoding::Instruction;
use sidestep_ia64::registers::application::FPSR;

use super::control::may_set_nat;
use super::{DELIVERED_FAULT, Double, Emitter, Known};
use crate::slots::{Slot, Slots};

impl Emitter<'_, '_> {
    /// Emits an instruction whose common case is in line: `common` where `rare` is zero or not given, the
    /// interpreter's function, in a block that rarely runs, where it is not. `common` may go there
    /// [`unless`](Emitter::unless) something is zero, as long as it has changed nothing. Both change no slots but those
    /// that the instruction writes, which the word of predicates is not one of.
    pub fn in_line(
        &mut self,
        instruction: &Instruction,
        rare: impl Into<Option<Value>>,
        common: impl FnOnce(&mut Self, Block),
    ) {
        let aside = self.builder.create_block();
        let join = self.begin_in_line(rare.into(), aside);
        let before = self.known.clone();
        common(self, aside);
        self.ins().jump(join, &[]);
        let after = self.begin_aside(aside, before);
        self.perform_aside(instruction);
        self.ins().jump(join, &[]);
        self.join(join, after);
    }

    /// Has the interpreter's function execute an instruction in a block that stands apart.
    pub fn perform_aside(&mut self, instruction: &Instruction) {
        let answer = self.call_aside(self.entry.perform);
        self.raise_if(answer);
        self.come_back(instruction);
    }

    /// Emits a load or store of what lies in windows as [`Emitter::in_line`] does, but that the block is left to the
    /// interpreter where `common` goes aside: that happens to hardly any.
    pub fn access(&mut self, instruction: &Instruction, common: impl FnOnce(&mut Self, Block)) {
        if !self.entry.has_windows {
            return self.in_line(instruction, None, common);
        }
        let aside = self.leave_later();
        common(self, aside);
        self.known.settled = Slots::default();
    }

    /// Emits a store of a number to windows as [`Emitter::access`] does, if the unit is made for usual numbers, and
    /// else as [`Emitter::in_line`].
    pub fn store_or_leave(&mut self, instruction: &Instruction, common: impl FnOnce(&mut Self, Block)) {
        if !self.entry.has_windows || !self.leaves_for_numbers() {
            return self.in_line(instruction, None, common);
        }
        let aside = self.leave_unusual_later();
        common(self, aside);
        self.known.settled = Slots::default();
    }

    /// Emits an instruction that loads a double from windows to `register`, which `common` answers. The block is left
    /// to the interpreter where that goes to one of two blocks: where the access is unusual, or the number.
    pub fn load_or_leave(
        &mut self,
        (register, is_single): (u8, bool),
        common: impl FnOnce(&mut Self, [Block; 2]) -> Value,
    ) {
        let asides = [self.leave_later(), self.leave_unusual_later()];
        let value = common(self, asides);
        self.note_delivered(register, Double { value, is_single });
        self.known.settled = Slots::default();
    }

    /// Emits an instruction that delivers a double to `register`, which `common` answers as in [`Emitter::deliver`],
    /// but that the block is left to the interpreter where `rare` is not zero, if it is given, or `common` goes aside:
    /// where FPSR is settled that happens to hardly any.
    pub fn deliver_or_leave(
        &mut self,
        (register, is_single): (u8, bool),
        rare: Option<Value>,
        common: impl FnOnce(&mut Self, Block) -> Value,
    ) {
        let aside = self.leave_unusual_later();
        if let Some(rare) = rare {
            self.unless(rare, aside);
        }
        let value = common(self, aside);
        self.note_delivered(register, Double { value, is_single });
    }

    /// Begins what is executed where `rare` is zero, and answers the block where it comes together with `aside`.
    pub(super) fn begin_in_line(&mut self, rare: Option<Value>, aside: Block) -> Block {
        let [in_line, join] = [(); 2].map(|()| self.builder.create_block());
        match rare {
            Some(rare) => self.ins().brif(rare, aside, &[], in_line, &[]),
            None => self.ins().jump(in_line, &[]),
        };
        self.begin(in_line);
        join
    }

    /// Begins what is executed aside, where `before` was known; answers what is known behind the other way.
    pub(super) fn begin_aside(&mut self, aside: Block, before: Known) -> Known {
        let after = replace(&mut self.known, before);
        self.known.is_rare = true;
        self.begin(aside);
        self.complete_registers();
        after
    }

    /// Goes on where both ways come together: `after` is known on the other one.
    pub(super) fn join(&mut self, join: Block, after: Known) {
        let aside = replace(&mut self.known, after);
        debug_assert_eq!(self.known.buffered, aside.buffered, "registers are in one place");
        self.known.predicates = aside.predicates;
        self.known.held = self.known.held.intersection(aside.held);
        self.known.late = self.known.late.union(aside.late);
        self.known.floats.meet(&aside.floats);
        self.known.windows.meet(&aside.windows);
        self.known.settled = Slots::default();
        self.known.is_noted &= aside.is_noted;
        self.begin(join);
    }

    /// Makes of what is known what holds once the interpreter's function has executed an instruction aside, with the
    /// instruction's targets at hand.
    fn come_back(&mut self, instruction: &Instruction) {
        self.load_rotating_again();
        let targets = Slots::written_by(instruction).without(self.known.settled);
        self.known.held = self.known.held.without(targets);
        self.known.late = self.known.late.without(Slots::written_by(instruction));
        self.known.before_settling = None;
        self.known.floats.perform(Some(instruction));
        // The interpreter's function raises flags in it.
        self.known.held.remove(Slot::application(FPSR));
        if may_set_nat(instruction) {
            let index = self.index + 1;
            self.leave_if_nat(index);
        }
        for slot in targets.iter() {
            self.get(slot);
        }
    }

    /// Values that `common` answers in line. Where `rare` is not zero, if it is given, and where `common` goes aside,
    /// `otherwise` answers them.
    pub fn merge<const COUNT: usize>(
        &mut self,
        kinds: [Type; COUNT],
        rare: Option<Value>,
        common: impl FnOnce(&mut Self, Block) -> [Value; COUNT],
        otherwise: impl FnOnce(&mut Self) -> [Value; COUNT],
    ) -> [Value; COUNT] {
        let aside = self.builder.create_block();
        let join = self.begin_in_line(rare, aside);
        let values = kinds.map(|kind| self.builder.append_block_param(join, kind));
        let before = self.known.clone();
        let results = common(self, aside).map(BlockArg::from);
        self.ins().jump(join, &results);
        let after = self.begin_aside(aside, before);
        let results = otherwise(self).map(BlockArg::from);
        self.ins().jump(join, &results);
        self.join(join, after);
        values
    }

    /// Emits an instruction that delivers a double to `register`: as [`Emitter::in_line`], with `common` answering it.
    /// It is one of single precision if `is_single` says so of the instruction. Where the interpreter's function has
    /// delivered something else the value is none. The register has been written in memory in any case.
    pub fn deliver(
        &mut self,
        instruction: &Instruction,
        (register, is_single): (u8, bool),
        rare: Option<Value>,
        common: impl FnOnce(&mut Self, Block) -> Value,
    ) {
        let common = |emitter: &mut Self, aside| [common(emitter, aside)];
        let [value] = self.merge([F64], rare, common, |emitter| {
            [emitter.deliver_aside(instruction, is_single)]
        });
        self.note_delivered(register, Double { value, is_single });
    }

    /// Has the interpreter's function execute an instruction that delivers a double, in a block that stands apart.
    /// Answers what it has delivered, or none.
    pub fn deliver_aside(&mut self, instruction: &Instruction, is_single: bool) -> Value {
        let answer = self.call_aside(match is_single {
            true => self.entry.perform_single,
            false => self.entry.perform_double,
        });
        let is_raised = self.ins().icmp_imm_s(IntCC::Equal, answer, DELIVERED_FAULT);
        self.raise_if(is_raised);
        self.come_back(instruction);
        self.ins().bitcast(F64, MemFlagsData::new(), answer)
    }

    /// Notes what an instruction has delivered to a register, which memory may lack if it may be late.
    pub fn note_delivered(&mut self, register: u8, double: Double) {
        self.known.floats.note(register, Some(double));
        if self.may_be_late(register) {
            self.known.floats.note_late(register, double.value);
        }
    }

    /// Emits an instruction that delivers an integer to a floating-point `register`: as [`Emitter::in_line`], with
    /// `common` answering its significand. Where the interpreter's function has executed it, `found` answers that, and
    /// whether the register holds something else: then the interpreter goes on.
    pub fn deliver_integer(
        &mut self,
        instruction: &Instruction,
        register: u8,
        rare: Option<Value>,
        found: impl FnOnce(&mut Self) -> (Value, Value),
        common: impl FnOnce(&mut Self, Block) -> Value,
    ) {
        let common = |emitter: &mut Self, aside| [common(emitter, aside)];
        let [value] = self.merge([I64], rare, common, |emitter| {
            emitter.perform_aside(instruction);
            let (result, is_other) = found(emitter);
            let index = emitter.index + 1;
            emitter.aside(is_other, |emitter| emitter.leave_over(index));
            [result]
        });
        self.known.floats.note_integer(register, value);
    }

    /// Writes the predicates of a comparison of numbers that is executed where `executed` is true, if it is given: its
    /// `result` and the opposite, or what the interpreter's function delivers where `rare` is true. An unconditional
    /// one clears both where it is not executed.
    pub fn compare_numbers(
        &mut self,
        instruction: &Instruction,
        unconditional: bool,
        (executed, rare): (Option<Value>, Option<Value>),
        result: impl FnOnce(&mut Self) -> Value,
    ) {
        let targets = [instruction.p1(), instruction.p2()];
        if let (None, None) = (executed, rare) {
            let result = result(self);
            return self.set_complementary(targets[0], targets[1], result);
        }
        let (kept, executed) = match unconditional {
            true => (executed, None),
            false => (None, executed),
        };
        let only_kept = |emitter: &mut Self, value| match kept {
            Some(kept) => emitter.ins().band(kept, value),
            None => value,
        };
        let rare = rare.map(|rare| only_kept(self, rare));
        let join = self.builder.create_block();
        let written = [(); 2].map(|()| self.builder.append_block_param(join, I8));
        if let Some(executed) = executed {
            let old = targets.map(|target| {
                let predicate = self.predicate(target);
                predicate.unwrap_or_else(|| self.ins().iconst(I8, 1)).into()
            });
            let then = self.builder.create_block();
            self.ins().brif(executed, then, &[], join, &old);
            self.begin(then);
        }
        let aside = rare.map(|rare| {
            let aside = self.builder.create_block();
            self.unless(rare, aside);
            aside
        });
        let result = result(self);
        let opposite = self.not(result);
        let results = [result, opposite].map(|value| only_kept(self, value).into());
        self.ins().jump(join, &results);
        if let Some(aside) = aside {
            let before = self.known.clone();
            self.known.is_rare = true;
            self.begin(aside);
            self.complete_registers();
            let answer = self.call_aside(self.entry.perform);
            self.raise_if(answer);
            self.load_rotating_again();
            let delivered = targets.map(|target| self.delivered_predicate(target).into());
            self.ins().jump(join, &delivered);
            self.known = before;
        }
        self.begin(join);
        for (target, value) in targets.into_iter().zip(written) {
            self.set_predicate(target, value);
        }
        // The interpreter's function raises flags in it.
        self.known.held.remove(Slot::application(FPSR));
    }

    /// Emits an instruction that writes `predicate`, and otherwise as [`Emitter::in_line`]: true in the common case.
    pub fn in_line_with_predicate(
        &mut self,
        instruction: &Instruction,
        predicate: u8,
        rare: Value,
        common: impl FnOnce(&mut Self),
    ) {
        let aside = self.builder.create_block();
        let join = self.begin_in_line(Some(rare), aside);
        let written = self.builder.append_block_param(join, I8);
        let before = self.known.clone();
        common(self);
        let is_true = self.ins().iconst(I8, 1);
        self.ins().jump(join, &[is_true.into()]);
        let after = self.begin_aside(aside, before);
        let answer = self.call_aside(self.entry.perform);
        self.raise_if(answer);
        self.load_rotating_again();
        self.known.floats.perform(Some(instruction));
        let delivered = self.delivered_predicate(predicate);
        self.ins().jump(join, &[delivered.into()]);
        self.join(join, after);
        self.set_predicate(predicate, written);
        // The interpreter's function raises flags in it.
        self.known.held.remove(Slot::application(FPSR));
    }

    /// A predicate as the interpreter's function has left it in memory.
    fn delivered_predicate(&mut self, predicate: u8) -> Value {
        let word = self.load_state(I64, Slot::PREDICATES.offset());
        let bit = self.ins().ushr_imm_u(word, i64::from(predicate));
        let bit = self.ins().band_imm_u(bit, 1);
        self.ins().ireduce(I8, bit)
    }

    /// Goes to the interpreter's function of [`Emitter::in_line`] where a value is not zero.
    pub fn unless(&mut self, value: Value, aside: Block) {
        let rest = self.builder.create_block();
        self.ins().brif(value, aside, &[], rest, &[]);
        self.begin(rest);
    }

    /// Goes elsewhere where a value is not zero, and else back from a block that rarely runs, to where most come from
    /// another one. What moves values on the way back stands aside, for these not to jump over it.
    pub fn back_unless(&mut self, value: Value, elsewhere: Block, rest: Block) {
        let back = self.builder.create_block();
        self.builder.set_cold_block(back);
        self.ins().brif(value, elsewhere, &[], back, &[]);
        self.begin(back);
        self.ins().jump(rest, &[]);
    }
}
