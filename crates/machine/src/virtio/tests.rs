//! Devices behind their transport, driven as a guest's driver does: by registers and rings in memory.

mod carried;
mod disk;
mod hostile;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_ia64::PhysicalAddress;
use tempfile::NamedTempFile;

use super::VirtioDevice;
use super::block::Block;
use super::console::VirtioConsole;
use super::entropy::{Entropy, Seeded};
use super::facilities::{Facilities, LATENCY_TICKS, POLL_TICKS_MAX};
use super::mmio::{SIZE, Transport};
use super::network::{HardwareAddress, Network};
use crate::bus::Device;
use crate::machine::hypercall::Console;
use crate::machine::timeline::Timeline;
use crate::memory::{GRANULE, GuestMemory, MemoryKind, MemoryRange};
use crate::network::Link;
use crate::storage::disk::SECTOR;

const RAM_BYTES: u64 = 16 * GRANULE;
const DESCRIPTORS: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const BUFFERS: u64 = 0x1_0000;
/// From the rings of the first queue to those of the second.
const OTHER: u64 = 0x4000;
const QUEUE_ENTRIES: u64 = 8;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const NEEDS_RESET: u64 = 0x40;

/// A buffer: address, size, and whether the device writes it.
type Buffer = (u64, u32, bool);

struct Driver {
    transport: Transport,
    memory: Arc<GuestMemory>,
    timeline: Arc<Timeline>,
    interrupt: Arc<AtomicBool>,
    sent: u16,
}

impl Driver {
    /// A driver that has found its device, but not set it up. RAM, and ROM behind it.
    fn unset(device: impl VirtioDevice + 'static) -> Driver {
        Driver::unset_boxed(Box::new(device))
    }

    fn unset_boxed(device: Box<dyn VirtioDevice>) -> Driver {
        let rom = MemoryRange {
            kind: MemoryKind::Rom,
            ..MemoryRange::ram(RAM_BYTES, GRANULE)
        };
        let memory = GuestMemory::new(&[MemoryRange::ram(0, RAM_BYTES), rom]).expect("a good layout");
        let memory = Arc::new(memory);
        let timeline = Arc::new(Timeline::new(Arc::default()));
        let interrupt = Arc::new(AtomicBool::new(false));
        let line = Arc::clone(&interrupt);
        let line = Box::new(move |asserted| line.store(asserted, Ordering::Relaxed));
        Driver {
            transport: Transport::new(Facilities::new(
                device,
                Arc::clone(&memory),
                line,
                Arc::clone(&timeline),
            )),
            memory,
            timeline,
            interrupt,
            sent: 0,
        }
    }

    fn new(device: impl VirtioDevice + 'static) -> Driver {
        Driver::with(Box::new(device))
    }

    fn with(device: Box<dyn VirtioDevice>) -> Driver {
        let mut driver = Driver::unset_boxed(device);
        driver.set_up();
        driver
    }

    /// Makes another queue ready, behind the rings of the first.
    fn set_up_queue(&mut self, queue: u64) {
        for (register, value) in [
            (0x30, queue),
            (0x38, QUEUE_ENTRIES),
            (0x80, DESCRIPTORS + OTHER),
            (0x90, AVAILABLE + OTHER),
            (0xa0, USED + OTHER),
            (0x44, 1),
        ] {
            self.store(register, value);
        }
    }

    fn store(&mut self, register: u64, value: u64) {
        self.transport.store(register, 4, value);
    }

    fn load(&mut self, register: u64) -> u64 {
        self.transport.load(register, 4)
    }

    /// What a driver does to begin (section 3.1.1).
    fn set_up(&mut self) {
        self.prepare();
        self.store(0x70, 0xf);
    }

    /// Everything but the last bit of the status, by which the device may begin.
    fn prepare(&mut self) {
        self.memory
            .write(PhysicalAddress(DESCRIPTORS), &[0; 0x3000])
            .expect("RAM");
        self.sent = 0;
        for (register, value) in [
            (0x70, 0),
            (0x70, 3),
            (0x24, 1),
            (0x20, 1),
            (0x24, 0),
            (0x20, 1 << 28),
            (0x70, 0xb),
            (0x30, 0),
            (0x38, QUEUE_ENTRIES),
            (0x80, DESCRIPTORS),
            (0x90, AVAILABLE),
            (0xa0, USED),
            (0x44, 1),
        ] {
            self.store(register, value);
        }
    }

