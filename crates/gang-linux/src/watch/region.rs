//! Which memory an address is: the same memory has the same name in every process that maps it.
//!
//! A shared mapping is named by its file (device and inode; anonymous shared memory has one too) and the page in it,
//! private memory by its process and page. Mappings are read from `/proc/PID/maps`, when a process is first seen and
//! after the kernel reported a new mapping.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

/// Bits of an address within a region: the page that faults as a whole. A huge page faults as a whole too, so in it
/// only the region of the first touch is seen until the next scan.
pub const PAGE_BITS: u32 = 12;

/// A page of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// Of one process alone.
    Private {
        /// The process.
        process: i32,
        /// The page of its address space.
        page: u64,
    },
    /// Of a file or shared memory.
    Shared {
        /// The device the file is on.
        device: u64,
        /// Its inode.
        inode: u64,
        /// The page in the file.
        page: u64,
    },
    /// Of a KVM guest.
    Guest {
        /// The process that runs it.
        process: i32,
        /// The page of guest-physical memory.
        page: u64,
    },
}

/// A line of `/proc/PID/maps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    device: u64,
    inode: u64,
    is_shared: bool,
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        let is_shared = fields.next()?.as_bytes().get(3)? == &b's';
        let offset = hexadecimal(fields.next()?)?;
        let (major, minor) = fields.next()?.split_once(':')?;
        let device = (hexadecimal(major)? << 32) | (hexadecimal(minor)? & 0xffff_ffff);
        let inode = fields.next()?.parse().ok()?;
        Some(Self {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            offset,
            device,
            inode,
            is_shared,
        })
    }
}

/// The mappings of the watched processes.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    spaces: BTreeMap<i32, Vec<Mapping>>,
}

impl AddressSpaces {
    /// Forgets a process's mappings: they changed, or it ended.
    pub fn forget(&mut self, process: i32) {
        self.spaces.remove(&process);
    }

    /// The region of an address.
    pub fn region(&mut self, process: i32, address: u64) -> Region {
        let mappings = self
            .spaces
            .entry(process)
            .or_insert_with(|| shared_mappings(process));
        let after = mappings.partition_point(|mapping| mapping.start <= address);
        match after
            .checked_sub(1)
            .map(|index| mappings[index])
            .filter(|mapping| address < mapping.end)
        {
            Some(Mapping {
                start,
                offset,
                device,
                inode,
                ..
            }) => Region::Shared {
                device,
                inode,
                page: (address - start + offset) >> PAGE_BITS,
            },
            None => Region::Private {
                process,
                page: address >> PAGE_BITS,
            },
        }
    }
}

/// Where a process has shared memory, ascending.
pub(super) fn shared_ranges(process: i32) -> Vec<Range<u64>> {
    let mappings = shared_mappings(process).into_iter();
    mappings.map(|mapping| mapping.start..mapping.end).collect()
}

fn shared_mappings(process: i32) -> Vec<Mapping> {
    let text = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    text.lines()
        .filter_map(Mapping::parse)
        .filter(|mapping| mapping.is_shared)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read() {
        let line = "7f00aa000-7f00ab000 rw-s 00002000 00:01 1024                       /dev/zero (deleted)";
        let mapping = Mapping::parse(line).expect("a line of the kernel's");
        assert_eq!(
            (mapping.start, mapping.end, mapping.offset),
            (0x7_f00a_a000, 0x7_f00a_b000, 0x2000)
        );
        assert_eq!(
            (mapping.device, mapping.inode, mapping.is_shared),
            (1, 1024, true)
        );
    }

    #[test]
    fn shared_memory_has_one_name_and_private_memory_is_its_processs() {
        let shared = Mapping {
            start: 0x1000,
            end: 0x5000,
            offset: 0x3000,
            device: 1,
            inode: 9,
            is_shared: true,
        };
        let moved = Mapping {
            start: 0x9000,
            end: 0xb000,
            offset: 0x4000,
            ..shared
        };
        let mut spaces = AddressSpaces {
            spaces: BTreeMap::from([(1, vec![shared]), (2, vec![moved])]),
        };
        assert_eq!(spaces.region(1, 0x2fff), spaces.region(2, 0x9000));
        assert_eq!(spaces.region(1, 0x5000), Region::Private { process: 1, page: 5 });
        assert_ne!(spaces.region(1, 0x100), spaces.region(2, 0x100));
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in ".{0,80}") {
            let _ = Mapping::parse(&line);
        }
    }
}
