//! Running instructions: decode once into cached blocks, then execute the blocks.
//!
//! ```text
//!   bundles ─► DecodedBlock ─► Backend::translate ─► Block { code, what the observer knows } ─► Backend::enter
//!                              (Interpreter, ...)      kept by host address, by kind              tells the Observer
//! ```
//!
//! - `block`: runs of bundles decoded together, and the caches that find them; [`Detail`] and `kind`: what they hold.
//! - `backend`: what executes a block: the [`Interpreter`], or another [`Backend`]; `operation`: the form that the
//!   interpreter executes.
//! - `observer`: who is told of everything, as values.
//! - `gathering`: what a block's instructions did, for an observer that takes them together; `together`: how blocks are
//!   executed so.
//! - `code_page`: the pages that instructions are fetched from.
//! - `trace`: the line of an instruction in a trace.
//! - `run`: the loop, and why it ends; [`driver`]: who calls it; [`guard`]: a debugger's breakpoints and steps.

mod backend;
mod block;
mod code_page;
pub mod driver;
mod gathering;
pub mod guard;
mod kind;
mod observer;
mod operation;
mod run;
mod together;
mod trace;

pub use backend::{Backend, BlockInstruction, Context, DecodedBlock, Interpreter, Progress, Running};
pub(crate) use block::{BLOCK_SIZE_MAX, Forget};
pub use block::{BlockCache, FetchedInstruction, HOST_PAGE_LOG2, SHORT_FOR};
pub(crate) use code_page::CodeProperties;
pub use driver::{Driver, Drivers, Observed, Untimed};
pub use gathering::{GATHERED, Gathered, Together};
pub use kind::Detail;
pub use observer::{
    Dynamic, Event, Frame, Interruption, Observer, PERFORMANCE_REGISTERS, PerformanceRegisters, Permission,
    Place, Registers, State, Translation, UNCACHEABLE, Untranslated,
};
pub use operation::{Execute, Flow, MicroOperation, Step};
pub use run::Exit;
pub use together::Left;
pub use trace::TracedInstruction;
