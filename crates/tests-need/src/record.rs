//! The record of a run of tests: who got what it needs, and who was left out.
//!
//! Each process of tests appends lines to a file in the target folder that is named after the process that started them
//! all, so that runs do not mix. The last process sums it up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::panic::Location;
use std::path::PathBuf;

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

/// The record of this run: `PROFILE/tests-need/PARENT-START` in the target folder.
fn file() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let parent = rustix::process::getppid()?.as_raw_nonzero();
    // Numbers of processes come again; the one with the time it began at does not.
    let status = fs::read_to_string(format!("/proc/{parent}/stat")).ok()?;
    let began = status.rsplit(')').next()?.split_whitespace().nth(19)?.to_owned();
    let folder = program.parent()?.parent()?.join("tests-need");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join(format!("{parent}-{began}")))
}

/// Appends a line. Where the target folder cannot be written there is no closing line; the tests go on.
fn append(test: &str, reason: Option<&str>) {
    let Some(path) = file() else { return };
    let reason = reason.unwrap_or_default().replace(['\t', '\n'], " ");
    let line = format!("{test}\t{reason}\n");
    if let Ok(mut record) = fs::OpenOptions::new().create(true).append(true).open(path) {
        let _ = record.write_all(line.as_bytes());
    }
}

/// Who got what it needs, and who was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    ran: BTreeSet<String>,
    left_out: BTreeMap<String, String>,
}

impl Summary {
    /// The record of this run, which is taken away; nothing where no test needed anything.
    pub fn take() -> Summary {
        let Some(path) = file() else {
            return Summary::default();
        };
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        Summary::read(&text)
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
