//! One partition of the simulated machine: its events, its cores, and the threads that run there.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::event::EventQueue;
use super::trace::Start;
use super::{Config, DeviceModel, Stuck};
use crate::attributes::Phase;
use crate::continuation::{ANYWHERE, Continuation, Kind};
use crate::device::{BufferPool, Completion, Operation};
use crate::join::{Activation, Bring};
use crate::payload::Payload;
use crate::program::context::{Clockwork, Context, Counters, Running, World};
use crate::program::{Body, Program};
use crate::pushback::Reason;
use crate::queue::Local;
use crate::report::{CoreReport, Left, PANICS_KEPT, PanicReport, panic_message};
use crate::time::Time;

/// The thread number of the event that a core becomes free; `place` is the core.
const CORE_FREE: u32 = u32::MAX;

/// A continuation on its way to another partition, due at its stamp.
pub(super) type Message = Continuation;

pub(super) struct Partition {
    index: u16,
    events: EventQueue,
    /// One bit for each core that runs nothing.
    free_cores: u64,
    /// Ready threads that found no free core, with the order they came in: any core's, and each core's own.
    ready: VecDeque<(u64, Phase, Continuation)>,
    ready_bound: Vec<VecDeque<(u64, Phase, Continuation)>>,
    waiting: usize,
    arrivals: u64,
    outbox: Local,
    outgoing: Vec<Vec<Message>>,
    devices: Option<Box<dyn DeviceModel>>,
    buffers: BufferPool,
    completions: Vec<Continuation>,
    operations: u64,
    counters: Vec<Counters>,
    busy: Vec<u64>,
    runs: Vec<u64>,
    reached: Time,
    started: u64,
    starts: Vec<Start>,
    panics: Vec<PanicReport>,
    panic_count: u64,
    events_this_moment: u64,
    stuck_at: Option<u32>,
    longest: usize,
    config: Config,
}

/// The [`World`] of a thread that runs in virtual time.
struct Devices<'a> {
    model: RefCell<&'a mut Option<Box<dyn DeviceModel>>>,
    buffers: &'a BufferPool,
    completions: RefCell<&'a mut Vec<Continuation>>,
    operations: Cell<u64>,
}

impl Partition {
    pub(super) fn new(index: usize, partitions: usize, program: &Program, config: &Config) -> Self {
        let cores = usize::from(config.cores);
        Self {
            index: index as u16,
            events: EventQueue::default(),
            free_cores: u64::MAX >> (u64::BITS - u32::from(config.cores)),
            ready: VecDeque::new(),
            ready_bound: vec![VecDeque::new(); cores],
            waiting: 0,
            arrivals: 0,
            outbox: Local::new(config.fan_out),
            outgoing: vec![Vec::new(); partitions],
            devices: None,
            buffers: BufferPool::new(config.buffers, config.buffer_size),
            completions: Vec::new(),
            operations: 0,
            counters: vec![Counters::default(); cores],
            busy: vec![0; cores],
            runs: vec![0; program.threads.len()],
            reached: Time(0),
            started: 0,
            starts: Vec::new(),
            panics: Vec::new(),
            panic_count: 0,
            events_this_moment: 0,
            stuck_at: None,
            longest: 0,
            config: config.clone(),
        }
    }

    pub(super) fn set_devices(&mut self, devices: Box<dyn DeviceModel>) {
        self.devices = Some(devices);
    }

    pub(super) fn index(&self) -> u16 {
        self.index
    }

    /// How many events have not happened and threads have not started.
    pub(super) fn pending(&self) -> usize {
        self.events.len() + self.waiting
    }

    /// The end of the last thread so far.
    pub(super) fn reached(&self) -> Time {
        self.reached
    }

    pub(super) fn next_time(&self) -> Option<Time> {
        if self.stuck_at.is_some() {
            None
        } else {
            self.events.next_time()
        }
    }

    pub(super) fn arrive_from_outside(&mut self, program: &Program, continuation: Continuation) {
        self.add(program, continuation);
    }

