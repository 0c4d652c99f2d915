//! Frames between the guest and the stack.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet, Ipv4Repr,
    Ipv6FragmentHeader, Ipv6FragmentRepr, Ipv6Packet, Ipv6Repr, UdpPacket, UdpRepr,
};

use super::super::FRAME_BYTES_MAX;
use super::addresses::ROUTER_6;
use super::{GATEWAY_HARDWARE, router};

/// The most frames that wait for the guest; those behind are lost.
const OUTGOING_MAX: usize = 256;
const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const IP_6_BYTES: usize = 40;
const FRAGMENT_BYTES: usize = 8;
const HOP_LIMIT: u8 = 64;
/// In which places of pieces are counted.
const UNIT: usize = 8;
/// What fits into one frame behind the headers, in whole units.
const PIECE_BYTES: usize = (FRAME_BYTES_MAX - ETHERNET_BYTES - IP_BYTES) / UNIT * UNIT;
const PIECE_6_BYTES: usize = (FRAME_BYTES_MAX - ETHERNET_BYTES - IP_6_BYTES - FRAGMENT_BYTES) / UNIT * UNIT;

/// The cable's two directions.
pub struct Frames {
    /// The frame that the stack has to look at.
    pub incoming: Option<Vec<u8>>,
    /// Frames for the guest.
    pub outgoing: VecDeque<Vec<u8>>,
    /// The guest's hardware address, as of its last packet.
    pub guest: EthernetAddress,
    /// What names the next packet that is sent in pieces.
    pub(super) identification: u16,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            incoming: None,
            outgoing: VecDeque::new(),
            guest: EthernetAddress::BROADCAST,
            identification: 0,
        }
    }
}

impl Frames {
    fn push(&mut self, frame: Vec<u8>) {
        if self.outgoing.len() < OUTGOING_MAX {
            self.outgoing.push_back(frame);
        }
    }

    /// Sends a datagram to the guest: in pieces, if it does not fit into a frame; none of it, if they are too many.
    /// Both addresses are of one version.
    pub fn datagram(&mut self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        let datagram = UdpRepr {
            src_port: from.port(),
            dst_port: to.port(),
        };
        let mut bytes = vec![0; UDP_BYTES + payload.len()];
        datagram.emit(
            &mut UdpPacket::new_unchecked(&mut bytes[..]),
            &from.ip().into(),
            &to.ip().into(),
            payload.len(),
            |room| room.copy_from_slice(payload),
            &ChecksumCapabilities::default(),
        );
        let pieces = bytes.chunks(match from {
            SocketAddr::V4(_) => PIECE_BYTES,
            SocketAddr::V6(_) => PIECE_6_BYTES,
        });
        let count = pieces.len();
        if self.outgoing.len() + count > OUTGOING_MAX {
            return;
        }
        if count > 1 {
            self.identification = self.identification.wrapping_add(1);
        }
        for (index, piece) in pieces.enumerate() {
            let frame = match (from.ip(), to.ip()) {
                (IpAddr::V4(from), IpAddr::V4(to)) => self.piece((from, to), (index, count), piece),
                (IpAddr::V6(from), IpAddr::V6(to)) => self.piece_6((from, to), (index, count), piece),
                _ => return,
            };
            self.push(frame);
        }
    }

