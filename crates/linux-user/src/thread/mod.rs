//! A guest thread: a processor, its signals, and the loop that runs it; and all that changes threads as a whole.
//!
//! [`syscalls`] are what it asks of its kernel, [`strace`] prints them; [`faults`] become signals, [`delivery`] brings
//! signals to their handlers; [`crash`] is what is said where there is none.
//!
//! Each guest thread is one host thread. It is *inside* the [`World`](crate::world::World) while its processor
//! runs and outside while it handles what the processor stopped for.

pub mod crash;
pub mod delivery;
pub mod faults;
pub mod strace;
pub mod syscalls;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sidestep_ia64::fault::isr;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::{Driver, Exit, Fault, FaultKind, Processor};

use crate::code_names::CodeNames;
use crate::control::Hold;
use crate::host::signals::{Inbox, SignalSet};
use crate::host::{self, Touch};
use crate::memory::{Denial, NAT_PAGE, Need};
use crate::process::{Ending, Peer, Process};
use crate::signal::context::AlternateStack;
use crate::statistics::Statistics;
use crate::trace::Trace;
use crate::world::{Generation, Member};
use delivery::{Interrupted, Killed};
use faults::{FaultSignal, PageState, signal_of};
use syscalls::light::ServedInRun;
use syscalls::{Arguments, SystemCallResult, Unfinished};

/// The immediate of the `break` that enters the kernel.
const SYSTEM_CALL_BREAK: u64 = 0x10_0000;
/// The register that holds a system call's number.
const NUMBER: u8 = 15;
/// Instructions taken from a bounded budget at a time.
const BUDGET_STEP: u64 = 1 << 20;
/// How misaligned accesses are treated (`PR_SET_UNALIGN`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unaligned {
    /// The control's bits.
    pub control: u64,
}

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this status.
    Thread(i32),
    /// With its process.
    Process(Ending),
}

/// A guest thread.
pub struct Thread {
    /// What it shares with the other threads of its process.
    pub process: Arc<Process>,
    /// Its registers.
    pub processor: Processor,
    /// Its number, as the host knows it.
    pub identifier: i32,
    /// Signals the host has handed over.
    pub inbox: Arc<Inbox>,
    /// Its place in the world of its memory.
    pub member: Member,
    /// The signals it blocks.
    pub blocked: SignalSet,
    /// The mask to go back to after a call that waited under another one.
    pub saved_mask: Option<SignalSet>,
    /// Where handlers with `SA_ONSTACK` run.
    pub alternate_stack: AlternateStack,
    /// The word to clear and wake when it ends; zero for none.
    pub clear_identifier: u64,
    /// What other threads need of it.
    pub peer: Arc<Peer>,
    /// The result of a system call that goes to r9.
    pub second_result: Option<u64>,
    /// Whether the instruction pointer is behind a system call that was just made.
    pub in_system_call: bool,
    /// A fault that a system call found on the guest's behalf.
    pub pending_fault: Option<FaultSignal>,
    /// What misaligned accesses do.
    pub unaligned: Unaligned,
    /// What `PR_SET_FPEMU` set.
    pub floating_point_control: u64,
    /// Counts that the processor does not keep.
    pub statistics: Statistics,
    attention: Arc<AtomicBool>,
    generation: Generation,
    trace: Option<Trace>,
    /// Serves light-weight calls while the processor runs, if nobody is to be told of them.
    light_calls: Option<Arc<ServedInRun>>,
    /// What runs the processor, if it does not run by itself.
    driver: Option<Box<dyn Driver + Send>>,
    /// What keeps it under a debugger's control, if there is one.
    hold: Option<Hold>,
    /// What the processor had done when this process began (after `fork`).
    baseline: Statistics,
    /// Where others find what the thread did, if statistics are wanted.
    progress: Option<Arc<Mutex<Statistics>>>,
}

