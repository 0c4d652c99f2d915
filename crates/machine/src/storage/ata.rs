//! A disk that takes ATA commands (ATA8-ACS, as far as drivers of hosts with DMA use them).

use super::disk::{Disk, SECTOR};

/// Bytes of what IDENTIFY answers.
pub const IDENTITY_BYTES: usize = 512;

/// Numbers of commands.
pub(crate) mod operation {
    pub const READ_SECTORS: u8 = 0x20;
    pub const READ_SECTORS_EXT: u8 = 0x24;
    pub const READ_DMA_EXT: u8 = 0x25;
    pub const READ_NATIVE_MAX_EXT: u8 = 0x27;
    pub const READ_MULTIPLE_EXT: u8 = 0x29;
    pub const WRITE_SECTORS: u8 = 0x30;
    pub const WRITE_SECTORS_EXT: u8 = 0x34;
    pub const WRITE_DMA_EXT: u8 = 0x35;
    pub const WRITE_MULTIPLE_EXT: u8 = 0x39;
    pub const READ_VERIFY: u8 = 0x40;
    pub const READ_VERIFY_EXT: u8 = 0x42;
    pub const INITIALIZE_PARAMETERS: u8 = 0x91;
    pub const PACKET: u8 = 0xa0;
    pub const IDENTIFY_PACKET: u8 = 0xa1;
    pub const READ_MULTIPLE: u8 = 0xc4;
    pub const WRITE_MULTIPLE: u8 = 0xc5;
    pub const SET_MULTIPLE: u8 = 0xc6;
    pub const READ_DMA: u8 = 0xc8;
    pub const WRITE_DMA: u8 = 0xca;
    pub const STANDBY_IMMEDIATE: u8 = 0xe0;
    pub const IDLE_IMMEDIATE: u8 = 0xe1;
    pub const STANDBY: u8 = 0xe2;
    pub const IDLE: u8 = 0xe3;
    pub const CHECK_POWER: u8 = 0xe5;
    pub const FLUSH: u8 = 0xe7;
    pub const FLUSH_EXT: u8 = 0xea;
    pub const IDENTIFY: u8 = 0xec;
    pub const SET_FEATURES: u8 = 0xef;
    pub const READ_NATIVE_MAX: u8 = 0xf8;
}

/// A command, as the registers of a device have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub operation: u8,
    /// How.
    pub feature: u8,
    /// The block's number: 48 bits, of which older commands use 24.
    pub block: u64,
    /// The device register, whose lowest bits are the block's next for older commands.
    pub device: u8,
    /// How many blocks: 16 bits, of which older commands use 8.
    pub count: u16,
}

/// What follows a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is done.
    Done,
    /// It is done, and these are the count and the block of its answer.
    Values {
        /// The register that counts blocks.
        count: u16,
        /// The block.
        block: u64,
    },
    /// These bytes for the host.
    Answer(Vec<u8>),
    /// Bytes of the disk for the host.
    Read(Transfer),
    /// Bytes of the host for the disk.
    Write(Transfer),
}

/// Which bytes of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The first byte.
    pub start: u64,
    /// How many.
    pub bytes: u64,
    /// Whether the processor would move them, if there were no controller that does.
    pub by_processor: bool,
}

/// A command that is not one of the device's, or that it cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted;

/// How a command says which blocks it is for.
#[derive(Clone, Copy)]
enum Form {
    /// 28 bits of a block's number and 8 of a count.
    Short,
    /// 48 and 16.
    Long,
}

/// The disk.
pub struct Drive {
    disk: Disk,
}

impl Drive {
    /// Of this file.
    pub fn new(disk: Disk) -> Drive {
        Drive { disk }
    }

    /// Reads from the disk, as [`Reply::Read`] said.
    ///
    /// # Errors
    /// If the host cannot.
    pub fn read(&self, start: u64, bytes: &mut [u8]) -> Result<(), Aborted> {
        self.disk.read(start, bytes).map_err(|_| Aborted)
    }

    /// Writes to the disk, as [`Reply::Write`] said.
    ///
    /// # Errors
    /// If the host cannot.
    pub fn write(&mut self, start: u64, bytes: &[u8]) -> Result<(), Aborted> {
        self.disk.write(start, bytes).map_err(|_| Aborted)
    }

