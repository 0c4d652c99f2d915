//! Files as the debugged program sees them.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use crate::files::host_path_of;
use crate::files::links::own_entry;
use crate::files::locate::{CURRENT_FOLDER, host_canonical, locate};
use crate::files::namespace::Last;
use crate::files::reserved::Reserved;
use crate::host::{self, Errno, How};
use crate::process::Process;
use crate::thread::syscalls::proc::{self, Viewer};

/// Opens a file to read, by a descriptor that the program does not see.
///
/// # Errors
/// The host's; `EACCES` for what the program may not see either.
pub fn open(process: &Process, path: &[u8]) -> Result<Reserved, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    let how = How {
        flags: flags as u64,
        ..How::default()
    };
    let located = locate(&process.files, CURRENT_FOLDER, path, Last::Follow)?;
    let mut file = host::open(located.folder as RawFd, located.path.as_c_str().to_bytes(), &how)?;
    if host::is_of_proc(file.as_raw_fd()) {
        let shown = proc::open(&Viewer::of(process), &host_path_of(file.as_raw_fd())?, flags)?;
        if let Some(descriptor) = shown {
            // SAFETY: the descriptor is new and nobody else's.
            file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        }
    }
    Reserved::new(&file)
}

/// Where a symbolic link leads.
///
/// # Errors
/// The host's.
pub fn read_link(process: &Process, path: &[u8]) -> Result<Vec<u8>, Errno> {
    if host_canonical(CURRENT_FOLDER, path).is_ok_and(|path| own_entry(&path) == Some(b"exe")) {
        return Ok(process.program.path.as_os_str().as_bytes().to_vec());
    }
    let located = locate(&process.files, CURRENT_FOLDER, path, Last::Keep)?;
    let target = host::read_link(located.folder as RawFd, located.path.as_c_str().to_bytes())?;
    let tree = process.files.namespace();
    let is_of_proc = path.starts_with(b"/proc/");
    let inside = tree
        .filter(|_| is_of_proc)
        .and_then(|tree| tree.guest_path(&target));
    Ok(inside.unwrap_or(target))
}
