//! A machine as `gdbstub` debugs it: processors are threads, numbered from 1.
//!
//! What is debugged is anything [`Debuggee`]: a [`Machine`] in virtual time here, elsewhere a host with
//! virtual machines. Software and hardware breakpoints
//! are the same, since neither changes memory; both and watchpoints are at virtual addresses, for all processors. An
//! address of an instruction carries the slot in its low bits.

use std::sync::Arc;

use gdbstub::common::{Signal, Tid};
use gdbstub::outputln;
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadResume, MultiThreadResumeOps, MultiThreadSchedulerLocking,
    MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::single_register_access::{SingleRegisterAccess, SingleRegisterAccessOps};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use sidestep_ia64::execution::guard::{Guard, Hit, Mode, Points};
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Processor, VirtualAddress};

use super::architecture::{self, AllRegisters, Ia64, watchpoint, words};
use super::registers::Register;
use crate::machine::{Activity, End, Machine, VirtualTime};
use crate::memory::GuestMemory;
use crate::virtual_memory;

/// A machine whose processors can be debugged.
pub trait Debuggee {
    /// How many processors it has.
    fn processors(&self) -> usize;

    /// Reads or changes a processor.
    fn with_processor<T>(&mut self, index: usize, work: impl FnOnce(&mut Processor) -> T) -> T;

    /// Which processor it is, and what it does.
    fn describe(&self, index: usize) -> String;

    /// The memory of a processor.
    fn memory(&self, index: usize) -> Arc<GuestMemory>;

    /// Executes, each processor under its guard, until one halts, the machine ends, or about so many instructions
    /// have retired ([`End::Limit`]).
    fn run(&mut self, guards: &mut [Guard], instructions: u64) -> End;
}

/// A machine in virtual time.
pub struct Debugged<'a> {
    /// The machine.
    pub machine: &'a mut Machine,
    /// How it is executed.
    pub executor: VirtualTime,
    /// How many instructions it may have executed in all. There the debugger has it, whatever that asks for.
    pub executed_max: u64,
}

impl Debuggee for Debugged<'_> {
    fn processors(&self) -> usize {
        self.machine.cpus.len()
    }

    fn with_processor<T>(&mut self, index: usize, work: impl FnOnce(&mut Processor) -> T) -> T {
        work(&mut self.machine.cpus[index].processor)
    }

    fn describe(&self, index: usize) -> String {
        let activity = match self.machine.cpus[index].activity {
            Activity::Running => "running",
            Activity::Waiting => "waiting for an interrupt",
            Activity::Stopped => "stopped",
        };
        format!("processor {index}, {activity}")
    }

    fn memory(&self, _: usize) -> Arc<GuestMemory> {
        Arc::clone(&self.machine.platform().memory)
    }

    fn run(&mut self, guards: &mut [Guard], instructions: u64) -> End {
        let left = self.executed_max.saturating_sub(self.machine.executed());
        if left == 0 {
            return End::Stopped;
        }
        let executor = VirtualTime {
            instructions_max: instructions.min(left),
            expects_input: false,
            ..self.executor
        };
        executor.run_driven(self.machine, guards).end
    }
}

/// What cannot go on with a debugger.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A thread that does not exist.
    #[error("the debugger names thread {0}, which is none of the processors")]
    NoSuchThread(usize),
}

/// A debugger's view of a machine.
pub struct Session<'a, D> {
    pub(super) debuggee: &'a mut D,
    points: Points,
    modes: Vec<Mode>,
    /// The processor that was last reported to be at a breakpoint.
    reported: Option<(usize, u64)>,
    /// How the machine ended, if it has.
    pub(super) end: Option<End>,
}

/// The thread of a processor.
pub(super) fn thread(index: usize) -> Tid {
    Tid::new(index + 1).expect("one more than a number is not zero")
}

