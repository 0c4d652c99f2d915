//! What a sidecore does for a process: system calls, in its place and without waiting.
//!
//! | operation | descriptor | length | first | second | value |
//! |---|---|---|---|---|---|
//! | null | | | | | 0 |
//! | getpid | | | | | the sidecore's process |
//! | open | flags | of the path | path | mode | a descriptor |
//! | close | it | | | | 0 |
//! | read, write | it | of the buffer | buffer | offset, or all ones: where the file is | bytes |
//! | stat | | of the path | path | where a `struct stat` goes | 0 |
//! | look up | | | key | | its value |
//!
//! The word of the operation holds it in bits 0 to 7, the length in 8 to 31, the descriptor in 32 to 63. What an
//! address and a descriptor are decides the [`Space`] of the caller.
//!
//! A sidecore may not wait, so what could last is refused with [`YOURSELF`], and the caller does it: a read for which
//! there is nothing in the page cache or in the pipe, a file that is opened and is no regular one. The path of a file
//! on a slow disk or network is looked up all the same: the kernel has no call for that which does not wait.

use std::io;
use std::os::fd::RawFd;

use libc::{c_int, c_long};

use crate::line::{Answer, Request};
use crate::table::Table;

/// The status of what the caller must do itself. No error has this number.
pub const YOURSELF: u64 = 4096;
/// The most bytes of a read, a write or a path.
pub const LENGTH_MAX: usize = (1 << 24) - 1;
/// An offset: where the file is.
pub const CURRENT: u64 = u64::MAX;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Nothing.
    Null = 1,
    /// The number of the sidecore's process.
    Getpid = 2,
    /// A file is opened.
    Open = 3,
    /// A file is closed.
    Close = 4,
    /// Bytes of a file.
    Read = 5,
    /// Bytes for a file.
    Write = 6,
    /// What is known of a file.
    Stat = 7,
    /// The value of a key in the sidecore's table.
    LookUp = 8,
}

impl Operation {
    fn of(number: u8) -> Option<Self> {
        use Operation::*;
        [Null, Getpid, Open, Close, Read, Write, Stat, LookUp]
            .into_iter()
            .find(|operation| *operation as u8 == number)
    }
}

/// The words of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// What is asked for.
    pub operation: u8,
    /// A descriptor, or the flags of a file that is opened.
    pub descriptor: u32,
    /// Bytes, at most [`LENGTH_MAX`].
    pub length: usize,
    /// What it is about.
    pub first: u64,
    /// What else it is about.
    pub second: u64,
}

impl Words {
    /// A request for `operation` alone.
    pub fn of(operation: Operation) -> Self {
        Self {
            operation: operation as u8,
            descriptor: 0,
            length: 0,
            first: 0,
            second: 0,
        }
    }

    /// The request with this number. More bytes than can be asked for are asked for as far as they can.
    pub fn request(self, sequence: u64) -> Request {
        let length = self.length.min(LENGTH_MAX) as u64;
        Request {
            sequence,
            operation: u64::from(self.descriptor) << 32 | length << 8 | u64::from(self.operation),
            first: self.first,
            second: self.second,
        }
    }

    fn from_request(request: &Request) -> Self {
        Self {
            operation: request.operation as u8,
            descriptor: (request.operation >> 32) as u32,
            length: (request.operation >> 8) as usize & LENGTH_MAX,
            first: request.first,
            second: request.second,
        }
    }
}

/// An error number of the kernel's, or [`YOURSELF`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal(pub u64);

impl Refusal {
    pub(crate) fn of(error: c_int) -> Self {
        Self(u64::from(error.unsigned_abs()))
    }

