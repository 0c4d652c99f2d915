//! The partition table of EFI (EFI 1.10, chapter 11).

use super::{Identity, PARTITIONS_MAX, Partition, Source, long, sectors, word};
use crate::storage::disk::SECTOR;

/// What a system partition is for, as memory holds it.
pub const SYSTEM_PARTITION: [u8; 16] = [
    0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b,
];

const SIGNATURE: &[u8; 8] = b"EFI PART";
const HEADER_BYTES: usize = 92;
const ENTRY_BYTES: usize = 128;

/// The partitions of the first header that is right: at the disk's beginning, or the copy at its end.
pub fn read(disk: &(impl Source + ?Sized)) -> Option<Vec<Partition>> {
    let last = (disk.size() / SECTOR).checked_sub(1)?;
    [1, last].into_iter().find_map(|at| table(disk, at))
}

fn table(disk: &(impl Source + ?Sized), at: u64) -> Option<Vec<Partition>> {
    let header = sectors(disk, at, 1)?;
    let bytes = word(&header, 12) as usize;
    if header[..8] != *SIGNATURE || !(HEADER_BYTES..=header.len()).contains(&bytes) || long(&header, 24) != at
    {
        return None;
    }
    let sum = word(&header, 16);
    let mut summed = header[..bytes].to_vec();
    summed[16..20].fill(0);
    if crc32fast::hash(&summed) != sum {
        return None;
    }
    let (first, count) = (long(&header, 72), word(&header, 80) as usize);
    let entry_bytes = word(&header, 84) as usize;
    // Twice what anybody makes of both.
    if !(ENTRY_BYTES..=2 * ENTRY_BYTES).contains(&entry_bytes) || count > 2 * PARTITIONS_MAX {
        return None;
    }
    let bytes = count * entry_bytes;
    let table = sectors(disk, first, bytes.div_ceil(SECTOR as usize))?;
    if crc32fast::hash(&table[..bytes]) != word(&header, 88) {
        return None;
    }
    let entries = table[..bytes].chunks_exact(entry_bytes).enumerate();
    Some(
        entries
            .filter_map(|(index, entry)| partition(index as u32 + 1, entry))
            .collect(),
    )
}

fn partition(number: u32, entry: &[u8]) -> Option<Partition> {
    let identifier = |at: usize| -> Option<[u8; 16]> { entry[at..at + 16].try_into().ok() };
    let (kind, own) = (identifier(0)?, identifier(16)?);
    let (first, last) = (long(entry, 32), long(entry, 40));
    let count = last.checked_sub(first)?.checked_add(1)?;
    (kind != [0; 16]).then_some(())?;
    Some(Partition {
        number,
        start: first.checked_mul(SECTOR)?,
        size: count.checked_mul(SECTOR)?,
        identity: Identity::Gpt {
            kind,
            identifier: own,
        },
    })
}
