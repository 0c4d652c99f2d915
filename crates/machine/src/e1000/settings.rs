//! What the adapter keeps without power: 64 words behind a Microwire bus of four lines (section 5 of the manual), whose
//! drivers raise and lower the lines themselves, or ask for a word by its number.

use serde::{Deserialize, Serialize};

use crate::virtio::network::HardwareAddress;

/// Words that are kept.
pub const WORDS: usize = 64;
/// What all words add up to.
const SUM: u16 = 0xbaba;

/// Lines and states of the control register.
pub mod line {
    pub const CLOCK: u32 = 1 << 0;
    pub const SELECT: u32 = 1 << 1;
    pub const IN: u32 = 1 << 2;
    pub const OUT: u32 = 1 << 3;
    pub const REQUEST: u32 = 1 << 6;
    pub const GRANTED: u32 = 1 << 7;
    pub const PRESENT: u32 = 1 << 8;
}

/// Bits of a command: a start bit, two of what to do, six of where.
const COMMAND_BITS: u8 = 9;
/// Start bit and operation of a command that reads.
const READ: u16 = 0b110;

/// The words and the state of the bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    words: Vec<u16>,
    /// The lines that the driver holds.
    lines: u32,
    /// What has come of a command, and how many bits that is; none before its start bit.
    command: u16,
    bits: u8,
    /// What is still to be sent, from the top, and how many bits of it.
    output: u16,
    left: u8,
    /// The word that follows.
    next: u8,
    /// What the line from the memory carries.
    out: bool,
}

impl Settings {
    /// Of an adapter with this address and these numbers on the PCI bus.
    pub fn new(address: HardwareAddress, vendor: u16, device: u16, subsystem: u16) -> Settings {
        let mut words = vec![0; WORDS];
        for (word, bytes) in words.iter_mut().zip(address.chunks_exact(2)) {
            *word = u16::from_le_bytes([bytes[0], bytes[1]]);
        }
        // The lights as they are by default; the numbers that follow are valid and to be loaded; the subsystem and who
        // made it; the device and who made that; pauses may be asked for.
        for (number, word) in [
            (0x04, 0xffff),
            (0x0a, 0x400b),
            (0x0b, subsystem),
            (0x0c, vendor),
            (0x0d, device),
            (0x0e, vendor),
            (0x0f, 0x3040),
        ] {
            words[number] = word;
        }
        let sum = words.iter().fold(0u16, |sum, &word| sum.wrapping_add(word));
        words[WORDS - 1] = SUM.wrapping_sub(sum);
        Settings {
            words,
            lines: 0,
            command: 0,
            bits: 0,
            output: 0,
            left: 0,
            next: 0,
            out: true,
        }
    }

    /// Whether this is as much as is kept.
    pub fn is_sound(&self) -> bool {
        self.words.len() == WORDS
    }

    /// The word of this number; the highest bits of a number do not count.
    pub fn word(&self, number: u8) -> u16 {
        self.words[usize::from(number) % WORDS]
    }

    /// What the control register says.
    pub fn load(&self) -> u32 {
        let granted = match self.lines & line::REQUEST {
            0 => 0,
            _ => line::GRANTED,
        };
        let out = if self.out { line::OUT } else { 0 };
        self.lines | granted | out | line::PRESENT
    }

    /// The driver sets its lines. Nothing can be written: commands that would are not answered.
    pub fn store(&mut self, value: u32) {
        let before = self.lines;
        self.lines = value & (line::CLOCK | line::SELECT | line::IN | line::REQUEST);
        if self.lines & line::SELECT == 0 {
            (self.command, self.bits, self.left) = (0, 0, 0);
            self.out = true;
            return;
        }
        if self.lines & !before & line::CLOCK == 0 {
            return;
        }
        if self.bits < COMMAND_BITS {
            let bit = u16::from(self.lines & line::IN != 0);
            // Zeros before a command are not part of it.
            if self.bits > 0 || bit == 1 {
                self.command = self.command << 1 | bit;
                self.bits += 1;
            }
            if self.bits == COMMAND_BITS && self.command >> 6 == READ {
                self.next = (self.command & 0x3f) as u8;
                // A zero comes before the first word.
                self.out = false;
            }
        } else if self.command >> 6 == READ {
            if self.left == 0 {
                (self.output, self.left) = (self.word(self.next), 16);
                self.next = self.next.wrapping_add(1);
            }
            self.left -= 1;
            self.out = self.output >> self.left & 1 != 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: HardwareAddress = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];

    fn clock(settings: &mut Settings, bit: bool) -> bool {
        let input = if bit { line::IN } else { 0 };
        settings.store(line::SELECT | input);
        settings.store(line::SELECT | input | line::CLOCK);
        let out = settings.load() & line::OUT != 0;
        settings.store(line::SELECT | input);
        out
    }

    /// Reads words as a driver does that has nothing but the lines.
    fn read(settings: &mut Settings, first: u8, words: usize) -> Vec<u16> {
        settings.store(0);
        settings.store(line::SELECT);
        for bit in (0..COMMAND_BITS).rev() {
            let command = READ << 6 | u16::from(first);
            clock(settings, command >> bit & 1 != 0);
        }
        let word = |settings: &mut Settings| {
            (0..16).fold(0, |word, _| word << 1 | u16::from(clock(settings, false)))
        };
        (0..words).map(|_| word(settings)).collect()
    }

    #[test]
    fn words_come_bit_by_bit_and_add_up() {
        let mut settings = Settings::new(ADDRESS, 0x8086, 0x100e, 0x001e);
        assert_eq!(read(&mut settings, 0, 3), [0x5452, 0x1200, 0x5634]);
        assert_eq!(read(&mut settings, 0x0d, 2), [0x100e, 0x8086]);
        let all = read(&mut settings, 0, WORDS);
        assert_eq!(all.iter().fold(0u16, |sum, &word| sum.wrapping_add(word)), SUM);
        let direct: Vec<u16> = (0..WORDS as u8).map(|number| settings.word(number)).collect();
        assert_eq!(all, direct);
    }

    #[test]
    fn the_bus_is_granted_on_request_and_writes_change_nothing() {
        let mut settings = Settings::new(ADDRESS, 0x8086, 0x100e, 0x001e);
        let before = read(&mut settings, 0, WORDS);
        assert_eq!(settings.load() & line::GRANTED, 0);
        settings.store(line::REQUEST);
        assert_ne!(settings.load() & line::GRANTED, 0);
        settings.store(line::SELECT);
        for _ in 0..100 {
            clock(&mut settings, true);
        }
        assert_eq!(read(&mut settings, 0, WORDS), before);
    }
}
