//! Memory that lies in the host's address space as it does in the guest's, region by region: a back end reaches it by
//! changing the bits that say which region it is, and the host raises the faults.

use std::mem::offset_of;

use crate::address::VirtualAddress;

/// Regions that have a window: the first ones.
const REGIONS: usize = 4;
/// What takes addresses of the first regions beyond all that hosts have.
const NOWHERE: u64 = 1 << 62;
/// Sizes of accesses, by their logarithms.
const SIZES: usize = 5;

/// Where regions 0 to 3 lie in the host's memory: the first bytes of each, one region behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The host address of region 0: a multiple of a window's size.
    pub base: *mut u8,
    /// How many bytes of each region have a place, as a power of two: at most 2^60.
    pub size_log2: u32,
}

/// What a back end has to know of windows, if there are any.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct WindowTable {
    /// By the logarithm of an access's size: bits that no aligned address in a window has set.
    outside: [u64; SIZES],
    /// By region: the bits in which guest and host addresses differ.
    differences: [u64; 8],
}

impl WindowTable {
    pub(crate) const OUTSIDE: usize = offset_of!(WindowTable, outside);
    pub(crate) const DIFFERENCES: usize = offset_of!(WindowTable, differences);

    /// No windows: every address but zero is outside, and where that would lead is nothing.
    pub(crate) const CLOSED: WindowTable = WindowTable {
        outside: [u64::MAX; SIZES],
        differences: [NOWHERE; 8],
    };

    pub(crate) fn is_open(&self) -> bool {
        self.outside[0] != u64::MAX
    }
}

impl From<Option<Windows>> for WindowTable {
    fn from(windows: Option<Windows>) -> WindowTable {
        let Some(Windows { base, size_log2 }) = windows else {
            return WindowTable::CLOSED;
        };
        let inside = (REGIONS as u64 - 1) << VirtualAddress::REGION_SHIFT | ((1 << size_log2) - 1);
        let mut table = WindowTable::CLOSED;
        for (size, outside) in table.outside.iter_mut().enumerate() {
            *outside = !inside | ((1 << size) - 1);
        }
        for (region, difference) in (0..).zip(&mut table.differences[..REGIONS]) {
            let place = (base.addr() as u64).wrapping_add(region << size_log2);
            *difference = place ^ region << VirtualAddress::REGION_SHIFT;
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The host address of an access, if it is in a window.
    fn host(table: &WindowTable, address: u64, size_log2: usize) -> Option<u64> {
        let is_inside = address & table.outside[size_log2] == 0;
        is_inside.then(|| address ^ table.differences[VirtualAddress(address).region()])
    }

    proptest! {
        #[test]
        fn windows_hold_aligned_addresses_of_their_regions(
            address: u64, region in 0u64..8, offset in 0u64..1 << 33, size_log2 in 28u32..45, size in 0usize..SIZES,
        ) {
            let base = 7u64 << 44;
            let windows = Windows { base: std::ptr::without_provenance_mut(base as usize), size_log2 };
            let table = WindowTable::from(Some(windows));
            let start = region << VirtualAddress::REGION_SHIFT;
            for address in [address, start | offset, start | offset >> size << size] {
                let region = VirtualAddress(address).region() as u64;
                let offset = VirtualAddress(address).offset();
                let is_inside = region < 4 && offset >> size_log2 == 0 && address.is_multiple_of(1 << size);
                let expected = is_inside.then(|| base + (region << size_log2) + offset);
                prop_assert_eq!(host(&table, address, size), expected);
            }
        }
    }

    #[test]
    fn nothing_is_in_windows_that_are_closed() {
        assert!(!WindowTable::CLOSED.is_open());
        for address in [1, 1 << 61, u64::MAX] {
            assert_eq!(host(&WindowTable::CLOSED, address, 0), None);
        }
    }
}
