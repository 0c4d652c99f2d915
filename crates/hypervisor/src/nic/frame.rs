//! What goes over the wire: Ethernet frames between interfaces.

use std::fmt;

/// The shortest frame, its header, in bytes.
pub const FRAME_MIN: u64 = 14;
/// The longest frame in bytes, without its checksum.
pub const FRAME_MAX: u64 = 1514;
/// Bytes that the wire carries around a frame: preamble 8, checksum 4, gap 12 (IEEE 802.3).
pub const FRAME_OVERHEAD: u64 = 24;
/// The fewest bytes of a frame on the wire, with its checksum, without preamble and gap (IEEE 802.3).
const WIRE_MIN: u64 = 64;

/// The address of an interface: locally administered, with the numbers of host and interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The host.
    pub host: u16,
    /// The interface on it.
    pub interface: u16,
}

/// The first two bytes of every address: the bit for locally administered ones, and an "S".
const PREFIX: [u8; 2] = [0x02, b'S'];

impl Address {
    /// The address of which these are the bytes; `None` if no card has it.
    pub fn from_bytes(bytes: [u8; 6]) -> Option<Address> {
        let [first, second, rest @ ..] = bytes;
        ([first, second] == PREFIX).then_some(Address {
            host: u16::from_be_bytes([rest[0], rest[1]]),
            interface: u16::from_be_bytes([rest[2], rest[3]]),
        })
    }

    /// Its bytes, as in a frame.
    pub fn to_bytes(self) -> [u8; 6] {
        let [host, interface] = [self.host, self.interface].map(u16::to_be_bytes);
        [PREFIX[0], PREFIX[1], host[0], host[1], interface[0], interface[1]]
    }

    /// As a guest reads it: its bytes in the order of a frame, little-endian.
    pub fn to_word(self) -> u64 {
        let mut word = [0; 8];
        word[..6].copy_from_slice(&self.to_bytes());
        u64::from_le_bytes(word)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = self.to_bytes();
        write!(formatter, "{first:02x}")?;
        rest.iter().try_for_each(|byte| write!(formatter, ":{byte:02x}"))
    }
}

/// A frame on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Tells it from every other frame in a timeline.
    pub number: u64,
    /// From the receiver's address to the last byte before the checksum.
    pub bytes: Vec<u8>,
}

impl Frame {
    /// A frame from one interface to another, with zeros behind its header up to so many bytes.
    ///
    /// # Panics
    /// If no frame has this size.
    pub fn between(from: Address, to: Address, size: u64, number: u64) -> Frame {
        assert!(
            (FRAME_MIN..=FRAME_MAX).contains(&size),
            "no frame has {size} bytes"
        );
        let mut bytes = vec![0; size as usize];
        bytes[..6].copy_from_slice(&to.to_bytes());
        bytes[6..12].copy_from_slice(&from.to_bytes());
        Frame { number, bytes }
    }

    /// Who is to have it; `None` if nobody has that address.
    pub fn to(&self) -> Option<Address> {
        Address::from_bytes(self.bytes.get(..6)?.try_into().ok()?)
    }

    /// Whether it is for many: for all on the network, or for those of a group (IEEE 802.3, the first bit of an
    /// address).
    pub fn is_for_many(&self) -> bool {
        self.bytes.first().is_some_and(|first| first & 1 != 0)
    }

    /// A number that frames of one connection have in common: what addresses and ports of IPv4 and IPv6 come to.
    pub fn flow(&self) -> u64 {
        const TYPE: usize = 12;
        let (from, to) = match self.bytes.get(TYPE..TYPE + 2) {
            // Two addresses of 4 bytes, and the ports behind a header of 20.
            Some([0x08, 0x00]) => (26, 38),
            // Two addresses of 16 bytes, and the ports.
            Some([0x86, 0xdd]) => (22, 58),
            _ => return 0,
        };
        let named = self.bytes.get(from..to).unwrap_or_default();
        // FNV-1a, and its high bits, which hang on every byte.
        let hash = named.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        hash >> 32
    }

    /// Bytes that the wire is busy for.
    pub fn wire_bytes(&self) -> u64 {
        (self.bytes.len() as u64 + 4).max(WIRE_MIN) + FRAME_OVERHEAD - 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written_and_others_are_nobodys() {
        for (host, interface) in [(0, 0), (1, 31), (u16::MAX, 256)] {
            let address = Address { host, interface };
            assert_eq!(Address::from_bytes(address.to_bytes()), Some(address));
        }
        assert_eq!(Address::from_bytes([0xff; 6]), None);
        let address = Address {
            host: 1,
            interface: 2,
        };
        assert_eq!(address.to_string(), "02:53:00:01:00:02");
        assert_eq!(address.to_word() & 0xff, 2);
    }

    #[test]
    fn a_frame_knows_its_receiver_and_what_it_takes_of_the_wire() {
        let [from, to] = [0, 1].map(|host| Address { host, interface: 3 });
        let frame = Frame::between(from, to, 60, 0);
        assert_eq!(frame.to(), Some(to));
        assert_eq!(frame.wire_bytes(), 84, "the shortest frame of Ethernet");
        assert_eq!(Frame::between(from, to, 1514, 0).wire_bytes(), 1538);
        let broken = Frame {
            number: 0,
            bytes: vec![2],
        };
        assert_eq!(broken.to(), None);
    }
}
