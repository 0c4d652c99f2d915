//! What guests print and are told: consoles, the keyboard, and warnings of guests that get nowhere.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;
use std::sync::{Arc, Mutex};

use sidestep_hypervisor::VirtualMachine;
use sidestep_hypervisor::host::sidecores::locked;
use sidestep_machine::machine::hypercall::Console;
use sidestep_machine::machine::interruption_loop::InterruptionLoop;

use super::super::super::print;
use super::super::console::status;
use super::super::console::stdio::{self, Terminal};

/// A virtual machine, of whichever host.
#[derive(Clone)]
pub struct Guest {
    /// Tells it from all others.
    pub name: String,
    /// The virtual machine.
    pub machine: Arc<Mutex<VirtualMachine>>,
}

/// Which virtual machines were said to take interruptions and nothing else.
#[derive(Default)]
pub struct Loops {
    said: BTreeSet<usize>,
}

impl Loops {
    /// Says of each virtual machine once that a processor of it gets nowhere.
    pub fn look(&mut self, guests: &[Guest]) {
        for (index, guest) in guests.iter().enumerate() {
            let machine = locked(&guest.machine);
            let mut processors = machine.processors().iter().enumerate();
            let found = processors.find_map(|(index, of)| InterruptionLoop::of(index, of.processor()));
            if let Some(found) = found
                && self.said.insert(index)
            {
                status::say(&format!("sidestep: virtual machine `{}`: {found}", guest.name));
            }
        }
    }
}

/// The standard input, for the one virtual machine that takes input.
pub struct Keyboard {
    /// Which, and what is typed.
    to: Option<(Guest, Terminal)>,
}

impl Keyboard {
    /// If several take input it is for none of them.
    pub fn of(guests: &[Guest]) -> Keyboard {
        let takers = || guests.iter().filter(|guest| locked(&guest.machine).takes_input());
        let to = match takers().count() {
            1 => takers().next().map(|guest| (guest.clone(), Terminal::default())),
            _ => None,
        };
        if to.is_none() {
            takers().for_each(|guest| locked(&guest.machine).type_input(&[], true));
        }
        Keyboard { to }
    }

    /// Whether somebody may type.
    pub fn is_live(&self) -> bool {
        self.to.is_some() && stdio::is_live()
    }

    /// Hands on what was typed.
    pub fn pass_on(&mut self) {
        let Some((guest, terminal)) = &mut self.to else {
            return;
        };
        let bytes: Vec<u8> = std::iter::from_fn(|| terminal.read()).collect();
        let has_ended = terminal.has_ended();
        locked(&guest.machine).type_input(&bytes, has_ended);
        if has_ended {
            self.to = None;
        }
    }
}

/// What guests have printed: line by line with their names, if there are several.
pub struct Consoles {
    /// Each with its unfinished line.
    guests: Vec<(Guest, Vec<u8>)>,
}

impl Consoles {
    /// Those of these virtual machines.
    pub fn new(guests: &[Guest]) -> Consoles {
        Consoles {
            guests: guests.iter().map(|guest| (guest.clone(), Vec::new())).collect(),
        }
    }

    /// Prints what there is since the last time, unfinished lines too if it is `all` that will come.
    pub fn flush(&mut self, all: bool) -> Result<(), Box<dyn Error>> {
        let several = self.guests.len() > 1;
        for (guest, rest) in &mut self.guests {
            rest.extend(locked(&guest.machine).take_console());
            if !several {
                show(&std::mem::take(rest))?;
                continue;
            }
            let complete = match (all, rest.iter().rposition(|byte| *byte == b'\n')) {
                (true, _) => rest.len(),
                (false, last) => last.map_or(0, |last| last + 1),
            };
            let mut output = Vec::new();
            for line in rest
                .drain(..complete)
                .collect::<Vec<u8>>()
                .split(|byte| *byte == b'\n')
            {
                if !line.is_empty() {
                    write!(output, "{}: ", guest.name)?;
                    output.extend_from_slice(line);
                    output.push(b'\n');
                }
            }
            show(&output)?;
        }
        Ok(())
    }
}

/// Prints what guests have printed, without the status line in the way.
fn show(output: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut printed = Ok(());
    if !output.is_empty() {
        status::printing(output.last().copied(), || printed = print(output));
    }
    printed
}
