//! Devices where io_uring is not permitted: epoll for what can be ready, a helper thread for files.
//!
//! An operation on a socket or an eventfd is tried at once. If it would block, it waits with others of its
//! descriptor until epoll says that the descriptor is ready, and is tried again. File operations always may
//! block in the kernel, so a helper thread does them and signals the core's wake event.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;

use super::flights::Flights;
use super::wake::WakeEvent;
use super::{BufferPool, Descriptor, Operation};
use crate::continuation::Continuation;
use crate::pushback::Reason;

/// The epoll data of the wake event; descriptors are never negative.
const WAKE: u64 = u64::MAX;
/// How many descriptors one look at epoll reports.
const EVENTS: usize = 256;

pub(crate) struct Readiness {
    epoll: std::os::fd::OwnedFd,
    flights: Flights,
    wake: WakeEvent,
    /// Operations that wait for their descriptor, in the order they came.
    waiting: BTreeMap<Descriptor, VecDeque<u32>>,
    /// Operations that have ended, with their outcomes.
    ended: VecDeque<(u32, i32)>,
    events: Vec<epoll::Event>,
    files: FileHelper,
}

impl Readiness {
    pub(super) fn open(buffers: Arc<BufferPool>, limit: usize, wake: WakeEvent) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &wake,
            epoll::EventData::new_u64(WAKE),
            epoll::EventFlags::IN,
        )?;
        let files = FileHelper::start(wake.clone())?;
        Ok(Self {
            epoll,
            flights: Flights::new(limit, buffers),
            wake,
            waiting: BTreeMap::new(),
            ended: VecDeque::with_capacity(limit),
            events: Vec::with_capacity(EVENTS),
            files,
        })
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    pub(super) fn submit(
        &mut self,
        operation: Operation,
        token: u64,
        continuation: Continuation,
    ) -> Result<(), (Reason, Operation)> {
        let number = self.flights.depart(operation, token, continuation)?;
        let flight = self.flights.get(number);
        match flight.operation {
            Operation::Read { offset, .. } | Operation::Write { offset, .. } => {
                let write = matches!(flight.operation, Operation::Write { .. });
                let bytes = Bytes {
                    start: flight.start,
                    length: flight.length as usize,
                };
                let descriptor = flight.operation.descriptor();
                self.files.send(FileJob {
                    number,
                    descriptor,
                    work: FileWork::Transfer { write, offset, bytes },
                });
            }
            Operation::Synchronise { file } => {
                self.files.send(FileJob {
                    number,
                    descriptor: file,
                    work: FileWork::Synchronise,
                });
            }
            Operation::Close { descriptor } => {
                self.forget(descriptor);
                // SAFETY: the program owns the descriptor and gives it up with this operation.
                drop(unsafe { descriptor.into_owned() });
                self.ended.push_back((number, 0));
            }
            Operation::Accept { .. }
            | Operation::Receive { .. }
            | Operation::Send { .. }
            | Operation::Event { .. } => {
                self.attempt(number);
            }
        }
        Ok(())
    }

    /// Tries an operation; if it would block, it waits for its descriptor.
    fn attempt(&mut self, number: u32) {
        match self.perform(number) {
            Err(Errno::AGAIN) => self.wait_for_descriptor(number),
            Err(Errno::INTR) => self.attempt(number),
            outcome => self.ended.push_back((number, outcome_of(outcome))),
        }
    }

    /// One try of an operation, without blocking.
    fn perform(&self, number: u32) -> Result<usize, Errno> {
        use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
        let flight = self.flights.get(number);
        let descriptor = flight.operation.descriptor();
        let fd = borrow(descriptor)?;
        let bytes = Bytes {
            start: flight.start,
            length: flight.length as usize,
        };
        match flight.operation {
            Operation::Accept { .. } => {
                unblock(fd)?;
                accept_with(fd, SocketFlags::CLOEXEC)
                    .map(|connection| Descriptor::from(connection).number() as usize)
            }
            Operation::Receive { .. } => {
                recv(fd, bytes.as_mut_slice(), RecvFlags::DONTWAIT).map(|(count, _)| count)
            }
            Operation::Send { .. } => send(fd, bytes.as_slice(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            Operation::Event { .. } => {
                unblock(fd)?;
                let mut count = [0; 8];
                rustix::io::read(fd, &mut count)?;
                Ok(u64::from_ne_bytes(count).min(i32::MAX as u64) as usize)
            }
            _ => unreachable!("files go to the helper thread"),
        }
    }

    fn wait_for_descriptor(&mut self, number: u32) {
        let descriptor = self.flights.get(number).operation.descriptor();
        let waiting = self.waiting.entry(descriptor).or_default();
        waiting.push_back(number);
        let first = waiting.len() == 1;
        if let Err(error) = self.watch(descriptor, first) {
            self.take_waiting(descriptor, number);
            self.ended.push_back((number, -error.raw_os_error()));
        }
    }

    fn take_waiting(&mut self, descriptor: Descriptor, number: u32) {
        if let Some(waiting) = self.waiting.get_mut(&descriptor) {
            waiting.retain(|other| *other != number);
            if waiting.is_empty() {
                self.waiting.remove(&descriptor);
            }
        }
    }

    /// Tells epoll what the operations that wait for a descriptor need.
    fn watch(&self, descriptor: Descriptor, first: bool) -> Result<(), Errno> {
        let mut flags = epoll::EventFlags::ONESHOT;
        for number in self.waiting.get(&descriptor).into_iter().flatten() {
            flags |= match self.flights.get(*number).operation {
                Operation::Send { .. } => epoll::EventFlags::OUT,
                _ => epoll::EventFlags::IN,
            };
        }
        let data = epoll::EventData::new_u64(descriptor.number() as u64);
        let fd = borrow(descriptor)?;
        if first {
            match epoll::add(&self.epoll, fd, data, flags) {
                // A descriptor stays known after it was ready once.
                Err(Errno::EXIST) => epoll::modify(&self.epoll, fd, data, flags),
                added => added,
            }
        } else {
            epoll::modify(&self.epoll, fd, data, flags)
        }
    }

    /// A descriptor is about to be closed: what waits for it ends as cancelled.
    fn forget(&mut self, descriptor: Descriptor) {
        for number in self.waiting.remove(&descriptor).into_iter().flatten() {
            self.ended.push_back((number, -Errno::CANCELED.raw_os_error()));
        }
    }

    /// Looks at epoll, and tries what has become possible.
    fn look(&mut self, timeout: Option<Duration>) {
        let timeout = timeout.map(|timeout| rustix::event::Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("epoll refuses to wait: {error}"),
        }
        for event in &events {
            match event.data.u64() {
                WAKE => self.wake.clear(),
                number => self.ready(Descriptor::from_number(number as i32)),
            }
        }
        self.events = events;
        while let Ok(ended) = self.files.ended.try_recv() {
            self.ended.push_back(ended);
        }
    }

    fn ready(&mut self, descriptor: Descriptor) {
        for number in self.waiting.remove(&descriptor).into_iter().flatten() {
            self.attempt(number);
        }
    }

    pub(super) fn poll(&mut self, most: usize, done: &mut dyn FnMut(Continuation)) -> usize {
        if self.ended.is_empty() && self.flights.len() > 0 {
            self.look(Some(Duration::ZERO));
        }
        let mut taken = 0;
        while taken < most {
            let Some((number, outcome)) = self.ended.pop_front() else {
                break;
            };
            done(self.flights.land(number, outcome));
            taken += 1;
        }
        taken
    }

    pub(super) fn has_completion(&mut self) -> bool {
        if self.ended.is_empty() && self.flights.len() > 0 {
            self.look(Some(Duration::ZERO));
        }
        !self.ended.is_empty()
    }

    pub(super) fn wait(&mut self, at_most: Option<Duration>) {
        if self.ended.is_empty() {
            self.look(at_most);
        }
    }

    pub(super) fn finish(&mut self, done: &mut dyn FnMut(Continuation)) {
        let waiting: Vec<Descriptor> = self.waiting.keys().copied().collect();
        waiting.into_iter().for_each(|descriptor| self.forget(descriptor));
        // What is left is with the file helper and ends by itself.
        while self.flights.len() > 0 {
            if self.poll(usize::MAX, done) == 0 {
                self.look(None);
            }
        }
    }
}

impl Drop for Readiness {
    /// The file helper may write to buffers until its last job has ended.
    fn drop(&mut self) {
        self.finish(&mut |_| {});
    }
}

/// The bytes of a buffer that is locked for the device.
#[derive(Clone, Copy)]
struct Bytes {
    start: *mut u8,
    length: usize,
}

// SAFETY: the pointer leads to a buffer that is locked for this one operation until it lands.
unsafe impl Send for Bytes {}

impl Bytes {
    fn as_slice<'a>(self) -> &'a [u8] {
        // SAFETY: the buffer is locked for this operation, so nobody writes it while the operation reads it.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    fn as_mut_slice<'a>(self) -> &'a mut [u8] {
        // SAFETY: the buffer is locked for this operation, so nobody else reads or writes it meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

fn borrow<'a>(descriptor: Descriptor) -> Result<BorrowedFd<'a>, Errno> {
    if descriptor.number() < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: not the invalid -1; a number that is not open is answered by the kernel with an error, and a
    // descriptor is closed only by an operation of the program that owns it.
    Ok(unsafe { BorrowedFd::borrow_raw(descriptor.number()) })
}

/// Makes a descriptor answer instead of block when somebody else took what it was ready with.
fn unblock(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    if flags.contains(rustix::fs::OFlags::NONBLOCK) {
        return Ok(());
    }
    rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)
}

fn outcome_of(outcome: Result<usize, Errno>) -> i32 {
    match outcome {
        Ok(count) => i32::try_from(count).unwrap_or(i32::MAX),
        Err(error) => -error.raw_os_error(),
    }
}

/// What the helper thread is to do.
struct FileJob {
    number: u32,
    descriptor: Descriptor,
    work: FileWork,
}

enum FileWork {
    Transfer { write: bool, offset: u64, bytes: Bytes },
    Synchronise,
}

/// The thread that does file operations, which may block.
struct FileHelper {
    jobs: Option<Sender<FileJob>>,
    ended: Receiver<(u32, i32)>,
    thread: Option<JoinHandle<()>>,
}

impl FileHelper {
    fn start(wake: WakeEvent) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<FileJob>();
        let (end, ended) = mpsc::channel();
        let body = move || {
            for job in queue {
                let outcome = outcome_of(perform_file(&job));
                if end.send((job.number, outcome)).is_err() {
                    return;
                }
                wake.signal();
            }
        };
        let thread = std::thread::Builder::new()
            .name("zerowait-files".into())
            .spawn(body)?;
        Ok(Self {
            jobs: Some(jobs),
            ended,
            thread: Some(thread),
        })
    }

    fn send(&self, job: FileJob) {
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        assert!(sent, "the file helper ends only after the last job");
    }
}

impl Drop for FileHelper {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // The helper calls nothing that panics.
            let _ = thread.join();
        }
    }
}

fn perform_file(job: &FileJob) -> Result<usize, Errno> {
    let fd = borrow(job.descriptor)?;
    loop {
        let outcome = match job.work {
            FileWork::Transfer {
                write: true,
                offset,
                bytes,
            } => rustix::io::pwrite(fd, bytes.as_slice(), offset),
            FileWork::Transfer {
                write: false,
                offset,
                bytes,
            } => rustix::io::pread(fd, bytes.as_mut_slice(), offset),
            FileWork::Synchronise => rustix::fs::fsync(fd).map(|()| 0),
        };
        if outcome != Err(Errno::INTR) {
            return outcome;
        }
    }
}
