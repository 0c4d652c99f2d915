//! `perf record`: all cycles by bundle, or samples of events.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;
use sidestep_itanium2::pmu::sampling::Sampled;
use sidestep_itanium2::{Pace, Parameters, Selection};
use sidestep_runner::program::{self, Kept, Report, Sum};
use sidestep_runner::recording::{Contents, Recording};

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
        let report = RecordReport {
            output: self.output,
            program: std::path::absolute(&self.program.program)?,
        };
        Ok(self.program.run(kept, report))
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

#[derive(Debug)]
struct RecordReport {
    output: PathBuf,
    program: PathBuf,
}

impl Report for RecordReport {
    fn render(&self, parameters: &Parameters, sum: &Sum) -> String {
        let (contents, kept) = if sum.samples.is_empty() {
            let places = sum.profile.places.len();
            (Contents::of_profile(&sum.profile), format!("{places} places"))
        } else {
            let all = || sum.samples.iter().flatten();
            let samples: usize = all().map(|sampled: &Sampled| sampled.samples.len()).sum();
            let kept = match all().map(|sampled| sampled.lost).sum::<u64>() {
                0 => format!("{samples} samples"),
                lost => format!(
                    "{samples} samples, and {lost} more that were not kept; a longer period takes fewer"
                ),
            };
            (Contents::of_samples(&sum.samples), kept)
        };
        let recording = Recording::new(parameters.name, &self.program, contents);
        let path = self.output.display();
        match sidestep_files::write(&self.output, &recording.to_json()) {
            Ok(()) => format!(
                "{}sidestep: {path}: {kept}\n",
                program::heading(parameters, &sum.counters)
            ),
            Err(error) => format!("sidestep: {error}: {}\n", error.reason()),
        }
    }
}