    /// Adds an event of this partition at its stamp, in the phase that its kind and thread give.
    fn add(&mut self, program: &Program, continuation: Continuation) {
        let declared = program.threads[continuation.thread as usize].phase;
        let phase = match (continuation.kind, declared) {
            (Kind::Retry, Phase::Run) => Phase::Retry,
            (Kind::Event, Phase::Run) => Phase::Device,
            (_, declared) => declared,
        };
        self.events.add(Time(continuation.stamp), phase, continuation);
    }

    /// Does everything that happens before `end`.
    pub(super) fn run_window(&mut self, program: &Program, end: Time) {
        while let Some((phase, continuation, new_moment)) = self.events.next(end) {
            if new_moment {
                self.events_this_moment = 0;
            }
            self.events_this_moment += 1;
            self.happen(program, phase, continuation);
            if self.events_this_moment > self.config.events_per_moment {
                self.stuck_at = Some(if continuation.thread == CORE_FREE {
                    0
                } else {
                    continuation.thread
                });
                return;
            }
        }
    }

    fn happen(&mut self, program: &Program, phase: Phase, continuation: Continuation) {
        if continuation.thread == CORE_FREE {
            self.free_cores |= 1 << continuation.place;
            // A thread that takes no time leaves the core free for the next.
            while self.free_cores & 1 << continuation.place != 0
                && let Some((phase, next)) = self.next_ready(continuation.place)
            {
                self.execute(program, phase, continuation.place, next);
            }
            return;
        }
        match continuation.kind {
            Kind::Signal => self.count_down(program, phase, continuation),
            Kind::Finish => self.pass_on(program, continuation),
            Kind::Start | Kind::Retry | Kind::Event => self.start(program, phase, continuation),
        }
    }

    /// The time of a gate's thread is over: its next entry starts.
    fn pass_on(&mut self, program: &Program, finish: Continuation) {
        let entry = &program.threads[finish.thread as usize];
        let gate = &program.gates[entry.gate().expect("only gates are passed on") as usize];
        let next = if finish.words[0] == 0 {
            gate.next()
        } else {
            gate.next_after_panic()
        };
        if let Some(words) = next {
            self.start(
                program,
                entry.phase,
                Continuation {
                    words,
                    kind: Kind::Start,
                    ..finish
                },
            );
        }
    }

