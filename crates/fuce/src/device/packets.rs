//! A network interface that packets arrive at in a steady stream, for measuring overload.
//!
//! Packets are numbered as they arrive. The interface keeps as many as its ring holds; one that arrives at a full ring
//! is dropped.
//!
//! | register | read | write |
//! | --- | --- | --- |
//! | 0 | kind | |
//! | 1 | handler | handler, continued to while packets wait |
//! | 2 | the oldest packet, taken from the ring; -1 when there is none | |
//! | 3 | packets in the ring | 1: the handler is done, signal again while packets wait |

use std::collections::VecDeque;

use super::{Device, HANDLER, KIND, Kind, SignalLine};
use crate::memory::Memory;

const TAKE: u32 = 2;
const WAITING: u32 = 3;

/// The network interface.
pub struct Packets {
    line: SignalLine,
    handling: bool,
    interval: u64,
    next_arrival: u64,
    last_arrival: u64,
    ring: VecDeque<u32>,
    ring_packets: usize,
    arrived: u32,
    dropped: u64,
}

impl Packets {
    /// An interface at which a packet arrives every `interval` cycles from cycle `first` on, none after cycle `last`,
    /// with a ring of `ring_packets` packets.
    ///
    /// # Panics
    /// With an interval or ring of zero.
    pub fn new(interval: u64, first: u64, last: u64, ring_packets: usize) -> Packets {
        assert!(
            interval > 0 && ring_packets > 0,
            "packets come at intervals, into a ring"
        );
        Packets {
            line: SignalLine::new(),
            handling: false,
            interval,
            next_arrival: first,
            last_arrival: last,
            ring: VecDeque::new(),
            ring_packets,
            arrived: 0,
            dropped: 0,
        }
    }

    /// Packets that arrived, the dropped ones included.
    pub fn arrived(&self) -> u64 {
        self.arrived.into()
    }

    /// Packets dropped at the full ring.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Device for Packets {
    fn read(&mut self, register: u32, _now: u64) -> u32 {
        match register {
            KIND => Kind::Packets as u32,
            HANDLER => self.line.handler(),
            TAKE => self.ring.pop_front().unwrap_or(u32::MAX),
            WAITING => self.ring.len() as u32,
            _ => 0,
        }
    }

    fn write(&mut self, register: u32, value: u32, _now: u64) {
        match register {
            HANDLER => self.line.set_handler(value),
            WAITING if value == 1 => {
                self.handling = false;
                if !self.ring.is_empty() {
                    self.line.raise();
                }
            }
            _ => {}
        }
    }

    fn next_event(&self) -> Option<u64> {
        (self.next_arrival <= self.last_arrival).then_some(self.next_arrival)
    }

    fn advance(&mut self, _now: u64, _memory: &mut Memory) {
        self.next_arrival += self.interval;
        if self.ring.len() == self.ring_packets {
            self.dropped += 1;
        } else {
            self.ring.push_back(self.arrived);
        }
        self.arrived += 1;
        if !self.handling {
            self.line.raise();
        }
    }

    fn signal(&self) -> Option<u32> {
        self.line.target()
    }

    fn signal_taken(&mut self) {
        self.handling = true;
        self.line.clear();
    }
}
