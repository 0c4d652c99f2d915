//! What threads and their debugger have in common.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_ia64::Processor;
use sidestep_ia64::execution::guard::{Hit, Mode, Points};

use super::{Plan, Stop};
use crate::host::signals::SignalSet;

/// What all threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// They stop, or are stopped.
    Stopped,
    /// They run, as the plan says.
    Running,
    /// They run, and the debugger has left.
    Over,
}

/// Where a thread is.
pub enum Place {
    /// Anywhere else.
    Running,
    /// In a system call.
    Calling {
        /// Its number.
        number: u64,
        /// The registers with which it was made.
        processor: Box<Processor>,
    },
    /// It waits, and does what the debugger wants.
    Stopped,
}

/// What a debugger wants of a stopped thread.
pub type Work = Box<dyn FnOnce(&mut Processor) + Send>;

/// A thread under control.
pub struct Held {
    /// Its number.
    pub identifier: i32,
    /// Makes its processor leave its run.
    pub attention: Arc<AtomicBool>,
    /// Where it is.
    pub place: Place,
    /// Whether it stopped before the delivery of a signal, and waits to be told whether to deliver it.
    pub is_at_signal: bool,
    /// The signal to deliver then.
    pub signal: Option<i32>,
    /// Signals that come from the debugger, and are not reported to it.
    pub unreported: SignalSet,
    /// What it is to do next.
    pub work: Option<Work>,
}

/// The state of control.
pub struct State {
    pub phase: Phase,
    /// How threads go on.
    pub plan: Arc<Plan>,
    /// Counts the plans.
    pub continuation: u64,
    /// The threads, in the order in which they began.
    pub held: Vec<Held>,
    /// What made the threads stop, until the debugger knows.
    pub reported: Option<(i32, Stop)>,
    /// What else happened until all had stopped, and would not happen again.
    pub postponed: VecDeque<(i32, Stop)>,
    /// Whether the process is to end.
    pub ends: bool,
    /// Whether all threads have ended, until the debugger knows.
    pub has_ended: bool,
}

impl State {
    /// Stopped, and nobody there.
    pub fn new() -> State {
        State {
            phase: Phase::Stopped,
            plan: Arc::new(Plan {
                points: Points::default(),
                actions: Vec::new(),
                others: Mode::Continue,
            }),
            continuation: 0,
            held: Vec::new(),
            reported: None,
            postponed: VecDeque::new(),
            ends: false,
            has_ended: false,
        }
    }

    /// A thread.
    pub fn find(&self, identifier: i32) -> Option<&Held> {
        self.held.iter().find(|held| held.identifier == identifier)
    }

    /// A thread, to change.
    pub fn find_mut(&mut self, identifier: i32) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.identifier == identifier)
    }

    /// Whether no thread runs.
    pub fn is_settled(&self) -> bool {
        self.held.iter().all(|held| !matches!(held.place, Place::Running))
    }

    /// What a thread does while the others run.
    pub fn mode(&self, identifier: i32) -> Mode {
        let own = self.plan.actions.iter().find(|(thread, _)| *thread == identifier);
        own.map_or(self.plan.others, |(_, action)| action.mode)
    }

    /// Whether a thread may run.
    pub fn lets_run(&self, identifier: i32) -> bool {
        match self.phase {
            Phase::Stopped => false,
            Phase::Running => self.mode(identifier) != Mode::Hold,
            Phase::Over => true,
        }
    }

    /// Stops all threads for what happened to one. Where they stop already it is told later, unless it will happen
    /// again when the thread goes on. Answers whether it is told now.
    pub fn stop(&mut self, identifier: i32, stop: Stop) -> bool {
        if self.phase == Phase::Running {
            self.phase = Phase::Stopped;
            self.reported = Some((identifier, stop));
            self.call_out();
            return true;
        }
        if self.phase == Phase::Stopped && matches!(stop, Stop::Signal(_) | Stop::Hit(Hit::Watchpoint(..))) {
            self.postponed.push_back((identifier, stop));
        }
        false
    }

    /// Takes what happened to a thread that may run, and was not told.
    pub fn take_postponed(&mut self) -> Option<(i32, Stop)> {
        let waits =
            |(identifier, _): &(i32, Stop)| self.find(*identifier).is_none() || self.lets_run(*identifier);
        let at = self.postponed.iter().position(waits)?;
        self.postponed.remove(at)
    }

    /// Makes all processors leave their runs.
    pub fn call_out(&self) {
        for held in &self.held {
            held.attention.store(true, Ordering::Release);
        }
    }
}
