//! Operations in flight: a fixed table, so that a completion finds its continuation by number.

use std::sync::Arc;

use super::{Buffer, BufferPool, Completion, Operation};
use crate::continuation::Continuation;
use crate::payload::Payload;
use crate::pushback::Reason;

/// One operation that the device has.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) operation: Operation,
    token: u64,
    continuation: Continuation,
    /// The operation's bytes, or null.
    pub(super) start: *mut u8,
    pub(super) length: u32,
}

/// The table of flights.
pub(super) struct Flights {
    table: Box<[Option<Flight>]>,
    free: Vec<u32>,
    buffers: Arc<BufferPool>,
}

impl Flights {
    pub(super) fn new(limit: usize, buffers: Arc<BufferPool>) -> Self {
        Self {
            table: (0..limit).map(|_| None).collect(),
            free: (0..limit as u32).rev().collect(),
            buffers,
        }
    }

    /// How many operations are in flight.
    pub(super) fn len(&self) -> usize {
        self.table.len() - self.free.len()
    }

    /// Takes an operation and locks its buffer for the device; its number.
    ///
    /// # Panics
    /// If the buffer is not the caller's, or too small for the operation.
    pub(super) fn depart(
        &mut self,
        operation: Operation,
        token: u64,
        continuation: Continuation,
    ) -> Result<u32, (Reason, Operation)> {
        let Some(number) = self.free.last().copied() else {
            return Err((Reason::DeviceFull, operation));
        };
        let (first, length) = operation.extent(self.buffers.size());
        let start = match operation.buffer() {
            Some(buffer) => self.buffers.lock_for_device(buffer).wrapping_add(first),
            None => std::ptr::null_mut(),
        };
        self.free.pop();
        self.table[number as usize] = Some(Flight {
            operation,
            token,
            continuation,
            start,
            length: length as u32,
        });
        Ok(number)
    }

    pub(super) fn get(&self, number: u32) -> &Flight {
        self.table[number as usize]
            .as_ref()
            .expect("the operation is in flight")
    }

    /// Whether an operation of this number is in flight.
    pub(super) fn contains(&self, number: u32) -> bool {
        self.table.get(number as usize).is_some_and(Option::is_some)
    }

    /// The numbers of all operations in flight.
    pub(super) fn numbers(&self) -> Vec<u32> {
        (0..self.table.len() as u32)
            .filter(|number| self.contains(*number))
            .collect()
    }

    /// Ends a flight: its buffer is the program's again; the continuation that reports it.
    pub(super) fn land(&mut self, number: u32, outcome: i32) -> Continuation {
        let flight = self.table[number as usize]
            .take()
            .expect("the operation is in flight");
        self.free.push(number);
        let descriptor = flight.operation.descriptor();
        let buffer: Option<Buffer> = flight.operation.into_buffer();
        if let Some(buffer) = &buffer {
            self.buffers.unlock_from_device(buffer);
        }
        let completion = Completion::new(outcome, flight.token, buffer, descriptor);
        Continuation {
            words: completion.into_words(),
            ..flight.continuation
        }
    }
}
