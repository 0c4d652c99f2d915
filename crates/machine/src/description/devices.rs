//! What is attached to a whole machine: virtio devices and controllers of disks, as a description or options ask for
//! them.
//!
//! Devices are made before the machine's memory is, so that a disk that cannot be opened costs nothing; then they are
//! attached in the order in which they were made, each with an interrupt of its own: disks first, then network devices,
//! a console, the entropy device last. All have the same [`VirtioTransport`]. Disks on a SCSI bus are behind one
//! controller, which is on the PCI bus behind all of these.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use sidestep_ia64::PhysicalAddress;
use thiserror::Error;

use super::bare::Clock;
use super::kernel::Description;
use crate::device::iosapic::Lines;
use crate::firmware::layout;
use crate::lsi;
use crate::machine::hypercall::Console;
use crate::machine::{AttachError, MachineBuilder};
use crate::network::Link;
use crate::network::forward::{Forward, NoForward};
use crate::network::tap::Tap;
use crate::network::udp::Udp;
use crate::network::user::UserNetwork;
use crate::pci;
use crate::pci::interrupts::Interrupts;
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
    /// By registers in memory, which ACPI tables name.
    Mmio,
}

/// What is no transport.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` must be `pci` or `mmio`")]
pub struct NoTransport(String);

impl FromStr for VirtioTransport {
    type Err = NoTransport;

    fn from_str(text: &str) -> Result<VirtioTransport, NoTransport> {
        match text {
            "pci" => Ok(VirtioTransport::Pci),
            "mmio" => Ok(VirtioTransport::Mmio),
            _ => Err(NoTransport(text.to_owned())),
        }
    }
}

/// What a disk is attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskBus {
    /// It is a virtio device of its own.
    #[default]
    Virtio,
    /// It is behind a SCSI controller, an LSI53C895A.
    Scsi,
}

/// `[[disk]]`: a file as a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskTable {
    /// The raw image, relative to the description.
    pub file: PathBuf,
    /// Whether the guest may not write.
    #[serde(default)]
    pub read_only: bool,
    /// What it is attached to.
    #[serde(default)]
    pub bus: DiskBus,
    /// Whether it is a disk or a CD-ROM; that is always read-only and needs a bus with commands for it.
    #[serde(default)]
    pub media: Medium,
}

/// What is no disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoDisk {
    /// An unknown bus.
    #[error("`bus={0}` must be `bus=virtio` or `bus=scsi`")]
    Bus(String),
    /// An unknown medium.
    #[error("`media={0}` must be `media=disk` or `media=cdrom`")]
    Medium(String),
}

impl FromStr for DiskTable {
    type Err = NoDisk;

    /// As an option says it: `FILE[,readonly][,bus=BUS][,media=MEDIUM]`; a file may have commas in its name.
    fn from_str(text: &str) -> Result<DiskTable, NoDisk> {
        let mut disk = DiskTable {
            file: PathBuf::new(),
            read_only: false,
            bus: DiskBus::default(),
            media: Medium::default(),
        };
        let mut file = text;
        while let Some((before, last)) = file.rsplit_once(',') {
            match last.split_once('=') {
                None if last == "readonly" => disk.read_only = true,
                Some(("bus", "virtio")) => disk.bus = DiskBus::Virtio,
                Some(("bus", "scsi")) => disk.bus = DiskBus::Scsi,
                Some(("bus", other)) => return Err(NoDisk::Bus(other.to_owned())),
                Some(("media", "disk")) => disk.media = Medium::Disk,
                Some(("media", "cdrom")) => disk.media = Medium::Cdrom,
                Some(("media", other)) => return Err(NoDisk::Medium(other.to_owned())),
                _ => break,
            }
            file = before;
        }
        disk.file = file.into();
        Ok(disk)
    }
}

impl DiskTable {
    /// Whether nothing but the file is said.
    pub fn is_plain(&self) -> bool {
        !self.read_only && self.bus == DiskBus::default() && self.media == Medium::default()
    }

    fn open(&self) -> Result<Disk, DiskError> {
        Disk::open(&self.file, self.read_only || self.media == Medium::Cdrom)
    }
}

/// `[[network]]`: a network device and what it is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum NetworkTable {
    /// A network of the guest and this program.
    User {
        /// Ports of the host that lead into it.
        #[serde(default)]
        hostfwd: Vec<Forward>,
    },
    /// A tap interface of the host.
    Tap {
        /// Its name.
        name: String,
    },
    /// Another emulator's cable, a datagram for each frame.
    Udp {
        /// Where this end listens.
        listen: SocketAddr,
        /// Where the other one does.
        peer: SocketAddr,
    },
}

