//! One processor for one stretch of time: what both executors do with it.

use std::sync::atomic::Ordering;

use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Driver, Exit, Fault};

use super::hypercall::{Call, FAILED, HypercallHandler, Reaction};
use super::interrupt_block::LocalIdentifier;
use super::platform::Platform;
use super::{Activity, Cpu, End};

/// Lets a processor's time go on to `until`: it executes, or waits as long as no interrupt is pending. Comes back
/// early with the machine's end, or with nothing when a stop was requested.
pub(super) fn run_until<D: Driver>(
    platform: &Platform,
    handlers: &[Box<dyn HypercallHandler>],
    (index, cpu, driver): (usize, &mut Cpu, &mut D),
    until: u64,
) -> Option<End> {
    while cpu.time < until {
        if let Some(work) = platform.take_start(index) {
            work(&mut cpu.processor);
            cpu.activity = Activity::Running;
        }
        let remaining = until - cpu.time;
        match cpu.activity {
            Activity::Stopped => pass(cpu, remaining),
            Activity::Waiting if cpu.processor.has_deliverable_interrupt() => {
                cpu.activity = Activity::Running;
            }
            Activity::Waiting => {
                let timer = cpu.processor.ticks_to_timer().unwrap_or(u64::MAX);
                pass(cpu, remaining.min(timer));
            }
            Activity::Running => {
                if platform.is_stop_requested() {
                    return None;
                }
                if let Some(end) = execute(platform, handlers, (index, cpu, driver), remaining) {
                    return Some(end);
                }
            }
        }
    }
    None
}

/// Lets time pass without instructions.
pub(super) fn pass(cpu: &mut Cpu, ticks: u64) {
    cpu.processor.advance_clock(ticks);
    cpu.time = cpu.time.saturating_add(ticks);
}

/// Executes at most `limit` instructions, up to what needs the machine.
fn execute<D: Driver>(
    platform: &Platform,
    handlers: &[Box<dyn HypercallHandler>],
    (index, cpu, driver): (usize, &mut Cpu, &mut D),
    limit: u64,
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
    let exit = driver.run(&mut cpu.processor, limit);
    let retired = cpu.processor.instructions_retired() - before;
    platform.purges.leave(index);
    cpu.time = cpu.time.saturating_add(driver.elapsed(retired));
    let identifier = cpu.processor.system.control[usize::from(control::LID)];
    platform
        .interrupts
        .identify(index, LocalIdentifier::from_register(identifier));
    match exit {
        Exit::Halted => Some(End::Halted(index)),
        Exit::Attention => None,
        // A guest that cannot even fetch its handlers lets time pass all the same.
        Exit::Limit => {
            pass(cpu, limit - retired);
            None
        }
        Exit::Fault(fault) => hypercall(platform, handlers, (index, cpu), fault),
    }
}

fn hypercall(
    platform: &Platform,
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
