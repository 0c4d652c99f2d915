//! `sidestep perf`: the counters, profiles and samples of the model, in the manner of `perf`.

mod record;
mod report;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use sidestep_itanium2::{Event, Parameters, Selection};
use sidestep_linux_user::{Launch, Options};
use sidestep_runner::program::{self, Kept, Model, Report, Sum};

use super::Outcome;
use record::Record;

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
    /// Run a program and write to a file where its cycles went, or samples of events
    Record(Record),
    /// Print a recording by function, address, latency, level or outcome
    Report(report::Report),
    /// Print the bundles of a function with what was recorded at each
    Annotate(report::Annotate),
    /// List the events and the processors
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
                Ok(stat.program.run(Kept::Counters, report))
            }
            PerfCommand::Record(record) => record.run(),
            PerfCommand::Report(report) => report.run(),
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
    fn run(self, kept: Kept, report: impl Report + 'static) -> ExitCode {
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
                engine: Some(Arc::new(Model::new(self.timing, kept, report))),
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
    fn render(&self, parameters: &Parameters, sum: &Sum) -> String {
        let counters = &sum.counters;
        let mut text = program::heading(parameters, counters);
        if self.events.is_empty() {
            let _ = write!(text, "{counters}");
            let in_tree = |event: &Event| counters.tree().iter().any(|(row, _)| row.event == *event);
            for event in Event::ALL.iter().skip(2).filter(|event| !in_tree(event)) {
                let value = counters.get(*event);
                if value > 0 {
                    let _ = writeln!(text, "{value:>16}  {}", event.name());
                }
            }
        }
        for event in &self.events {
            let _ = writeln!(text, "{:>16}  {}", counters.get(*event), event.name());
        }
        text
    }
}

fn list() -> String {
    let mut text = String::from("Counters (event select code, unit mask from bit 16):\n");
    for event in Event::ALL {
        let (name, code) = (event.name(), event.code());
        let _ = writeln!(text, "  {name:<38} {code:>#7x}  {}", event.description());
    }
    text.push_str("\nOther names:\n");
    for (alias, event) in Event::aliases() {
        let _ = writeln!(text, "  {alias:<38} {:>7}  {}", "", event.name());
    }
    text.push_str("\nEvents of one load, fetch or branch each, for `perf record`:\n");
    for (name, description) in Selection::single() {
        let _ = writeln!(text, "  {name:<38} {:>7}  {description}", "");
    }
    text.push_str("\nProcessors:\n");
    for name in Parameters::names() {
        let parameters = Parameters::by_name(name).expect("a listed preset");
        let _ = writeln!(text, "  {name:<38} {}", parameters.description);
    }
    text
}
