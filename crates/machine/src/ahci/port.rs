//! A port and the device behind it: the commands of its list, one after the other.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use sidestep_ia64::PhysicalAddress;

use super::frames::{Header, Piece, Request, SLOTS, TaskFile};
use super::registers::{
    CONTROL_DETECT, CONTROL_RESET, ERROR_EXCHANGED, STATUS_UP, cause, command, device, port,
};
use crate::memory::MemoryError;
use crate::pci::mastering::BusMaster;
use crate::storage::ata::{self, Drive, operation};
use crate::storage::scsi::{Reply, STATUS_GOOD, Sense, Unit};

/// Bytes that are moved at once.
const CHUNK_BYTES: u64 = 64 << 10;
/// Bytes of a packet of a CD-ROM.
const CDROM_PACKET_BYTES: usize = 12;
/// A device's signature: of a disk, and of one that takes packets.
const SIGNATURE_DISK: u32 = 0x0000_0101;
const SIGNATURE_PACKETS: u32 = 0xeb14_0101;

/// What is behind a port.
pub enum Behind {
    /// A disk.
    Disk(Drive),
    /// A CD-ROM, which takes SCSI commands as packets.
    Cdrom(Unit),
}

/// Everything of a port that is saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers {
    list: u64,
    received: u64,
    interrupts: u32,
    enabled: u32,
    command: u32,
    task_file: u32,
    signature: u32,
    control: u32,
    errors: u32,
    issued: u32,
    /// Which slot was worked on last.
    slot: u32,
    /// Whether an error has stopped it, until the driver starts it anew.
    has_stopped: bool,
    /// Whether the device is held in a reset.
    resets: bool,
}

/// A port.
pub struct Port {
    registers: Registers,
    behind: Behind,
}

/// Why a command is not done.
enum Failure {
    /// The device says so, with this error register.
    Device(u8),
    /// A part of what describes it, or of its data, is no memory.
    Bus,
}

impl From<MemoryError> for Failure {
    fn from(_: MemoryError) -> Failure {
        Failure::Bus
    }
}

impl From<ata::Aborted> for Failure {
    fn from(_: ata::Aborted) -> Failure {
        Failure::Device(device::ABORTED)
    }
}

/// How a command ends.
struct End {
    task_file: TaskFile,
    /// Bytes that were moved.
    bytes: u64,
    causes: u32,
    /// Data that a processor would move, if that was so.
    by_processor: Option<Direction>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToHost,
    ToDevice,
}

impl Port {
    /// With this behind it.
    pub fn new(behind: Behind) -> Port {
        let mut port = Port {
            registers: Registers {
                list: 0,
                received: 0,
                interrupts: 0,
                enabled: 0,
                command: 0,
                task_file: 0,
                signature: 0,
                control: 0,
                errors: 0,
                issued: 0,
                slot: 0,
                has_stopped: false,
                resets: false,
            },
            behind,
        };
        port.connect();
        port
    }

    /// As after power on; addresses are kept.
    pub fn reset(&mut self) {
        let (list, received) = (self.registers.list, self.registers.received);
        let fresh = Registers {
            list,
            received,
            interrupts: 0,
            enabled: 0,
            command: 0,
            control: 0,
            errors: 0,
            issued: 0,
            slot: 0,
            has_stopped: false,
            resets: false,
            ..self.registers
        };
        self.registers = fresh;
        self.connect();
    }

    /// The device has begun anew.
    fn connect(&mut self) {
        self.registers.signature = self.signature();
        self.registers.task_file = self.fresh_task_file().register();
    }

    fn signature(&self) -> u32 {
        match self.behind {
            Behind::Disk(_) => SIGNATURE_DISK,
            Behind::Cdrom(_) => SIGNATURE_PACKETS,
        }
    }

    /// What a device says of itself after a reset: its signature, and no error (Serial ATA 3.0, section 11.2).
    fn fresh_task_file(&self) -> TaskFile {
        const NO_ERROR: u8 = 1;
        let signature = self.signature();
        TaskFile {
            status: device::IDLE,
            error: NO_ERROR,
            block: u64::from(signature >> 8),
            device: 0,
            count: (signature & 0xff) as u16,
        }
    }

    /// Whether an interrupt is enabled whose cause is there.
    pub fn asks(&self) -> bool {
        self.registers.interrupts & self.registers.enabled != 0
    }

    /// Whether there is a command to be done.
    pub fn has_work(&self) -> bool {
        let registers = &self.registers;
        registers.issued != 0 && registers.command & command::START != 0 && !registers.has_stopped
    }

