//! Opens files as `openat2` does, on hosts that lack it too.
//!
//! Linux has `openat2` since 5.6; a sandbox or a tool that runs the emulator may not know it. There a path is resolved
//! here, a component at a time: each is opened below the descriptor of the folder before it and never followed by the
//! kernel, so that a name which changes meanwhile leads no further than `openat2` would let it.

use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use super::{Errno, call, file_status, is_of_proc, read_link};

/// What [`open`] is told: the `struct open_how` of `openat2`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct How {
    /// `O_*`.
    pub flags: u64,
    /// The mode of a file that is made.
    pub mode: u64,
    /// `RESOLVE_*`.
    pub resolve: u64,
}

/// The size of `How`, as the kernel asks for it.
pub const HOW_SIZE: u64 = size_of::<How>() as u64;

/// The most symbolic links of one path (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
/// The links of `/proc` that are plain ones; every other leads past all names.
const PLAIN_LINKS_OF_PROC: [&[u8]; 4] = [b"self", b"thread-self", b"mounts", b"net"];

/// Whether the host has `openat2`.
pub fn has_openat2() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        // SAFETY: a structure of no size is refused before anything is read.
        let answer = unsafe { call(libc::SYS_openat2, [libc::AT_FDCWD as u64, 0, 0, 0, 0, 0]) };
        answer == Err(Errno(libc::EINVAL))
    })
}

/// Opens a file for the emulator itself.
pub fn open(folder: RawFd, path: &[u8], how: &How) -> Result<OwnedFd, Errno> {
    let opening = Opening::new(folder, path, how)?;
    // SAFETY: the kernel reads the string and the structure, which live.
    let descriptor = unsafe { call(opening.number(), opening.arguments()) }?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

/// A system call that opens a file.
#[derive(Debug)]
pub enum Opening<'a> {
    /// By `openat2`.
    Whole {
        /// The folder where a relative path starts.
        folder: RawFd,
        /// The path.
        path: CString,
        /// How.
        how: &'a How,
    },
    /// By `openat`: the last step of a path.
    Step(LastStep),
}

/// The last step of a path: a name that is no link, or whose link is to be followed freely.
#[derive(Debug)]
pub struct LastStep {
    /// The folder; none where the path starts at the caller's.
    parent: Option<OwnedFd>,
    folder: RawFd,
    name: CString,
    flags: i32,
    mode: u64,
}

impl<'a> Opening<'a> {
    /// What opens a path below a folder; the descriptors that it needs live as long as it.
    ///
    /// # Errors
    /// What `openat2` would say of the path up to its last component.
    pub fn new(folder: RawFd, path: &[u8], how: &'a How) -> Result<Opening<'a>, Errno> {
        if has_openat2() {
            return Ok(Opening::Whole {
                folder,
                path: CString::new(path).map_err(|_| Errno(libc::EINVAL))?,
                how,
            });
        }
        last_step(folder, path, how).map(Opening::Step)
    }

    /// The number of the system call.
    pub fn number(&self) -> i64 {
        match self {
            Opening::Whole { .. } => libc::SYS_openat2,
            Opening::Step(_) => libc::SYS_openat,
        }
    }

    /// The arguments of the system call, which point into this.
    pub fn arguments(&self) -> [u64; 6] {
        match self {
            Opening::Whole { folder, path, how } => {
                let how = std::ptr::from_ref(*how) as u64;
                [*folder as u64, path.as_ptr() as u64, how, HOW_SIZE, 0, 0]
            }
            Opening::Step(step) => step.arguments(),
        }
    }
}

impl LastStep {
    fn arguments(&self) -> [u64; 6] {
        let folder = self.parent.as_ref().map_or(self.folder, AsRawFd::as_raw_fd);
        let name = self.name.as_ptr() as u64;
        [folder as u64, name, self.flags as u64, self.mode, 0, 0]
    }
}

/// Resolves a path up to its last component.
fn last_step(folder: RawFd, path: &[u8], how: &How) -> Result<LastStep, Errno> {
    let step = |parent, name: &[u8], flags| {
        Ok(LastStep {
            parent,
            folder,
            name: CString::new(name).map_err(|_| Errno(libc::EINVAL))?,
            flags,
            mode: how.mode,
        })
    };
    let flags = how.flags as i32;
    if how.resolve == 0 {
        return step(None, path, flags);
    }
    if path.is_empty() {
        return Err(Errno(libc::ENOENT));
    }
    let mut walk = Walk::new(folder, path, how.resolve)?;
    let ends_in_folder = matches!(path.rsplit(|byte| *byte == b'/').next(), Some(b"" | b"."));
    let keeps = flags & libc::O_NOFOLLOW != 0
        || flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL;
    loop {
        let Some(component) = walk.rest.pop_front() else {
            return step(walk.folders.pop(), b".", flags);
        };
        let is_last = walk.rest.is_empty();
        if component == b".." {
            walk.leave()?;
            continue;
        }
        if is_last && ends_in_folder && flags & libc::O_CREAT != 0 {
            return Err(Errno(libc::EISDIR));
        }
        let object = match open_path(walk.folder(), &component, 0) {
            Err(Errno(libc::ENOENT)) if is_last => None,
            other => Some(other?),
        };
        let is_link = match &object {
            Some(object) => file_status(object.as_raw_fd())?.st_mode & libc::S_IFMT == libc::S_IFLNK,
            None => false,
        };
        match object {
            Some(link) if is_link && !(is_last && keeps && !ends_in_folder) => {
                walk.follow(&component, &link)?
            }
            // A name that has become a link since must not be followed.
            _ if is_last && !ends_in_folder => {
                return step(walk.folders.pop(), &component, flags | libc::O_NOFOLLOW);
            }
            Some(_) => walk.enter(&component)?,
            None => return Err(Errno(libc::ENOENT)),
        }
    }
}

/// A path that is being resolved.
struct Walk {
    resolve: u64,
    /// The folders from the start to here; never empty.
    folders: Vec<OwnedFd>,
    rest: VecDeque<Vec<u8>>,
    links: usize,
}

impl Walk {
    fn new(folder: RawFd, path: &[u8], resolve: u64) -> Result<Walk, Errno> {
        let is_absolute = path.first() == Some(&b'/');
        if is_absolute && resolve & libc::RESOLVE_BENEATH != 0 {
            return Err(Errno(libc::EXDEV));
        }
        let start = match is_absolute && resolve & libc::RESOLVE_IN_ROOT == 0 {
            true => open_path(libc::AT_FDCWD, b"/", libc::O_DIRECTORY)?,
            false => open_path(folder, b".", libc::O_DIRECTORY)?,
        };
        Ok(Walk {
            resolve,
            folders: vec![start],
            rest: components(path),
            links: 0,
        })
    }

