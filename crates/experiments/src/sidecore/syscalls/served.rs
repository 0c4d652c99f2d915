//! Calls that a thread of ours makes: a sidecore in the process, one behind a broker, one that an eventfd wakes.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use sidestep_lab::PointError;
use sidestep_sidecall::broker::{Broker, Rights, Visit};
use sidestep_sidecall::caller::OwnSidecore;
use sidestep_sidecall::sidecore::pin;
use sidestep_sidecall::system_calls::{self, Words};

use super::work::{BYTES, FILE, KEY, Operation, Work, found, timed};
use super::{Cores, Samples, failed, unavailable};

pub fn by_sidecall(work: &Work, operation: Operation, cores: Cores) -> Result<Samples, PointError> {
    let sidecore =
        OwnSidecore::start(Some(cores.other), work.table.clone(), u64::MAX).map_err(unavailable)?;
    let mut caller = sidecore.caller().map_err(unavailable)?;
    let file = work.file.as_raw_fd();
    let mut bytes = [b'x'; BYTES];
    let samples = timed(|| match operation {
        Operation::Getpid => caller.getpid().map(drop),
        Operation::Read => caller.read(file, &mut bytes, Some(0)).map(drop),
        Operation::Write => caller.write(file, &bytes, Some(0)).map(drop),
        Operation::Open => {
            let opened = caller.open(&work.path, libc::O_RDONLY, 0)?;
            caller.close(opened)
        }
        Operation::Stat => caller.stat(&work.path).map(drop),
        Operation::LookUp => found(caller.look_up(KEY).ok()),
    });
    samples.map_err(failed)
}

pub fn by_broker(work: &Work, operation: Operation, cores: Cores) -> Result<Samples, PointError> {
    let rights = Rights {
        folder: std::fs::File::open(work.folder.path())
            .map_err(unavailable)?
            .into(),
        writes: true,
        table: work.table.clone(),
    };
    let socket = work.folder.path().join("socket");
    let broker = Broker::start(&socket, Some(cores.other), rights, u64::MAX).map_err(unavailable)?;
    let mut visit = Visit::connect(&socket).map_err(unavailable)?;
    let file = visit.open(FILE, libc::O_RDWR, 0).map_err(failed)?;
    let mut bytes = [b'x'; BYTES];
    let samples = timed(|| match operation {
        Operation::Getpid => visit.call(Words::of(system_calls::Operation::Getpid)).map(drop),
        Operation::Read => visit.read(file, &mut bytes, Some(0)).map(drop),
        Operation::Write => visit.write(file, &bytes, Some(0)).map(drop),
        Operation::Open => {
            let opened = visit.open(FILE, libc::O_RDONLY, 0)?;
            visit.close(opened)
        }
        Operation::Stat => visit.size(FILE).map(drop),
        Operation::LookUp => found(visit.look_up(KEY).ok()),
    });
    drop(visit);
    drop(broker);
    samples.map_err(failed)
}

/// The caller signals an eventfd, which wakes a thread that makes the same system call, and polls for its end.
pub fn by_eventfd(work: &Work, operation: Operation, cores: Cores) -> Result<Samples, PointError> {
    let event = eventfd(0, EventfdFlags::CLOEXEC).map_err(unavailable)?;
    let (asked, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let (stop, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| -> io::Result<()> {
            pin(cores.other)?;
            let mut count = [0; 8];
            loop {
                rustix::io::retry_on_intr(|| rustix::io::read(&event, &mut count))?;
                if stop.load(Ordering::Acquire) {
                    return Ok(());
                }
                if work.directly(operation).is_err() {
                    has_failed.store(true, Ordering::Release);
                }
                done.store(asked.load(Ordering::Acquire), Ordering::Release);
            }
        });
        let signal = || rustix::io::write(&event, &1_u64.to_ne_bytes());
        let samples = timed(|| {
            let number = asked.load(Ordering::Relaxed) + 1;
            asked.store(number, Ordering::Release);
            signal()?;
            while done.load(Ordering::Acquire) != number {
                if serving.is_finished() {
                    return Err(io::Error::other("the thread that serves has ended"));
                }
                std::hint::spin_loop();
            }
            Ok(())
        });
        stop.store(true, Ordering::Release);
        // It fails where its count is full only, and then the thread is awake anyway.
        let _ = signal();
        if has_failed.load(Ordering::Acquire) {
            return Err(failed("a call failed in the thread that serves"));
        }
        samples.map_err(failed)
    })
}
