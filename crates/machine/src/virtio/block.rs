//! The block device: a [`Disk`] behind a queue (section 5.2).

use std::io;
use std::path::Path;

use super::VirtioDevice;
use super::request::{Request, RequestError};
use crate::storage::disk::{Disk, DiskError, SECTOR};

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
    /// Beside a kind: what was asked before is to be done before. Requests are done one by one, so it is. Drivers of
    /// before version 1 say it without asking whether the device knows.
    pub const BARRIER: u32 = 1 << 31;
}

const STATUS_DONE: u8 = 0;
const STATUS_FAILED: u8 = 1;
const STATUS_UNSUPPORTED: u8 = 2;

/// Kind, four reserved bytes and the first sector.
const HEADER_BYTES: usize = 16;
const IDENTITY_BYTES: usize = 20;
const IDENTITY: &[u8; IDENTITY_BYTES] = b"sidestep\0\0\0\0\0\0\0\0\0\0\0\0";

/// The device.
pub struct Block {
    disk: Disk,
    configuration: [u8; 24],
}

impl Block {
    /// The disk in the file at `path`.
    ///
    /// # Errors
    /// As [`Disk::open`].
    pub fn open(path: &Path, read_only: bool) -> Result<Block, DiskError> {
        Disk::open(path, read_only).map(Block::new)
    }

    /// The disk in the file at `path`, which stays as it is, as [`Disk::copy_on_write`] has it.
    ///
    /// # Errors
    /// As [`Disk::open`].
    pub fn copy_on_write(path: &Path, written_max: u64) -> Result<Block, DiskError> {
        Disk::copy_on_write(path, written_max).map(Block::new)
    }

    /// A device for a disk.
    pub fn new(disk: Disk) -> Block {
        // Capacity in sectors, largest segment (not offered), most segments, geometry (not offered), block size.
        let mut configuration = [0; 24];
        configuration[..8].copy_from_slice(&(disk.size() / SECTOR).to_le_bytes());
        configuration[12..16].copy_from_slice(&SEGMENTS_MAX.to_le_bytes());
        configuration[20..].copy_from_slice(&(SECTOR as u32).to_le_bytes());
        Block { disk, configuration }
    }

    /// Where on the disk `bytes` bytes from `sector` on are, if they are whole sectors of it.
    fn place(&self, sector: u64, bytes: u64) -> Option<u64> {
        let start = sector.checked_mul(SECTOR)?;
        self.disk.holds(start, bytes).then_some(start)
    }

    /// Copies sectors to the driver; answers how many bytes.
    fn read(&self, sector: u64, request: &Request<'_>) -> Result<u64, u8> {
        let bytes = request.writable() - 1;
        let start = self.place(sector, bytes).ok_or(STATUS_FAILED)?;
        for_pieces(bytes, |offset, piece| {
            self.disk.read(start + offset, piece)?;
            request.write(offset, piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Copies sectors from the driver.
    fn write(&mut self, sector: u64, request: &Request<'_>) -> Result<u64, u8> {
        let bytes = request.readable() - HEADER_BYTES as u64;
        let start = self.place(sector, bytes).ok_or(STATUS_FAILED)?;
        if !self.disk.takes(start, bytes) {
            return Err(STATUS_FAILED);
        }
        for_pieces(bytes, |offset, piece| {
            request.read(HEADER_BYTES as u64 + offset, piece);
            self.disk.write(start + offset, piece)
        })?;
        Ok(0)
    }

    /// Has the host put everything on its disk.
    fn flush(&self) -> Result<u64, u8> {
        self.disk.flush().map_err(|_| STATUS_FAILED)?;
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
        let read_only = if self.disk.is_read_only() {
            feature::READ_ONLY
        } else {
            0
        };
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
        let result = match u32::from_le_bytes(kind) & !kind::BARRIER {
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
