//! Functions, and bundles with what was measured at each: cycles of a profile, or samples.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use sidestep_ia64::encoding::{Bundle, NoSymbols};
use sidestep_itanium2::profile::Place;
use sidestep_itanium2::{Profile, Stall};

use sidestep_symbols::{Image, ImageError, Kind, Section, Symbol, SymbolTable, proposal};

/// Symbols in the table.
const SYMBOLS_MAX: usize = 30;
/// Bundles shown of code that no symbol names.
const UNNAMED_MAX: usize = 40;
/// The last slot of a bundle.
pub const LAST_SLOT: u8 = 2;
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
        source: ImageError,
    },
    /// No such function.
    #[error("{path}: no symbol `{name}` in its code; {}", proposal(.near))]
    NoSymbol {
        /// The file.
        path: String,
        /// The name.
        name: String,
        /// The nearest names.
        near: Vec<String>,
    },
}

/// What was measured at places in code, to be shown beside them.
pub trait Measured {
    /// How much was measured at each bundle, by its address: the most first is the most interesting.
    fn weights(&self) -> BTreeMap<u64, u64>;

    /// The names of the columns.
    fn heading(&self) -> String;

    /// The columns beside an instruction, as wide as the heading.
    fn columns(&self, address: u64, slot: u8) -> String;

    /// Lines below an instruction; each starts with what belongs in the columns.
    fn notes(&self, address: u64, slot: u8) -> Vec<String>;
}

/// The cycles of a profile, at the first instruction of each bundle.
pub struct ProfiledCycles<'profile> {
    profile: &'profile Profile,
    total: u64,
}

impl ProfiledCycles<'_> {
    /// The cycles of a profile.
    pub fn of(profile: &Profile) -> ProfiledCycles<'_> {
        let total = profile.places.values().map(Place::cycles).sum();
        ProfiledCycles { profile, total }
    }
}

impl Measured for ProfiledCycles<'_> {
    fn weights(&self) -> BTreeMap<u64, u64> {
        let places = self.profile.places.iter();
        places
            .map(|(address, place)| (*address, place.cycles()))
            .collect()
    }

    fn heading(&self) -> String {
        format!("{:>12} {:>7} {:>10}", "cycles", "", "groups")
    }

    fn columns(&self, address: u64, slot: u8) -> String {
        match self.profile.places.get(&address) {
            Some(place) if slot == 0 && place.cycles() > 0 => {
                let share = percent(place.cycles(), self.total);
                format!("{:>12} {share:>7} {:>10}", place.cycles(), place.issue_cycles)
            }
            _ => format!("{:>31}", ""),
        }
    }

    fn notes(&self, address: u64, slot: u8) -> Vec<String> {
        let Some(place) = self.profile.places.get(&address).filter(|_| slot == LAST_SLOT) else {
            return Vec::new();
        };
        let bubbles = Stall::ALL
            .iter()
            .map(|stall| (stall.event().name(), place.bubbles[*stall as usize]));
        bubbles
            .filter(|(_, bubbles)| *bubbles > 0)
            .map(|(name, bubbles)| format!("{bubbles:>12} {:>18}  {:>18}^ {name}", "", ""))
            .collect()
    }
}

/// A program's code and the names in it.
pub struct Code {
    path: String,
    bytes: Vec<u8>,
    /// The names of what else runs, such as the programs of a kernel.
    others: sidestep_symbols::Names,
}

impl Code {
    /// Reads a program.
    pub fn read(path: &Path) -> Result<Code, AnnotateError> {
        let bytes = sidestep_files::read(path, sidestep_files::IMAGE_BYTES_MAX).map_err(|source| {
            AnnotateError::Read {
                path: path.display().to_string(),
                source,
            }
        })?;
        Ok(Code::new(&path.display().to_string(), bytes))
    }

