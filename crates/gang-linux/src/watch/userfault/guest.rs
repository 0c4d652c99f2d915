//! The watcher's side: lets threads that fault go on at once, on a thread of its own, and asks for more faults.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::kernel::{MinorFault, Userfault};
use super::offer::PATIENCE;
use super::protocol::{GuestRegion, Hello, Request, line_of, receive_hello};
use crate::HostError;
use crate::memory::{PAGE, SharedMemory};
use crate::watch::fault::Record;
use crate::watch::price;

/// How often a part of the memory is asked to fault again; what makes a whole is asked for in [`ROUND`].
const STEP: Duration = Duration::from_millis(100);
/// How long it takes until all of the memory has been asked to fault again, if it is not more than [`ROUND_MOST`].
const ROUND: Duration = Duration::from_secs(1);
/// The most bytes that are asked to fault again in a round, as the kernel's NUMA balancing has it.
const ROUND_MOST: u64 = 256 << 20;

/// A VMM whose guest's memory is watched.
#[derive(Debug)]
pub struct Guest {
    process: i32,
    regions: Vec<GuestRegion>,
    shared: Arc<Shared>,
    resolver: Option<JoinHandle<()>>,
}

/// What the watcher and its resolver have in common.
#[derive(Debug, Default)]
struct Shared {
    faults: Mutex<Vec<Record>>,
    is_wanted: AtomicBool,
    is_over: AtomicBool,
    /// The resolver's own time on a core.
    ran_ns: AtomicU64,
}

impl Guest {
    /// Connects to what a VMM offers; memory faults from now on.
    ///
    /// # Errors
    /// When there is no such offer, it is taken, or what is said is not understood.
    pub fn connect(path: &Path, round: Option<Duration>) -> Result<Self, HostError> {
        let malformed = |reason: String| HostError::Malformed {
            path: path.to_owned(),
            reason,
        };
        let mut vmm = UnixStream::connect(path).map_err(HostError::file("connect to", path))?;
        vmm.set_read_timeout(Some(PATIENCE))
            .map_err(HostError::file("read", path))?;
        let process = rustix::net::sockopt::socket_peercred(&vmm)
            .map_err(|error| HostError::file("ask for the process behind", path)(error.into()))?
            .pid
            .as_raw_pid();
        let (line, descriptor) = match receive_hello(&mut vmm) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Err(malformed(format!(
                    "process {process} has said nothing for {} s; is another watcher connected to it?",
                    PATIENCE.as_secs()
                )));
            }
            outcome => outcome.map_err(HostError::file("read", path))?,
        };
        if line.is_empty() {
            return Err(malformed(format!(
                "process {process} has refused; it says why on its standard error"
            )));
        }
        let hello = Hello::parse(&line).map_err(|reason| {
            malformed(format!(
                "{reason}; expected a hello with the regions of a guest's memory"
            ))
        })?;
        let descriptor = descriptor
            .ok_or_else(|| malformed("no descriptor came with the hello; expected a userfaultfd".into()))?;
        let userfault =
            Userfault::received(descriptor).map_err(HostError::file("use what came from", path))?;
        vmm.set_nonblocking(true).map_err(HostError::file("use", path))?;
        let shared = Arc::new(Shared::default());
        shared.is_wanted.store(true, Ordering::Relaxed);
        let resolver = Resolver {
            process,
            userfault,
            vmm,
            scan: Scan::new(hello.regions.clone(), round.unwrap_or(ROUND)),
            shared: Arc::clone(&shared),
            waiting: Vec::new(),
        };
        let resolver = std::thread::Builder::new()
            .name("userfaultfd".into())
            .spawn(move || resolver.run())
            .map_err(HostError::file("watch", path))?;
        Ok(Self {
            process,
            regions: hello.regions,
            shared,
            resolver: Some(resolver),
        })
    }

    /// The VMM's process.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// Whether an address is in the guest's memory.
    pub fn holds(&self, address: u64) -> bool {
        self.regions
            .iter()
            .any(|region| region.page_of(address).is_some())
    }

    /// Asks for faults, or for no more.
    pub fn want(&self, is_wanted: bool) {
        self.shared.is_wanted.store(is_wanted, Ordering::Relaxed);
    }

    /// Whether the VMM has ended, or taken its memory back.
    pub fn is_gone(&self) -> bool {
        self.resolver.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// How long letting threads go on has taken so far, on a core.
    pub fn ran_ns(&self) -> u64 {
        self.shared.ran_ns.load(Ordering::Relaxed)
    }

    /// Takes the faults since the last time.
    pub fn drain(&self, take: impl FnMut(Record)) {
        let mut faults = self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *faults).into_iter().for_each(take);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(resolver) = self.resolver.take() {
            // One that panicked has closed its connection, and the VMM takes its memory back.
            let _ = resolver.join();
        }
    }
}

