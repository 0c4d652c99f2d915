//! The record of a run of tests: who got what it needs, and who was left out.
//!
//! Each process of tests appends lines to a file in the target folder that is named after the process that started them
//! all, so that runs do not mix. The last process sums it up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};

use crate::is_complete;

/// Records that the calling test cannot run here, and says so on the terminal.
#[track_caller]
pub fn leave_out(reason: &str) {
    let test = test();
    // Straight to the stream: the harness keeps to itself what the print macros write.
    let _ = writeln!(io::stderr().lock(), "left out: {test}: {reason}");
    append(&test, Some(reason));
}

/// Records that the calling test has what it needs; it is one line in the record however often it asks.
#[track_caller]
pub(crate) fn had() {
    append(&test(), None);
}

/// Leaves the calling test out for something that could be installed, unless it must be there.
///
/// # Panics
///
/// In continuous integration.
#[track_caller]
pub(crate) fn missing(reason: &str) {
    assert!(!is_complete(), "{reason}; continuous integration must have it");
    leave_out(reason);
}

/// The calling test: the program's name and what the harness calls the thread, or the place of the call when tests have
/// no threads of their own.
#[track_caller]
fn test() -> String {
    match (program(), std::thread::current().name()) {
        (Some(program), Some(name)) if name != "main" => format!("{program}::{name}"),
        _ => Location::caller().to_string(),
    }
}

/// The name of the program of tests, without the hash that Cargo appends.
fn program() -> Option<String> {
    let path = std::env::current_exe().ok()?;
    let name = path.file_name()?.to_str()?;
    Some(
        name.rsplit_once('-')
            .map_or(name, |(name, _hash)| name)
            .to_owned(),
    )
}

/// Where records are kept.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tests-need");

/// A process, and the record of the run of tests that it started.
struct Starter {
    process: i32,
    parent: i32,
    record: PathBuf,
}

impl Starter {
    /// A process that is alive.
    fn of(process: i32) -> Option<Starter> {
        let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // Behind the name, which can hold anything: state, parent, ..., and as the 20th the time it began at. Numbers
        // of processes come again; the one with its time does not.
        let fields: Vec<&str> = status.rsplit(')').next()?.split_whitespace().collect();
        Some(Starter {
            process,
            parent: fields.get(1)?.parse().ok()?,
            record: Path::new(FOLDER).join(format!("{process}-{}", fields.get(19)?)),
        })
    }

    /// The process that started this one.
    fn of_this() -> Option<Starter> {
        Starter::of(rustix::process::getppid()?.as_raw_nonzero().get())
    }

    /// The nearest process above this one that has started tests which needed something.
    fn with_record() -> Option<Starter> {
        std::iter::successors(Starter::of_this(), |starter| Starter::of(starter.parent))
            .find(|starter| starter.record.exists())
    }
}

/// Appends a line. Where the target folder cannot be written there is no closing line; the tests go on.
fn append(test: &str, reason: Option<&str>) {
    let Some(starter) = Starter::of_this() else { return };
    let reason = reason.unwrap_or_default().replace(['\t', '\n'], " ");
    let open = || {
        fs::create_dir_all(FOLDER)?;
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(starter.record)
    };
    let _ = open().and_then(|mut record| record.write_all(format!("{test}\t{reason}\n").as_bytes()));
}

/// Who got what it needs, and who was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    ran: BTreeSet<String>,
    left_out: BTreeMap<String, String>,
}

impl Summary {
    /// That of the run of tests so far; nothing where no test needed anything.
    pub fn so_far() -> Summary {
        let text = Starter::of_this().and_then(|starter| fs::read_to_string(starter.record).ok());
        Summary::read(&text.unwrap_or_default())
    }

    /// Reads a record. A test that went without anything is left out, whatever else it had; of several reasons the
    /// first counts.
    fn read(text: &str) -> Summary {
        let mut summary = Summary::default();
        for (test, reason) in text.lines().filter_map(|line| line.split_once('\t')) {
            if reason.is_empty() {
                summary.ran.insert(test.to_owned());
            } else {
                summary
                    .left_out
                    .entry(test.to_owned())
                    .or_insert_with(|| reason.to_owned());
            }
        }
        summary.ran.retain(|test| !summary.left_out.contains_key(test));
        summary
    }
}

/// The closing line.
impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ran, left_out) = (self.ran.len(), self.left_out.len());
        write!(
            formatter,
            "of the tests that need something of this machine {ran} ran, {left_out} left out"
        )?;
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in self.left_out.values() {
            *reasons.entry(reason).or_default() += 1;
        }
        for (index, (reason, tests)) in reasons.into_iter().enumerate() {
            let begin = if index == 0 { " because" } else { "," };
            write!(formatter, "{begin} {reason}: {tests}")?;
        }
        Ok(())
    }
}

/// Ends a run of tests from a doc test, which come last: writes the closing line once more, to the error stream of the
/// process that started the tests, because what a doc test writes itself is kept from the terminal. Then the record
/// goes.
pub fn close() {
    let Some(starter) = Starter::with_record() else {
        return;
    };
    let text = fs::read_to_string(&starter.record).unwrap_or_default();
    let stream = format!("/proc/{}/fd/2", starter.process);
    if let Ok(mut stream) = fs::OpenOptions::new().append(true).open(stream) {
        let _ = writeln!(stream, "\n{}\n", Summary::read(&text));
    }
    let _ = fs::remove_file(&starter.record);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_counts_once_and_is_left_out_when_anything_is_missing() {
        let record = "x::a\t\nx::a\t\nx::b\t\nx::b\tno kernel\nx::c\tno kernel\nx::d\tno gdb\n";
        assert_eq!(
            Summary::read(record).to_string(),
            "of the tests that need something of this machine 1 ran, 3 left out because no gdb: 1, no kernel: 2"
        );
    }

    #[test]
    fn without_needs_nothing_is_left_out() {
        assert_eq!(
            Summary::read("").to_string(),
            "of the tests that need something of this machine 0 ran, 0 left out"
        );
    }
}
