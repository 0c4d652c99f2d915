//! A bare IA-64 machine, as a TOML file describes it.

use std::path::Path;

use sidestep_machine::description::bare::Description;
use sidestep_runner::machine::execution::Prepared;

use super::super::Outcome;
use super::console::stdio::Terminal;
use super::description;
use super::execution::{Options, Ready};

/// Boots the machine that the text of `path` describes, and runs it to its end.
pub fn run(path: &Path, text: &str, options: &Options) -> Outcome {
    let name = path.display().to_string();
    let description: Description = description::parse(&name, text)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let built = description
        .build(folder, Box::new(Terminal::default()))
        .map_err(|error| format!("{name}: {error}"))?;
    options.run(Ready {
        name: &name,
        prepared: Prepared {
            machine: built.machine,
            parts: None,
            clock: description.machine.clock,
            quantum_ticks: description.machine.quantum_ticks,
            sidecore: description.machine.sidecore,
            expects_input: false,
            paces_idle: false,
        },
        image: &built.image,
        requests: None,
        rebuild: None,
    })
}
