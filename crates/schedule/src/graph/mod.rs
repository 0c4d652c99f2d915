//! Which order instructions keep, and how many cycles apart they issue at the earliest.
//!
//! An edge says that one instruction issues so many cycles behind another, at least: 0 in the same group, in order, 1
//! in a group behind it, more where the pipeline would stall. The distances are those of the model's own tables:
//! latencies of classes, bypasses, rules between pairs.

pub(crate) mod facts;

use sidestep_itanium2::Parameters;
use sidestep_itanium2::flags::Flags;
use sidestep_itanium2::parameters::Cost;
use sidestep_itanium2::rules::{BEHIND, Length, RULES};
use sidestep_itanium2::scoreboard::{BYPASSES, Operand, Producer, Use};

use crate::block::{Block, Item};
use crate::worlds::{World, Worlds};
use facts::Facts;

/// An order to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The earlier item.
    pub from: usize,
    /// The later one.
    pub to: usize,
    /// Cycles between their issue, at least.
    pub distance: u32,
}

/// Two items in any order, but if the first issues first, the second follows so many cycles later at the earliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Separation {
    /// The item that may issue first.
    pub from: usize,
    /// The other one.
    pub to: usize,
    /// Cycles between them in that case.
    pub distance: u32,
}

/// A bubble that the pipeline makes when things meet: an item issues, and so many cycles later enough of others do;
/// then nothing issues in the cycle behind these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recirculation {
    /// The item that issues first.
    pub item: usize,
    /// Cycles from it to the others.
    pub distance: u32,
    /// The others.
    pub others: Vec<usize>,
    /// How many of them it takes.
    pub least: usize,
}

/// A read of a system register: one value returns a cycle, so of two that would return together the one that issued
/// later is a cycle late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemRead {
    /// The item.
    pub item: usize,
    /// Cycles until its value returns.
    pub latency: u32,
    /// Who uses the value, and how many cycles behind the item they issue at the earliest if it is in time.
    pub uses: Vec<(usize, u32)>,
}

/// The orders and distances of a block.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// How many items there are.
    pub len: usize,
    /// Orders, without those that follow from others, sorted by the earlier and then the later item.
    pub edges: Vec<Edge>,
    /// Distances between items whose order is free.
    pub separations: Vec<Separation>,
    /// Bubbles when items meet.
    pub recirculations: Vec<Recirculation>,
    /// Reads of system registers.
    pub reads: Vec<SystemRead>,
    /// The longest path from one item to another, by both; negative for none.
    paths: Vec<i32>,
}

/// No path.
const NONE: i32 = i32::MIN / 2;

/// Latencies as they are, or one cycle each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latencies<'a> {
    /// Those of a processor.
    Of(&'a Parameters),
    /// What the architecture asks for: a result is there in the next group.
    Architectural,
}

impl Graph {
    /// The graph of a block: what holds in each of its worlds.
    pub fn new(block: &Block, latencies: Latencies<'_>) -> Graph {
        let worlds = Worlds::of(block);
        let all: Vec<&World> = worlds.iter().collect();
        Graph::in_worlds(block, latencies, &worlds, &all)
    }

    /// What some of a block's worlds ask of schedules. The orders are those of all, as there is one code for them.
    pub fn in_worlds(block: &Block, latencies: Latencies<'_>, worlds: &Worlds, some: &[&World]) -> Graph {
        let items = &block.items;
        let count = items.len();
        let facts = Facts::new(block).within(worlds);
        let mut direct = vec![NONE; count * count];
        let mut separations = Vec::new();
        for to in 0..count {
            for from in 0..to {
                if let Some(distance) = facts.order(from, to) {
                    direct[from * count + to] = distance;
                }
            }
        }
        if let Latencies::Of(parameters) = latencies {
            for world in some {
                add_latencies(&mut direct, items, world, parameters);
            }
            add_moves_of_predicates(&mut direct, items, some, parameters);
            add_rules(&mut direct, &mut separations, items, some, parameters);
        }
        let paths = longest_paths(&direct, count);
        let mut graph = Graph {
            len: count,
            edges: Vec::new(),
            separations: Vec::new(),
            recirculations: Vec::new(),
            reads: Vec::new(),
            paths,
        };
        graph.edges = graph.reduced(&direct);
        graph.separations = separations
            .into_iter()
            .filter(|separation| {
                graph
                    .path(separation.from, separation.to)
                    .is_none_or(|path| path < separation.distance)
            })
            .filter(|separation| {
                graph
                    .path(separation.to, separation.from)
                    .is_none_or(|path| path == 0)
            })
            .collect();
        if let Latencies::Of(parameters) = latencies {
            graph.reads = system_reads(&direct, items, some);
            for world in some {
                graph.add_recirculations(items, world, parameters);
            }
        }
        graph
    }

