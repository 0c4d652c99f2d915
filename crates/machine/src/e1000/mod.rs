//! A network adapter, Intel's 82540EM, which the kernel's `e1000` drives: what many Itanium machines have on board.
//!
//! - `registers`: its registers. `settings`: what it keeps without power. `transceiver`: what is at the cable.
//! - `transmit` and `receive`: the rings of descriptors. `offload`: checksums and segments.
//! - [`Adapter`]: the function on the PCI bus.
//!
//! Facts are from Intel's manual for developers of the family (317453). A store that puts descriptors into the ring to
//! transmit schedules a turn on the machine's timeline; there frames go to the [`Link`], so that the processor that
//! stored goes on, and what has come is received. While the receiver is enabled the link is asked for frames at its own
//! interval. A turn ends after `DESCRIPTORS_MAX` descriptors.
//!
//! A frame for which the driver has no room waits, and with it what comes behind it. Descriptors and buffers outside
//! RAM are the driver's mistake: the ring stops, or the frame is lost, and nobody else is harmed.
//!
//! Left out, since drivers do without: delays of interrupts other than the shortest time between two (ITR), checks of
//! received checksums (the driver is told to make them), waking up, management, loopback, frames beyond Ethernet's
//! 1,514 bytes, messages (MSI), and writing the settings.

mod offload;
mod receive;
mod registers;
mod settings;
#[cfg(test)]
mod tests;
mod transceiver;
mod transmit;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};

use crate::machine::timeline::{Phase, Ticket, Timeline};
use crate::memory::GuestMemory;
use crate::network::{FRAME_BYTES_MAX, Link};
use crate::pci::Function;
use crate::pci::configuration::{Configuration, Identity, Space};
use crate::pci::interrupts::Interrupts;
use crate::pci::mastering::BusMaster;
use crate::virtio::facilities::LATENCY_TICKS;
use crate::virtio::network::HardwareAddress;
use offload::Context;
use registers::{Registers, STATISTICS, at, bit, cause};
use settings::Settings;
use transceiver::Transceiver;
use transmit::Packet;

/// Bytes of the region of registers.
pub const REGISTERS_BYTES: u32 = 128 << 10;
/// How many I/O ports it has.
pub const PORTS: u32 = 64;

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u32 = 16;
/// The most descriptors of a turn in each direction.
const DESCRIPTORS_MAX: u32 = 256;
/// The shortest frame, and what follows each on the cable.
const FRAME_BYTES_MIN: usize = 60;
const CHECKSUM_BYTES: usize = 4;
/// Bytes of the tag of a virtual network.
const TAG_BYTES: usize = 4;
/// Ticks of a unit of the shortest time between interrupts.
const INTERVAL_TICKS: u64 = 256;

const IDENTITY: Identity = Identity {
    vendor: 0x8086,
    device: 0x100e,
    subsystem_vendor: 0x8086,
    subsystem: 0x001e,
    revision: 2,
    class: 0x02_00_00,
};

/// Whom a frame is for.
enum Destination {
    Unicast,
    Multicast,
    Broadcast,
}

impl Destination {
    fn of(frame: &[u8]) -> Destination {
        match frame {
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => Destination::Broadcast,
            [first, ..] if first & 1 != 0 => Destination::Multicast,
            _ => Destination::Unicast,
        }
    }
}

/// Which of the six statistics of sizes a frame counts for, by its bytes with their checksum.
fn size_class(bytes: usize) -> u32 {
    const LARGEST: [usize; 5] = [64, 127, 255, 511, 1023];
    LARGEST.partition_point(|&largest| largest < bytes) as u32
}

