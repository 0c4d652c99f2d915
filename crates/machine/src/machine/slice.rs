//! One processor for one stretch of time: what both executors do with it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Driver, Exit, Fault};

use super::hypercall::{Call, FAILED, HypercallHandler, Reaction};
use super::interrupt_block::LocalIdentifier;
use super::platform::Platform;
use super::{Activity, Cpu, End};

/// Lets a processor's time go on to a tick: it executes, or waits as long as no interrupt is pending. Comes back
/// early with the machine's end, or with nothing when a stop was requested.
pub(super) fn run_until<D: Driver>(
    platform: &Arc<Platform>,
    handlers: &[Box<dyn HypercallHandler>],
    (index, cpu, driver): (usize, &mut Cpu, &mut D),
    until_tick: u64,
) -> Option<End> {
    while cpu.ticks < until_tick {
        if let Some(work) = platform.take_start(index) {
            work(&mut cpu.processor);
            cpu.activity = Activity::Running;
        }
        let ticks_left = until_tick - cpu.ticks;
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
                if let Some(end) = execute(platform, handlers, (index, cpu, driver), ticks_left) {
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
    until_tick: u64,
) -> Option<End> {
    let seen = platform.wakeups.count();
    platform.wakeups.call(Some(cpu.processor.attention()));
    let mut end = None;
    while end.is_none()
        && cpu.ticks < until_tick
        && cpu.activity == Activity::Running
        && platform.wakeups.count() == seen
    {
        let ticks_left = until_tick - cpu.ticks;
        end = execute(platform, handlers, (index, cpu, driver), ticks_left);
    }
    platform.wakeups.call(None);
    end
}

/// Lets time pass without instructions.
pub(super) fn pass(cpu: &mut Cpu, ticks: u64) {
    cpu.processor.advance_clock(ticks);
    cpu.ticks = cpu.ticks.saturating_add(ticks);
}

/// Executes for at most so many ticks, up to what needs the machine.
fn execute<D: Driver>(
    platform: &Arc<Platform>,
    handlers: &[Box<dyn HypercallHandler>],
    (index, cpu, driver): (usize, &mut Cpu, &mut D),
    ticks_max: u64,
) -> Option<End> {
    let attention = cpu.processor.attention();
    attention.store(false, Ordering::Release);
    for purge in platform.purges.enter(index) {
        cpu.processor.purge_translations(purge);
    }
    if platform.take_stale(index) {
        cpu.processor.forget_instructions();
    }
    // Whoever asked for a stop after the flag was cleared has set it again.
    let before = cpu.processor.instructions_retired();
    let exit = driver.run(&mut cpu.processor, ticks_max);
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
        // A guest that cannot even fetch its handlers lets time pass all the same.
        Exit::Limit => {
            pass(cpu, ticks_max - retired);
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
