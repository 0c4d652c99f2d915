//! The executor on pinned cores, in real time.
//!
//! A *core* is a host thread, bound to a processor, that does nothing but run zero-wait threads. Each has a
//! queue of its own without atomics and an inbox that anybody may push to without locks. What a thread
//! continues to stays on its core, unless it is bound to another, or another is idle and there is enough to
//! do to be worth handing over. Nothing is allocated after the start, and every queue is bounded and pushes
//! back. An idle core spins, pauses and sleeps by its [`IdlePolicy`]; wake-ups are counted and timed on both
//! sides. Cores [join](Cores::join) and [leave](Cores::leave) while the program runs.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use std::time::Duration;
//! use sidestep_zerowait::cores::{Config, Cores, Shutdown};
//! use sidestep_zerowait::{Graph, Mode};
//!
//! let sum = Arc::new(AtomicU64::new(0));
//! let mut graph = Graph::new();
//! let add = graph.declare::<u64>("add", Mode::User);
//! let start = graph.port(add);
//! let total = Arc::clone(&sum);
//! graph.define(add, move |_, n| {
//!     total.fetch_add(n, Ordering::Relaxed);
//! });
//! let cores = Cores::start(graph.build()?, Config::default())?;
//! for n in 1..=10 {
//!     cores.send(start, n)?;
//! }
//! let report = cores.shutdown(Shutdown::Drain { at_most: Duration::from_secs(10) });
//! assert!(report.is_drained());
//! assert_eq!(sum.load(Ordering::Relaxed), 55);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod config;
mod parker;
mod processor;
mod shared;
mod timers;
mod worker;

pub use config::{CORES_MAX, Config, Devices, IdlePolicy, LeaveError, StartError};
pub use processor::Pause;

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::continuation::{ANYWHERE, Continuation, Kind};
use crate::device::{Interface, Reactor};
use crate::handle::Port;
use crate::payload::Payload;
use crate::program::Program;
use crate::pushback::{Pushback, Reason};
use crate::report::{CoreReport, Report};
use crate::time::Time;
use crate::virtual_time::named;
use parker::Sleeper;
use shared::{DRAINING, RUNNING, STOPPING, Shared};
use worker::{Remains, Surroundings};

/// A program on pinned cores.
pub struct Cores {
    shared: Arc<Shared>,
    host_threads: Mutex<Vec<HostThread>>,
}

struct HostThread {
    core: u16,
    handle: JoinHandle<Remains>,
}

/// How to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Let nothing more in, run what is queued, pending and in flight, and stop when all is done or the time
    /// is up.
    Drain {
        /// The longest time to wait.
        at_most: Duration,
    },
    /// Stop each core after the thread that it runs.
    Now,
}

impl Cores {
    /// Starts the cores.
    pub fn start(program: Program, config: Config) -> Result<Self, StartError> {
        check(&program, &config)?;
        let count = config.cores;
        let cores = Self {
            shared: Arc::new(Shared::new(program, config)),
            host_threads: Mutex::default(),
        };
        for core in 0..count {
            // If one does not start, dropping `cores` stops the others.
            let host_thread = start_core(&cores.shared, core as u16)?;
            cores.host_threads().push(host_thread);
        }
        Ok(cores)
    }

    fn host_threads(&self) -> MutexGuard<'_, Vec<HostThread>> {
        self.host_threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues to a thread from outside. If every core that may run it has a full inbox, `value` comes
    /// back.
    pub fn send<T: Payload>(&self, port: Port<T>, value: T) -> Result<(), Pushback<T>> {
        let words = value.into_words();
        let back = |reason| Pushback::new(reason, T::from_words(words));
        if self.shared.state.0.load(SeqCst) != RUNNING {
            return Err(back(Reason::Stopping));
        }
        let stamp = if self.shared.config.sampling == 1 {
            self.shared.clock.ticks()
        } else {
            0
        };
        let continuation = Continuation {
            words,
            stamp,
            thread: port.to,
            place: port.place,
            kind: Kind::Event,
        };
        self.shared.from_outside.fetch_add(1, SeqCst);
        let sent = match port.place {
            ANYWHERE => self
                .shared
                .offers()
                .any(|core| self.shared.deliver(core, continuation, None).is_ok()),
            core => self.shared.deliver(core, continuation, None).is_ok(),
        };
        if sent {
            return Ok(());
        }
        self.shared.from_outside.fetch_sub(1, SeqCst);
        Err(back(Reason::QueueFull))
    }

