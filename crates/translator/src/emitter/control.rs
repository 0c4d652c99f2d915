//! Where control goes: into a node, on to the next, aside for what is rare, and to the interpreter's functions.

use std::ptr;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, I8, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use cranelift_frontend::{FunctionBuilder, Variable};
use sidestep_ia64::encoding::{Effects, Instruction, LoadKind, Operation, StatusField, UnitClass};
use sidestep_ia64::layout;

use super::{Double, Emitter, Known, PERFORMED_BRANCH, PERFORMED_RAISED, Predicates};
use crate::chain::{CHECKPOINT_MARGIN, CHECKPOINT_PERIOD, NEXT_BLOCK, Named, RAISED, Request, Word};
use crate::node::branch_offset;
use crate::slots::{Slot, Slots};

impl<'f> Emitter<'_, 'f> {
    /// The address of the current operation.
    pub(super) fn operation(&mut self) -> Value {
        let operation = &self.region.nodes[self.node].operations[self.index];
        self.constant(std::ptr::from_ref(operation) as i64)
    }

    /// Calls a function that performs the current operation, in a block that rarely runs: all values stay in their
    /// registers meanwhile.
    pub(super) fn call_aside(&mut self, perform: i64) -> Value {
        let operation = ptr::from_ref(&self.region.nodes[self.node].operations[self.index]);
        self.call_preserving(operation.expose_provenance() as u64, perform);
        self.shared(Word::Request)
    }

    /// Calls a function of the processor and a number, in such a block as well.
    pub fn call_preserving(&mut self, argument: u64, function: i64) {
        self.call_rare(Word::Preserving, argument, function);
    }

    /// The same, of an address, which the function finds in [`Word::Argument`].
    pub fn call_preserving_at(&mut self, address: Value, argument: u64, function: i64) {
        self.store_state(address, Word::Argument.offset());
        self.call_preserving(argument, function);
    }

    /// Calls the function that looks at the advanced loads that a store of so many bytes at an address may have hit.
    /// Where it has hit one, that calls the one named, which finds the address in [`Word::Argument`].
    pub fn call_store_hit(&mut self, address: Value, bytes: u32, function: i64) {
        self.store_state(address, Word::Argument.offset());
        self.call_rare(Word::StoreHit, u64::from(bytes), function);
    }

    /// Makes a request and calls a function that sees to it and changes no register.
    fn call_rare(&mut self, rare: Word, argument: u64, function: i64) {
        let block = match self.is_system {
            false => (self.region.base).wrapping_add_signed(self.region.offset(self.node)),
            true => {
                let block = self.address(0);
                self.store_state(block, layout::BLOCK_START);
                Request::NOTED
            }
        };
        let request = self.named.request(Request {
            function: function.cast_unsigned(),
            argument,
            block,
        });
        let request = self.constant(request as i64);
        self.store_state(request, Word::Request.offset());
        let (signature, rare) = (self.entry.preserving_signature, self.shared(rare));
        self.ins().call_indirect(signature, rare, &[]);
    }

    /// Calls the interpreter's function for the current operation.
    fn call(&mut self) -> Value {
        self.note_block();
        let operation = self.operation();
        let perform = self.constant(self.entry.perform);
        let (signature, processor) = (self.entry.perform_signature, self.processor());
        let call = self
            .ins()
            .call_indirect(signature, perform, &[processor, operation]);
        self.builder.inst_results(call)[0]
    }

    /// A value that is not zero where one of the region's registers has its NaT bit set; `None` for no registers.
    pub(super) fn any_nat(&mut self) -> Option<Value> {
        self.any_nat_of(self.general_registers)
    }

    /// As [`Emitter::any_nat`], of some registers, r0 the lowest bit.
    pub(super) fn any_nat_of(&mut self, masks: [u64; 2]) -> Option<Value> {
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
    pub(super) fn leave_if_nat(&mut self, index: usize) {
        if let Some(found) = self.any_nat() {
            self.aside(found, |emitter| emitter.leave_over(index));
        }
    }

    /// Refuses to begin where the region does not fit what remains, the root does not fit the frame, or FPSR is not as
    /// it is taken to be: who enters from another unit has not looked. Leaves the root to the interpreter where a
    /// general register of the region has its NaT bit set, a floating-point register of it is disabled, or PSR does not
    /// say that registers were written which are taken to have been: the interpreter's instructions note that.
    ///
    /// Code that gathers is entered by who has looked, from nowhere else.
    pub fn check_entry(&mut self) {
        self.find_frame();
        if self.region.gathers.is_none() {
            self.stop_unless_left(0);
            self.stop_unless_framed(0);
        }
        let (disabling, marked) = (self.region.disabling_bits(), self.entry.marked);
        if disabling != 0 {
            let status = self.load_state(I64, layout::STATUS);
            let looked_at = self.constant((disabling | marked).cast_signed());
            let status = self.ins().band(status, looked_at);
            let differs = self
                .ins()
                .icmp_imm_s(IntCC::NotEqual, status, marked.cast_signed());
            self.aside(differs, |emitter| emitter.leave_over(0));
        }
        let (decisive, settled) = self.entry.settled;
        if decisive != 0 {
            let differs = self.status_differs((decisive, settled));
            self.stop_if(differs, 0);
        }
        self.known.floats.mark(marked);
        self.leave_entry_if_nat();
        match self.region.has_one_way_in[0] {
            true => {
                let header = self.headers[0];
                self.ins().jump(header, &[]);
                self.arrivals[0] = Some(self.known.clone());
            }
            false => {
                self.enter_tight_loop(0);
                self.move_on_to(0);
            }
        }
    }

    /// Finds out what is known in the tight loop of a node, if it is in one, and does not enter that if its frame is
    /// too small.
    fn enter_tight_loop(&mut self, node: usize) {
        let Some(tight_loop) = self.region.tight_loop(node) else {
            return;
        };
        self.stop_unless_registers(tight_loop.highest_target, node);
        if let Some(rotation) = tight_loop.rotation
            && self.known.buffered.is_none()
        {
            let is_unusual = self.is_rotation_unusual(rotation.size);
            self.stop_if(is_unusual, node);
            self.load_rotating(rotation);
        }
        if self.has_windows() {
            for base in tight_loop.bases.iter() {
                let address = self.get(base);
                let difference = self.window_difference(address);
                let variable = self.window_variable(base);
                self.builder.def_var(variable, difference);
            }
        }
        for &field in &tight_loop.status_fields {
            if let Some(is_usual) = (self.functions.is_usual)(self, field) {
                let variable = self.status_variable(field);
                self.builder.def_var(variable, is_usual);
            }
        }
    }

    /// Leaves the root to the interpreter where a general register of the region has its NaT bit set: mostly none at
    /// all has.
    fn leave_entry_if_nat(&mut self) {
        let nats = [0, 8].map(|word| self.load_state(I64, layout::GENERAL_NATS + word));
        let any = self.ins().bor(nats[0], nats[1]);
        let [look, rest] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(look);
        self.ins().brif(any, look, &[], rest, &[]);
        self.begin(look);
        self.leave_if_nat(0);
        self.ins().jump(rest, &[]);
        self.begin(rest);
    }

    /// Holds what a node wants held, and jumps to it. Memory is up to date.
    fn move_on_to(&mut self, node: usize) {
        for slot in self.region.held[node].iter() {
            self.get(slot);
        }
        let held = self.region.held_doubles[node];
        let doubles = held.union(self.region.late_doubles(node)).iter();
        let doubles: Vec<(u8, Value)> = doubles
            .map(|register| {
                let value = match held.contains(register) {
                    true => (self.functions.at_hand)(self, register),
                    false => self.late_or_none(register),
                };
                (register, value)
            })
            .collect();
        for (register, value) in doubles {
            let variable = self.double_variable(register);
            self.builder.def_var(variable, value);
        }
        let header = self.headers[node];
        self.ins().jump(header, &[]);
    }

    /// The variable that has a floating-point register as a double where a node begins.
    fn double_variable(&mut self, register: u8) -> Variable {
        let place = &mut self.double_variables[usize::from(register)];
        *place.get_or_insert_with(|| self.builder.declare_var(F64))
    }

    /// What is known where a node begins, wherever control comes from.
    fn known_at(&mut self, node: usize) -> Known {
        let mut known = Known {
            held: self.region.held[node],
            ..Known::default()
        };
        known.floats.mark(self.entry.marked);
        let (held, late) = (self.region.held_doubles[node], self.region.late_doubles(node));
        for register in held.union(late).iter() {
            let variable = self.double_variable(register);
            let value = self.builder.use_var(variable);
            if held.contains(register) {
                let is_single = false;
                known.floats.note(register, Some(Double { value, is_single }));
            }
            if late.contains(register) {
                known.floats.note_late(register, value);
            }
        }
        if let Some(tight_loop) = self.region.tight_loop(node) {
            (known.late, known.buffered) = (tight_loop.late, tight_loop.rotation);
            known.framed = tight_loop.highest_target;
            if self.has_windows() {
                for base in tight_loop.bases.iter() {
                    let (address, difference) = (self.variable(base), self.window_variable(base));
                    let [address, difference] =
                        [address, difference].map(|variable| self.builder.use_var(variable));
                    known.windows.note(address, difference);
                }
            }
            for &field in &tight_loop.status_fields {
                if !self.has_host_controls(field) {
                    let is_usual = self.status_variable(field);
                    let is_usual = self.builder.use_var(is_usual);
                    known.floats.note_usual_status(field, is_usual);
                }
            }
        }
        known
    }

    /// The variable that has the way to the window that a base register of a tight loop points to.
    fn window_variable(&mut self, base: Slot) -> Variable {
        let place = &mut self.window_variables[base.index()];
        *place.get_or_insert_with(|| self.builder.declare_var(I64))
    }

    /// The variable that has whether the host may compute under a status field in a tight loop.
    fn status_variable(&mut self, field: StatusField) -> Variable {
        let place = &mut self.status_variables[field as usize];
        *place.get_or_insert_with(|| self.builder.declare_var(I8))
    }

    /// Goes on with the header of a node: looks whether the node may be executed.
    pub fn begin_node(&mut self, node: usize) {
        let header = self.headers[node];
        self.builder.switch_to_block(header);
        if self.region.has_one_way_in[node] {
            self.builder.seal_block(header);
        }
        (self.node, self.index) = (node, 0);
        (self.division, self.emitted) = (None, 0);
        self.checked_loads = self.find_checked_loads(node);
        self.known = match self.arrivals[node].take() {
            Some(known) => known,
            None => self.known_at(node),
        };
        self.known.is_rare = false;
        let gathers = self.region.gathers.is_some();
        self.known.is_noted = gathers;
        self.is_pending = false;
        self.leaves = gathers;
        self.is_gone = false;
        match gathers {
            true => self.begin_gathering(),
            false => self.stop_unless_framed(node),
        }
    }

    /// Leaves before a node where fewer instructions may still retire than it and the nodes behind it have. Between
    /// two looks no node is executed twice. A program is left as well where somebody wants the processor.
    fn stop_unless_left(&mut self, node: usize) {
        if self.is_system {
            let (_, is_short) = self.is_short(node);
            return self.stop_if(is_short, node);
        }
        let (checkpoint, retired) = (self.shared(Word::Checkpoint), self.get(Slot::RETIRED));
        let mut is_due = self.ins().icmp(IntCC::SignedLessThan, checkpoint, retired);
        if self.region.retired_from(node) > CHECKPOINT_MARGIN {
            is_due = self.ins().iconst(I8, 1);
        }
        let [due, rest] = [(); 2].map(|()| self.builder.create_block());
        self.ins().brif(is_due, due, &[], rest, &[]);
        self.rarely(due, |emitter| emitter.pass_checkpoint(node), rest);
    }

    /// Leaves a program before a node unless it may be executed, and sets the next checkpoint.
    fn pass_checkpoint(&mut self, node: usize) {
        let attention = self.flag(Word::Attention);
        let (left, is_short) = self.is_short(node);
        let is_wanted = self.ins().bor(attention, is_short);
        self.stop_if(is_wanted, node);
        let period = self.constant(CHECKPOINT_PERIOD as i64);
        let period = self.ins().umin(left, period);
        let retired = self.get(Slot::RETIRED);
        let checkpoint = self.ins().iadd(retired, period);
        let checkpoint = self.ins().iadd_imm_s(checkpoint, -(CHECKPOINT_MARGIN as i64));
        self.store_state(checkpoint, Word::Checkpoint.offset());
    }

    /// How many instructions may still retire, and whether they are fewer than a node and those behind it have.
    fn is_short(&mut self, node: usize) -> (Value, Value) {
        let (end, retired) = (self.shared(Word::End), self.get(Slot::RETIRED));
        let left = self.ins().isub(end, retired);
        let retired = self.region.retired_from(node);
        let is_short = self
            .ins()
            .icmp_imm_u(IntCC::UnsignedLessThan, left, retired as i64);
        (left, is_short)
    }

    /// Leaves before a node that writes above the frame.
    fn stop_unless_framed(&mut self, node: usize) {
        self.stop_unless_registers(self.region.nodes[node].block.highest_target, node);
    }

    /// Leaves before a node where the frame has not all registers up to one.
    fn stop_unless_registers(&mut self, highest_target: u8, node: usize) {
        if highest_target > self.known.framed.max(31) {
            let size = self.load_state(I32, layout::FRAME_SIZE);
            let lowest = i64::from(highest_target) - 31;
            let is_small = self.ins().icmp_imm_u(IntCC::UnsignedLessThan, size, lowest);
            self.stop_if(is_small, node);
            self.known.framed = highest_target;
        }
    }

    /// Notes how many stacked registers the frame has.
    pub fn note_frame(&mut self, size: u8) {
        self.known.framed = 31 + size;
    }

    /// Goes on with another operation of the node: behind the part of it that is in a tight loop, with memory up to
    /// date.
    pub fn begin_operation(&mut self, index: usize) {
        self.index = index;
        let is_late = self.known.late != Slots::NONE
            || self.known.buffered.is_some()
            || !self.known.floats.are_complete();
        if !self.is_gone && is_late && !self.is_in_tight_loop() {
            self.complete();
        }
    }

    /// How many bytes the bundle of the current operation is behind the node's first one.
    pub fn bundle_offset(&self) -> i64 {
        let operation = &self.region.nodes[self.node].operations[self.index];
        operation.bundle_offset().cast_signed()
    }

    /// Goes on behind the block, unless control is gone.
    pub fn end_node(&mut self) {
        let node = &self.region.nodes[self.node];
        let (bundle, slot) = node.block.next;
        let offset = i64::from(bundle) * 16;
        if self.is_gone {
            return;
        }
        if node.ends_by_leaving() {
            // Nobody comes here, and no other node is to know of a way from here.
            self.complete_block();
            return self.exit_behind();
        }
        match self.gathering {
            Some(_) => {
                self.complete_block();
                self.exit_behind();
            }
            None => self.go_to(offset, slot),
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
        self.branch_between(condition, taken, body, rest);
    }

    /// The same of a branch to what is so many bytes behind the node's first bundle. The code generator has what a
    /// branch leads to otherwise stand right behind it. So the rest of a loop does behind one that goes back, and not
    /// everything that follows the loop, which would be taken to be a part of it and to need registers as much.
    pub fn branch_near(&mut self, condition: Option<Value>, offset: i64, body: impl FnOnce(&mut Self)) {
        let Some(condition) = condition.filter(|_| offset <= self.bundle_offset()) else {
            return self.branch(condition, body);
        };
        let [taken, rest] = [(); 2].map(|()| self.builder.create_block());
        let ends = self.not(condition);
        self.ins().brif(ends, rest, &[], taken, &[]);
        self.branch_between(condition, taken, body, rest);
    }

    /// Emits the two ways of a branch.
    fn branch_between(&mut self, condition: Value, taken: Block, body: impl FnOnce(&mut Self), rest: Block) {
        self.begin(taken);
        let before = self.known.clone();
        self.known.predicates.decide(condition, true);
        body(self);
        self.known = before;
        self.known.predicates.decide(condition, false);
        self.begin(rest);
    }

    /// Leaves before a node where a value is not zero.
    fn stop_if(&mut self, condition: Value, node: usize) {
        let stop = self.stops[node];
        if !self.is_complete() {
            return self.aside(condition, |emitter| {
                emitter.complete_aside();
                emitter.ins().jump(stop, &[]);
            });
        }
        let rest = self.builder.create_block();
        self.ins().brif(condition, stop, &[], rest, &[]);
        self.begin(rest);
    }

    /// Goes to where the function is left by a fault, where a value is not zero.
    pub(super) fn raise_if(&mut self, condition: Value) {
        if !self.known.checked_loads.is_empty() {
            return self.aside(condition, |emitter| {
                emitter.enter_checked_loads();
                let raised = emitter.raised();
                emitter.ins().jump(raised, &[]);
            });
        }
        let rest = self.builder.create_block();
        let raised = self.raised();
        self.ins().brif(condition, raised, &[], rest, &[]);
        self.begin(rest);
    }

    /// Where the function is left by a fault of the current operation.
    fn raised(&mut self) -> Block {
        // In a later bundle of the block the function has stored which one was the last.
        let is_first = self.bundle_offset() == 0;
        let lacking = (self.known.retired, self.known.completed.filter(|_| is_first));
        let builder = &mut self.builder;
        *(self.raised.entry(lacking)).or_insert_with(|| builder.create_block())
    }

    /// Notes that the block is complete with the current operation.
    pub(super) fn complete_block(&mut self) {
        let operation = &self.region.nodes[self.node].operations[self.index];
        if self.is_system {
            // A program has no interruptions, which ask for it.
            let offset = self.region.offset(self.node);
            self.known.completed = Some(offset.wrapping_add_unsigned(operation.bundle_offset()));
        }
        self.known.retired += u64::from(operation.retired);
    }

    /// Branches with the current operation to an address, aligned to bundles.
    pub fn branch_to(&mut self, target: Value) {
        self.complete_block();
        self.complete();
        self.follow_to(target, false);
    }

    /// Goes on with the current operation so many bytes behind the node's first bundle, at a slot.
    pub fn go_to(&mut self, offset: i64, slot: u8) {
        self.complete_block();
        match self.region.node_at(self.node, offset, slot) {
            Some(next) if !self.leaves => self.go_on(next),
            _ => self.exit_to(offset, slot),
        }
    }

    /// Goes on with a node, unless something wants the processor first.
    pub(super) fn go_on(&mut self, next: usize) {
        let is_carried = self.region.has_one_way_in[next];
        let is_within = self.is_in_tight_loop() && self.region.are_in_one_loop(self.node, next);
        if !is_within {
            if self.is_system || !is_carried || self.is_in_tight_loop() {
                let stays_buffered = !is_carried
                    && self
                        .region
                        .tight_loop(next)
                        .is_some_and(|tight_loop| tight_loop.rotation == self.known.buffered);
                let buffered = self.known.buffered.take_if(|_| stays_buffered);
                self.complete();
                self.known.buffered = buffered;
            }
        } else if !is_carried {
            self.gather_late();
        }
        let mut wanted = Vec::new();
        if self.is_system {
            wanted.extend([Word::Attention, Word::Interrupts].map(|word| self.flag(word)));
        }
        if self.is_system || self.is_pending {
            wanted.push(self.load_state(I32, layout::PENDING));
        }
        for condition in wanted {
            self.stop_if(condition, next);
        }
        if next <= self.node {
            self.stop_unless_left(next);
        }
        if is_carried {
            let header = self.headers[next];
            self.ins().jump(header, &[]);
            self.arrivals[next] = Some(self.known.clone());
            return;
        }
        if !is_within {
            self.enter_tight_loop(next);
        }
        self.move_on_to(next);
    }

    /// Has the interpreter's function execute the current operation.
    pub fn perform(&mut self, instruction: Option<&Instruction>) {
        let operation = &self.region.nodes[self.node].operations[self.index];
        let (predicate, bundle) = (operation.predicate, operation.place >> 2);
        let condition = self.predicate(predicate);
        let changed = instruction.map_or(Slots::NONE, Slots::changed_by_performing);
        let is_float = instruction.is_some_and(is_float_only);
        self.complete();
        let join = condition.map(|condition| {
            let [then, join] = [(); 2].map(|()| self.builder.create_block());
            self.ins().brif(condition, then, &[], join, &[]);
            self.begin(then);
            join
        });
        let (held, was_noted) = (self.known.held, self.known.is_noted);
        let answer = self.call();
        if instruction.is_some_and(|instruction| instruction.effects().contains(Effects::CHANGES_FRAME)) {
            self.known.framed = 0;
            self.find_frame();
        }
        self.known.held = held.without(changed);
        self.known.predicates = Predicates::default();
        self.known.floats.perform(instruction);
        let effects = instruction.map_or(Effects::empty(), Instruction::effects);
        self.is_pending |= !is_float;
        // A program's returns do not change its privilege.
        let may_stay = !self.is_system && instruction.is_some_and(is_return);
        self.leaves |= effects.contains(Effects::CHANGES_STATUS) && !may_stay;
        let is_raised = self.ins().icmp_imm_u(IntCC::Equal, answer, PERFORMED_RAISED);
        self.raise_if(is_raised);
        if let Some(instruction) = instruction {
            // One that switches to IA-32 ends its block also where its predicate lets it do nothing.
            if is_branch(instruction) && instruction.always_transfers() && join.is_none() {
                self.is_gone = true;
                return self.arrived(instruction, bundle);
            }
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
            self.known.is_noted = was_noted;
        }
        self.known.held = held.without(changed);
        self.known.predicates = Predicates::default();
    }

    /// Has the interpreter's function execute the current operation in a block that rarely runs, from which that always
    /// goes elsewhere.
    pub fn fail(&mut self, instruction: &Instruction, block: Block) {
        let (known, is_pending) = (self.known.clone(), self.is_pending);
        self.known.is_rare = true;
        self.begin(block);
        self.perform(Some(instruction));
        // Nobody comes here.
        let behind = self.index + 1;
        self.leave_over(behind);
        (self.known, self.is_pending) = (known, is_pending);
    }

    /// Goes on where the interpreter's function has branched to: the processor is there.
    fn arrived(&mut self, instruction: &Instruction, bundle: u16) {
        if self.leaves {
            return self.answer(NEXT_BLOCK);
        }
        let Some(offset) = branch_offset(instruction, bundle) else {
            let target = self.load_state(I64, layout::IP);
            return match is_return(instruction) {
                true => self.return_to(target, true),
                false => self.follow_to(target, true),
            };
        };
        match self.region.node_at(self.node, offset, 0) {
            Some(next) => {
                self.leave_if_nat_arrives(|emitter| emitter.answer(NEXT_BLOCK));
                self.go_on(next);
            }
            None => self.exit_to(offset, 0),
        }
    }

    /// Ends the function; answers what it leaves to the interpreter, which is to live as long as its code.
    pub fn finish(mut self) -> (FunctionBuilder<'f>, Named) {
        self.finish_leaving();
        self.known = Known::default();
        self.finish_exits();
        for node in 0..self.region.nodes.len() {
            let stop = self.stops[node];
            self.builder.set_cold_block(stop);
            self.begin(stop);
            self.node = node;
            let target = self.address(0);
            let slot = (self.region.nodes[node].place & 3) as u8;
            self.leave_for(target, slot);
            self.answer(NEXT_BLOCK);
        }
        for ((retired, completed), raised) in std::mem::take(&mut self.raised) {
            self.builder.set_cold_block(raised);
            self.begin(raised);
            self.known = Known {
                retired,
                completed,
                ..Known::default()
            };
            self.complete_counts();
            self.answer(RAISED);
        }
        self.builder.seal_all_blocks();
        (self.builder, self.named)
    }
}

/// Whether the interpreter's function for an instruction looks at floating-point registers, their controls and the
/// slots that the instruction names, and at nothing else.
fn is_float_only(instruction: &Instruction) -> bool {
    instruction.unit_class() == UnitClass::F && !is_branch(instruction)
}

/// Whether the interpreter's function for an instruction may set NaT bits of general registers. No source is NaT.
pub(super) fn may_set_nat(instruction: &Instruction) -> bool {
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