/// The adapter without its configuration space.
struct State {
    registers: Registers,
    settings: Settings,
    transceiver: Transceiver,
    /// Without and with segments.
    contexts: [Context; 2],
    packet: Packet,
    /// A frame for which there is no room.
    held: Option<Vec<u8>>,
    /// Which register is behind the port for data.
    port: u32,
    /// Until when there is no further interrupt.
    quiet_until: u64,
    /// The next turn, the next look at the link and the end of that time on the timeline.
    turn: Option<Ticket>,
    poll: Option<Ticket>,
    alarm: Option<Ticket>,
    link: Box<dyn Link>,
    memory: BusMaster,
    interrupts: Interrupts,
    timeline: Arc<Timeline>,
    /// Itself, for the timeline: weakly, or neither would ever be dropped.
    this: Weak<Mutex<State>>,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    registers: Registers,
    settings: Settings,
    transceiver: Transceiver,
    contexts: [Context; 2],
    packet: Packet,
    held: Option<Vec<u8>>,
    port: u32,
    quiet_until: u64,
    turn: Option<Ticket>,
    poll: Option<Ticket>,
    alarm: Option<Ticket>,
}

/// The function on the PCI bus.
pub struct Adapter {
    configuration: Configuration,
    interrupts: Interrupts,
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Adapter {
    /// An adapter with this address at one end of a link. Firmware has put its registers at `start`, a multiple of
    /// [`REGISTERS_BYTES`], its ports at `ports`, a multiple of [`PORTS`], and its line is said to be number `line`.
    pub fn new(
        address: HardwareAddress,
        link: Box<dyn Link>,
        memory: Arc<GuestMemory>,
        interrupts: Interrupts,
        timeline: Arc<Timeline>,
        [start, ports]: [u32; 2],
        line: u8,
    ) -> Adapter {
        let mut configuration = Configuration::new(IDENTITY);
        configuration.add_region_at(0, Space::Memory, REGISTERS_BYTES, start);
        configuration.add_region_at(2, Space::Ports, PORTS, ports);
        configuration.add_interrupt(line);
        let state = Arc::new_cyclic(|this| {
            let mut state = State {
                registers: Registers::new(),
                settings: Settings::new(address, IDENTITY.vendor, IDENTITY.device, IDENTITY.subsystem),
                transceiver: Transceiver::new(),
                contexts: Default::default(),
                packet: Packet::default(),
                held: None,
                port: 0,
                quiet_until: 0,
                turn: None,
                poll: None,
                alarm: None,
                link,
                memory: BusMaster::new(memory, configuration.mastering()),
                interrupts: interrupts.clone(),
                timeline,
                this: Weak::clone(this),
            };
            state.reset();
            Mutex::new(state)
        });
        Adapter {
            configuration,
            interrupts,
            state,
        }
    }
}

impl State {
    /// Everything as after power on, but for what is under way on the timeline.
    fn reset(&mut self) {
        self.registers = Registers::new();
        self.transceiver = Transceiver::new();
        (self.packet, self.contexts) = Default::default();
        (self.held, self.quiet_until) = (None, 0);
        let [first, second, third] = [0, 1, 2].map(|word| u32::from(self.settings.word(word)));
        self.registers.set(at::RAL, second << 16 | first);
        self.registers.set(at::RAH, bit::RAH_VALID | third);
        self.update_line();
    }

    fn schedule(&self, ticks: u64, phase: Phase, call: fn(&mut State, u64)) -> Ticket {
        let due = self.timeline.again(self.timeline.now(), ticks);
        self.timeline.schedule(due, phase, self.later(call))
    }

    fn reschedule(&self, ticket: Option<Ticket>, phase: Phase, call: fn(&mut State, u64)) {
        if let Some(ticket) = ticket {
            self.timeline.reschedule(ticket, phase, self.later(call));
        }
    }

    fn later(&self, call: fn(&mut State, u64)) -> impl FnOnce(u64) + Send + 'static {
        let this = Weak::clone(&self.this);
        move |due| {
            if let Some(state) = this.upgrade() {
                call(&mut lock(&state), due);
            }
        }
    }

    /// The rings want to be looked at.
    fn call(&mut self) {
        if self.turn.is_none() {
            self.turn = Some(self.schedule(LATENCY_TICKS, Phase::Transfer, State::work));
        }
    }

