//! A disk or a CD-ROM as a unit that takes SCSI commands (SPC-3, SBC-2 and MMC-4, as far as drivers use them).
//!
//! A [`Unit`] turns a command into a [`Reply`]: whoever carries it moves the data and then asks for nothing but the
//! status. A command that fails leaves its reason as sense data, which REQUEST SENSE fetches.

use std::io;

use serde::{Deserialize, Serialize};

use super::disk::{Disk, SECTOR};

/// The most bytes of a command.
pub const COMMAND_BYTES_MAX: usize = 16;
/// The status of a command that was done.
pub const STATUS_GOOD: u8 = 0;
/// The status of one that was not: sense data say why.
pub const STATUS_CHECK_CONDITION: u8 = 2;

/// Bytes of a block on a CD-ROM.
const CD_BLOCK: u64 = 2048;

/// Numbers of commands.
mod operation {
    pub const TEST_UNIT_READY: u8 = 0x00;
    pub const REZERO_UNIT: u8 = 0x01;
    pub const REQUEST_SENSE: u8 = 0x03;
    pub const READ_6: u8 = 0x08;
    pub const WRITE_6: u8 = 0x0a;
    pub const INQUIRY: u8 = 0x12;
    pub const RESERVE_6: u8 = 0x16;
    pub const RELEASE_6: u8 = 0x17;
    pub const MODE_SENSE_6: u8 = 0x1a;
    pub const START_STOP: u8 = 0x1b;
    pub const PREVENT_REMOVAL: u8 = 0x1e;
    pub const READ_CAPACITY_10: u8 = 0x25;
    pub const READ_10: u8 = 0x28;
    pub const WRITE_10: u8 = 0x2a;
    pub const SEEK_10: u8 = 0x2b;
    pub const VERIFY_10: u8 = 0x2f;
    pub const SYNCHRONIZE_10: u8 = 0x35;
    pub const READ_TOC: u8 = 0x43;
    pub const MODE_SENSE_10: u8 = 0x5a;
    pub const READ_16: u8 = 0x88;
    pub const WRITE_16: u8 = 0x8a;
    pub const SYNCHRONIZE_16: u8 = 0x91;
    pub const SERVICE_IN_16: u8 = 0x9e;
    pub const REPORT_LUNS: u8 = 0xa0;
    pub const READ_12: u8 = 0xa8;
    pub const WRITE_12: u8 = 0xaa;
}

/// The service action of READ CAPACITY (16).
const READ_CAPACITY_16: u8 = 0x10;

/// Why a command was not done: key, code and qualifier (SPC-3, section 4.5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sense {
    key: u8,
    code: u8,
    qualifier: u8,
}

impl Sense {
    const fn new(key: u8, code: u8, qualifier: u8) -> Sense {
        Sense { key, code, qualifier }
    }

    /// No reason.
    const NONE: Sense = Sense::new(0, 0, 0);
    const READ_FAILED: Sense = Sense::new(3, 0x11, 0);
    const WRITE_FAILED: Sense = Sense::new(3, 0x0c, 0);
    const NO_COMMAND: Sense = Sense::new(5, 0x20, 0);
    const OUT_OF_RANGE: Sense = Sense::new(5, 0x21, 0);
    const WRONG_FIELD: Sense = Sense::new(5, 0x24, 0);
    const NO_UNIT: Sense = Sense::new(5, 0x25, 0);
    const WRITE_PROTECTED: Sense = Sense::new(7, 0x27, 0);

    /// What kind of reason it is.
    pub fn key(self) -> u8 {
        self.key
    }

    /// In the fixed format, 18 bytes.
    fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; 18];
        (bytes[0], bytes[2], bytes[7]) = (0x70, self.key, 10);
        (bytes[12], bytes[13]) = (self.code, self.qualifier);
        bytes
    }
}

/// What a medium is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// A disk with sectors of 512 bytes.
    #[default]
    Disk,
    /// A CD-ROM with blocks of 2,048 bytes, which cannot be written.
    Cdrom,
}

