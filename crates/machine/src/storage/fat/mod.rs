//! FAT12, FAT16 and FAT32, the file systems of EFI system partitions ("FAT: General Overview of On-Disk Format" 1.03).
//!
//! - `table`: which clusters a file has. `directory`: names and what they stand for.
//!
//! A volume holds whatever its writer wanted: a chain of clusters that goes round in circles, a directory without end
//! and a file longer than its chain are errors, and nothing outside of the volume is reached. That is also why this is
//! no library's: `fatfs` 0.3 lists a directory whose chain goes round in circles without end.
//!
//! What is written reaches the volume at once, data before the directory that names them.

mod directory;
mod table;
#[cfg(test)]
pub(crate) mod tests;

use std::io;

use thiserror::Error;

use super::partitions::Source;
use table::Table;

pub use directory::{Attributes, Entry};

/// What a file system is on.
pub trait Volume: Source {
    /// Writes `bytes`, whole sectors, from byte `start` on, a multiple of a sector.
    ///
    /// # Errors
    /// If they cannot be written.
    fn write(&self, start: u64, bytes: &[u8]) -> io::Result<()>;

    /// Whether nothing can be written.
    fn is_read_only(&self) -> bool;
}

/// Why something cannot be done with a file.
#[derive(Debug, Error)]
pub enum FatError {
    /// The volume cannot be read or written.
    #[error("the volume cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// There is no such file system, or it makes no sense.
    #[error("the file system makes no sense: {0}")]
    Corrupt(&'static str),
    /// The volume cannot be written to.
    #[error("the volume is read-only")]
    ReadOnly,
    /// No room is left.
    #[error("the volume is full")]
    Full,
    /// There is no such file.
    #[error("there is no such file")]
    NotFound,
    /// A name that no file can have.
    #[error("no file can have this name")]
    Name,
    /// A folder with something in it, or the root.
    #[error("the folder is not empty")]
    NotEmpty,
}

/// The largest file: sizes have 32 bits.
const FILE_BYTES_MAX: u64 = u32::MAX as u64;
const SECTOR: u64 = super::disk::SECTOR;

/// A file system.
pub struct Fat<V> {
    volume: V,
    table: Table,
    /// Bytes of a cluster.
    cluster_bytes: u64,
    /// Where cluster 2 begins.
    data: u64,
    root: Root,
    label: String,
    /// Where FAT32 counts free clusters, as long as nothing was written: the count is right until then.
    free_count: Option<u64>,
}

/// Where the root directory is.
#[derive(Clone, Copy, Debug)]
enum Root {
    /// In a place of its own: first byte and size.
    Fixed { start: u64, size: u64 },
    /// In clusters, from this one on.
    Cluster(u32),
}

/// Where a file was read or written last, so that its chain need not be followed from the beginning again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The number of a cluster in its chain, and which cluster that is; none if that is zero.
    index: u32,
    cluster: u32,
}

impl<V: Volume> Fat<V> {
    /// The file system on a volume.
    ///
    /// # Errors
    /// If there is none that makes sense.
    pub fn open(volume: V) -> Result<Fat<V>, FatError> {
        let mut boot = [0; SECTOR as usize];
        if volume.size() < SECTOR {
            return Err(FatError::Corrupt("the volume is smaller than a sector"));
        }
        volume.read(0, &mut boot)?;
        let half = |at: usize| u64::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
        let word = |at: usize| half(at) | half(at + 2) << 16;
        let (sector, of_cluster) = (half(11), u64::from(boot[13]));
        if boot[510..] != [0x55, 0xaa] || !matches!(sector, 512 | 1024 | 2048 | 4096) {
            return Err(FatError::Corrupt("it has no boot sector of a FAT file system"));
        }
        if !of_cluster.is_power_of_two() {
            return Err(FatError::Corrupt("its clusters have no sectors"));
        }
        let or_long = |short: u64, long: u64| if short == 0 { long } else { short };
        let reserved = half(14);
        let tables = u64::from(boot[16]);
        let root_bytes = half(17) * 32;
        let sectors = or_long(half(19), word(32));
        let table_sectors = or_long(half(22), word(36));
        let root_start = (reserved + tables * table_sectors) * sector;
        let data = (root_start + root_bytes).next_multiple_of(sector);
        let size = (sectors * sector).min(volume.size());
        let cluster_bytes = of_cluster * sector;
        if reserved == 0 || !matches!(tables, 1 | 2) || table_sectors == 0 || data >= size {
            return Err(FatError::Corrupt("its boot sector contradicts itself"));
        }
        let clusters = (size - data) / cluster_bytes;
        let table_bytes = table_sectors * sector;
        let table = Table::new(reserved * sector, table_bytes, tables, clusters)?;
        let (root, label_at) = match table.is_32() {
            true => (Root::Cluster(word(44) as u32), 71),
            false => (
                Root::Fixed {
                    start: root_start,
                    size: root_bytes,
                },
                43,
            ),
        };
        let label = String::from_utf8_lossy(&boot[label_at..label_at + 11]);
        const FREE_COUNT: u64 = 488;
        let information = half(48) * sector;
        let has_count = table.is_32() && (sector..reserved * sector).contains(&information);
        Ok(Fat {
            free_count: has_count.then_some(information + FREE_COUNT),
            label: label.trim_end_matches(['\0', ' ']).to_owned(),
            volume,
            table,
            cluster_bytes,
            data,
            root,
        })
    }

