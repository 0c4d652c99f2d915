//! Detection inside a simulation: which shared regions fault for whom.
//!
//! A scan makes every shared region fault once more, for the first of its sharers that works afterwards. The matrix
//! and the sets come from these faults exactly as they do on a real host.

use super::workload::Sharing;
use super::{Automatic, Scenario};
use crate::detection::{Access, Detector};
use crate::identity::TaskId;
use crate::matrix::SharingMatrix;
use crate::scatter::scatter;
use crate::sets::CoscheduledSets;
use crate::tree::{DependencyTree, Pairing};

/// A region and who uses it.
struct Region {
    sharers: Vec<TaskId>,
    /// A region of a guest's kernel is touched by housekeeping, others by programs.
    is_kernel: bool,
    is_armed: bool,
}

/// Which kind of work a task does when it touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toucher {
    Program,
    Kernel,
}

/// The state of detection.
pub(super) struct Watch {
    settings: Automatic,
    seed: u64,
    scans: u64,
    regions: Vec<Region>,
    armed: usize,
    detector: Detector<usize>,
    pub matrix: SharingMatrix,
    was_reset: bool,
}

impl Watch {
    pub fn new(settings: Automatic, scenario: &Scenario) -> Self {
        let mut regions = Vec::new();
        let region = |sharers: Vec<TaskId>, is_kernel| Region {
            sharers,
            is_kernel,
            is_armed: false,
        };
        for (machine, tasks) in scenario.machines.iter().zip(scenario.tasks_of_machines()) {
            for (number, instance) in machine.instances.iter().enumerate() {
                let threads = instance.vcpus.len();
                let sharing: Sharing = instance.workload.sharing;
                for right in 0..threads {
                    for left in 0..right {
                        let count = sharing.regions(left, right, threads, scenario.seed ^ number as u64);
                        let pair = vec![tasks[instance.vcpus[left]], tasks[instance.vcpus[right]]];
                        regions.extend((0..count).map(|_| region(pair.clone(), false)));
                    }
                }
            }
            let kernel = scenario
                .housekeeping
                .map_or(0, |housekeeping| housekeeping.regions);
            regions.extend((0..kernel).map(|_| region(tasks.clone(), true)));
        }
        let (matrix, detector) = (
            SharingMatrix::new(scenario.tasks()),
            Detector::new(settings.detector),
        );
        let seed = scenario.seed;
        Self {
            settings,
            seed,
            scans: 0,
            regions,
            armed: 0,
            detector,
            matrix,
            was_reset: false,
        }
    }

    pub fn scan_period_ns(&self) -> u64 {
        self.settings.scan_period_ns
    }

    pub fn reevaluation_ns(&self) -> u64 {
        self.settings.reevaluation_ns
    }

    /// Makes every shared region fault again.
    pub fn scan(&mut self) {
        self.scans += 1;
        self.armed = self.regions.len();
        for region in &mut self.regions {
            region.is_armed = true;
        }
    }

    /// Lets the tasks that work now touch what is armed, and answers how many faults each had.
    pub fn touch(&mut self, now_ns: u64, working: &[(TaskId, Toucher)]) -> Vec<(TaskId, u64)> {
        if self.armed == 0 {
            return Vec::new();
        }
        if !self.was_reset && now_ns >= self.settings.reset_ns {
            self.was_reset = true;
            self.matrix.reset();
            self.detector.reset();
        }
        let mut faults: Vec<(TaskId, u64)> = Vec::new();
        let mut kinds: Vec<Option<Toucher>> = vec![None; self.matrix.tasks()];
        for &(task, kind) in working {
            kinds[task.index()] = Some(kind);
        }
        for (number, region) in self
            .regions
            .iter_mut()
            .enumerate()
            .filter(|(_, region)| region.is_armed)
        {
            let wanted = if region.is_kernel {
                Toucher::Kernel
            } else {
                Toucher::Program
            };
            let first = region
                .sharers
                .iter()
                .filter(|task| kinds[task.index()] == Some(wanted))
                .min_by_key(|task| scatter(&[self.seed, self.scans, number as u64, u64::from(task.0)]));
            let Some(&task) = first else { continue };
            region.is_armed = false;
            self.armed -= 1;
            self.detector.observe(
                Access {
                    task,
                    region: number,
                    time_ns: now_ns,
                },
                &mut self.matrix,
            );
            match faults.iter_mut().find(|(other, _)| *other == task) {
                Some((_, count)) => *count += 1,
                None => faults.push((task, 1)),
            }
        }
        faults
    }

    /// The sets of each machine, from what is known so far; a machine of which nothing is known stays whole.
    pub fn find_sets(&mut self, machines: &[Vec<TaskId>], cores: usize) -> CoscheduledSets {
        let mut sets = Vec::new();
        for tasks in machines {
            let part = self.matrix.restricted_to(tasks);
            if part.total() == 0 {
                sets.push(tasks.clone());
                continue;
            }
            let found = CoscheduledSets::find(&part, self.settings.selection);
            let tree = DependencyTree::build(&part, Pairing::Single);
            let found = found.limited_to(cores, &tree);
            sets.extend(
                found
                    .sets()
                    .iter()
                    .map(|set| set.iter().map(|task| tasks[task.index()]).collect()),
            );
        }
        sets.retain(|set: &Vec<TaskId>| !set.is_empty());
        self.matrix.decay(self.settings.keep_permille, 1000);
        CoscheduledSets::new(sets).expect("machines share no vCPU")
    }
}
