//! A driver of one device on PCI whose requests are nearly right: bytes change what is well formed, and registers
//! meanwhile, so that a fuzzer gets deep into what the device makes of them.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use sidestep_ia64::PhysicalAddress;
use sidestep_machine::ahci::{self, Behind};
use sidestep_machine::device::iosapic::Lines;
use sidestep_machine::e1000::{self, Adapter};
use sidestep_machine::folder::server::Server;
use sidestep_machine::folder::tree::Tree;
use sidestep_machine::lsi;
use sidestep_machine::machine::timeline::Timeline;
use sidestep_machine::memory::{GuestMemory, MemoryRange};
use sidestep_machine::pci::Function;
use sidestep_machine::pci::interrupts::Interrupts;
use sidestep_machine::storage::ata::Drive;
use sidestep_machine::storage::disk::Disk;
use sidestep_machine::storage::scsi::{Medium, Unit};
use sidestep_machine::virtio::block::Block;
use sidestep_machine::virtio::console::VirtioConsole;
use sidestep_machine::virtio::entropy::{Entropy, Seeded};
use sidestep_machine::virtio::facilities::Facilities;
use sidestep_machine::virtio::folder::Folder;
use sidestep_machine::virtio::network::Network;
use sidestep_machine::virtio::{VirtioDevice, pci};
use sidestep_machine::{Machine, MachineBuilder};
use tempfile::{NamedTempFile, TempDir};

use crate::probe::{Mirror, Typist};

const RAM_BYTES: u64 = 1 << 20;
const DISK_BYTES: u64 = 64 << 10;
const REGISTERS: u32 = 0xe010_0000;
const PORTS: u32 = 0x1000;
const ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Memory that the bytes change: what describes requests, and what they say.
const REQUESTS: u32 = 0x1000;
const REQUESTS_BYTES: u32 = 0x1000;
/// Memory for what goes from a device and to it.
const ANSWERS: u32 = 0x3000;
const DATA: u32 = 0x1_0000;
const DATA_BYTES: u32 = 512;
/// Bytes of one act: what, how often, where, and a value.
const ACT_BYTES: usize = 8;
/// An act waits for fewer pieces of work than these, so that no input takes long.
const TURNS_MAX: u8 = 16;
/// Descriptors of a ring or queue.
const RING: u32 = 8;

/// Where the driver of the SCSI controller has its table, a command, a message and the status, behind its SCRIPTS.
const TABLE: u32 = REQUESTS + 0x200;
const COMMAND: u32 = REQUESTS + 0x300;
const MESSAGE: u32 = REQUESTS + 0x340;
const STATUS: u32 = REQUESTS + 0x380;
/// Where the network adapter's driver has its ring to receive and a packet, behind its ring to transmit.
const RECEIVED: u32 = REQUESTS + 0x200;
const PACKET: u32 = REQUESTS + 0x400;
/// Where each AHCI port's one command has its table, behind the lists, and how far the ports' are apart.
const TABLES: u32 = REQUESTS + 0x800;
const PORT: u32 = 0x400;
/// Where the driver of before version 1 has its queue's available ring, behind descriptors that fill a page; and where
/// the ports are behind the other registers.
const LEGACY_AVAILABLE: u32 = REQUESTS + 0x1000;
const LEGACY: u64 = pci::SIZE as u64;
/// Where a virtio driver has a queue's available ring, and the next queue, behind the descriptors; and its messages.
const AVAILABLE: u32 = 0x100;
const QUEUE: u32 = 0x200;
const MESSAGES: u32 = REQUESTS + 0x400;

/// A device that a guest may have on PCI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    Scsi,
    Adapter,
    Ahci,
    Block,
    Network,
    Console,
    Entropy,
    Folder,
    /// A disk of virtio's whose driver knows the registers of before version 1.
    LegacyBlock,
}

impl Device {
    #[allow(dead_code, reason = "a fuzz target has one device of these, the tests all")]
    pub const ALL: [Device; 9] = [
        Device::Scsi,
        Device::Adapter,
        Device::Ahci,
        Device::Block,
        Device::Network,
        Device::Console,
        Device::Entropy,
        Device::Folder,
        Device::LegacyBlock,
    ];
}

struct Driver {
    device: Device,
    function: Box<dyn Function>,
    memory: Arc<GuestMemory>,
    timeline: Arc<Timeline>,
    registers_bytes: u64,
    /// Forgets, once it goes, what is still to be done.
    _machine: Machine,
}

