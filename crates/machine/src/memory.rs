//! The memory of a machine: ranges of RAM and ROM, backed by host memory.
//!
//! [`GuestMemory`] is what the host side (loaders, devices, firmware, debuggers) reads and writes with typed
//! physical addresses; no Rust reference to guest bytes exists. Processors reach the same bytes through
//! [`GuestMemory::region`]. An address that no range holds is an error value, never a panic.
//!
//! Ranges are multiples of [`GRANULE`]; they may touch but not overlap. Host writes reach ROM as well: that is
//! how it gets its contents.

mod code;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sidestep_ia64::{HOST_PAGE_LOG2, MemoryRegion, PhysicalAddress};
use thiserror::Error;
use vm_memory::{ByteValued, Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};

use self::code::CodeWatch;

/// Ranges begin and end at multiples of this: 64 kB, the largest page that maps memory and devices apart.
pub const GRANULE: u64 = 1 << 16;
/// Implemented physical addresses have 50 bits, as on the Itanium 2.
pub const PHYSICAL_ADDRESS_BITS: u32 = 50;

/// The first address of the processor interrupt block, which no memory and no device may take.
pub const INTERRUPT_BLOCK: PhysicalAddress = PhysicalAddress(0xfee0_0000);
/// Its size in bytes.
pub const INTERRUPT_BLOCK_SIZE: u64 = 2 << 20;

/// What stores of a processor do in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// They are kept.
    Ram,
    /// They are dropped.
    Rom,
}

/// A range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// Its first address; a multiple of [`GRANULE`].
    pub start: PhysicalAddress,
    /// Its size in bytes; a multiple of [`GRANULE`], not zero.
    pub size: u64,
    /// What stores do.
    pub kind: MemoryKind,
}

impl MemoryRange {
    /// RAM.
    pub fn ram(start: u64, size: u64) -> MemoryRange {
        let start = PhysicalAddress(start);
        MemoryRange {
            start,
            size,
            kind: MemoryKind::Ram,
        }
    }

    /// The address behind the last byte.
    pub fn end(&self) -> u64 {
        self.start.0.saturating_add(self.size)
    }
}

/// Why memory could not be made.
#[derive(Debug, Error)]
pub enum LayoutError {
    /// No range at all.
    #[error("the machine has no memory: it needs one range at least")]
    Empty,
    /// A range that is empty or not a multiple of [`GRANULE`].
    #[error(
        "the memory at {start} with {size:#x} bytes must begin and end at multiples of {GRANULE:#x} and not be empty"
    )]
    Granule {
        /// Its start.
        start: PhysicalAddress,
        /// Its size.
        size: u64,
    },
    /// A range beyond the implemented addresses.
    #[error(
        "the memory at {start} with {size:#x} bytes reaches beyond the {PHYSICAL_ADDRESS_BITS} implemented address bits"
    )]
    Unimplemented {
        /// Its start.
        start: PhysicalAddress,
        /// Its size.
        size: u64,
    },
    /// Two ranges share addresses.
    #[error("the memory at {first} with {size:#x} bytes overlaps the memory at {second}")]
    Overlap {
        /// The lower start.
        first: PhysicalAddress,
        /// The size of that range.
        size: u64,
        /// The higher start.
        second: PhysicalAddress,
    },
    /// A range where processors send interrupts.
    #[error(
        "the memory at {start} with {size:#x} bytes overlaps the processor interrupt block at {}",
        INTERRUPT_BLOCK
    )]
    InterruptBlock {
        /// Its start.
        start: PhysicalAddress,
        /// Its size.
        size: u64,
    },
    /// The host has not enough memory.
    #[error("the host grants no memory for the machine: {0}")]
    Host(String),
}

/// An access of the host side that memory cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no memory holds all of the {size:#x} bytes at {address}")]
pub struct MemoryError {
    /// Where the access begins.
    pub address: PhysicalAddress,
    /// How many bytes it wants.
    pub size: u64,
}

/// The memory of a machine.
#[derive(Debug)]
pub struct GuestMemory {
    map: GuestMemoryMmap<()>,
    /// In ascending order.
    ranges: Vec<MemoryRange>,
    /// As processors see them, in the same order.
    regions: Vec<MemoryRegion>,
    code: CodeWatch,
}

impl GuestMemory {
    /// Memory of these ranges, in any order; all zero.
    ///
    /// # Errors
    /// Ranges that overlap, are no multiples of [`GRANULE`] or beyond implemented addresses, or more than the host
    /// grants.
    pub fn new(ranges: &[MemoryRange]) -> Result<GuestMemory, LayoutError> {
        let mut ranges = ranges.to_vec();
        ranges.sort_by_key(|range| range.start);
        check(&ranges)?;
        let sizes: Vec<(GuestAddress, usize)> = ranges
            .iter()
            .map(|range| (GuestAddress(range.start.0), range.size as usize))
            .collect();
        let map = GuestMemoryMmap::<()>::from_ranges(&sizes)
            .map_err(|error| LayoutError::Host(error.to_string()))?;
        let regions = ranges
            .iter()
            .map(|range| MemoryRegion {
                start: range.start,
                size: range.size,
                host: map
                    .get_host_address(GuestAddress(range.start.0))
                    .expect("every range has just been mapped"),
                writable: range.kind == MemoryKind::Ram,
            })
            .collect::<Vec<_>>();
        Ok(GuestMemory {
            code: CodeWatch::new(&regions),
            map,
            ranges,
            regions,
        })
    }

