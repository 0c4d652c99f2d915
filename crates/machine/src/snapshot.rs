//! A whole machine in a file: saved between two instructions, restored in another process.
//!
//! The file begins with [`MAGIC`] and a version, then come the description and the state of processors and devices as
//! CBOR, the pages of memory that are not zero, and a checksum of everything before it. It is written beside its place
//! and then renamed, so that a file is whole or absent. What is read is checked before any of it is used: the checksum
//! first, then that the state fits the machine.
//!
//! What is not saved is what belongs to the host: contents of disks, connections of the network (the guest finds them
//! broken) and what was typed but not yet read. A disk must be as it was when the machine was saved; its size and the
//! time of its last change tell.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};
use sidestep_ia64::{InvalidState, PhysicalAddress, ProcessorState};
use thiserror::Error;

use crate::description::devices::Attached;
use crate::description::kernel::{BuildError, Built, Consoles, Description, Parts};
use crate::device::hpet::{Hpet, HpetState};
use crate::device::iosapic::LinesState;
use crate::device::power::PowerState;
use crate::device::serial::SerialState;
use crate::firmware::{FirmwareState, layout};
use crate::machine::interrupt_block::TargetState;
use crate::machine::{Activity, Machine};
use crate::memory::GuestMemory;
use crate::pci::FunctionState;
use crate::virtio::facilities::FacilitiesState;

/// The first bytes of the file.
pub const MAGIC: [u8; 16] = *b"sidestep machine";
/// The version of what follows; others are refused.
pub const VERSION: u32 = 7;

const PAGE: usize = 16 << 10;
/// Where a page's address would be, behind the last page.
const NO_PAGE: u64 = u64::MAX;
/// The latest time that a machine can be at: three centuries.
const TIME_MAX: u64 = i64::MAX as u64;
/// The most bytes of state: far more than 256 processors need.
const STATE_BYTES_MAX: u64 = 1 << 28;

/// Why a machine cannot be saved or restored.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The file cannot be written or read.
    #[error("{}: {error}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What the guest has written to a disk is in memory alone.
    #[error("the machine cannot be saved: what it has written to the disk `{}` is not in that (`snapshot`)", .0.display())]
    WrittenOver(PathBuf),
    /// The file is something else.
    #[error("{}: is not a saved machine", .0.display())]
    Foreign(PathBuf),
    /// The file is of another version of this program.
    #[error("{}: is a saved machine of version {version}; this program reads version {VERSION}", file.display())]
    Version {
        /// Which.
        file: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The file ends early or its checksum is wrong.
    #[error("{}: is damaged: {what}", file.display())]
    Damaged {
        /// Which.
        file: PathBuf,
        /// How it shows.
        what: &'static str,
    },
    /// A processor cannot take its state.
    #[error("{}: {error}", file.display())]
    Processor {
        /// Which file.
        file: PathBuf,
        /// What is wrong with it.
        error: InvalidState,
    },
    /// As many disks as it has were not named.
    #[error("{}: the machine has {has} disks, and {given} were named: all of them, in their order, or none", file.display())]
    DiskCount {
        /// Which file.
        file: PathBuf,
        /// How many it has.
        has: usize,
        /// How many were named.
        given: usize,
    },
    /// A disk has another size than it had.
    #[error("{}: the disk `{}` had {was} bytes when the machine was saved, and has {is} now",
        file.display(), disk.display())]
    DiskSize {
        /// Which file.
        file: PathBuf,
        /// Which disk.
        disk: PathBuf,
        /// Its size then.
        was: u64,
        /// Its size now.
        is: u64,
    },
    /// A disk was written to.
    #[error("{}: the disk `{}` was changed after the machine was saved, and the guest would take what it remembers of \
        it for its contents; put back a copy from then, with its time (`cp -p`), or accept changed disks",
        file.display(), disk.display())]
    DiskChanged {
        /// Which file.
        file: PathBuf,
        /// Which disk.
        disk: PathBuf,
    },
    /// The machine is being changed in a way that cannot be written down.
    #[error("a processor is just being started; try again")]
    Busy,
    /// The firmware has not yet handed over to a kernel.
    #[error(
        "the firmware is still booting, and what it keeps for boot loaders is not saved; try again once the kernel runs"
    )]
    Booting,
}

