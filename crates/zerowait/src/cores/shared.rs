//! What all cores of one executor share: the program, each core's inbox and parker, who is idle, and who has
//! left.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clock::Clock;
use super::config::Config;
use super::parker::Parker;
use super::processor::Pause;
use crate::continuation::Continuation;
use crate::device::BufferPool;
use crate::histogram::Live;
use crate::program::Program;
use crate::program::context::Counters;
use crate::queue::Bounded;
use crate::report::{PANICS_KEPT, PanicReport};
use crate::sync::CacheLine;
use crate::time::Time;

/// The executor takes part in whatever comes.
pub(super) const RUNNING: u32 = 0;
/// What is queued runs on, nothing comes in from outside.
pub(super) const DRAINING: u32 = 1;
/// Every core ends after the thread it runs.
pub(super) const STOPPING: u32 = 2;

/// A set of cores that any core may read and change.
#[derive(Debug, Default)]
pub(super) struct CoreSet(AtomicU64);

impl CoreSet {
    pub(super) fn insert(&self, core: u16) {
        self.0.fetch_or(1 << core, SeqCst);
    }

    pub(super) fn remove(&self, core: u16) {
        self.0.fetch_and(!(1 << core), SeqCst);
    }

    pub(super) fn contains(&self, core: u16) -> bool {
        self.0.load(SeqCst) & 1 << core != 0
    }

    /// The set as bits, possibly a moment old.
    #[inline]
    pub(super) fn bits(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u16> + Clone + use<> {
        let bits = self.0.load(SeqCst);
        (0..u64::BITS as u16).filter(move |core| bits & 1 << core != 0)
    }
}

pub(super) struct Shared {
    pub(super) program: Program,
    pub(super) config: Config,
    pub(super) clock: Clock,
    pub(super) pause: Pause,
    pub(super) slots: Box<[Slot]>,
    pub(super) state: CacheLine<AtomicU32>,
    /// Cores that look for work, awake or asleep.
    pub(super) idle: CacheLine<CoreSet>,
    /// Cores that sleep, or are about to.
    pub(super) asleep: CoreSet,
    pub(super) active: CoreSet,
    /// Cores that have left, whose inboxes the others empty.
    pub(super) departed: CoreSet,
    /// Continuations that came in from outside.
    pub(super) from_outside: AtomicU64,
    pub(super) buffers: Option<Arc<BufferPool>>,
    orphans: Mutex<Orphans>,
    pub(super) orphan_count: AtomicUsize,
    panics: Mutex<Panics>,
    next_core: AtomicUsize,
}

/// What one core shows to the others.
pub(super) struct Slot {
    pub(super) inbox: Bounded<Continuation>,
    pub(super) parker: Parker,
    pub(super) leaving: AtomicBool,
    pub(super) published: CacheLine<Published>,
    pub(super) wake_latency: Live,
    pub(super) wake_cost: Live,
    /// The processor that the core is bound to, plus 1.
    pub(super) processor: AtomicUsize,
}

/// What a core last said about itself. Only the core writes.
#[derive(Default)]
pub(super) struct Published {
    pub(super) issued: AtomicU64,
    pub(super) executed: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) forwarded: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) shared: AtomicU64,
    pub(super) idled: AtomicU64,
    pub(super) slept: AtomicU64,
    pub(super) operations: AtomicU64,
    pub(super) queued: AtomicUsize,
    pub(super) longest: AtomicUsize,
    pub(super) timers: AtomicUsize,
    pub(super) in_flight: AtomicUsize,
    pub(super) runs: Box<[AtomicU64]>,
}

/// What a leaving core could not finish itself.
#[derive(Default)]
pub(super) struct Orphans {
    pub(super) ready: VecDeque<Continuation>,
    pub(super) timers: Vec<(Time, Continuation)>,
}

#[derive(Default)]
struct Panics {
    first: Vec<PanicReport>,
    count: u64,
}

impl Slot {
    pub(super) fn new(program: &Program, config: &Config) -> Self {
        Self {
            inbox: Bounded::new(config.inbox_capacity),
            parker: Parker::new(),
            leaving: AtomicBool::new(false),
            published: CacheLine(Published {
                runs: program.threads.iter().map(|_| AtomicU64::new(0)).collect(),
                ..Published::default()
            }),
            wake_latency: Live::default(),
            wake_cost: Live::default(),
            processor: AtomicUsize::new(0),
        }
    }
}

impl Published {
    /// Shows the counters. `issued` first: whoever sees that something was executed sees that it had been
    /// issued.
    pub(super) fn show(&self, counters: &Counters, runs: &[u64]) {
        self.issued.store(counters.issued, Release);
        self.executed.store(counters.executed, Release);
        self.retried.store(counters.retried, Relaxed);
        self.forwarded.store(counters.forwarded, Relaxed);
        self.refused.store(counters.refused, Relaxed);
        for (shown, runs) in self.runs.iter().zip(runs) {
            shown.store(*runs, Relaxed);
        }
    }

