//! The Itanium (IA-64) architecture, correct with no notion of cost.
//!
//! - [`operations`](self): the table of operations, from which the columns of every module follow.
//! - [`encoding`]: bundles, templates and instructions, as tables from which decoder and disassembler follow.
//! - [`registers`] and [`register_stack`]: the register files and the register stack engine.
//! - [`float`]: the 82-bit floating-point format and its arithmetic, as pure functions.
//! - [`memory`]: how a processor reaches guest memory; [`alat`]: advanced loads.
//! - [`semantics`](self): what each operation does, by family.
//! - [`execution`]: blocks of decoded instructions and the loop that runs them; traces for observers.
//! - [`layout`]: where a processor's hot state lies, for back ends that emit code for the host.
//! - [`fault`]: interruptions as values.
//!
//! A [`Processor`] holds the state of one CPU. Give it an [`AddressSpace`], set its registers, and call
//! [`Processor::run`]; handle the [`Exit`] it returns, and call it again. There is no global state: any
//! number of machines can live in one program. [`Processor::save`] gives a processor's whole state as data, with which
//! [`Processor::restore`] goes on elsewhere.
//!
#![doc = include_str!("../README.md")]

pub mod address;
pub mod alat;
mod breakpoints;
mod debugging;
pub mod encoding;
mod environment;
pub mod execution;
pub mod fault;
pub mod float;
mod interruption;
pub mod interrupts;
pub mod layout;
pub mod memory;
pub mod mmu;
mod operations;
mod processor;
pub mod register_stack;
pub mod registers;
mod semantics;
mod snapshot;
mod virtualization;

pub use address::{PhysicalAddress, VirtualAddress};
pub use execution::{Driver, Exit};
pub use fault::{Access, Fault, FaultKind};
pub use memory::{AddressSpace, HostPage, MemoryRegion, PhysicalMemory, Refusal};
pub use processor::{Processor, Raised};
pub use semantics::IDENTIFICATION;
pub use snapshot::{InvalidState, ProcessorState};
pub use virtualization::{Reference, SystemState, TranslationSide};
