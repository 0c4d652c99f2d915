//! Hypercalls: what a guest asks of the host.
//!
//! A `break` with the immediate [`IMMEDIATE`] at privilege level 0 (in any slot) is a hypercall, whatever PSR says.
//! General register r15 holds the function, r8 to r11 its arguments; r8 returns the result (all ones for an unknown
//! function), r9 to r11 further results; all other registers stay. The functions of every machine are those of
//! [`function`]; firmware and hypervisors add theirs as further [`HypercallHandler`]s.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sidestep_ia64::{PhysicalAddress, Processor};

use super::platform::Platform;

/// The immediate of the `break` that is a hypercall.
pub const IMMEDIATE: u64 = 0x5ede;
/// The register that holds the function.
pub const FUNCTION_REGISTER: u8 = 15;
/// The result of a function that does not exist or that was given a wrong argument.
pub const FAILED: u64 = u64::MAX;

/// The result of reading a character behind the last one.
pub const INPUT_ENDED: u64 = u64::MAX - 1;

/// The functions of every machine.
pub mod function {
    /// Ends the machine with exit code r8.
    pub const EXIT: u64 = 0;
    /// Prints the character r8 on the console.
    pub const PUT_CHARACTER: u64 = 1;
    /// Returns the next character typed on the console, all ones (-1) if there is none yet, and one less (-2) if there
    /// will be none.
    pub const GET_CHARACTER: u64 = 2;
    /// Waits until an interrupt is pending that the task priority lets through, whatever PSR.i is.
    pub const WAIT_FOR_INTERRUPT: u64 = 3;
    /// Prints the r9 bytes at physical address r8.
    pub const PUT_BYTES: u64 = 4;
    /// Returns the number of this processor, and the number of processors in r9.
    pub const IDENTIFY: u64 = 5;
    /// Copies the machine's parameters, with a zero byte behind them, to the r9 bytes at physical address r8;
    /// returns their length without the zero. Nothing is written if they do not fit.
    pub const PARAMETERS: u64 = 6;
    /// Stops this processor until another one starts it.
    pub const STOP: u64 = 7;
    /// Starts processor r8, which must be stopped or waiting, at the physical address r9 with r10 in its r8: as after
    /// reset, with its own registers otherwise unchanged.
    pub const START: u64 = 8;
    /// Returns the machine time in nanoseconds.
    pub const TIME: u64 = 9;
}

/// A hypercall in progress.
pub struct Call<'a> {
    /// The number of the processor.
    pub index: usize,
    /// How far its part of the machine's time has come.
    pub ticks: u64,
    /// The processor, at the `break`.
    pub processor: &'a mut Processor,
    /// The machine around it.
    pub platform: &'a Arc<Platform>,
}

impl Call<'_> {
    /// The function.
    pub fn function(&self) -> u64 {
        self.processor.general.value(FUNCTION_REGISTER)
    }

    /// Argument 0 to 3: r8 to r11.
    pub fn argument(&self, index: u8) -> u64 {
        assert!(index < 4, "four registers hold arguments");
        self.processor.general.value(8 + index)
    }

    /// Sets result 0 to 3: r8 to r11.
    pub fn set_result(&mut self, index: u8, value: u64) {
        assert!(index < 4, "four registers hold results");
        self.processor.general.set(8 + index, value);
    }
}

/// How a processor goes on after a hypercall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Behind the `break`.
    Return,
    /// Where the handler has set the instruction pointer.
    Resume,
    /// Behind the `break`, once an interrupt is pending.
    Wait,
    /// Not until another processor or a device starts it.
    Stop,
    /// Not at all: the machine ends with this exit code.
    Exit(u64),
}

/// What answers hypercalls.
pub trait HypercallHandler: Send + Sync {
    /// Answers a call, or leaves it to the next handler. Processors may call at the same time; a handler must not
    /// block.
    fn call(&self, call: &mut Call<'_>) -> Option<Reaction>;
}

/// The host's side of the hypercall console.
pub trait Console: Send {
    /// Prints bytes.
    fn write(&mut self, bytes: &[u8]);

    /// The next byte typed, if there is one yet.
    fn read(&mut self) -> Option<u8> {
        None
    }

