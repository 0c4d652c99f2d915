//! The console: text in and out of the serial port, for a terminal that understands VT-100's sequences and UTF-8.
//!
//! EFI 1.10, chapter 10: Simple Text Input and Output. There is one mode, 80 columns and 25 rows.

use std::collections::VecDeque;

use super::super::efi;
use super::guest::{Failure, Guest, Guid};
use super::memory::Memory;
use super::services::Service;
use crate::device::serial::Serial;

/// The protocol of input.
pub const INPUT: Guid = efi::guid(
    0x3874_77c1,
    0x69c7,
    0x11d2,
    [0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b],
);
/// The protocol of output.
pub const OUTPUT: Guid = efi::guid(
    0x3874_77c2,
    0x69c7,
    0x11d2,
    [0x8e, 0x39, 0, 0xa0, 0xc9, 0x69, 0x72, 0x3b],
);

/// Columns and rows.
pub const COLUMNS: i32 = 80;
/// As [`COLUMNS`].
pub const ROWS: i32 = 25;
/// The most characters that are printed at once.
const TEXT_MAX: usize = 64 << 10;
/// Light grey on black.
const ATTRIBUTE_USUAL: u8 = 7;

/// A key: a scan code, or a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// What it is, where it is no character.
    pub scan: u16,
    /// The character.
    pub character: u16,
}

impl Key {
    const ESCAPE: u16 = 0x17;

    fn character(character: u16) -> Key {
        Key { scan: 0, character }
    }

    fn scan(scan: u16) -> Key {
        Key { scan, character: 0 }
    }
}

/// Makes keys of bytes: UTF-8, and the sequences of a terminal's keys.
#[derive(Default)]
struct Keys {
    bytes: VecDeque<u8>,
}

impl Keys {
    /// The key that the bytes begin with. A sequence that is not whole is the key Escape, as soon as no more of it
    /// comes.
    fn next(&mut self) -> Option<Key> {
        /// Sequences behind the escape, and their scan codes.
        const SEQUENCES: [(&[u8], u16); 28] = [
            (b"[A", 1),
            (b"[B", 2),
            (b"[C", 3),
            (b"[D", 4),
            (b"OA", 1),
            (b"OB", 2),
            (b"OC", 3),
            (b"OD", 4),
            (b"[H", 5),
            (b"OH", 5),
            (b"[1~", 5),
            (b"[F", 6),
            (b"OF", 6),
            (b"[4~", 6),
            (b"[2~", 7),
            (b"[3~", 8),
            (b"[5~", 9),
            (b"[6~", 10),
            (b"OP", 11),
            (b"OQ", 12),
            (b"OR", 13),
            (b"OS", 14),
            (b"[15~", 15),
            (b"[17~", 16),
            (b"[18~", 17),
            (b"[19~", 18),
            (b"[20~", 19),
            (b"[21~", 20),
        ];
        const BACKSPACE: u16 = 8;
        const RETURN: u16 = 13;
        let first = *self.bytes.front()?;
        let found = match first {
            0x1b => {
                let behind: Vec<u8> = self.bytes.iter().skip(1).copied().collect();
                let found = SEQUENCES
                    .iter()
                    .find(|(sequence, _)| behind.starts_with(sequence));
                let count = found.map_or(0, |(sequence, _)| sequence.len());
                let scan = found.map_or(Key::ESCAPE, |(_, scan)| *scan);
                self.bytes.drain(..count);
                Key::scan(scan)
            }
            0x7f => Key::character(BACKSPACE),
            b'\n' => Key::character(RETURN),
            0x80.. => {
                let length = first.leading_ones() as usize;
                let bytes: Vec<u8> = self.bytes.iter().take(length).copied().collect();
                let character = std::str::from_utf8(&bytes)
                    .ok()
                    .and_then(|text| text.chars().next());
                let character = character.and_then(|character| u16::try_from(u32::from(character)).ok());
                if character.is_some() {
                    self.bytes.drain(..length - 1);
                }
                Key::character(character.unwrap_or(u16::from(b'?')))
            }
            byte => Key::character(u16::from(byte)),
        };
        self.bytes.pop_front();
        Some(found)
    }
}

