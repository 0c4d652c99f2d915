//! Relaxed coscheduling: tasks run one by one, but none gets further ahead of its siblings than a bound.
//!
//! After VMware's description of ESXi 4: a vCPU that is ahead of the slowest of its runnable siblings by more than the
//! allowed skew is stopped until they have caught up; a blocked vCPU holds nobody back. Among tasks that may run, the
//! longest waiting go first; in every second slot those that an interrupt has woken go before the others, and keep
//! their cores for a slot at the most while others of them wait. Equally long waits are ordered by a permutation that
//! changes with the slot, since the numbering of tasks must not act as a hidden set.
//!
//! **Bound.** A decision ends before a running task can exceed the skew, so with an exact driver no task's progress is
//! ever more than `skew_max_ns` above that of a runnable sibling.
//! **Time goes on.** A task that would be stopped within an eighth of the skew is not started: tasks at the bound would
//! take turns by single nanoseconds.
//! **No starvation.** The task furthest behind in a program may always run, and of the tasks that may run those that
//! waited longest do, in every second slot at least.

use super::{Assignment, Grant, Moment, Policy, is_turn_of_signalled, slot_end};
use crate::identity::TaskId;
use crate::scatter::scatter;
use crate::topology::Placement;

/// Free placement with bounded skew between the tasks of a program.
#[derive(Clone, Copy, Debug)]
pub struct Relaxed {
    /// The length of a slot.
    pub slot_ns: u64,
    /// How far a task may be ahead of the slowest runnable task of its program.
    pub skew_max_ns: u64,
    /// How cores are chosen.
    pub placement: Placement,
}

impl Policy for Relaxed {
    fn assign(&self, moment: &Moment<'_>) -> Assignment {
        assert!(self.skew_max_ns > 0, "without any skew nothing could run alone");
        let programs = moment
            .tasks
            .iter()
            .map(|view| view.program.index() + 1)
            .max()
            .unwrap_or(0);
        let mut slowest_ns = vec![u64::MAX; programs];
        for view in moment.tasks.iter().filter(|view| view.runnable) {
            let slowest = &mut slowest_ns[view.program.index()];
            *slowest = view.progress_ns.min(*slowest);
        }
        let lead_ns = |task: TaskId| {
            let view = &moment.tasks[task.index()];
            view.progress_ns.saturating_sub(slowest_ns[view.program.index()])
        };
        let runs_at_least_ns = (self.skew_max_ns / 8).max(1);
        let slot = moment.now_ns / self.slot_ns;
        let mut eligible: Vec<TaskId> = (0..moment.tasks.len())
            .map(TaskId::new)
            .filter(|&task| moment.tasks[task.index()].runnable)
            .filter(|&task| lead_ns(task).saturating_add(runs_at_least_ns) <= self.skew_max_ns)
            .collect();
        let is_turn = is_turn_of_signalled(moment.now_ns, self.slot_ns);
        eligible.sort_by_cached_key(|task| {
            let view = &moment.tasks[task.index()];
            let is_called = is_turn && view.signalled;
            (
                !is_called,
                !(is_called && view.keeps_core(moment.now_ns, self.slot_ns)),
                view.served_ns,
                scatter(&[slot, u64::from(task.0)]),
                *task,
            )
        });
        let cores = moment.topology.cores();
        eligible.truncate(cores);

        let before: Vec<_> = eligible
            .iter()
            .map(|task| moment.tasks[task.index()].core)
            .collect();
        let chosen = moment
            .topology
            .choose(&vec![true; cores], &before, self.placement)
            .expect("no more tasks than cores");
        let mut grants = vec![Grant::Idle; cores];
        let mut until_ns = slot_end(moment.now_ns, self.slot_ns, 0);
        for (&task, core) in eligible.iter().zip(chosen) {
            grants[core.index()] = Grant::Run(task);
            until_ns = until_ns.min(moment.now_ns + self.skew_max_ns - lead_ns(task));
        }
        Assignment { grants, until_ns }
    }
}
