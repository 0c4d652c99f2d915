//! Which processors of a virtual machine share memory, found out while it runs and without its help.
//!
//! From time to time the monitor takes pages [away](super::sampling) from each processor that has a core. Who touches
//! which page next, and when, goes to the detector of `sidestep-gang`: two processors that touch a piece of memory
//! within a window have communicated (Busse et al., "Partial Coscheduling of Virtual Machines Based on Memory Access
//! Patterns", section 2.2). At each evaluation the matrix of these events is cut into sets of processors that should
//! run together (section 3). What was seen until the guest has started is forgotten once (section 4).
//!
//! All of it is a virtual machine's own: what it finds depends on what its processors did and on nothing else. What it
//! costs is charged to them, and is earned before: a share of what they run is saved, up to what two rounds can cost. A
//! round is made when there is enough for all that its pages can cost, their return included; a fill is noted when
//! there is enough for a round beside it. So detection never costs more than its share, in short runs neither.

use std::collections::VecDeque;

use serde::Serialize;
use sidestep_gang::detection::Access;
use sidestep_gang::{
    CoscheduledSets, DependencyTree, Detector, DetectorSettings, Pairing, Savings, Selection, SharingMatrix,
    TaskId,
};

use super::VirtualMachine;
use super::processor::VirtualProcessor;
use super::sampling::Sampling;
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;

/// How it is found out who shares memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectionSettings {
    /// From one round, in which pages are taken away, to the next.
    pub period_ns: u64,
    /// The most pages that a round takes away from a processor.
    pub sample: usize,
    /// The size of a piece of memory that counts as one: 2 to this power bytes.
    pub granularity_log2: u32,
    /// Two touches further apart than this are no communication.
    pub window_ns: u64,
    /// When what was seen until then is forgotten.
    pub start_up_ns: u64,
    /// From one evaluation to the next, the first of them so long after the start-up.
    pub evaluation_ns: u64,
    /// The part of each count that an evaluation with new events leaves, in thousandths.
    pub keep_permille: u32,
    /// The most that detection may cost, in thousandths of what the virtual machine's processors run.
    pub budget_permille: u32,
    /// How sets are cut from the dependency tree.
    pub selection: Selection,
}

impl Default for DetectionSettings {
    /// Five seconds between evaluations are the paper's (section 4). The window is `gang watch`'s. The rest is assumed:
    /// at 32 pages in 10 ms a full table of 8192 pages takes 2.6 s, less than the window, and a page of the guest is
    /// 16 kB as IA-64 kernels have it. A Linux guest has started within a second. Counts are halved, so that a phase of
    /// the guest's is forgotten after a few evaluations. The goal is one hundredth of a program's time; half of it is
    /// what detection may take itself, since who is held up holds those up that wait for it.
    fn default() -> DetectionSettings {
        DetectionSettings {
            period_ns: 10_000_000,
            sample: 32,
            granularity_log2: 14,
            window_ns: 4_000_000_000,
            start_up_ns: 1_000_000_000,
            evaluation_ns: 5_000_000_000,
            keep_permille: 500,
            budget_permille: 5,
            selection: Selection::Modularity,
        }
    }
}

/// What detection did, and what that cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DetectionCounts {
    /// Rounds of a processor.
    pub rounds: u64,
    /// Rounds that were left out because too little had been saved.
    pub left_out: u64,
    /// Pages that were taken away.
    pub taken: u64,
    /// Extra faults: references to such pages.
    pub faults: u64,
    /// Fills of the shadow that were noted.
    pub fills: u64,
    /// Evaluations.
    pub evaluations: u64,
}

/// Sets that were found, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundSets {
    /// When.
    pub time: Cycle,
    /// Processors that should run together, by their numbers in the virtual machine.
    pub sets: CoscheduledSets,
}

/// What is known of a virtual machine's sharing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DetectionReport {
    /// What was done.
    #[serde(flatten)]
    pub counts: DetectionCounts,
    /// Cycles that it took of the processors, exits included.
    pub cycles: u64,
    /// Accesses for which the detector had no room.
    pub lost: u64,
    /// Communication events of each pair of processors.
    pub matrix: SharingMatrix,
    /// The sets that were found, each time they were others: the last of them.
    pub found: Vec<FoundSets>,
}

