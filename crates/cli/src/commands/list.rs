//! `sidestep list`: the experiments, or one of them in detail.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use sidestep_experiments as experiments;
use sidestep_lab::report::catalogue;

use super::Outcome;

/// List the experiments, a line each, or one of them: question, source, how long it takes, what can be set.
#[derive(Args)]
pub struct List {
    /// Experiments (`gang.groups`) or areas (`gang`); one experiment alone is shown in detail, with the meaning and
    /// source of every input
    names: Vec<String>,
    /// How to write the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
}

impl List {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let chosen = match self.names.is_empty() {
            true => experiments::all(),
            false => experiments::find(&self.names)?,
        };
        let text = match (self.format, chosen.as_slice()) {
            (Format::Json, _) => catalogue::json(&chosen),
            (Format::Text, [one]) if !self.names.is_empty() => {
                catalogue::details(*one, super::terminal_width())
            }
            (Format::Text, _) => catalogue::lines(&chosen, super::terminal_width()),
        };
        super::print(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
