//! A driver as small as one can be, and what no driver would do.

use std::io::Write;

use proptest::prelude::*;
use sidestep_ia64::PhysicalAddress;
use tempfile::NamedTempFile;

use super::registers::{cause, command};
use super::*;
use crate::machine::interrupt_block::InterruptBlock;
use crate::memory::MemoryRange;
use crate::storage::ata::{Drive, operation};
use crate::storage::disk::Disk;
use crate::storage::scsi::{Medium, Unit};

const RAM_BYTES: u64 = 1 << 20;
const DISK_BYTES: usize = 512 << 10;
/// Where the driver has its lists, tables and data; those of the second port are behind.
const LIST: u32 = 0x1000;
const RECEIVED: u32 = 0x3000;
const TABLES: u32 = 0x4000;
const TABLE_BYTES: u32 = 0x100;
const DATA: u32 = 0x2_0000;

/// The disk's port and the CD-ROM's.
const DISK: u32 = 0;
const CDROM: u32 = 1;

struct Driver {
    controller: Controller,
    memory: Arc<GuestMemory>,
    timeline: Arc<Timeline>,
    interrupts: Interrupts,
    file: NamedTempFile,
}

fn pattern(at: usize) -> u8 {
    (at / 512 + at) as u8
}

impl Driver {
    fn new() -> Driver {
        let mut file = NamedTempFile::new().expect("a file");
        let bytes: Vec<u8> = (0..DISK_BYTES).map(pattern).collect();
        file.write_all(&bytes).expect("written");
        let memory = Arc::new(GuestMemory::new(&[MemoryRange::ram(0, RAM_BYTES)]).expect("a good layout"));
        let timeline = Arc::new(Timeline::new(Arc::default()));
        let processors = Arc::new(InterruptBlock::new(1, Arc::default()));
        let interrupts = Interrupts::new(0, Box::new(|_| {}), processors);
        let mut cdrom = NamedTempFile::new().expect("a file");
        cdrom.write_all(&bytes).expect("written");
        let behind = vec![
            Behind::Disk(Drive::new(Disk::open(file.path(), false).expect("a disk"))),
            Behind::Cdrom(Unit::new(
                Disk::open(cdrom.path(), true).expect("a disk"),
                Medium::Cdrom,
            )),
        ];
        let mut controller = Controller::new(
            behind,
            Arc::clone(&memory),
            interrupts.clone(),
            Arc::clone(&timeline),
            0xe010_0000,
            17,
        );
        controller.store_configuration(4, 2, 6);
        Driver {
            controller,
            memory,
            timeline,
            interrupts,
            file,
        }
    }

    fn started() -> Driver {
        let mut driver = Driver::new();
        driver.store(at::CONTROL, control::AHCI | control::INTERRUPTS);
        for port in [DISK, CDROM] {
            for (register, value) in [
                (port_at::LIST, LIST + port * 0x400),
                (port_at::RECEIVED, RECEIVED + port * 0x100),
                (port_at::ENABLED, cause::ALL),
                (port_at::COMMAND, command::RECEIVE),
                (port_at::COMMAND, command::RECEIVE | command::START),
                (port_at::INTERRUPTS, u32::MAX),
            ] {
                driver.store_port(port, register, value);
            }
        }
        driver.store(at::INTERRUPTS, u32::MAX);
        driver
    }

    fn load(&mut self, offset: u32) -> u32 {
        self.controller.load(u64::from(offset), 4) as u32
    }

    fn store(&mut self, offset: u32, value: u32) {
        self.controller.store(u64::from(offset), 4, u64::from(value));
    }

    fn load_port(&mut self, port: u32, register: u32) -> u32 {
        self.load(at::FIRST_PORT + port * port_at::BYTES + register)
    }

    fn store_port(&mut self, port: u32, register: u32, value: u32) {
        self.store(at::FIRST_PORT + port * port_at::BYTES + register, value);
    }

    fn put(&self, at: u32, bytes: &[u8]) {
        self.memory
            .write(PhysicalAddress(u64::from(at)), bytes)
            .expect("memory");
    }

    fn get(&self, at: u32, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.memory
            .read(PhysicalAddress(u64::from(at)), &mut bytes)
            .expect("memory");
        bytes
    }

