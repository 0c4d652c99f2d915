//! The line of an instruction in a trace, which every trace of instructions shares.
//!
//! ```text
//! 0000000000100040.1   adds r8=1,r8                      address and slot, text
//! 0000000000100050.0 - br.few 0x100070                   one that its predicate kept from executing
//! 0000000000100060.0   ld8 r9=[r10];; [2000000000004000] a reference to memory, before a stop
//! 0000000000100070.2   br.ret.sptk.few b0;; ->100100     a taken branch
//! ```

use std::fmt::{self, Write};

use super::observer::Dynamic;
use crate::encoding::{DecodedSlot, Instruction, Symbols};

/// What the line says of an instruction before it runs.
#[derive(Clone, Copy, Debug)]
pub struct TracedInstruction {
    /// The instruction.
    pub instruction: Instruction,
    /// Whether a stop follows it.
    pub stop: bool,
}

impl TracedInstruction {
    /// An instruction in its slot.
    pub fn new(instruction: &Instruction, slot: &DecodedSlot) -> TracedInstruction {
        TracedInstruction {
            instruction: *instruction,
            stop: slot.stop,
        }
    }

    /// Writes the line, without its end.
    ///
    /// # Errors
    /// What writing to `out` answers.
    pub fn write(&self, dynamic: &Dynamic<'_>, symbols: &dyn Symbols, out: &mut impl Write) -> fmt::Result {
        let ip = dynamic.place.ip;
        let mut text = String::new();
        self.instruction
            .write(ip, self.instruction.long_slot(), symbols, &mut text)?;
        let stop = if self.stop { ";;" } else { "" };
        let executed = if dynamic.executed { ' ' } else { '-' };
        write!(
            out,
            "{ip:016x}.{} {executed} {}{stop}",
            dynamic.place.slot,
            text.trim()
        )?;
        if let Some(address) = dynamic.reference {
            write!(out, " [{address:x}]")?;
        }
        if let Some(target) = dynamic.taken {
            write!(out, " ->{target:x}")?;
        }
        Ok(())
    }
}
