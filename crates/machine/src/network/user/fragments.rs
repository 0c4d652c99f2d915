//! Packets that come in pieces (RFC 791, section 3.2; RFC 8200, section 4.5), put together.

use std::net::IpAddr;

use smoltcp::wire::{Ipv4Packet, Ipv6FragmentHeader, Ipv6Packet};

use crate::machine::timeline::TICKS_PER_SECOND;

/// The most packets that are incomplete; the oldest makes room for another.
const PACKETS_MAX: usize = 16;
/// How long a packet's pieces may take, as Linux waits for them.
const TICKS_MAX: u64 = 30 * TICKS_PER_SECOND;
/// The longest payload of a packet.
const BYTES_MAX: usize = u16::MAX as usize - 20;

/// What the pieces of a packet have in common: both addresses, protocol and identification.
type Identity = (IpAddr, IpAddr, u8, u32);

/// A piece of a packet.
pub struct Piece<'a> {
    identity: Identity,
    start: usize,
    payload: &'a [u8],
    has_more: bool,
}

impl<'a> Piece<'a> {
    /// Of a packet by IPv4.
    pub fn of_4(packet: &'a Ipv4Packet<&'a [u8]>) -> Piece<'a> {
        Piece {
            identity: (
                packet.src_addr().into(),
                packet.dst_addr().into(),
                packet.next_header().into(),
                packet.ident().into(),
            ),
            start: packet.frag_offset().into(),
            payload: packet.payload(),
            has_more: packet.more_frags(),
        }
    }

    /// Of a packet by IPv6, with what its fragment header says and what comes behind it.
    pub fn of_6(
        packet: &Ipv6Packet<&[u8]>,
        header: &Ipv6FragmentHeader<&[u8]>,
        (protocol, payload): (u8, &'a [u8]),
    ) -> Piece<'a> {
        /// In units of eight bytes.
        const UNIT: usize = 8;
        Piece {
            identity: (
                packet.src_addr().into(),
                packet.dst_addr().into(),
                protocol,
                header.ident(),
            ),
            start: usize::from(header.frag_offset()) * UNIT,
            payload,
            has_more: header.more_frags(),
        }
    }
}

/// A packet of which something is missing.
struct Incomplete {
    identity: Identity,
    began: u64,
    bytes: Vec<u8>,
    /// How many bytes there are of `bytes`.
    received: usize,
    /// Beginnings and ends of the pieces.
    pieces: Vec<(usize, usize)>,
    /// Where the last piece ends, once it is there.
    end: Option<usize>,
}

/// The packets of which something is missing.
#[derive(Default)]
pub struct Fragments(Vec<Incomplete>);

impl Fragments {
    /// Takes a piece; answers the payload of its packet when that is whole. Pieces that overlap, or that do not end
    /// where pieces end, spoil their packet.
    pub fn take(&mut self, now: u64, piece: &Piece<'_>) -> Option<Vec<u8>> {
        self.0
            .retain(|packet| now.saturating_sub(packet.began) < TICKS_MAX);
        let identity = piece.identity;
        let known = self.0.iter().position(|packet| packet.identity == identity);
        let index = known.unwrap_or_else(|| {
            if self.0.len() == PACKETS_MAX {
                self.0.remove(0);
            }
            self.0.push(Incomplete {
                identity,
                began: now,
                bytes: Vec::new(),
                received: 0,
                pieces: Vec::new(),
                end: None,
            });
            self.0.len() - 1
        });
        match self.0[index].add(piece.start, piece.payload, piece.has_more) {
            Some(false) => None,
            Some(true) => Some(self.0.remove(index).bytes),
            None => {
                self.0.remove(index);
                None
            }
        }
    }
}

impl Incomplete {
    /// Adds a piece. Whether the packet is whole; `None` if it never will be.
    fn add(&mut self, start: usize, payload: &[u8], has_more: bool) -> Option<bool> {
        let end = start + payload.len();
        let is_odd = has_more && (payload.is_empty() || !payload.len().is_multiple_of(8));
        let overlaps = |(from, to): &(usize, usize)| start < *to && *from < end;
        if is_odd || end > BYTES_MAX || self.pieces.iter().any(overlaps) {
            return None;
        }
        if !has_more && self.end.replace(end).is_some() {
            return None;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(payload);
        self.pieces.push((start, end));
        self.received += payload.len();
        match self.end {
            Some(last) if self.bytes.len() > last => None,
            Some(last) => Some(self.received == last),
            None => Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn empty() -> Incomplete {
        Incomplete {
            identity: (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into(), 17, 0),
            began: 0,
            bytes: Vec::new(),
            received: 0,
            pieces: Vec::new(),
            end: None,
        }
    }

    proptest! {
        #[test]
        fn pieces_make_the_packet_in_any_order(
            data in proptest::collection::vec(any::<u8>(), 9..4000),
            size in 1usize..100,
            seed: u64,
        ) {
            let mut pieces: Vec<usize> = (0..data.len()).step_by(8 * size).collect();
            let count = pieces.len() as u64;
            pieces.sort_by_key(|start| (*start as u64 / 8).wrapping_mul(seed | 1) >> 3 ^ seed);
            let mut packet = empty();
            for (number, start) in pieces.into_iter().enumerate() {
                let end = (start + 8 * size).min(data.len());
                let whole = packet.add(start, &data[start..end], end < data.len());
                prop_assert_eq!(whole, Some(number as u64 + 1 == count));
            }
            prop_assert_eq!(packet.bytes, data);
        }
    }

    #[test]
    fn pieces_that_contradict_each_other_spoil_their_packet() {
        let piece = [1; 16];
        for (start, payload, has_more) in [
            (8, &piece[..], true),
            (0, &piece[..], true),
            (32, &piece[..7], true),
            (32, &[][..], true),
            (65_528, &piece[..], false),
        ] {
            let mut packet = empty();
            assert_eq!(packet.add(0, &piece, true), Some(false));
            assert_eq!(packet.add(start, payload, has_more), None, "{start}");
        }
        // Two ends, and a piece behind the end.
        let mut packet = empty();
        assert_eq!(packet.add(16, &piece, false), Some(false));
        assert_eq!(packet.add(40, &piece, false), None);
        let mut packet = empty();
        assert_eq!(packet.add(16, &piece, false), Some(false));
        assert_eq!(packet.add(40, &piece, true), None);
    }
}
