//! A host, virtual machines and parallel programs in virtual time, to try a policy without a machine.
//!
//! A [`Scenario`] is a host and virtual machines; in a machine, [`Instance`]s of a [`Workload`] run one thread on each
//! of some vCPUs, and every vCPU does a little housekeeping now and then. [`simulate`] lets a policy decide who runs,
//! until the horizon, and reports what each core's time went to and how far each instance came.
//!
//! A thread that waits at a barrier or for a lock spins, which keeps its core busy for nothing, and after a while
//! blocks. That is the loss that coscheduling avoids; idle cores are the loss that partial coscheduling avoids.
//!
//! Limits: caches and memory bandwidth are not modelled (only hardware threads of one core slow each other, and a set
//! spread over sockets); nothing moves a thread between the vCPUs of its machine.

mod engine;
mod sharing;
#[cfg(test)]
mod tests;
mod thread;
mod workload;

pub use engine::simulate;
pub use workload::{Phase, Sharing, Workload};

use std::sync::Arc;

use crate::detection::DetectorSettings;
use crate::identity::{CoreId, TaskId};
use crate::matrix::SharingMatrix;
use crate::policy::{Free, IdleCores, Policy, Relaxed};
use crate::sets::{CoscheduledSets, Selection};
use crate::topology::{Placement, Topology};

/// What simulated actions take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Putting another task on a core.
    pub switch_ns: u64,
    /// A page fault made for detection.
    pub fault_ns: u64,
    /// Speed of a hardware thread whose sibling is busy, in thousandths.
    pub shared_core_permille: u64,
    /// Speed of a thread whose instance runs on more than one socket at once, in thousandths.
    pub across_sockets_permille: u64,
}

/// Work the guest's kernel does on every vCPU, programs or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Housekeeping {
    /// How often, on each vCPU.
    pub period_ns: u64,
    /// How long it takes each time.
    pub work_ns: u64,
    /// Regions of the guest's kernel that it touches, the same on all vCPUs of a machine.
    pub regions: u32,
}

/// A program in a virtual machine: one thread on each of these vCPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// vCPUs of the machine, by their numbers in it.
    pub vcpus: Vec<usize>,
    /// What its threads do.
    pub workload: Workload,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name in reports.
    pub name: String,
    /// How many vCPUs it has.
    pub vcpus: usize,
    /// What runs in it; no vCPU is in two.
    pub instances: Vec<Instance>,
}

/// Everything a simulation depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The host.
    pub topology: Topology,
    /// The virtual machines; tasks are their vCPUs, numbered through.
    pub machines: Vec<Machine>,
    /// What actions take.
    pub costs: Costs,
    /// What the guests' kernels do.
    pub housekeeping: Option<Housekeeping>,
    /// When to stop.
    pub horizon_ns: u64,
    /// Varies the threads' loads and who touches a shared region first.
    pub seed: u64,
}

impl Scenario {
    /// How many tasks (vCPUs) there are.
    pub fn tasks(&self) -> usize {
        self.machines.iter().map(|machine| machine.vcpus).sum()
    }

    /// The tasks of each machine.
    pub fn tasks_of_machines(&self) -> Vec<Vec<TaskId>> {
        let mut first = 0;
        let range = |machine: &Machine| {
            let tasks = (first..first + machine.vcpus).map(TaskId::new).collect();
            first += machine.vcpus;
            tasks
        };
        self.machines.iter().map(range).collect()
    }

    /// One set for each machine: full coscheduling.
    pub fn full_sets(&self) -> CoscheduledSets {
        let sets = self
            .tasks_of_machines()
            .into_iter()
            .filter(|set| !set.is_empty())
            .collect();
        CoscheduledSets::new(sets).expect("machines share no vCPU")
    }

    /// One set for each instance, and one of the remaining vCPUs of each machine: what is known of the load.
    pub fn given_sets(&self) -> CoscheduledSets {
        let mut sets = Vec::new();
        for (machine, tasks) in self.machines.iter().zip(self.tasks_of_machines()) {
            let mut rest = tasks.clone();
            for instance in &machine.instances {
                let set: Vec<TaskId> = instance.vcpus.iter().map(|&vcpu| tasks[vcpu]).collect();
                rest.retain(|task| !set.contains(task));
                sets.push(set);
            }
            sets.push(rest);
        }
        sets.retain(|set| !set.is_empty());
        CoscheduledSets::new(sets).expect("instances share no vCPU")
    }
}

