//! What is in an ELF file: executable sections, what is loaded, symbols.

use std::ops::Range;

use object::elf::{
    EM_IA_64, ET_REL, FileHeader64, PF_X, SHF_EXECINSTR, SHN_ABS, SHN_COMMON, SHN_UNDEF, SHT_NOBITS,
    SHT_RELA, STB_GLOBAL, STB_LOCAL, STT_COMMON, STT_FILE, STT_FUNC, STT_OBJECT, STT_SECTION,
};
use object::read::elf::{
    FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym, SymbolTable as ElfSymbols, VersionTable,
};
use object::{Endianness, SectionIndex};

type Header = FileHeader64<Endianness>;

/// A run of code.
pub struct Section<'data> {
    /// The section's index in the file; `None` for the code of a file without sections.
    pub index: Option<SectionIndex>,
    /// Its name.
    pub name: String,
    /// The address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub data: &'data [u8],
}

/// What is loaded of a file.
pub struct Segment<'data> {
    /// The address of its first byte.
    pub address: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes; none where the file lacks them.
    pub data: &'data [u8],
    /// Whether the program can write there.
    pub is_writable: bool,
}

/// The type of a symbol, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Code.
    Function,
    /// Data, which is not disassembled.
    Object,
    /// A section of the linker's.
    Section,
    /// Anything else.
    Other,
}

/// The binding of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Known in its file only.
    Local,
    /// Known everywhere.
    Global,
    /// Known everywhere, yields to a global one.
    Weak,
}

/// A name for an address.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// The version a dynamic symbol table gives it, with its `@` or `@@`; otherwise empty.
    pub version: String,
    /// The address.
    pub address: u64,
    /// The number of bytes it names, or 0.
    pub size: u64,
    /// The section it is in; `None` for an absolute one.
    pub section: Option<SectionIndex>,
    /// Its type.
    pub kind: Kind,
    /// Its binding.
    pub binding: Binding,
}

impl Symbol {
    /// Whether the symbol is in the section.
    pub fn is_in(&self, section: &Section) -> bool {
        self.section.is_some() && self.section == section.index
    }

    /// Whether a name means the symbol: with or without its version.
    pub fn is_named(&self, name: &str) -> bool {
        name.strip_prefix(&self.name)
            .is_some_and(|rest| rest.is_empty() || rest == self.version)
    }
}

/// A parsed file.
pub struct Image<'data> {
    /// The name of the file format, as BFD says it.
    pub format: &'static str,
    /// The executable sections with contents, in file order.
    pub sections: Vec<Section<'data>>,
    /// The symbols that name an address.
    pub symbols: Vec<Symbol>,
    /// The names that it refers to and does not define, without those that may stay so.
    pub undefined: Vec<String>,
    /// Whether references between sections are still open, so that addresses of sections overlap.
    pub relocatable: bool,
    /// Whether it is an object file, for a linker to read.
    pub is_object: bool,
    /// The addresses that it takes when it is loaded, each with the one behind it, which may have a name too.
    pub extents: Vec<Range<u64>>,
    /// What is loaded.
    pub segments: Vec<Segment<'data>>,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The first four bytes are not ELF's.
    #[error("not an ELF file (it should begin with 7f 45 4c 46)")]
    NotElf,
    /// A 32-bit or unknown class.
    #[error("ELF class {0} where IA-64 programs have 2 (64-bit)")]
    Class(u8),
    /// Another machine's file.
    #[error("for machine {0} where IA-64 is {EM_IA_64}")]
    Machine(u16),
    /// A segment whose bytes are not in the file.
    #[error("damaged: segment {0} reaches beyond the end of the file")]
    Segment(usize),
    /// A header, section or symbol that does not fit the file.
    #[error("damaged")]
    Damaged(#[from] object::Error),
}

impl<'data> Image<'data> {
    /// Parses the bytes of a file.
    pub fn parse(data: &'data [u8]) -> Result<Image<'data>, ImageError> {
        if !data.starts_with(b"\x7fELF") {
            return Err(ImageError::NotElf);
        }
        match data.get(4) {
            Some(2) | None => {}
            Some(class) => return Err(ImageError::Class(*class)),
        }
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        let machine = header.e_machine(endian);
        if machine != EM_IA_64 {
            return Err(ImageError::Machine(machine));
        }
        let format = match endian {
            Endianness::Little => "elf64-ia64-little",
            Endianness::Big => "elf64-ia64-big",
        };
        let table = header.sections(endian, data)?;
        let mut sections = Vec::new();
        for (index, section) in table.enumerate() {
            let executable = section.sh_flags(endian) & u64::from(SHF_EXECINSTR) != 0;
            if executable && section.sh_type(endian) != SHT_NOBITS && section.sh_size(endian) > 0 {
                sections.push(Section {
                    index: Some(index),
                    name: section_name(&table, endian, index)?,
                    address: section.sh_addr(endian),
                    data: section.data(endian, data)?,
                });
            }
        }
        if sections.is_empty() {
            // A table without code is what some tools leave of one that they strip.
            sections = segments(header, endian, data)?;
        }
        let mut symbols = table.symbols(endian, data, object::elf::SHT_SYMTAB)?;
        let relocatable = table
            .iter()
            .any(|section| section.sh_type(endian) == SHT_RELA && is_link_to(section, endian, &symbols));
        let mut versions = None;
        if symbols.is_empty() {
            symbols = table.symbols(endian, data, object::elf::SHT_DYNSYM)?;
            versions = table.versions(endian, data)?;
        }
        let undefined = undefined_names(&symbols, endian)?;
        let symbols = read_symbols(&symbols, &table, endian, versions.as_ref())?;
        Ok(Image {
            format,
            sections,
            symbols,
            undefined,
            relocatable,
            is_object: header.e_type(endian) == ET_REL,
            extents: extents(header, endian, data)?,
            segments: loaded(header, endian, data)?,
        })
    }

    /// The address of the symbol of a name, with or without its version.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        let found = self.symbols.iter().find(|symbol| symbol.is_named(name));
        found.map(|symbol| symbol.address)
    }
}

