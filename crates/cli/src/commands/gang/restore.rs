//! `sidestep gang restore`: undo what a killed controller left behind.

use std::process::ExitCode;

use clap::Args;
use sidestep_gang_linux::journal;

use super::State;
use crate::commands::{Outcome, print};

/// Put the host back as it was before a controller that was killed.
///
/// Undoes what the journals of dead controllers note: scheduling classes, affinities, kernel settings. Controllers that
/// are alive are left alone. Doing it twice is harmless.
#[derive(Args)]
pub struct Restore {
    #[command(flatten)]
    state: State,
}

impl Restore {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let restored = journal::restore(&self.state.folder)?;
        let journal::Restored {
            journals,
            threads,
            settings,
        } = restored;
        let said = match journals {
            0 => format!(
                "nothing to restore: no journal of a dead controller in {}\n",
                self.state.folder.display()
            ),
            _ => format!("restored {threads} threads and {settings} settings from {journals} journals\n"),
        };
        print(said.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