    /// The name of the volume.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.volume.is_read_only()
    }

    /// Bytes of a cluster.
    pub fn cluster_bytes(&self) -> u64 {
        self.cluster_bytes
    }

    /// Bytes of all clusters.
    pub fn size(&self) -> u64 {
        u64::from(self.table.clusters()) * self.cluster_bytes
    }

    /// Bytes of the clusters that are free.
    ///
    /// # Errors
    /// If the volume cannot be read.
    pub fn free(&mut self) -> Result<u64, FatError> {
        Ok(u64::from(self.table.count_free(&self.volume)?) * self.cluster_bytes)
    }

    /// The root directory.
    pub fn root(&self) -> Entry {
        Entry::root(match self.root {
            Root::Fixed { .. } => 0,
            Root::Cluster(first) => first,
        })
    }

    /// The file that a path names, from a folder on; names are parted by `\` or `/`.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(&mut self, folder: &Entry, path: &str) -> Result<Entry, FatError> {
        let mut found = match path.starts_with(['\\', '/']) {
            true => self.root(),
            false => folder.clone(),
        };
        for name in path.split(['\\', '/']) {
            found = match name {
                "" | "." => continue,
                ".." if found.is_root() => continue,
                name => self.lookup(&found, name)?,
            };
        }
        Ok(found)
    }

    /// Fills `bytes` from byte `start` of a file on, as far as it has them; says how many.
    ///
    /// # Errors
    /// If its clusters cannot be read.
    pub fn read(
        &mut self,
        file: &Entry,
        cursor: &mut Cursor,
        start: u64,
        bytes: &mut [u8],
    ) -> Result<usize, FatError> {
        let left = u64::from(file.size).saturating_sub(start);
        let count = left.min(bytes.len() as u64) as usize;
        let mut done = 0;
        while done < count {
            let at = start + done as u64;
            let within = at % self.cluster_bytes;
            // As much at once as lies in one row.
            let (cluster, row) = self.row(file.first, cursor, (at / self.cluster_bytes) as u32, {
                (within + (count - done) as u64).div_ceil(self.cluster_bytes) as u32
            })?;
            let piece = (u64::from(row) * self.cluster_bytes - within).min((count - done) as u64) as usize;
            self.read_at(self.place(cluster)? + within, &mut bytes[done..done + piece])?;
            done += piece;
        }
        Ok(count)
    }

    /// Cluster `index` of a chain, and how many lie behind each other from it on, at most `most`.
    fn row(
        &mut self,
        first: u32,
        cursor: &mut Cursor,
        index: u32,
        most: u32,
    ) -> Result<(u32, u32), FatError> {
        let (mut at, mut cluster) = match *cursor {
            Cursor {
                index: known,
                cluster,
            } if cluster != 0 && known <= index => (known, cluster),
            _ => (0, first),
        };
        self.table.check(cluster)?;
        while at < index {
            let next = self.table.next(&self.volume, cluster)?;
            cluster = next.ok_or(FatError::Corrupt("a file is longer than its chain of clusters"))?;
            at += 1;
        }
        let mut row = 1;
        let mut last = cluster;
        while row < most {
            match self.table.next(&self.volume, last)? {
                Some(next) if next == last + 1 => (row, last) = (row + 1, next),
                _ => break,
            }
        }
        *cursor = Cursor {
            index: index + row - 1,
            cluster: last,
        };
        Ok((cluster, row))
    }

    /// Writes `bytes` from byte `start` of a file on, which grows where it must; what is between its end and `start`
    /// becomes zero.
    ///
    /// # Errors
    /// If there is no room; then the file may have grown.
    pub fn write(
        &mut self,
        file: &mut Entry,
        cursor: &mut Cursor,
        start: u64,
        bytes: &[u8],
    ) -> Result<(), FatError> {
        self.check_writable()?;
        let end = start.checked_add(bytes.len() as u64).ok_or(FatError::Full)?;
        if end > u64::from(file.size) {
            self.resize(file, end)?;
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = start + done as u64;
            let within = at % self.cluster_bytes;
            let (cluster, _) = self.row(file.first, cursor, (at / self.cluster_bytes) as u32, 1)?;
            let piece = (self.cluster_bytes - within).min((bytes.len() - done) as u64) as usize;
            self.write_at(self.place(cluster)? + within, &bytes[done..done + piece])?;
            done += piece;
        }
        Ok(())
    }

    /// Makes a file so many bytes long; what is new is zero.
    ///
    /// # Errors
    /// If there is no room; then it is as long as it was.
    pub fn resize(&mut self, file: &mut Entry, size: u64) -> Result<(), FatError> {
        self.check_writable()?;
        if size > FILE_BYTES_MAX {
            return Err(FatError::Full);
        }
        let had = u64::from(file.size);
        let wanted = size.div_ceil(self.cluster_bytes) as u32;
        let chain = self.table.chain(&self.volume, file.first)?;
        if (wanted as usize) > chain.len() {
            let more = wanted - chain.len() as u32;
            let first = self.table.extend(&self.volume, chain.last().copied(), more)?;
            file.first = if chain.is_empty() { first } else { file.first };
        } else {
            let keep = chain.get((wanted as usize).wrapping_sub(1)).copied();
            self.table
                .release(&self.volume, keep, &chain[wanted as usize..])?;
            file.first = if wanted == 0 { 0 } else { file.first };
        }
        file.size = size as u32;
        self.zero(file, had, size)?;
        self.update(file)
    }

    /// Makes bytes of a file zero that it has.
    fn zero(&mut self, file: &Entry, from: u64, to: u64) -> Result<(), FatError> {
        let zeros = vec![0; self.cluster_bytes as usize];
        let mut cursor = Cursor::default();
        let mut at = from;
        while at < to {
            let within = at % self.cluster_bytes;
            let (cluster, _) = self.row(file.first, &mut cursor, (at / self.cluster_bytes) as u32, 1)?;
            let piece = (self.cluster_bytes - within).min(to - at);
            self.write_at(self.place(cluster)? + within, &zeros[..piece as usize])?;
            at += piece;
        }
        Ok(())
    }

    /// Refuses what cannot be written; has the count of free clusters be unknown, which whoever wants it counts then.
    fn check_writable(&mut self) -> Result<(), FatError> {
        const UNKNOWN: [u8; 8] = [0xff; 8];
        if self.volume.is_read_only() {
            return Err(FatError::ReadOnly);
        }
        match self.free_count.take() {
            Some(at) => self.write_at(at, &UNKNOWN),
            None => Ok(()),
        }
    }

    /// Where a cluster begins.
    fn place(&self, cluster: u32) -> Result<u64, FatError> {
        self.table.check(cluster)?;
        Ok(self.data + u64::from(cluster - 2) * self.cluster_bytes)
    }

    fn read_at(&self, start: u64, bytes: &mut [u8]) -> Result<(), FatError> {
        read_at(&self.volume, start, bytes)
    }

    fn write_at(&self, start: u64, bytes: &[u8]) -> Result<(), FatError> {
        write_at(&self.volume, start, bytes)
    }
}