/// The thread that lets others go on.
struct Resolver {
    process: i32,
    userfault: Userfault,
    vmm: UnixStream,
    scan: Scan,
    shared: Arc<Shared>,
    waiting: Vec<MinorFault>,
}

impl Resolver {
    fn run(mut self) {
        // The threads of the guest wait for this one. It may not go before others; then they wait a little longer.
        let _ = rustix::process::setpriority_process(None, -20);
        let mut next = Instant::now();
        while !self.shared.is_over.load(Ordering::Relaxed) {
            if Instant::now() >= next {
                next = Instant::now() + STEP;
                if self.ask().is_err() {
                    return;
                }
                self.shared.ran_ns.store(price::own_time_ns(), Ordering::Relaxed);
            }
            let wait =
                Timespec::try_from(next.saturating_duration_since(Instant::now())).expect("a short time");
            let mut sources = [
                PollFd::new(&self.userfault, PollFlags::IN),
                PollFd::new(&self.vmm, PollFlags::IN),
            ];
            // An interrupted wait is a short one.
            let _ = poll(&mut sources, Some(&wait));
            // The VMM says nothing more: what can be read is its end.
            if !sources[1].revents().is_empty() {
                return;
            }
            if !sources[0].revents().is_empty() && self.resolve().is_err() {
                return;
            }
        }
    }

    /// Asks for a part of the memory to fault again, or says at least that it is there.
    fn ask(&mut self) -> std::io::Result<()> {
        let is_wanted = self.shared.is_wanted.load(Ordering::Relaxed);
        let parts = if is_wanted { self.scan.step() } else { Vec::new() };
        let mut lines = line_of(&Request::Alive);
        for (address, size) in parts {
            lines.push_str(&line_of(&Request::FaultAgain { address, size }));
        }
        // A VMM that reads nothing gets no half of a line: a few lines fit, or the connection is given up.
        self.vmm.write_all(lines.as_bytes())
    }

    fn resolve(&mut self) -> Result<(), rustix::io::Errno> {
        let waiting = &mut self.waiting;
        self.userfault.read(|fault| waiting.push(fault))?;
        let time_ns = monotonic_ns();
        let mut records = Vec::with_capacity(self.waiting.len());
        for fault in self.waiting.drain(..) {
            let Some((address, page_size)) = self.scan.page_of(fault.address) else {
                continue;
            };
            self.userfault.resolve(address, page_size)?;
            records.push(Record::Fault {
                process: self.process,
                thread: fault.thread,
                time_ns,
                address,
            });
        }
        let mut faults = self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.append(&mut records);
        Ok(())
    }
}

fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Which part of the memory is next: all regions one after another, and again from the first.
#[derive(Debug)]
struct Scan {
    regions: Vec<GuestRegion>,
    /// Bytes of a step.
    share: u64,
    region: usize,
    from: u64,
}

impl Scan {
    fn new(regions: Vec<GuestRegion>, round: Duration) -> Self {
        let bytes: u64 = regions.iter().map(|region| region.size).sum();
        let steps = (round.as_nanos() / STEP.as_nanos()).max(1) as u64;
        Self {
            share: bytes.min(ROUND_MOST).div_ceil(steps),
            regions,
            region: 0,
            from: 0,
        }
    }

