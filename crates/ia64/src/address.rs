//! Addresses of the different spaces. The only conversion between them is a translation.

use std::fmt;
use std::ops::Add;

use serde::{Deserialize, Serialize};

/// A 64-bit guest virtual address: the top three bits choose one of eight regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VirtualAddress(pub u64);

/// An address of the physical memory that a processor has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PhysicalAddress(pub u64);

impl VirtualAddress {
    /// Where an address has the number of its region: in the bits from here on.
    pub const REGION_SHIFT: u32 = 61;

    /// The virtual region number (bits 63 to 61), which selects a region register.
    pub fn region(self) -> usize {
        (self.0 >> VirtualAddress::REGION_SHIFT) as usize
    }

    /// The offset within the region (bits 60 to 0).
    pub fn offset(self) -> u64 {
        self.0 & (u64::MAX >> 3)
    }
}

/// Arithmetic that stays within one space.
macro_rules! within_a_space {
    ($($address:ident)+) => { $(
        impl $address {
            /// The first of the `1 << size_log2` bytes around it that are aligned to as many.
            #[must_use]
            pub fn aligned_down(self, size_log2: u32) -> $address {
                $address(self.0 & !((1 << size_log2) - 1))
            }

            /// How many bytes it is behind `base`; `None` if it lies before.
            pub fn offset_from(self, base: $address) -> Option<u64> {
                self.0.checked_sub(base.0)
            }
        }

        /// So many bytes on, around the end of the space.
        impl Add<u64> for $address {
            type Output = $address;

            fn add(self, bytes: u64) -> $address {
                $address(self.0.wrapping_add(bytes))
            }
        }

        impl fmt::Display for $address {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{:#018x}", self.0)
            }
        }

        impl fmt::LowerHex for $address {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, formatter)
            }
        }
    )+ };
}

within_a_space!(VirtualAddress PhysicalAddress);
