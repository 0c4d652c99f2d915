//! The lines of a listing: labels, and for each slot its address, its share of the bundle's bytes, and its text.
//!
//! The three slots of a bundle are given 6, 6 and 4 of its bytes, as binutils does; a slot's address is that of its
//! first byte. Long runs of zeros are one line of three dots.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use sidestep_ia64::encoding::Bundle;
use sidestep_symbols::{Image, Kind, Section, Symbol, SymbolTable, SymbolsInSection};

/// Zeros that are left out when at least this many follow each other.
const ZEROS_MIN: usize = 16;
/// Zeros at the end of a stretch that are left out when fewer than this remain.
const FINAL_ZEROS_END: usize = 3;
/// Bytes a line of instructions shows.
const CODE_BYTES: usize = 6;
/// Bytes a line of data shows.
const DATA_BYTES: usize = 16;

/// Lists a section.
pub fn section(section: &Section, symbols: &SymbolTable, out: &mut dyn Write) -> io::Result<()> {
    stretch(section, symbols, 0..section.data.len(), out)
}

/// Lists what a symbol names: its bytes, or when it has no size, everything up to the next symbol.
pub fn symbol(symbol: &Symbol, image: &Image, symbols: &SymbolTable, out: &mut dyn Write) -> io::Result<()> {
    let Some(section) = image.sections.iter().find(|section| symbol.is_in(section)) else {
        return Ok(());
    };
    let length = section.data.len();
    let offset_of = |address: u64| {
        usize::try_from(address.wrapping_sub(section.address))
            .unwrap_or(length)
            .min(length)
    };
    let start = offset_of(symbol.address);
    let end = match symbol.size {
        0 => {
            let place = symbols.find(symbol.address, section, true);
            let next = place.and_then(|place| symbols.next(place, section));
            next.map_or(length, |place| offset_of(symbols.get(place).address))
        }
        size => offset_of(symbol.address.saturating_add(size)),
    };
    stretch(section, symbols, start..end.max(start), out)
}

/// Lists a part of a section, given by offsets: a heading, then each symbol's label and bytes.
fn stretch(
    section: &Section,
    symbols: &SymbolTable,
    offsets: Range<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\nDisassembly of section {}:", section.name)?;
    let mut offset = offsets.start;
    let mut place = symbols.find(section.address.wrapping_add(offset as u64), section, true);
    while offset < offsets.end {
        let address = section.address.wrapping_add(offset as u64);
        let mut label = String::new();
        symbols
            .write_name(place, address, section, &mut label)
            .expect("writing to a string succeeds");
        writeln!(out, "\n{address:016x} {label}:")?;
        // A first symbol that lies ahead begins a stretch of its own.
        let ahead = place.filter(|place| symbols.get(*place).address > address);
        let next = ahead.or_else(|| place.and_then(|place| symbols.next(place, section)));
        let end = next
            .and_then(|place| usize::try_from(symbols.get(place).address.wrapping_sub(section.address)).ok())
            .filter(|end| (offset + 1..=offsets.end).contains(end))
            .unwrap_or(offsets.end);
        let is_data = ahead.is_none()
            && place
                .map(|place| symbols.get(place))
                .is_some_and(|symbol| symbol.kind == Kind::Object && symbol.is_in(section));
        let lines = Lines::new(section, symbols);
        lines.write(offset..end, is_data, out)?;
        offset = end;
        place = next;
    }
    Ok(())
}

/// Writes the lines of one section.
struct Lines<'listing> {
    section: &'listing Section<'listing>,
    symbols: SymbolsInSection<'listing>,
    /// Leading digits of addresses that are not shown.
    hidden_digits: usize,
}

