//! The unwind table of an image: which descriptors belong to which procedure.
//!
//! A table is a row of entries of three words, the procedure's first address, the one behind it and that of its
//! information block, all relative to the segment they lie in. A block is a word with version, flags and the length in
//! words, and the descriptors.

use object::LittleEndian;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};

/// The program header that says where the table is.
const PT_IA_64_UNWIND: u32 = 0x7000_0001;
const PT_LOAD: u32 = 1;
/// The flags of a block that say that there is a handler for exceptions, or for termination.
const HANDLERS: u64 = 3 << 32;

/// A procedure and its descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    start: u64,
    end: u64,
    /// Where its descriptors are in the image, and how many bytes.
    descriptors: (usize, usize),
    has_handler: bool,
}

/// The procedures of an image with what their frames look like.
#[derive(Clone, Debug, Default)]
pub struct UnwindTable {
    image: Vec<u8>,
    entries: Vec<Entry>,
}

/// A procedure as the table knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Procedure<'a> {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Its unwind descriptors.
    pub descriptors: &'a [u8],
    /// Whether a handler of its language is called when it is unwound: its table may name addresses.
    pub has_handler: bool,
}

/// A loaded segment: its first address, its place in the file and its bytes there.
struct Segment {
    address: u64,
    offset: u64,
    bytes: u64,
}

impl UnwindTable {
    /// That of an ELF file; empty if it has none or cannot be read. Entries that make no sense are left out.
    pub fn of_image(file: &[u8]) -> UnwindTable {
        UnwindTable::read(file).unwrap_or_default()
    }

    fn read(file: &[u8]) -> Option<UnwindTable> {
        let elf = ElfFile64::<LittleEndian>::parse(file).ok()?;
        let headers = elf.elf_header().program_headers(LittleEndian, file).ok()?;
        let little = LittleEndian;
        let segments: Vec<Segment> = headers
            .iter()
            .filter(|header| header.p_type(little) == PT_LOAD)
            .map(|header| Segment {
                address: header.p_vaddr(little),
                offset: header.p_offset(little),
                bytes: header.p_filesz(little),
            })
            .collect();
        let header = headers
            .iter()
            .find(|header| header.p_type(little) == PT_IA_64_UNWIND)?;
        let address = header.p_vaddr(little);
        let segment = segments
            .iter()
            .find(|segment| address.wrapping_sub(segment.address) < segment.bytes)?;
        let table = header.data(little, file).ok()?;
        let mut entries: Vec<Entry> = table
            .chunks_exact(24)
            .filter_map(|words| Entry::read(words, segment, file))
            .collect();
        entries.sort_unstable_by_key(|entry| entry.start);
        let used = |choose: fn(usize, usize) -> usize, of: fn(&Entry) -> usize| {
            entries.iter().map(of).reduce(choose)
        };
        let low = used(usize::min, |entry| entry.descriptors.0).unwrap_or(0);
        let high = used(usize::max, |entry| entry.descriptors.0 + entry.descriptors.1).unwrap_or(0);
        for entry in &mut entries {
            entry.descriptors.0 -= low;
        }
        Some(UnwindTable {
            image: file[low..high].to_vec(),
            entries,
        })
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All procedures, in the order of their addresses.
    pub fn procedures(&self) -> impl Iterator<Item = Procedure<'_>> {
        self.entries.iter().map(|entry| self.procedure(entry))
    }

    /// The procedure that an address is in.
    pub fn find(&self, address: u64) -> Option<Procedure<'_>> {
        let behind = self.entries.partition_point(|entry| entry.start <= address);
        let entry = self.entries[..behind].last()?;
        (address < entry.end).then(|| self.procedure(entry))
    }

    fn procedure(&self, entry: &Entry) -> Procedure<'_> {
        let (start, bytes) = entry.descriptors;
        Procedure {
            start: entry.start,
            end: entry.end,
            descriptors: &self.image[start..start + bytes],
            has_handler: entry.has_handler,
        }
    }
}

impl Entry {
    fn read(words: &[u8], segment: &Segment, file: &[u8]) -> Option<Entry> {
        let word = |bytes: &[u8], index: usize| {
            let bytes = bytes.get(index..index.checked_add(8)?)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let [start, end, block] = [word(words, 0)?, word(words, 8)?, word(words, 16)?];
        let offset = usize::try_from(segment.offset.checked_add(block)?).ok()?;
        let header = word(file, offset)?;
        let (is_known, length) = (header >> 48 == 1, header as u32 as usize);
        let descriptors = (offset + 8, length.checked_mul(8)?);
        let is_inside = file.len().saturating_sub(descriptors.0) >= descriptors.1;
        (is_known && is_inside && start < end).then(|| Entry {
            start: segment.address.wrapping_add(start),
            end: segment.address.wrapping_add(end),
            descriptors,
            has_handler: header & HANDLERS != 0,
        })
    }
}
