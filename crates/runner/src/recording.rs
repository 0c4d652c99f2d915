//! A recording in a file: what `perf record` writes and `perf report` and `perf annotate` read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidestep_itanium2::pmu::event_address::TranslatedBy;
use sidestep_itanium2::pmu::sampling::{Sample, Sampled};
use sidestep_itanium2::profile::Place;
use sidestep_itanium2::{Event, Pace, Profile, Stall};

/// The format's version; changes when old files can no longer be read.
const VERSION: u32 = 3;
/// More than any run counts, and little enough that shares of a sum can be computed.
const COUNT_MAX: u64 = 1 << 52;

/// The file's contents.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    version: u32,
    /// The preset.
    pub processor: String,
    /// What ran: processes by their numbers, and the programs of each in the order in which it executed them.
    pub processes: Vec<RecordedProcess>,
}

/// A process while it ran one program.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedProcess {
    /// Its number.
    pub pid: u32,
    /// The name of the program, without folders.
    pub command: String,
    /// The program.
    pub program: PathBuf,
    /// What was recorded.
    pub contents: Contents,
}

/// What was recorded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contents {
    /// All cycles, by bundle.
    Places(Vec<RecordedPlace>),
    /// Samples, by event.
    Samples(Vec<RecordedEvent>),
}

/// The cycles of a bundle.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedPlace {
    address: u64,
    executions: u64,
    issue_cycles: u64,
    /// Bubbles by the name of their event.
    bubbles: std::collections::BTreeMap<String, u64>,
}

/// The samples of an event.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedEvent {
    /// Its name.
    pub event: String,
    /// How many events a sample was taken after, if that was the pace.
    pub period: Option<u64>,
    /// How many cycles a sample was taken after, if that was.
    pub cycles: Option<u64>,
    /// How many events there were in all.
    pub events: u64,
    /// Samples that were not kept.
    pub lost: u64,
    /// The samples: thread by thread, each in the order of time.
    pub samples: Vec<RecordedSample>,
}

/// A sample.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedSample {
    /// The number of its thread, in the order in which they were started.
    #[serde(skip_serializing_if = "is_zero")]
    pub thread: u64,
    /// The cycle of its thread.
    pub cycle: u64,
    /// The bundle.
    pub ip: u64,
    /// The slot; none of cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<u8>,
    /// How many events it stands for.
    pub weight: u64,
    /// What the instruction referred to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Cycles that the load or the fetch took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<u64>,
    /// Where it was translated, if not in the first level of the TLB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translated: Option<Translated>,
    /// What the branch did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<RecordedBranch>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Where a translation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Translated {
    /// In the second level of the TLB.
    Second,
    /// By the walker.
    Walker,
    /// By software.
    Software,
}

/// What a branch did.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedBranch {
    /// Where it went; none of a branch that was not taken.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<u64>,
    /// Whether the direction was predicted wrongly.
    pub wrong_path: bool,
    /// Whether the target was.
    pub wrong_target: bool,
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
    /// Its counts cannot be those of a run.
    #[error("{}: counts more than 2^52 cycles or events, which no run has", .0.display())]
    Counts(PathBuf),
    /// It names a counter that does not exist.
    #[error("{}", .0.display())]
    Counter(PathBuf, #[source] sidestep_itanium2::names::Unknown),
}

impl Recording {
    /// A recording of a run.
    pub fn new(processor: &str, processes: Vec<RecordedProcess>) -> Recording {
        Recording {
            version: VERSION,
            processor: processor.to_owned(),
            processes,
        }
    }

    /// Its file's contents.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a recording has a text form")
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Recording, RecordError> {
        /// What recordings of every version begin with.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let bytes = sidestep_files::read(path, sidestep_files::IMAGE_BYTES_MAX)
            .map_err(|error| RecordError::Read(path.into(), error))?;
        let format = |error| RecordError::Format(path.into(), error);
        let Versioned { version } = serde_json::from_slice(&bytes).map_err(format)?;
        if version != VERSION {
            return Err(RecordError::Version(path.into(), version));
        }
        let recording: Recording = serde_json::from_slice(&bytes).map_err(format)?;
        let totals = recording.processes.iter().map(|process| process.contents.total());
        match totals.sum::<u128>() <= u128::from(COUNT_MAX) {
            true => Ok(recording),
            false => Err(RecordError::Counts(path.into())),
        }
    }
}

