//! What is attached to the chip: registers that supervisor threads load and store, and signals that continue to
//! handler threads.
//!
//! Device `n` has 64 word registers from [`BASE`]` + n * `[`REGISTER_BYTES`] on. In every device register 0 reads as
//! its kind and register 1 holds the handler thread. A device *raises* its signal and keeps it raised until the
//! controller has taken it as a continuation; the chip retries while the handler is not armed, so no signal is lost
//! and a device never needs more than one bit for it. Device 0 is always the [`System`] device.

mod block;
mod console;
mod packets;
mod request;
mod system;
mod timer;

use std::any::Any;

pub use block::{Block, SECTOR_BYTES};
pub use console::Console;
pub use packets::Packets;
pub use request::RequestDevice;
pub use system::System;
pub use timer::Timer;

use crate::memory::Memory;

/// The address of device 0's register 0.
pub const BASE: u32 = 0xf000_0000;
/// Bytes of register space each device has.
pub const REGISTER_BYTES: u32 = 256;
/// Devices a chip can have, the system device among them.
pub const DEVICES_MAX: usize = 64;
/// What a handler register holds while there is no handler.
pub const NO_HANDLER: u32 = u32::MAX;

/// Register 0 of every device: its kind, as [`Kind`].
pub const KIND: u32 = 0;
/// Register 1 of every device: the thread its signal continues to.
pub const HANDLER: u32 = 1;

/// What register 0 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Nothing is attached.
    None = 0,
    /// [`System`].
    System = 1,
    /// [`Console`].
    Console = 2,
    /// [`Timer`].
    Timer = 3,
    /// [`Block`].
    Block = 4,
    /// [`RequestDevice`].
    Request = 5,
    /// [`Packets`].
    Packets = 6,
}

/// A device.
pub trait Device: Any + Send {
    /// A register's value; reading may have an effect on the device.
    fn read(&mut self, register: u32, now: u64) -> u32;

    /// Stores to a register; registers that do not exist or only read ignore it.
    fn write(&mut self, register: u32, value: u32, now: u64);

    /// When the device next does something by itself.
    fn next_event(&self) -> Option<u64> {
        None
    }

    /// Does what is due in cycle `now`.
    fn advance(&mut self, _now: u64, _memory: &mut Memory) {}

    /// The handler, while the signal is raised.
    fn signal(&self) -> Option<u32>;

    /// The signal has become a continuation.
    fn signal_taken(&mut self);
}

/// A raised signal and the handler it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignalLine {
    handler: u32,
    raised: bool,
}

impl SignalLine {
    pub(crate) const fn new() -> SignalLine {
        SignalLine {
            handler: NO_HANDLER,
            raised: false,
        }
    }

    pub(crate) fn raise(&mut self) {
        self.raised = true;
    }

    pub(crate) fn clear(&mut self) {
        self.raised = false;
    }

    pub(crate) fn raised(&self) -> bool {
        self.raised
    }

    pub(crate) fn handler(&self) -> u32 {
        self.handler
    }

    pub(crate) fn set_handler(&mut self, handler: u32) {
        self.handler = handler;
    }

    /// The handler while the signal is raised and somebody handles it.
    pub(crate) fn target(&self) -> Option<u32> {
        (self.raised && self.handler != NO_HANDLER).then_some(self.handler)
    }
}

/// The devices of a chip.
pub struct Bus {
    /// Device 0.
    pub system: System,
    others: Vec<Box<dyn Device>>,
    next_event: u64,
    /// One bit a device whose signal is raised.
    raised: u64,
    /// The device whose signal was offered last.
    offered: usize,
}

impl Bus {
    /// A bus with the system device and the given ones from number 1 on.
    ///
    /// # Panics
    /// With more than [`DEVICES_MAX`] devices.
    pub fn new(system: System, others: Vec<Box<dyn Device>>) -> Bus {
        assert!(others.len() < DEVICES_MAX, "at most {DEVICES_MAX} devices");
        let mut bus = Bus {
            system,
            others,
            next_event: u64::MAX,
            raised: 0,
            offered: 0,
        };
        bus.refresh();
        bus
    }

    fn device(&mut self, number: usize) -> Option<&mut dyn Device> {
        match number.checked_sub(1) {
            None => Some(&mut self.system),
            Some(index) => self
                .others
                .get_mut(index)
                .map(|device| device.as_mut() as &mut dyn Device),
        }
    }

    /// The device with a number, if it is a `D`.
    pub fn get<D: Device>(&self, number: usize) -> Option<&D> {
        let device: &dyn Any = match number.checked_sub(1) {
            None => &self.system,
            Some(index) => self.others.get(index)?.as_ref(),
        };
        device.downcast_ref()
    }

    /// The device with a number, if it is a `D`, to change from outside.
    pub fn get_mut<D: Device>(&mut self, number: usize) -> Option<&mut D> {
        let device: &mut dyn Any = self.device(number)?;
        device.downcast_mut()
    }

    /// When the next device acts by itself.
    pub fn next_event(&self) -> u64 {
        self.next_event
    }

    /// Lets every device do what is due.
    pub fn advance(&mut self, now: u64, memory: &mut Memory) {
        for device in &mut self.others {
            if device.next_event().is_some_and(|at| at <= now) {
                device.advance(now, memory);
            }
        }
        self.refresh();
    }

    /// Loads from the register space; addresses without a device read as zero.
    pub fn read(&mut self, address: u32, now: u64) -> u32 {
        let (number, register) = split(address);
        let value = self.device(number).map_or(0, |device| device.read(register, now));
        self.refresh();
        value
    }

    /// Stores to the register space.
    pub fn write(&mut self, address: u32, value: u32, now: u64) {
        let (number, register) = split(address);
        if let Some(device) = self.device(number) {
            device.write(register, value, now);
        }
        self.refresh();
    }

    /// Whether some signal waits to be taken.
    pub fn has_signal(&self) -> bool {
        self.raised != 0
    }

    /// The next raised signal after the one offered last: its device and handler.
    pub fn offer_signal(&mut self) -> Option<(usize, u32)> {
        let after = self.raised & !(u64::MAX >> (63 - self.offered));
        let candidates = if after != 0 { after } else { self.raised };
        if candidates == 0 {
            return None;
        }
        self.offered = candidates.trailing_zeros() as usize;
        let number = self.offered;
        let handler = self.device(number).and_then(|device| device.signal());
        handler.map(|handler| (number, handler))
    }

    /// The handler a device's register names.
    pub fn handler(&mut self, number: usize) -> Option<u32> {
        self.device(number)
            .map(|device| device.read(HANDLER, 0))
            .filter(|handler| *handler != NO_HANDLER)
    }

    /// A device's signal has become a continuation, or can never become one.
    pub fn signal_taken(&mut self, number: usize) {
        if let Some(device) = self.device(number) {
            device.signal_taken();
        }
        self.refresh();
    }

    /// Notes anew what is raised and due; called after every change of a device.
    pub(crate) fn refresh(&mut self) {
        self.raised = u64::from(self.system.signal().is_some());
        self.next_event = u64::MAX;
        for (index, device) in self.others.iter().enumerate() {
            self.raised |= u64::from(device.signal().is_some()) << (index + 1);
            self.next_event = self.next_event.min(device.next_event().unwrap_or(u64::MAX));
        }
    }
}

fn split(address: u32) -> (usize, u32) {
    let offset = address - BASE;
    ((offset / REGISTER_BYTES) as usize, offset % REGISTER_BYTES / 4)
}
