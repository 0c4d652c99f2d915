//! Writing a file whole or not at all.
//!
//! The content goes to a new file without name, reaches the disk, and takes the target's name; until then the target
//! stays what it was, and a process that is killed leaves nothing else behind. What is no regular file (a terminal, a
//! pipe, `/dev/null`) has no content to keep and is written directly: renaming over it would replace a device by a
//! file.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct WriteError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl WriteError {
    /// The host's reason.
    pub fn reason(&self) -> &io::Error {
        &self.source
    }
}

/// Writes a file whole or not at all.
pub fn write(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    replace(path, content).map_err(|source| WriteError {
        path: path.to_owned(),
        source,
    })
}

/// Finds out before any work is done whether a file could be written, changing nothing.
pub fn probe(path: &Path) -> Result<(), WriteError> {
    let attempt = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => OpenOptions::new().append(true).open(path).map(drop),
        Err(_) => Ok(()),
    };
    // A file beside it: that the folder exists and takes new files.
    let is_regular = fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    attempt
        .and_then(|()| match is_regular {
            true => beside(path).map(drop),
            false => Ok(()),
        })
        .map_err(|source| WriteError {
            path: path.to_owned(),
            source,
        })
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // Through symbolic links, so that the link stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&target).ok();
    if let Some(existing) = &existing {
        if existing.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !existing.is_file() {
            return OpenOptions::new().write(true).open(&target)?.write_all(content);
        }
        // A file that may not be written must not be replaced either.
        OpenOptions::new().append(true).open(&target)?;
    }
    let permissions = existing.map(|existing| existing.permissions());
    let fill = |file: &mut File| {
        file.write_all(content)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.sync_all()
    };
    match without_name(&target) {
        Some(mut file) => {
            fill(&mut file)?;
            name(&file, &target)
        }
        None => {
            let mut file = beside(&target)?;
            // To the file itself: errors of the wrapper would name the new file, which means nothing to the user.
            fill(file.as_file_mut())?;
            file.persist(&target)?;
            Ok(())
        }
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A new file in the same folder that has no name, so that nothing is left of it if the process is killed; none where
/// the file system has no such files.
fn without_name(path: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    rustix::fs::open(folder_of(path), flags, mode)
        .ok()
        .map(File::from)
}

/// Gives a file without name the name of `target`, whatever had it.
fn name(file: &File, target: &Path) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |path: &Path| rustix::fs::linkat(CWD, own.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW);
    match link(target) {
        Err(rustix::io::Errno::EXIST) => {}
        other => return Ok(other?),
    }
    // A link cannot replace a file, but a name can: it exists for a moment.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let between = folder_of(target).join(format!(".sidestep-{}-{number}.new", std::process::id()));
    link(&between)?;
    fs::rename(&between, target).inspect_err(|_| {
        let _ = fs::remove_file(&between);
    })
}

/// A new file in the same folder, deleted unless it is given a name.
fn beside(path: &Path) -> io::Result<tempfile::NamedTempFile<File>> {
    tempfile::Builder::new()
        .prefix(".sidestep-")
        .suffix(".new")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder_of(path))
        .map_err(|error| io::Error::new(error.kind(), plain(&error)))
}

/// The error without the temporary file's name, which means nothing to the user.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at path") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write(&path, b"first").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["report.html"]);
    }

    #[test]
    fn a_file_has_no_name_until_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("entry");
        let Some(mut file) = without_name(&path) else {
            return;
        };
        file.write_all(b"content").unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
        name(&file, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"content");
        assert_eq!(names(folder.path()), ["entry"]);
    }

    #[test]
    fn a_symbolic_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        write(&real, b"old").unwrap();
        symlink(&real, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }

    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let error = write(Path::new("/dev/full"), b"too much").unwrap_err();
        assert_eq!(error.to_string(), "cannot write /dev/full");
        assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn what_cannot_be_written_is_found_out_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        assert!(probe(folder.path()).is_err());
        assert!(probe(&folder.path().join("missing/report.html")).is_err());
        assert!(probe(&folder.path().join("report.html")).is_ok());
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