/// What follows a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Its status.
    Status(u8),
    /// These bytes for the host, then a good status.
    Answer(Vec<u8>),
    /// So many bytes of the medium from `start` on, then the status.
    Read {
        /// The first byte.
        start: u64,
        /// How many.
        bytes: u64,
    },
    /// So many bytes from the host for the medium from `start` on, then the status.
    Write {
        /// The first byte.
        start: u64,
        /// How many.
        bytes: u64,
    },
}

/// Bytes of a command of the operation's group (SPC-3, section 4.3.3).
pub fn command_bytes(operation: u8) -> usize {
    match operation >> 5 {
        0 => 6,
        1 | 2 => 10,
        5 => 12,
        _ => COMMAND_BYTES_MAX,
    }
}

/// A disk or a CD-ROM.
pub struct Unit {
    disk: Disk,
    medium: Medium,
    /// Why the last command was not done.
    sense: Sense,
}

impl Unit {
    /// A unit of this medium.
    pub fn new(disk: Disk, medium: Medium) -> Unit {
        let sense = Sense::NONE;
        Unit { disk, medium, sense }
    }

    /// Why the last command was not done, to be saved.
    pub fn sense(&self) -> Sense {
        self.sense
    }

    /// Goes on with sense data that were saved.
    pub fn restore(&mut self, sense: Sense) {
        self.sense = sense;
    }

    /// Takes a command for a logical unit; bytes that it does not have count as zero.
    pub fn command(&mut self, unit: u8, command: &[u8]) -> Reply {
        let mut padded = [0; COMMAND_BYTES_MAX];
        let length = command.len().min(COMMAND_BYTES_MAX);
        padded[..length].copy_from_slice(&command[..length]);
        let sense = std::mem::take(&mut self.sense);
        match self.perform(unit, &padded, sense) {
            Ok(reply) => reply,
            Err(sense) => self.fail(sense),
        }
    }

    /// Reads from the medium, as [`Reply::Read`] said; false if that fails, and the status is CHECK CONDITION then.
    pub fn read(&mut self, start: u64, bytes: &mut [u8]) -> bool {
        let result = self.disk.read(start, bytes);
        self.note(result, Sense::READ_FAILED)
    }

    /// Writes to the medium, as [`Reply::Write`] said; false if that fails, and the status is CHECK CONDITION then.
    pub fn write(&mut self, start: u64, bytes: &[u8]) -> bool {
        let result = self.disk.write(start, bytes);
        self.note(result, Sense::WRITE_FAILED)
    }

    fn note(&mut self, result: io::Result<()>, sense: Sense) -> bool {
        if result.is_err() {
            self.sense = sense;
        }
        result.is_ok()
    }

    fn fail(&mut self, sense: Sense) -> Reply {
        self.sense = sense;
        Reply::Status(STATUS_CHECK_CONDITION)
    }

