//! The parallel executor: a host thread for each processor, in the host's time.
//!
//! Processors run at the same time on shared memory; their atomic operations are the host's. The interval time
//! counters follow the host's clock: they are set to it at the end of each time slice. Work on the timeline is done
//! by the calling thread when it is due: the machine's sidecore, where it polls for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::hypercall::HypercallHandler;
use super::platform::Platform;
use super::sidecore::{LOSS, Sidecore, Standing, Waits};
use super::slice::{Until, pass, run_until};
use super::{Activity, Cpu, End, Machine, Outcome};
use sidestep_ia64::execution::{Driver, Untimed};

/// How to execute on host threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostThreads {
    /// How many ticks a processor goes on, an instruction each without a model, before it looks at the clock.
    pub slice_ticks: u64,
    /// Stop after about so many instructions of all processors together, as [`Machine::executed`] counts them: looked
    /// at after each slice.
    pub instructions_max: u64,
    /// Whether input from outside (a terminal, a network) may wake a machine that waits for nothing else.
    pub expects_input: bool,
    /// How the thread that does the devices' work waits for it.
    pub sidecore: Sidecore,
}

impl Default for HostThreads {
    fn default() -> HostThreads {
        HostThreads {
            slice_ticks: 50_000,
            instructions_max: u64::MAX,
            expects_input: false,
            sidecore: Sidecore::default(),
        }
    }
}

/// What the threads of a run share.
struct Run<'a> {
    options: HostThreads,
    platform: &'a Arc<Platform>,
    handlers: &'a [Box<dyn HypercallHandler>],
    state: Mutex<State>,
    /// Processors that sleep.
    asleep: AtomicUsize,
}

/// Looks for work before the standing is looked at again.
const LOOKS: u32 = 256;

/// How the run stands.
struct State {
    end: Option<End>,
    executed: u64,
    /// Of each processor that only others or the outside can wake: how many wakeups it had seen when it looked for
    /// something to do.
    idle: Vec<Option<u64>>,
    /// Whether work of the timeline is being done.
    works: bool,
}

impl HostThreads {
    /// Runs the machine until it ends, stops or reaches the limit.
    pub fn run(&self, machine: &mut Machine) -> Outcome {
        let mut drivers = vec![Untimed; machine.cpus.len()];
        self.run_driven(machine, &mut drivers)
    }

    /// As [`run`](Self::run), each processor executed by its own driver.
    ///
    /// # Panics
    /// If there is not one driver for each processor.
    pub fn run_driven<D: Driver + Send>(&self, machine: &mut Machine, drivers: &mut [D]) -> Outcome {
        assert_eq!(machine.cpus.len(), drivers.len(), "a driver for each processor");
        let now = machine.cpus.iter().map(|cpu| cpu.ticks).max().unwrap_or(0);
        machine.platform.timeline.follow_host(now);
        machine.round_end = None;
        let Machine {
            cpus,
            platform,
            handlers,
            ..
        } = machine;
        let run = Run {
            options: *self,
            platform,
            handlers,
            state: Mutex::new(State {
                end: None,
                executed: 0,
                idle: vec![None; platform.processors()],
                works: false,
            }),
            asleep: AtomicUsize::new(0),
        };
        let waits = std::thread::scope(|scope| {
            for (index, (cpu, driver)) in cpus.iter_mut().zip(drivers.iter_mut()).enumerate() {
                let run = &run;
                std::thread::Builder::new()
                    .name(format!("processor {index}"))
                    .spawn_scoped(scope, move || run.processor(index, cpu, driver))
                    .expect("the host starts a thread for each processor");
            }
            run.agenda()
        });
        let end = run
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .end
            .unwrap_or(End::Stopped);
        machine.waits.polled += waits.polled;
        machine.waits.slept += waits.slept;
        machine.outcome(end)
    }
}

