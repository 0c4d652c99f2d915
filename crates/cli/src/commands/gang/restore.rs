//! `sidestep gang restore`: undo what a killed controller left behind.

use std::process::ExitCode;

use clap::Args;
use sidestep_gang_linux::journal;

use super::State;
use crate::commands::Outcome;

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
        if journals == 0 {
            println!(
                "nothing to restore: no journal of a dead controller in {}",
                self.state.folder.display()
            );
        } else {
            println!("restored {threads} threads and {settings} settings from {journals} journals");
        }
        Ok(ExitCode::SUCCESS)
    }
}
