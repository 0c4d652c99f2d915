//! Reading and checking ELF headers: 64-bit, little-endian, IA-64.
//!
//! The checks are complete: an [`Image`] can be mapped without any further one. Each error names the place in
//! the file and what would be right there. The layout is that of the ELF-64 specification and the Itanium
//! processor-specific supplement.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use object::LittleEndian;
use object::elf;
use object::pod;
use object::read::elf::{FileHeader, ProgramHeader};
use thiserror::Error;

use crate::memory::window::{PAGE, page_floor};

type Header = elf::FileHeader64<LittleEndian>;
type Segment = elf::ProgramHeader64<LittleEndian>;
const ENDIAN: LittleEndian = LittleEndian;

/// `e_flags`: the stack is executable unless a `PT_GNU_STACK` segment says otherwise.
const EF_IA_64_LINUX_EXECUTABLE_STACK: u32 = 1;
/// More program headers than this do not fit what Linux reads (64 kB).
const MOST_SEGMENTS: usize = 65536 / size_of::<Segment>();
/// The longest interpreter path Linux accepts, with its zero.
const LONGEST_INTERPRETER: u64 = 4096;

/// Bytes with a known length: a file, or a slice in a test.
pub trait Source {
    /// The length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Fills the buffer from an offset on.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl Source for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

impl Source for &[u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = start
            .checked_add(buffer.len())
            .and_then(|end| self.get(start..end));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Why a file cannot be run as an IA-64 program.
#[derive(Debug, Error)]
pub enum ImageError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// Too short for an ELF header, or another magic number.
    #[error("is not an ELF file: it must start with the bytes 7f 45 4c 46 (\\x7fELF)")]
    NotElf,
    /// The file ends inside the ELF header.
    #[error("is truncated: it has {0} bytes, but the ELF header alone takes 64")]
    TruncatedHeader(u64),
    /// Not 64-bit.
    #[error("has ELF class {0} (byte 4), but IA-64 Linux programs are of class 2 (64-bit)")]
    Class(u8),
    /// Not little-endian.
    #[error("has data encoding {0} (byte 5), but IA-64 Linux programs have encoding 1 (little-endian)")]
    Encoding(u8),
    /// Not version 1.
    #[error("has ELF version {0} (byte 6), but only version 1 exists")]
    Version(u8),
    /// For another machine.
    #[error("is for machine {0} (bytes 18 and 19), not for machine 50 (IA-64)")]
    Machine(u16),
    /// Neither an executable nor a shared object.
    #[error(
        "has ELF type {0} (bytes 16 and 17), but only 2 (executable) and 3 (position-independent) can be run"
    )]
    Type(u16),
    /// Program headers of another size.
    #[error("has program headers of {0} bytes (bytes 54 and 55), but they must have 56")]
    SegmentHeaderSize(u16),
    /// Too few or too many program headers.
    #[error("has {0} program headers (bytes 56 and 57), but a program has 1 to {MOST_SEGMENTS}")]
    SegmentCount(u16),
    /// The program header table lies beyond the end of the file.
    #[error(
        "is truncated: its {count} program headers start at byte {offset}, beyond what its {length} bytes hold"
    )]
    TruncatedSegmentHeaders {
        /// Where the table starts.
        offset: u64,
        /// How many entries it has.
        count: u16,
        /// The file's length.
        length: u64,
    },
    /// Nothing to load.
    #[error("has no PT_LOAD segment: there is nothing to load")]
    NothingToLoad,
    /// A segment's bytes lie beyond the end of the file.
    #[error(
        "is truncated: segment {segment} needs {size} bytes at byte {offset}, but the file has {length} bytes"
    )]
    TruncatedSegment {
        /// Its number.
        segment: usize,
        /// Where its bytes start.
        offset: u64,
        /// How many it has.
        size: u64,
        /// The file's length.
        length: u64,
    },
    /// A segment has more bytes in the file than in memory.
    #[error("has a segment {segment} with {file} bytes in the file but only {memory} in memory")]
    SegmentSizes {
        /// Its number.
        segment: usize,
        /// `p_filesz`.
        file: u64,
        /// `p_memsz`.
        memory: u64,
    },
    /// A segment's address and file offset differ modulo the page size.
    #[error(
        "has a segment {segment} whose address {address:#x} and file offset {offset:#x} differ modulo the page size \
         of {PAGE:#x}"
    )]
    SegmentAlignment {
        /// Its number.
        segment: usize,
        /// `p_vaddr`.
        address: u64,
        /// `p_offset`.
        offset: u64,
    },
    /// A segment lies outside what a program may map.
    #[error(
        "has a segment {segment} at {address:#x} of {size:#x} bytes, outside what a program may use: the first \
         {limit:#x} bytes of each of the regions 0 to 3, less the page at zero"
    )]
    SegmentAddress {
        /// Its number.
        segment: usize,
        /// `p_vaddr`.
        address: u64,
        /// `p_memsz`.
        size: u64,
        /// Bytes of a region that can be mapped.
        limit: u64,
    },
    /// Two segments overlap or are out of order.
    #[error(
        "has a segment {segment} at {address:#x} that starts before segment {previous} ends, at {end:#x}"
    )]
    SegmentOverlap {
        /// The later one's number.
        segment: usize,
        /// Where it starts.
        address: u64,
        /// The earlier one's number.
        previous: usize,
        /// Where that ends.
        end: u64,
    },
    /// The entry point is not in an executable segment, or not the address of a bundle.
    #[error("has no usable entry point: {0:#x} must be a multiple of 16 within an executable segment")]
    Entry(u64),
    /// The interpreter's path is malformed.
    #[error("names its interpreter in a PT_INTERP segment that is not a path of 1 to 4095 bytes and a zero")]
    Interpreter,
}

