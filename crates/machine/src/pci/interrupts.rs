//! The interrupts of a function: a line, or messages (MSI-X, section 6.8.2 of the specification) once it may send them.
//!
//! A function has sources of interrupts, and its driver says which message each of them sends. A message is a store to
//! the processor interrupt block; messages to other addresses are lost. What is masked waits as pending.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sidestep_ia64::PhysicalAddress;

use crate::machine::interrupt_block::InterruptBlock;

/// The number of no message.
pub const NO_MESSAGE: u16 = 0xffff;
/// Bytes of a message in the table: address, data, control.
pub const MESSAGE_BYTES: u64 = 16;
/// The bit of its control that masks a message.
const MASKED: u32 = 1;

/// The line of a function.
pub type Line = Box<dyn Fn(bool) + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Message {
    address: u64,
    data: u32,
    masked: bool,
    pending: bool,
}

/// Everything but where interrupts go, as machines are saved with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptsState {
    /// Whether the function asks for an interrupt by its line, whether it may or not.
    asserted: bool,
    line_disabled: bool,
    /// Whether it sends messages, and whether they are all masked.
    enabled: bool,
    masked: bool,
    messages: Vec<Message>,
    /// The message of each source.
    sources: Vec<u16>,
}

struct Inner {
    state: InterruptsState,
    line: Line,
    processors: Arc<InterruptBlock>,
}

/// The interrupts of a function; clones are the same.
#[derive(Clone)]
pub struct Interrupts(Arc<Mutex<Inner>>);

impl Interrupts {
    /// Of a function with so many sources, and as many messages.
    pub fn new(sources: usize, line: Line, processors: Arc<InterruptBlock>) -> Interrupts {
        let message = Message {
            address: 0,
            data: 0,
            masked: true,
            pending: false,
        };
        let state = InterruptsState {
            asserted: false,
            line_disabled: false,
            enabled: false,
            masked: false,
            messages: vec![message; sources],
            sources: vec![NO_MESSAGE; sources],
        };
        Interrupts(Arc::new(Mutex::new(Inner {
            state,
            line,
            processors,
        })))
    }

    /// Asserts the line or takes it back, if the function may use it.
    pub fn set_line(&self, asserted: bool) {
        self.inner().update_line(|state| state.asserted = asserted);
    }

    /// Whether the function asks for an interrupt by its line.
    pub fn is_asserted(&self) -> bool {
        self.inner().state.asserted
    }

    /// Says whether the function must leave its line alone.
    pub fn disable_line(&self, disabled: bool) {
        self.inner().update_line(|state| state.line_disabled = disabled);
    }

    /// Says whether the function sends messages instead, and whether all are masked.
    pub fn set_messages(&self, enabled: bool, masked: bool) {
        let mut inner = self.inner();
        inner.update_line(|state| (state.enabled, state.masked) = (enabled, masked));
        inner.send_pending();
    }

    /// Sends the message of a source; false if the function is to use its line.
    pub fn signal(&self, source: usize) -> bool {
        let mut inner = self.inner();
        if !inner.state.enabled {
            return false;
        }
        let message = usize::from(inner.state.sources[source]);
        if let Some(message) = inner.state.messages.get_mut(message) {
            message.pending = true;
            inner.send_pending();
        }
        true
    }

    /// The processor that the message of a source goes to, if messages are sent.
    pub fn target(&self, source: usize) -> Option<usize> {
        let inner = self.inner();
        let message = usize::from(*inner.state.sources.get(source)?);
        let message = inner
            .state
            .messages
            .get(message)
            .filter(|_| inner.state.enabled)?;
        inner.processors.processor_at(PhysicalAddress(message.address))
    }

    /// The message of a source.
    pub fn message(&self, source: usize) -> u16 {
        self.inner()
            .state
            .sources
            .get(source)
            .copied()
            .unwrap_or(NO_MESSAGE)
    }

    /// Says which message a source sends; none, if there is no such message.
    pub fn assign(&self, source: usize, message: u16) {
        let mut inner = self.inner();
        let exists = usize::from(message) < inner.state.messages.len();
        if let Some(assigned) = inner.state.sources.get_mut(source) {
            *assigned = if exists { message } else { NO_MESSAGE };
        }
    }

    /// Forgets which messages sources send.
    pub fn forget(&self) {
        self.inner().state.sources.fill(NO_MESSAGE);
    }

    /// Loads an aligned word of 4 or 8 bytes from the table of messages.
    pub fn load_table(&self, offset: u64, size: u64) -> u64 {
        if size == 8 {
            return self.load_table(offset, 4) | self.load_table(offset + 4, 4) << 32;
        }
        let inner = self.inner();
        let Some(message) = inner.state.messages.get((offset / MESSAGE_BYTES) as usize) else {
            return 0;
        };
        match offset % MESSAGE_BYTES {
            0 => message.address & 0xffff_ffff,
            4 => message.address >> 32,
            8 => u64::from(message.data),
            12 => u64::from(message.masked),
            _ => 0,
        }
    }

