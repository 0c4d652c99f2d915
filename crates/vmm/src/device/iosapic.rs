//! The IOSAPIC: turns the lines of devices into messages to processors.
//!
//! Three registers: a register number is written to `select`, its value read or written in `window`; a vector
//! written to `eoi` ends level-triggered interrupts with that vector. Each of the [`LINES`] lines has a redirection
//! entry of 64 bits: vector, delivery mode, polarity, remote request, trigger, mask; and the processor's local
//! identifier in its top 16 bits.
//!
//! Whether a line is active low is the wiring's business: [`Lines::set`] says whether it is asserted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::bus::Device;
use crate::machine::interrupt_block::{Delivery, InterruptBlock, LocalIdentifier};

/// How many lines there are.
pub const LINES: u32 = 64;
/// Bytes of registers.
pub const SIZE: u64 = 0x1000;

const SELECT: u64 = 0x00;
const WINDOW: u64 = 0x10;
const END_OF_INTERRUPT: u64 = 0x40;

const REGISTER_VERSION: u32 = 1;
const REGISTER_REDIRECTION: u32 = 0x10;
/// Version 2.1, and the number of the last entry.
const VERSION: u32 = (LINES - 1) << 16 | 0x21;

/// Bits of a redirection entry.
mod entry {
    pub const REMOTE_REQUEST: u64 = 1 << 14;
    pub const LEVEL: u64 = 1 << 15;
    pub const MASKED: u64 = 1 << 16;
    pub const READ_ONLY: u64 = 1 << 12 | REMOTE_REQUEST;
}

/// The registers and lines, as machines are saved with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesState {
    select: u32,
    entries: Vec<u64>,
    asserted: u64,
}

/// The lines of devices; clones share them.
#[derive(Clone)]
pub struct Lines {
    state: Arc<Mutex<LinesState>>,
    processors: Arc<InterruptBlock>,
}

impl Lines {
    /// All lines masked.
    pub fn new(processors: Arc<InterruptBlock>) -> Lines {
        let state = LinesState {
            select: 0,
            entries: vec![entry::MASKED; LINES as usize],
            asserted: 0,
        };
        Lines {
            state: Arc::new(Mutex::new(state)),
            processors,
        }
    }

    /// Asserts a line or takes it back.
    ///
    /// # Panics
    /// If there is no such line.
    pub fn set(&self, line: u32, asserted: bool) {
        assert!(line < LINES, "line {line} of {LINES}");
        let mut state = self.state();
        let was = state.asserted >> line & 1 != 0;
        state.asserted = state.asserted & !(1 << line) | u64::from(asserted) << line;
        if asserted && (!was || state.entries[line as usize] & entry::LEVEL != 0) {
            self.deliver(&mut state, line as usize);
        }
    }

    /// One line, for the device behind it.
    pub fn line(&self, line: u32) -> Line {
        assert!(line < LINES, "line {line} of {LINES}");
        Line {
            lines: self.clone(),
            line,
        }
    }

    fn deliver(&self, state: &mut LinesState, line: usize) {
        let value = state.entries[line];
        let in_service = value & entry::LEVEL != 0 && value & entry::REMOTE_REQUEST != 0;
        if value & entry::MASKED != 0 || in_service {
            return;
        }
        if value & entry::LEVEL != 0 {
            state.entries[line] |= entry::REMOTE_REQUEST;
        }
        let to = LocalIdentifier {
            id: (value >> 56) as u8,
            eid: (value >> 48) as u8,
        };
        if let Some(delivery) = Delivery::from_data(value) {
            self.processors.send(to, delivery);
        }
    }

    fn end(&self, vector: u8) {
        let mut state = self.state();
        for line in 0..LINES as usize {
            let value = state.entries[line];
            if value as u8 == vector && value & entry::REMOTE_REQUEST != 0 {
                state.entries[line] &= !entry::REMOTE_REQUEST;
                if state.asserted >> line & 1 != 0 {
                    self.deliver(&mut state, line);
                }
            }
        }
    }

    fn read(&self) -> u32 {
        let state = self.state();
        match state.select {
            REGISTER_VERSION => VERSION,
            select => match place(select) {
                Some((line, shift)) => (state.entries[line] >> shift) as u32,
                None => 0,
            },
        }
    }

    fn write(&self, value: u32) {
        let mut state = self.state();
        let Some((line, shift)) = place(state.select) else {
            return;
        };
        let old = state.entries[line];
        let mut new = old & !(0xffff_ffff << shift) | u64::from(value) << shift;
        new = new & !entry::READ_ONLY | old & entry::READ_ONLY;
        if new & entry::LEVEL == 0 {
            new &= !entry::REMOTE_REQUEST;
        }
        state.entries[line] = new;
        if new & entry::LEVEL != 0 && state.asserted >> line & 1 != 0 {
            self.deliver(&mut state, line);
        }
    }

    /// Everything, to be saved.
    pub fn save(&self) -> LinesState {
        self.state().clone()
    }

    /// Goes on from what was saved; false if that is not of this many lines.
    pub fn restore(&self, state: LinesState) -> bool {
        let fits = state.entries.len() == LINES as usize;
        if fits {
            *self.state() = state;
        }
        fits
    }

    fn state(&self) -> MutexGuard<'_, LinesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The redirection entry that a register is half of, and which half.
fn place(register: u32) -> Option<(usize, u32)> {
    let index = register.checked_sub(REGISTER_REDIRECTION)?;
    (index / 2 < LINES).then_some(((index / 2) as usize, index % 2 * 32))
}

/// The line of a device.
#[derive(Clone)]
pub struct Line {
    lines: Lines,
    line: u32,
}

impl Line {
    /// Asserts the line or takes it back.
    pub fn set(&self, asserted: bool) {
        self.lines.set(self.line, asserted);
    }
}

/// The registers.
pub struct Iosapic(pub Lines);

impl Device for Iosapic {
    fn load(&mut self, offset: u64, _: u64) -> u64 {
        match offset {
            SELECT => u64::from(self.0.state().select),
            WINDOW => u64::from(self.0.read()),
            _ => 0,
        }
    }

    fn store(&mut self, offset: u64, _: u64, value: u64) {
        match offset {
            SELECT => self.0.state().select = value as u32,
            WINDOW => self.0.write(value as u32),
            END_OF_INTERRUPT => self.0.end(value as u8),
            _ => {}
        }
    }
}
