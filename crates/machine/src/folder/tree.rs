//! The files of a folder, by paths beneath it that go through no symbolic link.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, StatFs, Timestamps, Uid,
};
use rustix::io::Errno;

use super::protocol::Identity;

/// A folder of the host.
pub struct Tree {
    root: OwnedFd,
    read_only: bool,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What tells the file from others.
    pub identity: Identity,
    /// The kind of file, as `readdir` has it.
    pub kind: u8,
    /// Its name.
    pub name: Vec<u8>,
}

/// What of a file is to be changed.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Its permissions.
    pub mode: Option<u32>,
    /// Who owns it.
    pub user: Option<u32>,
    /// Which group does.
    pub group: Option<u32>,
    /// Its size.
    pub size: Option<u64>,
    /// When it was read and written, if that is set.
    pub times: Option<Timestamps>,
}

/// Permissions that a guest gives: no file runs as its owner on the host because a guest says so.
const MODE: u32 = 0o1777;
/// Flags of an opened file that reach the host, whose numbers are those of the protocol.
const FLAGS: OFlags = OFlags::RDWR
    .union(OFlags::WRONLY)
    .union(OFlags::TRUNC)
    .union(OFlags::APPEND)
    .union(OFlags::DSYNC)
    .union(OFlags::SYNC);