    /// A continuation reaches a join.
    fn count_down(&mut self, program: &Program, phase: Phase, signal: Continuation) {
        let Body::Join(join, _) = program.threads[signal.thread as usize].body else {
            unreachable!("only joins are signalled");
        };
        let activation = Activation::<()>::from_word(signal.words[0]);
        let bring = Bring::from_words(signal.words);
        let counted = catch_unwind(AssertUnwindSafe(|| {
            program.joins[join as usize].signal(activation.index, activation.generation, bring)
        }));
        match counted {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(words))) => self.start(
                program,
                phase,
                Continuation {
                    words,
                    kind: Kind::Start,
                    ..signal
                },
            ),
            Ok(Err(_)) => {
                let message = format!(
                    "join `{}` has had all its continuations",
                    program.name(signal.thread)
                );
                self.note_panic(program, 0, &signal, message);
            }
            Err(payload) => self.note_panic(program, 0, &signal, panic_message(payload.as_ref())),
        }
    }

    /// A thread is ready: it runs if its core is free, and otherwise waits for it.
    fn start(&mut self, program: &Program, phase: Phase, continuation: Continuation) {
        let core = match continuation.place {
            ANYWHERE => (self.free_cores != 0).then(|| self.free_cores.trailing_zeros() as u16),
            core => (self.free_cores & 1 << core != 0).then_some(core),
        };
        if let Some(core) = core {
            self.execute(program, phase, core, continuation);
            return;
        }
        self.arrivals += 1;
        self.waiting += 1;
        let queue = match continuation.place {
            ANYWHERE => &mut self.ready,
            core => &mut self.ready_bound[core as usize],
        };
        queue.push_back((self.arrivals, phase, continuation));
    }

    /// The thread that a core takes when it becomes free: of its own and of anybody's, the one that came
    /// first.
    fn next_ready(&mut self, core: u16) -> Option<(Phase, Continuation)> {
        let bound = &mut self.ready_bound[core as usize];
        let first =
            |queue: &VecDeque<(u64, Phase, Continuation)>| queue.front().map_or(u64::MAX, |entry| entry.0);
        let queue = if first(bound) < first(&self.ready) {
            bound
        } else {
            &mut self.ready
        };
        let (_, phase, continuation) = queue.pop_front()?;
        self.waiting -= 1;
        Some((phase, continuation))
    }

    /// Runs a thread on a free core, and puts what it issued among the events.
    fn execute(&mut self, program: &Program, phase: Phase, core: u16, continuation: Continuation) {
        let now = self.events.now();
        self.started += 1;
        if self.config.trace {
            let thread = continuation.thread;
            self.starts.push(Start {
                time: now,
                phase,
                sequence: self.started,
                core,
                thread,
            });
        }
        let pending = self.pending();
        self.longest = self.longest.max(pending);
        self.outbox.set_limit(
            self.config
                .fan_out
                .min(self.config.capacity.saturating_sub(pending)),
        );
        let devices = Devices {
            model: RefCell::new(&mut self.devices),
            buffers: &self.buffers,
            completions: RefCell::new(&mut self.completions),
            operations: Cell::new(self.operations),
        };
        let mut context = Context {
            program,
            local: &mut self.outbox,
            world: &devices,
            counters: &mut self.counters[core as usize],
            runs: &mut self.runs,
            clockwork: Clockwork::Virtual { now },
            until_stamp: 0,
            current: Running::default(),
            core,
            guaranteed: true,
            // One entry is one event, so that each is timed and ordered by itself.
            gate_batch: 1,
        };
        context.take_up(continuation);
        context.begin(continuation.thread);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            program.run(&mut context, continuation.thread, continuation.words)
        }));
        let Clockwork::Virtual { now: ended } = context.clockwork else {
            unreachable!("a context does not change its clockwork");
        };
        self.operations = devices.operations.get();
        let entry = &program.threads[continuation.thread as usize];
        if entry.gate().is_some() {
            let words = [u64::from(outcome.is_err()), 0, 0, 0];
            self.events.add(
                ended,
                Phase::Free,
                Continuation {
                    words,
                    stamp: ended.0,
                    kind: Kind::Finish,
                    ..continuation
                },
            );
        }
        if let Err(payload) = outcome {
            self.note_panic(program, core, &continuation, panic_message(payload.as_ref()));
        }
        entry.waited.record(now - Time(continuation.stamp));
        entry.ran.record(ended - now);
        self.busy[core as usize] += ended - now;
        self.reached = self.reached.max(ended);
        if ended > now {
            self.free_cores &= !(1 << core);
            let free = Continuation {
                thread: CORE_FREE,
                place: core,
                ..Continuation::default()
            };
            self.events.add(ended, Phase::Free, free);
        }
        self.post(program, now);
    }

    /// Sends what the thread that ran at `now` has issued.
    fn post(&mut self, program: &Program, now: Time) {
        while let Some(mut issued) = self.outbox.pop_oldest() {
            if issued.kind == Kind::Retry {
                issued.stamp = issued.stamp.max((now + self.config.retry_ticks).0);
            }
            let destination = program.threads[issued.thread as usize].partition;
            if destination == self.index {
                self.add(program, issued);
                continue;
            }
            issued.stamp = match issued.kind {
                Kind::Event => issued.stamp.max((now + self.config.lookahead).0),
                _ => (Time(issued.stamp) + self.config.lookahead).0,
            };
            self.outgoing[destination as usize].push(issued);
        }
        for completion in std::mem::take(&mut self.completions) {
            let destination = program.threads[completion.thread as usize].partition;
            if destination == self.index {
                self.add(program, completion);
            } else {
                let stamp = completion.stamp.max((now + self.config.lookahead).0);
                self.outgoing[destination as usize].push(Continuation { stamp, ..completion });
            }
        }
    }

    /// Moves what is for partition `destination` into its mail.
    pub(super) fn hand_over(&mut self, destination: usize, mail: &mut Vec<Message>) {
        mail.append(&mut self.outgoing[destination]);
    }

    /// Takes in what another partition sent.
    pub(super) fn take_in(&mut self, program: &Program, mail: &mut Vec<Message>) {
        for message in mail.drain(..) {
            self.add(program, message);
        }
    }

    fn note_panic(&mut self, program: &Program, core: u16, continuation: &Continuation, message: String) {
        self.panic_count += 1;
        if self.panics.len() < PANICS_KEPT {
            self.panics.push(PanicReport {
                time: self.events.now(),
                thread: program.name(continuation.thread).to_owned(),
                core,
                words: continuation.words,
                message,
            });
        }
    }

    pub(super) fn stuck(&self, program: &Program) -> Option<Stuck> {
        let thread = program.name(self.stuck_at?).to_owned();
        Some(Stuck {
            time: self.events.now(),
            thread,
        })
    }

    pub(super) fn starts(&self) -> &[Start] {
        &self.starts
    }

    pub(super) fn buffers_in_use(&self) -> usize {
        self.buffers.in_use()
    }

    pub(super) fn add_runs(&self, runs: &mut [u64]) {
        for (sum, mine) in runs.iter_mut().zip(&self.runs) {
            *sum += mine;
        }
    }

    pub(super) fn add_panics(&self, panics: &mut Vec<PanicReport>) -> u64 {
        panics.extend_from_slice(&self.panics);
        self.panic_count
    }

    /// Counts what has not been run: by thread, or as timers and completions that are not due.
    pub(super) fn add_left(&self, threads: &mut [u64], left: &mut Left) {
        let now = self.events.now();
        let is_start = |event: &&Continuation| event.thread != CORE_FREE && event.kind != Kind::Finish;
        for continuation in self.events.iter().filter(is_start) {
            left.count(threads, continuation, now);
        }
        for (_, _, continuation) in self.ready.iter().chain(self.ready_bound.iter().flatten()) {
            threads[continuation.thread as usize] += 1;
        }
    }

    pub(super) fn core_reports(&self) -> impl Iterator<Item = CoreReport> + '_ {
        self.counters
            .iter()
            .enumerate()
            .map(|(core, counters)| CoreReport {
                core: core as u16,
                partition: self.index,
                active: true,
                // The partition's queue is one for all its cores; it is reported with the first.
                queued: if core == 0 { self.pending() } else { 0 },
                longest_queue: if core == 0 { self.longest } else { 0 },
                executed: counters.executed,
                issued: counters.issued,
                retried: counters.retried,
                refused: counters.refused,
                busy: self.busy[core],
                operations: if core == 0 { self.operations } else { 0 },
                ..CoreReport::default()
            })
    }
}

