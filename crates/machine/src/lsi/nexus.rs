//! What a controller is connected to: a target in one of the phases of a command, from its selection until the bus is
//! free again.
//!
//! Targets here keep the bus until a command is done. They take no negotiation: what a message asks for beyond that is
//! rejected, and data go over eight lines without a clock of their own.

use serde::{Deserialize, Serialize};

use crate::storage::disk::SECTOR;
use crate::storage::scsi::{Reply, STATUS_CHECK_CONDITION, STATUS_GOOD, Unit, command_bytes};

/// Messages (SPI-3, section 16).
mod message {
    pub const COMPLETE: u8 = 0x00;
    pub const EXTENDED: u8 = 0x01;
    pub const ABORT: u8 = 0x06;
    pub const REJECT: u8 = 0x07;
    pub const RESET: u8 = 0x0c;
    pub const ABORT_TAG: u8 = 0x0d;
    pub const TAGS: std::ops::RangeInclusive<u8> = 0x20..=0x22;
    pub const IDENTIFY: u8 = 0x80;
    pub const NO_OPERATION: u8 = 0x08;
}

/// The most bytes that move at once.
const PIECE: u64 = 1 << 16;

/// A phase of the bus; its number is that of the lines MSG, C/D and I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    DataOut = 0,
    DataIn = 1,
    Command = 2,
    Status = 3,
    MessageOut = 6,
    MessageIn = 7,
}

impl Phase {
    /// Whether bytes go to the host.
    pub fn is_in(self) -> bool {
        self as u8 & 1 != 0
    }
}

/// The connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nexus {
    /// The identifier of the target.
    pub target: u8,
    /// The phase that the target has chosen.
    pub phase: Phase,
    unit: u8,
    /// Bytes of the command so far.
    command: Vec<u8>,
    /// Bytes for the host: of a message, a status or an answer.
    incoming: Vec<u8>,
    /// What is still to move between host and medium.
    start: u64,
    bytes: u64,
    /// The beginning of a sector that the host has not yet sent all of.
    part: Vec<u8>,
    status: u8,
}

/// Why no more bytes moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusFault;

impl Nexus {
    /// A target that was just selected, with attention for a message or without.
    pub fn new(target: u8, attention: bool) -> Nexus {
        Nexus {
            target,
            phase: if attention {
                Phase::MessageOut
            } else {
                Phase::Command
            },
            unit: 0,
            command: Vec::new(),
            incoming: Vec::new(),
            start: 0,
            bytes: 0,
            part: Vec::new(),
            status: STATUS_GOOD,
        }
    }

    /// Takes a message of the host; false if the bus is free after it.
    pub fn take_message(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let mut rejects = false;
        while let [first, behind @ ..] = rest {
            let more = match *first {
                message::ABORT | message::RESET | message::ABORT_TAG => return false,
                identify if identify & message::IDENTIFY != 0 => {
                    self.unit = identify & 7;
                    0
                }
                tag if message::TAGS.contains(&tag) => 1,
                message::EXTENDED => {
                    rejects = true;
                    1 + usize::from(behind.first().copied().unwrap_or(0))
                }
                message::NO_OPERATION | message::REJECT => 0,
                _ => {
                    rejects = true;
                    0
                }
            };
            rest = behind.get(more..).unwrap_or(&[]);
        }
        if rejects {
            self.incoming = vec![message::REJECT];
            self.phase = Phase::MessageIn;
        } else {
            self.phase = Phase::Command;
        }
        true
    }

    /// How many of `count` bytes of the command the target takes next.
    pub fn wants_of_command(&self, first: u8, count: u64) -> u64 {
        let operation = self.command.first().copied().unwrap_or(first);
        count.min((command_bytes(operation) - self.command.len()) as u64)
    }

    /// Takes bytes of the command, and does it when they are all there.
    pub fn take_command(&mut self, unit: &mut Unit, bytes: &[u8]) {
        self.command.extend_from_slice(bytes);
        let Some(&operation) = self.command.first() else {
            return;
        };
        if self.command.len() < command_bytes(operation) {
            return;
        }
        match unit.command(self.unit, &self.command) {
            Reply::Status(status) => self.end(status),
            Reply::Answer(bytes) => {
                self.incoming = bytes;
                self.phase = Phase::DataIn;
            }
            Reply::Read { start, bytes } => self.begin(Phase::DataIn, start, bytes),
            Reply::Write { start, bytes } => self.begin(Phase::DataOut, start, bytes),
        }
    }

