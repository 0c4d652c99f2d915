//! A whole machine that starts a kernel directly, or what is on its disks: firmware, devices, the kernel with its
//! initramfs and command line.
//!
//! ```toml
//! [machine]
//! processors = 4
//! memory = "1G"
//!
//! [kernel]
//! file = "vmlinux"
//! initrd = "initramfs.cpio"
//! append = "panic=-1"
//!
//! [[disk]]
//! file = "root.img"
//! read_only = true
//! bus = "scsi"
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use sidestep_files::IMAGE_BYTES_MAX;
use sidestep_ia64::{PhysicalAddress, Processor};
use thiserror::Error;

use super::Size;
use super::bare::Clock;
use super::devices::{self, Attached, Controllers, DeviceError, Made, Place, VirtioTransport};
use super::disks::DiskTable;
use super::folders::FolderTable;
use super::networks::AdapterTable;
use crate::compressed::{self, ExpandError};
use crate::device::hpet::{self, Hpet};
use crate::device::iosapic::{self, Iosapic, Lines};
use crate::device::panic_watch::PanicWatch;
use crate::device::power::{self, Power};
use crate::device::serial::{self, Serial};
use crate::firmware::acpi::Contents;
use crate::firmware::boot::{self, Boot};
use crate::firmware::nvram::NvramError;
use crate::firmware::variables::Variables;
use crate::firmware::{self, Firmware, efi, layout};
use crate::image::{self, ImageError, Loaded};
use crate::machine::hypercall::{Console, StandardCalls};
use crate::machine::{Activity, AttachError, Machine, MachineBuilder, PROCESSORS_MAX, Sidecore};
use crate::memory::{GuestMemory, LayoutError, MemoryError};
use crate::pci::{self, BRIDGES_MAX};

/// The description of a machine with a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The machine itself.
    #[serde(default)]
    pub machine: MachineTable,
    /// What it starts; if nothing is said, what its disks have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelTable>,
    /// Its disks, in the order in which the kernel finds them.
    #[serde(default)]
    pub disk: Vec<DiskTable>,
    /// Its network devices.
    #[serde(default)]
    pub network: Vec<AdapterTable>,
    /// The folders of the host that it may use.
    #[serde(default)]
    pub folder: Vec<FolderTable>,
}

/// `[machine]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineTable {
    /// How many processors.
    pub processors: usize,
    /// How much RAM.
    pub memory: Size,
    /// What its time follows.
    pub clock: Clock,
    /// The longest time slice, in ticks of the machine: instructions without a model, cycles with one.
    #[serde(rename = "quantum")]
    pub quantum_ticks: u64,
    /// How the devices' thread waits for work where the host's clock leads.
    pub sidecore: Sidecore,
    /// Seconds since 1970 at machine time zero.
    #[serde(rename = "epoch")]
    pub epoch_seconds: u64,
    /// What the bytes of the entropy device follow in virtual time.
    pub seed: u64,
    /// How virtio devices are found.
    pub virtio: VirtioTransport,
    /// The file that keeps the firmware's variables, if any does. What is not there yet is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvram: Option<PathBuf>,
    /// Whether there is a high-precision event timer.
    pub hpet: bool,
    /// Behind how many bridges, one behind the other, devices on PCI are.
    pub pci_bridges: usize,
    /// How many nodes the guest is told that its processors and memory belong to. Every access takes the same time.
    pub nodes: usize,
}

/// 1 January 2026: a fixed beginning, so that virtual time is the same in every run.
pub const EPOCH: u64 = 1_767_225_600;

impl Default for MachineTable {
    fn default() -> MachineTable {
        MachineTable {
            processors: 1,
            memory: Size(1 << 30),
            clock: Clock::Virtual,
            quantum_ticks: 10_000,
            sidecore: Sidecore::default(),
            epoch_seconds: EPOCH,
            seed: 0,
            virtio: VirtioTransport::default(),
            nvram: None,
            hpet: false,
            pci_bridges: 0,
            nodes: 1,
        }
    }
}

/// `[kernel]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelTable {
    /// The ELF file, which may be compressed with gzip or xz, relative to the description.
    pub file: PathBuf,
    /// The initial RAM file system.
    pub initrd: Option<PathBuf>,
    /// The command line.
    #[serde(default)]
    pub append: String,
}

