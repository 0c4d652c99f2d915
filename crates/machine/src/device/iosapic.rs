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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sidestep_ia64::interrupts::Interrupts;

    use super::*;
    use crate::machine::wakeups::Wakeups;

    const VECTOR: u8 = 0x51;

    struct Chip {
        registers: Iosapic,
        processors: Vec<Arc<Interrupts>>,
        wakeups: Arc<Wakeups>,
        seen: u64,
    }

    impl Chip {
        fn new() -> Chip {
            let wakeups = Arc::<Wakeups>::default();
            let block = InterruptBlock::new(2, Arc::clone(&wakeups));
            let processors: Vec<Arc<Interrupts>> = (0..2).map(|_| Arc::default()).collect();
            for (index, interrupts) in processors.iter().enumerate() {
                block.connect(index, Arc::clone(interrupts));
            }
            let registers = Iosapic(Lines::new(Arc::new(block)));
            Chip {
                registers,
                processors,
                wakeups,
                seen: 0,
            }
        }

        fn write(&mut self, register: u32, value: u32) {
            self.registers.store(SELECT, 4, u64::from(register));
            self.registers.store(WINDOW, 4, u64::from(value));
        }

        fn read(&mut self, register: u32) -> u32 {
            self.registers.store(SELECT, 4, u64::from(register));
            self.registers.load(WINDOW, 4) as u32
        }

        /// Sends line 3 to a processor, with these bits in the lower half of its entry.
        fn route(&mut self, processor: u32, bits: u64) {
            self.write(0x17, processor << 24);
            self.write(0x16, bits as u32 | u32::from(VECTOR));
        }

        /// How many messages were sent since this was asked.
        fn sent(&mut self) -> u64 {
            let before = std::mem::replace(&mut self.seen, self.wakeups.count());
            self.seen - before
        }

        /// Whether a processor has been sent the vector.
        fn has(&self, processor: usize) -> bool {
            self.processors[processor].requests(usize::from(VECTOR / 64)) >> (VECTOR % 64) & 1 != 0
        }
    }

    #[test]
    fn an_edge_is_sent_once_to_the_processor_of_its_entry() {
        let mut chip = Chip::new();
        let lines = chip.registers.0.clone();
        lines.set(3, true);
        assert_eq!(chip.sent(), 0, "masked from the beginning");
        lines.set(3, false);
        chip.route(1, 0);
        lines.set(3, true);
        assert!(!chip.has(0) && chip.has(1));
        assert_eq!(chip.sent(), 1);
        lines.set(3, true);
        assert_eq!(chip.sent(), 0, "no edge");
    }

    #[test]
    fn a_level_is_sent_again_at_the_end_of_interrupt_as_long_as_it_is_asserted() {
        let mut chip = Chip::new();
        let lines = chip.registers.0.clone();
        chip.route(0, entry::LEVEL);
        lines.set(3, true);
        assert_eq!(chip.sent(), 1);
        assert_ne!(chip.read(0x16) & entry::REMOTE_REQUEST as u32, 0);
        lines.set(3, true);
        assert_eq!(chip.sent(), 0, "in service");
        chip.registers.store(END_OF_INTERRUPT, 4, u64::from(VECTOR));
        assert_eq!(chip.sent(), 1, "still asserted");
        lines.set(3, false);
        chip.registers.store(END_OF_INTERRUPT, 4, u64::from(VECTOR));
        assert_eq!(chip.sent(), 0);
        assert_eq!(chip.read(0x16) & entry::REMOTE_REQUEST as u32, 0);
    }

    #[test]
    fn a_level_that_was_masked_is_sent_when_it_is_unmasked() {
        let mut chip = Chip::new();
        let lines = chip.registers.0.clone();
        chip.route(0, entry::LEVEL | entry::MASKED);
        lines.set(3, true);
        assert_eq!(chip.sent(), 0);
        chip.route(0, entry::LEVEL);
        assert_eq!(chip.sent(), 1);
    }

    #[test]
    fn the_version_counts_the_lines() {
        let mut chip = Chip::new();
        assert_eq!(chip.read(REGISTER_VERSION) >> 16 & 0xff, LINES - 1);
        assert_eq!(chip.read(REGISTER_REDIRECTION + 2 * LINES), 0, "no such register");
    }

    proptest! {
        #[test]
        fn any_use_of_the_registers_leaves_the_host_alone(
            steps in proptest::collection::vec(
                (0u64..SIZE, prop_oneof![Just(1u64), Just(2), Just(4), Just(8)], any::<u64>(), 0..LINES),
                0..60,
            ),
        ) {
            let mut chip = Chip::new();
            let lines = chip.registers.0.clone();
            for (offset, size, value, line) in steps {
                chip.registers.store(SELECT, size, value & 0x9f);
                chip.registers.store(WINDOW, size, value);
                chip.registers.store(offset, size, value);
                lines.set(line, value & 1 != 0);
                chip.registers.load(offset, size);
                chip.registers.load(WINDOW, size);
            }
        }
    }
}
