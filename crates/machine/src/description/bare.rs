//! A bare machine: memory, processors and an ELF image that has them for itself.
//!
//! ```toml
//! [machine]
//! processors = 2
//!
//! [image]
//! file = "kernel.elf"
//!
//! [[memory]]
//! start = 0
//! size = "64M"
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidestep_files::IMAGE_BYTES_MAX;
use sidestep_ia64::{PhysicalAddress, Processor};
use thiserror::Error;

use super::Size;
use crate::image::{self, ImageError, Loaded};
use crate::machine::dumps::{DumpCalls, DumpFiles};
use crate::machine::hypercall::{Console, StandardCalls};
use crate::machine::{Activity, Machine, MachineBuilder, PROCESSORS_MAX, Sidecore};
use crate::memory::{GuestMemory, LayoutError, MemoryKind, MemoryRange};

/// The description of a bare machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The machine itself.
    #[serde(default)]
    pub machine: MachineTable,
    /// What it executes.
    pub image: ImageTable,
    /// Its memory.
    #[serde(default)]
    pub memory: Vec<MemoryTable>,
}

/// `[machine]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineTable {
    /// How many processors.
    pub processors: usize,
    /// Which of them start at the entry.
    pub start: Start,
    /// What the guest reads with the hypercall for parameters.
    pub parameters: String,
    /// What its time follows.
    pub clock: Clock,
    /// The longest time slice, in ticks of the machine: instructions without a model, cycles with one.
    #[serde(rename = "quantum")]
    pub quantum_ticks: u64,
    /// How the devices' thread waits for work where the host's clock leads.
    pub sidecore: Sidecore,
    /// How the paths of dumps begin that the guest hands out, relative to the description; without it none is kept.
    pub dumps: Option<PathBuf>,
}

impl Default for MachineTable {
    fn default() -> MachineTable {
        MachineTable {
            processors: 1,
            start: Start::First,
            parameters: String::new(),
            clock: Clock::Virtual,
            quantum_ticks: 10_000,
            sidecore: Sidecore::default(),
            dumps: None,
        }
    }
}

/// Which processors start at the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Processor 0; it starts the others with a hypercall.
    First,
    /// All of them.
    All,
}

/// What a machine's time follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The instructions: deterministic, on one host thread.
    Virtual,
    /// The host's clock: a host thread for each processor.
    Host,
}

impl Clock {
    /// Whether devices can have such a sidecore: in virtual time no thread of their own does their work.
    pub fn allows(self, sidecore: Sidecore) -> bool {
        self == Clock::Host || sidecore == Sidecore::None
    }
}

/// `[image]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageTable {
    /// The ELF file, relative to the description.
    pub file: PathBuf,
    /// The physical address of the first instruction, if not the image's own.
    pub entry: Option<u64>,
}

/// `[[memory]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryTable {
    /// The first physical address.
    pub start: u64,
    /// How many bytes.
    pub size: Size,
    /// RAM, or ROM that stores do not change.
    #[serde(default)]
    pub kind: Kind,
    /// A file with the contents of its beginning, relative to the description.
    pub file: Option<PathBuf>,
}

/// The kind of a memory range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Stores change it.
    #[default]
    Ram,
    /// Stores are dropped.
    Rom,
}

