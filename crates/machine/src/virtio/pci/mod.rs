//! The transport over PCI (section 4.1 of the specification): of version 1, or a transitional one, which has the
//! registers of before as well (`legacy`).
//!
//! A [`Transport`] is a [`Function`] with a region of [`SIZE`] bytes, a page of 4 kB for each structure that its
//! capabilities name:
//!
//! | Offset | |
//! |---|---|
//! | 0x0000 | common configuration |
//! | 0x1000 | interrupt status: a byte that a load clears |
//! | 0x2000 | the device's own configuration |
//! | 0x3000 | notifications, 4 bytes a queue |
//! | 0x4000 | table of messages |
//! | 0x5000 | pending messages |
//!
//! Common configuration takes accesses of each field's width, and of 4 bytes for halves of addresses; others read zero
//! and are dropped. Structures can also be reached through configuration space, for guests that map nothing.
//! Interrupts are messages, one for each queue and one for the configuration, or the line.

mod legacy;
#[cfg(test)]
mod tests;

use virtio_queue::QueueT;

use super::facilities::{Event, Facilities, Interrupt};
use crate::pci::Function;
use crate::pci::configuration::{
    COMMAND, COMMAND_MASTER, Configuration, Identity, STATUS, STATUS_INTERRUPT, Space,
};
use crate::pci::interrupts::{Interrupts, MESSAGE_BYTES};

/// Bytes of registers.
pub const SIZE: u32 = 0x8000;

/// Bytes of a structure's page.
pub const PAGE: u64 = 0x1000;
const COMMON: u64 = 0;
const INTERRUPT_STATUS: u64 = PAGE;
const DEVICE: u64 = 2 * PAGE;
/// Where the notifications of all queues are, in a page of their own.
pub const NOTIFICATIONS: u64 = 3 * PAGE;
const TABLE: u64 = 4 * PAGE;
const PENDING: u64 = 5 * PAGE;
/// The registers of before version 1, behind the other region.
const LEGACY: u64 = SIZE as u64;

/// Bytes from the notification of a queue to that of the next.
const NOTIFICATION_BYTES: u32 = 4;

const VENDOR: u16 = 0x1af4;
/// Devices of version 1 have this and the number of their kind.
const FIRST_DEVICE: u16 = 0x1040;
const SUBSYSTEM: u16 = 0x1100;

/// Numbers of capabilities.
const CAPABILITY_VENDOR: u8 = 0x09;
const CAPABILITY_MESSAGES: u8 = 0x11;

/// What a capability of the vendor's points to.
mod structure {
    pub const COMMON: u8 = 1;
    pub const NOTIFICATIONS: u8 = 2;
    pub const INTERRUPT_STATUS: u8 = 3;
    pub const DEVICE: u8 = 4;
    pub const CONFIGURATION_ACCESS: u8 = 5;
}

/// Bytes of common configuration.
const COMMON_BYTES: u32 = 0x38;

/// Offsets in common configuration.
mod register {
    pub const DEVICE_FEATURES_SELECT: u64 = 0x00;
    pub const DEVICE_FEATURES: u64 = 0x04;
    pub const DRIVER_FEATURES_SELECT: u64 = 0x08;
    pub const DRIVER_FEATURES: u64 = 0x0c;
    pub const CONFIGURATION_MESSAGE: u64 = 0x10;
    pub const QUEUES: u64 = 0x12;
    pub const STATUS: u64 = 0x14;
    pub const GENERATION: u64 = 0x15;
    pub const QUEUE_SELECT: u64 = 0x16;
    pub const QUEUE_SIZE: u64 = 0x18;
    pub const QUEUE_MESSAGE: u64 = 0x1a;
    pub const QUEUE_ENABLE: u64 = 0x1c;
    pub const QUEUE_NOTIFICATION: u64 = 0x1e;
    pub const DESCRIPTORS: u64 = 0x20;
    pub const AVAILABLE: u64 = 0x28;
    pub const USED: u64 = 0x30;
}

/// How wide the field at an offset of common configuration is, in bytes.
fn width(offset: u64) -> u64 {
    match offset {
        register::DEVICE_FEATURES_SELECT..register::CONFIGURATION_MESSAGE => 4,
        register::STATUS | register::GENERATION => 1,
        register::CONFIGURATION_MESSAGE..register::DESCRIPTORS => 2,
        _ => 4,
    }
}