    fn work(&mut self, due: u64) {
        self.turn = None;
        if self.serve(due) {
            self.call();
        }
    }

    fn look(&mut self, due: u64) {
        self.poll = None;
        if self.serve(due) {
            self.call();
        }
        self.watch();
    }

    /// While the receiver is enabled, the link is asked again.
    fn watch(&mut self) {
        if self.poll.is_none() && self.registers.has(at::RCTL, bit::RCTL_ENABLE) {
            let interval = self.link.poll_interval();
            self.poll = Some(self.schedule(interval, Phase::Transfer, State::look));
        }
    }

    /// What is transmitted comes first, so that answers are received at once; says whether there is more to do.
    fn serve(&mut self, due: u64) -> bool {
        let has_more = self.transmit();
        self.link.advance(due);
        self.receive() | has_more
    }

    /// Raises causes of an interrupt.
    fn raise(&mut self, causes: u32) {
        let causes = self.registers.get(at::ICR) | causes;
        self.registers.set(at::ICR, causes);
        self.update_line();
    }

    /// Asserts the line as the causes that are enabled want it, and not too soon.
    fn update_line(&mut self) {
        if self.registers.get(at::ICR) & self.registers.get(at::IMS) == 0 {
            return self.interrupts.set_line(false);
        }
        let now = self.timeline.now();
        if self.interrupts.is_asserted() {
            return;
        }
        if now < self.quiet_until {
            if self.alarm.is_none() {
                let ticks = self.quiet_until - now;
                self.alarm = Some(self.schedule(ticks, Phase::Interrupt, State::end_quiet));
            }
            return;
        }
        self.quiet_until = now + INTERVAL_TICKS * u64::from(self.registers.get(at::ITR));
        self.interrupts.set_line(true);
    }

    fn end_quiet(&mut self, _: u64) {
        self.alarm = None;
        self.update_line();
    }

    /// Loads a register of 32 bits.
    fn load(&mut self, offset: u32) -> u32 {
        const STATISTICS_END: u32 = at::STATISTICS + 4 * STATISTICS;
        match offset {
            at::EECD => self.settings.load(),
            at::ICR => {
                let causes = self.registers.take(at::ICR);
                self.update_line();
                causes
            }
            at::ICS | at::IMC => 0,
            at::STATISTICS..STATISTICS_END => self.registers.take(offset),
            _ => self.registers.get(offset),
        }
    }

    /// Stores to a register of 32 bits.
    fn store(&mut self, offset: u32, value: u32) {
        match offset {
            at::CTRL if value & bit::CTRL_RESET != 0 => self.reset(),
            at::CTRL => {
                if value & bit::CTRL_PHY_RESET != 0 {
                    self.transceiver = Transceiver::new();
                }
                self.registers.store(offset, value);
            }
            at::EECD => self.settings.store(value),
            at::EERD => {
                const START: u32 = 1;
                const DONE: u32 = 1 << 4;
                if value & START != 0 {
                    let word = self.settings.word((value >> 8) as u8);
                    self.registers
                        .set(offset, u32::from(word) << 16 | value & 0xff00 | DONE);
                }
            }
            at::MDIC => self.manage(value),
            at::ICR => {
                let causes = self.registers.get(at::ICR) & !value;
                self.registers.set(at::ICR, causes);
                self.update_line();
            }
            at::ICS => self.raise(value & cause::ALL),
            at::IMS | at::IMC => {
                let enabled = self.registers.get(at::IMS);
                let enabled = match offset {
                    at::IMS => enabled | value & cause::ALL,
                    _ => enabled & !value,
                };
                self.registers.set(at::IMS, enabled);
                self.update_line();
            }
            at::RCTL => {
                self.registers.store(offset, value);
                self.watch();
            }
            at::TCTL | at::TDT => {
                self.registers.store(offset, value);
                self.call();
            }
            at::RDT => {
                self.registers.store(offset, value);
                if self.held.is_some() {
                    self.call();
                }
            }
            _ => self.registers.store(offset, value),
        }
    }