    /// Loads a register.
    pub fn load(&self, register: u32) -> u32 {
        let registers = &self.registers;
        match register {
            port::LIST => registers.list as u32,
            port::LIST_HIGH => (registers.list >> 32) as u32,
            port::RECEIVED => registers.received as u32,
            port::RECEIVED_HIGH => (registers.received >> 32) as u32,
            port::INTERRUPTS => registers.interrupts,
            port::ENABLED => registers.enabled,
            port::COMMAND => {
                let mut value = registers.command | registers.slot << command::SLOT_SHIFT;
                if value & command::START != 0 && !registers.has_stopped {
                    value |= command::RUNS;
                }
                if value & command::RECEIVE != 0 {
                    value |= command::RECEIVES;
                }
                value
            }
            port::TASK_FILE => registers.task_file,
            port::SIGNATURE => registers.signature,
            port::STATUS if registers.control & CONTROL_DETECT == CONTROL_RESET => 0,
            port::STATUS => STATUS_UP,
            port::CONTROL => registers.control,
            port::ERRORS => registers.errors,
            port::ISSUED => registers.issued,
            _ => 0,
        }
    }

    /// Stores to a register.
    pub fn store(&mut self, memory: &BusMaster, register: u32, value: u32) {
        const LIST_BYTES: u32 = 1 << 10;
        const RECEIVED_BYTES: u32 = 1 << 8;
        let registers = &mut self.registers;
        let low = |old: u64, value: u32, size: u32| old >> 32 << 32 | u64::from(value & !(size - 1));
        let high = |old: u64, value: u32| old & 0xffff_ffff | u64::from(value) << 32;
        match register {
            port::LIST => registers.list = low(registers.list, value, LIST_BYTES),
            port::LIST_HIGH => registers.list = high(registers.list, value),
            port::RECEIVED => registers.received = low(registers.received, value, RECEIVED_BYTES),
            port::RECEIVED_HIGH => registers.received = high(registers.received, value),
            port::INTERRUPTS => registers.interrupts &= !value,
            port::ENABLED => registers.enabled = value & cause::ALL,
            port::COMMAND => self.store_command(memory, value),
            port::CONTROL => {
                let before = registers.control & CONTROL_DETECT;
                registers.control = value & 0xfff;
                if before == CONTROL_RESET && value & CONTROL_DETECT == 0 {
                    registers.errors |= ERROR_EXCHANGED;
                    registers.interrupts |= cause::CONNECTED;
                    self.connect();
                    self.announce(memory);
                }
            }
            port::ERRORS => registers.errors &= !value,
            port::ISSUED if registers.command & command::START != 0 => registers.issued |= value,
            _ => {}
        }
    }

    fn store_command(&mut self, memory: &BusMaster, value: u32) {
        let registers = &mut self.registers;
        let before = registers.command;
        registers.command = value & command::WRITABLE;
        if value & command::TAKE_BACK != 0 {
            registers.task_file &= !u32::from(device::BUSY | device::DATA);
        }
        if before & command::START != 0 && value & command::START == 0 {
            (registers.issued, registers.has_stopped) = (0, false);
        }
        if before & command::RECEIVE == 0 && value & command::RECEIVE != 0 {
            self.announce(memory);
        }
    }

    /// The device says what it is, if the driver has a place for its frames.
    fn announce(&mut self, memory: &BusMaster) {
        let task_file = self.fresh_task_file();
        if self.put(memory, &task_file).is_err() {
            self.stop(cause::BUS_FAULT);
        }
    }

    fn put(&self, memory: &BusMaster, task_file: &TaskFile) -> Result<(), MemoryError> {
        match self.registers.command & command::RECEIVE {
            0 => Ok(()),
            _ => task_file.put(memory, self.registers.received),
        }
    }

    /// An error: nothing more is done until the driver starts the port anew.
    fn stop(&mut self, cause: u32) {
        self.registers.interrupts |= cause;
        self.registers.has_stopped = true;
    }

    /// Does the next command, if there is one; answers how many bytes it has moved.
    pub fn work(&mut self, memory: &BusMaster) -> u64 {
        if !self.has_work() {
            return 0;
        }
        // The slot after the last one is next.
        let after = (self.registers.slot + 1) % SLOTS;
        let slot = (after + self.registers.issued.rotate_right(after).trailing_zeros()) % SLOTS;
        self.registers.slot = slot;
        match self.perform(memory, slot) {
            Ok(bytes) => bytes,
            Err(Failure::Bus) => {
                self.stop(cause::BUS_FAULT);
                0
            }
            Err(Failure::Device(error)) => {
                let task_file = TaskFile {
                    status: device::IDLE | device::ERROR,
                    error,
                    ..TaskFile::default()
                };
                self.registers.task_file = task_file.register();
                let is_put = self.put(memory, &task_file).is_ok();
                self.stop(cause::TASK_FILE | if is_put { 0 } else { cause::BUS_FAULT });
                0
            }
        }
    }

