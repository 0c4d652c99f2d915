//! A schedule in as many bundles as its block had.
//!
//! The scheduler ends a group with a bundle, as that leaves the next one the most room; templates with a stop in the
//! middle make the same groups shorter. What is left is filled with bundles of `nop`s: beside groups of one bundle,
//! where they take no cycle, then behind the block's branch.

use sidestep_ia64::encoding::{Bundle, Operation, Template, Unit};
use sidestep_itanium2::Parameters;

use crate::block::{Block, Item};
use crate::bundle::{Content, Placed};
use crate::graph::Graph;
use crate::list::stands_before;
use crate::verify;
use crate::worlds::Worlds;

/// Templates, by their even value, with the slot behind which they have a stop inside; those without first.
const TEMPLATES: [(u8, Option<usize>); 12] = [
    (0x08, None),
    (0x00, None),
    (0x04, None),
    (0x0c, None),
    (0x0e, None),
    (0x10, None),
    (0x18, None),
    (0x1c, None),
    (0x12, None),
    (0x16, None),
    (0x0a, Some(0)),
    (0x02, Some(1)),
];
/// Bundles that a group begins at most.
const GROUP_BUNDLES: usize = 3;
/// Slots that are tried for the bundles of a group before it counts as one that has none.
const STEPS: usize = 50_000;
/// A bundle of `nop`s in the middle of a group.
const PAD: Placed = Placed {
    template: 0x08,
    stop: false,
    slots: [Content::Nop; 3],
};
/// How often a loop follows itself when its cycles are counted.
const ROUNDS: usize = 4;

/// Bundles for a block, and what they cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// As many as there is room for.
    pub bundles: Vec<Placed>,
    /// Their cycles: see [`cost`].
    pub cycles: u32,
}

/// The cycles of a block on the model: of several rounds of one that is a loop; without bundles of `nop`s behind a
/// branch that need not come back.
pub fn cost(bundles: &[Bundle], is_loop: bool, parameters: &Parameters) -> u32 {
    let is_empty = |bundle: &Bundle| {
        bundle
            .decode()
            .all(|slot| slot.instruction.is_ok_and(|it| it.operation == Operation::Nop))
    };
    let executed = bundles
        .iter()
        .rposition(|bundle| !is_empty(bundle))
        .map_or(0, |last| last + 1);
    let leaves = executed.checked_sub(1).is_some_and(|last| {
        let mut decoded = bundles[last].decode();
        decoded.any(|slot| {
            slot.instruction
                .is_ok_and(|it| matches!(it.operation, Operation::Branch { .. } | Operation::Return))
        })
    });
    let bundles = if leaves { &bundles[..executed] } else { bundles };
    let rounds = if is_loop { ROUNDS } else { 1 };
    let worlds = Worlds::of_code(bundles).repeated(rounds);
    verify::cycles(&bundles.repeat(rounds), &worlds, parameters)
}

/// The best of what fits: the schedule as it is and with stops inside bundles, with its padding in several places.
pub fn fit(
    block: &Block,
    graph: &Graph,
    schedule: &[Placed],
    (room, is_loop): (usize, bool),
    parameters: &Parameters,
) -> Option<Fitted> {
    let compacted = compact(block, graph, schedule, parameters);
    let mut best: Option<Fitted> = None;
    for bundles in [Some(schedule.to_vec()), compacted].into_iter().flatten() {
        for bundles in padded(block, &bundles, room) {
            let encoded: Vec<Bundle> = bundles.iter().map(|placed| placed.encode(&block.items)).collect();
            let cycles = cost(&encoded, is_loop, parameters);
            if best.as_ref().is_none_or(|best| cycles < best.cycles) {
                best = Some(Fitted { bundles, cycles });
            }
        }
    }
    best
}

