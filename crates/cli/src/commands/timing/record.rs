//! A profile in a file: what `perf record` writes and `perf annotate` reads.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidestep_itanium2::profile::Place;
use sidestep_itanium2::{Event, Profile, Stall};
use sidestep_vmm::file;

/// The format's version; changes when old files can no longer be read.
const VERSION: u32 = 1;

/// The file's contents.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    version: u32,
    /// The preset.
    pub processor: String,
    /// The program that ran.
    pub program: PathBuf,
    places: Vec<RecordedPlace>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedPlace {
    address: u64,
    executions: u64,
    issue_cycles: u64,
    /// Bubbles by the name of their event.
    bubbles: std::collections::BTreeMap<String, u64>,
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be read.
    #[error("{}: cannot be read", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// It is no recording.
    #[error("{}: is not a recording of `sidestep perf record`", .0.display())]
    Format(PathBuf, #[source] serde_json::Error),
    /// It is of another version.
    #[error("{}: is a recording of version {}, this program reads version {VERSION}", .0.display(), .1)]
    Version(PathBuf, u32),
    /// It names a counter that does not exist.
    #[error("{}", .0.display())]
    Counter(PathBuf, #[source] sidestep_itanium2::names::Unknown),
}

impl Recording {
    /// A recording of a run.
    pub fn new(processor: &str, program: &Path, profile: &Profile) -> Recording {
        let places = profile.places.iter().map(|(address, place)| RecordedPlace {
            address: *address,
            executions: place.executions,
            issue_cycles: place.issue_cycles,
            bubbles: Stall::ALL
                .iter()
                .map(|stall| (stall.event().name().to_owned(), place.bubbles[*stall as usize]))
                .filter(|(_, count)| *count > 0)
                .collect(),
        });
        Recording {
            version: VERSION,
            processor: processor.to_owned(),
            program: program.to_owned(),
            places: places.collect(),
        }
    }

    /// Its file's contents.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a recording has a text form")
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Recording, RecordError> {
        let bytes =
            file::read(path, file::IMAGE_BYTES_MAX).map_err(|error| RecordError::Read(path.into(), error))?;
        let recording: Recording =
            serde_json::from_slice(&bytes).map_err(|error| RecordError::Format(path.into(), error))?;
        if recording.version != VERSION {
            return Err(RecordError::Version(path.into(), recording.version));
        }
        Ok(recording)
    }

    /// The profile.
    pub fn profile(&self, path: &Path) -> Result<Profile, RecordError> {
        let mut profile = Profile::default();
        for recorded in &self.places {
            let mut place = Place {
                executions: recorded.executions,
                issue_cycles: recorded.issue_cycles,
                ..Place::default()
            };
            for (name, count) in &recorded.bubbles {
                let event = Event::by_name(name).map_err(|error| RecordError::Counter(path.into(), error))?;
                if let Some(stall) = Stall::ALL.iter().find(|stall| stall.event() == event) {
                    place.bubbles[*stall as usize] = *count;
                }
            }
            profile.places.insert(recorded.address, place);
        }
        Ok(profile)
    }
}
