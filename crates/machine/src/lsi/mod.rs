//! A SCSI controller, the LSI53C895A, which the kernel's `sym53c8xx` drives: what many Itanium disks are behind.
//!
//! - `registers`: its registers. `scripts`: its processor, which runs a driver's SCRIPTS from memory or from the
//!   controller's own RAM. `nexus`: the target that it talks to, a [`Unit`].
//! - [`Controller`]: the function on the PCI bus.
//!
//! A store that starts SCRIPTS, or signals to those that wait, schedules a turn on the machine's timeline; there they
//! run, so that the processor that stored goes on. A turn ends after `INSTRUCTIONS_MAX` instructions or
//! `BYTES_MAX` bytes at the latest: SCRIPTS without an end take machine time as a driver's other loops do, and stop
//! nobody. Memory is reached by the addresses of the bus; where there is no RAM the transfer ends with a bus fault.
//!
//! Left out, since no driver of an initiator needs it: target mode, registers among I/O ports, reselection (targets
//! keep the bus), synchronous and wide transfers (targets reject them), parity errors.

mod nexus;
mod registers;
mod scripts;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::machine::timeline::{Phase, TICKS_PER_SECOND, Ticket, Timeline};
use crate::memory::GuestMemory;
use crate::pci::Function;
use crate::pci::configuration::{Configuration, Identity, Place, Space};
use crate::pci::interrupts::Interrupts;
use crate::pci::mastering::BusMaster;
use crate::storage::scsi::{Sense, Unit};
use crate::virtio::facilities::LATENCY_TICKS;
use nexus::Nexus;
use registers::{BYTES, Registers, at, bit};

/// Bytes of the controller's own RAM.
pub const RAM_BYTES: u32 = 8 << 10;
/// Bytes of the region of registers, in which they are repeated.
pub const REGISTERS_BYTES: u32 = 1 << 10;
/// The most targets: sixteen identifiers, of which the controller has one.
pub const TARGETS_MAX: usize = 15;
/// The most instructions of a turn.
pub const INSTRUCTIONS_MAX: u32 = 1_000;
/// How many bytes end a turn.
pub const BYTES_MAX: u64 = 1 << 20;

/// The controller's own identifier on its bus.
const HOST: u8 = 7;
/// The shortest time of its general-purpose timer, 125 microseconds.
const TIMER_TICKS: u64 = TICKS_PER_SECOND / 8_000;

const IDENTITY: Identity = Identity {
    vendor: 0x1000,
    device: 0x0012,
    subsystem_vendor: 0x1000,
    subsystem: 0x1000,
    revision: 0,
    class: 0x01_00_00,
};

/// What SCRIPTS do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Run {
    /// Nothing.
    Stopped,
    /// They run, in the next turn.
    Running,
    /// They wait for a target to reselect the controller, or for the driver's signal.
    Waiting,
    /// They wait for what no target will do.
    Stalled,
}

/// The controller without its configuration space.
struct State {
    registers: Registers,
    ram: Vec<u8>,
    run: Run,
    carry: bool,
    nexus: Option<Nexus>,
    /// Whether it has selected a target that does not answer.
    selects_nobody: bool,
    /// By identifier.
    units: Vec<Option<Unit>>,
    /// The next turn and the end of the timer on the timeline.
    turn: Option<Ticket>,
    timer: Option<Ticket>,
    memory: BusMaster,
    interrupts: Interrupts,
    /// Where its registers and its RAM are on the bus.
    place: Place,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    registers: Vec<u8>,
    ram: Vec<u8>,
    run: Run,
    carry: bool,
    nexus: Option<Nexus>,
    selects_nobody: bool,
    senses: Vec<Option<Sense>>,
    turn: Option<Ticket>,
    timer: Option<Ticket>,
}

