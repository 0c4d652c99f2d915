//! The advanced load address table (ALAT): which advanced loads no store has hit since.
//!
//! Manual volume 1, section 4.4.5.3. An entry names the register that an advanced load wrote and the
//! bytes it read. Stacked registers are named by their place on the register stack, so that a call does
//! not confuse a callee's r35 with its caller's.

use serde::{Deserialize, Serialize};

/// Number of entries, as on the Itanium 2.
const ENTRIES: usize = 32;

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
    /// How many entries are valid: where code that was emitted for the host looks before it stores.
    #[serde(skip)]
    count: u64,
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
        AdvancedLoads {
            count: saved.entries.len() as u64,
            entries: saved.entries,
            events: Events::default(),
        }
    }
}

impl PartialEq for AdvancedLoads {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Eq for AdvancedLoads {}

impl AdvancedLoads {
    /// Where the number of valid entries stands, 64 bits, in bytes from its own start.
    pub(crate) const COUNT: usize = std::mem::offset_of!(AdvancedLoads, count);

    /// Remembers an advanced load of `size` bytes; forgets an earlier one to the same register.
    pub fn insert(&mut self, target: Target, address: u64, size: u64) {
        self.remove(target);
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
        self.count = self.entries.len() as u64;
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
        self.entries.retain(|entry| entry.target != target);
        self.count = self.entries.len() as u64;
    }

    /// Forgets every advanced load that read one of the `size` bytes at `address`.
    #[inline(always)]
    pub fn invalidate(&mut self, address: u64, size: u64) {
        if self.count != 0 {
            self.invalidate_overlapping(address, size);
        }
    }

    #[inline(never)]
    fn invalidate_overlapping(&mut self, address: u64, size: u64) {
        self.entries.retain(|entry| {
            address.wrapping_sub(entry.address) >= entry.size && entry.address.wrapping_sub(address) >= size
        });
        self.count = self.entries.len() as u64;
    }

    /// Whether no advanced load is remembered.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the table could be a processor's: no more entries than there are, one a register.
    pub(crate) fn is_valid(&self) -> bool {
        let repeated = |(place, entry): (usize, &Entry)| {
            self.entries[..place]
                .iter()
                .any(|earlier| earlier.target == entry.target)
        };
        self.entries.len() <= ENTRIES && !self.entries.iter().enumerate().any(repeated)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
