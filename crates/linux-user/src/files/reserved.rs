//! Descriptors that belong to the emulator: the guest's root, its program, the emulator's own executable.
//!
//! They are numbered near the usual limit, out of a program's way, beyond its own limit if that is smaller; `close`,
//! `dup2` and `close_range` of the guest pass them over. A child inherits them as it inherits the guest's own.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::RwLock;

use crate::host::{self, Errno};

/// The first number to try; a smaller hard limit lowers it.
const FIRST: u64 = 1000;
/// How far below the limit.
const ROOM: u64 = 24;

/// The numbers in use, ascending.
static NUMBERS: RwLock<Vec<RawFd>> = RwLock::new(Vec::new());

/// A descriptor of the emulator's own.
#[derive(Debug)]
pub struct Reserved(OwnedFd);

impl Reserved {
    /// Moves a descriptor out of the guest's way.
    pub fn new(descriptor: &impl AsRawFd) -> Result<Reserved, Errno> {
        let [soft, hard] = host::limit_of(libc::RLIMIT_NOFILE).unwrap_or([1024; 2]);
        let lowest = FIRST.min(hard.saturating_sub(ROOM));
        let copy = if lowest + ROOM <= soft {
            copy_from(lowest, descriptor)
        } else {
            at_highest_limit([soft, hard], || copy_from(lowest, descriptor))
        }?;
        let mut numbers = numbers_mut();
        numbers.push(copy.as_raw_fd());
        numbers.sort_unstable();
        Ok(Reserved(copy))
    }
}

impl AsFd for Reserved {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Reserved {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let number = self.0.as_raw_fd();
        numbers_mut().retain(|other| *other != number);
    }
}

/// Opens something for the emulator, beyond the program's limit on descriptors if that is reached.
pub fn beyond_limit<T>(open: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    match open() {
        Err(Errno(libc::EMFILE)) => at_highest_limit(host::limit_of(libc::RLIMIT_NOFILE)?, open),
        other => other,
    }
}

/// Opens something while the soft limit on descriptors is the hard one; what is open stays so under a lower limit.
fn at_highest_limit<T>([soft, hard]: [u64; 2], open: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    host::set_limit(libc::RLIMIT_NOFILE, [hard, hard])?;
    let opened = open();
    host::set_limit(libc::RLIMIT_NOFILE, [soft, hard])?;
    opened
}

/// Copies a descriptor to the first number from `lowest` on that is free.
pub fn copy_from(lowest: u64, descriptor: &impl AsRawFd) -> Result<OwnedFd, Errno> {
    let arguments = [
        descriptor.as_raw_fd() as u64,
        libc::F_DUPFD_CLOEXEC as u64,
        lowest,
        0,
        0,
        0,
    ];
    // SAFETY: copying a descriptor touches no memory.
    let number = unsafe { host::call(libc::SYS_fcntl, arguments) }?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(number as RawFd) })
}

fn numbers_mut() -> std::sync::RwLockWriteGuard<'static, Vec<RawFd>> {
    NUMBERS
        .write()
        .expect("no thread panics while it changes the numbers")
}

/// Whether a descriptor is the emulator's own, so that the guest has none of this number.
pub fn is_reserved(descriptor: u64) -> bool {
    let number = descriptor as RawFd;
    number >= 0
        && NUMBERS
            .read()
            .expect("no thread panics while it changes the numbers")
            .contains(&number)
}

/// The parts of a range of descriptors (both ends belong to it) that are the guest's.
pub fn guests_parts(first: u32, last: u32) -> Vec<(u32, u32)> {
    let numbers = NUMBERS
        .read()
        .expect("no thread panics while it changes the numbers");
    let mut parts = Vec::new();
    let mut start = Some(first);
    for number in numbers.iter().map(|number| *number as u32) {
        if let Some(from) = start
            && (from..=last).contains(&number)
        {
            if from < number {
                parts.push((from, number - 1));
            }
            start = number.checked_add(1);
        }
    }
    if let Some(from) = start
        && from <= last
    {
        parts.push((from, last));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_leave_the_reserved_descriptors_out() {
        let file = std::fs::File::open("/dev/null").expect("a device");
        let reserved = Reserved::new(&file).expect("room");
        let number = reserved.as_raw_fd() as u32;
        assert!(is_reserved(u64::from(number)) && !is_reserved(file.as_raw_fd() as u64));
        let parts = guests_parts(3, u32::MAX);
        assert!(
            parts
                .iter()
                .all(|(first, last)| number < *first || *last < number)
        );
        assert!(parts.iter().any(|(_, last)| *last == number - 1));
        drop(reserved);
        assert!(!is_reserved(u64::from(number)));
    }
}
