//! A file of the host as a disk, whatever controller it is behind.
//!
//! Writes reach the host's page cache at once, so they survive the end of this program; a flush is answered when
//! the host has them on its disk. The file is locked as long as it is a disk: two machines cannot write to one. With
//! copy on write the file stays as it is, and several machines may have it: what each writes is its own, and gone with
//! it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::overlay::Overlay;

/// Bytes of a sector.
pub const SECTOR: u64 = 512;

/// Why a file cannot be a disk.
#[derive(Debug, Error)]
pub enum DiskError {
    /// It cannot be opened.
    #[error("the disk `{path}` cannot be opened: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the host says.
        source: io::Error,
    },
    /// It is no file, such as a folder or a pipe.
    #[error("the disk `{path}` is not a regular file")]
    NoFile {
        /// What it is not.
        path: PathBuf,
    },
    /// Its size is none of a disk.
    #[error("the disk `{path}` has {size} bytes; it must have a multiple of {SECTOR}, and some")]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// Another machine has it.
    #[error("the disk `{path}` is in use by another program")]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// A disk of whole sectors.
pub struct Disk {
    file: File,
    size: u64,
    read_only: bool,
    /// What was written, if the file is to stay as it is.
    overlay: Option<Overlay>,
}

impl Disk {
    /// The disk in the file at `path`.
    ///
    /// # Errors
    /// If that cannot be opened or is in use, or is not a regular file of whole sectors.
    pub fn open(path: &Path, read_only: bool) -> Result<Disk, DiskError> {
        let open_error = |source| DiskError::Open {
            path: path.to_owned(),
            source,
        };
        let metadata = path.metadata().map_err(open_error)?;
        if !metadata.is_file() {
            return Err(DiskError::NoFile {
                path: path.to_owned(),
            });
        }
        let file = OpenOptions::new()
            .read(true)
            .write(!read_only)
            .open(path)
            .map_err(open_error)?;
        let locked = if read_only {
            file.try_lock_shared()
        } else {
            file.try_lock()
        };
        locked.map_err(|error| match error {
            TryLockError::WouldBlock => DiskError::InUse {
                path: path.to_owned(),
            },
            TryLockError::Error(source) => open_error(source),
        })?;
        let size = file.metadata().map_err(open_error)?.len();
        if size == 0 || !size.is_multiple_of(SECTOR) {
            return Err(DiskError::Size {
                path: path.to_owned(),
                size,
            });
        }
        Ok(Disk {
            file,
            size,
            read_only,
            overlay: None,
        })
    }

    /// The disk in the file at `path`, which stays as it is. Of what is written, so many bytes are kept; what would be
    /// more fails.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn copy_on_write(path: &Path, written_max: u64) -> Result<Disk, DiskError> {
        Ok(Disk {
            read_only: false,
            overlay: Some(Overlay::new(written_max)),
            ..Disk::open(path, true)?
        })
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether these bytes are whole sectors of the disk.
    pub fn holds(&self, start: u64, bytes: u64) -> bool {
        let within = start.checked_add(bytes).is_some_and(|end| end <= self.size);
        within && start.is_multiple_of(SECTOR) && bytes.is_multiple_of(SECTOR)
    }

    /// Whether so many bytes from `start` on can be written.
    pub fn takes(&self, start: u64, bytes: u64) -> bool {
        let has_room = |overlay: &Overlay| overlay.has_room(start / SECTOR, bytes / SECTOR);
        !self.read_only && self.holds(start, bytes) && self.overlay.as_ref().is_none_or(has_room)
    }

    /// Fills `bytes`, whole sectors, from byte `start` of the disk on.
    ///
    /// # Errors
    /// What the host says.
    pub fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, start)?;
        if let Some(overlay) = &self.overlay {
            overlay.read(start / SECTOR, bytes);
        }
        Ok(())
    }

    /// Writes `bytes`, whole sectors that the disk [takes](Self::takes), from byte `start` of the disk on.
    ///
    /// # Errors
    /// What the host says.
    pub fn write(&mut self, start: u64, bytes: &[u8]) -> io::Result<()> {
        match &mut self.overlay {
            Some(overlay) => {
                overlay.write(start / SECTOR, bytes);
                Ok(())
            }
            None => self.file.write_all_at(bytes, start),
        }
    }

    /// Has the host put everything on its disk.
    ///
    /// # Errors
    /// What the host says.
    pub fn flush(&self) -> io::Result<()> {
        match self.overlay {
            None => self.file.sync_data(),
            Some(_) => Ok(()),
        }
    }
}