/// The most nodes.
const NODES_MAX: usize = 64;
/// The least RAM: less than this no kernel starts with.
pub const MEMORY_MIN: u64 = 64 << 20;
/// Bytes of the command line with its zero.
const COMMAND_LINE_MAX: usize = 2048;

/// Why a machine could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {error}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The kernel is compressed and cannot be expanded.
    #[error("{}: {error}", file.display())]
    Compressed {
        /// The kernel.
        file: PathBuf,
        /// Why.
        error: ExpandError,
    },
    /// The kernel is not one, or does not fit.
    #[error("{}: {error}", file.display())]
    Kernel {
        /// The kernel.
        file: PathBuf,
        /// Why.
        error: ImageError,
    },
    /// The kernel lies where the firmware is.
    #[error("{}: the kernel at {start} overlaps the firmware, which has the memory from {:#x} to {:#x}",
        file.display(), layout::FIRMWARE, layout::FIRMWARE_END)]
    KernelOverFirmware {
        /// The kernel.
        file: PathBuf,
        /// Where it begins.
        start: PhysicalAddress,
    },
    /// The initramfs does not fit.
    #[error("{}: {size} bytes do not fit into the {room} bytes of memory behind the kernel", file.display())]
    Initrd {
        /// The initramfs.
        file: PathBuf,
        /// Its size.
        size: u64,
        /// How much memory there is for it.
        room: u64,
    },
    /// The command line is too long.
    #[error("the command line has {0} bytes; a kernel takes at most {limit}", limit = COMMAND_LINE_MAX - 1)]
    CommandLine(usize),
    /// Too few or too many processors.
    #[error("`processors` must be from 1 to {PROCESSORS_MAX}, not {0}")]
    Processors(usize),
    /// Too few or too many nodes, and the most that there may be.
    #[error("`nodes` must be from 1 to {1}, not {0}: each has a processor and {mega} MB of memory",
        mega = layout::NODE_GRANULE >> 20)]
    Nodes(usize, usize),
    /// Too many bridges.
    #[error("`pci-bridges` must be from 0 to {BRIDGES_MAX}, not {0}")]
    Bridges(usize),
    /// No quantum.
    #[error("`quantum` must be at least 1")]
    Quantum,
    /// A sidecore where no thread could be one.
    #[error(
        "`sidecore` must be \"none\" without `clock = \"host\"`, with which alone devices have a thread of their own"
    )]
    Sidecore,
    /// Too little memory.
    #[error("the machine's memory is {0} bytes; it must be at least {MEMORY_MIN}")]
    MemorySize(u64),
    /// The memory cannot be made.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The firmware does not fit into it.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The file of the firmware's variables cannot be used.
    #[error(transparent)]
    Nvram(#[from] NvramError),
    /// A device cannot be made.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A device cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// A machine ready to run, and the kernel in it.
pub struct Built {
    /// The machine.
    pub machine: Machine,
    /// The kernel's ELF file.
    pub image: Vec<u8>,
    /// Its devices.
    pub parts: Parts,
}

/// A machine whose processors are still to be made.
pub struct Assembled {
    /// What the processors are to be added to.
    pub builder: MachineBuilder,
    /// Its devices.
    pub parts: Parts,
    image: Vec<u8>,
}

impl Assembled {
    /// With processors as after reset.
    pub fn build(self) -> Built {
        Built {
            machine: self.builder.build(),
            image: self.image,
            parts: self.parts,
        }
    }
}

/// The devices of a machine, to be looked at and to be saved.
pub struct Parts {
    /// What the machine was built from.
    pub description: Description,
    /// Its virtio devices.
    pub virtio: Vec<Attached>,
    pub(crate) pci: Arc<pci::Bus>,
    pub(crate) lines: Lines,
    pub(crate) serial: Serial,
    pub(crate) power: Arc<Mutex<Power>>,
    pub(crate) hpet: Option<Hpet>,
    pub(crate) firmware: Arc<Firmware>,
}

impl Parts {
    /// The firmware's variables that outlive a reset.
    pub fn lasting_variables(&self) -> Variables {
        self.firmware.lasting_variables()
    }

    /// Gives the firmware of a machine that a reset has made what outlived the one before.
    pub fn begin_with(&self, variables: Variables) {
        self.firmware.begin_with(variables);
    }
}

/// What is at the other end of a machine's consoles.
pub struct Consoles {
    /// Of the serial port.
    pub serial: Box<dyn Console>,
    /// Of the virtio console, if there is to be one.
    pub virtio: Option<Box<dyn Console>>,
}

/// Where the first processor starts, and with what.
pub enum Start {
    /// At a kernel's entry, with its boot parameters.
    Kernel {
        /// The entry.
        entry: PhysicalAddress,
        /// Where the parameters are.
        parameters: u64,
    },
    /// In the firmware, which starts what is on a disk.
    Firmware(boot::Start),
}

impl Start {
    /// Gives a processor its first state: the first starts, the others wait to be started.
    pub fn prepare(&self, processor: &mut Processor, index: usize) {
        match self {
            _ if index != 0 => firmware::prepare_waiting(processor, index),
            Start::Kernel { entry, parameters } => {
                firmware::prepare(processor, index, entry.0);
                processor.general.set(28, *parameters);
            }
            Start::Firmware(start) => start.prepare(processor),
        }
    }
}

impl Description {
    /// Has the files of all disks stay as they are: what the guest writes is gone with the machine.
    pub fn keep_disks(&mut self) {
        for disk in &mut self.disk {
            disk.snapshot = true;
        }
    }

    /// Builds the machine, with this console behind its serial port; `folder` is where relative files are.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(&self, folder: &Path, console: Box<dyn Console>) -> Result<Built, BuildError> {
        let consoles = Consoles {
            serial: console,
            virtio: None,
        };
        self.placed(folder).build_with(consoles)
    }

    /// The same with files that are named whatever the current folder is.
    pub fn placed(&self, folder: &Path) -> Description {
        let mut placed = self.clone();
        let disks = placed.disk.iter_mut().map(|disk| &mut disk.file);
        let files = placed.kernel.iter_mut().flat_map(|kernel| {
            let KernelTable { file, initrd, .. } = kernel;
            [Some(file), initrd.as_mut()].into_iter().flatten()
        });
        let nvram = placed.machine.nvram.iter_mut();
        let folders = placed.folder.iter_mut().map(|folder| &mut folder.path);
        for file in files.chain(disks).chain(nvram).chain(folders) {
            let path = folder.join(&*file);
            *file = std::path::absolute(&path).unwrap_or(path);
        }
        placed
    }

    /// As [`build`](Self::build), with these consoles.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build_with(&self, consoles: Consoles) -> Result<Built, BuildError> {
        let (assembled, start) = self.assemble(consoles, true)?;
        let start = start.expect("the kernel was to be loaded");
        let mut built = assembled.build();
        for (index, cpu) in built.machine.cpus.iter_mut().enumerate() {
            start.prepare(&mut cpu.processor, index);
            cpu.activity = Activity::Running;
        }
        Ok(built)
    }

    /// Puts the machine together, and with `loads` the kernel into its memory, for processors whose state is to be set.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn assemble(
        &self,
        consoles: Consoles,
        loads: bool,
    ) -> Result<(Assembled, Option<Start>), BuildError> {
        self.assemble_with(consoles, Vec::new(), loads)
    }

    /// The same with further devices behind those that the description names.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn assemble_with(
        &self,
        consoles: Consoles,
        further: Vec<Made>,
        loads: bool,
    ) -> Result<(Assembled, Option<Start>), BuildError> {
        let Size(size) = self.machine.memory;
        if size < MEMORY_MIN {
            return Err(BuildError::MemorySize(size));
        }
        if !(1..=PROCESSORS_MAX).contains(&self.machine.processors) {
            return Err(BuildError::Processors(self.machine.processors));
        }
        if self.machine.quantum_ticks == 0 {
            return Err(BuildError::Quantum);
        }
        if !self.machine.clock.allows(self.machine.sidecore) {
            return Err(BuildError::Sidecore);
        }
        let most = usize::try_from(size / layout::NODE_GRANULE).unwrap_or(usize::MAX);
        let most = most.min(self.machine.processors).min(NODES_MAX);
        if !(1..=most).contains(&self.machine.nodes) {
            return Err(BuildError::Nodes(self.machine.nodes, most));
        }
        if self.machine.pci_bridges > BRIDGES_MAX {
            return Err(BuildError::Bridges(self.machine.pci_bridges));
        }
        let disks = devices::open_disks(self)?;
        let mut made = devices::make(self, &disks, consoles.virtio)?;
        made.extend(further);
        let controllers = Controllers::make(self, &disks)?;
        let places = made.len() + controllers.functions();
        if places > layout::VIRTIO_MAX {
            return Err(DeviceError::TooMany(places).into());
        }
        let memory = GuestMemory::new(&layout::memory(size))?;
        let mut builder = MachineBuilder::new(memory, self.machine.processors);
        let memory = builder.memory();
        let lines = Lines::new(builder.interrupts());
        let (virtio, pci, slots) = devices::attach(
            &mut builder,
            &lines,
            made,
            controllers,
            (self.machine.virtio, self.machine.pci_bridges),
        )?;
        let in_memory = |device: &&Attached| matches!(device.place, Place::Memory(_));
        let contents = Contents {
            processors: self.machine.processors,
            nodes: layout::nodes(self.machine.nodes, self.machine.processors, size),
            pci_devices: pci.devices(),
            pci_bridges: pci.bridges(),
            memory_devices: virtio.iter().filter(in_memory).count(),
            has_hpet: self.machine.hpet,
        };
        let epoch = self.machine.epoch_seconds;
        let mut firmware = firmware::install(&memory, &contents, epoch, Arc::clone(&pci))?;
        if let Some(file) = &self.machine.nvram {
            firmware.keep_variables_in(file)?;
        }
        let firmware = Arc::new(firmware);
        builder.handle(Arc::clone(&firmware));
        let append = self.kernel.as_ref().map_or("", |kernel| &kernel.append);
        builder.handle(StandardCalls::new(Box::new(std::io::sink()), append));
        let at = PhysicalAddress;
        builder.attach(
            "iosapic",
            at(layout::IOSAPIC),
            iosapic::SIZE,
            Iosapic(lines.clone()),
        )?;
        let timeline = builder.timeline();
        let console = Box::new(PanicWatch::new(consoles.serial, builder.ending()));
        let port = Serial::new(console, lines.line(layout::SERIAL_INTERRUPT), timeline);
        builder.attach("serial", at(layout::SERIAL), serial::SIZE, port.clone())?;
        let power = Arc::new(Mutex::new(Power::new(builder.ending(), builder.timeline())));
        builder.attach_shared("power", at(layout::POWER), power::SIZE, power.clone())?;
        let hpet = self
            .machine
            .hpet
            .then(|| Hpet::new(lines.clone(), builder.timeline()));
        if let Some(hpet) = &hpet {
            builder.attach("hpet", at(layout::HPET), hpet::SIZE, hpet.clone())?;
        }
        // Where a kernel sends interrupts to processors that it numbers -1.
        builder.attach("chipset", at(layout::CHIPSET), layout::CHIPSET_SIZE, Nothing)?;

        let (mut image, mut start) = (Vec::new(), None);
        match &self.kernel {
            Some(kernel) if loads => {
                let (bytes, entry, parameters) = kernel.start(&memory, firmware.tables().system_table)?;
                image = bytes;
                start = Some(Start::Kernel { entry, parameters });
            }
            None if loads => {
                let disks = devices::boot_disks(self, &disks, &virtio, slots);
                let (boot, begins) = Boot::new(&memory, firmware.tables(), disks, port.clone())?;
                firmware.begin_boot(boot);
                start = Some(Start::Firmware(begins));
            }
            // A machine that is restored needs the kernel's file for nothing but names.
            Some(kernel) => {
                if let Ok(bytes) = read(&kernel.file)
                    && let Ok(expanded) = compressed::expand(&bytes, IMAGE_BYTES_MAX)
                {
                    image = expanded.into_owned();
                }
            }
            None => {}
        }
        let parts = Parts {
            description: self.clone(),
            virtio,
            pci,
            lines,
            serial: port,
            power,
            hpet,
            firmware,
        };
        let assembled = Assembled {
            builder,
            image,
            parts,
        };
        Ok((assembled, start))
    }
}

