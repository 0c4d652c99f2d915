//! Names of the code that a process has mapped: functions and files.

use std::cell::OnceCell;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sidestep_symbols::{Image, Names};

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
        names: OnceCell<Option<NamesInFile>>,
    },
}

/// The names in a file, by address, and where in the file its segments are.
struct NamesInFile {
    names: Names,
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
                    names: OnceCell::new(),
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
            Named::File { path, bias, names } => {
                let names = names.get_or_init(|| NamesInFile::read(Path::new(&**path)));
                let offset = address.wrapping_add(*bias);
                Name {
                    function: names.as_ref().and_then(|names| names.at(offset)),
                    file: path,
                }
            }
        })
    }
}

impl NamesInFile {
    fn read(path: &Path) -> Option<NamesInFile> {
        let contents = sidestep_files::read(path, sidestep_files::IMAGE_BYTES_MAX).ok()?;
        let image = Image::parse(&contents).ok()?;
        let segments = image.segments.iter();
        let segments = segments.map(|segment| {
            let end = segment.offset.saturating_add(segment.data.len() as u64);
            (segment.offset..end, segment.address)
        });
        Some(NamesInFile {
            segments: segments.collect(),
            names: Names::of_image(&image),
        })
    }

    /// The name at or below a file offset, and the distance from it.
    fn at(&self, offset: u64) -> Option<(&str, u64)> {
        let (offsets, start) = self
            .segments
            .iter()
            .find(|(offsets, _)| offsets.contains(&offset))?;
        self.names.find(start.wrapping_add(offset - offsets.start))
    }
}
