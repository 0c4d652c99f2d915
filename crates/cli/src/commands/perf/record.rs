//! `perf record`: all cycles by bundle, or samples of events.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;
use sidestep_itanium2::{Counters, Pace, Selection};
use sidestep_runner::program::{self, Kept};
use sidestep_runner::recording::{Contents, RecordedProcess, Recording};

use super::super::print_beside;
use super::Program;
use crate::commands::Outcome;

/// Samples a second where nothing else is said, as `perf` takes.
const USUAL_FREQUENCY: NonZeroU64 = NonZeroU64::new(4000).expect("not zero");

/// Run a program and write to a file where its cycles went, or samples of events.
#[derive(Args)]
pub struct Record {
    /// Events to sample, separated by commas, of `perf list`; without any, every cycle is recorded. A number behind a
    /// name is its period: one sample for so many events
    #[arg(short, long, value_name = "EVENT[:PERIOD]", value_delimiter = ',', value_parser = parse_wanted)]
    event: Vec<Wanted>,
    /// Events for a sample, where the event has no period of its own
    #[arg(short, long, value_name = "EVENTS", conflicts_with = "freq", value_parser = parse_number)]
    count: Option<NonZeroU64>,
    /// Samples for a second of the processor's time, where the event has no period; each stands for the events since
    /// the one before [default: 4000]
    #[arg(short = 'F', long, value_name = "SAMPLES", value_parser = parse_number)]
    freq: Option<NonZeroU64>,
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "perf.json")]
    output: PathBuf,
    #[command(flatten)]
    program: Program,
}

/// An event with its period, if it has one of its own.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    selection: Selection,
    period: Option<NonZeroU64>,
}

fn parse_wanted(text: &str) -> Result<Wanted, String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (name, period) = match text.rsplit_once(':') {
        Some((name, period)) if is_number(period) => (name, Some(parse_number(period)?)),
        _ => (text, None),
    };
    let selection = Selection::by_name(name).map_err(|error| error.to_string())?;
    Ok(Wanted { selection, period })
}

fn parse_number(text: &str) -> Result<NonZeroU64, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no number from 1 to {}", u64::MAX))
}

impl Record {
    /// Runs the program.
    pub fn run(self) -> Outcome {
        let kept = self.kept()?;
        // Found out before the run, not behind it.
        sidestep_files::probe(&self.output)?;
        let (parts, ended) = self.program.run(&kept)?;
        if parts.is_empty() {
            // The program could not be started, which was said, or was killed.
            return Ok(ended.outcome());
        }
        let mut counters = Counters::default();
        let mut processes = Vec::new();
        for part in parts {
            counters += part.counters();
            let contents = part.contents.ok_or("a process has left nothing but counters")?;
            processes.push(RecordedProcess {
                pid: part.pid,
                command: part.command,
                program: part.program,
                contents,
            });
        }
        let said = said_of(&processes);
        let parameters = &self.program.timing;
        let recording = Recording::new(parameters.name, processes);
        sidestep_files::write(&self.output, &recording.to_json())?;
        let heading = program::heading(parameters, &counters);
        print_beside(&format!("{heading}sidestep: {}: {said}\n", self.output.display()))?;
        Ok(ended.outcome())
    }

    /// All cycles, unless something else is asked for.
    fn kept(&self) -> Result<Kept, String> {
        let cycles = self.program.timing.megahertz * 1_000_000;
        let usual = match (self.count, self.freq.unwrap_or(USUAL_FREQUENCY)) {
            (Some(period), _) => Pace::Events(period),
            (None, frequency) => {
                let interval = NonZeroU64::new(u64::from(cycles) / frequency).ok_or_else(|| {
                    format!("--freq {frequency}: the processor has {cycles} cycles a second, and takes no more samples")
                })?;
                Pace::Cycles(interval)
            }
        };
        let wanted = |wanted: &Wanted| (wanted.selection, wanted.period.map_or(usual, Pace::Events));
        if !self.event.is_empty() {
            return Ok(Kept::Samples(self.event.iter().map(wanted).collect()));
        }
        if self.count.is_none() && self.freq.is_none() {
            return Ok(Kept::Profile);
        }
        let cycles = Selection::by_name("CPU_CYCLES").map_err(|error| error.to_string())?;
        Ok(Kept::Samples(vec![(cycles, usual)]))
    }
}

/// What a recording holds.
fn said_of(processes: &[RecordedProcess]) -> String {
    let kept = processes.iter().map(|process| process.contents.kept());
    let (count, lost) = kept.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    let samples = processes
        .iter()
        .any(|process| matches!(process.contents, Contents::Samples(_)));
    let mut said = format!("{count} {}", if samples { "samples" } else { "places" });
    if processes.len() > 1 {
        said.push_str(&format!(" of {} processes", processes.len()));
    }
    if lost > 0 {
        said.push_str(&format!(
            ", and {lost} more that were not kept; a longer period takes fewer"
        ));
    }
    said
}