    /// The ranges in ascending order.
    pub fn ranges(&self) -> &[MemoryRange] {
        &self.ranges
    }

    /// The region that holds an address, as processors want it.
    pub fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion> {
        self.region_index(address).map(|index| self.regions[index])
    }

    fn region_index(&self, address: PhysicalAddress) -> Option<usize> {
        let index = self
            .regions
            .partition_point(|region| region.start <= address)
            .checked_sub(1)?;
        let region = &self.regions[index];
        (address.0 - region.start.0 < region.size).then_some(index)
    }

    /// Whether all of these bytes are memory.
    pub fn holds(&self, address: PhysicalAddress, size: u64) -> bool {
        usize::try_from(size).is_ok_and(|size| self.map.check_range(GuestAddress(address.0), size))
    }

    /// Whether a device may read and write all of these bytes: ROM is written by loaders alone.
    pub fn is_ram(&self, address: PhysicalAddress, size: u64) -> bool {
        let Some(end) = address.0.checked_add(size) else {
            return false;
        };
        let touches = |range: &&MemoryRange| address.0 < range.end() && range.start.0 < end;
        let is_ram = |range: &MemoryRange| range.kind == MemoryKind::Ram;
        size == 0 || self.holds(address, size) && self.ranges.iter().filter(touches).all(is_ram)
    }

    /// Fills `bytes` from RAM, as a device does that reaches memory by itself.
    pub fn read_ram(&self, address: PhysicalAddress, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let size = bytes.len() as u64;
        match self.is_ram(address, size) {
            true => self.read(address, bytes),
            false => Err(MemoryError { address, size }),
        }
    }

    /// Writes `bytes` to RAM, as a device does that reaches memory by itself; nothing if not all of them fit.
    pub fn write_ram(&self, address: PhysicalAddress, bytes: &[u8]) -> Result<(), MemoryError> {
        let size = bytes.len() as u64;
        match self.is_ram(address, size) {
            true => self.write(address, bytes),
            false => Err(MemoryError { address, size }),
        }
    }

    /// Fills `bytes` from memory.
    pub fn read(&self, address: PhysicalAddress, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let size = bytes.len() as u64;
        self.map
            .read_slice(bytes, GuestAddress(address.0))
            .map_err(|_| MemoryError { address, size })
    }

    /// Writes `bytes` to memory, ROM included; nothing if not all of them fit. Processors read instructions there
    /// again.
    pub fn write(&self, address: PhysicalAddress, bytes: &[u8]) -> Result<(), MemoryError> {
        let size = bytes.len() as u64;
        if !self.holds(address, size) {
            return Err(MemoryError { address, size });
        }
        self.map
            .write_slice(bytes, GuestAddress(address.0))
            .map_err(|_| MemoryError { address, size })?;
        self.note_written(address, size);
        Ok(())
    }

    fn note_written(&self, address: PhysicalAddress, size: u64) {
        let (mut at, end) = (address, address.0 + size);
        while at.0 < end
            && let Some(index) = self.region_index(at)
        {
            let region = &self.regions[index];
            let stop = end.min(region.start.0 + region.size);
            let page = |address: u64| (address - region.start.0) >> HOST_PAGE_LOG2;
            self.code.written(index, page(at.0)..=page(stop - 1));
            at = PhysicalAddress(stop);
        }
    }

    /// Names the processors that read instructions here, by what makes them come back to whoever runs them.
    pub(crate) fn connect(&self, attention: &[Arc<AtomicBool>]) {
        self.code.connect(attention.iter().map(Arc::clone));
    }

    /// Notes that a processor is about to read instructions from a page of the host's memory, by its number.
    pub fn instructions_read(&self, page: u64) {
        self.code.instructions_read(page);
    }

    /// The pages of the host's memory, by their numbers, whose instructions processor `index` must forget, since the
    /// host side has written there; each is told once.
    pub fn take_changed_code(&self, index: usize) -> BTreeSet<u64> {
        self.code.take_changed(index)
    }

    /// Reads an integer or a plain structure, byte by byte as memory holds it.
    pub fn read_value<T: ByteValued>(&self, address: PhysicalAddress) -> Result<T, MemoryError> {
        self.map
            .read_obj(GuestAddress(address.0))
            .map_err(|_| MemoryError {
                address,
                size: size_of::<T>() as u64,
            })
    }

    /// Writes an integer or a plain structure, byte by byte as the host holds it.
    pub fn write_value<T: ByteValued>(&self, address: PhysicalAddress, value: T) -> Result<(), MemoryError> {
        self.write(address, value.as_slice())
    }