/// What is wrong with a machine that its description allows.
#[derive(Debug, Error)]
pub enum BuildError {
    /// No processor, or too many.
    #[error("[machine] processors = {0}: a machine has 1 to {PROCESSORS_MAX} processors")]
    Processors(usize),
    /// No time slice.
    #[error("[machine] quantum = 0: a time slice has at least one instruction")]
    Quantum,
    /// A sidecore where no thread could be one.
    #[error("[machine] sidecore: devices have a thread of their own with clock = \"host\" alone")]
    Sidecore,
    /// Memory.
    #[error("[[memory]]: {0}")]
    Memory(#[from] LayoutError),
    /// A file that cannot be read.
    #[error("{}: cannot be read: {cause}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Contents that do not fit.
    #[error("{}: has {size:#x} bytes, more than the {room:#x} of the memory at {start}", file.display())]
    Contents {
        /// The file.
        file: PathBuf,
        /// Its size.
        size: u64,
        /// The memory's size.
        room: u64,
        /// The memory's start.
        start: PhysicalAddress,
    },
    /// The image.
    #[error("{}: {cause}", file.display())]
    Image {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        cause: ImageError,
    },
    /// An entry that is not at a bundle.
    #[error("[image] entry = {0:#x}: must be a multiple of 16, the address of a bundle")]
    UnalignedEntry(u64),
    /// An entry that is not in memory.
    #[error("[image] entry = {0}: the machine has no memory there")]
    EntryOutsideMemory(PhysicalAddress),
}

/// A machine that was made from its description.
pub struct Built {
    /// The machine, ready to run.
    pub machine: Machine,
    /// The bytes of the image's file.
    pub image: Vec<u8>,
    /// Where the image is.
    pub loaded: Loaded,
}

impl Description {
    /// Makes the machine; relative files are looked for in `folder`.
    ///
    /// # Errors
    /// If the description contradicts itself, or a file is missing or does not fit.
    pub fn build(&self, folder: &Path, console: Box<dyn Console>) -> Result<Built, BuildError> {
        let processors = self.machine.processors;
        if !(1..=PROCESSORS_MAX).contains(&processors) {
            return Err(BuildError::Processors(processors));
        }
        if self.machine.quantum_ticks == 0 {
            return Err(BuildError::Quantum);
        }
        if !self.machine.clock.allows(self.machine.sidecore) {
            return Err(BuildError::Sidecore);
        }
        let memory = self.memory(folder)?;
        let (image, mut loaded) = self.load(folder, &memory)?;
        if let Some(entry) = self.image.entry {
            if !entry.is_multiple_of(16) {
                return Err(BuildError::UnalignedEntry(entry));
            }
            loaded.entry = PhysicalAddress(entry);
        }
        if !memory.holds(loaded.entry, 16) {
            return Err(BuildError::EntryOutsideMemory(loaded.entry));
        }
        let mut builder = MachineBuilder::new(memory, processors);
        builder.handle(StandardCalls::new(console, &self.machine.parameters));
        if let Some(prefix) = &self.machine.dumps {
            builder.handle(DumpCalls::new(Box::new(DumpFiles::new(&folder.join(prefix)))));
        }
        let mut machine = builder.build();
        let started = match self.machine.start {
            Start::First => 1,
            Start::All => processors,
        };
        for (index, cpu) in machine.cpus.iter_mut().enumerate().take(started) {
            begin(&mut cpu.processor, loaded.entry, index, processors);
            cpu.activity = Activity::Running;
        }
        Ok(Built {
            machine,
            image,
            loaded,
        })
    }

    fn memory(&self, folder: &Path) -> Result<GuestMemory, BuildError> {
        let ranges: Vec<MemoryRange> = self
            .memory
            .iter()
            .map(|table| MemoryRange {
                start: PhysicalAddress(table.start),
                size: table.size.0,
                kind: match table.kind {
                    Kind::Ram => MemoryKind::Ram,
                    Kind::Rom => MemoryKind::Rom,
                },
            })
            .collect();
        let memory = GuestMemory::new(&ranges)?;
        for (table, range) in self.memory.iter().zip(&ranges) {
            let Some(file) = &table.file else { continue };
            let bytes = read(&folder.join(file))?;
            if bytes.len() as u64 > range.size {
                return Err(BuildError::Contents {
                    file: file.clone(),
                    size: bytes.len() as u64,
                    room: range.size,
                    start: range.start,
                });
            }
            let fits = memory.write(range.start, &bytes);
            fits.expect("the range has just been mapped and is large enough");
        }
        Ok(memory)
    }

    fn load(&self, folder: &Path, memory: &GuestMemory) -> Result<(Vec<u8>, Loaded), BuildError> {
        let file = folder.join(&self.image.file);
        let bytes = read(&file)?;
        let loaded = image::load(memory, &bytes).map_err(|cause| BuildError::Image { file, cause })?;
        Ok((bytes, loaded))
    }
}

/// The state in which a bare machine's processor begins: physical addressing at privilege level 0, interrupts and
/// their collection off; r8 holds its number and r9 the number of processors.
pub fn begin(processor: &mut Processor, entry: PhysicalAddress, index: usize, processors: usize) {
    processor.set_status(0);
    processor.set_instruction_pointer(entry.0, 0);
    processor.general.set(8, index as u64);
    processor.general.set(9, processors as u64);
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    sidestep_files::read(path, IMAGE_BYTES_MAX).map_err(|cause| BuildError::Read {
        file: path.to_owned(),
        cause,
    })
}
