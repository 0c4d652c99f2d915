//! The system calls that are measured, as a process makes them itself.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::time::{ClockId, clock_gettime};
use sidestep_sidecall::table::{RECORD_BYTES, Table, look_up};

/// Calls of a sample: more than a look at the clock costs.
pub const BATCH: usize = 16;
/// Samples of a round.
pub const SAMPLES: usize = 32;
/// Bytes that are read and written.
pub const BYTES: usize = 512;
/// Keys of the table.
const KEYS: u64 = 10_000;
/// The key that is looked for.
pub const KEY: u64 = 4711;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Getpid,
    Read,
    Write,
    Open,
    Stat,
    LookUp,
}

impl Operation {
    pub const NAMES: &'static [&'static str] = &["getpid", "read", "write", "open", "stat", "lookup"];

    pub fn of(name: &str) -> Self {
        match name {
            "read" => Self::Read,
            "write" => Self::Write,
            "open" => Self::Open,
            "stat" => Self::Stat,
            "lookup" => Self::LookUp,
            _ => Self::Getpid,
        }
    }
}

/// Files to work on.
pub struct Work {
    pub folder: tempfile::TempDir,
    pub path: CString,
    pub file: File,
    pub table: Table,
    pub table_file: File,
}

/// The name of the file in the folder.
pub const FILE: &str = "file";

impl Work {
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join(FILE);
        std::fs::write(&path, [b'x'; BYTES])?;
        let pairs: Vec<(u64, u64)> = (1..=KEYS).map(|key| (key, key * key)).collect();
        let table = Table::of(&pairs);
        let table_path = folder.path().join("table");
        std::fs::write(&table_path, table.bytes())?;
        Ok(Self {
            file: File::options().read(true).write(true).open(&path)?,
            path: CString::new(path.into_os_string().into_encoded_bytes())?,
            table,
            table_file: File::open(table_path)?,
            folder,
        })
    }

    /// One call; an error is the kernel's. Allocates nothing, so that a child of fork may make it.
    pub fn directly(&self, operation: Operation) -> io::Result<()> {
        let mut bytes = [b'x'; BYTES];
        let file = self.file.as_raw_fd();
        // SAFETY: buffers and path live through the calls and are as long as these are told.
        let result = unsafe {
            match operation {
                Operation::Getpid => libc::syscall(libc::SYS_getpid),
                Operation::Read => libc::syscall(libc::SYS_pread64, file, bytes.as_mut_ptr(), BYTES, 0),
                Operation::Write => libc::syscall(libc::SYS_pwrite64, file, bytes.as_ptr(), BYTES, 0),
                Operation::Open => {
                    let path = self.path.as_ptr();
                    let opened = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, libc::O_RDONLY, 0);
                    if opened < 0 {
                        opened
                    } else {
                        libc::syscall(libc::SYS_close, opened)
                    }
                }
                Operation::Stat => {
                    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
                    let path = self.path.as_ptr();
                    libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, status.as_mut_ptr(), 0)
                }
                Operation::LookUp => {
                    let table = self.table_file.as_raw_fd();
                    let read = |offset: u64, record: &mut [u8; RECORD_BYTES]| {
                        let to = record.as_mut_ptr();
                        match libc::syscall(libc::SYS_pread64, table, to, RECORD_BYTES, offset) {
                            0.. => Ok(()),
                            _ => Err(io::Error::last_os_error()),
                        }
                    };
                    return found(look_up(KEY, self.table.places(), read)?);
                }
            }
        };
        match result {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether the value is the key's.
pub fn found(value: Option<u64>) -> io::Result<()> {
    match value {
        Some(value) if value == KEY * KEY => Ok(()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The clock, in nanoseconds.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A round of calls: nanoseconds a call, of each sample.
pub fn timed(mut call: impl FnMut() -> io::Result<()>) -> io::Result<Vec<u64>> {
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = now_ns();
        for _ in 0..BATCH {
            call()?;
        }
        samples.push((now_ns() - start) / BATCH as u64);
    }
    Ok(samples)
}
