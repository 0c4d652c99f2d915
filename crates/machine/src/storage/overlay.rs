//! What was written over a disk that itself stays as it is: sectors in memory, up to a limit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::SECTOR;

/// The bytes of a sector.
pub type Sector = [u8; SECTOR as usize];

/// Sectors that were written over a disk.
#[derive(Debug)]
pub struct Overlay {
    sectors: BTreeMap<u64, Box<Sector>>,
    most: usize,
}

impl Overlay {
    /// For so many bytes at most, as many whole sectors as those are.
    pub fn new(bytes_max: u64) -> Overlay {
        Overlay {
            sectors: BTreeMap::new(),
            most: usize::try_from(bytes_max / SECTOR).unwrap_or(usize::MAX),
        }
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.sectors.is_empty()
    }

    /// Whether `count` sectors from `first` on can be written.
    pub fn has_room(&self, first: u64, count: u64) -> bool {
        let there = self.sectors.range(first..first.saturating_add(count)).count();
        let more = usize::try_from(count).map_or(usize::MAX, |count| count - there);
        self.sectors.len().saturating_add(more) <= self.most
    }

    /// Writes whole sectors, for which there is room.
    ///
    /// # Panics
    /// If `bytes` is no multiple of a sector.
    pub fn write(&mut self, first: u64, bytes: &[u8]) {
        let (sectors, rest) = bytes.as_chunks::<{ SECTOR as usize }>();
        assert!(rest.is_empty(), "whole sectors");
        for (number, sector) in (first..).zip(sectors) {
            self.sectors.insert(number, Box::new(*sector));
        }
    }

    /// Puts what was written over these whole sectors in its place.
    pub fn read(&self, first: u64, bytes: &mut [u8]) {
        let count = bytes.len() as u64 / SECTOR;
        for (number, sector) in self.sectors.range(first..first + count) {
            let start = ((number - first) * SECTOR) as usize;
            bytes[start..start + sector.len()].copy_from_slice(&sector[..]);
        }
    }
}

/// An overlay that outlives the disk that it is on: clones are the same one.
#[derive(Clone, Debug)]
pub struct Kept(Arc<Mutex<Overlay>>);

impl Kept {
    /// For so many bytes at most.
    pub fn new(bytes_max: u64) -> Kept {
        Kept(Arc::new(Mutex::new(Overlay::new(bytes_max))))
    }

    /// What was written.
    pub fn overlay(&self) -> MutexGuard<'_, Overlay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_the_rest_stays() {
        let mut overlay = Overlay::new(3 * SECTOR + 1);
        overlay.write(4, &[7; 2 * SECTOR as usize]);
        let mut bytes = [1; 4 * SECTOR as usize];
        overlay.read(3, &mut bytes);
        let firsts: Vec<u8> = bytes.chunks(SECTOR as usize).map(|sector| sector[511]).collect();
        assert_eq!(firsts, [1, 7, 7, 1]);
    }

    #[test]
    fn a_limit_counts_each_sector_once() {
        let mut overlay = Overlay::new(3 * SECTOR + 1);
        assert!(overlay.has_room(0, 3) && !overlay.has_room(0, 4));
        overlay.write(10, &[0; 2 * SECTOR as usize]);
        assert!(overlay.has_room(10, 3) && overlay.has_room(11, 2) && !overlay.has_room(12, 2));
        assert!(!overlay.has_room(u64::MAX, u64::MAX));
    }
}