    /// The code of the ELF file that `path` holds.
    pub fn new(path: &str, bytes: Vec<u8>) -> Code {
        Code {
            path: path.to_owned(),
            bytes,
            others: sidestep_symbols::Names::default(),
        }
    }

    /// The same, where these names say what the file's own symbols do not.
    pub fn with_names_of_others(self, others: sidestep_symbols::Names) -> Code {
        Code { others, ..self }
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
        let name_of = |address| match (symbol_of(&image, &symbols, address), self.others.find(address)) {
            (Some(symbol), _) => symbol.name.as_str(),
            (None, Some((name, _))) => name,
            (None, None) => UNKNOWN,
        };
        let mut functions: BTreeMap<String, Place> = BTreeMap::new();
        for (address, place) in &profile.places {
            functions
                .entry(name_of(*address).to_owned())
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

    /// The bundles of a function with what was measured; of the one where most was if none is named.
    pub fn annotate(&self, measured: &impl Measured, name: Option<&str>) -> Result<String, AnnotateError> {
        let image = self.image()?;
        let symbols = SymbolTable::new(&image);
        let wanted = match name {
            Some(name) => {
                if symbols.named(name).next().is_none() {
                    return Err(AnnotateError::NoSymbol {
                        path: self.path.clone(),
                        name: name.into(),
                        near: symbols.nearest(name),
                    });
                }
                name.to_owned()
            }
            None => heaviest(&image, &symbols, measured),
        };
        let mut text = format!("{}  {wanted}\n", measured.heading());
        if wanted == UNKNOWN {
            write_unnamed(&mut text, &image, &symbols, measured);
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
                write_bundle(&mut text, address, Bundle::from_bytes(bytes), measured);
                address += 16;
            }
        }
        Ok(text)
    }

    /// The names of addresses.
    pub fn names(&self) -> Result<Names<'_>, AnnotateError> {
        let image = self.image()?;
        let symbols = SymbolTable::new(&image);
        Ok(Names { image, symbols })
    }
}

/// The names of a program's addresses.
pub struct Names<'code> {
    image: Image<'code>,
    symbols: SymbolTable,
}

impl Names<'_> {
    /// The function that an address is in.
    pub fn function(&self, address: u64) -> String {
        function_of(&self.image, &self.symbols, address)
    }

    /// The function that an address is in, with its distance from the start; the address where no symbol names it.
    pub fn place(&self, address: u64) -> String {
        match symbol_of(&self.image, &self.symbols, address) {
            Some(symbol) => with_distance(symbol, address),
            None => format!("{address:#x}"),
        }
    }

    /// The variable that an address is in, with its distance from the start; the address where no symbol names it.
    pub fn variable(&self, address: u64) -> String {
        let covers = |symbol: &&Symbol| {
            symbol.kind == Kind::Object && address.wrapping_sub(symbol.address) < symbol.size
        };
        match self.image.symbols.iter().find(covers) {
            Some(symbol) => with_distance(symbol, address),
            None => format!("{address:#x}"),
        }
    }
}

fn with_distance(symbol: &Symbol, address: u64) -> String {
    match address - symbol.address {
        0 => symbol.name.clone(),
        distance => format!("{}+{distance:#x}", symbol.name),
    }
}

