//! Descriptors: `close`, `dup2`, `ftruncate`, `pipe`, `fcntl`, `ioctl`.

use std::os::fd::RawFd;

use super::{Arguments, SystemCallResult, fail, userfault};
use crate::files::reserved;
use crate::thread::Thread;

/// `close(descriptor)`.
pub fn close(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    if reserved::is_reserved(arguments[0]) {
        return fail(libc::EBADF);
    }
    thread.host(libc::SYS_close, *arguments)
}

/// `dup2(old, new)`.
pub fn dup2(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    if arguments[..2]
        .iter()
        .any(|descriptor| reserved::is_reserved(*descriptor))
    {
        return fail(libc::EBADF);
    }
    thread.host(libc::SYS_dup2, *arguments)
}

/// `dup3(old, new, flags)`.
pub fn dup3(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    if arguments[..2]
        .iter()
        .any(|descriptor| reserved::is_reserved(*descriptor))
    {
        return fail(libc::EBADF);
    }
    thread.host(libc::SYS_dup3, *arguments)
}

/// `close_range(first, last, flags)`: the emulator's own descriptors stay.
pub fn close_range(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [first, last, flags, ..] = *arguments;
    let (first, last) = (first as u32, last as u32);
    if first > last {
        return fail(libc::EINVAL);
    }
    for (first, last) in reserved::guests_parts(first, last) {
        thread.host(
            libc::SYS_close_range,
            [u64::from(first), u64::from(last), flags, 0, 0, 0],
        )?;
    }
    Ok(0)
}

/// `ftruncate(descriptor, length)`: what is mapped of the file may be gone.
pub fn ftruncate(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    if reserved::is_reserved(arguments[0]) {
        return fail(libc::EBADF);
    }
    let done = thread.host(libc::SYS_ftruncate, *arguments)?;
    thread.process.memory.note_shortened(arguments[0] as RawFd);
    Ok(done)
}

/// `pipe()`: both descriptors are results, in r8 and r9.
pub fn pipe(thread: &mut Thread, _arguments: &Arguments) -> SystemCallResult {
    let mut ends = [0i32; 2];
    thread.host(libc::SYS_pipe2, [&raw mut ends as u64, 0, 0, 0, 0, 0])?;
    thread.second_result = Some(ends[1] as u64);
    Ok(ends[0] as u64)
}

/// `fcntl(descriptor, command, argument)`: some commands take the address of a structure, which both sides lay
/// out alike.
pub fn fcntl(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    const F_SETOWN_EX: i32 = 15;
    const F_GETOWN_EX: i32 = 16;
    /// `F_GET_RW_HINT` and its relatives.
    const HINTS: std::ops::RangeInclusive<i32> = 1035..=1038;
    let [descriptor, command, argument, ..] = *arguments;
    let number = command as i32;
    let takes_address = matches!(
        number,
        libc::F_GETLK
            | libc::F_SETLK
            | libc::F_SETLKW
            | libc::F_OFD_GETLK
            | libc::F_OFD_SETLK
            | libc::F_OFD_SETLKW
            | F_GETOWN_EX
            | F_SETOWN_EX
    ) || HINTS.contains(&number);
    let argument = if takes_address {
        thread.process.memory.pointer(argument)?
    } else {
        argument
    };
    thread.host_blocking(libc::SYS_fcntl, [descriptor, command, argument, 0, 0, 0])
}

/// Requests from the time before sizes were encoded whose argument is a number, or none.
const PLAIN_REQUESTS: &[u64] = &[
    libc::TCSBRK,
    libc::TCSBRKP,
    libc::TCXONC,
    libc::TCFLSH,
    libc::TIOCSCTTY,
    libc::TIOCNOTTY,
    libc::TIOCEXCL,
    libc::TIOCNXCL,
    libc::TIOCSBRK,
    libc::TIOCCBRK,
    libc::FIOCLEX,
    libc::FIONCLEX,
    0x5437,      // TIOCVHANGUP
    0x5441,      // TIOCGPTPEER
    0x4004_9409, // FICLONE
];

/// `ioctl(descriptor, request, argument)`.
///
/// Terminal, file, socket and block device requests carry the same numbers and structures on both sides. A
/// request whose number encodes a size takes an address, one that encodes none a number; the exceptions and the
/// older terminal requests are in `PLAIN_REQUESTS`.
pub fn ioctl(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [descriptor, request, argument, ..] = *arguments;
    let request = request & 0xffff_ffff;
    if request >> 8 & 0xff == userfault::KIND && request >> 30 != 0 {
        return userfault::control(thread, arguments);
    }
    let argument = if takes_number(request) {
        argument
    } else {
        thread.process.memory.pointer(argument)?
    };
    thread.host_blocking(libc::SYS_ioctl, [descriptor, request, argument, 0, 0, 0])
}

fn takes_number(request: u64) -> bool {
    const BLOCK_DEVICES: u64 = 0x12;
    let (direction, size, kind) = (request >> 30, request >> 16 & 0x3fff, request >> 8 & 0xff);
    match kind {
        _ if PLAIN_REQUESTS.contains(&request) => true,
        _ if size != 0 || direction != 0 => false,
        0x54 | 0x89 | 0x53 => false,
        BLOCK_DEVICES => matches!(request & 0xff, 95 | 97 | 101),
        0 => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_by_their_argument() {
        assert!(!takes_number(libc::TCGETS));
        assert!(!takes_number(libc::TIOCGWINSZ));
        assert!(!takes_number(libc::FIONREAD));
        assert!(!takes_number(libc::SIOCGIFCONF));
        assert!(!takes_number(0x8008_6601), "FS_IOC_GETFLAGS");
        assert!(takes_number(libc::TCSBRK));
        assert!(takes_number(libc::FIOCLEX));
        assert!(takes_number(0x4004_9409), "FICLONE takes a descriptor");
    }
}