/// Fills bytes from anywhere.
fn read_at(volume: &impl Volume, start: u64, bytes: &mut [u8]) -> Result<(), FatError> {
    let (first, behind) = around(volume, start, bytes.len())?;
    if first == start && behind == start + bytes.len() as u64 {
        return Ok(volume.read(start, bytes)?);
    }
    let mut sectors = vec![0; (behind - first) as usize];
    volume.read(first, &mut sectors)?;
    bytes.copy_from_slice(&sectors[(start - first) as usize..][..bytes.len()]);
    Ok(())
}

/// Writes bytes anywhere.
fn write_at(volume: &impl Volume, start: u64, bytes: &[u8]) -> Result<(), FatError> {
    let (first, behind) = around(volume, start, bytes.len())?;
    if first == start && behind == start + bytes.len() as u64 {
        return Ok(volume.write(start, bytes)?);
    }
    let mut sectors = vec![0; (behind - first) as usize];
    volume.read(first, &mut sectors)?;
    sectors[(start - first) as usize..][..bytes.len()].copy_from_slice(bytes);
    Ok(volume.write(first, &sectors)?)
}

/// The sectors that hold these bytes, which must be the volume's.
fn around(volume: &impl Volume, start: u64, count: usize) -> Result<(u64, u64), FatError> {
    let end = start.checked_add(count as u64);
    match end {
        Some(end) if end.next_multiple_of(SECTOR) <= volume.size() => {
            Ok((start / SECTOR * SECTOR, end.next_multiple_of(SECTOR)))
        }
        _ => Err(FatError::Corrupt("it reaches beyond its volume")),
    }
}