/// The function on the PCI bus.
pub struct Controller {
    configuration: Configuration,
    interrupts: Interrupts,
    state: Arc<Mutex<State>>,
    timeline: Arc<Timeline>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that the regions of a controller need, from a multiple of it on.
pub const SIZE: u32 = 2 * RAM_BYTES;

impl Controller {
    /// A controller with these targets, in the order of their identifiers: 0 to 6 and 8 to 15. Firmware has put its
    /// registers at `start`, a multiple of [`SIZE`], and its line is said to be number `line`.
    ///
    /// # Panics
    /// If there are too many targets.
    pub fn new(
        units: Vec<Unit>,
        memory: Arc<GuestMemory>,
        interrupts: Interrupts,
        timeline: Arc<Timeline>,
        start: u32,
        line: u8,
    ) -> Controller {
        assert!(units.len() <= TARGETS_MAX, "{} targets", units.len());
        let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
        units.resize_with(TARGETS_MAX, || None);
        units.insert(usize::from(HOST), None);
        let mut configuration = Configuration::new(IDENTITY);
        configuration.add_region_at(1, Space::Memory, REGISTERS_BYTES, start);
        configuration.add_region_at(2, Space::Memory, RAM_BYTES, start + RAM_BYTES);
        configuration.add_interrupt(line);
        let state = State {
            registers: Registers::new(),
            ram: vec![0; RAM_BYTES as usize],
            run: Run::Stopped,
            carry: false,
            nexus: None,
            selects_nobody: false,
            units,
            turn: None,
            timer: None,
            memory: BusMaster::new(memory, configuration.mastering()),
            interrupts: interrupts.clone(),
            place: configuration.place(),
        };
        Controller {
            configuration,
            interrupts,
            state: Arc::new(Mutex::new(state)),
            timeline,
        }
    }

    /// Schedules what a store has asked for.
    fn follow_up(&self, state: &mut State, timer: Option<u64>) {
        if state.run == Run::Running && state.turn.is_none() {
            let due = self.timeline.again(self.timeline.now(), LATENCY_TICKS);
            state.turn = Some(schedule_turn(&self.state, &self.timeline, due));
        }
        if let Some(ticks) = timer {
            let due = self.timeline.again(self.timeline.now(), ticks);
            let weak = Arc::downgrade(&self.state);
            state.timer = Some(self.timeline.schedule(due, Phase::Device, move |_| {
                if let Some(state) = weak.upgrade() {
                    lock(&state).expire(due);
                }
            }));
        }
    }
}

/// Has the timeline do a turn: weakly, or neither would ever be dropped.
fn schedule_turn(state: &Arc<Mutex<State>>, timeline: &Arc<Timeline>, due: u64) -> Ticket {
    let turn = turn(state, timeline);
    timeline.schedule(due, Phase::Transfer, turn)
}

fn turn(state: &Arc<Mutex<State>>, timeline: &Arc<Timeline>) -> impl FnOnce(u64) + Send + 'static {
    let (weak, timeline) = (Arc::downgrade(state), Arc::clone(timeline));
    move |due| {
        let Some(shared) = weak.upgrade() else {
            return;
        };
        let mut state = lock(&shared);
        state.turn = None;
        let bytes = state.run_scripts();
        if state.run == Run::Running {
            // As long as a bus of 125 MB/s needs.
            let due = timeline.again(due, LATENCY_TICKS + 8 * bytes);
            state.turn = Some(schedule_turn(&shared, &timeline, due));
        }
    }
}

impl State {
    /// The general-purpose timer has expired, unless it was set again since.
    fn expire(&mut self, due: u64) {
        if self.timer.is_some_and(|timer| timer.is_at(due)) {
            self.timer = None;
            self.raise_scsi(0, bit::SIST1_TIMER);
        }
    }

    /// Asserts the line as the causes that are enabled want it.
    fn update_line(&mut self) {
        let registers = &self.registers;
        let dma = registers.get(at::DSTAT) & registers.get(at::DIEN) & !bit::DSTAT_EMPTY;
        let low = registers.get(at::SIST0) & registers.get(at::SIEN0);
        let high = registers.get(at::SIST1) & registers.get(at::SIEN1);
        let on_the_fly = registers.has(at::ISTAT, bit::ISTAT_ON_THE_FLY);
        self.interrupts
            .set_line(dma != 0 || low != 0 || high != 0 || on_the_fly);
    }

    /// Stops SCRIPTS with an interrupt of theirs.
    fn raise_dma(&mut self, cause: u8) {
        self.registers.add(at::DSTAT, cause);
        self.run = Run::Stopped;
        self.update_line();
    }

    /// Raises causes of the SCSI bus.
    fn raise_scsi(&mut self, low: u8, high: u8) {
        self.registers.add(at::SIST0, low);
        self.registers.add(at::SIST1, high);
        self.update_line();
    }

    fn reset(&mut self) {
        self.registers = Registers::new();
        self.run = Run::Stopped;
        self.nexus = None;
        self.selects_nobody = false;
        self.timer = None;
        self.carry = false;
        self.update_line();
    }

