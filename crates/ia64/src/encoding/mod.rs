//! Bundles, templates and instruction formats, as tables from which decoder and disassembler follow.
//!
//! A [`Bundle`] is 16 bytes: a [`Template`] and three slots. [`decode`] turns a slot into an [`Instruction`],
//! whose [`Operation`] says what it does; registers and immediates are read from it by the manual's field names.
//!
//! Everything rests on two tables: [`Form`], one row per opcode form, and [`Operand`], one row per operand field.
//! From them follow
//! - decoding: a decision tree over the rows' fixed bits, built once;
//! - encoding: [`Form::encode`], the inverse, for tests and generators;
//! - text: [`Instruction::write`], as GNU binutils writes it, with the pseudo-operations it prefers;
//! - dependencies: [`Instruction::sources`] and [`Instruction::destinations`];
//! - the reference page: [`write_reference`].
//!
//! To add an instruction: a row in `operations` if it does something new, and one in `forms`; a
//! new field needs a row in [`Operand`].
//!
//! "The manual" is the Intel Itanium Architecture Software Developer's Manual, revision 2.3.

mod access;
mod bundle;
mod completers;
mod decision_tree;
mod decoder;
mod dependencies;
mod disassembly;
mod effects;
mod encoder;
mod form;
mod forms;
mod instruction;
mod operand;
mod operation;
mod reference;

pub use access::{MemoryAccess, MemoryAccessKind};
pub use bundle::{Bundle, Template, Unit};
pub use completers::*;
pub use decoder::{DecodedSlot, Illegal, decode};
pub use dependencies::{Resource, Resources};
pub use disassembly::{NoSymbols, Symbols};
pub use effects::Effects;
pub use encoder::{EncodeError, Encoded};
pub use form::{Alias, Condition, Form, FormIndex, Hint, all_forms};
pub use instruction::{Instruction, UnitClass};
pub use operand::{
    Coding, Description, Field, Notation, Operand, application_register_name, control_register_name,
};
pub use operation::{Opcode, Operation};
pub use reference::write_reference;
