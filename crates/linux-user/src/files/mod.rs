//! Files by name: what a guest may name, and what is behind the names.
//!
//! - [`locate`]: what the host is told in the place of a path.
//! - [`namespace`]: the tree of a program that was given a root folder; every path is resolved in it.
//! - [`reserved`]: descriptors that are the emulator's own, which the guest cannot close.
//! - [`links`]: links of `/proc` that lead past all names.

pub mod links;
pub mod locate;
pub mod namespace;
pub mod reserved;

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use crate::host::{self, Errno};
use namespace::Namespace;
use reserved::Reserved;

/// What a process knows about files.
#[derive(Debug)]
pub struct Files {
    /// Its tree, if that is not the host's.
    namespace: RwLock<Option<Arc<Namespace>>>,
    /// The file that it runs.
    pub program: Arc<Reserved>,
    /// The emulator's own executable.
    pub emulator: Arc<Reserved>,
    /// Whether another process has the same descriptors (`CLONE_FILES`).
    are_shared: AtomicBool,
}

impl Files {
    /// Files of a program that runs `program`.
    pub fn new(namespace: Option<Namespace>, program: Reserved, emulator: Reserved) -> Files {
        Files {
            namespace: RwLock::new(namespace.map(Arc::new)),
            program: Arc::new(program),
            emulator: Arc::new(emulator),
            are_shared: AtomicBool::new(false),
        }
    }

    /// The tree, if it is not the host's.
    pub fn namespace(&self) -> Option<Arc<Namespace>> {
        self.namespace
            .read()
            .expect("no thread panics while it changes the root")
            .clone()
    }

    /// The same for a child that may change its root by itself.
    pub fn duplicate(&self) -> Files {
        Files {
            namespace: RwLock::new(self.namespace()),
            program: self.program.clone(),
            emulator: self.emulator.clone(),
            are_shared: AtomicBool::new(self.are_shared.load(Ordering::Relaxed)),
        }
    }

    /// Notes that another process has the same descriptors from now on.
    pub fn share(&self) {
        self.are_shared.store(true, Ordering::Relaxed);
    }

    /// Gives this process descriptors of its own, as `execve` is about to do anyway.
    pub fn part(&self) {
        if self.are_shared.load(Ordering::Relaxed) {
            // SAFETY: the descriptors stay the same.
            unsafe { libc::unshare(libc::CLONE_FILES) };
        }
    }

    /// Whether names of the host beside the tree's own are out of reach.
    pub fn is_confined(&self) -> bool {
        self.namespace().is_some_and(|namespace| !namespace.holds_host())
    }

    /// Changes the tree, as `chroot` does.
    pub fn change(&self, namespace: Namespace) {
        *self
            .namespace
            .write()
            .expect("no thread panics while it changes the root") = Some(Arc::new(namespace));
    }
}

/// A path for the host in the place of a guest's. The descriptor that it leads through lives as long.
#[derive(Debug)]
pub struct HostPath {
    path: CString,
    through: Option<OwnedFd>,
}

impl HostPath {
    /// A path that stands by itself.
    pub fn plain(path: Vec<u8>) -> Result<HostPath, Errno> {
        Ok(HostPath {
            path: c_string(path)?,
            through: None,
        })
    }

    /// What a descriptor shows.
    pub fn object(object: OwnedFd) -> HostPath {
        let path = c_string(link_of(object.as_raw_fd()).into_bytes()).expect("no zero in a number");
        HostPath {
            path,
            through: Some(object),
        }
    }

    /// An entry of the folder that a descriptor shows.
    pub fn entry(folder: OwnedFd, name: &[u8]) -> Result<HostPath, Errno> {
        let path = [link_of(folder.as_raw_fd()).as_bytes(), b"/", name].concat();
        Ok(HostPath {
            path: c_string(path)?,
            through: Some(folder),
        })
    }

    /// The address of the string, for the kernel.
    pub fn address(&self) -> u64 {
        self.path.as_ptr() as u64
    }

    /// The path of the host that holds when this one is gone, if there is one: an entry of the folder by its own name.
    pub fn lasting(&self) -> Option<Vec<u8>> {
        let through = self.through.as_ref()?;
        let rest = self
            .path
            .as_bytes()
            .strip_prefix(link_of(through.as_raw_fd()).as_bytes())?;
        Some([&host_path_of(through.as_raw_fd()).ok()?, rest].concat())
    }

    /// The string.
    pub fn as_c_str(&self) -> &std::ffi::CStr {
        &self.path
    }
}

/// The name under which the host shows one of this process's descriptors.
pub fn link_of(descriptor: RawFd) -> String {
    format!("/proc/self/fd/{descriptor}")
}

/// A string for the kernel; `EINVAL` for one with a zero in it.
pub fn c_string(bytes: Vec<u8>) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno(libc::EINVAL))
}

/// The host's path of what a descriptor shows.
pub fn host_path_of(descriptor: RawFd) -> Result<Vec<u8>, Errno> {
    host::read_link(libc::AT_FDCWD, link_of(descriptor).as_bytes())
}