    /// Takes a command.
    ///
    /// # Errors
    /// If that is none that can be done.
    pub fn command(&mut self, command: Command) -> Result<Reply, Aborted> {
        use operation::*;
        const ACTIVE: u16 = 0xff;
        let (short, long) = (Form::Short, Form::Long);
        let transfer = |form, by_processor| self.transfer(command, form, by_processor);
        Ok(match command.operation {
            IDENTIFY => Reply::Answer(self.identity()),
            READ_DMA => Reply::Read(transfer(short, false)?),
            READ_DMA_EXT => Reply::Read(transfer(long, false)?),
            READ_SECTORS | READ_MULTIPLE => Reply::Read(transfer(short, true)?),
            READ_SECTORS_EXT | READ_MULTIPLE_EXT => Reply::Read(transfer(long, true)?),
            WRITE_DMA => Reply::Write(self.writable(transfer(short, false)?)?),
            WRITE_DMA_EXT => Reply::Write(self.writable(transfer(long, false)?)?),
            WRITE_SECTORS | WRITE_MULTIPLE => Reply::Write(self.writable(transfer(short, true)?)?),
            WRITE_SECTORS_EXT | WRITE_MULTIPLE_EXT => Reply::Write(self.writable(transfer(long, true)?)?),
            READ_VERIFY => transfer(short, false).map(|_| Reply::Done)?,
            READ_VERIFY_EXT => transfer(long, false).map(|_| Reply::Done)?,
            FLUSH | FLUSH_EXT => {
                self.disk.flush().map_err(|_| Aborted)?;
                Reply::Done
            }
            READ_NATIVE_MAX | READ_NATIVE_MAX_EXT => Reply::Values {
                count: 0,
                block: self.blocks() - 1,
            },
            CHECK_POWER => Reply::Values {
                count: ACTIVE,
                block: 0,
            },
            SET_FEATURES if has_feature(command.feature) => Reply::Done,
            SET_MULTIPLE | INITIALIZE_PARAMETERS | STANDBY_IMMEDIATE | IDLE_IMMEDIATE | STANDBY | IDLE => {
                Reply::Done
            }
            _ => return Err(Aborted),
        })
    }

    fn blocks(&self) -> u64 {
        self.disk.size() / SECTOR
    }

    fn transfer(&self, command: Command, form: Form, by_processor: bool) -> Result<Transfer, Aborted> {
        const ALL_BLOCKS: u8 = 1 << 6;
        // Cylinders, heads and sectors are not understood.
        if command.device & ALL_BLOCKS == 0 {
            return Err(Aborted);
        }
        let (block, count, most) = match form {
            Form::Short => {
                let high = u64::from(command.device & 0xf) << 24;
                (command.block & 0xff_ffff | high, command.count & 0xff, 1 << 8)
            }
            Form::Long => (command.block, command.count, 1 << 16),
        };
        let count = if count == 0 { most } else { u64::from(count) };
        let start = block.checked_mul(SECTOR).ok_or(Aborted)?;
        let bytes = count * SECTOR;
        match self.disk.holds(start, bytes) {
            true => Ok(Transfer {
                start,
                bytes,
                by_processor,
            }),
            false => Err(Aborted),
        }
    }

    fn writable(&self, transfer: Transfer) -> Result<Transfer, Aborted> {
        let takes = self.disk.takes(transfer.start, transfer.bytes);
        takes.then_some(transfer).ok_or(Aborted)
    }

    /// What the drive says of itself (ATA8-ACS, table 22).
    fn identity(&self) -> Vec<u8> {
        let blocks = self.blocks();
        let short_blocks = blocks.min(0x0fff_ffff);
        let mut words = common_identity("Sidestep disk");
        for (number, word) in [
            (0, 0x0040), // a disk that is not taken out
            (1, 16_383), // the geometry of every larger disk
            (3, 16),
            (6, 63),
            (47, 0x8010), // as many as 16 sectors at once
            (59, 0x0110),
            (60, short_blocks as u16),
            (61, (short_blocks >> 16) as u16),
            (82, 0x4020), // a cache of writes
            (83, 0x7400), // flushes it, and takes numbers of 48 bits
            (85, 0x4020),
            (86, 0x3400),
            (100, blocks as u16),
            (101, (blocks >> 16) as u16),
            (102, (blocks >> 32) as u16),
            (106, 0x4000),
        ] {
            words[number] = word;
        }
        identity_bytes(words)
    }
}

