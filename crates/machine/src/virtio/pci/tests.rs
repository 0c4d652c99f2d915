//! An entropy device on PCI, driven as a guest's driver does: by configuration space, registers and rings in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_ia64::PhysicalAddress;
use sidestep_ia64::interrupts::Interrupts as Requests;

use super::*;
use crate::bus::Device;
use crate::machine::interrupt_block::InterruptBlock;
use crate::machine::timeline::Timeline;
use crate::memory::{GRANULE, GuestMemory, MemoryRange};
use crate::pci::interrupts::NO_MESSAGE;
use crate::pci::{Address, Bus, Window};
use crate::virtio::entropy::{Entropy, Seeded};

const START: u32 = 0xe000_0000;
const SLOT: u8 = 1;
const DESCRIPTORS: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const BUFFER: u64 = 0x4000;
const VECTOR: u8 = 0x61;

struct Driver {
    bus: Arc<Bus>,
    window: Window,
    memory: Arc<GuestMemory>,
    timeline: Arc<Timeline>,
    processor: Arc<Requests>,
    line: Arc<AtomicBool>,
}

impl Driver {
    /// Has found the device and lets it answer.
    fn new() -> Driver {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, GRANULE)]).expect("a good layout");
        let memory = Arc::new(memory);
        let timeline = Arc::new(Timeline::new(Arc::default()));
        let processors = Arc::new(InterruptBlock::new(1, Arc::default()));
        let processor = Arc::<Requests>::default();
        processors.connect(0, Arc::clone(&processor));
        let line = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&line);
        let set = Box::new(move |asserted| set.store(asserted, Ordering::Relaxed));
        let interrupts = Interrupts::new(sources(1), set, processors);
        let facilities = Facilities::new(
            Box::new(Entropy::new(Seeded(1))),
            Arc::clone(&memory),
            Box::new(interrupts.clone()),
            Arc::clone(&timeline),
        );
        let mut bus = Bus::new();
        let slot = bus.add(Box::new(Transport::new(facilities, interrupts, START, 16)));
        assert_eq!(slot, usize::from(SLOT));
        let bus = Arc::new(bus);
        let window = Window::new(Arc::clone(&bus), u64::from(START));
        let driver = Driver {
            bus,
            window,
            memory,
            timeline,
            processor,
            line,
        };
        driver.configure(4, 2, 6);
        driver
    }

    fn configured(&self, register: u16, size: u64) -> u32 {
        self.bus.load(address(register), size)
    }

    fn configure(&self, register: u16, size: u64, value: u32) {
        self.bus.store(address(register), size, value);
    }

    /// Where each capability is, and its number.
    fn capabilities(&self) -> Vec<(u16, u8)> {
        let next = |at: u32| (at != 0).then_some(at as u16);
        let first = next(self.configured(0x34, 1));
        let all = std::iter::successors(first, |at| next(self.configured(at + 1, 1)));
        all.map(|at| (at, self.configured(at, 1) as u8)).collect()
    }

    /// Where the capability for a structure is.
    fn structure(&self, kind: u8) -> u16 {
        let capabilities = self.capabilities();
        let mut found = capabilities.iter().filter(|(at, number)| {
            *number == CAPABILITY_VENDOR && self.configured(at + 3, 1) == u32::from(kind)
        });
        found.next().expect("the capability is there").0
    }

    fn store(&mut self, fields: &[(u64, u64, u64)]) {
        for &(offset, size, value) in fields {
            self.window.store(offset, size, value);
        }
    }

    /// What a driver does to begin (section 3.1.1).
    fn set_up(&mut self) {
        self.store(&[
            (register::STATUS, 1, 0),
            (register::STATUS, 1, 3),
            (register::DRIVER_FEATURES_SELECT, 4, 1),
            (register::DRIVER_FEATURES, 4, 1),
            (register::STATUS, 1, 0xb),
            (register::QUEUE_SELECT, 2, 0),
            (register::QUEUE_SIZE, 2, 8),
            (register::DESCRIPTORS, 8, DESCRIPTORS),
            (register::AVAILABLE, 4, AVAILABLE),
            (register::USED, 4, USED),
            (register::QUEUE_ENABLE, 2, 1),
            (register::STATUS, 1, 0xf),
        ]);
    }

    /// Has both sources send messages of their own.
    fn route(&mut self) {
        for message in 0..2 {
            let entry = TABLE + u64::from(message) * MESSAGE_BYTES;
            let vector = u64::from(VECTOR + message);
            self.store(&[(entry, 8, 0xfee0_0000), (entry + 8, 8, vector)]);
        }
        self.store(&[
            (register::CONFIGURATION_MESSAGE, 2, 0),
            (register::QUEUE_SELECT, 2, 0),
            (register::QUEUE_MESSAGE, 2, 1),
        ]);
    }

    fn set_messages(&self, control: u32) {
        let capability = self.capabilities();
        let (at, _) = capability.last().expect("the capability is there");
        self.configure(at + 2, 2, control);
    }

    /// Asks for random bytes, for the `number`th time.
    fn request(&mut self, number: u16) {
        let write = |address: u64, value: u64| {
            self.memory
                .write_value(PhysicalAddress(address), value)
                .expect("RAM");
        };
        write(DESCRIPTORS, BUFFER);
        write(DESCRIPTORS + 8, 16 | 2 << 32);
        write(AVAILABLE, u64::from(number) << 16);
        self.store(&[(NOTIFICATIONS, 2, 0)]);
        self.timeline.perform_until(u64::MAX);
        let used: u16 = self.memory.read_value(PhysicalAddress(USED + 2)).expect("RAM");
        assert_eq!(used, number, "answered");
    }

    fn has(&self, vector: u8) -> bool {
        self.processor.requests(usize::from(vector / 64)) >> (vector % 64) & 1 != 0
    }

    fn is_asserted(&self) -> bool {
        self.line.load(Ordering::Relaxed)
    }
}

