//! `--check-groups` of what runs: looks for what the architecture leaves undefined and an emulator hides.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use sidestep_runner::groups::Suppressions;

/// The exit code of what was ended because of what was found.
pub const VIOLATED: u8 = sidestep_linux_user::process::STATUS_HALTED as u8;

/// What is checked of a run.
#[derive(Args, Clone, Debug)]
#[group(id = "check")]
pub struct Check {
    /// Look for what the architecture leaves undefined and running it hides: dependencies inside instruction groups,
    /// missing serialisation, registers without a value. `report` prints them to standard error at the end, each place
    /// once; `error` ends the run at the first one, with exit code 123
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "report"
    )]
    check_groups: Option<Reaction>,

    /// With --check-groups: leave out what the lines of this file say: `address=HEX`, `symbol=NAME`, `rule=NAME`
    #[arg(long, value_name = "FILE", requires = "check_groups")]
    group_suppressions: Option<PathBuf>,
}

/// What happens when something is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reaction {
    /// It is printed at the end
    Report,
    /// It ends the run
    Error,
}

/// A check that was asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Whether the first finding ends the run.
    pub ends: bool,
    /// What is left out.
    pub suppressions: Arc<Suppressions>,
}

impl Check {
    /// Whether a check was asked for.
    pub fn is_given(&self) -> bool {
        self.check_groups.is_some()
    }

    /// The check that was asked for, its file read.
    pub fn wanted(&self) -> Result<Option<Wanted>, Box<dyn Error>> {
        let Some(reaction) = self.check_groups else {
            return Ok(None);
        };
        let suppressions = match &self.group_suppressions {
            Some(file) => Suppressions::read(file)?,
            None => Suppressions::default(),
        };
        Ok(Some(Wanted {
            ends: reaction == Reaction::Error,
            suppressions: Arc::new(suppressions),
        }))
    }

    /// The arguments that ask for the same, as `--NAME=VALUE`.
    pub fn arguments(&self) -> Vec<std::ffi::OsString> {
        let reaction = self
            .check_groups
            .and_then(|reaction| reaction.to_possible_value());
        let reaction = reaction.map(|value| format!("--check-groups={}", value.get_name()).into());
        let file = self.group_suppressions.as_deref().map(|file| {
            let mut argument = std::ffi::OsString::from("--group-suppressions=");
            argument.push(std::path::absolute(file).unwrap_or_else(|_| Path::to_owned(file)));
            argument
        });
        reaction.into_iter().chain(file).collect()
    }
}
