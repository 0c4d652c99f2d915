//! Addresses of the different spaces. The only conversion between them is a translation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A 64-bit guest virtual address: the top three bits choose one of eight regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VirtualAddress(pub u64);

/// A guest physical address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PhysicalAddress(pub u64);

impl VirtualAddress {
    /// The virtual region number (bits 63 to 61), which selects a region register.
    pub fn region(self) -> usize {
        (self.0 >> 61) as usize
    }

    /// The first address of the region.
    pub fn region_base(self) -> u64 {
        self.0 & 7 << 61
    }

    /// The offset within the region (bits 60 to 0).
    pub fn offset(self) -> u64 {
        self.0 & (u64::MAX >> 3)
    }
}

impl fmt::Display for VirtualAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#018x}", self.0)
    }
}

impl fmt::Display for PhysicalAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#018x}", self.0)
    }
}
