//! Assembly in GNU syntax, read and written.
//!
//! GNU as decides what an instruction is: the source is assembled, and the instructions of the object file are
//! matched with the statements of the source, one by one. A scheduled block is written with the statements of the
//! source, so labels, relocations, hints and comments survive as they were; only bundles, stops and `nop`s are new.

mod addresses;
pub(crate) mod assertions;
mod directives;
mod function;
pub(crate) mod macros;
mod places;
pub(crate) mod registers;
mod source;
mod text;

use std::path::Path;

pub(crate) use directives::{UNWINDING, expect_code};
pub(crate) use function::is_side_exit;
pub use function::{Function, Piece, Speculation, Ways};
pub(crate) use places::goes_back;
pub use source::{Line, Source, Statement};
pub use text::{Text, write};
pub(crate) use text::{code, code_of, slots, speculative};

use crate::block::Refusal;
use crate::tools::ToolError;

/// Why a source cannot be scheduled.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// What a tool says.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// An object file that says something impossible.
    #[error("{path}: the assembler's object file is damaged")]
    Object {
        /// The file.
        path: String,
        /// Why.
        source: object::Error,
    },
    /// A statement that stands in the way.
    #[error("{path}: line {line}: {reason}")]
    Statement {
        /// The file.
        path: String,
        /// The line, from 1; of a `.S` file, the preprocessor's line markers are followed.
        line: usize,
        /// Why, and what would be right.
        reason: String,
    },
    /// A text that does not say what was meant.
    #[error(transparent)]
    Unfaithful(#[from] Unfaithful),
    /// A group that breaks a rule which the source's groups kept: a broken invariant of this crate, told with its
    /// place.
    #[error("{path}: a group of `{function}` as written has a dependency: {what}")]
    Group {
        /// The file.
        path: String,
        /// The function.
        function: String,
        /// The dependency.
        what: String,
    },
    /// A schedule that does not do what the block did: a broken invariant of this crate, told with its place.
    #[error("{path}: line {line}")]
    Different {
        /// The file.
        path: String,
        /// Where the block begins.
        line: usize,
        /// How.
        source: crate::verify::equivalence::Difference,
    },
    /// A source without functions.
    #[error("{path}: no function: what is to be scheduled stands between .proc and .endp")]
    NoFunctions {
        /// The file.
        path: String,
    },
    /// A function that is not in the source.
    #[error("{path}: no function `{name}` between .proc and .endp; there are: {known}")]
    NoFunction {
        /// The file.
        path: String,
        /// The function.
        name: String,
        /// What there is.
        known: String,
    },
}

/// What the scheduler wrote is not what it meant: a broken invariant of this crate, told with its place.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path}: `{function}` is not written as it was scheduled: instruction {place} is {written} and should be {meant}"
)]
pub struct Unfaithful {
    /// The file.
    pub path: String,
    /// The function.
    pub function: String,
    /// Which instruction, from 0.
    pub place: usize,
    /// What the assembler made of the text.
    pub written: String,
    /// What was meant.
    pub meant: String,
}

impl AssemblyError {
    pub(crate) fn statement(path: &Path, line: usize, reason: impl Into<String>) -> AssemblyError {
        AssemblyError::Statement {
            path: path.display().to_string(),
            line,
            reason: reason.into(),
        }
    }

    fn counted(path: &Path, line: usize, operand: &str) -> AssemblyError {
        let reason = format!(
            "`{operand}` counts bundles of code that is to be scheduled: put a label there and name it"
        );
        AssemblyError::statement(path, line, reason)
    }

    fn refused(path: &Path, line: usize, refusal: Refusal) -> AssemblyError {
        AssemblyError::statement(
            path,
            line,
            format!("the instruction {refusal}, so it cannot be moved"),
        )
    }
}
