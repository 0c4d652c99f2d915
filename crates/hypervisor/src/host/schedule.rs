//! Which virtual processor has which core: the policies of `sidestep-gang`, asked when an answer's time is up, and when
//! a virtual processor begins or ceases to want a core, is woken, or belongs to other sets.
//!
//! A virtual processor that waits wants no core until what it waits for is due. One that waits for a timer or a device
//! stays on the core that it had, as long as nobody else has use for that.
//!
//! **No starvation.** Who is always willing has a core, under the policies by sets, within twice as many slots as there
//! are virtual processors (once as many while none is woken), however sets change; under the relaxed policy, one that
//! is furthest behind in its virtual machine has one as soon as it is the longest waiting of those that may run. An
//! answer holds until the first epoch that begins when its time is up, so a slot is longer than asked for by less than
//! an epoch.

use std::sync::Arc;

use sidestep_gang::policy::{Coscheduled, Free, Grant, IdleCores, Moment, Policy, Relaxed, TaskView};
use sidestep_gang::topology::Placement;
use sidestep_gang::{CoreId, CoscheduledSets, ProgramId, TaskId, Topology};

use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::host::coscheduling::Coscheduling;
use crate::host::sidecores::{Machines, locked};
use crate::virtual_machine::Activity;

/// A policy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// Each core has a queue of its own.
    Free,
    /// The processors of a virtual machine run together or not at all.
    Gang,
    /// The processors of a set run together or not at all.
    Partial,
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

/// The sets of one virtual machine.
struct MachineSets {
    sets: CoscheduledSets,
    is_given: bool,
}

/// What the scheduler remembers of a virtual processor beside what policies see.
#[derive(Clone, Default)]
struct Task {
    name: String,
    /// Its core in this epoch.
    core: Option<usize>,
    /// Time that counts as run because it was blocked while its siblings ran.
    credit_ns: u64,
    /// Whether an interrupt has woken it, and it was not served since.
    is_woken: bool,
}

/// Who has which core.
pub(super) struct Scheduler {
    scheduling: Scheduling,
    idle_cores: IdleCores,
    /// Which cores are close, if that is known.
    topology: Option<Topology>,
    /// The cores in the order in which they are homes: the first thread of each physical core before any second.
    homes: Vec<CoreId>,
    /// Number of the first task of each virtual machine.
    first: Vec<usize>,
    sets: Vec<MachineSets>,
    views: Vec<TaskView>,
    tasks: Vec<Task>,
    /// What each core is for.
    grants: Vec<Grant>,
    /// Up to when.
    until_ns: u64,
    /// Whether sets have changed since then.
    has_other_sets: bool,
    /// The task that was last on each core.
    last: Vec<Option<usize>>,
}

impl Scheduler {
    pub fn new(scheduling: Scheduling, processors: &[usize]) -> Scheduler {
        let mut first = Vec::new();
        let mut views = Vec::new();
        for (machine, count) in processors.iter().enumerate() {
            first.push(views.len());
            for _ in 0..*count {
                views.push(TaskView {
                    program: ProgramId::new(machine),
                    runnable: true,
                    signalled: false,
                    served_ns: 0,
                    granted_ns: None,
                    progress_ns: 0,
                    core: None,
                    home: CoreId::new(views.len()),
                });
            }
        }
        let whole = |count: &usize| MachineSets {
            sets: CoscheduledSets::one(*count),
            is_given: false,
        };
        Scheduler {
            scheduling,
            idle_cores: IdleCores::Filled,
            topology: None,
            homes: Vec::new(),
            first,
            sets: processors.iter().map(whole).collect(),
            tasks: vec![Task::default(); views.len()],
            views,
            grants: Vec::new(),
            until_ns: 0,
            has_other_sets: false,
            last: Vec::new(),
        }
    }

    /// Takes sets that were given, and says what becomes of idle cores.
    pub fn coschedule(&mut self, coscheduling: &Coscheduling) {
        self.idle_cores = coscheduling.idle_cores;
        for (sets, given) in self.sets.iter_mut().zip(&coscheduling.given) {
            if let Some(given) = given {
                *sets = MachineSets {
                    sets: given.clone(),
                    is_given: true,
                };
            }
        }
        self.has_other_sets = true;
    }

    /// Takes note which cores are close.
    pub fn place_by(&mut self, topology: Topology) {
        self.homes = topology.by_physical_core((0..topology.cores()).map(CoreId::new).collect());
        self.topology = Some(topology);
    }

    /// Takes sets of a virtual machine that detection has found; given ones stay.
    pub fn find(&mut self, machine: usize, found: &CoscheduledSets) {
        let sets = &mut self.sets[machine];
        if !sets.is_given && sets.sets != *found {
            sets.sets = found.clone();
            self.has_other_sets = true;
        }
    }

    /// The sets of a virtual machine, by the numbers of its processors.
    pub fn sets_of(&self, machine: usize) -> &CoscheduledSets {
        &self.sets[machine].sets
    }