/// What is no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoNetwork {
    /// An unknown kind.
    #[error(
        "`{0}` must be `user`, `user,hostfwd=tcp::PORT-:PORT`, `tap=NAME` or `udp=ADDRESS:PORT,peer=ADDRESS:PORT`"
    )]
    Kind(String),
    /// A forwarded port that is none.
    #[error(transparent)]
    Forward(#[from] NoForward),
}

impl FromStr for NetworkTable {
    type Err = NoNetwork;

    /// As an option says it: `user[,hostfwd=...]...`, `tap=NAME` or `udp=ADDRESS:PORT,peer=ADDRESS:PORT`.
    fn from_str(text: &str) -> Result<NetworkTable, NoNetwork> {
        let wrong = || NoNetwork::Kind(text.to_owned());
        if let Some(name) = text.strip_prefix("tap=") {
            let name = name.to_owned();
            return Ok(NetworkTable::Tap { name });
        }
        if let Some(ends) = text.strip_prefix("udp=") {
            let (listen, peer) = ends.split_once(",peer=").ok_or_else(wrong)?;
            let [listen, peer] = [listen, peer].map(|end| end.parse().map_err(|_| wrong()));
            return Ok(NetworkTable::Udp {
                listen: listen?,
                peer: peer?,
            });
        }
        let mut parts = text.split(',');
        if parts.next() != Some("user") {
            return Err(wrong());
        }
        let forward = |part: &str| {
            let forward = part.strip_prefix("hostfwd=").ok_or_else(wrong)?;
            Ok::<Forward, NoNetwork>(forward.parse()?)
        };
        let hostfwd = parts.map(forward).collect::<Result<_, _>>()?;
        Ok(NetworkTable::User { hostfwd })
    }
}

