//! The simulation's loop: decide, find the next thing that happens, let time pass, let it happen.
//!
//! What happens at one time happens in a fixed order: housekeeping becomes due, a scan, the end of threads' work and
//! waits by task, the sets found anew; then the policy is asked if the runnable tasks changed or its answer's time is
//! up.

use std::sync::Arc;

use super::sharing::{Toucher, Watch};
use super::thread::{Doing, PER_NS, Team};
use super::{CoreTime, InstanceProgress, Outcome, Scenario, Schedule, TURNS_MAX, Turn};
use crate::identity::{CoreId, ProgramId, TaskId};
use crate::policy::{Assignment, Coscheduled, Grant, Moment, Policy, TaskView};
use crate::sets::CoscheduledSets;

/// A vCPU: its thread, if a program uses it, and what its guest's kernel has to do.
struct Vcpu {
    /// The team and the thread in it.
    thread: Option<(usize, usize)>,
    /// Work of the guest's kernel, which goes before the program's.
    housekeeping: u64,
    housekeeping_due_ns: u64,
    /// Since when it could run and does not.
    waiting_since_ns: Option<u64>,
}

/// A core: what it does besides its task's work.
#[derive(Clone, Copy, Default)]
struct Core {
    last: Option<TaskId>,
    /// Overhead to be worked off before the task goes on, in thousandths of a nanosecond.
    overhead: u64,
}

/// Runs a scenario under a schedule.
///
/// # Panics
/// When the scenario is no scenario: no cores or tasks with work, a vCPU that does not exist or is used twice.
pub fn simulate(scenario: &Scenario, schedule: &Schedule) -> Outcome {
    Engine::new(scenario, schedule).run()
}

struct Engine<'a> {
    scenario: &'a Scenario,
    policy: Box<dyn Policy>,
    schedule: &'a Schedule,
    watch: Option<Watch>,
    teams: Vec<Team>,
    vcpus: Vec<Vcpu>,
    views: Vec<TaskView>,
    cores: Vec<Core>,
    /// The core each task runs on now.
    running_on: Vec<Option<CoreId>>,
    /// Whether each team runs on more than one socket now.
    is_spread: Vec<bool>,
    assignment: Assignment,
    now_ns: u64,
    outcome: Outcome,
}

