//! A program as the `gdbstub` crate asks for it.

use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use gdbstub::common::{Pid, Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::target::ext::auxv::{Auxv, AuxvOps};
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
use gdbstub::target::ext::exec_file::{ExecFile, ExecFileOps};
use gdbstub::target::ext::extended_mode::{
    Args, AttachKind, CurrentActivePid, CurrentActivePidOps, ExtendedMode, ExtendedModeOps, ShouldTerminate,
};
use gdbstub::target::ext::host_io::HostIoOps;
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use sidestep_ia64::Processor;
use sidestep_ia64::execution::guard::{Mode, Points};
use sidestep_linux_user::Ending;
use sidestep_linux_user::control::{Action, Control, Event, Plan, Stop};
use sidestep_linux_user::process::{Process, STATUS_FAILED, STATUS_HALTED, STATUS_LIMIT};
use sidestep_linux_user::syscalls::table;
use sidestep_machine::debug::architecture::{self, AllRegisters, Ia64};
use sidestep_machine::debug::registers::Register;

use super::files::Files;
use super::signals;

/// What cannot go on with a debugger.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A program runs once.
    #[error("the debugger wants to start the program again, which is the command's business")]
    Restart,
}

/// A debugger's view of a program.
pub struct Session {
    pub(super) process: Arc<Process>,
    control: Arc<Control>,
    points: Points,
    actions: Vec<(i32, Action)>,
    others: Mode,
    pub(super) files: Files,
}

/// gdb's number of a thread: the same as Linux's.
fn tid(identifier: i32) -> Tid {
    let number = usize::try_from(identifier).ok().and_then(NonZeroUsize::new);
    number.expect("Linux numbers threads from 1")
}

fn identifier(tid: Tid) -> i32 {
    i32::try_from(tid.get()).unwrap_or(-1)
}

/// Copies the part of a text that gdb asks for; answers how many bytes.
fn part(whole: &[u8], offset: u64, length: usize, buffer: &mut [u8]) -> usize {
    let rest = usize::try_from(offset)
        .ok()
        .and_then(|offset| whole.get(offset..));
    let rest = rest.unwrap_or_default();
    let count = rest.len().min(length).min(buffer.len());
    buffer[..count].copy_from_slice(&rest[..count]);
    count
}

impl Session {
    /// A session without breakpoints.
    pub fn new(process: Arc<Process>, control: Arc<Control>) -> Session {
        Session {
            process,
            control,
            points: Points::default(),
            actions: Vec::new(),
            others: Mode::Continue,
            files: Files::default(),
        }
    }

    /// What gdb is to be told, if something happened.
    pub fn stop_reason(&self) -> Option<MultiThreadStopReason<u64>> {
        let status = |status: i32| MultiThreadStopReason::Exited(status as u8);
        Some(match self.control.event()? {
            Event::Stopped(thread, stop) => {
                let signal = match stop {
                    Stop::Hit(hit) => return Some(architecture::stop_reason(tid(thread), Some(hit))),
                    Stop::Signal(signal) => signals::to_gdb(signal),
                    Stop::Interrupt => Signal::SIGINT,
                    Stop::NoneRuns => Signal::SIGZERO,
                };
                MultiThreadStopReason::SignalWithThread {
                    tid: tid(thread),
                    signal,
                }
            }
            Event::Ended => match self.process.ending() {
                Some(Ending::Exited(code)) => status(code),
                Some(Ending::Killed(signal)) => MultiThreadStopReason::Terminated(signals::to_gdb(signal)),
                Some(Ending::Limit) => status(STATUS_LIMIT),
                Some(Ending::Halted) => status(STATUS_HALTED),
                Some(Ending::Failed) | None => status(STATUS_FAILED),
            },
        })
    }

    fn look<T: Send + 'static>(
        &self,
        tid: Tid,
        work: impl FnOnce(&Processor) -> T + Send + 'static,
    ) -> Result<T, TargetError<SessionError>> {
        let looked = self.control.look(identifier(tid), work);
        looked.map_err(|_| TargetError::NonFatal)
    }

    fn change<T: Send + 'static>(
        &self,
        tid: Tid,
        work: impl FnOnce(&mut Processor) -> T + Send + 'static,
    ) -> Result<T, TargetError<SessionError>> {
        let changed = self.control.change(identifier(tid), work);
        changed.map_err(|_| TargetError::NonFatal)
    }

    fn act(&mut self, tid: Tid, mode: Mode, signal: Option<Signal>) {
        let signal = signal.and_then(signals::from_gdb);
        self.actions.push((identifier(tid), Action { mode, signal }));
    }

    /// What a thread is called, and what it does.
    fn describe(&self, thread: i32) -> String {
        let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap_or_default();
        let listed = self.control.threads();
        let call = listed
            .iter()
            .find(|listed| listed.identifier == thread)
            .and_then(|listed| listed.call);
        match call {
            None => name.trim_end().to_owned(),
            Some(number) => {
                let call =
                    table::find(number).map_or_else(|| number.to_string(), |call| call.name.to_owned());
                format!("{}, in {call}", name.trim_end())
            }
        }
    }
}

impl Target for Session {
    type Arch = Ia64;
    type Error = SessionError;

    fn base_ops(&mut self) -> BaseOps<'_, Ia64, SessionError> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_extended_mode(&mut self) -> Option<ExtendedModeOps<'_, Self>> {
        Some(self)
    }

