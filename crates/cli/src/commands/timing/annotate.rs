//! Cycles by symbol, and annotated bundles.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use sidestep_ia64::encoding::{Bundle, NoSymbols};
use sidestep_itanium2::Profile;
use sidestep_itanium2::profile::Place;
use sidestep_vmm::file;

use crate::commands::disasm::image::Image;
use crate::commands::disasm::symbols::{Kind, SymbolTable};

/// Symbols in the table.
const SYMBOLS_MAX: usize = 30;
/// Bundles shown of code that no symbol names.
const UNNAMED_MAX: usize = 40;
/// What stands for code of no known file.
const UNKNOWN: &str = "[unknown]";

/// Why nothing can be annotated.
#[derive(Debug, thiserror::Error)]
pub enum AnnotateError {
    /// The program's file cannot be read.
    #[error("{path}: cannot be read")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is no IA-64 ELF file.
    #[error("{path}")]
    Image {
        /// The file.
        path: String,
        /// Why.
        source: crate::commands::disasm::image::ImageError,
    },
    /// No such function.
    #[error("{path}: no symbol `{name}` in its code; the nearest names are {near}")]
    NoSymbol {
        /// The file.
        path: String,
        /// The name.
        name: String,
        /// The nearest names.
        near: String,
    },
}

/// A program's code and the names in it.
pub struct Code {
    path: String,
    bytes: Vec<u8>,
}

impl Code {
    /// Reads a program.
    pub fn read(path: &Path) -> Result<Code, AnnotateError> {
        let bytes = file::read(path, file::IMAGE_BYTES_MAX).map_err(|source| AnnotateError::Read {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Code::new(&path.display().to_string(), bytes))
    }

    /// The code of the ELF file that `path` holds.
    pub fn new(path: &str, bytes: Vec<u8>) -> Code {
        Code {
            path: path.to_owned(),
            bytes,
        }
    }

    fn image(&self) -> Result<Image<'_>, AnnotateError> {
        Image::parse(&self.bytes).map_err(|source| AnnotateError::Image {
            path: self.path.clone(),
            source,
        })
    }

    /// The cycles of every function, the slowest first.
    pub fn by_symbol(&self, profile: &Profile) -> Result<String, AnnotateError> {
        let image = self.image()?;
        let symbols = SymbolTable::new(&image);
        let mut functions: BTreeMap<String, Place> = BTreeMap::new();
        for (address, place) in &profile.places {
            functions
                .entry(function_of(&image, &symbols, *address))
                .or_default()
                .add(place);
        }
        let total: u64 = functions.values().map(Place::cycles).sum();
        let mut order: Vec<(&String, &Place)> = functions.iter().collect();
        order.sort_by_key(|(name, place)| (std::cmp::Reverse(place.cycles()), (*name).clone()));
        let mut text = format!(
            "{:>14} {:>7} {:>14} {:>14}  function\n",
            "cycles", "", "issue", "bubbles"
        );
        for (name, place) in order.iter().take(SYMBOLS_MAX) {
            let bubbles = place.cycles() - place.issue_cycles;
            let worst = place.worst().map_or(String::new(), |(stall, count)| {
                format!("  ({} {})", stall.event().name(), percent(count, place.cycles()))
            });
            let _ = writeln!(
                text,
                "{:>14} {:>7} {:>14} {bubbles:>14}  {name}{worst}",
                place.cycles(),
                percent(place.cycles(), total),
                place.issue_cycles,
            );
        }
        if order.len() > SYMBOLS_MAX {
            let _ = writeln!(text, "... and {} more functions", order.len() - SYMBOLS_MAX);
        }
        Ok(text)
    }

    /// The bundles of a function with their cycles; of the slowest one if none is named.
    pub fn annotate(&self, profile: &Profile, name: Option<&str>) -> Result<String, AnnotateError> {
        let image = self.image()?;
        let symbols = SymbolTable::new(&image);
        let wanted = match name {
            Some(name) => {
                if symbols.named(name).next().is_none() {
                    return Err(AnnotateError::NoSymbol {
                        path: self.path.clone(),
                        name: name.into(),
                        near: symbols.nearest(name).join(", "),
                    });
                }
                name.to_owned()
            }
            None => slowest(&image, &symbols, profile),
        };
        let mut text = format!("{:>12} {:>7} {:>10}  {wanted}\n", "cycles", "", "groups");
        let total: u64 = profile.places.values().map(Place::cycles).sum();
        if wanted == UNKNOWN {
            write_unnamed(&mut text, &image, &symbols, profile);
            return Ok(text);
        }
        for symbol in symbols.named(&wanted) {
            let Some(section) = image.sections.iter().find(|section| symbol.is_in(section)) else {
                continue;
            };
            let place = symbols.find(symbol.address, section, true);
            let next = place.and_then(|place| symbols.next(place, section));
            let end = match (symbol.size, next) {
                (0, Some(next)) => symbols.get(next).address,
                (0, None) => section.address + section.data.len() as u64,
                (size, _) => symbol.address + size,
            };
            let mut address = symbol.address & !15;
            while address < end {
                let offset = (address - section.address) as usize;
                let Some(bytes) = section.data.get(offset..offset + 16) else {
                    break;
                };
                let bytes: [u8; 16] = bytes.try_into().expect("sixteen bytes");
                let place = profile.places.get(&address).copied().unwrap_or_default();
                write_bundle(&mut text, address, Bundle::from_bytes(bytes), &place, total);
                address += 16;
            }
        }
        Ok(text)
    }
}