    /// A byte of the registers, as a processor or SCRIPTS load it.
    fn load(&mut self, register: u8) -> u8 {
        let stored = self.registers.get(register);
        let phase = self.nexus.as_ref().map(|nexus| nexus.phase as u8);
        match register {
            at::SCNTL1 if phase.is_some() => stored | bit::SCNTL1_CONNECTED,
            at::ISTAT => {
                let dma = self.registers.get(at::DSTAT) & !bit::DSTAT_EMPTY != 0;
                let scsi = self.registers.get(at::SIST0) | self.registers.get(at::SIST1) != 0;
                let mut value = stored;
                for (is_set, bit) in [
                    (phase.is_some(), bit::ISTAT_CONNECTED),
                    (scsi, bit::ISTAT_SCSI),
                    (dma, bit::ISTAT_DMA),
                ] {
                    value |= if is_set { bit } else { 0 };
                }
                value
            }
            at::ISTAT1 if self.run != Run::Stopped => stored | bit::ISTAT1_RUNNING,
            at::DSTAT => {
                self.registers.set(at::DSTAT, bit::DSTAT_EMPTY);
                self.update_line();
                stored
            }
            at::SIST0 | at::SIST1 => {
                self.registers.set(register, 0);
                self.update_line();
                stored
            }
            at::CTEST2 => {
                let signalled = self.registers.has(at::ISTAT, bit::ISTAT_SIGNAL);
                self.registers.take(at::ISTAT, bit::ISTAT_SIGNAL);
                let memory = 1 << 4; // reached by memory, not by ports
                stored & 0x0f | memory | if signalled { bit::CTEST2_SIGNAL } else { 0 }
            }
            at::CTEST3 => stored & 0x0f,
            at::SSTAT0 if self.registers.has(at::SCNTL1, bit::SCNTL1_RESET) => bit::SSTAT0_RESET,
            at::SSTAT1 => phase.unwrap_or(0),
            // REQ and BSY, and the lines of the phase.
            at::SBCL => phase.map_or(0, |phase| 0xa0 | phase),
            at::STEST0 => HOST << 4,
            // Low-voltage differential; the clock's multiplier is locked.
            at::STEST4 => 0xe0,
            at::SSTAT0 | at::SSTAT2 | at::SBDL => 0,
            _ => stored,
        }
    }

    /// Stores a byte; answers the ticks of the timer if that was set.
    fn store(&mut self, register: u8, value: u8) -> Option<u64> {
        let before = self.registers.get(register);
        match register {
            at::ISTAT => self.store_status(value),
            at::SCNTL1 => {
                self.registers.set(register, value & !bit::SCNTL1_CONNECTED);
                if value & !before & bit::SCNTL1_RESET != 0 {
                    self.nexus = None;
                    self.selects_nobody = false;
                    self.raise_scsi(bit::SIST0_RESET, 0);
                }
            }
            at::DSTAT
            | at::SIST0
            | at::SIST1
            | at::SSTAT0
            | at::SSTAT1
            | at::SSTAT2
            | at::SBCL
            | at::STEST0 => {}
            at::STEST4 | at::CTEST1 | at::SSID => {}
            at::DIEN | at::SIEN0 | at::SIEN1 => {
                self.registers.set(register, value);
                self.update_line();
            }
            at::STIME1 => {
                self.registers.set(register, value);
                self.timer = None;
                return match value & 0xf {
                    0 => None,
                    log => Some(TIMER_TICKS << (log - 1)),
                };
            }
            at::STEST3 => self.registers.set(register, value & !bit::STEST3_CLEAR_FIFO),
            at::DCNTL => {
                self.registers.set(register, value & !bit::DCNTL_START);
                if value & bit::DCNTL_START != 0 {
                    self.start();
                }
            }
            _ => {
                self.registers.set(register, value);
                let is_last_of_pointer = register == at::DSP + 3;
                if is_last_of_pointer && !self.registers.has(at::DMODE, bit::DMODE_MANUAL) {
                    self.start();
                }
            }
        }
        None
    }

    fn start(&mut self) {
        self.run = Run::Running;
    }

    fn store_status(&mut self, value: u8) {
        if value & bit::ISTAT_RESET != 0 {
            return self.reset();
        }
        let kept = bit::ISTAT_SEMAPHORE | bit::ISTAT_SIGNAL | bit::ISTAT_ABORT;
        let acknowledged = value & bit::ISTAT_ON_THE_FLY != 0;
        let on_the_fly = match acknowledged {
            true => 0,
            false => self.registers.get(at::ISTAT) & bit::ISTAT_ON_THE_FLY,
        };
        self.registers.set(at::ISTAT, value & kept | on_the_fly);
        if value & bit::ISTAT_SIGNAL != 0 && self.run == Run::Waiting {
            self.wake();
        }
        if value & bit::ISTAT_ABORT != 0 && self.run != Run::Stopped {
            self.raise_dma(bit::DSTAT_ABORTED);
        }
        self.update_line();
    }