    /// Puts a command into a slot: its frame, its packet if it has one, and the pieces of its data.
    fn describe(&self, port: u32, slot: u32, frame: &[u8], packet: &[u8], pieces: &[(u32, u32)]) {
        let table = TABLES + (port * 32 + slot) * TABLE_BYTES;
        self.put(table, frame);
        self.put(table + 0x40, packet);
        for (number, &(address, bytes)) in (0..).zip(pieces) {
            let words = [address, 0, 0, bytes - 1].map(u32::to_le_bytes);
            self.put(table + 0x80 + number * 16, words.as_flattened());
        }
        let has_packet = u32::from(!packet.is_empty()) << 5;
        let first = (pieces.len() as u32) << 16 | has_packet | 5;
        let words = [first, 0, table, 0].map(u32::to_le_bytes);
        self.put(LIST + port * 0x400 + slot * 32, words.as_flattened());
    }

    fn issue(&mut self, port: u32, slots: u32) {
        self.store_port(port, port_at::ISSUED, slots);
    }

    /// Lets `turns` turns go by.
    fn wait(&mut self, turns: usize) {
        for _ in 0..turns {
            let Some(next) = self.timeline.next() else {
                return;
            };
            self.timeline.set_now(next);
            self.timeline.perform_until(next);
        }
    }

    /// Sends a packet to the CD-ROM, with so many bytes of room; answers whether it was done.
    fn packet(&mut self, packet: &[u8], room: u32) -> bool {
        let frame = frame(operation::PACKET, 0, 0);
        let pieces = if room > 0 { vec![(DATA, room)] } else { Vec::new() };
        let mut padded = packet.to_vec();
        padded.resize(16, 0);
        self.describe(CDROM, 0, &frame, &padded, &pieces);
        self.issue(CDROM, 1);
        self.wait(1);
        self.load_port(CDROM, port_at::ISSUED) == 0
    }

    fn restart(&mut self, port: u32) {
        self.store_port(port, port_at::INTERRUPTS, u32::MAX);
        self.store_port(port, port_at::COMMAND, command::RECEIVE);
        self.store_port(port, port_at::COMMAND, command::RECEIVE | command::START);
    }
}

/// The frame of a command for a block.
fn frame(operation: u8, block: u64, count: u16) -> [u8; 20] {
    let (block, count) = (block.to_le_bytes(), count.to_le_bytes());
    let mut frame = [0; 20];
    frame[..8].copy_from_slice(&[0x27, 0x80, operation, 0, block[0], block[1], block[2], 0x40]);
    frame[8..11].copy_from_slice(&block[3..6]);
    frame[12..14].copy_from_slice(&count);
    frame
}

#[test]
fn a_driver_finds_a_disk_and_a_cdrom() {
    let mut driver = Driver::started();
    assert_eq!(driver.load(at::PORTS), 3);
    assert_eq!(driver.load(at::CAPABILITIES) & 0x1f, 1, "ports but one");
    assert_eq!(driver.load_port(DISK, port_at::SIGNATURE), 0x0000_0101);
    assert_eq!(driver.load_port(CDROM, port_at::SIGNATURE), 0xeb14_0101);
    assert_eq!(driver.load_port(2, port_at::SIGNATURE), 0, "there is no third");
    driver.describe(DISK, 3, &frame(operation::IDENTIFY, 0, 0), &[], &[(DATA, 512)]);
    driver.issue(DISK, 1 << 3);
    assert_eq!(driver.load_port(DISK, port_at::ISSUED), 1 << 3);
    driver.wait(1);
    assert_eq!(driver.load_port(DISK, port_at::ISSUED), 0);
    let blocks = (DISK_BYTES / 512) as u32;
    assert_eq!(driver.get(DATA + 120, 4), blocks.to_le_bytes());
    // As a processor would have fetched it: the status at the end is in the set-up's frame.
    assert_eq!(driver.get(RECEIVED + 0x20, 1), [0x5f]);
    assert_eq!(driver.get(RECEIVED + 0x2f, 1), [0x50]);
    assert_eq!(
        driver.load_port(DISK, port_at::INTERRUPTS),
        cause::SETUP_BY_PROCESSOR
    );
    assert!(driver.interrupts.is_asserted());
    driver.store_port(DISK, port_at::INTERRUPTS, u32::MAX);
    assert!(
        driver.interrupts.is_asserted(),
        "until the controller's is taken back"
    );
    driver.store(at::INTERRUPTS, 1);
    assert!(!driver.interrupts.is_asserted());
}