/// Sets found while the programs run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automatic {
    /// How the tree is cut.
    pub selection: Selection,
    /// How often shared pages are made to fault.
    pub scan_period_ns: u64,
    /// How often the sets are found anew.
    pub reevaluation_ns: u64,
    /// When the matrix is reset once, after the programs have started.
    pub reset_ns: u64,
    /// The part of each count that stays at a reevaluation, in thousandths.
    pub keep_permille: u32,
    /// What counts as communication.
    pub detector: DetectorSettings,
}

/// Who decides in a simulation.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// Nobody coordinates.
    Free(Free),
    /// Bounded skew.
    Relaxed(Relaxed),
    /// A policy that this crate does not know.
    Other(Arc<dyn Policy>),
    /// Given sets.
    Sets {
        /// Who runs together.
        sets: CoscheduledSets,
        /// The length of a slot.
        slot_ns: u64,
        /// What becomes of idle cores.
        idle: IdleCores,
        /// How cores are chosen.
        placement: Placement,
    },
    /// One set for each machine at first, then those found.
    Automatic {
        /// How they are found.
        automatic: Automatic,
        /// The length of a slot.
        slot_ns: u64,
        /// What becomes of idle cores.
        idle: IdleCores,
        /// How cores are chosen.
        placement: Placement,
    },
}

/// What a core's time went to; the sum is the horizon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// Work of programs.
    pub working_ns: u64,
    /// Work of guests' kernels.
    pub housekeeping_ns: u64,
    /// Waiting busily for another thread: wasted.
    pub spinning_ns: u64,
    /// Changing tasks, and faults made for detection.
    pub overhead_ns: u64,
    /// Idle although a task could have run: wasted.
    pub kept_idle_ns: u64,
    /// Idle, and no task could have run.
    pub idle_ns: u64,
}

impl CoreTime {
    /// All of it.
    pub fn total_ns(&self) -> u64 {
        self.used_ns() + self.wasted_ns() + self.idle_ns
    }

    /// Work of programs and kernels, and what switching cost.
    fn used_ns(&self) -> u64 {
        self.working_ns + self.housekeeping_ns + self.overhead_ns
    }

    /// Spinning, and idle while a task could have run.
    pub fn wasted_ns(&self) -> u64 {
        self.spinning_ns + self.kept_idle_ns
    }

    fn add(&mut self, other: &Self) {
        self.working_ns += other.working_ns;
        self.housekeeping_ns += other.housekeeping_ns;
        self.spinning_ns += other.spinning_ns;
        self.overhead_ns += other.overhead_ns;
        self.kept_idle_ns += other.kept_idle_ns;
        self.idle_ns += other.idle_ns;
    }
}

/// How far an instance came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceProgress {
    /// The machine, by its place in the scenario.
    pub machine: usize,
    /// The instance, by its place in the machine.
    pub instance: usize,
    /// Rounds of its workload that its threads finished, summed over threads.
    pub thread_rounds: u64,
    /// Its threads.
    pub threads: u64,
}

/// A change of what a core runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When.
    pub time_ns: u64,
    /// Which core.
    pub core: CoreId,
    /// Who runs from then on.
    pub task: Option<TaskId>,
}

/// The outcome of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The horizon.
    pub time_ns: u64,
    /// For each core.
    pub cores: Vec<CoreTime>,
    /// For each instance, in the scenario's order.
    pub instances: Vec<InstanceProgress>,
    /// For each task, the time it ran.
    pub ran_ns: Vec<u64>,
    /// For each task, the longest time it could have run and did not.
    pub longest_wait_ns: Vec<u64>,
    /// The greatest lead a task had over a runnable sibling while it ran.
    pub skew_max_ns: u64,
    /// How often a core changed its task.
    pub switches: u64,
    /// How often the policy was asked.
    pub decisions: u64,
    /// The first changes, at most [`TURNS_MAX`].
    pub turns: Vec<Turn>,
    /// What was detected, when detection was on.
    pub matrix: Option<SharingMatrix>,
    /// The sets in force, each with the time from which.
    pub sets: Vec<(u64, CoscheduledSets)>,
}

/// How many turns an outcome keeps.
pub const TURNS_MAX: usize = 4096;

impl Outcome {
    /// The sum over all cores.
    pub fn host(&self) -> CoreTime {
        let mut sum = CoreTime::default();
        for core in &self.cores {
            sum.add(core);
        }
        sum
    }

    /// The mean time one round took in each instance, in nanoseconds; `None` for one that finished no round.
    pub fn round_ns(&self, instance: usize) -> Option<u64> {
        let progress = &self.instances[instance];
        (u128::from(self.time_ns) * u128::from(progress.threads))
            .checked_div(progress.thread_rounds.into())
            .map(|time| time as u64)
    }
}
