//! Free scheduling: every core serves its own queue and knows nothing of the others.
//!
//! The baseline of an ordinary operating system. A core's queue holds the runnable tasks whose home it is; each has a
//! slot in turn. The cores' slots begin at different times (core *c* of *n* is *c/n* of a slot late), since nothing
//! aligns them on a real host. A core with an empty queue takes a waiting task from another.
//!
//! In every second slot tasks that got an interrupt since they blocked go before the others of their queue, the longest
//! waiting first, and keep the core for a slot at the most while others of them wait: an interrupt for a task without a
//! core is not to wait for all turns before it.
//!
//! **No starvation.** A runnable task is next after at most as many slots as its home's queue is long, twice as many
//! while there are tasks with interrupts; and of those one after the other has a slot.

use super::{Assignment, Grant, Moment, Policy, slot_end};
use crate::identity::TaskId;

/// One queue for each core, no coordination.
#[derive(Clone, Copy, Debug)]
pub struct Free {
    /// The length of a slot.
    pub slot_ns: u64,
}

impl Free {
    fn offset_ns(&self, core: usize, cores: usize) -> u64 {
        (u128::from(self.slot_ns) * core as u128 / cores as u128) as u64
    }

    /// Whose turn it is in a slot, as a place in a queue.
    fn turn(&self, moment: &Moment<'_>, queue: &[TaskId], core: usize, slot: u64) -> usize {
        let view = |place: &usize| &moment.tasks[queue[*place].index()];
        let (signalled, others): (Vec<usize>, Vec<usize>) =
            (0..queue.len()).partition(|place| view(place).signalled);
        if signalled.is_empty() {
            return (slot % queue.len() as u64) as usize;
        }
        if slot.is_multiple_of(2) && !others.is_empty() {
            return others[(slot / 2 % others.len() as u64) as usize];
        }
        let keeps = |place: &usize| {
            let view = view(place);
            let is_here = view.core.is_some_and(|here| here.index() == core);
            is_here && view.keeps_core(moment.now_ns, self.slot_ns)
        };
        let first = |place: &usize| (!keeps(place), view(place).served_ns, queue[*place]);
        let place = signalled.into_iter().min_by_key(first);
        place.expect("some task is signalled")
    }
}

impl Policy for Free {
    fn assign(&self, moment: &Moment<'_>) -> Assignment {
        let cores = moment.topology.cores();
        let mut queues: Vec<Vec<TaskId>> = vec![Vec::new(); cores];
        for (task, view) in moment.tasks.iter().enumerate().filter(|(_, view)| view.runnable) {
            queues[view.home.index() % cores].push(TaskId::new(task));
        }
        let mut grants = vec![Grant::Idle; cores];
        let mut waiting: Vec<TaskId> = Vec::new();
        let mut until_ns = u64::MAX;
        for (core, queue) in queues.iter().enumerate() {
            let end_ns = slot_end(moment.now_ns, self.slot_ns, self.offset_ns(core, cores));
            until_ns = until_ns.min(end_ns);
            if !queue.is_empty() {
                let turn = self.turn(moment, queue, core, end_ns / self.slot_ns);
                grants[core] = Grant::Run(queue[turn]);
                waiting.extend(
                    queue
                        .iter()
                        .enumerate()
                        .filter(|&(place, _)| place != turn)
                        .map(|(_, &task)| task),
                );
            }
        }
        for core in (0..cores).filter(|&core| queues[core].is_empty()) {
            let rank = |task: &TaskId| {
                let view = &moment.tasks[task.index()];
                (
                    view.core.is_none_or(|last| last.index() != core),
                    view.served_ns,
                    *task,
                )
            };
            let Some(at) = (0..waiting.len()).min_by_key(|&at| rank(&waiting[at])) else {
                break;
            };
            grants[core] = Grant::Fill(waiting.swap_remove(at));
        }
        Assignment { grants, until_ns }
    }
}
