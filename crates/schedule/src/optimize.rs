//! A block from its instructions to its bundles, with what is known of how good they are.

use std::time::{Duration, Instant};

use sidestep_ia64::encoding::Bundle;
use sidestep_itanium2::Parameters;

use crate::block::Block;
use crate::bound::{heights, lower_bound};
use crate::bundle::{Content, Packer, Placed};
use crate::capacity::Capacity;
use crate::exact::{Answer, Question};
use crate::graph::{Graph, Latencies};
use crate::list::{Schedule, schedule, stands_before};
use crate::verify;

/// How to schedule.
#[derive(Clone, Debug)]
pub struct Options {
    /// The processor.
    pub parameters: Parameters,
    /// How long the exact scheduler may take for a block; none for the list scheduler alone.
    pub time_limit: Duration,
}

/// A block, scheduled.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The cycle of each item.
    pub schedule: Schedule,
    /// The bundles.
    pub bundles: Vec<Placed>,
    /// Cycles of the list scheduler.
    pub listed: u32,
    /// Cycles of the schedule.
    pub cycles: u32,
    /// Cycles of the bundles on the model: as many, else the model knows something that the scheduler does not.
    pub modelled: u32,
    /// Cycles that no schedule is shorter than.
    pub bound: u32,
    /// Cycles with unlimited units and a result in the next group: what the architecture allows.
    pub architectural: u32,
}

impl Outcome {
    /// Whether no shorter schedule exists.
    pub fn is_optimal(&self) -> bool {
        self.modelled <= self.bound
    }
}

/// Schedules whose lateness on the model is learnt from before the scheduler gives up to agree with it.
const LESSONS: usize = 200;

/// Schedules a block.
pub fn optimize(block: &Block, options: &Options) -> Outcome {
    improve(block, options, None, 0)
}

/// Schedules a block of which a schedule and a bound may be known.
pub(crate) fn improve(block: &Block, options: &Options, known: Option<Schedule>, bound: u32) -> Outcome {
    let parameters = &options.parameters;
    let architectural = Graph::new(block, Latencies::Architectural);
    let architectural = architectural.earliest().iter().max().map_or(0, |last| last + 1);
    let graph = Graph::new(block, Latencies::Of(parameters));
    let mut packer = Packer::new(&block.items, parameters);
    let mut present = vec![0; packer.signature_count()];
    for item in 0..block.items.len() {
        present[packer.signature(item)] += 1;
    }
    let capacity = Capacity::new(&packer, &present);
    // Behind an instruction behind which issue splits the rest of its bundle takes a cycle, whatever is in it.
    let tails: Vec<u32> = (0..block.items.len())
        .map(|item| u32::from(packer.splits(item)))
        .collect();
    let length = |schedule: &Schedule| schedule.len(&tails);
    let heights = heights(&graph, &tails);
    let mut bound = lower_bound(&graph, &tails, &packer, &capacity).max(bound);
    let listed = schedule(&graph, &heights, &mut packer);
    let listed_length = length(&listed);
    let known = known.filter(|known| length(known) < listed_length && graph.broken(&known.cycles).is_empty());
    let known = known.and_then(|known| {
        let bundles = packer.layout(&known.groups(), stands_before(&graph)).ok()?;
        Some((known, bundles))
    });
    let (first, bundles) = known.unwrap_or_else(|| {
        let bundles = packer.layout(&listed.groups(), stands_before(&graph));
        let bundles = bundles.expect("the list scheduler packs each group where the one before leaves it");
        (listed, bundles)
    });
    let model = |bundles: &[Placed]| {
        let bundles: Vec<Bundle> = bundles.iter().map(|placed| placed.encode(&block.items)).collect();
        verify::timeline(&bundles, parameters)
    };
    let last = |groups: &[sidestep_itanium2::Group]| groups.last().map_or(0, |group| group.cycle as u32 + 1);
    let groups = model(&bundles);
    let modelled = last(&groups);
    // The processor issues as early as it can, also where the scheduler left time.
    let first = match modelled < length(&first) {
        true => as_issued(&bundles, &groups, &first),
        false => first,
    };
    let mut outcome = Outcome {
        listed: listed_length,
        cycles: length(&first),
        modelled,
        schedule: first,
        bundles,
        bound,
        architectural,
    };
    if options.time_limit.is_zero() {
        return outcome;
    }
    let deadline = Instant::now() + options.time_limit;
    let mut late = Vec::new();
    while outcome.modelled > bound && Instant::now() < deadline {
        let wanted = outcome.modelled - 1;
        let question = Question {
            graph: &graph,
            heights: &heights,
            capacity: &capacity,
            late: &late,
            deadline,
        };
        match question.ask(&mut packer, wanted) {
            Answer::Found(schedule, bundles) => {
                let groups = model(&bundles);
                let modelled = last(&groups);
                if modelled < outcome.modelled {
                    let schedule = match modelled < length(&schedule) {
                        true => as_issued(&bundles, &groups, &schedule),
                        false => schedule,
                    };
                    outcome.cycles = length(&schedule);
                    outcome.modelled = modelled;
                    outcome.schedule = schedule;
                    outcome.bundles = bundles;
                } else if late.len() < LESSONS {
                    late.push(lesson(&schedule, &groups));
                } else {
                    break;
                }
            }
            Answer::Impossible => bound = wanted + 1,
            Answer::Unknown => break,
        }
    }
    outcome.bound = bound;
    outcome
}

/// The cycles in which the model issues the items of bundles.
fn as_issued(bundles: &[Placed], groups: &[sidestep_itanium2::Group], planned: &Schedule) -> Schedule {
    let mut schedule = planned.clone();
    for group in groups {
        for issued in &group.instructions {
            let bundle = ((issued.ip - verify::CODE) / 16) as usize;
            // A long instruction counts as its first half.
            let slots = &bundles[bundle].slots;
            let slot =
                usize::from(issued.slot) + usize::from(slots[usize::from(issued.slot)] == Content::Half);
            if let Content::Item(item) = slots[slot] {
                schedule.cycles[item] = group.cycle as u32;
            }
        }
    }
    schedule
}

/// What made a schedule late on the model: the items up to the first group that issued behind its cycle.
fn lesson(schedule: &Schedule, groups: &[sidestep_itanium2::Group]) -> Vec<(usize, u32)> {
    let planned = schedule.groups();
    let first = planned.first().map_or(0, |group| schedule.cycles[group[0]]);
    let late = planned
        .iter()
        .zip(groups)
        .position(|(items, group)| u64::from(schedule.cycles[items[0]] - first) < group.cycle)
        .unwrap_or(planned.len() - 1);
    let items = planned[..=late].iter().flatten();
    items
        .map(|item| (*item, schedule.cycles[*item] - first))
        .collect()
}