#[derive(Serialize, Deserialize)]
struct Header {
    description: Description,
    cpus: Vec<CpuState>,
    round_end: Option<u64>,
    now: u64,
    sequence: u64,
    targets: Vec<TargetState>,
    lines: LinesState,
    serial: SerialState,
    power: PowerState,
    #[serde(default)]
    hpet: Option<HpetState>,
    firmware: FirmwareState,
    virtio: Vec<FacilitiesState>,
    pci: Vec<FunctionState>,
    disks: Vec<DiskState>,
}

/// What tells whether a disk is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct DiskState {
    size: u64,
    /// Seconds since 1970, and nanoseconds.
    changed: (i64, i64),
}

impl DiskState {
    fn of(disk: &Path) -> io::Result<DiskState> {
        let metadata = disk.metadata()?;
        Ok(DiskState {
            size: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// What becomes of a machine whose disks were written to after it was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedDisks {
    /// It is not restored.
    Refuse,
    /// It is: whoever says so knows that the contents fit.
    Accept,
}

#[derive(Serialize, Deserialize)]
struct CpuState {
    processor: ProcessorState,
    activity: Activity,
    time: u64,
}

/// Writes a machine that does not run to `file`.
///
/// # Errors
/// If that cannot be written; then what was there before still is.
pub fn save(machine: &mut Machine, parts: &Parts, file: &Path) -> Result<(), SnapshotError> {
    let failed = |error: io::Error| SnapshotError::File {
        file: file.to_owned(),
        error,
    };
    machine.settle();
    let platform = machine.platform();
    if (0..platform.processors()).any(|index| platform.has_start(index)) {
        return Err(SnapshotError::Busy);
    }
    if parts.firmware.is_booting() {
        return Err(SnapshotError::Booting);
    }
    if let Some(disk) = parts.description.disk.iter().find(|disk| disk.is_written_over()) {
        return Err(SnapshotError::WrittenOver(disk.file.clone()));
    }
    let header = header(machine, parts).map_err(failed)?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = file.with_file_name(name);
    let written = File::create(&part).and_then(|output| {
        let mut output = Summed::new(BufWriter::new(output));
        write(&mut output, &header, &machine.platform().memory)?;
        let checksum = output.checksum.clone().finalize();
        output.write_all(&checksum.to_le_bytes())?;
        output.flush()?;
        output.inner.get_ref().sync_all()?;
        std::fs::rename(&part, file)
    });
    written.map_err(|error| {
        // What is half written is of no use to anybody; if it cannot be removed, it cannot.
        let _ = std::fs::remove_file(&part);
        failed(error)
    })
}

fn header(machine: &Machine, parts: &Parts) -> io::Result<Header> {
    let cpus = machine.cpus.iter().map(|cpu| CpuState {
        processor: cpu.processor.save(),
        activity: cpu.activity,
        time: cpu.ticks,
    });
    let platform = machine.platform();
    let disks = parts.description.disk.iter();
    Ok(Header {
        description: parts.description.clone(),
        cpus: cpus.collect(),
        round_end: machine.round_end,
        now: platform.timeline.now(),
        sequence: platform.timeline.sequence(),
        targets: platform.interrupts.save(),
        lines: parts.lines.save(),
        serial: parts.serial.save(),
        power: parts.power.lock().unwrap_or_else(PoisonError::into_inner).save(),
        hpet: parts.hpet.as_ref().map(Hpet::save),
        firmware: parts.firmware.save(),
        virtio: parts
            .virtio
            .iter()
            .map(|device| device.facilities.save())
            .collect(),
        pci: parts.pci.save(),
        disks: disks
            .map(|disk| DiskState::of(&disk.file))
            .collect::<Result<_, _>>()?,
    })
}

fn write(output: &mut impl Write, header: &Header, memory: &GuestMemory) -> io::Result<()> {
    let state = minicbor_serde::to_vec(header).map_err(io::Error::other)?;
    output.write_all(&MAGIC)?;
    output.write_all(&VERSION.to_le_bytes())?;
    output.write_all(&(state.len() as u64).to_le_bytes())?;
    output.write_all(&state)?;
    let mut page = [0; PAGE];
    for address in pages(memory) {
        memory
            .read(PhysicalAddress(address), &mut page)
            .expect("every page of a range is memory");
        if page != [0; PAGE] {
            output.write_all(&address.to_le_bytes())?;
            output.write_all(&page)?;
        }
    }
    output.write_all(&NO_PAGE.to_le_bytes())
}

fn pages(memory: &GuestMemory) -> impl Iterator<Item = u64> {
    let of_range = |range: &crate::memory::MemoryRange| (range.start.0..range.end()).step_by(PAGE);
    memory.ranges().iter().flat_map(of_range)
}

/// A saved machine whose file is whole.
pub struct Saved {
    file: PathBuf,
    header: Header,
    pages: BufReader<File>,
}

/// Opens a saved machine, and checks that its file is whole.
///
/// # Errors
/// If the file is none, or is damaged.
pub fn open(file: &Path) -> Result<Saved, SnapshotError> {
    let failed = |error: io::Error| SnapshotError::File {
        file: file.to_owned(),
        error,
    };
    let damaged = |what| SnapshotError::Damaged {
        file: file.to_owned(),
        what,
    };
    let input = File::open(file).map_err(failed)?;
    let size = input.metadata().map_err(failed)?.len();
    let mut input = BufReader::new(input);
    let mut magic = [0; MAGIC.len()];
    if input.read_exact(&mut magic).is_err() || magic != MAGIC {
        return Err(SnapshotError::Foreign(file.to_owned()));
    }
    let mut version = [0; 4];
    input
        .read_exact(&mut version)
        .map_err(|_| damaged("it is cut short"))?;
    let version = u32::from_le_bytes(version);
    if version != VERSION {
        let file = file.to_owned();
        return Err(SnapshotError::Version { file, version });
    }
    verify(file, size)
        .map_err(failed)?
        .then_some(())
        .ok_or_else(|| damaged("its checksum is wrong"))?;
    let mut length = [0; 8];
    input
        .read_exact(&mut length)
        .map_err(|_| damaged("it is cut short"))?;
    let length = u64::from_le_bytes(length);
    if length > STATE_BYTES_MAX.min(size) {
        return Err(damaged("its state is too long"));
    }
    let mut state = vec![0; length as usize];
    input
        .read_exact(&mut state)
        .map_err(|_| damaged("it is cut short"))?;
    let header = minicbor_serde::from_slice(&state).map_err(|_| damaged("its state makes no sense"))?;
    Ok(Saved {
        file: file.to_owned(),
        header,
        pages: input,
    })
}

/// Whether the last four bytes of a file are the checksum of those before them.
fn verify(file: &Path, size: u64) -> io::Result<bool> {
    const CHECKSUM_BYTES: u64 = 4;
    let Some(summed) = size.checked_sub(CHECKSUM_BYTES) else {
        return Ok(false);
    };
    let mut input = BufReader::with_capacity(1 << 20, File::open(file)?);
    let mut sum = Summed::new(io::sink());
    io::copy(&mut (&mut input).take(summed), &mut sum)?;
    let mut expected = [0; CHECKSUM_BYTES as usize];
    input.read_exact(&mut expected)?;
    Ok(sum.checksum.finalize() == u32::from_le_bytes(expected))
}

impl Saved {
    /// What the machine was built from.
    pub fn description(&self) -> &Description {
        &self.header.description
    }

    /// Says where its disks are now, in the order in which it was given them.
    ///
    /// # Errors
    /// If it has more or fewer disks.
    pub fn find_disks_at(&mut self, files: Vec<PathBuf>) -> Result<(), SnapshotError> {
        let disks = &mut self.header.description.disk;
        if disks.len() != files.len() {
            return Err(SnapshotError::DiskCount {
                file: self.file.clone(),
                has: disks.len(),
                given: files.len(),
            });
        }
        for (disk, file) in disks.iter_mut().zip(files) {
            disk.file = file;
        }
        Ok(())
    }

    /// Has the files of its disks stay as they are: what the guest writes from now on is gone with the machine.
    pub fn keep_disks(&mut self) {
        self.header.description.keep_disks();
    }

    /// Builds the machine again, as it was.
    ///
    /// # Errors
    /// If one of its devices cannot be had, or the state is not that of such a machine.
    pub fn restore(mut self, consoles: Consoles, changed: ChangedDisks) -> Result<Built, RestoreError> {
        let (assembled, _) = self.header.description.assemble(consoles, false)?;
        let mut built = assembled.build();
        self.check_disks(changed)?;
        self.read_pages(&built.machine.platform().memory)?;
        let unlike = |what| SnapshotError::Damaged {
            file: self.file.clone(),
            what,
        };
        let Built { machine, parts, .. } = &mut built;
        let header = self.header;
        if header.cpus.len() != machine.cpus.len() || header.targets.len() != machine.cpus.len() {
            return Err(unlike("it has another number of processors").into());
        }
        let times = header.cpus.iter().map(|cpu| cpu.time);
        let mut times = times.chain([header.now]).chain(header.round_end);
        if times.any(|time| time > TIME_MAX) {
            return Err(unlike("its time has come to an end").into());
        }
        if header.virtio.len() != parts.virtio.len() {
            return Err(unlike("it has other devices").into());
        }
        for (cpu, state) in machine.cpus.iter_mut().zip(&header.cpus) {
            let restored = cpu.processor.restore(&state.processor);
            restored.map_err(|error| SnapshotError::Processor {
                file: self.file.clone(),
                error,
            })?;
            cpu.activity = state.activity;
            cpu.ticks = state.time;
        }
        machine.round_end = header.round_end;
        let platform = machine.platform();
        platform.timeline.restore(header.now, header.sequence);
        platform.interrupts.restore(&header.targets);
        if !parts.lines.restore(header.lines) {
            return Err(unlike("it has another number of interrupt lines").into());
        }
        parts.serial.restore(header.serial);
        parts
            .power
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .restore(header.power);
        match (&parts.hpet, header.hpet) {
            (Some(hpet), Some(state)) => hpet.restore(state),
            (None, None) => {}
            _ => return Err(unlike("it has other devices").into()),
        }
        parts.firmware.restore(header.firmware);
        let restored = |(device, state): (&Attached, _)| device.facilities.restore(state);
        let restored = parts.virtio.iter().zip(&header.virtio).all(restored);
        if !restored || !parts.pci.restore(&header.pci) {
            return Err(unlike("it has other devices").into());
        }
        Ok(built)
    }

    /// Whether the disks are as they were.
    fn check_disks(&self, changed: ChangedDisks) -> Result<(), SnapshotError> {
        for (table, was) in self.header.description.disk.iter().zip(&self.header.disks) {
            let (file, disk) = (self.file.clone(), table.file.clone());
            let is = DiskState::of(&disk).map_err(|error| SnapshotError::File {
                file: disk.clone(),
                error,
            })?;
            if is.size != was.size {
                let (was, is) = (was.size, is.size);
                return Err(SnapshotError::DiskSize { file, disk, was, is });
            }
            if is != *was && changed == ChangedDisks::Refuse {
                return Err(SnapshotError::DiskChanged { file, disk });
            }
        }
        Ok(())
    }

    /// Fills memory; what is not in the file is zero.
    fn read_pages(&mut self, memory: &GuestMemory) -> Result<(), SnapshotError> {
        let damaged = |what| SnapshotError::Damaged {
            file: self.file.clone(),
            what,
        };
        memory
            .clear(
                PhysicalAddress(layout::FIRMWARE),
                layout::FIRMWARE_END - layout::FIRMWARE,
            )
            .map_err(|_| damaged("its memory is too small"))?;
        let mut page = [0; PAGE];
        loop {
            let mut address = [0; 8];
            self.pages
                .read_exact(&mut address)
                .map_err(|_| damaged("it is cut short"))?;
            let address = u64::from_le_bytes(address);
            if address == NO_PAGE {
                return Ok(());
            }
            self.pages
                .read_exact(&mut page)
                .map_err(|_| damaged("it is cut short"))?;
            memory
                .write(PhysicalAddress(address), &page)
                .map_err(|_| damaged("it has a page where the machine has no memory"))?;
        }
    }
}

/// Why a machine cannot be restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// Its file is wrong.
    #[error(transparent)]
    File(#[from] SnapshotError),
    /// It cannot be built again.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Sums what is written.
struct Summed<W> {
    inner: W,
    checksum: crc32fast::Hasher,
}

impl<W: Write> Summed<W> {
    fn new(inner: W) -> Summed<W> {
        Summed {
            inner,
            checksum: crc32fast::Hasher::new(),
        }
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = self.inner.write(bytes)?;
        self.checksum.update(&bytes[..size]);
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