/// The heaviest bundles of code that no symbol names, in the order of their addresses.
fn write_unnamed(text: &mut String, image: &Image<'_>, symbols: &SymbolTable, measured: &impl Measured) {
    let mut places: Vec<(u64, u64)> = measured
        .weights()
        .into_iter()
        .filter(|(address, _)| function_of(image, symbols, *address) == UNKNOWN)
        .collect();
    let all = places.len();
    places.sort_by_key(|(address, weight)| (std::cmp::Reverse(*weight), *address));
    places.truncate(UNNAMED_MAX);
    places.sort_by_key(|(address, _)| *address);
    for (address, _) in places {
        let bytes = image.sections.iter().find_map(|section| {
            let offset = usize::try_from(address.checked_sub(section.address)?).ok()?;
            let bytes = section.data.get(offset..offset.checked_add(16)?)?;
            <[u8; 16]>::try_from(bytes).ok()
        });
        match bytes {
            Some(bytes) => write_bundle(text, address, Bundle::from_bytes(bytes), measured),
            None => {
                let columns = measured.columns(address, 0);
                let _ = writeln!(text, "{columns}  {address:>16x}  not in the image");
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

/// The lines of one bundle: what was measured beside its instructions, and below them.
fn write_bundle(text: &mut String, address: u64, bundle: Bundle, measured: &impl Measured) {
    let decoded: Vec<_> = bundle.decode().collect();
    for (index, instruction) in decoded.iter().enumerate() {
        let mut line = String::new();
        let _ = instruction.write(bundle, address, &NoSymbols, &mut line);
        let line = line.trim_end();
        let columns = measured.columns(address, instruction.slot);
        let _ = match index {
            0 => writeln!(text, "{columns}  {address:>16x}  [{}] {line}", bundle.template()),
            _ => writeln!(text, "{columns}  {:>24}{line}", ""),
        };
        let is_last = index + 1 == decoded.len();
        // A long instruction fills two slots.
        let last = if is_last { LAST_SLOT } else { instruction.slot };
        for note in (instruction.slot..=last).flat_map(|slot| measured.notes(address, slot)) {
            let _ = writeln!(text, "{note}");
        }
    }
}

fn heaviest(image: &Image<'_>, symbols: &SymbolTable, measured: &impl Measured) -> String {
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for (address, weight) in measured.weights() {
        let sum = functions.entry(function_of(image, symbols, address)).or_default();
        *sum = sum.saturating_add(weight);
    }
    functions
        .into_iter()
        .filter(|(name, _)| name != UNKNOWN)
        .max_by_key(|(name, weight)| (*weight, std::cmp::Reverse(name.clone())))
        .map_or(UNKNOWN.to_owned(), |(name, _)| name)
}

/// The function that an address is in.
fn function_of(image: &Image<'_>, symbols: &SymbolTable, address: u64) -> String {
    symbol_of(image, symbols, address).map_or(UNKNOWN.to_owned(), |symbol| symbol.name.clone())
}

/// The symbol of the function that an address is in.
fn symbol_of<'table>(
    image: &Image<'_>,
    symbols: &'table SymbolTable,
    address: u64,
) -> Option<&'table Symbol> {
    let within = |section: &&Section<'_>| {
        (section.address..section.address + section.data.len() as u64).contains(&address)
    };
    image
        .sections
        .iter()
        .find(within)
        .and_then(|section| symbols.find(address, section, true))
        .map(|place| symbols.get(place))
        .filter(|symbol| symbol.address <= address && symbol.kind != Kind::Object)
}

/// A share with one decimal.
pub fn percent(part: u64, whole: u64) -> String {
    let thousandths = (u128::from(part) * 1000)
        .checked_div(u128::from(whole))
        .unwrap_or(0);
    format!("{}.{}%", thousandths / 10, thousandths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_the_file_does_not_name_have_the_names_of_others() {
        let place = Place {
            executions: 1,
            issue_cycles: 2,
            ..Place::default()
        };
        let profile = Profile {
            places: [(0x4000_0000_0000_8010, place), (0x6000_0000_0000_0000, place)].into(),
        };
        let others = sidestep_symbols::Names::of_map("4000000000008000 T program\n4000000000009000 T end")
            .expect("a map");
        let code = Code::new("ipc", sidestep_guests::ia64::MESSAGES.to_vec());
        let text = code.by_symbol(&profile).expect("an image");
        assert!(text.contains(UNKNOWN) && !text.contains("program"), "{text}");
        let text = code
            .with_names_of_others(others)
            .by_symbol(&profile)
            .expect("an image");
        assert!(text.contains("  program") && text.contains(UNKNOWN), "{text}");
    }
}
