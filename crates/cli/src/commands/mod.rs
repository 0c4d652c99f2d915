//! The subcommands, one module each.

/// Says a line on the standard error. Where that cannot be written (a full disk), the exit code still says how the
/// command ended.
macro_rules! say {
    ($($line:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr().lock(), format_args!("{}\n", format_args!($($line)*)));
    }};
}

mod activity;
mod assemble;
mod calibrate;
mod check;
mod ci;
mod compare;
mod debugger;
mod disasm;
mod documentation;
mod exec;
mod explain;
mod gang;
mod laboratory;
mod list;
mod package;
mod perf;
mod results;
mod run;
mod schedule;
mod sensitivity;
mod translate;

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Subcommand;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The value of a lock, also when a thread has panicked with it.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a command answers: the process's exit code, or the error to report.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

/// The exit code of what Ctrl-C or another such signal ended early, as shells expect it.
const INTERRUPTED: u8 = 130;

/// The exit code of what reached the limit of instructions or time that it was given, as of `timeout`.
const LIMIT_REACHED: u8 = sidestep_linux_user::process::STATUS_LIMIT as u8;

/// The most bytes of a trace, unless something else is said.
const TRACE_LIMIT: &str = "1G";

/// The subcommands of `sidestep`.
#[derive(Subcommand)]
pub enum Command {
    List(list::List),
    Compare(compare::Compare),
    Sensitivity(sensitivity::Sensitive),
    Results(results::Results),
    Exec(Box<exec::Exec>),
    Disasm(disasm::Disasm),
    Gang(gang::Gang),
    Run(Box<run::Run>),
    Ci(Box<ci::Ci>),
    Assemble(assemble::Assemble),
    Calibrate(calibrate::Calibrate),
    Perf(perf::Perf),
    Explain(explain::Explain),
    Schedule(schedule::Schedule),
    Completions(documentation::Completions),
    Manual(documentation::Manual),
}

/// The subcommand that executes a program, without the others.
#[derive(Subcommand)]
pub enum ExecCommand {
    Exec(Box<exec::Exec>),
}

impl From<ExecCommand> for Command {
    fn from(ExecCommand::Exec(exec): ExecCommand) -> Command {
        Command::Exec(exec)
    }
}

impl Command {
    /// Runs the chosen command.
    pub fn run(self) -> Outcome {
        match self {
            Command::List(list) => list.run(),
            Command::Compare(compare) => compare.run(),
            Command::Sensitivity(sensitive) => sensitive.run(),
            Command::Results(results) => results.run(),
            Command::Exec(exec) => exec.run(),
            Command::Disasm(disasm) => disasm.run(),
            Command::Gang(gang) => gang.run(),
            Command::Run(run) => run.run(),
            Command::Ci(ci) => ci.run(),
            Command::Assemble(assemble) => assemble.run(),
            Command::Calibrate(calibrate) => calibrate.run(),
            Command::Perf(perf) => perf.run(),
            Command::Explain(explain) => explain.run(),
            Command::Schedule(schedule) => schedule.run(),
            Command::Completions(completions) => completions.run(),
            Command::Manual(manual) => manual.run(),
        }
    }
}

/// Says what this build of the command cannot do, and which feature of the package brings it.
fn not_built(lack: &str, feature: &str) -> String {
    format!("this build {lack}; `cargo install --path crates/cli --features {feature}` brings it")
}

/// Writes to the standard output. That nobody reads it to its end (`| head`) is no error.
fn print(content: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut output = io::stdout().lock();
    match output.write_all(content).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to the standard output: {error}").into())
        }
        _ => Ok(()),
    }
}

/// Writes results to the standard error, beside what a program or guest prints on the standard output.
fn print_beside(results: &str) -> Result<(), Box<dyn Error>> {
    io::stderr()
        .write_all(results.as_bytes())
        .map_err(|error| format!("cannot write to the standard error: {error}").into())
}

/// Writes a table to the standard output, its lines no longer than those of the terminal, if that is one: what is cut
/// ends with an ellipsis, and whoever wants all of it redirects it.
fn print_table(table: &str) -> Result<(), Box<dyn Error>> {
    match terminal_width() {
        Some(width) => print(fitted(table, width).as_bytes()),
        None => print(table.as_bytes()),
    }
}

/// A text whose lines have at most so many characters.
fn fitted(text: &str, width: usize) -> String {
    let fit = |line: &str| match line.char_indices().nth(width) {
        None => format!("{line}\n"),
        Some(_) => {
            let kept: String = line.chars().take(width.saturating_sub(1)).collect();
            format!("{}…\n", kept.trim_end())
        }
    };
    text.lines().map(fit).collect()
}

/// The columns of the terminal that the standard output is; none of a file or a pipe.
fn terminal_width() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size()?;
    io::stdout().is_terminal().then_some(width.into())
}

/// A flag that SIGINT, SIGTERM and SIGHUP set.
fn stop_flag() -> Result<Arc<AtomicBool>, std::io::Error> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_cut_at_the_terminals_width() {
        let table = "12345\n123456\nμμμμμμ\n1234 6\n\n";
        assert_eq!(super::fitted(table, 5), "12345\n1234…\nμμμμ…\n1234…\n\n");
    }
}
