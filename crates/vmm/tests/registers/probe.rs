//! A guest that pokes at every device of a whole machine: at any offset, at every width, with queues that it fills with
//! anything. Bytes say what it does, so that a fuzzer can be the guest.

use std::io::Write;
use std::sync::Arc;

use sidestep_ia64::PhysicalAddress;
use sidestep_vmm::device::iosapic::{self, Iosapic, Lines};
use sidestep_vmm::device::power::{self, Power};
use sidestep_vmm::device::serial::{self, Serial};
use sidestep_vmm::firmware::layout;
use sidestep_vmm::machine::hypercall::Console;
use sidestep_vmm::machine::timeline::Phase;
use sidestep_vmm::machine::{Activity, VirtualTime};
use sidestep_vmm::memory::{GuestMemory, MemoryRange};
use sidestep_vmm::network::Link;
use sidestep_vmm::virtio::VirtioDevice;
use sidestep_vmm::virtio::block::Block;
use sidestep_vmm::virtio::console::VirtioConsole;
use sidestep_vmm::virtio::entropy::{Entropy, Seeded};
use sidestep_vmm::virtio::facilities::{Facilities, LATENCY_TICKS};
use sidestep_vmm::virtio::mmio::Transport;
use sidestep_vmm::virtio::network::Network;
use sidestep_vmm::{Machine, MachineBuilder};

const RAM_BYTES: u64 = 1 << 20;
const DISK_BYTES: usize = 8 << 10;
/// Bytes of one act: what, where, how wide, and a value.
const ACT_BYTES: usize = 12;

/// A cable that leads back, for a while.
#[derive(Default)]
struct Mirror(Vec<Vec<u8>>);

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
struct Typist;

impl Console for Typist {
    fn write(&mut self, _: &[u8]) {}

    fn read(&mut self) -> Option<u8> {
        Some(b'x')
    }
}

/// A machine whose one processor does nothing, so that only devices act.
struct Probed {
    machine: Machine,
    virtio: Vec<Facilities>,
    /// First address and size of each device.
    places: Vec<(u64, u64)>,
}

impl Probed {
    fn new(disk: &std::path::Path) -> Probed {
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
        let devices: [Box<dyn VirtioDevice>; 4] = [
            Box::new(Block::open(disk, false).expect("a disk")),
            Box::new(Network::new([2, 0, 0, 0, 0, 1], Box::new(Mirror::default()))),
            Box::new(VirtioConsole::new(Box::new(Typist))),
            Box::new(Entropy::new(Seeded(1))),
        ];
        let mut virtio = Vec::new();
        for (number, device) in (0..).zip(devices) {
            let line = lines.line(layout::VIRTIO_INTERRUPT + number);
            let interrupt = Box::new(move |asserted| line.set(asserted));
            let facilities = Facilities::new(device, builder.memory(), interrupt, builder.timeline());
            let start = at(layout::VIRTIO + u64::from(number) * layout::VIRTIO_SIZE);
            builder
                .attach(
                    "virtio",
                    start,
                    layout::VIRTIO_SIZE,
                    Transport::new(facilities.clone()),
                )
                .expect("a free place");
            virtio.push(facilities);
        }
        let mut machine = builder.build();
        machine.cpus[0].activity = Activity::Stopped;
        let places = machine.platform().bus.devices();
        let places = places.map(|(_, start, size)| (start.0, size)).collect();
        Probed {
            machine,
            virtio,
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
        let width = 1 << (what >> 3 & 3);
        let address = PhysicalAddress(start + offset % size);
        let platform = self.machine.platform();
        match what & 7 {
            0..=2 => drop(platform.bus.store(address, width, value)),
            // Aligned words, which transports take.
            3 => drop(platform.bus.store(PhysicalAddress(address.0 & !3), 4, value)),
            4 => drop(platform.bus.load(address, width)),
            5 | 6 => {
                let place = PhysicalAddress(offset << (what >> 5));
                platform
                    .memory
                    .write_value(place, value)
                    .unwrap_or_else(|_| assert!(place.0 + 8 > RAM_BYTES));
            }
            _ => self.wait(),
        }
    }

    /// Sets a device up with rings in low memory and notifies it, as `value` says.
    fn set_up(&mut self, value: u8) {
        let start = layout::VIRTIO + u64::from(value & 3) * layout::VIRTIO_SIZE;
        let queue = u64::from(value >> 2 & 1);
        let rings = queue * 0x3000;
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
            self.machine
                .platform()
                .bus
                .store(PhysicalAddress(start + register), 4, value);
        }
    }
}

/// Does what the bytes say, and answers how many errors devices have counted.
pub fn probe(data: &[u8]) -> u64 {
    let mut disk = tempfile::NamedTempFile::new().expect("a temporary file");
    disk.write_all(&[0; DISK_BYTES]).expect("room for it");
    let mut probed = Probed::new(disk.path());
    for device in 0..8 {
        probed.set_up(device);
    }
    for act in data.chunks_exact(ACT_BYTES) {
        probed.act(act.try_into().expect("as long as an act"));
    }
    probed.wait();
    let size = disk.as_file().metadata().expect("it is there").len();
    assert_eq!(size, DISK_BYTES as u64, "a disk keeps its size");
    let counters = probed.virtio.iter().map(Facilities::counters);
    counters
        .map(|counters| counters.errors.load(std::sync::atomic::Ordering::Relaxed))
        .sum()
}
