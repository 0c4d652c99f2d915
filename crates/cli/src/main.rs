//! The `sidestep` command.
//!
//! Each subcommand is one module under [`commands`]: its arguments, and what it does with them. A command
//! returns the process's exit code; an error is printed once, here, and ends the process with code 1.

#![warn(
    clippy::print_stderr,
    reason = "it panics where the standard error cannot be written: `say!` and `print_beside` do not"
)]

mod commands;
#[cfg(test)]
mod reference;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use sidestep_runner::causes::with_causes;

/// A virtual-machine monitor for multicore hosts, and the laboratory that shows what its structure buys.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

/// The arguments of `exec` alone. A program that is executed by another starts with them, and describing all commands
/// takes a tenth of the time until its first instruction.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct ExecArguments {
    #[command(subcommand)]
    command: commands::ExecCommand,
}

/// The command that was asked for; help and errors are those of all commands.
fn parse() -> commands::Command {
    if std::env::args_os().nth(1).is_some_and(|name| name == "exec")
        && let Ok(arguments) = ExecArguments::try_parse()
    {
        return arguments.command.into();
    }
    Arguments::parse().command
}

fn main() -> ExitCode {
    match parse().run() {
        Ok(code) => code,
        Err(error) => {
            report(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

/// Prints an error and the chain of its causes on one line.
fn report(error: &dyn Error) {
    // Where even that cannot be written, the exit code says it.
    let _ = writeln!(io::stderr(), "sidestep: {}", with_causes(error));
}
