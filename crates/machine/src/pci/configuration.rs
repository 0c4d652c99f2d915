//! The configuration space of a function: 256 bytes, of which some bits can be written.
//!
//! Regions of registers, in memory below 4 GB or among the I/O ports; a list of capabilities; an interrupt pin, if any.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mastering::Mastering;

/// Bytes of the space.
pub const BYTES: usize = 256;

/// Offsets of fields of the header (section 6.1 of the specification).
mod field {
    pub const VENDOR: usize = 0x00;
    pub const DEVICE: usize = 0x02;
    pub const COMMAND: usize = 0x04;
    pub const STATUS: usize = 0x06;
    pub const REVISION: usize = 0x08;
    pub const CLASS: usize = 0x09;
    pub const CACHE_LINE: usize = 0x0c;
    pub const LATENCY: usize = 0x0d;
    pub const HEADER_TYPE: usize = 0x0e;
    pub const REGION: usize = 0x10;
    pub const SUBSYSTEM_VENDOR: usize = 0x2c;
    pub const SUBSYSTEM: usize = 0x2e;
    pub const CAPABILITIES: usize = 0x34;
    pub const INTERRUPT_LINE: usize = 0x3c;
    pub const INTERRUPT_PIN: usize = 0x3d;
}

/// Where the command is, and the bit of it that lets the function master the bus.
pub const COMMAND: u64 = field::COMMAND as u64;
/// See [`COMMAND`].
pub const COMMAND_MASTER: u32 = command::MASTER as u32;
/// Where the status is, whose interrupt bit follows the line.
pub const STATUS: u64 = field::STATUS as u64;
/// The bit of the status that says that the function asks for an interrupt.
pub const STATUS_INTERRUPT: u32 = 1 << 3;
const STATUS_CAPABILITIES: u16 = 1 << 4;
/// Base address registers of a function.
const REGIONS_MAX: usize = 6;
/// Where capabilities begin.
const HEADER: usize = 0x40;

/// Bits of the command.
mod command {
    pub const PORTS: u16 = 1 << 0;
    pub const MEMORY: u16 = 1 << 1;
    pub const MASTER: u16 = 1 << 2;
    pub const PARITY: u16 = 1 << 6;
    pub const ERRORS: u16 = 1 << 8;
    pub const NO_LINE: u16 = 1 << 10;
    pub const ENABLED: u16 = PORTS | MEMORY | MASTER;
    pub const WRITABLE: u16 = PORTS | MEMORY | MASTER | PARITY | ERRORS | NO_LINE;
}

/// What a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who made it.
    pub vendor: u16,
    /// Which device of theirs it is.
    pub device: u16,
    /// Who made the card.
    pub subsystem_vendor: u16,
    /// Which card of theirs it is.
    pub subsystem: u16,
    /// Its revision.
    pub revision: u8,
    /// Class, subclass and programming interface, from the top.
    pub class: u32,
}

/// What a region of registers is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Memory below 4 GB.
    Memory,
    /// The I/O ports.
    Ports,
}

impl Space {
    /// The lowest bits of a base address register, which say its space.
    fn bits(self) -> u32 {
        match self {
            Space::Memory => 0,
            Space::Ports => 1,
        }
    }

    /// The bit of the command that lets the function answer there.
    fn command(self) -> u16 {
        match self {
            Space::Memory => command::MEMORY,
            Space::Ports => command::PORTS,
        }
    }
}

/// Where a function's registers are now; clones follow it.
///
/// Offsets go through all regions: those of each begin where the regions before it end, at a multiple of its size.
#[derive(Clone, Debug, Default)]
pub struct Place {
    regions: Vec<Region>,
}

#[derive(Clone, Debug)]
struct Region {
    /// Which base address register it has.
    number: usize,
    space: Space,
    start: Arc<AtomicU64>,
    size: u64,
    /// The offset of its first byte.
    first: u64,
}

impl Place {
    /// Where no address of a window is.
    const NOWHERE: u64 = u64::MAX;

    /// The offset of `size` bytes at an address of a space, if all are registers of the function.
    pub fn offset(&self, space: Space, address: u64, size: u64) -> Option<u64> {
        let mut regions = self.regions.iter().filter(|region| region.space == space);
        regions.find_map(|region| {
            let offset = address.checked_sub(region.start.load(Ordering::Relaxed))?;
            let fits = offset.checked_add(size)? <= region.size;
            fits.then_some(region.first + offset)
        })
    }

