//! Ways out of a unit: on to the next one, back to the loop that looks for blocks, or to the interpreter within a
//! block.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use sidestep_ia64::execution::Progress;
use sidestep_ia64::layout;

use super::{Emitter, Known, Predicates};
use crate::chain::{BEHIND, LEFT_OVER, NEXT_BLOCK, Remainder, Word};
use crate::links::Links;
use crate::slots::{Slot, Slots};

/// A block that is left to the interpreter from an operation on, and what is known there.
pub struct Left {
    block: Block,
    node: usize,
    index: usize,
    known: Known,
    /// Whether it is for a number that the unit is not made for.
    is_unusual: bool,
}

impl Emitter<'_, '_> {
    /// The guest's address so many bytes behind the node's first bundle.
    pub fn address(&mut self, offset: i64) -> Value {
        let offset = self.region.offset(self.node).wrapping_add(offset);
        self.address_from_root(offset)
    }

    /// The guest's address so many bytes behind the root's first bundle.
    pub(super) fn address_from_root(&mut self, offset: i64) -> Value {
        match self.entry.base {
            None => self.constant(self.region.base.wrapping_add_signed(offset).cast_signed()),
            Some(base) => self.ins().iadd_imm_s(base, offset),
        }
    }

    /// Loads what units share.
    pub(super) fn shared(&mut self, word: Word) -> Value {
        self.load_state(I64, word.offset())
    }

    /// The flag at an address that units share.
    pub(super) fn flag(&mut self, word: Word) -> Value {
        let address = self.shared(word);
        // Another thread sets it: no two looks may become one.
        self.ins().atomic_load(I8, MemFlagsData::trusted(), address)
    }

    pub(super) fn answer(&mut self, code: i64) {
        let code = self.constant(code);
        self.ins().return_(&[code]);
    }

    /// Notes where the block stands for the interpreter's functions.
    pub(super) fn note_block(&mut self) {
        if std::mem::replace(&mut self.known.is_noted, true) {
            return;
        }
        let start = self.address(0);
        self.store_state(start, layout::BLOCK_START);
    }

    /// Leaves the rest of the block, from an operation on, to the interpreter.
    pub(super) fn leave_over(&mut self, index: usize) {
        self.leave_from(index, None);
    }

    /// The same, with the unit's place where a number is none that it is made for.
    fn leave_from(&mut self, index: usize, unusual: Option<u64>) {
        self.complete_registers();
        self.enter_checked_loads();
        let progress = match self.is_system {
            // Where its blocks stand is known when it is entered.
            true => {
                self.complete_counts();
                self.note_block();
                Progress::default()
            }
            false => self.progress(),
        };
        self.gather_due_changes();
        let address = self.remainder(index, progress, unusual);
        let leaving = self.leaving;
        self.ins().jump(leaving, &[address.into()]);
    }

    /// The address of what is left to the interpreter from an operation on.
    fn remainder(&mut self, index: usize, progress: Progress, unusual: Option<u64>) -> Value {
        let rest = &self.region.nodes[self.node].operations[index..];
        let address = self.named.remainder(Remainder::new(rest, progress, unusual));
        self.constant(address as i64)
    }

    /// Whether memory lacks nothing of a program but predicates, and what is told with the rest.
    fn lacks_predicates_only(&self) -> bool {
        let known = &self.known;
        !self.is_system
            && self.region.gathers.is_none()
            && known.late == Slots::NONE
            && known.buffered.is_none()
            && known.before_settling.is_none()
            && known.floats.are_complete()
            && known.checked_loads.is_empty()
    }

    /// What of a program's progress memory lacks.
    fn progress(&self) -> Progress {
        let block = self.region.offset(self.node);
        Progress {
            block_start: Some(self.region.base.wrapping_add_signed(block)),
            retired: self.known.retired,
        }
    }

    /// Answers where the rest of the block, from the current operation on, is left to the interpreter: a block that
    /// rarely runs, and is emitted behind everything else.
    pub(super) fn leave_later(&mut self) -> Block {
        self.leave_later_for(false)
    }

    /// The same where a number is none that the unit is made for.
    pub fn leave_unusual_later(&mut self) -> Block {
        self.leave_later_for(true)
    }

    fn leave_later_for(&mut self, is_unusual: bool) -> Block {
        let block = self.builder.create_block();
        self.left.push(Left {
            block,
            node: self.node,
            index: self.index,
            known: self.known.clone(),
            is_unusual,
        });
        block
    }

    /// Emits where blocks are left to the interpreter.
    pub(super) fn finish_leaving(&mut self) {
        // Those that lack the same do what they lack in one place.
        let mut completing: Vec<(Predicates, Block)> = Vec::new();
        for Left {
            block,
            node,
            index,
            known,
            is_unusual,
        } in std::mem::take(&mut self.left)
        {
            (self.node, self.index, self.known) = (node, index, known);
            self.known.is_rare = true;
            self.begin(block);
            let root = &self.region.nodes[0];
            let unusual = is_unusual.then_some(root.place);
            if !self.lacks_predicates_only() {
                self.leave_from(index, unusual);
                continue;
            }
            let predicates = self.known.predicates.clone();
            let alike = completing
                .iter()
                .find(|(others, _)| others.lacks_what(&predicates));
            let complete = match alike {
                _ if predicates.is_word_complete() => self.leaving,
                Some(&(_, block)) => block,
                None => {
                    let block = self.builder.create_block();
                    self.builder.append_block_param(block, I64);
                    completing.push((predicates, block));
                    block
                }
            };
            let progress = self.progress();
            let remainder = self.remainder(index, progress, unusual);
            self.ins().jump(complete, &[remainder.into()]);
        }
        for (predicates, block) in completing {
            self.known = Known {
                is_rare: true,
                ..Known::default()
            };
            self.begin(block);
            let word = self.load_slot(Slot::PREDICATES);
            let word = predicates.completed(&mut self.builder, word);
            self.store_slot(word, Slot::PREDICATES);
            let remainder = self.builder.block_params(block)[0];
            let leaving = self.leaving;
            self.ins().jump(leaving, &[remainder.into()]);
        }
        let leaving = self.leaving;
        self.known = Known {
            is_rare: true,
            ..Known::default()
        };
        self.begin(leaving);
        let remainder = self.builder.block_params(leaving)[0];
        self.store_state(remainder, Word::Remainder.offset());
        self.answer(LEFT_OVER);
    }

