//! A machine that runs the kernel of `guests/ia64/kernel`, or the message-passing guest of `guests/ia64/ipc`, with
//! readings at the marks of its programs.
//!
//! A program marks the phases of a measurement (`mark(label)`, hypercall [`MARK`]). At each mark the machine is
//! stopped between two instructions, every processor's counters are read, and it goes on as if it had not been
//! stopped. What is read depends on the [`Meter`] that drives the processors: events of translation always, cycles and
//! the performance monitor's events with a pipeline model ([`timed`](super::timed)).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sidestep_guests::ia64;
use sidestep_ia64::execution::{Driver, Untimed};
use sidestep_ia64::mmu::TranslationEvents;
use sidestep_itanium2::Counters;
use sidestep_lab::{Context, PointError, Timeline};
use sidestep_machine::description::bare::begin;
use sidestep_machine::machine::VirtualTime;
use sidestep_machine::machine::dumps::{DumpCalls, KeptDumps};
use sidestep_machine::machine::hypercall::{Call, HypercallHandler, Reaction, StandardCalls};
use sidestep_machine::{End, GuestMemory, Machine, MachineBuilder, MemoryRange, image};
use thiserror::Error;

/// The hypercall of a mark: r8 holds the label.
pub const MARK: u64 = 0x100;

/// How many instructions or cycles several processors may be apart; short, as the kernel's CPUs wait for each other in
/// loops.
const QUANTUM_TICKS: u64 = 200;
/// Instructions between two looks at whether the user wants to stop.
const BREATH: u64 = 5_000_000;

/// Why a run of the kernel has no result.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The kernel ended with another exit code than zero.
    #[error("the kernel ended with exit code {code}; its console ends with: {console}")]
    Exit {
        /// The exit code.
        code: u64,
        /// The last line of the console.
        console: String,
    },
    /// The machine came to an end of its own.
    #[error("the machine stands still: {0:?}")]
    Ended(End),
    /// It took longer than any run should.
    #[error("the kernel did not end within {0} instructions")]
    Limit(u64),
    /// The caller gave up.
    #[error("interrupted")]
    Cancelled,
    /// The memory could not be laid out, or the image not loaded: a defect of this file.
    #[error("{0}")]
    Machine(String),
}

impl KernelError {
    /// As the failure of a point.
    pub fn into_point_error(self) -> PointError {
        match self {
            KernelError::Cancelled => PointError::Cancelled,
            error => PointError::Failed(error.to_string()),
        }
    }
}

/// The guests that mark what they measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// The kernel of `guests/ia64/kernel`, compiled for this number of processors: 1 or 2.
    Kernel(usize),
    /// The two threads of `guests/ia64/ipc`, on one processor.
    Messages,
}

impl Guest {
    /// How many processors its machine has.
    pub fn processors(self) -> usize {
        match self {
            Guest::Kernel(processors) => processors,
            Guest::Messages => 1,
        }
    }

    /// How many instructions or cycles its processors may be apart; one alone has nobody to be apart from.
    pub fn quantum_ticks(self) -> u64 {
        match self.processors() {
            1 => VirtualTime::default().quantum_ticks,
            _ => QUANTUM_TICKS,
        }
    }

    /// What it is loaded from.
    pub fn image(self) -> &'static [u8] {
        match self {
            Guest::Kernel(processors) => ia64::KERNELS[processors - 1],
            Guest::Messages => ia64::MESSAGES,
        }
    }
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The guest.
    pub guest: Guest,
    /// The kernel's parameters, with the program and its arguments at the end.
    pub parameters: String,
    /// How much memory there is, in MB.
    pub memory_mb: u64,
    /// The most instructions of all processors together.
    pub instructions_max: u64,
    /// How many instructions or cycles processors may be apart: [`Guest::quantum_ticks`], or what a test wants.
    pub quantum_ticks: u64,
    /// Whether core dumps are kept; the kernel writes none otherwise.
    pub keeps_dumps: bool,
}

