//! Frames between the guest and the stack.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet, Ipv4Repr,
    UdpPacket, UdpRepr,
};

use super::super::FRAME_BYTES_MAX;
use super::GATEWAY_HARDWARE;

/// The most frames that wait for the guest; those behind are lost.
const OUTGOING_MAX: usize = 256;
const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const HOP_LIMIT: u8 = 64;
/// What fits into one frame, in whole units of eight bytes, in which places of pieces are counted.
const PIECE_BYTES: usize = (FRAME_BYTES_MAX - ETHERNET_BYTES - IP_BYTES) / 8 * 8;

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
    pub fn datagram(&mut self, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        let datagram = UdpRepr {
            src_port: from.port(),
            dst_port: to.port(),
        };
        let mut bytes = vec![0; UDP_BYTES + payload.len()];
        datagram.emit(
            &mut UdpPacket::new_unchecked(&mut bytes[..]),
            &(*from.ip()).into(),
            &(*to.ip()).into(),
            payload.len(),
            |room| room.copy_from_slice(payload),
            &ChecksumCapabilities::default(),
        );
        let pieces = bytes.chunks(PIECE_BYTES);
        let count = pieces.len();
        if self.outgoing.len() + count > OUTGOING_MAX {
            return;
        }
        if count > 1 {
            self.identification = self.identification.wrapping_add(1);
        }
        for (index, piece) in pieces.enumerate() {
            let frame = self.piece((*from.ip(), *to.ip()), (index, count), piece);
            self.push(frame);
        }
    }

    /// The frame with a piece of a datagram.
    fn piece(
        &self,
        (from, to): (Ipv4Addr, Ipv4Addr),
        (index, count): (usize, usize),
        piece: &[u8],
    ) -> Vec<u8> {
        let mut bytes = vec![0; ETHERNET_BYTES + IP_BYTES + piece.len()];
        let ethernet = EthernetRepr {
            src_addr: GATEWAY_HARDWARE,
            dst_addr: self.guest,
            ethertype: EthernetProtocol::Ipv4,
        };
        let internet = Ipv4Repr {
            src_addr: from,
            dst_addr: to,
            next_header: IpProtocol::Udp,
            payload_len: piece.len(),
            hop_limit: HOP_LIMIT,
        };
        let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
        ethernet.emit(&mut frame);
        let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
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
