//! What is on a disk that has no file system of its own: partitions, and the images that a CD-ROM boots.
//!
//! - `gpt`: the table of EFI. `mbr`: the master boot record of PCs. `el_torito`: the boot catalogue of a CD-ROM.
//!
//! Disks are read as whoever wrote them wants: whatever is in them, a partition lies within its disk, there is a limit
//! to how many there are, and what makes no sense is left out.

mod el_torito;
mod gpt;
mod mbr;

use std::io;

use super::disk::SECTOR;

/// What partitions are looked for on.
pub trait Source {
    /// Bytes of it.
    fn size(&self) -> u64;

    /// Fills `bytes`, whole sectors, from byte `start` on, a multiple of a sector.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()>;
}

impl Source for super::disk::Disk {
    fn size(&self) -> u64 {
        super::disk::Disk::size(self)
    }

    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        super::disk::Disk::read(self, start, bytes)
    }
}

impl Source for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(start).map_err(io::Error::other)?;
        let from = self.get(start..).and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// The most partitions of a disk that are looked at.
pub const PARTITIONS_MAX: usize = 128;

/// What a partition is called in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// In the table of EFI: its type and its own identifier.
    Gpt {
        /// What it is for.
        kind: [u8; 16],
        /// Its own.
        identifier: [u8; 16],
    },
    /// In a master boot record.
    Mbr {
        /// What it is for.
        kind: u8,
        /// The record's signature.
        signature: u32,
    },
    /// In a CD-ROM's boot catalogue: an image for a kind of machine.
    ElTorito {
        /// The machine: 0xef for EFI.
        platform: u8,
    },
}

/// A part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number in its table, from 1 on; of an image on a CD-ROM its entry in the boot catalogue, from 0 on.
    pub number: u32,
    /// Its first byte.
    pub start: u64,
    /// How many bytes it has: some.
    pub size: u64,
    /// What it is called.
    pub identity: Identity,
}

impl Partition {
    /// Whether it is meant for firmware: an EFI system partition, or EFI's image of a CD-ROM.
    pub fn is_for_firmware(&self) -> bool {
        match self.identity {
            Identity::Gpt { kind, .. } => kind == gpt::SYSTEM_PARTITION,
            Identity::Mbr { kind, .. } => kind == mbr::SYSTEM_PARTITION,
            Identity::ElTorito { platform } => platform == el_torito::EFI,
        }
    }
}

/// The partitions of a disk.
pub fn of_disk(disk: &(impl Source + ?Sized)) -> Vec<Partition> {
    let partitions = gpt::read(disk).or_else(|| mbr::read(disk)).unwrap_or_default();
    within(disk, partitions)
}

/// The images that a CD-ROM boots.
pub fn of_cdrom(disk: &(impl Source + ?Sized)) -> Vec<Partition> {
    within(disk, el_torito::read(disk).unwrap_or_default())
}

/// Those that lie within the disk.
fn within(disk: &(impl Source + ?Sized), mut partitions: Vec<Partition>) -> Vec<Partition> {
    partitions.retain(|partition| {
        let end = partition.start.checked_add(partition.size);
        partition.size > 0 && end.is_some_and(|end| end <= disk.size())
    });
    partitions.truncate(PARTITIONS_MAX);
    partitions
}

