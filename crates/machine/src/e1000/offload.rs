//! What the adapter does to a packet before it is frames on the cable: checksums at places that the driver names, and
//! a long packet cut into segments (section 3.3 of the manual).

use serde::{Deserialize, Serialize};

/// The most segments of a packet: 64 kB in segments of 32 bytes.
pub const SEGMENTS_MAX: usize = 2048;

/// Where a checksum is over and where it goes, in bytes of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// The first byte.
    pub start: u8,
    /// Where it goes.
    pub at: u8,
    /// The last byte; 0 for the end of the frame.
    pub last: u16,
}

/// What a context descriptor says of the packets after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The checksum of IP's header.
    pub network: Checksum,
    /// That of TCP or UDP.
    pub transport: Checksum,
    /// Whether IP is version 4.
    pub is_version_4: bool,
    /// Whether what it carries is TCP.
    pub is_tcp: bool,
    /// Bytes of the headers that each segment begins with.
    pub header_bytes: u8,
    /// Bytes of what comes after them.
    pub payload_bytes: u32,
    /// The most of them in a segment.
    pub segment_bytes: u16,
}

/// What is to be done to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Whether it is to be cut.
    pub segments: bool,
    /// Whether the checksums are to be put in.
    pub network: bool,
    /// That of TCP or UDP.
    pub transport: bool,
    /// A checksum that the packet's own descriptor asks for.
    pub own: Option<Checksum>,
}

/// The sum of 16-bit words in one's complement; an odd byte is a word's first.
pub fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2);
    let sum = words.fold(0u32, |sum, word| {
        sum + u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]))
    });
    fold(sum)
}

fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    (once + (once >> 16)) as u16
}

impl Checksum {
    /// Puts the checksum into a frame, if its place is there; what is there counts.
    fn put(self, frame: &mut [u8], is_udp: bool) {
        let end = match self.last {
            0 => frame.len(),
            last => frame.len().min(usize::from(last) + 1),
        };
        let (start, at) = (usize::from(self.start), usize::from(self.at));
        if start >= end || at + 2 > frame.len() {
            return;
        }
        let value = match !sum(&frame[start..end]) {
            // UDP has no other way to say that there is one.
            0 if is_udp => u16::MAX,
            value => value,
        };
        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// The frames of a packet: one, or its segments. None, if it cannot be cut as it is to be.
pub fn frames(packet: Vec<u8>, context: &Context, wanted: Wanted) -> Vec<Vec<u8>> {
    let mut frames = match wanted.segments {
        true => segments(&packet, context),
        false => vec![packet],
    };
    for frame in &mut frames {
        if let Some(own) = wanted.own {
            own.put(frame, false);
        }
        if wanted.network {
            context.network.put(frame, false);
        }
        if wanted.transport {
            context.transport.put(frame, !context.is_tcp);
        }
    }
    frames
}

/// A packet in segments that each have its headers, with the lengths and numbers that they need.
fn segments(packet: &[u8], context: &Context) -> Vec<Vec<u8>> {
    let Some((headers, payload)) = packet.split_at_checked(usize::from(context.header_bytes)) else {
        return Vec::new();
    };
    let payload = &payload[..payload.len().min(context.payload_bytes as usize)];
    let size = usize::from(context.segment_bytes);
    if size == 0 || payload.len().div_ceil(size) > SEGMENTS_MAX {
        return Vec::new();
    }
    let pieces = payload.chunks(size).enumerate();
    let segment = |(number, piece): (usize, &[u8])| {
        let mut frame = [headers, piece].concat();
        let before = number * size;
        let is_last = before + piece.len() == payload.len();
        Headers {
            frame: &mut frame,
            context,
        }
        .adjust(number, before, is_last);
        frame
    };
    pieces.map(segment).collect()
}

/// The headers of a segment. What is not there is left alone.
struct Headers<'a> {
    frame: &'a mut [u8],
    context: &'a Context,
}

impl Headers<'_> {
    /// Of the segment with this number, which has so many bytes of the packet before it.
    fn adjust(&mut self, number: usize, before: usize, is_last: bool) {
        let frame_bytes = self.frame.len();
        let network = usize::from(self.context.network.start);
        let transport = usize::from(self.context.transport.start);
        let behind = |start: usize| frame_bytes.saturating_sub(start) as u16;
        if self.context.is_version_4 {
            self.put(network + 2, behind(network));
            self.change(network + 4, |identification| {
                identification.wrapping_add(number as u16)
            });
        } else {
            const FIXED_BYTES: usize = 40;
            self.put(network + 4, behind(network + FIXED_BYTES));
        }
        if self.context.is_tcp {
            self.add_to_sequence(transport + 4, before as u32);
            const FINISH_AND_PUSH: u8 = 0x09;
            if let Some(flags) = self.frame.get_mut(transport + 13).filter(|_| !is_last) {
                *flags &= !FINISH_AND_PUSH;
            }
        } else {
            self.put(transport + 4, behind(transport));
        }
        // The driver's sum of addresses and protocol is without the length.
        let at = usize::from(self.context.transport.at);
        self.change(at, |sum| fold(u32::from(sum) + u32::from(behind(transport))));
    }

