//! Files under `/proc` that must tell about the guest, not about the emulator.

use std::ffi::CString;
use std::fmt::Write;
use std::io::Seek;
use std::os::fd::{FromRawFd, IntoRawFd};

use crate::host::{self, Errno};
use crate::memory::mapping::{Backing, Growth};
use crate::process::Process;
use crate::thread::Thread;

/// Whether a path is `/proc/self/NAME` or the same by process number.
pub fn is_own(path: &[u8], name: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(b"/proc/") else {
        return false;
    };
    let own = std::process::id().to_string();
    [b"self".as_slice(), b"thread-self", own.as_bytes()]
        .into_iter()
        .any(|process| {
            rest.strip_prefix(process)
                .and_then(|rest| rest.strip_prefix(b"/"))
                .is_some_and(|rest| rest == name)
        })
}

/// Opens the guest's version of a file, if the path names one that has a version of its own.
pub fn open(thread: &Thread, path: &[u8]) -> Result<Option<i32>, Errno> {
    if !path.starts_with(b"/proc/") {
        return Ok(None);
    }
    let process = &thread.process;
    let contents = if is_own(path, b"maps") {
        maps(process)
    } else if is_own(path, b"auxv") {
        process.program.auxiliary.clone()
    } else if is_own(path, b"cmdline") {
        let range = process.program.arguments.clone();
        let mut bytes = vec![0; (range.end - range.start) as usize];
        process.memory.read_bytes(range.start, &mut bytes)?;
        bytes
    } else if path == b"/proc/cpuinfo" {
        processors()
    } else {
        return Ok(None);
    };
    memory_file(path, &contents).map(Some)
}

/// A file without a name that holds some bytes.
fn memory_file(path: &[u8], contents: &[u8]) -> Result<i32, Errno> {
    let name = CString::new(path.rsplit(|byte| *byte == b'/').next().unwrap_or(b"")).unwrap_or_default();
    // SAFETY: the name is a live string.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(Errno::last());
    }
    host::write_all(descriptor, contents);
    // SAFETY: the descriptor is ours until it is handed to the guest.
    let mut file = unsafe { std::fs::File::from_raw_fd(descriptor) };
    file.rewind().map_err(|error| Errno::of(&error))?;
    Ok(file.into_raw_fd())
}

/// The guest's mappings in the format of `/proc/self/maps`.
fn maps(process: &Process) -> Vec<u8> {
    let mut text = Vec::new();
    for (range, mapping) in process.memory.mappings().iter() {
        let right = |bit: u8, letter: char| {
            if mapping.protection.0 & bit != 0 {
                letter
            } else {
                '-'
            }
        };
        let sharing = if mapping.shared { 's' } else { 'p' };
        let (offset, (device, inode), name) = match &mapping.backing {
            Backing::Anonymous => (0, (0, 0), ""),
            Backing::Role(role) if mapping.growth == Growth::Up && *role == "[backing store]" => {
                (0, (0, 0), "")
            }
            Backing::Role(role) => (0, (0, 0), *role),
            Backing::File { path, identity, bias } => (range.start.wrapping_add(*bias), *identity, &**path),
            Backing::SharedSegment(_) => (0, (0, 0), "/SYSV"),
        };
        let mut line = String::new();
        let _ = write!(
            line,
            "{:016x}-{:016x} {}{}{}{sharing} {offset:08x} {:02x}:{:02x} {inode} ",
            range.start,
            range.end,
            right(1, 'r'),
            right(2, 'w'),
            right(4, 'x'),
            libc::major(device),
            libc::minor(device),
        );
        let _ = writeln!(
            line,
            "{name:>width$}",
            width = if name.is_empty() { 0 } else { name.len().max(1) }
        );
        text.extend_from_slice(line.as_bytes());
    }
    text.extend_from_slice(b"a000000000000000-a000000000004000 r-xp 00000000 00:00 0 [gate]\n");
    text
}

/// `/proc/cpuinfo` in the format of Linux/ia64.
fn processors() -> Vec<u8> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = String::new();
    for number in 0..count {
        let _ = write!(
            text,
            "processor  : {number}\nvendor     : GenuineIntel\narch       : IA-64\nfamily     : 31\nmodel      : 2\n\
             model name : Madison up to 9M cache\nrevision   : 2\narchrev    : 0\nfeatures   : branchlong\n\
             cpu number : 0\ncpu regs   : 4\ncpu MHz    : 1600.000\nitc MHz    : 400.000000\nBogoMIPS   : 2396.16\n\n"
        );
    }
    text.into_bytes()
}
