//! `sidestep gang`: coscheduling on this Linux host.

mod report;
mod restore;
mod run;
mod screen;
mod watch;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use sidestep_gang::{Ratio, Selection};

use super::Outcome;

/// Coscheduling on this Linux host: who shares memory, and who runs together.
///
/// `watch` finds which threads of running programs share memory. `run` makes threads that belong together run
/// together. Both put everything back when they end; `restore` does it after a controller was killed. `workload` runs
/// small parallel programs to try it on.
#[derive(Args)]
pub struct Gang {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Watch(watch::Watch),
    Run(run::Run),
    Restore(restore::Restore),
    Workload(workload::Workload),
}

impl Gang {
    /// Runs the chosen command.
    pub fn run(self) -> Outcome {
        match self.command {
            Command::Watch(watch) => watch.run(),
            Command::Run(run) => run.run(),
            Command::Restore(restore) => restore.run(),
            Command::Workload(workload) => workload.run(),
        }
    }
}

/// Where controllers keep their journals.
#[derive(Args)]
struct State {
    /// Folder for the journal of changes to the host
    #[arg(long = "state", value_name = "FOLDER", default_value = sidestep_gang_linux::journal::FOLDER)]
    folder: PathBuf,
}

/// How sets are cut from the dependency tree.
#[derive(Args)]
struct Cut {
    /// Split the tree where a part depends more than T times as much; without it, the split of greatest modularity
    #[arg(long, value_name = "T")]
    factor: Option<Ratio>,
}

impl Cut {
    fn selection(&self) -> Selection {
        self.factor.map_or(Selection::Modularity, Selection::Factor)
    }
}

/// The exit code of a program that was started here, as the command's own; without one it is success.
fn passed_on(code: Option<i32>) -> ExitCode {
    code.map_or(ExitCode::SUCCESS, |code| {
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    })
}

/// A number of seconds above zero and below a year, such as 0.5.
fn seconds(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("`{text}` is not a number of seconds above 0 and below 31536000, such as 2 or 0.5");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if !(seconds > 0.0 && seconds < 31_536_000.0) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_positive_and_finite() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "nan", "inf", "1e99", "two", ""] {
            assert!(seconds(text).is_err(), "{text:?}");
        }
    }
}