/// The addresses of what is loaded of a file.
fn extents(header: &Header, endian: Endianness, data: &[u8]) -> Result<Vec<Range<u64>>, ImageError> {
    let segments = header.program_headers(endian, data)?.iter();
    let loaded = segments.filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD);
    Ok(loaded
        .map(|segment| {
            let start = segment.p_vaddr(endian);
            start..start.saturating_add(segment.p_memsz(endian)).saturating_add(1)
        })
        .collect())
}

/// What is loaded of a file.
fn loaded<'data>(
    header: &Header,
    endian: Endianness,
    data: &'data [u8],
) -> Result<Vec<Segment<'data>>, ImageError> {
    let segments = header.program_headers(endian, data)?.iter();
    let loaded = segments.filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD);
    Ok(loaded
        .map(|segment| Segment {
            address: segment.p_vaddr(endian),
            offset: segment.p_offset(endian),
            data: segment.data(endian, data).unwrap_or_default(),
            is_writable: segment.p_flags(endian) & object::elf::PF_W != 0,
        })
        .collect())
}

/// Whether a relocation section refers to the symbol table of the static linker.
fn is_link_to(
    section: &impl SectionHeader<Endian = Endianness>,
    endian: Endianness,
    symbols: &ElfSymbols<Header>,
) -> bool {
    !symbols.is_empty() && section.sh_link(endian) as usize == symbols.section().0
}

/// The executable segments of a file that has no sections.
fn segments<'data>(
    header: &Header,
    endian: Endianness,
    data: &'data [u8],
) -> Result<Vec<Section<'data>>, ImageError> {
    let mut sections = Vec::new();
    for (index, segment) in header.program_headers(endian, data)?.iter().enumerate() {
        let executable = segment.p_flags(endian) & PF_X != 0;
        if executable && segment.p_type(endian) == object::elf::PT_LOAD && segment.p_filesz(endian) > 0 {
            let bytes = segment.data(endian, data);
            sections.push(Section {
                index: None,
                name: format!("segment {index}"),
                address: segment.p_vaddr(endian),
                data: bytes.map_err(|()| ImageError::Segment(index))?,
            });
        }
    }
    Ok(sections)
}

/// The name of a section.
fn section_name(
    table: &SectionTable<Header>,
    endian: Endianness,
    index: SectionIndex,
) -> Result<String, ImageError> {
    let name = table.section_name(endian, table.section(index)?)?;
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The names that must be defined elsewhere; weak ones need not be.
fn undefined_names(table: &ElfSymbols<Header>, endian: Endianness) -> Result<Vec<String>, ImageError> {
    let mut names = Vec::new();
    for symbol in table.iter() {
        if symbol.st_shndx(endian) == SHN_UNDEF && symbol.st_bind() == STB_GLOBAL {
            names.push(String::from_utf8_lossy(table.symbol_name(endian, symbol)?).into_owned());
        }
    }
    Ok(names)
}

/// The symbols that name an address: not those of files, ordinary sections and undefined things.
fn read_symbols(
    table: &ElfSymbols<Header>,
    sections: &SectionTable<Header>,
    endian: Endianness,
    versions: Option<&VersionTable<Header>>,
) -> Result<Vec<Symbol>, ImageError> {
    let mut symbols = Vec::new();
    for (index, symbol) in table.enumerate() {
        let (kind, section) = (symbol.st_type(), symbol.st_shndx(endian));
        if kind == STT_FILE || section == SHN_UNDEF || section == SHN_COMMON {
            continue;
        }
        let section = match section {
            SHN_ABS => None,
            _ => table.symbol_section(endian, symbol, index)?,
        };
        let name = match (kind, section) {
            (STT_SECTION, Some(section)) => section_name(sections, endian, section)?,
            _ => String::from_utf8_lossy(table.symbol_name(endian, symbol)?).into_owned(),
        };
        // The linker's own sections have no other names; those of the others say nothing.
        let says_something = kind != STT_SECTION || name.starts_with(".plt") || name.starts_with(".got");
        if name.is_empty() || !says_something {
            continue;
        }
        let mut version = String::new();
        if let Some(versions) = versions {
            let index = versions.version_index(endian, index);
            if let Some(named) = versions.version(index)? {
                let separator = if index.is_hidden() { "@" } else { "@@" };
                version = format!("{separator}{}", String::from_utf8_lossy(named.name()));
            }
        }
        symbols.push(Symbol {
            name,
            version,
            address: symbol.st_value(endian),
            size: symbol.st_size(endian),
            section,
            kind: match kind {
                STT_FUNC => Kind::Function,
                STT_OBJECT | STT_COMMON => Kind::Object,
                STT_SECTION => Kind::Section,
                _ => Kind::Other,
            },
            binding: match symbol.st_bind() {
                STB_LOCAL => Binding::Local,
                STB_GLOBAL => Binding::Global,
                _ => Binding::Weak,
            },
        });
    }
    Ok(symbols)
}