impl Tree {
    /// The folder at a path.
    ///
    /// # Errors
    /// If it is none, or the host cannot keep paths beneath it (Linux before 5.6).
    pub fn open(path: &Path, read_only: bool) -> io::Result<Tree> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        let tree = Tree { root, read_only };
        tree.object(Path::new(""))?;
        Ok(tree)
    }

    /// A path one step further: beneath the folder, whatever the name is.
    ///
    /// # Errors
    /// If no file can have the name.
    pub fn step(path: &Path, name: &[u8]) -> Result<PathBuf, Errno> {
        match name {
            b"." => Ok(path.to_owned()),
            // The folder is its own parent.
            b".." => Ok(path.parent().unwrap_or(path).to_owned()),
            _ => Ok(path.join(named(name)?)),
        }
    }

    fn at(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        rustix::fs::openat2(&self.root, path, flags | OFlags::CLOEXEC, mode, resolve)
    }

    /// A file, or a symbolic link, not opened.
    fn object(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.at(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())
    }

    /// The folder that a path's last name is in, and the name.
    fn parent<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), Errno> {
        let name = path.file_name().unwrap_or(OsStr::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let parent = self.at(path.parent().unwrap_or(path), flags, Mode::empty())?;
        Ok((parent, name))
    }

    fn must_take(&self) -> Result<(), Errno> {
        if self.read_only { Err(Errno::ROFS) } else { Ok(()) }
    }

    /// What the host knows of a file.
    ///
    /// # Errors
    /// The host's, as for all that follow.
    pub fn attributes(&self, path: &Path) -> Result<Stat, Errno> {
        rustix::fs::fstat(self.object(path)?)
    }

    /// What the host knows of the file system.
    pub fn statistics(&self, path: &Path) -> Result<StatFs, Errno> {
        rustix::fs::fstatfs(self.object(path)?)
    }

    /// Opens a file. What is neither a file nor a folder, such as a pipe, has a meaning for the guest alone.
    pub fn open_file(&self, path: &Path, flags: u32) -> Result<File, Errno> {
        let flags = OFlags::from_bits_truncate(flags) & FLAGS;
        if flags.intersects(OFlags::RDWR | OFlags::WRONLY | OFlags::TRUNC) {
            self.must_take()?;
        }
        let is_file = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file(self.attributes(path)?) {
            return Err(Errno::PERM);
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.at(path, flags, Mode::empty())?;
        if !is_file(rustix::fs::fstat(&file)?) {
            return Err(Errno::PERM);
        }
        Ok(file.into())
    }

    /// Makes a file and opens it.
    pub fn create(&self, path: &Path, flags: u32, mode: u32) -> Result<File, Errno> {
        self.must_take()?;
        let flags = OFlags::from_bits_truncate(flags) & FLAGS | OFlags::CREATE | OFlags::EXCL;
        let file = self.at(path, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::fchmod(&file, permissions(mode))?;
        Ok(file.into())
    }

    /// The entries of a folder in the order of their names, itself and its parent first.
    pub fn entries(&self, path: &Path) -> Result<Vec<Entry>, Errno> {
        let folder = self.at(path, OFlags::DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder)? {
            names.push(entry?.file_name().to_bytes().to_owned());
        }
        names.retain(|name| name != b"." && name != b"..");
        names.sort_unstable();
        let dots = [&b"."[..], b".."].map(<[u8]>::to_owned);
        let mut entries = Vec::new();
        for name in dots.into_iter().chain(names) {
            // One that has gone in the meantime is none.
            if let Ok(stat) = self.attributes(&Tree::step(path, &name)?) {
                let (identity, kind) = (identity(&stat), (stat.st_mode >> 12) as u8);
                entries.push(Entry { identity, kind, name });
            }
        }
        Ok(entries)
    }

    /// Changes what is known of a file.
    pub fn change(&self, path: &Path, change: &Change) -> Result<(), Errno> {
        self.must_take()?;
        if let Some(size) = change.size {
            let file = self.open_file(path, OFlags::WRONLY.bits())?;
            rustix::fs::ftruncate(&file, size)?;
        }
        let (parent, name) = self.parent(path)?;
        // As in chown(2), -1 is nobody and changes nothing.
        let somebody = |number: &u32| *number != u32::MAX;
        let user = change.user.filter(somebody).map(Uid::from_raw);
        let group = change.group.filter(somebody).map(Gid::from_raw);
        if user.is_some() || group.is_some() {
            rustix::fs::chownat(&parent, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if let Some(mode) = change.mode {
            let object = self.object(path)?;
            if FileType::from_raw_mode(rustix::fs::fstat(&object)?.st_mode) == FileType::Symlink {
                return Err(Errno::OPNOTSUPP);
            }
            // The object itself, whatever has its name by now.
            let link = format!("/proc/self/fd/{}", object.as_raw_fd());
            rustix::fs::chmodat(CWD, link, permissions(mode), AtFlags::empty())?;
        }
        if let Some(times) = &change.times {
            rustix::fs::utimensat(&parent, name, times, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    /// Makes a folder.
    pub fn make_folder(&self, path: &Path, mode: u32) -> Result<(), Errno> {
        self.must_take()?;
        let (parent, name) = self.parent(path)?;
        rustix::fs::mkdirat(&parent, name, Mode::RWXU)?;
        let change = Change {
            mode: Some(mode),
            ..Change::default()
        };
        self.change(path, &change)
    }

    /// Makes a symbolic link; what it leads to is for the guest to follow.
    pub fn make_link(&self, path: &Path, target: &[u8]) -> Result<(), Errno> {
        self.must_take()?;
        let (parent, name) = self.parent(path)?;
        rustix::fs::symlinkat(OsStr::from_bytes(target), &parent, name)
    }

    /// Where a symbolic link leads.
    pub fn target(&self, path: &Path) -> Result<Vec<u8>, Errno> {
        let target = rustix::fs::readlinkat(self.object(path)?, "", Vec::new())?;
        Ok(target.into_bytes())
    }

    /// Gives a file another name.
    pub fn link(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        self.must_take()?;
        let ((old, old_name), (new, new_name)) = (self.parent(from)?, self.parent(to)?);
        rustix::fs::linkat(&old, old_name, &new, new_name, AtFlags::empty())
    }

    /// Renames a file or folder.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        self.must_take()?;
        let ((old, old_name), (new, new_name)) = (self.parent(from)?, self.parent(to)?);
        rustix::fs::renameat(&old, old_name, &new, new_name)
    }

    /// Removes a name, of a folder or of anything else.
    pub fn unlink(&self, path: &Path, is_folder: bool) -> Result<(), Errno> {
        self.must_take()?;
        let (parent, name) = self.parent(path)?;
        let flags = match is_folder {
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        rustix::fs::unlinkat(&parent, name, flags)
    }

    /// Has the host put a folder on its disk.
    pub fn synchronize(&self, path: &Path) -> Result<(), Errno> {
        rustix::fs::fsync(self.at(path, OFlags::DIRECTORY, Mode::empty())?)
    }
}

fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & MODE)
}

/// A name that one entry of a folder can have.
fn named(name: &[u8]) -> Result<&OsStr, Errno> {
    if name.is_empty() || matches!(name, b"." | b"..") || name.iter().any(|byte| matches!(byte, 0 | b'/')) {
        return Err(Errno::INVAL);
    }
    Ok(OsStr::from_bytes(name))
}

/// The path of an entry of a folder that is made, renamed or removed.
///
/// # Errors
/// If no entry can have the name.
pub fn entry(folder: &Path, name: &[u8]) -> Result<PathBuf, Errno> {
    named(name).map(|name| folder.join(name))
}

/// What tells a file from others.
pub fn identity(stat: &Stat) -> Identity {
    const FOLDER: u8 = 0x80;
    const LINK: u8 = 2;
    Identity {
        kind: match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => FOLDER,
            FileType::Symlink => LINK,
            _ => 0,
        },
        version: (stat.st_mtime as u32) ^ (stat.st_mtime_nsec as u32),
        // Files of other devices have the same numbers.
        number: stat.st_ino ^ stat.st_dev.rotate_right(16),
    }
}
