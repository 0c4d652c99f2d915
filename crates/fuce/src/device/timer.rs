//! A timer that signals once.
//!
//! | register | read | write |
//! | --- | --- | --- |
//! | 0 | kind | |
//! | 1 | handler | handler, continued to when the time has come |
//! | 2 | cycles left, 0 when the timer is not set | cycles until the signal; 0 cancels |

use super::{Device, HANDLER, KIND, Kind, SignalLine};
use crate::memory::Memory;

const CYCLES: u32 = 2;

/// The timer.
pub struct Timer {
    line: SignalLine,
    deadline: Option<u64>,
}

impl Timer {
    /// A timer that is not set.
    #[allow(clippy::new_without_default)] // A device is attached on purpose, never by default.
    pub fn new() -> Timer {
        Timer {
            line: SignalLine::new(),
            deadline: None,
        }
    }
}

impl Device for Timer {
    fn read(&mut self, register: u32, now: u64) -> u32 {
        match register {
            KIND => Kind::Timer as u32,
            HANDLER => self.line.handler(),
            CYCLES => self.deadline.map_or(0, |at| at.saturating_sub(now) as u32),
            _ => 0,
        }
    }

    fn write(&mut self, register: u32, value: u32, now: u64) {
        match register {
            HANDLER => self.line.set_handler(value),
            CYCLES => self.deadline = (value != 0).then(|| now + u64::from(value)),
            _ => {}
        }
    }

    fn next_event(&self) -> Option<u64> {
        self.deadline
    }

    fn advance(&mut self, _now: u64, _memory: &mut Memory) {
        self.deadline = None;
        self.line.raise();
    }

    fn signal(&self) -> Option<u32> {
        self.line.target()
    }

    fn signal_taken(&mut self) {
        self.line.clear();
    }
}