/// What all processors together had counted at a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The mark's label.
    pub label: u64,
    /// Retired instructions.
    pub instructions: u64,
    /// Translation events.
    pub events: TranslationEvents,
    /// The machine's time at the processor that made the mark: ticks, which are cycles with a pipeline model.
    pub time: u64,
    /// What the pipeline models of all processors counted, if there are any.
    pub counters: Option<Counters>,
}

/// What a run gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// A reading for each mark, in order.
    pub readings: Vec<Reading>,
    /// What was printed.
    pub console: String,
    /// Core dumps, by process.
    pub dumps: BTreeMap<u64, Vec<u8>>,
    /// Instructions retired by each processor.
    pub retired: Vec<u64>,
    /// The machine's time at its end, of the processor that is furthest.
    pub time: u64,
}

/// What drives a processor and may count what a pipeline does.
pub trait Meter: Driver {
    /// The counters so far; `None` where nothing is counted.
    fn counters(&self) -> Option<Counters>;
}

impl Meter for Untimed {
    fn counters(&self) -> Option<Counters> {
        None
    }
}

impl Run {
    /// Runs the guest as it is: see [`Run::run_from`].
    ///
    /// # Errors
    /// If the kernel does not end by itself and with exit code zero.
    pub fn run<M: Meter>(
        &self,
        meters: &mut [M],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Finished, KernelError> {
        self.run_from(self.guest.image(), meters, cancelled)
    }

    /// Runs the kernel of an image of the guest to its end, in virtual time. `meters` are one for each processor, and
    /// are given back with what they know. `cancelled` is asked now and then.
    ///
    /// # Errors
    /// If the kernel does not end by itself and with exit code zero.
    pub fn run_from<M: Meter>(
        &self,
        image: &[u8],
        meters: &mut [M],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Finished, KernelError> {
        let marks = Arc::new(Marks::default());
        let output = Output::default();
        let dumps = KeptDumps::default();
        let mut machine = self.machine(image, (&marks, &output, &dumps))?;
        let mut readings = Vec::new();
        let mut left = self.instructions_max;
        loop {
            let executor = VirtualTime {
                quantum_ticks: self.quantum_ticks,
                alone_ticks: VirtualTime::default().quantum_ticks,
                instructions_max: left.min(BREATH),
                ..VirtualTime::default()
            };
            let before = instructions(&machine);
            let outcome = executor.run_driven(&mut machine, meters);
            left = left.saturating_sub(instructions(&machine) - before);
            for mark in marks.take() {
                readings.push(read(mark, &machine, meters));
            }
            match outcome.end {
                End::Exit(0) => {
                    return Ok(Finished {
                        readings,
                        console: output.text(),
                        dumps: dumps.take(),
                        retired: outcome.retired,
                        time: machine.cpus.iter().map(|cpu| cpu.ticks()).max().unwrap_or(0),
                    });
                }
                End::Exit(code) => {
                    let console = output.text();
                    let last = console.lines().last().unwrap_or("").to_owned();
                    return Err(KernelError::Exit { code, console: last });
                }
                End::Stopped => {}
                End::Limit if left == 0 => return Err(KernelError::Limit(self.instructions_max)),
                End::Limit if cancelled() => return Err(KernelError::Cancelled),
                End::Limit => {}
                end @ (End::Deadlock | End::Halted(_) | End::Reset | End::Panic) => {
                    return Err(KernelError::Ended(end));
                }
            }
        }
    }

    fn machine(
        &self,
        image: &[u8],
        (marks, output, dumps): (&Arc<Marks>, &Output, &KeptDumps),
    ) -> Result<Machine, KernelError> {
        let processors = self.guest.processors();
        let failed = |error: &dyn std::fmt::Display| KernelError::Machine(error.to_string());
        let memory =
            GuestMemory::new(&[MemoryRange::ram(0, self.memory_mb << 20)]).map_err(|error| failed(&error))?;
        let loaded = image::load(&memory, image).map_err(|error| failed(&error))?;
        let mut builder = MachineBuilder::new(memory, processors);
        let parameters = format!("memory={} {}", self.memory_mb, self.parameters);
        builder.handle(StandardCalls::new(Box::new(output.clone()), &parameters));
        builder.handle(Marker(Arc::clone(marks)));
        if self.keeps_dumps {
            builder.handle(DumpCalls::new(Box::new(dumps.clone())));
        }
        let mut machine = builder.build();
        begin(&mut machine.cpus[0].processor, loaded.entry, 0, processors);
        Ok(machine)
    }
}

impl Finished {
    /// The run and, within it, the phases between marks as spans, if a timeline is wanted; a tick is taken as a cycle
    /// at `megahertz`.
    pub fn timeline(&self, megahertz: u32, context: &Context) -> Timeline {
        let mut timeline = Timeline::default();
        if !context.trace {
            return timeline;
        }
        let nanoseconds = |ticks: u64| ticks * 1000 / u64::from(megahertz.max(1));
        let track = timeline.track("program");
        timeline.span(track, "the whole run", 0, nanoseconds(self.time));
        for pair in self.readings.windows(2) {
            let (from, to) = (nanoseconds(pair[0].time), nanoseconds(pair[1].time));
            let name = match pair[0].label % 2 {
                1 => format!("phase {} to {}", pair[0].label, pair[1].label),
                _ => "warming up".to_owned(),
            };
            timeline.span(track, name, from, to - from);
        }
        timeline
    }

    /// What lies between the marks `from` and `to`, which the program makes once each.
    ///
    /// # Panics
    /// If it does not: a defect of the experiment.
    pub fn between(&self, from: u64, to: u64) -> Reading {
        let of = |label: u64| {
            let mut found = self.readings.iter().filter(|reading| reading.label == label);
            match (found.next(), found.next()) {
                (Some(reading), None) => *reading,
                _ => panic!("the program makes mark {label} once"),
            }
        };
        let (from, to) = (of(from), of(to));
        let (old, new) = (from.events, to.events);
        Reading {
            label: to.label,
            instructions: to.instructions - from.instructions,
            events: TranslationEvents {
                data_misses: new.data_misses - old.data_misses,
                instruction_misses: new.instruction_misses - old.instruction_misses,
                walker_reads: new.walker_reads - old.walker_reads,
                walker_hits: new.walker_hits - old.walker_hits,
                software_insertions: new.software_insertions - old.software_insertions,
                purges: new.purges - old.purges,
            },
            time: to.time - from.time,
            counters: to.counters.zip(from.counters).map(|(to, from)| to - from),
        }
    }
}

fn instructions(machine: &Machine) -> u64 {
    machine
        .cpus
        .iter()
        .map(|cpu| cpu.processor.instructions_retired())
        .sum()
}

fn read<M: Meter>(mark: Mark, machine: &Machine, meters: &[M]) -> Reading {
    let mut events = TranslationEvents::default();
    for mmu in machine.cpus.iter().filter_map(|cpu| cpu.processor.mmu()) {
        events.data_misses += mmu.events.data_misses;
        events.instruction_misses += mmu.events.instruction_misses;
        events.walker_reads += mmu.events.walker_reads;
        events.walker_hits += mmu.events.walker_hits;
        events.software_insertions += mmu.events.software_insertions;
        events.purges += mmu.events.purges;
    }
    Reading {
        label: mark.label,
        instructions: instructions(machine),
        events,
        time: machine.cpus[mark.processor].ticks(),
        counters: meters.iter().filter_map(Meter::counters).reduce(|mut sum, part| {
            sum += part;
            sum
        }),
    }
}

/// A mark: its label, and the processor that made it.
struct Mark {
    label: u64,
    processor: usize,
}

/// The marks that were made and not read yet.
#[derive(Default)]
struct Marks(Mutex<Vec<Mark>>);

impl Marks {
    fn take(&self) -> Vec<Mark> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Notes a mark and has the machine stop, so that all processors can be read.
struct Marker(Arc<Marks>);

impl HypercallHandler for Marker {
    fn call(&self, call: &mut Call<'_>) -> Option<Reaction> {
        if call.function() != MARK {
            return None;
        }
        let label = call.argument(0);
        self.0
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Mark {
                label,
                processor: call.index,
            });
        call.set_result(0, 0);
        call.platform.request_stop();
        Some(Reaction::Return)
    }
}

/// The console: keeps what is printed.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
