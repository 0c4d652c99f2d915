//! What a guest and the card share, byte by byte. Version 1.
//!
//! A virtual processor registers an area of its memory, aligned to 4 kB, with the call
//! [`REGISTER`](call::REGISTER). All fields are 8 bytes wide, little-endian, and are accessed with 8-byte loads and
//! stores. The interface then belongs to that processor.
//!
//! ```text
//!   0x0000  magic        "SIDESVIF"                                               monitor
//!   0x0008  version      1                                                        monitor
//!   0x0010  address      of the interface, as its six bytes stand in a frame      monitor
//!   0x0018  entries      descriptors of each ring, a power of two                 monitor
//!   0x0040  sent         frames that the guest has put into the send ring         guest
//!   0x0080  posted       buffers that it has put into the receive ring            guest
//!   0x00c0  wanted       interrupt once more than so many frames have come        guest
//!   0x1000  received     buffers that the card has filled                         card
//!   0x1040  transmitted  frames that the card has taken                           card
//!   0x1100  the send ring, and behind it the receive ring: descriptors
//!           +0  address  guest-physical                                           guest
//!           +8  length   of a frame to send, or of a buffer; then of a frame that has come    guest, card
//!           +12 status   0; then 1 done, 2 refused                                guest, card
//! ```
//!
//! The four counts only grow; the descriptor of frame `n` is number `n % entries` of its ring. A guest writes a
//! descriptor first and the count with release semantics; the card the same. The guest stores `wanted` when it is
//! about to wait: one interrupt then comes as soon as `received` is more, and none before the next store. It looks at
//! `received` once more after the store, as with any event index; an interrupt for a frame that it has seen is
//! possible.
//!
//! A frame is 14 to 1514 bytes, beginning with the addresses of receiver and sender. A descriptor that names memory
//! which is not the guest's, or a length that cannot be, is refused: its frame is lost, its status says so. A count
//! that leaves more descriptors open than there are is not believed: it is as if it had not been stored.

/// Calls of the monitor that concern interfaces, beside [those for requests](crate::sidecall::call).
pub mod call {
    /// Registers the area at guest-physical address r8, and interrupts by vector r9 from then on. Returns 0, or all
    /// ones if the virtual machine has no interface, or the area is no memory, or the vector cannot be. What was
    /// registered before is forgotten.
    pub const REGISTER: u64 = 0x43;
}

/// "SIDESVIF", as 8 bytes little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SIDESVIF");
/// The version of this layout.
pub const VERSION: u64 = 1;
/// Bytes of the page that the guest stores its counts to.
pub const PAGE: u64 = 4096;

/// Offsets of fields.
pub mod field {
    /// The magic number.
    pub const MAGIC: u64 = 0;
    /// The version.
    pub const VERSION: u64 = 8;
    /// The address of the interface.
    pub const ADDRESS: u64 = 16;
    /// Descriptors of each ring.
    pub const ENTRIES: u64 = 24;
    /// Frames put into the send ring.
    pub const SENT: u64 = 0x40;
    /// Buffers put into the receive ring.
    pub const POSTED: u64 = 0x80;
    /// From when on the guest wants an interrupt.
    pub const WANTED: u64 = 0xc0;
    /// Buffers filled.
    pub const RECEIVED: u64 = 0x1000;
    /// Frames taken.
    pub const TRANSMITTED: u64 = 0x1040;
    /// The send ring.
    pub const RINGS: u64 = 0x1100;
}

/// Bytes of a descriptor.
pub const DESCRIPTOR: u64 = 16;

/// What a descriptor's status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Status {
    /// Sent, or filled.
    Done = 1,
    /// It names no memory of the guest, or a length that cannot be.
    Refused = 2,
}

/// One of the two rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Of frames to send.
    Send,
    /// Of buffers for frames that come.
    Receive,
}

impl Ring {
    /// The offset of the descriptor of frame `number` in the area.
    pub fn descriptor(self, number: u64, entries: u64) -> u64 {
        let first = match self {
            Ring::Send => 0,
            Ring::Receive => entries,
        };
        field::RINGS + DESCRIPTOR * (first + number % entries)
    }
}

/// Bytes of the whole area.
pub fn area(entries: u64) -> u64 {
    field::RINGS + 2 * DESCRIPTOR * entries
}

/// In place of a field: an area was registered.
const REGISTERED: u64 = u64::MAX;
/// The same: an interrupt is due, or how many pairs of queues are used.
const DUE: u64 = u64::MAX - 1;
const PAIRS: u64 = u64::MAX - 2;

/// What a guest has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// It has registered an area: the so-many-th.
    Registered(u64),
    /// The count of frames to send.
    Sent(u64),
    /// The count of buffers.
    Posted(u64),
    /// From when on it wants an interrupt.
    Wanted(u64),
    /// A virtio driver is owed an interrupt, by what its queues say.
    Due,
    /// A virtio driver uses so many pairs of queues.
    Pairs(u64),
}

impl Store {
    /// As two words, for a thread of the card.
    pub(crate) fn to_words(self) -> (u64, u64) {
        match self {
            Store::Registered(generation) => (REGISTERED, generation),
            Store::Sent(count) => (field::SENT, count),
            Store::Posted(count) => (field::POSTED, count),
            Store::Wanted(count) => (field::WANTED, count),
            Store::Due => (DUE, 0),
            Store::Pairs(count) => (PAIRS, count),
        }
    }

    /// What two words say.
    pub(crate) fn from_words(what: u64, value: u64) -> Store {
        match what {
            DUE => Store::Due,
            PAIRS => Store::Pairs(value),
            _ => Store::at(what, value).unwrap_or(Store::Registered(value)),
        }
    }

    /// What a store of 8 bytes at an offset of the page says, if that is a field of the guest's.
    pub fn at(offset: u64, value: u64) -> Option<Store> {
        match offset {
            field::SENT => Some(Store::Sent(value)),
            field::POSTED => Some(Store::Posted(value)),
            field::WANTED => Some(Store::Wanted(value)),
            _ => None,
        }
    }
}

const _: () = assert!(
    field::WANTED < PAGE && field::RECEIVED >= PAGE,
    "each side has pages of its own"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_follow_each_other_and_wrap() {
        for entries in [4, 64, 256] {
            let mut seen = std::collections::BTreeSet::new();
            for ring in [Ring::Send, Ring::Receive] {
                for number in 0..entries {
                    let offset = ring.descriptor(number, entries);
                    assert!(seen.insert(offset) && offset + DESCRIPTOR <= area(entries));
                    assert_eq!(ring.descriptor(number + 5 * entries, entries), offset);
                }
            }
        }
    }

    #[test]
    fn only_the_guests_own_fields_say_something() {
        for store in [
            Store::Registered(3),
            Store::Sent(4),
            Store::Posted(5),
            Store::Wanted(6),
            Store::Due,
            Store::Pairs(7),
        ] {
            let (what, value) = store.to_words();
            assert_eq!(Store::from_words(what, value), store);
        }
        let said = (0..PAGE).step_by(8).filter_map(|offset| Store::at(offset, 7));
        assert_eq!(
            said.collect::<Vec<_>>(),
            [Store::Sent(7), Store::Posted(7), Store::Wanted(7)]
        );
    }
}