impl<'listing> Lines<'listing> {
    fn new(section: &'listing Section<'listing>, table: &'listing SymbolTable) -> Lines<'listing> {
        let end = section.address.wrapping_add(section.data.len() as u64);
        // Leading zeros go by fours, but one stays.
        let zeros = (end.leading_zeros() / 4) as usize;
        let hidden_digits = zeros.saturating_sub(1) & !3;
        Lines {
            section,
            symbols: SymbolsInSection { table, section },
            hidden_digits,
        }
    }

    fn write(&self, offsets: Range<usize>, is_data: bool, out: &mut dyn Write) -> io::Result<()> {
        let mut offset = offsets.start;
        while offset < offsets.end {
            let rest = &self.section.data[offset..offsets.end];
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            let final_zeros = zeros == rest.len() && zeros < FINAL_ZEROS_END;
            offset += if zeros >= ZEROS_MIN || final_zeros {
                writeln!(out, "\t...")?;
                if zeros == rest.len() { zeros } else { zeros & !3 }
            } else if is_data {
                self.data_line(offset, &rest[..rest.len().min(DATA_BYTES)], out)?
            } else {
                self.code_line(offset, out)?
            };
        }
        Ok(())
    }

    /// A line of data with its characters. Returns the bytes consumed.
    fn data_line(&self, offset: usize, bytes: &[u8], out: &mut dyn Write) -> io::Result<usize> {
        let printable = |byte: &u8| {
            if (0x20..0x7f).contains(byte) {
                char::from(*byte)
            } else {
                '.'
            }
        };
        let characters: String = bytes.iter().map(printable).collect();
        writeln!(
            out,
            "{}:\t{}    {characters}",
            self.address(offset),
            hexadecimal(bytes, DATA_BYTES)
        )?;
        Ok(bytes.len())
    }

    /// The line of the slot at an offset; two for a long instruction. Returns the bytes consumed.
    fn code_line(&self, offset: usize, out: &mut dyn Write) -> io::Result<usize> {
        let address = self.section.address.wrapping_add(offset as u64);
        let inside = (address % Bundle::BYTES) as usize;
        let bundle_bytes = offset
            .checked_sub(inside)
            .and_then(|start| self.section.data.get(start..start + Bundle::BYTES as usize))
            .and_then(|bytes| bytes.try_into().ok());
        let Some(bytes) = bundle_bytes else {
            let rest = &self.section.data[offset..];
            let bytes = &rest[..rest.len().min(CODE_BYTES)];
            writeln!(
                out,
                "{}:\t{}\t(not a whole bundle)",
                self.address(offset),
                hexadecimal(bytes, CODE_BYTES)
            )?;
            return Ok(bytes.len());
        };
        let bundle = Bundle::from_bytes(bytes);
        let slot = inside / CODE_BYTES;
        let long = slot == 1 && bundle.template().is_long();
        let length = match slot {
            2 => Bundle::BYTES as usize - 2 * CODE_BYTES,
            1 if long => Bundle::BYTES as usize - CODE_BYTES,
            _ => CODE_BYTES,
        };
        let mut text = match slot {
            0 => format!("[{}] ", bundle.template()),
            _ => "      ".to_owned(),
        };
        // Both slots of a long instruction are the one instruction.
        let decoded = bundle
            .decode()
            .take(slot + 1)
            .last()
            .expect("a bundle has instructions");
        decoded
            .write(bundle, address - inside as u64, &self.symbols, &mut text)
            .expect("writing to a string succeeds");
        let bytes = &self.section.data[offset..self.section.data.len().min(offset + length)];
        let (shown, continued) = bytes.split_at(bytes.len().min(CODE_BYTES));
        writeln!(
            out,
            "{}:\t{}\t{text}",
            self.address(offset),
            hexadecimal(shown, CODE_BYTES)
        )?;
        if !continued.is_empty() {
            let offset = offset + CODE_BYTES;
            writeln!(
                out,
                "{}:\t{}",
                self.address(offset),
                hexadecimal(continued, continued.len())
            )?;
        }
        Ok(length)
    }

    /// The address of an offset, leading zeros blank.
    fn address(&self, offset: usize) -> String {
        let address = self.section.address.wrapping_add(offset as u64);
        format!("{address:>width$x}", width = 16 - self.hidden_digits)
    }
}

/// Bytes in hexadecimal, each with a blank, filled up to the width in bytes.
fn hexadecimal(bytes: &[u8], width: usize) -> String {
    let mut text = String::with_capacity(3 * width);
    for byte in bytes {
        write!(text, "{byte:02x} ").expect("writing to a string succeeds");
    }
    for _ in bytes.len()..width {
        text.push_str("   ");
    }
    text
}