/// The console.
pub struct Console {
    serial: Serial,
    keys: Keys,
    column: i32,
    row: i32,
    attribute: u8,
    is_visible: bool,
    /// The interfaces of both protocols, and the structure of the output's mode.
    pub input: u64,
    /// As `input`.
    pub output: u64,
    mode: u64,
}

impl Console {
    /// At a serial port.
    pub fn new(serial: Serial) -> Console {
        Console {
            serial,
            keys: Keys::default(),
            column: 0,
            row: 0,
            attribute: ATTRIBUTE_USUAL,
            is_visible: true,
            input: 0,
            output: 0,
            mode: 0,
        }
    }

    /// Puts the interfaces into memory.
    pub fn install(
        &mut self,
        guest: &mut Guest<'_, '_>,
        memory: &mut Memory,
        wait_for_key: u64,
        function: impl Fn(Service) -> u64,
    ) -> Result<(), Failure> {
        use Service::*;
        let words = |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
        self.input = memory.place(
            guest,
            &words(&[function(ResetInput), function(ReadKeyStroke), wait_for_key]),
        )?;
        self.mode = memory.place(guest, &self.mode())?;
        let services = [
            ResetOutput,
            OutputString,
            TestString,
            QueryMode,
            SetMode,
            SetAttribute,
            ClearScreen,
            SetCursorPosition,
            EnableCursor,
        ];
        let mut output: Vec<u64> = services.into_iter().map(function).collect();
        output.push(self.mode);
        self.output = memory.place(guest, &words(&output))?;
        Ok(())
    }

    /// The structure that says how the output is.
    fn mode(&self) -> Vec<u8> {
        let fields = [
            1,
            0,
            i32::from(self.attribute),
            self.column,
            self.row,
            i32::from(self.is_visible),
        ];
        fields.iter().flat_map(|field| field.to_le_bytes()).collect()
    }

    fn update(&self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        guest.write(self.mode, &self.mode())
    }

    /// The next key, if one was pressed.
    pub fn key(&mut self) -> Option<Key> {
        self.fill();
        self.keys.next()
    }

    /// Whether a key was pressed.
    pub fn has_key(&mut self) -> bool {
        self.fill();
        !self.keys.bytes.is_empty()
    }

    /// Whether nobody will press one again.
    pub fn has_ended(&mut self) -> bool {
        !self.has_key() && self.serial.has_ended()
    }

    /// Takes what is typed: more than a key at once only where a sequence has begun, so that the rest is the kernel's.
    fn fill(&mut self) {
        const SEQUENCE_MAX: usize = 5;
        loop {
            let is_open = match self.keys.bytes.front() {
                None => true,
                Some(0x1b | 0x80..) => self.keys.bytes.len() < SEQUENCE_MAX,
                Some(_) => false,
            };
            match is_open.then(|| self.serial.take_typed()).flatten() {
                Some(byte) => self.keys.bytes.push_back(byte),
                None => return,
            }
        }
    }

    /// Prints text of the firmware itself; a line ends with `\n`.
    pub fn print(&mut self, text: &str) {
        let text: Vec<u16> = text.replace('\n', "\r\n").encode_utf16().collect();
        self.output(&text);
    }

    fn output(&mut self, text: &[u16]) {
        for &character in text {
            match character {
                8 => self.column = (self.column - 1).max(0),
                10 => self.row = (self.row + 1).min(ROWS - 1),
                13 => self.column = 0,
                _ if self.column + 1 >= COLUMNS => {
                    self.column = 0;
                    self.row = (self.row + 1).min(ROWS - 1);
                }
                _ => self.column += 1,
            }
        }
        self.serial.print(String::from_utf16_lossy(text).as_bytes());
    }

