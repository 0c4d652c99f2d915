//! Images of EFI: PE32+ files for IA-64, and how they look in memory.
//!
//! "Microsoft Portable Executable and Common Object File Format Specification", revision 6.0. The entry is a function
//! descriptor in the image: code and global pointer.

use object::LittleEndian as LE;
use object::pe;
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile64};
use thiserror::Error;

use super::super::efi::MemoryType;

/// Why bytes are no image that can be started.
#[derive(Debug, Error)]
pub enum PeError {
    /// No PE32+ file.
    #[error("is no PE32+ file that can be read: {0}")]
    Format(#[from] object::read::Error),
    /// For another machine.
    #[error("is for machine {0:#x}, but applications here are for machine 0x200 (IA-64)")]
    Machine(u16),
    /// No application or driver of EFI.
    #[error("has subsystem {0}, but applications and drivers of EFI have 10, 11 or 12")]
    Subsystem(u16),
    /// Larger than any image.
    #[error("has {0:#x} bytes in memory; an image has some, and at most {IMAGE_BYTES_MAX:#x}")]
    Size(u32),
    /// Something lies outside of the image.
    #[error("has {0} outside of the image")]
    Outside(&'static str),
    /// It cannot be where it is to be.
    #[error("cannot be moved: it has no relocations")]
    Fixed,
    /// A relocation of another machine.
    #[error("has a relocation of type {0}, which IA-64 has not")]
    Relocation(u16),
}

/// The most bytes of an image in memory.
pub const IMAGE_BYTES_MAX: u32 = 1 << 28;

/// What an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is gone when it returns.
    Application,
    /// It stays until the kernel is started.
    BootDriver,
    /// It stays.
    RuntimeDriver,
}

impl Kind {
    /// The types of memory of its code and its data.
    pub fn memory(self) -> (MemoryType, MemoryType) {
        match self {
            Kind::Application => (MemoryType::LoaderCode, MemoryType::LoaderData),
            Kind::BootDriver => (MemoryType::BootServicesCode, MemoryType::BootServicesData),
            Kind::RuntimeDriver => (MemoryType::RuntimeServicesCode, MemoryType::RuntimeServicesData),
        }
    }
}

/// An image that was read, and is to be put where there is room for it.
pub struct Image<'a> {
    file: PeFile64<'a>,
    bytes: &'a [u8],
    /// What it is.
    pub kind: Kind,
    /// Where it would be without relocations.
    pub base: u64,
    /// How many bytes it has in memory.
    pub size: u32,
    /// Where its entry's function descriptor is, from its start.
    pub entry: u32,
}

