//! A block whose values get other registers, and whose branches, if the source allows it, others pass: scheduled, with
//! its instructions in their new order.
//!
//! The values' own constraints are scheduled first, each value in a register of its own: no choice of registers gives a
//! shorter schedule, so its bound holds for all. Then registers are chosen for that schedule, and the code that they
//! make is scheduled once more.

use crate::block::Block;
use crate::bundle::Packer;
use crate::graph::{Graph, Latencies};
use crate::list::{Schedule, stands_before};
use crate::optimize::{Options, Outcome, improve, optimize};
use crate::rename::{Names, Webs};

/// A block with other registers.
#[derive(Clone, Debug)]
pub struct Speculated {
    /// The block: the same instructions, in an order in which they do the same.
    pub block: Block,
    /// The item of the original that each of it was.
    pub origins: Vec<usize>,
    /// What registers of the original each of its items names otherwise.
    pub names: Vec<Names>,
    /// Its schedule. The bound is that of all choices of registers.
    pub outcome: Outcome,
}

/// Schedules a block with registers of the scheduler's choice; where there are not enough, with its own.
pub fn speculate(block: &Block, options: &Options) -> Speculated {
    let as_it_is = || Speculated {
        block: block.clone(),
        origins: (0..block.items.len()).collect(),
        names: vec![Names::default(); block.items.len()],
        outcome: optimize(block, options),
    };
    // What the source says of predicates names registers.
    if !block.mutex.is_empty() {
        return as_it_is();
    }
    let parameters = &options.parameters;
    let webs = Webs::new(block);
    let values = webs.alone(block, parameters);
    let relaxed = optimize(&values, options);
    let sunk = sink(&values, &webs, options, &relaxed.schedule);
    let Some(assignment) = webs.allocate(block, &sunk.cycles) else {
        let mut own = as_it_is();
        own.outcome.bound = relaxed.bound.min(own.outcome.modelled);
        return own;
    };
    let mut origins: Vec<usize> = (0..block.items.len()).collect();
    origins.sort_by_key(|item| (sunk.cycles[*item], *item));
    let renamed = webs.renamed(block, &assignment, &origins, parameters);
    let known = Schedule {
        cycles: origins.iter().map(|item| sunk.cycles[*item]).collect(),
    };
    let mut outcome = improve(&renamed, options, Some(known), relaxed.bound);
    outcome.listed = relaxed.listed;
    outcome.architectural = relaxed.architectural;
    outcome.bound = relaxed.bound.min(outcome.modelled);
    Speculated {
        names: origins
            .iter()
            .map(|item| webs.names(*item, &assignment))
            .collect(),
        block: renamed,
        origins,
        outcome,
    }
}

/// A schedule of the same length in which values are made as late as they can be, so that they need a register for a
/// shorter time: instructions all of whose operands are needed later anyway move towards the end.
fn sink(values: &Block, webs: &Webs, options: &Options, schedule: &Schedule) -> Schedule {
    let graph = Graph::new(values, Latencies::Of(&options.parameters));
    let mut packer = Packer::new(&values.items, &options.parameters);
    let mut sunk = schedule.clone();
    let end = schedule.cycles.iter().copied().max().unwrap_or(0);
    let mut order: Vec<usize> = (0..values.items.len()).collect();
    order.sort_by_key(|item| {
        (
            std::cmp::Reverse(schedule.cycles[*item]),
            std::cmp::Reverse(*item),
        )
    });
    for item in order {
        let now = sunk.cycles[item];
        let users = graph.edges.iter().filter(|edge| edge.from == item);
        let latest = users
            .map(|edge| sunk.cycles[edge.to].saturating_sub(edge.distance))
            .min()
            .unwrap_or(end);
        for later in (now + 1..=latest).rev() {
            if !webs.shortens(item, later, &sunk.cycles) {
                continue;
            }
            sunk.cycles[item] = later;
            let fits = graph.broken(&sunk.cycles).is_empty()
                && packer.layout(&sunk.groups(), stands_before(&graph)).is_ok();
            if fits {
                break;
            }
            sunk.cycles[item] = now;
        }
    }
    sunk
}
