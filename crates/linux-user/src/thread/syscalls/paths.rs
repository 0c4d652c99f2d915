//! Calls with paths, and `struct stat`. What a path leads to is the business of [`crate::files`].

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use bytemuck::{Pod, Zeroable};

use super::proc::{self, Viewer};
use super::{Arguments, SystemCallResult, Unfinished, fail};
use crate::files::links::{self, Link};
pub use crate::files::locate::{CURRENT_FOLDER, locate};
use crate::files::locate::{find, host_canonical, program_link};
use crate::files::namespace::{Found, Last, Namespace, components};
use crate::files::{HostPath, c_string, host_path_of, reserved};
use crate::host::{self, Errno, How, Opening};
use crate::memory::window::PAGE;
use crate::thread::Thread;

/// `struct stat` of Linux/ia64.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct GuestStatus {
    device: u64,
    inode: u64,
    links: u64,
    mode: u32,
    user: u32,
    group: u32,
    padding: u32,
    special_device: u64,
    size: u64,
    accessed: [u64; 2],
    modified: [u64; 2],
    changed: [u64; 2],
    block_size: u64,
    blocks: u64,
    unused: [u64; 3],
}

impl From<&libc::stat> for GuestStatus {
    fn from(status: &libc::stat) -> GuestStatus {
        GuestStatus {
            device: status.st_dev,
            inode: status.st_ino,
            links: status.st_nlink,
            mode: status.st_mode,
            user: status.st_uid,
            group: status.st_gid,
            padding: 0,
            special_device: status.st_rdev,
            size: status.st_size as u64,
            accessed: [status.st_atime as u64, status.st_atime_nsec as u64],
            modified: [status.st_mtime as u64, status.st_mtime_nsec as u64],
            changed: [status.st_ctime as u64, status.st_ctime_nsec as u64],
            block_size: status.st_blksize as u64,
            blocks: status.st_blocks as u64,
            unused: [0; 3],
        }
    }
}

/// Flags that `openat2` knows; `openat` passes over others.
const OPEN_FLAGS: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_NOCTTY
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_SYNC
    | libc::O_ASYNC
    | libc::O_DIRECT
    | 0o100_000
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_NOATIME
    | libc::O_CLOEXEC
    | libc::O_PATH
    | libc::O_TMPFILE;
/// Those that count beside `O_PATH`.
const OPEN_PATH_FLAGS: i32 = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;

/// The arguments of `openat` as those of `openat2`.
fn how_of(flags: u64, mode: u64) -> How {
    let flags = flags as i32 & OPEN_FLAGS;
    if flags & libc::O_PATH != 0 {
        return How {
            flags: (flags & OPEN_PATH_FLAGS) as u64,
            ..How::default()
        };
    }
    let makes = flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE;
    How {
        flags: flags as u32 as u64,
        mode: if makes { mode & 0o7777 } else { 0 },
        resolve: 0,
    }
}

fn host_open(thread: &Thread, folder: u64, path: &CStr, how: &How) -> SystemCallResult {
    let opening = Opening::new(folder as RawFd, path.to_bytes(), how)?;
    thread.host_blocking(opening.number(), opening.arguments())
}

fn open_at(thread: &Thread, folder: u64, path: u64, how: How) -> SystemCallResult {
    let path = thread.process.memory.read_string(path)?;
    if path.first() != Some(&b'/') && reserved::is_reserved(folder) {
        return fail(libc::EBADF);
    }
    let opened = match thread.process.files.namespace() {
        None => open_on_host(thread, folder, &path, how),
        Some(namespace) => open_in(thread, &namespace, folder, &path, how),
    }?;
    if how.flags as i32 & libc::O_TRUNC != 0 {
        thread.process.memory.note_shortened(opened as RawFd);
    }
    if how.flags as i32 & libc::O_PATH != 0 || !host::is_of_proc(opened as RawFd) {
        return Ok(opened);
    }
    // Whichever way it was reached, an entry of `/proc` shows what the guest may see of it.
    let shown = host_path_of(opened as RawFd)
        .and_then(|path| proc::open(&Viewer::of_thread(thread), &path, how.flags as i32));
    match shown {
        Ok(None) => Ok(opened),
        other => {
            thread.host(libc::SYS_close, [opened, 0, 0, 0, 0, 0])?;
            Ok(other?.map_or(0, |descriptor| descriptor as u64))
        }
    }
}