/// A segment to be mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Its address, before any bias.
    pub address: u64,
    /// Where its bytes are in the file.
    pub offset: u64,
    /// How many bytes the file holds.
    pub file_size: u64,
    /// How many bytes it takes in memory; the rest is zero.
    pub memory_size: u64,
    /// `PROT_*`.
    pub protection: u64,
}

impl Load {
    /// One past its last byte in memory.
    pub fn end(&self) -> u64 {
        self.address + self.memory_size
    }
}

/// A program or interpreter that can be mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Whether it may be put anywhere (`ET_DYN`).
    pub relocatable: bool,
    /// The entry point, before any bias.
    pub entry: u64,
    /// The segments to map, in ascending order.
    pub loads: Vec<Load>,
    /// The path of the program's interpreter.
    pub interpreter: Option<Vec<u8>>,
    /// Where the program headers are in the file.
    pub headers_offset: u64,
    /// How many there are.
    pub headers_count: u16,
    /// Whether the stack is to be executable.
    pub executable_stack: bool,
}

impl Image {
    /// Reads and checks the headers. `limit` is the number of bytes of a region that can be mapped.
    pub fn read(source: &impl Source, limit: u64) -> Result<Image, ImageError> {
        let length = source.length()?;
        let header = read_header(source, length)?;
        let count = header.e_phnum(ENDIAN);
        let headers_offset = header.e_phoff(ENDIAN);
        let headers = read_segment_headers(source, headers_offset, count, length)?;
        let relocatable = header.e_type(ENDIAN) == elf::ET_DYN;
        let mut loads: Vec<(usize, Load)> = Vec::new();
        let mut interpreter = None;
        let mut executable_stack = header.e_flags(ENDIAN) & EF_IA_64_LINUX_EXECUTABLE_STACK != 0;
        for (number, segment) in headers.iter().enumerate() {
            match segment.p_type(ENDIAN) {
                elf::PT_LOAD if segment.p_memsz(ENDIAN) == 0 && segment.p_filesz(ENDIAN) == 0 => {}
                elf::PT_LOAD => {
                    let load = check_load(number, segment, length, limit, relocatable)?;
                    if let Some((previous, last)) = loads.last()
                        && load.address < last.end()
                    {
                        let (address, end) = (load.address, last.end());
                        return Err(ImageError::SegmentOverlap {
                            segment: number,
                            address,
                            previous: *previous,
                            end,
                        });
                    }
                    loads.push((number, load));
                }
                elf::PT_INTERP if interpreter.is_none() => {
                    interpreter = Some(read_interpreter(source, number, segment, length)?);
                }
                elf::PT_GNU_STACK => executable_stack = segment.p_flags(ENDIAN) & elf::PF_X != 0,
                _ => {}
            }
        }
        let loads: Vec<Load> = loads.into_iter().map(|(_, load)| load).collect();
        let (Some(first), Some(last)) = (loads.first(), loads.last()) else {
            return Err(ImageError::NothingToLoad);
        };
        let span = last.end() - page_floor(first.address);
        if relocatable && span > limit / 2 {
            let (address, size) = (last.address, last.memory_size);
            return Err(ImageError::SegmentAddress {
                segment: loads.len() - 1,
                address,
                size,
                limit,
            });
        }
        let entry = header.e_entry(ENDIAN);
        let executable = |load: &Load| {
            load.protection & libc::PROT_EXEC as u64 != 0 && (load.address..load.end()).contains(&entry)
        };
        if entry % 16 != 0 || !loads.iter().any(executable) {
            return Err(ImageError::Entry(entry));
        }
        let headers_count = count;
        Ok(Image {
            relocatable,
            entry,
            loads,
            interpreter,
            headers_offset,
            headers_count,
            executable_stack,
        })
    }

