//! What a program leaves to the one that it executes, beside what the host passes on: named descriptors.
//!
//! The executed program runs in an emulator of its own. That is told descriptors of the program's file, of the root
//! folder and of the places beside it, since their paths may be out of reach by then: after `setuid`, in another
//! root, or because they have none, as the file of `fexecve`.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use crate::files::Files;
use crate::files::namespace::Namespace;
use crate::host;

/// The name of the program's file.
const PROGRAM: &[u8] = b"program";
/// The name of a root folder beyond which nothing may be named.
const ROOT: &[u8] = b"root";
/// The name of a root folder that the program chose itself.
const CHOSEN_ROOT: &[u8] = b"chroot";

/// What was inherited.
#[derive(Debug, Default)]
pub struct Inherited {
    /// The program's file.
    pub program: Option<OwnedFd>,
    /// The tree of names.
    pub namespace: Option<Namespace>,
}

impl Inherited {
    /// Takes over the named descriptors: `program`, `root` or `chroot`, and an absolute path for every place.
    ///
    /// # Errors
    /// The first that is none of them, or is no open descriptor.
    pub fn take(named: &[(Vec<u8>, RawFd)]) -> Result<Inherited, String> {
        let mut inherited = Inherited::default();
        let (mut root, mut places, mut confines) = (None, Vec::new(), true);
        for (name, descriptor) in named {
            let shown = || format!("{}={descriptor}", String::from_utf8_lossy(name));
            host::descriptor_flags(*descriptor).map_err(|_| shown())?;
            // SAFETY: the descriptor is open, and was left to this program alone.
            let descriptor = unsafe { OwnedFd::from_raw_fd(*descriptor) };
            match name.as_slice() {
                PROGRAM => inherited.program = Some(descriptor),
                ROOT | CHOSEN_ROOT => {
                    confines = name == ROOT;
                    root = Some(descriptor);
                }
                [b'/', ..] => places.push((name.clone(), descriptor)),
                _ => return Err(shown()),
            }
        }
        if let Some(root) = root {
            let namespace = Namespace::inherited(root, places, confines);
            inherited.namespace = Some(namespace.map_err(|error| error.to_string())?);
        }
        Ok(inherited)
    }
}

/// The arguments by which an emulator is told its inheritance, and the descriptors that must outlive `execve`.
pub fn leave(files: &Files, program: &OwnedFd) -> (Vec<Vec<u8>>, Vec<RawFd>) {
    let mut named = vec![(PROGRAM.to_vec(), program.as_raw_fd())];
    let namespace = files.namespace();
    if let Some(namespace) = &namespace {
        let name = if namespace.confines() { ROOT } else { CHOSEN_ROOT };
        named.push((name.to_vec(), namespace.root()));
        named.extend(namespace.places());
    }
    let descriptors = named.iter().map(|(_, descriptor)| *descriptor).collect();
    let argument = |(name, descriptor): (Vec<u8>, RawFd)| {
        [
            b"--descriptor".to_vec(),
            [&name[..], b"=", descriptor.to_string().as_bytes()].concat(),
        ]
    };
    (named.into_iter().flat_map(argument).collect(), descriptors)
}

/// `NAME=NUMBER`, as [`leave`] wrote it.
pub fn descriptor(argument: &OsStr) -> Option<(Vec<u8>, RawFd)> {
    let bytes = argument.as_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'=')?;
    let number = std::str::from_utf8(&bytes[at + 1..]).ok()?;
    Some((bytes[..at].to_vec(), number.parse().ok()?))
}

/// `RESOURCE=SOFT:HARD`: a limit that holds for the guest and not for the emulator.
pub fn limit(argument: &OsStr) -> Option<(u32, [u64; 2])> {
    let (resource, limits) = argument.to_str()?.split_once('=')?;
    let (soft, hard) = limits.split_once(':')?;
    Some((resource.parse().ok()?, [soft.parse().ok()?, hard.parse().ok()?]))
}