/// Bundles with padding: as far as possible beside groups of one, or all of it at an end. A call's return address is
/// the bundle behind it, so what is left stands before a call.
fn padded(block: &Block, bundles: &[Placed], room: usize) -> Vec<Vec<Placed>> {
    let Some(missing) = room.checked_sub(bundles.len()) else {
        return Vec::new();
    };
    let calls = block
        .items
        .iter()
        .any(|item| matches!(item.instruction.operation, Operation::Call { .. }));
    // What has to be the first of its group has no `nop` before it.
    let is_first = |placed: &Placed| {
        let begins =
            |content: &Content| matches!(content, Content::Item(item) if block.items[*item].begins_group());
        placed.slots.iter().any(begins)
    };
    let with_rest = |mut bundles: Vec<Placed>, rest: usize| {
        let place = if calls { 0 } else { bundles.len() };
        let stop = place == 0 && bundles.first().is_some_and(is_first);
        bundles.splice(place..place, vec![Placed { stop, ..PAD }; rest]);
        bundles
    };
    let begins_with_bundle = |index: usize| index == 0 || bundles[index - 1].stop;
    let is_alone = |index: &usize| {
        let ends = bundles[*index].stop || middle(bundles[*index].template).is_some();
        begins_with_bundle(*index) && ends && !is_first(&bundles[*index])
    };
    let alone: Vec<usize> = (0..bundles.len()).filter(is_alone).take(missing).collect();
    let mut beside = Vec::new();
    for (index, placed) in bundles.iter().enumerate() {
        if alone.contains(&index) {
            beside.push(PAD);
        }
        beside.push(*placed);
    }
    vec![
        with_rest(beside, missing - alone.len()),
        with_rest(bundles.to_vec(), missing),
    ]
}

/// The slot behind which a template has a stop inside.
fn middle(template: u8) -> Option<usize> {
    let (_, middle) = TEMPLATES.iter().find(|(even, _)| *even == template)?;
    *middle
}