    pub(crate) fn last() -> Self {
        Self::of(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(error: rustix::io::Errno) -> Self {
        Self::of(error.raw_os_error())
    }
}

/// What a caller's addresses, descriptors and paths mean.
pub trait Space {
    /// Where `length` bytes at the caller's `address` lie in this process. The kernel alone looks at them.
    ///
    /// # Errors
    /// When they are not the caller's.
    fn bytes(&self, address: u64, length: usize) -> Result<*mut u8, Refusal>;

    /// The descriptor that the caller's number means.
    ///
    /// # Errors
    /// When the caller has none of this number.
    fn descriptor(&self, number: u32) -> Result<RawFd, Refusal>;

    /// Opens a file and gives it a number.
    ///
    /// # Errors
    /// When it cannot be opened, or is no regular file.
    fn open(&mut self, path: (u64, usize), flags: u32, mode: u32) -> Result<u32, Refusal>;

    /// Closes a file.
    ///
    /// # Errors
    /// When the caller has none of this number.
    fn close(&mut self, number: u32) -> Result<(), Refusal>;

    /// Writes what is known of a file to `length` bytes at `to`.
    ///
    /// # Errors
    /// When there is none.
    fn stat(&mut self, path: (u64, usize), to: u64) -> Result<(), Refusal>;
}

/// Serves a request in a caller's space.
pub fn serve(request: &Request, space: &mut impl Space, table: &Table) -> Answer {
    match answer(Words::from_request(request), space, table) {
        Ok(value) => Answer { status: 0, value },
        Err(Refusal(status)) => Answer { status, value: 0 },
    }
}

fn answer(words: Words, space: &mut impl Space, table: &Table) -> Result<u64, Refusal> {
    let operation = Operation::of(words.operation).ok_or(Refusal::of(libc::ENOSYS))?;
    let path = (words.first, words.length);
    match operation {
        Operation::Null => Ok(0),
        Operation::Getpid => Ok(rustix::process::getpid().as_raw_nonzero().get() as u64),
        Operation::Open => {
            let number = space.open(path, words.descriptor, words.second as u32)?;
            Ok(number.into())
        }
        Operation::Close => space.close(words.descriptor).map(|()| 0),
        Operation::Stat => space.stat(path, words.second).map(|()| 0),
        Operation::LookUp => table.get(words.first).ok_or(Refusal::of(libc::ENOENT)),
        Operation::Read | Operation::Write => {
            let buffer = space.bytes(words.first, words.length)?;
            let file = space.descriptor(words.descriptor)?;
            transfer(
                operation == Operation::Write,
                file,
                (buffer, words.length),
                words.second,
            )
        }
    }
}

/// Reads or writes what needs no waiting.
fn transfer(writes: bool, file: RawFd, bytes: (*mut u8, usize), offset: u64) -> Result<u64, Refusal> {
    // The page cache takes what is written without waiting for a disk, and few file systems say so.
    if writes && is_regular(file)? {
        return at_once(writes, file, bytes, offset, 0).map_err(Refusal::of);
    }
    match at_once(writes, file, bytes, offset, libc::RWF_NOWAIT) {
        // A file in memory, as of tmpfs, which does not know that it never waits.
        Err(libc::EOPNOTSUPP) if !writes && is_regular(file)? => {
            at_once(writes, file, bytes, offset, 0).map_err(Refusal::of)
        }
        Err(libc::EAGAIN) if !writes && is_regular(file)? => {
            fetch(file, offset, bytes.1);
            Err(Refusal(YOURSELF))
        }
        // The signal of a closed pipe is the caller's.
        Err(libc::EAGAIN | libc::EOPNOTSUPP | libc::EPIPE) => Err(Refusal(YOURSELF)),
        result => result.map_err(Refusal::of),
    }
}

/// Has the kernel fetch bytes of a file from its disk, without waiting for them.
fn fetch(file: RawFd, offset: u64, length: usize) {
    // SAFETY: calls without addresses. They fail for what is no such file, and then there is nothing to fetch.
    unsafe {
        let start = match offset {
            CURRENT => libc::lseek(file, 0, libc::SEEK_CUR),
            offset => offset as libc::off_t,
        };
        libc::posix_fadvise(file, start, length as libc::off_t, libc::POSIX_FADV_WILLNEED);
    }
}

fn at_once(
    writes: bool,
    file: RawFd,
    (buffer, length): (*mut u8, usize),
    offset: u64,
    flags: c_int,
) -> Result<u64, c_int> {
    let vector = libc::iovec {
        iov_base: buffer.cast(),
        iov_len: length,
    };
    let call = match writes {
        true => libc::SYS_pwritev2,
        false => libc::SYS_preadv2,
    };
    // The offset's lower and upper half, as the call has them; the lower one is all of it where words have 64 bits.
    let halves = (offset as c_long, (offset >> 32) as c_long);
    // SAFETY: the kernel checks that the bytes may be read or written. Whose they are says `Space::bytes`: they are
    // memory that the caller shares or its own, which no reference of this crate points to.
    let done = unsafe { libc::syscall(call, file, &raw const vector, 1, halves.0, halves.1, flags) };
    u64::try_from(done).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Whether it is a file whose bytes need not be waited for.
pub(crate) fn is_regular(file: RawFd) -> Result<bool, Refusal> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills the structure, or says that it did not.
    if unsafe { libc::syscall(libc::SYS_fstat, file, status.as_mut_ptr()) } != 0 {
        return Err(Refusal::last());
    }
    // SAFETY: the call has succeeded.
    let mode = unsafe { status.assume_init() }.st_mode;
    Ok(mode & libc::S_IFMT == libc::S_IFREG)
}
