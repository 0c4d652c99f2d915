//! How many steps a program has done, told to whoever wants to know how far it is.
//!
//! The program writes its count, eight bytes, little-endian, into the file that [`PROGRESS_VARIABLE`] names. The file
//! is memory of the reader's alone ([`ProgressFile`]): it has no name in any folder, so nothing is left however the
//! reader ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::HostError;

/// The variable that names a file into which a program writes how many steps it has done.
pub const PROGRESS_VARIABLE: &str = "SIDESTEP_PROGRESS";

/// Counts the steps of a computation.
#[derive(Debug)]
pub struct Progress {
    steps: AtomicU64,
    file: Option<File>,
}

impl Progress {
    /// Counts for this process alone.
    pub fn none() -> Self {
        Self {
            steps: AtomicU64::new(0),
            file: None,
        }
    }

    /// Counts into the file that the environment names, if it names one.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn from_environment() -> io::Result<Self> {
        let Some(path) = std::env::var_os(PROGRESS_VARIABLE) else {
            return Ok(Self::none());
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        Ok(Self {
            steps: AtomicU64::new(0),
            file: Some(file),
        })
    }

    /// One step more.
    pub fn step(&self) {
        let steps = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(file) = &self.file {
            // A count that cannot be written is only a measurement lost; the computation goes on.
            let _ = file.write_at(&steps.to_le_bytes(), 0);
        }
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }
}

/// Where another process counts its steps, as long as this value lives.
#[derive(Debug)]
pub struct ProgressFile {
    file: File,
}

impl ProgressFile {
    /// A count of zero.
    ///
    /// # Errors
    /// When there is no descriptor or memory left for it.
    pub fn new() -> Result<Self, HostError> {
        let descriptor = memfd_create("progress", MemfdFlags::CLOEXEC).map_err(|source| HostError::Call {
            call: "memfd_create",
            subject: "a program's progress".into(),
            source: source.into(),
        })?;
        Ok(Self {
            file: descriptor.into(),
        })
    }

    /// Its name for other processes, while this one lives.
    pub fn path(&self) -> PathBuf {
        let (process, descriptor) = (std::process::id(), self.file.as_raw_fd());
        PathBuf::from(format!("/proc/{process}/fd/{descriptor}"))
    }

    /// The steps that were written; zero before any were.
    pub fn steps(&self) -> u64 {
        let mut bytes = [0; 8];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => u64::from_le_bytes(bytes),
            Err(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_from_a_file_that_is_in_no_folder() {
        let count = ProgressFile::new().expect("memory for eight bytes");
        assert_eq!(count.steps(), 0);
        let file = OpenOptions::new().write(true).open(count.path());
        let progress = Progress {
            steps: AtomicU64::new(40),
            file: Some(file.expect("the name is good while the reader lives")),
        };
        progress.step();
        progress.step();
        assert_eq!((progress.steps(), count.steps()), (42, 42));
        let path = count.path();
        drop(count);
        assert!(OpenOptions::new().write(true).open(path).is_err());
    }
}
