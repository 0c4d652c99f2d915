//! A bare IA-64 machine, as a TOML file describes it.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use sidestep_vmm::End;
use sidestep_vmm::description::bare::{Clock, Description};
use sidestep_vmm::machine::{HostThreads, VirtualTime};

use super::super::Outcome;
use super::{description, exit_code};

/// How an IA-64 machine is run.
#[derive(Args)]
#[command(next_help_heading = "IA-64 machines")]
#[group(id = "machine")]
pub struct Options {
    /// Stop after this many instructions of all processors together, with exit code 124.
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,
    /// Run in virtual time on one host thread, whatever the description says: the same bytes each time.
    #[arg(long)]
    deterministic: bool,
}

/// The exit code of a machine that reached its instruction limit, as of `timeout`.
const LIMIT_REACHED: u8 = 124;

impl Options {
    /// Boots the machine and runs it to its end.
    pub(super) fn run(self, path: &Path, text: &str) -> Outcome {
        let name = path.display().to_string();
        let description: Description = description::parse(&name, text)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let (mut machine, _) = description
            .build(folder, Box::new(io::stdout()))
            .map_err(|error| format!("{name}: {error}"))?;
        let instructions_max = self.max_instructions.unwrap_or(u64::MAX);
        let quantum = description.machine.quantum;
        let outcome = match description.machine.clock {
            Clock::Host if !self.deterministic => HostThreads {
                slice: quantum,
                instructions_max,
                ..HostThreads::default()
            }
            .run(&mut machine),
            _ => VirtualTime {
                quantum,
                instructions_max,
                ..VirtualTime::default()
            }
            .run(&mut machine),
        };
        match outcome.end {
            End::Exit(code) => Ok(exit_code(code)),
            End::Limit => {
                eprintln!("sidestep: {name}: stopped after {instructions_max} instructions");
                Ok(ExitCode::from(LIMIT_REACHED))
            }
            End::Deadlock => Err(format!(
                "{name}: every processor waits or is stopped, and no timer or device will wake one"
            )
            .into()),
            End::Stopped | End::Halted(_) => Ok(ExitCode::FAILURE),
        }
    }
}
