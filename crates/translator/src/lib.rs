//! Translates hot Itanium code into code for the host: a back end of the processor, through Cranelift.
//!
//! - [`Translator`]: the back end: counts how often blocks are entered and has hot ones translated; [`Settings`] and
//!   [`Statistics`] of it. [`LockStep`] compares it with the interpreter while a program runs.
//! - `node`: a block; `region`: which of them are translated together, and what loops keep in variables; `slots`: what
//!   variables stand for.
//! - `operations`: the column over the table of operations: which are emitted in line, and by what; `integer`,
//!   `compare`, `memory`, `advanced`, `float`, `moves`, `stack`, `branch` and `call` are the families; `frames`: what
//!   calls and returns make of the frame.
//! - `emitter`: what is known of the guest's state at a place in emitted code, and how that code meets the processor;
//!   `compiler`: one function a region.
//! - [`resumption`]: where code goes on that touched memory which it may not; [`catch_exceptions`]: how it learns of
//!   numbers that are not usual.
//! - [`Background`]: a host thread that translates while guests go on.
//! - `links`: which unit follows where another was left, `chain`: what they share; `unit`: emitted code and what makes
//!   it invalid; `code_memory`: where it stands; [`PerfMap`]: what it is called.
//!
//! ```text
//!   blocks ─► region ─► operations ─► emitter ─► compiler (Cranelift) ─► code memory ─► unit ─► Backend::enter
//! ```
//!
#![doc = include_str!("../README.md")]

mod advanced;
mod background;
mod branch;
mod call;
mod chain;
mod checked_loads;
mod code_memory;
mod compare;
mod compiler;
mod division;
mod emitter;
mod exceptions;
mod float;
mod frames;
mod held;
mod integer;
mod links;
mod lock_step;
mod memory;
mod moves;
mod node;
mod operations;
mod parallel;
mod perf_map;
mod region;
mod resumption;
mod slots;
mod stack;
mod statistics;
mod tight_loops;
mod translator;
mod unit;

pub use background::Background;
pub use compiler::CompilerError;
pub use exceptions::{catch_exceptions, mask_exceptions, permit_exceptions};
pub use lock_step::LockStep;
pub use perf_map::PerfMap;
pub use resumption::resumption;
pub use statistics::Statistics;
pub use translator::{Settings, Translator, TranslatorError};
