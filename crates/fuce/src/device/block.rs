//! A disk: sectors of 512 bytes that it moves to and from memory itself.
//!
//! | register | read | write |
//! | --- | --- | --- |
//! | 0 | kind | |
//! | 1 | handler | handler, continued to when a transfer is done |
//! | 2 | sector | first sector of the transfer |
//! | 3 | count | number of sectors |
//! | 4 | address | memory address, a multiple of 4 |
//! | 5 | status: 0 done, 1 under way, 2 refused: beyond the disk or the memory, or busy | 1 reads, 2 writes |
//! | 6 | sectors the disk has | |

use super::{Device, HANDLER, KIND, Kind, SignalLine};
use crate::memory::Memory;

/// Bytes of a sector.
pub const SECTOR_BYTES: u32 = 512;

const SECTOR: u32 = 2;
const COUNT: u32 = 3;
const ADDRESS: u32 = 4;
const COMMAND: u32 = 5;
const SECTORS: u32 = 6;

const DONE: u32 = 0;
const UNDER_WAY: u32 = 1;
const REFUSED: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

/// The disk.
pub struct Block {
    line: SignalLine,
    contents: Vec<u8>,
    changed: bool,
    access_cycles: u64,
    sector_cycles: u64,
    sector: u32,
    count: u32,
    address: u32,
    status: u32,
    transfer: Option<(u64, Direction)>,
}

impl Block {
    /// A disk with these contents, filled up with zeros to whole sectors. A transfer takes `access_cycles`, and
    /// `sector_cycles` more for each sector.
    pub fn new(mut contents: Vec<u8>, access_cycles: u64, sector_cycles: u64) -> Block {
        contents.resize(contents.len().next_multiple_of(SECTOR_BYTES as usize), 0);
        Block {
            line: SignalLine::new(),
            contents,
            changed: false,
            access_cycles,
            sector_cycles,
            sector: 0,
            count: 0,
            address: 0,
            status: DONE,
            transfer: None,
        }
    }

    /// What is on the disk.
    pub fn contents(&self) -> &[u8] {
        &self.contents
    }

    /// Whether anything was written.
    pub fn changed(&self) -> bool {
        self.changed
    }

    fn sectors(&self) -> u32 {
        (self.contents.len() / SECTOR_BYTES as usize) as u32
    }

    fn start(&mut self, direction: Direction, now: u64) {
        let fits = u64::from(self.sector) + u64::from(self.count) <= u64::from(self.sectors());
        if self.transfer.is_some() || !fits || self.count == 0 || !self.address.is_multiple_of(4) {
            self.status = REFUSED;
            self.line.raise();
            return;
        }
        self.status = UNDER_WAY;
        let ends = now + self.access_cycles.max(1) + self.sector_cycles * u64::from(self.count);
        self.transfer = Some((ends, direction));
    }

    /// Moves the bytes; the banks of every word are occupied as by any other access.
    fn transfer(&mut self, direction: Direction, now: u64, memory: &mut Memory) -> Option<()> {
        let length = self.count.checked_mul(SECTOR_BYTES)?;
        let start = self.sector as usize * SECTOR_BYTES as usize;
        let sectors = self.contents.get_mut(start..start + length as usize)?;
        let bytes = memory.bytes_mut(self.address, length)?;
        match direction {
            Direction::Read => bytes.copy_from_slice(sectors),
            Direction::Write => {
                sectors.copy_from_slice(bytes);
                self.changed = true;
            }
        }
        for offset in (0..length).step_by(4) {
            memory.reserve(self.address + offset, now);
        }
        Some(())
    }
}

impl Device for Block {
    fn read(&mut self, register: u32, _now: u64) -> u32 {
        match register {
            KIND => Kind::Block as u32,
            HANDLER => self.line.handler(),
            SECTOR => self.sector,
            COUNT => self.count,
            ADDRESS => self.address,
            COMMAND => self.status,
            SECTORS => self.sectors(),
            _ => 0,
        }
    }

    fn write(&mut self, register: u32, value: u32, now: u64) {
        match (register, value) {
            (HANDLER, _) => self.line.set_handler(value),
            (COMMAND, 1) => self.start(Direction::Read, now),
            (COMMAND, 2) => self.start(Direction::Write, now),
            // The transfer under way keeps the place it was given.
            _ if self.transfer.is_some() => {}
            (SECTOR, _) => self.sector = value,
            (COUNT, _) => self.count = value,
            (ADDRESS, _) => self.address = value,
            _ => {}
        }
    }

    fn next_event(&self) -> Option<u64> {
        self.transfer.map(|(ends, _)| ends)
    }

    fn advance(&mut self, now: u64, memory: &mut Memory) {
        if let Some((_, direction)) = self.transfer.take() {
            let moved = self.transfer(direction, now, memory);
            self.status = if moved.is_some() { DONE } else { REFUSED };
            self.line.raise();
        }
    }

    fn signal(&self) -> Option<u32> {
        self.line.target()
    }

    fn signal_taken(&mut self) {
        self.line.clear();
    }
}