impl<'a> Engine<'a> {
    fn new(scenario: &'a Scenario, schedule: &'a Schedule) -> Self {
        let cores = scenario.topology.cores();
        let mut teams = Vec::new();
        let mut vcpus: Vec<Vcpu> = Vec::new();
        let mut views = Vec::new();
        let mut instances = Vec::new();
        let period_ns = scenario
            .housekeeping
            .map_or(u64::MAX, |housekeeping| housekeeping.period_ns);
        for (number, machine) in scenario.machines.iter().enumerate() {
            let first = vcpus.len();
            for vcpu in 0..machine.vcpus {
                // Spread over the period, by a fraction that no small set of numbers repeats.
                let task = (first + vcpu) as u128;
                let housekeeping_due_ns = (u128::from(period_ns) * ((task * 619 + 1) % 1000) / 1000) as u64;
                vcpus.push(Vcpu {
                    thread: None,
                    housekeeping: 0,
                    housekeeping_due_ns,
                    waiting_since_ns: None,
                });
                views.push(TaskView {
                    program: ProgramId::new(number),
                    runnable: false,
                    signalled: false,
                    served_ns: 0,
                    granted_ns: None,
                    progress_ns: 0,
                    core: None,
                    home: CoreId::new(vcpu % cores),
                });
            }
            for (place, instance) in machine.instances.iter().enumerate() {
                for (thread, &vcpu) in instance.vcpus.iter().enumerate() {
                    assert!(
                        vcpu < machine.vcpus,
                        "machine `{}` has no vCPU {vcpu}",
                        machine.name
                    );
                    let used = vcpus[first + vcpu].thread.replace((teams.len(), thread));
                    assert!(
                        used.is_none(),
                        "vCPU {vcpu} of machine `{}` is in two instances",
                        machine.name
                    );
                }
                let threads = instance.vcpus.len();
                let seed = scenario.seed ^ (teams.len() as u64) << 32;
                teams.push(Team::new(instance.workload.clone(), threads, seed));
                instances.push(InstanceProgress {
                    machine: number,
                    instance: place,
                    thread_rounds: 0,
                    threads: threads as u64,
                });
            }
        }
        let tasks = vcpus.len();
        let instance_count = teams.len();
        let (sets, watch) = match schedule {
            Schedule::Sets { sets, .. } => (vec![(0, sets.clone())], None),
            Schedule::Automatic { automatic, .. } => (
                vec![(0, scenario.full_sets())],
                Some(Watch::new(automatic.clone(), scenario)),
            ),
            Schedule::Free(_) | Schedule::Relaxed(_) | Schedule::Other(_) => (Vec::new(), None),
        };
        let outcome = Outcome {
            time_ns: scenario.horizon_ns,
            cores: vec![CoreTime::default(); cores],
            instances,
            ran_ns: vec![0; tasks],
            longest_wait_ns: vec![0; tasks],
            skew_max_ns: 0,
            switches: 0,
            decisions: 0,
            turns: Vec::new(),
            matrix: None,
            sets,
        };
        let first_sets = outcome
            .sets
            .last()
            .map(|(_, sets)| sets.clone())
            .unwrap_or_default();
        Self {
            scenario,
            policy: policy_of(schedule, first_sets),
            schedule,
            watch,
            teams,
            vcpus,
            views,
            cores: vec![Core::default(); cores],
            is_spread: vec![false; instance_count],
            running_on: vec![None; tasks],
            assignment: Assignment {
                grants: vec![Grant::Idle; cores],
                until_ns: 0,
            },
            now_ns: 0,
            outcome,
        }
    }

    fn run(mut self) -> Outcome {
        self.refresh_runnable();
        while self.now_ns < self.scenario.horizon_ns {
            if self.now_ns >= self.assignment.until_ns {
                self.end_slot();
                self.decide();
            }
            let next_ns = self.next_event_ns();
            debug_assert!(next_ns > self.now_ns, "time goes on");
            self.pass_time(next_ns);
            if self.happen() {
                self.decide();
            }
        }
        for task in 0..self.vcpus.len() {
            self.end_wait(task);
        }
        for progress in &mut self.outcome.instances {
            progress.thread_rounds = 0;
        }
        for (progress, team) in self.outcome.instances.iter_mut().zip(&self.teams) {
            progress.thread_rounds = team.threads.iter().map(|thread| thread.rounds).sum();
        }
        self.outcome.matrix = self.watch.map(|watch| watch.matrix);
        self.outcome
    }

    /// The tasks that ran as their policy intended have been served.
    fn end_slot(&mut self) {
        for grant in &self.assignment.grants {
            if let Grant::Run(task) | Grant::Reserved(task) = *grant {
                self.views[task.index()].served_ns = self.now_ns;
            }
        }
    }

