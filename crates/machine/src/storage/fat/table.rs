//! The file allocation table: for each cluster, which one comes behind it.

use super::{FatError, Volume, read_at, write_at};

/// How many bits an entry has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Twelve,
    Sixteen,
    ThirtyTwo,
}

impl Width {
    /// Entries from here on end a chain, or are bad clusters.
    fn end(self) -> u32 {
        match self {
            Width::Twelve => 0xff7,
            Width::Sixteen => 0xfff7,
            Width::ThirtyTwo => 0x0fff_fff7,
        }
    }
}

/// How much of the table is held.
const WINDOW: u64 = 4096;

/// The table, and its copy if there is one.
pub struct Table {
    start: u64,
    bytes: u64,
    copies: u64,
    width: Width,
    clusters: u32,
    /// What part is held, and its bytes.
    window: Option<(u64, Vec<u8>)>,
    /// Where free clusters are looked for.
    next_free: u32,
}

impl Table {
    /// Of a volume with so many clusters, from this byte on.
    ///
    /// # Errors
    /// If it is too short for them.
    pub fn new(start: u64, bytes: u64, copies: u64, clusters: u64) -> Result<Table, FatError> {
        let width = match clusters {
            ..4085 => Width::Twelve,
            4085..65525 => Width::Sixteen,
            _ => Width::ThirtyTwo,
        };
        let entries = match width {
            Width::Twelve => bytes * 2 / 3,
            Width::Sixteen => bytes / 2,
            Width::ThirtyTwo => bytes / 4,
        };
        let clusters = clusters.min(entries.saturating_sub(2));
        if clusters == 0 || clusters >= u64::from(Width::ThirtyTwo.end()) {
            return Err(FatError::Corrupt("its table does not fit its clusters"));
        }
        Ok(Table {
            start,
            bytes,
            copies,
            width,
            clusters: clusters as u32,
            window: None,
            next_free: 2,
        })
    }

    /// Whether entries have 32 bits, and the root directory is a chain.
    pub fn is_32(&self) -> bool {
        self.width == Width::ThirtyTwo
    }

    /// How many clusters there are.
    pub fn clusters(&self) -> u32 {
        self.clusters
    }

    /// Refuses a cluster that there is not.
    pub fn check(&self, cluster: u32) -> Result<(), FatError> {
        match (2..self.clusters + 2).contains(&cluster) {
            true => Ok(()),
            false => Err(FatError::Corrupt("a cluster lies outside of the volume")),
        }
    }

    /// Where the entry of a cluster begins, and how many bytes hold it.
    fn position(&self, cluster: u32) -> (u64, usize) {
        let cluster = u64::from(cluster);
        match self.width {
            Width::Twelve => (cluster * 3 / 2, 2),
            Width::Sixteen => (cluster * 2, 2),
            Width::ThirtyTwo => (cluster * 4, 4),
        }
    }

    /// The bytes of an entry.
    fn raw(&mut self, volume: &impl Volume, cluster: u32) -> Result<u32, FatError> {
        let (at, count) = self.position(cluster);
        let mut value = 0;
        for index in (0..count as u64).rev() {
            value = value << 8 | u32::from(self.byte(volume, at + index)?);
        }
        Ok(value)
    }

    fn byte(&mut self, volume: &impl Volume, at: u64) -> Result<u8, FatError> {
        let first = at / WINDOW * WINDOW;
        if !matches!(self.window, Some((held, _)) if held == first) {
            let mut bytes = vec![0; WINDOW.min(self.bytes.saturating_sub(first)) as usize];
            read_at(volume, self.start + first, &mut bytes)?;
            self.window = Some((first, bytes));
        }
        let byte = self
            .window
            .as_ref()
            .and_then(|(_, bytes)| bytes.get((at - first) as usize));
        byte.copied().ok_or(FatError::Corrupt("its table is too short"))
    }

