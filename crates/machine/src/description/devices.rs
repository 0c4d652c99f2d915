//! What is attached to a whole machine: virtio devices and other controllers, as a description or options ask for them.
//!
//! Devices are made before the machine's memory is, so that a disk that cannot be opened costs nothing; then they are
//! attached in the order in which they were made, each with an interrupt of its own: disks first, then network devices,
//! shared folders, a console, the entropy device last. All have the same [`VirtioTransport`]. [`Controllers`] are on
//! the PCI bus behind all of these: one for the disks on a SCSI bus, one for those on Serial ATA, then network
//! adapters.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use sidestep_ia64::PhysicalAddress;
use thiserror::Error;

use super::bare::Clock;
use super::disks::{DiskBus, DiskTable};
use super::folders::NoFolder;
use super::kernel::Description;
use super::networks::NetworkModel;
use crate::ahci::{self, Behind};
use crate::device::iosapic::Lines;
use crate::e1000;
use crate::firmware::boot::{BootDisk, DevicePath};
use crate::firmware::layout;
use crate::lsi;
use crate::machine::hypercall::Console;
use crate::machine::{AttachError, MachineBuilder};
use crate::network::Link;
use crate::network::forward::Forward;
use crate::pci;
use crate::pci::interrupts::Interrupts;
use crate::storage::ata::Drive;
use crate::storage::disk::{Disk, DiskError};
use crate::storage::scsi::{Medium, Unit};
use crate::virtio::VirtioDevice;
use crate::virtio::block::Block;
use crate::virtio::console::VirtioConsole;
use crate::virtio::entropy::{Entropy, Seeded};
use crate::virtio::facilities::Facilities;
use crate::virtio::network::{HardwareAddress, Network};
use crate::virtio::{mmio, pci as virtio_pci};

/// The hardware address of the first network device; the others follow.
const HARDWARE_ADDRESS: HardwareAddress = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];

/// How virtio devices are found and reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VirtioTransport {
    /// On the PCI bus, which every IA-64 kernel looks through.
    #[default]
    Pci,
    /// The same, with the registers of before version 1 as well, for drivers that know no others: Linux before 4.0.
    Transitional,
    /// By registers in memory, which ACPI tables name.
    Mmio,
}

/// What is no transport.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` must be `pci`, `transitional` or `mmio`")]
pub struct NoTransport(String);

impl FromStr for VirtioTransport {
    type Err = NoTransport;

    fn from_str(text: &str) -> Result<VirtioTransport, NoTransport> {
        match text {
            "pci" => Ok(VirtioTransport::Pci),
            "transitional" => Ok(VirtioTransport::Transitional),
            "mmio" => Ok(VirtioTransport::Mmio),
            _ => Err(NoTransport(text.to_owned())),
        }
    }
}

/// Why a device cannot be made.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// A disk is none.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A port of the host cannot be forwarded.
    #[error("the host does not listen at {}, which is to lead to the guest: {error}", forward.host)]
    Forward {
        /// Which.
        forward: Forward,
        /// What the host says.
        error: io::Error,
    },
    /// A tap interface cannot be used.
    #[error("the tap interface `{name}` cannot be used: {error}")]
    Tap {
        /// Its name.
        name: String,
        /// What the host says.
        error: io::Error,
    },
    /// The other emulator's frames cannot be received.
    #[error("the host does not listen at {listen} for another emulator's frames: {error}")]
    Udp {
        /// Where.
        listen: std::net::SocketAddr,
        /// What the host says.
        error: io::Error,
    },
    /// The host gives no random bytes.
    #[error("the host gives no random bytes for the entropy device: {0}")]
    Entropy(io::Error),
    /// More devices than there is room for.
    #[error("the machine has {0} virtio devices and controllers; there is room for {max}", max = layout::VIRTIO_MAX)]
    TooMany(usize),
    /// More disks on the SCSI bus than that has places for.
    #[error("the machine has {0} disks on its SCSI bus; there is room for {max}", max = lsi::TARGETS_MAX)]
    TooManyTargets(usize),
    /// More than the Serial ATA controller has ports for.
    #[error("the machine has {0} disks on Serial ATA; there are {max} ports", max = ahci::PORTS_MAX)]
    TooManyPorts(usize),
    /// A shared folder cannot be used.
    #[error("the folder `{}` cannot be shared: {error}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the host says.
        error: io::Error,
    },
    /// A shared folder has no name that a guest could mount.
    #[error("a shared folder's {0}")]
    FolderTag(NoFolder),
    /// Two shared folders have one name.
    #[error("two shared folders have the tag `{0}`")]
    FolderTwice(String),
    /// A CD-ROM that is a virtio device.
    #[error("the CD-ROM `{}` must be on another bus than virtio: `scsi` or `ahci`", .0.display())]
    VirtioCdrom(PathBuf),
}