impl<'a> Image<'a> {
    /// Reads an image.
    ///
    /// # Errors
    /// If the bytes are none.
    pub fn parse(bytes: &'a [u8]) -> Result<Image<'a>, PeError> {
        let file = PeFile64::parse(bytes)?;
        let machine = file.nt_headers().file_header().machine.get(LE);
        if machine != pe::IMAGE_FILE_MACHINE_IA64 {
            return Err(PeError::Machine(machine));
        }
        let header = file.nt_headers().optional_header();
        let kind = match header.subsystem() {
            pe::IMAGE_SUBSYSTEM_EFI_APPLICATION => Kind::Application,
            pe::IMAGE_SUBSYSTEM_EFI_BOOT_SERVICE_DRIVER => Kind::BootDriver,
            pe::IMAGE_SUBSYSTEM_EFI_RUNTIME_DRIVER => Kind::RuntimeDriver,
            other => return Err(PeError::Subsystem(other)),
        };
        let (size, entry) = (header.size_of_image(), header.address_of_entry_point());
        if size == 0 || size > IMAGE_BYTES_MAX {
            return Err(PeError::Size(size));
        }
        if entry.checked_add(16).is_none_or(|end| end > size) {
            return Err(PeError::Outside("its entry"));
        }
        Ok(Image {
            kind,
            base: header.image_base(),
            size,
            entry,
            file,
            bytes,
        })
    }

    /// Whether it can only be at its base.
    pub fn is_fixed(&self) -> bool {
        let header = self.file.nt_headers().file_header();
        header.characteristics.get(LE) & pe::IMAGE_FILE_RELOCS_STRIPPED != 0
    }

    /// The bytes of the image at an address.
    ///
    /// # Errors
    /// If a part of it lies outside, or a relocation makes no sense.
    pub fn placed(&self, at: u64) -> Result<Vec<u8>, PeError> {
        let mut memory = vec![0; self.size as usize];
        let header = self.file.nt_headers().optional_header();
        let headers = header.size_of_headers() as usize;
        let headers = headers.min(self.bytes.len()).min(memory.len());
        memory[..headers].copy_from_slice(&self.bytes[..headers]);
        for section in self.file.section_table().iter() {
            let start = section.virtual_address.get(LE) as usize;
            let from = section.pointer_to_raw_data.get(LE) as usize;
            let in_file = section.size_of_raw_data.get(LE);
            let in_memory = section.virtual_size.get(LE);
            // What the file has beyond the section's size is padding; some linkers leave the size zero.
            let size = if in_memory == 0 {
                in_file
            } else {
                in_file.min(in_memory)
            } as usize;
            let to = start.checked_add(size).and_then(|end| memory.get_mut(start..end));
            let from = from.checked_add(size).and_then(|end| self.bytes.get(from..end));
            match (to, from) {
                _ if size == 0 => {}
                (Some(to), Some(from)) => to.copy_from_slice(from),
                _ => return Err(PeError::Outside("a section")),
            }
        }
        self.relocate(&mut memory, at)?;
        Ok(memory)
    }

    fn relocate(&self, memory: &mut [u8], at: u64) -> Result<(), PeError> {
        let moved = at.wrapping_sub(self.base);
        if moved == 0 {
            return Ok(());
        }
        if self.is_fixed() {
            return Err(PeError::Fixed);
        }
        let directories = self.file.data_directories();
        let sections = self.file.section_table();
        let Some(mut blocks) = directories.relocation_blocks(self.bytes, &sections)? else {
            return Ok(());
        };
        while let Some(block) = blocks.next()? {
            for relocation in block {
                let at = relocation.virtual_address as usize;
                match relocation.typ {
                    pe::IMAGE_REL_BASED_ABSOLUTE => {}
                    pe::IMAGE_REL_BASED_DIR64 => {
                        let field = field::<8>(memory, at)?;
                        *field = u64::from_le_bytes(*field).wrapping_add(moved).to_le_bytes();
                    }
                    pe::IMAGE_REL_BASED_HIGHLOW => {
                        let field = field::<4>(memory, at)?;
                        *field = u32::from_le_bytes(*field)
                            .wrapping_add(moved as u32)
                            .to_le_bytes();
                    }
                    pe::IMAGE_REL_BASED_IA64_IMM64 => {
                        let bundle = field::<16>(memory, at & !15)?;
                        *bundle = move_long_immediate(*bundle, moved);
                    }
                    other => return Err(PeError::Relocation(other)),
                }
            }
        }
        Ok(())
    }
}

fn field<const SIZE: usize>(memory: &mut [u8], at: usize) -> Result<&mut [u8; SIZE], PeError> {
    let field = memory.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
    field.ok_or(PeError::Outside("a relocation"))
}

/// Adds to the immediate of a bundle's `movl` (X2; manual volume 3, section 4.6): sign, 41 bits in the L slot, then
/// ic, 5, 9 and 7 bits.
fn move_long_immediate(bundle: [u8; 16], moved: u64) -> [u8; 16] {
    let mut bits = u128::from_le_bytes(bundle);
    /// Bits of the immediate: where they begin in it, how many, and where they are in the bundle.
    const FIELDS: [(u32, u32, u32); 6] = [
        (0, 7, 87 + 13),
        (7, 9, 87 + 27),
        (16, 5, 87 + 22),
        (21, 1, 87 + 21),
        (22, 41, 46),
        (63, 1, 87 + 36),
    ];
    let mask = |count: u32| (1u128 << count) - 1;
    let value = FIELDS.iter().fold(0, |value, &(start, count, at)| {
        value | (bits >> at & mask(count)) << start
    });
    let value = u128::from((value as u64).wrapping_add(moved));
    for (start, count, at) in FIELDS {
        bits = bits & !(mask(count) << at) | (value >> start & mask(count)) << at;
    }
    bits.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn application() -> Vec<u8> {
        super::super::tests::application()
    }

    #[test]
    fn an_image_is_where_it_is_put() {
        let bytes = application();
        let image = Image::parse(&bytes).expect("an application");
        assert_eq!((image.kind, image.is_fixed()), (Kind::Application, false));
        let word = |memory: &[u8]| {
            let at = image.entry as usize;
            u64::from_le_bytes(memory[at..at + 8].try_into().expect("eight bytes"))
        };
        let (low, high) = (
            image.placed(0x1000).expect("placed"),
            image.placed(0x5000).expect("placed"),
        );
        assert_eq!(word(&high) - word(&low), 0x4000, "its entry moves with it");
    }

    #[test]
    fn what_is_no_image_is_named() {
        let said = |change: fn(&mut Vec<u8>)| {
            let mut bytes = application();
            change(&mut bytes);
            let placed = Image::parse(&bytes).and_then(|image| image.placed(0x1000));
            placed.expect_err("it is none").to_string()
        };
        assert!(said(|bytes| bytes.truncate(100)).contains("no PE32+ file"));
        assert!(said(|bytes| bytes[0x45] = 0x86).contains("machine 0x8600"));
        // Behind the DOS header and the file header: entry, size, subsystem.
        assert!(said(|bytes| bytes[0x58 + 68] = 3).contains("subsystem 3"));
        assert!(said(|bytes| bytes[0x58 + 19] = 0x7f).contains("its entry outside"));
        assert!(said(|bytes| bytes[0x58 + 59] = 0x7f).contains("bytes in memory"));
        assert!(
            said(|bytes| bytes[0x58 + 56..0x58 + 60].copy_from_slice(&0x9000_u32.to_le_bytes()))
                .contains("outside of the image")
        );
    }

    proptest! {
        #[test]
        fn any_damage_is_an_error_or_an_image(
            damage in prop::collection::vec((0usize..0x400, any::<u8>()), 1..12),
            behind in prop::collection::vec((0usize..132_096, any::<u8>()), 0..12),
            at in 0u64..1 << 40,
        ) {
            let mut bytes = application();
            for (at, value) in damage.into_iter().chain(behind) {
                let length = bytes.len();
                bytes[at % length] = value;
            }
            if let Ok(image) = Image::parse(&bytes)
                && image.size < 1 << 24
                && let Ok(memory) = image.placed(at)
            {
                prop_assert_eq!(memory.len(), image.size as usize);
            }
        }
    }

    #[test]
    fn the_immediate_of_a_movl_is_moved_and_nothing_else() {
        // `movl r8=0x123456789abcdef0` as GNU as 2.40 assembles it.
        const BUNDLE: [u8; 16] = [
            0x05, 0, 0, 0, 0x01, 0x80, 0x9a, 0x78, 0x56, 0x34, 0x12, 0x00, 0x01, 0x97, 0xf7, 0x66,
        ];
        // The same with 0x123456789abcdf00.
        const AND_16: [u8; 16] = [
            0x05, 0, 0, 0, 0x01, 0x80, 0x9a, 0x78, 0x56, 0x34, 0x12, 0x00, 0x01, 0x90, 0xfb, 0x66,
        ];
        let bundle = BUNDLE;
        let moved = move_long_immediate(bundle, 0x1111);
        assert_ne!(moved, bundle);
        assert_eq!(move_long_immediate(moved, 0x1111_u64.wrapping_neg()), bundle);
        assert_eq!(move_long_immediate(bundle, 0x10), AND_16);
    }
}
