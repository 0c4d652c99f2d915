//! What an executor reports: who ran how often and how long, what waits where, what was pushed back, what
//! panicked, and what was left over at shutdown.

use std::any::Any;
use std::fmt;

use crate::gate::Policy;
use crate::histogram::Histogram;
use crate::mode::Mode;
use crate::payload::Words;
use crate::program::{Body, Program};
use crate::time::Time;

/// How many panics are reported in full; the rest is counted.
pub(crate) const PANICS_KEPT: usize = 64;

/// The state of an executor, live or at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// When the report was made.
    pub time: Time,
    /// The threads, in the order of their declaration.
    pub threads: Vec<ThreadReport>,
    /// The gates, in the order of their declaration.
    pub gates: Vec<GateReport>,
    /// The joins, in the order of their declaration.
    pub joins: Vec<JoinReport>,
    /// The cores.
    pub cores: Vec<CoreReport>,
    /// The first panics.
    pub panics: Vec<PanicReport>,
    /// How many panics there were in all.
    pub panic_count: u64,
    /// What had not been run.
    pub left: Left,
}

/// One thread's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadReport {
    /// Its name.
    pub name: String,
    /// Its mode.
    pub mode: Mode,
    /// How often it started.
    pub runs: u64,
    /// How long it ran, in ticks. On cores of a sample of the runs.
    pub ran: Histogram,
    /// How long it waited from being continued to until it started, in ticks. On cores of a sample of the
    /// runs.
    pub waited: Histogram,
}

/// One gate's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateReport {
    /// Its name.
    pub name: String,
    /// What it does with entries while it is taken.
    pub policy: Policy,
    /// Entries that it served.
    pub served: u64,
    /// Entries that found it taken and were queued.
    pub queued: u64,
    /// Entries that it pushed back.
    pub pushed_back: u64,
    /// The greatest length of its queue.
    pub longest_queue: u64,
    /// Entries that wait now.
    pub waiting: usize,
    /// Whether a hold keeps it taken.
    pub held: bool,
    /// Whether a panic put it out of order.
    pub poisoned: bool,
}

/// One join's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinReport {
    /// Its name.
    pub name: String,
    /// Activations that wait for continuations.
    pub waiting: usize,
    /// Continuations that they wait for, in all.
    pub missing: u64,
    /// How often an activation was asked for when none was free.
    pub exhausted: u64,
}

/// One core's account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreReport {
    /// Its number in the executor.
    pub core: u16,
    /// In virtual time: its partition.
    pub partition: u16,
    /// The host's processor it is pinned to.
    pub processor: Option<usize>,
    /// Whether it takes part now.
    pub active: bool,
    /// Continuations queued on it now: its own, and those that others sent.
    pub queued: usize,
    /// The greatest length of its own queue.
    pub longest_queue: usize,
    /// Threads run.
    pub executed: u64,
    /// Continuations issued.
    pub issued: u64,
    /// Continuations of a thread to itself.
    pub retried: u64,
    /// Continuations sent to another core because their thread is bound to it.
    pub forwarded: u64,
    /// Continuations handed back to threads because a queue was full.
    pub refused: u64,
    /// Continuations handed over to an idle core.
    pub shared: u64,
    /// Ticks during which it ran threads (virtual time).
    pub busy: u64,
    /// Times it ran out of work.
    pub idled: u64,
    /// Times it went to sleep after that.
    pub slept: u64,
    /// How long a wake-up took, in ticks: from the waker's decision to the first look at the queues.
    pub wake_latency: Histogram,
    /// What waking another core cost this one, in ticks.
    pub wake_cost: Histogram,
    /// Device operations submitted.
    pub operations: u64,
}

/// A panic of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanicReport {
    /// When.
    pub time: Time,
    /// Which thread.
    pub thread: String,
    /// On which core.
    pub core: u16,
    /// What it had been started with.
    pub words: Words,
    /// What it said.
    pub message: String,
}

/// What an executor had not run when it stopped; of a live report, what it has still to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Queued continuations by the name of their thread (at shutdown only).
    pub continuations: Vec<(String, u64)>,
    /// Timers that had not expired.
    pub timers: usize,
    /// Device operations that were in flight.
    pub operations: usize,
    /// Device buffers that were not in the pool.
    pub buffers: usize,
}

impl Report {
    /// Whether nothing was left: no continuation, entry, activation, timer or operation.
    pub fn is_drained(&self) -> bool {
        self.left.continuations.is_empty()
            && self.left.timers == 0
            && self.left.operations == 0
            && self.gates.iter().all(|gate| gate.waiting == 0)
            && self.joins.iter().all(|join| join.waiting == 0)
    }

    /// The account of the thread of this name.
    pub fn thread(&self, name: &str) -> Option<&ThreadReport> {
        self.threads.iter().find(|thread| thread.name == name)
    }