    fn change(&mut self, at: usize, change: impl Fn(u16) -> u16) {
        if let Some(word) = self.frame.get(at..at + 2) {
            let value = change(u16::from_be_bytes([word[0], word[1]]));
            self.put(at, value);
        }
    }

    fn put(&mut self, at: usize, value: u16) {
        if let Some(word) = self.frame.get_mut(at..at + 2) {
            word.copy_from_slice(&value.to_be_bytes());
        }
    }

    fn add_to_sequence(&mut self, at: usize, bytes: u32) {
        if let Some(word) = self.frame.get_mut(at..at + 4) {
            let number = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
            word.copy_from_slice(&number.wrapping_add(bytes).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smoltcp::wire::{EthernetFrame, Ipv4Packet, TcpPacket};

    use super::*;

    const HEADERS: usize = 14 + 20 + 20;

    /// A packet of TCP as a driver leaves it: no checksum of IP, that of TCP the sum of addresses and protocol.
    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![2; 12];
        packet.extend([8, 0, 0x45, 0, 0, 0, 0x12, 0xff, 0x40, 0, 64, 6, 0, 0]);
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([
            0, 80, 4, 0, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 9, 0x50, 0x19, 1, 0, 0, 0, 0, 0,
        ]);
        let pseudo = sum(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 6]);
        packet[50..52].copy_from_slice(&pseudo.to_be_bytes());
        packet.extend(payload);
        packet
    }

    fn context(payload: usize, segment: u16) -> Context {
        Context {
            network: Checksum {
                start: 14,
                at: 24,
                last: 33,
            },
            transport: Checksum {
                start: 34,
                at: 50,
                last: 0,
            },
            is_version_4: true,
            is_tcp: true,
            header_bytes: HEADERS as u8,
            payload_bytes: payload as u32,
            segment_bytes: segment,
        }
    }

    const ALL: Wanted = Wanted {
        segments: true,
        network: true,
        transport: true,
        own: None,
    };

    proptest! {
        /// Against another implementation of the protocols.
        #[test]
        fn segments_are_right_packets_of_the_same_bytes(
            payload in prop::collection::vec(any::<u8>(), 1..9000),
            segment in 33u16..1500,
        ) {
            let made = frames(packet(&payload), &context(payload.len(), segment), ALL);
            let count = made.len();
            prop_assert_eq!(count, payload.len().div_ceil(usize::from(segment)));
            let mut received = Vec::new();
            for (number, frame) in made.iter().enumerate() {
                let ethernet = EthernetFrame::new_checked(frame).expect("a frame");
                let network = Ipv4Packet::new_checked(ethernet.payload()).expect("a packet");
                prop_assert!(network.verify_checksum());
                prop_assert_eq!(network.ident(), 0x12ff + number as u16);
                prop_assert_eq!(usize::from(network.total_len()), frame.len() - 14);
                let (source, destination) = (network.src_addr().into(), network.dst_addr().into());
                let transport = TcpPacket::new_checked(network.payload()).expect("a segment");
                prop_assert!(transport.verify_checksum(&source, &destination));
                let offset = transport.seq_number().0 as u32;
                prop_assert_eq!(offset.wrapping_sub(0xffff_fff0) as usize, received.len());
                prop_assert_eq!((transport.fin(), transport.psh()), (number + 1 == count, number + 1 == count));
                prop_assert!(transport.ack());
                received.extend_from_slice(transport.payload());
            }
            prop_assert_eq!(received, payload);
        }

        /// Whatever a driver says, there is an end and no byte beyond.
        #[test]
        fn no_context_is_too_wrong(
            packet in prop::collection::vec(any::<u8>(), 0..3000),
            starts in any::<[u8; 4]>(),
            lasts in any::<[u16; 2]>(),
            sizes in (any::<u8>(), any::<u32>(), any::<u16>()),
            flags in any::<[bool; 5]>(),
        ) {
            let checksum = |start, at, last| Checksum { start, at, last };
            let context = Context {
                network: checksum(starts[0], starts[1], lasts[0]),
                transport: checksum(starts[2], starts[3], lasts[1]),
                is_version_4: flags[0],
                is_tcp: flags[1],
                header_bytes: sizes.0,
                payload_bytes: sizes.1,
                segment_bytes: sizes.2,
            };
            let wanted = Wanted {
                segments: flags[2],
                network: flags[3],
                transport: flags[4],
                own: Some(checksum(starts[3], starts[0], lasts[1])),
            };
            let size = packet.len();
            let made = frames(packet, &context, wanted);
            prop_assert!(made.len() <= SEGMENTS_MAX);
            prop_assert!(made.iter().all(|frame| frame.len() <= size));
        }
    }

    #[test]
    fn a_checksum_of_udp_is_never_zero() {
        let checksum = Checksum {
            start: 0,
            at: 2,
            last: 0,
        };
        let mut frame = [0xff, 0xff, 0, 0];
        checksum.put(&mut frame, true);
        assert_eq!(frame, [0xff, 0xff, 0xff, 0xff]);
        let mut frame = [0xff, 0xff, 0, 0];
        checksum.put(&mut frame, false);
        assert_eq!(frame, [0xff, 0xff, 0, 0]);
    }
}