/// A device that waits to be attached.
pub struct Made {
    name: String,
    device: Box<dyn VirtioDevice>,
}

impl Made {
    /// A device and what it is called.
    pub fn new(name: impl Into<String>, device: impl VirtioDevice + 'static) -> Made {
        Made {
            name: name.into(),
            device: Box::new(device),
        }
    }
}

/// Where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On PCI, as firmware has numbered the buses.
    Slot {
        /// The bus.
        bus: usize,
        /// The slot on it.
        slot: usize,
    },
    /// With registers from this address on.
    Memory(PhysicalAddress),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Slot { bus, slot } => write!(formatter, "PCI 0000:{bus:02x}:{slot:02x}.0"),
            Place::Memory(start) => start.fmt(formatter),
        }
    }
}

/// A device of a machine, to be looked at.
pub struct Attached {
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Its global system interrupt.
    pub interrupt: u32,
    /// The device.
    pub facilities: Facilities,
    /// Where its doorbells are, if they are in a page of their own.
    pub doorbells: Option<Range<PhysicalAddress>>,
}

/// Opens the disks that a description names.
///
/// # Errors
/// If one is none.
pub fn open_disks(description: &Description) -> Result<Vec<Disk>, DeviceError> {
    let opened = description.disk.iter().map(|disk| Ok(disk.open()?));
    opened.collect()
}

/// Makes all that a description asks for, with its disks, and a console device if there is a console for it.
///
/// # Errors
/// See [`DeviceError`].
pub fn make(
    description: &Description,
    disks: &[Disk],
    console: Option<Box<dyn Console>>,
) -> Result<Vec<Made>, DeviceError> {
    let mut made = Vec::new();
    for (number, (disk, opened)) in description.disk.iter().zip(disks).enumerate() {
        if disk.bus != DiskBus::Virtio {
            continue;
        }
        if disk.media == Medium::Cdrom {
            return Err(DeviceError::VirtioCdrom(disk.file.clone()));
        }
        made.push(Made::new(format!("disk{number}"), Block::new(opened.clone())));
    }
    for (number, table) in description.network.iter().enumerate() {
        if table.model != NetworkModel::Virtio {
            continue;
        }
        let network = Network::new(hardware_address(number), table.network.connect()?);
        made.push(Made::new(format!("network{number}"), network));
    }
    for (number, table) in description.folder.iter().enumerate() {
        let mut before = description.folder[..number].iter();
        if before.any(|other| other.tag == table.tag) {
            return Err(DeviceError::FolderTwice(table.tag.clone()));
        }
        made.push(Made::new(format!("folder{number}"), table.device()?));
    }
    if let Some(console) = console {
        made.push(Made::new("console", VirtioConsole::new(console)));
    }
    let entropy = match description.machine.clock {
        Clock::Virtual => Entropy::new(Seeded(description.machine.seed)),
        Clock::Host => Entropy::of_host().map_err(DeviceError::Entropy)?,
    };
    made.push(Made::new("entropy", entropy));
    Ok(made)
}

/// The hardware address of the network device with this number.
fn hardware_address(number: usize) -> HardwareAddress {
    let mut address = HARDWARE_ADDRESS;
    address[5] = address[5].wrapping_add(number as u8);
    address
}

/// What is on the PCI bus and is no virtio device.
pub struct Controllers {
    /// What is behind the SCSI controller, which is there if there is something.
    scsi: Vec<Unit>,
    /// What is behind the Serial ATA controller, likewise.
    ahci: Vec<Behind>,
    /// Network adapters.
    adapters: Vec<(HardwareAddress, Box<dyn Link>)>,
}