    /// Adds what recirculates in a world.
    fn add_recirculations(&mut self, items: &[Item], world: &World, parameters: &Parameters) {
        let found = recirculations(items, &self.reads, world, parameters);
        for recirculation in found {
            if !self.recirculations.contains(&recirculation) {
                self.recirculations.push(recirculation);
            }
        }
    }

    /// The longest path between two items, in cycles.
    pub fn path(&self, from: usize, to: usize) -> Option<u32> {
        u32::try_from(self.paths[from * self.len + to]).ok()
    }

    /// What a placement breaks, as text: the model itself never issues so, else graph and model disagree.
    pub fn broken(&self, cycles: &[u32]) -> Vec<String> {
        let edges = self
            .edges
            .iter()
            .filter(|edge| cycles[edge.to] < cycles[edge.from] + edge.distance);
        let separations = self.separations.iter().filter(|separation| {
            let (from, to) = (cycles[separation.from], cycles[separation.to]);
            from < to && to < from + separation.distance
        });
        let reads = self.reads.iter().flat_map(|read| {
            let used = read.uses.iter();
            used.filter(|(to, distance)| cycles[*to] < cycles[read.item] + distance)
        });
        edges
            .map(|edge| format!("{edge:?}"))
            .chain(separations.map(|separation| format!("{separation:?}")))
            .chain(reads.map(|used| format!("{used:?}")))
            .collect()
    }

    /// The edges that do not follow from others.
    fn reduced(&self, direct: &[i32]) -> Vec<Edge> {
        let count = self.len;
        let mut edges = Vec::new();
        for from in 0..count {
            for to in from + 1..count {
                let distance = direct[from * count + to];
                if distance == NONE {
                    continue;
                }
                let is_implied = (from + 1..to).any(|middle| {
                    let (first, second) =
                        (self.paths[from * count + middle], self.paths[middle * count + to]);
                    first >= 0 && second >= 0 && first + second >= distance
                });
                if !is_implied {
                    edges.push(Edge {
                        from,
                        to,
                        distance: distance as u32,
                    });
                }
            }
        }
        edges
    }

    /// The earliest cycle of each item with unlimited units.
    pub fn earliest(&self) -> Vec<u32> {
        let mut earliest = vec![0; self.len];
        for edge in &self.edges {
            let at = earliest[edge.from] + edge.distance;
            earliest[edge.to] = at.max(earliest[edge.to]);
        }
        earliest
    }

    /// Cycles from each item's issue to the last item's that depends on it.
    pub fn heights(&self) -> Vec<u32> {
        let mut heights = vec![0; self.len];
        for edge in self.edges.iter().rev() {
            let height = heights[edge.to] + edge.distance;
            heights[edge.from] = height.max(heights[edge.from]);
        }
        heights
    }
}

/// The longest paths; edges go from smaller to larger indices.
fn longest_paths(direct: &[i32], count: usize) -> Vec<i32> {
    let mut paths = vec![NONE; count * count];
    for from in (0..count).rev() {
        paths[from * count + from] = 0;
        for middle in from + 1..count {
            let first = direct[from * count + middle];
            if first == NONE {
                continue;
            }
            for to in middle..count {
                let path = first + paths[middle * count + to];
                let place = &mut paths[from * count + to];
                *place = path.max(*place);
            }
        }
    }
    paths
}

fn raise(direct: &mut [i32], place: usize, distance: u32) {
    direct[place] = direct[place].max(distance as i32);
}

/// Whether two items are executed both in one of some worlds.
fn meet(some: &[&World], first: usize, second: usize) -> bool {
    some.iter().any(|world| world[first] && world[second])
}

