//! The block device: a file of the host as a disk (section 5.2).
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

use super::VirtioDevice;
use super::overlay::Overlay;
use super::request::{Request, RequestError};

/// Bytes of a sector.
pub const SECTOR: u64 = 512;

/// Bytes that are moved at once.
const PIECE: usize = 1 << 16;
const QUEUE_SIZE: u16 = 256;
/// The most buffers in a request, beside header and status.
const SEGMENTS_MAX: u32 = QUEUE_SIZE as u32 - 2;

/// Features: the most segments, read only, block size, flush.
mod feature {
    pub const SEGMENTS: u64 = 1 << 2;
    pub const READ_ONLY: u64 = 1 << 5;
    pub const BLOCK_SIZE: u64 = 1 << 6;
    pub const FLUSH: u64 = 1 << 9;
}

/// Kinds of requests.
mod kind {
    pub const READ: u32 = 0;
    pub const WRITE: u32 = 1;
    pub const FLUSH: u32 = 4;
    pub const IDENTITY: u32 = 8;
}

const STATUS_DONE: u8 = 0;
const STATUS_FAILED: u8 = 1;
const STATUS_UNSUPPORTED: u8 = 2;

/// Kind, four reserved bytes and the first sector.
const HEADER_BYTES: usize = 16;
const IDENTITY_BYTES: usize = 20;
const IDENTITY: &[u8; IDENTITY_BYTES] = b"sidestep\0\0\0\0\0\0\0\0\0\0\0\0";

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

/// The device.
pub struct Block {
    file: File,
    size: u64,
    read_only: bool,
    /// What was written, if the file is to stay as it is.
    overlay: Option<Overlay>,
    configuration: [u8; 24],
}

impl Block {
    /// The disk in the file at `path`.
    ///
    /// # Errors
    /// If that cannot be opened or is in use, or is not a regular file of whole sectors.
    pub fn open(path: &Path, read_only: bool) -> Result<Block, DiskError> {
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
        // Capacity in sectors, largest segment (not offered), most segments, geometry (not offered), block size.
        let mut configuration = [0; 24];
        configuration[..8].copy_from_slice(&(size / SECTOR).to_le_bytes());
        configuration[12..16].copy_from_slice(&SEGMENTS_MAX.to_le_bytes());
        configuration[20..].copy_from_slice(&(SECTOR as u32).to_le_bytes());
        Ok(Block {
            file,
            size,
            read_only,
            overlay: None,
            configuration,
        })
    }

    /// The disk in the file at `path`, which stays as it is. Of what the driver writes, so many bytes are kept; what
    /// would be more fails.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn copy_on_write(path: &Path, written_max: u64) -> Result<Block, DiskError> {
        Ok(Block {
            read_only: false,
            overlay: Some(Overlay::new(written_max)),
            ..Block::open(path, true)?
        })
    }

    /// Where in the file `bytes` bytes from `sector` on are, if they are whole sectors of the disk.
    fn place(&self, sector: u64, bytes: u64) -> Option<u64> {
        let start = sector.checked_mul(SECTOR)?;
        let fits = start.checked_add(bytes)? <= self.size;
        (fits && bytes.is_multiple_of(SECTOR)).then_some(start)
    }

    /// Copies sectors to the driver; answers how many bytes.
    fn read(&self, sector: u64, request: &Request<'_>) -> Result<u64, u8> {
        let bytes = request.writable() - 1;
        let start = self.place(sector, bytes).ok_or(STATUS_FAILED)?;
        for_pieces(bytes, |offset, piece| {
            self.file.read_exact_at(piece, start + offset)?;
            if let Some(overlay) = &self.overlay {
                overlay.read((start + offset) / SECTOR, piece);
            }
            request.write(offset, piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Copies sectors from the driver.
    fn write(&mut self, sector: u64, request: &Request<'_>) -> Result<u64, u8> {
        let bytes = request.readable() - HEADER_BYTES as u64;
        let start = self.place(sector, bytes).ok_or(STATUS_FAILED)?;
        if self.read_only {
            return Err(STATUS_FAILED);
        }
        if self
            .overlay
            .as_ref()
            .is_some_and(|overlay| !overlay.has_room(sector, bytes / SECTOR))
        {
            return Err(STATUS_FAILED);
        }
        for_pieces(bytes, |offset, piece| {
            request.read(HEADER_BYTES as u64 + offset, piece);
            match &mut self.overlay {
                Some(overlay) => {
                    overlay.write((start + offset) / SECTOR, piece);
                    Ok(())
                }
                None => self.file.write_all_at(piece, start + offset),
            }
        })?;
        Ok(0)
    }

    /// Has the host put everything on its disk.
    fn flush(&self) -> Result<u64, u8> {
        if self.overlay.is_none() {
            self.file.sync_data().map_err(|_| STATUS_FAILED)?;
        }
        Ok(0)
    }
}

/// Calls `transfer` for piece after piece of `bytes` bytes, with a buffer as long as the piece.
fn for_pieces(bytes: u64, mut transfer: impl FnMut(u64, &mut [u8]) -> io::Result<()>) -> Result<(), u8> {
    let mut buffer = vec![0; bytes.min(PIECE as u64) as usize];
    let mut offset = 0;
    while offset < bytes {
        let piece = (bytes - offset).min(PIECE as u64);
        transfer(offset, &mut buffer[..piece as usize]).map_err(|_| STATUS_FAILED)?;
        offset += piece;
    }
    Ok(())
}

fn identify(request: &Request<'_>) -> Result<u64, u8> {
    if request.writable() <= IDENTITY_BYTES as u64 {
        return Err(STATUS_FAILED);
    }
    request.write(0, IDENTITY);
    Ok(IDENTITY_BYTES as u64)
}

impl VirtioDevice for Block {
    fn identifier(&self) -> u32 {
        2
    }

    fn features(&self) -> u64 {
        let read_only = if self.read_only { feature::READ_ONLY } else { 0 };
        feature::SEGMENTS | feature::BLOCK_SIZE | feature::FLUSH | read_only
    }

    fn queue_sizes(&self) -> &[u16] {
        &[QUEUE_SIZE]
    }

    fn configuration(&self) -> &[u8] {
        &self.configuration
    }

    fn serve(&mut self, _: usize, request: &Request<'_>) -> Result<u32, RequestError> {
        if request.readable() < HEADER_BYTES as u64 || request.writable() == 0 {
            return Err(request.short());
        }
        let (mut kind, mut sector) = ([0; 4], [0; 8]);
        request.read(0, &mut kind);
        request.read(8, &mut sector);
        let sector = u64::from_le_bytes(sector);
        let result = match u32::from_le_bytes(kind) {
            kind::READ => self.read(sector, request),
            kind::WRITE => self.write(sector, request),
            kind::FLUSH => self.flush(),
            kind::IDENTITY => identify(request),
            _ => Err(STATUS_UNSUPPORTED),
        };
        let (written, status) = match result {
            Ok(written) => (written, STATUS_DONE),
            Err(status) => (0, status),
        };
        // The status is the last byte, wherever the driver ends its buffers.
        request.write(request.writable() - 1, &[status]);
        Ok(u32::try_from(written + 1).unwrap_or(u32::MAX))
    }
}
