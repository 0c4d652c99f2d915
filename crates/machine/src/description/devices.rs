//! What is attached to a whole machine: virtio devices, as a description or options ask for them.
//!
//! Devices are made before the machine's memory is, so that a disk that cannot be opened costs nothing; then they are
//! attached in the order in which they were made, each with an interrupt of its own: disks first, then network devices,
//! a console, the entropy device last. All have the same [`VirtioTransport`].

use std::convert::Infallible;
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
use crate::machine::hypercall::Console;
use crate::machine::{AttachError, MachineBuilder};
use crate::network::Link;
use crate::network::forward::{Forward, NoForward};
use crate::network::tap::Tap;
use crate::network::user::UserNetwork;
use crate::pci;
use crate::pci::interrupts::Interrupts;
use crate::virtio::VirtioDevice;
use crate::virtio::block::{Block, DiskError};
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

/// `[[disk]]`: a file as a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskTable {
    /// The raw image, relative to the description.
    pub file: PathBuf,
    /// Whether the guest may not write.
    #[serde(default)]
    pub read_only: bool,
}

impl FromStr for DiskTable {
    type Err = Infallible;

    /// As an option says it: `FILE[,readonly]`.
    fn from_str(text: &str) -> Result<DiskTable, Infallible> {
        let (file, read_only) = match text.strip_suffix(",readonly") {
            Some(file) => (file, true),
            None => (text, false),
        };
        Ok(DiskTable {
            file: file.into(),
            read_only,
        })
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
}

/// What is no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoNetwork {
    /// An unknown kind.
    #[error("`{0}` must be `user`, `user,hostfwd=tcp::PORT-:PORT` or `tap=NAME`")]
    Kind(String),
    /// A forwarded port that is none.
    #[error(transparent)]
    Forward(#[from] NoForward),
}

impl FromStr for NetworkTable {
    type Err = NoNetwork;

    /// As an option says it: `user[,hostfwd=...]...` or `tap=NAME`.
    fn from_str(text: &str) -> Result<NetworkTable, NoNetwork> {
        let wrong = || NoNetwork::Kind(text.to_owned());
        if let Some(name) = text.strip_prefix("tap=") {
            let name = name.to_owned();
            return Ok(NetworkTable::Tap { name });
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
    fn connect(&self) -> Result<Box<dyn Link>, DeviceError> {
        Ok(match self {
            NetworkTable::User { hostfwd } => {
                let network = UserNetwork::new(hostfwd);
                Box::new(network.map_err(|(forward, error)| DeviceError::Forward { forward, error })?)
            }
            NetworkTable::Tap { name } => {
                let name = name.clone();
                Box::new(Tap::open(&name).map_err(|error| DeviceError::Tap { name, error })?)
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
    /// The host gives no random bytes.
    #[error("the host gives no random bytes for the entropy device: {0}")]
    Entropy(io::Error),
    /// More devices than there is room for.
    #[error("the machine has {0} virtio devices; there is room for {max}", max = layout::VIRTIO_MAX)]
    TooMany(usize),
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
        let block = Block::open(&disk.file, disk.read_only)?;
        made.push(Made::new(format!("disk{number}"), block));
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

/// Attaches the PCI bus, and devices to it or beside it, each at the next place.
///
/// # Errors
/// If something else answers there.
pub fn attach(
    builder: &mut MachineBuilder,
    lines: &Lines,
    made: Vec<Made>,
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
        let parsed = |text: &str| text.parse::<DiskTable>().expect("always a disk");
        assert_eq!(parsed("a,b.img").file, Path::new("a,b.img"));
        assert!(!parsed("a.img").read_only);
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
        for wrong in ["", "usr", "user,", "user,hostfwd", "tap"] {
            assert_eq!(parsed(wrong), Err(NoNetwork::Kind(wrong.to_owned())));
        }
        assert!(matches!(
            parsed("user,hostfwd=tcp::1-:0"),
            Err(NoNetwork::Forward(_))
        ));
    }
}
