//! A network of the guest and this program: 10.0.2.0/24 and fec0::/64, with the addresses that QEMU's has.
//!
//! | Address | | |
//! |---|---|---|
//! | 10.0.2.2 | fec0::2 | the gateway, which answers ARP and neighbour discovery, DHCP and ICMP echo, and says as a router which network it is; connections to it go to the host's loopback |
//! | 10.0.2.3 | fec0::3 | the host's name server |
//! | 10.0.2.15 | | the guest; by IPv6 it makes its own |
//!
//! Connections to every other address are made by sockets of the host, so they need no privileges: `connections` for
//! TCP, with smoltcp as the end that the guest sees, `datagrams` for UDP, in one piece or several. What else a guest
//! sends is dropped: ICMP to others and in pieces.
//!
//! A guest can make this program hold a bounded number of connections and frames, whatever it sends.

mod addresses;
mod connections;
mod datagrams;
mod dhcp;
mod fragments;
mod frames;
mod router;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{
    ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv6Message, Icmpv6Packet,
    IpCidr, IpProtocol, Ipv4Packet, Ipv6FragmentHeader, Ipv6Packet, TcpPacket, UdpPacket,
};

use super::Link;
use super::forward::Forward;
use crate::machine::timeline::TICKS_PER_SECOND;
pub use addresses::{GATEWAY, GUEST, NAME_SERVER};
use addresses::{
    GATEWAY_6, NAME_SERVER_6, PREFIX_BITS, PREFIX_BITS_6, ROUTER_6, is_in_network, is_own, name_server,
};
use connections::Connections;
use datagrams::Datagrams;
use fragments::{Fragments, Piece};
use frames::Frames;

/// The gateway's hardware address.
const GATEWAY_HARDWARE: EthernetAddress = EthernetAddress([0x52, 0x55, 10, 0, 2, 2]);

/// How often sockets are looked at while there are any.
const POLL_TICKS: u64 = TICKS_PER_SECOND / 5_000;
/// How often it is looked whether there are any.
const IDLE_POLL_TICKS: u64 = TICKS_PER_SECOND / 200;
const NANOSECONDS_PER_MICROSECOND: u64 = 1_000;

/// The network.
pub struct UserNetwork {
    frames: Frames,
    interface: Interface,
    sockets: SocketSet<'static>,
    connections: Connections,
    datagrams: Datagrams,
    fragments: Fragments,
    now: u64,
}