#[test]
fn bytes_go_both_ways_in_pieces() {
    let mut driver = Driver::started();
    let pieces = [(DATA, 700), (DATA + 0x1000, 3000), (DATA + 0x4000, 1420)];
    driver.describe(DISK, 0, &frame(operation::READ_DMA_EXT, 100, 10), &[], &pieces);
    driver.issue(DISK, 1);
    driver.wait(1);
    let read = pieces.map(|(at, bytes)| driver.get(at, bytes as usize)).concat();
    let expected: Vec<u8> = (51_200..51_200 + 5120).map(pattern).collect();
    assert!(read == expected);
    assert_eq!(driver.get(LIST + 4, 4), 5120u32.to_le_bytes(), "bytes moved");
    // The same bytes elsewhere, and more than one chunk of them.
    let blocks = 300u16;
    let many: Vec<u8> = (0..usize::from(blocks) * 512).map(|at| (at * 7) as u8).collect();
    driver.put(DATA, &many);
    driver.describe(
        DISK,
        1,
        &frame(operation::WRITE_DMA_EXT, 8, blocks),
        &[],
        &[(DATA, 100_000), (DATA + 100_000, 53_600)],
    );
    driver.describe(DISK, 2, &frame(operation::FLUSH_EXT, 0, 0), &[], &[]);
    driver.issue(DISK, 0b110);
    driver.wait(4);
    assert_eq!(driver.load_port(DISK, port_at::ISSUED), 0);
    let file = std::fs::read(driver.file.path()).expect("the disk");
    assert!(file[4096..][..many.len()] == many);
    assert_eq!(file[4095], pattern(4095));
}

#[test]
fn a_controller_that_may_not_master_the_bus_reaches_no_memory() {
    let mut driver = Driver::started();
    driver.controller.store_configuration(4, 2, 2);
    driver.describe(DISK, 0, &frame(operation::READ_DMA, 0, 1), &[], &[(DATA, 512)]);
    driver.issue(DISK, 1);
    driver.wait(2);
    assert_ne!(driver.load_port(DISK, port_at::INTERRUPTS) & cause::BUS_FAULT, 0);
    driver.controller.store_configuration(4, 2, 6);
    driver.restart(DISK);
    driver.issue(DISK, 1);
    driver.wait(2);
    assert_eq!(driver.load_port(DISK, port_at::ISSUED), 0, "done");
    assert_eq!(driver.get(DATA, 1), [pattern(0)]);
}

#[test]
fn what_is_wrong_stops_the_port_until_it_is_started_anew() {
    let mut driver = Driver::started();
    let beyond = (DISK_BYTES / 512) as u64;
    let read = |block| frame(operation::READ_DMA, block, 1);
    let wrong = [
        (read(beyond), [(DATA, 512)], cause::TASK_FILE),
        (frame(0x00, 0, 0), [(DATA, 512)], cause::TASK_FILE),
        ([0; 20], [(DATA, 512)], cause::TASK_FILE),
        (read(0), [(0xffff_0000, 512)], cause::BUS_FAULT),
    ];
    for (frame, pieces, expected) in wrong {
        driver.describe(DISK, 0, &frame, &[], &pieces);
        driver.issue(DISK, 1);
        driver.wait(2);
        assert_ne!(driver.load_port(DISK, port_at::INTERRUPTS) & expected, 0);
        assert_eq!(driver.load_port(DISK, port_at::ISSUED), 1, "not done");
        assert_eq!(driver.load_port(DISK, port_at::COMMAND) & command::RUNS, 0);
        driver.restart(DISK);
        assert_eq!(driver.load_port(DISK, port_at::ISSUED), 0);
    }
    // Too little room to write from: nothing is written.
    driver.describe(DISK, 0, &frame(operation::WRITE_DMA, 0, 2), &[], &[(DATA, 512)]);
    driver.issue(DISK, 1);
    driver.wait(1);
    assert_ne!(driver.load_port(DISK, port_at::INTERRUPTS) & cause::TASK_FILE, 0);
    let file = std::fs::read(driver.file.path()).expect("the disk");
    assert!(file.iter().enumerate().all(|(at, &byte)| byte == pattern(at)));
}

#[test]
fn a_cdrom_takes_packets() {
    let mut driver = Driver::started();
    driver.describe(
        CDROM,
        0,
        &frame(operation::IDENTIFY_PACKET, 0, 0),
        &[],
        &[(DATA, 512)],
    );
    driver.issue(CDROM, 1);
    driver.wait(1);
    assert_eq!(driver.get(DATA, 2), [0xc0, 0x85]);
    let capacity = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(driver.packet(&capacity, 8));
    let last = (DISK_BYTES / 2048 - 1) as u32;
    let expected = [last.to_be_bytes(), 2048u32.to_be_bytes()].concat();
    assert_eq!(driver.get(DATA, 8), expected);
    assert!(driver.packet(&[0x28, 0, 0, 0, 0, 5, 0, 0, 2, 0, 0, 0], 4096));
    let expected: Vec<u8> = (10_240..10_240 + 4096).map(pattern).collect();
    assert!(driver.get(DATA, 4096) == expected);
    // A packet that it does not know: a reason, which it tells when asked.
    assert!(!driver.packet(&[0xff; 12], 0));
    assert_eq!(driver.load_port(CDROM, port_at::TASK_FILE), 0x5451);
    driver.restart(CDROM);
    assert!(driver.packet(&[3, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0], 18));
    assert_eq!(driver.get(DATA + 2, 1), [5]);
}

