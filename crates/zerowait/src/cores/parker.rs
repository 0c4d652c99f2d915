//! Going to sleep and being woken.
//!
//! A core that sleeps says so first and then looks at its queues once more; whoever queues something for it
//! looks at its state afterwards. Between the two stands a sequentially consistent fence on either side, so
//! either the sleeper sees the work or the other sees the sleeper. Exactly one waker pays for the wake-up and
//! notes when it decided to.

use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;

use crate::device::WakeEvent;
use crate::sync::{AtomicU32, AtomicU64, fence};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Where one core sleeps.
#[derive(Debug)]
pub(super) struct Parker {
    state: AtomicU32,
    /// When the waker decided to wake, in ticks.
    decided: AtomicU64,
    /// Locked only by whoever wakes, and when a core takes its place.
    sleeper: Mutex<Option<Sleeper>>,
}

/// What a wake-up has to reach.
#[derive(Debug)]
pub(super) enum Sleeper {
    /// A host thread that parks.
    Thread(Thread),
    /// A host thread that waits for devices, this event among them.
    Event(WakeEvent),
}

impl Parker {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU32::new(AWAKE),
            decided: AtomicU64::new(0),
            sleeper: Mutex::new(None),
        }
    }

    /// Says who sleeps here from now on.
    pub(super) fn set_sleeper(&self, sleeper: Sleeper) {
        *self.sleeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(sleeper);
    }

    /// Announces sleep. The caller then looks for work again, and sleeps only if there is none.
    pub(super) fn announce(&self) {
        self.state.store(ASLEEP, Relaxed);
        fence(SeqCst);
    }

    /// Whether nobody has woken the core since it announced sleep.
    pub(super) fn is_asleep(&self) -> bool {
        self.state.load(Relaxed) == ASLEEP
    }

    /// The core is awake; when its waker decided to wake it, if there was one.
    pub(super) fn awake(&self) -> Option<u64> {
        let woken = self.state.swap(AWAKE, AcqRel) == AWAKE;
        woken.then(|| self.decided.load(Relaxed))
    }

    /// After something was queued for the core: wakes it if it sleeps. `ticks` is read only if so; the
    /// reading if this call woke it.
    pub(super) fn wake(&self, ticks: impl Fn() -> u64) -> Option<u64> {
        fence(SeqCst);
        if self.state.load(Relaxed) == AWAKE {
            return None;
        }
        let decided = ticks();
        // Before the exchange, so that the sleeper finds it; of two wakers at once either's time will do.
        self.decided.store(decided, Relaxed);
        if self
            .state
            .compare_exchange(ASLEEP, AWAKE, AcqRel, Relaxed)
            .is_err()
        {
            return None;
        }
        match &*self.sleeper.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Sleeper::Thread(thread)) => thread.unpark(),
            Some(Sleeper::Event(event)) => event.signal(),
            None => {}
        }
        Some(decided)
    }
}
