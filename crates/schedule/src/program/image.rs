//! The code of a linked program: its functions by their symbols, and where branches go.

use std::collections::BTreeMap;
use std::ops::Range;

use sidestep_ia64::encoding::{Bundle, Effects, Instruction};
use sidestep_machine::debug::unwind::table::UnwindTable;
use sidestep_symbols::{Image, ImageError, Kind};

/// Why a file is no program whose functions can be scheduled.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It cannot be read as an ELF file.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Its code is not final.
    #[error("is not linked: the sections of an object file have no addresses; link it")]
    NotLinked,
    /// What its code is when it runs is not known.
    #[error(
        "{address:#x}: the code of `{name}` is in a segment that can be written: code that changes is not scheduled"
    )]
    Writable {
        /// Where the function begins.
        address: u64,
        /// Its name.
        name: String,
    },
    /// Nothing tells its functions apart.
    #[error("has no symbols of functions: link it without -s, and do not strip it")]
    NoFunctions,
}

/// A function as its symbol names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub addresses: Range<u64>,
}

/// The code of a program.
pub struct Program<'data> {
    /// The file.
    pub image: Image<'data>,
    /// Its unwind table.
    pub unwind: UnwindTable,
    /// Its functions, in the order of their addresses. Of several names for one address, the first.
    pub functions: Vec<Extent>,
    /// Relative branches and checks, by where they go: the bundles that they are in.
    pub arrivals: BTreeMap<u64, Vec<u64>>,
}

impl<'data> Program<'data> {
    /// Reads a program.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn parse(file: &'data [u8]) -> Result<Program<'data>, ProgramError> {
        let image = Image::parse(file)?;
        if image.is_object {
            return Err(ProgramError::NotLinked);
        }
        let mut functions: BTreeMap<u64, Extent> = BTreeMap::new();
        for symbol in image
            .symbols
            .iter()
            .filter(|symbol| symbol.kind == Kind::Function)
        {
            functions.entry(symbol.address).or_insert_with(|| Extent {
                name: symbol.name.clone(),
                addresses: symbol.address..symbol.address.saturating_add(symbol.size),
            });
        }
        if functions.is_empty() {
            return Err(ProgramError::NoFunctions);
        }
        let mut arrivals: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for section in &image.sections {
            for (address, bundle) in addressed(section.address, bundles(section.data)) {
                for decoded in bundle.decode() {
                    if let Some(target) = decoded.instruction.ok().and_then(|it| target(&it, address)) {
                        arrivals.entry(target).or_default().push(address);
                    }
                }
            }
        }
        Ok(Program {
            unwind: UnwindTable::of_image(file),
            functions: functions.into_values().collect(),
            arrivals,
            image,
        })
    }

    /// Whether its code is known to stay what it is in the file. A kernel that is one segment says otherwise of itself:
    /// whoever schedules it has to know.
    ///
    /// # Errors
    /// [`ProgramError::Writable`] with the first function that the program may write to.
    pub fn expect_constant_code(&self) -> Result<(), ProgramError> {
        let writable = self.image.segments.iter().filter(|segment| segment.is_writable);
        let mut ranges = writable
            .map(|segment| segment.address..segment.address.saturating_add(segment.data.len() as u64));
        let changes = ranges.find_map(|range| {
            let inside = |extent: &&Extent| range.contains(&extent.addresses.start);
            self.functions.iter().find(inside)
        });
        changes.map_or(Ok(()), |extent| {
            Err(ProgramError::Writable {
                address: extent.addresses.start,
                name: extent.name.clone(),
            })
        })
    }

    /// The bundles of a range of addresses; `None` where the file has no code there.
    pub fn bundles(&self, addresses: &Range<u64>) -> Option<Vec<Bundle>> {
        self.image.sections.iter().find_map(|section| {
            let from = usize::try_from(addresses.start.checked_sub(section.address)?).ok()?;
            let to = usize::try_from(addresses.end.checked_sub(section.address)?).ok()?;
            Some(bundles(section.data.get(from..to)?).collect())
        })
    }

    /// Where in the file the byte of an address is.
    pub fn offset(&self, address: u64) -> Option<usize> {
        self.image.segments.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            let is_inside = inside < segment.data.len() as u64;
            usize::try_from(segment.offset + inside)
                .ok()
                .filter(|_| is_inside)
        })
    }
}

fn bundles(code: &[u8]) -> impl Iterator<Item = Bundle> {
    let bundles = code.chunks_exact(Bundle::BYTES as usize);
    bundles.map(|bytes| Bundle::from_bytes(bytes.try_into().expect("16 bytes")))
}

/// Bundles with their addresses, from that of the first. A damaged file may have one behind the last that there is.
pub fn addressed<T>(start: u64, bundles: impl IntoIterator<Item = T>) -> impl Iterator<Item = (u64, T)> {
    let numbered = bundles.into_iter().zip(0u64..);
    numbered.map(move |(bundle, index)| (start.wrapping_add(index * Bundle::BYTES), bundle))
}

/// Where a branch or a check in the bundle at an address goes, if the instruction says so itself.
pub fn target(instruction: &Instruction, address: u64) -> Option<u64> {
    let says = instruction.is_relative() && instruction.effects().contains(Effects::TRANSFERS);
    says.then(|| address.wrapping_add(instruction.immediate as u64))
}
