//! The guest's address space as one reservation of host addresses.
//!
//! A Linux/ia64 process uses four regions of 2^61 bytes, of which the kernel's three-level page table reaches
//! the first 2^44 bytes each (with 16 kB pages). Those four times 16 TB fit into the 128 TB of an x86-64
//! process, so each region is one *window*: a range of host addresses reserved without access. A guest address
//! becomes a host address by adding the window's base; neighbours stay neighbours, every buffer the guest
//! passes is contiguous, and host memory that the guest unmapped stays reserved, so a stale pointer can only
//! fault. Where the host grants less (a small `ulimit -v`), the windows shrink; the guest then sees what a
//! kernel with smaller pages would give.

use std::ptr;

use crate::host::Errno;

/// log2 of the guest's page size: 16 kB, the usual choice of Linux/ia64.
pub const PAGE_SHIFT: u32 = 14;
/// The guest's page size in bytes.
pub const PAGE: u64 = 1 << PAGE_SHIFT;
/// Regions a program may use: 0 to 3. (Region 4 is for huge pages, which this kernel does not offer.)
pub const REGIONS: usize = 4;
/// Window sizes to try, largest first.
const WINDOW_SHIFTS: [u32; 9] = [44, 40, 38, 36, 34, 32, 30, 29, 28];

/// Where the windows are if the host lets them: the same in all emulators, so that they find each other's memory.
const USUAL_BASE: usize = 1 << 44;

/// Rounds down to a page boundary.
pub const fn page_floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// Rounds up to a page boundary; none beyond the last page.
pub fn page_ceiling(address: u64) -> Option<u64> {
    address.checked_add(PAGE - 1).map(page_floor)
}

/// The reserved host addresses, one window a region.
#[derive(Debug)]
pub struct Windows {
    base: *mut u8,
    shift: u32,
}

// SAFETY: the reservation is plain memory; what may be done with it is decided by its users.
unsafe impl Send for Windows {}
// SAFETY: as above.
unsafe impl Sync for Windows {}

impl Windows {
    /// Reserves the windows.
    pub fn reserve() -> Result<Windows, Errno> {
        let mut error = Errno(libc::ENOMEM);
        let usual = [(WINDOW_SHIFTS[0], USUAL_BASE)];
        for (shift, wish) in usual.into_iter().chain(WINDOW_SHIFTS.map(|shift| (shift, 0))) {
            let size = REGIONS << shift;
            let fixed = if wish == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
            let wish = ptr::without_provenance_mut(wish);
            // SAFETY: a fresh mapping without access, at an address the kernel chooses or finds free.
            let base = unsafe { libc::mmap(wish, size, libc::PROT_NONE, flags, -1, 0) };
            if base != libc::MAP_FAILED {
                return Ok(Windows {
                    base: base.cast(),
                    shift,
                });
            }
            error = Errno::last();
        }
        Err(error)
    }

    /// The windows as processors know them, if they begin at a multiple of their size: where the host grants the usual
    /// ones they do.
    pub fn of_processors(&self) -> Option<sidestep_ia64::Windows> {
        let windows = sidestep_ia64::Windows {
            base: self.base,
            size_log2: self.shift,
        };
        self.base
            .addr()
            .is_multiple_of(1 << self.shift)
            .then_some(windows)
    }

    /// Bytes of each region that can be mapped; the last page of a window stays a guard.
    pub fn limit(&self) -> u64 {
        (1 << self.shift) - PAGE
    }

    /// Whether `length` bytes at a guest address lie in one window.
    pub fn contains(&self, address: u64, length: u64) -> bool {
        let offset = address & (u64::MAX >> 3);
        (address >> 61) < REGIONS as u64 && offset <= self.limit() && length <= self.limit() - offset
    }

    /// The host address of a guest address that [`Windows::contains`] accepts.
    pub fn host(&self, address: u64) -> *mut u8 {
        debug_assert!(self.contains(address, 0));
        let offset = (address >> 61) << self.shift | address & (u64::MAX >> 3);
        self.base.wrapping_add(offset as usize)
    }

    /// Whether another process has its windows where these are, as far as its mappings tell.
    pub fn are_those_of(&self, process: u32) -> bool {
        let Ok(maps) = std::fs::read_to_string(format!("/proc/{process}/maps")) else {
            return false;
        };
        let start = self.base.addr();
        let end = start + (REGIONS << self.shift);
        let bounds = maps
            .lines()
            .filter_map(|line| line.split_once(' ')?.0.split_once('-'));
        let (mut has_start, mut has_end) = (false, false);
        for (from, to) in bounds {
            has_start |= usize::from_str_radix(from, 16) == Ok(start);
            has_end |= usize::from_str_radix(to, 16) == Ok(end);
        }
        has_start && has_end
    }

    /// The guest address of a host address within the windows.
    pub fn guest(&self, host: *const u8) -> Option<u64> {
        let offset = (host.addr() as u64).checked_sub(self.base.addr() as u64)?;
        let region = offset >> self.shift;
        (region < REGIONS as u64).then(|| region << 61 | offset & ((1 << self.shift) - 1))
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        // SAFETY: the reservation is ours, and nobody can hold an address of it any more.
        unsafe { libc::munmap(self.base.cast(), REGIONS << self.shift) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn guest_and_host_addresses_correspond(region in 0u64..4, offset in 0u64..1 << 44) {
            let windows = Windows::reserve().expect("a reservation");
            let address = (region << 61) | (offset % windows.limit());
            prop_assert!(windows.contains(address, 0));
            prop_assert_eq!(windows.guest(windows.host(address)), Some(address));
        }

        #[test]
        fn nothing_outside_the_windows_is_accepted(address: u64, length: u64) {
            let windows = Windows::reserve().expect("a reservation");
            let offset = address & (u64::MAX >> 3);
            let inside = address >> 61 < 4
                && offset.checked_add(length).is_some_and(|end| end <= windows.limit());
            prop_assert_eq!(windows.contains(address, length), inside);
        }
    }
}