    fn perform(&mut self, unit: u8, command: &[u8; 16], sense: Sense) -> Result<Reply, Sense> {
        let good = Ok(Reply::Status(STATUS_GOOD));
        let word = |at| {
            u64::from(u32::from_be_bytes([
                command[at],
                command[at + 1],
                command[at + 2],
                command[at + 3],
            ]))
        };
        let half = |at: usize| u64::from(command[at]) << 8 | u64::from(command[at + 1]);
        let long = word(2) << 32 | word(6);
        match command[0] {
            operation::INQUIRY => self.inquiry(unit, command),
            operation::REQUEST_SENSE if unit != 0 => {
                Ok(answer(Sense::NO_UNIT.bytes(), u64::from(command[4])))
            }
            operation::REQUEST_SENSE => Ok(answer(sense.bytes(), u64::from(command[4]))),
            operation::REPORT_LUNS => Ok(answer(
                vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                word(6),
            )),
            _ if unit != 0 => Err(Sense::NO_UNIT),
            operation::TEST_UNIT_READY
            | operation::REZERO_UNIT
            | operation::RESERVE_6
            | operation::RELEASE_6
            | operation::START_STOP
            | operation::PREVENT_REMOVAL
            | operation::SEEK_10 => good,
            // With bytes to compare it would have a phase of its own.
            operation::VERIFY_10 if command[1] & 2 == 0 => good,
            operation::SYNCHRONIZE_10 | operation::SYNCHRONIZE_16 => {
                self.disk.flush().map_err(|_| Sense::WRITE_FAILED)?;
                good
            }
            operation::READ_6 | operation::WRITE_6 => {
                let block = (word(0) & 0x1f_ffff) as u32;
                let blocks = if command[4] == 0 {
                    256
                } else {
                    u64::from(command[4])
                };
                self.transfer(command[0] == operation::WRITE_6, u64::from(block), blocks)
            }
            operation::READ_10 => self.transfer(false, word(2), half(7)),
            operation::WRITE_10 => self.transfer(true, word(2), half(7)),
            operation::READ_12 => self.transfer(false, word(2), word(6)),
            operation::WRITE_12 => self.transfer(true, word(2), word(6)),
            operation::READ_16 => self.transfer(false, long, word(10)),
            operation::WRITE_16 => self.transfer(true, long, word(10)),
            operation::READ_CAPACITY_10 => {
                let last = u32::try_from(self.blocks() - 1).unwrap_or(u32::MAX);
                let mut bytes = last.to_be_bytes().to_vec();
                bytes.extend((self.block() as u32).to_be_bytes());
                Ok(Reply::Answer(bytes))
            }
            operation::SERVICE_IN_16 if command[1] & 0x1f == READ_CAPACITY_16 => {
                let mut bytes = (self.blocks() - 1).to_be_bytes().to_vec();
                bytes.extend((self.block() as u32).to_be_bytes());
                bytes.resize(32, 0);
                Ok(answer(bytes, word(10)))
            }
            operation::MODE_SENSE_6 => {
                let pages = self.mode_pages(command[2])?;
                let mut bytes = vec![3 + pages.len() as u8, 0, self.protection(), 0];
                bytes.extend(pages);
                Ok(answer(bytes, u64::from(command[4])))
            }
            operation::MODE_SENSE_10 => {
                let pages = self.mode_pages(command[2])?;
                let mut bytes = vec![0, 6 + pages.len() as u8, 0, self.protection(), 0, 0, 0, 0];
                bytes.extend(pages);
                Ok(answer(bytes, half(7)))
            }
            operation::READ_TOC if self.medium == Medium::Cdrom => self.contents(command, half(7)),
            _ => Err(Sense::NO_COMMAND),
        }
    }

    /// Bytes of a block.
    fn block(&self) -> u64 {
        match self.medium {
            Medium::Disk => SECTOR,
            Medium::Cdrom => CD_BLOCK,
        }
    }

    /// How many blocks there are; at least one, since what is left over of a CD-ROM's last block reads as a block.
    fn blocks(&self) -> u64 {
        (self.disk.size() / self.block()).max(1)
    }

    fn transfer(&self, writes: bool, block: u64, blocks: u64) -> Result<Reply, Sense> {
        let start = block.checked_mul(self.block()).ok_or(Sense::OUT_OF_RANGE)?;
        let bytes = blocks * self.block();
        if !self.disk.holds(start, bytes) {
            return Err(Sense::OUT_OF_RANGE);
        }
        match writes {
            _ if bytes == 0 => Ok(Reply::Status(STATUS_GOOD)),
            false => Ok(Reply::Read { start, bytes }),
            true if self.protection() != 0 => Err(Sense::WRITE_PROTECTED),
            true if self.disk.takes(start, bytes) => Ok(Reply::Write { start, bytes }),
            true => Err(Sense::WRITE_FAILED),
        }
    }

