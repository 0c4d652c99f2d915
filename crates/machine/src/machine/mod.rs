//! A machine: processors on one memory and one bus, and the executors that run them.
//!
//! - [`timeline`]: the clock and what is to happen when; [`interrupt_block`]: interrupts to processors;
//!   `purge`: global purges of translations; [`platform`]: these together, as processors and devices share them.
//! - [`hypercall`]: what a guest asks of the host, and who answers.
//! - [`ending`]: how devices end the machine; [`interruption_loop`]: guests that get nowhere.
//! - [`virtual_time`] and [`host_threads`]: the two executors.
//!
//! Build one with a [`MachineBuilder`], give its processors their first state, and run it with an executor, which
//! returns an [`Outcome`]. A machine that was stopped can be looked at, changed, and run on, also by the other
//! executor.

pub mod dumps;
pub mod ending;
pub mod host_threads;
pub mod hypercall;
pub mod interrupt_block;
pub mod interruption_loop;
pub mod platform;
mod purge;
pub mod sidecore;
mod slice;
pub mod timeline;
pub mod virtual_time;
pub mod wakeups;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{PhysicalAddress, Processor};
use thiserror::Error;

use crate::bus::{Bus, BusConflict, Device, SharedDevice};
use crate::memory::{GuestMemory, INTERRUPT_BLOCK, INTERRUPT_BLOCK_SIZE, MemoryRange};
use ending::{Ending, Request};
use hypercall::HypercallHandler;
use interrupt_block::{InterruptBlock, LocalIdentifier};
use platform::{Platform, Port};
use timeline::Timeline;
use wakeups::Wakeups;

pub use host_threads::HostThreads;
pub use sidecore::{Sidecore, Waits};
pub use virtual_time::VirtualTime;

/// The most processors a machine can have: a local identifier's id has 8 bits.
pub const PROCESSORS_MAX: usize = 256;

/// What a processor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// It executes.
    Running,
    /// It waits for an interrupt.
    Waiting,
    /// It does nothing until it is started.
    Stopped,
}

/// A processor of a machine.
pub struct Cpu {
    /// The processor.
    pub processor: Processor,
    /// What it does.
    pub activity: Activity,
    /// How far its part of the machine's time has come.
    pub(crate) ticks: u64,
}

impl Cpu {
    /// How far its part of the machine's time has come: ticks, in which it executed or waited.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// What limits of instructions count: those retired, and interruptions between which none did, so that a limit
    /// also ends a guest that only takes interruptions.
    pub fn executed(&self) -> u64 {
        self.processor.instructions_retired() + self.processor.fruitless_interruptions().total
    }
}

/// Why an executor came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The guest ended the machine with this exit code.
    Exit(u64),
    /// The guest wants the machine to start again.
    Reset,
    /// The guest's kernel has panicked; [`Ending::panic`] says why.
    Panic,
    /// The instruction limit was reached.
    Limit,
    /// Somebody asked for it with [`Platform::request_stop`].
    Stopped,
    /// No processor executes, and nothing is left that could wake one.
    Deadlock,
    /// The driver of this processor halted before an instruction.
    Halted(usize),
}

/// What came out of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// Instructions retired by each processor since the machine was built.
    pub retired: Vec<u64>,
    /// How far the machine's time has come.
    pub ticks: u64,
}

impl Outcome {
    /// The guest's exit code, if the guest ended the machine.
    pub fn exit_code(&self) -> Option<u64> {
        match self.end {
            End::Exit(code) => Some(code),
            _ => None,
        }
    }
}

/// Why a device could not be attached.
#[derive(Debug, Error)]
pub enum AttachError {
    /// Another device is there.
    #[error(transparent)]
    Bus(#[from] BusConflict),
    /// Memory is there.
    #[error("the device `{name}` at {start} overlaps the memory at {memory}")]
    Memory {
        /// The device.
        name: String,
        /// Its first address.
        start: PhysicalAddress,
        /// Where the memory starts.
        memory: PhysicalAddress,
    },
    /// The processor interrupt block is there.
    #[error(
        "the device `{name}` at {start} overlaps the processor interrupt block at {}",
        INTERRUPT_BLOCK
    )]
    InterruptBlock {
        /// The device.
        name: String,
        /// Its first address.
        start: PhysicalAddress,
    },
}

/// A machine that is being put together.
pub struct MachineBuilder {
    memory: Arc<GuestMemory>,
    bus: Bus,
    interrupts: Arc<InterruptBlock>,
    timeline: Arc<Timeline>,
    wakeups: Arc<Wakeups>,
    ending: Arc<Ending>,
    handlers: Vec<Box<dyn HypercallHandler>>,
}

impl MachineBuilder {
    /// A machine with this memory and so many processors.
    ///
    /// # Panics
    /// If there is no processor, or more than [`PROCESSORS_MAX`].
    pub fn new(memory: GuestMemory, processors: usize) -> MachineBuilder {
        assert!((1..=PROCESSORS_MAX).contains(&processors), "1 to 256 processors");
        let wakeups = Arc::<Wakeups>::default();
        MachineBuilder {
            memory: Arc::new(memory),
            bus: Bus::default(),
            interrupts: Arc::new(InterruptBlock::new(processors, Arc::clone(&wakeups))),
            timeline: Arc::new(Timeline::new(Arc::clone(&wakeups))),
            wakeups,
            ending: Arc::default(),
            handlers: Vec::new(),
        }
    }

    /// The memory, for devices that reach it themselves.
    pub fn memory(&self) -> Arc<GuestMemory> {
        Arc::clone(&self.memory)
    }

    /// The interrupt block, for devices that send interrupts.
    pub fn interrupts(&self) -> Arc<InterruptBlock> {
        Arc::clone(&self.interrupts)
    }

