//! The FUCE assembler.
//!
//! A program is lines of `label: instruction operands`. Three sections: `.text` (instructions, loaded at address 0),
//! `.data` (the kernel's data) and `.user` (what user threads may access). Directives: `.word`, `.half`, `.byte`,
//! `.ascii`, `.asciz`, `.space`, `.align`, `.entry label`, `.register name, rN`, `.equ name, value`, `.include "file"`,
//! `.macro name parameters` to `.endm`, `.if condition`, `.else`, `.endif`. Comments begin with `#` or `//`.
//!
//! The assembler defines `user_start`, `user_end` and `program_end`. All errors of a program are reported together,
//! each with file, line, column and what was expected.

mod diagnostic;
mod expand;
mod expression;
mod layout;
mod lexer;
mod listing;
mod statement;

use std::collections::BTreeMap;

pub use diagnostic::{Diagnostic, Diagnostics, Place};
pub use expand::Include;
pub use statement::PSEUDO;

use crate::image::Image;
use expand::Expander;
use layout::Program;
use lexer::At;
use statement::Known;

/// Errors reported at once.
const DIAGNOSTICS_MAX: usize = 20;

/// An assembled program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembly {
    /// What the chip loads.
    pub image: Image,
    /// Addresses and bytes beside the source lines.
    pub listing: String,
}

/// Assembles a program from one file and what it includes.
///
/// `constants` are what the command line defines; `include` gives the text of an included file.
///
/// # Errors
/// Every error found, up to twenty.
pub fn assemble(
    name: &str,
    source: &str,
    constants: &BTreeMap<String, i64>,
    include: &Include,
) -> Result<Assembly, Diagnostics> {
    let mut expander = Expander::new(name, source, constants.clone(), include);
    let mut program = Program::default();
    let mut registers = BTreeMap::new();
    let mut errors = Vec::new();
    while let Some(line) = expander.next_line() {
        if errors.len() >= DIAGNOSTICS_MAX {
            break;
        }
        let plain = match line {
            Ok(plain) => plain,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let known = Known {
            registers: &registers,
            constants: &expander.constants,
        };
        let length = plain.place.text.chars().count();
        let outcome = statement::parse(&plain.tokens, length, &known)
            .and_then(|statement| program.add(&plain.place, statement, &expander.constants, &mut registers));
        if let Err(At { column, message }) = outcome {
            errors.push(Diagnostic {
                place: plain.place,
                column,
                message,
            });
        }
    }
    if !errors.is_empty() {
        return Err(Diagnostics(errors));
    }
    program
        .finish(&expander.constants, DIAGNOSTICS_MAX)
        .map_err(Diagnostics)
}

/// Assembles a program that includes nothing.
///
/// # Errors
/// As [`assemble`].
pub fn assemble_text(name: &str, source: &str) -> Result<Assembly, Diagnostics> {
    assemble(name, source, &BTreeMap::new(), &|_| None)
}
