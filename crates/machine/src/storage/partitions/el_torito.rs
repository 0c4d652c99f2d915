//! The boot catalogue of a CD-ROM ("El Torito" Bootable CD-ROM Format Specification 1.0).

use super::{Identity, Partition, Source, half, sectors, word};
use crate::storage::disk::SECTOR;

/// The platform of images for EFI.
pub const EFI: u8 = 0xef;
const CD_SECTORS: u64 = 4;
const ENTRY_BYTES: usize = 32;
/// The volume descriptors begin at this block; the boot record is among the first.
const DESCRIPTORS: std::ops::Range<u64> = 16..32;
const BOOT_RECORD: &[u8] = b"\0CD001\x01EL TORITO SPECIFICATION";

/// The images, in the order of the catalogue, if there is one.
pub fn read(disk: &(impl Source + ?Sized)) -> Option<Vec<Partition>> {
    let record = DESCRIPTORS.map(|block| sectors(disk, block * CD_SECTORS, 1));
    let record = record
        .map_while(|sector| sector)
        .find(|sector| sector.starts_with(BOOT_RECORD))?;
    let catalogue = sectors(
        disk,
        u64::from(word(&record, 0x47)) * CD_SECTORS,
        CD_SECTORS as usize,
    )?;
    let sum = catalogue[..ENTRY_BYTES].chunks_exact(2);
    let sum = sum.fold(0_u16, |sum, pair| sum.wrapping_add(half(pair, 0)));
    if catalogue[0] != 1 || catalogue[30..32] != [0x55, 0xaa] || sum != 0 {
        return None;
    }
    let mut images = Vec::new();
    let mut platform = catalogue[1];
    // The initial entry has the platform of the validation entry, those behind it that of their section's header.
    for entry in catalogue.chunks_exact(ENTRY_BYTES).skip(1) {
        match entry[0] {
            0x90 | 0x91 => platform = entry[1],
            0x88 => images.push(image(disk, images.len() as u32, platform, entry)),
            _ => {}
        }
    }
    Some(images)
}

fn image(disk: &(impl Source + ?Sized), number: u32, platform: u8, entry: &[u8]) -> Partition {
    let start = u64::from(word(entry, 8)) * CD_SECTORS * SECTOR;
    let size = u64::from(half(entry, 6)) * SECTOR;
    // Counts of sectors have 16 bits, and some writers say 0 or 1 for more than that: the disk's end is the limit then.
    let size = match size / SECTOR {
        0 | 1 => disk.size().saturating_sub(start),
        _ => size,
    };
    Partition {
        number,
        start,
        size,
        identity: Identity::ElTorito { platform },
    }
}
