//! A block from its instructions to its bundles, with what is known of how good they are.

use std::time::{Duration, Instant};

use sidestep_ia64::encoding::Bundle;
use sidestep_itanium2::Parameters;

use crate::block::Block;
use crate::bound::{heights, lower_bound};
use crate::bundle::{Content, Packer, Placed};
use crate::capacity::Capacity;
use crate::exact::{Answer, Late, Pressure, Question};
use crate::graph::{Graph, Latencies};
use crate::list::{Schedule, schedule, stands_before};
use crate::verify;
use crate::worlds::{World, Worlds};

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
    /// Cycles of the bundles on the model: as many, else the model knows something that the scheduler does not. Of a
    /// block with several worlds the worst one's, which may be fewer: the schedule holds in all of them at once.
    pub modelled: u32,
    /// Cycles that no schedule is shorter than in the worst world.
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

/// A block as the schedulers see it.
pub(crate) struct Problem<'a> {
    pub graph: Graph,
    pub packer: Packer<'a>,
    capacity: Capacity,
    /// Cycles that pass behind each item before the block's end, at least: behind one behind which issue splits the
    /// rest of its bundle takes a cycle, whatever is in it.
    tails: Vec<u32>,
    heights: Vec<u32>,
}

impl<'a> Problem<'a> {
    pub fn new(block: &'a Block, parameters: &Parameters) -> Problem<'a> {
        let graph = Graph::new(block, Latencies::Of(parameters));
        let packer = Packer::new(&block.items, parameters);
        let mut present = vec![0; packer.signature_count()];
        for item in 0..block.items.len() {
            present[packer.signature(item)] += 1;
        }
        let tails: Vec<u32> = (0..block.items.len())
            .map(|item| u32::from(packer.splits(item)))
            .collect();
        Problem {
            capacity: Capacity::new(&packer, &present),
            heights: heights(&graph, &tails),
            graph,
            packer,
            tails,
        }
    }

    /// Cycles from the first item to the end.
    fn length(&self, schedule: &Schedule) -> u32 {
        schedule.len(&self.tails)
    }

    /// Cycles that no schedule is shorter than, by a graph of the same items.
    fn bound(&self, graph: &Graph) -> u32 {
        lower_bound(graph, &self.tails, &self.packer, &self.capacity)
    }

    /// Bundles for a schedule, if there are such.
    pub fn layout(&mut self, schedule: &Schedule) -> Option<Vec<Placed>> {
        let before = stands_before(&self.graph);
        self.packer.layout(&schedule.groups(), before).ok()
    }

    /// Asks the exact scheduler for a schedule of `cycles`.
    pub fn ask(
        &mut self,
        cycles: u32,
        (late, pressures): (&[Late], &[Pressure]),
        deadline: Instant,
    ) -> Answer {
        let question = Question {
            graph: &self.graph,
            heights: &self.heights,
            capacity: &self.capacity,
            late,
            pressures,
            deadline,
        };
        question.ask(&mut self.packer, cycles)
    }
}

/// Schedules a block of which a schedule and a bound may be known.
pub(crate) fn improve(block: &Block, options: &Options, known: Option<Schedule>, bound: u32) -> Outcome {
    let parameters = &options.parameters;
    let architectural = Graph::new(block, Latencies::Architectural);
    let architectural = architectural.earliest().iter().max().map_or(0, |last| last + 1);
    let worlds = Worlds::of(block);
    let mut problem = Problem::new(block, parameters);
    let mut alone: Vec<Alone> = match worlds.are_several() {
        true => worlds
            .iter()
            .map(|world| Alone::new(block, &worlds, world, &problem, parameters))
            .collect(),
        false => Vec::new(),
    };
    let bounds = alone.iter().map(|world| problem.bound(&world.graph));
    let mut bound = match worlds.are_several() {
        true => bounds.max().unwrap_or(0),
        false => problem.bound(&problem.graph),
    }
    .max(bound);
    let listed = schedule(&problem.graph, &problem.heights, &mut problem.packer);
    let listed_length = problem.length(&listed);
    let known = known.filter(|known| {
        problem.length(known) < listed_length && problem.graph.broken(&known.cycles).is_empty()
    });

    let known = known.and_then(|known| problem.layout(&known).map(|bundles| (known, bundles)));
    let (first, bundles) = known.unwrap_or_else(|| {
        let bundles = problem.layout(&listed);
        let bundles = bundles.expect("the list scheduler packs each group where the one before leaves it");
        (listed, bundles)
    });
    let model = |bundles: &[Placed]| {
        let worlds = worlds.in_order(&order(bundles));
        verify::worst(&encoded(bundles, block), &worlds, parameters)
    };
    let groups = model(&bundles);
    let modelled = verify::length(&groups);
    // The processor issues as early as it can, also where the scheduler left time: at times that are others in each
    // world.
    let is_early = |modelled: u32, planned: u32| modelled < planned && !worlds.are_several();
    let first = match is_early(modelled, problem.length(&first)) {
        true => as_issued(&bundles, &groups, &first),
        false => first,
    };
    let mut outcome = Outcome {
        listed: listed_length,
        cycles: problem.length(&first),
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
        match problem.ask(wanted, (&late, &[]), deadline) {
            Answer::Found(schedule, bundles) => {
                let groups = model(&bundles);
                let modelled = verify::length(&groups);
                if modelled < outcome.modelled {
                    let schedule = match is_early(modelled, problem.length(&schedule)) {
                        true => as_issued(&bundles, &groups, &schedule),
                        false => schedule,
                    };
                    outcome.cycles = problem.length(&schedule);
                    outcome.modelled = modelled;
                    outcome.schedule = schedule;
                    outcome.bundles = bundles;
                } else if late.len() < LESSONS {
                    late.push(lesson(&schedule, &groups));
                } else {
                    break;
                }
            }
            Answer::Impossible if !worlds.are_several() => bound = wanted + 1,
            // What one schedule cannot do in all worlds it may still do in each, at other times in each.
            Answer::Impossible => {
                let mut refuted = alone
                    .iter_mut()
                    .map(|world| world.is_refuted(&mut problem, wanted, deadline));
                match refuted.any(|is_refuted| is_refuted) {
                    true => bound = wanted + 1,
                    false => break,
                }
            }
            Answer::Unknown => break,
        }
    }
    outcome.bound = bound;
    outcome
}

/// A world by itself: what refutes a schedule for it refutes it for all.
struct Alone<'a> {
    graph: Graph,
    heights: Vec<u32>,
    /// Schedules that the model issues later than asked for.
    late: Vec<Late>,
    block: &'a Block,
    world: &'a World,
    parameters: &'a Parameters,
}

