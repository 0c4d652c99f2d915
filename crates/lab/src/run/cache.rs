//! Finished points, kept on disk: an interrupted sweep goes on where it stopped.
//!
//! An entry is one repetition of one point, in a file named by a hash over everything it depends on: the version of
//! what computes it, the experiment, the inputs that are not axes (with the content of files), the coordinates, the
//! seed, and for measured time the build and the host. The entry begins with a checksum of the rest: what is not
//! exactly as it was written is reported, and the point runs anew.
//!
//! In virtual time sources decide what comes out and nothing else does: whatever is built of the same ones, the command
//! or a library, shares its points. Measured time is a build's own.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use object::Object;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::about::{About, Nature};
use crate::input::{Input, Inputs, Kind, Value};
use crate::measurement::Measurement;
use crate::point::Point;

/// The first word of an entry, with the version of its format.
const MAGIC: &str = "sidestep-point-1";

/// A folder of finished points.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    version: String,
    build: String,
}

/// Everything that one repetition of a point depends on, besides the program.
#[derive(Debug)]
pub struct Key<'a> {
    /// The experiment.
    pub about: &'a About,
    /// The declarations of its inputs.
    pub declared: &'a [Input],
    /// The inputs that are not axes.
    pub inputs: &'a Inputs,
    /// Where in the sweep.
    pub point: &'a Point,
    /// The seed.
    pub seed: u64,
    /// Whether what happens when is recorded.
    pub trace: bool,
}

/// The place of one entry, and the key that it must bear.
#[derive(Debug)]
pub struct Entry {
    path: PathBuf,
    key: String,
}

/// What an entry holds after its checksum.
#[derive(Serialize, Deserialize)]
struct Content {
    key: String,
    measurement: Measurement,
}

/// Why the cache could not be used as it should.
#[derive(Debug, thiserror::Error)]
pub enum CacheProblem {
    /// An entry is not as it was written.
    #[error("cache entry {} is corrupt ({what}); its point runs anew", path.display())]
    Corrupt {
        /// The entry's file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An entry could not be read.
    #[error("cache entry {} cannot be read ({source}); its point runs anew", path.display())]
    Unreadable {
        /// The entry's file.
        path: PathBuf,
        /// The host's reason.
        source: io::Error,
    },
    /// A finished point could not be kept.
    #[error("a finished point cannot be kept for a later run in {} ({reason})", folder.display())]
    NotKept {
        /// The cache's folder.
        folder: PathBuf,
        /// The host's reason.
        reason: String,
    },
}

impl Cache {
    /// The cache in a folder, which need not exist yet, of what a version of the experiments computes: a text that is
    /// another whenever their sources are.
    pub fn at(folder: impl Into<PathBuf>, version: impl Into<String>) -> Cache {
        Cache {
            folder: folder.into(),
            version: version.into(),
            build: build_identifier(),
        }
    }

    /// The place of a repetition of a point.
    pub fn entry(&self, key: &Key) -> Entry {
        let key = self.describe(key);
        let path = self.folder.join(format!("{}.point", hash(key.as_bytes())));
        Entry { path, key }
    }

    /// The key of a repetition of a point as a name: a hash over all that it depends on.
    pub fn name(&self, key: &Key) -> String {
        hash(self.describe(key).as_bytes())
    }

    /// The measurement kept in a place, if there is one.
    pub fn load(&self, entry: &Entry) -> Result<Option<Measurement>, CacheProblem> {
        let bytes = match fs::read(&entry.path) {
            Ok(bytes) => bytes,
            // That there can be no folder is said once, where a point is to be kept.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(source) => {
                return Err(CacheProblem::Unreadable {
                    path: entry.path.clone(),
                    source,
                });
            }
        };
        match decode(&bytes, &entry.key) {
            Ok(measurement) => Ok(Some(measurement)),
            Err(what) => Err(CacheProblem::Corrupt {
                path: entry.path.clone(),
                what,
            }),
        }
    }