    fn clear(&mut self) {
        (self.column, self.row) = (0, 0);
        self.serial.print(b"\x1b[2J\x1b[H");
    }

    fn set_attribute(&mut self, attribute: u8) {
        /// The colours of ANSI terminals, in the order of EFI's.
        const COLOURS: [u8; 8] = [0, 4, 2, 6, 1, 5, 3, 7];
        let (front, back) = (attribute & 7, attribute >> 4 & 7);
        self.attribute = attribute & 0x7f;
        let bold = attribute >> 3 & 1;
        let sequence = match self.attribute {
            ATTRIBUTE_USUAL => "\x1b[0m".to_owned(),
            _ => format!(
                "\x1b[0;{bold};3{};4{}m",
                COLOURS[usize::from(front)],
                COLOURS[usize::from(back)]
            ),
        };
        self.serial.print(sequence.as_bytes());
    }

    /// Writes a key, if one was pressed, to the structure of the second argument.
    pub fn read_key(&mut self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        let [_, at] = guest.arguments();
        let key = self.key().ok_or(efi::NOT_READY)?;
        guest.write(at, &key.scan.to_le_bytes())?;
        guest.write(at.wrapping_add(2), &key.character.to_le_bytes())
    }

    /// A service of one of both protocols but the one that reads keys.
    pub fn serve(&mut self, guest: &mut Guest<'_, '_>, service: Service) -> Result<(), Failure> {
        let [_, first, second, third] = guest.arguments();
        match service {
            Service::ResetInput => {
                while self.key().is_some() {}
                return Ok(());
            }
            Service::ResetOutput => {
                self.set_attribute(ATTRIBUTE_USUAL);
                self.clear();
            }
            Service::OutputString => {
                let text = guest.text(first, TEXT_MAX)?;
                self.output(&text);
            }
            Service::TestString => return guest.text(first, TEXT_MAX).map(|_| ()),
            Service::QueryMode if first == 0 => {
                guest.set_word(second, COLUMNS as u64)?;
                return guest.set_word(third, ROWS as u64);
            }
            Service::QueryMode => return Err(efi::UNSUPPORTED),
            Service::SetMode if first == 0 => self.clear(),
            Service::SetMode => return Err(efi::UNSUPPORTED),
            Service::SetAttribute if first < 0x80 => self.set_attribute(first as u8),
            Service::SetAttribute => return Err(efi::UNSUPPORTED),
            Service::ClearScreen => self.clear(),
            Service::SetCursorPosition if first < COLUMNS as u64 && second < ROWS as u64 => {
                (self.column, self.row) = (first as i32, second as i32);
                let sequence = format!("\x1b[{};{}H", second + 1, first + 1);
                self.serial.print(sequence.as_bytes());
            }
            Service::EnableCursor => {
                self.is_visible = first & 0xff != 0;
                let sequence = if self.is_visible {
                    b"\x1b[?25h"
                } else {
                    b"\x1b[?25l"
                };
                self.serial.print(sequence);
            }
            _ => return Err(efi::UNSUPPORTED),
        }
        self.update(guest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys {
            bytes: bytes.iter().copied().collect(),
        };
        std::iter::from_fn(|| keys.next()).collect()
    }

    #[test]
    fn sequences_are_keys_and_an_escape_alone_is_one_too() {
        let found = keys(b"a\x1b[A\x1bOP\r\n\x7f\x1b");
        let scans: Vec<_> = found.iter().map(|key| (key.scan, key.character)).collect();
        assert_eq!(
            scans,
            [
                (0, 97),
                (1, 0),
                (11, 0),
                (0, 13),
                (0, 13),
                (0, 8),
                (Key::ESCAPE, 0)
            ]
        );
        assert_eq!(keys("\u{e4}".as_bytes()), [Key::character(0xe4)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_keys(bytes in prop::collection::vec(any::<u8>(), 0..32)) {
            prop_assert!(keys(&bytes).len() <= bytes.len());
        }
    }
}
