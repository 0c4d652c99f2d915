//! The VMM's side: offers its guest's memory on a socket, and takes it back from a watcher that is gone.

use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{Advice, madvise};

use super::kernel::Userfault;
use super::protocol::{GuestRegion, Hello, Request, VERSION, fault_of, send_hello, take_requests};
use crate::HostError;
use crate::watch::region::shared_ranges;

/// How long a watcher may say nothing before it counts as gone.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// How soon an offer that is withdrawn ends.
const LOOK: Duration = Duration::from_millis(50);

/// A guest's memory, for one watcher after another, until this is dropped.
#[derive(Debug)]
pub struct Offer {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Offer {
    /// Offers regions of this process's memory on a socket. Processes of this process's user, and root's, may watch.
    ///
    /// What goes wrong with a watcher is told on the standard error; the offer stands.
    ///
    /// # Safety
    /// As long as this lives the regions stay mapped as they are: `MADV_DONTNEED` is called on parts of them, which
    /// takes nothing from shared memory, but from a private mapping in its place it would.
    ///
    /// # Errors
    /// When the regions are not shared memory of this process, the kernel does not allow it, or the socket cannot be
    /// made.
    pub unsafe fn new(path: &Path, regions: Vec<GuestRegion>) -> Result<Self, HostError> {
        let malformed = |reason| HostError::Malformed {
            path: path.to_owned(),
            reason,
        };
        if let Some(fault) = fault_of(&regions) {
            return Err(malformed(fault));
        }
        let shared = shared_ranges(std::process::id() as i32);
        if let Some(region) = regions.iter().find(|region| !is_within(region, &shared)) {
            return Err(malformed(format!(
                "{:#x} bytes at {:#x} are not shared memory of this process; expected a memfd's, mapped shared",
                region.size, region.address
            )));
        }
        // Now, so that what is not possible is told to who asks for it.
        let trial = Userfault::open(&regions)?;
        regions.iter().try_for_each(|region| trial.register(region))?;
        regions.iter().for_each(|region| trial.unregister(region));
        let listener = listen(path)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let server = std::thread::Builder::new()
            .name("guest-memory".into())
            .spawn(move || serve(&listener, &regions, &seen))
            .map_err(HostError::file("serve", path))?;
        Ok(Self {
            path: path.to_owned(),
            is_over,
            server: Some(server),
        })
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            // A server that panicked has dropped its userfaultfd, and with it the registration.
            let _ = server.join();
        }
        // A name that is gone already is as good as removed.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_within(region: &GuestRegion, shared: &[Range<u64>]) -> bool {
    let mut at = region.address;
    for range in shared {
        if range.contains(&at) {
            at = range.end;
        }
    }
    at >= region.address + region.size
}

/// A socket of this name; one that a dead process left is replaced.
fn listen(path: &Path) -> Result<UnixListener, HostError> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_over(path) => {
            std::fs::remove_file(path).map_err(HostError::file("replace", path))?;
            UnixListener::bind(path)
        }
        outcome => outcome,
    };
    let listener = listener.map_err(HostError::file("listen on", path))?;
    listener
        .set_nonblocking(true)
        .map_err(HostError::file("listen on", path))?;
    Ok(listener)
}

fn is_left_over(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

fn serve(listener: &UnixListener, regions: &[GuestRegion], is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        // An error is noticed by the next step.
        let _ = wait_for(listener, LOOK);
        let Ok((watcher, _)) = listener.accept() else {
            continue;
        };
        if let Err(reason) = serve_one(watcher, regions, is_over) {
            eprintln!("sidestep: a watcher of guest memory is left alone: {reason}");
        }
    }
}

/// Serves one watcher until it is gone; then nobody waits for it any more.
fn serve_one(mut watcher: UnixStream, regions: &[GuestRegion], is_over: &AtomicBool) -> Result<(), String> {
    let user = rustix::net::sockopt::socket_peercred(&watcher)
        .map_err(|error| error.to_string())?
        .uid;
    if !user.is_root() && user != rustix::process::geteuid() {
        return Err(format!("it belongs to user {}", user.as_raw()));
    }
    let registration = Registration::new(regions).map_err(|error| error.to_string())?;
    let hello = Hello {
        sidestep_guest_memory: VERSION,
        regions: regions.to_vec(),
    };
    let watchers_end = |error: std::io::Error| error.to_string();
    watcher.set_nonblocking(false).map_err(watchers_end)?;
    watcher.set_write_timeout(Some(PATIENCE)).map_err(watchers_end)?;
    send_hello(&mut watcher, &hello, registration.userfault.as_fd()).map_err(watchers_end)?;
    let (mut received, mut silence) = (Vec::new(), Duration::ZERO);
    while !is_over.load(Ordering::Relaxed) {
        if !wait_for(&watcher, LOOK).map_err(watchers_end)? {
            silence += LOOK;
            if silence >= PATIENCE {
                return Err(format!("it has said nothing for {} s", PATIENCE.as_secs()));
            }
            continue;
        }
        silence = Duration::ZERO;
        let mut buffer = [0; 4096];
        match watcher.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => received.extend_from_slice(&buffer[..bytes]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        for request in take_requests(&mut received)? {
            if let Request::FaultAgain { address, size } = request {
                fault_again(regions, address, size)?;
            }
        }
    }
    Ok(())
}

/// Whether there is something to read within some time.
fn wait_for(socket: &impl AsFd, at_most: Duration) -> std::io::Result<bool> {
    let timeout = Timespec::try_from(at_most).expect("a short time");
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn fault_again(regions: &[GuestRegion], address: u64, size: u64) -> Result<(), String> {
    if !regions.iter().any(|region| region.holds(address, size)) {
        return Err(format!(
            "it asked for {size:#x} bytes at {address:#x}, which are not whole pages of a region"
        ));
    }
    // SAFETY: the bytes are within a region, which is shared memory as `Offer::new` saw and its caller keeps it: they
    // are the file's and stay; only this process's page table forgets where they are.
    unsafe { madvise(address as *mut _, size as usize, Advice::LinuxDontNeed) }
        .map_err(|error| format!("cannot let {size:#x} bytes at {address:#x} fault again: {error}"))
}

/// Memory that is registered for one watcher. Taking it back does not depend on whether the watcher still has its copy
/// of the descriptor.
struct Registration<'a> {
    userfault: Userfault,
    regions: &'a [GuestRegion],
}

impl<'a> Registration<'a> {
    fn new(regions: &'a [GuestRegion]) -> Result<Self, HostError> {
        let registration = Self {
            userfault: Userfault::open(regions)?,
            regions,
        };
        regions
            .iter()
            .try_for_each(|region| registration.userfault.register(region))?;
        Ok(registration)
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        for region in self.regions {
            self.userfault.unregister(region);
        }
    }
}
