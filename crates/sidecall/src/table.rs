//! A table of keys and values in a file: 16 bytes a record, a place for each key that its hash says, or the next free.
//!
//! Key and value are 64-bit numbers, little-endian; key 0 is an empty place. Places are a power of two, at most three
//! quarters of them taken, so that a search ends.

use std::io;

/// Bytes of a record.
pub const RECORD_BYTES: usize = 16;
/// The largest table that is kept in memory.
pub const TABLE_BYTES_MAX: usize = 1 << 26;

/// A table in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(Vec<u8>);

/// Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, section 6.4.
fn hash(key: u64) -> u64 {
    let product = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

/// Looks for a key among `places`, with whatever reads the record at an offset.
///
/// # Errors
/// When a record cannot be read.
pub fn look_up(
    key: u64,
    places: u64,
    mut read: impl FnMut(u64, &mut [u8; RECORD_BYTES]) -> io::Result<()>,
) -> io::Result<Option<u64>> {
    if key == 0 || !places.is_power_of_two() {
        return Ok(None);
    }
    for step in 0..places {
        let place = hash(key).wrapping_add(step) & (places - 1);
        let mut record = [0; RECORD_BYTES];
        read(place * RECORD_BYTES as u64, &mut record)?;
        let [found, value] = [0, 8].map(|at| {
            let bytes = record[at..at + 8].try_into();
            u64::from_le_bytes(bytes.unwrap_or_default())
        });
        match found {
            0 => return Ok(None),
            found if found == key => return Ok(Some(value)),
            _ => {}
        }
    }
    Ok(None)
}

impl Table {
    /// A table of these pairs; of two with one key the first counts. Keys of 0 are left out.
    pub fn of(pairs: &[(u64, u64)]) -> Self {
        let places = (pairs.len() * 4 / 3 + 1).next_power_of_two();
        let mut bytes = vec![0; places * RECORD_BYTES];
        for (key, value) in pairs.iter().filter(|(key, _)| *key != 0) {
            let start = hash(*key) as usize & (places - 1);
            let at = (0..places)
                .map(|step| (start + step & places - 1) * RECORD_BYTES)
                .find(|at| {
                    [[0; 8], key.to_le_bytes()]
                        .iter()
                        .any(|free| bytes[*at..at + 8] == *free)
                });
            if let Some(at) = at.filter(|at| bytes[*at..at + 8] == [0; 8]) {
                bytes[at..at + 8].copy_from_slice(&key.to_le_bytes());
                bytes[at + 8..at + 16].copy_from_slice(&value.to_le_bytes());
            }
        }
        Self(bytes)
    }

    /// The table in these bytes of a file.
    ///
    /// # Errors
    /// When they are not a power of two of records, or more than [`TABLE_BYTES_MAX`].
    pub fn from_bytes(bytes: Vec<u8>) -> io::Result<Self> {
        let count = bytes.len();
        let is_table = count.is_multiple_of(RECORD_BYTES) && (count / RECORD_BYTES).is_power_of_two();
        if is_table && count <= TABLE_BYTES_MAX {
            return Ok(Self(bytes));
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "a table of {count} bytes: a power of two of records of {RECORD_BYTES} bytes is possible, up to \
                 {TABLE_BYTES_MAX} bytes"
            ),
        ))
    }

    /// Its bytes, as a file has them.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// How many places it has.
    pub fn places(&self) -> u64 {
        (self.0.len() / RECORD_BYTES) as u64
    }

    /// The value of a key.
    pub fn get(&self, key: u64) -> Option<u64> {
        let read = |offset: u64, record: &mut [u8; RECORD_BYTES]| {
            // In range: the offset is that of one of the table's places.
            let at = offset as usize;
            record.copy_from_slice(&self.0[at..at + RECORD_BYTES]);
            Ok(())
        };
        look_up(key, self.places(), read).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_table_has_what_was_put_there(pairs in prop::collection::vec((0..50_u64, any::<u64>()), 0..60)) {
            let table = Table::of(&pairs);
            for key in 0..60 {
                let first = pairs.iter().find(|pair| pair.0 == key && key != 0);
                prop_assert_eq!(table.get(key), first.map(|pair| pair.1));
            }
            let again = Table::from_bytes(table.bytes().to_vec()).expect("its own bytes");
            prop_assert_eq!(again, table);
        }

        #[test]
        fn any_bytes_are_refused_or_searched_to_an_end(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            key in any::<u64>(),
        ) {
            if let Ok(table) = Table::from_bytes(bytes) {
                table.get(key);
            }
        }
    }
}
