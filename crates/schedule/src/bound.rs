//! How few cycles are possible at all: by the longest chain, and by what has to pass through units of limited number.

use crate::bundle::Packer;
use crate::capacity::{Capacity, WIDTH};
use crate::graph::Graph;

/// Signatures of which all sets are tried; of more, only each and all.
const SIGNATURES_MAX: usize = 10;

/// Cycles that no schedule is shorter than. `tails` says how many cycles each item needs to the end of the block
/// beyond its own.
pub fn lower_bound(graph: &Graph, tails: &[u32], packer: &Packer<'_>, capacity: &Capacity) -> u32 {
    let earliest = graph.earliest();
    let heights = heights(graph, tails);
    let chain = earliest
        .iter()
        .zip(&heights)
        .map(|(early, height)| early + height + 1)
        .max();
    let mut bound = chain.unwrap_or(0);
    let present = present(packer, graph.len);
    for set in sets(packer.signature_count()) {
        let members: Vec<usize> = (0..graph.len)
            .filter(|item| set >> packer.signature(*item) & 1 != 0)
            .collect();
        let width = width(capacity, &present, set);
        if members.len() <= width || width == 0 {
            continue;
        }
        let mut starts: Vec<u32> = members.iter().map(|item| earliest[*item]).collect();
        let mut ends: Vec<u32> = members.iter().map(|item| heights[*item]).collect();
        for list in [&mut starts, &mut ends] {
            list.sort_unstable();
            list.dedup();
        }
        for start in &starts {
            for end in &ends {
                let count = members
                    .iter()
                    .filter(|item| earliest[**item] >= *start && heights[**item] >= *end)
                    .count();
                if count > 0 {
                    bound = bound.max(start + count.div_ceil(width) as u32 + end);
                }
            }
        }
    }
    bound
}

/// Cycles that the units of a limited number take for all items, whatever their order.
pub fn units(packer: &Packer<'_>, capacity: &Capacity, len: usize) -> u32 {
    let present = present(packer, len);
    let cycles = sets(packer.signature_count()).into_iter().map(|set| {
        let members = (0..len).filter(|item| set >> packer.signature(*item) & 1 != 0);
        let width = width(capacity, &present, set);
        (members.count() as u32).div_ceil(width.max(1) as u32)
    });
    cycles.max().unwrap_or(0)
}

/// Items by signature.
fn present(packer: &Packer<'_>, len: usize) -> Vec<usize> {
    let mut present = vec![0; packer.signature_count()];
    for item in 0..len {
        present[packer.signature(item)] += 1;
    }
    present
}

/// The sets of signatures that are looked at.
fn sets(signatures: usize) -> Vec<u32> {
    match signatures {
        0..=SIGNATURES_MAX => (1..1 << signatures).collect(),
        _ => (0..signatures as u32)
            .map(|signature| 1 << signature)
            .chain([u32::MAX])
            .collect(),
    }
}

/// Cycles from each item's issue to the end of the block, at least, without its own.
pub fn heights(graph: &Graph, tails: &[u32]) -> Vec<u32> {
    let mut heights = tails.to_vec();
    for edge in graph.edges.iter().rev() {
        heights[edge.from] = heights[edge.from].max(heights[edge.to] + edge.distance);
    }
    heights
}

/// How many items of a set of signatures fit into one cycle.
fn width(capacity: &Capacity, present: &[usize], set: u32) -> usize {
    let kinds: Vec<usize> = (0..present.len()).filter(|kind| set >> kind & 1 != 0).collect();
    let mut counts = vec![0; present.len()];
    most(capacity, present, &kinds, &mut counts, 0, 0)
}

fn most(
    capacity: &Capacity,
    present: &[usize],
    kinds: &[usize],
    counts: &mut Vec<usize>,
    place: usize,
    total: usize,
) -> usize {
    let Some(kind) = kinds.get(place) else {
        return total;
    };
    let mut best = 0;
    for count in 0..=capacity.limits[*kind].min(present[*kind]).min(WIDTH - total) {
        counts[*kind] = count;
        let covers = |excess: &Vec<usize>| {
            excess
                .iter()
                .zip(counts.iter())
                .all(|(least, count)| least <= count)
        };
        if capacity.excesses.iter().any(covers) {
            break;
        }
        best = best.max(most(capacity, present, kinds, counts, place + 1, total + count));
    }
    counts[*kind] = 0;
    best
}
