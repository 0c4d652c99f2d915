//! The executor in deterministic virtual time.
//!
//! The machine that it simulates has partitions with one or more cores each. Time moves from event to event;
//! events of one partition are ordered by (time, [phase](crate::Phase), sequence number). A thread takes the
//! time it [spends](crate::Context::spend), and its core is busy meanwhile. Gates, joins and device models
//! belong to a partition; what crosses to another takes at least the *lookahead*. A gate stays taken for the
//! time that its thread spends; what a thread itself does to gates and activations, such as entering, it does
//! at its start, before it has spent anything. Because of the lookahead all partitions can be simulated side
//! by side for one lookahead, and what crossed is then put in order by the sending partition: the result does
//! not depend on how many host threads do it.
//!
//! ```
//! use sidestep_zerowait::virtual_time::{Config, VirtualTime};
//! use sidestep_zerowait::{Graph, Mode, Time};
//!
//! let mut graph = Graph::new();
//! let countdown = graph.declare::<u64>("countdown", Mode::User);
//! let again = graph.edge(countdown, countdown)?;
//! let start = graph.port(countdown);
//! graph.define(countdown, move |cx, n| {
//!     cx.spend(10);
//!     if n > 0 {
//!         cx.continue_to(again, n - 1);
//!     }
//! });
//! let mut machine = VirtualTime::new(graph.build()?, Config::default())?;
//! machine.send(start, 3)?;
//! assert_eq!(machine.run()?, Time(40));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod event;
mod parallel;
mod partition;
mod trace;

pub use trace::TraceEntry;

use crate::continuation::{Continuation, Kind};
use crate::device::Operation;
use crate::handle::Port;
use crate::payload::Payload;
use crate::program::Program;
use crate::pushback::{Pushback, Reason};
use crate::report::{Left, PANICS_KEPT, Report};
use crate::time::Time;
use partition::Partition;

/// The most cores that a partition can have.
pub const CORES_MAX: u16 = 64;

/// The simulated machine, and how to simulate it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Cores in each partition, 1 to [`CORES_MAX`].
    pub cores: u16,
    /// The least number of ticks that a continuation takes from one partition to another; at least 1 if there
    /// are several.
    pub lookahead: u64,
    /// The least number of ticks that a continuation of a thread to itself by
    /// [`retry`](crate::Context::retry) takes; at least 1, or a thread that waits would stop time.
    pub retry_ticks: u64,
    /// How many events a partition holds before its threads' continuations are refused.
    pub capacity: usize,
    /// How many continuations one thread may issue in one run.
    pub fan_out: usize,
    /// How many events one moment may have; more is an endless loop in which no time passes.
    pub events_per_moment: u64,
    /// Device buffers in each partition.
    pub buffers: usize,
    /// Bytes in a device buffer.
    pub buffer_size: usize,
    /// How many host threads simulate; changes nothing but the time it takes.
    pub host_threads: usize,
    /// Whether to record every start of a thread.
    pub trace: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cores: 1,
            lookahead: 1,
            retry_ticks: 1,
            capacity: 1 << 20,
            fan_out: 1 << 10,
            events_per_moment: 1 << 32,
            buffers: 64,
            buffer_size: 4096,
            host_threads: 1,
            trace: false,
        }
    }
}

/// What is wrong with a [`Config`] for a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A number is outside its range.
    #[error("{what} is {value}: {range} is possible")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What it may be.
        range: String,
    },
    /// A thread is bound to a core that does not exist.
    #[error("thread `{thread}` is bound to core {core}, but there are only {cores}")]
    NoSuchCore {
        /// The thread.
        thread: String,
        /// Its core.
        core: u16,
        /// How many cores there are.
        cores: u16,
    },
}

/// Time stands still: one moment has too many events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time stands still at {time}: thread `{thread}` and others continue without spending time")]
pub struct Stuck {
    /// The moment.
    pub time: Time,
    /// The thread that would have run next.
    pub thread: String,
}

/// What a simulated device does with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// How many ticks the operation takes.
    pub after: u64,
    /// Bytes, count or descriptor number, or a negative error number.
    pub outcome: i32,
}

/// A partition's devices in virtual time. Deterministic: an answer follows from the operations so far.
pub trait DeviceModel: Send {
    /// Does `operation`; `bytes` are those of its buffer that it reads or fills, empty if it has none.
    fn start(&mut self, now: Time, operation: &Operation, bytes: &mut [u8]) -> Response;
}

/// A program on a simulated machine.
pub struct VirtualTime {
    program: Program,
    partitions: Vec<Partition>,
    config: Config,
    now: Time,
}

impl VirtualTime {
    /// A machine that runs `program`, at time 0.
    pub fn new(program: Program, config: Config) -> Result<Self, ConfigError> {
        let count = program
            .threads
            .iter()
            .map(|thread| thread.partition)
            .max()
            .unwrap_or(0) as usize
            + 1;
        check(&program, &config, count)?;
        let partitions = (0..count)
            .map(|index| Partition::new(index, count, &program, &config))
            .collect();
        Ok(Self {
            program,
            partitions,
            config,
            now: Time(0),
        })
    }