    /// Writes `size` zeros, ROM included; nothing if not all of them fit.
    pub fn clear(&self, address: PhysicalAddress, size: u64) -> Result<(), MemoryError> {
        const ZEROS: [u8; 4096] = [0; 4096];
        if !self.holds(address, size) {
            return Err(MemoryError { address, size });
        }
        let mut done = 0;
        while done < size {
            let count = (size - done).min(ZEROS.len() as u64);
            self.write(address + done, &ZEROS[..count as usize])?;
            done += count;
        }
        Ok(())
    }

    /// The bytes up to a zero byte, at most `most` of them.
    pub fn read_string(&self, address: PhysicalAddress, most: usize) -> Result<Vec<u8>, MemoryError> {
        let mut string = Vec::new();
        while string.len() < most {
            let at = address + string.len() as u64;
            match self.read_value::<u8>(at)? {
                0 => break,
                byte => string.push(byte),
            }
        }
        Ok(string)
    }

    /// The same memory for crates that work on `vm-memory`'s types, such as virtual I/O queues.
    pub fn as_vm_memory(&self) -> &GuestMemoryMmap<()> {
        &self.map
    }
}

fn check(ranges: &[MemoryRange]) -> Result<(), LayoutError> {
    if ranges.is_empty() {
        return Err(LayoutError::Empty);
    }
    for &MemoryRange { start, size, .. } in ranges {
        if size == 0 || !start.0.is_multiple_of(GRANULE) || !size.is_multiple_of(GRANULE) {
            return Err(LayoutError::Granule { start, size });
        }
        if start
            .0
            .checked_add(size)
            .is_none_or(|end| end > 1 << PHYSICAL_ADDRESS_BITS)
        {
            return Err(LayoutError::Unimplemented { start, size });
        }
        let block = INTERRUPT_BLOCK.0;
        if start.0 < block + INTERRUPT_BLOCK_SIZE && block < start.0 + size {
            return Err(LayoutError::InterruptBlock { start, size });
        }
    }
    for pair in ranges.windows(2) {
        if pair[0].end() > pair[1].start.0 {
            return Err(LayoutError::Overlap {
                first: pair[0].start,
                size: pair[0].size,
                second: pair[1].start,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout_error(ranges: &[MemoryRange]) -> String {
        GuestMemory::new(ranges).expect_err("a bad layout").to_string()
    }

    #[test]
    fn bytes_cross_ranges_that_touch_but_not_holes() {
        let memory = GuestMemory::new(&[
            MemoryRange::ram(0x20_0000, GRANULE),
            MemoryRange::ram(0x1f_0000, GRANULE),
        ])
        .expect("a good layout");
        let at = PhysicalAddress(0x1f_fffc);
        memory.write_value(at, 0x1122_3344_5566_7788_u64).expect("memory");
        assert_eq!(memory.read_value::<u64>(at), Ok(0x1122_3344_5566_7788));
        let beyond = PhysicalAddress(0x20_fffc);
        assert_eq!(
            memory.write_value(beyond, 1_u64),
            Err(MemoryError {
                address: beyond,
                size: 8
            })
        );
        assert_eq!(
            memory.read_value::<u32>(beyond),
            Ok(0),
            "nothing of it was written"
        );
        assert!(memory.region(PhysicalAddress(0x1e_ffff)).is_none());
        assert!(memory.region(PhysicalAddress(0x21_0000)).is_none());
        assert_eq!(
            memory.region(beyond).map(|region| region.start),
            Some(PhysicalAddress(0x20_0000))
        );
    }

    #[test]
    fn strings_end_at_a_zero_or_at_the_limit() {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, GRANULE)]).expect("a good layout");
        memory.write(PhysicalAddress(16), b"itanium\0").expect("memory");
        assert_eq!(
            memory.read_string(PhysicalAddress(16), 100).as_deref(),
            Ok(&b"itanium"[..])
        );
        assert_eq!(
            memory.read_string(PhysicalAddress(16), 3).as_deref(),
            Ok(&b"ita"[..])
        );
        assert!(memory.read_string(PhysicalAddress(GRANULE), 1).is_err());
    }

    #[test]
    fn bad_layouts_are_named() {
        assert!(layout_error(&[]).contains("no memory"));
        assert!(layout_error(&[MemoryRange::ram(0x1000, GRANULE)]).contains("multiples of 0x10000"));
        assert!(layout_error(&[MemoryRange::ram(0, 0)]).contains("not be empty"));
        assert!(layout_error(&[MemoryRange::ram(1 << 50, GRANULE)]).contains("50 implemented"));
        assert!(layout_error(&[MemoryRange::ram(0, 4 << 30)]).contains("interrupt block"));
        let overlap = [
            MemoryRange::ram(0, 2 * GRANULE),
            MemoryRange::ram(GRANULE, GRANULE),
        ];
        assert!(layout_error(&overlap).contains("overlaps the memory at 0x0000000000010000"));
    }
}
