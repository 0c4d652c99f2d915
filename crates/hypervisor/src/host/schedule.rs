//! Which virtual processor has which core: the policies of `sidestep-gang`, asked once an epoch.

use std::sync::Arc;

use sidestep_gang::policy::{Coscheduled, Free, IdleCores, Moment, Policy, Relaxed, TaskView};
use sidestep_gang::topology::Placement;
use sidestep_gang::{CoreId, CoscheduledSets, ProgramId, TaskId, Topology};

use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::host::sidecores::{Machines, locked};

/// A policy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// Each core has a queue of its own.
    Free,
    /// The processors of a virtual machine run together or not at all.
    Gang,
    /// The processors of a virtual machine may run apart, but not too far.
    Relaxed,
}

/// How virtual processors are scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// The policy.
    pub policy: PolicyName,
    /// The length of a slot.
    pub slot_ns: u64,
}

/// Who has which core.
pub(super) struct Scheduler {
    scheduling: Scheduling,
    /// Number of the first task of each virtual machine, and of all.
    first: Vec<usize>,
    tasks: Vec<TaskView>,
    names: Vec<String>,
    /// The core of each task in this epoch.
    cores: Vec<Option<usize>>,
    /// The task that was last on each core.
    last: Vec<Option<usize>>,
}

impl Scheduler {
    pub fn new(scheduling: Scheduling, processors: &[usize]) -> Scheduler {
        let mut first = Vec::new();
        let mut tasks = Vec::new();
        for (machine, count) in processors.iter().enumerate() {
            first.push(tasks.len());
            for _ in 0..*count {
                tasks.push(TaskView {
                    program: ProgramId::new(machine),
                    runnable: true,
                    signalled: false,
                    served_ns: 0,
                    granted_ns: None,
                    progress_ns: 0,
                    core: None,
                    home: CoreId::new(tasks.len()),
                });
            }
        }
        Scheduler {
            scheduling,
            first,
            names: vec![String::new(); tasks.len()],
            cores: vec![None; tasks.len()],
            last: Vec::new(),
            tasks,
        }
    }

    /// The core of a virtual processor in this epoch.
    pub fn core_of(&self, machine: usize, processor: usize) -> Option<usize> {
        self.cores[self.first[machine] + processor]
    }

    /// The core that a virtual processor has, or had last.
    pub fn last_core_of(&self, machine: usize, processor: usize) -> Option<usize> {
        let core = self.tasks[self.first[machine] + processor].core;
        core.map(CoreId::index)
    }

    /// The virtual processor that has each of so many cores in this epoch: its virtual machine and its number there.
    pub fn holders(&self, cores: usize) -> Vec<Option<(usize, usize)>> {
        let mut holders = vec![None; cores];
        for (task, core) in self.cores.iter().enumerate() {
            if let Some(core) = *core {
                let machine = self.first.partition_point(|first| *first <= task) - 1;
                holders[core] = Some((machine, task - self.first[machine]));
            }
        }
        holders
    }

    /// Whether a virtual processor that could use a core has none in this epoch.
    pub fn keeps_waiting(&self) -> bool {
        let mut tasks = self.tasks.iter().zip(&self.cores);
        tasks.any(|(task, core)| task.runnable && core.is_none())
    }

    /// Whether one of `cores` cores has no virtual processor in this epoch.
    pub fn has_free_core(&self, cores: usize) -> bool {
        self.cores.iter().flatten().count() < cores
    }

    /// Gives `cores` cores to virtual processors from `time` on. Who has which.
    pub fn assign(
        &mut self,
        time: Cycle,
        cores: usize,
        machines: &Machines,
        costs: &HostCosts,
    ) -> Vec<(usize, String)> {
        let now_ns = costs.nanoseconds(time.since(Cycle::START));
        let home = |task: usize| CoreId::new(task % cores);
        for (machine, first) in machines.iter().zip(&self.first) {
            let machine = locked(machine);
            for (number, processor) in machine.processors().iter().enumerate() {
                let task = &mut self.tasks[first + number];
                let was_running = self.cores[first + number].is_some();
                task.runnable = machine.exit_code().is_none() && machine.wants_core(number);
                task.signalled = machine.is_signalled(number);
                task.home = home(first + number);
                let ran = processor.cycles();
                task.progress_ns = costs.nanoseconds(ran.guest + ran.monitor + ran.polling);
                if was_running {
                    task.served_ns = now_ns;
                } else {
                    task.granted_ns = None;
                }
                if self.names[first + number].is_empty() {
                    self.names[first + number] = format!("{} {number}", machine.name());
                }
            }
        }
        let topology = Topology::flat(cores);
        let moment = Moment {
            now_ns,
            tasks: &self.tasks,
            topology: &topology,
        };
        let assignment = self.policy().assign(&moment);
        self.cores.fill(None);
        self.last.resize(cores.max(self.last.len()), None);
        let mut given = Vec::new();
        for (core, grant) in assignment.grants.iter().enumerate() {
            if let Some(task) = grant.running() {
                let task = task.index();
                self.cores[task] = Some(core);
                if self.tasks[task].core != Some(CoreId::new(core)) {
                    self.tasks[task].granted_ns = None;
                }
                self.tasks[task].granted_ns.get_or_insert(now_ns);
                self.tasks[task].core = Some(CoreId::new(core));
                given.push((core, self.names[task].clone()));
            }
        }
        for (machine, first) in machines.iter().zip(&self.first) {
            let mut machine = locked(machine);
            for number in 0..machine.processors().len() {
                let core = self.cores[first + number];
                let is_new = core.is_some_and(|core| self.last[core] != Some(first + number));
                let switch_cycles = if is_new { costs.cycles(Cost::Switch) } else { 0 };
                machine.schedule(number, core.is_some(), time, switch_cycles);
                if let Some(core) = core {
                    self.last[core] = Some(first + number);
                }
            }
        }
        given
    }

    fn policy(&self) -> Arc<dyn Policy> {
        let slot_ns = self.scheduling.slot_ns;
        match self.scheduling.policy {
            PolicyName::Free => Arc::new(Free { slot_ns }),
            PolicyName::Gang => Arc::new(Coscheduled {
                sets: self.machines(),
                slot_ns,
                idle: IdleCores::Filled,
                placement: Placement::default(),
            }),
            PolicyName::Relaxed => Arc::new(Relaxed {
                slot_ns,
                skew_max_ns: 2 * slot_ns,
                placement: Placement::default(),
            }),
        }
    }

    /// Each virtual machine as a set.
    fn machines(&self) -> CoscheduledSets {
        let ends = self.first.iter().skip(1).copied().chain([self.tasks.len()]);
        let sets = self.first.iter().zip(ends);
        let sets = sets
            .map(|(first, end)| (*first..end).map(TaskId::new).collect())
            .collect();
        CoscheduledSets::new(sets).expect("the processors of virtual machines are disjoint")
    }
}