    fn entry(&mut self, volume: &impl Volume, cluster: u32) -> Result<u32, FatError> {
        let raw = self.raw(volume, cluster)?;
        Ok(match self.width {
            Width::Twelve if cluster % 2 == 1 => raw >> 4,
            Width::Twelve => raw & 0xfff,
            Width::Sixteen => raw,
            Width::ThirtyTwo => raw & 0x0fff_ffff,
        })
    }

    fn set_entry(&mut self, volume: &impl Volume, cluster: u32, value: u32) -> Result<(), FatError> {
        let raw = self.raw(volume, cluster)?;
        let raw = match self.width {
            Width::Twelve if cluster % 2 == 1 => raw & 0xf | value << 4,
            Width::Twelve => raw & 0xf000 | value & 0xfff,
            Width::Sixteen => value & 0xffff,
            // The first four bits are not the entry's.
            Width::ThirtyTwo => raw & 0xf000_0000 | value & 0x0fff_ffff,
        };
        let (at, count) = self.position(cluster);
        for copy in 0..self.copies {
            write_at(
                volume,
                self.start + copy * self.bytes + at,
                &raw.to_le_bytes()[..count],
            )?;
        }
        self.window = None;
        Ok(())
    }

    /// The cluster behind one; `None` behind the last.
    pub fn next(&mut self, volume: &impl Volume, cluster: u32) -> Result<Option<u32>, FatError> {
        let next = self.entry(volume, cluster)?;
        if next >= self.width.end() {
            return Ok(None);
        }
        self.check(next)?;
        Ok(Some(next))
    }

    /// All clusters from one on; none if that is zero.
    ///
    /// # Errors
    /// If there are more than the volume has: the chain goes round.
    pub fn chain(&mut self, volume: &impl Volume, first: u32) -> Result<Vec<u32>, FatError> {
        let mut chain = Vec::new();
        let mut next = (first != 0).then_some(first);
        while let Some(cluster) = next {
            self.check(cluster)?;
            if chain.len() >= self.clusters as usize {
                return Err(FatError::Corrupt("a chain of clusters goes round in circles"));
            }
            chain.push(cluster);
            next = self.next(volume, cluster)?;
        }
        Ok(chain)
    }

    /// How many clusters are free.
    pub fn count_free(&mut self, volume: &impl Volume) -> Result<u32, FatError> {
        let mut free = 0;
        for cluster in 2..self.clusters + 2 {
            free += u32::from(self.entry(volume, cluster)? == 0);
        }
        Ok(free)
    }

    /// Adds free clusters to a chain behind its last one; answers the first of them.
    ///
    /// # Errors
    /// If there are not so many; then nothing has changed.
    pub fn extend(&mut self, volume: &impl Volume, last: Option<u32>, count: u32) -> Result<u32, FatError> {
        if count > self.clusters {
            return Err(FatError::Full);
        }
        let mut found = Vec::new();
        for step in 0..self.clusters {
            if found.len() >= count as usize {
                break;
            }
            let cluster = 2 + (self.next_free - 2 + step) % self.clusters;
            if self.entry(volume, cluster)? == 0 {
                found.push(cluster);
            }
        }
        if found.len() < count as usize {
            return Err(FatError::Full);
        }
        let end = self.width.end() | 8;
        for (index, &cluster) in found.iter().enumerate() {
            let next = found.get(index + 1).copied().unwrap_or(end);
            self.set_entry(volume, cluster, next)?;
        }
        let first = found.first().copied().ok_or(FatError::Full)?;
        if let Some(last) = last {
            self.set_entry(volume, last, first)?;
        }
        self.next_free = found.last().map_or(2, |last| *last);
        Ok(first)
    }

    /// Ends a chain behind the cluster to be kept, if any, and frees the others.
    pub fn release(&mut self, volume: &impl Volume, keep: Option<u32>, rest: &[u32]) -> Result<(), FatError> {
        if let (Some(keep), false) = (keep, rest.is_empty()) {
            self.set_entry(volume, keep, self.width.end() | 8)?;
        }
        for &cluster in rest {
            self.set_entry(volume, cluster, 0)?;
        }
        Ok(())
    }
}