    /// Adds a core while the program runs; its number.
    pub fn join(&self) -> Result<u16, StartError> {
        let mut host_threads = self.host_threads();
        let cores_max = self.shared.config.cores_max;
        let free = (0..cores_max as u16)
            .find(|core| host_threads.iter().all(|host_thread| host_thread.core != *core));
        let core = free.ok_or(StartError::NoFreeCore { cores_max })?;
        host_threads.push(start_core(&self.shared, core)?);
        Ok(core)
    }

    /// Takes a core out while the program runs, and waits until it has gone. What it had queued and its
    /// timers go to the others; its device operations complete as cancelled.
    ///
    /// Not to be called by a zero-wait thread: it waits.
    pub fn leave(&self, core: u16) -> Result<(), LeaveError> {
        let mut host_threads = self.host_threads();
        let position = host_threads
            .iter()
            .position(|host_thread| host_thread.core == core)
            .ok_or(LeaveError::NotActive { core })?;
        if host_threads.len() == 1 {
            return Err(LeaveError::Last { core });
        }
        if let Some(bound) = self
            .shared
            .program
            .threads
            .iter()
            .find(|thread| thread.place == core)
        {
            return Err(LeaveError::Bound {
                core,
                thread: bound.name.clone(),
            });
        }
        let host_thread = host_threads.swap_remove(position);
        let slot = &self.shared.slots[core as usize];
        slot.leaving.store(true, SeqCst);
        slot.parker.wake(|| self.shared.clock.ticks());
        host_thread
            .handle
            .join()
            .expect("a core contains its threads' panics");
        slot.leaving.store(false, SeqCst);
        Ok(())
    }

    /// Waits until nothing is queued, pending or in flight, for `at_most`; whether that came to pass.
    ///
    /// What waits at a held gate or for a join's missing continuations does not count: nothing will come of
    /// it.
    pub fn wait_idle(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let mut pause = Duration::from_micros(20);
        while !self.shared.is_quiet() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
        true
    }

    /// The executor's time now: nanoseconds since it started.
    pub fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// What happened so far. A busy core shows its counters now and then, so they may be some thousands of
    /// threads old.
    pub fn report(&self) -> Report {
        let shared = &self.shared;
        let mut runs = vec![0; shared.program.threads.len()];
        for slot in &shared.slots {
            for (sum, runs) in runs.iter_mut().zip(&slot.published.0.runs) {
                *sum += runs.load(Relaxed);
            }
        }
        let scale = shared.clock.scale();
        let mut report = Report::of_program(&shared.program, &runs, scale, shared.clock.now());
        (report.panics, report.panic_count) = shared.panics();
        for (core, slot) in shared.slots.iter().enumerate() {
            let published = &slot.published.0;
            report.left.timers += published.timers.load(Relaxed);
            report.left.operations += published.in_flight.load(Relaxed);
            report.cores.push(CoreReport {
                core: core as u16,
                partition: 0,
                processor: slot.processor.load(Relaxed).checked_sub(1),
                active: shared.active.contains(core as u16),
                queued: published.queued.load(Relaxed) + slot.inbox.len(),
                longest_queue: published.longest.load(Relaxed),
                executed: published.executed.load(Relaxed),
                issued: published.issued.load(Relaxed),
                retried: published.retried.load(Relaxed),
                forwarded: published.forwarded.load(Relaxed),
                refused: published.refused.load(Relaxed),
                shared: published.shared.load(Relaxed),
                busy: 0,
                idled: published.idled.load(Relaxed),
                slept: published.slept.load(Relaxed),
                wake_latency: slot.wake_latency.read(scale),
                wake_cost: slot.wake_cost.read(scale),
                operations: published.operations.load(Relaxed),
            });
        }
        report.left.buffers = shared.buffers.as_ref().map_or(0, |buffers| buffers.in_use());
        report
    }

    /// Ends, and reports what happened and what was left.
    pub fn shutdown(self, how: Shutdown) -> Report {
        if let Shutdown::Drain { at_most } = how {
            self.shared.state.0.store(DRAINING, SeqCst);
            self.wait_idle(at_most);
        }
        let remains = self.stop();
        let mut report = self.report();
        let mut left = vec![0; self.shared.program.threads.len()];
        let mut count = |continuation: Continuation| left[continuation.thread as usize] += 1;
        (report.left.timers, report.left.operations) = (0, 0);
        for core in remains {
            core.continuations.into_iter().for_each(&mut count);
            report.left.timers += core.timers;
            report.left.operations += core.operations;
        }
        for slot in &self.shared.slots {
            while let Some(continuation) = slot.inbox.pop() {
                count(continuation);
            }
        }
        let orphans = std::mem::take(&mut *self.shared.orphans());
        orphans.ready.into_iter().for_each(&mut count);
        report.left.timers += orphans.timers.len();
        report.left.continuations = named(&self.shared.program, &left);
        report
    }