    /// The first address of the first region, if the function answers at all.
    pub fn start(&self) -> Option<u64> {
        let start = self.regions.first()?.start.load(Ordering::Relaxed);
        (start != Place::NOWHERE).then_some(start)
    }

    fn end(&self) -> u64 {
        self.regions.last().map_or(0, |region| region.first + region.size)
    }
}

/// A function's configuration space.
pub struct Configuration {
    bytes: [u8; BYTES],
    /// Which bits can be written.
    writable: [u8; BYTES],
    place: Place,
    mastering: Mastering,
    /// Where the next capability goes, and where its offset does.
    next: usize,
    link: usize,
}

impl Configuration {
    /// Of a function without registers, interrupts and capabilities.
    pub fn new(identity: Identity) -> Configuration {
        let mut space = Configuration {
            bytes: [0; BYTES],
            writable: [0; BYTES],
            place: Place::default(),
            mastering: Mastering::default(),
            next: HEADER,
            link: field::CAPABILITIES,
        };
        for (offset, value) in [
            (field::VENDOR, identity.vendor),
            (field::DEVICE, identity.device),
            (field::SUBSYSTEM_VENDOR, identity.subsystem_vendor),
            (field::SUBSYSTEM, identity.subsystem),
        ] {
            space.put(offset, &value.to_le_bytes());
        }
        space.put(field::REVISION, &[identity.revision]);
        space.put(field::CLASS, &identity.class.to_le_bytes()[..3]);
        space.writable[field::COMMAND..][..2].copy_from_slice(&command::WRITABLE.to_le_bytes());
        space.writable[field::CACHE_LINE] = u8::MAX;
        space.writable[field::LATENCY] = u8::MAX;
        space
    }

    /// Gives the function registers: `size` bytes, a power of two, which firmware has put at `start`.
    ///
    /// # Panics
    /// If the size is none, or the registers are not aligned to it.
    pub fn add_region(&mut self, size: u32, start: u32) {
        self.add_region_at(0, Space::Memory, size, start);
    }

    /// The same in a space with the base address register of this number, behind the regions that were added before.
    /// The place that was asked for earlier does not know of it.
    ///
    /// # Panics
    /// As [`add_region`](Self::add_region), or if there is no such register.
    pub fn add_region_at(&mut self, number: usize, space: Space, size: u32, start: u32) {
        assert!(number < REGIONS_MAX, "{REGIONS_MAX} regions");
        assert!(size.is_power_of_two() && size >= 16, "{size} bytes");
        assert!(start.is_multiple_of(size), "aligned to its size");
        let register = field::REGION + 4 * number;
        self.put(register, &(start | space.bits()).to_le_bytes());
        self.writable[register..][..4].copy_from_slice(&(!(size - 1)).to_le_bytes());
        let size = u64::from(size);
        let first = self.place.end().next_multiple_of(size);
        self.place.regions.push(Region {
            number,
            space,
            start: Arc::new(AtomicU64::new(Place::NOWHERE)),
            size,
            first,
        });
    }

    /// Gives the function the first interrupt pin, which firmware says leads to `line`.
    pub fn add_interrupt(&mut self, line: u8) {
        self.put(field::INTERRUPT_LINE, &[line]);
        self.put(field::INTERRUPT_PIN, &[1]);
        self.writable[field::INTERRUPT_LINE] = u8::MAX;
    }

    /// Adds a capability: its number, what follows the link to the next, and which bits of that can be written, as
    /// far as any; answers where it is.
    ///
    /// # Panics
    /// If there is no room.
    pub fn add_capability(&mut self, identifier: u8, body: &[u8], writable: &[u8]) -> usize {
        let start = self.next;
        let end = start + 2 + body.len();
        assert!(
            end <= BYTES && writable.len() <= body.len(),
            "room for capabilities"
        );
        self.put(start, &[identifier, 0]);
        self.put(start + 2, body);
        self.writable[start + 2..][..writable.len()].copy_from_slice(writable);
        self.put(self.link, &[start as u8]);
        self.put(field::STATUS, &STATUS_CAPABILITIES.to_le_bytes());
        self.link = start + 1;
        self.next = end.next_multiple_of(4);
        start
    }

    /// Gives the header the form of a bridge's: nothing is where a card's maker would be.
    pub(super) fn become_bridge(&mut self) {
        self.put(field::HEADER_TYPE, &[1]);
        self.put(field::SUBSYSTEM_VENDOR, &[0; 4]);
    }

    /// Puts a field of the header, with the bits of it that can be written, as far as any.
    pub(super) fn add_field(&mut self, offset: usize, value: &[u8], writable: &[u8]) {
        self.put(offset, value);
        self.writable[offset..][..writable.len()].copy_from_slice(writable);
    }

