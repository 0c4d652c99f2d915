//! From a path as a program gives it to what the host is told.
//!
//! In a tree of its own a path is resolved there, and the host is told of a descriptor. In the host's tree it stands as
//! it is, but for the program's own link in `/proc`.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::namespace::{Found, Last, Namespace, components};
use super::{Files, HostPath, host_path_of, link_of, links, reserved};
use crate::host::{self, Errno, How};

/// `AT_FDCWD` as an argument.
pub const CURRENT_FOLDER: u64 = libc::AT_FDCWD as u64;

/// A path as the host is to be told it.
pub struct Located {
    /// The folder at which it starts.
    pub folder: u64,
    /// The path.
    pub path: HostPath,
    /// What it names, if that is known without links and is there.
    pub object: bool,
}

impl Located {
    fn plain(folder: u64, path: &[u8]) -> Result<Located, Errno> {
        Ok(Located {
            folder,
            path: HostPath::plain(path.to_vec())?,
            object: false,
        })
    }

    fn object(path: HostPath) -> Located {
        Located {
            folder: CURRENT_FOLDER,
            path,
            object: true,
        }
    }
}

/// Finds what the host is to be told in the place of a path that starts at a folder's descriptor.
pub fn locate(files: &Files, folder: u64, path: &[u8], last: Last) -> Result<Located, Errno> {
    if path.first() != Some(&b'/') && reserved::is_reserved(folder) {
        return Err(Errno(libc::EBADF));
    }
    let Some(namespace) = files.namespace() else {
        let names_program = last == Last::Follow
            && path.rsplit(|byte| *byte == b'/').next() == Some(b"exe")
            && host_canonical(folder, path).is_ok_and(|path| links::own_entry(&path) == Some(b"exe"));
        return if names_program {
            Ok(Located::object(HostPath::plain(program_link(files))?))
        } else {
            Located::plain(folder, path)
        };
    };
    if path.is_empty() {
        return Located::plain(folder, path);
    }
    match find(&namespace, folder, path, last)? {
        Found::Object { path, .. } if links::own_entry(&path) == Some(b"exe") => {
            Ok(Located::object(HostPath::plain(program_link(files))?))
        }
        // The end of a path that must not be followed: a folder can be named so that there is nothing to follow.
        Found::Object { object, .. } if last == Last::Keep && is_folder(&object) => Ok(Located {
            object: false,
            ..Located::object(HostPath::entry(object, b".")?)
        }),
        Found::Object { object, .. } => Ok(Located::object(HostPath::object(object))),
        Found::Entry { folder, name, .. } => Ok(Located {
            folder: CURRENT_FOLDER,
            path: HostPath::entry(folder, &name)?,
            object: false,
        }),
    }
}

fn is_folder(object: &OwnedFd) -> bool {
    host::file_status(object.as_raw_fd()).is_ok_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFDIR)
}

/// The host's name of the program that runs.
pub fn program_link(files: &Files) -> Vec<u8> {
    link_of(files.program.as_raw_fd()).into_bytes()
}

/// Resolves a path in a program's own tree.
pub fn find(namespace: &Namespace, folder: u64, path: &[u8], last: Last) -> Result<Found, Errno> {
    if path.first() == Some(&b'/') {
        return namespace.resolve(b"/", path, last);
    }
    match guest_path_of(namespace, folder)? {
        Some(base) => namespace.resolve(&base, path, last),
        None => find_beneath(folder, path, last),
    }
}

/// The path in the tree of a folder; none for one that was given as a descriptor alone, or has no name any more.
fn guest_path_of(namespace: &Namespace, folder: u64) -> Result<Option<Vec<u8>>, Errno> {
    let host = if folder as i32 == libc::AT_FDCWD {
        host::read_link(libc::AT_FDCWD, b"/proc/self/cwd")?
    } else {
        host_path_of(folder as RawFd).map_err(|_| Errno(libc::EBADF))?
    };
    Ok(namespace.guest_path(&host))
}

/// Resolves a path below a folder that the tree does not hold, and never beyond it.
fn find_beneath(folder: u64, path: &[u8], last: Last) -> Result<Found, Errno> {
    let open = |path: &[u8], flags: i32| {
        let how = How {
            flags: (libc::O_PATH | libc::O_CLOEXEC | flags) as u64,
            mode: 0,
            resolve: libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS,
        };
        let opened = host::open(folder as RawFd, path, &how);
        opened.map_err(|error| {
            if error.0 == libc::EXDEV {
                Errno(libc::ENOENT)
            } else {
                error
            }
        })
    };
    if last == Last::Follow {
        match open(path, 0) {
            Ok(object) => {
                return Ok(Found::Object {
                    object,
                    path: path.to_vec(),
                });
            }
            Err(Errno(libc::ENOENT)) => {}
            Err(error) => return Err(error),
        }
    }
    let trimmed = path.trim_ascii_end();
    let split = trimmed
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |slash| slash + 1);
    let (before, name) = path.split_at(split);
    if matches!(name, b"" | b"." | b"..") {
        return open(path, 0).map(|object| Found::Object {
            object,
            path: path.to_vec(),
        });
    }
    let folder = open(if before.is_empty() { b"." } else { before }, libc::O_DIRECTORY)?;
    Ok(Found::Entry {
        folder,
        name: name.to_vec(),
        path: path.to_vec(),
    })
}

/// The path of the host that a path leads to, without links but for a last one of `/proc` that leads past all names.
pub fn host_canonical(folder: u64, path: &[u8]) -> Result<Vec<u8>, Errno> {
    const MOST_LINKS: usize = 40;
    let (mut folder, mut path) = (folder as RawFd, path.to_vec());
    for _ in 0..MOST_LINKS {
        let how = How {
            flags: (libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC) as u64,
            ..How::default()
        };
        let object = host::open(folder, &path, &how)?;
        let canonical = host_path_of(object.as_raw_fd())?;
        let is_link = host::file_status(object.as_raw_fd())?.st_mode & libc::S_IFMT == libc::S_IFLNK;
        let parts: Vec<Vec<u8>> = components(&canonical).map(<[u8]>::to_vec).collect();
        if !is_link || links::leads_past_names(&parts).is_some() {
            return Ok(canonical);
        }
        let target = host::read_link(object.as_raw_fd(), b"")?;
        path = match target.first() {
            Some(b'/') => target,
            _ => {
                let end = canonical.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                [&canonical[..=end], &target].concat()
            }
        };
        folder = libc::AT_FDCWD;
    }
    Err(Errno(libc::ELOOP))
}
