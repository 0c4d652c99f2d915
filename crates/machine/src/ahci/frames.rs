//! What is between a driver and a port in memory: the list of commands, their tables, and the frames that a device
//! sends (AHCI 1.3.1, chapter 4; Serial ATA 3.0, section 10.3).

use sidestep_ia64::PhysicalAddress;

use crate::memory::MemoryError;
use crate::pci::mastering::BusMaster;
use crate::storage::ata::Command;

/// Slots of a list.
pub const SLOTS: u32 = 32;
/// Bytes of a packet that a command can carry.
pub const PACKET_BYTES: usize = 16;

const HEADER_BYTES: u64 = 32;
const PACKET: u64 = 0x40;
const DESCRIPTORS: u64 = 0x80;
const DESCRIPTOR_BYTES: u64 = 16;

/// The kind of a frame.
const HOST_TO_DEVICE: u8 = 0x27;
const DEVICE_TO_HOST: u8 = 0x34;
const SETUP_BY_PROCESSOR: u8 = 0x5f;
/// A frame's wish for an interrupt, and the direction of a set-up's data.
const INTERRUPT: u8 = 1 << 6;
const TO_HOST: u8 = 1 << 5;

/// Where a port puts the frames of its device.
const SETUP_PLACE: u64 = 0x20;
const DEVICE_PLACE: u64 = 0x40;

/// The header of a command, and where its table is.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    place: PhysicalAddress,
    table: PhysicalAddress,
    descriptors: u32,
    /// Whether it carries a packet.
    pub has_packet: bool,
}

/// What a frame of the host says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A command.
    Command(Command),
    /// The control register alone.
    Control {
        /// Whether the device is held in a reset.
        resets: bool,
    },
    /// No frame that a device understands.
    Wrong,
}

/// A piece of memory, and whether the driver wants to know when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where.
    pub address: PhysicalAddress,
    /// How many bytes.
    pub bytes: u64,
    /// Whether an interrupt is to tell.
    pub tells: bool,
}

impl Header {
    /// The header in a slot of the list at `list`.
    pub fn read(memory: &BusMaster, list: u64, slot: u32) -> Result<Header, MemoryError> {
        let place = PhysicalAddress(list.wrapping_add(u64::from(slot) * HEADER_BYTES));
        let mut bytes = [0; 16];
        memory.read_ram(place, &mut bytes)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        const HAS_PACKET: u32 = 1 << 5;
        Ok(Header {
            place,
            table: PhysicalAddress(u64::from(word(12)) << 32 | u64::from(word(8) & !0x7f)),
            descriptors: word(0) >> 16,
            has_packet: word(0) & HAS_PACKET != 0,
        })
    }

    /// The frame of the command.
    pub fn request(&self, memory: &BusMaster) -> Result<Request, MemoryError> {
        const IS_COMMAND: u8 = 1 << 7;
        const RESETS: u8 = 1 << 2;
        let mut frame = [0; 20];
        memory.read_ram(self.table, &mut frame)?;
        if frame[0] != HOST_TO_DEVICE {
            return Ok(Request::Wrong);
        }
        if frame[1] & IS_COMMAND == 0 {
            let resets = frame[15] & RESETS != 0;
            return Ok(Request::Control { resets });
        }
        let block = [frame[4], frame[5], frame[6], frame[8], frame[9], frame[10], 0, 0];
        Ok(Request::Command(Command {
            operation: frame[2],
            feature: frame[3],
            block: u64::from_le_bytes(block),
            device: frame[7],
            count: u16::from_le_bytes([frame[12], frame[13]]),
        }))
    }

    /// The packet of the command.
    pub fn packet(&self, memory: &BusMaster) -> Result<[u8; PACKET_BYTES], MemoryError> {
        let mut packet = [0; PACKET_BYTES];
        memory.read_ram(self.table + PACKET, &mut packet)?;
        Ok(packet)
    }

    /// The pieces that `bytes` of data go to or come from, in order; fewer bytes, if the table has no more.
    pub fn pieces(&self, memory: &BusMaster, bytes: u64) -> Result<Vec<Piece>, MemoryError> {
        const COUNT: u32 = 0x3f_ffff;
        const TELLS: u32 = 1 << 31;
        let (mut pieces, mut left) = (Vec::new(), bytes);
        for number in 0..u64::from(self.descriptors) {
            if left == 0 {
                break;
            }
            let mut descriptor = [0; DESCRIPTOR_BYTES as usize];
            memory.read_ram(
                self.table + (DESCRIPTORS + number * DESCRIPTOR_BYTES),
                &mut descriptor,
            )?;
            let [low, high, _, count] = [0, 4, 8, 12].map(|at| {
                u32::from_le_bytes([
                    descriptor[at],
                    descriptor[at + 1],
                    descriptor[at + 2],
                    descriptor[at + 3],
                ])
            });
            // Always an even number of bytes.
            let count = left.min((u64::from(count & COUNT) | 1) + 1);
            pieces.push(Piece {
                address: PhysicalAddress(u64::from(high) << 32 | u64::from(low & !1)),
                bytes: count,
                tells: descriptor[15] & (TELLS >> 24) as u8 != 0,
            });
            left -= count;
        }
        Ok(pieces)
    }

    /// Says how many bytes were moved.
    pub fn put_count(&self, memory: &BusMaster, bytes: u64) -> Result<(), MemoryError> {
        memory.write_ram(self.place + 4, &(bytes as u32).to_le_bytes())
    }
}

/// The registers of a device as a frame carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskFile {
    /// The status.
    pub status: u8,
    /// The error register.
    pub error: u8,
    /// The block's number.
    pub block: u64,
    /// The device register.
    pub device: u8,
    /// The count of blocks, or why a packet interrupts.
    pub count: u16,
}

impl TaskFile {
    /// As a port's register has it.
    pub fn register(&self) -> u32 {
        u32::from(self.error) << 8 | u32::from(self.status)
    }

    fn frame(&self, kind: u8, flags: u8) -> [u8; 20] {
        let block = self.block.to_le_bytes();
        let count = self.count.to_le_bytes();
        let mut frame = [0; 20];
        frame[..4].copy_from_slice(&[kind, flags, self.status, self.error]);
        frame[4..8].copy_from_slice(&[block[0], block[1], block[2], self.device]);
        frame[8..11].copy_from_slice(&block[3..6]);
        frame[12..14].copy_from_slice(&count);
        frame
    }

    /// Puts the device's registers among the frames that were received.
    pub fn put(&self, memory: &BusMaster, received: u64) -> Result<(), MemoryError> {
        let place = PhysicalAddress(received.wrapping_add(DEVICE_PLACE));
        memory.write_ram(place, &self.frame(DEVICE_TO_HOST, INTERRUPT))
    }

    /// Puts the set-up of data there that a processor would move: `bytes` at once, after which the status is this one.
    pub fn put_setup(
        &self,
        memory: &BusMaster,
        received: u64,
        to_host: bool,
        bytes: u64,
    ) -> Result<(), MemoryError> {
        let direction = if to_host { TO_HOST } else { 0 };
        let during = TaskFile {
            status: self.status | super::registers::device::DATA,
            ..*self
        };
        let mut frame = during.frame(SETUP_BY_PROCESSOR, INTERRUPT | direction);
        frame[15] = self.status;
        frame[16..18].copy_from_slice(&(bytes as u16).to_le_bytes());
        memory.write_ram(PhysicalAddress(received.wrapping_add(SETUP_PLACE)), &frame)
    }
}