    fn write<T: vm_memory::ByteValued>(&self, address: u64, value: T) {
        self.memory
            .write_value(PhysicalAddress(address), value)
            .expect("RAM");
    }

    fn descriptor(&self, table: u64, index: u64, (address, size): (u64, u32), flags: u16, next: u16) {
        let at = table + index * 16;
        self.write(at, address);
        self.write(at + 8, size);
        self.write(at + 12, flags);
        self.write(at + 14, next);
    }

    /// Writes a chain of these buffers to a table.
    fn chain(&self, table: u64, buffers: &[Buffer]) {
        for (index, &(address, size, write)) in buffers.iter().enumerate() {
            let last = index + 1 == buffers.len();
            let flags = if write { WRITE } else { 0 } | if last { 0 } else { NEXT };
            self.descriptor(table, index as u64, (address, size), flags, index as u16 + 1);
        }
    }

    /// Makes the chain from the first descriptor on available and notifies the device.
    fn send(&mut self) {
        let place = u64::from(self.sent) % QUEUE_ENTRIES;
        self.write(AVAILABLE + 4 + 2 * place, 0_u16);
        self.sent = self.sent.wrapping_add(1);
        self.write(AVAILABLE + 2, self.sent);
        self.store(0x50, 0);
    }

    fn wait(&mut self) {
        self.timeline.perform_until(u64::MAX);
    }

    /// Sends a request and waits; answers how many bytes the device says it wrote.
    fn request(&mut self, buffers: &[Buffer]) -> u32 {
        self.chain(DESCRIPTORS, buffers);
        self.send();
        assert!(!self.is_interrupting(), "served later, not by the notification");
        self.wait();
        self.answer()
    }

    /// The answer to the last request: the interrupt, and the bytes written.
    fn answer(&mut self) -> u32 {
        assert_eq!(self.load(0x60), 1, "buffers used");
        assert!(self.is_interrupting());
        self.store(0x64, 1);
        assert!(!self.is_interrupting(), "acknowledged");
        assert_eq!(
            self.value::<u16>(USED + 2),
            self.sent,
            "every request is answered once"
        );
        let place = u64::from(self.sent - 1) % QUEUE_ENTRIES;
        self.value(USED + 4 + 8 * place + 4)
    }

    fn is_interrupting(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn value<T: vm_memory::ByteValued>(&self, address: u64) -> T {
        self.memory.read_value(PhysicalAddress(address)).expect("RAM")
    }

    fn bytes(&self, address: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.memory
            .read(PhysicalAddress(address), &mut bytes)
            .expect("RAM");
        bytes
    }

    /// A request to a disk with `data` between header and status; answers bytes written and status.
    fn disk(&mut self, kind: u32, sector: u64, data: &[Buffer]) -> (u32, u8) {
        self.write(BUFFERS, kind);
        self.write(BUFFERS + 8, sector);
        self.write(BUFFERS + 16, 0xff_u8);
        let mut buffers = vec![(BUFFERS, 16, false)];
        buffers.extend(data);
        buffers.push((BUFFERS + 16, 1, true));
        let written = self.request(&buffers);
        (written, self.value(BUFFERS + 16))
    }

    fn errors(&self) -> u64 {
        self.transport
            .facilities()
            .counters()
            .errors
            .load(Ordering::Relaxed)
    }
}

/// A disk of `sectors` sectors, each filled with its number.
fn disk_file(sectors: u8) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a temporary file");
    let bytes: Vec<u8> = (0..sectors)
        .flat_map(|sector| [sector; SECTOR as usize])
        .collect();
    fs::write(file.path(), bytes).expect("space");
    file
}

fn disk(path: &Path) -> Block {
    Block::open(path, false).expect("a disk")
}