impl UserNetwork {
    /// A network with these ports of the host leading into it.
    ///
    /// # Errors
    /// If the host does not listen at one of them, with that one.
    pub fn new(forwards: &[Forward]) -> Result<UserNetwork, (Forward, io::Error)> {
        let mut frames = Frames::default();
        let config = Config::new(GATEWAY_HARDWARE.into());
        let mut interface = Interface::new(config, &mut frames, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let own = [GATEWAY, NAME_SERVER].map(|address| IpCidr::new(address.into(), PREFIX_BITS));
            let own_6 = [GATEWAY_6, NAME_SERVER_6, ROUTER_6];
            let own_6 = own_6.map(|address| IpCidr::new(address.into(), PREFIX_BITS_6));
            for address in own.into_iter().chain(own_6) {
                addresses.push(address).expect("there is room for all");
            }
        });
        // Packets to everywhere are for this interface: it stands for the rest of the world.
        interface.set_any_ip(true);
        Ok(UserNetwork {
            frames,
            interface,
            sockets: SocketSet::new(Vec::new()),
            connections: Connections::new(forwards)?,
            datagrams: Datagrams::new(forwards, name_server())?,
            fragments: Fragments::default(),
            now: 0,
        })
    }

    /// Where the host listens for the guest: for connections, then for datagrams.
    pub fn listening(&self) -> Vec<SocketAddrV4> {
        let mut addresses = self.connections.listening();
        addresses.extend(self.datagrams.listening());
        addresses
    }

    fn instant(&self) -> Instant {
        Instant::from_micros(i64::try_from(self.now / NANOSECONDS_PER_MICROSECOND).unwrap_or(i64::MAX))
    }

    /// Gives a frame to the stack that answers ARP, echoes and TCP.
    fn give(&mut self, frame: Vec<u8>) {
        self.frames.incoming = Some(frame);
        self.run();
    }

    fn run(&mut self) {
        let now = self.instant();
        self.interface.poll(now, &mut self.frames, &mut self.sockets);
    }

    fn pump(&mut self) {
        let arrived = self.connections.established();
        for syn in arrived {
            let frame = self.connections.open(syn, &mut self.sockets);
            self.give(frame);
        }
        self.connections.accept(&mut self.interface, &mut self.sockets);
        self.connections.transfer(&mut self.sockets);
        self.run();
        self.datagrams.receive(self.now, &mut self.frames);
    }

    /// Takes a frame with an IPv4 packet; `None` if that is none or is dropped.
    fn take_packet(&mut self, frame: &EthernetFrame<&[u8]>) -> Option<()> {
        let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
        if packet.version() != 4 || !packet.verify_checksum() {
            return None;
        }
        let addresses = (packet.src_addr().into(), packet.dst_addr().into());
        self.frames.guest = frame.src_addr();
        if packet.more_frags() || packet.frag_offset() != 0 {
            let is_datagram = packet.next_header() == IpProtocol::Udp;
            let piece = is_datagram.then(|| Piece::of_4(&packet))?;
            let whole = self.fragments.take(self.now, &piece)?;
            return self.take_datagram(addresses, &whole);
        }
        match packet.next_header() {
            IpProtocol::Icmp if is_own(addresses.1) => self.give(frame.as_ref().to_vec()),
            IpProtocol::Tcp => self.take_segment(addresses, packet.payload(), frame)?,
            IpProtocol::Udp => self.take_datagram(addresses, packet.payload())?,
            _ => {}
        }
        Some(())
    }

    /// The same of an IPv6 packet.
    fn take_packet_6(&mut self, frame: &EthernetFrame<&[u8]>) -> Option<()> {
        /// What follows, a reserved byte and the header of a piece.
        const FRAGMENT_BYTES: usize = 8;
        let packet = Ipv6Packet::new_checked(frame.payload()).ok()?;
        if packet.version() != 6 {
            return None;
        }
        let addresses = (packet.src_addr().into(), packet.dst_addr().into());
        self.frames.guest = frame.src_addr();
        match packet.next_header() {
            IpProtocol::Icmpv6 => self.take_message(&packet, frame)?,
            IpProtocol::Tcp => self.take_segment(addresses, packet.payload(), frame)?,
            IpProtocol::Udp => self.take_datagram(addresses, packet.payload())?,
            IpProtocol::Ipv6Frag => {
                let (header, payload) = packet.payload().split_at_checked(FRAGMENT_BYTES)?;
                let protocol = header[0];
                let header = Ipv6FragmentHeader::new_checked(&header[2..]).ok()?;
                let is_datagram = protocol == u8::from(IpProtocol::Udp);
                let piece = is_datagram.then(|| Piece::of_6(&packet, &header, (protocol, payload)))?;
                let whole = self.fragments.take(self.now, &piece)?;
                self.take_datagram(addresses, &whole)?;
            }
            _ => {}
        }
        Some(())
    }

    /// Takes a message of ICMPv6: echoes and questions of neighbours for our own addresses, and for a router.
    fn take_message(&mut self, packet: &Ipv6Packet<&[u8]>, frame: &EthernetFrame<&[u8]>) -> Option<()> {
        let message = Icmpv6Packet::new_checked(packet.payload()).ok()?;
        if !message.verify_checksum(&packet.src_addr(), &packet.dst_addr()) {
            return None;
        }
        match message.msg_type() {
            Icmpv6Message::RouterSolicit => self.frames.advertise(),
            Icmpv6Message::NeighborSolicit if is_own(message.target_addr().into()) => {
                self.give(frame.as_ref().to_vec());
            }
            Icmpv6Message::NeighborAdvert => self.give(frame.as_ref().to_vec()),
            Icmpv6Message::EchoRequest if is_own(packet.dst_addr().into()) => {
                self.give(frame.as_ref().to_vec());
            }
            _ => {}
        }
        Some(())
    }

    /// Takes a packet's segment; `None` if that is none.
    fn take_segment(
        &mut self,
        (from, to): (IpAddr, IpAddr),
        payload: &[u8],
        frame: &EthernetFrame<&[u8]>,
    ) -> Option<()> {
        let segment = TcpPacket::new_checked(payload).ok()?;
        let (guest, peer) = (
            SocketAddr::new(from, segment.src_port()),
            SocketAddr::new(to, segment.dst_port()),
        );
        let begins = segment.syn() && !segment.ack();
        if begins && is_in_network(from) && !self.connections.has(guest, peer) {
            self.connections.begin(guest, peer, frame.as_ref());
        } else if !self.connections.is_beginning(guest, peer) {
            self.give(frame.as_ref().to_vec());
        }
        Some(())
    }

    /// Takes a packet's datagram; `None` if that is none or is dropped.
    fn take_datagram(&mut self, (from, to): (IpAddr, IpAddr), payload: &[u8]) -> Option<()> {
        let datagram = UdpPacket::new_checked(payload).ok()?;
        if !datagram.verify_checksum(&from.into(), &to.into()) {
            return None;
        }
        let (guest, peer) = (
            SocketAddr::new(from, datagram.src_port()),
            SocketAddr::new(to, datagram.dst_port()),
        );
        let is_for_server = to == GATEWAY || to == NAME_SERVER || to == Ipv4Addr::BROADCAST;
        if peer.port() == dhcp::SERVER_PORT && is_for_server {
            let answer = dhcp::answer(datagram.payload())?;
            self.frames.datagram(
                SocketAddr::new(GATEWAY.into(), dhcp::SERVER_PORT),
                SocketAddr::new(Ipv4Addr::BROADCAST.into(), dhcp::CLIENT_PORT),
                &answer,
            );
        } else if is_in_network(from) {
            self.datagrams.send(self.now, guest, peer, datagram.payload());
        }
        Some(())
    }

    /// Takes an ARP request; only those for our own addresses are answered.
    fn take_arp(&mut self, frame: &EthernetFrame<&[u8]>) -> Option<()> {
        let packet = ArpPacket::new_checked(frame.payload()).ok()?;
        let ArpRepr::EthernetIpv4 {
            target_protocol_addr, ..
        } = ArpRepr::parse(&packet).ok()?
        else {
            return None;
        };
        if is_own(target_protocol_addr.into()) {
            self.give(frame.as_ref().to_vec());
        }
        Some(())
    }
}

