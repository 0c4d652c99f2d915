//! The 16550 serial port: eight byte registers, FIFOs of 16 bytes, one interrupt line.
//!
//! Output goes to the console at once, so the transmitter is always empty. Input is asked from the console when the
//! guest looks, and by a poll on the machine's timeline every [`POLL_TICKS`] while the guest wants interrupts for it.
//! What is typed before the guest takes input waits at the console: drivers empty the FIFO and read the data register
//! when they start, which would lose it. A guest takes input when it wants interrupts for it, or when it reads the
//! line status [`POLLS_MIN`] times with nothing in between.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::iosapic::Line;
use crate::bus::Device;
use crate::machine::hypercall::Console;
use crate::machine::timeline::{Phase, TICKS_PER_SECOND, Ticket, Timeline};

/// Bytes of registers, as pages map them.
pub const SIZE: u64 = 0x1_0000;
/// The input clock divided by 16: a divisor of 1 is this many bauds.
pub const BAUD_MAX: u64 = 115_200;
/// How often input is looked for.
pub const POLL_TICKS: u64 = TICKS_PER_SECOND / 100;

/// After so many looks at the line status in a row a guest is taken to wait for input without interrupts.
pub const POLLS_MIN: u32 = 16;

/// The FIFO's depth.
const FIFO: usize = 16;

/// Offsets of registers; those of the divisor take the place of the first two while DLAB is set.
mod register {
    pub const DATA: u64 = 0;
    pub const INTERRUPT_ENABLE: u64 = 1;
    pub const INTERRUPT_IDENTITY: u64 = 2;
    pub const LINE_CONTROL: u64 = 3;
    pub const MODEM_CONTROL: u64 = 4;
    pub const LINE_STATUS: u64 = 5;
    pub const MODEM_STATUS: u64 = 6;
    pub const SCRATCH: u64 = 7;
}

const ENABLE_RECEIVED: u8 = 1 << 0;
const ENABLE_TRANSMITTED: u8 = 1 << 1;
const DIVISOR_LATCH: u8 = 1 << 7;
const LOOPBACK: u8 = 1 << 4;
const DATA_READY: u8 = 1 << 0;
const TRANSMITTER_EMPTY: u8 = 3 << 5;
/// Carrier, data set ready, clear to send.
const MODEM_PRESENT: u8 = 0xb0;

const NOTHING_PENDING: u8 = 1;
const IDENTITY_TRANSMITTED: u8 = 2;
const IDENTITY_RECEIVED: u8 = 4;
const FIFO_ENABLED: u8 = 0xc0;

struct State {
    console: Box<dyn Console>,
    line: Line,
    registers: SerialState,
}

/// The registers, as machines are saved with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SerialState {
    received: VecDeque<u8>,
    enabled: u8,
    line_control: u8,
    modem_control: u8,
    fifo: bool,
    scratch: u8,
    divisor: [u8; 2],
    /// The transmitter has become empty since the guest was told.
    transmitted: bool,
    /// The next look for input, while the guest wants interrupts for it.
    poll: Option<Ticket>,
    /// Looks at the line status with nothing in between.
    looks: u32,
}

/// The port; clones share it.
#[derive(Clone)]
pub struct Serial {
    state: Arc<Mutex<State>>,
    timeline: Arc<Timeline>,
}

impl Serial {
    /// With a console at the other end.
    pub fn new(console: Box<dyn Console>, line: Line, timeline: Arc<Timeline>) -> Serial {
        let state = State {
            console,
            line,
            registers: SerialState::new(),
        };
        Serial {
            state: Arc::new(Mutex::new(state)),
            timeline,
        }
    }

    /// Everything but what was typed and not yet read, to be saved.
    pub fn save(&self) -> SerialState {
        lock(&self.state).registers.clone()
    }

    /// Goes on from what was saved.
    pub fn restore(&self, registers: SerialState) {
        if let Some(ticket) = registers.poll {
            let (again, clock) = (Arc::clone(&self.state), Arc::clone(&self.timeline));
            self.timeline
                .reschedule(ticket, Phase::Device, move |due| poll(&again, &clock, due));
        }
        lock(&self.state).registers = registers;
    }

