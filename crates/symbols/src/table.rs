//! Names for addresses, chosen as BFD chooses them: the nearest symbol not above, functions before other symbols,
//! those of the section at hand before others.
//!
//! [`Names`](crate::Names) has those of whole images and of maps, for what knows no sections.

use std::cmp::Reverse;
use std::fmt;

use object::SectionIndex;
use sidestep_ia64::encoding;

use crate::image::{Binding, Image, Kind, Section, Symbol};

/// The order of preference among symbols of one address, and of addresses before that.
pub(crate) fn rank(symbol: &Symbol) -> impl Ord + '_ {
    let name = symbol.name.as_str();
    let like_a_file = name.len() > 2 && (name.ends_with(".o") || name.ends_with(".a"));
    (
        symbol.address,
        like_a_file,
        symbol.kind == Kind::Section,
        symbol.kind != Kind::Function,
        symbol.kind != Kind::Object,
        symbol.binding == Binding::Local,
        symbol.binding != Binding::Global,
        Reverse(symbol.size),
        name.starts_with('.'),
        name,
    )
}

/// How many names an error proposes.
const NEAREST_MAX: usize = 5;

/// What is said of the [nearest](SymbolTable::nearest) names to one that does not exist.
pub fn proposal(nearest: &[String]) -> String {
    match nearest {
        [] => "the file names no code at all".to_owned(),
        names => format!("the nearest names are {}", names.join(", ")),
    }
}

/// All symbols of a file in order of address and preference.
pub struct SymbolTable {
    symbols: Vec<Symbol>,
    /// Whether sections overlap, so that an address belongs to the section at hand first.
    relocatable: bool,
    /// The executable sections.
    code: Vec<Option<SectionIndex>>,
}

impl SymbolTable {
    /// The table of a file.
    pub fn new(image: &Image) -> SymbolTable {
        let mut symbols = image.symbols.clone();
        symbols.sort_by(|first, second| rank(first).cmp(&rank(second)));
        let code = image.sections.iter().map(|section| section.index).collect();
        SymbolTable {
            symbols,
            relocatable: image.relocatable,
            code,
        }
    }

    /// The symbols of a name, with or without its version, that are in code.
    pub fn named<'table>(&'table self, name: &'table str) -> impl Iterator<Item = &'table Symbol> {
        self.in_code().filter(move |symbol| symbol.is_named(name))
    }

    /// The names in code that are most like a name, the nearest first.
    pub fn nearest(&self, name: &str) -> Vec<String> {
        let mut names: Vec<&str> = self.in_code().map(|symbol| symbol.name.as_str()).collect();
        names.sort_by_cached_key(|candidate| {
            (strsim::damerau_levenshtein(name, candidate), candidate.to_owned())
        });
        names.dedup();
        names.into_iter().take(NEAREST_MAX).map(str::to_owned).collect()
    }

    fn in_code(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols
            .iter()
            .filter(|symbol| symbol.section.is_some() && self.code.contains(&symbol.section))
    }

    /// The place of the symbol that names an address best. With `only_section`, and in a relocatable file for
    /// addresses of the section, symbols of other sections do not count, and without one below, one above will do.
    pub fn find(&self, address: u64, section: &Section, only_section: bool) -> Option<usize> {
        let above = self.symbols.partition_point(|symbol| symbol.address <= address);
        // The group of symbols with the greatest address not above, or the lowest of all.
        let group_address = self.symbols.get(above.saturating_sub(1))?.address;
        let group = self
            .symbols
            .partition_point(|symbol| symbol.address < group_address);
        let group_end = self
            .symbols
            .partition_point(|symbol| symbol.address <= group_address);
        let suits = |place: &usize| self.symbols[*place].is_in(section);
        if let Some(place) = (group..group_end).find(suits) {
            return Some(place);
        }
        let offset = address.wrapping_sub(section.address);
        if !(only_section || self.relocatable && offset < section.data.len() as u64) {
            return Some(group);
        }
        let below = (0..group_end).rev().find(suits).map(|place| {
            let nearest = self.symbols[place].address;
            let first = self.symbols.partition_point(|symbol| symbol.address < nearest);
            (first..=place).find(suits).unwrap_or(place)
        });
        below.or_else(|| (group_end..self.symbols.len()).find(suits))
    }

    /// The symbol at a place.
    pub fn get(&self, place: usize) -> &Symbol {
        &self.symbols[place]
    }

    /// The place of the next symbol of the section above the one at a place.
    pub fn next(&self, place: usize, section: &Section) -> Option<usize> {
        let address = self.symbols[place].address;
        let follows = |place: &usize| {
            let symbol = &self.symbols[*place];
            symbol.address > address && symbol.is_in(section)
        };
        (place..self.symbols.len()).find(follows)
    }

    /// Writes what follows an address in angle brackets: a symbol, or else the section, and the distance from it.
    pub fn write_name(
        &self,
        place: Option<usize>,
        address: u64,
        section: &Section,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        let (name, version, base) = match place.map(|place| &self.symbols[place]) {
            Some(symbol) => (&symbol.name, symbol.version.as_str(), symbol.address),
            None => (&section.name, "", section.address),
        };
        out.write_str("<")?;
        for character in name.chars().chain(version.chars()) {
            match u8::try_from(character) {
                Ok(byte) if byte.is_ascii_control() => {
                    write!(out, "^{}", char::from(byte.wrapping_add(0x40)))?
                }
                _ => out.write_char(character)?,
            }
        }
        match address.cmp(&base) {
            std::cmp::Ordering::Less => write!(out, "-{:#x}>", base - address),
            std::cmp::Ordering::Equal => out.write_str(">"),
            std::cmp::Ordering::Greater => write!(out, "+{:#x}>", address - base),
        }
    }
}

/// The symbols as seen from a section.
pub struct SymbolsInSection<'table> {
    /// The table.
    pub table: &'table SymbolTable,
    /// The section.
    pub section: &'table Section<'table>,
}

impl encoding::Symbols for SymbolsInSection<'_> {
    fn write(&self, address: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        if self.table.symbols.is_empty() {
            return write!(out, "{address:#x}");
        }
        write!(out, "{address:x} ")?;
        let place = self.table.find(address, self.section, false);
        self.table.write_name(place, address, self.section, out)
    }
}