#[test]
fn a_driver_finds_and_negotiates() {
    let file = disk_file(4);
    let mut driver = Driver::unset(disk(file.path()));
    assert_eq!(driver.load(0), 0x7472_6976);
    assert_eq!((driver.load(4), driver.load(8)), (2, 2));
    assert_eq!(driver.load(0x34), 256);
    assert_eq!(driver.transport.load(0x100, 8), 4, "sectors");
    assert_eq!(driver.transport.load(0x114, 4), SECTOR);
    assert_eq!(
        driver.transport.load(0x117, 8),
        0,
        "partly behind the configuration space"
    );
    driver.store(0x14, 1);
    assert_eq!(driver.load(0x10), 1, "version 1");
    driver.store(0x70, 3);
    driver.store(0x70, 0xb);
    assert_eq!(driver.load(0x70), 3, "refused: version 1 was not accepted");
    driver.store(0x24, 1);
    driver.store(0x20, 1);
    driver.store(0x24, 0);
    driver.store(0x20, 1 << 7);
    driver.store(0x70, 0xb);
    assert_eq!(driver.load(0x70), 3, "refused: a feature that was not offered");
    driver.set_up();
    assert_eq!(driver.load(0x70), 0xf);
    assert_eq!(driver.load(0x44), 1);
    driver.store(0x70, 0);
    assert_eq!((driver.load(0x70), driver.load(0x44)), (0, 0));
}

#[test]
fn chains_may_lie_in_tables_of_their_own() {
    let file = disk_file(8);
    let mut driver = Driver::new(disk(file.path()));
    let (table, data) = (0x8000, BUFFERS + 0x1000);
    driver.write(BUFFERS, 0_u32);
    driver.write(BUFFERS + 8, 5_u64);
    driver.chain(
        table,
        &[(BUFFERS, 16, false), (data, 512, true), (BUFFERS + 16, 1, true)],
    );
    driver.descriptor(DESCRIPTORS, 0, (table, 48), INDIRECT, 0);
    driver.send();
    driver.wait();
    assert_eq!(driver.answer(), 513);
    assert_eq!(driver.bytes(data, 512), [5; 512]);
}

#[test]
fn work_on_the_agenda_outlives_a_reset() {
    let file = disk_file(8);
    let mut driver = Driver::new(disk(file.path()));
    driver.chain(DESCRIPTORS, &[(BUFFERS, 16, false), (BUFFERS + 16, 1, true)]);
    driver.send();
    driver.send();
    assert_eq!(driver.timeline.next(), Some(LATENCY_TICKS), "once for both");
    driver.store(0x70, 0);
    driver.wait();
    assert_eq!(
        driver.value::<u16>(USED + 2),
        0,
        "a device that was reset does nothing"
    );
    assert!(!driver.is_interrupting());
    driver.set_up();
    assert_eq!(driver.disk(4, 0, &[]), (1, 0));
}

