//! The advanced load address table (ALAT): which advanced loads no store has hit since.
//!
//! Manual volume 1, section 4.4.5.3. An entry names the register that an advanced load wrote and the
//! bytes it read. Stacked registers are named by their place on the register stack, so that a call does
//! not confuse a callee's r35 with its caller's.

use std::mem::offset_of;

use serde::{Deserialize, Serialize};

/// Number of entries, as on the Itanium 2.
const ENTRIES: usize = 32;
/// The most bytes that an advanced load reads.
const ACCESS_BYTES_MAX: u64 = 16;
/// How many tags there are: as on the Itanium 2, registers far apart on the register stack share one.
const TAGS: usize = 256;

/// The register that an advanced load wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A general register: r1 to r31 by number, stacked ones by 32 plus their place on the register stack.
    General(u64),
    /// A floating-point register, by its number without rotation.
    Floating(u8),
}

impl Target {
    /// The bit that tells floating-point registers from general ones.
    pub(crate) const FLOATING: u64 = 1 << 63;

    /// The register as a number.
    #[inline(always)]
    fn number(self) -> u64 {
        match self {
            Target::General(place) => place & !Target::FLOATING,
            Target::Floating(register) => Target::FLOATING | u64::from(register),
        }
    }

    /// The static register of a tag.
    pub(crate) fn of_static(tag: u8) -> Target {
        match usize::from(tag).checked_sub(FLOATING_TAGS) {
            Some(register) => Target::Floating(register as u8),
            None => Target::General(tag.into()),
        }
    }

    /// The register of a number.
    fn of_number(number: u64) -> Target {
        match number & Target::FLOATING {
            0 => Target::General(number),
            _ => Target::Floating(number as u8),
        }
    }
}

/// An entry as a saved state has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    target: Target,
    address: u64,
    size: u64,
}

/// A place for an entry.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Row {
    /// The register's number.
    number: u64,
    /// How many entries there had been before it.
    age: u64,
    /// What was read: from where, and how many bytes.
    address: u64,
    size: u64,
}

impl Row {
    const EMPTY: Row = Row {
        number: 0,
        age: 0,
        address: 0,
        size: 1,
    };

    fn entry(self) -> Entry {
        Entry {
            target: Target::of_number(self.number),
            address: self.address,
            size: self.size,
        }
    }
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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
#[repr(C)]
pub struct AdvancedLoads {
    /// A bit for each place that a valid entry has read ([`places`]), where stores look first; zero for no entry.
    /// Others may be set until the next store that hits one.
    places: u64,
    /// Which rows have an entry, a bit each.
    valid: u64,
    rows: [Row; ENTRIES],
    /// How many entries there have been.
    count: u64,
    /// By tag: the row that has an entry of such a register, or [`AdvancedLoads::NO_ROW`].
    row_of_tag: [u8; TAGS],
    events: Events,
}

/// What is kept of the table in a saved state: the entries, the oldest first.
#[derive(Clone, Serialize, Deserialize)]
struct Saved {
    entries: Vec<Entry>,
}

impl TryFrom<Saved> for AdvancedLoads {
    type Error = &'static str;

    fn try_from(saved: Saved) -> Result<AdvancedLoads, &'static str> {
        let mut loads = AdvancedLoads::default();
        for entry in saved.entries {
            if loads.row_of_tag(entry.target.number()).is_some() {
                return Err("advanced loads have two entries for one tag");
            }
            if loads.valid.count_ones() as usize == ENTRIES {
                return Err("there are more advanced loads than entries");
            }
            loads.insert(entry.target, entry.address, entry.size);
        }
        Ok(loads)
    }
}

impl From<AdvancedLoads> for Saved {
    fn from(loads: AdvancedLoads) -> Saved {
        Saved {
            entries: loads.entries(),
        }
    }
}

impl PartialEq for AdvancedLoads {
    fn eq(&self, other: &Self) -> bool {
        self.entries() == other.entries()
    }
}

impl Eq for AdvancedLoads {}

impl Default for AdvancedLoads {
    fn default() -> Self {
        AdvancedLoads {
            places: 0,
            valid: 0,
            row_of_tag: [AdvancedLoads::NO_ROW; TAGS],
            rows: [Row::EMPTY; ENTRIES],
            count: 0,
            events: Events::default(),
        }
    }
}

/// Bytes of a place of memory, as a power of two.
pub(crate) const PLACE_LOG2: u32 = 4;
/// How far an address is shifted down for what changes the number of its place: arrays that lie a power of two apart,
/// as those of a Fourier transform, are not to share the bits of places with each other.
pub(crate) const PLACE_FOLD: u32 = 10;

