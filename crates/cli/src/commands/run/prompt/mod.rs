//! The prompt: what can be asked of a machine, and done to it, while it runs.
//!
//! Every command is carried out between two instructions: the machine stops for it, and goes on unless `stop` says
//! otherwise. [`info`] has the reports, [`backtrace`] who called whom.

mod backtrace;
mod info;

pub use backtrace::of_panic;

use std::path::Path;

use sidestep_lab::suggest::nearest;
use sidestep_machine::Machine;
use sidestep_machine::description::kernel::Parts;
use sidestep_machine::snapshot;
use sidestep_symbols::Names;

/// What is shown when a line is expected.
pub const PROMPT: &str = "(sidestep) ";

/// What a command has to do with the machine's execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// It is to stand still.
    Stop,
    /// It is to go on.
    Continue,
    /// It is to start again, as after power on.
    Reset,
    /// The command is to end.
    Quit,
}

/// What commands know.
pub struct Context<'a> {
    /// The machine, which stands still.
    pub machine: &'a mut Machine,
    /// Its devices, if it is a whole machine.
    pub parts: Option<&'a Parts>,
    /// Names of its code.
    pub symbols: &'a Names,
    /// The image that it runs, for its unwind tables.
    pub image: &'a [u8],
}

type Action = fn(&mut Context<'_>, &str) -> (String, After);

struct Command {
    name: &'static str,
    help: &'static str,
    action: Action,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "help",
        help: "this list",
        action: |_, _| (help(), After::Nothing),
    },
    Command {
        name: "info",
        help: "cpus | registers [CPU] | tlb [CPU] | devices | mem: how the machine is",
        action: |context, of| (info::report(context, of), After::Nothing),
    },
    Command {
        name: "backtrace",
        help: "[CPU]: who called whom, through the kernel's unwind tables",
        action: |context, cpu| (backtrace::report(context, cpu), After::Nothing),
    },
    Command {
        name: "stop",
        help: "let the machine stand still",
        action: |_, _| (String::new(), After::Stop),
    },
    Command {
        name: "cont",
        help: "let it go on",
        action: |_, _| (String::new(), After::Continue),
    },
    Command {
        name: "save",
        help: "FILE: save the machine, for `sidestep run --restore FILE`",
        action: |context, file| (save(context, file), After::Nothing),
    },
    Command {
        name: "reset",
        help: "start the machine again, from the same files, as a reset button does",
        action: |context, _| reset(context),
    },
    Command {
        name: "quit",
        help: "end the command, as if the machine were unplugged",
        action: |_, _| (String::new(), After::Quit),
    },
];

fn save(context: &mut Context<'_>, file: &str) -> String {
    let Some(parts) = context.parts else {
        return "only machines that start a kernel can be saved\n".to_owned();
    };
    if file.is_empty() {
        return "save to which file?\n".to_owned();
    }
    match snapshot::save(context.machine, parts, Path::new(file)) {
        Ok(()) => format!("saved to {file}\n"),
        Err(error) => format!("{error}\n"),
    }
}

fn reset(context: &Context<'_>) -> (String, After) {
    match context.parts {
        Some(_) => (String::new(), After::Reset),
        None => (
            "only machines that start a kernel can be reset\n".to_owned(),
            After::Nothing,
        ),
    }
}

fn help() -> String {
    let line = |command: &Command| format!("{:<9} {}\n", command.name, command.help);
    let keys = "Ctrl-a c leads back to the console.\n";
    COMMANDS.iter().map(line).chain([keys.to_owned()]).collect()
}

/// Carries out a line; returns what to print.
pub fn command(context: &mut Context<'_>, line: &str) -> (String, After) {
    let line = line.trim();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if name.is_empty() {
        return (String::new(), After::Nothing);
    }
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.action)(context, rest.trim()),
        None => (
            unknown("command", name, COMMANDS.iter().map(|command| command.name)),
            After::Nothing,
        ),
    }
}

/// What is said to a name that is none.
fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("unknown {kind} `{name}` (did you mean `{near}`?)\n"),
        None => {
            let known: Vec<&str> = known.collect();
            format!("unknown {kind} `{name}` (known: {})\n", known.join(", "))
        }
    }
}