    fn support_auxv(&mut self) -> Option<AuxvOps<'_, Self>> {
        Some(self)
    }

    fn support_exec_file(&mut self) -> Option<ExecFileOps<'_, Self>> {
        Some(self)
    }

    fn support_host_io(&mut self) -> Option<HostIoOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Session {
    fn read_registers(&mut self, registers: &mut AllRegisters, tid: Tid) -> TargetResult<(), Self> {
        *registers = self.look(tid, |processor| {
            let mut registers = AllRegisters::default();
            registers.read(processor);
            registers
        })?;
        Ok(())
    }

    fn write_registers(&mut self, registers: &AllRegisters, tid: Tid) -> TargetResult<(), Self> {
        let registers = registers.clone();
        self.change(tid, move |processor| registers.write(processor))
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        match self
            .control
            .read_memory(&self.process.memory, identifier(tid), start, data)
        {
            0 if !data.is_empty() => Err(TargetError::NonFatal),
            count => Ok(count),
        }
    }

    fn write_addrs(&mut self, start: u64, data: &[u8], tid: Tid) -> TargetResult<(), Self> {
        match self
            .control
            .write_memory(&self.process.memory, identifier(tid), start, data)
        {
            true => Ok(()),
            false => Err(TargetError::NonFatal),
        }
    }

    fn list_active_threads(&mut self, register: &mut dyn FnMut(Tid)) -> Result<(), SessionError> {
        for listed in self.control.threads() {
            register(tid(listed.identifier));
        }
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl SingleRegisterAccess<Tid> for Session {
    fn read_register(
        &mut self,
        tid: Tid,
        register: Register,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let value = self.look(tid, move |processor| register.read(processor))?;
        Ok(architecture::write_value(register, value, buffer))
    }

    fn write_register(&mut self, tid: Tid, register: Register, value: &[u8]) -> TargetResult<(), Self> {
        let value = architecture::words(value);
        match self.change(tid, move |processor| register.write(processor, value))? {
            true => Ok(()),
            false => Err(TargetError::NonFatal),
        }
    }
}

impl MultiThreadResume for Session {
    fn resume(&mut self) -> Result<(), SessionError> {
        self.control.resume(Plan {
            points: self.points.clone(),
            actions: self.actions.clone(),
            others: self.others,
        });
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), SessionError> {
        self.actions.clear();
        self.others = Mode::Continue;
        Ok(())
    }

    fn set_resume_action_continue(&mut self, tid: Tid, signal: Option<Signal>) -> Result<(), SessionError> {
        self.act(tid, Mode::Continue, signal);
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Session {
    fn set_resume_action_step(&mut self, tid: Tid, signal: Option<Signal>) -> Result<(), SessionError> {
        self.act(tid, Mode::Step, signal);
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Session {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), SessionError> {
        self.others = Mode::Hold;
        Ok(())
    }
}

impl ThreadExtraInfo for Session {
    fn thread_extra_info(&self, tid: Tid, buffer: &mut [u8]) -> Result<usize, SessionError> {
        let text = self.describe(identifier(tid));
        Ok(part(text.as_bytes(), 0, text.len(), buffer))
    }
}

impl Breakpoints for Session {
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

impl SwBreakpoint for Session {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.points.breakpoints.insert(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.points.breakpoints.remove(&address))
    }
}

impl HwBreakpoint for Session {
    fn add_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(address, kind)
    }

    fn remove_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(address, kind)
    }
}

impl HwWatchpoint for Session {
    fn add_hw_watchpoint(&mut self, start: u64, size: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        let point = architecture::watchpoint(start, size, kind);
        self.points.watchpoints.insert(point);
        Ok(true)
    }

    fn remove_hw_watchpoint(&mut self, start: u64, size: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        let point = architecture::watchpoint(start, size, kind);
        Ok(self.points.watchpoints.remove(&point))
    }
}

impl Auxv for Session {
    fn get_auxv(&self, offset: u64, length: usize, buffer: &mut [u8]) -> TargetResult<usize, Self> {
        Ok(part(&self.process.program.auxiliary, offset, length, buffer))
    }
}

impl ExecFile for Session {
    fn get_exec_file(
        &self,
        _: Option<Pid>,
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let path = self.process.program.path.as_os_str().as_bytes();
        Ok(part(path, offset, length, buffer))
    }
}

/// The crate asks here for the process's number; of what the mode is for, starting and attaching, nothing is done.
impl ExtendedMode for Session {
    fn run(&mut self, _: Option<&[u8]>, _: Args<'_, '_>) -> TargetResult<Pid, Self> {
        Err(TargetError::NonFatal)
    }

    fn attach(&mut self, _: Pid) -> TargetResult<(), Self> {
        Err(TargetError::NonFatal)
    }

    fn query_if_attached(&mut self, _: Pid) -> TargetResult<AttachKind, Self> {
        // So that a debugger which leaves lets the program run on.
        Ok(AttachKind::Attach)
    }

    fn kill(&mut self, _: Option<Pid>) -> TargetResult<ShouldTerminate, Self> {
        Ok(ShouldTerminate::Yes)
    }

    fn restart(&mut self) -> Result<(), SessionError> {
        Err(SessionError::Restart)
    }

    fn support_current_active_pid(&mut self) -> Option<CurrentActivePidOps<'_, Self>> {
        Some(self)
    }
}

impl CurrentActivePid for Session {
    fn current_active_pid(&mut self) -> Result<Pid, SessionError> {
        Ok(tid(std::process::id() as i32))
    }
}