#[test]
fn entropy_follows_its_seed() {
    let random = |seed| {
        let mut driver = Driver::new(Entropy::new(Seeded(seed)));
        let pieces = [(BUFFERS, 5, true), (BUFFERS + 5, 95, true)];
        assert_eq!(driver.request(&pieces), 100);
        driver.bytes(BUFFERS, 100)
    };
    assert_eq!(random(1), random(1));
    assert_ne!(random(1), random(2));
    // The first output of the published generator for seed 0.
    assert_eq!(random(0)[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
    let mut driver = Driver::new(Entropy::of_host().expect("a host with entropy"));
    assert_eq!(driver.request(&[(BUFFERS, 100, true)]), 100);
    assert_ne!(driver.bytes(BUFFERS, 100), [0; 100]);
    assert_eq!(
        driver.request(&[(BUFFERS, 0x2_0000, true)]),
        0x1_0000,
        "some at a time"
    );
}

const ADDRESS: HardwareAddress = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

/// A cable that leads back.
#[derive(Default)]
struct Mirror(Vec<Vec<u8>>);

impl Link for Mirror {
    fn send(&mut self, frame: &[u8]) {
        self.0.push(frame.to_vec());
    }

    fn has_frame(&self) -> bool {
        !self.0.is_empty()
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.0.pop()
    }

    fn advance(&mut self, _: u64) {}

    fn poll_interval(&self) -> u64 {
        LATENCY_TICKS
    }
}

/// Types what was printed.
#[derive(Default)]
struct Typist(Vec<u8>);

impl Console for Typist {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn read(&mut self) -> Option<u8> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }
}

/// Sends a buffer by queue 1 of a device that gives back what it is sent, and answers what queue 0 received and the
/// bytes it was said to be.
fn echoed(device: Box<dyn VirtioDevice>, sent: &[u8]) -> (Vec<u8>, u32) {
    let mut driver = Driver::with(device);
    driver.set_up_queue(1);
    let (from, to) = (BUFFERS, BUFFERS + 0x1000);
    driver.descriptor(DESCRIPTORS, 0, (to, 256), WRITE, 0);
    driver.write(AVAILABLE + 2, 1_u16);
    driver.memory.write(PhysicalAddress(from), sent).expect("RAM");
    driver.descriptor(DESCRIPTORS + OTHER, 0, (from, sent.len() as u32), 0, 0);
    driver.write(AVAILABLE + OTHER + 2, 1_u16);
    driver.store(0x50, 1);
    // A console looks for what was typed every 10 ms.
    driver.timeline.perform_until(POLL_TICKS_MAX + LATENCY_TICKS);
    assert_eq!(driver.value::<u16>(USED + OTHER + 2), 1, "sent");
    assert_eq!(driver.value::<u16>(USED + 2), 1, "received");
    assert_eq!(driver.errors(), 0);
    let size = driver.value::<u32>(USED + 8);
    (driver.bytes(to, size as usize), size)
}

#[test]
fn a_network_device_sends_frames_and_receives_them() {
    let mut sent = vec![0; 12];
    sent.extend_from_slice(b"a frame of a guest");
    let device = Network::new(ADDRESS, Box::new(Mirror::default()));
    let (mut received, size) = echoed(Box::new(device), &sent);
    assert_eq!(size as usize, sent.len());
    assert_eq!(std::mem::take(&mut received[10]), 1, "one buffer");
    assert_eq!(received, sent);
    let mut driver = Driver::unset(Network::new(ADDRESS, Box::new(Mirror::default())));
    assert_eq!(
        driver.transport.load(0x100, 8),
        0x0001_5634_1200_5452,
        "its address, and the link is up"
    );
}

#[test]
fn a_console_device_prints_and_types() {
    let device = VirtioConsole::new(Box::new(Typist::default()));
    assert_eq!(echoed(Box::new(device), b"hello"), (b"hello".to_vec(), 5));
}

#[test]
fn what_was_asked_for_too_early_is_served_when_the_driver_is_ready() {
    let mut driver = Driver::unset(Entropy::new(Seeded(7)));
    driver.prepare();
    driver.chain(DESCRIPTORS, &[(BUFFERS, 16, true)]);
    driver.send();
    driver.wait();
    assert_eq!(driver.value::<u16>(USED + 2), 0, "not before");
    driver.store(0x70, 0xf);
    driver.wait();
    assert_eq!(driver.value::<u16>(USED + 2), 1);
}

/// Something that a device owns.
struct Owned(Arc<()>);

impl Console for Owned {
    fn write(&mut self, _: &[u8]) {
        assert!(Arc::strong_count(&self.0) > 1, "the test owns it too");
    }
}

#[test]
fn a_device_goes_with_its_machine_whatever_is_on_its_way() {
    let owned = Arc::new(());
    let mut driver = Driver::new(VirtioConsole::new(Box::new(Owned(Arc::clone(&owned)))));
    driver.chain(DESCRIPTORS, &[(BUFFERS, 16, true)]);
    driver.send();
    drop(driver);
    assert_eq!(Arc::strong_count(&owned), 1, "the timeline holds no device");
}

#[test]
fn a_device_goes_on_from_what_was_saved() {
    let entropy = |seed| Driver::new(Entropy::new(Seeded(seed)));
    let mut driver = entropy(7);
    driver.request(&[(BUFFERS, 16, true)]);
    // A request is on its way.
    driver.chain(DESCRIPTORS, &[(BUFFERS, 16, true)]);
    driver.send();
    let saved = driver.transport.facilities().save();
    let mut other = entropy(1);
    other
        .memory
        .write(PhysicalAddress(0), &driver.bytes(0, 0x1_0000))
        .expect("RAM");
    assert!(other.transport.facilities().restore(&saved));
    for driver in [&mut driver, &mut other] {
        driver.wait();
        assert_eq!(driver.value::<u16>(USED + 2), 2);
    }
    assert_eq!(
        driver.bytes(BUFFERS, 16),
        other.bytes(BUFFERS, 16),
        "the same bytes follow"
    );
    assert_eq!(
        driver.transport.facilities().save(),
        other.transport.facilities().save()
    );
    let console = Driver::new(VirtioConsole::new(Box::new(Typist::default())));
    assert!(
        !console.transport.facilities().restore(&saved),
        "it is of another kind"
    );
}
