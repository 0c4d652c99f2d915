//! Settings of the kernel that are changed for a time, with a note in the journal of what they were.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::HostError;
use crate::journal::{Change, Journal};
use crate::setting::{read, write};

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
            let _ = writeln!(
                io::stderr(),
                "sidestep: could not put {} back to {}: {error}",
                self.path.display(),
                self.before
            );
        }
    }
}
