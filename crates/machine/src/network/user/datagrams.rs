//! UDP: a socket of the host for each pair of a guest's endpoint and one outside.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use super::frames::Frames;
use super::target;
use crate::machine::timeline::TICKS_PER_SECOND;

/// The most pairs; the one that was used least lately makes room for another.
const FLOWS_MAX: usize = 128;
/// A pair is forgotten when nothing was sent for so long.
const IDLE_TICKS_MAX: u64 = 60 * TICKS_PER_SECOND;
/// The most datagrams taken from one socket at once.
const BURST: usize = 16;

struct Flow {
    guest: SocketAddrV4,
    peer: SocketAddrV4,
    socket: UdpSocket,
    used: u64,
}

/// The pairs.
pub struct Datagrams {
    flows: Vec<Flow>,
    name_server: Option<Ipv4Addr>,
}

impl Datagrams {
    /// None yet.
    pub fn new(name_server: Option<Ipv4Addr>) -> Datagrams {
        Datagrams {
            flows: Vec::new(),
            name_server,
        }
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Sends what a guest sends. What cannot be sent is lost, as datagrams may be.
    pub fn send(&mut self, now: u64, guest: SocketAddrV4, peer: SocketAddrV4, payload: &[u8]) {
        let known = |flow: &Flow| (flow.guest, flow.peer) == (guest, peer);
        let index = self
            .flows
            .iter()
            .position(known)
            .or_else(|| self.begin(guest, peer));
        if let Some(index) = index {
            self.flows[index].used = now;
            let _ = self.flows[index].socket.send(payload);
        }
    }

    fn begin(&mut self, guest: SocketAddrV4, peer: SocketAddrV4) -> Option<usize> {
        let target = target(peer, self.name_server)?;
        let socket = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.set_nonblocking(true).ok()?;
        socket.connect(target).ok()?;
        if self.flows.len() == FLOWS_MAX {
            let oldest = (0..FLOWS_MAX).min_by_key(|&index| self.flows[index].used)?;
            self.flows.swap_remove(oldest);
        }
        self.flows.push(Flow {
            guest,
            peer,
            socket,
            used: 0,
        });
        Some(self.flows.len() - 1)
    }

    /// Hands the guest what has come for it.
    pub fn receive(&mut self, now: u64, frames: &mut Frames) {
        let mut payload = [0; 1 << 16];
        for flow in &mut self.flows {
            for _ in 0..BURST {
                let Ok(size) = flow.socket.recv(&mut payload) else {
                    break;
                };
                flow.used = now;
                frames.datagram(flow.peer, flow.guest, &payload[..size]);
            }
        }
        self.flows
            .retain(|flow| now.saturating_sub(flow.used) < IDLE_TICKS_MAX);
    }
}
