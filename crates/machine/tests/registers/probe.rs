//! A guest that pokes at every device of a whole machine: at any offset, at every width, with queues that it fills with
//! anything. Bytes say what it does, so that a fuzzer can be the guest.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use sidestep_ia64::PhysicalAddress;
use sidestep_machine::ahci::{self, Behind};
use sidestep_machine::device::iosapic::{self, Iosapic, Lines};
use sidestep_machine::device::power::{self, Power};
use sidestep_machine::device::serial::{self, Serial};
use sidestep_machine::e1000::{self, Adapter};
use sidestep_machine::firmware::layout;
use sidestep_machine::lsi::{self, Controller};
use sidestep_machine::machine::hypercall::Console;
use sidestep_machine::machine::timeline::Phase;
use sidestep_machine::machine::{Activity, VirtualTime};
use sidestep_machine::memory::{GuestMemory, MemoryRange};
use sidestep_machine::network::Link;
use sidestep_machine::pci::interrupts::Interrupts;
use sidestep_machine::pci::{Address, Bus, Ports, Window};
use sidestep_machine::storage::ata::Drive;
use sidestep_machine::storage::disk::Disk;
use sidestep_machine::storage::scsi::{Medium, Unit};
use sidestep_machine::virtio::VirtioDevice;
use sidestep_machine::virtio::block::Block;
use sidestep_machine::virtio::console::VirtioConsole;
use sidestep_machine::virtio::entropy::{Entropy, Seeded};
use sidestep_machine::virtio::facilities::{Facilities, LATENCY_TICKS};
use sidestep_machine::virtio::network::Network;
use sidestep_machine::virtio::{mmio, pci};
use sidestep_machine::{Machine, MachineBuilder};

const RAM_BYTES: u64 = 1 << 20;
const DISK_BYTES: usize = 8 << 10;
const DISKS: usize = 5;
/// Where the registers of controllers are, and how many bytes of them.
const CONTROLLERS: [(u64, u64); 3] = [
    (layout::PCI_CONTROLLERS, lsi::SIZE as u64),
    (layout::PCI_CONTROLLERS + ADAPTER, e1000::REGISTERS_BYTES as u64),
    (
        layout::PCI_CONTROLLERS + 2 * ADAPTER,
        ahci::REGISTERS_BYTES as u64,
    ),
];
const ADAPTER: u64 = e1000::REGISTERS_BYTES as u64;
/// Functions on the bus, with the bridge.
pub const FUNCTIONS: u8 = 8;
/// Places of devices: of PCI's virtio functions the first, and of controllers the last.
pub const PLACES: u8 = 12;
/// Bytes of one act: what, where, how wide, and a value.
const ACT_BYTES: usize = 12;

/// A cable that leads back, for a while.
#[derive(Default)]
pub struct Mirror(Vec<Vec<u8>>);