    fn decide(&mut self) {
        let moment = Moment {
            now_ns: self.now_ns,
            tasks: &self.views,
            topology: &self.scenario.topology,
        };
        self.assignment = self.policy.assign(&moment);
        self.outcome.decisions += 1;
        assert!(
            self.assignment.until_ns > self.now_ns,
            "a decision holds for some time"
        );
        assert_eq!(
            self.assignment.grants.len(),
            self.cores.len(),
            "a decision grants every core"
        );

        let before = std::mem::replace(&mut self.running_on, vec![None; self.vcpus.len()]);
        for (core, grant) in self.assignment.grants.iter().enumerate() {
            let task = grant.running();
            if let Some(task) = task {
                assert!(
                    self.views[task.index()].runnable,
                    "task {task} runs although it is blocked"
                );
                let twice = self.running_on[task.index()].replace(CoreId::new(core));
                assert!(twice.is_none(), "task {task} runs on two cores");
                self.views[task.index()].core = Some(CoreId::new(core));
                if self.cores[core].last != Some(task) {
                    self.cores[core] = Core {
                        last: Some(task),
                        overhead: self.scenario.costs.switch_ns * PER_NS,
                    };
                    self.outcome.switches += 1;
                }
            }
            let changed = task
                != before
                    .iter()
                    .position(|&on| on == Some(CoreId::new(core)))
                    .map(TaskId::new);
            if changed && self.outcome.turns.len() < TURNS_MAX {
                self.outcome.turns.push(Turn {
                    time_ns: self.now_ns,
                    core: CoreId::new(core),
                    task,
                });
            }
        }
        for task in 0..self.vcpus.len() {
            if self.views[task].runnable && self.running_on[task].is_none() {
                self.vcpus[task].waiting_since_ns.get_or_insert(self.now_ns);
            } else {
                self.end_wait(task);
            }
        }
        self.find_spread_teams();
        self.touch_shared_memory();
    }

    fn find_spread_teams(&mut self) {
        let mut socket_of: Vec<Option<u32>> = vec![None; self.teams.len()];
        self.is_spread.fill(false);
        for (vcpu, on) in self.vcpus.iter().zip(&self.running_on) {
            if let (Some((team, _)), Some(core)) = (vcpu.thread, *on) {
                let socket = self.scenario.topology.place(core).socket;
                self.is_spread[team] |= socket_of[team].is_some_and(|first| first != socket);
                socket_of[team].get_or_insert(socket);
            }
        }
    }

    fn end_wait(&mut self, task: usize) {
        if let Some(since_ns) = self.vcpus[task].waiting_since_ns.take() {
            let longest = &mut self.outcome.longest_wait_ns[task];
            *longest = (self.now_ns - since_ns).max(*longest);
        }
    }

    fn touch_shared_memory(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let mut working = Vec::new();
        for (task, vcpu) in self
            .vcpus
            .iter()
            .enumerate()
            .filter(|&(task, _)| self.running_on[task].is_some())
        {
            if vcpu.housekeeping > 0 {
                working.push((TaskId::new(task), Toucher::Kernel));
            } else if let Some((team, thread)) = vcpu.thread
                && matches!(self.teams[team].threads[thread].doing, Doing::Working { .. })
            {
                working.push((TaskId::new(task), Toucher::Program));
            }
        }
        for (task, faults) in watch.touch(self.now_ns, &working) {
            let core = self.running_on[task.index()].expect("only running tasks touch memory");
            self.cores[core.index()].overhead += faults * self.scenario.costs.fault_ns * PER_NS;
        }
    }

    /// The speed of a task's program on its core, in thousandths.
    fn speed_permille(&self, task: usize, core: CoreId) -> u64 {
        let costs = &self.scenario.costs;
        let topology = &self.scenario.topology;
        let is_busy = |core: CoreId| self.assignment.grants[core.index()].running().is_some();
        let mut speed = 1000;
        if costs.shared_core_permille != 1000 && topology.siblings(core).any(is_busy) {
            speed = speed * costs.shared_core_permille / 1000;
        }
        if let Some((team, _)) = self.vcpus[task].thread
            && self.is_spread[team]
        {
            speed = speed * costs.across_sockets_permille / 1000;
        }
        speed.max(1)
    }

