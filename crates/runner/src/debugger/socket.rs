//! The connection to gdb, and the bell that a program rings: what the server listens to.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use gdbstub::conn::Connection;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{RecvFlags, SendFlags};
use sidestep_linux_user::files::reserved::Reserved;
use sidestep_linux_user::host::Errno;

/// Wakes the server.
#[derive(Debug)]
pub struct Bell(Reserved);

impl Bell {
    /// A silent one.
    pub fn new() -> Result<Bell, Errno> {
        let descriptor = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|error| Errno(error.raw_os_error()))?;
        Reserved::new(&descriptor).map(Bell)
    }

    /// Rings it. A bell that rings already is as good.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    fn silence(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// What the server hears.
pub enum Heard {
    /// gdb sent this.
    Byte(u8),
    /// The program has something to say.
    Bell,
    /// The debugger has left.
    End,
}

/// The server's end of the connection.
pub struct Socket {
    descriptor: Arc<Reserved>,
    bell: Arc<Bell>,
    /// What was received and not yet heard.
    received: VecDeque<u8>,
    /// What was written and not yet sent.
    written: Vec<u8>,
}

/// Bytes that are received at a time.
const CHUNK: usize = 4096;

impl Socket {
    /// A connection and the bell of the program that is debugged over it.
    pub fn new(descriptor: Arc<Reserved>, bell: Arc<Bell>) -> Socket {
        Socket {
            descriptor,
            bell,
            received: VecDeque::new(),
            written: Vec::new(),
        }
    }

    /// Waits for gdb or the program.
    pub fn hear(&mut self) -> Heard {
        if let Some(byte) = self.received.pop_front() {
            return Heard::Byte(byte);
        }
        if self.flush().is_err() {
            return Heard::End;
        }
        let mut sources = [
            PollFd::new(&*self.descriptor, PollFlags::IN),
            PollFd::new(&self.bell.0, PollFlags::IN),
        ];
        // An interrupted wait is repeated by who called.
        let _ = poll(&mut sources, None);
        let [from_gdb, from_bell] = sources.map(|source| !source.revents().is_empty());
        if from_gdb {
            let mut chunk = [0; CHUNK];
            match rustix::net::recv(&*self.descriptor, &mut chunk, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Heard::End,
                Ok((count, _)) => self.received.extend(&chunk[..count]),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(_) => return Heard::End,
            }
        } else if from_bell {
            self.bell.silence();
        }
        self.received.pop_front().map_or(Heard::Bell, Heard::Byte)
    }
}

/// Sends all bytes.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::net::send(socket, rest, SendFlags::NOSIGNAL) {
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Connection for Socket {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.written.push(byte);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = std::mem::take(&mut self.written);
        send(self.descriptor.as_fd(), &written)
    }
}
