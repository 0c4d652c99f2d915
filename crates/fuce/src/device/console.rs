//! A console: bytes out, bytes in.
//!
//! | register | read | write |
//! | --- | --- | --- |
//! | 0 | kind | |
//! | 1 | handler | handler, continued to when input waits |
//! | 2 | the next byte of input, or -1 when there is none, after which new input signals again | a byte of output |

use std::collections::VecDeque;

use super::{Device, HANDLER, KIND, Kind, SignalLine};

const DATA: u32 = 2;

/// The console.
pub struct Console {
    line: SignalLine,
    input: VecDeque<u8>,
    handling: bool,
    output: Vec<u8>,
}

impl Console {
    /// A console at which `input` has been typed.
    pub fn new(input: &[u8]) -> Console {
        let mut console = Console {
            line: SignalLine::new(),
            input: input.iter().copied().collect(),
            handling: false,
            output: Vec::new(),
        };
        if !input.is_empty() {
            console.line.raise();
        }
        console
    }

    /// Everything written so far.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Takes what was written since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }
}

impl Device for Console {
    fn read(&mut self, register: u32, _now: u64) -> u32 {
        match register {
            KIND => Kind::Console as u32,
            HANDLER => self.line.handler(),
            DATA => match self.input.pop_front() {
                Some(byte) => byte.into(),
                None => {
                    self.handling = false;
                    self.line.clear();
                    u32::MAX
                }
            },
            _ => 0,
        }
    }

    fn write(&mut self, register: u32, value: u32, _now: u64) {
        match register {
            HANDLER => self.line.set_handler(value),
            DATA => self.output.push(value as u8),
            _ => {}
        }
    }

    fn signal(&self) -> Option<u32> {
        if self.handling { None } else { self.line.target() }
    }

    fn signal_taken(&mut self) {
        self.handling = true;
        self.line.clear();
    }
}
