//! What was watched, as a file: threads, matrix, sets.
//!
//! JSON, one object. `sidestep gang run --sets` finds the recorded threads again by the name of their program and
//! their place in it, since numbers change from run to run; the laboratory reads the matrix alone.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sidestep_gang::{CoscheduledSets, SharingMatrix};

use crate::HostError;
use crate::watch::{Snapshot, WatchedThread, Way};

/// The version of the format.
const VERSION: u32 = 1;
/// The most bytes of a file: the matrix of some thousand threads.
const BYTES_MAX: u64 = 256 << 20;

/// A recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The version of the format.
    pub sidestep_gang_recording: u32,
    /// How the sharing was seen, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// The threads, by their numbers in matrix and sets.
    pub threads: Vec<WatchedThread>,
    /// Communication events of each pair.
    pub matrix: SharingMatrix,
    /// How much each pair shares, where that was estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amounts: Option<SharingMatrix>,
    /// Who should run together.
    pub sets: CoscheduledSets,
}

impl Recording {
    /// What is known at a moment, as a recording.
    pub fn of(snapshot: &Snapshot, way: &Way) -> Self {
        let (matrix, sets) = (snapshot.matrix.clone(), snapshot.sets.clone());
        Self {
            amounts: Some(snapshot.amounts.clone()),
            ..Self::new(way.clone(), snapshot.threads.clone(), matrix, sets)
        }
    }

    /// A recording of threads, which have the numbers of the matrix and the sets.
    pub fn new(way: Way, threads: Vec<WatchedThread>, matrix: SharingMatrix, sets: CoscheduledSets) -> Self {
        Self {
            sidestep_gang_recording: VERSION,
            way: Some(way),
            threads,
            matrix,
            amounts: None,
            sets,
        }
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// When the text is none: the message names the place.
    pub fn parse(path: &Path, text: &str) -> Result<Self, HostError> {
        let malformed = |reason: String| HostError::Malformed {
            path: path.to_owned(),
            reason,
        };
        let recording: Self = serde_json::from_str(text).map_err(|error| {
            malformed(format!(
                "{error}; expected a recording made by `sidestep gang watch`"
            ))
        })?;
        if recording.sidestep_gang_recording != VERSION {
            let found = recording.sidestep_gang_recording;
            return Err(malformed(format!(
                "version {found} of the format, expected {VERSION}"
            )));
        }
        let (threads, tasks) = (recording.threads.len(), recording.matrix.tasks());
        if threads != tasks {
            return Err(malformed(format!(
                "{threads} threads but a matrix of {tasks}; expected one row for each"
            )));
        }
        let stray = recording
            .sets
            .sets()
            .iter()
            .flatten()
            .find(|task| task.index() >= tasks);
        if let Some(task) = stray {
            return Err(malformed(format!(
                "task {task} in `sets`, but there are only {tasks} threads"
            )));
        }
        Ok(recording)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no recording.
    pub fn read(path: &Path) -> Result<Self, HostError> {
        let read = || {
            let mut text = String::new();
            File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
            match text.len() as u64 > BYTES_MAX {
                true => Err(ErrorKind::FileTooLarge.into()),
                false => Ok(text),
            }
        };
        let text = read().map_err(HostError::file("read", path))?;
        Self::parse(path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Recording, HostError> {
        Recording::parse(Path::new("some.json"), text)
    }

    #[test]
    fn malformed_recordings_are_named() {
        let thread = r#"{"task":0,"process":1,"thread":1,"start":5,"program":"p","place":0,"is_alive":true}"#;
        let with = |threads: &str, matrix: &str, sets: &str| {
            format!(
                r#"{{"sidestep_gang_recording":1,"threads":[{threads}],"matrix":{matrix},"sets":{sets}}}"#
            )
        };
        assert!(parse(&with(thread, "[[0]]", "[[0]]")).is_ok());
        for (text, expected) in [
            (with(thread, "[[0,1]]", "[[0]]"), "row 0 has 2 columns"),
            (
                with(thread, "[[0,1],[1,0]]", "[[0]]"),
                "1 threads but a matrix of 2",
            ),
            (with(thread, "[[0]]", "[[1]]"), "task 1 in `sets`"),
            (with(thread, "[[0]]", "[[0],[0]]"), "more than one set"),
            ("{".to_owned(), "line 1"),
        ] {
            let error = parse(&text).expect_err("malformed").to_string();
            assert!(error.contains(expected), "{error} should say {expected}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,120}") {
            let _ = parse(&text);
        }
    }
}