fn address(register: u16) -> Address {
    Address {
        segment: 0,
        bus: 0,
        slot: SLOT,
        function: 0,
        register,
    }
}

#[test]
fn capabilities_name_every_structure() {
    let driver = Driver::new();
    assert_eq!(
        driver.configured(0, 4),
        0x1044_1af4,
        "an entropy device of version 1"
    );
    assert_eq!(driver.configured(0x3c, 2), 0x0110, "its line and pin");
    for (kind, offset, size) in [
        (structure::COMMON, COMMON, COMMON_BYTES),
        (structure::INTERRUPT_STATUS, INTERRUPT_STATUS, 1),
        (structure::NOTIFICATIONS, NOTIFICATIONS, 4),
    ] {
        let at = driver.structure(kind);
        assert_eq!(driver.configured(at + 4, 1), 0, "the first region");
        assert_eq!(driver.configured(at + 8, 4), offset as u32);
        assert_eq!(driver.configured(at + 12, 4), size);
    }
    let (at, number) = *driver.capabilities().last().expect("some");
    assert_eq!(number, CAPABILITY_MESSAGES);
    assert_eq!(driver.configured(at + 2, 2), 1, "two messages");
    assert_eq!(driver.configured(at + 4, 4), TABLE as u32);
    assert_eq!(driver.configured(at + 8, 4), PENDING as u32);
}

#[test]
fn fields_have_their_width() {
    let mut driver = Driver::new();
    let mut load = |offset, size| driver.window.load(offset, size);
    assert_eq!(load(register::QUEUES, 2), 1);
    assert_eq!(load(register::QUEUES, 1), 0);
    assert_eq!(load(register::QUEUES, 4), 0);
    assert_eq!(load(register::QUEUE_SIZE, 2), 64);
    assert_eq!(load(register::CONFIGURATION_MESSAGE, 2), u64::from(NO_MESSAGE));
    driver.set_up();
    let mut load = |offset, size| driver.window.load(offset, size);
    assert_eq!(load(register::STATUS, 1), 0xf);
    assert_eq!(load(register::QUEUE_ENABLE, 2), 1);
    assert_eq!(load(register::AVAILABLE, 8), AVAILABLE);
    assert_eq!(load(register::USED, 4), USED);
    assert_eq!(
        load(register::DEVICE_FEATURES, 4),
        1 << 28,
        "chains in tables of their own"
    );
    driver.store(&[(register::QUEUE_SELECT, 2, 9)]);
    assert_eq!(driver.window.load(register::QUEUE_SIZE, 2), 0, "no such queue");
}