    /// The account of the gate of this name.
    pub fn gate(&self, name: &str) -> Option<&GateReport> {
        self.gates.iter().find(|gate| gate.name == name)
    }

    /// How many threads ran in all.
    pub fn executed(&self) -> u64 {
        self.cores.iter().map(|core| core.executed).sum()
    }

    /// The parts that the program itself knows; `scale` turns recorded durations into ticks.
    pub(crate) fn of_program(program: &Program, runs: &[u64], scale: (u64, u64), time: Time) -> Self {
        let mut report = Report {
            time,
            ..Report::default()
        };
        for (thread, runs) in program.threads.iter().zip(runs) {
            match thread.body {
                Body::Shared(_) => {}
                Body::Join(join, _) => report
                    .joins
                    .push(JoinReport::of(&thread.name, &program.joins[join as usize])),
                Body::Gate(gate) => report
                    .gates
                    .push(GateReport::of(&thread.name, &program.gates[gate as usize])),
            }
            report.threads.push(ThreadReport {
                name: thread.name.clone(),
                mode: thread.mode,
                runs: *runs,
                ran: thread.ran.read(scale),
                waited: thread.waited.read(scale),
            });
        }
        report
    }
}

impl GateReport {
    fn of(name: &str, gate: &crate::program::gate::GateCell) -> Self {
        Self {
            name: name.to_owned(),
            policy: gate.policy(),
            served: gate.served(),
            queued: gate.queued(),
            pushed_back: gate.pushed_back(),
            longest_queue: gate.longest_queue(),
            waiting: gate.waiting(),
            held: gate.is_held(),
            poisoned: gate.is_poisoned(),
        }
    }
}

impl JoinReport {
    fn of(name: &str, join: &crate::join::JoinTable) -> Self {
        let (waiting, missing) = join.waiting().fold((0, 0), |(waiting, missing), counter| {
            (waiting + 1, missing + u64::from(counter))
        });
        Self {
            name: name.to_owned(),
            waiting,
            missing,
            exhausted: join.exhausted(),
        }
    }
}

/// What a panic said.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(message) = payload.downcast_ref::<&str>() {
        (*message).to_owned()
    } else if let Some(message) = payload.downcast_ref::<String>() {
        message.clone()
    } else {
        "a value that is no text".to_owned()
    }
}

/// One line for each thing that happened, in a fixed order.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "time {}", self.time)?;
        for thread in &self.threads {
            writeln!(
                f,
                "thread `{}` ({}): {} runs",
                thread.name, thread.mode, thread.runs
            )?;
            if thread.ran.count() > 0 {
                writeln!(f, "  ran    {}", thread.ran)?;
            }
            if thread.waited.count() > 0 {
                writeln!(f, "  waited {}", thread.waited)?;
            }
        }
        for gate in &self.gates {
            let state = match (gate.poisoned, gate.held) {
                (true, _) => ", out of order",
                (false, true) => ", held",
                (false, false) => "",
            };
            writeln!(
                f,
                "gate `{}`: {} served, {} queued (longest queue {}), {} pushed back, {} waiting{state}",
                gate.name, gate.served, gate.queued, gate.longest_queue, gate.pushed_back, gate.waiting
            )?;
        }
        for join in &self.joins {
            writeln!(
                f,
                "join `{}`: {} waiting for {} continuations, {} times exhausted",
                join.name, join.waiting, join.missing, join.exhausted
            )?;
        }
        for core in &self.cores {
            writeln!(
                f,
                "core {}.{}: {} executed, {} issued, {} retried, {} forwarded, {} shared, {} refused, \
                 {} queued (longest queue {}), busy {}, idled {}, slept {}, {} device operations",
                core.partition,
                core.core,
                core.executed,
                core.issued,
                core.retried,
                core.forwarded,
                core.shared,
                core.refused,
                core.queued,
                core.longest_queue,
                core.busy,
                core.idled,
                core.slept,
                core.operations
            )?;
            if core.wake_latency.count() > 0 {
                writeln!(f, "  woken  {}", core.wake_latency)?;
            }
            if core.wake_cost.count() > 0 {
                writeln!(f, "  waking {}", core.wake_cost)?;
            }
        }
        for panic in &self.panics {
            writeln!(
                f,
                "panic at {} on core {}: thread `{}` started with {:?}: {}",
                panic.time, panic.core, panic.thread, panic.words, panic.message
            )?;
        }
        if self.panic_count > self.panics.len() as u64 {
            writeln!(
                f,
                "and {} panics more",
                self.panic_count - self.panics.len() as u64
            )?;
        }
        for (thread, count) in &self.left.continuations {
            writeln!(f, "left: {count} continuations to `{thread}`")?;
        }
        if self.left.timers + self.left.operations + self.left.buffers > 0 {
            writeln!(
                f,
                "left: {} timers, {} device operations, {} buffers in use",
                self.left.timers, self.left.operations, self.left.buffers
            )?;
        }
        Ok(())
    }
}
