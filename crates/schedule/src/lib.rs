//! Instruction scheduling for Itanium 2: the fewest cycles for a piece of code, by the model of the pipeline.
//!
//! - [`sequencing`]: what instructions depend on each other by, and what may share an instruction group.
//! - [`predicates`]: which of them are never on together; [`worlds`]: what is executed together, then.
//! - [`groups`]: groups that the architecture leaves undefined, in code; [`sanitizer`]: the same in a run, and what
//!   else it leaves undefined.
//! - [`block`]: straight code as instructions to place; [`graph`]: which order and which distances they keep.
//! - [`assembly`]: sources in GNU syntax, read and written; [`tools`]: binutils and the C preprocessor.
//! - [`program`]: functions of linked programs, scheduled in place.
//! - [`bundle`]: templates and slots for what issues in one cycle.
//! - [`capacity`]: what issues in one cycle at most; [`bound`]: how few cycles are possible at all.
//! - [`list`]: the fast scheduler; [`exact`]: the one that proves that there is none shorter.
//! - [`pipelining`]: loops of one block, several iterations at once.
//! - [`mod@rewrite`]: a source with its functions scheduled, over all of these.
//! - [`verify`]: the result against the original, on the pipeline and on the interpreter.
//!
//! A schedule gives each instruction a cycle. The processor issues in order and stalls by itself, so cycles in which
//! nothing issues need no code.
//!
#![doc = include_str!("../README.md")]

pub mod assembly;
pub mod block;
pub mod bound;
pub mod bundle;
pub mod capacity;
pub mod checks;
pub mod exact;
pub mod graph;
pub mod groups;
pub mod list;
pub mod optimize;
pub mod pipelining;
pub mod predicates;
pub mod program;
pub mod rename;
pub mod rewrite;
pub mod sanitizer;
pub mod sequencing;
pub mod speculate;
pub mod tools;
pub mod verify;
pub mod worlds;

pub use block::{Block, Item, Refusal};
pub use graph::Graph;
pub use optimize::{Options, Outcome, optimize};