impl<'a> Alone<'a> {
    fn new(
        block: &'a Block,
        worlds: &Worlds,
        world: &'a World,
        problem: &Problem<'_>,
        parameters: &'a Parameters,
    ) -> Alone<'a> {
        let graph = Graph::in_worlds(block, Latencies::Of(parameters), worlds, &[world]);
        Alone {
            heights: heights(&graph, &problem.tails),
            graph,
            late: Vec::new(),
            block,
            world,
            parameters,
        }
    }

    /// Whether the world has no schedule of `cycles`.
    fn is_refuted(&mut self, problem: &mut Problem<'_>, cycles: u32, deadline: Instant) -> bool {
        while self.late.len() < LESSONS {
            let question = Question {
                graph: &self.graph,
                heights: &self.heights,
                capacity: &problem.capacity,
                late: &self.late,
                pressures: &[],
                deadline,
            };
            let (schedule, bundles) = match question.ask(&mut problem.packer, cycles) {
                Answer::Found(schedule, bundles) => (schedule, bundles),
                Answer::Impossible => return true,
                Answer::Unknown => return false,
            };
            let world = order(&bundles).iter().map(|item| self.world[*item]).collect();
            let groups = verify::timeline(&encoded(&bundles, self.block), &world, self.parameters);
            if verify::length(&groups) <= cycles {
                return false;
            }
            self.late.push(lesson(&schedule, &groups));
        }
        false
    }
}

/// The items of bundles, in order.
pub(crate) fn order(bundles: &[Placed]) -> Vec<usize> {
    let contents = bundles.iter().flat_map(|placed| placed.slots);
    let items = contents.filter_map(|content| match content {
        Content::Item(item) => Some(item),
        _ => None,
    });
    items.collect()
}

fn encoded(bundles: &[Placed], block: &Block) -> Vec<Bundle> {
    bundles.iter().map(|placed| placed.encode(&block.items)).collect()
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
fn lesson(schedule: &Schedule, groups: &[sidestep_itanium2::Group]) -> Late {
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
