//! What the units of a chip share: text, memory, devices, the controller, and the way a run stops.

use super::cache::LINE_INSTRUCTIONS;
use super::config::InterruptConfig;
use super::unit::{Registers, Running};
use crate::controller::{Acceptors, Controller, Fault, FaultCause, ReadyThread, ThreadId};
use crate::device::Bus;
use crate::instruction::Instruction;
use crate::memory::Memory;
use crate::operation::Operation;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A kernel thread executed `halt` with this code.
    Halt(u32),
    /// The cycles asked for have passed.
    CycleLimit,
    /// No thread is ready or running, no device will act: nothing can ever happen again.
    Idle,
    /// A fault that nobody can handle: no fault thread is set, or the fault thread itself did it.
    UnhandledFault(Fault),
    /// Every unit waits for room for a fault record: the fault thread cannot run.
    FaultsFull,
}

/// A word of text, decoded once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoded {
    /// What the word says, if it is an instruction.
    pub(super) instruction: Option<Instruction>,
    /// The word.
    pub(super) word: u32,
    /// The registers it reads; 0 for none.
    pub(super) first: u8,
    pub(super) second: u8,
    /// The register it writes; 0 for none.
    pub(super) written: u8,
}

impl Decoded {
    pub(super) fn new(word: u32) -> Decoded {
        match Instruction::decode(word) {
            Ok(instruction) => {
                let (first, second) = instruction.sources();
                let written = if instruction.operation.description().writes() {
                    instruction.a
                } else {
                    0
                };
                Decoded {
                    instruction: Some(instruction),
                    word,
                    first,
                    second,
                    written,
                }
            }
            Err(_) => Decoded {
                instruction: None,
                word,
                first: 0,
                second: 0,
                written: 0,
            },
        }
    }
}

/// The shared parts of a chip.
pub(super) struct Shared {
    pub(super) text: Vec<Decoded>,
    /// The byte address after the text, which nothing may write.
    pub(super) text_end: u32,
    pub(super) memory: Memory,
    pub(super) bus: Bus,
    pub(super) controller: Controller,
    pub(super) acceptors: Acceptors,
    /// Units whose loaded thread waits behind a running one: one bit a unit.
    held: u64,
    pub(super) preload: bool,
    pub(super) branch_penalty: u64,
    pub(super) device_register_cycles: u64,
    pub(super) interrupts: Option<InterruptConfig>,
    pub(super) faults: u64,
    stopped: Option<Stop>,
}

impl Shared {
    pub(super) fn new(
        text: &[u32],
        memory: Memory,
        bus: Bus,
        controller: Controller,
        config: &super::ChipConfig,
    ) -> Shared {
        Shared {
            text: text.iter().map(|word| Decoded::new(*word)).collect(),
            text_end: text.len() as u32 * 4,
            memory,
            bus,
            controller,
            acceptors: Acceptors {
                idle: u64::MAX >> (64 - config.units),
                preload: 0,
            },
            held: 0,
            preload: config.preload,
            branch_penalty: config.branch_penalty.into(),
            device_register_cycles: config.device_register_cycles.into(),
            interrupts: config.interrupts,
            faults: 0,
            stopped: None,
        }
    }

    pub(super) fn stop(&mut self, stop: Stop) {
        self.stopped.get_or_insert(stop);
    }

    pub(super) fn stopped(&self) -> Option<Stop> {
        self.stopped
    }

    /// Notes whether a unit can take a thread: because it is idle, or because its preload slot is empty.
    pub(super) fn note_acceptor(&mut self, unit: usize, idle: bool, slot: bool) {
        let bit = 1u64 << unit;
        self.acceptors.idle = self.acceptors.idle & !bit | if idle { bit } else { 0 };
        let preload = slot && !idle && self.preload;
        self.acceptors.preload = self.acceptors.preload & !bit | if preload { bit } else { 0 };
    }

    /// Notes whether a unit's loaded thread waits behind a running one.
    pub(super) fn note_held(&mut self, unit: usize, held: bool) {
        self.held = self.held & !(1 << unit) | u64::from(held) << unit;
    }

    /// How many loaded threads wait behind running ones although some unit is idle.
    #[inline]
    pub(super) fn held_needlessly(&self) -> u64 {
        if self.acceptors.idle == 0 {
            0
        } else {
            self.held.count_ones().into()
        }
    }

    #[inline]
    pub(super) fn in_user_region(&self, address: u32, length: u32) -> bool {
        let (start, end) = self.bus.system.user_region();
        address >= start && u64::from(address) + u64::from(length) <= u64::from(end)
    }

    /// Fetches a line of text in cycle `now`; answers when it is there.
    pub(super) fn fill_line(&mut self, line: u32, now: u64) -> u64 {
        let first = line * LINE_INSTRUCTIONS * 4;
        (0..LINE_INSTRUCTIONS)
            .map(|word| self.memory.reserve(first + word * 4, now).done)
            .max()
            .unwrap_or(now)
    }

    /// Does a `preload` at the head of a thread, if there is one and it is valid; answers when the last word is there.
    pub(super) fn preload_head(
        &mut self,
        running: &Running,
        registers: &mut Registers,
        now: u64,
    ) -> Option<u64> {
        let instruction = self.text.get(running.pc as usize)?.instruction?;
        if instruction.operation != Operation::Preload {
            return None;
        }
        self.preload(running, &instruction, registers, now).ok()
    }

    /// Loads registers from the thread's frame, one word a cycle from `now` on.
    pub(super) fn preload(
        &mut self,
        running: &Running,
        instruction: &Instruction,
        registers: &mut Registers,
        now: u64,
    ) -> Result<u64, (FaultCause, u32)> {
        let (first, count, slot) = (instruction.a, instruction.b, instruction.number as u32);
        if first + count > 32 {
            return Err((FaultCause::IllegalInstruction, instruction.encode()));
        }
        let end = slot + u32::from(count);
        if end > u32::from(running.words) {
            return Err((FaultCause::FrameBounds, end - 1));
        }
        let mut done = now;
        for step in 0..count {
            let address = running.frame + (slot + u32::from(step)) * 4;
            let value = self
                .memory
                .word(address)
                .ok_or((FaultCause::MemoryProtection, address))?;
            registers.set(first + step, value, 0);
            done = done.max(self.memory.reserve(address, now + u64::from(step)).done);
        }
        Ok(done)
    }

    /// Records a fault; false when there is no room for it.
    pub(super) fn report(&mut self, fault: Fault) -> bool {
        let handler = self.bus.system.fault_handler();
        if handler.is_none() || handler == fault.thread.map(ThreadId::number) {
            self.faults += 1;
            self.stop(Stop::UnhandledFault(fault));
            return true;
        }
        if !self.bus.system.has_room() {
            return false;
        }
        self.faults += 1;
        self.bus.system.record(fault);
        self.bus.refresh();
        true
    }

    /// The handler of a device whose interrupt a unit takes, if it is installed.
    pub(super) fn interrupt_handler(&mut self, device: usize) -> Option<ReadyThread> {
        let handler = self.bus.handler(device)?;
        let thread = ThreadId::from_register(handler, self.controller.memory().pages())?;
        let entry = self.controller.memory().entry(thread);
        let page = self.controller.memory().page(thread.page())?;
        Some(ReadyThread {
            thread,
            code: entry.code,
            mode: entry.mode?,
            frame: page.frame,
            words: page.words,
        })
    }
}
