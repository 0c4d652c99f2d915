//! The tree of names of a program that was given a root folder.
//!
//! `/` is the root folder. Beside it stand *places*: files and folders of the host that the program was given,
//! under their own absolute paths. What the root folder has comes first; a place serves what it lacks. Nothing else
//! can be named: `..` ends at the root, a symbolic link leads where it would lead if the root folder were `/`, and the
//! links of `/proc` that lead past all names are not followed.
//!
//! Names are looked up by `openat2` below the descriptor of the root folder or of a place, so the tree stays the
//! same when the host's folders above are renamed, when the program changes its user, and after `chdir`.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::host_path_of;
use super::reserved::{self, Reserved};
use crate::host::{self, Errno};

/// The most symbolic links of one path (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
/// Devices that every program may use.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Whether a symbolic link at the end of a path stands for what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// It does.
    Follow,
    /// It stands for itself.
    Keep,
}

/// What a path leads to.
#[derive(Debug)]
pub enum Found {
    /// Something that is there.
    Object {
        /// It, as an `O_PATH` descriptor.
        object: OwnedFd,
        /// Its path in the tree, without links.
        path: Vec<u8>,
    },
    /// An entry of a folder: a new name, or one whose link is not to be followed.
    Entry {
        /// The folder, as an `O_PATH` descriptor.
        folder: OwnedFd,
        /// The name; with a slash behind it where the path has one.
        name: Vec<u8>,
        /// Its path in the tree.
        path: Vec<u8>,
    },
}

/// A file or folder of the host that is part of the tree.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its absolute path, the same on both sides, without `.`, `..` and links: the components.
    path: Vec<Vec<u8>>,
    /// It, as an `O_PATH` descriptor.
    directory: Arc<Reserved>,
}

/// A tree.
#[derive(Clone, Debug)]
pub struct Namespace {
    root: Arc<Reserved>,
    /// The host's path of the root folder.
    root_path: Vec<u8>,
    places: Vec<Place>,
    confines: bool,
}

impl Namespace {
    /// The tree of a root folder and more folders of the host, with the devices that every program needs, `/proc`, and
    /// the current folder unless that is the host's root.
    pub fn new(root: &std::path::Path, allowed: &[std::path::PathBuf]) -> Result<Namespace, std::io::Error> {
        use std::os::unix::ffi::OsStrExt;
        let mut namespace = Namespace::rooted(open_host(root.as_os_str().as_bytes())?, true)?;
        for folder in allowed {
            let folder = folder.canonicalize()?;
            namespace.add(folder.as_os_str().as_bytes())?;
        }
        if let Ok(current) = host_path_of_current()
            && current != b"/"
            && current.starts_with(b"/")
            && below(&namespace.root_path, &current).is_none()
        {
            namespace.add(&current)?;
        }
        for path in DEVICES.iter().chain(&["/proc"]) {
            // A host without one of them has nothing to give.
            let _ = namespace.add(path.as_bytes());
        }
        Ok(namespace)
    }

    /// The tree below a folder alone, as `chroot` leaves it; `confines` says whether the program was confined to it.
    pub fn rooted(folder: OwnedFd, confines: bool) -> Result<Namespace, std::io::Error> {
        let root = Reserved::new(&folder)?;
        Ok(Namespace {
            root_path: host_path_of(root.as_raw_fd()).unwrap_or_default(),
            root: Arc::new(root),
            places: Vec::new(),
            confines,
        })
    }

    /// The tree that another program of this process left: the descriptors of the root folder and of the places.
    pub fn inherited(
        root: OwnedFd,
        places: Vec<(Vec<u8>, OwnedFd)>,
        confines: bool,
    ) -> Result<Namespace, std::io::Error> {
        let mut namespace = Namespace::rooted(root, confines)?;
        for (path, directory) in places {
            namespace.places.push(Place {
                path: components(&path).map(<[u8]>::to_vec).collect(),
                directory: Arc::new(Reserved::new(&directory)?),
            });
        }
        Ok(namespace)
    }

    /// The path and the descriptor of each place.
    pub fn places(&self) -> impl Iterator<Item = (Vec<u8>, RawFd)> {
        let places = self.places.iter();
        places.map(|place| (absolute(&place.path), place.directory.as_raw_fd()))
    }

    /// Whether the program was confined to the tree, and did not choose it itself.
    pub fn confines(&self) -> bool {
        self.confines
    }

    /// Whether all of the host can be reached: it is part of the tree, or the program chose its root itself.
    pub fn holds_host(&self) -> bool {
        !self.confines || self.places.iter().any(|place| place.path.is_empty())
    }