/// Whether a feature can be set: transfer modes, the cache of writes and looking ahead, which stay as they are.
fn has_feature(feature: u8) -> bool {
    matches!(feature, 0x02 | 0x03 | 0x55 | 0x82 | 0xaa)
}

/// What a CD-ROM that takes packets says of itself (ATA8-ACS, table 27).
pub fn packet_identity() -> Vec<u8> {
    let mut words = common_identity("Sidestep CD-ROM");
    for (number, word) in [
        (0, 0x85c0),  // a CD-ROM, taken out, packets of 12 bytes
        (82, 0x4010), // packets
        (83, 0x4000),
        (85, 0x4010),
    ] {
        words[number] = word;
    }
    identity_bytes(words)
}

/// What both say: names, and transfer modes up to Ultra DMA 5.
fn common_identity(model: &str) -> [u16; IDENTITY_BYTES / 2] {
    let mut words = [0; IDENTITY_BYTES / 2];
    for (number, word) in [
        (49, 0x0b00), // DMA, and numbers of blocks
        (50, 0x4000),
        (53, 0x0006), // words 64 to 70 and 88 say something
        (63, 0x0007),
        (64, 0x0003),
        (65, 120),
        (66, 120),
        (67, 120),
        (68, 120),
        (76, 0x0002), // Serial ATA's first speed
        (80, 0x01f0), // up to ATA8-ACS
        (84, 0x4000),
        (87, 0x4000),
        (88, 0x203f),
    ] {
        words[number] = word;
    }
    for (place, text) in [(10..20, "sidestep"), (23..27, "1.0"), (27..47, model)] {
        let mut bytes = text.bytes().chain(std::iter::repeat(b' '));
        for word in &mut words[place] {
            // The first letter of two is in the high half.
            *word = [(); 2]
                .map(|()| bytes.next().map_or(0, u16::from))
                .into_iter()
                .fold(0, |word, byte| word << 8 | byte);
        }
    }
    words
}

/// With the checksum that makes the sum of all bytes zero.
fn identity_bytes(words: [u16; IDENTITY_BYTES / 2]) -> Vec<u8> {
    const SIGNATURE: u8 = 0xa5;
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u16::to_le_bytes).collect();
    bytes[IDENTITY_BYTES - 2] = SIGNATURE;
    let sum = bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte));
    bytes[IDENTITY_BYTES - 1] = sum.wrapping_neg();
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const BLOCKS: u64 = 16;

    fn drive(read_only: bool) -> Drive {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&[7; (BLOCKS * SECTOR) as usize]).expect("written");
        Drive::new(Disk::open(file.path(), read_only).expect("a disk"))
    }

    fn command(operation: u8, block: u64, count: u16) -> Command {
        Command {
            operation,
            block,
            count,
            device: 1 << 6,
            ..Command::default()
        }
    }

    #[test]
    fn a_drive_says_what_it_is() {
        let Ok(Reply::Answer(bytes)) = drive(false).command(command(operation::IDENTIFY, 0, 0)) else {
            panic!("an answer");
        };
        let sum = |bytes: &[u8]| bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte));
        assert_eq!((bytes.len(), sum(&bytes)), (IDENTITY_BYTES, 0));
        assert_eq!(bytes[120..124], [BLOCKS as u8, 0, 0, 0]);
        assert_eq!(&bytes[54..68], b"iSedtsped si k", "bytes of words are swapped");
        assert_eq!(sum(&packet_identity()), 0);
    }

    #[test]
    fn a_drive_that_is_read_only_takes_no_writes() {
        let write = command(operation::WRITE_DMA, 0, 1);
        assert!(matches!(drive(false).command(write), Ok(Reply::Write(_))));
        assert_eq!(drive(true).command(write), Err(Aborted));
    }

    proptest! {
        #[test]
        fn transfers_are_within_the_disk(
            operation in any::<u8>(), block in 0u64..(1 << 48), count in any::<u16>(), device in any::<u8>(),
            small in any::<bool>(),
        ) {
            let block = if small { block % (2 * BLOCKS) } else { block };
            let command = Command { operation, feature: 0, block, device, count };
            if let Ok(Reply::Read(transfer) | Reply::Write(transfer)) = drive(false).command(command) {
                prop_assert!(transfer.bytes > 0 && transfer.start + transfer.bytes <= BLOCKS * SECTOR);
            }
        }
    }
}