/// The first class of a kind of device (appendix D of the PCI specification).
fn class(kind: u32) -> u32 {
    match kind {
        1 => 0x02_00_00, // Ethernet
        2 => 0x01_00_00, // SCSI, as virtio block devices call themselves
        3 => 0x07_80_00, // another communication controller
        _ => 0x00_ff_00,
    }
}

/// Sources of interrupts: the configuration, then the queues.
const CONFIGURATION_SOURCE: usize = 0;

fn source(queue: usize) -> usize {
    queue + 1
}

impl Interrupt for Interrupts {
    fn set_line(&self, asserted: bool) {
        Interrupts::set_line(self, asserted);
    }

    fn signal(&self, event: Event) -> bool {
        Interrupts::signal(
            self,
            match event {
                Event::Configuration => CONFIGURATION_SOURCE,
                Event::Queue(queue) => source(queue),
            },
        )
    }

    fn target(&self, event: Event) -> Option<usize> {
        Interrupts::target(
            self,
            match event {
                Event::Configuration => CONFIGURATION_SOURCE,
                Event::Queue(queue) => source(queue),
            },
        )
    }

    fn reset(&self) {
        self.forget();
    }
}

/// How many sources of interrupts a device with so many queues has.
pub fn sources(queues: usize) -> usize {
    source(queues)
}

/// How many I/O ports a transitional device has, a power of two.
pub fn legacy_ports(facilities: &Facilities) -> u32 {
    legacy::ports(facilities.configuration_bytes())
}

/// A virtio device on a PCI bus.
pub struct Transport {
    facilities: Facilities,
    interrupts: Interrupts,
    configuration: Configuration,
    /// The number of the region that capabilities name.
    region: u8,
    /// Where the capabilities for accesses through configuration space and for messages are.
    access: u64,
    messages: u64,
}

impl Transport {
    /// A function for a device that was given these interrupts. Firmware has put its registers at `start`, and its line
    /// is said to be number `line`.
    pub fn new(facilities: Facilities, interrupts: Interrupts, start: u32, line: u8) -> Transport {
        let kind = facilities.identifier();
        let mut configuration = Configuration::new(Identity {
            vendor: VENDOR,
            device: FIRST_DEVICE + kind as u16,
            subsystem_vendor: VENDOR,
            subsystem: SUBSYSTEM,
            revision: 1,
            class: class(kind),
        });
        configuration.add_region(SIZE, start);
        Transport::with(facilities, interrupts, configuration, (0, line))
    }

    /// The same with the registers of before version 1 as well, [so many](legacy_ports) from port `ports` on. A kind of
    /// device that came with version 1 has none.
    pub fn transitional(
        facilities: Facilities,
        interrupts: Interrupts,
        (start, ports): (u32, u32),
        line: u8,
    ) -> Transport {
        let kind = facilities.identifier();
        let Some(device) = legacy::device(kind) else {
            return Transport::new(facilities, interrupts, start, line);
        };
        let mut configuration = Configuration::new(Identity {
            vendor: VENDOR,
            device,
            subsystem_vendor: VENDOR,
            subsystem: kind as u16,
            revision: 0,
            class: class(kind),
        });
        // Drivers of before version 1 look for the ports in the first region.
        configuration.add_region_at(1, Space::Memory, SIZE, start);
        configuration.add_region_at(0, Space::Ports, legacy_ports(&facilities), ports);
        Transport::with(facilities, interrupts, configuration, (1, line))
    }

    /// A function with its regions, whose capabilities name the one of this number.
    fn with(
        facilities: Facilities,
        interrupts: Interrupts,
        mut configuration: Configuration,
        (region, line): (u8, u8),
    ) -> Transport {
        let queues = facilities.queues().len();
        facilities.reach_by(configuration.mastering());
        configuration.add_interrupt(line);
        let mut add = |kind, offset: u64, size: u32, more: &[u8], writable: &[u8]| {
            let mut body = vec![16 + more.len() as u8, kind, region, 0, 0, 0];
            body.extend((offset as u32).to_le_bytes());
            body.extend(size.to_le_bytes());
            body.extend(more);
            configuration.add_capability(CAPABILITY_VENDOR, &body, writable) as u64
        };
        add(structure::COMMON, COMMON, COMMON_BYTES, &[], &[]);
        add(structure::INTERRUPT_STATUS, INTERRUPT_STATUS, 1, &[], &[]);
        let size = facilities.configuration_bytes() as u32;
        if size > 0 {
            add(structure::DEVICE, DEVICE, size, &[], &[]);
        }
        let multiplier = NOTIFICATION_BYTES.to_le_bytes();
        let size = NOTIFICATION_BYTES * queues as u32;
        add(structure::NOTIFICATIONS, NOTIFICATIONS, size, &multiplier, &[]);
        // Which region, offset, size and, behind them, the data.
        let mut writable = [0; 18];
        writable[2] = u8::MAX;
        writable[6..].fill(u8::MAX);
        let access = add(structure::CONFIGURATION_ACCESS, 0, 0, &[0; 4], &writable);
        let mut body = (queues as u16).to_le_bytes().to_vec(); // one less than there are
        body.extend((TABLE as u32 | u32::from(region)).to_le_bytes());
        body.extend((PENDING as u32 | u32::from(region)).to_le_bytes());
        let messages = configuration.add_capability(CAPABILITY_MESSAGES, &body, &[0, 0xc0]) as u64;
        Transport {
            facilities,
            interrupts,
            configuration,
            region,
            access,
            messages,
        }
    }

