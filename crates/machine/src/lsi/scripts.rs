//! SCRIPTS: the instructions of the controller's own processor (technical manual, chapter 5).
//!
//! An instruction is two words, of which the first begins with its kind; memory moves, and block moves with addresses
//! of 64 bits, have a third.

use sidestep_ia64::PhysicalAddress;

use super::nexus::{BusFault, Nexus, Phase};
use super::registers::{at, bit};
use super::{BYTES_MAX, HOST, INSTRUCTIONS_MAX, RAM_BYTES, Run, State};
use crate::pci::configuration::Space;

/// Kinds of instructions: bits 31 and 30 of the first word.
mod kind {
    pub const BLOCK_MOVE: u32 = 0;
    pub const INPUT_OUTPUT: u32 = 1;
    pub const TRANSFER_CONTROL: u32 = 2;
}

/// Bytes that a memory move copies at once.
const PIECE: u64 = 4096;

/// Why SCRIPTS stop: a cause in DSTAT.
struct Stop(u8);

impl From<BusFault> for Stop {
    fn from(_: BusFault) -> Stop {
        Stop(bit::DSTAT_BUS_FAULT)
    }
}

const ILLEGAL: Stop = Stop(bit::DSTAT_ILLEGAL);

/// Bits `high` to `low` of a word.
fn field(word: u32, high: u32, low: u32) -> u32 {
    word >> low & (u32::MAX >> (31 - (high - low)))
}

fn has(word: u32, bit: u32) -> bool {
    word >> bit & 1 != 0
}

/// The 24-bit displacement of relative addresses, with its sign.
fn displacement(word: u32) -> u32 {
    ((word << 8) as i32 >> 8) as u32
}

/// The memory that SCRIPTS reach: the machine's, and the controller's own.
struct Reach<'a> {
    memory: &'a crate::pci::mastering::BusMaster,
    ram: &'a mut [u8],
    place: &'a crate::pci::configuration::Place,
}

