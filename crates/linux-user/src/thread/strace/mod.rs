//! `--strace`: one line a system call, in the way of the tool of that name.

pub mod names;

use std::fmt::Write;

use crate::host::{self, Errno};
use crate::memory::Memory;
use crate::thread::syscalls::Unfinished;
use crate::thread::syscalls::shape::Shape;
use crate::thread::syscalls::table::{self, SystemCall};

/// Bytes of a string or buffer that are shown.
const SHOWN: usize = 32;

/// A call as it begins: what must be read before the call changes it.
pub struct Line {
    text: String,
    /// Arguments that can only be shown when the result is known, with their place in `text`.
    outputs: Vec<(usize, u64)>,
}

impl Line {
    /// Describes a call and its arguments.
    pub fn begin(memory: &Memory, thread: i32, number: u64, arguments: &[u64; 6]) -> Line {
        let mut line = Line {
            text: format!("[{thread}] "),
            outputs: Vec::new(),
        };
        match table::find(number) {
            Some(call) => line.describe(memory, call, arguments),
            None => {
                let _ = write!(line.text, "system_call_{number}(");
                let shown: Vec<_> = arguments
                    .iter()
                    .map(|argument| format!("{argument:#x}"))
                    .collect();
                line.text.push_str(&shown.join(", "));
            }
        }
        line.text.push(')');
        line
    }

    fn describe(&mut self, memory: &Memory, call: &SystemCall, arguments: &[u64; 6]) {
        self.text.push_str(call.name);
        self.text.push('(');
        for (at, (shape, argument)) in call.arguments.iter().zip(arguments).enumerate() {
            if at > 0 {
                self.text.push_str(", ");
            }
            if let Shape::Output = shape {
                self.outputs.push((self.text.len(), *argument));
            } else {
                self.text
                    .push_str(&describe(memory, *shape, *argument, arguments));
            }
        }
    }

    /// Shows a call that does not come back, such as `exit`.
    pub fn print_without_result(mut self, memory: &Memory) {
        self.fill_outputs(memory, 0);
        host::print_error(&format!("{} = ?\n", self.text));
    }

    /// Shows the call with its result.
    pub fn print(mut self, memory: &Memory, result: &Result<u64, Unfinished>) {
        self.fill_outputs(memory, result.as_ref().map_or(0, |value| *value as usize));
        let result = match result {
            Ok(value) if *value < 0x1_0000_0000 => format!("{value}"),
            Ok(value) => format!("{value:#x}"),
            Err(Unfinished::Error(error)) => format!("-1 {error}"),
            Err(Unfinished::Restart) => "? (to be restarted)".into(),
            Err(Unfinished::RestartAlways) => "? (after a signal)".into(),
            Err(Unfinished::Resumed) => "? (context restored)".into(),
            Err(Unfinished::ThreadEnd(_) | Unfinished::ProcessEnd(_)) => "?".into(),
        };
        host::print_error(&format!("{} = {result}\n", self.text));
    }

    fn fill_outputs(&mut self, memory: &Memory, length: usize) {
        for (at, address) in std::mem::take(&mut self.outputs).into_iter().rev() {
            let shown = if length == 0 {
                format!("{address:#x}")
            } else {
                quote_memory(memory, address, length)
            };
            self.text.insert_str(at, &shown);
        }
    }
}

fn describe(memory: &Memory, shape: Shape, value: u64, arguments: &[u64; 6]) -> String {
    match shape {
        Shape::Int => (value as i32).to_string(),
        Shape::Long => (value as i64).to_string(),
        Shape::Size => value.to_string(),
        Shape::Mode => format!("{:#o}", value as u32),
        Shape::Folder if value as i32 == libc::AT_FDCWD => "AT_FDCWD".into(),
        Shape::Descriptor | Shape::Folder => (value as i32).to_string(),
        Shape::Signal => names::signal(value as i32),
        Shape::Named(set) => set.describe(value),
        Shape::AtFlags => names::AT.describe(value),
        _ if shape.is_pointer() && value == 0 => "NULL".into(),
        Shape::Path | Shape::Link | Shape::Text => quote_string(memory, value),
        Shape::Input(length) => quote_memory(memory, value, arguments[length] as usize),
        Shape::SignalSet => memory
            .read::<u64>(value)
            .map_or_else(|_| hexadecimal(value), describe_set),
        Shape::Timespec => memory.read::<[i64; 2]>(value).map_or_else(
            |_| hexadecimal(value),
            |[seconds, nanoseconds]| format!("{{tv_sec={seconds}, tv_nsec={nanoseconds}}}"),
        ),
        Shape::Strings => memory.read_strings(value).map_or_else(
            |_| hexadecimal(value),
            |strings| match strings.len() {
                0..=8 => format!(
                    "[{}]",
                    strings
                        .iter()
                        .map(|text| quote(text, false))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
                many => format!("{value:#x} /* {many} strings */"),
            },
        ),
        Shape::Hex | Shape::Pointer | Shape::Output => hexadecimal(value),
    }
}

fn hexadecimal(value: u64) -> String {
    if value < 10 {
        value.to_string()
    } else {
        format!("{value:#x}")
    }
}

/// The members of a signal set, or what it lacks where that is shorter.
fn describe_set(set: u64) -> String {
    let (mark, shown) = if set.count_ones() > 32 {
        ("~", !set)
    } else {
        ("", set)
    };
    let members = (1..=64).filter(|signal| shown >> (signal - 1) & 1 != 0);
    let members: Vec<String> = members
        .map(|signal| names::signal(signal).replace("SIG", ""))
        .collect();
    format!("{mark}[{}]", members.join(" "))
}

fn quote_string(memory: &Memory, address: u64) -> String {
    match memory.read_string(address) {
        Ok(text) => quote(&text, false),
        Err(Errno(_)) => hexadecimal(address),
    }
}

fn quote_memory(memory: &Memory, address: u64, length: usize) -> String {
    let mut bytes = vec![0; length.min(SHOWN)];
    match memory.read_bytes(address, &mut bytes) {
        Ok(()) => quote(&bytes, length > SHOWN),
        Err(_) => hexadecimal(address),
    }
}

fn quote(bytes: &[u8], cut: bool) -> String {
    let text = bytes.escape_ascii().to_string().replace("\\'", "'");
    format!("\"{text}\"{}", if cut { "..." } else { "" })
}
