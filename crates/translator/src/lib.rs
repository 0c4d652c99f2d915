//! Translates hot Itanium code into code for the host: a back end of the processor, through Cranelift.

mod branch;
mod code_memory;
mod compare;
mod compiler;
mod emitter;
mod float;
mod integer;
mod lock_step;
mod memory;
mod moves;
mod operations;
mod region;
mod slots;
mod statistics;
mod translator;
mod unit;

pub use compiler::CompilerError;
pub use lock_step::LockStep;
pub use statistics::Statistics;
pub use translator::{Settings, Translator, TranslatorError};
