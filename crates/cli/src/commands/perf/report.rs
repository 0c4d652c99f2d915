//! `perf report` and `perf annotate`: what a recording says.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use sidestep_itanium2::Parameters;
use sidestep_runner::annotate::{Code, ProfiledCycles};
use sidestep_runner::recording::{Contents, RecordedEvent, Recording, profile_of};
use sidestep_runner::samples::{self, ByInstruction, Key};

use crate::commands::Outcome;

/// Print a recording by function, address, latency, level or outcome.
#[derive(Args)]
pub struct Report {
    /// The recording
    #[arg(short, long, value_name = "FILE", default_value = "perf.json")]
    input: PathBuf,
    /// What tells rows apart, separated by commas; without any, what tells most about the event: of loads the level
    /// they came from, of misses of a TLB where the translation was, of branches where they went
    #[arg(short, long, value_name = "KEY", value_delimiter = ',')]
    sort: Vec<SortKey>,
    /// The rows of a table
    #[arg(long, value_name = "NUMBER", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
}

/// Print the bundles of a function with what was recorded at each.
#[derive(Args)]
pub struct Annotate {
    /// The recording
    #[arg(short, long, value_name = "FILE", default_value = "perf.json")]
    input: PathBuf,
    /// Only the function of this name; without it all functions, and the bundles of the one with the most
    #[arg(long, value_name = "NAME")]
    symbol: Option<String>,
}

/// A key on the command line.
#[derive(Clone, Copy, Debug)]
struct SortKey(Key);

impl ValueEnum for SortKey {
    fn value_variants<'a>() -> &'a [SortKey] {
        const KEYS: [SortKey; Key::ALL.len()] = {
            let mut keys = [SortKey(Key::Sym); Key::ALL.len()];
            let mut index = 0;
            while index < keys.len() {
                keys[index] = SortKey(Key::ALL[index]);
                index += 1;
            }
            keys
        };
        &KEYS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.description()))
    }
}

impl Report {
    /// Prints the tables.
    pub fn run(self) -> Outcome {
        let recording = Recording::read(&self.input)?;
        let code = Code::read(&recording.program)?;
        let text = match &recording.contents {
            Contents::Places(places) => {
                if self.sort.iter().any(|key| key.0 != Key::Sym) {
                    return Err(format!(
                        "{}: is a recording of all cycles, which has no key but `sym`; record with --event",
                        self.input.display()
                    )
                    .into());
                }
                code.by_symbol(&profile_of(places, &self.input)?)?
            }
            Contents::Samples(events) => {
                let rows = usize::try_from(self.rows).unwrap_or(usize::MAX);
                let keys: Vec<Key> = self.sort.iter().map(|key| key.0).collect();
                let tables = events
                    .iter()
                    .map(|event| table(&recording, &code, event, &keys, rows, &self.input));
                tables.collect::<Result<Vec<_>, _>>()?.join("\n")
            }
        };
        crate::commands::print(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn table(
    recording: &Recording,
    code: &Code,
    event: &RecordedEvent,
    keys: &[Key],
    rows: usize,
    input: &Path,
) -> Result<String, Box<dyn std::error::Error>> {
    let parameters =
        Parameters::by_name(&recording.processor).map_err(|error| format!("{}: {error}", input.display()))?;
    Ok(samples::table(event, code.names()?, parameters, keys, rows))
}

impl Annotate {
    /// Prints the bundles.
    pub fn run(self) -> Outcome {
        let recording = Recording::read(&self.input)?;
        let code = Code::read(&recording.program)?;
        let symbol = self.symbol.as_deref();
        let mut text = String::new();
        match &recording.contents {
            Contents::Places(places) => {
                let profile = profile_of(places, &self.input)?;
                if symbol.is_none() {
                    text = format!("{}\n", code.by_symbol(&profile)?);
                }
                text.push_str(&code.annotate(&ProfiledCycles::of(&profile), symbol)?);
            }
            Contents::Samples(events) => {
                for (index, event) in events.iter().enumerate() {
                    if index > 0 {
                        text.push('\n');
                    }
                    if symbol.is_none() {
                        text.push_str(&table(
                            &recording,
                            &code,
                            event,
                            &[Key::Sym],
                            FUNCTIONS,
                            &self.input,
                        )?);
                        text.push('\n');
                    }
                    text.push_str(&code.annotate(&ByInstruction::of(event), symbol)?);
                }
            }
        }
        crate::commands::print(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Functions in the table above the bundles.
const FUNCTIONS: usize = 30;
