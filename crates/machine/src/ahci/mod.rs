//! A Serial ATA controller (AHCI), which the kernel's `ahci` drives: disks and CD-ROMs as today's machines have them.
//!
//! - `registers`: its registers. `frames`: what is in memory between a driver and a port. `port`: a port and the device
//!   behind it.
//! - [`Controller`]: the function on the PCI bus.
//!
//! It follows the specification's version 1.3.1, with the numbers of Intel's ICH9. A store that issues commands
//! schedules a turn on the machine's timeline; there they are done, so that the processor that stored goes on. A turn
//! ends after `BYTES_MAX` bytes. Memory is reached by the addresses of the bus; where there is no RAM the port stops
//! with a bus fault.
//!
//! Left out, since drivers do without: queued commands (NCQ), port multipliers, power management, hot plugging,
//! messages (MSI).

mod frames;
mod port;
mod registers;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::machine::timeline::{Phase, Ticket, Timeline};
use crate::memory::GuestMemory;
use crate::pci::Function;
use crate::pci::configuration::{Configuration, Identity, Space};
use crate::pci::interrupts::Interrupts;
use crate::pci::mastering::BusMaster;
use crate::storage::scsi::Sense;
use crate::virtio::facilities::LATENCY_TICKS;
pub use port::Behind;
use port::Port;
use registers::{CAPABILITIES, VERSION, at, control, port as port_at};

/// Bytes of the region of registers.
pub const REGISTERS_BYTES: u32 = 4 << 10;
/// The most ports.
pub const PORTS_MAX: usize = 6;
/// How many bytes end a turn.
pub const BYTES_MAX: u64 = 1 << 20;

const IDENTITY: Identity = Identity {
    vendor: 0x8086,
    device: 0x2922,
    subsystem_vendor: 0x8086,
    subsystem: 0x2922,
    revision: 2,
    class: 0x01_06_01,
};

/// The controller without its configuration space.
struct State {
    control: u32,
    /// Which ports have asked for an interrupt.
    asking: u32,
    ports: Vec<Port>,
    /// The next turn on the timeline.
    turn: Option<Ticket>,
    memory: BusMaster,
    interrupts: Interrupts,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    control: u32,
    asking: u32,
    ports: Vec<(port::Registers, Option<Sense>)>,
    turn: Option<Ticket>,
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

impl Controller {
    /// A controller with a port for each of these. Firmware has put its registers at `start`, a multiple of
    /// [`REGISTERS_BYTES`], and its line is said to be number `line`.
    ///
    /// # Panics
    /// If there are none, or too many.
    pub fn new(
        behind: Vec<Behind>,
        memory: Arc<GuestMemory>,
        interrupts: Interrupts,
        timeline: Arc<Timeline>,
        start: u32,
        line: u8,
    ) -> Controller {
        assert!((1..=PORTS_MAX).contains(&behind.len()), "{} ports", behind.len());
        let mut configuration = Configuration::new(IDENTITY);
        configuration.add_region_at(5, Space::Memory, REGISTERS_BYTES, start);
        configuration.add_interrupt(line);
        let state = State {
            control: control::AHCI,
            asking: 0,
            ports: behind.into_iter().map(Port::new).collect(),
            turn: None,
            memory: BusMaster::new(memory, configuration.mastering()),
            interrupts: interrupts.clone(),
        };
        Controller {
            configuration,
            interrupts,
            state: Arc::new(Mutex::new(state)),
            timeline,
        }
    }
}

/// Has the timeline do a turn: weakly, or neither would ever be dropped.
fn turn(state: &Arc<Mutex<State>>, timeline: &Arc<Timeline>) -> impl FnOnce(u64) + Send + 'static {
    let (weak, timeline) = (Arc::downgrade(state), Arc::clone(timeline));
    move |due| {
        let Some(shared) = weak.upgrade() else {
            return;
        };
        let mut state = lock(&shared);
        state.turn = None;
        let bytes = state.work();
        if state.has_work() {
            // As long as a cable of 150 MB/s needs.
            let due = timeline.again(due, LATENCY_TICKS + 20 * bytes / 3);
            let turn = turn(&shared, &timeline);
            state.turn = Some(timeline.schedule(due, Phase::Transfer, turn));
        }
    }
}

