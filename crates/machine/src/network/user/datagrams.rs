//! UDP: a socket of the host for each pair of a guest's endpoint and one outside, and one for each forwarded port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, UdpSocket};

use super::super::forward::{Forward, Transport};
use super::addresses::{GATEWAY, target};
use super::frames::Frames;
use crate::machine::timeline::TICKS_PER_SECOND;

/// The most pairs; the one that was used least lately makes room for another.
const FLOWS_MAX: usize = 128;
/// A pair is forgotten when nothing was sent for so long.
const IDLE_TICKS_MAX: u64 = 60 * TICKS_PER_SECOND;
/// The most datagrams taken from one socket at once.
const BURST: usize = 16;
/// The ports from which senders to forwarded ports seem to come.
const FIRST_PORT: u16 = 49_152;

/// How a pair's datagrams reach the outside.
enum Way {
    /// By a socket of its own.
    Own(UdpSocket),
    /// By that of the forwarded port of this number, to whoever sent there.
    Forwarded { port: usize, sender: SocketAddr },
}

struct Flow {
    guest: SocketAddr,
    peer: SocketAddr,
    way: Way,
    used: u64,
}

/// The pairs.
pub struct Datagrams {
    flows: Vec<Flow>,
    /// Forwarded ports, and where they lead.
    ports: Vec<(UdpSocket, SocketAddrV4)>,
    next_port: u16,
    name_server: Option<IpAddr>,
}

impl Datagrams {
    /// No pair yet, and these ports.
    ///
    /// # Errors
    /// If the host does not listen at one of them, with that one.
    pub fn new(forwards: &[Forward], name_server: Option<IpAddr>) -> Result<Datagrams, (Forward, io::Error)> {
        let of_datagrams = forwards
            .iter()
            .filter(|forward| forward.transport == Transport::Udp);
        let ports = of_datagrams.map(|forward| {
            let socket = UdpSocket::bind(forward.host).map_err(|error| (*forward, error))?;
            socket.set_nonblocking(true).map_err(|error| (*forward, error))?;
            Ok((socket, forward.guest))
        });
        Ok(Datagrams {
            flows: Vec::new(),
            ports: ports.collect::<Result<_, _>>()?,
            next_port: FIRST_PORT,
            name_server,
        })
    }

    /// Where the host takes datagrams for the guest.
    pub fn listening(&self) -> impl Iterator<Item = SocketAddrV4> {
        self.ports
            .iter()
            .filter_map(|(socket, _)| match socket.local_addr() {
                Ok(SocketAddr::V4(address)) => Some(address),
                _ => None,
            })
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Sends what a guest sends. What cannot be sent is lost, as datagrams may be.
    pub fn send(&mut self, now: u64, guest: SocketAddr, peer: SocketAddr, payload: &[u8]) {
        let known = |flow: &Flow| (flow.guest, flow.peer) == (guest, peer);
        let index = self
            .flows
            .iter()
            .position(known)
            .or_else(|| self.begin(guest, peer));
        if let Some(index) = index {
            self.flows[index].used = now;
            let _ = match &self.flows[index].way {
                Way::Own(socket) => socket.send(payload),
                Way::Forwarded { port, sender } => self.ports[*port].0.send_to(payload, sender),
            };
        }
    }

    fn begin(&mut self, guest: SocketAddr, peer: SocketAddr) -> Option<usize> {
        let target = target(peer, self.name_server)?;
        let any: IpAddr = match target {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.set_nonblocking(true).ok()?;
        socket.connect(target).ok()?;
        Some(self.add(guest, peer, Way::Own(socket)))
    }

    fn add(&mut self, guest: SocketAddr, peer: SocketAddr, way: Way) -> usize {
        if self.flows.len() == FLOWS_MAX {
            let oldest = (0..FLOWS_MAX).min_by_key(|&index| self.flows[index].used);
            self.flows.swap_remove(oldest.expect("there are some"));
        }
        self.flows.push(Flow {
            guest,
            peer,
            way,
            used: 0,
        });
        self.flows.len() - 1
    }

    /// Hands the guest what has come for it.
    pub fn receive(&mut self, now: u64, frames: &mut Frames) {
        let mut payload = [0; 1 << 16];
        for flow in &mut self.flows {
            let Way::Own(socket) = &flow.way else { continue };
            for _ in 0..BURST {
                let Ok(size) = socket.recv(&mut payload) else {
                    break;
                };
                flow.used = now;
                frames.datagram(flow.peer, flow.guest, &payload[..size]);
            }
        }
        for port in 0..self.ports.len() {
            for _ in 0..BURST {
                let (socket, guest) = &self.ports[port];
                let (guest, Ok((size, sender))) = (SocketAddr::V4(*guest), socket.recv_from(&mut payload))
                else {
                    break;
                };
                let index = self.sender(guest, port, sender);
                self.flows[index].used = now;
                frames.datagram(self.flows[index].peer, guest, &payload[..size]);
            }
        }
        self.flows
            .retain(|flow| now.saturating_sub(flow.used) < IDLE_TICKS_MAX);
    }

    /// The pair of a sender to a forwarded port, who seems to be at a port of the gateway.
    fn sender(&mut self, guest: SocketAddr, port: usize, sender: SocketAddr) -> usize {
        let is_known = |flow: &Flow| {
            let Way::Forwarded {
                port: of,
                sender: who,
            } = flow.way
            else {
                return false;
            };
            (of, who) == (port, sender)
        };
        if let Some(index) = self.flows.iter().position(is_known) {
            return index;
        }
        loop {
            let peer = SocketAddr::new(GATEWAY.into(), self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
            // There are more ports than pairs.
            if !self
                .flows
                .iter()
                .any(|flow| (flow.guest, flow.peer) == (guest, peer))
            {
                return self.add(guest, peer, Way::Forwarded { port, sender });
            }
        }
    }
}
