//! The console device: bytes to and from a [`Console`] (section 5.3), with one port and no size.
//!
//! Queue 0 receives what is typed, queue 1 transmits what is printed.

use std::collections::VecDeque;

use super::VirtioDevice;
use super::request::{Request, RequestError};
use crate::machine::hypercall::Console;
use crate::machine::timeline::TICKS_PER_SECOND;

const RECEIVE: usize = 0;
const QUEUE_SIZE: u16 = 64;
/// How often input is looked for.
const POLL_TICKS: u64 = TICKS_PER_SECOND / 100;
/// The most bytes taken from the console before the driver has them.
const TYPED_MAX: usize = 4096;
/// Bytes that are printed at once.
const PIECE: u64 = 4096;

/// The device.
pub struct VirtioConsole {
    console: Box<dyn Console>,
    typed: VecDeque<u8>,
}

impl VirtioConsole {
    /// With a console at the other end.
    pub fn new(console: Box<dyn Console>) -> VirtioConsole {
        VirtioConsole {
            console,
            typed: VecDeque::new(),
        }
    }
}

impl VirtioDevice for VirtioConsole {
    fn identifier(&self) -> u32 {
        3
    }

    fn features(&self) -> u64 {
        0
    }

    fn queue_sizes(&self) -> &[u16] {
        &[QUEUE_SIZE, QUEUE_SIZE]
    }

    fn configuration(&self) -> &[u8] {
        &[]
    }

    fn serve(&mut self, queue: usize, request: &Request<'_>) -> Result<u32, RequestError> {
        if queue == RECEIVE {
            let size = request.writable().min(self.typed.len() as u64) as usize;
            let bytes: Vec<u8> = self.typed.drain(..size).collect();
            request.write(0, &bytes);
            return Ok(size as u32);
        }
        let mut offset = 0;
        while offset < request.readable() {
            let mut piece = vec![0; (request.readable() - offset).min(PIECE) as usize];
            request.read(offset, &mut piece);
            self.console.write(&piece);
            offset += piece.len() as u64;
        }
        Ok(0)
    }

    fn takes(&mut self, queue: usize) -> bool {
        queue != RECEIVE || !self.typed.is_empty()
    }

    fn poll_interval(&self) -> Option<u64> {
        Some(POLL_TICKS)
    }

    fn poll(&mut self, _: u64) {
        while self.typed.len() < TYPED_MAX {
            match self.console.read() {
                Some(byte) => self.typed.push_back(byte),
                None => break,
            }
        }
    }
}