impl State {
    fn has_work(&self) -> bool {
        self.ports.iter().any(Port::has_work)
    }

    /// Does commands of all ports in turn until there are no more or enough was moved; answers how many bytes.
    fn work(&mut self) -> u64 {
        let mut moved = 0;
        while moved < BYTES_MAX && self.has_work() {
            for port in &mut self.ports {
                moved += port.work(&self.memory);
            }
        }
        self.update_line();
        moved
    }

    /// Asserts the line as the ports want it.
    fn update_line(&mut self) {
        for (number, port) in self.ports.iter().enumerate() {
            if port.asks() {
                self.asking |= 1 << number;
            }
        }
        let asserted = self.asking != 0 && self.control & control::INTERRUPTS != 0;
        self.interrupts.set_line(asserted);
    }

    fn load(&self, offset: u32) -> u32 {
        let ports = self.ports.len() as u32;
        match offset {
            at::CAPABILITIES => CAPABILITIES | (ports - 1),
            at::CONTROL => self.control,
            at::INTERRUPTS => self.asking,
            at::PORTS => (1 << ports) - 1,
            at::VERSION => VERSION,
            _ => match self.port(offset) {
                Some((port, register)) => self.ports[port].load(register),
                None => 0,
            },
        }
    }

    fn store(&mut self, offset: u32, value: u32) {
        match offset {
            at::CONTROL if value & control::RESET != 0 => {
                (self.control, self.asking) = (control::AHCI, 0);
                self.ports.iter_mut().for_each(Port::reset);
            }
            at::CONTROL => self.control = value & control::INTERRUPTS | control::AHCI,
            at::INTERRUPTS => self.asking &= !value,
            _ => {
                if let Some((port, register)) = self.port(offset) {
                    self.ports[port].store(&self.memory, register, value);
                }
            }
        }
        self.update_line();
    }

    /// Which port an offset is of, and which of its registers.
    fn port(&self, offset: u32) -> Option<(usize, u32)> {
        let offset = offset.checked_sub(at::FIRST_PORT)?;
        let port = (offset / port_at::BYTES) as usize;
        (port < self.ports.len()).then_some((port, offset % port_at::BYTES))
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
        let state = lock(&self.state);
        let word = offset & !3;
        let load = |offset: u64| u64::from(state.load(offset as u32));
        match size {
            8 => load(word) | load(word + 4) << 32,
            _ => load(word) >> (8 * (offset - word)),
        }
    }

    fn store(&mut self, offset: u64, size: u64, value: u64) {
        let mut state = lock(&self.state);
        // Registers are words; what is less, or not aligned, is not stored.
        let words = if offset.is_multiple_of(4) { size / 4 } else { 0 };
        for (place, value) in (0..words).zip([value as u32, (value >> 32) as u32]) {
            state.store((offset + 4 * place) as u32, value);
        }
        if state.turn.is_none() && state.has_work() {
            let due = self.timeline.again(self.timeline.now(), LATENCY_TICKS);
            let turn = turn(&self.state, &self.timeline);
            state.turn = Some(self.timeline.schedule(due, Phase::Transfer, turn));
        }
    }

    fn save(&self) -> Vec<u8> {
        let state = lock(&self.state);
        let saved = Saved {
            control: state.control,
            asking: state.asking,
            ports: state.ports.iter().map(Port::save).collect(),
            turn: state.turn,
        };
        minicbor_serde::to_vec(saved).expect("bytes in memory")
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        let mut state = lock(&self.state);
        let Ok(saved) = minicbor_serde::from_slice::<Saved>(saved) else {
            return false;
        };
        let fits = saved.ports.len() == state.ports.len();
        let mut pairs = state.ports.iter_mut().zip(saved.ports);
        if !fits || !pairs.all(|(port, saved)| port.restore(saved)) {
            return false;
        }
        (state.control, state.asking, state.turn) = (saved.control, saved.asking, saved.turn);
        if let Some(ticket) = state.turn {
            let turn = turn(&self.state, &self.timeline);
            self.timeline.reschedule(ticket, Phase::Transfer, turn);
        }
        true
    }
}
