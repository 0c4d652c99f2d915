//! The request page: what a guest and a sidecore share, byte by byte. Version 1.
//!
//! A virtual processor registers one 4 kB page of its memory, aligned, with the call
//! [`REGISTER`](crate::sidecall::call::REGISTER). All fields are 8 bytes wide, little-endian, and are accessed with
//! 8-byte loads and stores.
//!
//! ```text
//!   0x000  magic        "SIDECALL"                                             monitor
//!   0x008  version      1                                                      monitor
//!   0x010  mode         0: make requests by exit, 1: by sidecall               monitor, at any time
//!   0x018  slots        how many slots there are                               monitor
//!   0x040 + 64 n        slot n, one cache line:
//!          +0   status  0 free, 1 requested, 2 done, 3 refused                 guest: 0 and 1; monitor: 2 and 3
//!          +8   kind                                                           guest
//!          +16  three arguments                                                guest
//!          +40  result, or why it was refused                                  monitor
//!          +48  vector to interrupt with when it is done; 0: none              guest
//! ```
//!
//! A guest makes a request in a slot whose status is free: arguments and kind first, then the status with release
//! semantics. It polls the status with acquire semantics (synchronous) or goes on and looks later or waits for the
//! interrupt (asynchronous), takes the result and frees the slot. When no slot is free the ring is full: nothing is
//! lost, the guest waits for one. A slot belongs to the monitor between requested and done; what the guest writes
//! there meanwhile is not looked at, because the request was copied. Where the mode says exit the same slots serve: the
//! guest leaves the status as it is and hands the slot over by the call [`SUBMIT`](crate::sidecall::call::SUBMIT).

/// Bytes in the page.
pub const SIZE: u64 = 4096;
/// "SIDECALL", as 8 bytes little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SIDECALL");
/// The version of this layout.
pub const VERSION: u64 = 1;
/// Offset of the magic number.
pub const MAGIC_OFFSET: u64 = 0;
/// Offset of the version.
pub const VERSION_OFFSET: u64 = 8;
/// Offset of the mode.
pub const MODE_OFFSET: u64 = 16;
/// Offset of the number of slots.
pub const SLOTS_OFFSET: u64 = 24;
/// How many slots there are.
pub const SLOTS: usize = 63;
/// Offset of the first slot, and the size of each.
pub const SLOT_SIZE: u64 = 64;

/// What a slot's status says.
pub mod status {
    /// Nobody uses the slot.
    pub const FREE: u64 = 0;
    /// The guest has made a request.
    pub const REQUESTED: u64 = 1;
    /// The request was served.
    pub const DONE: u64 = 2;
    /// The request was refused: the result says why.
    pub const REFUSED: u64 = 3;
}

/// Offsets within a slot.
pub mod slot {
    /// The status.
    pub const STATUS: u64 = 0;
    /// The kind of request.
    pub const KIND: u64 = 8;
    /// The first of three arguments.
    pub const ARGUMENTS: u64 = 16;
    /// The result.
    pub const RESULT: u64 = 40;
    /// The vector of the interrupt at completion.
    pub const VECTOR: u64 = 48;
}

/// The offset of a slot in the page.
pub fn slot_offset(index: usize) -> u64 {
    assert!(index < SLOTS, "there is no slot {index}");
    SLOT_SIZE * (index as u64 + 1)
}

/// The slot whose status is at an offset.
pub fn slot_of_status(offset: u64) -> Option<usize> {
    let is_status = offset >= SLOT_SIZE && offset.is_multiple_of(SLOT_SIZE) && offset < SIZE;
    is_status.then(|| (offset / SLOT_SIZE) as usize - 1)
}

const _: () = assert!(SLOT_SIZE * (SLOTS as u64 + 1) == SIZE, "the slots fill the page");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_their_offsets_are_inverse() {
        for slot in 0..SLOTS {
            assert_eq!(slot_of_status(slot_offset(slot)), Some(slot));
            assert_eq!(slot_of_status(slot_offset(slot) + slot::RESULT), None);
        }
        assert_eq!(slot_of_status(MODE_OFFSET), None);
        assert_eq!(slot_of_status(SIZE), None);
    }
}
