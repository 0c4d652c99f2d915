//! A device that answers one request at a time after a fixed round trip, as the network interfaces of the CEFOS
//! evaluation do, but without occupying an execution unit.
//!
//! | register | read | write |
//! | --- | --- | --- |
//! | 0 | kind | |
//! | 1 | handler | handler, continued to when the answer is there |
//! | 2 | the last answer: the request's word | the word of a new request |
//! | 3 | 1 while a request is under way, else 0 | |
//! | 4 | requests that came while one was under way and were dropped | |

use super::{Device, HANDLER, KIND, Kind, SignalLine};
use crate::memory::Memory;

const DATA: u32 = 2;
const BUSY: u32 = 3;
const DROPPED: u32 = 4;

/// The device.
pub struct RequestDevice {
    line: SignalLine,
    round_trip_cycles: u64,
    under_way: Option<(u64, u32)>,
    answer: u32,
    dropped: u32,
    answered: u64,
}

impl RequestDevice {
    /// A device that answers after `round_trip_cycles` cycles.
    pub fn new(round_trip_cycles: u64) -> RequestDevice {
        RequestDevice {
            line: SignalLine::new(),
            round_trip_cycles,
            under_way: None,
            answer: 0,
            dropped: 0,
            answered: 0,
        }
    }

    /// Requests answered so far.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Requests dropped because one was under way.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }
}

impl Device for RequestDevice {
    fn read(&mut self, register: u32, _now: u64) -> u32 {
        match register {
            KIND => Kind::Request as u32,
            HANDLER => self.line.handler(),
            DATA => self.answer,
            BUSY => u32::from(self.under_way.is_some() || self.line.raised()),
            DROPPED => self.dropped,
            _ => 0,
        }
    }

    fn write(&mut self, register: u32, value: u32, now: u64) {
        match register {
            HANDLER => self.line.set_handler(value),
            DATA if self.under_way.is_some() || self.line.raised() => self.dropped += 1,
            DATA => self.under_way = Some((now + self.round_trip_cycles.max(1), value)),
            _ => {}
        }
    }

    fn next_event(&self) -> Option<u64> {
        self.under_way.map(|(at, _)| at)
    }

    fn advance(&mut self, _now: u64, _memory: &mut Memory) {
        if let Some((_, value)) = self.under_way.take() {
            self.answer = value;
            self.answered += 1;
            self.line.raise();
        }
    }

    fn signal(&self) -> Option<u32> {
        self.line.target()
    }

    fn signal_taken(&mut self) {
        self.line.clear();
    }
}
