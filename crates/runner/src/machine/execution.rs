//! A machine executed to its end: plainly, traced, on a model, or under a debugger's control.

use std::sync::Arc;

use sidestep_ia64::execution::{Driver, Drivers, Observed, Untimed};
use sidestep_itanium2::Parameters;
use sidestep_machine::debug::server::{Connection, Finish, ServerError, serve};
use sidestep_machine::debug::target::Debugged;
use sidestep_machine::debug::trace::{Kinds, Sink, Trace, Traced};
use sidestep_machine::description::bare::Clock;
use sidestep_machine::description::kernel::Parts;
use sidestep_machine::machine::{HostThreads, Sidecore, VirtualTime};
use sidestep_machine::{End, Machine};
use sidestep_schedule::sanitizer::{Findings, Sanitizer};

use super::Timed;
use crate::groups::{Suppressions, is_violated};
use crate::program::Sum;
use sidestep_symbols::Names;

/// A machine that is ready to run.
pub struct Prepared {
    /// The machine.
    pub machine: Machine,
    /// The devices of a whole machine.
    pub parts: Option<Parts>,
    /// What its time follows.
    pub clock: Clock,
    /// The longest time slice, in ticks of the interval time counter.
    pub quantum_ticks: u64,
    /// How the devices' thread waits for work where the host's clock leads.
    pub sidecore: Sidecore,
    /// Whether input from outside may wake it.
    pub expects_input: bool,
    /// Whether virtual time goes by no faster than the host's while the machine waits.
    pub paces_idle: bool,
}

impl Prepared {
    /// A whole machine, as it is described; a network paces it.
    pub fn whole(machine: Machine, parts: Parts) -> Prepared {
        let description = &parts.description;
        Prepared {
            machine,
            clock: description.machine.clock,
            quantum_ticks: description.machine.quantum_ticks,
            sidecore: description.machine.sidecore,
            expects_input: false,
            paces_idle: !description.network.is_empty(),
            parts: Some(parts),
        }
    }
}

/// What drives the processors.
pub enum Way {
    /// Nothing looks at them.
    Plain,
    /// Something else than the interpreter executes the same instructions.
    Driven(Arc<dyn Drivers>),
    /// A trace of each.
    Traced {
        /// What is traced.
        kinds: Kinds,
        /// What addresses are called.
        names: Arc<Names>,
        /// Where lines go.
        sink: Arc<Sink>,
    },
    /// A pipeline model of each, whose cycles are the machine's time.
    Timed {
        /// The modelled processor.
        parameters: Arc<Parameters>,
        /// Whether the cycles of each bundle are kept.
        keeps_profile: bool,
        /// Whether blocks are booked as a whole where what they cost is known.
        books_blocks: bool,
    },
    /// A sanitizer of each.
    Watched {
        /// Whether the first finding that is not suppressed ends the run.
        ends: bool,
        /// What is no reason to end it.
        suppressions: Arc<Suppressions>,
        /// What addresses are called.
        names: Arc<Names>,
    },
}

/// How a machine is executed.
pub struct Execution {
    /// What drives its processors.
    pub way: Way,
    /// How many instructions all processors may execute together, since the machine was made.
    pub instructions_max: Option<u64>,
    /// Whether it runs in virtual time, whatever its clock follows.
    pub in_virtual_time: bool,
}

/// Where an execution was left.
pub struct Finished {
    /// Why.
    pub end: End,
    /// What the models have counted.
    pub sum: Option<Sum>,
    /// What the sanitizers have found, the suppressed as well.
    pub findings: Option<Findings>,
}

/// Looks at a machine before it starts and whenever it was stopped: why it is to end, or that it is to go on.
pub type Look<'a> = dyn FnMut(&mut Prepared, Option<End>) -> Option<End> + 'a;

