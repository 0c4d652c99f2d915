//! What of guest memory the host has at hand: advice, locked pages, and which pages are there.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::Memory;
use super::changes::{invalid, no_memory};
use super::window::PAGE;
use crate::host::{self, Errno};

/// `mlock2` locks pages once they are there.
const MLOCK_ONFAULT: u64 = 1;

impl Memory {
    /// Passes advice on; `ENOMEM` where something of the range is not mapped. It may take pages away, which matters
    /// where the program brings them.
    pub fn advise(&self, address: u64, length: u64, advice: u64) -> Result<(), Errno> {
        if length == 0 && address.is_multiple_of(PAGE) {
            return Ok(());
        }
        let advise = || self.forward(libc::SYS_madvise, address, length, advice);
        if self.knows_watching() {
            self.world.exclusively(advise)
        } else {
            advise()
        }
    }

    /// Passes a call on that takes an address, a length and one more argument, page by mapped page.
    pub fn forward(&self, number: i64, address: u64, length: u64, argument: u64) -> Result<(), Errno> {
        let range = self.pages(address, length)?;
        let mappings = self.mappings();
        for (part, _) in mappings.within(range.clone()) {
            let start = self.host(part.start, part.end - part.start)? as u64;
            // SAFETY: advice, locking and flushing of guest memory changes nothing outside it.
            unsafe { host::call(number, [start, part.end - part.start, argument, 0, 0, 0]) }?;
        }
        if mappings.covers(&range) {
            Ok(())
        } else {
            Err(no_memory())
        }
    }

    /// Locks all present mappings, all future ones, or both.
    pub fn lock_all(&self, flags: u64) -> Result<(), Errno> {
        let flags = flags as i32;
        let which = flags & (libc::MCL_CURRENT | libc::MCL_FUTURE);
        if which == 0 || flags & !(which | libc::MCL_ONFAULT) != 0 {
            return Err(invalid());
        }
        if flags & libc::MCL_CURRENT != 0 {
            let mappings: Vec<_> = self
                .mappings()
                .iter()
                .map(|(range, mapping)| (range.clone(), mapping.protection))
                .collect();
            for (range, protection) in mappings {
                let length = range.end - range.start;
                self.forward(libc::SYS_mlock2, range.start, length, MLOCK_ONFAULT)?;
                let populate = match protection.writes() {
                    true => libc::MADV_POPULATE_WRITE,
                    false => libc::MADV_POPULATE_READ,
                };
                if flags & libc::MCL_ONFAULT == 0 {
                    // Pages that cannot be had are no error of this call.
                    let _ = self.forward(libc::SYS_madvise, range.start, length, populate as u64);
                }
            }
        }
        self.lock_future
            .store(flags & libc::MCL_FUTURE != 0, Ordering::Relaxed);
        Ok(())
    }

    /// Unlocks everything.
    pub fn unlock_all(&self) -> Result<(), Errno> {
        self.lock_future.store(false, Ordering::Relaxed);
        let ranges: Vec<_> = self.mappings().iter().map(|(range, _)| range.clone()).collect();
        ranges
            .iter()
            .try_for_each(|range| self.forward(libc::SYS_munlock, range.start, range.end - range.start, 0))
    }

    /// Which guest pages of a mapped range the host has in memory.
    pub fn resident_pages(&self, range: &Range<u64>) -> Vec<bool> {
        const STEP: u64 = 1 << 30;
        let mut resident = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + STEP);
            let mut host_pages = vec![0u8; ((end - start) / 4096) as usize];
            // SAFETY: the range lies within the windows; the vector has one byte for each host page.
            unsafe {
                libc::mincore(
                    self.windows.host(start).cast(),
                    (end - start) as usize,
                    host_pages.as_mut_ptr(),
                )
            };
            resident.extend(
                host_pages
                    .chunks((PAGE / 4096) as usize)
                    .map(|pages| pages.iter().any(|page| page & 1 != 0)),
            );
            start = end;
        }
        resident
    }

    /// The pages of a range that are resident, for `mincore`.
    pub fn residency(&self, address: u64, length: u64) -> Result<Vec<u8>, Errno> {
        let range = self.pages(address, length)?;
        if !self.mappings().covers(&range) {
            return Err(no_memory());
        }
        Ok(self.resident_pages(&range).into_iter().map(u8::from).collect())
    }
}