impl<'a, D: Debuggee> Session<'a, D> {
    /// A session without breakpoints.
    pub fn new(debuggee: &'a mut D) -> Session<'a, D> {
        let modes = vec![Mode::Continue; debuggee.processors()];
        Session {
            debuggee,
            points: Points::default(),
            modes,
            reported: None,
            end: None,
        }
    }

    /// The guards of the next continuation.
    pub(super) fn guards(&self) -> Vec<Guard> {
        self.modes
            .iter()
            .enumerate()
            .map(|(index, &mode)| {
                let reported = self.reported.filter(|&(halted, _)| halted == index);
                Guard::new(self.points.clone(), mode, reported.map(|(_, address)| address))
            })
            .collect()
    }

    /// Notes what processor `index` halted for.
    pub(super) fn note(&mut self, index: usize, hit: Option<Hit>) {
        let pointer = |processor: &mut Processor| processor.instruction_pointer();
        let (ip, slot) = self.debuggee.with_processor(index, pointer);
        self.reported = (hit == Some(Hit::Breakpoint)).then_some((index, ip | u64::from(slot)));
    }

    fn index(&self, tid: Tid) -> Result<usize, SessionError> {
        let index = tid.get() - 1;
        if index < self.debuggee.processors() {
            Ok(index)
        } else {
            Err(SessionError::NoSuchThread(tid.get()))
        }
    }

    /// Reads or changes the processor of a thread, with the memory that it has.
    fn with<T>(
        &mut self,
        tid: Tid,
        work: impl FnOnce(&mut Processor, &GuestMemory) -> T,
    ) -> Result<T, TargetError<SessionError>> {
        let index = self.index(tid).map_err(|_| TargetError::NonFatal)?;
        let memory = self.debuggee.memory(index);
        Ok(self
            .debuggee
            .with_processor(index, |processor| work(processor, &memory)))
    }
}

impl<D: Debuggee> Target for Session<'_, D> {
    type Arch = Ia64;
    type Error = SessionError;

    fn base_ops(&mut self) -> BaseOps<'_, Ia64, SessionError> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
}

impl<D: Debuggee> MultiThreadBase for Session<'_, D> {
    fn read_registers(&mut self, registers: &mut AllRegisters, tid: Tid) -> TargetResult<(), Self> {
        self.with(tid, |processor, _| registers.read(processor))
    }

    fn write_registers(&mut self, registers: &AllRegisters, tid: Tid) -> TargetResult<(), Self> {
        self.with(tid, |processor, _| registers.write(processor))
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        match self.with(tid, |processor, memory| {
            virtual_memory::read(processor, memory, VirtualAddress(start), data)
        })? {
            0 if !data.is_empty() => Err(TargetError::NonFatal),
            count => Ok(count),
        }
    }

    fn write_addrs(&mut self, start: u64, data: &[u8], tid: Tid) -> TargetResult<(), Self> {
        let written = self.with(tid, |processor, memory| {
            virtual_memory::write(processor, memory, VirtualAddress(start), data)
        })?;
        for index in 0..self.debuggee.processors() {
            // What was written may have been code, or the subject of an advanced load.
            self.debuggee.with_processor(index, |processor| {
                processor.flush_translations();
                processor.forget_advanced_loads();
            });
        }
        if written {
            Ok(())
        } else {
            Err(TargetError::NonFatal)
        }
    }

    fn list_active_threads(&mut self, register: &mut dyn FnMut(Tid)) -> Result<(), SessionError> {
        (0..self.debuggee.processors()).map(thread).for_each(register);
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl<D: Debuggee> SingleRegisterAccess<Tid> for Session<'_, D> {
    fn read_register(
        &mut self,
        tid: Tid,
        register: Register,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let value = self.with(tid, |processor, _| register.read(processor))?;
        Ok(architecture::write_value(register, value, buffer))
    }

    fn write_register(&mut self, tid: Tid, register: Register, value: &[u8]) -> TargetResult<(), Self> {
        if self.with(tid, |processor, _| register.write(processor, words(value)))? {
            Ok(())
        } else {
            Err(TargetError::NonFatal)
        }
    }
}

impl<D: Debuggee> MultiThreadResume for Session<'_, D> {
    fn resume(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), SessionError> {
        self.modes.fill(Mode::Continue);
        Ok(())
    }

    fn set_resume_action_continue(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), SessionError> {
        let index = self.index(tid)?;
        self.modes[index] = Mode::Continue;
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl<D: Debuggee> MultiThreadSingleStep for Session<'_, D> {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), SessionError> {
        let index = self.index(tid)?;
        self.modes[index] = Mode::Step;
        Ok(())
    }
}

