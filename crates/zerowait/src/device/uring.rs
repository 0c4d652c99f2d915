//! Devices through io_uring.
//!
//! Submissions collect in the ring and are passed to the kernel once per look around, so a burst of threads
//! costs one system call; of a core that goes to sleep next, the wait passes them on too. The ring is asked not to
//! interrupt the core: completions are posted when the core enters the kernel anyway, or says that it has time
//! (cooperative task running, from Linux 5.19; without it completions come by interrupt and all else is the same).

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use super::flights::Flights;
use super::reactor::Submit;
use super::wake::WakeEvent;
use super::{BufferPool, Operation};
use crate::continuation::Continuation;
use crate::pushback::Reason;

/// The number of the wake event's entry in the ring.
const WAKE: u64 = u64::MAX;
/// The number of cancellations, whose own completions say nothing.
const CANCEL: u64 = u64::MAX - 1;
/// Marks the number of an operation that waits until its descriptor is ready, because it does not block by
/// itself.
const UNTIL_READY: u64 = 1 << 32;

pub(crate) struct Uring {
    ring: IoUring,
    flights: Flights,
    wake: WakeEvent,
    /// Where eventfd counts go, one for each flight; written by the kernel.
    counts: Box<[u64]>,
    /// Whether the kernel posts completions only when it is entered.
    cooperative: bool,
    wake_armed: bool,
    unsubmitted: usize,
}

impl Uring {
    pub(super) fn open(buffers: Arc<BufferPool>, limit: usize, wake: WakeEvent) -> io::Result<Self> {
        // Room for a wait and a retry of each operation beside the operations themselves.
        let entries = (limit as u32 + 2).next_power_of_two().min(1 << 15);
        let cooperative = || {
            let mut builder = IoUring::builder();
            builder
                .setup_single_issuer()
                .setup_coop_taskrun()
                .setup_taskrun_flag()
                .build(entries)
        };
        let (ring, cooperative) = match cooperative() {
            Ok(ring) => (ring, true),
            Err(_) => (IoUring::new(entries)?, false),
        };
        let counts = vec![0; limit].into_boxed_slice();
        let flights = Flights::new(limit, buffers);
        let mut uring = Self {
            ring,
            flights,
            wake,
            counts,
            cooperative,
            wake_armed: false,
            unsubmitted: 0,
        };
        uring.arm_wake();
        Ok(uring)
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
        self.start(number);
        Ok(())
    }

    /// Puts an operation that has departed into the ring.
    fn start(&mut self, number: u32) {
        let entry = self.entry(number).user_data(number.into());
        self.push(&entry);
    }