    /// The counters as they were shown, for a core that takes this slot again.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            issued: self.issued.load(Relaxed),
            executed: self.executed.load(Relaxed),
            retried: self.retried.load(Relaxed),
            forwarded: self.forwarded.load(Relaxed),
            refused: self.refused.load(Relaxed),
        }
    }
}

impl Shared {
    pub(super) fn new(program: Program, config: Config) -> Self {
        let buffers = (config.devices != super::Devices::Off)
            .then(|| Arc::new(BufferPool::new(config.buffers, config.buffer_size)));
        Self {
            slots: (0..config.cores_max)
                .map(|_| Slot::new(&program, &config))
                .collect(),
            program,
            config,
            clock: Clock::start(),
            pause: Pause::detect(),
            state: CacheLine(AtomicU32::new(RUNNING)),
            idle: CacheLine(CoreSet::default()),
            asleep: CoreSet::default(),
            active: CoreSet::default(),
            departed: CoreSet::default(),
            from_outside: AtomicU64::new(0),
            buffers,
            orphans: Mutex::default(),
            orphan_count: AtomicUsize::new(0),
            panics: Mutex::default(),
            next_core: AtomicUsize::new(0),
        }
    }

    /// Queues a continuation for a core and sees to it that somebody looks. `by` is the core that pays for
    /// the wake-up.
    pub(super) fn deliver(
        &self,
        core: u16,
        continuation: Continuation,
        by: Option<u16>,
    ) -> Result<(), Continuation> {
        self.slots[core as usize].inbox.push(continuation)?;
        self.wake(core, by);
        Ok(())
    }

    /// After something was queued for `core`: wakes it if it sleeps, or another if it has left.
    pub(super) fn wake(&self, core: u16, by: Option<u16>) {
        fence(SeqCst);
        let target = if self.active.contains(core) {
            Some(core)
        } else {
            self.active.iter().next()
        };
        let Some(target) = target else { return };
        let woken = self.slots[target as usize].parker.wake(|| self.clock.ticks());
        if let (Some(decided), Some(by)) = (woken, by) {
            self.slots[by as usize]
                .wake_cost
                .record(self.clock.ticks().saturating_sub(decided));
        }
    }

    /// Wakes every core, to see a changed state.
    pub(super) fn wake_all(&self) {
        (0..self.slots.len() as u16).for_each(|core| {
            self.slots[core as usize].parker.wake(|| self.clock.ticks());
        });
    }

    /// The cores to offer something from outside, best first: one that idles awake, then all in turn.
    pub(super) fn offers(&self) -> impl Iterator<Item = u16> + '_ {
        let awake = self.idle.0.bits() & !self.asleep.bits() & self.active.bits();
        let idle = (awake != 0).then(|| awake.trailing_zeros() as u16);
        let first = self.next_core.fetch_add(1, Relaxed);
        let active = self.active.iter();
        let count = self.active.iter().count();
        let turn = active.cycle().skip(first % count.max(1)).take(count);
        idle.into_iter().chain(turn)
    }

    /// Whether core `core` has something to look at.
    pub(super) fn has_work(&self, core: u16) -> bool {
        let slot = &self.slots[core as usize];
        slot.inbox.has_value()
            || slot.leaving.load(Relaxed)
            || self.state.0.load(Relaxed) == STOPPING
            || self.orphan_count.load(Relaxed) > 0
            || (self.departed.bits() != 0 && self.departed_inbox().is_some())
    }

    /// The inbox of a core that has left, with something in it.
    pub(super) fn departed_inbox(&self) -> Option<&Bounded<Continuation>> {
        self.departed
            .iter()
            .map(|core| &self.slots[core as usize].inbox)
            .find(|inbox| inbox.has_value())
    }

    /// What leaving cores left behind.
    pub(super) fn orphans(&self) -> MutexGuard<'_, Orphans> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_panic(&self, panic: PanicReport) {
        let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        panics.count += 1;
        if panics.first.len() < PANICS_KEPT {
            panics.first.push(panic);
        }
    }

    /// The first panics, and how many there were.
    pub(super) fn panics(&self) -> (Vec<PanicReport>, u64) {
        let panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        (panics.first.clone(), panics.count)
    }

    /// Whether everything issued has been executed, timers and device operations with it.
    ///
    /// What was executed is read first. A core shows what it issued before another can take it up, and before
    /// it shows what it executed itself; so equality means that nothing was under way when the last count was
    /// read.
    pub(super) fn is_quiet(&self) -> bool {
        let published = || self.slots.iter().map(|slot| &slot.published.0);
        let executed: u64 = published()
            .map(|published| published.executed.load(Acquire))
            .sum();
        fence(SeqCst);
        let issued: u64 = published().map(|published| published.issued.load(Acquire)).sum();
        executed == issued + self.from_outside.load(SeqCst)
    }
}