    /// Stops every core after the thread that it runs.
    fn stop(&self) -> Vec<Remains> {
        self.shared.state.0.store(STOPPING, SeqCst);
        self.shared.wake_all();
        let host_threads = std::mem::take(&mut *self.host_threads());
        let ended = host_threads
            .into_iter()
            .map(|host_thread| host_thread.handle.join());
        ended
            .map(|remains| remains.expect("a core contains its threads' panics"))
            .collect()
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts one core and waits until it takes part.
fn start_core(shared: &Arc<Shared>, core: u16) -> Result<HostThread, StartError> {
    let (ready, started) = mpsc::channel();
    let for_core = Arc::clone(shared);
    let body = move || match prepare(&for_core, core) {
        Ok(reactor) => {
            for_core.departed.remove(core);
            for_core.active.insert(core);
            let surroundings = Surroundings::new(for_core, core, reactor);
            // The receiver waits for just this, so it is there.
            let _ = ready.send(Ok(()));
            surroundings.run()
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            Remains::default()
        }
    };
    let handle = std::thread::Builder::new()
        .name(format!("zerowait-{core}"))
        .spawn(body)
        .map_err(|source| StartError::Thread {
            core: core.into(),
            source,
        })?;
    started.recv().expect("a core says whether it has started")?;
    Ok(HostThread { core, handle })
}

/// On the core's host thread: binds it to its processor and opens its devices.
fn prepare(shared: &Shared, core: u16) -> Result<Option<Reactor>, StartError> {
    let slot = &shared.slots[core as usize];
    if shared.config.pin {
        let processors = processor::available();
        let processor = processors[usize::from(core) % processors.len()];
        processor::pin(processor).map_err(|source| StartError::Pin {
            core: core.into(),
            processor,
            source,
        })?;
        slot.processor.store(processor + 1, Relaxed);
    }
    let Some(buffers) = &shared.buffers else {
        slot.parker.set_sleeper(Sleeper::Thread(std::thread::current()));
        return Ok(None);
    };
    let open = |interface| Reactor::open(interface, Arc::clone(buffers), shared.config.operations);
    let failed = |interface| {
        move |source| StartError::Devices {
            core: core.into(),
            interface,
            source,
        }
    };
    let (reactor, wake) = match shared.config.devices {
        Devices::Off => unreachable!("without devices there are no buffers"),
        Devices::IoUring => open(Interface::IoUring).map_err(failed("io_uring"))?,
        Devices::Readiness => open(Interface::Readiness).map_err(failed("epoll"))?,
        Devices::Automatic => match open(Interface::IoUring) {
            Ok(opened) => opened,
            Err(_) => open(Interface::Readiness).map_err(failed("neither io_uring nor epoll"))?,
        },
    };
    slot.parker.set_sleeper(Sleeper::Event(wake));
    Ok(Some(reactor))
}

fn check(program: &Program, config: &Config) -> Result<(), StartError> {
    let in_range = |what, value: usize, least: usize, most: usize| match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(StartError::OutOfRange {
            what,
            value,
            least,
            most,
        }),
    };
    in_range("the number of cores", config.cores, 1, CORES_MAX)?;
    in_range(
        "the greatest number of cores",
        config.cores_max,
        config.cores,
        CORES_MAX,
    )?;
    in_range(
        "the capacity of a core's queue",
        config.queue_capacity,
        4,
        1 << 24,
    )?;
    in_range(
        "the capacity of a core's inbox",
        config.inbox_capacity,
        2,
        1 << 24,
    )?;
    in_range("the number of timers", config.timers, 0, 1 << 24)?;
    in_range(
        "the number of operations in flight",
        config.operations,
        1,
        1 << 15,
    )?;
    in_range("the number of device buffers", config.buffers, 0, 1 << 20)?;
    in_range("the size of a device buffer", config.buffer_size, 1, 1 << 24)?;
    in_range(
        "the number of entries a gate serves at once",
        config.gate_batch as usize,
        1,
        1 << 16,
    )?;
    match program.highest_place() {
        Some((core, thread)) if usize::from(core) >= config.cores => Err(StartError::NoSuchCore {
            thread: thread.to_owned(),
            core,
            cores: config.cores,
        }),
        _ => Ok(()),
    }
}