    /// Keeps a measurement.
    pub fn store(&self, entry: &Entry, measurement: &Measurement) -> Result<(), CacheProblem> {
        let content = Content {
            key: entry.key.clone(),
            measurement: measurement.clone(),
        };
        let body = serde_json::to_string(&content).expect("text, numbers and lists are JSON");
        let text = format!("{MAGIC} {}\n{body}", hash(body.as_bytes()));
        let kept = fs::create_dir_all(&self.folder)
            .map_err(|error| error.to_string())
            .and_then(|()| {
                sidestep_files::write(&entry.path, text.as_bytes())
                    .map_err(|error| error.reason().to_string())
            });
        kept.map_err(|reason| CacheProblem::NotKept {
            folder: self.folder.clone(),
            reason,
        })
    }

    /// The key as text, a line for each thing that the measurement depends on.
    fn describe(&self, key: &Key) -> String {
        let mut text = format!("version {}\nexperiment {}\n", self.version, key.about.name);
        let mut line = |what: &str, name: &str, value: String| {
            writeln!(text, "{what} {name}={value:?}").expect("writing to a string");
        };
        for (name, value) in key.inputs.iter() {
            match content_of(key.declared, name, value) {
                // A file counts by what is in it, wherever it lies.
                Some(content) => line("content", name, content),
                None => line("input", name, value.to_string()),
            }
        }
        for (name, value) in key.point.coordinates() {
            line("at", name, value.to_string());
        }
        line("seed", "seed", key.seed.to_string());
        line("trace", "trace", key.trace.to_string());
        if key.about.nature == Nature::Measured {
            line("build", "build", self.build.clone());
            line("host", "host", host_identifier());
        }
        text
    }
}

/// A hash of the content of the file that an input names, if it names one.
pub fn content_of(declared: &[Input], name: &str, value: &Value) -> Option<String> {
    let input = declared.iter().find(|input| input.key == name)?;
    if input.kind != Kind::File || value.text().is_empty() {
        return None;
    }
    let content = sidestep_files::read(Path::new(value.text()), sidestep_files::IMAGE_BYTES_MAX);
    Some(hash(&content.unwrap_or_default()))
}

fn decode(bytes: &[u8], key: &str) -> Result<Measurement, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not text")?;
    let (head, body) = text.split_once('\n').ok_or("cut short")?;
    let checksum = head
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.strip_prefix(' '))
        .ok_or("not an entry")?;
    if checksum != hash(body.as_bytes()) {
        return Err("its checksum does not match");
    }
    let mut reader = serde_json::Deserializer::from_str(body);
    // The checksum vouches for the depth.
    reader.disable_recursion_limit();
    let content = Content::deserialize(&mut reader).map_err(|_| "not a measurement")?;
    match content.key == key {
        true => Ok(content.measurement),
        false => Err("it belongs to another point"),
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// What tells this build of the program or library from every other: the linker's build identifier, or without one a
/// hash of the file.
fn build_identifier() -> String {
    let program = || -> io::Result<String> {
        let path = own_file()?;
        match linker_identifier(&path) {
            Some(identifier) => Ok(identifier),
            None => Ok(hash(&fs::read(path)?)),
        }
    };
    program().unwrap_or_else(|_| format!("unknown build of {}", env!("CARGO_PKG_VERSION")))
}

/// The file that this code was loaded from: the program's, or a library's that it has loaded.
fn own_file() -> io::Result<PathBuf> {
    let here = build_identifier as fn() -> String as usize;
    let holds = |range: &str| {
        let (start, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some((number(start)?..number(end)?).contains(&here))
    };
    // Each line: range, rights, offset, device, inode, path.
    let maps = fs::read_to_string("/proc/self/maps")?;
    let found = maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let path = rest.find('/').map(|start| PathBuf::from(&rest[start..]))?;
        holds(range)?.then_some(path)
    });
    found.map_or_else(std::env::current_exe, Ok)
}

fn linker_identifier(program: &Path) -> Option<String> {
    let file = object::ReadCache::new(fs::File::open(program).ok()?);
    let parsed = object::File::parse(&file).ok()?;
    let identifier = parsed.build_id().ok()??;
    Some(identifier.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What tells this host from others as far as measured time goes.
pub fn host_identifier() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{} with {cores} cores", name.trim())
}