/// The most found sets that are kept.
const FOUND_MAX: usize = 64;
/// The most pieces of memory that the detector remembers, a gigabyte of 16 kB pages.
const REGIONS_MAX: usize = 1 << 16;

/// The detection of one virtual machine.
pub(super) struct Detection {
    settings: DetectionSettings,
    detector: Detector<u64>,
    matrix: SharingMatrix,
    savings: Savings,
    /// What a round of all processors can cost.
    round_cost: u64,
    /// What was spent.
    cycles: u64,
    counts: DetectionCounts,
    found: VecDeque<FoundSets>,
    next_round: Cycle,
    /// When the start-up ends, until it has.
    start_up: Option<Cycle>,
    next_evaluation: Cycle,
    /// Whether there were events since the last evaluation.
    has_new: bool,
    /// What its processors had run when that was entered last.
    ran: u64,
}

impl Detection {
    fn new(settings: DetectionSettings, processors: usize, costs: &HostCosts) -> Detection {
        let after = |ns: u64| Cycle::START.saturating_add(costs.cycles_in(ns));
        let detector = DetectorSettings {
            window_ns: settings.window_ns,
            regions_max: REGIONS_MAX,
            skips_first_touch: false,
        };
        let round_cost = processors as u64 * VirtualProcessor::round_cost(costs, settings.sample as u64);
        Detection {
            detector: Detector::new(detector),
            matrix: SharingMatrix::new(processors),
            savings: Savings::new(settings.budget_permille, 2 * round_cost),
            round_cost,
            cycles: 0,
            counts: DetectionCounts::default(),
            found: VecDeque::new(),
            next_round: after(settings.period_ns),
            start_up: Some(after(settings.start_up_ns)),
            next_evaluation: after(settings.start_up_ns.saturating_add(settings.evaluation_ns)),
            has_new: false,
            ran: 0,
            settings,
        }
    }

    /// Cuts the matrix into sets of at most `cores` processors; `None` if nothing was seen yet.
    fn cut(&self, cores: usize) -> Option<CoscheduledSets> {
        if self.matrix.total() == 0 {
            return None;
        }
        let pairing = match self.settings.selection {
            Selection::Factor(_) => Pairing::Rounds,
            Selection::Modularity => Pairing::Single,
        };
        let tree = DependencyTree::build(&self.matrix, pairing);
        let sets = CoscheduledSets::select(&self.matrix, &tree, self.settings.selection);
        Some(sets.limited_to(cores, &tree))
    }
}

impl VirtualMachine {
    /// Has the monitor find out from now on who of its processors share memory; of one alone there is nothing to find.
    pub(crate) fn detect(&mut self, settings: DetectionSettings, costs: &HostCosts) {
        let processors = self.processors.len();
        if processors < 2 {
            return;
        }
        self.detection = Some(Detection::new(settings, processors, costs));
        for processor in &mut self.processors {
            processor.sampling = Some(Sampling::paused());
        }
    }

    /// Forgets the start-up and evaluates, if it is time for that; the sets, of at most `cores` processors each, if
    /// they are others than before.
    pub(crate) fn evaluate(
        &mut self,
        costs: &HostCosts,
        time: Cycle,
        cores: usize,
    ) -> Option<&CoscheduledSets> {
        let detection = self.detection.as_mut()?;
        if self.exit_code.is_some() {
            return None;
        }
        if detection.start_up.is_some_and(|end| time >= end) {
            detection.start_up = None;
            detection.has_new = false;
            detection.matrix.reset();
            detection.detector.reset();
        }
        if time < detection.next_evaluation {
            return None;
        }
        let every = costs.cycles_in(detection.settings.evaluation_ns).max(1);
        detection.next_evaluation = following(detection.next_evaluation, every, time);
        detection.counts.evaluations += 1;
        let sets = detection.cut(cores)?;
        if std::mem::take(&mut detection.has_new) {
            let lose = 1000 - detection.settings.keep_permille;
            detection.matrix.fade(lose, 1000);
        }
        if detection.found.back().is_some_and(|last| last.sets == sets) {
            return None;
        }
        if detection.found.len() == FOUND_MAX {
            detection.found.pop_front();
        }
        detection.found.push_back(FoundSets { time, sets });
        detection.found.back().map(|last| &last.sets)
    }