/// The slowest bundles of code that no symbol names, in the order of their addresses.
fn write_unnamed(text: &mut String, image: &Image<'_>, symbols: &SymbolTable, profile: &Profile) {
    let total: u64 = profile.places.values().map(Place::cycles).sum();
    let mut places: Vec<(u64, Place)> = profile
        .places
        .iter()
        .filter(|(address, _)| function_of(image, symbols, **address) == UNKNOWN)
        .map(|(address, place)| (*address, *place))
        .collect();
    let all = places.len();
    places.sort_by_key(|(address, place)| (std::cmp::Reverse(place.cycles()), *address));
    places.truncate(UNNAMED_MAX);
    places.sort_by_key(|(address, _)| *address);
    for (address, place) in places {
        let bytes = image.sections.iter().find_map(|section| {
            let offset = usize::try_from(address.checked_sub(section.address)?).ok()?;
            let bytes = section.data.get(offset..offset.checked_add(16)?)?;
            <[u8; 16]>::try_from(bytes).ok()
        });
        match bytes {
            Some(bytes) => write_bundle(text, address, Bundle::from_bytes(bytes), &place, total),
            None => {
                let (cycles, groups) = (place.cycles(), place.issue_cycles);
                let share = percent(cycles, total);
                let _ = writeln!(
                    text,
                    "{cycles:>12} {share:>7} {groups:>10}  {address:>16x}  not in the image"
                );
            }
        }
    }
    if all > UNNAMED_MAX {
        let _ = writeln!(
            text,
            "... and {} more bundles that no symbol names",
            all - UNNAMED_MAX
        );
    }
}

/// The lines of one bundle: its cycles beside its instructions, and below what it waited for.
fn write_bundle(text: &mut String, address: u64, bundle: Bundle, place: &Place, total: u64) {
    for (index, decoded) in bundle.decode().enumerate() {
        let mut line = String::new();
        let _ = decoded.write(bundle, address, &NoSymbols, &mut line);
        let line = line.trim_end();
        if index > 0 {
            let _ = writeln!(text, "{:>50}  {line}", "");
        } else if place.cycles() == 0 {
            let _ = writeln!(
                text,
                "{:>12} {:>7} {:>10}  {address:>16x}  [{}] {line}",
                "",
                "",
                "",
                bundle.template()
            );
        } else {
            let share = percent(place.cycles(), total);
            let (cycles, groups) = (place.cycles(), place.issue_cycles);
            let _ = writeln!(
                text,
                "{cycles:>12} {share:>7} {groups:>10}  {address:>16x}  [{}] {line}",
                bundle.template()
            );
        }
    }
    for stall in sidestep_itanium2::Stall::ALL {
        let bubbles = place.bubbles[*stall as usize];
        if bubbles > 0 {
            let name = stall.event().name();
            let _ = writeln!(text, "{bubbles:>12} {:>7} {:>10}  {:>18}^ {name}", "", "", "");
        }
    }
}

fn slowest(image: &Image<'_>, symbols: &SymbolTable, profile: &Profile) -> String {
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for (address, place) in &profile.places {
        *functions
            .entry(function_of(image, symbols, *address))
            .or_default() += place.cycles();
    }
    functions
        .into_iter()
        .filter(|(name, _)| name != UNKNOWN)
        .max_by_key(|(name, cycles)| (*cycles, std::cmp::Reverse(name.clone())))
        .map_or(UNKNOWN.to_owned(), |(name, _)| name)
}

/// The function that an address is in.
fn function_of(image: &Image<'_>, symbols: &SymbolTable, address: u64) -> String {
    let within = |section: &&crate::commands::disasm::image::Section<'_>| {
        (section.address..section.address + section.data.len() as u64).contains(&address)
    };
    let symbol = image
        .sections
        .iter()
        .find(within)
        .and_then(|section| symbols.find(address, section, true))
        .map(|place| symbols.get(place))
        .filter(|symbol| symbol.address <= address && symbol.kind != Kind::Object);
    symbol.map_or(UNKNOWN.to_owned(), |symbol| symbol.name.clone())
}

/// A share with one decimal.
pub fn percent(part: u64, whole: u64) -> String {
    let thousandths = (u128::from(part) * 1000)
        .checked_div(u128::from(whole))
        .unwrap_or(0);
    format!("{}.{}%", thousandths / 10, thousandths % 10)
}
