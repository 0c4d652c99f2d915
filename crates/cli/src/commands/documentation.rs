//! `sidestep completions` and `sidestep manual`: what shells and `man` know of the command, from its own definition.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Outcome;
use crate::Arguments;

/// The name by which users start the command.
const NAME: &str = "sidestep";

/// Print what a shell needs to complete commands and options: bash, zsh, fish, elvish or powershell.
///
/// For bash: sidestep completions bash >~/.local/share/bash-completion/completions/sidestep
#[derive(Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), NAME, &mut script);
        super::print(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Write a manual page of each command into a folder.
///
/// For the user alone: sidestep manual ~/.local/share/man/man1
#[derive(Args)]
pub struct Manual {
    /// The folder, which is made if it is missing
    folder: PathBuf,
}

impl Manual {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let shown = self.folder.display();
        std::fs::create_dir_all(&self.folder).map_err(|error| format!("{shown}: cannot be made: {error}"))?;
        clap_mangen::generate_to(Arguments::command(), &self.folder)
            .map_err(|error| format!("{shown}: a page cannot be written: {error}"))?;
        Ok(ExitCode::SUCCESS)
    }
}
