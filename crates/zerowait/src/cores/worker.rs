//! One core: the loop that runs threads, and what it does between them.
//!
//! The core's own queue comes first, in bursts; between bursts the core looks into its inbox, at its timers
//! and devices, and at what others left. Nothing in a burst touches a line that another core writes, except
//! one look now and then at who is idle: a core with much to do hands some of it over (private queues with
//! hand-over on request, not stealing).

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use super::shared::{STOPPING, Shared, Slot};
use super::timers::Timers;
use crate::continuation::{ANYWHERE, Continuation, Kind};
use crate::device::{BufferPool, Operation, Reactor, Submit};
use crate::program::Program;
use crate::program::context::{Clockwork, Context, Running, World};
use crate::pushback::Reason;
use crate::queue::Local;
use crate::report::{PanicReport, panic_message};
use crate::time::Time;

/// How many threads run between two looks around.
const BURST: u32 = 64;
/// How many threads run between two looks at who is idle, if threads are short.
const SHARE_EVERY: u32 = 16;
/// A thread of this length is worth handing over: moving it to another core's cache costs about as much.
const WORTH_MOVING_NANOS: u64 = 250;
/// Work for at least so long is worth an idle core that is awake.
const WORTH_SHARING_NANOS: u64 = 2_000;
/// Work for at least so long is worth waking a core.
const WORTH_WAKING_NANOS: u64 = 20_000;
/// A thread of this length makes the core look at who is idle after each.
const LONG_THREAD_NANOS: u64 = 1_000;
/// How many completions are taken in one look around.
const COMPLETIONS_MOST: usize = 256;
/// How many continuations are handed over at most at once.
const SHARE_MOST: usize = 64;
/// After so many bursts a core shows its counters, though it has not been idle.
const SHOW_EVERY: u32 = 256;

/// What a core that ended had not run.
#[derive(Debug, Default)]
pub(super) struct Remains {
    pub(super) continuations: Vec<Continuation>,
    pub(super) timers: usize,
    pub(super) operations: usize,
}

/// The core's surroundings: what threads reach through their context, and the loop itself between threads.
pub(super) struct Surroundings {
    pub(super) shared: Arc<Shared>,
    pub(super) index: u16,
    timers: RefCell<Timers>,
    reactor: RefCell<Option<Reactor>>,
    operations: Cell<u64>,
}

/// What the loop remembers from one look around to the next.
struct Pace {
    bursts: u32,
    /// How long a thread runs, in ticks: a moving mean of the sampled ones.
    run_ticks: u64,
    until_share: u32,
    worth_moving: u64,
    worth_sharing: u64,
    worth_waking: u64,
    long_thread: u64,
}

impl Surroundings {
    pub(super) fn new(shared: Arc<Shared>, index: u16, reactor: Option<Reactor>) -> Self {
        let timers = RefCell::new(Timers::new(shared.config.timers));
        Self {
            shared,
            index,
            timers,
            reactor: RefCell::new(reactor),
            operations: Cell::new(0),
        }
    }

    pub(super) fn slot(&self) -> &Slot {
        &self.shared.slots[self.index as usize]
    }

