//! Running instructions: decode once into cached blocks, then execute the blocks.
//!
//! - `operation`: a decoded instruction in the form the loop executes.
//! - `block`: runs of bundles decoded together, and the cache that finds them.
//! - `code_page`: the pages that instructions are fetched from.
//! - `run`: the loop, and why it ends.
//! - `trace`: the loop that shows every retired instruction to an observer.

mod block;
mod code_page;
mod operation;
mod run;
mod trace;

pub use block::BlockCache;
pub(crate) use block::HOST_PAGE_LOG2;
pub(crate) use code_page::CodeProperties;
pub use operation::{Execute, Flow, MicroOperation, Step};
pub use run::Exit;
pub use trace::{Observer, Permission, Retired};
