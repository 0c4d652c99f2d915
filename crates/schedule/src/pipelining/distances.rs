//! Which order the instructions of a loop keep, and how many cycles apart they issue, also in different iterations.

use sidestep_itanium2::Parameters;
use sidestep_itanium2::scoreboard::Operand;

use super::condition::{Condition, wait};
use super::values::{Home, Values};
use crate::block::{Block, Item};
use crate::graph::facts::Facts;
use crate::graph::latency;
use crate::rename::File;
use crate::sequencing::{Parts, State};

/// Iterations in which a loop's instructions can be at the same time, at most.
pub(super) const STAGES_MAX: usize = 16;

/// An order to keep: `to` of the iteration `iterations` later issues so many cycles behind `from` at the earliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Distance {
    pub from: usize,
    pub to: usize,
    pub iterations: u32,
    pub cycles: u32,
}

impl Distance {
    /// The same between instructions of one iteration, if an iteration begins every `interval` cycles.
    pub fn at(&self, interval: u32) -> i64 {
        i64::from(self.cycles) - i64::from(self.iterations) * i64::from(interval)
    }
}

/// The distances of a loop without its branch.
pub(super) fn distances(
    block: &Block,
    values: &Values,
    condition: Option<&Condition>,
    parameters: &Parameters,
) -> Vec<Distance> {
    let count = block.items.len();
    let mut found = Vec::new();
    if let Some(condition) = condition {
        add_condition(&mut found, block, values, condition, parameters);
    }
    add_common(&mut found, block, values);
    add_values(&mut found, values);
    add_latencies(&mut found, block, parameters);
    keep_longest(&mut found);
    debug_assert!(
        found
            .iter()
            .all(|distance| distance.from < count && distance.to < count)
    );
    found
}

/// Leaves of several distances between the same two the longest.
pub(super) fn keep_longest(found: &mut Vec<Distance>) {
    found.sort_unstable_by_key(|distance| {
        let Distance {
            from,
            to,
            iterations,
            cycles,
        } = *distance;
        (from, to, iterations, std::cmp::Reverse(cycles))
    });
    found.dedup_by_key(|distance| (distance.from, distance.to, distance.iterations));
}

/// Orders by registers that hold one thing for all iterations, by memory and by state.
fn add_common(found: &mut Vec<Distance>, block: &Block, values: &Values) {
    let count = block.items.len();
    let mut moved = Parts::NONE;
    for value in &values.values {
        match value.file {
            File::General => moved.general |= 1 << value.register,
            File::Float => moved.float |= 1 << value.register,
            File::Predicate => moved.predicate |= 1 << value.register,
        }
    }
    // The names of stacked and rotating registers change at the branch alone.
    moved.state |= State::FRAME;
    let mut copies = Block::default();
    let mut common: Vec<Item> = Vec::new();
    for copy in 0..STAGES_MAX {
        for (index, item) in block.items.iter().enumerate() {
            copies.items.push(item.clone());
            copies.objects.push(block.objects[index]);
            copies.areas.push(block.areas[index]);
            copies.resident.push(false);
            copies.dead.push(Parts::NONE);
            copies.targets.push(None);
            let mut item = item.clone();
            let effects = &mut item.effects;
            for parts in [&mut effects.reads, &mut effects.writes, &mut effects.raises] {
                *parts = parts.without(moved);
            }
            effects.clears &= !moved.predicate;
            effects.sets &= !moved.predicate;
            common.push(item);
        }
        let asserted = block.mutex.iter();
        copies
            .mutex
            .extend(asserted.map(|(before, registers)| (before + copy * count, *registers)));
    }
    let facts = Facts::new(&copies).of_iterations(&common, count);
    for from in 0..count {
        for to in from + 1..STAGES_MAX * count {
            if let Some(cycles) = facts.order(from, to) {
                found.push(Distance {
                    from,
                    to: to % count,
                    iterations: (to / count) as u32,
                    cycles: cycles.max(0) as u32,
                });
            }
        }
    }
}

/// Orders by values that are in other registers: what reads one is behind what writes it, and where its register is
/// the same in all iterations, the next is written behind that.
fn add_values(found: &mut Vec<Distance>, values: &Values) {
    for value in &values.values {
        let pairs = value.accesses.iter().enumerate().flat_map(|(index, first)| {
            value.accesses[index + 1..]
                .iter()
                .map(move |second| (first, second))
        });
        for (first, second) in pairs {
            if !first.writes && !second.writes {
                continue;
            }
            found.push(Distance {
                from: first.item,
                to: second.item,
                iterations: u32::from(second.is_next) - u32::from(first.is_next),
                cycles: u32::from(first.writes),
            });
        }
        if value.home == Home::Rotating {
            continue;
        }
        for access in &value.accesses {
            for writer in value.writers() {
                let iterations = 1 - u32::from(access.is_next);
                if iterations > 0 || access.item != writer.item {
                    found.push(Distance {
                        from: access.item,
                        to: writer.item,
                        iterations,
                        cycles: u32::from(access.writes),
                    });
                }
            }
        }
    }
}

/// What the next iteration's instructions wait for that are executed only if there is one.
fn add_condition(
    found: &mut Vec<Distance>,
    block: &Block,
    values: &Values,
    condition: &Condition,
    parameters: &Parameters,
) {
    let compare = &block.items[condition.maker];
    for access in &values.values[condition.value].accesses {
        if access.is_next {
            found.push(Distance {
                from: condition.maker,
                to: access.item,
                iterations: 1,
                cycles: wait(
                    compare,
                    &block.items[access.item],
                    condition.predicate,
                    parameters,
                ),
            });
        }
    }
}

/// What the pipeline waits for: the latency of what wrote an operand last, in this iteration or the one before.
fn add_latencies(found: &mut Vec<Distance>, block: &Block, parameters: &Parameters) {
    let count = block.items.len();
    for to in 0..count {
        let item = &block.items[to];
        let sources = item.known.sources().iter().map(|(operand, _)| *operand);
        for operand in sources.chain([item.known.predicate]) {
            if operand == Operand::ALWAYS {
                continue;
            }
            let earlier = (0..count + to).rev().take(count);
            let written = earlier.into_iter().find_map(|from| {
                let cycles = latency(&block.items[from % count], item, operand, parameters)?;
                Some((from, cycles))
            });
            if let Some((from, cycles)) = written {
                found.push(Distance {
                    from: from % count,
                    to,
                    iterations: u32::from(from < count),
                    cycles,
                });
            }
        }
    }
}

/// The longest chain of distances from each instruction on, if an iteration begins every `interval` cycles; `None` if
/// one comes back to itself too late for that.
pub(super) fn heights(distances: &[Distance], count: usize, interval: u32) -> Option<Vec<i64>> {
    let mut heights = vec![0i64; count];
    for _ in 0..=count {
        let mut is_settled = true;
        for distance in distances {
            let height = heights[distance.to] + distance.at(interval);
            if height > heights[distance.from] {
                heights[distance.from] = height;
                is_settled = false;
            }
        }
        if is_settled {
            return Some(heights);
        }
    }
    None
}

/// Cycles for an iteration that the chains from one iteration to the next allow, at least.
pub(super) fn recurrence(distances: &[Distance], count: usize) -> u32 {
    let most = distances
        .iter()
        .map(|distance| distance.cycles)
        .sum::<u32>()
        .max(1);
    let intervals: Vec<u32> = (1..=most).collect();
    intervals[..intervals.len() - 1]
        .partition_point(|interval| heights(distances, count, *interval).is_none()) as u32
        + 1
}