impl<D: Debuggee> MultiThreadSchedulerLocking for Session<'_, D> {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), SessionError> {
        for mode in self.modes.iter_mut().filter(|mode| **mode == Mode::Continue) {
            *mode = Mode::Hold;
        }
        Ok(())
    }
}

impl<D: Debuggee> ThreadExtraInfo for Session<'_, D> {
    fn thread_extra_info(&self, tid: Tid, buffer: &mut [u8]) -> Result<usize, SessionError> {
        let index = self.index(tid)?;
        let text = self.debuggee.describe(index);
        let count = text.len().min(buffer.len());
        buffer[..count].copy_from_slice(&text.as_bytes()[..count]);
        Ok(count)
    }
}

impl<D: Debuggee> Breakpoints for Session<'_, D> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl<D: Debuggee> SwBreakpoint for Session<'_, D> {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.points.breakpoints.insert(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.points.breakpoints.remove(&address))
    }
}

impl<D: Debuggee> HwBreakpoint for Session<'_, D> {
    fn add_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(address, kind)
    }

    fn remove_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(address, kind)
    }
}

impl<D: Debuggee> HwWatchpoint for Session<'_, D> {
    fn add_hw_watchpoint(&mut self, start: u64, size: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        self.points.watchpoints.insert(watchpoint(start, size, kind));
        Ok(true)
    }

    fn remove_hw_watchpoint(&mut self, start: u64, size: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        Ok(self.points.watchpoints.remove(&watchpoint(start, size, kind)))
    }
}

/// The control registers that `monitor control` shows.
const SHOWN: &[(u8, &str)] = &[
    (control::DCR, "dcr"),
    (control::ITM, "itm"),
    (control::IVA, "iva"),
    (control::PTA, "pta"),
    (control::IPSR, "ipsr"),
    (control::ISR, "isr"),
    (control::IIP, "iip"),
    (control::IFA, "ifa"),
    (control::ITIR, "itir"),
    (control::IIPA, "iipa"),
    (control::IFS, "ifs"),
    (control::IIM, "iim"),
    (control::IHA, "iha"),
    (control::LID, "lid"),
    (control::TPR, "tpr"),
    (control::ITV, "itv"),
];

impl<D: Debuggee> MonitorCmd for Session<'_, D> {
    fn handle_monitor_cmd(&mut self, command: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), SessionError> {
        let command = String::from_utf8_lossy(command);
        let show: fn(&Processor, &mut ConsoleOutput<'_>) = match command.trim() {
            "control" => show_control,
            "translations" => show_translations,
            _ => {
                outputln!(
                    out,
                    "monitor control: control and region registers of each processor"
                );
                outputln!(
                    out,
                    "monitor translations: translation registers and caches of each processor"
                );
                return Ok(());
            }
        };
        for index in 0..self.debuggee.processors() {
            outputln!(out, "{}", self.debuggee.describe(index));
            self.debuggee
                .with_processor(index, |processor| show(processor, &mut out));
        }
        Ok(())
    }
}

fn show_control(processor: &Processor, out: &mut ConsoleOutput<'_>) {
    for &(number, name) in SHOWN {
        let value = processor.system.control[usize::from(number)];
        outputln!(out, "  cr.{name:<5}{value:016x}");
    }
    for (number, value) in processor.system.region.iter().enumerate() {
        outputln!(out, "  rr{number}     {value:016x}");
    }
}

fn show_translations(processor: &Processor, out: &mut ConsoleOutput<'_>) {
    let Some(mmu) = processor.mmu() else { return };
    for (side, buffer) in [("i", &mmu.instruction), ("d", &mmu.data)] {
        for entry in buffer.entries() {
            outputln!(
                out,
                "  {side} region {:06x} {:016x} -> {:016x} size {} level {} rights {} key {:06x}",
                entry.region,
                entry.page,
                entry.physical,
                entry.size_log2,
                entry.level,
                entry.rights,
                entry.key
            );
        }
    }
}
