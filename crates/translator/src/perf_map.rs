//! Names of emitted code for `perf`: a text file with a line for each unit, as Linux's `perf report` reads it.
//!
//! A line has the address of the code and its size, in hexadecimal, and a name: that of the guest's function with the
//! distance from its start, or the guest's address. Limits: `perf` looks for the file of a process by its number, so a
//! forked child has none; code that was forgotten keeps its line.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What a guest's address is called, and how far behind the start of what has that name it is.
type Naming = dyn Fn(u64) -> Option<(String, u64)> + Send + Sync;

/// A file of names that translators add to.
pub struct PerfMap {
    file: Mutex<File>,
    naming: Box<Naming>,
}

impl PerfMap {
    /// Where `perf` looks for the names of this process.
    pub fn path() -> PathBuf {
        PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()))
    }

    /// An empty file, in place of one that is there. `naming` knows the guest's functions.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(
        path: &Path,
        naming: impl Fn(u64) -> Option<(String, u64)> + Send + Sync + 'static,
    ) -> io::Result<PerfMap> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // A new one: in a folder that everybody writes to, nobody else's file is written.
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(PerfMap {
            file: Mutex::new(file),
            naming: Box::new(naming),
        })
    }

    /// Adds the code of a unit, so many bytes from `code` on, for what stands at the guest's `address`.
    pub(crate) fn note(&self, code: *const u8, bytes: usize, address: u64) {
        let name = match (self.naming)(address) {
            Some((name, 0)) => name,
            Some((name, distance)) => format!("{name}+{distance:#x}"),
            None => format!("{address:#x}"),
        };
        let line = format!("{:x} {bytes:x} guest:{name}\n", code as usize);
        let mut file = self.file.lock().expect("no thread panics while it writes a line");
        // A full disk costs names, not the run.
        let _ = file.write_all(line.as_bytes());
    }
}

impl fmt::Debug for PerfMap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PerfMap")
    }
}
