//! `sidestep perf`: the counters, profiles and samples of the model, in the manner of `perf`.

mod record;
mod report;

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use clap::{Args, Subcommand};
use rustix::process::{Pid, Signal, kill_process};
use sidestep_itanium2::{Counters, Event, Parameters, Selection};
use sidestep_linux_user::process::Ending;
use sidestep_runner::processes::{Parts, ProcessPart};
use sidestep_runner::program::{self, Kept};
use signal_hook::consts::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{Outcome, print_beside};
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
    /// Also print the counters of every process, with its number and its program
    #[arg(long)]
    per_process: bool,
    #[command(flatten)]
    program: Program,
}

/// A program, whose children and the programs that they execute are counted with it.
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
    if let Some((name, _)) = name.split_once(',') {
        return Err(format!(
            "samples are of programs, by `exec --timing`: leave `{name}` alone"
        ));
    }
    Parameters::by_name(name).map_err(|error| error.to_string())
}

impl Perf {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.command {
            PerfCommand::Stat(stat) => stat.run(),
            PerfCommand::Record(record) => record.run(),
            PerfCommand::Report(report) => report.run(),
            PerfCommand::Annotate(annotate) => annotate.run(),
            PerfCommand::List => {
                super::print_table(&list())?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

impl Stat {
    fn run(self) -> Outcome {
        let (parts, ended) = self.program.run(&Kept::Counters)?;
        let mut sum = Counters::default();
        let mut text = String::new();
        for part in &parts {
            let counters = part.counters();
            if self.per_process {
                let _ = writeln!(text, "process {}  {}", part.pid, part.program.display());
                let _ = writeln!(text, "{}", self.text_of(&counters));
            }
            sum += counters;
        }
        if self.per_process {
            text.push_str("all processes\n");
        }
        if !parts.is_empty() {
            text.push_str(&self.text_of(&sum));
        }
        print_beside(&text)?;
        Ok(ended.outcome())
    }

    fn text_of(&self, counters: &Counters) -> String {
        let mut text = program::heading(&self.program.timing, counters);
        if self.event.is_empty() {
            let _ = write!(text, "{counters}");
            let in_tree = |event: &Event| counters.tree().iter().any(|(row, _)| row.event == *event);
            for event in Event::ALL.iter().skip(2).filter(|event| !in_tree(event)) {
                let value = counters.get(*event);
                if value > 0 {
                    let _ = writeln!(text, "{value:>16}  {}", event.name());
                }
            }
        }
        for event in &self.event {
            let _ = writeln!(text, "{:>16}  {}", counters.get(*event), event.name());
        }
        text
    }
}

/// How the first process of a run ended.
struct Ended(ExitStatus);

impl Ended {
    /// The exit code that is the same; a process that a signal ended is followed.
    fn outcome(self) -> ExitCode {
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, signal) => Ending::Killed(signal.unwrap_or(SIGKILL)).leave(),
        }
    }
}

impl Program {
    /// Runs the program and the processes that it makes; comes back with what those counted that have ended when the
    /// first does.
    fn run(&self, kept: &Kept) -> Result<(Vec<ProcessPart>, Ended), Box<dyn Error>> {
        let mut parts = Parts::new().map_err(|error| format!("no file in memory can be had: {error}"))?;
        // What is typed to interrupt reaches the program as well, which decides what comes of it.
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        let mut signals = Signals::new([SIGTERM, SIGHUP])?;
        let mut first = on_model(&self.timing, kept, &parts)
            .arg(&self.program)
            .args(&self.arguments)
            .spawn()
            .map_err(|error| format!("{}: cannot be started: {error}", self.program.display()))?;
        let pid = Pid::from_child(&first);
        let handle = signals.handle();
        thread::spawn(move || {
            for signal in signals.forever().filter_map(Signal::from_named_raw) {
                // One that has ended just now needs none.
                let _ = kill_process(pid, signal);
            }
        });
        let status = first.wait()?;
        handle.close();
        Ok((parts.read()?, Ended(status)))
    }
}

/// The command that runs a program, which is its next argument, on the model, and leaves what is kept of its processes.
pub(super) fn on_model(parameters: &Parameters, kept: &Kept, parts: &Parts) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .args([
            "exec",
            "--timing",
            parameters.name,
            "--kept",
            &kept.to_string(),
            "--parts",
        ])
        .arg(parts.path())
        .arg("--")
        .env_remove("SIDESTEP_SYSROOT");
    command
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
