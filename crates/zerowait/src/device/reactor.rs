//! A core's way to its devices: one interface, two implementations.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::readiness::Readiness;
use super::uring::Uring;
use super::wake::WakeEvent;
use super::{BufferPool, Operation};
use crate::continuation::Continuation;
use crate::pushback::Reason;

/// Which implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    /// io_uring.
    IoUring,
    /// epoll, and a helper thread for files.
    Readiness,
}

/// When a poll passes to the kernel what has been submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submit {
    /// At once.
    Now,
    /// It may be left to the wait that follows, which saves a system call.
    WithWait,
}

/// One core's devices. It stays on the host thread that opened it.
pub(crate) enum Reactor {
    Uring(Box<Uring>),
    Readiness(Box<Readiness>),
}

impl Reactor {
    /// Opens the devices with room for `limit` operations in flight; also the event that ends a
    /// [`wait`](Self::wait).
    pub(crate) fn open(
        interface: Interface,
        buffers: Arc<BufferPool>,
        limit: usize,
    ) -> io::Result<(Self, WakeEvent)> {
        let wake = WakeEvent::new()?;
        let reactor = match interface {
            Interface::IoUring => Self::Uring(Box::new(Uring::open(buffers, limit, wake.clone())?)),
            Interface::Readiness => Self::Readiness(Box::new(Readiness::open(buffers, limit, wake.clone())?)),
        };
        Ok((reactor, wake))
    }

    /// Starts an operation.
    pub(crate) fn submit(
        &mut self,
        operation: Operation,
        token: u64,
        continuation: Continuation,
    ) -> Result<(), (Reason, Operation)> {
        match self {
            Self::Uring(uring) => uring.submit(operation, token, continuation),
            Self::Readiness(readiness) => readiness.submit(operation, token, continuation),
        }
    }

    /// Passes submissions to the kernel and takes up to `most` completions; how many. Does not block.
    pub(crate) fn poll(&mut self, most: usize, submit: Submit, done: &mut dyn FnMut(Continuation)) -> usize {
        match self {
            Self::Uring(uring) => uring.poll(most, submit, done),
            Self::Readiness(readiness) => readiness.poll(most, done),
        }
    }

    /// Whether a poll would take a completion. Does not block.
    pub(crate) fn has_completion(&mut self) -> bool {
        match self {
            Self::Uring(uring) => uring.has_completion(),
            Self::Readiness(readiness) => readiness.has_completion(),
        }
    }

    /// Blocks until there is a completion, the wake event is signalled, or the time is up.
    pub(crate) fn wait(&mut self, at_most: Option<Duration>) {
        match self {
            Self::Uring(uring) => uring.wait(at_most),
            Self::Readiness(readiness) => readiness.wait(at_most),
        }
    }

    /// How many operations are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        match self {
            Self::Uring(uring) => uring.in_flight(),
            Self::Readiness(readiness) => readiness.in_flight(),
        }
    }

    /// Cancels everything and waits until the kernel has let go of every buffer.
    pub(crate) fn finish(&mut self, done: &mut dyn FnMut(Continuation)) {
        match self {
            Self::Uring(uring) => uring.finish(done),
            Self::Readiness(readiness) => readiness.finish(done),
        }
    }
}