/// Opens a path of the host's tree. Links of `/proc` that lead past all names are looked at first.
fn open_on_host(thread: &Thread, folder: u64, path: &[u8], how: How) -> SystemCallResult {
    let name = c_string(path.to_vec())?;
    let careful = How {
        resolve: how.resolve | libc::RESOLVE_NO_MAGICLINKS,
        ..how
    };
    match host_open(thread, folder, &name, &careful) {
        Err(Unfinished::Error(Errno(libc::ELOOP))) if how.resolve & libc::RESOLVE_NO_MAGICLINKS == 0 => {
            let canonical = host_canonical(folder, path);
            if canonical.is_ok_and(|path| links::own_entry(&path) == Some(b"exe")) {
                let program = c_string(program_link(&thread.process.files))?;
                return host_open(thread, CURRENT_FOLDER, &program, &how);
            }
            host_open(thread, folder, &name, &how)
        }
        other => other,
    }
}

/// Opens a path of the program's own tree.
fn open_in(thread: &Thread, namespace: &Namespace, folder: u64, path: &[u8], how: How) -> SystemCallResult {
    let flags = how.flags as i32;
    let restricted = how.resolve & !libc::RESOLVE_NO_MAGICLINKS;
    if restricted & (libc::RESOLVE_BENEATH | libc::RESOLVE_IN_ROOT) != 0 {
        // Such a path cannot leave the folder, which is the guest's.
        let how = How {
            resolve: how.resolve | libc::RESOLVE_NO_MAGICLINKS,
            ..how
        };
        return host_open(thread, folder, &c_string(path.to_vec())?, &how);
    }
    if let Some(descriptor) = open_directly(thread, namespace, folder, path, how) {
        return Ok(descriptor);
    }
    let keeps = flags & libc::O_NOFOLLOW != 0
        || flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL;
    let last = if keeps { Last::Keep } else { Last::Follow };
    for _ in 0..MOST_RACES {
        let opened = match find(namespace, folder, path, last)? {
            Found::Object { path, .. } if links::own_entry(&path) == Some(b"exe") => {
                return Ok(proc::open(&Viewer::of_thread(thread), &path, flags)?
                    .map_or(0, |descriptor| descriptor as u64));
            }
            Found::Object { object, path } => {
                if let Some(descriptor) = proc::open(&Viewer::of_thread(thread), &path, flags)? {
                    return Ok(descriptor as u64);
                }
                let how = How {
                    flags: (flags & !libc::O_NOFOLLOW) as u32 as u64,
                    resolve: 0,
                    ..how
                };
                return host_open(thread, CURRENT_FOLDER, HostPath::object(object).as_c_str(), &how);
            }
            Found::Entry { folder, name, path } => {
                if let Some(descriptor) = proc::open(&Viewer::of_thread(thread), &path, flags)? {
                    return Ok(descriptor as u64);
                }
                let how = How {
                    resolve: if keeps { 0 } else { libc::RESOLVE_NO_SYMLINKS },
                    ..how
                };
                host_open(thread, folder.as_raw_fd() as u64, &c_string(name)?, &how)
            }
        };
        // A name that was free has become a link meanwhile: it is resolved again.
        match opened {
            Err(Unfinished::Error(Errno(libc::ELOOP))) if !keeps => {}
            other => return other,
        }
    }
    fail(libc::ELOOP)
}

/// How often a name may change under a call that resolves it.
const MOST_RACES: usize = 40;

/// Opens a file that exists in one step, where that leads to the same file as resolving its path does.
fn open_directly(thread: &Thread, namespace: &Namespace, folder: u64, path: &[u8], how: How) -> Option<u64> {
    let is_known = how.flags as i32 & (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) == 0;
    if !is_known || path.starts_with(b"/proc") {
        return None;
    }
    let (start, resolve) = match path.first() {
        Some(b'/') => (namespace.root() as u64, libc::RESOLVE_IN_ROOT),
        _ => (folder, libc::RESOLVE_BENEATH),
    };
    let how = How {
        resolve: how.resolve | resolve | libc::RESOLVE_NO_MAGICLINKS,
        ..how
    };
    host_open(thread, start, &CString::new(path).ok()?, &how).ok()
}

/// `open(path, flags, mode)`.
pub fn open(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [path, flags, mode, ..] = *arguments;
    open_at(thread, CURRENT_FOLDER, path, how_of(flags, mode))
}

/// `creat(path, mode)`.
pub fn creat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    open_at(
        thread,
        CURRENT_FOLDER,
        arguments[0],
        how_of(flags as u64, arguments[1]),
    )
}