impl Run<'_> {
    /// The life of one processor's thread.
    fn processor<D: Driver>(&self, index: usize, cpu: &mut Cpu, driver: &mut D) {
        while !self.is_over() {
            let seen = self.platform.wakeups.count();
            let now = self.platform.timeline.now();
            if cpu.ticks < now {
                pass(cpu, now - cpu.ticks);
            }
            let is_awake = cpu.activity == Activity::Running
                || self.platform.has_start(index)
                || cpu.activity == Activity::Waiting && cpu.processor.has_deliverable_interrupt();
            if !is_awake {
                self.asleep.fetch_add(1, Ordering::Relaxed);
                self.sleep(index, cpu, seen);
                self.asleep.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let before = cpu.executed();
            let until = Until::new(cpu, cpu.ticks.saturating_add(self.options.slice_ticks), u64::MAX);
            let end = run_until(self.platform, self.handlers, (index, cpu, driver), until);
            self.account(cpu.executed() - before, end);
        }
    }

    /// Sleeps until the processor's timer matches or something happens.
    fn sleep(&self, index: usize, cpu: &Cpu, seen: u64) {
        let timer = match cpu.activity {
            Activity::Waiting => cpu.processor.ticks_to_timer(),
            _ => None,
        };
        match timer {
            Some(ticks) => self
                .platform
                .wakeups
                .wait(seen, Some(Duration::from_nanos(ticks))),
            None => {
                self.state().idle[index] = Some(seen);
                self.end_if_deadlocked();
                if !self.is_over() {
                    self.platform.wakeups.wait(seen, None);
                }
                self.state().idle[index] = None;
            }
        }
    }

    /// Ends the run if nothing inside the machine can wake a processor: all are idle, none has yet to look at what
    /// happened since, and nothing is or will be done by the timeline.
    fn end_if_deadlocked(&self) {
        if self.options.expects_input {
            return;
        }
        let state = self.state();
        let happened = Some(self.platform.wakeups.count());
        let is_deadlocked = !state.works
            && self.platform.timeline.next().is_none()
            && state.idle.iter().all(|&seen| seen == happened);
        drop(state);
        if is_deadlocked {
            self.finish(End::Deadlock);
        }
    }

    /// Does the timeline's work when it is due, until the run is over; how it waited for it.
    fn agenda(&self) -> Waits {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut waits = Waits::default();
        let mut last_work = Instant::now();
        let (mut has_polled, mut last_loss) = (false, None::<Instant>);
        while !self.is_over() {
            let seen = self.platform.wakeups.count();
            let now = self.platform.timeline.now();
            self.state().works = true;
            let has_worked = self.platform.timeline.perform_until(now);
            self.state().works = false;
            self.end_if_deadlocked();
            if has_worked {
                last_work = Instant::now();
                waits.polled += u64::from(has_polled);
            }
            let next = self.platform.timeline.next();
            let until_work = next.map(|next| Duration::from_nanos(next.saturating_sub(now)));
            if until_work.is_some_and(|wait| wait.is_zero()) || self.is_over() {
                continue;
            }
            let standing = Standing {
                since_work: last_work.elapsed(),
                until_work,
                running: self.platform.processors() - self.asleep.load(Ordering::Relaxed),
                cores,
                since_loss: last_loss.map(|loss| loss.elapsed()),
            };
            has_polled = self.options.sidecore.polls(&standing);
            if has_polled {
                last_loss = self.poll(seen, next).or(last_loss);
            } else {
                waits.slept += 1;
                self.platform.wakeups.wait(seen, until_work);
            }
        }
        waits
    }

    /// Looks until something has happened or is due, but not for long; when somebody else had the core meanwhile.
    fn poll(&self, seen: u64, due: Option<u64>) -> Option<Instant> {
        let mut last_look = Instant::now();
        let mut last_loss = None;
        for _ in 0..LOOKS {
            let is_due = due.is_some_and(|due| self.platform.timeline.now() >= due);
            if is_due || self.platform.wakeups.count() != seen {
                break;
            }
            std::hint::spin_loop();
            let look = Instant::now();
            if look - last_look > LOSS {
                last_loss = Some(look);
            }
            last_look = look;
        }
        last_loss
    }

    fn account(&self, executed: u64, end: Option<End>) {
        let mut state = self.state();
        state.executed = state.executed.saturating_add(executed);
        let reached = state.executed >= self.options.instructions_max;
        drop(state);
        if let Some(end) = end {
            self.finish(end);
        } else if reached {
            self.finish(End::Limit);
        }
    }

    /// Ends the run; the first end counts.
    fn finish(&self, end: End) {
        self.state().end.get_or_insert(end);
        self.platform.request_stop();
    }

    fn is_over(&self) -> bool {
        self.platform.is_stop_requested()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
