//! Entries of `/proc` that must tell about the guest, not about the emulator.
//!
//! An entry is known by its canonical path, however a program came there: through `..`, a folder's descriptor or a
//! symbolic link. Entries that speak of memory are made here; those through which the emulator itself could be read or
//! written (`mem`, `pagemap` and their like) cannot be opened.

use std::ffi::CString;
use std::fmt::Write;
use std::io::Seek;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};

use super::system;
use crate::files::link_of;
use crate::files::links::own_entry;
use crate::files::namespace::components;
use crate::host::signals::SignalSet;
use crate::host::{self, Errno};
use crate::memory::mapping::{Backing, Growth, Mapping};
use crate::memory::window::PAGE;
use crate::process::Process;
use crate::thread::Thread;

/// Entries of a process's folder through which the emulator's memory and registers would be seen.
const EMULATORS: [&[u8]; 9] = [
    b"mem",
    b"pagemap",
    b"clear_refs",
    b"numa_maps",
    b"stack",
    b"syscall",
    b"map_files",
    b"ldt_gdt_entries",
    b"personality",
];
/// Entries of other processes that a program with a root folder of its own may read.
const OF_OTHERS: [&[u8]; 5] = [b"stat", b"statm", b"status", b"cmdline", b"comm"];

/// For whom an entry is made.
pub struct Viewer<'a> {
    process: &'a Process,
    blocked: SignalSet,
    stack_pointer: u64,
    instruction_pointer: u64,
}

impl<'a> Viewer<'a> {
    /// A thread, which sees itself.
    pub fn of_thread(thread: &'a Thread) -> Viewer<'a> {
        Viewer {
            process: &thread.process,
            blocked: thread.blocked,
            stack_pointer: thread.processor.general.value(12),
            instruction_pointer: thread.processor.instruction_pointer().0,
        }
    }

    /// Somebody outside, who sees the process and no thread of it.
    pub fn of(process: &'a Process) -> Viewer<'a> {
        Viewer {
            process,
            blocked: 0,
            stack_pointer: 0,
            instruction_pointer: 0,
        }
    }
}

/// Opens the guest's version of an entry, if it has a version of its own; `path` is canonical. `EACCES` for one that
/// cannot be shown.
pub fn open(viewer: &Viewer<'_>, path: &[u8], flags: i32) -> Result<Option<i32>, Errno> {
    if !path.starts_with(b"/proc/") || flags & libc::O_PATH != 0 {
        return Ok(None);
    }
    let denied = Err(Errno(libc::EACCES));
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
    if let Some(name) = own_entry(path) {
        if EMULATORS
            .iter()
            .any(|denied| name == *denied || name.starts_with(&[denied, &b"/"[..]].concat()))
        {
            return denied;
        }
        if name == b"exe" {
            return program(viewer, flags).map(Some);
        }
        return match own_contents(viewer, path, name)? {
            None => Ok(None),
            Some(_) if writes => denied,
            Some(contents) => memory_file(path, &contents, flags).map(Some),
        };
    }
    if viewer.process.files.is_confined() {
        let of_process = components(path)
            .nth(1)
            .is_some_and(|name| name.iter().all(u8::is_ascii_digit));
        let name = components(path).nth(2);
        let is_shown = name.is_none_or(|name| OF_OTHERS.contains(&name) && components(path).count() == 3);
        if writes || of_process && !is_shown {
            return denied;
        }
    }
    match system_contents(path) {
        None => Ok(None),
        Some(_) if writes => denied,
        Some(contents) => memory_file(path, &contents, flags).map(Some),
    }
}

fn program(viewer: &Viewer<'_>, flags: i32) -> Result<i32, Errno> {
    let how = host::How {
        flags: (flags & !libc::O_NOFOLLOW) as u64,
        mode: 0,
        resolve: 0,
    };
    let link = link_of(viewer.process.files.program.as_raw_fd());
    Ok(host::open(libc::AT_FDCWD, link.as_bytes(), &how)?.into_raw_fd())
}

fn own_contents(viewer: &Viewer<'_>, path: &[u8], name: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
    let process = viewer.process;
    let strings = |range: &std::ops::Range<u64>| -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        process.memory.read_bytes(range.start, &mut bytes)?;
        Ok(bytes)
    };
    let host_text =
        || std::fs::read_to_string(String::from_utf8_lossy(path).as_ref()).map_err(|error| Errno::of(&error));
    Ok(Some(match name {
        b"maps" => maps(process, Detail::Lines),
        b"smaps" => maps(process, Detail::Sizes),
        b"smaps_rollup" => rollup(process),
        b"auxv" => process.program.auxiliary.clone(),
        b"cmdline" => strings(&process.program.arguments)?,
        b"environ" => strings(&process.program.environment)?,
        b"status" => status(viewer, &host_text()?),
        b"stat" => statistics(viewer, &host_text()?),
        b"statm" => Sizes::of(process).in_pages().into_bytes(),
        _ => return Ok(None),
    }))
}

fn system_contents(path: &[u8]) -> Option<Vec<u8>> {
    Some(match path {
        b"/proc/cpuinfo" => processors(),
        b"/proc/version" => system::version_line().into_bytes(),
        b"/proc/sys/kernel/osrelease" => format!("{}\n", system::RELEASE).into_bytes(),
        _ => return None,
    })
}

/// A file without a name that holds some bytes.
fn memory_file(path: &[u8], contents: &[u8], flags: i32) -> Result<i32, Errno> {
    let name = CString::new(path.rsplit(|byte| *byte == b'/').next().unwrap_or(b"")).unwrap_or_default();
    let close = if flags & libc::O_CLOEXEC != 0 {
        libc::MFD_CLOEXEC
    } else {
        0
    };
    // SAFETY: the name is a live string.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), close) };
    if descriptor < 0 {
        return Err(Errno::last());
    }
    host::write_all(descriptor, contents);
    // SAFETY: the descriptor is ours until it is handed to the guest.
    let mut file = unsafe { std::fs::File::from_raw_fd(descriptor) };
    file.rewind().map_err(|error| Errno::of(&error))?;
    Ok(file.into_raw_fd())
}

/// What [`maps`] says of each mapping.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// A line.
    Lines,
    /// A line, and its sizes.
    Sizes,
}

