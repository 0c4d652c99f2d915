//! Virtual machines that are whole machines: a kernel, its disk and its interface.

use std::path::Path;

use serde::Deserialize;
use sidestep_ia64::Processor;
use sidestep_machine::description::Size;
use sidestep_machine::description::devices::{DeviceError, Made};
use sidestep_machine::description::kernel::{self, Consoles, KernelTable, MachineTable};
use sidestep_machine::storage::disk::DiskError;
use sidestep_machine::virtio::block::Block;
use sidestep_machine::virtio::interface::{Interface, PAIRS_MAX};

use super::{BuildError, KERNEL_MEMORY, VirtualMachineTable, read, refuse};
use crate::nic::NicConfig;
use crate::nic::frame::Address;
use crate::virtual_machine::{Disk, SerialLine, VirtioFront, VirtualMachine, WholeMachine};

/// The most that a virtual machine may write over a disk that stays as it is, in bytes: as much as its memory has by
/// default.
const COPIED_MAX: u64 = KERNEL_MEMORY;

/// What a virtual machine's disk is called.
const DISK: &str = "disk0";

/// What becomes of what a kernel writes to its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskWrites {
    /// It is the virtual machine's own and gone with it; the file stays as it is.
    #[default]
    CopyOnWrite,
    /// It goes into the file, which nobody else may have meanwhile.
    ToFile,
    /// The disk cannot be written to.
    Refused,
}

impl DiskWrites {
    fn disk(self, path: &Path) -> Result<Block, DiskError> {
        match self {
            DiskWrites::CopyOnWrite => Block::copy_on_write(path, COPIED_MAX),
            DiskWrites::ToFile => Block::open(path, false),
            DiskWrites::Refused => Block::open(path, true),
        }
    }
}

impl VirtualMachineTable {
    /// A whole machine with a kernel.
    pub(super) fn with_kernel(
        &self,
        folder: &Path,
        (index, name): (usize, String),
        kernel: &Path,
        nic: Option<&NicConfig>,
    ) -> Result<VirtualMachine, BuildError> {
        refuse(&name, [("parameters", self.parameters.is_some())], "image")?;
        let description = kernel::Description {
            machine: MachineTable {
                processors: self.processors,
                memory: self.memory.unwrap_or(Size(KERNEL_MEMORY)),
                ..MachineTable::default()
            },
            kernel: Some(KernelTable {
                file: kernel.to_owned(),
                initrd: self.initrd.clone(),
                append: self.append.clone().unwrap_or_default(),
            }),
            disk: Vec::new(),
            network: Vec::new(),
            folder: Vec::new(),
        };
        let serial = match &self.input {
            Some(input) => SerialLine::typed(&read(&folder.join(input))?),
            None => SerialLine::open(),
        };
        let consoles = Consoles {
            serial: Box::new(serial.clone()),
            virtio: None,
        };
        let named = |error| BuildError::Kernel {
            name: name.clone(),
            error,
        };
        let interface = nic.map(|nic| {
            let address = Address {
                host: nic.host,
                interface: index as u16,
            };
            Interface::new(address.to_bytes(), self.processors.clamp(1, PAIRS_MAX))
        });
        let used_pairs = interface.as_ref().map(Interface::used_pairs);
        let disk = self
            .disk
            .as_ref()
            .map(|disk| self.disk_writes.unwrap_or_default().disk(&folder.join(disk)));
        let disk = disk
            .transpose()
            .map_err(|error| named(DeviceError::Disk(error).into()))?;
        let disk = disk.map(|disk| Made::new(DISK, disk));
        // The interface is the last.
        let interface = interface.map(|interface| Made::new("interface", interface));
        let further = disk.into_iter().chain(interface).collect();
        let (assembled, start) = description
            .placed(folder)
            .assemble_with(consoles, further, true)
            .map_err(named)?;
        let of_disk = assembled.parts.virtio.iter().find(|device| device.name == DISK);
        let of_disk = of_disk.map(|device| Disk::new(device.facilities.clone(), device.doorbells.clone()));
        let device = assembled.parts.virtio.last();
        let network = (device.zip(used_pairs)).map(|(device, used_pairs)| VirtioFront {
            facilities: device.facilities.clone(),
            pairs: self.processors.clamp(1, PAIRS_MAX),
            used_pairs,
            doorbells: device.doorbells.clone(),
        });
        let start = start.expect("the kernel was to be loaded");
        let (platform, handlers) = assembled.builder.build_platform();
        let whole = WholeMachine {
            platform,
            handlers: handlers.into(),
            serial,
            disk: of_disk,
            network,
        };
        let prepare = |processor: &mut Processor, number: usize| start.prepare(processor, number);
        Ok(VirtualMachine::whole(index, self.config(name), whole, prepare)?)
    }
}