impl Controllers {
    /// Makes what a description asks for.
    ///
    /// # Errors
    /// See [`DeviceError`].
    pub fn make(description: &Description, disks: &[Disk]) -> Result<Controllers, DeviceError> {
        let opened = || description.disk.iter().zip(disks);
        let on_bus = |bus| opened().filter(move |(table, _)| table.bus == bus);
        let unit = |(table, disk): (&DiskTable, &Disk)| Unit::new(disk.clone(), table.media);
        let scsi: Vec<Unit> = on_bus(DiskBus::Scsi).map(unit).collect();
        if scsi.len() > lsi::TARGETS_MAX {
            return Err(DeviceError::TooManyTargets(scsi.len()));
        }
        let behind = |(table, disk): (&DiskTable, &Disk)| match table.media {
            Medium::Disk => Behind::Disk(Drive::new(disk.clone())),
            Medium::Cdrom => Behind::Cdrom(unit((table, disk))),
        };
        let ahci: Vec<Behind> = on_bus(DiskBus::Ahci).map(behind).collect();
        if ahci.len() > ahci::PORTS_MAX {
            return Err(DeviceError::TooManyPorts(ahci.len()));
        }
        let tables = description.network.iter().enumerate();
        let adapters = tables
            .filter(|(_, table)| table.model == NetworkModel::E1000)
            .map(|(number, table)| Ok((hardware_address(number), table.network.connect()?)))
            .collect::<Result<Vec<_>, DeviceError>>()?;
        Ok(Controllers { scsi, ahci, adapters })
    }

    /// How many functions they are on the bus.
    pub fn functions(&self) -> usize {
        let buses = [self.scsi.is_empty(), self.ahci.is_empty()];
        buses.into_iter().filter(|is_empty| !is_empty).count() + self.adapters.len()
    }

    /// Puts them on the bus; the first has this interrupt. Says where those of disks are.
    fn attach(
        self,
        builder: &MachineBuilder,
        lines: &Lines,
        (bus, places): (&mut pci::Bus, &mut Places),
        first_interrupt: u32,
    ) -> DiskSlots {
        let mut slots = DiskSlots {
            bridges: bus.bridges(),
            ..DiskSlots::default()
        };
        let mut next = first_interrupt;
        let mut interrupts = || {
            let number = next;
            next += 1;
            let line = lines.line(number);
            let line = Box::new(move |asserted| line.set(asserted));
            (Interrupts::new(0, line, builder.interrupts()), number as u8)
        };
        if !self.scsi.is_empty() {
            let (interrupts, line) = interrupts();
            let start = places.memory(lsi::SIZE);
            let (memory, timeline) = (builder.memory(), builder.timeline());
            slots.scsi = bus.add(Box::new(lsi::Controller::new(
                self.scsi, memory, interrupts, timeline, start, line,
            )));
        }
        if !self.ahci.is_empty() {
            let (interrupts, line) = interrupts();
            let start = places.memory(ahci::REGISTERS_BYTES);
            let (memory, timeline) = (builder.memory(), builder.timeline());
            slots.ahci = bus.add(Box::new(ahci::Controller::new(
                self.ahci, memory, interrupts, timeline, start, line,
            )));
        }
        for (address, link) in self.adapters {
            let (interrupts, line) = interrupts();
            let start = places.memory(e1000::REGISTERS_BYTES);
            let ports = places.ports(e1000::PORTS);
            let (memory, timeline) = (builder.memory(), builder.timeline());
            bus.add(Box::new(e1000::Adapter::new(
                address,
                link,
                memory,
                interrupts,
                timeline,
                [start, ports],
                line,
            )));
        }
        slots
    }
}

/// Behind how many bridges disks are, and the slots of their controllers, where there are such.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskSlots {
    bridges: usize,
    scsi: usize,
    ahci: usize,
}

/// The disks of a description as firmware finds them.
pub fn boot_disks(
    description: &Description,
    disks: &[Disk],
    attached: &[Attached],
    slots: DiskSlots,
) -> Vec<BootDisk> {
    // On each bus but the last the next bridge is in the first slot, on bus 0 behind the host's.
    let bridges = (0..slots.bridges).map(|bus| u8::from(bus == 0));
    let bus = bridges.fold(DevicePath::host_bridge(), DevicePath::pci);
    let device = |slot: usize| bus.clone().pci(slot as u8);
    let mut virtio = attached.iter();
    let (mut targets, mut ports) = (0.., 0..);
    let tables = description.disk.iter().zip(disks);
    let found = tables.filter_map(|(table, disk)| {
        let path = match table.bus {
            DiskBus::Virtio => match virtio.next()?.place {
                Place::Slot { slot, .. } => device(slot),
                Place::Memory(start) => DevicePath::at(start.0),
            },
            DiskBus::Scsi => device(slots.scsi).scsi(targets.next()?),
            DiskBus::Ahci => device(slots.ahci).sata(ports.next()?),
        };
        Some(BootDisk {
            disk: disk.clone(),
            medium: table.media,
            path,
        })
    });
    found.collect()
}

