//! One processor for one stretch of time: what both executors do with it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Driver, Exit, Fault};

use super::hypercall::{Call, FAILED, HypercallHandler, Reaction};
use super::interrupt_block::LocalIdentifier;
use super::platform::Platform;
use super::{Activity, Cpu, End};

/// How far a processor goes on.
#[derive(Clone, Copy)]
pub(super) struct Until {
    tick: u64,
    executed: u64,
}

impl Until {
    /// Up to a tick of the processor's time, or until it has executed so many instructions more.
    pub fn new(cpu: &Cpu, tick: u64, instructions_max: u64) -> Until {
        Until {
            tick,
            executed: cpu.executed().saturating_add(instructions_max),
        }
    }

    fn is_reached(self, cpu: &Cpu) -> bool {
        cpu.ticks >= self.tick || cpu.executed() >= self.executed
    }
}

/// Lets a processor's time go on: it executes, or waits as long as no interrupt is pending. Comes back early with the
/// machine's end, or with nothing when a stop was requested.
pub(super) fn run_until<D: Driver>(
    platform: &Arc<Platform>,
    handlers: &[Box<dyn HypercallHandler>],
    (index, cpu, driver): (usize, &mut Cpu, &mut D),
    until: Until,
) -> Option<End> {
    while !until.is_reached(cpu) {
        if let Some(work) = platform.take_start(index) {
            work(&mut cpu.processor);
            cpu.activity = Activity::Running;
        }
        let ticks_left = until.tick - cpu.ticks;
        match cpu.activity {
            Activity::Stopped => pass(cpu, ticks_left),
            Activity::Waiting if cpu.processor.has_deliverable_interrupt() => {
                cpu.activity = Activity::Running;
            }
            Activity::Waiting => {
                let timer = cpu.processor.ticks_to_timer().unwrap_or(u64::MAX);
                pass(cpu, ticks_left.min(timer));
            }
            Activity::Running => {
                if platform.is_stop_requested() {
                    return None;
                }
                if let Some(end) = execute(platform, handlers, (index, cpu, driver), until) {
                    return Some(end);
                }
            }
        }
    }
    None
}

/// Lets a processor that executes do so up to a tick, or until it waits or something happens that others may wait for:
/// an interrupt is sent, work is scheduled, a stop is requested.
pub(super) fn run_undisturbed<D: Driver>(
    platform: &Arc<Platform>,
    handlers: &[Box<dyn HypercallHandler>],
    (index, cpu, driver): (usize, &mut Cpu, &mut D),
    until: Until,
) -> Option<End> {
    let seen = platform.wakeups.count();
    platform.wakeups.call(Some(cpu.processor.attention()));
    let mut end = None;
    while end.is_none()
        && !until.is_reached(cpu)
        && cpu.activity == Activity::Running
        && platform.wakeups.count() == seen
    {
        end = execute(platform, handlers, (index, cpu, driver), until);
    }
    platform.wakeups.call(None);
    end
}

/// Lets time pass without instructions.
pub(super) fn pass(cpu: &mut Cpu, ticks: u64) {
    cpu.processor.advance_clock(ticks);
    cpu.ticks = cpu.ticks.saturating_add(ticks);
}

/// Executes up to what needs the machine.
fn execute<D: Driver>(
    platform: &Arc<Platform>,
    handlers: &[Box<dyn HypercallHandler>],
    (index, cpu, driver): (usize, &mut Cpu, &mut D),
    until: Until,
) -> Option<End> {
    let attention = cpu.processor.attention();
    attention.store(false, Ordering::Release);
    for purge in platform.purges.enter(index) {
        cpu.processor.purge_translations(purge);
    }
    if platform.take_stale(index) {
        cpu.processor.forget_instructions();
    }
    for page in platform.memory.take_changed_code(index) {
        cpu.processor.forget_instructions_of(page);
    }
    // Whoever asked for a stop after the flag was cleared has set it again.
    let before = cpu.processor.instructions_retired();
    let instructions_left = until.executed - cpu.executed();
    let exit = driver.run_for(&mut cpu.processor, until.tick - cpu.ticks, instructions_left);
    let retired = cpu.processor.instructions_retired() - before;
    platform.purges.leave(index);
    platform.loops.look(index, &cpu.processor);
    cpu.ticks = cpu.ticks.saturating_add(driver.elapsed(retired));
    let identifier = cpu.processor.system.control[usize::from(control::LID)];
    platform
        .interrupts
        .identify(index, LocalIdentifier::from_register(identifier));
    match exit {
        Exit::Halted => Some(End::Halted(index)),
        Exit::Attention => None,
        Exit::Limit => {
            if retired < instructions_left {
                // A guest that cannot even fetch its handlers lets time pass all the same.
                pass(cpu, until.tick.saturating_sub(cpu.ticks));
            }
            None
        }
        Exit::Fault(fault) => hypercall(platform, handlers, (index, cpu), fault),
    }
}

fn hypercall(
    platform: &Arc<Platform>,
    handlers: &[Box<dyn HypercallHandler>],
    (index, cpu): (usize, &mut Cpu),
    fault: Fault,
) -> Option<End> {
    assert!(
        fault.kind == sidestep_ia64::FaultKind::Break,
        "in system mode only hypercalls leave a run: {fault:?}"
    );
    let mut call = Call {
        index,
        ticks: cpu.ticks,
        processor: &mut cpu.processor,
        platform,
    };
    let answer = handlers.iter().find_map(|handler| handler.call(&mut call));
    let reaction = answer.unwrap_or_else(|| {
        call.set_result(0, FAILED);
        Reaction::Return
    });
    // A call takes the time of an instruction.
    pass(cpu, 1);
    if reaction != Reaction::Resume {
        cpu.processor.skip_instruction();
    }
    match reaction {
        Reaction::Return | Reaction::Resume => None,
        Reaction::Wait => {
            cpu.activity = Activity::Waiting;
            None
        }
        Reaction::Stop => {
            cpu.activity = Activity::Stopped;
            None
        }
        Reaction::Exit(code) => Some(End::Exit(code)),
    }
}