    fn begin(&mut self, phase: Phase, start: u64, bytes: u64) {
        (self.phase, self.start, self.bytes) = (phase, start, bytes);
    }

    fn end(&mut self, status: u8) {
        (self.phase, self.status) = (Phase::Status, status);
        self.incoming = vec![status];
    }

    /// Moves at most `count` bytes of a phase with bytes for the host, by `put`; answers how many.
    ///
    /// # Errors
    /// Of `put`.
    pub fn give(
        &mut self,
        unit: &mut Unit,
        count: u64,
        mut put: impl FnMut(u64, &[u8]) -> Result<(), BusFault>,
    ) -> Result<u64, BusFault> {
        if self.bytes > 0 {
            return self.give_medium(unit, count, put);
        }
        let length = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(self.incoming.len());
        put(0, &self.incoming[..length])?;
        self.incoming.drain(..length);
        if self.incoming.is_empty() {
            match self.phase {
                Phase::DataIn => self.end(STATUS_GOOD),
                Phase::Status => {
                    self.incoming = vec![message::COMPLETE];
                    self.phase = Phase::MessageIn;
                }
                // After a rejected message comes the command, which is still to be sent.
                Phase::MessageIn if self.command.is_empty() => self.phase = Phase::Command,
                _ => {}
            }
        }
        Ok(length as u64)
    }

    /// Whether it can have come about, as one that was saved may not.
    pub fn is_sound(&self) -> bool {
        let length = self
            .command
            .first()
            .map_or(0, |&operation| command_bytes(operation));
        let is_aligned = self.phase != Phase::DataOut || self.start.is_multiple_of(SECTOR);
        self.command.len() <= length && self.part.len() < SECTOR as usize && is_aligned
    }

    /// Whether the last message was given, so that the bus is free when the host has acknowledged it.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::MessageIn && self.incoming.is_empty()
    }

    fn give_medium(
        &mut self,
        unit: &mut Unit,
        count: u64,
        mut put: impl FnMut(u64, &[u8]) -> Result<(), BusFault>,
    ) -> Result<u64, BusFault> {
        let mut moved = 0;
        while moved < count && self.bytes > 0 {
            let piece = (count - moved).min(self.bytes).min(PIECE);
            let skipped = self.start % SECTOR;
            let mut sectors = vec![0; (skipped + piece).next_multiple_of(SECTOR) as usize];
            if !unit.read(self.start - skipped, &mut sectors) {
                self.bytes = 0;
                self.end(STATUS_CHECK_CONDITION);
                return Ok(moved);
            }
            put(moved, &sectors[skipped as usize..][..piece as usize])?;
            self.start += piece;
            self.bytes -= piece;
            moved += piece;
        }
        if self.bytes == 0 {
            self.end(STATUS_GOOD);
        }
        Ok(moved)
    }

    /// Moves at most `count` bytes to the medium, by `get`; answers how many.
    ///
    /// # Errors
    /// Of `get`.
    pub fn take(
        &mut self,
        unit: &mut Unit,
        count: u64,
        mut get: impl FnMut(u64, &mut [u8]) -> Result<(), BusFault>,
    ) -> Result<u64, BusFault> {
        let mut moved = 0;
        while moved < count && self.bytes > 0 {
            let piece = (count - moved).min(self.bytes).min(PIECE);
            let kept = self.part.len();
            self.part.resize(kept + piece as usize, 0);
            if let Err(fault) = get(moved, &mut self.part[kept..]) {
                self.part.truncate(kept);
                return Err(fault);
            }
            moved += piece;
            self.bytes -= piece;
            let whole = self.part.len() / SECTOR as usize * SECTOR as usize;
            if !unit.write(self.start, &self.part[..whole]) {
                self.bytes = 0;
                self.part.clear();
                self.end(STATUS_CHECK_CONDITION);
                return Ok(moved);
            }
            self.part.drain(..whole);
            self.start += whole as u64;
        }
        if self.bytes == 0 {
            self.end(STATUS_GOOD);
        }
        Ok(moved)
    }
}
