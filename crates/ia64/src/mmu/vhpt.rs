//! The virtual hash page table (VHPT): where its entries stand and what they say, in both formats.
//!
//! Manual volume 2, sections 4.1.5 to 4.1.7. The *short* format is a linear table per region, eight bytes a
//! page; the *long* format is one hash table with 32-byte entries that hold page size, key and a tag.
//!
//! ```text
//!   short:  +0  translation (as for itc)
//!   long:   +0  translation   +8  page size and key (as ITIR)   +16  tag (bit 63: invalid)   +24  for software
//! ```

use crate::address::VirtualAddress;

/// Fields of the page table address register (PTA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTableAddress(pub u64);

impl PageTableAddress {
    /// Whether the walker is enabled at all.
    pub fn is_enabled(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the table has the long format.
    pub fn is_long(self) -> bool {
        self.0 >> 8 & 1 != 0
    }

    /// The table's size: 2 to this power, in bytes.
    pub fn size_log2(self) -> u32 {
        (self.0 >> 2 & 63) as u32
    }

    /// Whether the register may be written with this value: no reserved bit, a size from 32 kB to 2^61 bytes.
    pub fn is_valid(self) -> bool {
        const RESERVED: u64 = 1 << 1 | 0x3f << 9;
        self.0 & RESERVED == 0 && (15..=61).contains(&self.size_log2())
    }
}

/// Fields of a region register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRegister(pub u64);

impl RegionRegister {
    /// Whether the walker is enabled for the region.
    pub fn walker_enabled(self) -> bool {
        self.0 & 1 != 0
    }

    /// The region's preferred page size: 2 to this power.
    pub fn size_log2(self) -> u32 {
        (self.0 >> 2 & 63) as u32
    }

    /// The region identifier (24 bits).
    pub fn identifier(self) -> u32 {
        (self.0 >> 8) as u32 & 0xff_ffff
    }

    /// Whether the register may be written with this value: no reserved bit, a page size that exists.
    pub fn is_valid(self) -> bool {
        const RESERVED: u64 = 1 << 1 | 0xffff_ffff << 32;
        self.0 & RESERVED == 0 && super::entry::PAGE_SIZES_LOG2.contains(&self.size_log2())
    }

    /// What an insertion for the region is given when nothing else says it: ITIR with page size and the
    /// region identifier as key.
    pub fn default_itir(self) -> u64 {
        u64::from(self.identifier()) << 8 | u64::from(self.size_log2()) << 2
    }
}

/// The bits of a virtual address below the region number.
const OFFSET_MASK: u64 = (1 << 61) - 1;

/// `thash`: the address of the entry for a virtual address.
pub fn hash(address: VirtualAddress, region: RegionRegister, table: PageTableAddress) -> VirtualAddress {
    let page = address.offset() >> region.size_log2();
    let (offset, number) = if table.is_long() {
        // The hash itself is the implementation's choice; software learns it from this instruction only.
        (
            (page ^ u64::from(region.identifier())) << 5,
            table.0 & !OFFSET_MASK,
        )
    } else {
        (page << 3, address.0 & !OFFSET_MASK)
    };
    let base = table.0 & OFFSET_MASK & !0x7fff;
    let mask = (1u64 << table.size_log2().min(61)) - 1;
    VirtualAddress(number | base & !mask | offset & mask & OFFSET_MASK)
}

/// `ttag`: what the tag of a long-format entry must be for a virtual address. Together with the place that
/// [`hash`] chose it names the page and the region.
pub fn tag(address: VirtualAddress, region: RegionRegister) -> u64 {
    let page = address.offset() >> region.size_log2();
    (page ^ u64::from(region.identifier()) << 39) & (u64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE_64K: u64 = 16 << 2 | 1;

    #[test]
    fn the_short_table_is_linear_within_each_region() {
        let table = PageTableAddress(0x1fff_ffff_fff0_0000 & !0xffff | TABLE_64K);
        let region = RegionRegister(14 << 2 | 7 << 8);
        let first = hash(VirtualAddress(2 << 61), region, table);
        let sixth = hash(VirtualAddress(2 << 61 | 5 << 14), region, table);
        assert_eq!(sixth, first + 40);
        assert_eq!(first.region(), 2);
    }

    proptest! {
        #[test]
        fn entries_lie_in_the_table(address: u64, identifier in 0u64..1 << 24, long: bool) {
            let base = 5u64 << 61 | 0x10_0000;
            let table = PageTableAddress(base | TABLE_64K | u64::from(long) << 8);
            let entry = hash(VirtualAddress(address), RegionRegister(identifier << 8 | 14 << 2), table).0;
            prop_assert_eq!(entry & OFFSET_MASK & !0xffff, 0x10_0000);
            prop_assert_eq!(entry % if long { 32 } else { 8 }, 0);
        }

        #[test]
        fn hash_and_tag_together_tell_pages_and_regions_apart(
            first: u64, second: u64, one in 0u64..1 << 24, other in 0u64..1 << 24
        ) {
            let table = PageTableAddress(TABLE_64K | 1 << 8);
            let name = |address: u64, identifier: u64| {
                let region = RegionRegister(identifier << 8 | 14 << 2);
                let address = VirtualAddress(address);
                (hash(address, region, table), tag(address, region))
            };
            let same = (first & OFFSET_MASK) >> 14 == (second & OFFSET_MASK) >> 14 && one == other;
            prop_assert_eq!(name(first, one) == name(second, other), same);
        }
    }
}