    /// The first page it occupies, before any bias.
    pub fn start(&self) -> u64 {
        page_floor(self.loads[0].address)
    }

    /// One past its last byte, before any bias.
    pub fn end(&self) -> u64 {
        self.loads[self.loads.len() - 1].end()
    }

    /// Where its program headers are in memory, before any bias; zero where no segment holds them.
    pub fn headers_address(&self) -> u64 {
        let holds = |load: &&Load| {
            load.offset <= self.headers_offset && self.headers_offset - load.offset < load.file_size
        };
        self.loads
            .iter()
            .find(holds)
            .map_or(0, |load| load.address + (self.headers_offset - load.offset))
    }
}

fn read_header(source: &impl Source, length: u64) -> Result<Header, ImageError> {
    let mut bytes = [0u8; size_of::<Header>()];
    let available = length.min(bytes.len() as u64) as usize;
    source.read_at(0, &mut bytes[..available])?;
    if available < 4 || bytes[..4] != elf::ELFMAG {
        return Err(ImageError::NotElf);
    }
    if available < bytes.len() {
        return Err(ImageError::TruncatedHeader(length));
    }
    let header = pod::from_bytes::<Header>(&bytes)
        .map_err(|()| ImageError::TruncatedHeader(length))?
        .0;
    let identification = header.e_ident();
    if identification.class != elf::ELFCLASS64 {
        return Err(ImageError::Class(identification.class));
    }
    if identification.data != elf::ELFDATA2LSB {
        return Err(ImageError::Encoding(identification.data));
    }
    if identification.version != elf::EV_CURRENT {
        return Err(ImageError::Version(identification.version));
    }
    if header.e_machine(ENDIAN) != elf::EM_IA_64 {
        return Err(ImageError::Machine(header.e_machine(ENDIAN)));
    }
    if !matches!(header.e_type(ENDIAN), elf::ET_EXEC | elf::ET_DYN) {
        return Err(ImageError::Type(header.e_type(ENDIAN)));
    }
    if usize::from(header.e_phentsize(ENDIAN)) != size_of::<Segment>() {
        return Err(ImageError::SegmentHeaderSize(header.e_phentsize(ENDIAN)));
    }
    let count = header.e_phnum(ENDIAN);
    if count == 0 || usize::from(count) > MOST_SEGMENTS {
        return Err(ImageError::SegmentCount(count));
    }
    Ok(*header)
}

