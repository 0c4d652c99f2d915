//! ELF images: which bytes go where in physical memory, and where execution begins.
//!
//! The `PT_LOAD` segments of a 64-bit little-endian IA-64 executable go to their physical addresses (`p_paddr`).
//! The entry is a virtual address of one of them and stands for the physical address at the same offset; an entry
//! that no segment holds is taken as physical.

use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use sidestep_ia64::PhysicalAddress;
use thiserror::Error;

use crate::memory::{GuestMemory, MemoryRange};

type Header = elf::FileHeader64<LittleEndian>;
const ENDIAN: LittleEndian = LittleEndian;

/// Why an image cannot be loaded.
#[derive(Debug, Error)]
pub enum ImageError {
    /// Not an ELF file, or a damaged one.
    #[error("is no ELF executable that can be read: {0}")]
    Elf(#[from] object::read::Error),
    /// Of another machine or kind.
    #[error(
        "is for machine {machine} and of type {kind}, but an image is for machine 50 (IA-64) and of type 2 (executable)"
    )]
    Kind {
        /// `e_machine`.
        machine: u16,
        /// `e_type`.
        kind: u16,
    },
    /// Nothing to load.
    #[error("has no PT_LOAD segment: there is nothing to load")]
    NothingToLoad,
    /// More bytes in the file than in memory.
    #[error("has a segment {segment} with {file:#x} bytes in the file but only {memory:#x} in memory")]
    Sizes {
        /// Its number.
        segment: usize,
        /// `p_filesz`.
        file: u64,
        /// `p_memsz`.
        memory: u64,
    },
    /// A segment beyond the end of the file.
    #[error("is truncated: the bytes of its segment {segment} reach beyond the end of the file")]
    Truncated {
        /// Its number.
        segment: usize,
    },
    /// A segment that no memory holds.
    #[error(
        "has a segment {segment} at {address} with {size:#x} bytes, where the machine has no memory: it has {}",
        listed(memory)
    )]
    OutsideMemory {
        /// Its number.
        segment: usize,
        /// Its physical address.
        address: PhysicalAddress,
        /// Its size in memory.
        size: u64,
        /// The memory that there is.
        memory: Vec<MemoryRange>,
    },
    /// An entry that is not at a bundle.
    #[error("has the entry {0:#x}, which is not a multiple of 16")]
    Unaligned(u64),
}

/// Ranges of memory as a message lists them.
fn listed(ranges: &[MemoryRange]) -> String {
    let range = |range: &MemoryRange| format!("{:#x} to {:#x}", range.start.0, range.end());
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// An image in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The physical address of the first instruction.
    pub entry: PhysicalAddress,
    /// The lowest physical address of the image.
    pub start: PhysicalAddress,
    /// The physical address behind its last byte.
    pub end: PhysicalAddress,
}

/// Loads an ELF image.
///
/// # Errors
/// If it is none, or does not fit into memory; memory may have been written then.
pub fn load(memory: &GuestMemory, file: &[u8]) -> Result<Loaded, ImageError> {
    let header = Header::parse(file)?;
    let (machine, kind) = (header.e_machine(ENDIAN), header.e_type(ENDIAN));
    if machine != elf::EM_IA_64 || kind != elf::ET_EXEC || !header.is_little_endian() {
        return Err(ImageError::Kind { machine, kind });
    }
    let virtual_entry = header.e_entry(ENDIAN);
    let mut entry = virtual_entry;
    let (mut start, mut end) = (u64::MAX, 0);
    for (segment, program) in header.program_headers(ENDIAN, file)?.iter().enumerate() {
        if program.p_type(ENDIAN) != elf::PT_LOAD || program.p_memsz(ENDIAN) == 0 {
            continue;
        }
        let (in_file, in_memory) = (program.p_filesz(ENDIAN), program.p_memsz(ENDIAN));
        if in_file > in_memory {
            return Err(ImageError::Sizes {
                segment,
                file: in_file,
                memory: in_memory,
            });
        }
        let address = PhysicalAddress(program.p_paddr(ENDIAN));
        let outside = |_| ImageError::OutsideMemory {
            segment,
            address,
            size: in_memory,
            memory: memory.ranges().to_vec(),
        };
        memory.clear(address, in_memory).map_err(outside)?;
        let bytes = program
            .data(ENDIAN, file)
            .map_err(|()| ImageError::Truncated { segment })?;
        memory.write(address, bytes).map_err(outside)?;
        start = start.min(address.0);
        end = end.max(address.0 + in_memory);
        let offset = virtual_entry.wrapping_sub(program.p_vaddr(ENDIAN));
        if offset < in_memory {
            entry = address.0 + offset;
        }
    }
    if end == 0 {
        return Err(ImageError::NothingToLoad);
    }
    if !entry.is_multiple_of(16) {
        return Err(ImageError::Unaligned(virtual_entry));
    }
    Ok(Loaded {
        entry: PhysicalAddress(entry),
        start: PhysicalAddress(start),
        end: PhysicalAddress(end),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn image() -> Vec<u8> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../guests/ia64/bin/machine-console"
        );
        std::fs::read(path).expect("the image is in the repository")
    }

    fn memory() -> GuestMemory {
        GuestMemory::new(&[MemoryRange::ram(0x10_0000, 15 << 20)]).expect("a good layout")
    }

    #[test]
    fn segments_go_to_their_physical_addresses() {
        let (memory, image) = (memory(), image());
        let loaded = load(&memory, &image).expect("an image");
        assert_eq!(loaded.start, PhysicalAddress(0x10_0000));
        assert!(loaded.start < loaded.entry && loaded.entry < loaded.end);
    }

    #[test]
    fn a_segment_outside_memory_is_refused_with_the_memory_that_there_is() {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, 1 << 16)]).expect("a good layout");
        let error = load(&memory, &image()).expect_err("no memory there");
        assert!(
            error
                .to_string()
                .ends_with("the machine has no memory: it has 0x0 to 0x10000"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn damaged_images_are_refused_or_loaded(
            changes in proptest::collection::vec((0usize..176, any::<u8>()), 1..8),
        ) {
            let mut image = image();
            for (place, byte) in changes {
                image[place] = byte;
            }
            let _ = load(&memory(), &image);
        }

        #[test]
        fn truncated_images_are_refused(length in 0usize..1000) {
            prop_assert!(load(&memory(), &image()[..length]).is_err());
        }
    }
}
