//! The devices that a guest asks for blocks and packets: a file and a socket of the host.

use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

use crate::layout::{FRAMES, PAGE_BYTES};
use crate::memory::GuestMemory;
use crate::operation::{Operation, Status};

/// Bytes of a block.
pub const BLOCK_BYTES: usize = PAGE_BYTES;

/// A disk and a network of one guest.
#[derive(Debug)]
pub struct Devices {
    disk: File,
    blocks: u64,
    network: UdpSocket,
}

/// What a guest asks a device for, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// A block is read into a page.
    Read {
        /// Where it lies on the disk, in bytes.
        offset: u64,
        /// The page of the guest's memory.
        frame: usize,
    },
    /// The first bytes of a page are sent.
    Send {
        /// How many.
        length: usize,
        /// The page of the guest's memory.
        frame: usize,
    },
}

impl Devices {
    /// The blocks of `disk`, and packets to whom `network` is connected to.
    ///
    /// # Errors
    /// When the file does not say how large it is.
    pub fn new(disk: File, network: UdpSocket) -> io::Result<Self> {
        let blocks = disk.metadata()?.len() / BLOCK_BYTES as u64;
        Ok(Self {
            disk,
            blocks,
            network,
        })
    }

    /// A disk each of whose words is its block's number, and packets to the socket that is returned.
    ///
    /// The disk is a file without a name where files outlive a boot, so on a real disk and in the kernel's page cache:
    /// files in memory (tmpfs) are read by the kernel's worker threads, not at once, where io_uring is asked.
    ///
    /// # Errors
    /// When the host has no room or no socket.
    pub fn temporary(blocks: u64) -> io::Result<(Self, UdpSocket)> {
        let mode = Mode::RUSR | Mode::WUSR;
        let on_disk = open("/var/tmp", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode);
        let disk = on_disk.or_else(|_| memfd_create("disk", MemfdFlags::CLOEXEC))?;
        let disk = File::from(disk);
        for block in 0..blocks {
            let bytes: Vec<u8> = block.to_le_bytes().repeat(BLOCK_BYTES / 8);
            disk.write_all_at(&bytes, block * BLOCK_BYTES as u64)?;
        }
        let receiver = UdpSocket::bind(("127.0.0.1", 0))?;
        let sender = UdpSocket::bind(("127.0.0.1", 0))?;
        sender.connect(receiver.local_addr()?)?;
        Ok((Self::new(disk, sender)?, receiver))
    }

    /// The same file and socket, for a program of zero-wait threads to own.
    pub(crate) fn descriptors(&self) -> io::Result<[OwnedFd; 2]> {
        Ok([self.disk.try_clone()?.into(), self.network.try_clone()?.into()])
    }

    /// What a request asks for: `first` is the block or the number of bytes, `second` the page.
    pub(crate) fn transfer(&self, operation: Operation, first: u64, second: u64) -> Result<Transfer, Status> {
        let frame = usize::try_from(second)
            .ok()
            .filter(|frame| FRAMES.contains(frame))
            .ok_or(Status::NoFrame)?;
        if operation == Operation::Send {
            let length = usize::try_from(first).ok();
            let length = length.filter(|length| (1..=PAGE_BYTES).contains(length));
            return Ok(Transfer::Send {
                length: length.ok_or(Status::NoLength)?,
                frame,
            });
        }
        let block = Some(first).filter(|block| *block < self.blocks);
        let block = block.ok_or(Status::NoBlock)?;
        Ok(Transfer::Read {
            offset: block * BLOCK_BYTES as u64,
            frame,
        })
    }

    /// Does it at once, in this thread, and waits for it: what a program does whose guest was left for it.
    pub(crate) fn perform(&self, memory: &GuestMemory, transfer: Transfer) -> Result<u64, Status> {
        let mut bytes = [0; PAGE_BYTES];
        let done = match transfer {
            Transfer::Read { offset, frame } => {
                let read = self.disk.read_exact_at(&mut bytes, offset);
                read.map(|()| {
                    memory.write_page(frame, &bytes);
                    BLOCK_BYTES
                })
            }
            Transfer::Send { length, frame } => {
                let bytes = &mut bytes[..length];
                memory.read_page(frame, bytes);
                self.network.send(bytes)
            }
        };
        done.map(|bytes| bytes as u64).map_err(|_| Status::Failed)
    }
}