    /// Puts the processor at an address of the guest.
    pub(super) fn leave_for(&mut self, target: Value, slot: u8) {
        self.code().leave_for(target, slot);
    }

    /// Leaves for a place so many bytes behind the node's first bundle, at a slot.
    pub(super) fn exit_to(&mut self, offset: i64, slot: u8) {
        let offset = self.region.offset(self.node).wrapping_add(offset);
        self.complete();
        if self.gathering.is_some() {
            let target = self.address_from_root(offset);
            return self.leave_by_branch(target);
        }
        if self.leaves {
            let target = self.address_from_root(offset);
            self.leave_for(target, slot);
            return self.answer(NEXT_BLOCK);
        }
        let key = (offset, slot, self.is_pending);
        let builder = &mut self.builder;
        let exit = *(self.exits.entry(key)).or_insert_with(|| builder.create_block());
        self.ins().jump(exit, &[]);
    }

    /// Leaves for what is behind the node, which is complete.
    pub(super) fn exit_behind(&mut self) {
        let (bundle, slot) = self.region.nodes[self.node].block.next;
        let offset = i64::from(bundle) * 16;
        if self.gathering.is_none() {
            return self.exit_to(offset, slot);
        }
        self.complete();
        let target = self.address(offset);
        self.leave_for(target, slot);
        self.answer(BEHIND);
    }

    /// Leaves code that gathers by a branch.
    fn leave_by_branch(&mut self, target: Value) {
        self.store_state(target, layout::TARGET);
        self.leave_for(target, 0);
        self.answer(NEXT_BLOCK);
    }

    /// Emits the ways out to places that are known.
    pub(super) fn finish_exits(&mut self) {
        for ((offset, slot, is_pending), exit) in std::mem::take(&mut self.exits) {
            self.begin(exit);
            self.is_pending = is_pending;
            let target = self.address_from_root(offset);
            let place = match self.is_system {
                false => Some(self.region.base.wrapping_add_signed(offset) | u64::from(slot)),
                true => self.region.nodes[0].at(offset, slot),
            };
            match place {
                None => {
                    self.leave_for(target, slot);
                    self.answer(NEXT_BLOCK);
                }
                Some(place) => {
                    let link = self.constant((Links::index(place) << Links::SIZE_LOG2) as i64);
                    let place = self.constant(place.cast_signed());
                    self.follow((place, link), Some((target, slot)));
                }
            }
        }
    }

    /// Goes on with the unit at an address, if there is one. Where nobody `is_there` yet, the processor is put there.
    pub(super) fn follow_to(&mut self, target: Value, is_there: bool) {
        if self.gathering.is_some() {
            return match is_there {
                true => self.answer(NEXT_BLOCK),
                false => self.leave_by_branch(target),
            };
        }
        let place = match self.entry.base {
            None => target,
            Some(base) => {
                let root = &self.region.nodes[0];
                let (first, end) = root.page;
                let distance = self.constant((root.place & !15).cast_signed());
                let distance = self.ins().isub(distance, base);
                let place = self.ins().iadd(target, distance);
                let within = self.ins().iadd_imm_s(place, first.wrapping_neg().cast_signed());
                let size = self.constant(end.wrapping_sub(first).cast_signed());
                let is_elsewhere = self.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, within, size);
                self.aside(is_elsewhere, |emitter| {
                    if !is_there {
                        emitter.leave_for(target, 0);
                    }
                    emitter.answer(NEXT_BLOCK);
                });
                place
            }
        };
        let index = self.code().link_of(place);
        self.follow((place, index), (!is_there).then_some((target, 0)));
    }

    /// Goes on with the unit at a place, whose link is so many bytes behind the first one, if there is one and nothing
    /// wants the processor, for which units of programs look when they are entered. The processor is there, or has to
    /// be put to an address and slot first: units of programs know where they are.
    fn follow(&mut self, (place, link): (Value, Value), goal: Option<(Value, u8)>) {
        let stop = self.builder.create_block();
        self.builder.set_cold_block(stop);
        if let Some((target, slot)) = goal.filter(|_| self.is_system) {
            self.leave_for(target, slot);
        }
        let mut wanted = Vec::new();
        if self.is_system {
            wanted.extend([Word::Attention, Word::Interrupts].map(|word| self.flag(word)));
        }
        if self.is_system || self.is_pending {
            wanted.push(self.load_state(I32, layout::PENDING));
        }
        for wanted in wanted {
            self.unless(wanted, stop);
        }
        let unit = self.entry.unit_signature;
        self.code().follow((place, link), unit, stop);
        self.begin(stop);
        if let Some((target, slot)) = goal.filter(|_| !self.is_system) {
            self.leave_for(target, slot);
        }
        self.answer(NEXT_BLOCK);
    }
}
