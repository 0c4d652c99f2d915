//! A file of the host as a disk, whatever controller it is behind: raw, or an image in another [`Format`].
//!
//! Writes reach the host's page cache at once, so they survive the end of this program; a flush is answered when
//! the host has them on its disk. The file is locked as long as it is a disk: two machines cannot write to one. With
//! copy on write the file stays as it is, and several machines may have it: what each writes is its own, and gone with
//! it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::overlay::{Kept, Overlay};
#[cfg(feature = "qcow2")]
use super::qcow2;

/// Bytes of a sector.
pub const SECTOR: u64 = 512;

/// How a disk is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Byte by byte.
    Raw,
    /// As QEMU's images, which grow with what is written and may build on others.
    Qcow2,
}

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
    /// It begins as an image that is not raw does, and nobody has said what it is.
    #[error(
        "the disk `{path}` looks like a qcow2 image: say `format=qcow2`, or `format=raw` if it is a disk that begins so"
    )]
    Doubtful {
        /// The file.
        path: PathBuf,
    },
    /// It is no image of its format, or one that cannot be used.
    #[error("the disk `{path}` cannot be used as a qcow2 image: {source}")]
    Image {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// It is of a format that this build leaves out.
    #[error(
        "the disk `{path}` is a qcow2 image, which this build does not read; build with `--features qcow2`"
    )]
    LeftOut {
        /// The file.
        path: PathBuf,
    },
    /// Another machine has it.
    #[error("the disk `{path}` is in use by another program")]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// Where a disk's bytes are.
enum Content {
    Raw,
    #[cfg(feature = "qcow2")]
    Qcow2(Box<qcow2::Image>),
}

/// A disk of whole sectors; clones are the same one, as a controller and the firmware have it.
#[derive(Clone)]
pub struct Disk(Arc<Shared>);

struct Shared {
    /// The file, which is locked as long as it is open.
    file: File,
    content: Content,
    size: u64,
    read_only: bool,
    /// What was written, if the file is to stay as it is.
    overlay: Option<Kept>,
}

impl Disk {
    /// The raw disk in the file at `path`.
    ///
    /// # Errors
    /// As [`open_as`](Self::open_as).
    pub fn open(path: &Path, read_only: bool) -> Result<Disk, DiskError> {
        Disk::open_as(path, None, read_only)
    }

    /// The disk in the file at `path`, which is of this format; raw, if nothing is said and it does not look otherwise.
    ///
    /// # Errors
    /// If that cannot be opened or is in use, or is not a regular file of whole sectors, or not of its format.
    pub fn open_as(path: &Path, format: Option<Format>, read_only: bool) -> Result<Disk, DiskError> {
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
        let content = Content::of(path, &file, format, read_only)?;
        let size = match &content {
            Content::Raw => file.metadata().map_err(open_error)?.len(),
            #[cfg(feature = "qcow2")]
            Content::Qcow2(image) => image.size(),
        };
        if size == 0 || !size.is_multiple_of(SECTOR) {
            return Err(DiskError::Size {
                path: path.to_owned(),
                size,
            });
        }
        Ok(Disk(Arc::new(Shared {
            file,
            content,
            size,
            read_only,
            overlay: None,
        })))
    }