#[test]
fn requests_are_answered_by_the_line() {
    let mut driver = Driver::new();
    driver.set_up();
    driver.request(1);
    assert!(driver.is_asserted());
    assert_eq!(driver.configured(6, 2) & 8, 8, "the status says so");
    assert_eq!(driver.configured(4, 4) >> 16 & 8, 8);
    driver.configure(4, 2, 0x406);
    assert!(!driver.is_asserted(), "the line is not to be used");
    driver.configure(4, 2, 6);
    assert!(driver.is_asserted());
    assert_eq!(driver.window.load(INTERRUPT_STATUS, 1), 1);
    assert!(!driver.is_asserted(), "read is acknowledged");
    assert_eq!(driver.window.load(INTERRUPT_STATUS, 1), 0);
}

#[test]
fn requests_are_answered_by_messages() {
    let mut driver = Driver::new();
    driver.set_up();
    driver.route();
    driver.set_messages(0xc000);
    driver.request(1);
    assert!(!driver.has(VECTOR + 1));
    assert_eq!(driver.window.load(PENDING, 8), 2);
    assert_eq!(driver.window.load(PENDING, 1), 2);
    driver.set_messages(0x8000);
    assert!(driver.has(VECTOR + 1) && !driver.has(VECTOR));
    assert!(!driver.is_asserted());
    assert_eq!(
        driver.window.load(INTERRUPT_STATUS, 1),
        0,
        "messages tell by themselves"
    );
    driver.store(&[(register::STATUS, 1, 0)]);
    assert_eq!(
        driver.window.load(register::CONFIGURATION_MESSAGE, 2),
        u64::from(NO_MESSAGE),
        "forgotten"
    );
}

#[test]
fn a_device_that_may_not_master_the_bus_waits_until_it_may() {
    let mut driver = Driver::new();
    driver.set_up();
    driver.route();
    driver.set_messages(0x8000);
    driver.configure(4, 2, 2);
    let write = |address: u64, value: u64| {
        driver
            .memory
            .write_value(PhysicalAddress(address), value)
            .expect("RAM");
    };
    write(DESCRIPTORS, BUFFER);
    write(DESCRIPTORS + 8, 16 | 2 << 32);
    write(AVAILABLE, 1 << 16);
    let used = |driver: &Driver| -> u16 { driver.memory.read_value(PhysicalAddress(USED + 2)).expect("RAM") };
    driver.store(&[(NOTIFICATIONS, 2, 0)]);
    driver.timeline.perform_until(u64::MAX);
    assert_eq!(used(&driver), 0);
    driver.configure(4, 2, 6);
    driver.timeline.perform_until(u64::MAX);
    assert_eq!(used(&driver), 1);
    assert!(driver.has(VECTOR + 1));
}

#[test]
fn broken_rings_are_told_by_the_message_of_the_configuration() {
    let mut driver = Driver::new();
    driver.set_up();
    driver.route();
    driver.set_messages(0x8000);
    let more_than_there_are = 0xffff_u16;
    driver
        .memory
        .write_value(PhysicalAddress(AVAILABLE + 2), more_than_there_are)
        .expect("RAM");
    driver.store(&[(NOTIFICATIONS, 2, 0)]);
    driver.timeline.perform_until(u64::MAX);
    assert!(driver.has(VECTOR));
    assert_eq!(driver.window.load(register::STATUS, 1), 0x4f, "asks to be reset");
}

#[test]
fn structures_are_reached_through_configuration_space() {
    let driver = Driver::new();
    let at = driver.structure(structure::CONFIGURATION_ACCESS);
    let reach = |offset, size| {
        driver.configure(at + 4, 1, 0);
        driver.configure(at + 8, 4, offset);
        driver.configure(at + 12, 4, size);
    };
    reach(register::QUEUES as u32, 2);
    assert_eq!(driver.configured(at + 16, 2), 1);
    reach(register::STATUS as u32, 1);
    driver.configure(at + 16, 1, 3);
    assert_eq!(driver.configured(at + 16, 1), 3);
    for (offset, size) in [(SIZE, 4), (SIZE - 4, 8), (2, 4), (u32::MAX, 1), (0, u32::MAX)] {
        reach(offset, size);
        driver.configure(at + 16, 4, u32::MAX);
        driver.configured(at + 16, 4);
    }
    reach(register::STATUS as u32, 1);
    assert_eq!(driver.configured(at + 16, 1), 3, "as before");
}
