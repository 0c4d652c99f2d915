//! IA-64 as the `gdbstub` crate is told of it, whatever is debugged: a machine, virtual machines, a program.

use std::num::NonZeroUsize;

use gdbstub::arch::{Arch, RegId, Registers};
use gdbstub::common::{Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::target::ext::breakpoints::WatchKind;
use sidestep_ia64::Processor;
use sidestep_ia64::execution::guard::{Hit, Watch, Watchpoint};

use super::registers::{COUNT, INSTRUCTION_POINTER, Register, STATUS};

/// Bytes of a packet: all registers twice, in hexadecimal.
pub const PACKET_BYTES: usize = 1 << 15;

/// IA-64 as gdb knows it.
pub enum Ia64 {}

impl Arch for Ia64 {
    type Usize = u64;
    type Registers = AllRegisters;
    type BreakpointKind = usize;
    type RegId = Register;

    /// The architecture's name alone: gdb knows the registers by itself, and complains if it is told.
    fn target_description_xml() -> Option<&'static str> {
        Some("<target version=\"1.0\"><architecture>ia64-elf64</architecture></target>")
    }
}

impl RegId for Register {
    fn from_raw_id(id: usize) -> Option<(Register, Option<NonZeroUsize>)> {
        let register = Register::from_number(id)?;
        Some((register, NonZeroUsize::new(register.size())))
    }
}

/// The values of all registers by gdb's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllRegisters(Vec<[u64; 2]>);

impl Default for AllRegisters {
    fn default() -> AllRegisters {
        AllRegisters(vec![[0; 2]; COUNT])
    }
}

impl AllRegisters {
    /// Takes them from a processor.
    pub fn read(&mut self, processor: &Processor) {
        for (number, value) in self.0.iter_mut().enumerate() {
            if let Some(register) = Register::from_number(number) {
                *value = register.read(processor);
            }
        }
    }

    /// Gives a processor those that differ. What cannot be changed stays, as with a real processor's constants.
    pub fn write(&self, processor: &mut Processor) {
        for (number, &value) in self.0.iter().enumerate() {
            if let Some(register) = Register::from_number(number)
                && register.read(processor) != value
            {
                register.write(processor, value);
            }
        }
    }
}

impl Registers for AllRegisters {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.0[INSTRUCTION_POINTER][0] | self.0[STATUS][0] >> 41 & 3
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        for (number, value) in self.0.iter().enumerate() {
            let size = Register::from_number(number).map_or(0, Register::size);
            for byte in value.iter().flat_map(|word| word.to_le_bytes()).take(size) {
                write_byte(Some(byte));
            }
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let mut rest = bytes;
        for (number, value) in self.0.iter_mut().enumerate() {
            let size = Register::from_number(number).map_or(0, Register::size);
            let (taken, left) = rest.split_at_checked(size).ok_or(())?;
            *value = words(taken);
            rest = left;
        }
        Ok(())
    }
}

/// A register's bytes as two words; missing ones are zero.
pub fn words(bytes: &[u8]) -> [u64; 2] {
    let mut whole = [0; 16];
    let count = bytes.len().min(16);
    whole[..count].copy_from_slice(&bytes[..count]);
    let value = u128::from_le_bytes(whole);
    [value as u64, (value >> 64) as u64]
}

/// Puts a register's value into a buffer as gdb reads it; answers how many bytes.
pub fn write_value(register: Register, value: [u64; 2], buffer: &mut [u8]) -> usize {
    let size = register.size().min(buffer.len());
    let bytes = value.iter().flat_map(|word| word.to_le_bytes());
    for (target, byte) in buffer[..size].iter_mut().zip(bytes) {
        *target = byte;
    }
    size
}

/// A watchpoint as gdb asks for it.
pub fn watchpoint(start: u64, size: u64, kind: WatchKind) -> Watchpoint {
    let watch = match kind {
        WatchKind::Read => Watch::Read,
        WatchKind::Write => Watch::Write,
        WatchKind::ReadWrite => Watch::Access,
    };
    Watchpoint { start, size, watch }
}

/// What gdb is told of a thread that halted; without a reason, that it stopped.
pub fn stop_reason(tid: Tid, hit: Option<Hit>) -> MultiThreadStopReason<u64> {
    match hit {
        Some(Hit::Breakpoint) => MultiThreadStopReason::SwBreak(tid),
        Some(Hit::Watchpoint(point, addr)) => MultiThreadStopReason::Watch {
            tid,
            kind: match point.watch {
                Watch::Read => WatchKind::Read,
                Watch::Write => WatchKind::Write,
                Watch::Access => WatchKind::ReadWrite,
            },
            addr,
        },
        Some(Hit::Step) | None => MultiThreadStopReason::SignalWithThread {
            tid,
            signal: Signal::SIGTRAP,
        },
    }
}