fn read_segment_headers(
    source: &impl Source,
    offset: u64,
    count: u16,
    length: u64,
) -> Result<Vec<Segment>, ImageError> {
    let size = usize::from(count) * size_of::<Segment>();
    if offset.checked_add(size as u64).is_none_or(|end| end > length) {
        return Err(ImageError::TruncatedSegmentHeaders {
            offset,
            count,
            length,
        });
    }
    let mut bytes = vec![0; size];
    source.read_at(offset, &mut bytes)?;
    let truncated = |()| ImageError::TruncatedSegmentHeaders {
        offset,
        count,
        length,
    };
    Ok(pod::slice_from_all_bytes::<Segment>(&bytes)
        .map_err(truncated)?
        .to_vec())
}

fn check_load(
    number: usize,
    segment: &Segment,
    length: u64,
    limit: u64,
    relocatable: bool,
) -> Result<Load, ImageError> {
    let flags = segment.p_flags(ENDIAN);
    let right = |flag: u32, right: i32| if flags & flag != 0 { right as u64 } else { 0 };
    let load = Load {
        address: segment.p_vaddr(ENDIAN),
        offset: segment.p_offset(ENDIAN),
        file_size: segment.p_filesz(ENDIAN),
        memory_size: segment.p_memsz(ENDIAN),
        protection: right(elf::PF_R, libc::PROT_READ)
            | right(elf::PF_W, libc::PROT_WRITE)
            | right(elf::PF_X, libc::PROT_EXEC),
    };
    if load.file_size > load.memory_size {
        let (file, memory) = (load.file_size, load.memory_size);
        return Err(ImageError::SegmentSizes {
            segment: number,
            file,
            memory,
        });
    }
    if load
        .offset
        .checked_add(load.file_size)
        .is_none_or(|end| end > length)
    {
        let (offset, size) = (load.offset, load.file_size);
        return Err(ImageError::TruncatedSegment {
            segment: number,
            offset,
            size,
            length,
        });
    }
    if load.address % PAGE != load.offset % PAGE && load.file_size > 0 {
        let (address, offset) = (load.address, load.offset);
        return Err(ImageError::SegmentAlignment {
            segment: number,
            address,
            offset,
        });
    }
    let start = load.address & (u64::MAX >> 3);
    let inside = load.address >> 61 < 4
        && start
            .checked_add(load.memory_size)
            .is_some_and(|end| end <= limit)
        && (relocatable || load.address >= PAGE);
    if !inside {
        let (address, size) = (load.address, load.memory_size);
        return Err(ImageError::SegmentAddress {
            segment: number,
            address,
            size,
            limit,
        });
    }
    Ok(load)
}