/// `openat(folder, path, flags, mode)`.
pub fn openat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [folder, path, flags, mode, ..] = *arguments;
    open_at(thread, folder, path, how_of(flags, mode))
}

/// `openat2(folder, path, how, size)`.
pub fn openat2(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [folder, path, how, size, ..] = *arguments;
    if !host::has_openat2() {
        return fail(libc::ENOSYS);
    }
    if size < host::HOW_SIZE {
        return fail(libc::EINVAL);
    }
    let memory = &thread.process.memory;
    // What a newer kernel knows must not be asked for.
    let mut rest = vec![0u8; (size - host::HOW_SIZE).min(PAGE) as usize];
    memory.read_bytes(how.wrapping_add(host::HOW_SIZE), &mut rest)?;
    if size > PAGE || rest.iter().any(|byte| *byte != 0) {
        return fail(libc::E2BIG);
    }
    let how = memory.read(how)?;
    open_at(thread, folder, path, how)
}

fn status_at(thread: &Thread, folder: u64, path: u64, result: u64, flags: u64) -> SystemCallResult {
    // SAFETY: an all-zero stat is valid.
    let mut status = unsafe { std::mem::zeroed::<libc::stat>() };
    let mut call = |folder: u64, path: u64, flags: u64| {
        thread.host(
            libc::SYS_newfstatat,
            [folder, path, &raw mut status as u64, flags, 0, 0],
        )
    };
    look_at(thread, folder, path, flags, &mut call)?;
    thread.process.memory.write(result, &GuestStatus::from(&status))?;
    Ok(0)
}

/// Makes a call that looks at a path (folder, path, flags), where nothing is followed that has been resolved.
fn look_at(
    thread: &Thread,
    folder: u64,
    path: u64,
    flags: u64,
    call: &mut dyn FnMut(u64, u64, u64) -> SystemCallResult,
) -> SystemCallResult {
    let path = thread.process.memory.read_string(path)?;
    let keeps = flags as i32 & libc::AT_SYMLINK_NOFOLLOW != 0;
    let located = locate(
        &thread.process.files,
        folder,
        &path,
        if keeps { Last::Keep } else { Last::Follow },
    )?;
    let flags = if located.object {
        flags & !(libc::AT_SYMLINK_NOFOLLOW as u64)
    } else {
        flags
    };
    call(located.folder, located.path.address(), flags)
}

/// `stat(path, result)`.
pub fn stat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    status_at(thread, CURRENT_FOLDER, arguments[0], arguments[1], 0)
}

/// `lstat(path, result)`.
pub fn lstat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let flags = libc::AT_SYMLINK_NOFOLLOW as u64;
    status_at(thread, CURRENT_FOLDER, arguments[0], arguments[1], flags)
}

/// `newfstatat(folder, path, result, flags)`.
pub fn newfstatat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    status_at(thread, arguments[0], arguments[1], arguments[2], arguments[3])
}

/// `statx(folder, path, flags, mask, result)`.
pub fn statx(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [folder, path, flags, mask, result, _] = *arguments;
    let result = thread.process.memory.pointer(result)?;
    let thread = &*thread;
    look_at(thread, folder, path, flags, &mut |folder, path, flags| {
        thread.host(libc::SYS_statx, [folder, path, flags, mask, result, 0])
    })
}

/// `fstat(descriptor, result)`.
pub fn fstat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let status = host::file_status(arguments[0] as RawFd)?;
    thread
        .process
        .memory
        .write(arguments[1], &GuestStatus::from(&status))?;
    Ok(0)
}

/// `inotify_add_watch(descriptor, path, events)`.
pub fn inotify_add_watch(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [descriptor, path, events, ..] = *arguments;
    let keeps = events as u32 & libc::IN_DONT_FOLLOW != 0;
    let path = thread.process.memory.read_string(path)?;
    let located = locate(
        &thread.process.files,
        CURRENT_FOLDER,
        &path,
        if keeps { Last::Keep } else { Last::Follow },
    )?;
    thread.host(
        libc::SYS_inotify_add_watch,
        [descriptor, located.path.address(), events, 0, 0, 0],
    )
}

