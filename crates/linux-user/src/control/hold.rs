//! A debugger's hold on one thread: the thread's side of control.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard};

use sidestep_ia64::execution::guard::{Guard, Hit, Mode};
use sidestep_ia64::{Driver, Exit, Processor};

use super::state::{Held, Phase, Place, State};
use super::{Control, Stop};
use crate::host;
use crate::host::signals::set_of;

/// What keeps a thread under control.
pub struct Hold {
    control: Arc<Control>,
    identifier: i32,
    guard: Guard,
    /// The continuation that the guard is for.
    continuation: u64,
    /// The breakpoint that the thread was last reported to be at.
    reported: Option<u64>,
}

impl Hold {
    /// Takes hold of the calling thread; none once the debugger has left.
    pub(crate) fn new(control: Arc<Control>, attention: Arc<AtomicBool>) -> Option<Hold> {
        let identifier = host::thread_id();
        let mut state = control.state();
        if state.phase == Phase::Over {
            return None;
        }
        state.held.push(Held {
            identifier,
            attention,
            place: Place::Running,
            is_at_signal: false,
            signal: None,
            unreported: 0,
            work: None,
        });
        let continuation = state.continuation;
        let guard = Guard::new(state.plan.points.clone(), Mode::Continue, None);
        drop(state);
        Some(Hold {
            control,
            identifier,
            guard,
            continuation,
            reported: None,
        })
    }

    /// Waits while the thread is not to run; to be called outside the world, before the thread goes in. False once
    /// the debugger has left.
    pub(crate) fn wait(&mut self, processor: &mut Processor) -> bool {
        let control = Arc::clone(&self.control);
        let mut state = control.wait_stopped(control.state(), self.identifier, processor);
        if state.phase == Phase::Over {
            return false;
        }
        if let Some(held) = state.find_mut(self.identifier) {
            held.place = Place::Running;
        }
        if state.continuation != self.continuation {
            self.continuation = state.continuation;
            let mode = state.mode(self.identifier);
            self.guard = Guard::new(state.plan.points.clone(), mode, self.reported.take());
        }
        true
    }

    /// The guard has halted the thread.
    pub(crate) fn halted(&mut self, processor: &Processor) {
        let Some(hit) = self.guard.hit() else { return };
        let (ip, slot) = processor.instruction_pointer();
        let is_told = self.control.state().stop(self.identifier, Stop::Hit(hit));
        // A breakpoint that is not told is hit again.
        self.reported = (is_told && hit == Hit::Breakpoint).then_some(ip | u64::from(slot));
    }

    /// A system call begins, with these registers. The thread counts as stopped from now on, until it wants to run
    /// guest code again.
    pub(crate) fn enter_call(&self, number: u64, processor: Processor) {
        let mut state = self.control.state();
        if let Some(held) = state.find_mut(self.identifier) {
            held.place = Place::Calling {
                number,
                processor: Box::new(processor),
            };
        }
        if state.phase == Phase::Stopped {
            self.control.tell_if_settled(&state);
        }
    }

    /// A signal is about to be delivered: whether it is to be. Stops all threads and asks the debugger, unless the
    /// signal is from there.
    pub(crate) fn signal(&mut self, signal: i32, processor: &mut Processor) -> bool {
        let mut state = self.control.state();
        let Some(held) = state.find_mut(self.identifier) else {
            return true;
        };
        if held.unreported & set_of(signal) != 0 {
            held.unreported &= !set_of(signal);
            return true;
        }
        held.place = Place::Running;
        held.is_at_signal = true;
        held.signal = None;
        state.stop(self.identifier, Stop::Signal(signal));
        let mut state = self.control.wait_stopped(state, self.identifier, processor);
        let is_over = state.phase == Phase::Over;
        let Some(held) = state.find_mut(self.identifier) else {
            return true;
        };
        held.place = Place::Running;
        held.is_at_signal = false;
        match held.signal.take() {
            Some(wanted) if wanted == signal => true,
            Some(other) => {
                held.unreported |= set_of(other);
                host::signals::send(self.identifier, other);
                false
            }
            None => is_over,
        }
    }

    /// A handler was entered: that was a step.
    pub(crate) fn has_entered_handler(&mut self, processor: &mut Processor) {
        if self.wait(processor) {
            self.guard.has_interpreted();
        }
    }

    /// The thread ends.
    pub(crate) fn end(&self) {
        let mut state = self.control.state();
        state.held.retain(|held| held.identifier != self.identifier);
        let nobody_runs = !state.held.iter().any(|held| state.lets_run(held.identifier));
        if let Some(first) = state.held.first().map(|held| held.identifier)
            && nobody_runs
            && !state.ends
        {
            state.stop(first, Stop::NoneRuns);
        }
        self.control.tell_if_settled(&state);
    }
}

impl Driver for Hold {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        self.guard.run(processor, limit)
    }
}

impl Control {
    /// Stops a thread until it may run, which does meanwhile what the debugger wants.
    fn wait_stopped<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        identifier: i32,
        processor: &mut Processor,
    ) -> MutexGuard<'a, State> {
        loop {
            let ends = state.phase == Phase::Running && state.ends;
            if ends || state.lets_run(identifier) {
                return state;
            }
            let Some(held) = state.find_mut(identifier) else {
                return state;
            };
            if let Some(work) = held.work.take() {
                drop(state);
                work(processor);
                state = self.state();
                continue;
            }
            if !matches!(held.place, Place::Stopped) {
                held.place = Place::Stopped;
                self.tell_if_settled(&state);
            }
            state = self.wait(state);
        }
    }

    /// Tells whoever waits for it that no thread runs any more, if that is so.
    fn tell_if_settled(&self, state: &State) {
        if state.is_settled() {
            self.changed.notify_all();
            self.listener.wake();
        }
    }
}
