//! Devices as continuations: nothing is waited for, and nothing is interrupted.
//!
//! A thread submits an [`Operation`] with an edge; the completion is a continuation along it. Timers are
//! [`Context::continue_after`](crate::Context::continue_after). On cores the kernel does the operation
//! through io_uring; where that is not permitted, readiness (epoll) and a helper thread for files do the
//! same. In virtual time a [`DeviceModel`](crate::virtual_time::DeviceModel) says what happens and when.

mod buffer;
mod flights;
mod reactor;
mod readiness;
mod uring;
mod wake;

pub(crate) use buffer::BufferPool;
pub use buffer::{Buffer, BufferGuard};
pub(crate) use reactor::{Interface, Reactor, Submit};
pub(crate) use wake::WakeEvent;

use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::payload::{Payload, Words};

/// An open file, socket or eventfd that the program owns.
///
/// It is a plain number, so that it can travel in a continuation's words; it is closed by
/// [`Operation::Close`] or taken back by [`into_owned`](Self::into_owned), and stays open otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor(RawFd);

impl Descriptor {
    /// The number that the kernel knows it by.
    pub fn number(self) -> RawFd {
        self.0
    }

    pub(crate) fn from_number(number: RawFd) -> Self {
        Self(number)
    }

    /// Takes the descriptor out of the program.
    ///
    /// # Safety
    /// The descriptor is open, no other copy of it is used from now on, and no operation on it is in flight.
    pub unsafe fn into_owned(self) -> OwnedFd {
        // SAFETY: the caller says that this is the only use of an open descriptor.
        unsafe { OwnedFd::from_raw_fd(self.0) }
    }
}

impl<F: Into<OwnedFd>> From<F> for Descriptor {
    fn from(file: F) -> Self {
        Self(file.into().into_raw_fd())
    }
}

impl Payload for Descriptor {
    fn into_words(self) -> Words {
        [self.0 as u32 as u64, 0, 0, 0]
    }
    fn from_words(words: Words) -> Self {
        Self(words[0] as u32 as i32)
    }
}

/// What a device can be asked to do. Lengths and results are in bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Operation {
    /// Takes the next connection of a listening socket; the result is its descriptor.
    Accept {
        /// The listening socket.
        listener: Descriptor,
    },
    /// Receives what has arrived, up to the buffer's size; 0 bytes mean that the peer has closed.
    Receive {
        /// The connected socket.
        socket: Descriptor,
        /// Where the bytes go.
        buffer: Buffer,
    },
    /// Sends bytes of the buffer; may send fewer.
    Send {
        /// The connected socket.
        socket: Descriptor,
        /// Where the bytes are.
        buffer: Buffer,
        /// First byte to send.
        start: u32,
        /// How many bytes to send.
        length: u32,
    },
    /// Reads from a file at an offset; fewer bytes than asked for mean its end.
    Read {
        /// The file.
        file: Descriptor,
        /// Offset in the file.
        offset: u64,
        /// Where the bytes go, from the buffer's start.
        buffer: Buffer,
        /// How many bytes to read.
        length: u32,
    },
    /// Writes to a file at an offset.
    Write {
        /// The file.
        file: Descriptor,
        /// Offset in the file.
        offset: u64,
        /// Where the bytes are, from the buffer's start.
        buffer: Buffer,
        /// How many bytes to write.
        length: u32,
    },
    /// Waits until an eventfd is signalled and takes its count, which is the result (at most `i32::MAX`).
    Event {
        /// The eventfd.
        event: Descriptor,
    },
    /// Brings a file's data to its disk.
    Synchronise {
        /// The file.
        file: Descriptor,
    },
    /// Closes a descriptor.
    Close {
        /// The descriptor.
        descriptor: Descriptor,
    },
}

impl Operation {
    /// The descriptor that the operation works on.
    pub fn descriptor(&self) -> Descriptor {
        match self {
            Operation::Accept { listener } => *listener,
            Operation::Receive { socket, .. } | Operation::Send { socket, .. } => *socket,
            Operation::Read { file, .. }
            | Operation::Write { file, .. }
            | Operation::Synchronise { file } => *file,
            Operation::Event { event } => *event,
            Operation::Close { descriptor } => *descriptor,
        }
    }