impl Drop for UserNetwork {
    fn drop(&mut self) {
        self.connections.cut_off(&mut self.sockets);
    }
}

impl Link for UserNetwork {
    fn send(&mut self, bytes: &[u8]) {
        let Ok(frame) = EthernetFrame::new_checked(bytes) else {
            return;
        };
        let to = frame.dst_addr();
        let is_for_us = match frame.ethertype() {
            EthernetProtocol::Ipv6 => to.is_multicast() || to == GATEWAY_HARDWARE,
            _ => to.is_broadcast() || to == GATEWAY_HARDWARE,
        };
        if !frame.src_addr().is_unicast() || !is_for_us {
            return;
        }
        // What is malformed is dropped.
        let _ = match frame.ethertype() {
            EthernetProtocol::Arp => self.take_arp(&frame),
            EthernetProtocol::Ipv4 => self.take_packet(&frame),
            EthernetProtocol::Ipv6 => self.take_packet_6(&frame),
            _ => None,
        };
    }

    fn has_frame(&self) -> bool {
        !self.frames.outgoing.is_empty()
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.frames.outgoing.pop_front()
    }

    fn advance(&mut self, now: u64) {
        self.now = now;
        self.pump();
    }

    fn poll_interval(&self) -> u64 {
        if self.connections.is_empty() && self.datagrams.is_empty() {
            IDLE_POLL_TICKS
        } else {
            POLL_TICKS
        }
    }
}
