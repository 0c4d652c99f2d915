//! The advanced load address table (ALAT): which advanced loads no store has hit since.
//!
//! Manual volume 1, section 4.4.5.3. An entry names the register that an advanced load wrote and the
//! bytes it read. Stacked registers are named by their place on the register stack, so that a call does
//! not confuse a callee's r35 with its caller's.

use serde::{Deserialize, Serialize};

/// Number of entries, as on the Itanium 2.
const ENTRIES: usize = 32;
/// The most bytes that an advanced load reads.
const ACCESS_BYTES_MAX: u64 = 16;

/// The register that an advanced load wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A general register: r1 to r31 by number, stacked ones by 32 plus their place on the register stack.
    General(u64),
    /// A floating-point register, by its number without rotation.
    Floating(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    target: Target,
    address: u64,
    size: u64,
}

/// What has happened to advanced loads, for whoever counts: no part of a processor's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Checks (`chk.a`, check loads) that found no entry.
    pub failed_checks: u64,
    /// Entries of general registers that gave way to others.
    pub replaced_general: u64,
    /// Entries of floating-point registers that did.
    pub replaced_floating: u64,
}

/// The table of one processor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Saved")]
#[repr(C)]
pub struct AdvancedLoads {
    /// A bit for each place that a valid entry has read ([`places`]), where stores look first; zero for no entry.
    /// Others may be set until the next store that hits one.
    #[serde(skip)]
    places: u64,
    /// The valid entries; the first is the oldest.
    entries: Vec<Entry>,
    #[serde(skip)]
    events: Events,
}

/// What is kept of the table in a saved state.
#[derive(Deserialize)]
struct Saved {
    entries: Vec<Entry>,
}

impl From<Saved> for AdvancedLoads {
    fn from(saved: Saved) -> AdvancedLoads {
        let mut loads = AdvancedLoads {
            places: 0,
            entries: saved.entries,
            events: Events::default(),
        };
        loads.note_places();
        loads
    }
}

impl PartialEq for AdvancedLoads {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Eq for AdvancedLoads {}

/// Bytes of a place of memory, as a power of two. A place shares its bit with those at a distance of 64 places.
pub(crate) const PLACE_LOG2: u32 = 4;

/// The bits of the places that `size` bytes at `address` lie in, of which there are not more than [`ACCESS_BYTES_MAX`].
#[inline(always)]
fn places(address: u64, size: u64) -> u64 {
    let place = |address: u64| 1 << (address >> PLACE_LOG2 & 63);
    place(address) | place(address.wrapping_add(size).wrapping_sub(1))
}

impl AdvancedLoads {
    /// Where the bits of the places stand, 64 of them, in bytes from its own start.
    pub(crate) const PLACES: usize = std::mem::offset_of!(AdvancedLoads, places);

    /// Remembers an advanced load of `size` bytes; forgets an earlier one to the same register.
    pub fn insert(&mut self, target: Target, address: u64, size: u64) {
        self.forget(target);
        if self.entries.len() == ENTRIES {
            match self.entries.remove(0).target {
                Target::General(_) => self.events.replaced_general += 1,
                Target::Floating(_) => self.events.replaced_floating += 1,
            }
        }
        self.entries.push(Entry {
            target,
            address,
            size,
        });
        self.places |= places(address, size);
    }

    /// Takes the entry of a register out.
    #[inline]
    fn forget(&mut self, target: Target) {
        if let Some(place) = self.entries.iter().position(|entry| entry.target == target) {
            self.entries.remove(place);
        }
    }

    /// Brings the bits of the places up to date.
    fn note_places(&mut self) {
        let bits = self.entries.iter().map(|entry| places(entry.address, entry.size));
        self.places = bits.fold(0, |all, bits| all | bits);
    }

    /// Whether the entry of a register is still there.
    pub fn contains(&self, target: Target) -> bool {
        self.entries.iter().any(|entry| entry.target == target)
    }

    /// Counts a check that found no entry, or one that must not be kept.
    #[cold]
    pub fn note_failed_check(&mut self) {
        self.events.failed_checks += 1;
    }

    /// What has happened so far.
    pub fn events(&self) -> Events {
        self.events
    }

    /// Forgets the entry of a register.
    pub fn remove(&mut self, target: Target) {
        self.forget(target);
        if self.entries.is_empty() {
            self.places = 0;
        }
    }

    /// Forgets every advanced load that read one of the `size` bytes at `address`.
    #[inline(always)]
    pub fn invalidate(&mut self, address: u64, size: u64) {
        if self.places != 0 {
            self.invalidate_overlapping(address, size);
        }
    }

    #[inline(never)]
    fn invalidate_overlapping(&mut self, address: u64, size: u64) {
        if self.places & places(address, size) == 0 {
            return;
        }
        self.entries.retain(|entry| {
            address.wrapping_sub(entry.address) >= entry.size && entry.address.wrapping_sub(address) >= size
        });
        self.note_places();
    }

    /// Whether no advanced load is remembered.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.places == 0
    }

    /// Whether the table could be a processor's: no more entries than there are, one a register, each of an access.
    pub(crate) fn is_valid(&self) -> bool {
        let repeated = |(place, entry): (usize, &Entry)| {
            self.entries[..place]
                .iter()
                .any(|earlier| earlier.target == entry.target)
        };
        let is_access = |entry: &Entry| (1..=ACCESS_BYTES_MAX).contains(&entry.size);
        self.entries.len() <= ENTRIES
            && self.entries.iter().all(is_access)
            && !self.entries.iter().enumerate().any(repeated)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.places = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_overlapping_store_removes_the_entry_and_a_neighbour_does_not() {
        let mut loads = AdvancedLoads::default();
        loads.insert(Target::General(4), 0x1000, 4);
        loads.invalidate(0x1004, 8);
        loads.invalidate(0xff8, 8);
        assert!(loads.contains(Target::General(4)));
        loads.invalidate(0x1003, 1);
        assert!(!loads.contains(Target::General(4)));
    }

    #[test]
    fn a_store_that_starts_below_and_reaches_in_removes_the_entry() {
        let mut loads = AdvancedLoads::default();
        loads.insert(Target::Floating(9), 0x1006, 2);
        loads.invalidate(0x1000, 8);
        assert!(!loads.contains(Target::Floating(9)));
    }

    proptest! {
        #[test]
        fn the_bits_of_places_hide_no_overlap(
            loads in prop::collection::vec((0u64..4096, 1u64..17), 1..6), store in 0u64..4096, size in 1u64..17,
        ) {
            let mut table = AdvancedLoads::default();
            for (register, (address, size)) in loads.iter().enumerate() {
                table.insert(Target::General(register as u64), *address, *size);
            }
            table.invalidate(store, size);
            for (register, (address, length)) in loads.iter().enumerate() {
                let overlaps = store < address + length && *address < store + size;
                prop_assert_eq!(table.contains(Target::General(register as u64)), !overlaps);
            }
            prop_assert_eq!(table.is_empty(), table.entries.is_empty());
        }
    }

    #[test]
    fn a_full_table_forgets_its_oldest_entry() {
        let mut loads = AdvancedLoads::default();
        for register in 0..=ENTRIES as u64 {
            loads.insert(Target::General(register), register * 8, 8);
        }
        assert!(!loads.contains(Target::General(0)));
        assert!(loads.contains(Target::General(1)));
        assert_eq!(loads.events().replaced_general, 1);
        assert_eq!(loads.events().replaced_floating, 0);
    }
}