/// The trace's lines could not all be written.
#[derive(Debug, thiserror::Error)]
#[error("the trace cannot be written")]
pub struct TraceLost(#[from] std::io::Error);

impl Execution {
    /// Executes to an end: the machine's own, or what `look` says.
    ///
    /// # Errors
    /// A trace could not be written.
    pub fn run(&self, prepared: &mut Prepared, look: &mut Look<'_>) -> Result<Finished, TraceLost> {
        let processors = prepared.machine.cpus.len();
        let (mut sum, mut findings) = (None, None);
        let end = match &self.way {
            Way::Plain => self.attend(prepared, &mut vec![Untimed; processors], look),
            Way::Driven(drivers) => {
                let mut drivers: Vec<_> = (0..processors).map(|_| drivers.driver()).collect();
                self.attend(prepared, &mut drivers, look)
            }
            Way::Traced { kinds, names, sink } => {
                let trace = |index| Trace::new(*kinds, index, names.clone(), Arc::clone(sink));
                let mut drivers: Vec<_> = (0..processors).map(|index| Traced(trace(index))).collect();
                let end = self.attend(prepared, &mut drivers, look);
                sink.finish()?;
                end
            }
            Way::Timed {
                parameters,
                keeps_profile,
                books_blocks,
            } => {
                let mut drivers = Timed::each(parameters, processors);
                for pipeline in drivers.iter_mut().map(Timed::pipeline_mut) {
                    pipeline.book_blocks(*books_blocks);
                    if *keeps_profile {
                        pipeline.enable_profile();
                    }
                }
                let end = self.attend(prepared, &mut drivers, look);
                let counted = sum.insert(Sum::default());
                drivers
                    .iter_mut()
                    .for_each(|driver| counted.add(driver.pipeline_mut()));
                end
            }
            Way::Watched {
                ends,
                suppressions,
                names,
            } => {
                let mut drivers: Vec<_> = (0..processors).map(|_| Observed(Sanitizer::new(*ends))).collect();
                loop {
                    let end = self.attend(prepared, &mut drivers, look);
                    let mut found = Findings::default();
                    for Observed(sanitizer) in &mut drivers {
                        sanitizer.go_on();
                        found.merge(sanitizer.findings());
                    }
                    let is_halted = matches!(end, End::Halted(_));
                    if !is_halted || is_violated(&found, suppressions, &names.naming()) {
                        findings = Some(found);
                        break end;
                    }
                }
            }
        };
        Ok(Finished { end, sum, findings })
    }

    /// Lets a debugger control the machine, in virtual time; goes on without it if it leaves.
    ///
    /// # Errors
    /// The connection broke.
    pub fn debug(&self, prepared: &mut Prepared, connection: Connection) -> Result<End, ServerError> {
        let executor = self.virtual_time(prepared);
        let mut debugged = Debugged {
            machine: &mut prepared.machine,
            executor,
            executed_max: self.instructions_max.unwrap_or(u64::MAX),
        };
        Ok(match serve(connection, &mut debugged)? {
            Finish::Ended(end) => end,
            Finish::Killed => End::Stopped,
            Finish::Detached => self.virtual_time(prepared).run(&mut prepared.machine).end,
        })
    }

    fn attend<D: Driver + Send>(
        &self,
        prepared: &mut Prepared,
        drivers: &mut [D],
        look: &mut Look<'_>,
    ) -> End {
        let mut stopped = None;
        loop {
            if let Some(end) = look(prepared, stopped) {
                return end;
            }
            match self.stretch(prepared, drivers) {
                End::Stopped => stopped = Some(End::Stopped),
                end => return end,
            }
        }
    }

    fn stretch<D: Driver + Send>(&self, prepared: &mut Prepared, drivers: &mut [D]) -> End {
        let outcome = if prepared.clock == Clock::Host && !self.in_virtual_time {
            let threads = HostThreads {
                slice_ticks: prepared.quantum_ticks,
                instructions_max: self.instructions_left(&prepared.machine),
                expects_input: prepared.expects_input,
                sidecore: prepared.sidecore,
            };
            threads.run_driven(&mut prepared.machine, drivers)
        } else {
            let executor = self.virtual_time(prepared);
            executor.run_driven(&mut prepared.machine, drivers)
        };
        outcome.end
    }

    /// How many instructions the limit leaves.
    fn instructions_left(&self, machine: &Machine) -> u64 {
        self.instructions_max
            .map_or(u64::MAX, |most| most.saturating_sub(machine.executed()))
    }

    fn virtual_time(&self, prepared: &Prepared) -> VirtualTime {
        VirtualTime {
            quantum_ticks: prepared.quantum_ticks,
            instructions_max: self.instructions_left(&prepared.machine),
            expects_input: prepared.expects_input,
            paces_idle: prepared.paces_idle,
            ..VirtualTime::default()
        }
    }
}