    /// The page that an address is in, and its size.
    fn page_of(&self, address: u64) -> Option<(u64, u64)> {
        let page = |region: &GuestRegion| Some((region.page_of(address)?, region.page_size));
        self.regions.iter().find_map(page)
    }

    /// The next step's parts: whole pages, nothing twice.
    fn step(&mut self) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        let mut left = self.share;
        while left > 0 && parts.len() < self.regions.len() {
            let region = self.regions[self.region];
            let size = left
                .next_multiple_of(region.page_size)
                .min(region.size - self.from);
            parts.push((region.address + self.from, size));
            left = left.saturating_sub(size);
            self.from += size;
            if self.from == region.size {
                self.from = 0;
                self.region = (self.region + 1) % self.regions.len();
            }
        }
        parts
    }
}

/// What it takes on this host that a thread faults, is let go on by another, and runs again; `None` where it cannot be
/// measured. Of several rounds the quickest: any other was disturbed.
pub(in crate::watch) fn round_trip_ns() -> Option<u64> {
    const PAGES: usize = 64;
    const ROUNDS: usize = 8;
    let memory = SharedMemory::new(PAGES * PAGE).ok()?;
    let region = GuestRegion {
        address: memory.address(),
        size: memory.bytes(),
        page_size: PAGE as u64,
    };
    let userfault = Userfault::open(&[region]).ok()?;
    let touch = || {
        for word in memory.words().iter().step_by(PAGE / size_of::<AtomicU64>()) {
            word.store(1, Ordering::Relaxed);
        }
    };
    touch();
    userfault.register(&region).ok()?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let wait = Timespec::try_from(Duration::from_millis(10)).expect("a short time");
                let _ = poll(&mut [PollFd::new(&userfault, PollFlags::IN)], Some(&wait));
                let _ = userfault.read(|fault| {
                    let page = region
                        .page_of(fault.address)
                        .expect("no other memory is registered");
                    let _ = userfault.resolve(page, region.page_size);
                });
            }
        });
        let rounds = (0..ROUNDS).map(|_| {
            // SAFETY: the memory is this function's own and shared: its bytes are the file's and stay.
            let forgotten = unsafe {
                rustix::mm::madvise(
                    region.address as *mut _,
                    region.size as usize,
                    rustix::mm::Advice::LinuxDontNeed,
                )
            };
            let began = Instant::now();
            touch();
            forgotten
                .ok()
                .map(|()| began.elapsed().as_nanos() as u64 / PAGES as u64)
        });
        let quickest = rounds.flatten().min();
        is_over.store(true, Ordering::Relaxed);
        quickest
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A round asks for each page once, in whole pages, whatever the regions.
        #[test]
        fn rounds_cover_all_memory_evenly(
            sizes in proptest::collection::vec((1..2000u64, 0..2u32), 1..6),
        ) {
            let mut address = 0;
            let mut regions = Vec::new();
            for (pages, kind) in sizes {
                let page_size = 4096 << (9 * kind);
                regions.push(GuestRegion { address, size: pages * page_size, page_size });
                address += (pages + 1) * page_size;
                address = address.next_multiple_of(4096 << 9);
            }
            let pages: u64 = regions.iter().map(|region| region.size / region.page_size).sum();
            let mut scan = Scan::new(regions.clone(), ROUND);
            let mut counts = std::collections::BTreeMap::new();
            let mut asked = 0;
            while asked < 2 * pages {
                for (address, size) in scan.step() {
                    let (page, page_size) = scan.page_of(address).expect("a region's");
                    prop_assert_eq!(page, address);
                    prop_assert!(regions.iter().any(|region| region.holds(address, size)));
                    for page in (address..address + size).step_by(page_size as usize) {
                        *counts.entry(page).or_insert(0_u32) += 1;
                        asked += 1;
                    }
                }
            }
            prop_assert_eq!(counts.len() as u64, pages);
            let (least, most) = (counts.values().min(), counts.values().max());
            prop_assert!(most.unwrap() - least.unwrap() <= 2, "{:?} to {:?}", least, most);
        }
    }
}
