//! The opcode table's rows.
//!
//! One [`Form`] is one opcode form of the manual: which bits identify it, which operands it has, what it does and
//! how it is written. The rows are in [`forms`](super::forms), one file per class; decoder, encoder and
//! disassembler only read them.

use std::sync::LazyLock;

use super::decision_tree::Rows;
use super::forms;
use super::instruction::UnitClass;
use super::operand::{Field, Operand, ones};
use super::operation::Operation;

/// A completer that does not change the result: a suffix of the mnemonic for each value of a field.
#[derive(Debug)]
pub struct Hint {
    /// The bits, lowest part first.
    pub fields: &'static [Field],
    /// The suffix for each value, without its dot; empty for none. `None` is a reserved value, which changes
    /// nothing but has no spelling.
    pub suffixes: &'static [Option<&'static str>],
}

impl Hint {
    /// The bits of the slot the hint occupies.
    pub fn mask(&self) -> u64 {
        self.fields
            .iter()
            .fold(0, |mask, field| mask | ones(field.bits) << field.shift)
    }

    /// The hint's value in a slot.
    pub fn value(&self, slot: u64) -> usize {
        let (mut value, mut width) = (0, 0);
        for field in self.fields {
            value |= (slot >> field.shift & ones(field.bits)) << width;
            width += field.bits;
        }
        value as usize
    }

    /// The suffix in a slot; `None` when the value is reserved.
    pub fn suffix(&self, slot: u64) -> Option<&'static str> {
        self.suffixes[self.value(slot)]
    }

    /// The bits of a slot for a value.
    pub fn bits(&self, value: usize) -> u64 {
        let (mut bits, mut rest) = (0, value as u64);
        for field in self.fields {
            bits |= (rest & ones(field.bits)) << field.shift;
            rest >>= field.bits;
        }
        bits
    }
}

/// A condition on operand values under which an alias is used, beyond fixed bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Only the fixed bits decide.
    None,
    /// `f2` and `f3` are the same register.
    SameSources,
    /// The field reaches the end of the register: length + position = 64.
    ToTheEnd,
}

/// Another spelling of a form for some of its operand values (a pseudo-op), which disassembly prefers.
#[derive(Debug)]
pub struct Alias {
    /// The mnemonic without hints.
    pub mnemonic: String,
    /// The fixed bits, beyond those of the form.
    pub value: u64,
    /// Which bits are fixed.
    pub mask: u64,
    /// What else must hold.
    pub condition: Condition,
    /// How many of the form's hints the spelling leaves out, from the first.
    pub skipped_hints: usize,
    /// How many of the operands come before the equals sign.
    pub outputs: usize,
    /// The operands as written.
    pub operands: &'static [Operand],
}

/// One row of the opcode table.
#[derive(Debug)]
pub struct Form {
    /// The mnemonic with the semantic completers, without hints.
    pub mnemonic: String,
    /// The class.
    pub class: UnitClass,
    /// The manual's name of the format, such as `A1` or `M17`.
    pub format: &'static str,
    /// The values of the fixed bits.
    pub value: u64,
    /// The fixed bits.
    pub mask: u64,
    /// Whether assemblers know the form; otherwise it is written as data.
    pub has_spelling: bool,
    /// Whether the qualifying predicate field has its meaning.
    pub predicated: bool,
    /// How many of the operands come before the equals sign.
    pub outputs: usize,
    /// The operands as written.
    pub operands: &'static [Operand],
    /// Whether the general register `r1` is among the outputs.
    pub has_general_target: bool,
    /// The hints, in the order of their suffixes.
    pub hints: &'static [Hint],
    /// Other spellings; the first one that applies is preferred.
    pub aliases: Vec<Alias>,
    /// What the form does.
    pub operation: Operation,
    /// The operand whose value is the instruction's immediate.
    pub immediate: Option<Operand>,
    /// Whether the immediate is a displacement in bytes from the bundle.
    pub is_relative: bool,
    /// The operand that gives the bit position of a field.
    pub position: Option<Operand>,
    /// The operand that gives the length of a field.
    pub length: Option<Operand>,
}

/// The number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FormIndex(u16);

impl FormIndex {
    /// The row.
    pub fn form(self) -> &'static Form {
        &TABLE.forms[self.0 as usize]
    }
}

struct Table {
    forms: Vec<Form>,
    classes: [Rows; 6],
}

/// The rows and, per class, what finds them: constant data, built on first use.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let forms = forms::all();
    use UnitClass::{A, B, F, I, LX, M};
    let classes = [A, I, M, B, F, LX].map(|class| Rows::of(&forms, class));
    Table { forms, classes }
});

/// All rows of the opcode table.
pub fn all_forms() -> impl Iterator<Item = (FormIndex, &'static Form)> {
    TABLE
        .forms
        .iter()
        .enumerate()
        .map(|(index, form)| (FormIndex(index as u16), form))
}

/// The row of a class that matches a slot.
pub(super) fn find(class: UnitClass, slot: u64) -> Option<FormIndex> {
    TABLE.classes[class as usize].find(slot).map(FormIndex)
}
