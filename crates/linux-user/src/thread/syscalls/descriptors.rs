//! Descriptors: `close`, `dup2`, `ftruncate`, `pipe`, `fcntl`, `ioctl`, and `getdents`, which lists them too.

use std::os::fd::RawFd;

use super::{Arguments, SystemCallResult, fail, sockets, userfault};
use crate::files::{link_of, reserved};
use crate::host::{self, Errno};
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

/// The error of a call that names a descriptor and cannot read what it is given: the kernel looks at the descriptor
/// first.
pub fn fault_of(descriptor: u64, fault: Errno) -> Errno {
    host::descriptor_flags(descriptor as RawFd).err().unwrap_or(fault)
}

/// Where the length of an entry of a folder is, and its name, as `getdents` and `getdents64` write them.
const ENTRY_LENGTH: usize = 16;
const ENTRY_NAMES: [usize; 2] = [18, 19];

/// `getdents(folder, entries, size)`.
pub fn getdents(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    list(thread, libc::SYS_getdents, arguments, ENTRY_NAMES[0])
}

/// `getdents64(folder, entries, size)`.
pub fn getdents64(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    list(thread, libc::SYS_getdents64, arguments, ENTRY_NAMES[1])
}

/// Lists a folder; of a process's own descriptors, those that the guest has.
fn list(thread: &mut Thread, number: i64, arguments: &Arguments, name: usize) -> SystemCallResult {
    let [folder, entries, size, ..] = *arguments;
    let memory = thread.process.memory.clone();
    let host = memory.pointer(entries)?;
    loop {
        let length = thread.host(number, [folder, host, size, 0, 0, 0])?;
        if length == 0 || !is_of_descriptors(folder) {
            return Ok(length);
        }
        let mut listed = vec![0; length as usize];
        memory.read_bytes(entries, &mut listed)?;
        let kept = without_reserved(&listed, name);
        memory.write_bytes(entries, &kept)?;
        // Nothing would be the folder's end.
        if !kept.is_empty() {
            return Ok(kept.len() as u64);
        }
    }
}

/// Whether a folder is the one of `/proc` in which this process's descriptors are.
fn is_of_descriptors(folder: u64) -> bool {
    let folder = folder as RawFd;
    // Most folders are elsewhere, and are listed often.
    if !host::is_of_proc(folder) {
        return false;
    }
    let Ok(path) = std::fs::read_link(link_of(folder)) else {
        return false;
    };
    let own = format!("/proc/{}", std::process::id());
    path.starts_with(own) && (path.ends_with("fd") || path.ends_with("fdinfo"))
}

/// Entries of a folder of descriptors but those that are the emulator's own.
fn without_reserved(entries: &[u8], name: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut rest = entries;
    while let Some(length) = rest.get(ENTRY_LENGTH..ENTRY_LENGTH + 2) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let (entry, behind) = rest.split_at(length.clamp(ENTRY_LENGTH + 2, rest.len()));
        let name = entry.get(name..).unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let number = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
        if !number.is_some_and(reserved::is_reserved) {
            kept.extend_from_slice(entry);
        }
        rest = behind;
    }
    kept
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
    if request == libc::SIOCGIFCONF {
        return sockets::interfaces(thread, descriptor, argument);
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
    fn the_emulators_own_descriptors_are_not_listed() {
        let file = std::fs::File::open("/dev/null").expect("a device");
        let reserved = reserved::Reserved::new(&file).expect("room");
        let number = std::os::fd::AsRawFd::as_raw_fd(&reserved);
        for name_at in ENTRY_NAMES {
            let entry = |name: &str| {
                let mut entry = vec![0; 16];
                entry.extend(32u16.to_le_bytes());
                entry.resize(name_at, 0);
                entry.extend(name.bytes());
                entry.resize(32, 0);
                entry
            };
            let (own, others) = (entry(&number.to_string()), [entry("."), entry("7")]);
            let listed = [&others[0][..], &own, &others[1]].concat();
            assert_eq!(without_reserved(&listed, name_at), others.concat());
            assert!(without_reserved(&own, name_at).is_empty());
        }
        assert!(without_reserved(&[1; 40], 18).len() <= 40, "no entry at all");
    }

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
