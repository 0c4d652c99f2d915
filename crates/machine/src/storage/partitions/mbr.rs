//! The master boot record of PCs, and the chain of logical partitions behind it.

use super::{Identity, PARTITIONS_MAX, Partition, Source, sectors, word};
use crate::storage::disk::SECTOR;

/// What a system partition of EFI is for.
pub const SYSTEM_PARTITION: u8 = 0xef;
/// What a record is for that only guards the table of EFI.
const PROTECTIVE: u8 = 0xee;
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
const ENTRIES: usize = 446;
const ENTRY_BYTES: usize = 16;

/// The partitions of the record in the first sector, if it is one.
pub fn read(disk: &(impl Source + ?Sized)) -> Option<Vec<Partition>> {
    let (signature, entries) = record(disk, 0)?;
    let mut partitions = Vec::new();
    let mut extended = None;
    for (number, (kind, start, count)) in (1..).zip(entries) {
        match kind {
            0 | PROTECTIVE => {}
            kind if EXTENDED.contains(&kind) => extended = extended.or(Some(u64::from(start))),
            kind => partitions.push(partition(number, kind, u64::from(start), count, signature)),
        }
    }
    if let Some(first) = extended {
        logical(disk, first, signature, &mut partitions);
    }
    Some(partitions)
}

/// Adds the logical partitions of the extended one that begins at sector `first`: each has a record of its own, whose
/// second entry names the next. The chain must ascend, so that it ends.
fn logical(disk: &(impl Source + ?Sized), first: u64, signature: u32, partitions: &mut Vec<Partition>) {
    let mut at = first;
    for number in 5..5 + PARTITIONS_MAX as u32 {
        let Some((_, [(kind, start, count), (_, next, _), ..])) = record(disk, at) else {
            return;
        };
        if kind != 0 && !EXTENDED.contains(&kind) {
            partitions.push(partition(number, kind, at + u64::from(start), count, signature));
        }
        let next = first + u64::from(next);
        if next <= at {
            return;
        }
        at = next;
    }
}

/// What a partition is for, its first sector and how many it has.
type Entry = (u8, u32, u32);

/// A record's signature and entries.
fn record(disk: &(impl Source + ?Sized), sector: u64) -> Option<(u32, [Entry; 4])> {
    let bytes = sectors(disk, sector, 1)?;
    // A boot sector of a file system ends alike; only a record's entries are in use or not and nothing else.
    let flags = (0..4).map(|index| bytes[ENTRIES + index * ENTRY_BYTES]);
    if bytes[510..] != [0x55, 0xaa] || flags.into_iter().any(|flag| flag & 0x7f != 0) {
        return None;
    }
    let entries = std::array::from_fn(|index| {
        let entry = &bytes[ENTRIES + index * ENTRY_BYTES..][..ENTRY_BYTES];
        (entry[4], word(entry, 8), word(entry, 12))
    });
    Some((word(&bytes, 440), entries))
}

fn partition(number: u32, kind: u8, start: u64, count: u32, signature: u32) -> Partition {
    Partition {
        number,
        start: start * SECTOR,
        size: u64::from(count) * SECTOR,
        identity: Identity::Mbr { kind, signature },
    }
}
