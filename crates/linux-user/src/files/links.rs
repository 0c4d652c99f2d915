//! Links of `/proc` that lead past all names: to a program, a folder or a descriptor, whatever it is called.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::namespace::{self, Namespace};
use super::{host_path_of, link_of, reserved};
use crate::host::{self, Errno};

/// The name of an entry of this process's own folder, or of one of its threads', by its canonical path.
pub fn own_entry(path: &[u8]) -> Option<&[u8]> {
    let rest = path.strip_prefix(b"/proc/")?;
    let own = std::process::id().to_string();
    let mut rest = [own.as_bytes(), b"self", b"thread-self"]
        .into_iter()
        .find_map(|name| rest.strip_prefix(name)?.strip_prefix(b"/"))?;
    if let Some(of_thread) = rest.strip_prefix(b"task/") {
        let slash = of_thread.iter().position(|byte| *byte == b'/')?;
        rest = &of_thread[slash + 1..];
    }
    Some(rest)
}

/// A link of `/proc` that leads past all names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The program of this process.
    Program,
    /// The current folder of this process.
    Current,
    /// The root of this process.
    Root,
    /// A descriptor of this process.
    Descriptor(RawFd),
    /// One that a guest must not follow: of another process, or of a namespace.
    Denied,
}

/// The link at a canonical path, if it leads past all names.
pub fn leads_past_names(path: &[Vec<u8>]) -> Option<Link> {
    let [proc, _, _, ..] = path else { return None };
    if proc != b"proc" {
        return None;
    }
    let whole = namespace::absolute(path);
    let Some(name) = own_entry(&whole) else {
        // What is left are links of other processes, and plain ones of the system.
        return path[1].iter().all(u8::is_ascii_digit).then_some(Link::Denied);
    };
    Some(match name {
        b"exe" => Link::Program,
        b"cwd" => Link::Current,
        b"root" => Link::Root,
        _ => {
            let number = name
                .strip_prefix(b"fd/")
                .and_then(|number| std::str::from_utf8(number).ok());
            number
                .and_then(|number| number.parse().ok())
                .map_or(Link::Denied, Link::Descriptor)
        }
    })
}

impl Link {
    /// What it leads to, as an `O_PATH` descriptor.
    pub fn open(self, namespace: &Namespace) -> Result<OwnedFd, Errno> {
        let path = match self {
            Link::Program => b"/proc/self/exe".to_vec(),
            Link::Current => b".".to_vec(),
            Link::Root => link_of(namespace.root()).into_bytes(),
            Link::Descriptor(number) if reserved::is_reserved(number as u64) => {
                return Err(Errno(libc::ENOENT));
            }
            Link::Descriptor(number) => link_of(number).into_bytes(),
            Link::Denied => return Err(Errno(libc::EACCES)),
        };
        let how = host::How {
            flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
            mode: 0,
            resolve: 0,
        };
        host::open(libc::AT_FDCWD, &path, &how)
    }

    /// The path in the tree of the folder it leads to, for a path that goes on behind it.
    pub fn path(self, namespace: &Namespace) -> Result<Vec<u8>, Errno> {
        match self {
            Link::Root => Ok(b"/".to_vec()),
            Link::Denied | Link::Program => Err(Errno(libc::EACCES)),
            Link::Current | Link::Descriptor(_) => {
                let object = self.open(namespace)?;
                let host = host_path_of(object.as_raw_fd())?;
                namespace.guest_path(&host).ok_or(Errno(libc::EACCES))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::namespace::components;
    use super::*;

    #[test]
    fn own_entries_are_known_by_every_name() {
        let own = std::process::id();
        let entry =
            |path: &str| own_entry(path.as_bytes()).map(|name| String::from_utf8_lossy(name).into_owned());
        assert_eq!(entry("/proc/self/maps").as_deref(), Some("maps"));
        assert_eq!(entry(&format!("/proc/{own}/exe")).as_deref(), Some("exe"));
        assert_eq!(
            entry(&format!("/proc/{own}/task/{own}/mem")).as_deref(),
            Some("mem")
        );
        assert_eq!(entry("/proc/1/maps"), None);
        assert_eq!(entry("/proc/cpuinfo"), None);
    }

    #[test]
    fn links_that_lead_past_names_are_told_apart() {
        let link = |path: &str| {
            let parts: Vec<Vec<u8>> = components(path.as_bytes()).map(<[u8]>::to_vec).collect();
            leads_past_names(&parts)
        };
        assert_eq!(link("/proc/self"), None);
        assert_eq!(link("/proc/self/exe"), Some(Link::Program));
        assert_eq!(link("/proc/self/fd/7"), Some(Link::Descriptor(7)));
        assert_eq!(link("/proc/1/root"), Some(Link::Denied));
        assert_eq!(link("/proc/self/ns/mnt"), Some(Link::Denied));
        assert_eq!(link("/etc/mtab/x"), None);
    }
}
