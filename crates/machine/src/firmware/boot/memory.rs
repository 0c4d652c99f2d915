//! Memory while boot services are on: pages by type, and the pool.
//!
//! Pages are taken from the highest free ones, below 4 GB as long as there are any. The pool takes small pieces from
//! runs of pages of their type, and pages of their own for large ones.

use std::collections::BTreeMap;

use super::super::efi::{self, MemoryType, PAGE, Region};
use super::guest::{Failure, Guest};

/// The most regions, so that an application that takes every other page ends with an error.
const REGIONS_MAX: usize = 16 << 10;
/// The most pieces of the pool.
const PIECES_MAX: usize = 256 << 10;
const FREE: u32 = MemoryType::Conventional as u32;

/// Where pages may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Anywhere.
    Any,
    /// Not behind this address.
    UpTo(u64),
    /// There and nowhere else.
    At(u64),
}

/// All memory by its type, in ascending order, neighbours of one type and attributes as one.
pub struct MemoryMap {
    regions: Vec<Region>,
    key: u64,
}

impl MemoryMap {
    /// Of these regions, in ascending order.
    pub fn new(regions: Vec<Region>) -> MemoryMap {
        let mut map = MemoryMap { regions, key: 1 };
        map.merge();
        map
    }

    /// What changes with every change.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The regions.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Takes so many free pages; answers the first address.
    ///
    /// # Errors
    /// If there are none there.
    pub fn allocate(&mut self, kind: u32, pages: u64, place: Place) -> Result<u64, Failure> {
        const LOW: u64 = 1 << 32;
        let size = pages.checked_mul(PAGE).ok_or(efi::OUT_OF_RESOURCES)?;
        if size == 0 {
            return Err(efi::INVALID_PARAMETER);
        }
        if self.regions.len() + 2 > REGIONS_MAX {
            return Err(efi::OUT_OF_RESOURCES);
        }
        let start = match place {
            Place::At(start) => {
                let end = start.checked_add(size).ok_or(efi::NOT_FOUND)?;
                let holds =
                    |region: &Region| region.kind == FREE && region.start <= start && end <= region.end;
                let is_free = start.is_multiple_of(PAGE) && self.regions.iter().any(holds);
                is_free.then_some(start).ok_or(efi::NOT_FOUND)?
            }
            Place::Any => self
                .highest(size, LOW)
                .or_else(|| self.highest(size, u64::MAX))
                .ok_or(efi::OUT_OF_RESOURCES)?,
            Place::UpTo(last) => self.highest(size, last.saturating_add(1)).ok_or(efi::NOT_FOUND)?,
        };
        self.change(start, start + size, kind);
        Ok(start)
    }

    /// The highest free place of so many bytes that ends at `limit` or before.
    fn highest(&self, size: u64, limit: u64) -> Option<u64> {
        let free = self.regions.iter().rev().filter(|region| region.kind == FREE);
        let mut places = free.filter_map(|region| {
            let start = region.end.min(limit / PAGE * PAGE).checked_sub(size)?;
            (start >= region.start).then_some(start)
        });
        places.next()
    }

    /// Gives back pages, all of which must have been taken.
    ///
    /// # Errors
    /// If some were not, or are the firmware's own.
    pub fn free(&mut self, start: u64, pages: u64) -> Result<(), Failure> {
        let size = pages.checked_mul(PAGE).ok_or(efi::NOT_FOUND)?;
        let end = start.checked_add(size).ok_or(efi::NOT_FOUND)?;
        if size == 0 || !start.is_multiple_of(PAGE) {
            return Err(efi::INVALID_PARAMETER);
        }
        if self.regions.len() + 2 > REGIONS_MAX {
            return Err(efi::OUT_OF_RESOURCES);
        }
        let mut covered = start;
        for region in &self.regions {
            let was_taken = region.kind != FREE && region.attributes == efi::attribute::WRITE_BACK;
            if region.start <= covered && covered < region.end && was_taken {
                covered = region.end;
            }
        }
        if covered < end {
            return Err(efi::NOT_FOUND);
        }
        self.change(start, end, FREE);
        Ok(())
    }

    fn change(&mut self, start: u64, end: u64, kind: u32) {
        let mut changed = Vec::with_capacity(self.regions.len() + 2);
        for region in &self.regions {
            let (from, to) = (region.start.max(start), region.end.min(end));
            if from >= to {
                changed.push(*region);
                continue;
            }
            let parts = [
                (region.start, from, region.kind),
                (from, to, kind),
                (to, region.end, region.kind),
            ];
            for (start, end, kind) in parts.into_iter().filter(|(start, end, _)| start < end) {
                changed.push(Region {
                    start,
                    end,
                    kind,
                    ..*region
                });
            }
        }
        self.regions = changed;
        self.key += 1;
        self.merge();
    }

    fn merge(&mut self) {
        self.regions.dedup_by(|next, before| {
            let is_one =
                before.end == next.start && before.kind == next.kind && before.attributes == next.attributes;
            if is_one {
                before.end = next.end;
            }
            is_one
        });
    }
}

/// Pieces of memory smaller than pages.
#[derive(Default)]
pub struct Pool {
    /// Of each type: where free pieces are, and how long they are.
    free: BTreeMap<u32, BTreeMap<u64, u64>>,
    /// What was taken: its type and size, and whether it has pages of its own.
    taken: BTreeMap<u64, (u32, u64)>,
}

impl Pool {
    const ALIGNMENT: u64 = 16;
    /// What a run of pages for small pieces has.
    const RUN: u64 = 16 * PAGE;
    /// What is longer has its own pages.
    const SMALL_MAX: u64 = Pool::RUN / 4;

