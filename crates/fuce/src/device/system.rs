//! Device 0: what the kernel asks of the chip itself, and the records of faults.
//!
//! | register | read | write |
//! | --- | --- | --- |
//! | 0 | kind | |
//! | 1 | fault thread | the thread that a fault continues to |
//! | 2 | fault records waiting; reading zero lets the next fault signal again | |
//! | 3 to 6 | cause, thread, instruction address and value of the oldest record | 3: drops the oldest record |
//! | 7, 8 | start and end of the user region | the same |
//! | 9 | execution units | |
//! | 10 | bytes of memory | |
//! | 11 | devices, this one included | |
//!
//! The thread of a record that a device caused reads as -1.

use std::collections::VecDeque;

use super::{Device, HANDLER, KIND, Kind, NO_HANDLER, SignalLine};
use crate::controller::Fault;

/// Register: fault records that wait.
const FAULT_COUNT: u32 = 2;
/// Registers: the oldest record's fields.
const FAULT_CAUSE: u32 = 3;
const FAULT_THREAD: u32 = 4;
const FAULT_ADDRESS: u32 = 5;
const FAULT_VALUE: u32 = 6;
/// Registers: the user region.
const USER_START: u32 = 7;
const USER_END: u32 = 8;
/// Registers: what the chip has.
const UNITS: u32 = 9;
const MEMORY_BYTES: u32 = 10;
const DEVICES: u32 = 11;

/// The system device.
pub struct System {
    line: SignalLine,
    records: VecDeque<Fault>,
    capacity: usize,
    /// The fault thread has been continued to and has not yet seen the last record.
    handling: bool,
    user: (u32, u32),
    units: u32,
    memory_bytes: u32,
    devices: u32,
}

impl System {
    /// The system device of a chip with these sizes.
    pub fn new(fault_records: usize, units: usize, memory_bytes: u32, devices: usize) -> System {
        System {
            line: SignalLine::new(),
            records: VecDeque::new(),
            capacity: fault_records,
            handling: false,
            user: (0, 0),
            units: units as u32,
            memory_bytes,
            devices: devices as u32,
        }
    }

    /// The memory user threads may use: first byte, and the byte after the last.
    pub fn user_region(&self) -> (u32, u32) {
        self.user
    }

    /// Sets the user region, as the loader does from the image.
    pub fn set_user_region(&mut self, region: (u32, u32)) {
        self.user = region;
    }

    /// The fault thread, if there is one.
    pub fn fault_handler(&self) -> Option<u32> {
        (self.line.handler() != NO_HANDLER).then_some(self.line.handler())
    }

    /// Whether another record fits.
    pub fn has_room(&self) -> bool {
        self.records.len() < self.capacity
    }

    /// Appends a record.
    ///
    /// # Panics
    /// When there is no room.
    pub fn record(&mut self, fault: Fault) {
        assert!(self.has_room(), "units wait for room");
        self.records.push_back(fault);
        if !self.handling {
            self.line.raise();
        }
    }

    /// The oldest record.
    pub fn oldest_record(&self) -> Option<&Fault> {
        self.records.front()
    }
}

impl Device for System {
    fn read(&mut self, register: u32, _now: u64) -> u32 {
        let oldest = self.records.front();
        match register {
            KIND => Kind::System as u32,
            HANDLER => self.line.handler(),
            FAULT_COUNT => {
                if self.records.is_empty() {
                    self.handling = false;
                    self.line.clear();
                }
                self.records.len() as u32
            }
            FAULT_CAUSE => oldest.map_or(0, |fault| fault.cause as u32),
            FAULT_THREAD => oldest
                .and_then(|fault| fault.thread)
                .map_or(u32::MAX, |thread| thread.number()),
            FAULT_ADDRESS => oldest.map_or(0, |fault| fault.address),
            FAULT_VALUE => oldest.map_or(0, |fault| fault.value),
            USER_START => self.user.0,
            USER_END => self.user.1,
            UNITS => self.units,
            MEMORY_BYTES => self.memory_bytes,
            DEVICES => self.devices,
            _ => 0,
        }
    }

    fn write(&mut self, register: u32, value: u32, _now: u64) {
        match register {
            HANDLER => self.line.set_handler(value),
            FAULT_CAUSE => {
                self.records.pop_front();
            }
            USER_START => self.user.0 = value,
            USER_END => self.user.1 = value,
            _ => {}
        }
    }

    fn signal(&self) -> Option<u32> {
        self.line.target()
    }

    fn signal_taken(&mut self) {
        self.handling = true;
        self.line.clear();
    }
}
