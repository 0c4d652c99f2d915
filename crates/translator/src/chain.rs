//! What units that follow each other in one run share, in a form that emitted code reads and writes.

use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::AtomicBool;

use sidestep_ia64::Processor;
use sidestep_ia64::execution::MicroOperation;

/// The type of the code by which units are entered: the processor, which keeps the address of what they share, and
/// where the first one's code begins. Answers one of the numbers below.
pub type Enter = unsafe extern "C" fn(*mut Processor, *const u8) -> i64;

/// What emitted code answers: that the next block follows at the instruction pointer.
pub const NEXT_BLOCK: i64 = 0;
/// That an instruction has raised a fault.
pub const RAISED: i64 = 1;
/// That the interpreter goes on within a block, with the operations that [`Chain::rest`] answers.
pub const LEFT_OVER: i64 = 2;

/// What units that follow each other share.
#[repr(C)]
pub struct Chain {
    /// How many instructions may have retired when the run ends.
    end: u64,
    /// The flags at which they stop.
    flags: [*const AtomicBool; 2],
    /// The address of the table of [`Links`](crate::links::Links).
    links: usize,
    /// How often one unit went on with another.
    followed: u64,
    /// What is left of a block to the interpreter: the first operation, and how many.
    rest: *const MicroOperation,
    rest_length: u64,
}

impl Chain {
    /// Where it has the number of instructions that may have retired, in bytes from its start: 64 bits.
    pub const END: usize = offset_of!(Chain, end);
    /// Where it has the addresses of its flags: 64 bits each.
    pub const FLAGS: [usize; 2] = [offset_of!(Chain, flags), offset_of!(Chain, flags) + 8];
    /// Where it has the address of the table of links: 64 bits.
    pub const LINKS: usize = offset_of!(Chain, links);
    /// Where it counts how often one unit went on with another: 64 bits.
    pub const FOLLOWED: usize = offset_of!(Chain, followed);
    /// Where it has the address of the operations that are left to the interpreter: 64 bits.
    pub const REST: usize = offset_of!(Chain, rest);
    /// Where it has how many they are: 64 bits.
    pub const REST_LENGTH: usize = offset_of!(Chain, rest_length);

    /// What is shared in a run until so many instructions have retired or a flag is set.
    pub fn new(end: u64, flags: [*const AtomicBool; 2], links: usize) -> Chain {
        Chain {
            end,
            flags,
            links,
            followed: 0,
            rest: ptr::null(),
            rest_length: 0,
        }
    }

    /// How often one unit went on with another.
    pub fn followed(&self) -> u64 {
        self.followed
    }

    /// The operations that are left to the interpreter.
    ///
    /// # Safety
    /// Emitted code has just answered [`LEFT_OVER`], and its unit is alive.
    pub unsafe fn rest(&self) -> &[MicroOperation] {
        // SAFETY: emitted code has stored the end of the operations of one of its unit's nodes.
        unsafe { std::slice::from_raw_parts(self.rest, self.rest_length as usize) }
    }
}