    /// Runs until the executor stops or the core is told to leave; what is left to run.
    pub(super) fn run(&self) -> Remains {
        let shared = &*self.shared;
        let program = &shared.program;
        let mut local = Local::new(shared.config.queue_capacity);
        let mut counters = self.slot().published.0.counters();
        let mut runs: Vec<u64> = self
            .slot()
            .published
            .0
            .runs
            .iter()
            .map(|runs| runs.load(Relaxed))
            .collect();
        let mut context = Context {
            program,
            local: &mut local,
            world: self,
            counters: &mut counters,
            runs: &mut runs,
            clockwork: Clockwork::Sampled {
                every: shared.config.sampling,
            },
            until_stamp: 0,
            current: Running::default(),
            core: self.index,
            guaranteed: true,
            gate_batch: shared.config.gate_batch,
        };
        let nanos = |nanos| shared.clock.ticks_of(nanos);
        let mut pace = Pace {
            bursts: 0,
            run_ticks: 0,
            until_share: 1,
            worth_moving: nanos(WORTH_MOVING_NANOS),
            worth_sharing: nanos(WORTH_SHARING_NANOS),
            worth_waking: nanos(WORTH_WAKING_NANOS),
            long_thread: nanos(LONG_THREAD_NANOS),
        };
        // A panic leaves the burst, not the core: the context stays as it was, and the loop goes on with the
        // next thread.
        while let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.work(&mut context, &mut pace))) {
            self.contain(&mut context, panic_message(payload.as_ref()));
        }
        self.show(&context);
        if self.slot().leaving.load(Relaxed) && shared.state.0.load(Relaxed) != STOPPING {
            self.leave(&mut context);
            return Remains::default();
        }
        self.remains(&mut context)
    }

    /// The loop. It returns when the core is to end.
    fn work(&self, context: &mut Context<'_>, pace: &mut Pace) {
        loop {
            for _ in 0..BURST {
                let Some(continuation) = context.local.pop() else {
                    context.local.narrow();
                    break;
                };
                self.start(context, pace, continuation);
            }
            let looked = self.look_around(context, pace);
            if self.is_to_end() {
                return;
            }
            if !looked && context.local.len() == 0 {
                self.show(context);
                self.idle();
            }
        }
    }

    fn is_to_end(&self) -> bool {
        self.shared.state.0.load(Relaxed) == STOPPING || self.slot().leaving.load(Relaxed)
    }

    /// Runs one thread, timed if it was sampled; sends it on if it is bound to another core.
    #[inline(always)]
    fn start(&self, context: &mut Context<'_>, pace: &mut Pace, continuation: Continuation) {
        context.take_up(continuation);
        let Continuation {
            words,
            stamp,
            thread,
            place,
            ..
        } = continuation;
        if place != ANYWHERE && place != self.index {
            return self.send_on(context);
        }
        context.begin(thread);
        if stamp == 0 {
            let program: &Program = context.program;
            program.run(context, thread, words);
        } else {
            self.start_timed(context, pace);
        }
        pace.until_share -= 1;
        if pace.until_share == 0 {
            self.look_who_is_idle(context, pace);
        }
    }

    #[cold]
    fn look_who_is_idle(&self, context: &mut Context<'_>, pace: &mut Pace) {
        pace.until_share = if pace.run_ticks > pace.long_thread {
            1
        } else {
            SHARE_EVERY
        };
        if context.local.len() >= 2 && self.shared.idle.0.bits() != 0 {
            self.share(context, pace);
        }
    }

    /// Runs the current thread, which was sampled.
    #[cold]
    fn start_timed(&self, context: &mut Context<'_>, pace: &mut Pace) {
        let program: &Program = context.program;
        let Running {
            thread, words, stamp, ..
        } = context.current;
        let entry = &program.threads[thread as usize];
        let begun = self.shared.clock.ticks();
        entry.waited.record(begun.saturating_sub(stamp));
        program.run(context, thread, words);
        let ran = self.shared.clock.ticks().saturating_sub(begun);
        entry.ran.record(ran);
        pace.run_ticks = (3 * pace.run_ticks + ran) / 4;
        if pace.run_ticks > pace.long_thread {
            pace.until_share = 1;
        }
    }

    /// Takes in what came from elsewhere; whether there was anything.
    fn look_around(&self, context: &mut Context<'_>, pace: &mut Pace) -> bool {
        let mut found = self.run_inbox(context, pace, &self.slot().inbox);
        found |= self.expire_timers(context);
        found |= self.take_completions(context, found);
        if self.shared.departed.bits() != 0
            && let Some(inbox) = self.shared.departed_inbox()
        {
            found |= self.run_inbox(context, pace, inbox);
        }
        if self.shared.orphan_count.load(Relaxed) > 0 {
            found |= self.adopt(context);
        }
        pace.bursts += 1;
        if pace.bursts.is_multiple_of(SHOW_EVERY) {
            self.show(context);
        }
        found
    }

    /// Runs what others queued. With a full queue of its own the core takes only one at a time, which its
    /// slack has room for.
    fn run_inbox(
        &self,
        context: &mut Context<'_>,
        pace: &mut Pace,
        inbox: &crate::queue::Bounded<Continuation>,
    ) -> bool {
        let mut found = false;
        let most = if context.local.has_room() { BURST } else { 1 };
        for _ in 0..most {
            if !context.local.has_room_for_others() {
                break;
            }
            let Some(continuation) = inbox.pop() else { break };
            found = true;
            if continuation.place != self.index && continuation.place != ANYWHERE {
                context.local.push(continuation);
                continue;
            }
            self.start(context, pace, continuation);
        }
        found
    }

    /// Sends the current continuation on to the core that its thread is bound to, or keeps it for later.
    #[cold]
    fn send_on(&self, context: &mut Context<'_>) {
        let Running {
            words,
            stamp,
            thread,
            place,
        } = context.current;
        let continuation = Continuation {
            words,
            stamp,
            thread,
            place,
            kind: Kind::Start,
        };
        if self.forward(continuation, context.counters.issued).is_err() {
            context.local.push_retry(continuation);
        }
    }

    /// Hands the oldest half of the queue, as far as it is anybody's to run, to an idle core.
    #[cold]
    fn share(&self, context: &mut Context<'_>, pace: &Pace) {
        if !self.shared.config.sharing || pace.run_ticks < pace.worth_moving {
            return;
        }
        let idle = self.shared.idle.0.bits() & self.shared.active.bits() & !(1 << self.index);
        let awake = idle & !self.shared.asleep.bits();
        let worth = pace.run_ticks.saturating_mul(context.local.len() as u64);
        let candidates = match (awake, idle) {
            (0, 0) => return,
            (0, asleep) if worth >= pace.worth_waking => asleep,
            (0, _) => return,
            (awake, _) if worth >= pace.worth_sharing => awake,
            _ => return,
        };
        let core = candidates.trailing_zeros() as u16;
        let inbox = &self.shared.slots[core as usize].inbox;
        // Before others can take anything up it must count as issued.
        self.slot()
            .published
            .0
            .issued
            .store(context.counters.issued, Release);
        let mut handed = 0;
        for _ in 0..(context.local.len() / 2).min(SHARE_MOST) {
            let Some(oldest) = context.local.pop_oldest() else {
                break;
            };
            if oldest.place != ANYWHERE || inbox.push(oldest).is_err() {
                context.local.push_oldest(oldest);
                break;
            }
            handed += 1;
        }
        if handed > 0 {
            self.slot().published.0.shared.fetch_add(handed, Relaxed);
            self.shared.wake(core, Some(self.index));
        }
    }

    fn expire_timers(&self, context: &mut Context<'_>) -> bool {
        let mut timers = self.timers.borrow_mut();
        if timers.len() == 0 {
            return false;
        }
        let now = self.shared.clock.now();
        let mut found = false;
        while context.local.room_for_events() > 0
            && let Some(continuation) = timers.take_due(now)
        {
            // One that is bound elsewhere is sent on when its turn comes.
            context.local.push(continuation);
            found = true;
        }
        found
    }

    fn take_completions(&self, context: &mut Context<'_>, has_found: bool) -> bool {
        let mut reactor = self.reactor.borrow_mut();
        let Some(reactor) = reactor.as_mut() else {
            return false;
        };
        let room = context.local.room_for_events().min(COMPLETIONS_MOST);
        let sleeps_next = !has_found && context.local.len() == 0 && self.shared.config.idle.sleeps_at_once();
        let submit = if sleeps_next {
            Submit::WithWait
        } else {
            Submit::Now
        };
        reactor.poll(room, submit, &mut |continuation| context.local.push(continuation)) > 0
    }

    /// Takes over what a core that left could not finish.
    #[cold]
    fn adopt(&self, context: &mut Context<'_>) -> bool {
        let mut orphans = self.shared.orphans();
        let mut adopted = 0;
        while context.local.has_room()
            && let Some(continuation) = orphans.ready.pop_front()
        {
            context.local.push(continuation);
            adopted += 1;
        }
        let mut timers = self.timers.borrow_mut();
        while let Some((due, continuation)) = orphans.timers.pop() {
            if !timers.add(due, continuation) {
                orphans.timers.push((due, continuation));
                break;
            }
            adopted += 1;
        }
        self.shared.orphan_count.fetch_sub(adopted, Relaxed);
        adopted > 0
    }

    /// Nothing to run: looks, pauses, sleeps, until there may be something.
    #[cold]
    fn idle(&self) {
        let slot = self.slot();
        let policy = self.shared.config.idle;
        let clock = &self.shared.clock;
        slot.published.0.idled.fetch_add(1, Relaxed);
        self.shared.idle.0.insert(self.index);
        let begun = clock.now();
        let spin_until = begun + nanos(policy.spin);
        let pause_until = spin_until + nanos(policy.pause);
        loop {
            if self.shared.has_work(self.index) || self.has_device_work() {
                break;
            }
            let now = clock.now();
            if self.timers.borrow().next_due().is_some_and(|due| due <= now) {
                break;
            }
            if now < spin_until {
                std::hint::spin_loop();
            } else if now < pause_until || !policy.sleep {
                self.shared
                    .pause
                    .wait(clock, slot.inbox.watched(), || !self.shared.has_work(self.index));
            } else {
                self.sleep();
                break;
            }
        }
        self.shared.idle.0.remove(self.index);
    }

    fn has_device_work(&self) -> bool {
        self.reactor
            .borrow_mut()
            .as_mut()
            .is_some_and(Reactor::has_completion)
    }

    fn sleep(&self) {
        let slot = self.slot();
        self.shared.asleep.insert(self.index);
        slot.parker.announce();
        if !self.shared.has_work(self.index) {
            slot.published.0.slept.fetch_add(1, Relaxed);
            let timeout = self
                .timers
                .borrow()
                .next_due()
                .map(|due| std::time::Duration::from_nanos(due - self.shared.clock.now()));
            match &mut *self.reactor.borrow_mut() {
                // Returns for a completion, for the waker's event, or for the next timer.
                Some(reactor) => reactor.wait(timeout),
                None => match timeout {
                    Some(timeout) => std::thread::park_timeout(timeout),
                    None => {
                        // A park may end for no reason.
                        while slot.parker.is_asleep() {
                            std::thread::park();
                        }
                    }
                },
            }
        }
        if let Some(decided) = slot.parker.awake() {
            slot.wake_latency
                .record(self.shared.clock.ticks().saturating_sub(decided));
        }
        self.shared.asleep.remove(self.index);
    }

    /// Shows the core's counters to the others.
    fn show(&self, context: &Context<'_>) {
        let published = &self.slot().published.0;
        published.queued.store(context.local.len(), Relaxed);
        published.longest.fetch_max(context.local.longest(), Relaxed);
        published.timers.store(self.timers.borrow().len(), Relaxed);
        published.in_flight.store(
            self.reactor.borrow().as_ref().map_or(0, Reactor::in_flight),
            Relaxed,
        );
        published.operations.fetch_add(self.operations.take(), Relaxed);
        published.show(context.counters, context.runs);
    }

    /// A thread panicked: reports it, and lets a gate go on as its owner has chosen.
    fn contain(&self, context: &mut Context<'_>, message: String) {
        let Running { thread, words, .. } = context.current;
        self.shared.note_panic(PanicReport {
            time: self.shared.clock.now(),
            thread: context.program.name(thread).to_owned(),
            core: self.index,
            words,
            message,
        });
        if let Some(gate) = context.program.threads[thread as usize].gate()
            && let Some(next) = context.program.gates[gate as usize].next_after_panic()
        {
            context.continue_gate(next);
        }
    }

    /// Leaves: operations are cancelled, and everything else is left to the others.
    fn leave(&self, context: &mut Context<'_>) {
        let shared = &self.shared;
        shared.active.remove(self.index);
        shared.departed.insert(self.index);
        let mut ready = Vec::new();
        if let Some(mut reactor) = self.reactor.borrow_mut().take() {
            reactor.finish(&mut |continuation| ready.push(continuation));
        }
        while let Some(continuation) = context.local.pop_oldest() {
            ready.push(continuation);
        }
        let timers = self.timers.borrow_mut().take_all();
        let count = ready.len() + timers.len();
        {
            let mut orphans = shared.orphans();
            orphans.ready.extend(ready);
            orphans.timers.extend(timers);
            shared.orphan_count.fetch_add(count, SeqCst);
        }
        self.show(context);
        if let Some(other) = shared.active.iter().next() {
            shared.wake(other, None);
        }
    }

    /// The executor stops: counts what was not run, after the last operation has ended.
    fn remains(&self, context: &mut Context<'_>) -> Remains {
        let mut remains = Remains {
            timers: self.timers.borrow().len(),
            ..Remains::default()
        };
        while let Some(continuation) = context.local.pop_oldest() {
            remains.continuations.push(continuation);
        }
        if let Some(mut reactor) = self.reactor.borrow_mut().take() {
            remains.operations = reactor.in_flight();
            reactor.finish(&mut |_| {});
        }
        self.show(context);
        remains
    }
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl World for Surroundings {
    fn forward(&self, continuation: Continuation, issued: u64) -> Result<(), Reason> {
        // Before the other core can take it up it must count as issued.
        self.slot().published.0.issued.store(issued, Release);
        let core = continuation.place;
        self.shared
            .deliver(core, continuation, Some(self.index))
            .map_err(|_| Reason::QueueFull)
    }

    fn at(&self, due: Time, continuation: Continuation) -> Result<(), Reason> {
        if self.timers.borrow_mut().add(due, continuation) {
            Ok(())
        } else {
            Err(Reason::TimersFull)
        }
    }

    fn submit(
        &self,
        operation: Operation,
        token: u64,
        continuation: Continuation,
    ) -> Result<(), (Reason, Operation)> {
        let mut reactor = self.reactor.borrow_mut();
        let Some(reactor) = reactor.as_mut() else {
            return Err((Reason::NoDevices, operation));
        };
        // A completion is not sampled: its stamp would be when the operation was submitted.
        reactor.submit(
            operation,
            token,
            Continuation {
                stamp: 0,
                ..continuation
            },
        )?;
        self.operations.set(self.operations.get() + 1);
        Ok(())
    }

    fn now(&self) -> Time {
        self.shared.clock.now()
    }

    fn ticks(&self) -> u64 {
        self.shared.clock.ticks()
    }

    fn buffers(&self) -> Option<&BufferPool> {
        self.shared.buffers.as_deref()
    }
}