impl Contents {
    /// Everything that is counted, summed up.
    fn total(&self) -> u128 {
        let of_place = |place: &RecordedPlace| {
            let bubbles = place.bubbles.values().copied();
            let counts = bubbles.chain([place.executions, place.issue_cycles]);
            counts.map(u128::from).sum::<u128>()
        };
        let of_event = |event: &RecordedEvent| {
            let weights = event.samples.iter().map(|sample| sample.weight);
            let counts = weights.chain([event.events, event.lost]);
            counts.map(u128::from).sum::<u128>()
        };
        match self {
            Contents::Places(places) => places.iter().map(of_place).sum(),
            Contents::Samples(events) => events.iter().map(of_event).sum(),
        }
    }

    /// How many places or samples there are, and how many samples more were not kept.
    pub fn kept(&self) -> (usize, u64) {
        match self {
            Contents::Places(places) => (places.len(), 0),
            Contents::Samples(events) => (
                events.iter().map(|event| event.samples.len()).sum(),
                events.iter().map(|event| event.lost).sum(),
            ),
        }
    }

    /// The cycles of a profile.
    pub fn of_profile(profile: &Profile) -> Contents {
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
        Contents::Places(places.collect())
    }

    /// The samples of each thread.
    pub fn of_samples(threads: &[Vec<Sampled>]) -> Contents {
        let events = threads.iter().map(Vec::len).max().unwrap_or(0);
        let event = |index: usize| {
            let parts: Vec<&Sampled> = threads.iter().filter_map(|thread| thread.get(index)).collect();
            let (period, cycles) = match parts[0].pace {
                Pace::Events(period) => (Some(period.get()), None),
                Pace::Cycles(cycles) => (None, Some(cycles.get())),
            };
            RecordedEvent {
                event: parts[0].selection.name().to_owned(),
                period,
                cycles,
                events: parts.iter().map(|part| part.events).sum(),
                lost: parts.iter().map(|part| part.lost).sum(),
                samples: (0..)
                    .zip(&parts)
                    .flat_map(|(thread, part)| {
                        let samples = part.samples.iter();
                        samples.map(move |sample| RecordedSample::new(thread, sample))
                    })
                    .collect(),
            }
        };
        Contents::Samples((0..events).map(event).collect())
    }
}

impl RecordedEvent {
    /// The samples of one event in several processes, together.
    ///
    /// # Panics
    /// If there is no process.
    pub fn together(parts: &[&RecordedEvent]) -> RecordedEvent {
        let first = parts.first().expect("a process");
        RecordedEvent {
            event: first.event.clone(),
            period: first.period,
            cycles: first.cycles,
            events: parts.iter().map(|part| part.events).sum(),
            lost: parts.iter().map(|part| part.lost).sum(),
            samples: parts
                .iter()
                .flat_map(|part| part.samples.iter().cloned())
                .collect(),
        }
    }
}

impl RecordedSample {
    fn new(thread: u64, sample: &Sample) -> RecordedSample {
        let fetch = sample.fetch.map(|fetch| (fetch.latency, fetch.translated));
        let single = sample.load.map(|load| (load.latency, load.translated)).or(fetch);
        let translated = single.and_then(|(_, translated)| translated);
        RecordedSample {
            thread,
            cycle: sample.cycle,
            ip: sample.ip,
            slot: sample.slot,
            weight: sample.weight,
            address: sample.load.map(|load| load.address).or(sample.address),
            latency: single.map(|(latency, _)| latency),
            translated: translated.map(|by| match by {
                TranslatedBy::SecondLevel => Translated::Second,
                TranslatedBy::Walker => Translated::Walker,
                TranslatedBy::Software => Translated::Software,
            }),
            branch: sample.branch.map(|branch| RecordedBranch {
                target: branch.taken,
                wrong_path: branch.wrong_path,
                wrong_target: branch.wrong_target,
            }),
        }
    }
}

/// The profile that recorded places are of; `path` is the file's, for errors.
pub fn profile_of(places: &[RecordedPlace], path: &Path) -> Result<Profile, RecordError> {
    let mut profile = Profile::default();
    for recorded in places {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_no_run_has_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf.json");
        let place = |count| RecordedPlace {
            address: 0x4000_0000_0000_0000,
            executions: count,
            issue_cycles: 1,
            bubbles: std::collections::BTreeMap::new(),
        };
        for (count, is_read) in [(1, true), (COUNT_MAX, false), (u64::MAX, false)] {
            let contents = Contents::Places(vec![place(count), place(count)]);
            let process = RecordedProcess {
                pid: 1,
                command: "program".to_owned(),
                program: PathBuf::from("program"),
                contents,
            };
            let recording = Recording::new("itanium2", vec![process]);
            std::fs::write(&path, recording.to_json()).expect("a file");
            assert_eq!(Recording::read(&path).is_ok(), is_read, "{count}");
        }
    }
}
