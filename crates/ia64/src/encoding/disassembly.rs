//! Assembly text, as GNU binutils writes it.
//!
//! An instruction is written by the first alias of its form whose condition holds, otherwise by the form itself:
//! mnemonic, suffixes of the hints, operands with the outputs before the equals sign.

use std::fmt;

use super::bundle::Bundle;
use super::decoder::DecodedSlot;
use super::form::{Alias, Condition, Form};
use super::instruction::Instruction;
use super::operand::Operand;

/// Names addresses in disassembled text, such as the targets of branches.
pub trait Symbols {
    /// Writes what stands for the address: digits, and a symbol where there is one.
    fn write(&self, address: u64, out: &mut dyn fmt::Write) -> fmt::Result;

    /// A symbol with the distance from it; empty where nothing names the address.
    fn describe(&self, address: u64) -> String {
        let _ = address;
        String::new()
    }
}

/// No symbols: an address is `0x` and its hexadecimal digits.
pub struct NoSymbols;

impl Symbols for NoSymbols {
    fn write(&self, address: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{address:#x}")
    }
}

impl Alias {
    /// Whether the alias can stand for a slot of its form.
    fn applies(&self, form: &Form, slot: u64) -> bool {
        let value = |operand: Operand| operand.extract(slot, 0);
        slot & self.mask == self.value
            && match self.condition {
                Condition::None => true,
                Condition::SameSources => value(Operand::F2) == value(Operand::F3),
                Condition::ToTheEnd => {
                    let sum = form.position.map_or(0, value) + form.length.map_or(0, value);
                    sum == 64
                }
            }
    }
}

impl Instruction {
    /// Writes the instruction with its predicate, without a stop; `address` is that of its bundle.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        &self,
        address: u64,
        long: u64,
        symbols: &dyn Symbols,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        let form = self.form();
        match self.predicate() {
            0 => out.write_str("      ")?,
            predicate => write!(out, "(p{predicate:02}) ")?,
        }
        let alias = form.aliases.iter().find(|alias| alias.applies(form, self.slot));
        let (mnemonic, skipped_hints, outputs, operands) = match alias {
            Some(alias) => (
                &alias.mnemonic,
                alias.skipped_hints,
                alias.outputs,
                alias.operands,
            ),
            None => (&form.mnemonic, 0, form.outputs, form.operands),
        };
        out.write_str(mnemonic)?;
        for hint in &form.hints[skipped_hints..] {
            match hint.suffix(self.slot) {
                Some("") | None => {}
                Some(suffix) => write!(out, ".{suffix}")?,
            }
        }
        for (index, operand) in operands.iter().enumerate() {
            let separator = match index {
                0 => " ",
                _ if index == outputs => "=",
                _ => ",",
            };
            out.write_str(separator)?;
            operand.write(operand.extract(self.slot, long), address, symbols, out)?;
        }
        Ok(())
    }
}

impl DecodedSlot {
    /// Writes the slot's line: instruction or data, and the stop. `bundle` is the slot's and `address` its own.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        &self,
        bundle: Bundle,
        address: u64,
        symbols: &dyn Symbols,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        match self.instruction {
            Ok(instruction) if instruction.has_spelling() => {
                instruction.write(address, bundle.slot(1), symbols, out)?;
                out.write_str(if self.stop { ";;" } else { "" })
            }
            // As C's printf writes an alternate form: no prefix before zero.
            _ => match self.bits(bundle) {
                0 => out.write_str("      data8 00000000000"),
                bits => write!(out, "      data8 {bits:#011x}"),
            },
        }
    }

    /// The slot's line as a string, see [`DecodedSlot::write`].
    pub fn text(&self, bundle: Bundle, address: u64, symbols: &dyn Symbols) -> String {
        let mut text = String::new();
        self.write(bundle, address, symbols, &mut text)
            .expect("writing to a string succeeds");
        text
    }

    /// The bits of the slot that is decoded: of a long instruction, those of slot 2.
    fn bits(&self, bundle: Bundle) -> u64 {
        let long = bundle.template().is_long() && self.slot == 1;
        bundle.slot(if long { 2 } else { self.slot })
    }
}