/// The items of each group, in the order of their slots.
fn groups(bundles: &[Placed]) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new()];
    for placed in bundles {
        for (slot, content) in placed.slots.iter().enumerate() {
            if let Content::Item(item) = content {
                groups.last_mut().expect("there is one").push(*item);
            }
            if middle(placed.template) == Some(slot) || slot == 2 && placed.stop {
                groups.push(Vec::new());
            }
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// The same groups in as few bundles as templates allow; `None` if a group has no place in some.
fn compact(
    block: &Block,
    graph: &Graph,
    schedule: &[Placed],
    parameters: &Parameters,
) -> Option<Vec<Placed>> {
    // By the slots of the last bundle that the next group may fill, the fewest bundles so far.
    let mut ways: Vec<Vec<Placed>> = vec![Vec::new()];
    for group in groups(schedule) {
        let mut next: [Option<Vec<Placed>>; 3] = [None, None, None];
        for way in &ways {
            let search = Compaction {
                items: &block.items,
                graph,
                parameters,
                group: &group,
                width: group
                    .iter()
                    .map(|item| usize::from(block.items[*item].slots()))
                    .sum(),
                start: (0, 0),
                steps: STEPS,
                ends: [None, None, None],
            };
            for (end, found) in next.iter_mut().zip(search.run(way)) {
                let is_better = |found: &Vec<Placed>| end.as_ref().is_none_or(|end| found.len() < end.len());
                if let Some(found) = found.filter(is_better) {
                    *end = Some(found);
                }
            }
        }
        ways = next.into_iter().flatten().collect();
    }
    let mut shortest = ways.into_iter().min_by_key(Vec::len)?;
    shortest.last_mut()?.stop = true;
    Some(shortest)
}

/// The search for the bundles of one group behind those of the groups before it.
struct Compaction<'a> {
    items: &'a [Item],
    graph: &'a Graph,
    parameters: &'a Parameters,
    group: &'a [usize],
    /// Slots that the group fills.
    width: usize,
    /// The bundle and the slot that it begins at.
    start: (usize, usize),
    /// Slots that may still be tried.
    steps: usize,
    /// Bundles: with the last one full, with its slots 1 and 2 open, with its slot 2 open.
    ends: [Option<Vec<Placed>>; 3],
}

impl Compaction<'_> {
    /// Looks for ends with the fewest bundles that there are.
    fn run(mut self, way: &[Placed]) -> [Option<Vec<Placed>>; 3] {
        let open = way
            .last()
            .filter(|last| !last.stop)
            .and_then(|last| middle(last.template));
        for begun in 0..=GROUP_BUNDLES {
            let mut bundles = way.to_vec();
            match open {
                Some(slot) => {
                    self.start = (way.len() - 1, slot + 1);
                    self.slot(&mut bundles, slot + 1, 0, begun);
                    // The rest of the open bundle may as well be left.
                    bundles[way.len() - 1].stop = true;
                    self.start = (way.len(), 0);
                    self.bundle(&mut bundles, 0, begun);
                }
                None => {
                    self.start = (way.len(), 0);
                    self.bundle(&mut bundles, 0, begun);
                }
            }
            if self.ends.iter().any(Option::is_some) {
                break;
            }
        }
        self.ends
    }

    /// Takes down bundles of which the last is open from a slot on, or full.
    fn end(&mut self, bundles: &[Placed], open: usize) {
        self.ends[open].get_or_insert_with(|| bundles.to_vec());
    }

    fn is_done(&self, placed: u64) -> bool {
        placed.count_ones() as usize == self.group.len()
    }

    /// Begins one more bundle, of `left`.
    fn bundle(&mut self, bundles: &mut Vec<Placed>, placed: u64, left: usize) {
        if left == 0 {
            return;
        }
        for (template, _) in TEMPLATES {
            bundles.push(Placed { template, ..PAD });
            self.slot(bundles, 0, placed, left - 1);
            bundles.pop();
        }
    }

    /// Fills a slot of the last bundle, and those behind it.
    fn slot(&mut self, bundles: &mut Vec<Placed>, slot: usize, placed: u64, left: usize) {
        let last = bundles.len() - 1;
        let inner = middle(bundles[last].template).map(|inner| inner + 1);
        let is_behind_stop = inner == Some(slot) && self.start != (last, slot);
        if slot == 3 || is_behind_stop {
            match self.is_done(placed) {
                true if is_behind_stop => self.end(bundles, slot),
                true => {
                    bundles[last].stop = true;
                    self.end(bundles, 0);
                    bundles[last].stop = false;
                }
                false if is_behind_stop => {}
                false => self.bundle(bundles, placed, left),
            }
            return;
        }
        let taken = self
            .group
            .iter()
            .enumerate()
            .filter(|(index, _)| placed >> index & 1 != 0);
        let taken: usize = taken
            .map(|(_, item)| usize::from(self.items[*item].slots()))
            .sum();
        if self.steps == 0
            || self.width - taken > 3 * left + 3 - slot
            || self.ends.iter().all(Option::is_some)
        {
            return;
        }
        self.steps -= 1;
        let template = Template::new(bundles[last].template);
        let Some(units) = template.units() else { return };
        let (unit, width) = match units[slot] {
            Unit::L => (Unit::X, 2),
            unit => (unit, 1),
        };
        for index in 0..self.group.len() {
            if !self.fits(index, placed, (last, slot), (unit, template)) {
                continue;
            }
            if width == 2 {
                bundles[last].slots[slot] = Content::Half;
            }
            bundles[last].slots[slot + width - 1] = Content::Item(self.group[index]);
            self.slot(bundles, slot + width, placed | 1 << index, left);
            bundles[last].slots[slot..].fill(Content::Nop);
        }
        // A long bundle without its instruction is never better than another one.
        if width == 1 {
            self.slot(bundles, slot + 1, placed, left);
        }
    }

    /// Whether one of the group may be in a slot, behind those that have been placed.
    fn fits(&self, index: usize, placed: u64, place: (usize, usize), way: (Unit, Template)) -> bool {
        let before = stands_before(self.graph);
        let item = &self.items[self.group[index]];
        let is_next =
            |other: usize| placed >> other & 1 != 0 || !before(self.group[other], self.group[index]);
        placed >> index & 1 == 0
            && (0..self.group.len()).all(is_next)
            && (place == self.start || !item.begins_group())
            && (place.1 == 2 || !item.ends_bundle())
            && item
                .in_slot(way.0, place.1 as u8, way.1, self.parameters)
                .is_some()
    }
}