impl Thread {
    /// A thread of a process, outside the world; to be made on the host thread that will run it.
    pub fn new(process: Arc<Process>, mut processor: Processor) -> Thread {
        let attention = processor.attention();
        let raise = attention.clone();
        let raise: Arc<dyn Fn() + Send + Sync> = Arc::new(move || raise.store(true, Ordering::Release));
        let for_inbox = raise.clone();
        let inbox = Arc::new(Inbox::new(Box::new(move || for_inbox())));
        processor.set_privilege_level(3);
        let member = process.memory.world.join(raise);
        let peer = process.join(inbox.clone());
        let trace = process.options.trace.as_ref();
        let trace = trace.map(|file| Trace::open(file, attention.clone()));
        let driver = {
            // What `fork` holds, too: a child finds no thread in the middle of this.
            let _peers = process.peers();
            process.options.engine.as_ref().map(|engine| engine.attach())
        };
        let baseline = Statistics {
            threads: 0,
            ..Statistics::of(&processor)
        };
        let progress = process.new_progress();
        let control = process.control().cloned();
        let hold = control.and_then(|control| Hold::new(control, attention.clone()));
        let may_serve = trace.is_none()
            && hold.is_none()
            && !process.options.strace
            && process
                .options
                .engine
                .as_ref()
                .is_none_or(|engine| engine.permits_light_calls());
        let light_calls = may_serve.then(|| Arc::new(ServedInRun::new(process.memory.clone())));
        processor.set_light_calls(light_calls.clone().map(|calls| calls as _));
        Thread {
            hold,
            light_calls,
            process,
            processor,
            identifier: host::thread_id(),
            inbox,
            member,
            blocked: 0,
            saved_mask: None,
            alternate_stack: AlternateStack::NONE,
            clear_identifier: 0,
            peer,
            second_result: None,
            in_system_call: false,
            pending_fault: None,
            unaligned: Unaligned::default(),
            floating_point_control: 0,
            statistics: Statistics::default(),
            attention,
            generation: Generation::default(),
            trace,
            driver,
            baseline,
            progress,
        }
    }

    /// Runs the thread to its end on the calling host thread.
    pub fn run(&mut self) -> Ended {
        Inbox::attach(Arc::as_ptr(&self.inbox));
        host::signals::set_mask(self.blocked);
        loop {
            if let Some(ending) = self.process.ending() {
                return Ended::Process(ending);
            }
            if let Err(ended) = self.step() {
                return ended;
            }
        }
    }

    /// Runs until the processor stops once, and handles why.
    fn step(&mut self) -> Result<(), Ended> {
        let wanted = if self.process.options.instructions_max.is_some() {
            BUDGET_STEP
        } else {
            u64::MAX
        };
        let limit = self.process.take_budget(wanted);
        if limit == 0 {
            return Err(Ended::Process(Ending::Limit));
        }
        let before = self.processor.instructions_retired();
        let exit = self.execute(limit);
        let used = self.processor.instructions_retired() - before;
        self.process.return_budget(limit.saturating_sub(used));
        if self.trace.as_ref().is_some_and(Trace::is_lost) {
            return Err(Ended::Process(Ending::Failed));
        }
        match exit {
            Exit::Limit => Ok(()),
            Exit::Halted => self.halted(),
            Exit::Attention => self.deliver(None),
            Exit::Fault(fault) if is_system_call(&fault) => self.system_call(),
            Exit::Fault(fault) => self.fault(fault),
        }
    }

    /// Runs the processor, inside the world.
    fn execute(&mut self, limit: u64) -> Exit {
        self.attention.store(false, Ordering::Release);
        if let Some(hold) = &mut self.hold
            && !hold.wait(&mut self.processor)
        {
            self.hold = None;
        }
        if self.unaligned.raises() {
            self.processor.status |= psr::AC;
        }
        let generation = self.process.memory.world.enter(&self.member);
        if generation.code_changes != self.generation.code_changes {
            self.processor.flush_translations();
        } else if generation.changes != self.generation.changes {
            self.processor.flush_data_translations();
        }
        self.generation = generation;
        let exit = if self.inbox.is_empty() {
            match (&mut self.trace, &mut self.driver, &mut self.hold) {
                (None, None, None) => self.processor.run(limit),
                (None, None, Some(hold)) => hold.run(&mut self.processor, limit),
                (None, Some(driver), _) => driver.run(&mut self.processor, limit),
                (Some(trace), _, _) => self.processor.run_observed(limit, trace),
            }
        } else {
            Exit::Attention
        };
        self.publish_progress();
        self.process.memory.world.leave(&self.member);
        exit
    }

    fn deliver(&mut self, interrupted: Option<Interrupted>) -> Result<(), Ended> {
        if self.inbox.is_empty() && self.saved_mask.is_none() && interrupted.is_none() {
            return Ok(());
        }
        self.deliver_signals(interrupted)
            .map_err(|Killed { signal }| Ended::Process(Ending::Killed(signal)))
    }

