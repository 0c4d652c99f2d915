//! A block whose values get other registers, and whose branches, if the source allows it, others pass: scheduled, with
//! its instructions in their new order.
//!
//! The values' own constraints are scheduled first, each value in a register of its own: no choice of registers gives a
//! shorter schedule, so its bound holds for all. Then registers are chosen for that schedule, and the code that they
//! make is scheduled once more.

use std::time::Instant;

use crate::block::Block;
use crate::bundle::Placed;
use crate::exact::Answer;
use crate::graph::facts::is_load;
use crate::list::Schedule;
use crate::optimize::{Options, Outcome, Problem, improve, optimize, order};
use crate::rename::{Assignment, Names, Webs};

/// Cycles that registers may cost before the block keeps its own.
const LONGER_MAX: u32 = 12;
/// Registers that are left out when the scheduler counts values, so that each value finds one that is free for as long.
const SPARED_MAX: usize = 8;

/// A block with other registers.
#[derive(Clone, Debug)]
pub struct Speculated {
    /// The block: the same instructions, in an order in which they do the same.
    pub block: Block,
    /// The item of the original that each of it was.
    pub origins: Vec<usize>,
    /// What registers of the original each of its items names otherwise.
    pub names: Vec<Names>,
    /// By item, whether it has become a speculative load, which stands before a branch that it was behind.
    pub speculative: Vec<bool>,
    /// Its schedule. The bound is that of all choices of registers.
    pub outcome: Outcome,
}

/// Schedules a block with registers of the scheduler's choice; where there are not enough, with its own.
pub fn speculate(block: &Block, options: &Options) -> Speculated {
    let as_it_is = || {
        let outcome = optimize(block, options);
        let origins: Vec<usize> = (0..block.items.len()).collect();
        let mut block = block.clone();
        Speculated {
            speculative: make_speculative(&mut block, &origins, &outcome, options),
            names: vec![Names::default(); origins.len()],
            block,
            origins,
            outcome,
        }
    };
    // What the source says of predicates names registers.
    if !block.mutex.is_empty() {
        return as_it_is();
    }
    let parameters = &options.parameters;
    let webs = Webs::new(block);
    let values = webs.alone(block, parameters);
    let relaxed = optimize(&values, options);
    let Some((sunk, assignment)) = with_registers(block, &values, &webs, options, &relaxed) else {
        let mut own = as_it_is();
        own.outcome.bound = relaxed.bound.min(own.outcome.modelled);
        return own;
    };
    let mut origins: Vec<usize> = (0..block.items.len()).collect();
    origins.sort_by_key(|item| (sunk.cycles[*item], *item));
    let mut renamed = webs.renamed(block, &assignment, &origins, parameters);
    let known = Schedule {
        cycles: origins.iter().map(|item| sunk.cycles[*item]).collect(),
    };
    let mut outcome = improve(&renamed, options, Some(known), relaxed.bound);
    outcome.listed = relaxed.listed;
    outcome.architectural = relaxed.architectural;
    outcome.bound = relaxed.bound.min(outcome.modelled);
    let speculative = make_speculative(&mut renamed, &origins, &outcome, options);
    Speculated {
        speculative,
        names: origins
            .iter()
            .map(|item| webs.names(*item, &assignment))
            .collect(),
        block: renamed,
        origins,
        outcome,
    }
}

/// Makes speculative loads of those that pass branches, and says which.
fn make_speculative(block: &mut Block, origins: &[usize], outcome: &Outcome, options: &Options) -> Vec<bool> {
    let speculative = passing(block, origins, &outcome.bundles);
    let loads = block.items.iter_mut().zip(&speculative);
    for (item, _) in loads.filter(|(_, passes)| **passes) {
        *item = item.speculative(&options.parameters);
    }
    speculative
}

/// By item, whether it is a load that stands before a branch behind which it was.
fn passing(block: &Block, origins: &[usize], bundles: &[Placed]) -> Vec<bool> {
    let order = order(bundles);
    let mut passes = vec![false; block.items.len()];
    for (place, item) in order.iter().enumerate() {
        passes[*item] = is_load(&block.items[*item])
            && order[place..]
                .iter()
                .any(|later| block.items[*later].is_exit() && origins[*later] < origins[*item]);
    }
    passes
}

/// A schedule of the values for which there are registers, with these: that which is known, or else the shortest that
/// the exact scheduler finds in which fewer values last at a time.
fn with_registers(
    block: &Block,
    values: &Block,
    webs: &Webs,
    options: &Options,
    relaxed: &Outcome,
) -> Option<(Schedule, Assignment)> {
    let mut problem = Problem::new(values, &options.parameters);
    let allocated = |problem: &mut Problem<'_>, schedule: &Schedule| {
        let sunk = sink(problem, webs, schedule);
        let assignment = webs.allocate(block, &sunk.cycles)?;
        Some((sunk, assignment))
    };
    let known = allocated(&mut problem, &relaxed.schedule);
    if known.is_some() || options.time_limit.is_zero() {
        return known;
    }
    let deadline = Instant::now() + options.time_limit;
    for cycles in relaxed.cycles..=relaxed.cycles + LONGER_MAX {
        for spared in 0..SPARED_MAX {
            let pressures = webs.pressures(block, spared);
            match problem.ask(cycles, (&[], &pressures), deadline) {
                Answer::Found(schedule, _) => {
                    let found = allocated(&mut problem, &schedule);
                    if found.is_some() {
                        return found;
                    }
                }
                Answer::Impossible => break,
                Answer::Unknown => return None,
            }
        }
    }
    None
}

/// A schedule of the same length in which values are made as late as they can be, so that they need a register for a
/// shorter time: instructions all of whose operands are needed later anyway move towards the end.
fn sink(problem: &mut Problem<'_>, webs: &Webs, schedule: &Schedule) -> Schedule {
    let mut sunk = schedule.clone();
    let end = schedule.cycles.iter().copied().max().unwrap_or(0);
    let mut order: Vec<usize> = (0..problem.graph.len).collect();
    order.sort_by_key(|item| {
        (
            std::cmp::Reverse(schedule.cycles[*item]),
            std::cmp::Reverse(*item),
        )
    });
    for item in order {
        let now = sunk.cycles[item];
        let users = problem.graph.edges.iter().filter(|edge| edge.from == item);
        let latest = users
            .map(|edge| sunk.cycles[edge.to].saturating_sub(edge.distance))
            .min()
            .unwrap_or(end);
        for later in (now + 1..=latest).rev() {
            if !webs.shortens(item, later, &sunk.cycles) {
                continue;
            }
            sunk.cycles[item] = later;
            if problem.graph.broken(&sunk.cycles).is_empty() && problem.layout(&sunk).is_some() {
                break;
            }
            sunk.cycles[item] = now;
        }
    }
    sunk
}
