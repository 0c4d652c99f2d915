//! Virtual machines that are whole machines to their kernels: firmware, an interrupt controller, a serial port, PCI.
//!
//! The [platform](Platform) is the one that [machines](sidestep_machine::machine) have, with the same devices and the
//! same firmware; only the processors are virtual. Loads and stores of device registers are exits, the firmware's calls
//! are hypercalls. The platform's time is the clock of the virtual processor that executes: a tick for each cycle of
//! the host, so that it goes along with the interval time counter, whose frequency the firmware states as it does on
//! machines.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::PhysicalAddress;
use sidestep_ia64::registers::system::control;
use sidestep_machine::machine::ending::Request as Ending;
use sidestep_machine::machine::hypercall::{Call, Console, FAILED, HypercallHandler, Reaction};
use sidestep_machine::machine::interrupt_block::LocalIdentifier;
use sidestep_machine::machine::platform::Platform;
use sidestep_machine::virtio::facilities::Facilities;

use super::VirtualMachine;
use super::exit::ExitReason;
use super::front::VirtioFront;
use super::processor::{Activity, VirtualProcessor};
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::sidecall::request::Request;

/// The exit code of a virtual machine whose kernel panicked, or wants to start again.
const FAILURE: u64 = 255;

/// What surrounds the processors of a whole machine.
pub struct WholeMachine {
    /// Memory, devices, time.
    pub platform: Arc<Platform>,
    /// The firmware, and whoever else answers hypercalls.
    pub handlers: Arc<[Box<dyn HypercallHandler>]>,
    /// What is at the other end of its serial port.
    pub serial: SerialLine,
    /// Its block device, if it has one.
    pub disk: Option<Disk>,
    /// Its network device whose frames a card carries, if it has one.
    pub network: Option<VirtioFront>,
}

/// A block device that a kernel knows.
#[derive(Clone)]
pub struct Disk {
    /// The device behind its registers.
    pub facilities: Facilities,
    /// Where its doorbell is, if that is in a page of its own.
    pub doorbells: Option<Range<PhysicalAddress>>,
    /// Whether a sidecore is about to have it look at its queue.
    pub(super) is_looked_at: Arc<AtomicBool>,
}

impl Disk {
    /// The block device behind these registers, with its doorbells there.
    pub fn new(facilities: Facilities, doorbells: Option<Range<PhysicalAddress>>) -> Disk {
        Disk {
            facilities,
            doorbells,
            is_looked_at: Arc::default(),
        }
    }
}

/// What is at the other end of a serial port: what it has printed waits for the monitor, what was typed for the guest.
#[derive(Clone, Default)]
pub struct SerialLine(Arc<Mutex<Line>>);

#[derive(Default)]
struct Line {
    printed: Vec<u8>,
    typed: VecDeque<u8>,
    /// Whether more may be typed.
    is_open: bool,
}

impl SerialLine {
    /// A line at which all has been typed that ever will.
    pub fn typed(bytes: &[u8]) -> SerialLine {
        let line = SerialLine::default();
        line.line().typed.extend(bytes);
        line
    }

