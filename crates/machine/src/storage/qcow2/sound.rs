//! What the library of the format takes on trust: that an image is not encrypted, and that all of it is there.
//!
//! Fields are those of the format's specification, "qcow2 image file format" in QEMU's documentation. What is wrong in
//! another way is left to the library, which says so.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How every image begins.
const MAGIC: &[u8; 4] = b"QFI\xfb";
/// Bytes of the header of version 2, and of the features that version 3 has behind it.
const HEADER_BYTES: usize = 72;
const FEATURES_BYTES: usize = 8;
/// Clusters are of 512 bytes to 2 MB.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;
/// Data are in a file of their own.
const EXTERNAL_DATA: u64 = 1 << 2;
/// Bits of an entry of either table that are an offset in the file.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
const COMPRESSED: u64 = 1 << 62;
/// Reads as zeros, whatever is in the file.
const ZEROS: u64 = 1;
const ENTRY_BYTES: u64 = 8;
/// The most bytes of a first table, as for QEMU, and of all second ones that are looked at: those of 8 TB.
const FIRST_TABLE_BYTES_MAX: u64 = 32 << 20;
const SECOND_TABLES_BYTES_MAX: u64 = 1 << 30;

fn wrong(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes(bytes[offset..][..4].try_into().expect("four bytes"))
}

fn double(bytes: &[u8], offset: usize) -> u64 {
    u64::from_be_bytes(bytes[offset..][..8].try_into().expect("eight bytes"))
}

/// A file of which some bytes may not be there any more.
struct Part<'a> {
    file: &'a File,
    length: u64,
}

impl Part<'_> {
    /// The bytes of something that the image says it has.
    fn read(&self, what: &str, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        self.expect(what, offset, size)?;
        let mut bytes = vec![0; size as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    fn expect(&self, what: &str, offset: u64, size: u64) -> io::Result<()> {
        if offset.checked_add(size).is_some_and(|end| end <= self.length) {
            return Ok(());
        }
        let length = self.length;
        Err(wrong(format!(
            "it has {length} bytes and is cut short: {what} is at {offset:#x}"
        )))
    }
}

/// Looks at the image in the file at `path`; a file that begins otherwise is none.
///
/// # Errors
/// If it is encrypted, or says that something of it is behind the file's end.
pub fn check(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let part = Part { file: &file, length };
    let mut magic = [0; MAGIC.len()];
    if length < magic.len() as u64 {
        return Ok(());
    }
    file.read_exact_at(&mut magic, 0)?;
    if magic != *MAGIC {
        return Ok(());
    }
    let header = part.read("the end of its header", 0, HEADER_BYTES as u64)?;
    if word(&header, 32) != 0 {
        return Err(wrong("it is encrypted, and such images cannot be read"));
    }
    let (cluster_bits, entries) = (word(&header, 20), u64::from(word(&header, 36)));
    let table_bytes = entries * ENTRY_BYTES;
    if !CLUSTER_BITS.contains(&cluster_bits) || table_bytes > FIRST_TABLE_BYTES_MAX {
        return Ok(());
    }
    let has_data = match word(&header, 4) {
        2 => true,
        _ => {
            let features = part.read("what it needs", HEADER_BYTES as u64, FEATURES_BYTES as u64)?;
            double(&features, 0) & EXTERNAL_DATA == 0
        }
    };
    let cluster = 1u64 << cluster_bits;
    let table = part.read("its table of tables", double(&header, 40), table_bytes)?;
    let tables: BTreeSet<u64> = offsets(&table).collect();
    let looked_at = SECOND_TABLES_BYTES_MAX / cluster;
    for offset in tables.into_iter().take(looked_at as usize) {
        let table = part.read("a table of clusters", offset, cluster)?;
        let data = table.chunks_exact(ENTRY_BYTES as usize);
        let data = data.map(|entry| double(entry, 0)).filter(|_| has_data);
        let data = data.filter(|entry| entry & (COMPRESSED | ZEROS) == 0);
        for offset in data.map(|entry| entry & OFFSET).filter(|offset| *offset != 0) {
            // The last cluster may end with the file.
            part.expect("a cluster of the disk", offset, 1)?;
        }
    }
    Ok(())
}

/// The offsets in a table that are any.
fn offsets(table: &[u8]) -> impl Iterator<Item = u64> {
    let entries = table.chunks_exact(ENTRY_BYTES as usize);
    let offsets = entries.map(|entry| double(entry, 0) & OFFSET);
    offsets.filter(|offset| *offset != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: usize = 512;

    /// An image of version 2 with clusters of 512 bytes: header, a first table, a second, and a cluster that this has.
    fn image() -> Vec<u8> {
        let mut bytes = vec![0; 4 * CLUSTER];
        bytes[..4].copy_from_slice(MAGIC);
        for (offset, value) in [(4, 2), (20, 9), (36, 1)] {
            bytes[offset..][..4].copy_from_slice(&u32::to_be_bytes(value));
        }
        bytes[24..32].copy_from_slice(&u64::to_be_bytes(64 * CLUSTER as u64));
        for (offset, value) in [(40, CLUSTER), (CLUSTER, 2 * CLUSTER), (2 * CLUSTER, 3 * CLUSTER)] {
            bytes[offset..][..8].copy_from_slice(&u64::to_be_bytes(value as u64));
        }
        bytes
    }

    fn said(bytes: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("written");
        check(file.path()).map_or_else(|error| error.to_string(), |()| "sound".to_owned())
    }

    #[test]
    fn whatever_is_not_there_is_missed() {
        let image = image();
        assert_eq!(said(&image), "sound");
        assert_eq!(
            said(&image[..3 * CLUSTER + 1]),
            "sound",
            "the end of the last one"
        );
        for (size, missing) in [
            (3 * CLUSTER, "a cluster of the disk is at 0x600"),
            (2 * CLUSTER, "a table of clusters is at 0x400"),
            (CLUSTER, "its table of tables is at 0x200"),
            (60, "the end of its header is at 0x0"),
        ] {
            let said = said(&image[..size]);
            assert!(said.contains("cut short") && said.contains(missing), "{said}");
        }
        assert_eq!(said(b"QF"), "sound", "no image");
    }

    #[test]
    fn an_encrypted_image_is_refused() {
        for method in [1, 2, 77] {
            let mut image = image();
            image[35] = method;
            assert!(said(&image).contains("encrypted"));
        }
    }
}