    fn next_event_ns(&self) -> u64 {
        let mut next_ns = self.assignment.until_ns.min(self.scenario.horizon_ns);
        for vcpu in &self.vcpus {
            next_ns = next_ns.min(vcpu.housekeeping_due_ns);
        }
        if let Some(watch) = &self.watch {
            let following = |period_ns: u64| (self.now_ns / period_ns + 1) * period_ns;
            next_ns = next_ns
                .min(following(watch.scan_period_ns()))
                .min(following(watch.reevaluation_ns()));
        }
        for (task, on) in self.running_on.iter().enumerate() {
            let Some(core) = *on else { continue };
            let vcpu = &self.vcpus[task];
            let before = self.cores[core.index()].overhead + vcpu.housekeeping;
            let lasts_ns = if vcpu.housekeeping > 0 {
                before.div_ceil(PER_NS)
            } else {
                match self.doing(task) {
                    Some(Doing::Working { left }) => {
                        before.div_ceil(PER_NS) + left.div_ceil(self.speed_permille(task, core))
                    }
                    Some(Doing::Spinning { left_ns }) => before.div_ceil(PER_NS).saturating_add(left_ns),
                    Some(Doing::Blocked) | None => unreachable!("a task without work is not runnable"),
                }
            };
            next_ns = next_ns.min(self.now_ns.saturating_add(lasts_ns.max(1)));
        }
        next_ns.max(self.now_ns + 1)
    }

    fn doing(&self, task: usize) -> Option<Doing> {
        self.vcpus[task]
            .thread
            .map(|(team, thread)| self.teams[team].threads[thread].doing)
    }

    /// Lets every core do what it does until `next_ns`.
    fn pass_time(&mut self, next_ns: u64) {
        let elapsed_ns = next_ns - self.now_ns;
        let could_run =
            (0..self.vcpus.len()).any(|task| self.views[task].runnable && self.running_on[task].is_none());
        for core in 0..self.cores.len() {
            let Some(task) = self.assignment.grants[core].running().map(TaskId::index) else {
                let time = &mut self.outcome.cores[core];
                *(if could_run {
                    &mut time.kept_idle_ns
                } else {
                    &mut time.idle_ns
                }) += elapsed_ns;
                continue;
            };
            let speed = self.speed_permille(task, CoreId::new(core));
            self.run_task(task, core, elapsed_ns, speed);
        }
        self.now_ns = next_ns;
        self.share_progress(elapsed_ns);
    }

    /// Spends a core's time on its task: overhead first, then housekeeping, then the program. Whole nanoseconds are
    /// booked to what they began with.
    fn run_task(&mut self, task: usize, core: usize, elapsed_ns: u64, speed: u64) {
        let time = &mut self.outcome.cores[core];
        let mut left_ns = elapsed_ns;
        let mut spend = |amount: &mut u64, booked: &mut u64| {
            let spent_ns = amount.div_ceil(PER_NS).min(left_ns);
            *amount = amount.saturating_sub(spent_ns * PER_NS);
            *booked += spent_ns;
            left_ns -= spent_ns;
        };
        spend(&mut self.cores[core].overhead, &mut time.overhead_ns);
        spend(&mut self.vcpus[task].housekeeping, &mut time.housekeeping_ns);
        if left_ns > 0
            && let Some((team, thread)) = self.vcpus[task].thread
        {
            match &mut self.teams[team].threads[thread].doing {
                Doing::Working { left } => {
                    *left = left.saturating_sub(left_ns * speed);
                    time.working_ns += left_ns;
                }
                Doing::Spinning { left_ns: patience_ns } => {
                    *patience_ns = patience_ns.saturating_sub(left_ns);
                    time.spinning_ns += left_ns;
                }
                Doing::Blocked => time.idle_ns += left_ns,
            }
        } else {
            time.idle_ns += left_ns;
        }
        self.outcome.ran_ns[task] += elapsed_ns;
    }

    /// Running tasks get further; blocked ones keep up with the slowest of their runnable siblings.
    fn share_progress(&mut self, elapsed_ns: u64) {
        let machines = self.scenario.machines.len();
        let mut slowest_ns = vec![u64::MAX; machines];
        for (view, on) in self.views.iter_mut().zip(&self.running_on) {
            if on.is_some() {
                view.progress_ns += elapsed_ns;
            }
            if view.runnable {
                let slowest = &mut slowest_ns[view.program.index()];
                *slowest = view.progress_ns.min(*slowest);
            }
        }
        for (view, on) in self.views.iter_mut().zip(&self.running_on) {
            let slowest_ns = slowest_ns[view.program.index()];
            if on.is_some() {
                self.outcome.skew_max_ns = self.outcome.skew_max_ns.max(view.progress_ns - slowest_ns);
            }
            if !view.runnable && slowest_ns != u64::MAX {
                view.progress_ns = view.progress_ns.max(slowest_ns);
            }
        }
    }