/// Adds what the pipeline waits for in a world: operands, by the latency of what wrote them last and the bypass to the
/// use. What is not executed waits for its predicate.
fn add_latencies(direct: &mut [i32], items: &[Item], world: &World, parameters: &Parameters) {
    let count = items.len();
    let reads = |to: usize| -> Vec<(Operand, Use)> {
        let known = &items[to].known;
        let mut reads = if world[to] {
            known.sources().to_vec()
        } else {
            Vec::new()
        };
        reads.push((known.predicate, known.predicate_use));
        reads
    };
    for to in 0..count {
        for (operand, used) in reads(to) {
            if operand == Operand::ALWAYS {
                continue;
            }
            for from in (0..to).rev().filter(|from| world[*from]) {
                let Some(written) = items[from]
                    .known
                    .destinations()
                    .iter()
                    .find(|written| written.operand == operand)
                else {
                    continue;
                };
                if direct[from * count + to] != NONE {
                    let more = bypass(written.producer, used, parameters);
                    let latency = u32::from(written.latency).saturating_add_signed(more.into());
                    raise(direct, from * count + to, latency);
                }
                // What wrote before is overwritten.
                break;
            }
        }
    }
}

/// Adds what is waited for where all predicates are read, or written, at once.
fn add_moves_of_predicates(direct: &mut [i32], items: &[Item], some: &[&World], parameters: &Parameters) {
    let count = items.len();
    for from in 0..count {
        for to in from + 1..count {
            let place = from * count + to;
            if direct[place] == NONE {
                continue;
            }
            let writes = items[from].known.destinations();
            let is_predicate = items[from].effects.all_writes().predicate != 0;
            let reads_all = items[to].flags().contains(Flags::READS_PREDICATES);
            if reads_all && is_predicate && meet(some, from, to) {
                let latency = writes
                    .iter()
                    .map(|written| u32::from(written.latency))
                    .max()
                    .unwrap_or(0);
                raise(direct, place, latency.max(1));
            }
            let effects = &items[to].effects;
            let read = match meet(some, from, to) {
                true => effects.reads.predicate,
                false => effects.reads.predicate & 1 << effects.qualifier,
            };
            let reads_predicate = read & items[from].effects.writes.predicate != 0;
            let is_written = some.iter().any(|world| world[from]);
            if items[from].flags().contains(Flags::ALL_PREDICATES) && reads_predicate && is_written {
                let more = bypass(Producer::Compare, items[to].known.predicate_use, parameters);
                let latency = parameters.cost(Cost::ToPredicates) as u32;
                raise(direct, place, latency.saturating_add_signed(more.into()));
            }
        }
    }
}

/// What the pipeline waits for between two items: cycles until the second has what it reads of the first; `None` if it
/// reads nothing of it.
pub(crate) fn latency(from: &Item, to: &Item, operand: Operand, parameters: &Parameters) -> Option<u32> {
    latency_of(from, to, (operand, operand), parameters)
}

/// The same of an operand that has another name where it is read than where it was written.
pub(crate) fn latency_of(
    from: &Item,
    to: &Item,
    (written, read): (Operand, Operand),
    parameters: &Parameters,
) -> Option<u32> {
    let mut destinations = from.known.destinations().iter();
    let written = destinations.find(|destination| destination.operand == written)?;
    let used = to.known.sources().iter().find(|(source, _)| *source == read);
    let used = used.map_or(to.known.predicate_use, |(_, used)| *used);
    let more = bypass(written.producer, used, parameters);
    Some(u32::from(written.latency).saturating_add_signed(more.into()))
}

/// Cycles more, or fewer, for a use of a producer's value.
fn bypass(producer: Producer, used: Use, parameters: &Parameters) -> i8 {
    let row = BYPASSES
        .iter()
        .find(|row| row.producer == producer && row.used == used);
    row.map_or(0, |row| row.more(parameters))
}