impl NetworkTable {
    /// Plugs the cable in.
    ///
    /// # Errors
    /// What the host refuses.
    pub fn connect(&self) -> Result<Box<dyn Link>, DeviceError> {
        Ok(match self {
            NetworkTable::User { hostfwd } => {
                let network = UserNetwork::new(hostfwd);
                Box::new(network.map_err(|(forward, error)| DeviceError::Forward { forward, error })?)
            }
            NetworkTable::Tap { name } => {
                let name = name.clone();
                Box::new(Tap::open(&name).map_err(|error| DeviceError::Tap { name, error })?)
            }
            NetworkTable::Udp { listen, peer } => {
                let (listen, peer) = (*listen, *peer);
                Box::new(Udp::open(listen, peer).map_err(|error| DeviceError::Udp { listen, error })?)
            }
        })
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
        listen: SocketAddr,
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
    /// A CD-ROM that is a virtio device.
    #[error("the CD-ROM `{}` must be on another bus than virtio, such as `scsi`", .0.display())]
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
    /// In this slot of the PCI bus.
    Slot(usize),
    /// With registers from this address on.
    Memory(PhysicalAddress),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Slot(slot) => write!(formatter, "PCI 0000:00:{slot:02x}.0"),
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

/// Makes all that a description asks for, and a console device if there is a console for it.
///
/// # Errors
/// See [`DeviceError`].
pub fn make(description: &Description, console: Option<Box<dyn Console>>) -> Result<Vec<Made>, DeviceError> {
    let mut made = Vec::new();
    for (number, disk) in description.disk.iter().enumerate() {
        if disk.bus != DiskBus::Virtio {
            continue;
        }
        if disk.media == Medium::Cdrom {
            return Err(DeviceError::VirtioCdrom(disk.file.clone()));
        }
        made.push(Made::new(format!("disk{number}"), Block::new(disk.open()?)));
    }
    for (number, table) in description.network.iter().enumerate() {
        let mut address = HARDWARE_ADDRESS;
        address[5] = address[5].wrapping_add(number as u8);
        let network = Network::new(address, table.connect()?);
        made.push(Made::new(format!("network{number}"), network));
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

/// Makes what a description asks for on the SCSI bus.
///
/// # Errors
/// See [`DeviceError`].
pub fn make_scsi(description: &Description) -> Result<Vec<Unit>, DeviceError> {
    let on_bus = |disk: &&DiskTable| disk.bus == DiskBus::Scsi;
    let disks = description.disk.iter().filter(on_bus);
    let units = disks
        .map(|disk| Ok(Unit::new(disk.open()?, disk.media)))
        .collect::<Result<Vec<_>, DiskError>>()?;
    if units.len() > lsi::TARGETS_MAX {
        return Err(DeviceError::TooManyTargets(units.len()));
    }
    Ok(units)
}

/// Attaches the PCI bus, and devices to it or beside it, each at the next place; the controller of `scsi`, if there is
/// something for it, is the last on the bus.
///
/// # Errors
/// If something else answers there.
pub fn attach(
    builder: &mut MachineBuilder,
    lines: &Lines,
    made: Vec<Made>,
    scsi: Vec<Unit>,
    transport: VirtioTransport,
) -> Result<(Vec<Attached>, Arc<pci::Bus>), AttachError> {
    let mut bus = pci::Bus::new();
    let mut attached = Vec::new();
    for (number, Made { name, device }) in made.into_iter().enumerate() {
        let interrupt = layout::VIRTIO_INTERRUPT + number as u32;
        let line = lines.line(interrupt);
        let line = move |asserted| line.set(asserted);
        let (memory, timeline) = (builder.memory(), builder.timeline());
        let (facilities, place, doorbells) = match transport {
            VirtioTransport::Pci => {
                let sources = virtio_pci::sources(device.queue_sizes().len());
                let interrupts = Interrupts::new(sources, Box::new(line), builder.interrupts());
                let facilities = Facilities::new(device, memory, Box::new(interrupts.clone()), timeline);
                let start = layout::PCI as u32 + number as u32 * virtio_pci::SIZE;
                let function =
                    virtio_pci::Transport::new(facilities.clone(), interrupts, start, interrupt as u8);
                let page = PhysicalAddress(u64::from(start) + virtio_pci::NOTIFICATIONS);
                let doorbells = page..page + virtio_pci::PAGE;
                (
                    facilities,
                    Place::Slot(bus.add(Box::new(function))),
                    Some(doorbells),
                )
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
    if !scsi.is_empty() {
        let interrupt = layout::VIRTIO_INTERRUPT + attached.len() as u32;
        let line = lines.line(interrupt);
        let line = Box::new(move |asserted| line.set(asserted));
        bus.add(Box::new(lsi::Controller::new(
            scsi,
            builder.memory(),
            Interrupts::new(0, line, builder.interrupts()),
            builder.timeline(),
            layout::PCI_CONTROLLERS as u32,
            interrupt as u8,
        )));
    }
    let bus = Arc::new(bus);
    let window = pci::Window::new(Arc::clone(&bus), layout::PCI);
    builder.attach("pci", PhysicalAddress(layout::PCI), layout::PCI_SIZE, window)?;
    Ok((attached, bus))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_disk_is_a_file_that_may_be_read_only() {
        let parsed = |text: &str| text.parse::<DiskTable>().expect("a disk");
        assert_eq!(parsed("a,b.img").file, Path::new("a,b.img"));
        assert!(!parsed("a.img").read_only);
        let cd = parsed("a,bus=scsi,b.iso,bus=scsi,media=cdrom");
        assert_eq!(cd.file, Path::new("a,bus=scsi,b.iso"));
        assert_eq!((cd.bus, cd.media), (DiskBus::Scsi, Medium::Cdrom));
        let wrong = "a.img,bus=floppy".parse::<DiskTable>();
        assert_eq!(wrong, Err(NoDisk::Bus("floppy".into())));
        let read_only = parsed("a.img,readonly");
        assert_eq!(
            (read_only.file.as_path(), read_only.read_only),
            (Path::new("a.img"), true)
        );
    }

    #[test]
    fn networks_are_said_as_qemu_says_them() {
        let parsed = |text: &str| text.parse::<NetworkTable>();
        assert_eq!(parsed("user"), Ok(NetworkTable::User { hostfwd: Vec::new() }));
        let Ok(NetworkTable::User { hostfwd }) = parsed("user,hostfwd=tcp::2222-:22,hostfwd=tcp::80-:80")
        else {
            panic!("a user network")
        };
        assert_eq!(hostfwd.len(), 2);
        let name = "tap0".to_owned();
        assert_eq!(parsed("tap=tap0"), Ok(NetworkTable::Tap { name }));
        let [listen, peer] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        assert_eq!(
            parsed("udp=127.0.0.1:1,peer=127.0.0.1:2"),
            Ok(NetworkTable::Udp { listen, peer })
        );
        for wrong in [
            "",
            "usr",
            "user,",
            "user,hostfwd",
            "tap",
            "udp=127.0.0.1:1",
            "udp=a,peer=b",
        ] {
            assert_eq!(parsed(wrong), Err(NoNetwork::Kind(wrong.to_owned())));
        }
        assert!(matches!(
            parsed("user,hostfwd=tcp::1-:0"),
            Err(NoNetwork::Forward(_))
        ));
    }
}
