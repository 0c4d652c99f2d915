//! A network of the guest and this program: 10.0.2.0/24, with the addresses that QEMU's has.
//!
//! | Address | |
//! |---|---|
//! | 10.0.2.2 | the gateway, which answers ARP, DHCP and ICMP echo; connections to it go to the host's loopback |
//! | 10.0.2.3 | the host's name server |
//! | 10.0.2.15 | the guest |
//!
//! Connections to every other address are made by sockets of the host, so they need no privileges: `connections` for
//! TCP, with smoltcp as the end that the guest sees, `datagrams` for UDP, in one piece or several. What else a guest
//! sends is dropped: IPv6, ICMP to others and in pieces.
//!
//! A guest can make this program hold a bounded number of connections and frames, whatever it sends.

mod connections;
mod datagrams;
mod dhcp;
mod fragments;
mod frames;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{
    ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, IpCidr, IpProtocol, Ipv4Packet,
    TcpPacket, UdpPacket,
};

use super::Link;
use super::forward::Forward;
use crate::machine::timeline::TICKS_PER_SECOND;
use connections::Connections;
use datagrams::Datagrams;
use fragments::Fragments;
use frames::Frames;

/// The gateway.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// The name server.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
/// The guest, if it asks DHCP.
pub const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// The bits of the network's address.
const PREFIX: u8 = 24;
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
            for address in [GATEWAY, NAME_SERVER] {
                let added = addresses.push(IpCidr::new(address.into(), PREFIX));
                added.expect("there is room for two addresses");
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
        let (from, to) = (packet.src_addr(), packet.dst_addr());
        self.frames.guest = frame.src_addr();
        if packet.more_frags() || packet.frag_offset() != 0 {
            let is_datagram = packet.next_header() == IpProtocol::Udp;
            let whole = is_datagram.then(|| self.fragments.take(self.now, &packet))??;
            return self.take_datagram(from, to, &whole);
        }
        match packet.next_header() {
            IpProtocol::Icmp if is_own(to) => self.give(frame.as_ref().to_vec()),
            IpProtocol::Tcp => {
                let segment = TcpPacket::new_checked(packet.payload()).ok()?;
                let (guest, peer) = (
                    SocketAddrV4::new(from, segment.src_port()),
                    SocketAddrV4::new(to, segment.dst_port()),
                );
                let begins = segment.syn() && !segment.ack();
                if begins && is_in_network(from) && !self.connections.has(guest, peer) {
                    self.connections.begin(guest, peer, frame.as_ref());
                } else if !self.connections.is_beginning(guest, peer) {
                    self.give(frame.as_ref().to_vec());
                }
            }
            IpProtocol::Udp => self.take_datagram(from, to, packet.payload())?,
            _ => {}
        }
        Some(())
    }

    /// Takes a packet's datagram; `None` if that is none or is dropped.
    fn take_datagram(&mut self, from: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> Option<()> {
        let datagram = UdpPacket::new_checked(payload).ok()?;
        if !datagram.verify_checksum(&from.into(), &to.into()) {
            return None;
        }
        let (guest, peer) = (
            SocketAddrV4::new(from, datagram.src_port()),
            SocketAddrV4::new(to, datagram.dst_port()),
        );
        if peer.port() == dhcp::SERVER_PORT && (is_own(to) || to.is_broadcast()) {
            let answer = dhcp::answer(datagram.payload())?;
            self.frames.datagram(
                SocketAddrV4::new(GATEWAY, dhcp::SERVER_PORT),
                SocketAddrV4::new(Ipv4Addr::BROADCAST, dhcp::CLIENT_PORT),
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
        if is_own(target_protocol_addr) {
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
        if !frame.src_addr().is_unicast() || to != GATEWAY_HARDWARE && !to.is_broadcast() {
            return;
        }
        // What is malformed is dropped.
        let _ = match frame.ethertype() {
            EthernetProtocol::Arp => self.take_arp(&frame),
            EthernetProtocol::Ipv4 => self.take_packet(&frame),
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

fn is_own(address: Ipv4Addr) -> bool {
    address == GATEWAY || address == NAME_SERVER
}

fn is_in_network(address: Ipv4Addr) -> bool {
    address.octets()[..3] == GATEWAY.octets()[..3]
}

/// Where the host reaches what a guest calls `peer`; `None` where nothing is.
fn target(peer: SocketAddrV4, name_server: Option<Ipv4Addr>) -> Option<SocketAddrV4> {
    const NAME_SERVER_PORT: u16 = 53;
    let address = *peer.ip();
    let reached = if address == GATEWAY {
        Some(Ipv4Addr::LOCALHOST)
    } else if address == NAME_SERVER {
        name_server.filter(|_| peer.port() == NAME_SERVER_PORT)
    } else {
        let nowhere = is_in_network(address)
            || address.is_loopback()
            || address.is_multicast()
            || address.is_broadcast()
            || address.is_unspecified();
        (!nowhere).then_some(address)
    };
    reached.map(|address| SocketAddrV4::new(address, peer.port()))
}

/// The host's first name server with an IPv4 address.
fn name_server() -> Option<Ipv4Addr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").ok()?;
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok())
        .next()
}
