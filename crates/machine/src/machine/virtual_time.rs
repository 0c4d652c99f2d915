//! The deterministic executor: all processors on one host thread, in virtual time.
//!
//! Time goes on in rounds of at most a quantum. In each round the processors execute one after the other, in the
//! order of their numbers, an instruction a tick, up to the round's end; a processor that waits lets the time pass.
//! A round ends where work on the timeline is due. When no processor executes, time goes on at once to the next
//! timer or work. A processor that executes while all others wait may do so for longer, up to where it wakes another.
//! Nothing depends on the host: the same machine gives the same outcome, to the instruction; and a machine that was
//! stopped in the middle of a round goes on as if it had not been.

use std::time::Duration;

use super::slice::{Until, pass, run_undisturbed, run_until};
use super::{Activity, End, Machine, Outcome};
use sidestep_ia64::execution::{Driver, Untimed};

/// How to execute in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualTime {
    /// The longest round, in ticks: how far processors' times may differ.
    pub quantum_ticks: u64,
    /// How long a processor executes at once, in ticks, while all others wait for what only it, work or a timer can do;
    /// no longer than a round if this is no more. A driver has to come back at the same instruction each time that it
    /// is called for attention, which one that executes translated code does not.
    pub alone_ticks: u64,
    /// Stop after so many instructions of all processors together, as [`Machine::executed`] counts them.
    pub instructions_max: u64,
    /// Whether input from outside (a terminal, a network) may wake a machine that waits for nothing else.
    pub expects_input: bool,
    /// Whether time goes by no faster than the host's while no processor executes, for machines that talk to the
    /// outside: their timeouts are meant for it, and the host has better things to do. Changes no result.
    pub paces_idle: bool,
}

impl Default for VirtualTime {
    fn default() -> VirtualTime {
        VirtualTime {
            quantum_ticks: 10_000,
            alone_ticks: 0,
            instructions_max: u64::MAX,
            expects_input: false,
            paces_idle: false,
        }
    }
}

impl VirtualTime {
    /// Runs the machine until it ends, stops or reaches the limit.
    pub fn run(&self, machine: &mut Machine) -> Outcome {
        let mut drivers = vec![Untimed; machine.cpus.len()];
        self.run_driven(machine, &mut drivers)
    }

    /// As [`run`](Self::run), each processor executed by its own driver.
    ///
    /// # Panics
    /// If there is not one driver for each processor.
    pub fn run_driven<D: Driver>(&self, machine: &mut Machine, drivers: &mut [D]) -> Outcome {
        assert_eq!(machine.cpus.len(), drivers.len(), "a driver for each processor");
        let end = self.rounds(machine, drivers);
        machine.outcome(end)
    }

    fn rounds<D: Driver>(&self, machine: &mut Machine, drivers: &mut [D]) -> End {
        let mut executed_before = machine.executed();
        let limit = executed_before.saturating_add(self.instructions_max);
        machine.platform.timeline.follow_executor();
        loop {
            if machine.platform.is_stop_requested() {
                return End::Stopped;
            }
            if executed_before >= limit {
                return End::Limit;
            }
            let round_end = match machine.round_end {
                Some(round_end) => round_end,
                None => match self.begin_round(machine) {
                    Some(round_end) => {
                        if let Some(stretch) = self.stretch(machine) {
                            if let Some(end) = stretch.run(machine, drivers, limit - executed_before) {
                                return end;
                            }
                            executed_before = machine.executed();
                            continue;
                        }
                        round_end
                    }
                    None if self.expects_input => continue,
                    None => return End::Deadlock,
                },
            };
            machine.round_end = Some(round_end);
            let Machine {
                cpus,
                platform,
                handlers,
                ..
            } = machine;
            for (index, (cpu, driver)) in cpus.iter_mut().zip(drivers.iter_mut()).enumerate() {
                while cpu.ticks < round_end {
                    // Time also passes without instructions, so this may take more than one step.
                    let until = Until::new(cpu, round_end, limit - executed_before);
                    let before = cpu.executed();
                    if let Some(end) = run_until(platform, handlers, (index, cpu, driver), until) {
                        return end;
                    }
                    executed_before += cpu.executed() - before;
                    if platform.is_stop_requested() {
                        return End::Stopped;
                    }
                    if executed_before >= limit {
                        return End::Limit;
                    }
                }
            }
            machine.round_end = None;
        }
    }