    fn system_call(&mut self) -> Result<(), Ended> {
        self.statistics.system_calls += 1;
        let number = number_of(&self.processor);
        let arguments = arguments_of(&self.processor);
        if let Some(hold) = &self.hold {
            hold.enter_call(number, self.processor.duplicate(self.process.memory.clone()));
        }
        let result = syscalls::perform(self, number, &arguments);
        // A context that `rt_sigreturn` brought back may be anywhere: all of it counts.
        self.in_system_call = result != Err(Unfinished::Resumed);
        let interrupted = match result {
            Ok(_) | Err(Unfinished::Error(_)) => {
                self.finish_system_call(result);
                None
            }
            Err(Unfinished::Restart) => Some(Interrupted { always: false }),
            Err(Unfinished::RestartAlways) => Some(Interrupted { always: true }),
            Err(Unfinished::Resumed) => None,
            Err(Unfinished::ThreadEnd(status)) => return Err(Ended::Thread(status)),
            Err(Unfinished::ProcessEnd(status)) => return Err(Ended::Process(Ending::Exited(status))),
        };
        let delivered = match self.pending_fault.take() {
            Some(fault) => self.kill_or_handle(fault, None),
            None => self.deliver(interrupted),
        };
        self.in_system_call = false;
        delivered
    }

    /// Puts a result into the registers and steps over the `break`.
    pub(crate) fn finish_system_call(&mut self, result: SystemCallResult) {
        let general = &mut self.processor.general;
        match result {
            Ok(value) => {
                general.set(8, value);
                general.set(10, 0);
            }
            Err(Unfinished::Error(error)) => {
                general.set(8, error.0 as u64);
                general.set(10, u64::MAX);
            }
            Err(_) => unreachable!("only a result or an error finishes a call"),
        }
        if let Some(second) = self.second_result.take() {
            general.set(9, second);
        }
        self.processor.skip_instruction();
    }

    fn fault(&mut self, fault: Fault) -> Result<(), Ended> {
        if let Some(waited) = self.await_page(&fault) {
            return waited;
        }
        let may_emulate = fault.kind == FaultKind::UnalignedReference && !self.unaligned.raises();
        if may_emulate && self.processor.status & psr::AC != 0 {
            return self.without_alignment_check();
        }
        let (address, slot) = match fault.kind.is_trap() {
            true => self.processor.trapped_instruction(),
            false => self.processor.instruction_pointer(),
        };
        let signal = signal_of(&fault, address + u64::from(slot), slot, self.page_state(&fault));
        self.kill_or_handle(signal, Some(fault))
    }

    /// Waits for the page that an access lacks, if another thread of the program has to bring it.
    fn await_page(&mut self, fault: &Fault) -> Option<Result<(), Ended>> {
        if fault.kind != FaultKind::PageNotPresent || !self.process.memory.knows_watching() {
            return None;
        }
        let need = Need {
            read: fault.isr & isr::READ != 0,
            write: fault.isr & isr::WRITE != 0,
            execute: fault.isr & isr::EXECUTE != 0,
        };
        let memory = &self.process.memory;
        match memory.await_page(fault.address.0, need, self.inbox.pending())? {
            Touch::Present => Some(Ok(())),
            Touch::Interrupted => Some(self.deliver(None)),
            Touch::Fault => None,
        }
    }

    /// What runs the processor has halted it.
    fn halted(&mut self) -> Result<(), Ended> {
        if let Some(hold) = &mut self.hold {
            hold.halted(&self.processor);
            return Ok(());
        }
        let names = CodeNames::of(&self.process.memory);
        let engine = self.process.options.engine.as_ref();
        let world = &self.process.memory.world;
        match engine.is_some_and(|engine| world.stopped(|| engine.ends(&names))) {
            true => Err(Ended::Process(Ending::Halted)),
            false => Ok(()),
        }
    }

    /// Executes one instruction as if PSR.ac were off, as the kernel emulates a misaligned access.
    fn without_alignment_check(&mut self) -> Result<(), Ended> {
        self.processor.status &= !psr::AC;
        let exit = self.execute(1);
        self.processor.status |= psr::AC;
        match exit {
            Exit::Limit => Ok(()),
            Exit::Halted => self.halted(),
            Exit::Attention => self.deliver(None),
            Exit::Fault(fault) => {
                if let Some(waited) = self.await_page(&fault) {
                    return waited;
                }
                let (address, slot) = self.processor.instruction_pointer();
                let signal = signal_of(&fault, address + u64::from(slot), slot, self.page_state(&fault));
                self.kill_or_handle(signal, Some(fault))
            }
        }
    }

