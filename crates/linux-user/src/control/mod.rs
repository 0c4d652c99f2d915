//! Control over the threads of a process from outside it: what `ptrace` is between processes, for a debugger.
//!
//! Either all threads run or all are stopped. A thread that reports a [`Stop`] stops the others; one that is in a
//! system call counts as stopped, since it comes to a halt before it runs guest code again, and its call is left alone.
//! A stopped thread does itself what the debugger wants of its processor ([`Control::change`]), so a processor never
//! leaves the host thread that it belongs to. Breakpoints and watchpoints are those of a
//! [guard](sidestep_ia64::execution::guard): nothing is patched into memory.
//!
//! Where no debugger is, threads have no [`Hold`] and pay nothing for the possibility.

mod hold;
mod memory;
mod state;

use std::fmt;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};

use sidestep_ia64::Processor;
use sidestep_ia64::execution::guard::{Hit, Mode, Points};

use crate::host;
use crate::host::signals::set_of;
pub use hold::Hold;
use state::{Phase, Place, State, Work};

/// Who is told what happens to the threads of a process.
pub trait Listener: fmt::Debug + Send + Sync {
    /// Something happened that [`Control::event`] may tell; called by any thread, which must not be kept.
    fn wake(&self);

    /// Another program is about to replace this one.
    fn executes(&self, program: &[u8]);

    /// Descriptors that a forked child, which is not debugged, closes.
    fn descriptors(&self) -> Vec<RawFd>;
}

/// Why a thread stopped, and the others with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its guard halted it.
    Hit(Hit),
    /// This signal is about to be delivered to it.
    Signal(i32),
    /// The debugger wanted it.
    Interrupt,
    /// Every thread that was to run has ended.
    NoneRuns,
}

/// What a debugger has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A thread stopped, and all others are.
    Stopped(i32, Stop),
    /// All threads have ended; the process knows how.
    Ended,
}

/// How one thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Whether it runs, steps or stays.
    pub mode: Mode,
    /// The signal that it gets: instead of the one that stopped it, if one did.
    pub signal: Option<i32>,
}

/// How all threads go on.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where they halt.
    pub points: Points,
    /// What single threads do.
    pub actions: Vec<(i32, Action)>,
    /// What all others do, those included that begin later.
    pub others: Mode,
}

/// A thread as a debugger lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub identifier: i32,
    /// The number of the system call in which it is.
    pub call: Option<u64>,
}

/// Why a thread's registers cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchangeable {
    /// It has ended, or never was.
    #[error("there is no such thread")]
    NoThread,
    /// It is in a system call.
    #[error("the thread is in a system call")]
    InSystemCall,
    /// The debugger has left, or the threads run.
    #[error("the thread runs")]
    Runs,
}

/// The threads of a process, as a debugger controls them.
pub struct Control {
    state: Mutex<State>,
    /// Told when anything in `state` changes.
    changed: Condvar,
    listener: Arc<dyn Listener>,
}

impl fmt::Debug for Control {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Control")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

impl Control {
    /// Control over a process without threads; the first one stops before its first instruction.
    pub fn new(listener: Arc<dyn Listener>) -> Control {
        Control {
            state: Mutex::new(State::new()),
            changed: Condvar::new(),
            listener,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no thread panics while it changes the state of control")
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .expect("no thread panics while it changes the state of control")
    }

    /// Whether the debugger has left.
    pub fn is_over(&self) -> bool {
        self.state().phase == Phase::Over
    }

    /// Waits until the first thread has stopped before its first instruction.
    pub fn wait_for_first_thread(&self) {
        let mut state = self.state();
        while state.held.is_empty() || !state.is_settled() {
            state = self.wait(state);
        }
    }

    /// What happened, if something did. It is told once.
    pub fn event(&self) -> Option<Event> {
        let mut state = self.state();
        if std::mem::take(&mut state.has_ended) {
            return Some(Event::Ended);
        }
        if state.phase != Phase::Stopped || !state.is_settled() {
            return None;
        }
        let (identifier, stop) = state.reported.take()?;
        Some(Event::Stopped(identifier, stop))
    }

    /// The threads, in the order in which they began.
    pub fn threads(&self) -> Vec<Listed> {
        let listed = |held: &state::Held| Listed {
            identifier: held.identifier,
            call: match &held.place {
                Place::Calling { number, .. } => Some(*number),
                _ => None,
            },
        };
        self.state().held.iter().map(listed).collect()
    }

    /// Looks at the processor of a stopped thread; of one in a system call, as it was when it made the call.
    ///
    /// # Errors
    /// If there is no such thread, or it runs.
    pub fn look<T: Send + 'static>(
        &self,
        identifier: i32,
        work: impl FnOnce(&Processor) -> T + Send + 'static,
    ) -> Result<T, Unchangeable> {
        let state = self.state();
        match state.find(identifier).map(|held| &held.place) {
            Some(Place::Calling { processor, .. }) => Ok(work(processor)),
            Some(Place::Stopped) => self.perform(state, identifier, move |processor| work(processor)),
            Some(Place::Running) => Err(Unchangeable::Runs),
            None => Err(Unchangeable::NoThread),
        }
    }

