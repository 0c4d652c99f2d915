//! A gate as a program holds it: lock, queue, the body with its state, and what happened at it.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::context::Context;
use crate::gate::{Entered, GateLock, OnPanic, Policy};
use crate::payload::Words;
use crate::pushback::Reason;
use crate::sync::UnsafeCell;

/// A gate's body; it owns the gate's state.
pub(crate) type GateBody = Box<dyn FnMut(&mut Context<'_>, Words) + Send>;

pub(crate) struct GateCell {
    lock: GateLock,
    body: UnsafeCell<GateBody>,
    policy: Policy,
    on_panic: OnPanic,
    /// Written by the lock holder only.
    served: AtomicU64,
    pushed_back: AtomicU64,
    longest_queue: AtomicU64,
}

// SAFETY: the body is the only part that is not `Sync` by itself; it is reached only through `run`, whose
// caller holds the gate's lock, and it is `Send`.
unsafe impl Sync for GateCell {}

/// What a caller at the gate has to do.
pub(crate) enum Admission {
    Start(Words),
    Waits,
}

impl GateCell {
    pub(crate) fn new(policy: Policy, on_panic: OnPanic, body: GateBody) -> Self {
        let capacity = match policy {
            Policy::LockOrRetry => None,
            Policy::Queue { capacity } => Some(capacity),
        };
        Self {
            lock: GateLock::new(capacity),
            body: UnsafeCell::new(body),
            policy,
            on_panic,
            served: AtomicU64::new(0),
            pushed_back: AtomicU64::new(0),
            longest_queue: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn enter(&self, words: Words) -> Result<Admission, Reason> {
        let reason = match self.lock.enter(words) {
            Entered::Start(words) => return Ok(Admission::Start(words)),
            Entered::Waits => {
                let waiting = self.lock.waiting() as u64;
                if waiting > self.longest_queue.load(Relaxed) {
                    self.longest_queue.fetch_max(waiting, Relaxed);
                }
                return Ok(Admission::Waits);
            }
            Entered::Busy => Reason::GateBusy,
            Entered::Full => Reason::GateFull,
            Entered::Poisoned => Reason::GatePoisoned,
        };
        self.pushed_back.fetch_add(1, Relaxed);
        Err(reason)
    }

    /// Runs the body once. The caller holds the lock by having been told to start.
    #[inline]
    pub(crate) fn run(&self, context: &mut Context<'_>, words: Words) {
        self.served.store(self.served.load(Relaxed) + 1, Relaxed);
        // SAFETY: `enter`, `finish` and `release` hand out at most one right to start the gate at a time, and
        // it is used up by this run, so no other reference to the body exists (loom checks the protocol).
        self.body.with_mut(|body| unsafe { (*body)(context, words) });
    }

    /// After a run: the next entry to start, if the gate passes on at once.
    #[inline]
    pub(crate) fn next(&self) -> Option<Words> {
        if self.lock.body_ended() {
            self.lock.finish()
        } else {
            None
        }
    }

    /// After a run that panicked: the next entry, if the gate goes on.
    pub(crate) fn next_after_panic(&self) -> Option<Words> {
        match self.on_panic {
            OnPanic::Poison => {
                self.lock.poison();
                None
            }
            OnPanic::Resume => {
                // A hold that the panicking body had taken is off: nobody would release it.
                let _ = self.lock.release();
                self.lock.finish()
            }
        }
    }

    pub(crate) fn hold(&self) {
        self.lock.hold();
    }

    /// Ends a hold: `None` if there was none, else the next entry to start, if one waits.
    pub(crate) fn release(&self) -> Option<Option<Words>> {
        match self.lock.release() {
            Ok(true) => Some(self.lock.finish()),
            Ok(false) => Some(None),
            Err(()) => None,
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy
    }

    pub(crate) fn served(&self) -> u64 {
        self.served.load(Relaxed)
    }

    pub(crate) fn queued(&self) -> u64 {
        self.lock.queued()
    }

    pub(crate) fn pushed_back(&self) -> u64 {
        self.pushed_back.load(Relaxed)
    }

    pub(crate) fn longest_queue(&self) -> u64 {
        self.longest_queue.load(Relaxed)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.lock.waiting()
    }

    pub(crate) fn is_held(&self) -> bool {
        self.lock.is_held()
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.lock.is_poisoned()
    }
}

impl fmt::Debug for GateCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateCell")
            .field("lock", &self.lock)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
