//! `sidestep gang run`: make threads that belong together run together.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Args, ValueEnum};
use sidestep_gang_linux::control::{self, Kind, RunSettings, SetSource, Target};
use sidestep_gang_linux::recording::Recording;

use super::super::stop_flag;
use super::{Cut, State, passed_on, report, seconds};
use crate::commands::Outcome;

/// Run programs, or take running ones, under a coscheduling policy; put everything back at the end.
///
/// Threads that have a core are pinned to it; threads that wait are put in the idle class, so that they use only what
/// nobody else wants. Nothing is stopped, no workload becomes real-time. The report goes to the standard error; the
/// exit code is that of the first command that failed.
///
/// A program that writes how far it is as eight little-endian bytes into the file named by SIDESTEP_PROGRESS is
/// measured by that; others by the time they had a core.
#[derive(Args)]
pub struct Run {
    /// Who runs together
    #[arg(long, value_enum, default_value_t = Policy::Partial)]
    policy: Policy,
    /// Where partial coscheduling takes its sets from: `auto`, `singles` (every thread alone), `programs` (every
    /// program whole), or a recording made by `sidestep gang watch --save`
    #[arg(long, default_value = "auto", value_name = "auto|singles|programs|FILE")]
    sets: String,
    #[command(flatten)]
    cut: Cut,
    /// Compare with this policy, which rules every second epoch
    #[arg(long, value_enum)]
    baseline: Option<Baseline>,
    /// How long an epoch is
    #[arg(long, default_value = "2", value_parser = seconds, value_name = "SECONDS")]
    epoch: Duration,
    /// How long a slot is, in milliseconds; longer if changing slots takes more than a hundredth of it
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000), value_name = "MS")]
    slot: u64,
    /// How far ahead of its siblings a relaxed thread may be, in milliseconds
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000), value_name = "MS")]
    skew: u64,
    /// How often automatic sets are found anew
    #[arg(long, default_value = "5", value_parser = seconds, value_name = "SECONDS")]
    reevaluate: Duration,
    /// Stop after this time; the programs go on without control
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    seconds: Option<Duration>,
    /// Also take processes of other users
    #[arg(long)]
    other_users: bool,
    /// Write the report to a file as JSON
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    state: State,
    /// A running process, with its descendants; can be given several times
    #[arg(long = "pid", value_name = "PID")]
    processes: Vec<i32>,
    /// Commands to run, separated by `::`
    #[arg(last = true, value_name = "COMMAND [:: COMMAND]...")]
    commands: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// All threads of a program at once, other cores stay empty
    Full,
    /// Sets of threads at once, other cores are used by who waits
    Partial,
    /// Threads of a program at most so far apart
    Relaxed,
    /// As the kernel does
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Baseline {
    /// All threads of a program at once
    Full,
    /// As the kernel does
    None,
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let targets = self.targets()?;
        let settings = RunSettings {
            kind: self.kind()?,
            baseline: self.baseline.map(|baseline| match baseline {
                Baseline::Full => Kind::Full,
                Baseline::None => Kind::Free,
            }),
            epoch: self.epoch,
            slot: Duration::from_millis(self.slot),
            reevaluation: self.reevaluate,
            limit: self.seconds,
            ends_at_limit: false,
            other_users: self.other_users,
        };
        self.output.as_deref().map(sidestep_files::probe).transpose()?;
        let stop = stop_flag()?;
        let stop = || stop.load(Ordering::Relaxed);
        let (report, _) = control::run(&self.state.folder, &targets, &settings, &stop)?;
        say!("{report}");
        if let Some(path) = &self.output {
            report::write(path, &report)?;
        }
        let failed = report
            .programs
            .iter()
            .filter_map(|program| program.exit_code)
            .find(|&code| code != 0);
        Ok(passed_on(failed))
    }

    fn kind(&self) -> Result<Kind, Box<dyn std::error::Error>> {
        Ok(match self.policy {
            Policy::None => Kind::Free,
            Policy::Full => Kind::Full,
            Policy::Relaxed => Kind::Relaxed {
                skew_max: Duration::from_millis(self.skew),
            },
            Policy::Partial => Kind::Partial(match self.sets.as_str() {
                "auto" => SetSource::Automatic(self.cut.selection()),
                "singles" => SetSource::Singles,
                "programs" => SetSource::Programs,
                path => SetSource::Recorded(Box::new(Recording::read(path.as_ref())?)),
            }),
        })
    }

    fn targets(&self) -> Result<Vec<Target>, String> {
        let mut targets: Vec<Target> = self.processes.iter().copied().map(Target::Process).collect();
        if !self.commands.is_empty() {
            for words in self.commands.split(|word| word == "::") {
                if words.is_empty() {
                    return Err("an empty command before, between or after `::`; expected a program and its arguments".into());
                }
                targets.push(Target::Command(words.to_vec()));
            }
        }
        if targets.is_empty() {
            return Err("nothing to run; expected --pid PID, or -- COMMAND [:: COMMAND]...".into());
        }
        Ok(targets)
    }
}
