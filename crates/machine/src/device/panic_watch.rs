//! Noticing that the guest's kernel has panicked.
//!
//! A kernel that panics tells nobody but its console: without `panic=` on its command line it then waits for ever,
//! with it it resets the machine like any reboot. [`PanicWatch`] stands between the serial port and the console and
//! reads along: the line with which Linux reports a panic makes a later reset the machine's end, and the line behind
//! which Linux waits for ever ends it. A kernel that has no console on the serial port, or is quiet, is not noticed.

use std::sync::Arc;

use crate::machine::ending::{Ending, Request};
use crate::machine::hypercall::Console;

/// What stands before the reason of a panic, since Linux 2.0.
const REPORT: &str = "Kernel panic - not syncing: ";
/// What stands before the line behind which a panic waits, since Linux 3.14.
const LAST_LINE: &str = "---[ end Kernel panic";
/// The longest part of a line that is looked at: time stamps and levels stand before the report.
const LINE_MAX: usize = 1024;

/// A console that is read along.
pub struct PanicWatch {
    console: Box<dyn Console>,
    ending: Arc<Ending>,
    line: Vec<u8>,
}

impl PanicWatch {
    /// In front of `console`.
    pub fn new(console: Box<dyn Console>, ending: Arc<Ending>) -> PanicWatch {
        PanicWatch {
            console,
            ending,
            line: Vec::new(),
        }
    }

    fn look(&mut self, byte: u8) {
        match byte {
            b'\n' | b'\r' => self.end_line(),
            _ if self.line.len() < LINE_MAX => self.line.push(byte),
            _ => {}
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        if line.contains(LAST_LINE) {
            self.ending.request(Request::Panic);
        } else if let Some((_, reason)) = line.split_once(REPORT) {
            self.ending.note_panic(reason.trim_end().to_owned());
        }
        self.line.clear();
    }
}

impl Console for PanicWatch {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.look(byte));
        self.console.write(bytes);
    }

    fn read(&mut self) -> Option<u8> {
        self.console.read()
    }

    fn has_ended(&self) -> bool {
        self.console.has_ended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(output: &str) -> Arc<Ending> {
        let ending = Arc::<Ending>::default();
        let mut watch = PanicWatch::new(Box::new(std::io::sink()), Arc::clone(&ending));
        output.bytes().for_each(|byte| watch.write(&[byte]));
        ending
    }

    #[test]
    fn a_panic_is_noted_and_ends_the_machine_where_it_waits() {
        let report = "[    1.5] Kernel panic - not syncing: No working init found.\r\n";
        let ending = watched(report);
        assert_eq!(ending.panic().as_deref(), Some("No working init found."));
        assert_eq!(ending.requested(), None, "it may still reset");
        let ending = watched(&format!(
            "{report}---[ end Kernel panic - not syncing: No working init found. ]---\r\n"
        ));
        assert_eq!(ending.requested(), Some(Request::Panic));
        assert_eq!(ending.panic().as_deref(), Some("No working init found."));
    }

    #[test]
    fn other_lines_are_none() {
        let endless = "x".repeat(100_000);
        for output in [
            "a kernel panic\n",
            "Kernel panic - not syncing: cut",
            endless.as_str(),
        ] {
            let ending = watched(output);
            assert_eq!((ending.panic(), ending.requested()), (None, None));
        }
    }
}
