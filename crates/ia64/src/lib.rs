//! The Itanium (IA-64) architecture, correct with no notion of cost.
//!
//! - [`operations`](self): the table of operations, from which the columns of every module follow.
//! - [`encoding`]: bundles, templates and instructions, as tables from which decoder and disassembler follow.
//! - [`registers`]: the register files; [`float`]: the 82-bit floating-point format and its arithmetic, as pure
//!   functions.
//! - [`memory`]: how a processor reaches guest memory; [`mmu`]: translations and page tables; [`alat`]: advanced loads.
//! - [`fault`]: interruptions as values; [`interrupts`]: those from outside.
//! - `processor`: the whole, and what is written as its methods. There [`register_stack`] is the register stack engine,
//!   `semantics` what each operation does, by family, [`execution`] the blocks of decoded instructions and the loop
//!   that runs them, for back ends and observers, [`layout`] where the hot state lies.
//!
//! A [`Processor`] holds the state of one CPU. Give it an [`AddressSpace`], set its registers, and call
//! [`Processor::run`]; handle the [`Exit`] it returns, and call it again. There is no global state: any
//! number of machines can live in one program. [`Processor::save`] gives a processor's whole state as data, with which
//! [`Processor::restore`] goes on elsewhere.
//!
#![doc = include_str!("../README.md")]

pub mod address;
pub mod alat;
pub mod encoding;
pub mod fault;
pub mod float;
pub mod interrupts;
pub mod memory;
pub mod mmu;
mod operations;
mod processor;
pub mod registers;

pub use address::{PhysicalAddress, VirtualAddress};
pub use fault::{Access, Fault, FaultKind};
pub use memory::{AddressSpace, HostPage, MemoryRegion, PhysicalMemory, Refusal, Windows};
pub use processor::execution::HOST_PAGE_LOG2;
pub use processor::{
    Driver, Exit, FruitlessInterruptions, Gate, IDENTIFICATION, InvalidState, LightCalls, Processor,
    ProcessorState,
};
pub use processor::{Raised, Reference, SystemState, TranslationSide, execution, layout, register_stack};