/// The guest's mappings in the format of `/proc/self/maps` or `smaps`.
fn maps(process: &Process, detail: Detail) -> Vec<u8> {
    let mut text = String::new();
    let mappings: Vec<_> = {
        let mappings = process.memory.mappings();
        mappings
            .iter()
            .map(|(range, mapping)| (range.clone(), mapping.clone()))
            .collect()
    };
    for (range, mapping) in &mappings {
        write_mapping(&mut text, process, range, mapping);
        if detail == Detail::Sizes {
            let resident = process.memory.resident_pages(range);
            let touched = resident.iter().filter(|resident| **resident).count() as u64 * PAGE;
            write_sizes(&mut text, range.end - range.start, touched, mapping);
        }
    }
    text.push_str("a000000000000000-a000000000004000 r-xp 00000000 00:00 0 [gate]\n");
    text.into_bytes()
}

fn write_mapping(text: &mut String, process: &Process, range: &std::ops::Range<u64>, mapping: &Mapping) {
    let right = |bit: u8, letter: char| {
        if mapping.protection.0 & bit != 0 {
            letter
        } else {
            '-'
        }
    };
    let sharing = if mapping.shared { 's' } else { 'p' };
    let (offset, (device, inode), name) = match &mapping.backing {
        Backing::Anonymous => (0, (0, 0), String::new()),
        Backing::Role("[backing store]") if mapping.growth == Growth::Up => (0, (0, 0), String::new()),
        Backing::Role(role) => (0, (0, 0), (*role).into()),
        Backing::File { path, identity, bias } => {
            let shown = process
                .files
                .namespace()
                .and_then(|namespace| namespace.guest_path(path.as_bytes()));
            let shown = shown.map_or_else(
                || path.to_string(),
                |path| String::from_utf8_lossy(&path).into_owned(),
            );
            (range.start.wrapping_add(*bias), *identity, shown)
        }
        Backing::SharedSegment(_) => (0, (0, 0), "/SYSV".into()),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:016x}-{:016x} {}{}{}{sharing} {offset:08x} {:02x}:{:02x} {inode} {name}",
        range.start,
        range.end,
        right(1, 'r'),
        right(2, 'w'),
        right(4, 'x'),
        libc::major(device),
        libc::minor(device),
    );
}

/// The lines of `smaps` that programs read; what the host does not tell by mapping counts as private.
fn write_sizes(text: &mut String, size: u64, touched: u64, mapping: &Mapping) {
    let anonymous = !matches!(mapping.backing, Backing::File { .. } | Backing::SharedSegment(_));
    let dirty = mapping.protection.writes() && touched > 0;
    let kind = |is: bool| if is { touched } else { 0 };
    let rows = [
        ("Size", size),
        ("KernelPageSize", PAGE),
        ("MMUPageSize", PAGE),
        ("Rss", touched),
        ("Pss", touched),
        ("Shared_Clean", kind(mapping.shared && !dirty)),
        ("Shared_Dirty", kind(mapping.shared && dirty)),
        ("Private_Clean", kind(!mapping.shared && !dirty)),
        ("Private_Dirty", kind(!mapping.shared && dirty)),
        ("Referenced", touched),
        ("Anonymous", kind(anonymous)),
        ("Swap", 0),
        ("Locked", 0),
    ];
    for (name, bytes) in rows {
        let _ = writeln!(text, "{:<16}{:>8} kB", format!("{name}:"), bytes / 1024);
    }
}

