//! Frames between the guest and the stack.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

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

/// The cable's two directions.
pub struct Frames {
    /// The frame that the stack has to look at.
    pub incoming: Option<Vec<u8>>,
    /// Frames for the guest.
    pub outgoing: VecDeque<Vec<u8>>,
    /// The guest's hardware address, as of its last packet.
    pub guest: EthernetAddress,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            incoming: None,
            outgoing: VecDeque::new(),
            guest: EthernetAddress::BROADCAST,
        }
    }
}

impl Frames {
    fn push(&mut self, frame: Vec<u8>) {
        if self.outgoing.len() < OUTGOING_MAX {
            self.outgoing.push_back(frame);
        }
    }

    /// Sends a datagram to the guest; one that does not fit into a frame is lost.
    pub fn datagram(&mut self, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        let size = ETHERNET_BYTES + IP_BYTES + UDP_BYTES + payload.len();
        if size > FRAME_BYTES_MAX {
            return;
        }
        let mut bytes = vec![0; size];
        let ethernet = EthernetRepr {
            src_addr: GATEWAY_HARDWARE,
            dst_addr: self.guest,
            ethertype: EthernetProtocol::Ipv4,
        };
        let internet = Ipv4Repr {
            src_addr: *from.ip(),
            dst_addr: *to.ip(),
            next_header: IpProtocol::Udp,
            payload_len: UDP_BYTES + payload.len(),
            hop_limit: HOP_LIMIT,
        };
        let datagram = UdpRepr {
            src_port: from.port(),
            dst_port: to.port(),
        };
        let checksums = ChecksumCapabilities::default();
        let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
        ethernet.emit(&mut frame);
        let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
        internet.emit(&mut packet, &checksums);
        datagram.emit(
            &mut UdpPacket::new_unchecked(packet.payload_mut()),
            &(*from.ip()).into(),
            &(*to.ip()).into(),
            payload.len(),
            |room| room.copy_from_slice(payload),
            &checksums,
        );
        self.push(bytes);
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
