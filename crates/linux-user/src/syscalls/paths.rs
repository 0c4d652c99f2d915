//! Files by name: sysroot, the guest's own `/proc` entries, and `struct stat`.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytemuck::{Pod, Zeroable};

use super::{Arguments, SystemCallResult, Unfinished};
use crate::host::Errno;
use crate::proc_files;
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

/// The path to use instead of a guest's: below the sysroot where that has it, and the guest program itself for
/// its own `exe` link. None where the path stands.
pub fn substitute(thread: &Thread, address: u64) -> Result<Option<CString>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let path = thread.process.memory.read_string(address)?;
    Ok(substitute_path(thread, &path))
}

/// The same for a path that was read already.
pub fn substitute_path(thread: &Thread, path: &[u8]) -> Option<CString> {
    if path.first() != Some(&b'/') {
        return None;
    }
    if proc_files::is_own(path, b"exe") {
        return CString::new(thread.process.program.path.as_os_str().as_bytes()).ok();
    }
    let sysroot = thread.process.options.sysroot.as_ref()?;
    let below = sysroot.join(OsStr::from_bytes(path).to_str()?.trim_start_matches('/'));
    below.symlink_metadata().ok()?;
    CString::new(below.as_os_str().as_bytes()).ok()
}

fn open_at(thread: &mut Thread, directory: u64, path: u64, flags: u64, mode: u64) -> SystemCallResult {
    let name = thread.process.memory.read_string(path)?;
    if let Some(descriptor) = proc_files::open(thread, &name)? {
        return Ok(descriptor as u64);
    }
    let substitute = substitute_path(thread, &name);
    let name = substitute.map_or_else(|| CString::new(name).map_err(|_| Errno(libc::EINVAL)), Ok)?;
    thread.host_blocking(
        libc::SYS_openat,
        [directory, name.as_ptr() as u64, flags, mode, 0, 0],
    )
}

const CURRENT_DIRECTORY: u64 = libc::AT_FDCWD as u64;

/// `open(path, flags, mode)`.
pub fn open(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    open_at(
        thread,
        CURRENT_DIRECTORY,
        arguments[0],
        arguments[1],
        arguments[2],
    )
}

/// `openat(directory, path, flags, mode)`.
pub fn openat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    open_at(thread, arguments[0], arguments[1], arguments[2], arguments[3])
}

fn status_at(thread: &mut Thread, directory: u64, path: u64, result: u64, flags: u64) -> SystemCallResult {
    let substitute = substitute(thread, path)?;
    let name = match &substitute {
        Some(name) => name.as_ptr() as u64,
        None => thread.process.memory.pointer(path)?,
    };
    // SAFETY: an all-zero stat is valid.
    let mut status = unsafe { std::mem::zeroed::<libc::stat>() };
    thread.host(
        libc::SYS_newfstatat,
        [directory, name, &raw mut status as u64, flags, 0, 0],
    )?;
    thread.process.memory.write(result, &GuestStatus::from(&status))?;
    Ok(0)
}

/// `stat(path, result)`.
pub fn stat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    status_at(thread, CURRENT_DIRECTORY, arguments[0], arguments[1], 0)
}

/// `lstat(path, result)`.
pub fn lstat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    status_at(
        thread,
        CURRENT_DIRECTORY,
        arguments[0],
        arguments[1],
        libc::AT_SYMLINK_NOFOLLOW as u64,
    )
}

/// `newfstatat(directory, path, result, flags)`.
pub fn newfstatat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    status_at(thread, arguments[0], arguments[1], arguments[2], arguments[3])
}

/// `fstat(descriptor, result)`.
pub fn fstat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    // SAFETY: an all-zero stat is valid.
    let mut status = unsafe { std::mem::zeroed::<libc::stat>() };
    thread.host(
        libc::SYS_fstat,
        [arguments[0], &raw mut status as u64, 0, 0, 0, 0],
    )?;
    thread
        .process
        .memory
        .write(arguments[1], &GuestStatus::from(&status))?;
    Ok(0)
}

fn read_link_at(thread: &mut Thread, directory: u64, path: u64, buffer: u64, size: u64) -> SystemCallResult {
    let name = thread.process.memory.read_string(path)?;
    if size as i32 <= 0 {
        return Err(Unfinished::Error(Errno(libc::EINVAL)));
    }
    if proc_files::is_own(&name, b"exe") {
        let process = thread.process.clone();
        let target = process.program.path.as_os_str().as_bytes();
        let shown = &target[..target.len().min(size as usize)];
        process.memory.write_bytes(buffer, shown)?;
        return Ok(shown.len() as u64);
    }
    let substitute = substitute_path(thread, &name);
    let name = substitute.map_or_else(|| CString::new(name).map_err(|_| Errno(libc::EINVAL)), Ok)?;
    let buffer = thread.process.memory.pointer(buffer)?;
    thread.host(
        libc::SYS_readlinkat,
        [directory, name.as_ptr() as u64, buffer, size, 0, 0],
    )
}

/// `readlink(path, buffer, size)`.
pub fn readlink(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    read_link_at(
        thread,
        CURRENT_DIRECTORY,
        arguments[0],
        arguments[1],
        arguments[2],
    )
}

/// `readlinkat(directory, path, buffer, size)`.
pub fn readlinkat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    read_link_at(thread, arguments[0], arguments[1], arguments[2], arguments[3])
}

/// The absolute form of a path, as `/proc/self/exe` shows it.
pub fn absolute(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.into())
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