fn read_link_at(thread: &Thread, folder: u64, path: u64, buffer: u64, size: u64) -> SystemCallResult {
    let path = thread.process.memory.read_string(path)?;
    if size as i32 <= 0 {
        return fail(libc::EINVAL);
    }
    let target = match thread.process.files.namespace() {
        Some(namespace) if !path.is_empty() => read_link_in(thread, &namespace, folder, &path)?,
        _ if reserved::is_reserved(folder) => return fail(libc::EBADF),
        _ => {
            let target = host::read_link(folder as RawFd, &path)?;
            let names_program = target.first() == Some(&b'/')
                && path.ends_with(b"exe")
                && host_canonical(folder, &path).is_ok_and(|path| links::own_entry(&path) == Some(b"exe"));
            if names_program {
                thread.process.program.path.as_os_str().as_bytes().to_vec()
            } else {
                target
            }
        }
    };
    let shown = &target[..target.len().min(size as usize)];
    thread.process.memory.write_bytes(buffer, shown)?;
    Ok(shown.len() as u64)
}

fn read_link_in(thread: &Thread, namespace: &Namespace, folder: u64, path: &[u8]) -> Result<Vec<u8>, Errno> {
    let Found::Entry { folder, name, path } = find(namespace, folder, path, Last::Keep)? else {
        return Err(Errno(libc::EINVAL));
    };
    let parts: Vec<Vec<u8>> = components(&path).map(<[u8]>::to_vec).collect();
    match links::leads_past_names(&parts) {
        Some(Link::Program) => return Ok(thread.process.program.path.as_os_str().as_bytes().to_vec()),
        Some(Link::Denied) => return Err(Errno(libc::EACCES)),
        Some(Link::Descriptor(number)) if reserved::is_reserved(number as u64) => {
            return Err(Errno(libc::ENOENT));
        }
        Some(link @ (Link::Current | Link::Root)) => return link.path(namespace),
        Some(Link::Descriptor(_)) | None => {}
    }
    let target = host::read_link(folder.as_raw_fd(), &name)?;
    // What a descriptor shows is a path of the host.
    let of_descriptor = links::own_entry(&path).is_some_and(|name| name.starts_with(b"fd/"));
    let shown = of_descriptor.then(|| namespace.guest_path(&target)).flatten();
    Ok(shown.unwrap_or(target))
}

/// `readlink(path, buffer, size)`.
pub fn readlink(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [path, buffer, size, ..] = *arguments;
    read_link_at(thread, CURRENT_FOLDER, path, buffer, size)
}

/// `readlinkat(folder, path, buffer, size)`.
pub fn readlinkat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    read_link_at(thread, arguments[0], arguments[1], arguments[2], arguments[3])
}

/// `getcwd(buffer, size)`: the path in the program's tree.
pub fn getcwd(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [buffer, size, ..] = *arguments;
    let mut path = vec![0u8; libc::PATH_MAX as usize];
    let length = thread.host(
        libc::SYS_getcwd,
        [path.as_mut_ptr() as u64, path.len() as u64, 0, 0, 0, 0],
    )?;
    path.truncate((length as usize).saturating_sub(1));
    if let Some(namespace) = thread.process.files.namespace() {
        path = match namespace.guest_path(&path) {
            Some(path) => path,
            None => [b"(unreachable)", path.as_slice()].concat(),
        };
    }
    path.push(0);
    if (size as usize) < path.len() {
        return fail(libc::ERANGE);
    }
    thread.process.memory.write_bytes(buffer, &path)?;
    Ok(path.len() as u64)
}

/// `chroot(path)`: the folder becomes the root of this program's names. The host's own root stays, so that programs
/// that are executed find the emulator.
pub fn chroot(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let path = thread.process.memory.read_string(arguments[0])?;
    let located = locate(&thread.process.files, CURRENT_FOLDER, &path, Last::Follow)?;
    let how = How {
        flags: (libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as u64,
        ..How::default()
    };
    let folder = host::open(located.folder as RawFd, located.path.as_c_str().to_bytes(), &how)?;
    // The host judges whether it may be done, on its own root, which stays the same.
    thread.host(libc::SYS_chroot, [c"/".as_ptr() as u64, 0, 0, 0, 0, 0])?;
    let changed =
        Namespace::rooted(folder, thread.process.files.is_confined()).map_err(|error| Errno::of(&error))?;
    thread.process.files.change(changed);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn stat_has_the_layout_of_linux_ia64() {
        assert_eq!(size_of::<GuestStatus>(), 144);
        assert_eq!(offset_of!(GuestStatus, mode), 24);
        assert_eq!(offset_of!(GuestStatus, special_device), 40);
        assert_eq!(offset_of!(GuestStatus, size), 48);
        assert_eq!(offset_of!(GuestStatus, accessed), 56);
        assert_eq!(offset_of!(GuestStatus, block_size), 104);
        assert_eq!(offset_of!(GuestStatus, blocks), 112);
    }
}