    /// Takes memory; answers where it is, a multiple of 16.
    ///
    /// # Errors
    /// If there is none left.
    pub fn allocate(&mut self, map: &mut MemoryMap, kind: u32, size: u64) -> Result<u64, Failure> {
        if self.taken.len() >= PIECES_MAX || size > 1 << 50 {
            return Err(efi::OUT_OF_RESOURCES);
        }
        let size = size.max(1).next_multiple_of(Pool::ALIGNMENT);
        let start = if size > Pool::SMALL_MAX {
            map.allocate(kind, size.div_ceil(PAGE), Place::Any)?
        } else {
            let free = self.free.entry(kind).or_default();
            let found = free
                .iter()
                .find(|(_, room)| **room >= size)
                .map(|(start, room)| (*start, *room));
            let (start, room) = match found {
                Some(found) => found,
                None => (map.allocate(kind, Pool::RUN / PAGE, Place::Any)?, Pool::RUN),
            };
            free.remove(&start);
            if room > size {
                free.insert(start + size, room - size);
            }
            start
        };
        self.taken.insert(start, (kind, size));
        Ok(start)
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// If nothing was taken there.
    pub fn free(&mut self, map: &mut MemoryMap, start: u64) -> Result<(), Failure> {
        let (kind, size) = self.taken.remove(&start).ok_or(efi::INVALID_PARAMETER)?;
        if size > Pool::SMALL_MAX {
            return map.free(start, size.div_ceil(PAGE));
        }
        let free = self.free.entry(kind).or_default();
        let (mut start, mut size) = (start, size);
        if let Some(room) = free.remove(&(start + size)) {
            size += room;
        }
        if let Some((&before, &room)) = free.range(..start).next_back()
            && before + room == start
        {
            free.remove(&before);
            (start, size) = (before, size + room);
        }
        free.insert(start, size);
        Ok(())
    }
}

/// What pages and pool there are.
pub struct Memory {
    /// All of it.
    pub map: MemoryMap,
    pool: Pool,
}

impl Memory {
    /// Of these regions.
    pub fn new(regions: Vec<Region>) -> Memory {
        Memory {
            map: MemoryMap::new(regions),
            pool: Pool::default(),
        }
    }

    /// Takes memory from the pool for the firmware itself and fills it.
    pub fn place(&mut self, guest: &mut Guest<'_, '_>, bytes: &[u8]) -> Result<u64, Failure> {
        self.place_as(guest, MemoryType::BootServicesData, bytes)
    }

    /// The same with memory of another type.
    pub fn place_as(
        &mut self,
        guest: &mut Guest<'_, '_>,
        kind: MemoryType,
        bytes: &[u8],
    ) -> Result<u64, Failure> {
        let at = self.take(kind as u32, bytes.len() as u64)?;
        guest.write(at, bytes)?;
        Ok(at)
    }

    /// Takes memory from the pool.
    ///
    /// # Errors
    /// If there is none left.
    pub fn take(&mut self, kind: u32, size: u64) -> Result<u64, Failure> {
        self.pool.allocate(&mut self.map, kind, size)
    }

    /// Gives it back.
    ///
    /// # Errors
    /// If nothing was taken there.
    pub fn give(&mut self, start: u64) -> Result<(), Failure> {
        self.pool.free(&mut self.map, start)
    }

    /// Type of allocation, type of memory, pages, the address to be read and written.
    pub fn allocate_pages(&mut self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        let [how, kind, pages, address] = guest.arguments();
        let kind = kind_of(kind)?;
        let place = match how {
            0 => Place::Any,
            1 => Place::UpTo(guest.word(address)?),
            2 => Place::At(guest.word(address)?),
            _ => return Err(efi::INVALID_PARAMETER),
        };
        let start = self.map.allocate(kind, pages, place)?;
        guest.set_word(address, start)
    }

    /// Address, pages.
    pub fn free_pages(&mut self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        let [start, pages] = guest.arguments();
        self.map.free(start, pages)
    }

    /// Type of memory, size, where the address is to be written.
    pub fn allocate_pool(&mut self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        let [kind, size, address] = guest.arguments();
        let start = self.take(kind_of(kind)?, size)?;
        guest.set_word(address, start)
    }

    /// Address.
    pub fn free_pool(&mut self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        let [start] = guest.arguments();
        self.give(start)
    }

    /// Size of the buffer, buffer, and where key, size and version of a descriptor are to be written.
    pub fn get_map(&mut self, guest: &mut Guest<'_, '_>) -> Result<(), Failure> {
        let [size, buffer, key, step, version] = guest.arguments();
        let bytes: Vec<u8> = self.map.regions().iter().flat_map(Region::descriptor).collect();
        guest.set_optional(step, efi::DESCRIPTOR_BYTES)?;
        if version != 0 {
            guest.write(version, &efi::DESCRIPTOR_VERSION.to_le_bytes())?;
        }
        guest.answer(size, buffer, &bytes)?;
        guest.set_optional(key, self.map.key())
    }
}

/// A type of memory that an application may ask for: those of EFI but free memory, and an operating system's own.
fn kind_of(kind: u64) -> Result<u32, Failure> {
    const OF_SYSTEM: u32 = 1 << 31;
    let kind = kind as u32;
    match kind {
        FREE => Err(efi::INVALID_PARAMETER),
        0..=13 | OF_SYSTEM.. => Ok(kind),
        _ => Err(efi::INVALID_PARAMETER),
    }
}