    /// Gives a partition its devices.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn set_devices(&mut self, partition: u16, devices: Box<dyn DeviceModel>) {
        self.partitions[partition as usize].set_devices(devices);
    }

    /// Continues to a thread from outside, now.
    pub fn send<T: Payload>(&mut self, port: Port<T>, value: T) -> Result<(), Pushback<T>> {
        self.send_at(port, self.now, value)
    }

    /// Continues to a thread from outside at `time`, or now if that has passed.
    pub fn send_at<T: Payload>(&mut self, port: Port<T>, time: Time, value: T) -> Result<(), Pushback<T>> {
        let words = value.into_words();
        let partition = &mut self.partitions[self.program.threads[port.to as usize].partition as usize];
        if partition.pending() >= self.config.capacity {
            return Err(Pushback::new(Reason::QueueFull, T::from_words(words)));
        }
        let due = time.max(self.now);
        partition.arrive_from_outside(
            &self.program,
            Continuation {
                words,
                stamp: due.0,
                thread: port.to,
                place: port.place,
                kind: Kind::Event,
            },
        );
        Ok(())
    }

    /// Runs until nothing is left to run; the time of the end of the last thread.
    pub fn run(&mut self) -> Result<Time, Stuck> {
        self.run_until(Time(u64::MAX))
    }

    /// Runs all that happens up to and including `last`; the time then, at most `last`.
    pub fn run_until(&mut self, last: Time) -> Result<Time, Stuck> {
        parallel::run(&self.program, &mut self.partitions, &self.config, last);
        for partition in &self.partitions {
            if let Some(stuck) = partition.stuck(&self.program) {
                return Err(stuck);
            }
        }
        let reached = self
            .partitions
            .iter()
            .map(Partition::reached)
            .max()
            .unwrap_or_default();
        self.now = if last == Time(u64::MAX) {
            self.now.max(reached)
        } else {
            self.now.max(last)
        };
        Ok(self.now)
    }

    /// When the next thing happens, if anything does.
    pub fn next_event(&self) -> Option<Time> {
        self.partitions.iter().filter_map(Partition::next_time).min()
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What happened so far, and what is left to run.
    pub fn report(&self) -> Report {
        let mut runs = vec![0; self.program.threads.len()];
        for partition in &self.partitions {
            partition.add_runs(&mut runs);
        }
        let mut report = Report::of_program(&self.program, &runs, (1, 1), self.now);
        let mut left = vec![0; self.program.threads.len()];
        for partition in &self.partitions {
            report.cores.extend(partition.core_reports());
            report.panic_count += partition.add_panics(&mut report.panics);
            report.left.buffers += partition.buffers_in_use();
            partition.add_left(&mut left, &mut report.left);
        }
        report.panics.sort_by_key(|panic| panic.time);
        report.panics.truncate(PANICS_KEPT);
        report.left.continuations = named(&self.program, &left);
        report
    }

    /// Every start of a thread so far in the order of (time, phase, partition, sequence); empty unless the
    /// machine was told to record.
    pub fn trace(&self) -> Vec<TraceEntry> {
        trace::merge(&self.program, &self.partitions)
    }
}

impl Left {
    /// Sorts what a partition has pending into continuations, timers and operations.
    fn count(&mut self, left: &mut [u64], continuation: &Continuation, now: Time) {
        if continuation.kind == Kind::Event && Time(continuation.stamp) > now {
            self.timers += 1;
        } else {
            left[continuation.thread as usize] += 1;
        }
    }
}

/// The counts that are not zero, with the names of their threads.
pub(crate) fn named(program: &Program, counts: &[u64]) -> Vec<(String, u64)> {
    let counted = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    counted
        .map(|(thread, count)| (program.name(thread as u32).to_owned(), *count))
        .collect()
}

fn check(program: &Program, config: &Config, partitions: usize) -> Result<(), ConfigError> {
    let in_range = |what, value: u64, least: u64, most: u64| {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        let range = if most == u64::MAX {
            format!("{least} and more")
        } else {
            format!("{least} to {most}")
        };
        Err(ConfigError::OutOfRange { what, value, range })
    };
    in_range("the number of cores", config.cores.into(), 1, CORES_MAX.into())?;
    in_range(
        "the lookahead",
        config.lookahead,
        if partitions > 1 { 1 } else { 0 },
        u64::MAX,
    )?;
    in_range("the time of a retry", config.retry_ticks, 1, u64::MAX)?;
    in_range("the capacity", config.capacity as u64, 1, u64::MAX)?;
    in_range("the fan-out", config.fan_out as u64, 1, 1 << 24)?;
    in_range(
        "the number of events at one moment",
        config.events_per_moment,
        1,
        u64::MAX,
    )?;
    in_range("the number of host threads", config.host_threads as u64, 1, 1024)?;
    match program.highest_place() {
        Some((core, thread)) if core >= config.cores => Err(ConfigError::NoSuchCore {
            thread: thread.to_owned(),
            core,
            cores: config.cores,
        }),
        _ => Ok(()),
    }
}
