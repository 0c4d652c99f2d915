//! Coscheduling by sets: the members of a set run at the same time, or not at all.
//!
//! With one set for each program this is full coscheduling, with smaller sets it is partial coscheduling. Time is cut
//! into slots, common to all cores. The set whose runnable members have waited longest goes first and gets a core for
//! every member; the next sets follow while they fit whole. Of equally long waits the one that is less far goes first.
//! A set with more members than the host has cores runs in parts of the host's size, the longest waiting members first.
//!
//! In every second slot sets with a member that an interrupt has woken go before the others, the longest waiting first,
//! and keep their cores for a slot at the most while others of them wait.
//!
//! **No starvation.** In every slot but those the longest-waiting runnable task is in the first set, so it runs, and
//! ranks last afterwards: a task that stays runnable runs within as many slots as there are tasks, however the sets
//! change, and within twice as many while there are tasks with interrupts; with unchanging sets, within as many slots,
//! or twice as many, as there are parts of sets.

use super::{Assignment, Grant, Moment, Policy, is_turn_of_signalled, slot_end};
use crate::identity::TaskId;
use crate::sets::CoscheduledSets;
use crate::topology::Placement;

/// What becomes of cores that no whole set can use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdleCores {
    /// They stay idle, and so do those of blocked members: strict coscheduling.
    #[default]
    Kept,
    /// Any runnable task may use them: work-conserving.
    Filled,
}

/// Coscheduling by given sets; a task in no set is a set of its own.
#[derive(Clone, Debug)]
pub struct Coscheduled {
    /// Who runs together.
    pub sets: CoscheduledSets,
    /// The length of a slot.
    pub slot_ns: u64,
    /// What becomes of idle cores.
    pub idle: IdleCores,
    /// How cores are chosen.
    pub placement: Placement,
}

impl Policy for Coscheduled {
    fn assign(&self, moment: &Moment<'_>) -> Assignment {
        let cores = moment.topology.cores();
        let mut grants = vec![Grant::Idle; cores];
        let mut is_free = vec![true; cores];
        let mut is_placed = vec![false; moment.tasks.len()];
        let parts = self.parts(moment);
        for part in &parts {
            let before: Vec<_> = part.iter().map(|task| moment.tasks[task.index()].core).collect();
            let Some(chosen) = moment.topology.choose(&is_free, &before, self.placement) else {
                continue;
            };
            for (&task, core) in part.iter().zip(chosen) {
                is_free[core.index()] = false;
                is_placed[task.index()] = true;
                let runnable = moment.tasks[task.index()].runnable;
                grants[core.index()] = if runnable {
                    Grant::Run(task)
                } else {
                    Grant::Reserved(task)
                };
            }
        }
        if self.idle == IdleCores::Filled {
            let waiting: Vec<TaskId> = parts
                .iter()
                .flatten()
                .copied()
                .filter(|task| moment.tasks[task.index()].runnable && !is_placed[task.index()])
                .collect();
            fill(&mut grants, moment, &waiting);
        }
        Assignment {
            grants,
            until_ns: slot_end(moment.now_ns, self.slot_ns, 0),
        }
    }
}

impl Coscheduled {
    /// What is placed whole, the longest waiting first: sets with a runnable member, in parts of the host's size.
    fn parts(&self, moment: &Moment<'_>) -> Vec<Vec<TaskId>> {
        let tasks = moment.tasks.len();
        let mut is_in_set = vec![false; tasks];
        let mut groups: Vec<Vec<TaskId>> = Vec::with_capacity(self.sets.sets().len());
        for set in self.sets.sets() {
            let present: Vec<TaskId> = set.iter().copied().filter(|task| task.index() < tasks).collect();
            for task in &present {
                is_in_set[task.index()] = true;
            }
            groups.push(present);
        }
        groups.extend(
            (0..tasks)
                .filter(|&task| !is_in_set[task])
                .map(|task| vec![TaskId::new(task)]),
        );

        let rank = |task: &TaskId| {
            let view = &moment.tasks[task.index()];
            (!view.runnable, view.served_ns, view.progress_ns, *task)
        };
        let mut parts: Vec<Vec<TaskId>> = Vec::with_capacity(groups.len());
        for mut group in groups {
            if group.len() > moment.topology.cores() {
                group.sort_unstable_by_key(rank);
            }
            parts.extend(group.chunks(moment.topology.cores()).map(<[TaskId]>::to_vec));
        }
        parts.retain(|part| part.iter().any(|task| moment.tasks[task.index()].runnable));
        let is_turn = is_turn_of_signalled(moment.now_ns, self.slot_ns);
        parts.sort_by_cached_key(|part| {
            let members = part.iter().map(|task| &moment.tasks[task.index()]);
            let called = members.filter(|view| is_turn && view.runnable && view.signalled);
            let keeps = called
                .clone()
                .any(|view| view.keeps_core(moment.now_ns, self.slot_ns));
            let is_called = called.clone().next().is_some();
            (!is_called, !keeps, part.iter().map(rank).min())
        });
        parts
    }
}

/// Gives cores without a running task to waiting tasks, in their order; each to the core it had if that is free.
fn fill(grants: &mut [Grant], moment: &Moment<'_>, waiting: &[TaskId]) {
    let mut later = Vec::new();
    for &task in waiting {
        match moment.tasks[task.index()].core {
            Some(core) if grants[core.index()].running().is_none() => {
                grants[core.index()] = Grant::Fill(task)
            }
            _ => later.push(task),
        }
    }
    let mut later = later.into_iter();
    for grant in grants.iter_mut().filter(|grant| grant.running().is_none()) {
        let Some(task) = later.next() else { break };
        *grant = Grant::Fill(task);
    }
}