fn rollup(process: &Process) -> Vec<u8> {
    let sizes = Sizes::of(process);
    let rows = [
        ("Rss", sizes.resident),
        ("Pss", sizes.resident),
        ("Anonymous", sizes.resident),
        ("Swap", 0),
    ];
    let mut text = String::from("0000000000000000-a000000000004000 ---p 00000000 00:00 0 [rollup]\n");
    for (name, bytes) in rows {
        let _ = writeln!(text, "{:<16}{:>8} kB", format!("{name}:"), bytes / 1024);
    }
    text.into_bytes()
}

/// How much memory a guest has, by kind, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    mapped: u64,
    resident: u64,
    data: u64,
    stack: u64,
    text: u64,
    shared: u64,
}

impl Sizes {
    fn of(process: &Process) -> Sizes {
        let mut sizes = Sizes {
            resident: process.memory.page_counts().1 * PAGE,
            ..Sizes::default()
        };
        for (range, mapping) in process.memory.mappings().iter() {
            let size = range.end - range.start;
            sizes.mapped += size;
            match (&mapping.backing, mapping.protection) {
                (Backing::Role("[stack]"), _) => sizes.stack += size,
                (_, protection) if protection.executes() => sizes.text += size,
                (_, protection) if protection.writes() && !mapping.shared => sizes.data += size,
                _ => {}
            }
            if mapping.shared {
                sizes.shared += size;
            }
        }
        sizes
    }

    /// `/proc/self/statm`.
    fn in_pages(self) -> String {
        let pages = |bytes: u64| bytes / PAGE;
        format!(
            "{} {} {} {} 0 {} 0\n",
            pages(self.mapped),
            pages(self.resident),
            pages(self.shared),
            pages(self.text),
            pages(self.data + self.stack)
        )
    }
}

/// The host's `/proc/self/status` with what is said of memory, signals and threads replaced.
fn status(viewer: &Viewer<'_>, host: &str) -> Vec<u8> {
    let process = viewer.process;
    let sizes = Sizes::of(process);
    let (ignored, caught) = process.actions().sets();
    let kilobytes = |bytes: u64| Some(format!("{:>8} kB", bytes / 1024));
    let set = |set: u64| Some(format!("{set:016x}"));
    let mut text = String::new();
    for line in host.lines() {
        let Some((name, _)) = line.split_once(':') else {
            continue;
        };
        let value = match name {
            "VmPeak" | "VmSize" => kilobytes(sizes.mapped),
            "VmHWM" | "VmRSS" | "RssAnon" => kilobytes(sizes.resident),
            "RssFile" | "RssShmem" | "VmLib" => kilobytes(0),
            "VmData" => kilobytes(sizes.data),
            "VmStk" => kilobytes(sizes.stack),
            "VmExe" => kilobytes(sizes.text),
            "VmPTE" => kilobytes(sizes.resident / PAGE * 8),
            "Threads" => Some(process.threads().to_string()),
            "SigBlk" => set(viewer.blocked),
            "SigIgn" => set(ignored),
            "SigCgt" => set(caught),
            // What only an x86 kernel says.
            _ if name.starts_with("x86_") || name == "untag_mask" => continue,
            _ => None,
        };
        let _ = match value {
            Some(value) => writeln!(text, "{name}:\t{value}"),
            None => writeln!(text, "{line}"),
        };
    }
    text.into_bytes()
}

/// The host's `/proc/self/stat` with the fields replaced that speak of addresses, sizes and signals.
fn statistics(viewer: &Viewer<'_>, host: &str) -> Vec<u8> {
    let process = viewer.process;
    let Some((head, rest)) = host.rsplit_once(") ") else {
        return host.as_bytes().to_vec();
    };
    let sizes = Sizes::of(process);
    let (ignored, caught) = process.actions().sets();
    let heap = process.memory.heap().start;
    let program = &process.program;
    let stack = viewer.stack_pointer;
    // Counted from one, as proc(5) does; the first two are in `head`.
    let replaced = |field: usize| {
        Some(match field {
            20 => process.threads() as u64,
            23 => sizes.mapped,
            24 => sizes.resident / PAGE,
            26 => program.text.start,
            27 => program.text.end,
            28 => program.stack,
            29 => stack,
            30 => viewer.instruction_pointer,
            32 => viewer.blocked,
            33 => ignored,
            34 => caught,
            45 => program.data.start,
            46 => program.data.end,
            47 => heap,
            48 => program.arguments.start,
            49 => program.arguments.end,
            50 => program.environment.start,
            51 => program.environment.end,
            _ => return None,
        })
    };
    let fields = rest.split_whitespace().enumerate();
    let fields: Vec<String> = fields
        .map(|(at, host)| replaced(at + 3).map_or_else(|| host.into(), |value| value.to_string()))
        .collect();
    format!("{head}) {}\n", fields.join(" ")).into_bytes()
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
