//! One translation: the page it maps, and who may do what there.

use serde::{Deserialize, Serialize};

use crate::address::{PhysicalAddress, VirtualAddress};
use crate::fault::Access;

/// The page sizes that can be inserted, as powers of two: 4 kB to 4 GB (Itanium 2, manual volume 2, table 4-4).
pub const PAGE_SIZES_LOG2: [u32; 12] = [12, 13, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32];

/// Bits of a physical address that exist, as on the Itanium 2.
pub const PHYSICAL_ADDRESS_BITS: u32 = 50;

/// The memory attribute of a page (manual volume 2, table 4-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryAttribute {
    /// Write back: cacheable memory.
    WriteBack,
    /// Uncacheable.
    Uncacheable,
    /// Uncacheable, exported: `fetchadd` reaches the platform.
    UncacheableExported,
    /// Write coalescing.
    WriteCoalescing,
    /// NaTPage: speculative loads are deferred, others fault.
    NatPage,
}

impl MemoryAttribute {
    /// The attribute of a 3-bit encoding; three encodings are reserved.
    pub fn from_bits(bits: u64) -> Option<MemoryAttribute> {
        match bits & 7 {
            0 => Some(MemoryAttribute::WriteBack),
            4 => Some(MemoryAttribute::Uncacheable),
            5 => Some(MemoryAttribute::UncacheableExported),
            6 => Some(MemoryAttribute::WriteCoalescing),
            7 => Some(MemoryAttribute::NatPage),
            _ => None,
        }
    }

    /// Its encoding.
    pub fn bits(self) -> u64 {
        match self {
            MemoryAttribute::WriteBack => 0,
            MemoryAttribute::Uncacheable => 4,
            MemoryAttribute::UncacheableExported => 5,
            MemoryAttribute::WriteCoalescing => 6,
            MemoryAttribute::NatPage => 7,
        }
    }
}

/// A translation as the TLB holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationEntry {
    /// First virtual address of the page, with the region number in the top bits.
    pub page: VirtualAddress,
    /// Region identifier.
    pub region: u32,
    /// Page size: 2 to this power.
    pub size_log2: u32,
    /// First physical address of the page.
    pub physical: PhysicalAddress,
    /// Protection key.
    pub key: u32,
    /// Whether the page is present; if not, only page, region and size mean something.
    pub present: bool,
    /// Memory attribute.
    pub attribute: MemoryAttribute,
    /// Accessed bit.
    pub accessed: bool,
    /// Dirty bit.
    pub dirty: bool,
    /// Privilege level of the page.
    pub level: u8,
    /// Access rights (0 to 7).
    pub rights: u8,
    /// Exception deferral for code on this page.
    pub deferral: bool,
}

/// A value that an insertion cannot take: it raises the reserved register/field fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedValue;

impl TranslationEntry {
    /// A page of `1 << size_log2` bytes at virtual address `page` that permits everything at every level: read, write,
    /// execute, cached.
    pub const fn permissive(
        page: VirtualAddress,
        physical: PhysicalAddress,
        size_log2: u32,
        region: u32,
    ) -> TranslationEntry {
        TranslationEntry {
            page,
            region,
            size_log2,
            physical,
            key: 0,
            present: true,
            attribute: MemoryAttribute::WriteBack,
            accessed: true,
            dirty: true,
            level: 3,
            rights: 3,
            deferral: false,
        }
    }

    /// Reads the two words of an insertion (manual volume 2, figures 4-5 and 4-6): `pte` as in the register of
    /// `itc` and `itr` and in the VHPT, `itir` with page size and key.
    pub fn new(
        address: VirtualAddress,
        region: u32,
        pte: u64,
        itir: u64,
    ) -> Result<TranslationEntry, ReservedValue> {
        let size_log2 = (itir >> 2 & 63) as u32;
        if !PAGE_SIZES_LOG2.contains(&size_log2) || itir & 3 != 0 || itir >> 32 != 0 {
            return Err(ReservedValue);
        }
        let present = pte & 1 != 0;
        let attribute = MemoryAttribute::from_bits(pte >> 2);
        const RESERVED: u64 = 1 << 1 | 3 << 50;
        if present && (attribute.is_none() || pte & RESERVED != 0) {
            return Err(ReservedValue);
        }
        let physical = PhysicalAddress(pte & (1 << PHYSICAL_ADDRESS_BITS) - 1 & !0xfff);
        Ok(TranslationEntry {
            page: address.aligned_down(size_log2),
            region,
            size_log2,
            physical: physical.aligned_down(size_log2),
            key: (itir >> 8) as u32 & 0xff_ffff,
            present,
            attribute: attribute.unwrap_or(MemoryAttribute::WriteBack),
            accessed: pte >> 5 & 1 != 0,
            dirty: pte >> 6 & 1 != 0,
            level: (pte >> 7 & 3) as u8,
            rights: (pte >> 9 & 7) as u8,
            deferral: pte >> 52 & 1 != 0,
        })
    }

    /// The two words of an insertion that makes this entry.
    pub fn words(&self) -> (u64, u64) {
        let pte = u64::from(self.present)
            | self.attribute.bits() << 2
            | u64::from(self.accessed) << 5
            | u64::from(self.dirty) << 6
            | u64::from(self.level) << 7
            | u64::from(self.rights) << 9
            | self.physical.0
            | u64::from(self.deferral) << 52;
        (pte, u64::from(self.size_log2) << 2 | u64::from(self.key) << 8)
    }