    /// The disk in the file at `path`, which stays as it is. Of what is written, so many bytes are kept; what would be
    /// more fails.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn copy_on_write(path: &Path, written_max: u64) -> Result<Disk, DiskError> {
        Disk::copy_on_write_as(path, None, Kept::new(written_max))
    }

    /// The same with what was written to such a disk before.
    ///
    /// # Errors
    /// As [`open_as`](Self::open_as).
    pub fn copy_on_write_as(path: &Path, format: Option<Format>, written: Kept) -> Result<Disk, DiskError> {
        let mut disk = Disk::open_as(path, format, true)?;
        let shared = Arc::get_mut(&mut disk.0).expect("nobody else has it yet");
        shared.read_only = false;
        shared.overlay = Some(written);
        Ok(disk)
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// Whether these bytes are whole sectors of the disk.
    pub fn holds(&self, start: u64, bytes: u64) -> bool {
        let within = start.checked_add(bytes).is_some_and(|end| end <= self.0.size);
        within && start.is_multiple_of(SECTOR) && bytes.is_multiple_of(SECTOR)
    }

    /// Whether so many bytes from `start` on can be written.
    pub fn takes(&self, start: u64, bytes: u64) -> bool {
        let has_room = |overlay: MutexGuard<'_, Overlay>| overlay.has_room(start / SECTOR, bytes / SECTOR);
        !self.0.read_only && self.holds(start, bytes) && self.overlay().is_none_or(has_room)
    }

    /// Fills `bytes`, whole sectors, from byte `start` of the disk on.
    ///
    /// # Errors
    /// What the host says.
    pub fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        match &self.0.content {
            Content::Raw => self.0.file.read_exact_at(bytes, start)?,
            #[cfg(feature = "qcow2")]
            Content::Qcow2(image) => image.read(start, bytes)?,
        }
        if let Some(overlay) = self.overlay() {
            overlay.read(start / SECTOR, bytes);
        }
        Ok(())
    }

    /// Writes `bytes`, whole sectors that the disk [takes](Self::takes), from byte `start` of the disk on.
    ///
    /// # Errors
    /// What the host says.
    pub fn write(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        match self.overlay() {
            Some(mut overlay) => {
                overlay.write(start / SECTOR, bytes);
                Ok(())
            }
            None => match &self.0.content {
                Content::Raw => self.0.file.write_all_at(bytes, start),
                #[cfg(feature = "qcow2")]
                Content::Qcow2(image) => image.write(start, bytes),
            },
        }
    }

    /// Has the host put everything on its disk.
    ///
    /// # Errors
    /// What the host says.
    pub fn flush(&self) -> io::Result<()> {
        match (&self.0.overlay, &self.0.content) {
            (Some(_), _) => Ok(()),
            (None, Content::Raw) => self.0.file.sync_data(),
            #[cfg(feature = "qcow2")]
            (None, Content::Qcow2(image)) => image.flush(),
        }
    }

    fn overlay(&self) -> Option<MutexGuard<'_, Overlay>> {
        self.0.overlay.as_ref().map(Kept::overlay)
    }
}

impl Content {
    /// Of a file that was opened.
    fn of(path: &Path, file: &File, format: Option<Format>, read_only: bool) -> Result<Content, DiskError> {
        /// What an image begins with that is not raw.
        const QCOW2: [u8; 4] = *b"QFI\xfb";
        let path = path.to_owned();
        match format {
            Some(Format::Raw) => Ok(Content::Raw),
            None => {
                let mut start = [0; QCOW2.len()];
                // What is too short for that is of no size for a disk either.
                let looks_so = file.read_exact_at(&mut start, 0).is_ok() && start == QCOW2;
                match looks_so {
                    true => Err(DiskError::Doubtful { path }),
                    false => Ok(Content::Raw),
                }
            }
            #[cfg(feature = "qcow2")]
            Some(Format::Qcow2) => match qcow2::Image::open(&path, read_only) {
                Ok(image) => Ok(Content::Qcow2(Box::new(image))),
                Err(source) => Err(DiskError::Image { path, source }),
            },
            #[cfg(not(feature = "qcow2"))]
            Some(Format::Qcow2) => {
                let _ = read_only;
                Err(DiskError::LeftOut { path })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_looks_like_an_image_is_not_taken_for_raw() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let mut bytes = [0; SECTOR as usize];
        bytes[..4].copy_from_slice(b"QFI\xfb");
        file.write_all(&bytes).expect("written");
        let open = |format| Disk::open_as(file.path(), format, false).map(|disk| disk.size());
        assert!(matches!(open(None), Err(DiskError::Doubtful { .. })));
        assert!(matches!(open(Some(Format::Raw)), Ok(SECTOR)));
        assert!(open(Some(Format::Qcow2)).is_err());
    }
}
