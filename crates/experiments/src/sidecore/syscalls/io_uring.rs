//! Calls through io_uring: a request, and its completion, one at a time.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types::Fd};
use sidestep_lab::PointError;
use sidestep_sidecall::table::RECORD_BYTES;

use super::work::{BYTES, KEY, Operation, Work, found, timed};
use super::{Cores, Samples, failed, unavailable};

/// How long the kernel's thread polls in vain before it sleeps, in milliseconds: longer than a round.
const IDLE_MS: u32 = 1000;

pub fn by_calls(work: &Work, operation: Operation, _cores: Cores) -> Result<Samples, PointError> {
    let ring = IoUring::new(8).map_err(|error| unavailable(format!("io_uring: {error}")))?;
    round(ring, work, operation, false)
}

pub fn by_polling(work: &Work, operation: Operation, cores: Cores) -> Result<Samples, PointError> {
    let ring = IoUring::builder()
        .setup_sqpoll(IDLE_MS)
        .setup_sqpoll_cpu(cores.other as u32)
        .build(8)
        .map_err(|error| unavailable(format!("io_uring with SQPOLL: {error}")))?;
    round(ring, work, operation, true)
}

struct Ring {
    ring: IoUring,
    is_polled: bool,
}

impl Ring {
    /// Makes a request and waits for its completion, by a system call or, where the kernel polls, by polling.
    ///
    /// # Safety
    /// What the entry points to lives until this returns.
    unsafe fn call(&mut self, entry: &io_uring::squeue::Entry) -> io::Result<i32> {
        // SAFETY: as the caller says.
        unsafe { self.ring.submission().push(entry) }.map_err(|_| io::Error::other("the ring is full"))?;
        if self.is_polled {
            // A system call only where the kernel's thread has gone to sleep.
            self.ring.submit()?;
        } else {
            self.ring.submit_and_wait(1)?;
        }
        loop {
            if let Some(completed) = self.ring.completion().next() {
                return match completed.result() {
                    result @ 0.. => Ok(result),
                    error => Err(io::Error::from_raw_os_error(-error)),
                };
            }
            std::hint::spin_loop();
        }
    }
}

fn round(ring: IoUring, work: &Work, operation: Operation, is_polled: bool) -> Result<Samples, PointError> {
    if operation == Operation::Getpid {
        return Err(unavailable("io_uring has no request for getpid"));
    }
    let mut ring = Ring { ring, is_polled };
    let file = Fd(work.file.as_raw_fd());
    let table = Fd(work.table_file.as_raw_fd());
    let mut bytes = [b'x'; BYTES];
    let length = BYTES as u32;
    let mut status = std::mem::MaybeUninit::<libc::statx>::uninit();
    let folder = Fd(libc::AT_FDCWD);
    let path = work.path.as_ptr();
    // SAFETY: buffers, path and structure live longer than each call, which waits for its completion; one that failed
    // has none under way.
    let samples = timed(|| unsafe {
        match operation {
            Operation::Getpid => Ok(()),
            Operation::Read => {
                let entry = opcode::Read::new(file, bytes.as_mut_ptr(), length).build();
                ring.call(&entry).map(drop)
            }
            Operation::Write => {
                let entry = opcode::Write::new(file, bytes.as_ptr(), length).build();
                ring.call(&entry).map(drop)
            }
            Operation::Open => {
                let entry = opcode::OpenAt::new(folder, path).flags(libc::O_RDONLY).build();
                let opened = ring.call(&entry)?;
                ring.call(&opcode::Close::new(Fd(opened)).build()).map(drop)
            }
            Operation::Stat => {
                let to = status.as_mut_ptr().cast();
                let entry = opcode::Statx::new(folder, path, to)
                    .mask(libc::STATX_BASIC_STATS)
                    .build();
                ring.call(&entry).map(drop)
            }
            Operation::LookUp => {
                let read = |offset: u64, record: &mut [u8; RECORD_BYTES]| {
                    let entry = opcode::Read::new(table, record.as_mut_ptr(), RECORD_BYTES as u32);
                    ring.call(&entry.offset(offset).build()).map(drop)
                };
                found(sidestep_sidecall::table::look_up(KEY, work.table.places(), read)?)
            }
        }
    });
    samples.map_err(failed)
}