/// The bits of the places that `size` bytes at `address` lie in, of which there are not more than [`ACCESS_BYTES_MAX`].
#[inline(always)]
fn places(address: u64, size: u64) -> u64 {
    let place = |address: u64| 1 << ((address >> PLACE_LOG2 ^ address >> PLACE_FOLD) & 63);
    place(address) | place(address.wrapping_add(size).wrapping_sub(1))
}

/// The bits of a general register's number that are its tag.
pub(crate) const GENERAL_TAG_MASK: u64 = 0x7f;

/// The first tag of floating-point registers.
pub(crate) const FLOATING_TAGS: usize = TAGS / 2;

/// A register's tag: the low bits of its number, with floating-point ones in the upper half.
#[inline(always)]
fn tag(number: u64) -> usize {
    (number & GENERAL_TAG_MASK) as usize | (number >> 63) as usize * FLOATING_TAGS
}

impl AdvancedLoads {
    /// Where the bits of the places stand, 64 of them, in bytes from its own start.
    pub(crate) const PLACES: usize = offset_of!(AdvancedLoads, places);
    /// Where a bit for each row tells whether it has an entry.
    pub(crate) const VALID: usize = offset_of!(AdvancedLoads, valid);
    /// Where the rows stand, by the tags of registers.
    pub(crate) const ROW_OF_TAG: usize = offset_of!(AdvancedLoads, row_of_tag);
    /// Where it stands how many entries there have been.
    pub(crate) const COUNT: usize = offset_of!(AdvancedLoads, count);
    /// Where failed checks are counted.
    pub(crate) const FAILED_CHECKS: usize =
        offset_of!(AdvancedLoads, events) + offset_of!(Events, failed_checks);
    /// Where the rows begin.
    pub(crate) const ROWS: usize = offset_of!(AdvancedLoads, rows);
    /// The size of a row, and where it has what.
    pub(crate) const ROW_SIZE: usize = size_of::<Row>();
    pub(crate) const ROW_NUMBER: usize = offset_of!(Row, number);
    pub(crate) const ROW_AGE: usize = offset_of!(Row, age);
    pub(crate) const ROW_ADDRESS: usize = offset_of!(Row, address);
    pub(crate) const ROW_BYTES: usize = offset_of!(Row, size);
    /// How many rows there are.
    pub(crate) const ENTRIES: usize = ENTRIES;
    /// No row, where one stands by a tag.
    pub(crate) const NO_ROW: u8 = u8::MAX;

    /// Remembers an advanced load of `size` bytes; forgets an earlier one to a register of the same tag.
    #[inline(always)]
    pub fn insert(&mut self, target: Target, address: u64, size: u64) {
        self.insert_number(target.number(), address, size);
    }

    #[inline(never)]
    fn insert_number(&mut self, number: u64, address: u64, size: u64) {
        let row = match self.row_of_tag(number) {
            Some(row) if self.rows[row].number == number => row,
            None if self.free_row() < ENTRIES => self.free_row(),
            known => return self.insert_replacing(number, (address, size), known),
        };
        self.insert_in(row, number, (address, size));
    }

    #[inline(always)]
    fn insert_in(&mut self, row: usize, number: u64, (address, size): (u64, u64)) {
        self.rows[row] = Row {
            number,
            age: self.count,
            address,
            size,
        };
        self.count += 1;
        self.valid |= 1 << row;
        self.row_of_tag[tag(number)] = row as u8;
        self.places |= places(address, size);
    }

    /// Remembers an advanced load where another entry gives way: that of the register's tag in a row, or the oldest.
    #[cold]
    #[inline(never)]
    fn insert_replacing(&mut self, number: u64, read: (u64, u64), row: Option<usize>) {
        let row = row.unwrap_or_else(|| self.oldest());
        self.replace(row);
        self.insert_in(row, number, read);
    }

    /// Forgets what gives way to an advanced load that is remembered elsewhere, beside so many others.
    pub fn make_room(&mut self, target: Target, others: usize) {
        let number = target.number();
        match self.row_of_tag(number) {
            Some(row) if self.rows[row].number == number => self.forget_row(row),
            Some(row) => self.replace(row),
            None if self.valid.count_ones() as usize + others >= ENTRIES => self.replace(self.oldest()),
            None => {}
        }
    }

    /// The row of the oldest entry.
    fn oldest(&self) -> usize {
        self.valid_rows()
            .min_by_key(|&row| self.rows[row].age)
            .unwrap_or(0)
    }

    /// Forgets the entry in a row, and counts it as one that gave way.
    fn replace(&mut self, row: usize) {
        match Target::of_number(self.rows[row].number) {
            Target::General(_) => self.events.replaced_general += 1,
            Target::Floating(_) => self.events.replaced_floating += 1,
        }
        self.forget_row(row);
    }

