//! Policies: for a moment in time, which runnable task has which core.
//!
//! A policy is a pure function of a [`Moment`]: the time, the tasks with what is known of each, and the topology. It
//! keeps nothing between calls, so the same moment always has the same answer, and sets may change while tasks run
//! (a new policy value with the new sets is asked next time). Whoever drives it (the simulator, or a controller of a
//! real host) asks again when the answer's time is up and when a task becomes runnable, blocks, comes or goes.
//!
//! The driver's duty: [`TaskView::served_ns`] is the time at which the task's last whole grant ended, because its slot
//! ended or because it blocked. Time spent as [`Grant::Fill`] does not count.

mod coscheduled;
mod free;
mod relaxed;
#[cfg(test)]
mod tests;

pub use coscheduled::{Coscheduled, IdleCores};
pub use free::Free;
pub use relaxed::Relaxed;

use std::fmt::Debug;
use std::sync::Arc;

use crate::identity::{CoreId, ProgramId, TaskId};
use crate::topology::Topology;

/// What a policy knows of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// The machine or process it belongs to.
    pub program: ProgramId,
    /// Whether it could run now; a spinning task can.
    pub runnable: bool,
    /// Whether it has got an interrupt since it blocked last.
    pub signalled: bool,
    /// When its last whole grant ended; zero before the first.
    pub served_ns: u64,
    /// Since when it has its core; `None` if it has none.
    pub granted_ns: Option<u64>,
    /// How far it is: time it ran, and for time it was blocked, as far as the furthest behind of its runnable siblings.
    pub progress_ns: u64,
    /// The core it ran on last.
    pub core: Option<CoreId>,
    /// The core whose queue it is in when nobody coordinates.
    pub home: CoreId,
}

impl TaskView {
    /// Whether it has had its core for less than a slot.
    fn keeps_core(&self, now_ns: u64, slot_ns: u64) -> bool {
        self.granted_ns.is_some_and(|since| now_ns < since + slot_ns)
    }
}

/// What a decision may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// Now.
    pub now_ns: u64,
    /// All tasks, by number.
    pub tasks: &'a [TaskView],
    /// The host.
    pub topology: &'a Topology,
}

/// What a core is for, until the next decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// For nobody: no task wants it, or none may have it.
    Idle,
    /// Kept for a blocked member of a set that runs now.
    Reserved(TaskId),
    /// For a task as its policy intends.
    Run(TaskId),
    /// For a task that uses what would otherwise be idle.
    Fill(TaskId),
}

impl Grant {
    /// The task that runs, if one does.
    pub fn running(self) -> Option<TaskId> {
        match self {
            Self::Run(task) | Self::Fill(task) => Some(task),
            Self::Idle | Self::Reserved(_) => None,
        }
    }
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// One for each core.
    pub grants: Vec<Grant>,
    /// When to ask again at the latest; later than now.
    pub until_ns: u64,
}

/// Who runs where.
pub trait Policy: Debug + Send + Sync {
    /// Decides for a moment.
    fn assign(&self, moment: &Moment<'_>) -> Assignment;
}

impl Policy for Arc<dyn Policy> {
    fn assign(&self, moment: &Moment<'_>) -> Assignment {
        self.as_ref().assign(moment)
    }
}

/// Whether tasks with interrupts go first in the slot that `now_ns` is in: in every second one, so that the others have
/// theirs.
fn is_turn_of_signalled(now_ns: u64, slot_ns: u64) -> bool {
    !(slot_end(now_ns, slot_ns, 0) / slot_ns).is_multiple_of(2)
}

/// The end of the slot that `now_ns` is in, when slots of a length begin at multiples of it plus an offset below it.
fn slot_end(now_ns: u64, slot_ns: u64, offset_ns: u64) -> u64 {
    assert!(
        slot_ns > 0 && offset_ns < slot_ns,
        "a slot has a length, and its offset is less"
    );
    let since = (now_ns + slot_ns - offset_ns) % slot_ns;
    now_ns + slot_ns - since
}