impl Driver {
    /// A driver of `device`, whose disks or folder are at these places of the host.
    fn new(device: Device, [disk, cdrom, folder]: [&Path; 3]) -> Driver {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, RAM_BYTES)]).expect("a good layout");
        let builder = MachineBuilder::new(memory, 1);
        let line = Lines::new(builder.interrupts()).line(16);
        let line = Box::new(move |asserted| line.set(asserted));
        let open = |path| Disk::open(path, false).expect("a disk");
        let virtio = |device: Box<dyn VirtioDevice>| {
            let sources = pci::sources(device.queue_sizes().len());
            let interrupts = Interrupts::new(sources, line.clone(), builder.interrupts());
            let interrupt = Box::new(interrupts.clone());
            let facilities = Facilities::new(device, builder.memory(), interrupt, builder.timeline());
            let ports = pci::legacy_ports(&facilities);
            let places = (REGISTERS, PORTS);
            let transport = pci::Transport::transitional(facilities, interrupts, places, 0);
            (Box::new(transport) as Box<dyn Function>, pci::SIZE + ports)
        };
        let interrupts = || Interrupts::new(0, line.clone(), builder.interrupts());
        let (function, registers_bytes): (Box<dyn Function>, u32) = match device {
            Device::Scsi => {
                let units = vec![
                    Unit::new(open(disk), Medium::Disk),
                    Unit::new(open(cdrom), Medium::Cdrom),
                ];
                let (memory, timeline) = (builder.memory(), builder.timeline());
                let controller = lsi::Controller::new(units, memory, interrupts(), timeline, REGISTERS, 0);
                (Box::new(controller), lsi::SIZE)
            }
            Device::Adapter => {
                let (memory, timeline) = (builder.memory(), builder.timeline());
                let cable = Box::new(Mirror::default());
                let places = [REGISTERS, PORTS];
                let adapter = Adapter::new(ADDRESS, cable, memory, interrupts(), timeline, places, 0);
                (Box::new(adapter), e1000::REGISTERS_BYTES)
            }
            Device::Ahci => {
                let behind = vec![
                    Behind::Disk(Drive::new(open(disk))),
                    Behind::Cdrom(Unit::new(open(cdrom), Medium::Cdrom)),
                ];
                let (memory, timeline) = (builder.memory(), builder.timeline());
                let controller = ahci::Controller::new(behind, memory, interrupts(), timeline, REGISTERS, 0);
                (Box::new(controller), ahci::REGISTERS_BYTES)
            }
            Device::Block | Device::LegacyBlock => {
                virtio(Box::new(Block::open(disk, false).expect("a disk")))
            }
            Device::Network => virtio(Box::new(Network::new(ADDRESS, Box::new(Mirror::default())))),
            Device::Console => virtio(Box::new(VirtioConsole::new(Box::new(Typist)))),
            Device::Entropy => virtio(Box::new(Entropy::new(Seeded(1)))),
            Device::Folder => {
                let tree = Tree::open(folder, false).expect("a folder");
                virtio(Box::new(Folder::new("shared", Server::new(tree))))
            }
        };
        let mut driver = Driver {
            device,
            function,
            memory: builder.memory(),
            timeline: builder.timeline(),
            registers_bytes: registers_bytes.into(),
            _machine: builder.build(),
        };
        driver.function.store_configuration(4, 2, 7);
        match device {
            Device::Scsi => driver.describe_scripts(),
            Device::Adapter => driver.describe_packets(),
            Device::Ahci => driver.describe_commands(),
            _ => driver.describe_queues(),
        }
        driver
    }

    fn put(&self, at: u32, bytes: &[u8]) {
        let place = PhysicalAddress(at.into());
        self.memory.write(place, bytes).expect("memory");
    }

    fn put_words(&self, at: u32, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(at, &bytes);
    }

    fn store(&mut self, offset: u64, size: u64, value: u32) {
        self.function.store(offset, size, value.into());
    }

    /// SCRIPTS that select the disk, send it a command and take what it answers.
    fn describe_scripts(&mut self) {
        let command = [0x28, 0, 0, 0, 0, 1, 0, 0, 1, 0];
        self.put(COMMAND, &command);
        self.put(MESSAGE, &[0x80]);
        let length = command.len() as u32;
        let table = [
            [0, 0],
            [1, MESSAGE],
            [length, COMMAND],
            [DATA_BYTES, DATA],
            [1, STATUS],
            [1, STATUS + 1],
        ];
        self.put_words(TABLE, table.as_flattened());
        let scripts = [
            [0x4700_0000, REQUESTS + 0x40], // select
            [0x1e00_0000, 8],               // a message out
            [0x1a00_0000, 16],              // the command
            [0x1900_0000, 24],              // data in
            [0x1b00_0000, 32],              // status
            [0x1f00_0000, 40],              // a message in
            [0x6000_0040, 0],               // it was understood
            [0x4800_0000, 0],               // the target leaves
            [0x9808_0000, 1],               // an interrupt
        ];
        self.put_words(REQUESTS, scripts.as_flattened());
    }

    /// Both rings, with a context for segments and a packet to send.
    fn describe_packets(&mut self) {
        let mut packet = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat();
        // Of IPv4, with 20 bytes of TCP's header and 200 of contents.
        packet.extend([
            8, 0, 0x45, 0, 0, 240, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 2, 15, 10, 0, 2, 2,
        ]);
        packet.extend([
            0, 80, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x18, 0x10, 0, 0, 0, 0, 0,
        ]);
        packet.resize(254, 7);
        self.put(PACKET, &packet);
        let length = packet.len() as u32;
        let descriptors = [
            // Sums from 14 and 34 on; TCP over IPv4, cut into segments; 54 bytes of headers, 64 of data each.
            [0x0021_180e, 0x0000_3222, 0x2700_0000 | (length - 54), 0x0040_3600],
            [PACKET, 0, 0x2d10_0000 | length, 0x0000_0300],
            [PACKET, 0, 0x0b00_0000 | length, 0],
        ];
        self.put_words(REQUESTS, descriptors.as_flattened());
        for number in 0..RING {
            self.put_words(RECEIVED + 16 * number, &[DATA + 2048 * number, 0, 0, 0]);
        }
        for (register, value) in [
            (0x2800, RECEIVED),
            (0x2808, 16 * RING),
            (0x2818, RING - 1),
            (0x3800, REQUESTS),
            (0x3808, 16 * RING),
            (0x100, 0x801a), // everything is received
            (0x400, 0xa),
            (0xd0, u32::MAX),
        ] {
            self.store(register, 4, value);
        }
    }

    /// A command of each port's list: blocks of the disk, and a packet for the CD-ROM.
    fn describe_commands(&mut self) {
        self.store(4, 4, 0x8000_0002);
        for (port, flags, frame) in [
            (0, 5, [0x27, 0x80, 0x25, 0, 1, 0, 0, 0x40, 0, 0, 0, 0, 1, 0, 0, 0]),
            (1, 0x25, [0x27, 0x80, 0xa0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            let (list, table) = (REQUESTS + port * PORT, TABLES + port * PORT);
            self.put_words(list, &[1 << 16 | flags, 0, table, 0]);
            self.put(table, &frame);
            self.put(table + 0x40, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
            self.put_words(table + 0x80, &[DATA, 0, 0, DATA_BYTES - 1]);
            let registers = 0x100 + 0x80 * u64::from(port);
            for (register, value) in [
                (0x00, list),
                (0x08, ANSWERS + port * 0x100),
                (0x14, u32::MAX),
                (0x18, 0x10),
                (0x18, 0x11),
            ] {
                self.store(registers + register, 4, value);
            }
        }
    }

    /// Queues in which the first chain is always the next: one to be answered, and one that the device only reads.
    fn describe_queues(&mut self) {
        const NEXT: u32 = 1;
        const WRITE: u32 = 2;
        let (request, chain) = match self.device {
            Device::Block | Device::LegacyBlock => (
                vec![0; 16], // a block is read
                vec![
                    [MESSAGES, 16, NEXT],
                    [DATA, DATA_BYTES, NEXT | WRITE],
                    [ANSWERS, 1, WRITE],
                ],
            ),
            Device::Folder => (
                [&[19, 0, 0, 0, 104, 0, 0][..], &[0; 12]].concat(), // somebody attaches to the root
                vec![[MESSAGES, 19, NEXT], [DATA, 4096, WRITE]],
            ),
            _ => (vec![0; 76], vec![[DATA, 2048, WRITE]]),
        };
        self.put(MESSAGES, &request);
        for (number, [address, bytes, flags]) in (0..).zip(chain) {
            let descriptor = [address, 0, bytes, flags | (number + 1) << 16];
            self.put_words(REQUESTS + 16 * number, &descriptor);
        }
        if self.device == Device::LegacyBlock {
            // The driver's state, the queue's page, and the driver's state again.
            for (port, size, value) in [(18, 1, 3), (14, 2, 0), (8, 4, REQUESTS >> 12), (18, 1, 7)] {
                self.store(LEGACY + port, size, value);
            }
            return;
        }
        self.put_words(REQUESTS + QUEUE, &[MESSAGES, 0, 76, 0]);
        for (register, size, value) in [
            (0x14, 1, 3), // the driver's state
            (0x08, 4, 1), // it knows version 1
            (0x0c, 4, 1),
            (0x14, 1, 0xb),
        ] {
            self.store(register, size, value);
        }
        for queue in 0..2 {
            let descriptors = REQUESTS + QUEUE * queue;
            for (register, size, value) in [
                (0x16, 2, queue),
                (0x18, 2, RING),
                (0x20, 4, descriptors),
                (0x28, 4, descriptors + AVAILABLE),
                (0x30, 4, ANSWERS + AVAILABLE * (queue + 1)),
                (0x1c, 2, 1), // it is enabled
            ] {
                self.store(register, size, value);
            }
        }
        self.store(0x14, 1, 0xf);
    }

    /// Has the device look at its requests, whatever they have become.
    fn issue(&mut self) {
        match self.device {
            Device::Scsi => {
                self.store(0x10, 4, TABLE);
                self.store(0x2c, 4, REQUESTS);
            }
            Device::Adapter => {
                let tail = self.function.load(0x3818, 4) as u32;
                self.store(0x3818, 4, (tail + 3) % RING);
            }
            Device::Ahci => {
                self.store(0x138, 4, 1);
                self.store(0x1b8, 4, 1);
            }
            Device::LegacyBlock => {
                self.fill(LEGACY_AVAILABLE);
                self.store(LEGACY + 16, 2, 0);
            }
            _ => {
                for queue in 0..2 {
                    self.fill(REQUESTS + QUEUE * queue + AVAILABLE);
                    self.store(pci::NOTIFICATIONS, 2, queue);
                }
            }
        }
    }

    /// Puts the next chain into an available ring.
    fn fill(&self, ring: u32) {
        let count = PhysicalAddress(u64::from(ring) + 2);
        let next: u16 = self.memory.read_value(count).expect("memory");
        self.memory
            .write_value(count, next.wrapping_add(1))
            .expect("memory");
    }

    /// Lets `turns` pieces of work be done.
    fn wait(&mut self, turns: u8) {
        for _ in 0..turns {
            let Some(next) = self.timeline.next() else {
                return;
            };
            self.timeline.set_now(next);
            self.timeline.perform_until(next);
        }
    }

    fn act(&mut self, act: [u8; ACT_BYTES]) {
        let [what, turns, low, high, value @ ..] = act;
        let (offset, value) = (u16::from_le_bytes([low, high]), u32::from_le_bytes(value));
        let size = 1 << (what >> 3 & 3);
        let register = u64::from(offset) % self.registers_bytes / size * size;
        match what & 7 {
            0..=1 => {
                let place = PhysicalAddress(u64::from(REQUESTS + u32::from(offset) % REQUESTS_BYTES / 4 * 4));
                let word: u32 = self.memory.read_value(place).expect("memory");
                self.memory.write_value(place, word ^ value).expect("memory");
            }
            2..=3 => self.store(register, size, value),
            4 => drop(self.function.load(register, size)),
            5 => self.issue(),
            6 => {
                let size = size.min(4);
                let register = u64::from(offset) % 0x100 / size * size;
                self.function.store_configuration(register, size, value);
                self.function.load_configuration(register, size);
            }
            _ => self.wait(turns % TURNS_MAX),
        }
    }
}

/// Does what the bytes say to a device, and answers whether data came from it. Whatever they say, its work has an end,
/// and it goes on from what it saved.
pub fn request(device: Device, data: &[u8]) -> bool {
    let disks = [(); 2].map(|()| {
        let mut disk = NamedTempFile::new().expect("a temporary file");
        disk.write_all(&[7; DISK_BYTES as usize]).expect("room for it");
        disk
    });
    let folder = TempDir::new().expect("a folder");
    let [disk, cdrom] = disks.each_ref().map(NamedTempFile::path);
    let mut driver = Driver::new(device, [disk, cdrom, folder.path()]);
    for act in data.as_chunks().0 {
        driver.act(*act);
    }
    driver.issue();
    driver.wait(u8::MAX);
    let saved = driver.function.save();
    assert!(
        driver.function.restore(&saved),
        "a device goes on from what it saved"
    );
    for disk in &disks {
        let size = disk.as_file().metadata().expect("it is there").len();
        assert_eq!(size, DISK_BYTES, "a disk keeps its size");
    }
    let mut data = [0; 16];
    driver
        .memory
        .read(PhysicalAddress(DATA.into()), &mut data)
        .expect("memory");
    data != [0; 16]
}