    fn add(&mut self, path: &[u8]) -> Result<(), std::io::Error> {
        let directory = open_host(path)?;
        self.places.push(Place {
            path: components(path).map(<[u8]>::to_vec).collect(),
            directory: Arc::new(Reserved::new(&directory)?),
        });
        // The longest path that holds a name serves it.
        self.places
            .sort_by_key(|place| std::cmp::Reverse(place.path.len()));
        Ok(())
    }

    /// The root folder.
    pub fn root(&self) -> RawFd {
        self.root.as_raw_fd()
    }

    /// The path in the tree of a path of the host; none where the tree does not hold it.
    pub fn guest_path(&self, host: &[u8]) -> Option<Vec<u8>> {
        if let Some(rest) = below(&self.root_path, host) {
            return Some(absolute(&components(rest).collect::<Vec<_>>()));
        }
        let parts: Vec<&[u8]> = components(host).collect();
        let holds = |place: &Place| {
            parts.len() >= place.path.len() && place.path.iter().zip(&parts).all(|(a, b)| a == b)
        };
        self.places.iter().any(holds).then(|| host.to_vec())
    }

    /// Resolves a path. A relative one starts at the folder `base`, a path in the tree.
    pub fn resolve(&self, base: &[u8], path: &[u8], last: Last) -> Result<Found, Errno> {
        if path.is_empty() {
            return Err(Errno(libc::ENOENT));
        }
        let ends_in_folder = matches!(path.rsplit(|byte| *byte == b'/').next(), Some(b"" | b"." | b".."));
        let mut here: Vec<Vec<u8>> = match path.first() {
            Some(b'/') => Vec::new(),
            _ => components(base).map(<[u8]>::to_vec).collect(),
        };
        let mut rest: VecDeque<Vec<u8>> = components(path).map(<[u8]>::to_vec).collect();
        let mut links = 0;
        while let Some(component) = rest.pop_front() {
            if component == b".." {
                here.pop();
                continue;
            }
            let is_last = rest.is_empty();
            here.push(component);
            match self.look(&here) {
                Ok((object, kind)) if kind == libc::S_IFLNK => {
                    if is_last && last == Last::Keep && !path.ends_with(b"/") {
                        return self.entry(&here, false);
                    }
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno(libc::ELOOP));
                    }
                    match super::links::leads_past_names(&here) {
                        None => {
                            let target = host::read_link(object.as_raw_fd(), b"")?;
                            here.pop();
                            if target.first() == Some(&b'/') {
                                here.clear();
                            }
                            for component in components(&target).rev() {
                                rest.push_front(component.to_vec());
                            }
                        }
                        Some(link) if is_last => {
                            return link.open(self).map(|object| Found::Object {
                                object,
                                path: absolute(&here),
                            });
                        }
                        Some(link) => {
                            here = components(&link.path(self)?).map(<[u8]>::to_vec).collect();
                        }
                    }
                }
                Ok((_, kind)) if !is_last && kind != libc::S_IFDIR => return Err(Errno(libc::ENOTDIR)),
                Ok((_, kind)) if ends_in_folder && is_last && kind != libc::S_IFDIR => {
                    return Err(Errno(libc::ENOTDIR));
                }
                Ok((object, _)) if is_last => {
                    if last == Last::Keep
                        && !matches!(path.rsplit(|byte| *byte == b'/').next(), Some(b"." | b".."))
                    {
                        return self.entry(&here, path.ends_with(b"/"));
                    }
                    return Ok(Found::Object {
                        object,
                        path: absolute(&here),
                    });
                }
                Ok(_) => {}
                Err(Errno(libc::ENOENT)) if is_last => return self.entry(&here, path.ends_with(b"/")),
                Err(Errno(libc::ENOENT)) if self.leads_to_place(&here) => {}
                Err(error) => return Err(error),
            }
        }
        let (object, _) = self.look(&here)?;
        Ok(Found::Object {
            object,
            path: absolute(&here),
        })
    }

    /// The last component as an entry of its folder: the root folder's if that has it, or has the folder while no
    /// place has the name.
    fn entry(&self, here: &[Vec<u8>], with_slash: bool) -> Result<Found, Errno> {
        let Some((name, folder)) = here.split_last() else {
            return Err(Errno(libc::EBUSY));
        };
        let mut name_in_folder = name.clone();
        if with_slash {
            name_in_folder.push(b'/');
        }
        let mut first_folder = None;
        let mut error = Errno(libc::ENOENT);
        let sources = self.sources(here).map(|source| {
            let folder = match source {
                Source::Root => open_below(self.root.as_raw_fd(), folder, libc::O_DIRECTORY),
                Source::Place(place) if place.path.len() <= folder.len() => open_below(
                    place.directory.as_raw_fd(),
                    &folder[place.path.len()..],
                    libc::O_DIRECTORY,
                ),
                // The name is a place itself: like a mount point it can be neither made nor removed.
                Source::Place(_) => Err(Errno(libc::EBUSY)),
            };
            (source, folder)
        });
        for (source, folder) in sources {
            match folder {
                Ok(folder) => {
                    if self.look_in(&source, here).is_ok() {
                        first_folder = Some(folder);
                        break;
                    }
                    first_folder.get_or_insert(folder);
                }
                Err(Errno(libc::EBUSY)) if first_folder.is_none() => {
                    let (object, _) = self.look_in(&source, here)?;
                    return Ok(Found::Object {
                        object,
                        path: absolute(here),
                    });
                }
                Err(Errno(libc::ENOENT)) => {}
                Err(other) => error = other,
            }
        }
        Ok(Found::Entry {
            folder: first_folder.ok_or(error)?,
            name: name_in_folder,
            path: absolute(here),
        })
    }

    /// What is at a path without links; a link is not followed. Its kind is the file type of its mode.
    fn look(&self, here: &[Vec<u8>]) -> Result<(OwnedFd, u32), Errno> {
        let mut result = Err(Errno(libc::ENOENT));
        for source in self.sources(here) {
            result = self.look_in(&source, here);
            if result.as_ref().err() != Some(&Errno(libc::ENOENT)) {
                break;
            }
        }
        result
    }

    fn look_in(&self, source: &Source<'_>, here: &[Vec<u8>]) -> Result<(OwnedFd, u32), Errno> {
        let object = match source {
            Source::Root => open_below(self.root.as_raw_fd(), here, libc::O_NOFOLLOW)?,
            Source::Place(place) => open_below(
                place.directory.as_raw_fd(),
                &here[place.path.len()..],
                libc::O_NOFOLLOW,
            )?,
        };
        let kind = host::file_status(object.as_raw_fd())?.st_mode & libc::S_IFMT;
        Ok((object, kind))
    }

    /// Where a path may be looked up, in order. `/proc` is the kernel's, whatever the root folder has.
    fn sources<'a>(&'a self, here: &'a [Vec<u8>]) -> impl Iterator<Item = Source<'a>> {
        let places = self.places.iter().filter(|place| here.starts_with(&place.path));
        let in_proc = here.first().is_some_and(|first| first == b"proc");
        let has_proc = self.places.iter().any(|place| place.path == [b"proc"]);
        let root = (!(in_proc && has_proc)).then_some(Source::Root);
        root.into_iter().chain(places.map(Source::Place))
    }

    /// Whether a folder that does not exist stands on the way to a place.
    fn leads_to_place(&self, here: &[Vec<u8>]) -> bool {
        self.places.iter().any(|place| place.path.starts_with(here))
    }
}

