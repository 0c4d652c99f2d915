//! The transport with registers in memory (section 4.2 of the specification, version 2 of the register layout).
//!
//! A [`Transport`] is a [`Device`] for the bus: [`SIZE`] bytes, of which the registers are accessed by aligned
//! words of 4 bytes and the configuration space from 0x100 on at any width. Other accesses read zero and are dropped.
//! The interrupt is a level: asserted as long as a cause is not acknowledged.

use virtio_queue::{Queue, QueueT};

use super::facilities::{Facilities, State};
use crate::bus::Device;

/// Bytes of registers.
pub const SIZE: u64 = 0x1000;

/// Offsets of registers.
mod register {
    pub const MAGIC: u64 = 0x00;
    pub const VERSION: u64 = 0x04;
    pub const DEVICE: u64 = 0x08;
    pub const VENDOR: u64 = 0x0c;
    pub const DEVICE_FEATURES: u64 = 0x10;
    pub const DEVICE_FEATURES_SELECT: u64 = 0x14;
    pub const DRIVER_FEATURES: u64 = 0x20;
    pub const DRIVER_FEATURES_SELECT: u64 = 0x24;
    pub const QUEUE_SELECT: u64 = 0x30;
    pub const QUEUE_SIZE_MAX: u64 = 0x34;
    pub const QUEUE_SIZE: u64 = 0x38;
    pub const QUEUE_READY: u64 = 0x44;
    pub const QUEUE_NOTIFY: u64 = 0x50;
    pub const INTERRUPT_STATUS: u64 = 0x60;
    pub const INTERRUPT_ACKNOWLEDGE: u64 = 0x64;
    pub const STATUS: u64 = 0x70;
    pub const DESCRIPTORS_LOW: u64 = 0x80;
    pub const DESCRIPTORS_HIGH: u64 = 0x84;
    pub const AVAILABLE_LOW: u64 = 0x90;
    pub const AVAILABLE_HIGH: u64 = 0x94;
    pub const USED_LOW: u64 = 0xa0;
    pub const USED_HIGH: u64 = 0xa4;
    pub const SHARED_MEMORY_FIRST: u64 = 0xb0;
    pub const SHARED_MEMORY_LAST: u64 = 0xbc;
    pub const CONFIGURATION: u64 = 0x100;
}

const MAGIC: u32 = u32::from_le_bytes(*b"virt");
const VERSION: u32 = 2;
const VENDOR: u32 = u32::from_le_bytes(*b"SIDE");

/// A virtio device on the bus.
pub struct Transport(Facilities);

impl Transport {
    /// Registers for this device.
    pub fn new(facilities: Facilities) -> Transport {
        Transport(facilities)
    }

    /// The device, for whoever wants to know how it fares.
    pub fn facilities(&self) -> &Facilities {
        &self.0
    }

    fn load_register(&self, offset: u64) -> u32 {
        let mut state = self.0.state();
        match offset {
            register::MAGIC => MAGIC,
            register::VERSION => VERSION,
            register::DEVICE => self.0.identifier(),
            register::VENDOR => VENDOR,
            register::DEVICE_FEATURES => state.device_features(),
            register::QUEUE_SIZE_MAX => state
                .selected_queue()
                .map_or(0, |queue| u32::from(queue.max_size())),
            register::QUEUE_READY => state.selected_queue().map_or(0, |queue| u32::from(queue.ready())),
            register::INTERRUPT_STATUS => state.causes(),
            register::STATUS => state.status(),
            // No shared memory: its length and place are all ones.
            register::SHARED_MEMORY_FIRST..=register::SHARED_MEMORY_LAST => u32::MAX,
            _ => 0,
        }
    }
}

fn store_register(state: &mut State, offset: u64, value: u32) {
    match offset {
        register::DEVICE_FEATURES_SELECT => state.device_features_select = value,
        register::DRIVER_FEATURES_SELECT => state.driver_features_select = value,
        register::DRIVER_FEATURES => state.accept_features(value),
        register::QUEUE_SELECT => state.queue_select = value,
        register::INTERRUPT_ACKNOWLEDGE => state.acknowledge(value),
        register::QUEUE_SIZE..=register::USED_HIGH => {
            if let Some(queue) = state.open_queue() {
                set_up(queue, offset, value);
            }
        }
        _ => {}
    }
}

fn set_up(queue: &mut Queue, offset: u64, value: u32) {
    match offset {
        register::QUEUE_SIZE => queue.set_size(u16::try_from(value).unwrap_or(0)),
        register::DESCRIPTORS_LOW => queue.set_desc_table_address(Some(value), None),
        register::DESCRIPTORS_HIGH => queue.set_desc_table_address(None, Some(value)),
        register::AVAILABLE_LOW => queue.set_avail_ring_address(Some(value), None),
        register::AVAILABLE_HIGH => queue.set_avail_ring_address(None, Some(value)),
        register::USED_LOW => queue.set_used_ring_address(Some(value), None),
        register::USED_HIGH => queue.set_used_ring_address(None, Some(value)),
        _ => {}
    }
}

impl Device for Transport {
    fn load(&mut self, offset: u64, size: u64) -> u64 {
        if let Some(offset) = offset.checked_sub(register::CONFIGURATION) {
            self.0.load_configuration(offset, size)
        } else if size == 4 && offset.is_multiple_of(4) {
            u64::from(self.load_register(offset))
        } else {
            0
        }
    }

    fn store(&mut self, offset: u64, size: u64, value: u64) {
        if size != 4 || !offset.is_multiple_of(4) || offset >= register::CONFIGURATION {
            return;
        }
        let value = value as u32;
        match offset {
            register::QUEUE_NOTIFY => self.0.notify(value),
            register::STATUS => self.0.set_status(value),
            register::QUEUE_READY => self.0.set_ready(value & 1 != 0),
            _ => store_register(&mut self.0.state(), offset, value),
        }
    }
}