    /// A frame to the guest with room for so many bytes behind its header.
    fn frame(&self, to: EthernetAddress, ethertype: EthernetProtocol, bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET_BYTES + bytes];
        let header = EthernetRepr {
            src_addr: GATEWAY_HARDWARE,
            dst_addr: to,
            ethertype,
        };
        header.emit(&mut EthernetFrame::new_unchecked(&mut frame[..]));
        frame
    }

    /// The frame with a piece of a datagram.
    fn piece(
        &self,
        (from, to): (Ipv4Addr, Ipv4Addr),
        (index, count): (usize, usize),
        piece: &[u8],
    ) -> Vec<u8> {
        let mut bytes = self.frame(self.guest, EthernetProtocol::Ipv4, IP_BYTES + piece.len());
        let internet = Ipv4Repr {
            src_addr: from,
            dst_addr: to,
            next_header: IpProtocol::Udp,
            payload_len: piece.len(),
            hop_limit: HOP_LIMIT,
        };
        let mut packet = Ipv4Packet::new_unchecked(&mut bytes[ETHERNET_BYTES..]);
        internet.emit(&mut packet, &ChecksumCapabilities::ignored());
        packet.payload_mut().copy_from_slice(piece);
        if count > 1 {
            packet.set_dont_frag(false);
            packet.set_ident(self.identification);
            packet.set_more_frags(index + 1 < count);
            packet.set_frag_offset((index * PIECE_BYTES) as u16);
        }
        packet.fill_checksum();
        bytes
    }

    /// The same by IPv6, whose pieces have a header of their own.
    fn piece_6(
        &self,
        addresses: (Ipv6Addr, Ipv6Addr),
        (index, count): (usize, usize),
        piece: &[u8],
    ) -> Vec<u8> {
        if count == 1 {
            return self.packet_6(self.guest, addresses, (IpProtocol::Udp, HOP_LIMIT), piece);
        }
        // What follows, and nothing.
        let mut payload = vec![u8::from(IpProtocol::Udp), 0];
        let mut header = [0; FRAGMENT_BYTES - 2];
        let place = Ipv6FragmentRepr {
            frag_offset: (index * PIECE_6_BYTES / UNIT) as u16,
            more_frags: index + 1 < count,
            ident: self.identification.into(),
        };
        place.emit(&mut Ipv6FragmentHeader::new_unchecked(&mut header[..]));
        payload.extend(header);
        payload.extend(piece);
        self.packet_6(self.guest, addresses, (IpProtocol::Ipv6Frag, HOP_LIMIT), &payload)
    }

    /// The frame with a packet by IPv6: the protocol of its payload and its hop limit.
    fn packet_6(
        &self,
        hardware: EthernetAddress,
        (from, to): (Ipv6Addr, Ipv6Addr),
        (next_header, hop_limit): (IpProtocol, u8),
        payload: &[u8],
    ) -> Vec<u8> {
        let mut bytes = self.frame(hardware, EthernetProtocol::Ipv6, IP_6_BYTES + payload.len());
        let internet = Ipv6Repr {
            src_addr: from,
            dst_addr: to,
            next_header,
            payload_len: payload.len(),
            hop_limit,
        };
        let mut packet = Ipv6Packet::new_unchecked(&mut bytes[ETHERNET_BYTES..]);
        internet.emit(&mut packet);
        packet.payload_mut().copy_from_slice(payload);
        bytes
    }

    /// Tells every guest what it can reach by IPv6, and from where.
    pub fn advertise(&mut self) {
        const ALL_NODES_HARDWARE: EthernetAddress = EthernetAddress([0x33, 0x33, 0, 0, 0, 1]);
        let frame = self.packet_6(
            ALL_NODES_HARDWARE,
            (ROUTER_6, router::ALL_NODES),
            (IpProtocol::Icmpv6, router::HOP_LIMIT),
            &router::advertisement(),
        );
        self.push(frame);
    }
}

pub struct Incoming(Vec<u8>);

impl RxToken for Incoming {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

pub struct Outgoing<'a>(&'a mut Frames);

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, size: usize, write: F) -> R {
        let mut frame = vec![0; size];
        let result = write(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Frames {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Incoming, Outgoing<'_>)> {
        let frame = self.incoming.take()?;
        Some((Incoming(frame), Outgoing(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Outgoing<'_>> {
        (self.outgoing.len() < OUTGOING_MAX).then_some(Outgoing(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_BYTES_MAX;
        capabilities
    }
}