    /// Lets the function answer and master the bus, as firmware does with what it needs itself.
    pub(super) fn enable(&mut self) {
        self.write(field::COMMAND, &command::ENABLED.to_le_bytes());
    }

    /// Whether the function answers in a space.
    pub fn answers(&self, space: Space) -> bool {
        self.command() & space.command() != 0
    }

    /// Where the registers are.
    pub fn place(&self) -> Place {
        self.place.clone()
    }

    /// Whether the function may master the bus, now and later.
    pub fn mastering(&self) -> Mastering {
        self.mastering.clone()
    }

    /// Whether the function must not use its interrupt line.
    pub fn is_line_disabled(&self) -> bool {
        self.command() & command::NO_LINE != 0
    }

    /// `N` bytes from an offset on.
    ///
    /// # Panics
    /// If they are not all in the space.
    pub fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.bytes[offset..][..N]
            .try_into()
            .expect("as many as asked for")
    }

    /// Loads 1, 2 or 4 bytes.
    ///
    /// # Panics
    /// If they are not all in the space.
    pub fn load(&self, offset: u64, size: u64) -> u32 {
        let bytes = &self.bytes[offset as usize..][..size as usize];
        bytes
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u32::from(byte))
    }

    /// Stores 1, 2 or 4 bytes, as far as they can be written.
    ///
    /// # Panics
    /// If they are not all in the space.
    pub fn store(&mut self, offset: u64, size: u64, value: u32) {
        let bytes = value.to_le_bytes();
        self.write(offset as usize, &bytes[..size as usize]);
    }

    /// Everything, to be saved.
    pub fn save(&self) -> Vec<u8> {
        self.bytes.to_vec()
    }

    /// Goes on from what was saved, as far as it can be written; false if that is no configuration space.
    pub fn restore(&mut self, saved: &[u8]) -> bool {
        let fits = saved.len() == BYTES;
        if fits {
            self.write(0, saved);
        }
        fits
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        for (at, &byte) in (offset..).zip(bytes) {
            let mask = self.writable[at];
            self.bytes[at] = self.bytes[at] & !mask | byte & mask;
        }
        let command = self.command();
        self.mastering.allow(command & command::MASTER != 0);
        for region in &self.place.regions {
            let register = field::REGION + 4 * region.number;
            let start = match command & region.space.command() {
                0 => Place::NOWHERE,
                _ => u64::from(u32::from_le_bytes(self.bytes(register)) & !region.space.bits()),
            };
            region.start.store(start, Ordering::Relaxed);
        }
    }

    fn command(&self) -> u16 {
        u16::from_le_bytes(self.bytes(field::COMMAND))
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.bytes[offset..][..bytes.len()].copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn space() -> Configuration {
        let mut space = Configuration::new(Identity {
            vendor: 0x1af4,
            device: 0x1041,
            subsystem_vendor: 0x1af4,
            subsystem: 0x1100,
            revision: 1,
            class: 0x02_00_00,
        });
        space.add_region(0x8000, 0xe000_8000);
        space.add_interrupt(17);
        space.add_capability(9, &[5, 1, 2], &[]);
        space.add_capability(0x11, &[0xff, 0xff, 0, 0], &[0, 0xc0]);
        space
    }

    #[test]
    fn capabilities_are_a_list() {
        let space = space();
        assert_ne!(space.load(6, 2) & u32::from(STATUS_CAPABILITIES), 0);
        let first = u64::from(space.load(0x34, 1) as u8);
        assert_eq!(space.load(first, 1), 9);
        let second = u64::from(space.load(first + 1, 1) as u8);
        assert!(second.is_multiple_of(4) && second >= first + 5);
        assert_eq!(space.load(second, 2), 0x11, "the last one");
    }

    proptest! {
        #[test]
        fn only_what_can_be_written_changes(
            stores in prop::collection::vec((0u64..64, 0u32..3, any::<u32>()), 0..40),
        ) {
            let (before, mut space) = (space(), space());
            for (word, log, value) in stores {
                let size = 1 << log;
                space.store(word * 4 + u64::from(value) % 4 / size * size, size, value);
            }
            for at in 0..BYTES {
                let changed = before.bytes[at] ^ space.bytes[at];
                prop_assert_eq!(changed & !space.writable[at], 0, "byte {:#x}", at);
            }
            if let Some(start) = space.place().start() {
                prop_assert!(start.is_multiple_of(0x8000));
            }
        }
    }
}