    fn is_bounded(&self) -> bool {
        self.resolve & (libc::RESOLVE_BENEATH | libc::RESOLVE_IN_ROOT) != 0
    }

    /// The folder that the walk has reached.
    fn folder(&self) -> RawFd {
        self.folders
            .last()
            .expect("a walk starts in a folder")
            .as_raw_fd()
    }

    fn enter(&mut self, name: &[u8]) -> Result<(), Errno> {
        let folder = open_path(self.folder(), name, libc::O_DIRECTORY)?;
        self.folders.push(folder);
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Errno> {
        if !self.is_bounded() {
            let above = open_path(self.folder(), b"..", libc::O_DIRECTORY)?;
            self.folders = vec![above];
        } else if self.folders.len() > 1 {
            self.folders.pop();
        } else if self.resolve & libc::RESOLVE_BENEATH != 0 {
            return Err(Errno(libc::EXDEV));
        }
        Ok(())
    }

    fn follow(&mut self, name: &[u8], link: &OwnedFd) -> Result<(), Errno> {
        self.links += 1;
        let is_magic = is_of_proc(link.as_raw_fd()) && !PLAIN_LINKS_OF_PROC.contains(&name);
        if self.links > MOST_LINKS || is_magic || self.resolve & libc::RESOLVE_NO_SYMLINKS != 0 {
            return Err(Errno(libc::ELOOP));
        }
        let target = read_link(link.as_raw_fd(), b"")?;
        if target.first() == Some(&b'/') {
            if self.resolve & libc::RESOLVE_BENEATH != 0 {
                return Err(Errno(libc::EXDEV));
            } else if self.resolve & libc::RESOLVE_IN_ROOT != 0 {
                self.folders.truncate(1);
            } else {
                self.folders = vec![open_path(libc::AT_FDCWD, b"/", libc::O_DIRECTORY)?];
            }
        }
        for component in components(&target).into_iter().rev() {
            self.rest.push_front(component);
        }
        Ok(())
    }
}

fn components(path: &[u8]) -> VecDeque<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/');
    let named = parts.filter(|part| !part.is_empty() && *part != b".");
    named.map(<[u8]>::to_vec).collect()
}

/// Opens one name below a folder, as an `O_PATH` descriptor that follows no link.
fn open_path(folder: RawFd, name: &[u8], flags: i32) -> Result<OwnedFd, Errno> {
    let name = CString::new(name).map_err(|_| Errno(libc::EINVAL))?;
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC | flags;
    let arguments = [folder as u64, name.as_ptr() as u64, flags as u64, 0, 0, 0];
    // SAFETY: the kernel reads the string, which lives.
    let descriptor = unsafe { call(libc::SYS_openat, arguments) }?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    /// A folder with folders, a file and links of every kind, which goes with it.
    struct Tree(std::path::PathBuf);

    impl Tree {
        fn new(name: &str) -> Tree {
            let root = std::env::temp_dir().join(format!("sidestep-open-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&root);
            std::fs::create_dir_all(root.join("a/b")).unwrap();
            std::fs::write(root.join("a/file"), "text").unwrap();
            for (name, target) in [
                ("down", "a/b"),
                ("up", ".."),
                ("twice", "down"),
                ("round", "round"),
                ("nowhere", "a/missing"),
                ("slash", "a/"),
                ("whole", "/a"),
                ("host", "/proc/self/fd"),
                ("magic", "/proc/self/cwd"),
                ("plain", "/proc/mounts"),
                ("a/over", "../a/file"),
                ("a/b/above", "../../down"),
            ] {
                symlink(target, root.join(name)).unwrap();
            }
            Tree(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn opened(number: i64, arguments: [u64; 6]) -> Result<(u64, u64), Errno> {
        // SAFETY: the arguments point into what the caller holds.
        let descriptor = unsafe { call(number, arguments) }?;
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) };
        let status = file_status(file.as_raw_fd())?;
        Ok((status.st_dev, status.st_ino))
    }

    fn same_both_ways(tree: &Tree, path: &str, how: &How) {
        let folder = open(
            libc::AT_FDCWD,
            tree.0.as_os_str().as_encoded_bytes(),
            &How::default(),
        )
        .unwrap();
        let whole = Opening::Whole {
            folder: folder.as_raw_fd(),
            path: CString::new(path).unwrap(),
            how,
        };
        let expected = opened(whole.number(), whole.arguments());
        let stepwise = last_step(folder.as_raw_fd(), path.as_bytes(), how).map(Opening::Step);
        let stepwise = stepwise.and_then(|step| opened(step.number(), step.arguments()));
        assert_eq!(stepwise, expected, "{path} with {how:x?}");
    }

    fn paths() -> impl Strategy<Value = String> {
        let names = prop::sample::select(vec![
            "a", "b", "file", "down", "up", "twice", "round", "nowhere", "slash", "whole", "host", "magic",
            "plain", "over", "above", "missing", ".", "..", "",
        ]);
        prop::collection::vec(names, 1..6).prop_map(|names| names.join("/"))
    }

    proptest! {
        #[test]
        fn a_walk_leads_where_openat2_leads(
            path in paths(),
            resolve in prop::sample::select(vec![
                libc::RESOLVE_NO_MAGICLINKS,
                libc::RESOLVE_NO_SYMLINKS,
                libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS,
                libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS,
                libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS,
            ]),
            flags in prop::sample::select(vec![
                libc::O_PATH,
                libc::O_PATH | libc::O_NOFOLLOW,
                libc::O_PATH | libc::O_DIRECTORY,
                libc::O_RDONLY,
                libc::O_RDONLY | libc::O_NOFOLLOW,
                libc::O_WRONLY,
            ]),
        ) {
            if has_openat2() {
                let tree = Tree::new("walk");
                let how = How { flags: (flags | libc::O_CLOEXEC) as u64, mode: 0, resolve };
                same_both_ways(&tree, &path, &how);
            }
        }
    }

    #[test]
    fn a_walk_makes_files_where_openat2_does() {
        let make = (libc::O_CREAT | libc::O_WRONLY) as u64;
        for path in [
            "new", "a/b/new", "down/new", "up/new", "nowhere", "a/file", "a/over", "a", "a/", "new/", "round",
        ] {
            for exclusive in [0, libc::O_EXCL as u64] {
                let made = [false, true].map(|stepwise| {
                    let tree = Tree::new("make");
                    let folder = open(
                        libc::AT_FDCWD,
                        tree.0.as_os_str().as_encoded_bytes(),
                        &How::default(),
                    )
                    .unwrap();
                    let how = How {
                        flags: make | exclusive,
                        mode: 0o600,
                        resolve: libc::RESOLVE_BENEATH,
                    };
                    let opening = match stepwise || !has_openat2() {
                        true => last_step(folder.as_raw_fd(), path.as_bytes(), &how).map(Opening::Step),
                        false => Opening::new(folder.as_raw_fd(), path.as_bytes(), &how),
                    };
                    let opened = opening.and_then(|opening| opened(opening.number(), opening.arguments()));
                    let there = ["new", "a/b/new", "a/missing"].map(|name| tree.0.join(name).is_file());
                    (opened.map(|_| ()), there)
                });
                assert_eq!(made[0], made[1], "{path}, exclusive {exclusive:#o}");
            }
        }
    }
}
