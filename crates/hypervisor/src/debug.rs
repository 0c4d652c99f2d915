//! A host with virtual machines as it is debugged: every virtual processor of every virtual machine is a thread, in
//! their order.
//!
//! Each thread has its own virtual machine's memory. Breakpoints and watchpoints are at virtual addresses of whatever
//! guest: a debugger that wants one guest's only says for which thread. What other virtual machines do between a halt
//! and the end of the round does not depend on the halt, so that a run under a debugger that changes nothing is the
//! same as without, to the byte.
//!
//! Limits: references of instructions that the monitor interprets, where translation is split, are not watched; with
//! ring compression a debugger sees the replacements of unprivileged instructions.

use std::sync::Arc;

use sidestep_ia64::Processor;
use sidestep_ia64::execution::guard::Guard;
use sidestep_machine::debug::target::Debuggee;
use sidestep_machine::machine::End;
use sidestep_machine::memory::GuestMemory;

use crate::cycle::Cycle;
use crate::host::sidecores::locked;
use crate::host::{Host, HostEnd};
use crate::virtual_machine::Activity;

/// A host whose virtual processors are debugged.
pub struct DebuggedHost<'a> {
    host: &'a mut Host,
    /// Virtual machine and number of each processor.
    processors: Vec<(usize, usize)>,
    /// The time at which it stops.
    until: Cycle,
    /// Is shown the host after each stretch.
    after: Box<dyn FnMut(&Host) + 'a>,
    failure: Option<String>,
}

impl<'a> DebuggedHost<'a> {
    /// All virtual processors of a host, which runs up to `until`; `after` is shown it after each stretch.
    pub fn new(host: &'a mut Host, until: Cycle, after: impl FnMut(&Host) + 'a) -> DebuggedHost<'a> {
        let machines = host.machines().iter().enumerate();
        let processors = machines
            .flat_map(|(index, machine)| {
                let count = locked(machine).processors().len();
                (0..count).map(move |processor| (index, processor))
            })
            .collect();
        DebuggedHost {
            host,
            processors,
            until,
            after: Box::new(after),
            failure: None,
        }
    }

    /// Why the host cannot go on, if it cannot.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

impl Debuggee for DebuggedHost<'_> {
    fn processors(&self) -> usize {
        self.processors.len()
    }

    fn with_processor<T>(&mut self, index: usize, work: impl FnOnce(&mut Processor) -> T) -> T {
        let (machine, processor) = self.processors[index];
        let mut machine = locked(&self.host.machines()[machine]);
        work(machine.processor_mut(processor).processor_mut())
    }

    fn describe(&self, index: usize) -> String {
        let (machine, processor) = self.processors[index];
        let machine = locked(&self.host.machines()[machine]);
        let activity = match machine.processors()[processor].activity() {
            _ if machine.exit_code().is_some() => "ended",
            Activity::Running => "running",
            Activity::Polling => "polling for an answer",
            Activity::Asking => "waiting for a device",
            Activity::Waiting => "waiting for an interrupt",
            Activity::Stopped => "stopped",
        };
        format!("{}, processor {processor}, {activity}", machine.name())
    }

    fn memory(&self, index: usize) -> Arc<GuestMemory> {
        let (machine, _) = self.processors[index];
        locked(&self.host.machines()[machine]).shared_memory()
    }

    fn run(&mut self, guards: &mut [Guard], cycles: u64) -> End {
        for (index, guard) in guards.iter().enumerate() {
            let (machine, processor) = self.processors[index];
            let mut machine = locked(&self.host.machines()[machine]);
            machine.processor_mut(processor).set_guard(Some(guard.clone()));
        }
        let until = self.host.time().saturating_add(cycles).min(self.until);
        let end = self.host.run(until);
        for (index, guard) in guards.iter_mut().enumerate() {
            let (machine, processor) = self.processors[index];
            let mut machine = locked(&self.host.machines()[machine]);
            if let Some(used) = machine.processor_mut(processor).set_guard(None) {
                *guard = used;
            }
        }
        (self.after)(self.host);
        match end {
            Ok(HostEnd::Ended) => End::Exit(self.host.exit_code().unwrap_or(0)),
            Ok(HostEnd::Deadlock) => End::Deadlock,
            Ok(HostEnd::Time) if self.host.time() >= self.until => End::Stopped,
            Ok(HostEnd::Time) => End::Limit,
            Ok(HostEnd::Halted) => {
                let halted = guards.iter().position(|guard| guard.hit().is_some());
                End::Halted(halted.expect("a guard has halted the host"))
            }
            Err(error) => {
                self.failure = Some(error.to_string());
                End::Stopped
            }
        }
    }
}