    /// Changes the processor of a stopped thread.
    ///
    /// # Errors
    /// If there is no such thread, or it runs or is in a system call.
    pub fn change<T: Send + 'static>(
        &self,
        identifier: i32,
        work: impl FnOnce(&mut Processor) -> T + Send + 'static,
    ) -> Result<T, Unchangeable> {
        let state = self.state();
        match state.find(identifier).map(|held| &held.place) {
            Some(Place::Calling { .. }) => Err(Unchangeable::InSystemCall),
            Some(Place::Stopped) => self.perform(state, identifier, work),
            Some(Place::Running) => Err(Unchangeable::Runs),
            None => Err(Unchangeable::NoThread),
        }
    }

    /// Has a stopped thread do something.
    fn perform<T: Send + 'static>(
        &self,
        mut state: MutexGuard<'_, State>,
        identifier: i32,
        work: impl FnOnce(&mut Processor) -> T + Send + 'static,
    ) -> Result<T, Unchangeable> {
        let (done, result) = mpsc::sync_channel(1);
        let work: Work = Box::new(move |processor: &mut Processor| {
            // The debugger waits for it.
            let _ = done.send(work(processor));
        });
        let held = state.find_mut(identifier).ok_or(Unchangeable::NoThread)?;
        held.work = Some(work);
        drop(state);
        self.changed.notify_all();
        result.recv().map_err(|_| Unchangeable::NoThread)
    }

    /// Lets the threads go on. What had happened beside the last event is told first, and then nobody runs.
    pub fn resume(&self, plan: Plan) {
        let mut state = self.state();
        for (identifier, action) in &plan.actions {
            let Some(signal) = action.signal else { continue };
            let Some(held) = state.find_mut(*identifier) else {
                continue;
            };
            if held.is_at_signal {
                held.signal = Some(signal);
            } else {
                held.unreported |= set_of(signal);
                host::signals::send(*identifier, signal);
            }
        }
        state.plan = Arc::new(plan);
        state.continuation += 1;
        state.phase = Phase::Running;
        while let Some((identifier, stop)) = state.take_postponed() {
            if state.find(identifier).is_some() {
                state.stop(identifier, stop);
                break;
            }
        }
        drop(state);
        self.changed.notify_all();
        self.listener.wake();
    }

    /// Stops all threads, if they run.
    pub fn interrupt(&self) {
        let mut state = self.state();
        if state.phase == Phase::Running
            && let Some(first) = state.held.first()
        {
            let identifier = first.identifier;
            state.stop(identifier, Stop::Interrupt);
        }
        drop(state);
        self.listener.wake();
    }

    /// Gives control up: the threads run on as if there had been no debugger.
    pub fn leave(&self) {
        let mut state = self.state();
        state.phase = Phase::Over;
        state.call_out();
        drop(state);
        self.changed.notify_all();
    }

    /// The process ends: threads that the debugger keeps from running while others do must go.
    pub(crate) fn process_ends(&self) {
        self.state().ends = true;
        self.changed.notify_all();
    }

    /// All threads have ended; comes back when the debugger has been told, or has left.
    pub(crate) fn process_ended(&self) {
        let mut state = self.state();
        state.has_ended = true;
        self.listener.wake();
        while state.phase != Phase::Over {
            state = self.wait(state);
        }
    }

    /// Another program is about to replace the process's.
    pub(crate) fn executes(&self, program: &[u8]) {
        if !self.is_over() {
            self.listener.executes(program);
        }
    }

    /// What a forked child closes.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.listener.descriptors()
    }
}
