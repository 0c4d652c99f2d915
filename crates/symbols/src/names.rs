//! The names of a machine's addresses: those of its image, or of a map.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::ops::Range;
use std::path::Path;

use sidestep_ia64::encoding;

use crate::image::{Image, Kind};
use crate::table::rank;

/// Functions and data by address.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: BTreeMap<u64, String>,
    /// What the names are of, where that is known: beyond it is something else, such as firmware.
    extents: Vec<Range<u64>>,
}

/// Why a file gives no names.
#[derive(Debug, thiserror::Error)]
pub enum NamesError {
    /// It cannot be read.
    #[error("{path}: cannot be read")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line of a map is none.
    #[error("{path}:{line}: must be an address, a type and a name")]
    Line {
        /// The file.
        path: String,
        /// The number of the line.
        line: usize,
    },
}

impl Names {
    /// Those of an ELF file or of a `System.map`.
    ///
    /// # Errors
    /// The file cannot be read, or is a map with a line that is none.
    pub fn read(file: &Path) -> Result<Names, NamesError> {
        let path = file.display().to_string();
        let bytes = match sidestep_files::read(file, sidestep_files::IMAGE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(source) => return Err(NamesError::Read { path, source }),
        };
        if bytes.starts_with(b"\x7fELF") {
            return Ok(Names::of_file(&bytes));
        }
        Names::of_map(&String::from_utf8_lossy(&bytes)).map_err(|line| NamesError::Line { path, line })
    }

    /// Those of the bytes of an ELF file; none if it has none or cannot be read.
    pub fn of_file(file: &[u8]) -> Names {
        Image::parse(file).map_or_else(|_| Names::default(), |image| Names::of_image(&image))
    }

    /// Those of an image.
    pub fn of_image(image: &Image<'_>) -> Names {
        let mut names = Names::default();
        let is_place = |kind: Kind| kind != Kind::Section;
        let mut symbols: Vec<_> = (image.symbols.iter())
            .filter(|symbol| symbol.section.is_some() && is_place(symbol.kind))
            .collect();
        symbols.sort_by(|first, second| rank(first).cmp(&rank(second)));
        for symbol in symbols {
            names.insert(symbol.address, &symbol.name);
        }
        names.extents.clone_from(&image.extents);
        names
    }

    /// Those of a `System.map`: lines of address, type and name.
    ///
    /// # Errors
    /// The number of the first line that is none.
    pub fn of_map(text: &str) -> Result<Names, usize> {
        let mut names = Names::default();
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_ascii_whitespace();
            let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            match (address, words.nth(1)) {
                (Some(address), Some(name)) => names.insert(address, name),
                _ => return Err(number + 1),
            }
        }
        if let (Some((first, _)), Some((last, _))) =
            (names.names.first_key_value(), names.names.last_key_value())
        {
            names.extents.push(*first..last.saturating_add(1));
        }
        Ok(names)
    }

    /// Adds a name; the first one of an address stays.
    pub fn insert(&mut self, address: u64, name: &str) {
        self.names.entry(address).or_insert_with(|| name.to_owned());
    }

    /// Adds those of something else; the first name of an address stays.
    pub fn extend(&mut self, other: Names) {
        for (address, name) in other.names {
            self.names.entry(address).or_insert(name);
        }
        self.extents.extend(other.extents);
    }

    /// The name at or below an address of the image, and the distance from it.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        if !self.extents.is_empty() && !self.extents.iter().any(|extent| extent.contains(&address)) {
            return None;
        }
        let (start, name) = self.names.range(..=address).next_back()?;
        Some((name, address - start))
    }

    /// The names as a function of addresses.
    pub fn naming(&self) -> impl Fn(u64) -> Option<(String, u64)> + '_ {
        move |address| {
            let found = self.find(address);
            found.map(|(name, distance)| (name.to_owned(), distance))
        }
    }
}

impl encoding::Symbols for Names {
    fn write(&self, address: u64, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{address:#x}")?;
        match self.find(address) {
            Some(_) => write!(out, " <{}>", self.describe(address)),
            None => Ok(()),
        }
    }

    fn describe(&self, address: u64) -> String {
        match self.find(address) {
            Some((name, 0)) => name.to_owned(),
            Some((name, offset)) => format!("{name}+{offset:#x}"),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use sidestep_ia64::encoding::Symbols as _;

    use super::*;

    #[test]
    fn names_of_several_files_keep_their_extents() {
        let of = |text| Names::of_map(text).expect("a map");
        let mut names = of("1000 T _start\n2000 T end\n");
        names.extend(of("1000 T other\n4000 T main\n5000 T last\n"));
        let found = |address| names.find(address).map(|(name, _)| name);
        assert_eq!(found(0x1000), Some("_start"));
        assert_eq!(found(0x4800), Some("main"));
        assert_eq!(found(0x5001), None);
    }

    #[test]
    fn a_map_names_addresses_from_each_symbol_on() {
        let names = Names::of_map("0000000000001000 T _start\n0000000000002000 D table\n").expect("a map");
        assert_eq!(names.describe(0x1000), "_start");
        assert_eq!(names.describe(0x1ff0), "_start+0xff0");
        assert_eq!(names.describe(0xfff), "");
        assert_eq!(names.describe(0x2000), "table");
        assert_eq!(
            names.describe(0x40_0000),
            "",
            "beyond the image nothing of it has a name"
        );
        assert_eq!(Names::of_map("1000 T a\nx").err(), Some(2));
    }
}