    /// Stores an aligned word of 4 or 8 bytes to the table of messages.
    pub fn store_table(&self, offset: u64, size: u64, value: u64) {
        if size == 8 {
            self.store_table(offset, 4, value & 0xffff_ffff);
            self.store_table(offset + 4, 4, value >> 32);
            return;
        }
        let mut inner = self.inner();
        let place = (offset / MESSAGE_BYTES) as usize;
        let Some(message) = inner.state.messages.get_mut(place) else {
            return;
        };
        let value = value as u32;
        match offset % MESSAGE_BYTES {
            // The two lowest bits must be zero.
            0 => message.address = message.address >> 32 << 32 | u64::from(value & !3),
            4 => message.address = message.address & 0xffff_ffff | u64::from(value) << 32,
            8 => message.data = value,
            12 => message.masked = value & MASKED != 0,
            _ => {}
        }
        inner.send_pending();
    }

    /// Which messages are pending: 64 bits from message `64 * word` on.
    pub fn pending(&self, word: u64) -> u64 {
        let inner = self.inner();
        let messages = inner.state.messages.chunks(64).nth(word as usize);
        let bits = messages.into_iter().flatten().enumerate();
        bits.fold(0, |bits, (index, message)| {
            bits | u64::from(message.pending) << index
        })
    }

    /// Everything, to be saved.
    pub fn save(&self) -> InterruptsState {
        self.inner().state.clone()
    }

    /// Goes on from what was saved, without sending anything; false if that is of another number of sources.
    pub fn restore(&self, saved: &InterruptsState) -> bool {
        let mut inner = self.inner();
        let fits = saved.messages.len() == inner.state.messages.len()
            && saved.sources.len() == inner.state.sources.len();
        if fits {
            inner.state = saved.clone();
        }
        fits
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn update_line(&mut self, change: impl FnOnce(&mut InterruptsState)) {
        let drives = |state: &InterruptsState| state.asserted && !state.line_disabled && !state.enabled;
        let before = drives(&self.state);
        change(&mut self.state);
        let after = drives(&self.state);
        // Asserted again while it is: as good as a new request.
        if after || before {
            (self.line)(after);
        }
    }

    fn send_pending(&mut self) {
        if !self.state.enabled || self.state.masked {
            return;
        }
        for message in &mut self.state.messages {
            if message.pending && !message.masked {
                message.pending = false;
                self.processors
                    .message(PhysicalAddress(message.address), message.data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use sidestep_ia64::interrupts::Interrupts as Requests;

    use super::*;

    struct Host {
        interrupts: Interrupts,
        line: Arc<AtomicBool>,
        processor: Arc<Requests>,
    }

    fn host() -> Host {
        let processors = Arc::new(InterruptBlock::new(1, Arc::default()));
        let processor = Arc::<Requests>::default();
        processors.connect(0, Arc::clone(&processor));
        let line = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&line);
        let set = Box::new(move |asserted| set.store(asserted, Ordering::Relaxed));
        let interrupts = Interrupts::new(3, set, processors);
        Host {
            interrupts,
            line,
            processor,
        }
    }

    impl Host {
        fn is_asserted(&self) -> bool {
            self.line.load(Ordering::Relaxed)
        }

        fn has(&self, vector: u8) -> bool {
            self.processor.requests(usize::from(vector / 64)) >> (vector % 64) & 1 != 0
        }

        /// Has source 1 send message 2, to the processor as vector 0x51.
        fn route(&self) {
            self.interrupts.store_table(2 * 16, 8, 0xfee0_0000);
            self.interrupts.store_table(2 * 16 + 8, 4, 0x4051);
            self.interrupts.assign(1, 2);
        }
    }

    #[test]
    fn the_line_is_used_as_long_as_it_may() {
        let host = host();
        assert!(!host.interrupts.signal(0), "by its line");
        host.interrupts.set_line(true);
        assert!(host.is_asserted());
        host.interrupts.disable_line(true);
        assert!(!host.is_asserted() && host.interrupts.is_asserted());
        host.interrupts.disable_line(false);
        assert!(host.is_asserted());
        host.interrupts.set_messages(true, false);
        assert!(!host.is_asserted(), "messages instead");
    }

    #[test]
    fn a_masked_message_waits() {
        let host = host();
        host.route();
        host.interrupts.set_messages(true, true);
        assert!(host.interrupts.signal(1));
        assert_eq!((host.interrupts.pending(0), host.interrupts.pending(1)), (4, 0));
        host.interrupts.set_messages(true, false);
        assert!(!host.has(0x51), "still masked by itself");
        host.interrupts.store_table(2 * 16 + 12, 4, 0);
        assert!(host.has(0x51));
        assert_eq!(host.interrupts.pending(0), 0);
        assert_eq!(host.interrupts.load_table(2 * 16 + 8, 8), 0x4051);
    }

    #[test]
    fn sources_without_a_message_are_silent() {
        let host = host();
        host.route();
        host.interrupts.set_messages(true, false);
        assert!(host.interrupts.signal(0));
        host.interrupts.assign(0, 3);
        assert_eq!(host.interrupts.message(0), NO_MESSAGE, "there are three messages");
        assert_eq!(host.interrupts.message(1), 2);
        host.interrupts.forget();
        assert_eq!(host.interrupts.message(1), NO_MESSAGE);
        host.interrupts.assign(7, 0);
        assert_eq!(host.interrupts.message(7), NO_MESSAGE, "no such source");
        host.interrupts.store_table(3 * 16, 8, 1);
        assert_eq!(host.interrupts.load_table(3 * 16, 8), 0, "no such message");
    }
}
