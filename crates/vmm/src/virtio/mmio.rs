//! The transport with registers in memory (section 4.2 of the specification, version 2 of the register layout).
//!
//! A [`Transport`] is a [`Device`] for the bus: [`SIZE`] bytes, of which the registers are accessed by aligned
//! words of 4 bytes and the configuration space from 0x100 on at any width. Other accesses read zero and are dropped.
//! The interrupt is a level: asserted as long as a cause is not acknowledged.
//!
//! Lock order: a transport's state, then whatever the interrupt line locks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::PhysicalAddress;
use virtio_queue::{Queue, QueueOwnedT, QueueT};

use super::VirtioDevice;
use super::request::{Request, is_ram};
use crate::bus::Device;
use crate::machine::timeline::{Phase, TICKS_PER_SECOND, Timeline};
use crate::memory::GuestMemory;

/// Bytes of registers.
pub const SIZE: u64 = 0x1000;
/// From a notification to the moment when its requests are served: 10 microseconds, a device's order of magnitude.
pub const LATENCY_TICKS: u64 = TICKS_PER_SECOND / 100_000;

/// Sets or takes back the interrupt of a device.
pub type InterruptLine = Box<dyn Fn(bool) + Send>;

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

/// Bits of the status register.
mod status {
    pub const FEATURES_OK: u32 = 8;
    pub const DRIVER_OK: u32 = 4;
    pub const NEEDS_RESET: u32 = 0x40;
}

const MAGIC: u32 = u32::from_le_bytes(*b"virt");
const VERSION: u32 = 2;
const VENDOR: u32 = u32::from_le_bytes(*b"SIDE");

/// Features of the transport: chains in tables of their own, and the standard rather than what was before it.
const FEATURE_INDIRECT: u64 = 1 << 28;
const FEATURE_VERSION_1: u64 = 1 << 32;

const CAUSE_USED: u32 = 1;
const CAUSE_CONFIGURATION: u32 = 2;

struct State {
    device: Box<dyn VirtioDevice>,
    memory: Arc<GuestMemory>,
    interrupt: InterruptLine,
    errors: Arc<AtomicU64>,
    queues: Vec<Queue>,
    /// Which queues have work on the timeline.
    scheduled: Vec<bool>,
    device_features_select: u32,
    driver_features_select: u32,
    driver_features: u64,
    queue_select: u32,
    causes: u32,
    status: u32,
}

/// A virtio device on the bus.
pub struct Transport {
    state: Arc<Mutex<State>>,
    timeline: Arc<Timeline>,
    errors: Arc<AtomicU64>,
}

impl Transport {
    /// A device that works on `memory` and does its work on `timeline`.
    ///
    /// # Panics
    /// If a queue's size is not a power of two.
    pub fn new(
        device: impl VirtioDevice + 'static,
        memory: Arc<GuestMemory>,
        interrupt: InterruptLine,
        timeline: Arc<Timeline>,
    ) -> Transport {
        let queues: Vec<Queue> = device
            .queue_sizes()
            .iter()
            .map(|&size| Queue::new(size).expect("a device's queue sizes are powers of two"))
            .collect();
        let errors = Arc::new(AtomicU64::new(0));
        let state = State {
            device: Box::new(device),
            memory,
            interrupt,
            errors: Arc::clone(&errors),
            scheduled: vec![false; queues.len()],
            queues,
            device_features_select: 0,
            driver_features_select: 0,
            driver_features: 0,
            queue_select: 0,
            causes: 0,
            status: 0,
        };
        Transport {
            state: Arc::new(Mutex::new(state)),
            timeline,
            errors,
        }
    }

    /// How many times the driver broke the rules so that the device had to be reset; counts on while the device runs.
    pub fn errors(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.errors)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a queue served a little later.
fn schedule(state: &Arc<Mutex<State>>, timeline: &Arc<Timeline>, now: u64, queue: usize) {
    let (device, agenda) = (Arc::clone(state), Arc::clone(timeline));
    timeline.schedule(now + LATENCY_TICKS, Phase::Transfer, move |due| {
        let mut state = lock(&device);
        let more = state.serve(queue);
        state.scheduled[queue] = more;
        drop(state);
        if more {
            schedule(&device, &agenda, due, queue);
        }
    });
}

impl State {
    fn is_running(&self) -> bool {
        self.status & status::DRIVER_OK != 0 && self.status & status::NEEDS_RESET == 0
    }

    /// Serves what is in a queue, as many requests as it has entries at most; says whether there are more.
    fn serve(&mut self, index: usize) -> bool {
        if !self.is_running() || !self.queues[index].ready() {
            return false;
        }
        let memory = Arc::clone(&self.memory);
        let mut served = false;
        for _ in 0..self.queues[index].size() {
            match self.serve_one(index, &memory) {
                Ok(true) => served = true,
                Ok(false) => {
                    if served {
                        self.raise(CAUSE_USED);
                    }
                    return false;
                }
                Err(Broken) => {
                    self.fail();
                    return false;
                }
            }
        }
        self.raise(CAUSE_USED);
        true
    }

    /// Serves the next request of a queue; false if there is none.
    fn serve_one(&mut self, index: usize, memory: &GuestMemory) -> Result<bool, Broken> {
        let map = memory.as_vm_memory();
        let queue = &mut self.queues[index];
        let Some(chain) = queue.iter(map).map_err(|_| Broken)?.next() else {
            return Ok(false);
        };
        let head = chain.head_index();
        let request = Request::new(memory, chain).map_err(|_| Broken)?;
        let written = self.device.serve(index, &request).map_err(|_| Broken)?;
        queue.add_used(map, head, written).map_err(|_| Broken)?;
        Ok(true)
    }