    fn save(&self) -> Saved {
        Saved {
            registers: self.registers.bytes().to_vec(),
            ram: self.ram.clone(),
            run: self.run,
            carry: self.carry,
            nexus: self.nexus.clone(),
            selects_nobody: self.selects_nobody,
            senses: self
                .units
                .iter()
                .map(|unit| unit.as_ref().map(Unit::sense))
                .collect(),
            turn: self.turn,
            timer: self.timer,
        }
    }

    /// Goes on from what was saved of a controller with the same targets; false if it was of another.
    fn restore(&mut self, saved: Saved) -> bool {
        let Some(registers) = Registers::from_bytes(&saved.registers) else {
            return false;
        };
        let is_connected = |nexus: &Nexus| {
            let unit = self.units.get(usize::from(nexus.target));
            unit.is_some_and(Option::is_some) && nexus.is_sound()
        };
        let fits = saved.ram.len() == self.ram.len()
            && saved.senses.len() == self.units.len()
            && saved.nexus.as_ref().is_none_or(is_connected);
        if !fits {
            return false;
        }
        for (unit, sense) in self.units.iter_mut().zip(&saved.senses) {
            if let (Some(unit), Some(sense)) = (unit, sense) {
                unit.restore(*sense);
            }
        }
        self.registers = registers;
        (self.ram, self.run, self.carry) = (saved.ram, saved.run, saved.carry);
        (self.nexus, self.turn, self.timer) = (saved.nexus, saved.turn, saved.timer);
        self.selects_nobody = saved.selects_nobody;
        true
    }
}

/// What an offset in the function's regions is.
enum Part {
    Register(u8),
    Ram(usize),
}

fn part(offset: u64) -> Part {
    match offset.checked_sub(u64::from(RAM_BYTES)) {
        Some(offset) => Part::Ram(offset as usize),
        None => Part::Register((offset % BYTES as u64) as u8),
    }
}

impl Function for Controller {
    fn configuration(&mut self) -> &mut Configuration {
        &mut self.configuration
    }

    fn interrupts(&self) -> Option<&Interrupts> {
        Some(&self.interrupts)
    }

    fn store_configuration(&mut self, offset: u64, size: u64, value: u32) {
        self.configuration.store(offset, size, value);
        self.interrupts
            .disable_line(self.configuration.is_line_disabled());
    }

    fn load(&mut self, offset: u64, size: u64) -> u64 {
        let mut state = lock(&self.state);
        (0..size).rev().fold(0, |value, byte| {
            let byte = match part(offset + byte) {
                Part::Register(register) => state.load(register),
                Part::Ram(at) => state.ram.get(at).copied().unwrap_or(0),
            };
            value << 8 | u64::from(byte)
        })
    }

    fn store(&mut self, offset: u64, size: u64, value: u64) {
        let mut state = lock(&self.state);
        let mut timer = None;
        for (offset, byte) in (offset..offset + size).zip(value.to_le_bytes()) {
            match part(offset) {
                Part::Register(register) => timer = state.store(register, byte).or(timer),
                Part::Ram(at) => {
                    if let Some(place) = state.ram.get_mut(at) {
                        *place = byte;
                    }
                }
            }
        }
        self.follow_up(&mut state, timer);
    }

    fn save(&self) -> Vec<u8> {
        minicbor_serde::to_vec(lock(&self.state).save()).expect("bytes in memory")
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        let Ok(saved) = minicbor_serde::from_slice::<Saved>(saved) else {
            return false;
        };
        let mut state = lock(&self.state);
        if !state.restore(saved) {
            return false;
        }
        if let Some(ticket) = state.turn {
            self.timeline
                .reschedule(ticket, Phase::Transfer, turn(&self.state, &self.timeline));
        }
        if let Some(ticket) = state.timer {
            let weak = Arc::downgrade(&self.state);
            self.timeline.reschedule(ticket, Phase::Device, move |due| {
                if let Some(state) = weak.upgrade() {
                    lock(&state).expire(due);
                }
            });
        }
        true
    }
}