/// Where a name is looked up.
enum Source<'a> {
    Root,
    Place(&'a Place),
}

/// The components of a path, without empty ones and `.`.
pub fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
        .filter(|component| !component.is_empty() && *component != b".")
}

/// The absolute path of components.
pub fn absolute(components: &[impl AsRef<[u8]>]) -> Vec<u8> {
    if components.is_empty() {
        return b"/".to_vec();
    }
    let mut path = Vec::new();
    for component in components {
        path.push(b'/');
        path.extend_from_slice(component.as_ref());
    }
    path
}

/// What of a path is below a folder.
fn below<'a>(folder: &[u8], path: &'a [u8]) -> Option<&'a [u8]> {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    let rest = path.strip_prefix(folder)?;
    (rest.is_empty() || rest.starts_with(b"/")).then_some(rest)
}

fn host_path_of_current() -> Result<Vec<u8>, Errno> {
    host::read_link(libc::AT_FDCWD, b"/proc/self/cwd")
}

fn open_host(path: &[u8]) -> Result<OwnedFd, std::io::Error> {
    let how = host::How {
        flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
        mode: 0,
        resolve: 0,
    };
    Ok(host::open(libc::AT_FDCWD, path, &how)?)
}

/// Opens what is at components without links below a folder, as an `O_PATH` descriptor.
fn open_below(folder: RawFd, components: &[Vec<u8>], flags: i32) -> Result<OwnedFd, Errno> {
    if components.is_empty() {
        return reserved::copy_from(0, &folder);
    }
    let path = components.join(&b'/');
    let how = host::How {
        flags: (libc::O_PATH | libc::O_CLOEXEC | flags) as u64,
        mode: 0,
        resolve: libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS,
    };
    match host::open(folder, &path, &how) {
        // Between two looks a folder became a link: it is looked at again by who asked.
        Err(Errno(libc::ELOOP)) => Err(Errno(libc::ENOENT)),
        other => other,
    }
}
