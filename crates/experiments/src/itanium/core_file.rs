//! Core files of Linux/ia64, as the kernel of `guests/ia64/kernel` has its host write them: what the registers were.

use object::LittleEndian;
use object::elf::{FileHeader64, NT_FPREGSET, NT_PRSTATUS, PT_LOAD, PT_NOTE, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

/// Bytes of `elf_prstatus` and of the floating-point registers, and where the general ones are in the former.
const STATUS_BYTES: usize = 1144;
const GENERAL_AT: usize = 112;
const SIGNAL_AT: usize = 12;
/// Words of `elf_gregset_t`.
const GENERAL_WORDS: usize = 128;
const FLOATING_BYTES: usize = 2048;

/// A core file.
#[derive(Clone, Copy, Debug)]
pub struct CoreFile<'a> {
    bytes: &'a [u8],
    header: &'a FileHeader64<LittleEndian>,
    segments: &'a [ProgramHeader64<LittleEndian>],
    status: &'a [u8],
    floating: &'a [u8],
}

impl<'a> CoreFile<'a> {
    /// The core file that these bytes are; `None` if they are none, or not one with the registers of Linux/ia64.
    pub fn parse(bytes: &'a [u8]) -> Option<CoreFile<'a>> {
        let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
        let segments = header.program_headers(LittleEndian, bytes).ok()?;
        let note = |kind: u32, size: usize| {
            let mut sections = segments
                .iter()
                .filter(|segment| segment.p_type(LittleEndian) == PT_NOTE);
            let mut notes = sections.next()?.notes(LittleEndian, bytes).ok()??;
            while let Ok(Some(note)) = notes.next() {
                if note.name() == b"CORE" && note.n_type(LittleEndian) == kind {
                    return Some(note.desc()).filter(|contents| contents.len() == size);
                }
            }
            None
        };
        Some(CoreFile {
            bytes,
            header,
            segments,
            status: note(NT_PRSTATUS, STATUS_BYTES)?,
            floating: note(NT_FPREGSET, FLOATING_BYTES)?,
        })
    }

    /// The ELF header.
    pub fn header(&self) -> &'a FileHeader64<LittleEndian> {
        self.header
    }

    /// The segments: the notes, then each range of pages.
    pub fn segments(&self) -> &'a [ProgramHeader64<LittleEndian>] {
        self.segments
    }

    /// The signal that ended the process.
    pub fn signal(&self) -> u8 {
        self.status[SIGNAL_AT]
    }

    /// The words of `elf_gregset_t`.
    pub fn general(&self) -> Vec<u64> {
        words(&self.status[GENERAL_AT..GENERAL_AT + GENERAL_WORDS * 8])
    }

    /// The floating-point registers, two words each: significand, then sign and exponent.
    pub fn floating(&self) -> Vec<u64> {
        words(self.floating)
    }

    /// A word of the process's memory, if its page is in the file.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut pages = self
            .segments
            .iter()
            .filter(|segment| segment.p_type(LittleEndian) == PT_LOAD);
        pages.find_map(|segment| {
            let bytes = segment.data_range(LittleEndian, self.bytes, address, 8).ok()??;
            Some(words(bytes)[0])
        })
    }

    /// How many registers have another value in another core file.
    pub fn registers_other_than(&self, other: &CoreFile<'_>) -> usize {
        let general = differing(&self.general(), &other.general(), 1);
        general + differing(&self.floating(), &other.floating(), 2)
    }
}

/// How many registers of so many words differ.
fn differing(one: &[u64], other: &[u64], words: usize) -> usize {
    let pairs = one.chunks(words).zip(other.chunks(words));
    pairs.filter(|(one, other)| one != other).count()
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words
        .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
        .collect()
}
