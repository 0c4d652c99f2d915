//! The buffers of one request: a chain of descriptors, checked as a whole before anything of it is touched.
//!
//! Devices see two strings of bytes, one to read and one to write, and never how the driver cut them into buffers
//! (section 2.7.4 of the specification forbids to depend on that).

use sidestep_ia64::PhysicalAddress;
use thiserror::Error;
use virtio_queue::DescriptorChain;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, GuestMemoryMmap};

use crate::memory::GuestMemory;

/// What is wrong with a chain of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// It loops, leaves the table, or its table is not in memory.
    #[error("the chain of descriptors from {head} on does not end in its table")]
    Endless {
        /// The first descriptor.
        head: u16,
    },
    /// A buffer to read lies behind one to write.
    #[error("the chain of descriptors from {head} on has a readable buffer behind a writable one")]
    Order {
        /// The first descriptor.
        head: u16,
    },
    /// A buffer that is not all RAM.
    #[error("the buffer of {size:#x} bytes at {address} is not in RAM")]
    Memory {
        /// Where it begins.
        address: PhysicalAddress,
        /// Its size in bytes.
        size: u64,
    },
    /// Fewer bytes than every request of the device has.
    #[error("the request has {readable} bytes to read and {writable} to write, too few for this device")]
    Short {
        /// Bytes to read.
        readable: u64,
        /// Bytes to write.
        writable: u64,
    },
}

/// Some bytes of guest memory, in pieces.
#[derive(Clone, Default, Debug)]
struct Pieces {
    pieces: Vec<(PhysicalAddress, u64)>,
    size: u64,
}

impl Pieces {
    fn push(&mut self, descriptor: &Descriptor) {
        let size = u64::from(descriptor.len());
        self.pieces
            .push((PhysicalAddress(descriptor.addr().raw_value()), size));
        self.size += size;
    }

    /// Calls `access` with the addresses of `size` bytes from `offset` on and where they are among those bytes.
    fn for_each(
        &self,
        offset: u64,
        size: usize,
        mut access: impl FnMut(PhysicalAddress, std::ops::Range<usize>),
    ) {
        assert!(offset + size as u64 <= self.size, "within the request");
        let (mut skip, mut done) = (offset, 0);
        for &(address, length) in &self.pieces {
            if skip >= length {
                skip -= length;
                continue;
            }
            let part = (length - skip).min((size - done) as u64) as usize;
            if part == 0 {
                break;
            }
            access(PhysicalAddress(address.0 + skip), done..done + part);
            done += part;
            skip = 0;
        }
    }
}

/// The buffers of a request without the memory that they are in.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    readable: Pieces,
    writable: Pieces,
}

impl Buffers {
    /// The request again, in the memory that it was made in.
    pub fn within(self, memory: &GuestMemory) -> Request<'_> {
        Request {
            memory,
            readable: self.readable,
            writable: self.writable,
        }
    }
}

/// One request of a driver.
pub struct Request<'a> {
    memory: &'a GuestMemory,
    readable: Pieces,
    writable: Pieces,
}

impl<'a> Request<'a> {
    /// The request that a chain describes.
    ///
    /// # Errors
    /// If the chain is broken or a buffer is not in RAM.
    pub(super) fn new(
        memory: &'a GuestMemory,
        chain: DescriptorChain<&GuestMemoryMmap<()>>,
    ) -> Result<Request<'a>, RequestError> {
        let head = chain.head_index();
        let mut request = Request {
            memory,
            readable: Pieces::default(),
            writable: Pieces::default(),
        };
        let mut ended = false;
        for descriptor in chain {
            ended = !descriptor.has_next();
            let (address, size) = (
                PhysicalAddress(descriptor.addr().raw_value()),
                u64::from(descriptor.len()),
            );
            if !memory.is_ram(address, size) {
                return Err(RequestError::Memory { address, size });
            }
            if descriptor.is_write_only() {
                request.writable.push(&descriptor);
            } else if request.writable.pieces.is_empty() {
                request.readable.push(&descriptor);
            } else {
                return Err(RequestError::Order { head });
            }
        }
        // The iterator stops without a word where a chain goes wrong or on for longer than its table.
        if ended {
            Ok(request)
        } else {
            Err(RequestError::Endless { head })
        }
    }

    /// What it consists of, to be kept.
    pub(super) fn into_buffers(self) -> Buffers {
        Buffers {
            readable: self.readable,
            writable: self.writable,
        }
    }

    /// How many bytes the driver gave.
    pub fn readable(&self) -> u64 {
        self.readable.size
    }

    /// How many bytes the driver wants at most.
    pub fn writable(&self) -> u64 {
        self.writable.size
    }

    /// The error of a request with too few bytes.
    pub fn short(&self) -> RequestError {
        RequestError::Short {
            readable: self.readable(),
            writable: self.writable(),
        }
    }

    /// Reads what the driver gave, from `offset` on.
    ///
    /// # Panics
    /// If there are not so many bytes.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        self.readable.for_each(offset, bytes.len(), |address, range| {
            let read = self.memory.read(address, &mut bytes[range]);
            read.expect("checked to be in memory when the request was made");
        });
    }

    /// Writes to where the driver wants its answer, from `offset` on.
    ///
    /// # Panics
    /// If there are not so many bytes.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        self.writable.for_each(offset, bytes.len(), |address, range| {
            let written = self.memory.write(address, &bytes[range]);
            written.expect("checked to be in memory when the request was made");
        });
    }
}