    /// Does the command of a slot, which is then free again.
    fn perform(&mut self, memory: &BusMaster, slot: u32) -> Result<u64, Failure> {
        let header = Header::read(memory, self.registers.list, slot)?;
        let end = match header.request(memory)? {
            Request::Wrong => return Err(Failure::Device(device::ABORTED)),
            Request::Control { resets } => self.control(resets),
            Request::Command(command) => match &mut self.behind {
                Behind::Disk(drive) => do_command(drive, memory, &header, command)?,
                Behind::Cdrom(unit) => match command.operation {
                    operation::PACKET if header.has_packet => do_packet(unit, memory, &header)?,
                    operation::IDENTIFY_PACKET => answer(memory, &header, &ata::packet_identity())?,
                    operation::SET_FEATURES | operation::IDLE_IMMEDIATE => End::done(),
                    _ => return Err(Failure::Device(device::ABORTED)),
                },
            },
        };
        header.put_count(memory, end.bytes)?;
        let receives = self.registers.command & command::RECEIVE != 0;
        self.registers.task_file = end.task_file.register();
        self.registers.interrupts |= end.causes;
        match end.by_processor {
            Some(direction) if receives => {
                let to_host = direction == Direction::ToHost;
                end.task_file
                    .put_setup(memory, self.registers.received, to_host, end.bytes)?;
                self.registers.interrupts |= cause::SETUP_BY_PROCESSOR;
            }
            _ => {}
        }
        // What a processor would have fetched has no frame behind it.
        if end.by_processor != Some(Direction::ToHost) {
            self.put(memory, &end.task_file)?;
            self.registers.interrupts |= cause::DEVICE_TO_HOST;
        }
        self.registers.issued &= !(1 << slot);
        Ok(end.bytes)
    }

    /// The control register of the device: a reset begins and ends there.
    fn control(&mut self, resets: bool) -> End {
        let has_ended = std::mem::replace(&mut self.registers.resets, resets) && !resets;
        if has_ended {
            self.connect();
        }
        End {
            task_file: self.fresh_task_file(),
            ..End::done()
        }
    }

    /// Everything, to be saved.
    pub fn save(&self) -> (Registers, Option<Sense>) {
        let sense = match &self.behind {
            Behind::Disk(_) => None,
            Behind::Cdrom(unit) => Some(unit.sense()),
        };
        (self.registers.clone(), sense)
    }

    /// Goes on from what was saved of a port with the same behind it; false if that was of another.
    pub fn restore(&mut self, (registers, sense): (Registers, Option<Sense>)) -> bool {
        match (&mut self.behind, sense) {
            (Behind::Disk(_), None) => {}
            (Behind::Cdrom(unit), Some(sense)) => unit.restore(sense),
            _ => return false,
        }
        self.registers = registers;
        self.registers.slot %= SLOTS;
        true
    }
}

impl End {
    fn done() -> End {
        End {
            task_file: TaskFile {
                status: device::IDLE,
                ..TaskFile::default()
            },
            bytes: 0,
            causes: 0,
            by_processor: None,
        }
    }
}

/// Does a command of a disk.
fn do_command(
    drive: &mut Drive,
    memory: &BusMaster,
    header: &Header,
    command: ata::Command,
) -> Result<End, Failure> {
    let by = |transfer: ata::Transfer, direction| transfer.by_processor.then_some(direction);
    Ok(match drive.command(command)? {
        ata::Reply::Done => End::done(),
        ata::Reply::Values { count, block } => {
            let mut end = End::done();
            (end.task_file.count, end.task_file.block) = (count, block);
            end
        }
        ata::Reply::Answer(bytes) => answer(memory, header, &bytes)?,
        ata::Reply::Read(transfer) => End {
            by_processor: by(transfer, Direction::ToHost),
            ..to_host(memory, header, transfer.bytes, |at, chunk| {
                drive.read(transfer.start + at, chunk).map_err(Failure::from)
            })?
        },
        ata::Reply::Write(transfer) => End {
            by_processor: by(transfer, Direction::ToDevice),
            ..to_device(memory, header, transfer.bytes, |at, chunk| {
                drive.write(transfer.start + at, chunk).map_err(Failure::from)
            })?
        },
    })
}

