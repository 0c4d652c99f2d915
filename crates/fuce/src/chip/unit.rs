//! A thread execution unit: an in-order pipeline that issues one instruction a cycle, two register files, and a
//! preload unit.
//!
//! The unit runs one thread to its end while the preload unit fills the other register file for the next: register 1
//! with the address of the thread's frame, register 2 with its number, and what a `preload` at the thread's beginning
//! names. At the end of a thread the files change places at no cost. Registers otherwise start at zero, so nothing
//! passes from one thread to another through them.
//!
//! Time is kept by a scoreboard: each register knows the cycle from which its value can be used, and an instruction
//! issues when its sources and its destination are ready. Every cycle is booked to one [`Cause`].

use super::cache::{InstructionCache, LINE_INSTRUCTIONS};
use super::counters::{Cause, UnitCounters};
use super::shared::Shared;
use crate::controller::{Fault, FaultCause, Issuer, Mode, ReadyThread, ThreadId};
use crate::operation::Operation;

/// The register that holds the address of the thread's frame when it starts.
pub const FRAME_REGISTER: usize = 1;
/// The register that holds the thread's own number when it starts.
pub const THREAD_REGISTER: usize = 2;

/// A register file with its scoreboard.
#[derive(Debug, Clone)]
pub(super) struct Registers {
    pub(super) values: [u32; 32],
    /// The cycle from which each value can be used; [`NEVER`] while the controller has not answered.
    pub(super) ready: [u64; 32],
    pub(super) cause: [Cause; 32],
}

/// A cycle that does not come.
pub(super) const NEVER: u64 = u64::MAX;

impl Registers {
    fn new() -> Registers {
        Registers {
            values: [0; 32],
            ready: [0; 32],
            cause: [Cause::Memory; 32],
        }
    }

    /// As a thread finds them: its frame, its number, and zeros.
    fn reset(&mut self, frame: u32, thread: ThreadId) {
        self.values = [0; 32];
        self.ready = [0; 32];
        self.values[FRAME_REGISTER] = frame;
        self.values[THREAD_REGISTER] = thread.number();
    }

    #[inline]
    pub(super) fn set(&mut self, register: u8, value: u32, ready: u64) {
        if register != 0 {
            self.values[usize::from(register)] = value;
            self.ready[usize::from(register)] = ready;
        }
    }
}

/// A thread on a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Running {
    pub(super) thread: ThreadId,
    pub(super) mode: Mode,
    pub(super) frame: u32,
    pub(super) words: u16,
    /// Number of its first instruction.
    pub(super) code: u32,
    /// Number of the next instruction.
    pub(super) pc: u32,
}

/// A thread in the preload slot.
#[derive(Debug, Clone, Copy)]
struct Loaded {
    running: Running,
    /// The cycle from which it can start.
    ready: u64,
}

/// What an interrupt handler has pushed aside, on the conventional chip.
#[derive(Debug, Clone)]
struct Interrupted {
    running: Option<Running>,
    registers: Box<Registers>,
}

/// What an instruction does to the flow of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next instruction follows.
    Next,
    /// The instruction with this number follows.
    Jump(u32),
    /// The instruction is tried again in a later cycle.
    Wait(u64, Cause),
    /// The thread is done.
    End,
    /// The thread is ended by a fault.
    Fault(FaultCause, u32),
    /// The chip stops.
    Stop,
}

/// A thread execution unit.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) number: usize,
    /// The register file of the running thread.
    pub(super) registers: Box<Registers>,
    pub(super) running: Option<Running>,
    /// The register file of the loaded thread.
    next_registers: Box<Registers>,
    loaded: Option<Loaded>,
    cache: InstructionCache,
    /// The line the last instruction came from.
    line: u32,
    /// The cycle in which an earlier store reaches its bank.
    pub(super) store_accepted: u64,
    /// The register that awaits the controller's answer.
    pub(super) answer: Option<u8>,
    /// Answers on their way to threads that have been ended.
    unwanted_answers: u32,
    /// A fault that waits for room.
    held_fault: Option<Fault>,
    /// Handlers to run at the next instruction boundary.
    pending_interrupts: u64,
    interrupted: Option<Box<Interrupted>>,
    /// Since when [`Unit::cause`] holds.
    since: u64,
    cause: Cause,
    counters: UnitCounters,
}

impl Unit {
    pub(super) fn new(number: usize, instruction_cache_bytes: u32) -> Unit {
        Unit {
            number,
            registers: Box::new(Registers::new()),
            running: None,
            next_registers: Box::new(Registers::new()),
            loaded: None,
            cache: InstructionCache::new(instruction_cache_bytes),
            line: u32::MAX,
            store_accepted: 0,
            answer: None,
            unwanted_answers: 0,
            held_fault: None,
            pending_interrupts: 0,
            interrupted: None,
            since: 0,
            cause: Cause::Idle,
            counters: UnitCounters::default(),
        }
    }