impl Reach<'_> {
    /// Where in the controller's own RAM these bytes are.
    fn own(&self, address: u64, size: usize) -> Option<usize> {
        let offset = self.place.offset(Space::Memory, address, size as u64)?;
        offset
            .checked_sub(u64::from(RAM_BYTES))
            .map(|offset| offset as usize)
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), BusFault> {
        if let Some(own) = self.own(address, bytes.len()) {
            bytes.copy_from_slice(&self.ram[own..][..bytes.len()]);
            return Ok(());
        }
        self.memory
            .read_ram(PhysicalAddress(address), bytes)
            .map_err(|_| BusFault)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusFault> {
        if let Some(own) = self.own(address, bytes.len()) {
            self.ram[own..][..bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        self.memory
            .write_ram(PhysicalAddress(address), bytes)
            .map_err(|_| BusFault)
    }
}

/// Whether an instruction waits for what a selected target does: to move bytes, to disconnect, or to enter a phase.
fn needs_target(first: u32) -> bool {
    const WAIT_DISCONNECT: u32 = 1;
    const WAIT: u32 = 16;
    match first >> 30 {
        kind::BLOCK_MOVE => true,
        kind::INPUT_OUTPUT => field(first, 29, 27) == WAIT_DISCONNECT,
        kind::TRANSFER_CONTROL => has(first, WAIT),
        _ => false,
    }
}

impl State {
    /// Runs SCRIPTS until they stop or wait, or a turn is over; answers how many bytes they have moved.
    pub(super) fn run_scripts(&mut self) -> u64 {
        let mut moved = 0;
        for _ in 0..INSTRUCTIONS_MAX {
            if self.run != Run::Running || moved >= BYTES_MAX {
                break;
            }
            match self.execute() {
                Ok(bytes) => moved += bytes,
                Err(Stop(cause)) => self.raise_dma(cause),
            }
            if self.run == Run::Running && self.registers.has(at::DCNTL, bit::DCNTL_SINGLE_STEP) {
                self.raise_dma(bit::DSTAT_SINGLE_STEP);
            }
        }
        moved
    }

    fn reach(&mut self) -> Reach<'_> {
        Reach {
            memory: &self.memory,
            ram: &mut self.ram,
            place: &self.place,
        }
    }

    fn read_word(&mut self, address: u64) -> Result<u32, Stop> {
        let mut bytes = [0; 4];
        self.reach().read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// An address whose upper half is in a register.
    fn address(&self, high: u8, low: u32) -> u64 {
        u64::from(self.registers.word(high)) << 32 | u64::from(low)
    }

    /// The next word of the instruction.
    fn fetch(&mut self) -> Result<u32, Stop> {
        let pointer = self.registers.word(at::DSP);
        let word = self.read_word(self.address(at::SFS, pointer))?;
        self.registers.set_word(at::DSP, pointer.wrapping_add(4));
        Ok(word)
    }

    /// Executes an instruction; answers how many bytes it has moved.
    fn execute(&mut self) -> Result<u64, Stop> {
        let start = self.registers.word(at::DSP);
        let first = self.fetch()?;
        let second = self.fetch()?;
        self.registers.set_word(at::DBC, first);
        self.registers.set_word(at::DSPS, second);
        if self.selects_nobody && needs_target(first) {
            self.selects_nobody = false;
            self.run = Run::Stopped;
            self.raise_scsi(0, bit::SIST1_SELECTION);
            return Ok(0);
        }
        match first >> 30 {
            kind::BLOCK_MOVE => self.block_move(start, first, second),
            kind::INPUT_OUTPUT if field(first, 29, 27) < 5 => self.input_output(first, second).map(|()| 0),
            kind::INPUT_OUTPUT => {
                self.modify(first);
                Ok(0)
            }
            kind::TRANSFER_CONTROL => self.transfer_control(first, second).map(|()| 0),
            _ if has(first, 29) => self.load_store(first, second).map(|()| 0),
            _ => self.memory_move(first, second),
        }
    }

    /// The second word as an address to jump to, relative to the next instruction or not.
    fn destination(&self, word: u32, is_relative: bool) -> u32 {
        match is_relative {
            true => self.registers.word(at::DSP).wrapping_add(displacement(word)),
            false => word,
        }
    }

    fn jump(&mut self, destination: u32) {
        self.registers.set_word(at::DSP, destination);
    }

    /// The address of an entry of the table that DSA points to.
    fn table_entry(&self, offset: u32) -> u64 {
        let entry = self.registers.word(at::DSA).wrapping_add(displacement(offset));
        self.address(at::DRS, entry)
    }

    /// Count, address and the count's upper byte of a block move.
    fn operand(&mut self, first: u32, second: u32) -> Result<(u64, u64, u8), Stop> {
        const COUNT: u32 = 0xff_ffff;
        let extended = self.registers.get(at::CCNTL1);
        if has(first, 28) {
            let entry = self.table_entry(second);
            self.registers.set_word(at::ESA, entry as u32);
            let (count, low) = (self.read_word(entry)?, self.read_word(entry.wrapping_add(4))?);
            let upper = (count >> 24) as u8;
            let high = match () {
                () if extended & bit::CCNTL1_TABLE_64 == 0 => self.registers.word(at::SBMS),
                () if extended & bit::CCNTL1_TABLE_HIGH != 0 => u32::from(upper),
                // A number of a register: 16 scratch registers, then the selectors.
                () => match upper & 0x1f {
                    scratch @ 0..0x10 => self.registers.word(0x60 + 4 * scratch),
                    selector @ 0x10..0x16 => self.registers.word(at::MMRS + 4 * (selector - 0x10)),
                    _ => return Err(ILLEGAL),
                },
            };
            return Ok((
                u64::from(count & COUNT),
                u64::from(high) << 32 | u64::from(low),
                upper,
            ));
        }
        let mut address = self.address(at::SBMS, second);
        if extended & bit::CCNTL1_DIRECT_64 != 0 {
            address = u64::from(self.fetch()?) << 32 | u64::from(second);
        }
        if has(first, 29) {
            let low = self.read_word(address)?;
            address = self.address(at::SBMS, low);
        }
        Ok((u64::from(first & COUNT), address, (first >> 24) as u8))
    }

    fn block_move(&mut self, start: u32, first: u32, second: u32) -> Result<u64, Stop> {
        let (count, address, upper) = self.operand(first, second)?;
        let Some(nexus) = &self.nexus else {
            // Nobody will ask for a byte.
            self.run = Run::Stalled;
            return Ok(0);
        };
        if count == 0 {
            return Err(ILLEGAL);
        }
        let moved = if nexus.phase as u32 == field(first, 26, 24) {
            self.transfer(count, address)?
        } else {
            0
        };
        let left = (count - moved) as u32;
        let at_end = address.wrapping_add(moved) as u32;
        let cumulative = self.registers.word(at::CSBC).wrapping_add(moved as u32);
        self.registers.set_word(at::DBC, first & 0xff00_0000 | left);
        self.registers.set_word(at::DNAD, at_end);
        self.registers.set_word(at::SBC, moved as u32);
        self.registers.set_word(at::CSBC, cumulative);
        if left > 0 {
            self.registers.set_word(at::UA, at_end);
            self.registers.set_word(at::RBC, u32::from(upper) << 24 | left);
            self.registers.set_word(at::IA, start);
            self.mismatch(field(first, 24, 24) != 0);
        }
        Ok(moved)
    }

    /// The target wants another phase than the block move has.
    fn mismatch(&mut self, is_in: bool) {
        let control = self.registers.get(at::CCNTL0);
        if control & bit::CCNTL0_MISMATCH_JUMP == 0 {
            self.run = Run::Stopped;
            return self.raise_scsi(bit::SIST0_MISMATCH, 0);
        }
        // By direction, or by whether a byte of a wide transfer is left over, which never is.
        let second = control & bit::CCNTL0_BY_DIRECTION != 0 && is_in;
        let handler = if second { at::PMJAD2 } else { at::PMJAD1 };
        self.jump(self.registers.word(handler));
    }

    /// Moves bytes in the phase that the target is in; answers how many.
    fn transfer(&mut self, count: u64, address: u64) -> Result<u64, Stop> {
        let mut first = [0];
        let mut keeps_bus = true;
        let State {
            nexus: Some(nexus),
            memory,
            ram,
            place,
            units,
            registers,
            ..
        } = self
        else {
            return Ok(0);
        };
        let mut reach = Reach { memory, ram, place };
        let Some(unit) = &mut units[usize::from(nexus.target)] else {
            return Ok(0);
        };
        if !nexus.phase.is_in() {
            reach.read(address, &mut first)?;
        }
        let moved = match nexus.phase {
            Phase::MessageOut => {
                // What is longer is no message, and not worth reading.
                let mut bytes = vec![0; count.min(256) as usize];
                reach.read(address, &mut bytes)?;
                keeps_bus = nexus.take_message(&bytes);
                count
            }
            Phase::Command => {
                let mut bytes = vec![0; nexus.wants_of_command(first[0], count) as usize];
                reach.read(address, &mut bytes)?;
                nexus.take_command(unit, &bytes);
                bytes.len() as u64
            }
            Phase::DataOut => nexus.take(unit, count, |offset, bytes| {
                reach.read(address.wrapping_add(offset), bytes)
            })?,
            Phase::DataIn | Phase::Status | Phase::MessageIn => {
                nexus.give(unit, count, |offset, bytes| {
                    if let (0, Some(&byte)) = (offset, bytes.first()) {
                        first = [byte];
                    }
                    reach.write(address.wrapping_add(offset), bytes)
                })?
            }
        };
        registers.set(at::SFBR, first[0]);
        if !keeps_bus {
            self.nexus = None;
        }
        Ok(moved)
    }

    fn input_output(&mut self, first: u32, second: u32) -> Result<(), Stop> {
        const SELECT: u32 = 0;
        const WAIT_DISCONNECT: u32 = 1;
        const WAIT_RESELECT: u32 = 2;
        const SET: u32 = 3;
        const CARRY: u32 = 10;
        const ACKNOWLEDGE: u32 = 6;
        let alternative = self.destination(second, has(first, 26));
        match field(first, 29, 27) {
            SELECT => {
                let mut target = field(first, 19, 16) as u8;
                if has(first, 25) {
                    let entry = self.read_word(self.table_entry(first & 0xff_ffff))?;
                    self.registers.set(at::SCNTL3, (entry >> 24) as u8);
                    self.registers.set(at::SXFER, (entry >> 8) as u8);
                    target = (entry >> 16) as u8 & 0xf;
                }
                self.select(target, has(first, 24));
            }
            WAIT_DISCONNECT => {
                if self.nexus.is_some() {
                    self.run = Run::Stalled;
                }
            }
            WAIT_RESELECT => {
                self.registers.set_word(at::DNAD, alternative);
                self.run = Run::Waiting;
                if self.registers.has(at::ISTAT, bit::ISTAT_SIGNAL) {
                    self.wake();
                }
            }
            set_or_clear => {
                if has(first, CARRY) {
                    self.carry = set_or_clear == SET;
                }
                let acknowledges = set_or_clear != SET && has(first, ACKNOWLEDGE);
                if acknowledges && self.nexus.as_ref().is_some_and(Nexus::is_over) {
                    self.nexus = None;
                }
            }
        }
        Ok(())
    }

    /// SCRIPTS that wait go on where the wait says.
    pub(super) fn wake(&mut self) {
        self.run = Run::Running;
        self.jump(self.registers.word(at::DNAD));
    }

    /// Selects a target. Where there is none SCRIPTS go on until they need one, which is when the time for it is over:
    /// drivers tell by the instruction that waited.
    fn select(&mut self, target: u8, attention: bool) {
        self.registers.set(at::SDID, target);
        if target == HOST || self.units[usize::from(target)].is_none() {
            self.selects_nobody = true;
            return;
        }
        self.registers.set(at::SSID, target | 0x80);
        self.registers.set_word(at::CSBC, 0);
        self.nexus = Some(Nexus::new(target, attention));
        if self.registers.has(at::SIEN0, bit::SIST0_COMPLETE) {
            self.raise_scsi(bit::SIST0_COMPLETE, 0);
        }
    }

    /// Moves a register's value, changed, to SFBR or back or to itself.
    fn modify(&mut self, first: u32) {
        const FROM_SFBR: u32 = 5;
        const TO_SFBR: u32 = 6;
        let register = (field(first, 22, 16) | first & 0x80) as u8;
        let kind = field(first, 29, 27);
        let source = if kind == FROM_SFBR { at::SFBR } else { register };
        let value = self.load(source);
        let data = match has(first, 23) {
            true => self.registers.get(at::SFBR),
            false => field(first, 15, 8) as u8,
        };
        let carried = u16::from(self.carry);
        let result = match field(first, 26, 24) {
            0 => data,
            1 => {
                let shifted = value << 1 | carried as u8;
                self.carry = value & 0x80 != 0;
                shifted
            }
            2 => value | data,
            3 => value ^ data,
            4 => value & data,
            5 => {
                let shifted = value >> 1 | (carried as u8) << 7;
                self.carry = value & 1 != 0;
                shifted
            }
            operator => {
                let carried = if operator == 7 { carried } else { 0 };
                let sum = u16::from(value) + u16::from(data) + carried;
                self.carry = sum > 0xff;
                sum as u8
            }
        };
        let target = if kind == TO_SFBR { at::SFBR } else { register };
        self.store_own(target, result);
    }

    /// A store of SCRIPTS to a register. They are running already, and have a timer only by their driver.
    fn store_own(&mut self, register: u8, value: u8) {
        if register == at::SFBR {
            self.registers.set(register, value);
        } else {
            self.store(register, value);
        }
    }

    /// Whether a transfer of control happens: every test that it names comes out as bit 19 wants it.
    fn is_taken(&self, first: u32) -> bool {
        let phase = self.nexus.as_ref().map(|nexus| nexus.phase as u32);
        let ignored = field(first, 15, 8) as u8;
        let matches = (self.registers.get(at::SFBR) ^ first as u8) & !ignored == 0;
        let tests = [
            (21, self.carry),
            (17, phase == Some(field(first, 26, 24))),
            (18, matches),
        ];
        let wanted = has(first, 19);
        let mut named = tests.iter().filter(|(bit, _)| has(first, *bit)).peekable();
        match named.peek() {
            None => wanted,
            Some(_) => named.all(|&(_, outcome)| outcome == wanted),
        }
    }

    fn transfer_control(&mut self, first: u32, second: u32) -> Result<(), Stop> {
        const JUMP: u32 = 0;
        const CALL: u32 = 1;
        const RETURN: u32 = 2;
        const INTERRUPT: u32 = 3;
        let operation = field(first, 29, 27);
        if operation > INTERRUPT {
            return Err(ILLEGAL);
        }
        if !self.is_taken(first) {
            return Ok(());
        }
        let destination = self.destination(second, has(first, 23));
        match operation {
            JUMP => self.jump(destination),
            CALL => {
                let next = self.registers.word(at::DSP);
                self.registers.set_word(at::TEMP, next);
                self.jump(destination);
            }
            RETURN => self.jump(self.registers.word(at::TEMP)),
            // On the fly: SCRIPTS go on.
            _ if has(first, 20) => {
                self.registers.add(at::ISTAT, bit::ISTAT_ON_THE_FLY);
                self.update_line();
            }
            _ => return Err(Stop(bit::DSTAT_INTERRUPT)),
        }
        Ok(())
    }

    fn memory_move(&mut self, first: u32, second: u32) -> Result<u64, Stop> {
        let count = u64::from(first & 0xff_ffff);
        let to = self.fetch()?;
        self.registers.set_word(at::TEMP, to);
        let (from, to) = (self.address(at::MMRS, second), self.address(at::MMWS, to));
        let mut buffer = [0; PIECE as usize];
        let mut moved = 0;
        while moved < count {
            let piece = &mut buffer[..(count - moved).min(PIECE) as usize];
            let mut reach = self.reach();
            reach.read(from.wrapping_add(moved), piece)?;
            reach.write(to.wrapping_add(moved), piece)?;
            moved += piece.len() as u64;
        }
        Ok(moved)
    }

    fn load_store(&mut self, first: u32, second: u32) -> Result<(), Stop> {
        let count = field(first, 2, 0) as usize;
        let register = field(first, 23, 16) as u8;
        if !(1..=4).contains(&count) || usize::from(register % 4) + count > 4 {
            return Err(ILLEGAL);
        }
        let is_load = has(first, 24);
        let address = match (has(first, 28), is_load) {
            (true, _) => self.table_entry(second),
            (false, true) => self.address(at::MMRS, second),
            (false, false) => self.address(at::MMWS, second),
        };
        let mut bytes = [0; 4];
        if is_load {
            self.reach().read(address, &mut bytes[..count])?;
            for (place, &byte) in (0..).zip(&bytes[..count]) {
                self.store_own(register + place, byte);
            }
        } else {
            for (place, byte) in (0..).zip(&mut bytes[..count]) {
                *byte = self.load(register + place);
            }
            self.reach().write(address, &bytes[..count])?;
        }
        Ok(())
    }
}