    fn page_state(&self, fault: &Fault) -> PageState {
        let address = fault.address.0;
        if NAT_PAGE.contains(&address) {
            return PageState::NatPage;
        }
        let nothing = Need {
            read: false,
            write: false,
            execute: false,
        };
        match self.process.memory.view(address, nothing) {
            Ok(_) | Err(Denial::NotAllowed) => PageState::Mapped,
            Err(Denial::BeyondFile | Denial::Absent) => PageState::BeyondFile,
            Err(Denial::NotMapped) => PageState::Unmapped,
        }
    }

    /// Runs the guest's handler for a fault, or reports the crash.
    fn kill_or_handle(&mut self, signal: FaultSignal, fault: Option<Fault>) -> Result<(), Ended> {
        if !self.debugger_passes(signal.signal) {
            return Ok(());
        }
        self.deliver_fault(signal).map_err(|Killed { signal: killer }| {
            if let Some(fault) = fault {
                host::print_error(&crash::report(self, &fault, &signal));
            }
            Ended::Process(Ending::Killed(killer))
        })
    }

    /// Whether a debugger, if there is one, wants a signal to be delivered.
    fn debugger_passes(&mut self, signal: i32) -> bool {
        match &mut self.hold {
            Some(hold) => hold.signal(signal, &mut self.processor),
            None => true,
        }
    }

    /// What the thread did in this process so far.
    fn totals(&self) -> Statistics {
        let mut totals = self.of_processor();
        totals += self.statistics;
        totals - self.baseline
    }

    /// What its processor did, light-weight calls included.
    fn of_processor(&self) -> Statistics {
        Statistics {
            system_calls: self.light_calls.as_ref().map_or(0, |calls| calls.served()),
            ..Statistics::of(&self.processor)
        }
    }

    fn publish_progress(&self) {
        if let Some(progress) = &self.progress {
            *progress.lock().expect("no thread panics while it publishes") = self.totals();
        }
    }

    /// Writes out what of the trace is buffered.
    pub(crate) fn flush_trace(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.flush();
            if trace.is_lost() {
                self.process.end(Ending::Failed);
            }
        }
    }

    /// After `fork`, in the child: it is the only thread, under a new number, and has done nothing yet.
    pub(crate) fn become_forked_child(&mut self) {
        self.identifier = host::thread_id();
        self.clear_identifier = 0;
        self.hold = None;
        self.process.become_forked(&self.peer);
        if let Some(trace) = &mut self.trace {
            trace.continue_as(self.identifier);
        }
        self.statistics = Statistics::default();
        self.baseline = Statistics {
            threads: 0,
            ..self.of_processor()
        };
        self.progress = self.process.new_progress();
        if let Some(engine) = &self.process.options.engine {
            self.driver = Some(engine.fork(self.driver.take()));
        }
    }

    /// Ends the thread, and the process if it ended so. The host thread may go on with something else then.
    pub fn end(&mut self, ended: Ended) {
        if let Ended::Process(ending) = ended {
            self.process.end(ending);
        }
        syscalls::threads::at_end(self);
        if let Some(hold) = self.hold.take() {
            hold.end();
        }
        self.flush_trace();
        self.publish_progress();
        self.process.memory.world.part(&self.member);
        host::signals::block_all();
        Inbox::attach(std::ptr::null());
        let status = match ended {
            Ended::Thread(status) => status,
            Ended::Process(_) => 0,
        };
        self.process.part(&self.peer, status);
    }
}

/// The number of the call that a processor is at; a NaT reads as all ones, here and in arguments.
fn number_of(processor: &Processor) -> u64 {
    match processor.general.nat(NUMBER) {
        true => u64::MAX,
        false => processor.general.value(NUMBER),
    }
}

/// An argument of the call that a processor is at.
#[inline(always)]
fn argument_of(processor: &Processor, number: u32) -> u64 {
    let frame = processor.frame;
    let register = (32 + frame.locals + number) as u8 & 127;
    match number < frame.size - frame.locals {
        true if processor.general.nat(register) => u64::MAX,
        true => processor.general.value(register),
        false => 0,
    }
}

/// All of them. In line and without a loop, because an array that is filled word by word and copied at once afterwards
/// waits for the words.
#[inline(always)]
fn arguments_of(processor: &Processor) -> Arguments {
    let argument = |number| argument_of(processor, number);
    [
        argument(0),
        argument(1),
        argument(2),
        argument(3),
        argument(4),
        argument(5),
    ]
}

fn is_system_call(fault: &Fault) -> bool {
    fault.kind == FaultKind::Break && fault.immediate == SYSTEM_CALL_BREAK
}