    fn entry(&mut self, number: u32) -> squeue::Entry {
        let flight = self.flights.get(number);
        let fd = types::Fd(flight.operation.descriptor().number());
        let (start, length) = (flight.start, flight.length);
        match flight.operation {
            Operation::Accept { .. } => opcode::Accept::new(fd, std::ptr::null_mut(), std::ptr::null_mut())
                .flags(rustix::net::SocketFlags::CLOEXEC.bits() as i32)
                .build(),
            Operation::Receive { .. } => opcode::Recv::new(fd, start, length).build(),
            Operation::Send { .. } => opcode::Send::new(fd, start, length)
                .flags(rustix::net::SendFlags::NOSIGNAL.bits() as i32)
                .build(),
            Operation::Read { offset, .. } => opcode::Read::new(fd, start, length).offset(offset).build(),
            Operation::Write { offset, .. } => opcode::Write::new(fd, start, length).offset(offset).build(),
            Operation::Event { .. } => {
                let count = &raw mut self.counts[number as usize];
                opcode::Read::new(fd, count.cast(), 8).build()
            }
            Operation::Synchronise { .. } => opcode::Fsync::new(fd).build(),
            Operation::Close { .. } => opcode::Close::new(fd).build(),
        }
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the entry's pointers lead to a buffer that `depart` has locked until `land`, or to this
        // ring's own `counts`; both outlive the operation because `finish` waits for the last one before they
        // go.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.enter(0);
        }
        self.unsubmitted += 1;
    }

    fn arm_wake(&mut self) {
        if !self.wake_armed {
            let fd = types::Fd(self.wake.as_fd().as_raw_fd());
            let readable = rustix::event::PollFlags::IN.bits() as u32;
            self.push(&opcode::PollAdd::new(fd, readable).build().user_data(WAKE));
            self.wake_armed = true;
        }
    }

    /// Passes submissions on and lets the kernel post completions.
    fn enter(&mut self, want: usize) {
        let submitted = if self.cooperative {
            const GET_EVENTS: u32 = 1;
            let pending = self.ring.submission().len() as u32;
            // SAFETY: no argument structure is passed, and the ring is this thread's own.
            unsafe {
                self.ring
                    .submitter()
                    .enter::<()>(pending, want as u32, GET_EVENTS, None)
            }
        } else {
            self.ring.submit_and_wait(want)
        };
        match submitted {
            Ok(_) => self.unsubmitted = 0,
            Err(error) => assert!(is_passing(&error), "io_uring refuses to be entered: {error}"),
        }
    }

    pub(super) fn poll(&mut self, most: usize, submit: Submit, done: &mut dyn FnMut(Continuation)) -> usize {
        let pass_on = self.unsubmitted > 0 && submit == Submit::Now;
        if pass_on || self.needs_kernel() {
            self.enter(0);
        }
        let mut taken = 0;
        while taken < most {
            let Some(entry) = self.ring.completion().next() else {
                break;
            };
            taken += usize::from(self.complete(entry.user_data(), entry.result(), done));
        }
        // What a completion started anew: nobody may come by for as long as the core does not sleep.
        if self.unsubmitted > 0 && submit == Submit::Now {
            self.enter(0);
        }
        taken
    }

    /// Deals with one completion; whether an operation ended.
    fn complete(&mut self, user_data: u64, result: i32, done: &mut dyn FnMut(Continuation)) -> bool {
        if user_data == WAKE {
            self.wake.clear();
            self.wake_armed = false;
            self.arm_wake();
            return false;
        }
        if user_data == CANCEL {
            return false;
        }
        let number = user_data as u32;
        if user_data & UNTIL_READY != 0 {
            match result {
                0.. => self.start(number),
                error => done(self.flights.land(number, error)),
            }
            return result < 0;
        }
        if result == -rustix::io::Errno::AGAIN.raw_os_error() {
            self.start_when_ready(number);
            return false;
        }
        let outcome = match self.flights.get(number).operation {
            Operation::Event { .. } if result >= 0 => {
                self.counts[number as usize].min(i32::MAX as u64) as i32
            }
            _ => result,
        };
        done(self.flights.land(number, outcome));
        true
    }

    /// The descriptor is of the kind that does not block: waits for it to be ready first.
    fn start_when_ready(&mut self, number: u32) {
        use rustix::event::PollFlags;
        let operation = &self.flights.get(number).operation;
        let fd = types::Fd(operation.descriptor().number());
        let ready = match operation {
            Operation::Send { .. } | Operation::Write { .. } => PollFlags::OUT,
            _ => PollFlags::IN,
        };
        let entry = opcode::PollAdd::new(fd, ready.bits() as u32).build();
        self.push(&entry.user_data(UNTIL_READY | u64::from(number)));
    }

    /// Whether the kernel has completions that it posts only when entered.
    fn needs_kernel(&mut self) -> bool {
        let submission = self.ring.submission();
        submission.taskrun() || submission.cq_overflow()
    }

    pub(super) fn has_completion(&mut self) -> bool {
        !self.ring.completion().is_empty() || self.needs_kernel()
    }

    pub(super) fn wait(&mut self, at_most: Option<Duration>) {
        let result = match at_most {
            None => self.ring.submit_and_wait(1),
            Some(at_most) => {
                let time = types::Timespec::from(at_most);
                let arguments = types::SubmitArgs::new().timespec(&time);
                self.ring.submitter().submit_with_args(1, &arguments)
            }
        };
        match result {
            Ok(_) => self.unsubmitted = 0,
            Err(error) => {
                let timed_out = error.raw_os_error() == Some(rustix::io::Errno::TIME.raw_os_error());
                assert!(
                    timed_out || is_passing(&error),
                    "io_uring refuses to wait: {error}"
                );
            }
        }
    }

    pub(super) fn finish(&mut self, done: &mut dyn FnMut(Continuation)) {
        for number in self.flights.numbers() {
            // An operation waits under one of two numbers; cancelling the one that it does not have finds
            // nothing.
            for user_data in [u64::from(number), UNTIL_READY | u64::from(number)] {
                self.push(&opcode::AsyncCancel::new(user_data).build().user_data(CANCEL));
            }
        }
        while self.flights.len() > 0 {
            self.enter(1);
            // A descriptor that is not ready is not waited for again.
            while let Some(entry) = self.ring.completion().next() {
                let (number, result) = (entry.user_data() as u32, entry.result());
                if entry.user_data() < CANCEL && self.flights.contains(number) {
                    let ended = entry.user_data() & UNTIL_READY == 0 || result < 0;
                    let cancelled = -rustix::io::Errno::CANCELED.raw_os_error();
                    done(self.flights.land(number, if ended { result } else { cancelled }));
                }
            }
        }
    }
}

impl Drop for Uring {
    /// The kernel may write to buffers until the last operation has ended.
    fn drop(&mut self) {
        self.finish(&mut |_| {});
    }
}

/// Whether an error of entering the ring passes by itself.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::INTR, Errno::BUSY, Errno::AGAIN]
        .iter()
        .any(|passing| error.raw_os_error() == Some(passing.raw_os_error()))
}