    /// The timeline, for devices that act later.
    pub fn timeline(&self) -> Arc<Timeline> {
        Arc::clone(&self.timeline)
    }

    /// The way for devices to end the machine.
    pub fn ending(&self) -> Arc<Ending> {
        Arc::clone(&self.ending)
    }

    /// What wakes a machine that waits, for devices whose input comes from other threads.
    pub fn wakeups(&self) -> Arc<Wakeups> {
        Arc::clone(&self.wakeups)
    }

    /// Attaches a device.
    ///
    /// # Errors
    /// If something else answers at one of its addresses.
    pub fn attach(
        &mut self,
        name: &str,
        start: PhysicalAddress,
        size: u64,
        device: impl Device + 'static,
    ) -> Result<(), AttachError> {
        self.attach_shared(name, start, size, Arc::new(Mutex::new(device)))
    }

    /// Attaches a device that others hold as well.
    ///
    /// # Errors
    /// If something else answers at one of its addresses.
    pub fn attach_shared(
        &mut self,
        name: &str,
        start: PhysicalAddress,
        size: u64,
        device: SharedDevice,
    ) -> Result<(), AttachError> {
        let name_owned = || name.to_owned();
        let end = start.0.saturating_add(size);
        let overlaps = |other: u64, other_end: u64| start.0 < other_end && other < end;
        let holds = |range: &&MemoryRange| overlaps(range.start.0, range.end());
        if let Some(range) = self.memory.ranges().iter().find(holds) {
            let memory = range.start;
            return Err(AttachError::Memory {
                name: name_owned(),
                start,
                memory,
            });
        }
        let block = INTERRUPT_BLOCK.0;
        if overlaps(block, block + INTERRUPT_BLOCK_SIZE) {
            return Err(AttachError::InterruptBlock {
                name: name_owned(),
                start,
            });
        }
        Ok(self.bus.attach(name, start, size, device)?)
    }

    /// Adds a handler of hypercalls, to be asked after those before it.
    pub fn handle(&mut self, handler: impl HypercallHandler + 'static) {
        self.handlers.push(Box::new(handler));
    }

    /// The machine without its processors, for whoever has others: they are to be connected to the platform.
    pub fn build_platform(self) -> (Arc<Platform>, Vec<Box<dyn HypercallHandler>>) {
        let platform = Platform::new(
            self.memory,
            self.bus,
            self.interrupts,
            self.timeline,
            self.wakeups,
            self.ending,
        );
        (Arc::new(platform), self.handlers)
    }

    /// The machine: every processor as after reset, at address zero; all but the first are stopped.
    pub fn build(self) -> Machine {
        let (platform, handlers) = self.build_platform();
        let cpus: Vec<Cpu> = (0..platform.processors())
            .map(|index| {
                let port = Port {
                    platform: Arc::clone(&platform),
                    index,
                };
                let mut processor = Processor::new_system(Arc::new(port));
                processor.set_hypercall(hypercall::IMMEDIATE);
                let identifier = LocalIdentifier {
                    id: index as u8,
                    eid: 0,
                };
                processor.system.control[usize::from(control::LID)] = identifier.register();
                let activity = if index == 0 {
                    Activity::Running
                } else {
                    Activity::Stopped
                };
                Cpu {
                    processor,
                    activity,
                    ticks: 0,
                }
            })
            .collect();
        let attention: Vec<_> = cpus.iter().map(|cpu| cpu.processor.attention()).collect();
        platform.purges.connect(attention.clone());
        let interrupts = cpus
            .iter()
            .map(|cpu| cpu.processor.interrupts().expect("system mode has interrupts"));
        platform.connect(interrupts, attention);
        Machine {
            cpus,
            platform,
            handlers,
            round_end: None,
            waits: Waits::default(),
        }
    }
}

/// Processors with what they share.
pub struct Machine {
    /// The processors.
    pub cpus: Vec<Cpu>,
    platform: Arc<Platform>,
    handlers: Vec<Box<dyn HypercallHandler>>,
    /// When the round of virtual time ends that was left in the middle.
    pub(crate) round_end: Option<u64>,
    /// How the devices' thread has waited.
    waits: Waits,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.platform.timeline.clear();
    }
}

impl Machine {
    /// What the processors share. Other threads may hold it, to stop the machine or to send interrupts.
    pub fn platform(&self) -> &Arc<Platform> {
        &self.platform
    }

    /// How the thread that does the devices' work has waited for it, in runs by the host's clock.
    pub fn waits(&self) -> Waits {
        self.waits
    }

    /// What limits of instructions count, of all processors; see [`Cpu::executed`].
    pub fn executed(&self) -> u64 {
        self.cpus.iter().map(Cpu::executed).sum()
    }

    /// Has every processor make the purges that others have left for it, as it would before its next instruction.
    pub(crate) fn settle(&mut self) {
        for (index, cpu) in self.cpus.iter_mut().enumerate() {
            for purge in self.platform.purges.enter(index) {
                cpu.processor.purge_translations(purge);
            }
            self.platform.purges.leave(index);
        }
    }

    /// The outcome as of now.
    fn outcome(&self, end: End) -> Outcome {
        self.platform.stop.store(false, Ordering::Release);
        let end = match self.platform.ending.requested() {
            Some(Request::Exit(code)) => End::Exit(u64::from(code)),
            Some(Request::Reset) => End::Reset,
            Some(Request::Panic) => End::Panic,
            None => end,
        };
        Outcome {
            end,
            retired: self
                .cpus
                .iter()
                .map(|cpu| cpu.processor.instructions_retired())
                .collect(),
            ticks: self.cpus.iter().map(|cpu| cpu.ticks).max().unwrap_or(0),
        }
    }
}