    /// A line at which somebody may type.
    pub fn open() -> SerialLine {
        let line = SerialLine::default();
        line.line().is_open = true;
        line
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Console for SerialLine {
    fn write(&mut self, bytes: &[u8]) {
        self.line().printed.extend_from_slice(bytes);
    }

    fn read(&mut self) -> Option<u8> {
        self.line().typed.pop_front()
    }

    fn has_ended(&self) -> bool {
        let line = self.line();
        line.typed.is_empty() && !line.is_open
    }
}

impl VirtualMachine {
    /// Whether somebody may type at its serial port.
    pub fn takes_input(&self) -> bool {
        (self.whole.as_ref()).is_some_and(|whole| whole.serial.line().is_open)
    }

    /// Types at its serial port; with `last` nothing more will be.
    pub fn type_input(&mut self, bytes: &[u8], last: bool) {
        if let Some(whole) = &self.whole {
            let mut line = whole.serial.line();
            line.typed.extend(bytes);
            line.is_open &= !last;
        }
    }

    /// Has devices do what is due by the clock of processor `index`, and that processor what devices and others want
    /// of it. When they have something to do next.
    pub(super) fn attend(&mut self, index: usize) -> Option<Cycle> {
        let platform = Arc::clone(&self.whole.as_ref()?.platform);
        let processor = &mut self.processors[index];
        let ticks = ticks_at(processor.clock());
        platform.timeline.set_now(ticks);
        platform.timeline.perform_until(ticks);
        let has_changed_code = !platform.memory.take_changed_code(index).is_empty();
        if platform.take_stale(index) || has_changed_code {
            processor.forget_instructions();
        }
        if let Some(work) = platform.take_start(index) {
            work(processor.processor_mut());
            processor.activity = Activity::Running;
        }
        let identifier = processor.processor().system.control[usize::from(control::LID)];
        let identifier = LocalIdentifier::from_register(identifier);
        platform.interrupts.identify(index, identifier);
        platform.timeline.next().map(Cycle)
    }

    /// Whether a device may still wake its processors.
    pub(super) fn awaits_devices(&self) -> bool {
        self.next_of_devices().is_some() || self.awaits_look()
    }

    /// Whether a sidecore is about to have the block device look at its queue.
    pub(super) fn awaits_look(&self) -> bool {
        let disk = self.whole.as_ref().and_then(|whole| whole.disk.as_ref());
        disk.is_some_and(|disk| disk.is_looked_at.load(Ordering::Relaxed))
    }

    /// Says whether sidecores look at the block device's doorbell, which a kernel then stores to without an exit.
    pub(super) fn watch_doorbell(&mut self, is_watched: bool) {
        let Some(disk) = self.whole.as_ref().and_then(|whole| whole.disk.as_ref()) else {
            return;
        };
        let Some(doorbells) = &disk.doorbells else {
            return;
        };
        disk.facilities.watch_doorbell(is_watched);
        self.shared
            .set_disk_doorbells(is_watched.then(|| doorbells.clone()));
        if !is_watched && disk.facilities.take_ring() {
            disk.facilities.look(disk_time(&self.processors));
        }
    }

    /// Leaves a sidecore word of a doorbell that was rung on processor `index`. One is enough until it has looked: the
    /// device then finds all that is in its queue.
    pub(super) fn read_doorbell(&mut self, index: usize) {
        let Some(disk) = self.whole.as_ref().and_then(|whole| whole.disk.as_ref()) else {
            return;
        };
        if !disk.is_looked_at.load(Ordering::Relaxed) && disk.facilities.take_ring() {
            disk.is_looked_at.store(true, Ordering::Relaxed);
            self.ask_unanswered(index, Request::Doorbell);
        }
    }

    /// When its devices have something to do next.
    pub(super) fn next_of_devices(&self) -> Option<Cycle> {
        self.whole.as_ref()?.platform.timeline.next().map(Cycle)
    }

    /// Takes what the serial port printed, and the machine's end.
    pub(super) fn settle(&mut self) {
        let Some(whole) = &self.whole else {
            return;
        };
        let ending = Arc::clone(&whole.platform.ending);
        let printed = std::mem::take(&mut whole.serial.line().printed);
        self.print(&printed);
        match ending.requested() {
            None => {}
            Some(Ending::Exit(code)) => self.exit_code = Some(u64::from(code)),
            Some(Ending::Reset) => {
                self.fail("its kernel has reset the machine; virtual machines do not start again".to_owned());
            }
            Some(Ending::Panic) => {
                let reason = ending.panic().unwrap_or_else(|| "it gave no reason".to_owned());
                self.fail(format!("its kernel panicked: {reason}"));
            }
        }
    }

    fn fail(&mut self, failure: String) {
        self.failure.get_or_insert(failure);
        self.exit_code = Some(FAILURE);
    }

    /// Answers a hypercall as the machine's firmware does; false if this is no whole machine.
    pub(super) fn call_firmware(&mut self, costs: &HostCosts, index: usize) -> bool {
        let Some(whole) = &self.whole else {
            return false;
        };
        let (platform, handlers) = (Arc::clone(&whole.platform), Arc::clone(&whole.handlers));
        let virtual_processor = &mut self.processors[index];
        virtual_processor.charge(
            ExitReason::Hypercall,
            costs.round_trip() + costs.cycles(Cost::Emulate),
        );
        let ticks = ticks_at(virtual_processor.clock());
        platform.timeline.set_now(ticks);
        let mut call = Call {
            index,
            ticks,
            processor: virtual_processor.processor_mut(),
            platform: &platform,
        };
        let answer = handlers.iter().find_map(|handler| handler.call(&mut call));
        let reaction = answer.unwrap_or_else(|| {
            call.set_result(0, FAILED);
            Reaction::Return
        });
        if reaction != Reaction::Resume {
            call.processor.skip_instruction();
        }
        match reaction {
            Reaction::Return | Reaction::Resume => {}
            Reaction::Wait => virtual_processor.activity = Activity::Waiting,
            Reaction::Stop => virtual_processor.activity = Activity::Stopped,
            Reaction::Exit(code) => self.exit_code = Some(code),
        }
        true
    }

    /// Has processors read instructions from memory again, because one of them has changed some.
    pub(super) fn instructions_changed(&mut self, by: usize) {
        for index in (0..self.processors.len()).filter(|index| *index != by) {
            self.processors[index].forget_instructions();
        }
    }
}

/// The platform's time for what no processor does: that of the one that is behind the others.
fn disk_time(processors: &[VirtualProcessor]) -> u64 {
    let clocks = processors.iter().map(VirtualProcessor::clock);
    clocks.min().map_or(0, ticks_at)
}

/// The platform's time at a host's: a tick is a cycle.
fn ticks_at(time: Cycle) -> u64 {
    time.0
}

/// Has a running processor come back to the monitor when an interrupt is requested.
pub(super) fn connect(platform: &Platform, machine: &VirtualMachine) {
    let attention = (machine.processors.iter())
        .map(|processor| processor.processor().attention())
        .collect();
    platform.connect(machine.interrupts.iter().map(Arc::clone), attention);
}