impl World for Devices<'_> {
    fn forward(&self, _: Continuation, _: u64) -> Result<(), Reason> {
        unreachable!("in virtual time every continuation goes through the outbox")
    }

    fn at(&self, _: Time, _: Continuation) -> Result<(), Reason> {
        unreachable!("in virtual time every continuation goes through the outbox")
    }

    fn submit(
        &self,
        operation: Operation,
        token: u64,
        continuation: Continuation,
    ) -> Result<(), (Reason, Operation)> {
        let mut model = self.model.borrow_mut();
        let Some(model) = &mut **model else {
            return Err((Reason::NoDevices, operation));
        };
        let (start, length) = operation.extent(self.buffers.size());
        let now = Time(continuation.stamp);
        let response = match operation.buffer() {
            Some(buffer) => model.start(
                now,
                &operation,
                &mut self.buffers.lock(buffer)[start..start + length],
            ),
            None => model.start(now, &operation, &mut []),
        };
        self.operations.set(self.operations.get() + 1);
        let descriptor = operation.descriptor();
        let completion = Completion::new(response.outcome, token, operation.into_buffer(), descriptor);
        let stamp = (now + response.after).0;
        self.completions.borrow_mut().push(Continuation {
            words: completion.into_words(),
            stamp,
            ..continuation
        });
        Ok(())
    }

    fn now(&self) -> Time {
        unreachable!("in virtual time the context knows the time")
    }

    fn ticks(&self) -> u64 {
        unreachable!("in virtual time the context knows the time")
    }

    fn buffers(&self) -> Option<&BufferPool> {
        Some(self.buffers)
    }
}