    /// The core of a virtual processor in this epoch.
    pub fn core_of(&self, machine: usize, processor: usize) -> Option<usize> {
        self.tasks[self.first[machine] + processor].core
    }

    /// The core that a virtual processor has, or had last.
    pub fn last_core_of(&self, machine: usize, processor: usize) -> Option<usize> {
        let core = self.views[self.first[machine] + processor].core;
        core.map(CoreId::index)
    }

    /// The virtual processor that has each of so many cores in this epoch: its virtual machine and its number there.
    pub fn holders(&self, cores: usize) -> Vec<Option<(usize, usize)>> {
        let mut holders = vec![None; cores];
        for (task, core) in self.tasks.iter().map(|task| task.core).enumerate() {
            if let Some(core) = core {
                let machine = self.first.partition_point(|first| *first <= task) - 1;
                holders[core] = Some((machine, task - self.first[machine]));
            }
        }
        holders
    }

    /// Whether a virtual processor that could use a core has none in this epoch.
    pub fn keeps_waiting(&self) -> bool {
        let mut tasks = self.views.iter().zip(&self.tasks);
        tasks.any(|(view, task)| view.runnable && task.core.is_none())
    }

    /// Whether one of `cores` cores has no virtual processor in this epoch.
    pub fn has_free_core(&self, cores: usize) -> bool {
        self.tasks.iter().filter(|task| task.core.is_some()).count() < cores
    }

    /// Gives `cores` cores to virtual processors for the epoch from `time` to `end`. Who has which.
    pub fn assign(
        &mut self,
        (time, end): (Cycle, Cycle),
        cores: usize,
        machines: &Machines,
        costs: &HostCosts,
    ) -> Vec<(usize, String)> {
        let now_ns = costs.nanoseconds(time.since(Cycle::START));
        // Cores' own slots end at any time: under the free policy each epoch asks.
        let is_over = self.scheduling.policy == PolicyName::Free
            || now_ns >= self.until_ns
            || self.grants.len() != cores;
        if is_over {
            self.end_slot(now_ns);
        }
        let waits = self.look(now_ns, end, cores, machines, costs);
        let has_other_sets = std::mem::take(&mut self.has_other_sets);
        if is_over || waits.has_changed || has_other_sets {
            self.decide(now_ns, cores);
        }
        self.place(now_ns, &waits.for_timers);
        self.last.resize(cores.max(self.last.len()), None);
        for (machine, first) in machines.iter().zip(&self.first) {
            let mut machine = locked(machine);
            for number in 0..machine.processors().len() {
                let core = self.tasks[first + number].core;
                let is_new = core.is_some_and(|core| self.last[core] != Some(first + number));
                let switch_cycles = if is_new { costs.cycles(Cost::Switch) } else { 0 };
                machine.schedule(number, core.is_some(), time, switch_cycles);
                if let Some(core) = core {
                    self.last[core] = Some(first + number);
                }
            }
        }
        let holders = self.holders(cores).into_iter().enumerate();
        let given = holders.filter_map(|(core, holder)| {
            let (machine, processor) = holder?;
            Some((core, self.tasks[self.first[machine] + processor].name.clone()))
        });
        given.collect()
    }

    /// Those that ran as their policy intended have been served; under the free policy also on another's core.
    fn end_slot(&mut self, now_ns: u64) {
        for grant in &self.grants {
            let served = match (*grant, self.scheduling.policy) {
                (Grant::Run(task) | Grant::Reserved(task), _) | (Grant::Fill(task), PolicyName::Free) => task,
                (Grant::Fill(_) | Grant::Idle, _) => continue,
            };
            self.views[served.index()].served_ns = now_ns;
            self.tasks[served.index()].is_woken = false;
        }
    }

    /// Looks who wants a core in the epoch that ends at `end`.
    fn look(
        &mut self,
        now_ns: u64,
        end: Cycle,
        cores: usize,
        machines: &Machines,
        costs: &HostCosts,
    ) -> Waits {
        let mut waits = Waits::default();
        let homes: Vec<CoreId> = match self.homes.len() {
            0 => (0..cores).map(CoreId::new).collect(),
            _ => self
                .homes
                .iter()
                .copied()
                .filter(|core| core.index() < cores)
                .collect(),
        };
        for (machine, &first) in machines.iter().zip(&self.first) {
            let machine = locked(machine);
            let runs = machine.exit_code().is_none();
            for (number, processor) in machine.processors().iter().enumerate() {
                let (view, task) = (&mut self.views[first + number], &mut self.tasks[first + number]);
                let before = (view.runnable, view.signalled);
                let ran = processor.cycles();
                let ran_ns = costs.nanoseconds(ran.guest + ran.monitor + ran.polling);
                view.progress_ns = ran_ns + task.credit_ns;
                view.home = homes[(first + number) % cores];
                view.runnable = runs && machine.wants_core(number, end);
                let is_waiting = processor.activity() == Activity::Waiting;
                match (before.0, view.runnable) {
                    (false, true) => task.is_woken = is_waiting,
                    (true, false) => {
                        // A whole grant also ends where its task blocks.
                        if self.grants.contains(&Grant::Run(TaskId::new(first + number))) {
                            view.served_ns = now_ns;
                        }
                        task.is_woken = false;
                    }
                    _ => {}
                }
                let is_free = self.scheduling.policy == PolicyName::Free;
                view.signalled = machine.is_signalled(number) || task.is_woken && !is_free;
                waits.has_changed |= before != (view.runnable, view.signalled);
                if runs && !view.runnable && is_waiting && machine.expects(number) {
                    waits.for_timers.push(first + number);
                }
                if task.name.is_empty() {
                    task.name = format!("{} {number}", machine.name());
                }
            }
            let own = first..first + machine.processors().len();
            credit(&mut self.views[own.clone()], &mut self.tasks[own]);
        }
        waits
    }

