//! The fast scheduler: cycle by cycle, of the items that are ready those with the longest chain behind them.

use crate::bundle::{Packer, Start};
use crate::graph::{Graph, SystemRead};

/// A cycle for each item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// By item.
    pub cycles: Vec<u32>,
}

impl Schedule {
    /// The items of each cycle in which any issues, in order.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut items: Vec<usize> = (0..self.cycles.len()).collect();
        items.sort_by_key(|item| (self.cycles[*item], *item));
        let groups = items.chunk_by(|first, second| self.cycles[*first] == self.cycles[*second]);
        groups.map(<[usize]>::to_vec).collect()
    }

    /// Cycles from the first to the end; `tails` are those that pass behind each item before the end, at least.
    pub fn len(&self, tails: &[u32]) -> u32 {
        let ends = self
            .cycles
            .iter()
            .zip(tails)
            .map(|(cycle, tail)| cycle + tail + 1);
        ends.max().unwrap_or(0)
    }
}

/// What an item must not share a slot order with: whether the first stands before the second in a group.
pub fn stands_before(graph: &Graph) -> impl Fn(usize, usize) -> bool + Copy + '_ {
    |first, second| first < second && graph.path(first, second) == Some(0)
}

/// A schedule in which nothing is broken, by chains of at most the given heights.
pub fn schedule(graph: &Graph, heights: &[u32], packer: &mut Packer<'_>) -> Schedule {
    let mut cycles: Vec<Option<u32>> = vec![None; graph.len];
    let mut left = graph.len;
    let mut order: Vec<usize> = (0..graph.len).collect();
    order.sort_by_key(|item| (std::cmp::Reverse(heights[*item]), *item));
    let before = stands_before(graph);
    let mut start = Start::Bundle;
    let mut cycle = 0;
    while left > 0 {
        let mut group: Vec<usize> = Vec::new();
        while !is_bubble(graph, &cycles, cycle) {
            let next = order.iter().copied().find(|item| {
                if cycles[*item].is_some() || !is_ready(graph, &cycles, *item, cycle) {
                    return false;
                }
                let mut larger = group.clone();
                larger.push(*item);
                larger.sort_unstable();
                packer.pack(&larger, start, before).is_some()
            });
            let Some(item) = next else { break };
            cycles[item] = Some(cycle);
            group.push(item);
            group.sort_unstable();
            left -= 1;
        }
        if !group.is_empty() {
            start = match group.iter().any(|item| packer.splits(*item)) {
                true => Start::Middle,
                false => Start::Bundle,
            };
        }
        cycle += 1;
    }
    Schedule {
        cycles: cycles.into_iter().map(Option::unwrap_or_default).collect(),
    }
}

/// Whether nothing can issue in a cycle because of what met in the one before.
fn is_bubble(graph: &Graph, cycles: &[Option<u32>], cycle: u32) -> bool {
    graph.recirculations.iter().any(|recirculation| {
        let met = cycles[recirculation.item].map(|at| at + recirculation.distance);
        let issued = |other: &&usize| cycles[**other] == met;
        met.is_some_and(|met| met + 1 == cycle)
            && recirculation.others.iter().filter(issued).count() >= recirculation.least
    })
}

/// Whether a read of a system register has its value a cycle late.
fn is_late(graph: &Graph, cycles: &[Option<u32>], read: &SystemRead) -> bool {
    let Some(at) = cycles[read.item] else { return false };
    graph.reads.iter().any(|other| {
        let earlier = cycles[other.item].filter(|earlier| *earlier < at);
        earlier.is_some_and(|earlier| earlier + other.latency == at + read.latency)
    })
}

/// Whether an item may issue in a cycle, behind what has been placed.
fn is_ready(graph: &Graph, cycles: &[Option<u32>], item: usize, cycle: u32) -> bool {
    let is_behind = graph
        .edges
        .iter()
        .filter(|edge| edge.to == item)
        .all(|edge| cycles[edge.from].is_some_and(|at| at + edge.distance <= cycle));
    let has_values = graph.reads.iter().all(|read| {
        let used = read.uses.iter().find(|(to, _)| *to == item);
        used.is_none_or(|(_, distance)| {
            let late = u32::from(is_late(graph, cycles, read));
            cycles[read.item].is_some_and(|at| at + distance + late <= cycle)
        })
    });
    is_behind
        && has_values
        && graph
            .separations
            .iter()
            .filter(|separation| separation.to == item)
            .all(|separation| {
                cycles[separation.from].is_none_or(|at| at == cycle || at + separation.distance <= cycle)
            })
}