impl Link for Mirror {
    fn send(&mut self, frame: &[u8]) {
        if self.0.len() < 16 {
            self.0.push(frame.to_vec());
        }
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

/// Somebody who types one letter for ever.
pub struct Typist;

impl Console for Typist {
    fn write(&mut self, _: &[u8]) {}

    fn read(&mut self) -> Option<u8> {
        Some(b'x')
    }
}

/// One device of each kind.
fn devices(disk: &Path) -> [Box<dyn VirtioDevice>; 4] {
    [
        Box::new(Block::open(disk, false).expect("a disk")),
        Box::new(Network::new([2, 0, 0, 0, 0, 1], Box::new(Mirror::default()))),
        Box::new(VirtioConsole::new(Box::new(Typist))),
        Box::new(Entropy::new(Seeded(1))),
    ]
}

/// A machine whose one processor does nothing, so that only devices act.
struct Probed {
    machine: Machine,
    virtio: Vec<Facilities>,
    pci: Arc<Bus>,
    /// First address and size of each device.
    places: Vec<(u64, u64)>,
}

impl Probed {
    fn new([memory_disk, pci_disk, scsi_disk, disk, cdrom]: [&Path; DISKS]) -> Probed {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, RAM_BYTES)]).expect("a good layout");
        let mut builder = MachineBuilder::new(memory, 1);
        let lines = Lines::new(builder.interrupts());
        let at = PhysicalAddress;
        let port = Serial::new(
            Box::new(Typist),
            lines.line(layout::SERIAL_INTERRUPT),
            builder.timeline(),
        );
        let power = Power::new(builder.ending(), builder.timeline());
        builder
            .attach(
                "iosapic",
                at(layout::IOSAPIC),
                iosapic::SIZE,
                Iosapic(lines.clone()),
            )
            .expect("a free place");
        builder
            .attach("serial", at(layout::SERIAL), serial::SIZE, port)
            .expect("a free place");
        builder
            .attach("power", at(layout::POWER), power::SIZE, power)
            .expect("a free place");
        let mut virtio = Vec::new();
        for (number, device) in (0..).zip(devices(memory_disk)) {
            let line = lines.line(layout::VIRTIO_INTERRUPT + number);
            let interrupt = Box::new(move |asserted| line.set(asserted));
            let facilities = Facilities::new(device, builder.memory(), interrupt, builder.timeline());
            let start = at(layout::VIRTIO + u64::from(number) * layout::VIRTIO_SIZE);
            let registers = mmio::Transport::new(facilities.clone());
            builder
                .attach("virtio", start, layout::VIRTIO_SIZE, registers)
                .expect("a free place");
            virtio.push(facilities);
        }
        let mut bus = Bus::new();
        for (number, device) in (0..).zip(devices(pci_disk)) {
            let line = lines.line(layout::VIRTIO_INTERRUPT + 4 + number);
            let line = Box::new(move |asserted| line.set(asserted));
            let sources = pci::sources(device.queue_sizes().len());
            let interrupts = Interrupts::new(sources, line, builder.interrupts());
            let interrupt = Box::new(interrupts.clone());
            let facilities = Facilities::new(device, builder.memory(), interrupt, builder.timeline());
            let start = layout::PCI as u32 + number * pci::SIZE;
            bus.add(Box::new(pci::Transport::new(
                facilities.clone(),
                interrupts,
                start,
                0,
            )));
            virtio.push(facilities);
        }
        let interrupts = |number| {
            let line = lines.line(number);
            Interrupts::new(
                0,
                Box::new(move |asserted| line.set(asserted)),
                builder.interrupts(),
            )
        };
        let [scsi_start, network_start, ahci_start] = CONTROLLERS.map(|(start, _)| start as u32);
        let open = |path: &Path| Disk::open(path, false).expect("a disk");
        bus.add(Box::new(Controller::new(
            vec![Unit::new(open(scsi_disk), Medium::Disk)],
            builder.memory(),
            interrupts(layout::VIRTIO_INTERRUPT + 8),
            builder.timeline(),
            scsi_start,
            0,
        )));
        bus.add(Box::new(Adapter::new(
            [2, 0, 0, 0, 0, 1],
            Box::new(Mirror::default()),
            builder.memory(),
            interrupts(layout::VIRTIO_INTERRUPT + 9),
            builder.timeline(),
            [network_start, layout::PCI_CONTROLLER_PORTS],
            0,
        )));
        bus.add(Box::new(ahci::Controller::new(
            vec![
                Behind::Disk(Drive::new(open(disk))),
                Behind::Cdrom(Unit::new(open(cdrom), Medium::Cdrom)),
            ],
            builder.memory(),
            interrupts(layout::VIRTIO_INTERRUPT + 10),
            builder.timeline(),
            ahci_start,
            0,
        )));
        let bus = Arc::new(bus);
        let window = Window::new(Arc::clone(&bus), layout::PCI);
        builder
            .attach("pci", at(layout::PCI), layout::PCI_SIZE, window)
            .expect("a free place");
        let ports = Ports::new(Arc::clone(&bus));
        builder
            .attach("ports", at(layout::PORTS), layout::PORTS_SIZE, ports)
            .expect("a free place");
        let mut machine = builder.build();
        machine.cpus[0].activity = Activity::Stopped;
        let places = machine.platform().bus.devices();
        let places = places.map(|(_, start, size)| match start.0 {
            layout::PCI => (start.0, 4 * u64::from(pci::SIZE)),
            layout::PORTS => {
                let first = u64::from(layout::PCI_CONTROLLER_PORTS) >> 2 << 12;
                (start.0 + first, u64::from(e1000::PORTS) >> 2 << 12)
            }
            start => (start, size),
        });
        let places: Vec<_> = places.chain(CONTROLLERS).collect();
        assert_eq!(places.len(), usize::from(PLACES));
        assert_eq!(places[0].0, layout::PCI);
        Probed {
            machine,
            virtio,
            pci: bus,
            places,
        }
    }

    /// Lets devices work for a while.
    fn wait(&mut self) {
        let platform = Arc::clone(self.machine.platform());
        let stopped = Arc::clone(&platform);
        let until = platform.timeline.now() + 20 * LATENCY_TICKS;
        platform
            .timeline
            .schedule(until, Phase::Interrupt, move |_| stopped.request_stop());
        VirtualTime::default().run(&mut self.machine);
    }

    fn act(&mut self, act: &[u8; ACT_BYTES]) {
        let [what, which, low, high, value @ ..] = *act;
        let value = u64::from_le_bytes(value);
        let offset = u64::from(u16::from_le_bytes([low, high]));
        let (start, size) = self.places[usize::from(which) % self.places.len()];
        // Further functions on PCI.
        let offset = offset + usize::from(which) as u64 / self.places.len() as u64 * u64::from(pci::SIZE);
        let width = 1 << (what >> 3 & 3);
        let address = PhysicalAddress(start + offset % size);
        let platform = self.machine.platform();
        match what & 7 {
            0..=2 => drop(platform.bus.store(address, width, value)),
            // Aligned words, which transports take.
            3 => drop(platform.bus.store(PhysicalAddress(address.0 & !3), 4, value)),
            4 => drop(platform.bus.load(address, width)),
            5 => {
                let place = PhysicalAddress(offset << (what >> 5));
                platform
                    .memory
                    .write_value(place, value)
                    .unwrap_or_else(|_| assert!(place.0 + 8 > RAM_BYTES));
            }
            6 => self.configure(
                which,
                u16::from_le_bytes([low, high]),
                (width.min(4), value as u32),
            ),
            _ => self.wait(),
        }
    }

    /// Stores to configuration space and loads from it.
    fn configure(&self, slot: u8, register: u16, (size, value): (u64, u32)) {
        let address = Address {
            segment: 0,
            bus: 0,
            slot: slot % FUNCTIONS,
            function: 0,
            register: register % 0x104 / size as u16 * size as u16,
        };
        self.pci.store(address, size, value);
        self.pci.load(address, size);
    }

    /// Sets a device up with rings in low memory and notifies it, as `value` says.
    fn set_up(&mut self, value: u8) {
        let (number, queue) = (u64::from(value & 3), u64::from(value >> 2 & 1));
        let rings = queue * 0x3000;
        let start = layout::VIRTIO + number * layout::VIRTIO_SIZE;
        for (register, value) in [
            (0x70, 3),
            (0x24, 1),
            (0x20, 1),
            (0x70, 0xb),
            (0x30, queue),
            (0x38, 8),
            (0x80, rings),
            (0x90, rings + 0x1000),
            (0xa0, rings + 0x2000),
            (0x44, 1),
            (0x70, 0xf),
            (0x50, queue),
        ] {
            self.store(start + register, 4, value);
        }
        self.configure(number as u8 + 1, 4, (2, 6));
        let start = layout::PCI + number * u64::from(pci::SIZE);
        for (register, size, value) in [
            (0x14, 1, 3),
            (0x08, 4, 1),
            (0x0c, 4, 1),
            (0x14, 1, 0xb),
            (0x16, 2, queue),
            (0x18, 2, 8),
            (0x20, 8, rings),
            (0x28, 8, rings + 0x1000),
            (0x30, 8, rings + 0x2000),
            (0x1c, 2, 1),
            (0x14, 1, 0xf),
            (0x3000, 2, queue),
        ] {
            self.store(start + register, size, value);
        }
    }

    /// Lets the controllers answer, gives SCRIPTS something to run, the adapter its rings and ports their lists.
    fn set_up_controllers(&mut self) {
        for slot in FUNCTIONS - CONTROLLERS.len() as u8..FUNCTIONS {
            self.configure(slot, 4, (2, 7));
        }
        let [scsi, network, ahci] = CONTROLLERS.map(|(start, _)| start);
        for (register, value) in [
            (0x2800, 0x8000), // the ring to receive, its bytes and end
            (0x2808, 0x80),
            (0x2818, 7),
            (0x3800, 0x9000), // the ring to transmit
            (0x3808, 0x80),
            (0x100, 0x801a), // everything is received
            (0x400, 0xa),
            (0x3818, 4),
        ] {
            self.store(network + register, 4, value);
        }
        // Of both ports: the list, the place of frames, receive and start.
        for port in [0x100, 0x180] {
            for (register, value) in [(0x00, 0xa000), (0x08, 0xb000), (0x14, u32::MAX), (0x18, 0x11)] {
                self.store(ahci + port + register, 4, value.into());
            }
        }
        // Its table, and where SCRIPTS begin.
        self.store(scsi + 0x10, 4, 0x7000);
        self.store(scsi + 0x2c, 4, 0x6000);
    }

    fn store(&self, address: u64, size: u64, value: u64) {
        let bus = &self.machine.platform().bus;
        assert!(bus.store(PhysicalAddress(address), size, value), "a device");
    }
}

/// Does what the bytes say, and answers how many errors devices have counted.
pub fn probe(data: &[u8]) -> u64 {
    let disks = [(); DISKS].map(|()| {
        let mut disk = tempfile::NamedTempFile::new().expect("a temporary file");
        disk.write_all(&[0; DISK_BYTES]).expect("room for it");
        disk
    });
    let mut probed = Probed::new(disks.each_ref().map(|disk| disk.path()));
    for device in 0..8 {
        probed.set_up(device);
    }
    probed.set_up_controllers();
    for act in data.chunks_exact(ACT_BYTES) {
        probed.act(act.try_into().expect("as long as an act"));
    }
    probed.wait();
    for disk in disks {
        let size = disk.as_file().metadata().expect("it is there").len();
        assert_eq!(size, DISK_BYTES as u64, "a disk keeps its size");
    }
    let counters = probed.virtio.iter().map(Facilities::counters);
    counters
        .map(|counters| counters.errors.load(std::sync::atomic::Ordering::Relaxed))
        .sum()
}