fn read_interpreter(
    source: &impl Source,
    number: usize,
    segment: &Segment,
    length: u64,
) -> Result<Vec<u8>, ImageError> {
    let (offset, size) = (segment.p_offset(ENDIAN), segment.p_filesz(ENDIAN));
    if !(2..=LONGEST_INTERPRETER).contains(&size) {
        return Err(ImageError::Interpreter);
    }
    if offset.checked_add(size).is_none_or(|end| end > length) {
        return Err(ImageError::TruncatedSegment {
            segment: number,
            offset,
            size,
            length,
        });
    }
    let mut path = vec![0; size as usize];
    source.read_at(offset, &mut path)?;
    let end = path.iter().position(|byte| *byte == 0).filter(|end| *end > 0);
    path.truncate(end.ok_or(ImageError::Interpreter)?);
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: u64 = (1 << 44) - PAGE;

    fn put<const N: usize>(bytes: &mut [u8], offset: usize, value: [u8; N]) {
        bytes[offset..offset + N].copy_from_slice(&value);
    }

    /// A program with a text and a data segment.
    fn program() -> Vec<u8> {
        let mut bytes = vec![0u8; 0x400];
        put(&mut bytes, 0, *b"\x7fELF\x02\x01\x01");
        put(&mut bytes, 16, 2u16.to_le_bytes());
        put(&mut bytes, 18, 50u16.to_le_bytes());
        put(&mut bytes, 24, 0x4000_0000_0000_0200u64.to_le_bytes());
        put(&mut bytes, 32, 64u64.to_le_bytes());
        put(&mut bytes, 54, 56u16.to_le_bytes());
        put(&mut bytes, 56, 2u16.to_le_bytes());
        segment(
            &mut bytes,
            0,
            [1 | 5 << 32, 0, 0x4000_0000_0000_0000, 0, 0x300, 0x300, 0x10000],
        );
        segment(
            &mut bytes,
            1,
            [
                1 | 6 << 32,
                0x300,
                0x6000_0000_0000_0300,
                0,
                0x100,
                0x900,
                0x10000,
            ],
        );
        bytes
    }

    fn segment(bytes: &mut [u8], number: usize, words: [u64; 7]) {
        for (at, word) in words.into_iter().enumerate() {
            put(bytes, 64 + 56 * number + 8 * at, word.to_le_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Result<Image, ImageError> {
        Image::read(&bytes, LIMIT)
    }

    #[test]
    fn a_program_is_understood() {
        let image = read(&program()).expect("a program");
        assert!(!image.relocatable);
        assert_eq!(image.loads.len(), 2);
        assert_eq!(image.end(), 0x6000_0000_0000_0c00);
        assert_eq!(image.headers_address(), 0x4000_0000_0000_0040);
    }

    #[test]
    fn every_flaw_has_its_own_error() {
        let with = |offset: usize, value: &[u8]| {
            let mut bytes = program();
            bytes[offset..offset + value.len()].copy_from_slice(value);
            read(&bytes).expect_err("a flaw")
        };
        let far = 0x8000_0000_0000_0000u64.to_le_bytes();
        assert!(matches!(with(0, b"MZ"), ImageError::NotElf));
        assert!(matches!(with(4, &[1]), ImageError::Class(1)));
        assert!(matches!(with(5, &[2]), ImageError::Encoding(2)));
        assert!(matches!(with(6, &[0]), ImageError::Version(0)));
        assert!(matches!(with(18, &[62]), ImageError::Machine(62)));
        assert!(matches!(with(16, &[1]), ImageError::Type(1)));
        assert!(matches!(with(54, &[32]), ImageError::SegmentHeaderSize(32)));
        assert!(matches!(with(56, &[0]), ImageError::SegmentCount(0)));
        assert!(matches!(
            with(56, &[200]),
            ImageError::TruncatedSegmentHeaders { count: 200, .. }
        ));
        assert!(matches!(
            with(32, &far),
            ImageError::TruncatedSegmentHeaders { .. }
        ));
        assert!(matches!(with(24, &[1]), ImageError::Entry(_)));
        assert!(matches!(with(24, &[0; 8]), ImageError::Entry(0)));
        assert!(matches!(
            with(64 + 32, &[0, 8]),
            ImageError::SegmentSizes { segment: 0, .. }
        ));
        assert!(matches!(
            with(64 + 8, &far),
            ImageError::TruncatedSegment { segment: 0, .. }
        ));
        assert!(matches!(
            with(64 + 16, &[8]),
            ImageError::SegmentAlignment { segment: 0, .. }
        ));
        assert!(matches!(
            with(64 + 40, &far),
            ImageError::SegmentAddress { segment: 0, .. }
        ));
    }

    #[test]
    fn overlapping_segments_are_refused() {
        let mut bytes = program();
        segment(
            &mut bytes,
            1,
            [
                1 | 6 << 32,
                0x200,
                0x4000_0000_0000_0200,
                0,
                0x100,
                0x900,
                0x10000,
            ],
        );
        assert!(matches!(
            read(&bytes),
            Err(ImageError::SegmentOverlap {
                segment: 1,
                previous: 0,
                ..
            })
        ));
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = program();
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "the first {length} bytes");
        }
    }

    proptest! {
        #[test]
        fn random_changes_never_panic(changes in proptest::collection::vec((0usize..0x200, any::<u8>()), 1..20)) {
            let mut bytes = program();
            for (offset, value) in changes {
                bytes[offset] = value;
            }
            if let Ok(image) = read(&bytes) {
                prop_assert!(image.start() <= image.end());
                for load in &image.loads {
                    prop_assert!(load.offset + load.file_size <= bytes.len() as u64);
                }
            }
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }
}
