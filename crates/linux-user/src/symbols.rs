//! Names of the code that a process has mapped: functions and files.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use object::read::elf::{ElfFile64, ProgramHeader};
use object::{LittleEndian, Object, ObjectSymbol, SymbolKind};

use crate::memory::Memory;
use crate::memory::mapping::Backing;

/// What was mapped when somebody asked; files are read when one of their addresses is looked up.
pub struct CodeNames {
    parts: Vec<Part>,
}

/// A mapping that has a name.
struct Part {
    addresses: Range<u64>,
    backing: Named,
}

enum Named {
    Role(&'static str),
    File {
        path: Arc<str>,
        /// File offset minus address.
        bias: u64,
        functions: OnceCell<Option<Functions>>,
    },
}

/// The functions of a file, by address, and where in the file its segments are.
struct Functions {
    names: BTreeMap<u64, String>,
    /// Offsets in the file, and the address of the first.
    segments: Vec<(Range<u64>, u64)>,
}

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'names> {
    /// The function, and how far behind its beginning the address is.
    pub function: Option<(&'names str, u64)>,
    /// The file, or what the mapping is for, such as `[stack]`.
    pub file: &'names str,
}

impl fmt::Display for Name<'_> {
    /// `function+0x20 (/path/of/file)`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.function {
            Some((name, distance)) => write!(out, "{name}+{distance:#x} ({})", self.file),
            None => write!(out, "({})", self.file),
        }
    }
}

impl CodeNames {
    /// What is mapped now.
    pub fn of(memory: &Memory) -> CodeNames {
        let mappings = memory.mappings();
        let named = mappings.iter().filter_map(|(addresses, mapping)| {
            let backing = match &mapping.backing {
                Backing::File { path, bias, .. } => Named::File {
                    path: path.clone(),
                    bias: *bias,
                    functions: OnceCell::new(),
                },
                Backing::Role(role) => Named::Role(role),
                Backing::Anonymous | Backing::SharedSegment(_) => return None,
            };
            let addresses = addresses.clone();
            Some(Part { addresses, backing })
        });
        CodeNames {
            parts: named.collect(),
        }
    }

    /// What is at an address, as far as it is known.
    pub fn find(&self, address: u64) -> Option<Name<'_>> {
        let part = self.parts.iter().find(|part| part.addresses.contains(&address))?;
        Some(match &part.backing {
            Named::Role(role) => Name {
                function: None,
                file: role,
            },
            Named::File {
                path,
                bias,
                functions,
            } => {
                let functions = functions.get_or_init(|| Functions::read(path));
                let offset = address.wrapping_add(*bias);
                Name {
                    function: functions.as_ref().and_then(|functions| functions.at(offset)),
                    file: path,
                }
            }
        })
    }
}

impl Functions {
    fn read(path: &str) -> Option<Functions> {
        let contents = std::fs::read(path).ok()?;
        let file = ElfFile64::<LittleEndian>::parse(&*contents).ok()?;
        let endian = LittleEndian;
        let segments = file.elf_program_headers().iter();
        let segments = segments.filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD);
        let segments = segments.map(|segment| {
            let offset = segment.p_offset(endian);
            let end = offset.saturating_add(segment.p_filesz(endian));
            (offset..end, segment.p_vaddr(endian))
        });
        let mut names = BTreeMap::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if let (SymbolKind::Text, Ok(name)) = (symbol.kind(), symbol.name()) {
                names.entry(symbol.address()).or_insert_with(|| name.to_owned());
            }
        }
        Some(Functions {
            names,
            segments: segments.collect(),
        })
    }

    /// The function that holds a file offset.
    fn at(&self, offset: u64) -> Option<(&str, u64)> {
        let (offsets, start) = self
            .segments
            .iter()
            .find(|(offsets, _)| offsets.contains(&offset))?;
        let address = start.wrapping_add(offset - offsets.start);
        let (first, name) = self.names.range(..=address).next_back()?;
        Some((name, address - first))
    }
}