impl KernelTable {
    /// Puts the kernel and what it starts with into memory; returns its file, its entry and where its parameters are.
    fn start(
        &self,
        memory: &GuestMemory,
        system_table: u64,
    ) -> Result<(Vec<u8>, PhysicalAddress, u64), BuildError> {
        let (bytes, loaded) = self.load_kernel(memory)?;
        let initrd = self.load_initrd(memory, loaded.end)?;
        let parameters = self.boot_parameters(memory, system_table, initrd)?;
        Ok((bytes, loaded.entry, parameters))
    }

    fn load_kernel(&self, memory: &GuestMemory) -> Result<(Vec<u8>, Loaded), BuildError> {
        let file = self.file.clone();
        let bytes = read(&file)?;
        let bytes = match compressed::expand(&bytes, IMAGE_BYTES_MAX) {
            Ok(expanded) => expanded.into_owned(),
            Err(error) => return Err(BuildError::Compressed { file, error }),
        };
        let loaded = image::load(memory, &bytes).map_err(|error| BuildError::Kernel {
            file: file.clone(),
            error,
        })?;
        if loaded.start.0 < layout::FIRMWARE_END && layout::FIRMWARE < loaded.end.0 {
            let start = loaded.start;
            return Err(BuildError::KernelOverFirmware { file, start });
        }
        Ok((bytes, loaded))
    }