    fn inquiry(&self, unit: u8, command: &[u8; 16]) -> Result<Reply, Sense> {
        let room = u64::from(command[3]) << 8 | u64::from(command[4]);
        let kind = match self.medium {
            _ if unit != 0 => 0x7f,
            Medium::Disk => 0,
            Medium::Cdrom => 5,
        };
        if command[1] & 1 == 0 {
            let removable = if self.medium == Medium::Cdrom { 0x80 } else { 0 };
            // SPC-3; the rest is 31 bytes long; neither wide nor synchronous, no queue of commands.
            let mut bytes = vec![kind, removable, 5, 2, 31, 0, 0, 0];
            bytes.extend(b"SIDESTEP");
            bytes.extend(match self.medium {
                Medium::Disk => b"DISK            ",
                Medium::Cdrom => b"CD-ROM          ",
            });
            bytes.extend(b"1.0 ");
            return Ok(answer(bytes, room));
        }
        let page: &[u8] = match command[2] {
            0x00 => &[0x00, 0x80],
            0x80 => b"sidestep",
            _ => return Err(Sense::WRONG_FIELD),
        };
        let mut bytes = vec![kind, command[2], 0, page.len() as u8];
        bytes.extend(page);
        Ok(answer(bytes, room))
    }

    /// The byte of a mode header that says whether the medium is write-protected.
    fn protection(&self) -> u8 {
        let is_protected = self.disk.is_read_only() || self.medium == Medium::Cdrom;
        if is_protected { 0x80 } else { 0 }
    }

    /// Mode pages: what byte 2 of the command asks for. No values can be changed.
    fn mode_pages(&self, which: u8) -> Result<Vec<u8>, Sense> {
        const SAVED: u8 = 3;
        const CHANGEABLE: u8 = 1;
        if which >> 6 == SAVED {
            return Err(Sense::new(5, 0x39, 0));
        }
        // Caching: writes wait for SYNCHRONIZE CACHE.
        let mut caching = vec![0; 20];
        (caching[0], caching[1], caching[2]) = (0x08, 18, 4);
        // Capabilities: a CD-ROM that reads, in a tray that stays shut.
        let mut capabilities = vec![0; 22];
        (capabilities[0], capabilities[1]) = (0x2a, 20);
        let page = match self.medium {
            Medium::Disk => caching,
            Medium::Cdrom => capabilities,
        };
        match which & 0x3f {
            wanted if wanted == 0x3f || wanted == page[0] => {}
            _ => return Err(Sense::WRONG_FIELD),
        }
        let mut page = page;
        if which >> 6 == CHANGEABLE {
            page[2..].fill(0);
        }
        Ok(page)
    }

    /// The table of contents: one track of data, and the end.
    fn contents(&self, command: &[u8; 16], room: u64) -> Result<Reply, Sense> {
        const LEAD_OUT: u8 = 0xaa;
        const DATA: u8 = 0x14;
        let in_minutes = command[1] & 2 != 0;
        let place = |block: u64| {
            let frames = block + 150;
            let minutes = [
                0,
                (frames / 75 / 60) as u8,
                (frames / 75 % 60) as u8,
                (frames % 75) as u8,
            ];
            if in_minutes {
                minutes
            } else {
                (block as u32).to_be_bytes()
            }
        };
        let mut bytes = vec![0, 0, 1, 1];
        match command[2] & 0xf {
            0 if command[6] <= 1 || command[6] == LEAD_OUT => {
                if command[6] != LEAD_OUT {
                    bytes.extend([0, DATA, 1, 0]);
                    bytes.extend(place(0));
                }
                bytes.extend([0, DATA, LEAD_OUT, 0]);
                bytes.extend(place(self.blocks()));
            }
            1 => {
                bytes.extend([0, DATA, 1, 0]);
                bytes.extend(place(0));
            }
            _ => return Err(Sense::WRONG_FIELD),
        }
        bytes[1] = bytes.len() as u8 - 2;
        Ok(answer(bytes, room))
    }
}