    /// Lets everything that is due happen; says whether the runnable tasks or the policy changed.
    fn happen(&mut self) -> bool {
        if let Some(housekeeping) = self.scenario.housekeeping {
            for vcpu in &mut self.vcpus {
                if vcpu.housekeeping_due_ns <= self.now_ns {
                    vcpu.housekeeping += housekeeping.work_ns * PER_NS;
                    vcpu.housekeeping_due_ns += housekeeping.period_ns;
                }
            }
        }
        if let Some(watch) = &mut self.watch
            && self.now_ns.is_multiple_of(watch.scan_period_ns())
        {
            watch.scan();
        }
        for task in 0..self.vcpus.len() {
            self.finish_work(task);
        }
        let sets_changed = self.reevaluate();
        let runnable_changed = self.refresh_runnable();
        if !sets_changed && !runnable_changed {
            self.touch_shared_memory();
        }
        sets_changed || runnable_changed
    }

    fn finish_work(&mut self, task: usize) {
        let Some((team, thread)) = self.vcpus[task].thread else {
            return;
        };
        match self.teams[team].threads[thread].doing {
            Doing::Working { left: 0 } => {
                let on_core: Vec<usize> = self
                    .vcpus
                    .iter()
                    .zip(&self.running_on)
                    .filter(|(_, on)| on.is_some())
                    .filter_map(|(vcpu, _)| vcpu.thread)
                    .filter(|&(other, _)| other == team)
                    .map(|(_, thread)| thread)
                    .collect();
                self.teams[team].work_done(thread, |waiter| on_core.contains(&waiter));
            }
            Doing::Spinning { left_ns: 0 } => self.teams[team].threads[thread].doing = Doing::Blocked,
            _ => {}
        }
    }

    fn reevaluate(&mut self) -> bool {
        let Some(watch) = &mut self.watch else {
            return false;
        };
        if !self.now_ns.is_multiple_of(watch.reevaluation_ns()) {
            return false;
        }
        let machines = self.scenario.tasks_of_machines();
        let sets = watch.find_sets(&machines, self.scenario.topology.cores());
        if self
            .outcome
            .sets
            .last()
            .is_some_and(|(_, current)| *current == sets)
        {
            return false;
        }
        self.policy = policy_of(self.schedule, sets.clone());
        self.outcome.sets.push((self.now_ns, sets));
        true
    }

    fn refresh_runnable(&mut self) -> bool {
        let mut changed = false;
        for (task, vcpu) in self.vcpus.iter().enumerate() {
            let works = vcpu
                .thread
                .is_some_and(|(team, thread)| self.teams[team].is_runnable(thread));
            let runnable = vcpu.housekeeping > 0 || works;
            let view = &mut self.views[task];
            if view.runnable != runnable {
                view.runnable = runnable;
                changed = true;
                if !runnable && self.running_on[task].is_some() {
                    view.served_ns = self.now_ns;
                }
            }
        }
        changed
    }
}

fn policy_of(schedule: &Schedule, sets: CoscheduledSets) -> Box<dyn Policy> {
    match *schedule {
        Schedule::Free(free) => Box::new(free),
        Schedule::Relaxed(relaxed) => Box::new(relaxed),
        Schedule::Other(ref policy) => Box::new(Arc::clone(policy)),
        Schedule::Sets {
            slot_ns,
            idle,
            placement,
            ..
        }
        | Schedule::Automatic {
            slot_ns,
            idle,
            placement,
            ..
        } => Box::new(Coscheduled {
            sets,
            slot_ns,
            idle,
            placement,
        }),
    }
}