    /// Loads the initramfs behind the kernel; returns where it is and its size.
    fn load_initrd(&self, memory: &GuestMemory, behind: PhysicalAddress) -> Result<(u64, u64), BuildError> {
        /// What a kernel's largest pages map.
        const ALIGNMENT: u64 = 64 << 10;
        let Some(file) = &self.initrd else {
            return Ok((0, 0));
        };
        let file = file.clone();
        let bytes = read(&file)?;
        let size = bytes.len() as u64;
        let start = behind.0.max(layout::FIRMWARE_END).next_multiple_of(ALIGNMENT);
        let end = memory.ranges()[0].end();
        memory
            .write(PhysicalAddress(start), &bytes)
            .map_err(|_| BuildError::Initrd {
                file,
                size,
                room: end.saturating_sub(start),
            })?;
        Ok((start, size))
    }

    /// Writes the boot parameter block, the command line and the memory map; returns where the block is.
    fn boot_parameters(
        &self,
        memory: &GuestMemory,
        system_table: u64,
        initrd: (u64, u64),
    ) -> Result<u64, BuildError> {
        let (block, line) = (layout::BOOT_DATA, layout::BOOT_DATA + 0x1000);
        let map_at = layout::BOOT_DATA + 0x4000;
        let append = self.append.as_bytes();
        if append.len() >= COMMAND_LINE_MAX {
            return Err(BuildError::CommandLine(append.len()));
        }
        memory.write(PhysicalAddress(line), append)?;
        let ranges: Vec<(u64, u64)> = memory
            .ranges()
            .iter()
            .map(|range| (range.start.0, range.size))
            .collect();
        let map = efi::memory_map(&ranges);
        memory.write(PhysicalAddress(map_at), &map)?;
        let (columns, rows) = (80, 25);
        let console = columns | rows << 16;
        let fields = [
            line,
            system_table,
            map_at,
            map.len() as u64,
            efi::DESCRIPTOR_BYTES,
            u64::from(efi::DESCRIPTOR_VERSION) | console << 32,
            0, // the console's cursor
            0, // no floating-point software assist: the processor handles every operand
            initrd.0,
            initrd.1,
        ];
        let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        memory.write(PhysicalAddress(block), &bytes)?;
        Ok(block)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    sidestep_files::read(path, IMAGE_BYTES_MAX).map_err(|error| BuildError::File {
        file: path.to_owned(),
        error,
    })
}

/// Addresses that are decoded but at which nothing is: they read as ones, and stores are dropped.
struct Nothing;

impl crate::bus::Device for Nothing {
    fn load(&mut self, _: u64, _: u64) -> u64 {
        u64::MAX
    }

    fn store(&mut self, _: u64, _: u64, _: u64) {}
}