/// As much of an answer as there is room for; without any, there is only the status.
fn answer(mut bytes: Vec<u8>, room: u64) -> Reply {
    bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
    match bytes.is_empty() {
        true => Reply::Status(STATUS_GOOD),
        false => Reply::Answer(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn unit(medium: Medium, read_only: bool) -> (tempfile::NamedTempFile, Unit) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&[7; 16 << 10]).expect("written");
        let disk = Disk::open(file.path(), read_only).expect("a disk");
        (file, Unit::new(disk, medium))
    }

    fn sense(unit: &mut Unit) -> [u8; 2] {
        match unit.command(0, &[operation::REQUEST_SENSE, 0, 0, 0, 18, 0]) {
            Reply::Answer(bytes) => [bytes[2], bytes[12]],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn blocks_are_the_mediums() {
        let (_file, mut disk) = unit(Medium::Disk, false);
        let capacity = disk.command(0, &[operation::READ_CAPACITY_10]);
        assert_eq!(capacity, Reply::Answer(vec![0, 0, 0, 31, 0, 0, 2, 0]));
        let read = disk.command(0, &[operation::READ_10, 0, 0, 0, 0, 30, 0, 0, 2, 0]);
        assert_eq!(
            read,
            Reply::Read {
                start: 30 * 512,
                bytes: 1024
            }
        );
        let whole = disk.command(0, &[operation::READ_6, 0, 0, 0, 32, 0]);
        assert_eq!(
            whole,
            Reply::Read {
                start: 0,
                bytes: 16 << 10
            }
        );
        let (_file, mut cd) = unit(Medium::Cdrom, true);
        let capacity = cd.command(0, &[operation::READ_CAPACITY_10]);
        assert_eq!(capacity, Reply::Answer(vec![0, 0, 0, 7, 0, 0, 8, 0]));
        let write = cd.command(0, &[operation::WRITE_10, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(write, Reply::Status(STATUS_CHECK_CONDITION));
        assert_eq!(sense(&mut cd), [7, 0x27]);
    }

    #[test]
    fn what_is_behind_the_end_is_refused_whatever_its_size() {
        let (_file, mut disk) = unit(Medium::Disk, false);
        let far = |operation: u8| {
            let mut command = [0xff; 16];
            (command[0], command[1]) = (operation, 0);
            command
        };
        for operation in [
            operation::READ_10,
            operation::WRITE_12,
            operation::READ_16,
            operation::WRITE_16,
        ] {
            let reply = disk.command(0, &far(operation));
            assert_eq!(reply, Reply::Status(STATUS_CHECK_CONDITION));
            assert_eq!(sense(&mut disk), [5, 0x21]);
            assert_eq!(sense(&mut disk), [0, 0], "told once");
        }
    }

    #[test]
    fn there_is_one_logical_unit() {
        let (_file, mut disk) = unit(Medium::Disk, false);
        let Reply::Answer(other) = disk.command(3, &[operation::INQUIRY, 0, 0, 0, 36, 0]) else {
            panic!("every unit answers");
        };
        assert_eq!((other[0], other.len()), (0x7f, 36));
        assert_eq!(disk.command(3, &[0; 6]), Reply::Status(STATUS_CHECK_CONDITION));
        let short = disk.command(0, &[operation::INQUIRY, 0, 0, 0, 5, 0]);
        assert_eq!(short, Reply::Answer(vec![0, 0, 5, 2, 31]));
    }

    #[test]
    fn a_read_only_disk_says_so() {
        let (_file, mut disk) = unit(Medium::Disk, true);
        let Reply::Answer(mode) = disk.command(0, &[operation::MODE_SENSE_6, 0, 0x3f, 0, 255, 0]) else {
            panic!("it has pages");
        };
        assert_eq!((usize::from(mode[0]) + 1, mode[2]), (mode.len(), 0x80));
        let write = disk.command(0, &[operation::WRITE_6, 0, 0, 0, 1, 0]);
        assert_eq!(write, Reply::Status(STATUS_CHECK_CONDITION));
    }
}
