//! Settings of the kernel that are files, such as `/proc/sys/kernel/numa_balancing`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::HostError;
use crate::journal::{Change, Journal};

/// The setting that makes present pages fault again.
pub const NUMA_BALANCING: &str = "/proc/sys/kernel/numa_balancing";
/// Whether the kernel shares cores between sessions before it looks at threads' ranks.
pub const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";
/// Where the kernel counts what happens to memory, hint faults among it.
pub const MEMORY_EVENTS: &str = "/proc/vmstat";
/// Where a kernel that is not locked down shows the rates of NUMA balancing.
pub const SCAN_RATES: &str = "/sys/kernel/debug/sched/numa_balancing";

/// A setting's value, without the line's end.
///
/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path) -> Result<String, HostError> {
    fs::read_to_string(path)
        .map(|text| text.trim_end().to_owned())
        .map_err(HostError::file("read", path))
}

/// Sets a value.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, value: &str) -> Result<(), HostError> {
    fs::write(path, value).map_err(HostError::file("write", path))
}

/// A setting that has been changed and is put back when this value is dropped.
#[derive(Debug)]
pub struct Changed {
    path: PathBuf,
    before: String,
    value: String,
    is_suspended: bool,
}

impl Changed {
    /// Notes a setting's value in the journal, then changes it. `None` when it has the value already.
    ///
    /// # Errors
    /// When the setting cannot be read or written, or the journal not.
    pub fn to(journal: &mut Journal, path: &Path, value: &str) -> Result<Option<Self>, HostError> {
        let before = read(path)?;
        if before == value {
            return Ok(None);
        }
        journal.note(&Change::Setting {
            path: path.to_owned(),
            before: before.clone(),
        })?;
        write(path, value)?;
        Ok(Some(Self {
            path: path.to_owned(),
            before,
            value: value.to_owned(),
            is_suspended: false,
        }))
    }

    /// Puts the setting back for a time; the journal still knows what it was.
    ///
    /// # Errors
    /// When the setting cannot be written.
    pub fn suspend(&mut self) -> Result<(), HostError> {
        if !self.is_suspended {
            write(&self.path, &self.before)?;
            self.is_suspended = true;
        }
        Ok(())
    }

    /// Changes the setting again after [`suspend`](Self::suspend).
    ///
    /// # Errors
    /// When the setting cannot be written.
    pub fn resume(&mut self) -> Result<(), HostError> {
        if self.is_suspended {
            write(&self.path, &self.value)?;
            self.is_suspended = false;
        }
        Ok(())
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if let Err(error) = write(&self.path, &self.before) {
            eprintln!(
                "sidestep: could not put {} back to {}: {error}",
                self.path.display(),
                self.before
            );
        }
    }
}
