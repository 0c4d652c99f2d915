//! The names of an image's addresses.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::ops::Range;

use object::elf;
use object::read::elf::{ElfFile64, Sym};
use object::{LittleEndian, Object, ObjectSegment, ObjectSymbol};
use sidestep_ia64::encoding;

/// Functions and data by address.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: BTreeMap<u64, String>,
    /// What the names are of, where that is known: beyond it is something else, such as firmware.
    extents: Vec<Range<u64>>,
}

impl Symbols {
    /// Those of an ELF file; none if it has none or cannot be read.
    pub fn of_image(file: &[u8]) -> Symbols {
        let mut symbols = Symbols::default();
        let Ok(image) = ElfFile64::<LittleEndian>::parse(file) else {
            return symbols;
        };
        for symbol in image.symbols() {
            let kind = symbol.elf_symbol().st_type();
            let is_place = matches!(kind, elf::STT_NOTYPE | elf::STT_FUNC | elf::STT_OBJECT);
            let is_absolute = symbol.elf_symbol().st_shndx(LittleEndian) == elf::SHN_ABS;
            if let (true, false, Ok(name)) = (is_place, symbol.is_undefined() || is_absolute, symbol.name())
                && !name.is_empty()
            {
                symbols.insert(symbol.address(), name);
            }
        }
        let segments = image.segments();
        // The end itself may have a name, too.
        symbols.extents = segments
            .map(|segment| segment.address()..(segment.address() + segment.size()).saturating_add(1))
            .collect();
        symbols
    }

    /// Those of a `System.map`: lines of address, type and name.
    ///
    /// # Errors
    /// The number of the first line that is none.
    pub fn of_map(text: &str) -> Result<Symbols, usize> {
        let mut symbols = Symbols::default();
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_ascii_whitespace();
            let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            match (address, words.nth(1)) {
                (Some(address), Some(name)) => symbols.insert(address, name),
                _ => return Err(number + 1),
            }
        }
        if let (Some((first, _)), Some((last, _))) =
            (symbols.names.first_key_value(), symbols.names.last_key_value())
        {
            symbols.extents.push(*first..last.saturating_add(1));
        }
        Ok(symbols)
    }

    /// Adds a name; the first one of an address stays.
    pub fn insert(&mut self, address: u64, name: &str) {
        self.names.entry(address).or_insert_with(|| name.to_owned());
    }

    /// The name at or below an address of the image, and the distance from it.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        if !self.extents.is_empty() && !self.extents.iter().any(|extent| extent.contains(&address)) {
            return None;
        }
        let (start, name) = self.names.range(..=address).next_back()?;
        Some((name, address - start))
    }

    /// The address of a name.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.names
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(&address, _)| address)
    }

    /// The text for an address: `name+0x10`, or nothing.
    pub fn describe(&self, address: u64) -> String {
        match self.find(address) {
            Some((name, 0)) => name.to_owned(),
            Some((name, offset)) => format!("{name}+{offset:#x}"),
            None => String::new(),
        }
    }
}

impl encoding::Symbols for Symbols {
    fn write(&self, address: u64, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{address:#x}")?;
        match self.find(address) {
            Some(_) => write!(out, " <{}>", self.describe(address)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_names_addresses_from_each_symbol_on() {
        let symbols =
            Symbols::of_map("0000000000001000 T _start\n0000000000002000 D table\n").expect("a map");
        assert_eq!(symbols.describe(0x1000), "_start");
        assert_eq!(symbols.describe(0x1ff0), "_start+0xff0");
        assert_eq!(symbols.describe(0xfff), "");
        assert_eq!(symbols.describe(0x2000), "table");
        assert_eq!(
            symbols.describe(0x40_0000),
            "",
            "beyond the image nothing of it has a name"
        );
        assert_eq!(symbols.address("table"), Some(0x2000));
        assert_eq!(Symbols::of_map("1000 T a\nx").err(), Some(2));
    }
}