    /// The driver broke the rules: nothing more is served until it resets the device.
    fn fail(&mut self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.status |= status::NEEDS_RESET;
        self.raise(CAUSE_CONFIGURATION);
    }

    fn raise(&mut self, cause: u32) {
        self.causes |= cause;
        (self.interrupt)(true);
    }

    fn reset(&mut self) {
        for queue in &mut self.queues {
            queue.reset();
        }
        self.driver_features = 0;
        self.device_features_select = 0;
        self.driver_features_select = 0;
        self.queue_select = 0;
        self.status = 0;
        self.causes = 0;
        (self.interrupt)(false);
    }

    fn features(&self) -> u64 {
        self.device.features() | FEATURE_INDIRECT | FEATURE_VERSION_1
    }

    fn set_status(&mut self, value: u32) {
        if value == 0 {
            self.reset();
            return;
        }
        let acceptable =
            self.driver_features & !self.features() == 0 && self.driver_features & FEATURE_VERSION_1 != 0;
        let refused = if acceptable { 0 } else { status::FEATURES_OK };
        self.status = value & 0xff & !refused | self.status & status::NEEDS_RESET;
    }

    /// The selected queue, if the driver may still set it up.
    fn open_queue(&mut self) -> Option<&mut Queue> {
        self.queues
            .get_mut(self.queue_select as usize)
            .filter(|queue| !queue.ready())
    }

    /// Makes the selected queue ready if its rings are RAM; rings elsewhere are the driver's error.
    fn set_ready(&mut self, ready: bool) {
        let memory = Arc::clone(&self.memory);
        let Some(queue) = self.queues.get_mut(self.queue_select as usize) else {
            return;
        };
        if !ready {
            queue.reset();
            return;
        }
        let entries = u64::from(queue.size());
        // Sizes of the three rings (section 2.7).
        let rings = [
            (queue.desc_table(), 16 * entries),
            (queue.avail_ring(), 6 + 2 * entries),
            (queue.used_ring(), 6 + 8 * entries),
        ];
        if rings
            .iter()
            .all(|&(address, size)| is_ram(&memory, PhysicalAddress(address), size))
        {
            queue.set_ready(true);
        } else {
            self.fail();
        }
    }

    fn load_register(&self, offset: u64) -> u32 {
        let queue = self.queues.get(self.queue_select as usize);
        match offset {
            register::MAGIC => MAGIC,
            register::VERSION => VERSION,
            register::DEVICE => self.device.identifier(),
            register::VENDOR => VENDOR,
            register::DEVICE_FEATURES => half(self.features(), self.device_features_select),
            register::QUEUE_SIZE_MAX => queue.map_or(0, |queue| u32::from(queue.max_size())),
            register::QUEUE_READY => queue.map_or(0, |queue| u32::from(queue.ready())),
            register::INTERRUPT_STATUS => self.causes,
            register::STATUS => self.status,
            // No shared memory: its length and place are all ones.
            register::SHARED_MEMORY_FIRST..=register::SHARED_MEMORY_LAST => u32::MAX,
            _ => 0,
        }
    }

    fn store_register(&mut self, offset: u64, value: u32) {
        match offset {
            register::DEVICE_FEATURES_SELECT => self.device_features_select = value,
            register::DRIVER_FEATURES_SELECT => self.driver_features_select = value,
            register::DRIVER_FEATURES if self.status & status::FEATURES_OK == 0 => {
                match self.driver_features_select {
                    0 => self.driver_features = self.driver_features >> 32 << 32 | u64::from(value),
                    1 => self.driver_features = self.driver_features & 0xffff_ffff | u64::from(value) << 32,
                    _ => {}
                }
            }
            register::QUEUE_SELECT => self.queue_select = value,
            register::QUEUE_READY => self.set_ready(value & 1 != 0),
            register::INTERRUPT_ACKNOWLEDGE => {
                self.causes &= !value;
                if self.causes == 0 {
                    (self.interrupt)(false);
                }
            }
            register::STATUS => self.set_status(value),
            register::QUEUE_SIZE..=register::USED_HIGH => {
                if let Some(queue) = self.open_queue() {
                    set_up(queue, offset, value);
                }
            }
            _ => {}
        }
    }

    fn load_configuration(&self, offset: u64, size: u64) -> u64 {
        let configuration = self.device.configuration();
        (0..size).rev().fold(0, |value, byte| {
            let byte = configuration.get((offset + byte) as usize).copied();
            value << 8 | u64::from(byte.unwrap_or(0))
        })
    }
}

/// The driver broke the rules; what it did does not matter to the device.
struct Broken;

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

/// The low or the high half of a word; zero for others.
fn half(word: u64, select: u32) -> u32 {
    match select {
        0 => word as u32,
        1 => (word >> 32) as u32,
        _ => 0,
    }
}

impl Device for Transport {
    fn load(&mut self, offset: u64, size: u64) -> u64 {
        let state = lock(&self.state);
        if let Some(offset) = offset.checked_sub(register::CONFIGURATION) {
            state.load_configuration(offset, size)
        } else if size == 4 && offset.is_multiple_of(4) {
            u64::from(state.load_register(offset))
        } else {
            0
        }
    }

    fn store(&mut self, offset: u64, size: u64, value: u64) {
        if size != 4 || !offset.is_multiple_of(4) || offset >= register::CONFIGURATION {
            return;
        }
        let mut state = lock(&self.state);
        if offset != register::QUEUE_NOTIFY {
            state.store_register(offset, value as u32);
            return;
        }
        let queue = value as u32 as usize;
        if !state.is_running() || state.scheduled.get(queue) != Some(&false) {
            return;
        }
        state.scheduled[queue] = true;
        drop(state);
        schedule(&self.state, &self.timeline, self.timeline.now(), queue);
    }
}