    /// Whether everything that will ever be typed has been read.
    fn has_ended(&self) -> bool {
        false
    }
}

impl<H: HypercallHandler + ?Sized> HypercallHandler for Arc<H> {
    fn call(&self, call: &mut Call<'_>) -> Option<Reaction> {
        H::call(self, call)
    }
}

/// Prints to any writer; output that cannot be written is lost.
impl<W: Write + Send> Console for W {
    fn write(&mut self, bytes: &[u8]) {
        let _ = self.write_all(bytes).and_then(|()| self.flush());
    }
}

/// A console that machines use one after the other; clones are the same one.
#[derive(Clone)]
pub struct SharedConsole(Arc<Mutex<Box<dyn Console>>>);

impl SharedConsole {
    /// Shares a console.
    pub fn new(console: Box<dyn Console>) -> SharedConsole {
        SharedConsole(Arc::new(Mutex::new(console)))
    }

    fn console(&self) -> MutexGuard<'_, Box<dyn Console>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Console for SharedConsole {
    fn write(&mut self, bytes: &[u8]) {
        self.console().write(bytes);
    }

    fn read(&mut self) -> Option<u8> {
        self.console().read()
    }

    fn has_ended(&self) -> bool {
        self.console().has_ended()
    }
}

/// The functions of every machine.
pub struct StandardCalls {
    console: Mutex<Box<dyn Console>>,
    parameters: Vec<u8>,
}

impl StandardCalls {
    /// With this console and these parameters.
    pub fn new(console: Box<dyn Console>, parameters: &str) -> StandardCalls {
        StandardCalls {
            console: Mutex::new(console),
            parameters: parameters.as_bytes().to_vec(),
        }
    }

    fn print(&self, bytes: &[u8]) {
        self.console().write(bytes);
    }

    fn console(&self) -> MutexGuard<'_, Box<dyn Console>> {
        self.console.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get_character(&self) -> u64 {
        let mut console = self.console();
        match console.read() {
            Some(byte) => u64::from(byte),
            None if console.has_ended() => INPUT_ENDED,
            None => FAILED,
        }
    }

    fn put_bytes(&self, call: &Call<'_>) -> u64 {
        let (start, size) = (call.argument(0), call.argument(1));
        let mut buffer = [0; 4096];
        if !call.platform.memory.holds(PhysicalAddress(start), size) {
            return FAILED;
        }
        let mut done = 0;
        while done < size {
            let count = (size - done).min(buffer.len() as u64);
            let part = &mut buffer[..count as usize];
            if call
                .platform
                .memory
                .read(PhysicalAddress(start + done), part)
                .is_err()
            {
                return FAILED;
            }
            self.print(part);
            done += count;
        }
        0
    }

    fn copy_parameters(&self, call: &Call<'_>) -> u64 {
        let mut bytes = self.parameters.clone();
        bytes.push(0);
        let fits = bytes.len() as u64 <= call.argument(1);
        if fits
            && call
                .platform
                .memory
                .write(PhysicalAddress(call.argument(0)), &bytes)
                .is_err()
        {
            return FAILED;
        }
        self.parameters.len() as u64
    }
}

fn start_processor(call: &Call<'_>) -> u64 {
    let (entry, argument) = (call.argument(1), call.argument(2));
    match usize::try_from(call.argument(0)) {
        Ok(index) if index < call.platform.processors() && index != call.index => {
            call.platform.start(index, move |processor| {
                processor.set_status(0);
                processor.set_instruction_pointer(entry, 0);
                processor.general.set(8, argument);
            });
            0
        }
        _ => FAILED,
    }
}

impl HypercallHandler for StandardCalls {
    fn call(&self, call: &mut Call<'_>) -> Option<Reaction> {
        let result = match call.function() {
            function::EXIT => return Some(Reaction::Exit(call.argument(0))),
            function::WAIT_FOR_INTERRUPT => return Some(Reaction::Wait),
            function::STOP => return Some(Reaction::Stop),
            function::PUT_CHARACTER => {
                self.print(&[call.argument(0) as u8]);
                0
            }
            function::GET_CHARACTER => self.get_character(),
            function::PUT_BYTES => self.put_bytes(call),
            function::IDENTIFY => {
                call.set_result(1, call.platform.processors() as u64);
                call.index as u64
            }
            function::PARAMETERS => self.copy_parameters(call),
            function::START => start_processor(call),
            function::TIME => call.platform.timeline.now(),
            _ => return None,
        };
        call.set_result(0, result);
        Some(Reaction::Return)
    }
}