#[test]
fn a_reset_by_either_way_leads_to_the_signature() {
    let mut driver = Driver::started();
    driver.put(RECEIVED + 0x40, &[0; 20]);
    driver.store_port(DISK, port_at::CONTROL, 0x301);
    assert_eq!(driver.load_port(DISK, port_at::STATUS), 0);
    driver.store_port(DISK, port_at::CONTROL, 0x300);
    assert_eq!(driver.load_port(DISK, port_at::STATUS), 0x113);
    assert_ne!(driver.load_port(DISK, port_at::ERRORS), 0);
    assert_eq!(driver.get(RECEIVED + 0x40, 8), [0x34, 0x40, 0x50, 1, 1, 0, 0, 0]);
    let mut control = [0; 20];
    (control[0], control[15]) = (0x27, 4);
    driver.describe(CDROM, 0, &control, &[], &[]);
    control[15] = 0;
    driver.describe(CDROM, 1, &control, &[], &[]);
    driver.issue(CDROM, 3);
    driver.wait(2);
    assert_eq!(driver.load_port(CDROM, port_at::ISSUED), 0);
    assert_eq!(driver.get(RECEIVED + 0x144, 3), [1, 0x14, 0xeb]);
    driver.store(at::CONTROL, control::RESET);
    assert_eq!(driver.load(at::CONTROL), control::AHCI);
    assert_eq!(driver.load_port(DISK, port_at::COMMAND), 0);
}

#[test]
fn a_controller_goes_on_as_another_was_saved() {
    let mut old = Driver::started();
    assert!(!old.packet(&[0xff; 12], 0));
    old.restart(CDROM);
    old.describe(DISK, 7, &frame(operation::READ_DMA, 1, 1), &[], &[(DATA, 512)]);
    old.issue(DISK, 1 << 7);
    let saved = old.controller.save();
    let mut new = Driver::started();
    new.timeline.restore(old.timeline.now(), old.timeline.sequence());
    assert!(new.controller.restore(&saved));
    assert!(new.controller.save() == saved);
    new.describe(DISK, 7, &frame(operation::READ_DMA, 1, 1), &[], &[(DATA, 512)]);
    new.wait(1);
    let expected: Vec<u8> = (512..1024).map(pattern).collect();
    assert!(new.get(DATA, 512) == expected);
    assert!(new.packet(&[3, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0], 18));
    assert_eq!(new.get(DATA + 2, 1), [5], "its reason was saved");
    assert!(!new.controller.restore(&saved[..40]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a driver stores, there is an end to each turn, and nothing outside memory is touched.
    #[test]
    fn no_driver_is_too_wrong(
        acts in prop::collection::vec((0u32..0x220, any::<u32>(), 0u64..4), 1..100),
        tables in prop::collection::vec(any::<[u8; 32]>(), 64),
        frames in prop::collection::vec((any::<u8>(), 0u64..2000, 0u16..200, 0u32..0x12_0000, 1u32..0x8000), 32),
    ) {
        let mut driver = Driver::started();
        for (slot, &(operation, block, count, address, bytes)) in (0..).zip(&frames) {
            let pieces = [(address, bytes), (DATA, bytes)];
            driver.describe(slot % 2, slot / 2, &frame(operation, block, count), &[operation; 12], &pieces);
        }
        for (number, bytes) in (0..).zip(&tables) {
            driver.put(LIST + 0x800 + number * 32, bytes);
        }
        for (offset, value, log) in acts {
            let size = 1 << log;
            let offset = u64::from(offset) / size * size;
            driver.controller.store(offset, size.max(4), u64::from(value));
            driver.controller.load(offset, size);
            driver.issue(value % 2, 1 << (value >> 8 & 31));
            driver.wait(3);
            let port = value % 2;
            if driver.load_port(port, port_at::COMMAND) & command::RUNS == 0 {
                driver.restart(port);
            }
        }
        let saved = driver.controller.save();
        prop_assert!(driver.controller.restore(&saved));
        prop_assert_eq!(driver.file.as_file().metadata().expect("it is there").len(), DISK_BYTES as u64);
    }
}