    /// Does the work that is due and says when the next round ends; `None` if nothing will happen by itself, after
    /// having waited for input if that may come.
    fn begin_round(&self, machine: &Machine) -> Option<u64> {
        let now = machine.cpus.iter().map(|cpu| cpu.ticks).min().unwrap_or(0);
        let seen = machine.platform.wakeups.count();
        machine.platform.timeline.set_now(now);
        machine.platform.timeline.perform_until(now);
        let is_awake = awake(machine).next().is_some();
        let end = self.round_end(machine, now, is_awake);
        let wait = match end {
            Some(end) if self.paces_idle && !is_awake => Some(Some(Duration::from_nanos(end - now))),
            None if self.expects_input => Some(None),
            _ => None,
        };
        if let Some(limit) = wait {
            machine.platform.wakeups.wait(seen, limit);
        }
        end
    }

    /// When the round that begins now ends; `None` if nothing will ever happen, also because time has come to its end
    /// (guests can set timers for centuries).
    fn round_end(&self, machine: &Machine, now: u64, is_awake: bool) -> Option<u64> {
        let next = now.checked_add(1)?;
        let work = machine.platform.timeline.next();
        if is_awake {
            let end = now.saturating_add(self.quantum_ticks.max(1));
            return Some(work.map_or(end, |work| end.min(work.max(next))));
        }
        timers(machine).chain(work).min().map(|time| time.max(next))
    }

    /// The stretch that begins now, if only one processor executes.
    fn stretch(&self, machine: &Machine) -> Option<Stretch> {
        if self.alone_ticks <= self.quantum_ticks {
            return None;
        }
        let mut awake = awake(machine);
        let (Some(index), None) = (awake.next(), awake.next()) else {
            return None;
        };
        let start = machine.platform.timeline.now();
        let due = timers(machine).chain(machine.platform.timeline.next());
        let until_tick = due.fold(start.saturating_add(self.alone_ticks), u64::min);
        let goes_on = machine.cpus[index].activity == Activity::Running && !machine.platform.has_start(index);
        (goes_on && until_tick > start).then_some(Stretch { index, until_tick })
    }
}

/// Time in which only one processor executes, up to when work or another's timer is due.
struct Stretch {
    index: usize,
    until_tick: u64,
}

impl Stretch {
    /// Lets the processor execute up to its end, until something happens that others may wait for, or until so many
    /// instructions were executed. The others' time has then come to the same tick.
    fn run<D: Driver>(&self, machine: &mut Machine, drivers: &mut [D], instructions_max: u64) -> Option<End> {
        let Machine {
            cpus,
            platform,
            handlers,
            ..
        } = machine;
        let cpu = &mut cpus[self.index];
        let until = Until::new(cpu, self.until_tick, instructions_max);
        let place = (self.index, &mut *cpu, &mut drivers[self.index]);
        let end = run_undisturbed(platform, handlers, place, until);
        let now = cpu.ticks.min(self.until_tick);
        for cpu in cpus {
            pass(cpu, now.saturating_sub(cpu.ticks));
        }
        end
    }
}

/// When the timers of processors that wait will match.
fn timers(machine: &Machine) -> impl Iterator<Item = u64> {
    let waiting = machine
        .cpus
        .iter()
        .filter(|cpu| cpu.activity == Activity::Waiting);
    waiting.filter_map(|cpu| {
        let ticks = cpu.processor.ticks_to_timer()?;
        Some(cpu.ticks.saturating_add(ticks))
    })
}

/// The processors that execute, or will as soon as they are let.
fn awake(machine: &Machine) -> impl Iterator<Item = usize> {
    let cpus = machine.cpus.iter().enumerate();
    let awake = cpus.filter(|(index, cpu)| match cpu.activity {
        Activity::Running => true,
        Activity::Waiting => cpu.processor.has_deliverable_interrupt() || machine.platform.has_start(*index),
        Activity::Stopped => machine.platform.has_start(*index),
    });
    awake.map(|(index, _)| index)
}
