//! A tap interface of the host (`ip tuntap add dev NAME mode tap`), whose frames are the guest's.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use super::{FRAME_BYTES_MAX, Link};
use crate::machine::timeline::TICKS_PER_SECOND;

/// How often frames are looked for.
const POLL_TICKS: u64 = TICKS_PER_SECOND / 5_000;

/// The interface.
pub struct Tap {
    file: File,
    frame: Option<Vec<u8>>,
}

impl Tap {
    /// Attaches to the tap interface `name`; the host makes it if it may.
    ///
    /// # Errors
    /// If the name is no interface's, or the host refuses.
    pub fn open(name: &str) -> io::Result<Tap> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['\0', '/']) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an interface's name has 1 to 15 bytes and no slash",
            ));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        // SAFETY: all zero bytes are a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, &from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the descriptor is open, and the kernel reads and writes one `ifreq`.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Tap { file, frame: None })
    }

    fn fill(&mut self) {
        if self.frame.is_none() {
            let mut frame = vec![0; FRAME_BYTES_MAX];
            if let Ok(size) = self.file.read(&mut frame) {
                frame.truncate(size);
                self.frame = Some(frame);
            }
        }
    }
}

impl Link for Tap {
    fn send(&mut self, frame: &[u8]) {
        // A full or absent interface loses frames, as a cable does.
        let _ = self.file.write(frame);
    }

    fn has_frame(&self) -> bool {
        self.frame.is_some()
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let frame = self.frame.take();
        self.fill();
        frame
    }

    fn advance(&mut self, _: u64) {
        self.fill();
    }

    fn poll_interval(&self) -> u64 {
        POLL_TICKS
    }
}