    fn load_common(&self, offset: u64) -> u64 {
        let mut state = self.facilities.state();
        let select = state.queue_select as usize;
        match offset {
            register::DEVICE_FEATURES_SELECT => u64::from(state.device_features_select),
            register::DEVICE_FEATURES => u64::from(state.device_features()),
            register::DRIVER_FEATURES_SELECT => u64::from(state.driver_features_select),
            register::DRIVER_FEATURES => u64::from(state.driver_features()),
            register::CONFIGURATION_MESSAGE => u64::from(self.interrupts.message(CONFIGURATION_SOURCE)),
            register::QUEUES => state.queues() as u64,
            register::STATUS => u64::from(state.status()),
            register::QUEUE_SELECT => select as u64,
            register::QUEUE_MESSAGE => u64::from(self.interrupts.message(source(select))),
            _ => match state.selected_queue() {
                None => 0,
                Some(queue) => match offset {
                    register::QUEUE_SIZE => u64::from(queue.size()),
                    register::QUEUE_ENABLE => u64::from(queue.ready()),
                    register::QUEUE_NOTIFICATION => select as u64,
                    _ => match offset & !7 {
                        register::DESCRIPTORS => half(queue.desc_table(), offset),
                        register::AVAILABLE => half(queue.avail_ring(), offset),
                        register::USED => half(queue.used_ring(), offset),
                        _ => 0,
                    },
                },
            },
        }
    }

    fn store_common(&self, offset: u64, value: u64) {
        match offset {
            register::STATUS => return self.facilities.set_status(value as u32),
            register::QUEUE_ENABLE if value == 1 => return self.facilities.set_ready(true),
            _ => {}
        }
        let mut state = self.facilities.state();
        match offset {
            register::DEVICE_FEATURES_SELECT => state.device_features_select = value as u32,
            register::DRIVER_FEATURES_SELECT => state.driver_features_select = value as u32,
            register::DRIVER_FEATURES => state.accept_features(value as u32),
            register::CONFIGURATION_MESSAGE => self.interrupts.assign(CONFIGURATION_SOURCE, value as u16),
            register::QUEUE_SELECT => state.queue_select = value as u32,
            register::QUEUE_MESSAGE => {
                self.interrupts
                    .assign(source(state.queue_select as usize), value as u16);
            }
            _ => {
                let Some(queue) = state.open_queue() else {
                    return;
                };
                let (low, high) = if offset & 4 == 0 {
                    (Some(value as u32), None)
                } else {
                    (None, Some(value as u32))
                };
                match offset & !7 {
                    _ if offset == register::QUEUE_SIZE => queue.set_size(value as u16),
                    register::DESCRIPTORS => queue.set_desc_table_address(low, high),
                    register::AVAILABLE => queue.set_avail_ring_address(low, high),
                    register::USED => queue.set_used_ring_address(low, high),
                    _ => {}
                }
            }
        }
    }

    /// The access that the capability for accesses through configuration space asks for: offset and size.
    fn access(&self) -> Option<(u64, u64)> {
        let field = |offset| self.configuration.load(self.access + offset, 4);
        let region = self.configuration.load(self.access + 4, 1);
        let (offset, size) = (field(8), field(12));
        let fits = region == u32::from(self.region)
            && matches!(size, 1 | 2 | 4)
            && offset.is_multiple_of(size)
            && offset.checked_add(size)? <= SIZE;
        fits.then_some((u64::from(offset), u64::from(size)))
    }

    /// Has messages go out or wait, as their control says: a message is a store to memory, and waits until the function
    /// may master the bus.
    fn update_messages(&mut self) {
        let control = self.configuration.load(self.messages + 2, 2);
        let waits = control & 0x4000 != 0 || !self.configuration.mastering().is_allowed();
        self.interrupts.set_messages(self.sends_messages(), waits);
    }