    /// Takes pages away from the processors that have a core, if it is time for that.
    pub(crate) fn sample(&mut self, costs: &HostCosts, time: Cycle) {
        let Some(detection) = &mut self.detection else {
            return;
        };
        if self.exit_code.is_some() || time < detection.next_round {
            return;
        }
        let every = costs.cycles_in(detection.settings.period_ns).max(1);
        detection.next_round = following(detection.next_round, every, time);
        let cycles = self.processors.iter().map(|processor| {
            let spent = processor.cycles();
            spent.guest + spent.monitor
        });
        let ran: u64 = cycles.sum();
        detection.savings.earn(ran - detection.ran);
        detection.ran = ran;
        // A round is for all or for none: who comes first is not to spend what is there.
        let is_left_out = detection.savings.left() < detection.round_cost;
        let scheduled = self.processors.iter_mut().zip(&self.scheduled);
        for (processor, _) in scheduled.filter(|(_, scheduled)| **scheduled) {
            if is_left_out {
                detection.counts.left_out += 1;
                continue;
            }
            let taken = processor.take_away(costs, detection.settings.sample);
            if taken.cycles > 0 {
                detection.counts.rounds += 1;
                detection.counts.taken += taken.pages;
                detection.cycles += taken.cycles;
                // With what it takes to give the pages back, which may come much later.
                let is_paid = (detection.savings).spend(VirtualProcessor::round_cost(costs, taken.pages));
                debug_assert!(is_paid, "a whole round was saved");
            }
        }
        self.pause_notes(costs);
    }

    /// Takes note of what a processor has touched.
    pub(super) fn note_touched(&mut self, costs: &HostCosts, index: usize) {
        let processor = &mut self.processors[index];
        let (Some(detection), Some(touched)) = (&mut self.detection, processor.take_touched()) else {
            return;
        };
        detection.cycles += touched.cycles;
        match touched.was_taken {
            // Paid for when it was taken.
            true => detection.counts.faults += 1,
            false => {
                detection.counts.fills += 1;
                let is_paid = detection.savings.spend(touched.cycles);
                debug_assert!(is_paid, "notes are paused otherwise");
            }
        }
        let access = Access {
            task: TaskId::new(index),
            region: touched.address.0 >> detection.settings.granularity_log2,
            time_ns: costs.nanoseconds(processor.clock().since(Cycle::START)),
        };
        let events = detection.detector.observe(access, &mut detection.matrix);
        detection.has_new |= events > 0;
        self.pause_notes(costs);
    }

    /// Has its processors note fills, or not, as the savings allow.
    fn pause_notes(&mut self, costs: &HostCosts) {
        let is_paused = (self.detection.as_ref()).is_some_and(|detection| {
            detection.savings.left() < detection.round_cost + costs.cycles(Cost::SampledPage)
        });
        let sampling = self.processors.iter_mut();
        for sampling in sampling.filter_map(|processor| processor.sampling.as_mut()) {
            sampling.is_paused = is_paused;
        }
    }

    /// What is known of its sharing, if that is found out.
    pub fn detection(&self) -> Option<DetectionReport> {
        let detection = self.detection.as_ref()?;
        Some(DetectionReport {
            counts: detection.counts,
            cycles: detection.cycles,
            lost: detection.detector.lost(),
            matrix: detection.matrix.clone(),
            found: detection.found.iter().cloned().collect(),
        })
    }
}

/// The first time after `now` that is whole periods after `due`, which has come.
fn following(due: Cycle, period: u64, now: Cycle) -> Cycle {
    let missed = now.since(due) / period;
    due.saturating_add(period.saturating_mul(missed.saturating_add(1)))
}