    /// The counters, with the cycles up to `now` booked.
    pub(super) fn counters(&self, now: u64) -> UnitCounters {
        let mut counters = self.counters;
        counters.cycles[self.cause as usize] += now.saturating_sub(self.since);
        counters
    }

    /// From `now` on the unit's cycles belong to `cause`.
    #[inline]
    fn book(&mut self, now: u64, cause: Cause) {
        self.counters.cycles[self.cause as usize] += now - self.since;
        self.since = now;
        self.cause = cause;
    }

    /// Takes a thread from the controller and loads its registers; answers when the unit wants to act.
    pub(super) fn accept(&mut self, ready: ReadyThread, now: u64, shared: &mut Shared) -> u64 {
        assert!(self.loaded.is_none(), "a unit has one preload slot");
        self.next_registers.reset(ready.frame, ready.thread);
        let mut running = Running {
            thread: ready.thread,
            mode: ready.mode,
            frame: ready.frame,
            words: ready.words,
            code: ready.code,
            pc: ready.code,
        };
        let mut done = now + 1;
        let line = ready.code / LINE_INSTRUCTIONS;
        if shared.text.get(ready.code as usize).is_some() && !self.cache.touch(line) {
            self.counters.instruction_cache_misses += 1;
            done = shared.fill_line(line, now);
        }
        if let Some(timing) = shared.preload_head(&running, &mut self.next_registers, done) {
            done = timing;
            running.pc += 1;
            self.counters.preloads += 1;
        }
        self.loaded = Some(Loaded { running, ready: done });
        shared.note_acceptor(self.number, false, false);
        if self.running.is_some() || self.held_fault.is_some() {
            shared.note_held(self.number, true);
            return NEVER;
        }
        self.book(now + 1, Cause::Preload);
        done
    }

    /// A device's interrupt for this unit, taken at the next instruction boundary; answers whether the unit has no
    /// thread and must be woken for it.
    pub(super) fn interrupt(&mut self, device: usize) -> bool {
        self.pending_interrupts |= 1 << device;
        self.running.is_none()
    }

    /// The controller has answered this unit's `lock` or `create`.
    pub(super) fn answered(&mut self, value: u32, now: u64) {
        if self.unwanted_answers > 0 {
            self.unwanted_answers -= 1;
            return;
        }
        let register = self.answer.take().expect("the unit awaits an answer");
        self.registers.set(register, value, now + 1);
    }

    /// The controller has refused a request of `thread`. The thread ends here if it still runs and either belongs to
    /// user space or awaits the answer of this very request; answers whether it did.
    pub(super) fn refused(&mut self, thread: ThreadId, answers: bool, now: u64, shared: &mut Shared) -> bool {
        if answers && self.unwanted_answers > 0 {
            self.unwanted_answers -= 1;
            return false;
        }
        let running = self
            .running
            .filter(|running| running.thread == thread && self.held_fault.is_none());
        let ends = running.is_some_and(|running| answers || running.mode == Mode::User);
        if ends {
            if answers {
                self.answer = None;
            }
            self.finish(now, shared);
        }
        ends
    }

    /// Acts in cycle `now`; answers the cycle in which to be called again.
    #[inline]
    pub(super) fn step(&mut self, now: u64, shared: &mut Shared) -> u64 {
        if self.pending_interrupts != 0
            && let Some(wake) = self.take_interrupt(now, shared)
        {
            return wake;
        }
        if let Some(fault) = self.held_fault {
            return self.report(fault, now, shared);
        }
        let Some(running) = &self.running else {
            return self.start_loaded(now, shared);
        };
        let pc = running.pc;
        let Some(decoded) = shared.text.get(pc as usize).copied() else {
            return self.fault(FaultCause::CodeBounds, pc.wrapping_mul(4), now, shared);
        };
        let line = pc / LINE_INSTRUCTIONS;
        if line != self.line {
            self.line = line;
            if !self.cache.touch(line) {
                self.counters.instruction_cache_misses += 1;
                self.book(now, Cause::InstructionCache);
                return shared.fill_line(line, now);
            }
        }
        let Some(instruction) = decoded.instruction else {
            return self.fault(FaultCause::IllegalInstruction, decoded.word, now, shared);
        };
        let (first, second, third) = (
            decoded.first as usize & 31,
            decoded.second as usize & 31,
            decoded.written as usize & 31,
        );
        let ready = &self.registers.ready;
        let at = ready[first].max(ready[second]).max(ready[third]);
        if at > now {
            let slowest = [first, second, third]
                .into_iter()
                .find(|register| ready[*register] == at);
            let cause = self.registers.cause[slowest.unwrap_or(0)];
            self.book(now, cause);
            return at;
        }
        let flow = self.execute(&instruction, now, shared);
        self.follow(flow, pc, now, shared)
    }