    /// Whether the driver has messages sent.
    fn sends_messages(&self) -> bool {
        self.configuration.load(self.messages + 2, 2) & 0x8000 != 0
    }

    /// Why the device interrupts, which it does no longer.
    fn take_causes(&self) -> u64 {
        let mut state = self.facilities.state();
        let causes = state.causes();
        state.acknowledge(causes);
        u64::from(causes)
    }

    /// Masters the bus, although nobody has let it.
    fn become_master(&mut self) {
        let command = self.configuration.load(COMMAND, 2);
        self.store_configuration(COMMAND, 2, command | COMMAND_MASTER);
    }

    /// Where the data of such an access are.
    fn access_data(&self) -> u64 {
        self.access + 16
    }
}

/// The half of an address that stands at an offset.
fn half(address: u64, offset: u64) -> u64 {
    if offset & 4 == 0 {
        address & 0xffff_ffff
    } else {
        address >> 32
    }
}

impl Function for Transport {
    fn configuration(&mut self) -> &mut Configuration {
        &mut self.configuration
    }

    fn interrupts(&self) -> Option<&Interrupts> {
        Some(&self.interrupts)
    }

    fn load_configuration(&mut self, offset: u64, size: u64) -> u32 {
        if offset & !3 == self.access_data()
            && let Some((register, width)) = self.access()
        {
            let value = self.load(register, width) as u32;
            self.configuration.store(self.access_data(), width, value);
        }
        let value = self.configuration.load(offset, size);
        if offset & !1 == STATUS && self.interrupts.is_asserted() && offset == STATUS {
            value | STATUS_INTERRUPT
        } else if offset + 2 == STATUS && size == 4 && self.interrupts.is_asserted() {
            value | STATUS_INTERRUPT << 16
        } else {
            value
        }
    }

    fn store_configuration(&mut self, offset: u64, size: u64, value: u32) {
        let may_master = self.configuration.mastering();
        let could_master = may_master.is_allowed();
        self.configuration.store(offset, size, value);
        if may_master.is_allowed() != could_master {
            self.facilities.note_mastering();
        }
        if offset & !3 == self.access_data()
            && let Some((register, width)) = self.access()
        {
            let value = self.configuration.load(self.access_data(), width);
            self.store(register, width, u64::from(value));
        }
        self.interrupts
            .disable_line(self.configuration.is_line_disabled());
        self.update_messages();
    }

    fn bridge_changed(&mut self) {
        self.facilities.note_mastering();
        self.update_messages();
    }

    fn load(&mut self, offset: u64, size: u64) -> u64 {
        let (page, at) = (offset & !(PAGE - 1), offset & (PAGE - 1));
        match page {
            COMMON if size == width(at) && at.is_multiple_of(size) => self.load_common(at),
            COMMON if size == 8 && at.is_multiple_of(8) && at >= register::DESCRIPTORS => {
                self.load_common(at) | self.load_common(at + 4) << 32
            }
            INTERRUPT_STATUS if at == 0 => self.take_causes(),
            DEVICE => self.facilities.load_configuration(at, size),
            TABLE if size >= 4 && at.is_multiple_of(size) => self.interrupts.load_table(at, size),
            PENDING if at.is_multiple_of(size) => {
                let bits = self.interrupts.pending(at / 8) >> (at % 8 * 8);
                bits & u64::MAX >> (64 - 8 * size)
            }
            LEGACY => self.load_legacy(at, size),
            _ => 0,
        }
    }

    fn store(&mut self, offset: u64, size: u64, value: u64) {
        let (page, at) = (offset & !(PAGE - 1), offset & (PAGE - 1));
        match page {
            COMMON if size == width(at) && at.is_multiple_of(size) => self.store_common(at, value),
            COMMON if size == 8 && at.is_multiple_of(8) && at >= register::DESCRIPTORS => {
                self.store_common(at, value & 0xffff_ffff);
                self.store_common(at + 4, value >> 32);
            }
            // The value is the queue's number, as the place is.
            NOTIFICATIONS if matches!(size, 2 | 4) => self.facilities.notify(u32::from(value as u16)),
            TABLE if size >= 4 && at.is_multiple_of(size) => self.interrupts.store_table(at, size, value),
            LEGACY => self.store_legacy(at, size, value),
            _ => {}
        }
    }
}

const _: () = assert!(
    MESSAGE_BYTES * 256 <= PAGE,
    "a page holds the messages of any device"
);
