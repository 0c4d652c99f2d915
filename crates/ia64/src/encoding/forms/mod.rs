//! The rows of the opcode table, one file per class or family (manual, volume 3, chapter 4).

// The files of rows are tables: a row is a line.
#[rustfmt::skip]
mod branch;
#[rustfmt::skip]
mod compare;
#[rustfmt::skip]
mod float_arithmetic;
#[rustfmt::skip]
mod float_other;
#[rustfmt::skip]
mod integer;
#[rustfmt::skip]
mod long;
#[rustfmt::skip]
mod memory;
#[rustfmt::skip]
mod parallel;
#[rustfmt::skip]
mod shift;
#[rustfmt::skip]
mod system;

use super::form::{Alias, Condition, Form, Hint};
use super::instruction::UnitClass;
use super::operand::{Field, Operand, ones};
use super::operation::Operation;

/// Rows for which there is room from the start: a table that grows is copied, at every program's start.
const ROWS_MAX: usize = 1280;

/// All rows.
pub(super) fn all() -> Vec<Form> {
    let mut forms = Vec::with_capacity(ROWS_MAX);
    integer::rows(&mut forms);
    compare::rows(&mut forms);
    parallel::rows(&mut forms);
    shift::rows(&mut forms);
    memory::rows(&mut forms);
    system::rows(&mut forms);
    branch::rows(&mut forms);
    float_arithmetic::rows(&mut forms);
    float_other::rows(&mut forms);
    long::rows(&mut forms);
    debug_assert!(forms.len() <= ROWS_MAX, "{} rows", forms.len());
    forms
}

/// The fixed bits of a row.
#[derive(Clone, Copy)]
struct Bits {
    value: u64,
    mask: u64,
}

/// An opcode field, named in each file as the manual names it there.
const fn field(shift: u8, bits: u8) -> Field {
    Field { shift, bits }
}

/// The major opcode, bits 37 to 40.
const fn major(value: u64) -> Bits {
    Bits { value: 0, mask: 0 }.set(field(37, 4), value)
}

impl Bits {
    /// Fixes one more field.
    const fn set(self, field: Field, value: u64) -> Bits {
        assert!(
            value <= ones(field.bits),
            "an opcode field's value fits the field"
        );
        Bits {
            value: self.value | value << field.shift,
            mask: self.mask | ones(field.bits) << field.shift,
        }
    }
}

/// A row: class, format, mnemonic, fixed bits, number of outputs, operands, operation.
fn form(
    (class, format): (UnitClass, &'static str),
    mnemonic: impl Into<String>,
    bits: Bits,
    outputs: usize,
    operands: &'static [Operand],
    operation: Operation,
) -> Form {
    let find = |is_meant: fn(Operand) -> bool| operands.iter().copied().find(|operand| is_meant(*operand));
    let immediate = find(Operand::is_immediate);
    Form {
        mnemonic: mnemonic.into(),
        class,
        format,
        value: bits.value,
        mask: bits.mask,
        has_spelling: true,
        predicated: true,
        outputs,
        operands,
        has_general_target: operands[..outputs].contains(&Operand::R1),
        hints: &[],
        aliases: Vec::new(),
        operation,
        immediate,
        is_relative: immediate.is_some_and(Operand::is_address),
        position: find(Operand::is_position),
        length: find(Operand::is_length),
    }
}

impl Form {
    /// The qualifying predicate field means nothing: the instruction always executes.
    fn unpredicated(self) -> Form {
        Form {
            predicated: false,
            ..self
        }
    }

    /// No assembler writes the form.
    fn unspelt(self) -> Form {
        Form {
            has_spelling: false,
            ..self
        }
    }

    /// The form has hints.
    fn hints(self, hints: &'static [Hint]) -> Form {
        Form { hints, ..self }
    }

    /// The form has another spelling, which comes after those it has.
    fn alias(
        mut self,
        mnemonic: impl Into<String>,
        bits: Bits,
        condition: Condition,
        outputs: usize,
        operands: &'static [Operand],
    ) -> Form {
        let (value, mask) = (bits.value, bits.mask);
        let mnemonic = mnemonic.into();
        self.aliases.push(Alias {
            mnemonic,
            value,
            mask,
            condition,
            skipped_hints: 0,
            outputs,
            operands,
        });
        self
    }

    /// The last alias leaves out the first hint.
    fn without_first_hint(mut self) -> Form {
        self.aliases
            .last_mut()
            .expect("a form with an alias")
            .skipped_hints = 1;
        self
    }
}
