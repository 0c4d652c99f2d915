//! Iterative modulo scheduling: a cycle for each instruction of an iteration, so that one can begin every few cycles.
//!
//! B. R. Rau, "Iterative Modulo Scheduling", 1996: instructions are placed by the length of the chain behind them; one
//! for which no cycle is free takes its place from others, which are placed again.

use super::distances::{Distance, heights};
use crate::bundle::{Packer, Placed, Start};

/// Placements of an instruction, on average, before an interval is given up.
const EFFORT: usize = 60;

/// A cycle for each instruction, counted from the begin of its iteration; the branch is in the last one of the first
/// interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Modulo {
    /// Cycles between the begins of iterations.
    pub interval: u32,
    /// By instruction, without the branch.
    pub cycles: Vec<u32>,
    /// How many iterations before the newest one that is whose condition the branch goes by, if one ends the loop.
    pub condition: u32,
}

impl Modulo {
    /// How many iterations earlier than the newest one an instruction belongs to.
    pub fn stage(&self, item: usize) -> u32 {
        self.cycles[item] / self.interval
    }

    /// Iterations that are executed at the same time.
    pub fn stages(&self) -> u32 {
        let last = self.cycles.iter().max().copied().unwrap_or(0);
        (last / self.interval).max(self.condition) + 1
    }
}

/// The search for a schedule of one interval.
struct Search<'a, 'b> {
    distances: &'a [Distance],
    packer: &'a mut Packer<'b>,
    interval: u32,
    cycles: Vec<Option<i64>>,
}

/// A schedule with an iteration every `interval` cycles, in as many stages at most; the packer's last item is the
/// branch. Its bundles come with it.
pub(super) fn schedule(
    distances: &[Distance],
    packer: &mut Packer<'_>,
    count: usize,
    interval: u32,
    stages: usize,
) -> Option<(Modulo, Vec<Placed>)> {
    let heights = heights(distances, count, interval)?;
    let mut search = Search {
        distances,
        packer,
        interval,
        cycles: vec![None; count],
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|item| (std::cmp::Reverse(heights[*item]), *item));
    let mut last = vec![-1i64; count];
    for _ in 0..EFFORT * count.max(1) {
        let Some(item) = order.iter().copied().find(|item| search.cycles[*item].is_none()) else {
            break;
        };
        let earliest = search.earliest(item);
        let end = i64::from(interval) * stages as i64;
        let cycles = earliest..(earliest + i64::from(interval)).min(end);
        let free = cycles.into_iter().find(|cycle| search.fits(item, *cycle));
        let cycle = free.unwrap_or((last[item] + 1).max(earliest));
        if cycle >= end {
            return None;
        }
        last[item] = cycle;
        search.put(item, cycle);
    }
    search.finish(count)
}

impl Search<'_, '_> {
    /// The first cycle behind what has been placed.
    fn earliest(&self, item: usize) -> i64 {
        let behind = self
            .distances
            .iter()
            .filter(|distance| distance.to == item && distance.from != item);
        let cycles =
            behind.filter_map(|distance| Some(self.cycles[distance.from]? + distance.at(self.interval)));
        cycles.max().unwrap_or(0).max(0)
    }

    /// The instructions that issue together with those of a cycle, in order.
    fn row(&self, cycle: i64) -> Vec<usize> {
        let row = cycle.rem_euclid(i64::from(self.interval));
        let is_there = |item: &usize| {
            self.cycles[*item].is_some_and(|at| at.rem_euclid(i64::from(self.interval)) == row)
        };
        let mut items: Vec<usize> = (0..self.cycles.len()).filter(is_there).collect();
        if row + 1 == i64::from(self.interval) {
            items.push(self.cycles.len());
        }
        items
    }

    /// Whether the instructions of a row can issue together.
    fn packs(&mut self, row: &[usize]) -> bool {
        let (distances, cycles, interval) = (self.distances, &self.cycles, self.interval);
        let before =
            |first: usize, second: usize| stands_before(distances, cycles, interval, (first, second));
        self.packer.pack(row, Start::Bundle, before).is_some()
    }

    fn fits(&mut self, item: usize, cycle: i64) -> bool {
        self.cycles[item] = Some(cycle);
        let row = self.row(cycle);
        let fits = self.packs(&row);
        self.cycles[item] = None;
        fits
    }

    /// Places an instruction, and takes away what it does not go with.
    fn put(&mut self, item: usize, cycle: i64) {
        self.cycles[item] = Some(cycle);
        for distance in self.distances {
            let other = match item {
                _ if distance.from == distance.to => continue,
                _ if distance.from == item => distance.to,
                _ if distance.to == item => distance.from,
                _ => continue,
            };
            let (Some(from), Some(to)) = (self.cycles[distance.from], self.cycles[distance.to]) else {
                continue;
            };
            if to < from + distance.at(self.interval) {
                self.cycles[other] = None;
            }
        }
        loop {
            let row = self.row(cycle);
            if self.packs(&row) {
                break;
            }
            let branch = self.cycles.len();
            let Some(other) = row.into_iter().rfind(|other| *other != item && *other != branch) else {
                // It does not even go with the branch.
                self.cycles[item] = None;
                break;
            };
            self.cycles[other] = None;
        }
    }

    /// The schedule, if all are placed, with the first in the first interval.
    fn finish(mut self, count: usize) -> Option<(Modulo, Vec<Placed>)> {
        let cycles: Vec<i64> = self.cycles.iter().copied().collect::<Option<_>>()?;
        let interval = i64::from(self.interval);
        let first = cycles.iter().min().copied().unwrap_or(0).div_euclid(interval) * interval;
        self.cycles.iter_mut().flatten().for_each(|cycle| *cycle -= first);
        let groups: Vec<Vec<usize>> = (0..interval)
            .map(|row| self.row(row))
            .filter(|row| !row.is_empty())
            .collect();
        let (distances, placed) = (self.distances, &self.cycles);
        let before = |first, second| stands_before(distances, placed, self.interval, (first, second));
        let bundles = self.packer.layout(&groups, before).ok()?;
        let cycles: Vec<u32> = cycles.into_iter().map(|cycle| (cycle - first) as u32).collect();
        debug_assert_eq!(cycles.len(), count);
        Some((
            Modulo {
                interval: self.interval,
                cycles,
                condition: 0,
            },
            bundles,
        ))
    }
}

/// Whether of two instructions that issue together the first has to stand first. The branch, behind the last of the
/// instructions, stands behind all.
fn stands_before(
    distances: &[Distance],
    cycles: &[Option<i64>],
    interval: u32,
    (first, second): (usize, usize),
) -> bool {
    if first == second {
        return false;
    }
    if first == cycles.len() || second == cycles.len() {
        return second == cycles.len();
    }
    distances.iter().any(|distance| {
        let is_of_both = distance.cycles == 0 && (distance.from, distance.to) == (first, second);
        let met = cycles[first].zip(cycles[second]);
        is_of_both && met.is_some_and(|(from, to)| to == from + distance.at(interval))
    })
}