/// Does the packet of a command of a CD-ROM.
fn do_packet(unit: &mut Unit, memory: &BusMaster, header: &Header) -> Result<End, Failure> {
    /// Why a packet interrupts: it is done.
    const DONE: u16 = 3;
    let packet = header.packet(memory)?;
    let fails = |unit: &Unit| Failure::Device(unit.sense().key() << 4 | device::ABORTED);
    let mut end = match unit.command(0, &packet[..CDROM_PACKET_BYTES]) {
        Reply::Status(STATUS_GOOD) => End::done(),
        Reply::Status(_) => return Err(fails(unit)),
        Reply::Answer(bytes) => to_host(memory, header, bytes.len() as u64, |at, chunk| {
            chunk.copy_from_slice(&bytes[at as usize..][..chunk.len()]);
            Ok(())
        })?,
        Reply::Read { start, bytes } => to_host(memory, header, bytes, |at, chunk| {
            match unit.read(start + at, chunk) {
                true => Ok(()),
                false => Err(fails(unit)),
            }
        })?,
        // A CD-ROM is never written.
        Reply::Write { .. } => return Err(Failure::Device(device::ABORTED)),
    };
    end.task_file.count = DONE;
    Ok(end)
}

/// An answer as a processor would fetch it.
fn answer(memory: &BusMaster, header: &Header, bytes: &[u8]) -> Result<End, Failure> {
    let end = to_host(memory, header, bytes.len() as u64, |at, chunk| {
        chunk.copy_from_slice(&bytes[at as usize..][..chunk.len()]);
        Ok(())
    })?;
    Ok(End {
        by_processor: Some(Direction::ToHost),
        ..end
    })
}

/// Moves bytes to the driver's memory, as `fill` has them; as many as it has room for.
fn to_host(
    memory: &BusMaster,
    header: &Header,
    bytes: u64,
    mut fill: impl FnMut(u64, &mut [u8]) -> Result<(), Failure>,
) -> Result<End, Failure> {
    // Disks have whole sectors alone: a piece may end within one.
    let pieces = header.pieces(memory, bytes)?;
    let room: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    let mut end = End::done();
    let mut scatter = Scatter::new(&pieces);
    while end.bytes < room {
        let most = CHUNK_BYTES.min(bytes - end.bytes);
        let mut chunk = vec![0; most as usize];
        fill(end.bytes, &mut chunk)?;
        chunk.truncate((room - end.bytes) as usize);
        scatter.visit(chunk.len() as u64, |address, range| {
            memory.write_ram(address, &chunk[range])
        })?;
        end.bytes += chunk.len() as u64;
    }
    end.causes = causes(&pieces, room < bytes);
    Ok(end)
}

/// Moves bytes from the driver's memory; nothing, if it has not so many.
fn to_device(
    memory: &BusMaster,
    header: &Header,
    bytes: u64,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), Failure>,
) -> Result<End, Failure> {
    let pieces = header.pieces(memory, bytes)?;
    let room: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    if room < bytes {
        return Err(Failure::Device(device::ABORTED));
    }
    let mut end = End::done();
    let mut scatter = Scatter::new(&pieces);
    while end.bytes < bytes {
        let most = CHUNK_BYTES.min(bytes - end.bytes);
        let mut chunk = vec![0; most as usize];
        scatter.visit(most, |address, range| memory.read_ram(address, &mut chunk[range]))?;
        take(end.bytes, &chunk)?;
        end.bytes += most;
    }
    end.causes = causes(&pieces, false);
    Ok(end)
}

fn causes(pieces: &[Piece], overflows: bool) -> u32 {
    let tells = pieces.iter().any(|piece| piece.tells);
    let descriptor = if tells { cause::DESCRIPTOR } else { 0 };
    descriptor | if overflows { cause::OVERFLOW } else { 0 }
}

/// Goes along pieces of memory.
struct Scatter<'a> {
    pieces: std::slice::Iter<'a, Piece>,
    /// What is left of the piece at hand.
    address: PhysicalAddress,
    left: u64,
}

impl<'a> Scatter<'a> {
    fn new(pieces: &'a [Piece]) -> Scatter<'a> {
        Scatter {
            pieces: pieces.iter(),
            address: PhysicalAddress(0),
            left: 0,
        }
    }

    /// Visits the next `bytes` piece by piece: where they are, and which of them.
    fn visit(
        &mut self,
        bytes: u64,
        mut visit: impl FnMut(PhysicalAddress, Range<usize>) -> Result<(), MemoryError>,
    ) -> Result<(), MemoryError> {
        let mut done = 0;
        while done < bytes {
            if self.left == 0 {
                let Some(piece) = self.pieces.next() else {
                    return Ok(());
                };
                (self.address, self.left) = (piece.address, piece.bytes);
                continue;
            }
            let count = self.left.min(bytes - done);
            visit(self.address, done as usize..(done + count) as usize)?;
            self.address = PhysicalAddress(self.address.0.wrapping_add(count));
            (self.left, done) = (self.left - count, done + count);
        }
        Ok(())
    }
}