    /// The buffer that the operation uses.
    pub(crate) fn buffer(&self) -> Option<&Buffer> {
        match self {
            Operation::Receive { buffer, .. }
            | Operation::Send { buffer, .. }
            | Operation::Read { buffer, .. }
            | Operation::Write { buffer, .. } => Some(buffer),
            Operation::Accept { .. }
            | Operation::Event { .. }
            | Operation::Synchronise { .. }
            | Operation::Close { .. } => None,
        }
    }

    /// The buffer, taken out of the operation.
    pub(crate) fn into_buffer(self) -> Option<Buffer> {
        match self {
            Operation::Receive { buffer, .. }
            | Operation::Send { buffer, .. }
            | Operation::Read { buffer, .. }
            | Operation::Write { buffer, .. } => Some(buffer),
            Operation::Accept { .. }
            | Operation::Event { .. }
            | Operation::Synchronise { .. }
            | Operation::Close { .. } => None,
        }
    }

    /// The bytes of its buffer that the operation uses: first and count, for buffers of `size` bytes.
    ///
    /// # Panics
    /// If they are not all within the buffer.
    pub(crate) fn extent(&self, size: usize) -> (usize, usize) {
        let (start, length) = match self {
            Operation::Receive { .. } => (0, size),
            Operation::Send { start, length, .. } => (*start as usize, *length as usize),
            Operation::Read { length, .. } | Operation::Write { length, .. } => (0, *length as usize),
            Operation::Accept { .. }
            | Operation::Event { .. }
            | Operation::Synchronise { .. }
            | Operation::Close { .. } => (0, 0),
        };
        assert!(
            start.checked_add(length).is_some_and(|end| end <= size),
            "a device operation on bytes {start}.. (length {length}) of a buffer of {size}"
        );
        (start, length)
    }
}

/// How a device operation ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Completion {
    /// What the submitter gave to tell it by.
    pub token: u64,
    /// The buffer, again the program's.
    pub buffer: Option<Buffer>,
    /// The descriptor that was worked on.
    pub descriptor: Descriptor,
    /// Bytes, count or descriptor, or a negative error number.
    outcome: i32,
}

impl Completion {
    pub(crate) fn new(outcome: i32, token: u64, buffer: Option<Buffer>, descriptor: Descriptor) -> Self {
        Self {
            token,
            buffer,
            descriptor,
            outcome,
        }
    }

    /// The operation's result: bytes transferred, or an eventfd's count.
    pub fn result(&self) -> io::Result<usize> {
        usize::try_from(self.outcome).map_err(|_| io::Error::from_raw_os_error(-self.outcome))
    }

    /// The connection that an accept took.
    pub fn accepted(&self) -> io::Result<Descriptor> {
        self.result().map(|_| Descriptor(self.outcome))
    }
}

impl Payload for Completion {
    fn into_words(self) -> Words {
        let buffer = self.buffer.map_or(0, |buffer| u64::from(buffer.index()) + 1);
        [
            self.outcome as u32 as u64,
            self.token,
            buffer,
            self.descriptor.into_words()[0],
        ]
    }
    fn from_words(words: Words) -> Self {
        Self {
            outcome: words[0] as u32 as i32,
            token: words[1],
            buffer: words[2]
                .checked_sub(1)
                .map(|index| Buffer::from_index(index as u32)),
            descriptor: Descriptor::from_words([words[3], 0, 0, 0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_survives_its_words() {
        for (outcome, buffer) in [(17, None), (-11, Some(0)), (0, Some(41))] {
            let make = || Completion::new(outcome, u64::MAX, buffer.map(Buffer::from_index), Descriptor(9));
            assert_eq!(Completion::from_words(make().into_words()), make());
        }
        let failed = Completion::new(-11, 0, None, Descriptor(3));
        assert_eq!(failed.result().expect_err("an error").raw_os_error(), Some(11));
    }
}