    /// Prints what firmware has to say before a kernel has the port.
    pub(crate) fn print(&self, bytes: &[u8]) {
        lock(&self.state).console.write(bytes);
    }

    /// The next byte typed, for firmware.
    pub(crate) fn take_typed(&self) -> Option<u8> {
        let mut state = lock(&self.state);
        let received = state.registers.received.pop_front();
        received.or_else(|| state.console.read())
    }

    /// Whether all has been taken that will ever be typed.
    pub(crate) fn has_ended(&self) -> bool {
        let state = lock(&self.state);
        state.registers.received.is_empty() && state.console.has_ended()
    }

    fn poll_if_wanted(&self, state: &mut State) {
        if state.registers.enabled & ENABLE_RECEIVED != 0 && state.registers.poll.is_none() {
            state.registers.poll = Some(poll_later(&self.state, &self.timeline, self.timeline.now()));
        }
    }
}

fn poll_later(state: &Arc<Mutex<State>>, timeline: &Arc<Timeline>, now: u64) -> Ticket {
    let (again, clock) = (Arc::clone(state), Arc::clone(timeline));
    let due = timeline.again(now, POLL_TICKS);
    timeline.schedule(due, Phase::Device, move |due| poll(&again, &clock, due))
}

/// Looks for input, again and again as long as the guest wants interrupts for it.
fn poll(shared: &Arc<Mutex<State>>, timeline: &Arc<Timeline>, now: u64) {
    let mut state = lock(shared);
    state.registers.poll = None;
    if state.registers.enabled & ENABLE_RECEIVED != 0 {
        state.receive();
        state.update();
        state.registers.poll = Some(poll_later(shared, timeline, now));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SerialState {
    fn new() -> SerialState {
        SerialState {
            received: VecDeque::new(),
            enabled: 0,
            line_control: 0,
            modem_control: 0,
            fifo: false,
            scratch: 0,
            divisor: [1, 0],
            transmitted: false,
            poll: None,
            looks: 0,
        }
    }
}

impl State {
    fn receive(&mut self) {
        if self.registers.enabled & ENABLE_RECEIVED == 0 && self.registers.looks < POLLS_MIN {
            return;
        }
        while self.registers.received.len() < FIFO && self.registers.modem_control & LOOPBACK == 0 {
            match self.console.read() {
                Some(byte) => self.registers.received.push_back(byte),
                None => break,
            }
        }
    }

    fn identity(&self) -> u8 {
        if self.registers.enabled & ENABLE_RECEIVED != 0 && !self.registers.received.is_empty() {
            IDENTITY_RECEIVED
        } else if self.registers.enabled & ENABLE_TRANSMITTED != 0 && self.registers.transmitted {
            IDENTITY_TRANSMITTED
        } else {
            NOTHING_PENDING
        }
    }

    fn update(&self) {
        self.line.set(self.identity() != NOTHING_PENDING);
    }

    fn is_divisor(&self, offset: u64) -> bool {
        self.registers.line_control & DIVISOR_LATCH != 0 && offset < 2
    }

    fn load(&mut self, offset: u64) -> u8 {
        self.registers.looks = match offset {
            register::LINE_STATUS => self.registers.looks.saturating_add(1),
            // Whoever has seen a character takes it, and looks for the next one.
            register::DATA if !self.registers.received.is_empty() => self.registers.looks,
            _ => 0,
        };
        if self.is_divisor(offset) {
            return self.registers.divisor[offset as usize];
        }
        match offset {
            register::DATA => {
                self.receive();
                self.registers.received.pop_front().unwrap_or(0)
            }
            register::INTERRUPT_ENABLE => self.registers.enabled,
            register::INTERRUPT_IDENTITY => {
                let identity = self.identity();
                if identity == IDENTITY_TRANSMITTED {
                    self.registers.transmitted = false;
                }
                identity | if self.registers.fifo { FIFO_ENABLED } else { 0 }
            }
            register::LINE_CONTROL => self.registers.line_control,
            register::MODEM_CONTROL => self.registers.modem_control,
            register::LINE_STATUS => {
                self.receive();
                TRANSMITTER_EMPTY
                    | if self.registers.received.is_empty() {
                        0
                    } else {
                        DATA_READY
                    }
            }
            register::MODEM_STATUS if self.registers.modem_control & LOOPBACK != 0 => {
                // The outputs come back as inputs: DTR as DSR, RTS as CTS, OUT1 as RI, OUT2 as DCD.
                let outputs = self.registers.modem_control;
                (outputs & 2) << 3 | (outputs & 1) << 5 | (outputs & 0xc) << 4
            }
            register::MODEM_STATUS => MODEM_PRESENT,
            register::SCRATCH => self.registers.scratch,
            _ => 0,
        }
    }

    fn store(&mut self, offset: u64, value: u8) {
        self.registers.looks = 0;
        if self.is_divisor(offset) {
            self.registers.divisor[offset as usize] = value;
            return;
        }
        match offset {
            register::DATA => {
                if self.registers.modem_control & LOOPBACK != 0 {
                    if self.registers.received.len() < FIFO {
                        self.registers.received.push_back(value);
                    }
                } else {
                    self.console.write(&[value]);
                }
                self.registers.transmitted = true;
            }
            register::INTERRUPT_ENABLE => {
                if value & ENABLE_TRANSMITTED != 0 && self.registers.enabled & ENABLE_TRANSMITTED == 0 {
                    self.registers.transmitted = true;
                }
                self.registers.enabled = value & 0xf;
            }
            register::INTERRUPT_IDENTITY => {
                self.registers.fifo = value & 1 != 0;
                if value & 2 != 0 {
                    self.registers.received.clear();
                }
            }
            register::LINE_CONTROL => self.registers.line_control = value,
            register::MODEM_CONTROL => self.registers.modem_control = value & 0x1f,
            register::SCRATCH => self.registers.scratch = value,
            _ => {}
        }
    }
}

impl Device for Serial {
    fn load(&mut self, offset: u64, _: u64) -> u64 {
        let mut state = lock(&self.state);
        let value = state.load(offset);
        state.update();
        u64::from(value)
    }

    fn store(&mut self, offset: u64, _: u64, value: u64) {
        let mut state = lock(&self.state);
        state.store(offset, value as u8);
        state.update();
        self.poll_if_wanted(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::iosapic::Lines;
    use super::*;
    use crate::machine::interrupt_block::InterruptBlock;

    /// A console that keeps what is printed and has typed bytes ready.
    #[derive(Clone, Default)]
    struct Typist {
        typed: Arc<Mutex<VecDeque<u8>>>,
        printed: Arc<Mutex<Vec<u8>>>,
    }

    impl Console for Typist {
        fn write(&mut self, bytes: &[u8]) {
            self.printed.lock().expect("no panic").extend_from_slice(bytes);
        }

        fn read(&mut self) -> Option<u8> {
            self.typed.lock().expect("no panic").pop_front()
        }
    }

    struct Port {
        serial: Serial,
        typist: Typist,
        timeline: Arc<Timeline>,
    }

    impl Port {
        fn new() -> Port {
            let timeline = Arc::new(Timeline::new(Arc::default()));
            let lines = Lines::new(Arc::new(InterruptBlock::new(1, Arc::default())));
            let typist = Typist::default();
            let console = Box::new(typist.clone());
            let serial = Serial::new(console, lines.line(4), Arc::clone(&timeline));
            Port {
                serial,
                typist,
                timeline,
            }
        }

        fn type_in(&self, text: &str) {
            self.typist.typed.lock().expect("no panic").extend(text.bytes());
        }

        fn load(&mut self, offset: u64) -> u8 {
            self.serial.load(offset, 1) as u8
        }

        fn store(&mut self, offset: u64, value: u8) {
            self.serial.store(offset, 1, u64::from(value));
        }

        fn identity(&mut self) -> u8 {
            self.load(register::INTERRUPT_IDENTITY) & 0xf
        }
    }

    #[test]
    fn what_is_typed_is_read_in_order_and_what_is_written_is_printed() {
        let mut port = Port::new();
        port.type_in("ab");
        for _ in 1..POLLS_MIN {
            assert_eq!(port.load(register::LINE_STATUS) & DATA_READY, 0);
        }
        for byte in *b"ab" {
            assert_ne!(port.load(register::LINE_STATUS) & DATA_READY, 0);
            assert_eq!(port.load(register::DATA), byte);
        }
        port.store(register::DATA, b'x');
        assert_eq!(*port.typist.printed.lock().expect("no panic"), b"x");
    }

    #[test]
    fn what_is_typed_before_a_driver_starts_is_not_lost() {
        let mut port = Port::new();
        port.type_in("a");
        // As Linux's driver starts.
        for command in [1, 7, 0, 1] {
            port.store(register::INTERRUPT_IDENTITY, command);
        }
        for offset in [
            register::LINE_STATUS,
            register::DATA,
            register::INTERRUPT_IDENTITY,
        ] {
            port.load(offset);
        }
        port.store(register::INTERRUPT_ENABLE, ENABLE_RECEIVED);
        port.timeline.perform_until(POLL_TICKS);
        assert_eq!(port.load(register::DATA), b'a');
    }

    #[test]
    fn typing_interrupts_once_the_guest_wants_it() {
        let mut port = Port::new();
        port.type_in("a");
        assert_eq!(
            port.timeline.next(),
            None,
            "nobody looks for input that nobody wants"
        );
        port.store(register::INTERRUPT_ENABLE, ENABLE_RECEIVED);
        port.timeline.perform_until(POLL_TICKS);
        assert_eq!(port.identity(), IDENTITY_RECEIVED);
        assert_eq!(port.load(register::DATA), b'a');
        assert_eq!(port.identity(), NOTHING_PENDING);
        port.store(register::INTERRUPT_ENABLE, 0);
        port.timeline.perform_until(2 * POLL_TICKS);
        assert_eq!(port.timeline.next(), None);
    }

    #[test]
    fn an_empty_transmitter_interrupts_once() {
        let mut port = Port::new();
        port.store(register::INTERRUPT_ENABLE, ENABLE_TRANSMITTED);
        assert_eq!(port.identity(), IDENTITY_TRANSMITTED);
        assert_eq!(port.identity(), NOTHING_PENDING, "reading the identity ends it");
        port.store(register::DATA, b'x');
        assert_eq!(port.identity(), IDENTITY_TRANSMITTED);
    }

    #[test]
    fn drivers_find_what_they_probe_for() {
        let mut port = Port::new();
        port.store(register::SCRATCH, 0x5a);
        assert_eq!(port.load(register::SCRATCH), 0x5a);
        port.store(register::LINE_CONTROL, DIVISOR_LATCH | 3);
        port.store(register::DATA, 12);
        assert_eq!(port.load(register::DATA), 12, "the divisor");
        port.store(register::LINE_CONTROL, 3);
        port.store(register::MODEM_CONTROL, LOOPBACK | 0xa);
        assert_eq!(
            port.load(register::MODEM_STATUS) & 0xf0,
            0x90,
            "as drivers find a 16550"
        );
        port.store(register::DATA, 7);
        assert_eq!(port.load(register::DATA), 7, "what goes out comes back");
        assert!(port.typist.printed.lock().expect("no panic").is_empty());
        port.store(register::INTERRUPT_IDENTITY, 1);
        assert_eq!(
            port.load(register::INTERRUPT_IDENTITY) & FIFO_ENABLED,
            FIFO_ENABLED
        );
    }

    proptest! {
        #[test]
        fn any_use_of_the_registers_leaves_the_host_alone(
            steps in proptest::collection::vec((prop_oneof![0u64..8, 0..SIZE], any::<u64>(), any::<bool>()), 0..200),
        ) {
            let mut port = Port::new();
            port.type_in("typed ahead, more than the FIFO holds");
            let mut now = 0;
            for (offset, value, is_store) in steps {
                if is_store {
                    port.serial.store(offset, 8, value);
                } else {
                    port.serial.load(offset, 8);
                }
                now += POLL_TICKS / 4;
                port.timeline.set_now(now);
                port.timeline.perform_until(now);
                prop_assert!(lock(&port.serial.state).registers.received.len() <= FIFO);
            }
        }
    }
}
