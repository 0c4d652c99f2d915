//! Bringing memory up to date with what is late there: predicates, counts, and in tight loops registers.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::layout;

use super::Emitter;
use crate::slots::{Slot, Slots};

impl Emitter<'_, '_> {
    /// Brings memory up to date.
    pub(super) fn complete(&mut self) {
        self.predicate_word_if_late();
        self.store_late();
        (self.known.late, self.known.buffered) = (Slots::NONE, None);
        self.known.floats.note_complete();
        self.complete_counts();
        (self.known.retired, self.known.completed) = (0, None);
        self.known.held.remove(Slot::RETIRED);
    }

    pub(super) fn predicate_word_if_late(&mut self) {
        if !self.known.predicates.is_word_complete() {
            self.predicate_word();
        }
    }

    /// Brings memory up to date in a block that stands apart, and leaves what is known as it is. Control does not come
    /// back from it.
    pub(super) fn complete_aside(&mut self) {
        self.complete_registers();
        self.complete_counts();
    }

    /// Brings the registers in memory up to date, and leaves what is known as it is.
    pub(super) fn complete_registers(&mut self) {
        self.store_late();
        if let Some(word) = self.complete_word() {
            self.store_slot(word, Slot::PREDICATES);
        }
    }

    /// Stores what memory lacks, as it was before the current instruction.
    pub(super) fn store_late(&mut self) {
        for slot in self.known.late.iter() {
            debug_assert!(self.known.held.contains(slot), "memory lacks it");
            let value = self.get(slot);
            self.store_slot(value, slot);
        }
        if let Some((slot, value)) = self.known.before_settling {
            self.store_slot(value, slot);
        }
        let late: Vec<(u8, Value)> = self.known.floats.late().collect();
        for (register, value) in late {
            (self.functions.store_late)(self, register, value);
        }
        self.store_rotating();
    }

    /// Has everything in variables that a tight loop has there where its nodes begin, wherever control comes from.
    pub(super) fn gather_late(&mut self) {
        self.predicate_word_if_late();
        if let Some(rotation) = self.tight_loop().and_then(|tight_loop| tight_loop.rotation)
            && self.known.buffered.is_none()
        {
            self.load_rotating(rotation);
        }
        let before = self.get(Slot::RETIRED);
        let more = std::mem::take(&mut self.known.retired).cast_signed();
        let retired = self.ins().iadd_imm_s(before, more);
        self.set(Slot::RETIRED, retired);
        if let Some(offset) = self.known.completed.take() {
            let last = self.address_from_root(offset);
            self.store_state(last, layout::COMPLETED);
        }
    }

    /// Stores where the last node ended and how many instructions have retired, as far as memory does not have it.
    pub(super) fn complete_counts(&mut self) {
        if let Some(offset) = self.known.completed {
            let last = self.address_from_root(offset);
            self.store_state(last, layout::COMPLETED);
        }
        if self.known.retired > 0 {
            let before = self.load_state(I64, layout::RETIRED);
            let more = self.known.retired.cast_signed();
            let retired = self.ins().iadd_imm_s(before, more);
            self.store_state(retired, layout::RETIRED);
        }
    }

    /// Whether memory has everything.
    pub(super) fn is_complete(&self) -> bool {
        let known = &self.known;
        known.predicates.is_word_complete()
            && known.retired == 0
            && known.completed.is_none()
            && known.late == Slots::NONE
            && known.buffered.is_none()
            && known.floats.are_complete()
    }

    /// The complete word of predicates, if its slot lacks some.
    pub(super) fn complete_word(&mut self) -> Option<Value> {
        if self.known.predicates.is_word_complete() {
            return None;
        }
        let word = self.get(Slot::PREDICATES);
        Some(self.known.predicates.completed(&mut self.builder, word))
    }
}