    /// Whether an insertion could have made the entry: every field within its width, both pages aligned.
    pub(crate) fn is_valid(&self) -> bool {
        PAGE_SIZES_LOG2.contains(&self.size_log2) && {
            self.page == self.page.aligned_down(self.size_log2)
                && self.physical == self.physical.aligned_down(self.size_log2)
                && self.physical.0 >> PHYSICAL_ADDRESS_BITS == 0
                && self.region >> 24 == 0
                && self.key >> 24 == 0
                && self.level < 4
                && self.rights < 8
        }
    }

    /// Whether the translation maps `address` of region `region`.
    #[inline]
    pub fn matches(&self, address: VirtualAddress, region: u32) -> bool {
        address.0 >> self.size_log2 == self.page.0 >> self.size_log2 && self.region == region
    }

    /// Whether the translation maps a byte of the `1 << size_log2` bytes around `address`. Purges do not
    /// look at the region number of the virtual address, only at the region identifier.
    pub fn overlaps(&self, address: VirtualAddress, region: u32, size_log2: u32) -> bool {
        let shift = self.size_log2.max(size_log2);
        (address.offset() ^ self.page.offset()) >> shift == 0 && self.region == region
    }

    /// The physical address behind a virtual one.
    pub fn physical_address(&self, address: VirtualAddress) -> PhysicalAddress {
        PhysicalAddress(self.physical.0 | address.0 & (1 << self.size_log2) - 1)
    }

    /// Whether the access rights let privilege level `level` do `access` (manual volume 2, table 4-2).
    pub fn permits(&self, access: Access, level: u8) -> bool {
        let granted = rights(self.rights, self.level, level);
        (!access.reads() || granted.contains('r'))
            && (!access.writes() || granted.contains('w'))
            && (access != Access::Execute || granted.contains('x'))
    }

    /// The level to which `epc` on this page promotes, if it is a gate page.
    pub fn gate_level(&self) -> Option<u8> {
        (self.rights == 7).then_some(self.level)
    }
}

/// What access rights `rights` on a page of level `page` grant to privilege level `level`, as letters.
fn rights(rights: u8, page: u8, level: u8) -> &'static str {
    /// For each value of the field: at the page's own level, at more privileged ones, and at level 0.
    const GRANTS: [[&str; 3]; 7] = [
        ["r", "r", "r"],
        ["rx", "rx", "rx"],
        ["rw", "rw", "rw"],
        ["rwx", "rwx", "rwx"],
        ["r", "rw", "rw"],
        ["rx", "rx", "rwx"],
        ["rwx", "rw", "rw"],
    ];
    match GRANTS.get(usize::from(rights)) {
        // Gate pages are executable at every level, whatever the page's level is.
        None if level == 0 => "rx",
        None => "x",
        Some(_) if level > page => "",
        Some(grants) if level == 0 => grants[2],
        Some(grants) if level == page => grants[0],
        Some(grants) => grants[1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(rights: u64, level: u64) -> TranslationEntry {
        TranslationEntry::new(
            VirtualAddress(0x4000),
            1,
            0x8000 | rights << 9 | level << 7 | 0x61,
            14 << 2,
        )
        .expect("a valid insertion")
    }

    #[test]
    fn rights_depend_on_the_level_as_the_manual_tabulates() {
        assert!(entry(4, 3).permits(Access::Read, 3));
        assert!(!entry(4, 3).permits(Access::Write, 3));
        assert!(entry(4, 3).permits(Access::Write, 2));
        assert!(!entry(5, 3).permits(Access::Write, 1));
        assert!(entry(5, 3).permits(Access::Write, 0));
        assert!(entry(6, 3).permits(Access::Execute, 3));
        assert!(!entry(6, 3).permits(Access::Execute, 1));
        assert!(entry(7, 0).permits(Access::Execute, 3));
        assert!(!entry(7, 0).permits(Access::Read, 3));
        assert!(entry(7, 0).permits(Access::Read, 0));
        assert!(!entry(2, 1).permits(Access::Read, 2));
    }

    #[test]
    fn insertions_refuse_reserved_values() {
        assert_eq!(
            TranslationEntry::new(VirtualAddress(0), 0, 0x61, 15 << 2),
            Err(ReservedValue)
        );
        assert_eq!(
            TranslationEntry::new(VirtualAddress(0), 0, 0x61 | 1 << 2, 14 << 2),
            Err(ReservedValue)
        );
        assert_eq!(
            TranslationEntry::new(VirtualAddress(0), 0, 0x61 | 1 << 50, 14 << 2),
            Err(ReservedValue)
        );
        assert!(
            TranslationEntry::new(VirtualAddress(0), 0, 1 << 50, 14 << 2).is_ok(),
            "a page that is not present is software's"
        );
    }

    #[test]
    fn a_purge_of_a_small_page_hits_the_large_one_around_it_in_any_region() {
        let address = VirtualAddress(5 << 61 | 0x40_0000);
        let large = TranslationEntry::new(address, 7, 0x61, 22 << 2).expect("a valid insertion");
        assert!(large.overlaps(VirtualAddress(0x7f_f000), 7, 12));
        assert!(!large.overlaps(VirtualAddress(0x80_0000), 7, 12));
        assert!(!large.overlaps(VirtualAddress(0x7f_f000), 8, 12));
        assert!(large.overlaps(VirtualAddress(0), 7, 28));
    }
}