    /// A command for a transceiver: a register of it is read or written.
    fn manage(&mut self, value: u32) {
        const WRITE: u32 = 1;
        const READ: u32 = 2;
        let (register, transceiver) = (value >> 16 & 31, value >> 21 & 31);
        let asked = value & !(bit::MDIC_READY | bit::MDIC_ERROR);
        let answer = match value >> 26 & 3 {
            _ if transceiver != transceiver::ADDRESS => asked | bit::MDIC_ERROR,
            WRITE => {
                self.transceiver.store(register, value as u16);
                asked
            }
            READ => asked & !0xffff | u32::from(self.transceiver.load(register)),
            _ => asked | bit::MDIC_ERROR,
        };
        self.registers.set(at::MDIC, answer | bit::MDIC_READY);
        if value & bit::MDIC_INTERRUPT != 0 {
            self.raise(cause::MANAGEMENT);
        }
    }

    fn save(&self) -> Saved {
        Saved {
            registers: self.registers.clone(),
            settings: self.settings.clone(),
            transceiver: self.transceiver.clone(),
            contexts: self.contexts,
            packet: self.packet.clone(),
            held: self.held.clone(),
            port: self.port,
            quiet_until: self.quiet_until,
            turn: self.turn,
            poll: self.poll,
            alarm: self.alarm,
        }
    }

    /// Goes on from what was saved of an adapter; false if that is none.
    fn restore(&mut self, saved: Saved) -> bool {
        let is_frame = |frame: &Vec<u8>| frame.len() <= FRAME_BYTES_MAX + TAG_BYTES;
        let is_sound = saved.registers.is_sound()
            && saved.settings.is_sound()
            && saved.packet.is_sound()
            && saved.held.as_ref().is_none_or(is_frame);
        if !is_sound {
            return false;
        }
        self.registers = saved.registers;
        self.settings = saved.settings;
        self.transceiver = saved.transceiver;
        (self.contexts, self.packet) = (saved.contexts, saved.packet);
        (self.held, self.port) = (saved.held, saved.port);
        self.quiet_until = saved.quiet_until;
        (self.turn, self.poll, self.alarm) = (saved.turn, saved.poll, saved.alarm);
        self.reschedule(self.turn, Phase::Transfer, State::work);
        self.reschedule(self.poll, Phase::Transfer, State::look);
        self.reschedule(self.alarm, Phase::Interrupt, State::end_quiet);
        true
    }
}

/// What an offset in the function's regions is.
enum Part {
    Register(u32),
    /// The port that says which register the other is.
    Address,
    Data,
    Nothing,
}

fn part(offset: u64) -> Part {
    match offset.checked_sub(u64::from(REGISTERS_BYTES)) {
        None => Part::Register(offset as u32),
        Some(0) => Part::Address,
        Some(4) => Part::Data,
        Some(_) => Part::Nothing,
    }
}

impl Function for Adapter {
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
        let mut load = |offset: u64| {
            u64::from(match part(offset) {
                Part::Register(register) => state.load(register),
                Part::Address => state.port,
                Part::Data => {
                    let register = state.port;
                    state.load(register)
                }
                Part::Nothing => 0,
            })
        };
        let word = offset & !3;
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
            match part(offset + 4 * place) {
                Part::Register(register) => state.store(register, value),
                Part::Address => state.port = value & (REGISTERS_BYTES - 4),
                Part::Data => {
                    let register = state.port;
                    state.store(register, value);
                }
                Part::Nothing => {}
            }
        }
    }

    fn save(&self) -> Vec<u8> {
        minicbor_serde::to_vec(lock(&self.state).save()).expect("bytes in memory")
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        let saved = minicbor_serde::from_slice::<Saved>(saved);
        saved.is_ok_and(|saved| lock(&self.state).restore(saved))
    }
}
