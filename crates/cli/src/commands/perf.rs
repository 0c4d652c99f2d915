//! `sidestep perf`: the counters and profiles of `exec --timing`, in the manner of `perf`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use sidestep_itanium2::{Counters, Event, Parameters, Profile};
use sidestep_lab::output;
use sidestep_linux_user::{Launch, Options};

use super::Outcome;
use super::timing::annotate::Code;
use super::timing::record::Recording;
use super::timing::{self, Model, Report};

/// Count and attribute the cycles of a Linux/ia64 program on the model of an Itanium 2.
#[derive(Args)]
pub struct Perf {
    #[command(subcommand)]
    command: PerfCommand,
}

#[derive(Subcommand)]
enum PerfCommand {
    /// Run a program and print counters
    Stat(Stat),
    /// Run a program and write where its cycles went to a file
    Record(Record),
    /// Print a recording: cycles by function, or the bundles of one
    Annotate(Annotate),
    /// List the counters and the processors
    List,
}

#[derive(Args)]
struct Stat {
    /// Counters to print instead of the tree of bubbles, separated by commas
    #[arg(short, long, value_name = "COUNTER", value_delimiter = ',', value_parser = parse_event)]
    event: Vec<Event>,
    #[command(flatten)]
    program: Program,
}

#[derive(Args)]
struct Record {
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "perf.json")]
    output: PathBuf,
    #[command(flatten)]
    program: Program,
}

#[derive(Args)]
struct Annotate {
    /// The recording
    #[arg(short, long, value_name = "FILE", default_value = "perf.json")]
    input: PathBuf,
    /// Only the function of this name; without it all functions by cycles, and the slowest one's bundles
    #[arg(long, value_name = "NAME")]
    symbol: Option<String>,
}

#[derive(Args)]
struct Program {
    /// The processor
    #[arg(long, value_name = "PROCESSOR", default_value = "itanium2", value_parser = parse_processor)]
    timing: Parameters,
    /// The program
    #[arg(value_name = "PROG")]
    program: PathBuf,
    /// Its arguments
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn parse_event(name: &str) -> Result<Event, String> {
    Event::by_name(name).map_err(|error| error.to_string())
}

pub(super) fn parse_processor(name: &str) -> Result<Parameters, String> {
    Parameters::by_name(name).map_err(|error| error.to_string())
}

impl Perf {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.command {
            PerfCommand::Stat(stat) => {
                let report = StatReport { events: stat.event };
                Ok(stat.program.run(report, false))
            }
            PerfCommand::Record(record) => {
                // Found out before the run, not behind it.
                output::probe(&record.output)?;
                let report = RecordReport {
                    output: record.output,
                    program: std::path::absolute(&record.program.program)?,
                };
                Ok(record.program.run(report, true))
            }
            PerfCommand::Annotate(annotate) => annotate.run(),
            PerfCommand::List => {
                super::print(list().as_bytes())?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

impl Program {
    /// Runs the program; comes back only if it could not be started.
    fn run(self, report: impl Report + 'static, is_profiled: bool) -> ExitCode {
        let arguments = [self.program.clone().into_os_string()]
            .into_iter()
            .chain(self.arguments);
        let environment = std::env::vars_os();
        let launch = Launch {
            program: self.program,
            arguments: arguments.map(OsString::into_vec).collect(),
            environment: environment
                .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
                .collect(),
            options: Options {
                engine: Some(Arc::new(Model::new(self.timing, is_profiled, report))),
                reenter: [&b"sidestep"[..], b"exec"].map(<[u8]>::to_vec).to_vec(),
                ..Options::default()
            },
            pipe_ignored: false,
        };
        let Err(error) = sidestep_linux_user::run(launch);
        crate::report(&error);
        ExitCode::from(error.exit_status())
    }
}

#[derive(Debug)]
struct StatReport {
    events: Vec<Event>,
}

impl Report for StatReport {
    fn render(&self, parameters: &Parameters, counters: &Counters, _: &Profile) -> String {
        let mut text = timing::heading(parameters, counters);
        if self.events.is_empty() {
            let _ = write!(text, "{counters}");
            let in_tree = |event: &Event| counters.tree().iter().any(|(row, _)| row.event == *event);
            for event in Event::ALL.iter().skip(2).filter(|event| !in_tree(event)) {
                let _ = writeln!(text, "{:>16}  {}", counters.get(*event), event.name());
            }
        }
        for event in &self.events {
            let _ = writeln!(text, "{:>16}  {}", counters.get(*event), event.name());
        }
        text
    }
}

#[derive(Debug)]
struct RecordReport {
    output: PathBuf,
    program: PathBuf,
}

impl Report for RecordReport {
    fn render(&self, parameters: &Parameters, counters: &Counters, profile: &Profile) -> String {
        let recording = Recording::new(parameters.name, &self.program, profile);
        let path = self.output.display();
        match output::write(&self.output, &recording.to_json()) {
            Ok(()) => format!(
                "{}sidestep: {path}: {} places\n",
                timing::heading(parameters, counters),
                profile.places.len()
            ),
            Err(error) => format!("sidestep: {error}: {}\n", error.reason()),
        }
    }
}

impl Annotate {
    fn run(self) -> Outcome {
        let recording = Recording::read(&self.input)?;
        let profile = recording.profile(&self.input)?;
        let code = Code::read(&recording.program)?;
        let mut text = String::new();
        if self.symbol.is_none() {
            text = format!("{}\n", code.by_symbol(&profile)?);
        }
        text.push_str(&code.annotate(&profile, self.symbol.as_deref())?);
        super::print(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn list() -> String {
    let mut text = String::from("Counters (event select code, unit mask from bit 16):\n");
    for event in Event::ALL {
        let (name, code) = (event.name(), event.code());
        let _ = writeln!(text, "  {name:<38} {code:>#7x}  {}", event.description());
    }
    text.push_str("\nProcessors:\n");
    for name in Parameters::names() {
        let parameters = Parameters::by_name(name).expect("a listed preset");
        let _ = writeln!(text, "  {name:<38} {}", parameters.description);
    }
    text
}