    /// Asks the policy.
    fn decide(&mut self, now_ns: u64, cores: usize) {
        let topology = match &self.topology {
            Some(topology) => topology.first(cores),
            None => Topology::flat(cores),
        };
        let moment = Moment {
            now_ns,
            tasks: &self.views,
            topology: &topology,
        };
        let assignment = self.policy().assign(&moment);
        self.grants = assignment.grants;
        self.until_ns = assignment.until_ns;
    }

    /// Puts virtual processors on the cores that they were given, and those that wait for timers on what is left.
    fn place(&mut self, now_ns: u64, for_timers: &[usize]) {
        for task in &mut self.tasks {
            task.core = None;
        }
        for (core, grant) in self.grants.iter().enumerate() {
            if let Grant::Run(task) | Grant::Fill(task) | Grant::Reserved(task) = *grant {
                let (view, task) = (&mut self.views[task.index()], &mut self.tasks[task.index()]);
                task.core = Some(core);
                if view.core != Some(CoreId::new(core)) {
                    view.granted_ns = None;
                }
                view.granted_ns.get_or_insert(now_ns);
                view.core = Some(CoreId::new(core));
            }
        }
        for &task in for_timers {
            let core = self.views[task].core.map(CoreId::index);
            let is_idle = |core: &usize| self.grants.get(*core) == Some(&Grant::Idle);
            if self.tasks[task].core.is_none()
                && let Some(core) = core.filter(is_idle)
                && !self.tasks.iter().any(|other| other.core == Some(core))
            {
                self.tasks[task].core = Some(core);
            }
        }
        for (view, task) in self.views.iter_mut().zip(&self.tasks) {
            if task.core.is_none() {
                view.granted_ns = None;
            }
        }
    }

    fn policy(&self) -> Arc<dyn Policy> {
        let slot_ns = self.scheduling.slot_ns;
        let by_sets = |sets| {
            Arc::new(Coscheduled {
                sets,
                slot_ns,
                idle: self.idle_cores,
                placement: Placement::default(),
            })
        };
        match self.scheduling.policy {
            PolicyName::Free => Arc::new(Free { slot_ns }),
            PolicyName::Gang => by_sets(self.of_all(|_, count| CoscheduledSets::one(count))),
            PolicyName::Partial => by_sets(self.of_all(|machine, _| self.sets[machine].sets.clone())),
            PolicyName::Relaxed => Arc::new(Relaxed {
                slot_ns,
                skew_max_ns: 2 * slot_ns,
                placement: Placement::default(),
            }),
        }
    }

    /// The sets of all virtual machines, of which each is asked for by its number and how many processors it has.
    fn of_all(&self, sets_of: impl Fn(usize, usize) -> CoscheduledSets) -> CoscheduledSets {
        let ends = self.first.iter().skip(1).copied().chain([self.tasks.len()]);
        let machines = self.first.iter().zip(ends).enumerate();
        let sets = machines.flat_map(|(machine, (&first, end))| {
            let own: Vec<Vec<TaskId>> = sets_of(machine, end - first).into();
            let moved = move |task: TaskId| TaskId::new(first + task.index());
            own.into_iter()
                .map(move |set| set.into_iter().map(moved).collect())
        });
        CoscheduledSets::new(sets.collect()).expect("the processors of virtual machines are disjoint")
    }
}

/// Those of a virtual machine that are blocked do not fall behind the slowest that is not.
fn credit(views: &mut [TaskView], tasks: &mut [Task]) {
    let willing = views.iter().filter(|view| view.runnable);
    let Some(slowest_ns) = willing.map(|view| view.progress_ns).min() else {
        return;
    };
    for (view, task) in views.iter_mut().zip(tasks).filter(|(view, _)| !view.runnable) {
        let behind_ns = slowest_ns.saturating_sub(view.progress_ns);
        task.credit_ns += behind_ns;
        view.progress_ns += behind_ns;
    }
}

/// What waits on a host.
#[derive(Default)]
struct Waits {
    /// Whether somebody has begun or ceased to want a core, or was woken.
    has_changed: bool,
    /// Those that wait for a timer or a device.
    for_timers: Vec<usize>,
}