    /// The row that has the entry of a register with the tag of this one.
    #[inline]
    fn row_of_tag(&self, number: u64) -> Option<usize> {
        let row = self.row_of_tag[tag(number)];
        (row != AdvancedLoads::NO_ROW).then_some(usize::from(row) % ENTRIES)
    }

    /// The row that has a register's entry.
    #[inline]
    fn row_of(&self, number: u64) -> Option<usize> {
        self.row_of_tag(number)
            .filter(|&row| self.rows[row].number == number)
    }

    /// The first row without an entry; beyond all rows if each has one.
    #[inline(always)]
    fn free_row(&self) -> usize {
        self.valid.trailing_ones() as usize
    }

    /// Forgets the entry in a row.
    #[inline]
    fn forget_row(&mut self, row: usize) {
        self.valid &= !(1 << row);
        self.row_of_tag[tag(self.rows[row].number)] = AdvancedLoads::NO_ROW;
    }

    fn valid_rows(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.valid;
        std::iter::from_fn(move || {
            let row = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(row)
        })
    }

    /// The valid entries; the first is the oldest.
    fn entries(&self) -> Vec<Entry> {
        let mut rows: Vec<Row> = self.valid_rows().map(|row| self.rows[row]).collect();
        rows.sort_unstable_by_key(|row| row.age);
        rows.into_iter().map(Row::entry).collect()
    }

    /// Whether the entry of a register is still there.
    #[inline]
    pub fn contains(&self, target: Target) -> bool {
        self.row_of(target.number()).is_some()
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

    /// Forgets the entry of a register; answers whether there was one.
    #[inline]
    pub fn remove(&mut self, target: Target) -> bool {
        let number = target.number();
        let Some(row) = self.row_of(number) else {
            return false;
        };
        self.row_of_tag[tag(number)] = AdvancedLoads::NO_ROW;
        self.valid &= !(1 << row);
        if self.valid == 0 {
            self.places = 0;
        }
        true
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
        if self.places & places(address, size) != 0 {
            self.look_at_entries(address, size);
        }
    }

    #[inline(never)]
    fn look_at_entries(&mut self, address: u64, size: u64) {
        self.places = 0;
        for row in self.valid_rows() {
            let entry = self.rows[row];
            let is_apart = address.wrapping_sub(entry.address) >= entry.size
                && entry.address.wrapping_sub(address) >= size;
            match is_apart {
                true => self.places |= places(entry.address, entry.size),
                false => self.forget_row(row),
            }
        }
    }

    /// Whether no advanced load is remembered.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.places == 0
    }

    /// Whether the table could be a processor's: each entry is of an access.
    pub(crate) fn is_valid(&self) -> bool {
        let mut rows = self.valid_rows().map(|row| self.rows[row]);
        rows.all(|row| (1..=ACCESS_BYTES_MAX).contains(&row.size))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        for row in self.valid_rows() {
            self.forget_row(row);
        }
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
            prop_assert_eq!(table.is_empty(), table.valid == 0);
        }
    }

    #[test]
    fn a_register_takes_the_entry_of_another_with_its_tag() {
        let registers = [Target::General(5), Target::General(5 + 128), Target::Floating(5)];
        let mut loads = AdvancedLoads::default();
        for (place, &register) in (0..).zip(&registers) {
            loads.insert(register, 0x1000 + place * 16, 8);
        }
        let held = |loads: &AdvancedLoads| registers.map(|register| loads.contains(register));
        assert_eq!(held(&loads), [false, true, true]);
        assert_eq!(loads.events().replaced_general, 1);
        loads.insert(registers[1], 0x2000, 8);
        loads.invalidate(0x1010, 8);
        assert_eq!(held(&loads), [false, true, true], "its first entry is gone");
        loads.remove(registers[0]);
        loads.invalidate(0x2000, 8);
        assert_eq!(held(&loads), [false, false, true]);
        assert_eq!(loads.events().replaced_general, 1);
    }

    #[test]
    fn a_saved_table_that_no_processor_has_is_refused() {
        let entry = |place| Entry {
            target: Target::General(place),
            address: 0x1000,
            size: 8,
        };
        let restored = |places: &[u64]| {
            let entries = places.iter().copied().map(entry).collect();
            AdvancedLoads::try_from(Saved { entries })
        };
        let full: Vec<u64> = (0..=ENTRIES as u64).collect();
        assert!(restored(&full[1..]).is_ok());
        assert!(restored(&full).is_err());
        assert!(restored(&[7, 7]).is_err());
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