    #[inline]
    fn follow(&mut self, flow: Flow, pc: u32, now: u64, shared: &mut Shared) -> u64 {
        let running = self
            .running
            .as_mut()
            .expect("an instruction belongs to a running thread");
        match flow {
            Flow::Next => {
                running.pc = pc + 1;
                self.book(now, Cause::Execute);
                now + 1
            }
            Flow::Jump(target) => {
                running.pc = target;
                self.book(now, Cause::Execute);
                self.book(now + 1, Cause::Branch);
                now + 1 + shared.branch_penalty
            }
            Flow::Wait(until, cause) => {
                self.book(now, cause);
                until
            }
            Flow::End => {
                self.book(now, Cause::Execute);
                self.book(now + 1, Cause::Idle);
                self.finish(now, shared);
                now + 1
            }
            Flow::Fault(cause, value) => self.fault(cause, value, now, shared),
            Flow::Stop => {
                self.book(now, Cause::Execute);
                self.book(now + 1, Cause::Idle);
                self.running = None;
                NEVER
            }
        }
    }

    /// Ends the thread; the loaded one, or the interrupted one, takes its place in the next step.
    fn finish(&mut self, now: u64, shared: &mut Shared) {
        self.running = None;
        // A thread that a fault has ended may have asked for something; the answer is for nobody.
        self.unwanted_answers += u32::from(self.answer.take().is_some());
        if let Some(interrupted) = self.interrupted.take() {
            self.running = interrupted.running;
            self.registers = interrupted.registers;
            let exit = shared.interrupts.map_or(0, |costs| u64::from(costs.exit_cycles));
            self.delay(now + 1 + exit, Cause::Interrupt);
        }
        if self.loaded.is_none() {
            shared.note_acceptor(self.number, self.running.is_none(), true);
        }
    }

    /// Keeps the running thread from issuing before `until`.
    fn delay(&mut self, until: u64, cause: Cause) {
        self.registers.ready[0] = self.registers.ready[0].max(until);
        self.registers.cause[0] = cause;
    }

    /// Lets the loaded thread run, if its registers are there.
    fn start_loaded(&mut self, now: u64, shared: &mut Shared) -> u64 {
        let Some(loaded) = self.loaded else {
            self.book(now, Cause::Idle);
            return NEVER;
        };
        if loaded.ready > now {
            self.book(now, Cause::Preload);
            return loaded.ready;
        }
        self.running = Some(loaded.running);
        self.loaded = None;
        std::mem::swap(&mut self.registers, &mut self.next_registers);
        shared.note_held(self.number, false);
        self.line = u32::MAX;
        self.counters.threads += 1;
        shared.note_acceptor(self.number, false, true);
        self.step(now, shared)
    }

    /// Ends the thread with a fault.
    #[cold]
    fn fault(&mut self, cause: FaultCause, value: u32, now: u64, shared: &mut Shared) -> u64 {
        let running = self
            .running
            .as_ref()
            .expect("a fault belongs to a running thread");
        let thread = Some(running.thread);
        let fault = Fault {
            cause,
            thread,
            address: running.pc.wrapping_mul(4),
            value,
        };
        self.book(now, Cause::Fault);
        self.report(fault, now, shared)
    }

    fn report(&mut self, fault: Fault, now: u64, shared: &mut Shared) -> u64 {
        if !shared.report(fault) {
            self.held_fault = Some(fault);
            return now + 1;
        }
        self.held_fault = None;
        self.book(now, Cause::Fault);
        self.book(now + 1, Cause::Idle);
        self.finish(now, shared);
        now + 1
    }

    #[cold]
    fn take_interrupt(&mut self, now: u64, shared: &mut Shared) -> Option<u64> {
        if self.interrupted.is_some() || self.answer.is_some() || self.held_fault.is_some() {
            return None;
        }
        let device = self.pending_interrupts.trailing_zeros() as usize;
        self.pending_interrupts &= self.pending_interrupts - 1;
        let handler = shared.interrupt_handler(device)?;
        let entry = shared.interrupts.map_or(0, |costs| u64::from(costs.entry_cycles));
        let registers = std::mem::replace(&mut self.registers, Box::new(Registers::new()));
        self.interrupted = Some(Box::new(Interrupted {
            running: self.running.take(),
            registers,
        }));
        self.registers.reset(handler.frame, handler.thread);
        self.running = Some(Running {
            thread: handler.thread,
            mode: handler.mode,
            frame: handler.frame,
            words: handler.words,
            code: handler.code,
            pc: handler.code,
        });
        self.line = u32::MAX;
        self.counters.interrupts += 1;
        self.book(now, Cause::Interrupt);
        if self.loaded.is_none() {
            shared.note_acceptor(self.number, false, true);
        }
        Some(now + entry)
    }

    pub(super) fn issuer(&self) -> Issuer {
        let running = self
            .running
            .as_ref()
            .expect("a request belongs to a running thread");
        Issuer {
            thread: Some(running.thread),
            mode: running.mode,
            address: running.pc * 4,
        }
    }
}

/// Whether an operation ends its thread and so must wait for an outstanding answer.
pub(super) const fn ends_thread(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::End | Operation::SelfContinue | Operation::Halt
    )
}
