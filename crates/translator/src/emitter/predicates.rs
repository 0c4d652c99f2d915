//! Predicates whose truth values are at hand, and the word of all predicates that follows them late.
//!
//! Most predicates are asked for by the next branch and written again soon. So a comparison writes truth values; they
//! go into the word where something else may look at it.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::FunctionBuilder;
use sidestep_ia64::registers::frame::ROTATING_PREDICATES;

use super::Emitter;
use crate::slots::Slot;

const COUNT: usize = 64;
/// The first predicate that rotates: of the first stage of a pipelined loop.
pub const FIRST_ROTATING_PREDICATE: u32 = COUNT as u32 - ROTATING_PREDICATES;

/// Predicates that the word does not have yet: those of one mask where a truth value is true, of the other where not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Late {
    result: Value,
    /// Its opposite, if that is at hand.
    opposite: Option<Value>,
    /// What it is, behind a branch that has told.
    decided: Option<bool>,
    if_true: u64,
    if_false: u64,
    covered: u64,
}

/// What is known of the predicates.
#[derive(Clone, Debug)]
pub struct Predicates {
    known: [Option<Value>; COUNT],
    late: Vec<Late>,
}

impl Default for Predicates {
    fn default() -> Predicates {
        Predicates {
            known: [None; COUNT],
            late: Vec::new(),
        }
    }
}

impl Predicates {
    /// The truth value of a predicate, if it is at hand.
    pub fn known(&self, predicate: u8) -> Option<Value> {
        self.known[usize::from(predicate & 63)]
    }

    /// Notes the truth value of a predicate that the word has.
    pub fn note(&mut self, predicate: u8, value: Value) {
        self.known[usize::from(predicate & 63)] = Some(value);
    }

    /// Writes a predicate; the first one stays true.
    pub fn write(&mut self, predicate: u8, value: Value) {
        self.write_late((value, None), 1 << (predicate & 63) & !1, 0);
        if predicate != 0 {
            self.note(predicate, value);
        }
    }

    /// Writes a predicate and another one, which is its opposite.
    pub fn write_pair(&mut self, (predicate, value): (u8, Value), (other, opposite): (u8, Value)) {
        let results = (value, Some(opposite));
        self.write_late(results, 1 << (predicate & 63) & !1, 1 << (other & 63) & !1);
        for (predicate, value) in [(predicate, value), (other, opposite)] {
            if predicate != 0 {
                self.note(predicate, value);
            }
        }
    }

    fn write_late(&mut self, (result, opposite): (Value, Option<Value>), if_true: u64, if_false: u64) {
        let covered = if_true | if_false;
        for late in &mut self.late {
            late.covered &= !covered;
            late.if_true &= !covered;
            late.if_false &= !covered;
        }
        self.late.retain(|late| late.covered != 0);
        if covered != 0 {
            self.late.push(Late {
                result,
                opposite,
                decided: None,
                if_true,
                if_false,
                covered,
            });
        }
    }

    /// Notes what a truth value is where control comes from a branch that has looked at it.
    pub fn decide(&mut self, value: Value, is_true: bool) {
        for late in &mut self.late {
            if late.result == value {
                late.decided = Some(is_true);
            } else if late.opposite == Some(value) {
                late.decided = Some(!is_true);
            }
        }
    }

    /// Whether the word has everything.
    pub fn is_word_complete(&self) -> bool {
        self.late.is_empty()
    }

    /// Whether the word lacks the same as at another place.
    pub fn lacks_what(&self, other: &Predicates) -> bool {
        self.late == other.late
    }

    /// The complete word, of one that lacks what was written late.
    pub fn completed(&self, builder: &mut FunctionBuilder, word: Value) -> Value {
        let covered = self.late.iter().fold(0, |covered, late| covered | late.covered);
        let mut word = builder.ins().band_imm_s(word, (!covered).cast_signed());
        let decided = self.late.iter().filter_map(|late| match late.decided? {
            true => Some(late.if_true),
            false => Some(late.if_false),
        });
        let decided = decided.fold(0, |decided, set| decided | set);
        if decided != 0 {
            word = builder.ins().bor_imm_s(word, decided.cast_signed());
        }
        for late in self.late.iter().filter(|late| late.decided.is_none()) {
            let [set, clear] =
                [late.if_true, late.if_false].map(|mask| builder.ins().iconst(I64, mask.cast_signed()));
            let bits = builder.ins().select(late.result, set, clear);
            word = builder.ins().bor(word, bits);
        }
        word
    }

    /// Notes that the word has everything.
    pub fn note_completed(&mut self) {
        self.late.clear();
    }
}

impl Emitter<'_, '_> {
    /// Whether a predicate is true: a value that is zero or not. `None` for one that always is.
    pub fn predicate(&mut self, predicate: u8) -> Option<Value> {
        if predicate == 0 {
            return None;
        }
        if let Some(known) = self.known.predicates.known(predicate) {
            return Some(known);
        }
        let word = self.get(Slot::PREDICATES);
        let bit = self.constant(1i64 << predicate);
        let bit = self.ins().band(word, bit);
        let value = self.ins().icmp_imm_u(IntCC::NotEqual, bit, 0);
        self.known.predicates.note(predicate, value);
        Some(value)
    }

    /// Writes a predicate's truth value.
    pub fn set_predicate(&mut self, predicate: u8, value: Value) {
        self.known.predicates.write(predicate, value);
    }

    /// Writes a predicate's truth value, and to another one its opposite.
    pub fn set_complementary(&mut self, predicate: u8, other: u8, value: Value) {
        let opposite = self.not(value);
        self.known
            .predicates
            .write_pair((predicate, value), (other, opposite));
    }

    /// The word of all predicates.
    pub fn predicate_word(&mut self) -> Value {
        if let Some(word) = self.complete_word() {
            self.known.predicates.note_completed();
            self.set(Slot::PREDICATES, word);
        }
        self.get(Slot::PREDICATES)
    }

    /// Replaces the word of predicates, which is complete, where a predicate is true.
    pub fn replace_predicates(&mut self, predicate: u8, written: Value, word: Value) {
        let replaced = match self.predicate(predicate) {
            None => written,
            Some(condition) => self.ins().select(condition, written, word),
        };
        self.known.predicates = Predicates::default();
        self.set(Slot::PREDICATES, replaced);
    }
}
