//! The subcommands, one module each.

use std::error::Error;
use std::process::ExitCode;

use clap::Subcommand;

/// What a command answers: the process's exit code, or the error to report.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

/// The subcommands of `sidestep`.
#[derive(Subcommand)]
pub enum Command {}

impl Command {
    /// Runs the chosen command.
    pub fn run(self) -> Outcome {
        match self {}
    }
}