/// Where firmware puts the next registers of controllers, and ports of any function.
struct Places {
    memory: u32,
    ports: u32,
}

impl Places {
    fn new() -> Places {
        Places {
            memory: layout::PCI_CONTROLLERS as u32,
            ports: layout::PCI_CONTROLLER_PORTS,
        }
    }

    /// In memory: so many bytes at a multiple of them.
    fn memory(&mut self, bytes: u32) -> u32 {
        let start = self.memory.next_multiple_of(bytes);
        self.memory = start + bytes;
        start
    }

    /// Among the I/O ports.
    fn ports(&mut self, count: u32) -> u32 {
        let start = self.ports.next_multiple_of(count);
        self.ports = start + count;
        start
    }
}

/// Attaches the PCI bus and its I/O ports, and devices to it, behind so many bridges, or beside it, each at the next
/// place; controllers are the last on the bus.
///
/// # Errors
/// If something else answers there.
pub fn attach(
    builder: &mut MachineBuilder,
    lines: &Lines,
    made: Vec<Made>,
    controllers: Controllers,
    (transport, bridges): (VirtioTransport, usize),
) -> Result<(Vec<Attached>, Arc<pci::Bus>, DiskSlots), AttachError> {
    let memory = layout::PCI..layout::PCI + layout::PCI_SIZE;
    let mut bus = pci::Bus::behind(bridges, &memory, &layout::PCI_BRIDGE_PORTS);
    let mut places = Places::new();
    let mut attached = Vec::new();
    for (number, Made { name, device }) in made.into_iter().enumerate() {
        let interrupt = layout::VIRTIO_INTERRUPT + number as u32;
        let line = lines.line(interrupt);
        let line = move |asserted| line.set(asserted);
        let (memory, timeline) = (builder.memory(), builder.timeline());
        let (facilities, place, doorbells) = match transport {
            VirtioTransport::Pci | VirtioTransport::Transitional => {
                let sources = virtio_pci::sources(device.queue_sizes().len());
                let interrupts = Interrupts::new(sources, Box::new(line), builder.interrupts());
                let facilities = Facilities::new(device, memory, Box::new(interrupts.clone()), timeline);
                let start = layout::PCI as u32 + number as u32 * virtio_pci::SIZE;
                let (device, line) = (facilities.clone(), interrupt as u8);
                let function = match transport {
                    VirtioTransport::Transitional => {
                        let ports = places.ports(virtio_pci::legacy_ports(&device));
                        virtio_pci::Transport::transitional(device, interrupts, (start, ports), line)
                    }
                    _ => virtio_pci::Transport::new(device, interrupts, start, line),
                };
                let page = PhysicalAddress(u64::from(start) + virtio_pci::NOTIFICATIONS);
                let doorbells = page..page + virtio_pci::PAGE;
                let place = Place::Slot {
                    bus: bus.bridges(),
                    slot: bus.add(Box::new(function)),
                };
                (facilities, place, Some(doorbells))
            }
            VirtioTransport::Mmio => {
                let facilities = Facilities::new(device, memory, Box::new(line), timeline);
                let start = PhysicalAddress(layout::VIRTIO + number as u64 * layout::VIRTIO_SIZE);
                let registers = mmio::Transport::new(facilities.clone());
                builder.attach(&name, start, layout::VIRTIO_SIZE, registers)?;
                (facilities, Place::Memory(start), None)
            }
        };
        attached.push(Attached {
            name,
            place,
            interrupt,
            facilities,
            doorbells,
        });
    }
    let interrupt = layout::VIRTIO_INTERRUPT + attached.len() as u32;
    let slots = controllers.attach(builder, lines, (&mut bus, &mut places), interrupt);
    let bus = Arc::new(bus);
    let window = pci::Window::new(Arc::clone(&bus), layout::PCI);
    builder.attach("pci", PhysicalAddress(layout::PCI), layout::PCI_SIZE, window)?;
    let ports = pci::Ports::new(Arc::clone(&bus));
    builder.attach("ports", PhysicalAddress(layout::PORTS), layout::PORTS_SIZE, ports)?;
    Ok((attached, bus, slots))
}