/// Adds the rules between pairs, and what everything behind an instruction waits for.
fn add_rules(
    direct: &mut [i32],
    separations: &mut Vec<Separation>,
    items: &[Item],
    some: &[&World],
    parameters: &Parameters,
) {
    let count = items.len();
    for from in 0..count {
        for to in 0..count {
            if from == to {
                continue;
            }
            let do_meet = meet(some, from, to);
            let both = match do_meet {
                true => items[from].known.rules_from & items[to].known.rules_to,
                false => 0,
            };
            let rules = RULES
                .iter()
                .enumerate()
                .filter(|(index, _)| both >> index & 1 != 0);
            let mut distance = rules.map(|(_, rule)| u32::from(rule.cycles)).max().unwrap_or(0);
            let flags = items[from].flags().intersection(items[to].flags());
            if do_meet && flags.contains(Flags::TIMER) {
                distance = distance.max(parameters.cost(Cost::TimerInterval) as u32);
            }
            let is_executed = |item: usize| meet(some, item, item);
            if is_executed(from) {
                distance = distance.max(1 + behind(&items[from], parameters));
            }
            let moves_stack = Flags::FLUSH_STACK | Flags::LOAD_STACK;
            if is_executed(to) && items[to].flags().intersects(moves_stack) {
                distance = distance.max(1 + parameters.cost(Cost::StackCalculation) as u32);
            }
            if distance == 1 {
                continue;
            }
            let place = from * count + to;
            if from < to && direct[place] > 0 {
                raise(direct, place, distance);
            } else {
                separations.push(Separation { from, to, distance });
            }
        }
    }
}

/// The reads of system registers and who uses them.
fn system_reads(direct: &[i32], items: &[Item], some: &[&World]) -> Vec<SystemRead> {
    let count = items.len();
    let reads = items
        .iter()
        .enumerate()
        .filter(|(index, item)| item.flags().contains(Flags::READS_SYSTEM) && meet(some, *index, *index));
    reads
        .filter_map(|(index, item)| {
            let written = item.known.destinations().first()?;
            let latency = u32::from(written.latency);
            let uses = (index + 1..count)
                .filter(|to| meet(some, index, *to))
                .filter(|to| {
                    items[*to]
                        .known
                        .sources()
                        .iter()
                        .any(|(operand, _)| *operand == written.operand)
                })
                .map(|to| (to, direct[index * count + to]))
                .filter(|(_, distance)| *distance >= latency as i32)
                .map(|(to, distance)| (to, distance as u32))
                .collect();
            Some(SystemRead {
                item: index,
                latency,
                uses,
            })
        })
        .collect()
}

/// What recirculates in a world: references a certain time behind a move to a region register, and two loads whose data
/// return with a system register's value.
fn recirculations(
    items: &[Item],
    reads: &[SystemRead],
    world: &World,
    parameters: &Parameters,
) -> Vec<Recirculation> {
    let with = |all: Flags, none: Flags| -> Vec<usize> {
        let is_one = |item: &Item| item.flags().intersects(all) && !item.flags().intersects(none);
        let executed = (0..items.len()).filter(|index| world[*index]);
        executed.filter(|index| is_one(&items[*index])).collect()
    };
    let references = with(Flags::LOAD | Flags::STORE | Flags::PREFETCH, Flags::empty());
    let loads = with(Flags::LOAD, Flags::SECOND_LEVEL);
    let costs = |cost: Cost| parameters.cost(cost) > 0;
    let mut regions = with(Flags::REGION, Flags::empty());
    regions.retain(|_| costs(Cost::RegionConflict));
    let behind_region = regions.iter().map(|item| Recirculation {
        item: *item,
        distance: parameters.cost(Cost::RegionConflictDistance) as u32,
        others: references.clone(),
        least: 1,
    });
    let returning = reads
        .iter()
        .filter(|read| world[read.item])
        .filter(|read| costs(Cost::WritebackConflict) && read.latency > 0 && loads.len() >= 2)
        .map(|read| Recirculation {
            item: read.item,
            distance: read.latency - 1,
            others: loads.clone(),
            least: 2,
        });
    behind_region.chain(returning).collect()
}

/// Cycles behind an instruction in which nothing issues.
fn behind(item: &Item, parameters: &Parameters) -> u32 {
    let Some(behind) = item.known.behind else { return 0 };
    let parts = BEHIND[behind as usize].1.iter().map(|(_, length)| match length {
        Length::Bubbles(bubbles) => u64::from(*bubbles),
        Length::Of(cost) => parameters.cost(*cost),
    });
    parts.sum::<u64>() as u32
}