/// So many sectors from one on, if they can be read.
fn sectors(disk: &(impl Source + ?Sized), first: u64, count: usize) -> Option<Vec<u8>> {
    let start = first.checked_mul(SECTOR)?;
    let mut bytes = vec![0; count * SECTOR as usize];
    let end = start.checked_add(bytes.len() as u64)?;
    if end > disk.size() {
        return None;
    }
    disk.read(start, &mut bytes).ok()?;
    Some(bytes)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(half(bytes, at)) | u32::from(half(bytes, at + 2)) << 16
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A disk of a table with these entries: type, first and last sector.
    pub(crate) fn gpt_disk(sectors: usize, entries: &[([u8; 16], u64, u64)]) -> Vec<u8> {
        let mut disk = vec![0; sectors * 512];
        let mut table = vec![0; 128 * 128];
        for (index, (kind, first, last)) in entries.iter().enumerate() {
            let entry = &mut table[index * 128..][..128];
            entry[..16].copy_from_slice(kind);
            entry[16..32].fill(index as u8 + 1);
            entry[32..40].copy_from_slice(&first.to_le_bytes());
            entry[40..48].copy_from_slice(&last.to_le_bytes());
        }
        let mut header = vec![0; 92];
        header[..8].copy_from_slice(b"EFI PART");
        header[8..12].copy_from_slice(&0x1_0000_u32.to_le_bytes());
        header[12..16].copy_from_slice(&92_u32.to_le_bytes());
        header[24..32].copy_from_slice(&1_u64.to_le_bytes());
        header[72..80].copy_from_slice(&2_u64.to_le_bytes());
        header[80..84].copy_from_slice(&128_u32.to_le_bytes());
        header[84..88].copy_from_slice(&128_u32.to_le_bytes());
        header[88..92].copy_from_slice(&crc32fast::hash(&table).to_le_bytes());
        let sum = crc32fast::hash(&header);
        header[16..20].copy_from_slice(&sum.to_le_bytes());
        disk[512..512 + 92].copy_from_slice(&header);
        disk[1024..1024 + table.len()].copy_from_slice(&table);
        disk[450] = 0xee;
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        disk
    }

    #[test]
    fn a_table_of_efi_is_read_and_what_is_not_on_the_disk_left_out() {
        let disk = gpt_disk(
            200,
            &[
                (gpt::SYSTEM_PARTITION, 40, 49),
                ([0; 16], 50, 60),
                ([9; 16], 60, 60),
                ([9; 16], 61, 60),
                ([9; 16], 150, 200),
                ([9; 16], 0, u64::MAX),
            ],
        );
        let found = of_disk(&disk[..]);
        let places: Vec<_> = found.iter().map(|p| (p.number, p.start, p.size)).collect();
        assert_eq!(places, [(1, 40 * 512, 10 * 512), (3, 60 * 512, 512)]);
        assert!(found[0].is_for_firmware() && !found[1].is_for_firmware());
    }

    #[test]
    fn a_damaged_table_is_not_believed() {
        let mut disk = gpt_disk(200, &[(gpt::SYSTEM_PARTITION, 40, 49)]);
        disk[1024 + 32] ^= 1;
        assert_eq!(of_disk(&disk[..]), []);
    }

    #[test]
    fn a_master_boot_record_has_logical_partitions_behind_the_first_four() {
        let mut disk = vec![0; 100 * 512];
        let mut entry = |sector: usize, index: usize, kind: u8, start: u32, count: u32| {
            let at = sector * 512 + 446 + index * 16;
            disk[at + 4] = kind;
            disk[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
            disk[at + 12..at + 16].copy_from_slice(&count.to_le_bytes());
            disk[sector * 512 + 510..sector * 512 + 512].copy_from_slice(&[0x55, 0xaa]);
        };
        entry(0, 0, 0xef, 1, 9);
        entry(0, 1, 0x05, 20, 60);
        entry(20, 0, 0x83, 1, 9);
        entry(20, 1, 0x05, 20, 20);
        entry(40, 0, 0x83, 1, 9);
        // A chain that goes back ends.
        entry(40, 1, 0x05, 0, 60);
        let found = of_disk(&disk[..]);
        let places: Vec<_> = found.iter().map(|p| (p.number, p.start / 512)).collect();
        assert_eq!(places, [(1, 1), (5, 21), (6, 41)]);
        assert!(found[0].is_for_firmware());
    }

    proptest! {
        #[test]
        fn whatever_is_on_a_disk_partitions_lie_within(
            seed in prop::collection::vec(any::<u8>(), 512..4096),
            at in 0usize..8,
        ) {
            let mut disk = vec![0; 64 << 10];
            disk[at * 512..][..seed.len()].copy_from_slice(&seed);
            disk[510..512].copy_from_slice(&[0x55, 0xaa]);
            for partition in of_disk(&disk[..]).into_iter().chain(of_cdrom(&disk[..])) {
                prop_assert!(partition.start + partition.size <= disk.len() as u64);
            }
        }
    }
}
