//! Where control goes: into a node, on to the next, aside for what is rare, to the interpreter's functions, and out.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, I8, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use cranelift_frontend::FunctionBuilder;
use sidestep_ia64::encoding::{Effects, Instruction, LoadKind, Operation, UnitClass};
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::FPSR;

use super::{
    DELIVERED_FAULT, DELIVERED_OTHER, Double, Emitter, Floats, LEFT_OVER, NEXT_BLOCK, OPERATION_BITS,
    PERFORMED_BRANCH, PERFORMED_RAISED, RAISED,
};
use crate::region::branch_offset;
use crate::slots::{Slot, Slots};

/// Places behind calls that a return looks for before it leaves.
const RETURN_POINTS_MAX: usize = 6;

impl<'f> Emitter<'_, 'f> {
    /// The guest's address so many bytes behind the node's first bundle.
    pub fn address(&mut self, offset: i64) -> Value {
        let offset = self.region.offset(self.node).wrapping_add(offset);
        let base = self.entry.base;
        let offset = self.constant(offset);
        self.ins().iadd(base, offset)
    }

    /// Notes where the block stands for the interpreter's functions.
    fn note_block(&mut self) {
        let start = self.address(0);
        self.store_state(start, layout::BLOCK_START);
        let (end, left) = (self.entry.end, self.left);
        let retired = self.ins().isub(end, left);
        self.store_state(retired, layout::RETIRED);
    }

    /// Calls the interpreter's function for the current operation.
    fn call(&mut self) -> Value {
        let perform = self.entry.perform;
        self.call_by(perform)
    }

    /// Calls a function that performs the current operation.
    fn call_by(&mut self, perform: Value) -> Value {
        self.note_block();
        let operation = &self.region.nodes[self.node].operations[self.index];
        let operation = self.constant(std::ptr::from_ref(operation) as i64);
        let (signature, processor) = (self.perform_signature, self.entry.processor);
        let call = self
            .ins()
            .call_indirect(signature, perform, &[processor, operation]);
        self.builder.inst_results(call)[0]
    }

    fn answer(&mut self, code: i64) {
        let code = self.constant(code);
        self.ins().return_(&[code]);
    }

    /// Leaves the rest of the block, from an operation on, to the interpreter.
    fn leave_over(&mut self, index: usize) {
        self.flush();
        self.note_block();
        self.answer(LEFT_OVER + ((self.node as i64) << OPERATION_BITS | index as i64));
    }

    /// A value that is not zero where one of the region's registers has its NaT bit set; `None` for no registers.
    fn any_nat(&mut self) -> Option<Value> {
        let masks = self.general_registers;
        let mut found = None;
        for (word, mask) in masks.into_iter().enumerate().filter(|&(_, mask)| mask != 0) {
            let nats = self.load_state(I64, layout::GENERAL_NATS + word * 8);
            let mask = self.constant(mask.cast_signed());
            let nats = self.ins().band(nats, mask);
            found = Some(match found {
                None => nats,
                Some(others) => self.ins().bor(others, nats),
            });
        }
        found
    }

    /// Leaves to the interpreter from an operation on where one of the region's registers has its NaT bit set.
    fn leave_if_nat(&mut self, index: usize) {
        if let Some(found) = self.any_nat() {
            self.aside(found, |emitter| emitter.leave_over(index));
        }
    }

    /// Refuses to begin where the root does not fit what remains or the frame: who enters from another unit has not
    /// looked. Leaves it to the interpreter where a general register of the region has its NaT bit set, or a
    /// floating-point register of it is disabled.
    pub fn check_entry(&mut self) {
        self.stop_unless_it_fits(0);
        let disabling = self.region.disabling_bits();
        if disabling != 0 {
            let status = self.load_state(I64, layout::STATUS);
            let disabling = self.constant(disabling.cast_signed());
            let disabled = self.ins().band(status, disabling);
            self.aside(disabled, |emitter| emitter.leave_over(0));
        }
        self.leave_if_nat(0);
        self.move_on_to(0);
    }

    /// Holds what a node wants held, and jumps to it.
    fn move_on_to(&mut self, node: usize) {
        for slot in self.region.held[node].iter() {
            self.get(slot);
        }
        let (header, left) = (self.headers[node], self.left);
        self.ins().jump(header, &[left.into()]);
    }

    /// Goes on with the header of a node: looks whether the node may be executed.
    pub fn begin_node(&mut self, node: usize) {
        let header = self.headers[node];
        self.builder.switch_to_block(header);
        self.left = self.builder.append_block_param(header, I64);
        self.node = node;
        self.held = self.region.held[node];
        self.dirty = Slots::NONE;
        self.known.clear();
        self.floats = Floats::default();
        self.is_pending = false;
        self.leaves = false;
        self.is_gone = false;
        self.stop_unless_it_fits(node);
    }

    /// Leaves before a node that has more instructions than may still retire, or that writes above the frame.
    fn stop_unless_it_fits(&mut self, node: usize) {
        let retired = i64::from(self.region.nodes[node].block.retired);
        let left = self.left;
        let is_short = self.ins().icmp_imm_u(IntCC::UnsignedLessThan, left, retired);
        self.stop_if(is_short, node, left);
        let highest_target = self.region.nodes[node].block.highest_target;
        if highest_target > 31 {
            let size = self.load_state(I32, layout::FRAME_SIZE);
            let lowest = i64::from(highest_target) - 31;
            let is_small = self.ins().icmp_imm_u(IntCC::UnsignedLessThan, size, lowest);
            self.stop_if(is_small, node, left);
        }
    }

    /// Goes on with another operation of the node.
    pub fn begin_operation(&mut self, index: usize) {
        self.index = index;
    }

    /// How many bytes the bundle of the current operation is behind the node's first one.
    pub fn bundle_offset(&self) -> i64 {
        let operation = &self.region.nodes[self.node].operations[self.index];
        operation.bundle_offset().cast_signed()
    }

    /// Goes on behind the block, unless control is gone.
    pub fn end_node(&mut self) {
        let (bundle, slot) = self.region.nodes[self.node].block.next;
        if !self.is_gone {
            self.go_to(i64::from(bundle) * 16, slot);
        }
    }

    /// Emits what happens where a branch is taken: control goes elsewhere in `body`, for good without a condition.
    pub fn branch(&mut self, condition: Option<Value>, body: impl FnOnce(&mut Self)) {
        let Some(condition) = condition else {
            self.is_gone = true;
            return body(self);
        };
        let [taken, rest] = [(); 2].map(|()| self.builder.create_block());
        self.ins().brif(condition, taken, &[], rest, &[]);
        self.begin(taken);
        let (held, dirty, left) = (self.held, self.dirty, self.left);
        body(self);
        (self.held, self.dirty, self.left) = (held, dirty, left);
        self.begin(rest);
    }

    /// Leaves before a node, at which so many instructions may still retire, where a value is not zero. Memory is up
    /// to date.
    fn stop_if(&mut self, condition: Value, node: usize, left: Value) {
        let rest = self.builder.create_block();
        let stop = self.stops[node];
        self.ins().brif(condition, stop, &[left.into()], rest, &[]);
        self.begin(rest);
    }

    /// Goes to where the function is left by a fault, where a value is not zero.
    fn raise_if(&mut self, condition: Value) {
        let rest = self.builder.create_block();
        let raised = self.raised;
        self.ins().brif(condition, raised, &[], rest, &[]);
        self.begin(rest);
    }

    /// Leaves for an address of the guest, at which so many instructions may still retire. Memory is up to date.
    fn leave_for(&mut self, target: Value, slot: u8, left: Value) {
        self.store_state(target, layout::IP);
        let slot = self.ins().iconst(I8, i64::from(slot));
        self.store_state(slot, layout::SLOT);
        let end = self.entry.end;
        let retired = self.ins().isub(end, left);
        self.store_state(retired, layout::RETIRED);
        self.answer(NEXT_BLOCK);
    }

    /// Notes that the block is complete with the current operation, and answers how many instructions are left.
    fn complete_block(&mut self) -> Value {
        let operation = &self.region.nodes[self.node].operations[self.index];
        let (retired, offset) = (i64::from(operation.retired), operation.bundle_offset());
        self.flush();
        let last = self.address(offset.cast_signed());
        self.store_state(last, layout::COMPLETED);
        let left = self.left;
        self.ins().iadd_imm_s(left, -retired)
    }

    /// Branches with the current operation to an address, aligned to bundles.
    pub fn branch_to(&mut self, target: Value) {
        let left = self.complete_block();
        self.leave_for(target, 0, left);
    }

    /// Goes on with the current operation so many bytes behind the node's first bundle, at a slot.
    pub fn go_to(&mut self, offset: i64, slot: u8) {
        let left = self.complete_block();
        let target = self.region.node_at(self.node, offset, slot);
        let Some(next) = target.filter(|_| !self.leaves) else {
            let target = self.address(offset);
            return self.leave_for(target, slot, left);
        };
        self.go_on(next, left);
    }

    /// Goes on with a node, unless something wants the processor first.
    fn go_on(&mut self, next: usize, left: Value) {
        let mut wanted = Vec::new();
        if self.is_system || next <= self.node {
            // A program has no interrupts.
            let count = if self.is_system { 2 } else { 1 };
            for flag in self.entry.flags.into_iter().take(count) {
                // Another thread sets it: no two looks may become one.
                wanted.push(self.ins().atomic_load(I8, MemFlagsData::trusted(), flag));
            }
        }
        if self.is_system || self.is_pending {
            wanted.push(self.load_state(I32, layout::PENDING));
        }
        for condition in wanted {
            self.stop_if(condition, next, left);
        }
        self.left = left;
        self.move_on_to(next);
    }

    /// Emits an instruction whose common case is in line: `common` where `rare` is zero, the interpreter's function,
    /// in a block that rarely runs, where it is not. `common` may go there [`unless`](Emitter::unless) something is
    /// zero, as long as it has changed nothing. Both change no slots but those that the instruction writes.
    pub fn in_line(&mut self, instruction: &Instruction, rare: Value, common: impl FnOnce(&mut Self, Block)) {
        let targets = Slots::written_by(instruction);
        let [in_line, aside, join] = [(); 3].map(|()| self.builder.create_block());
        self.builder.set_cold_block(aside);
        self.ins().brif(rare, aside, &[], in_line, &[]);
        self.begin(in_line);
        let before = self.slots();
        common(self, aside);
        self.ins().jump(join, &[]);
        let after = self.restore_slots(before);
        self.begin(aside);
        self.flush();
        let answer = self.call();
        self.raise_if(answer);
        self.come_back(instruction, targets);
        self.ins().jump(join, &[]);
        let aside = self.restore_slots(after);
        self.floats.meet(&aside.floats);
        self.begin(join);
    }

    /// Makes of what is known what holds once the interpreter's function has executed an instruction for
    /// [`Emitter::in_line`], with the instruction's targets at hand.
    fn come_back(&mut self, instruction: &Instruction, targets: Slots) {
        self.held = self.held.without(targets);
        self.floats.perform(Some(instruction));
        if may_set_nat(instruction) {
            let index = self.index + 1;
            self.leave_if_nat(index);
        }
        for slot in targets.iter() {
            self.get(slot);
        }
    }

    /// Emits an instruction that delivers a double to `register`: as [`Emitter::in_line`], with `common` answering
    /// it. The interpreter's function comes back as well where it has delivered one, which is of single precision if
    /// `is_single` says so of the instruction; else the interpreter goes on behind the instruction. The register has
    /// been written in memory in any case.
    pub fn deliver(
        &mut self,
        instruction: &Instruction,
        (register, is_single): (u8, bool),
        rare: Option<Value>,
        common: impl FnOnce(&mut Self, Block) -> Value,
    ) {
        let targets = Slots::written_by(instruction);
        let [in_line, aside, join] = [(); 3].map(|()| self.builder.create_block());
        let value = self.builder.append_block_param(join, F64);
        self.builder.set_cold_block(aside);
        match rare {
            Some(rare) => self.ins().brif(rare, aside, &[], in_line, &[]),
            None => self.ins().jump(in_line, &[]),
        };
        self.begin(in_line);
        let before = self.slots();
        let result = common(self, aside);
        self.ins().jump(join, &[result.into()]);
        let after = self.restore_slots(before);
        self.begin(aside);
        match is_float_only(instruction) {
            true => self.flush_of(Slots::named_by(instruction)),
            false => self.flush(),
        }
        let perform = self.entry.perform_double;
        let perform = self.constant(perform);
        let answer = self.call_by(perform);
        let is_none = self
            .ins()
            .icmp_imm_s(IntCC::SignedGreaterThanOrEqual, answer, DELIVERED_OTHER);
        let index = self.index + 1;
        self.aside(is_none, |emitter| {
            emitter.flush();
            let is_raised = emitter.ins().icmp_imm_s(IntCC::Equal, answer, DELIVERED_FAULT);
            emitter.raise_if(is_raised);
            emitter.leave_over(index);
        });
        self.come_back(instruction, targets);
        let result = self.ins().bitcast(F64, MemFlagsData::new(), answer);
        self.ins().jump(join, &[result.into()]);
        let aside = self.restore_slots(after);
        self.floats.meet(&aside.floats);
        self.begin(join);
        self.floats.note(register, Some(Double { value, is_single }));
        // The interpreter's function raises flags in it.
        self.held.remove(Slot::application(FPSR));
    }

    /// Goes to the interpreter's function of [`Emitter::in_line`] where a value is not zero.
    pub fn unless(&mut self, value: Value, aside: Block) {
        let rest = self.builder.create_block();
        self.ins().brif(value, aside, &[], rest, &[]);
        self.begin(rest);
    }

    /// Has the interpreter's function execute the current operation.
    pub fn perform(&mut self, instruction: Option<&Instruction>) {
        let operation = &self.region.nodes[self.node].operations[self.index];
        let (predicate, bundle) = (operation.predicate, operation.place >> 2);
        let condition = self.predicate(predicate);
        let changed = instruction.map_or(Slots::NONE, Slots::changed_by_performing);
        let is_float = instruction.is_some_and(is_float_only);
        match instruction.filter(|_| is_float) {
            Some(instruction) => self.flush_of(Slots::named_by(instruction)),
            None => self.flush(),
        }
        let join = condition.map(|condition| {
            let [then, join] = [(); 2].map(|()| self.builder.create_block());
            self.ins().brif(condition, then, &[], join, &[]);
            self.begin(then);
            join
        });
        let held = self.held;
        let answer = self.call();
        self.held = held.without(changed);
        self.known.clear();
        self.floats.perform(instruction);
        let effects = instruction.map_or(Effects::empty(), Instruction::effects);
        self.is_pending |= !is_float;
        // A program's returns do not change its privilege.
        let may_stay = !self.is_system && instruction.is_some_and(is_return);
        self.leaves |= effects.contains(Effects::CHANGES_STATUS) && !may_stay;
        let is_raised = self.ins().icmp_imm_u(IntCC::Equal, answer, PERFORMED_RAISED);
        match is_float {
            false => self.raise_if(is_raised),
            true => self.aside(is_raised, |emitter| {
                emitter.flush();
                emitter.answer(RAISED);
            }),
        }
        if let Some(instruction) = instruction {
            if is_branch(instruction) {
                let is_taken = self.ins().icmp_imm_u(IntCC::Equal, answer, PERFORMED_BRANCH);
                self.branch(Some(is_taken), |emitter| emitter.arrived(instruction, bundle));
            }
            if may_set_nat(instruction) {
                let index = self.index + 1;
                self.leave_if_nat(index);
            }
        }
        if let Some(join) = join {
            self.ins().jump(join, &[]);
            self.begin(join);
        }
        self.held = held.without(changed);
        self.known.clear();
    }

    /// Goes on where the interpreter's function has branched to.
    fn arrived(&mut self, instruction: &Instruction, bundle: u16) {
        let offset = branch_offset(instruction, bundle);
        let next = offset.and_then(|offset| self.region.node_at(self.node, offset, 0));
        if self.leaves || next.is_none() && !is_return(instruction) {
            return self.answer(NEXT_BLOCK);
        }
        // Another frame shows other registers.
        if let Some(found) = self.any_nat() {
            self.aside(found, |emitter| emitter.answer(NEXT_BLOCK));
        }
        let operation = &self.region.nodes[self.node].operations[self.index];
        let retired = i64::from(operation.retired);
        let left = self.left;
        let left = self.ins().iadd_imm_s(left, -retired);
        if let Some(next) = next {
            return self.go_on(next, left);
        }
        let region = self.region;
        let target = self.load_state(I64, layout::IP);
        for &point in region.return_points.iter().take(RETURN_POINTS_MAX) {
            let (base, offset) = (self.entry.base, region.offset(point));
            let offset = self.constant(offset);
            let address = self.ins().iadd(base, offset);
            let is_there = self.ins().icmp(IntCC::Equal, target, address);
            self.branch(Some(is_there), |emitter| emitter.go_on(point, left));
        }
        self.answer(NEXT_BLOCK);
    }

    /// Ends the function.
    pub fn finish(mut self) -> FunctionBuilder<'f> {
        for node in 0..self.region.nodes.len() {
            let stop = self.stops[node];
            self.builder.set_cold_block(stop);
            self.begin(stop);
            let left = self.builder.append_block_param(stop, I64);
            self.node = node;
            let target = self.address(0);
            let slot = (self.region.nodes[node].place & 3) as u8;
            self.leave_for(target, slot, left);
        }
        self.builder.set_cold_block(self.raised);
        self.begin(self.raised);
        self.answer(RAISED);
        self.builder.seal_all_blocks();
        self.builder
    }
}

/// Whether the interpreter's function for an instruction looks at floating-point registers, their controls and the
/// slots that the instruction names, and at nothing else.
fn is_float_only(instruction: &Instruction) -> bool {
    instruction.unit_class() == UnitClass::F && !is_branch(instruction)
}

/// Whether the interpreter's function for an instruction may set NaT bits of general registers. No source is NaT.
fn may_set_nat(instruction: &Instruction) -> bool {
    use Operation as O;
    let effects = instruction.effects();
    match instruction.operation {
        O::Load { kind, .. } => matches!(
            kind,
            LoadKind::Speculative | LoadKind::SpeculativeAdvanced | LoadKind::Fill
        ),
        _ if effects.intersects(Effects::CHANGES_FRAME | Effects::CHANGES_STATUS) => true,
        _ => instruction.general_target().is_some(),
    }
}

/// Whether the interpreter's function for an instruction may take a branch.
fn is_branch(instruction: &Instruction) -> bool {
    instruction.effects().contains(Effects::TRANSFERS)
}

/// Whether an instruction returns from a call.
fn is_return(instruction: &Instruction) -> bool {
    matches!(instruction.operation, Operation::Return)
}
