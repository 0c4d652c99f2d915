//! The exact scheduler: whether there is a schedule of so many cycles, as a question to a SAT solver.
//!
//! A variable says of an item and a cycle that the item has issued by then. Orders and distances become implications
//! between two of them; what one cycle holds becomes counters by signature, and a clause for each number too much.
//! What remains, the order of slots in a group, is looked at when there is a solution, and what cannot be is ruled
//! out.

use std::time::Instant;

use batsat::{BasicCallbacks, BasicSolver, Lit, SolverInterface, lbool};

use crate::bundle::{Packer, Placed, Start};
use crate::capacity::Capacity;
use crate::graph::{Graph, Recirculation, SystemRead};
use crate::list::{Schedule, stands_before};

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is one, with its bundles.
    Found(Schedule, Vec<Placed>),
    /// There is none.
    Impossible,
    /// Nobody knows: time was over.
    Unknown,
}

/// Items, each with its cycle counted from the first, that the model issues later than asked for.
pub type Late = Vec<(usize, u32)>;

/// The question.
pub struct Question<'a> {
    /// Orders and distances.
    pub graph: &'a Graph,
    /// Cycles from each item to the end, at least.
    pub heights: &'a [u32],
    /// What a cycle holds.
    pub capacity: &'a Capacity,
    /// What the model issues later than asked for.
    pub late: &'a [Late],
    /// Values that registers of limited number have to hold.
    pub pressures: &'a [Pressure],
    /// When to give up.
    pub deadline: Instant,
}

/// Values and registers for them: no more values last from one cycle to the next than there are registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// By value, the items that write or read it, first the one that makes it.
    pub values: Vec<Vec<usize>>,
    /// How many registers there are.
    pub registers: usize,
}

/// A literal, or what is known already.
#[derive(Clone, Copy)]
enum Truth {
    Known(bool),
    Lit(Lit),
}

impl Truth {
    fn not(self) -> Truth {
        match self {
            Truth::Known(value) => Truth::Known(!value),
            Truth::Lit(lit) => Truth::Lit(!lit),
        }
    }
}

/// The clauses so far.
struct Clauses {
    solver: BasicSolver,
}

impl Clauses {
    fn new(deadline: Instant) -> Clauses {
        let mut callbacks = BasicCallbacks::new();
        callbacks.set_stop(move || Instant::now() >= deadline);
        Clauses {
            solver: BasicSolver::new(batsat::SolverOpts::default(), callbacks),
        }
    }

    fn variable(&mut self) -> Truth {
        Truth::Lit(Lit::new(self.solver.new_var_default(), true))
    }

    /// One of these holds.
    fn any(&mut self, truths: impl IntoIterator<Item = Truth>) {
        let mut clause = Vec::new();
        for truth in truths {
            match truth {
                Truth::Known(true) => return,
                Truth::Known(false) => {}
                Truth::Lit(lit) => clause.push(lit),
            }
        }
        self.solver.add_clause_reuse(&mut clause);
    }
}

impl Question<'_> {
    /// Asks for a schedule of `cycles`.
    pub fn ask(&self, packer: &mut Packer<'_>, cycles: u32) -> Answer {
        let earliest = self.graph.earliest();
        let latest: Option<Vec<u32>> = self
            .heights
            .iter()
            .map(|height| (cycles - 1).checked_sub(*height))
            .collect();
        let Some(latest) =
            latest.filter(|latest| latest.iter().zip(&earliest).all(|(late, early)| late >= early))
        else {
            return Answer::Impossible;
        };
        let mut model = Model::new(self, packer, earliest, latest, cycles);
        loop {
            match model.clauses.solver.solve_limited(&[]) {
                answer if answer == lbool::TRUE => {}
                answer if answer == lbool::FALSE => return Answer::Impossible,
                _ => return Answer::Unknown,
            }
            let schedule = model.schedule();
            match packer.layout(&schedule.groups(), stands_before(self.graph)) {
                Ok(bundles) => return Answer::Found(schedule, bundles),
                Err(group) => model.rule_out(packer, &schedule, group),
            }
        }
    }
}

/// The variables of a question.
struct Model<'a> {
    graph: &'a Graph,
    clauses: Clauses,
    cycles: u32,
    earliest: Vec<u32>,
    /// By item, for each cycle from its earliest to its latest: whether it issues then.
    at: Vec<Vec<Truth>>,
    /// The same: whether it has issued by then.
    by: Vec<Vec<Truth>>,
}

impl<'a> Model<'a> {
    fn new(
        question: &Question<'a>,
        packer: &Packer<'_>,
        earliest: Vec<u32>,
        latest: Vec<u32>,
        cycles: u32,
    ) -> Model<'a> {
        let graph = question.graph;
        let mut model = Model {
            graph,
            clauses: Clauses::new(question.deadline),
            cycles,
            earliest,
            at: Vec::new(),
            by: Vec::new(),
        };
        for (item, latest) in latest.into_iter().enumerate() {
            model.add_item(model.earliest[item], latest);
        }
        for edge in &graph.edges {
            for cycle in 0..cycles {
                let earlier = match cycle.checked_sub(edge.distance) {
                    Some(cycle) => model.by(edge.from, cycle),
                    None => Truth::Known(false),
                };
                let later = model.by(edge.to, cycle);
                model.clauses.any([later.not(), earlier]);
            }
        }
        for separation in &graph.separations {
            for cycle in 0..cycles {
                let first = model.at(separation.from, cycle);
                for later in cycle + 1..(cycle + separation.distance).min(cycles) {
                    let second = model.at(separation.to, later);
                    model.clauses.any([first.not(), second.not()]);
                }
            }
        }
        let occupied = model.occupied();
        for recirculation in &graph.recirculations {
            model.add_recirculation(recirculation, &occupied);
        }
        for read in &graph.reads {
            for other in graph.reads.iter().filter(|other| other.item != read.item) {
                model.add_late(read, other, &occupied);
            }
        }
        for cycle in 0..cycles {
            model.add_capacity(packer, question.capacity, cycle);
        }
        for late in question.late {
            model.rule_out_everywhere(late);
        }
        for pressure in question.pressures {
            for cycle in 0..cycles {
                model.add_pressure(pressure, cycle);
            }
        }
        model
    }

    fn add_item(&mut self, earliest: u32, latest: u32) {
        let mut by: Vec<Truth> = (earliest..latest).map(|_| self.clauses.variable()).collect();
        by.push(Truth::Known(true));
        let mut at = vec![by[0]];
        for pair in by.windows(2) {
            self.clauses.any([pair[0].not(), pair[1]]);
            let now = self.clauses.variable();
            self.clauses.any([now.not(), pair[1]]);
            self.clauses.any([now.not(), pair[0].not()]);
            self.clauses.any([now, pair[1].not(), pair[0]]);
            at.push(now);
        }
        self.at.push(at);
        self.by.push(by);
    }

    fn at(&self, item: usize, cycle: u32) -> Truth {
        let place = cycle.checked_sub(self.earliest[item]);
        place
            .and_then(|place| self.at[item].get(place as usize))
            .copied()
            .unwrap_or(Truth::Known(false))
    }

    fn by(&self, item: usize, cycle: u32) -> Truth {
        match cycle.checked_sub(self.earliest[item]) {
            None => Truth::Known(false),
            Some(place) => self.by[item]
                .get(place as usize)
                .copied()
                .unwrap_or(Truth::Known(true)),
        }
    }

    /// For each cycle whether anything issues in it.
    fn occupied(&mut self) -> Vec<Truth> {
        let occupied: Vec<Truth> = (0..self.cycles).map(|_| self.clauses.variable()).collect();
        for item in 0..self.graph.len {
            for (cycle, occupied) in occupied.iter().enumerate() {
                let here = self.at(item, cycle as u32);
                self.clauses.any([here.not(), *occupied]);
            }
        }
        occupied
    }

    /// A bubble behind what meets.
    fn add_recirculation(&mut self, recirculation: &Recirculation, occupied: &[Truth]) {
        for cycle in 0..self.cycles {
            let first = self.at(recirculation.item, cycle);
            let met = cycle + recirculation.distance;
            let Some(behind) = occupied.get(met as usize + 1).copied() else {
                continue;
            };
            if matches!(first, Truth::Known(false)) {
                continue;
            }
            let others: Vec<Truth> = recirculation
                .others
                .iter()
                .map(|other| self.at(*other, met))
                .collect();
            match recirculation.least {
                1 => {
                    for other in others {
                        self.clauses.any([first.not(), other.not(), behind.not()]);
                    }
                }
                least => {
                    let reached = self.count(&others, least);
                    if let Some(reached) = reached.get(least - 1).copied() {
                        self.clauses.any([first.not(), reached.not(), behind.not()]);
                    }
                }
            }
        }
    }

    /// A value that would return together with one that was asked for earlier comes a cycle later.
    fn add_late(&mut self, read: &SystemRead, other: &SystemRead, occupied: &[Truth]) {
        for cycle in 0..self.cycles {
            let Some(earlier) = (cycle + read.latency)
                .checked_sub(other.latency)
                .filter(|earlier| *earlier < cycle)
            else {
                continue;
            };
            let (first, second) = (self.at(other.item, earlier), self.at(read.item, cycle));
            if matches!(first, Truth::Known(false)) || matches!(second, Truth::Known(false)) {
                continue;
            }
            for (user, distance) in &read.uses {
                let used = self.by(*user, cycle + distance);
                self.clauses.any([first.not(), second.not(), used.not()]);
            }
            // The loads that it then meets are those of a cycle later.
            let graph = self.graph;
            let met = graph.recirculations.iter().find(|met| met.item == read.item);
            let behind = occupied.get((cycle + read.latency + 1) as usize).copied();
            if let (Some(met), Some(behind)) = (met, behind) {
                let loads = met
                    .others
                    .iter()
                    .map(|other| self.at(*other, cycle + read.latency));
                let loads: Vec<Truth> = loads.collect();
                let reached = self.count(&loads, met.least);
                if let Some(reached) = reached.get(met.least - 1).copied() {
                    self.clauses
                        .any([first.not(), second.not(), reached.not(), behind.not()]);
                }
            }
        }
    }

    /// Counts the items of each signature that issue in a cycle, and rules out what is too much.
    fn add_capacity(&mut self, packer: &Packer<'_>, capacity: &Capacity, cycle: u32) {
        let signatures = packer.signature_count();
        let mut counts: Vec<Vec<Truth>> = Vec::new();
        for signature in 0..signatures {
            let wanted = capacity
                .excesses
                .iter()
                .map(|excess| excess[signature])
                .max()
                .unwrap_or(0);
            let truths: Vec<Truth> = (0..self.graph.len)
                .filter(|item| packer.signature(*item) == signature)
                .map(|item| self.at(item, cycle))
                .filter(|truth| !matches!(truth, Truth::Known(false)))
                .collect();
            counts.push(self.count(&truths, wanted));
        }
        for excess in &capacity.excesses {
            let needed = excess.iter().enumerate().filter(|(_, count)| **count > 0);
            let clause: Vec<Truth> = needed
                .map(|(signature, count)| {
                    let reached = counts[signature].get(count - 1).copied();
                    reached.unwrap_or(Truth::Known(false)).not()
                })
                .collect();
            self.clauses.any(clause);
        }
    }

    /// Counts the values that have been made by the end of a cycle and are used behind it, and rules out more of them
    /// than registers.
    fn add_pressure(&mut self, pressure: &Pressure, cycle: u32) {
        let mut lasting = Vec::new();
        for value in &pressure.values {
            let Some((maker, others)) = value.split_first() else {
                continue;
            };
            let made = self.by(*maker, cycle);
            let lasts = self.clauses.variable();
            for other in others {
                let used = self.by(*other, cycle);
                self.clauses.any([made.not(), used, lasts]);
            }
            lasting.push(lasts);
        }
        let reached = self.count(&lasting, pressure.registers + 1);
        if let Some(too_many) = reached.get(pressure.registers) {
            self.clauses.any([too_many.not()]);
        }
    }

    /// Literals that hold if at least 1, 2, ... `wanted` of the truths do.
    fn count(&mut self, truths: &[Truth], wanted: usize) -> Vec<Truth> {
        let mut reached: Vec<Truth> = Vec::new();
        for truth in truths {
            let mut next = Vec::new();
            for count in 0..wanted.min(reached.len() + 1) {
                let here = self.clauses.variable();
                if let Some(before) = reached.get(count) {
                    self.clauses.any([before.not(), here]);
                }
                let fewer = match count {
                    0 => Truth::Known(true),
                    count => reached[count - 1],
                };
                self.clauses.any([fewer.not(), truth.not(), here]);
                next.push(here);
            }
            reached = next;
        }
        reached
    }

    fn schedule(&self) -> Schedule {
        let is_true = |truth: &Truth| match truth {
            Truth::Known(value) => *value,
            Truth::Lit(lit) => self.clauses.solver.value_lit(*lit) == lbool::TRUE,
        };
        let cycle = |item: usize| {
            let place = self.by[item].iter().position(is_true).unwrap_or(0);
            self.earliest[item] + place as u32
        };
        Schedule {
            cycles: (0..self.graph.len).map(cycle).collect(),
        }
    }

    /// Rules out a group that has no bundles: the smallest part of it that has none, in every cycle.
    fn rule_out(&mut self, packer: &mut Packer<'_>, schedule: &Schedule, index: usize) {
        let groups = schedule.groups();
        let before = stands_before(self.graph);
        let group = &groups[index];
        let previous = index.checked_sub(1).map(|index| &groups[index]);
        let split = previous.and_then(|previous| previous.iter().find(|item| packer.splits(**item)).copied());
        let fits_anywhere = |packer: &mut Packer<'_>, part: &[usize]| {
            packer.pack(part, Start::Bundle, before).is_some()
                || packer.pack(part, Start::Middle, before).is_some()
        };
        if !fits_anywhere(packer, group) {
            let mut part = group.clone();
            let mut place = 0;
            while place < part.len() {
                let item = part.remove(place);
                if fits_anywhere(packer, &part) {
                    part.insert(place, item);
                    place += 1;
                }
            }
            let pattern: Vec<(usize, u32)> = part.into_iter().map(|item| (item, 0)).collect();
            self.rule_out_everywhere(&pattern);
            return;
        }
        // It fits, but not where the one before leaves it: then not this group behind that one without another
        // between.
        let start = |item: usize| schedule.cycles[item];
        let (first, second) = (previous.map_or(0, |previous| start(previous[0])), start(group[0]));
        let mut clause: Vec<Truth> = group.iter().map(|item| self.at(*item, second).not()).collect();
        match split {
            Some(split) => clause.push(self.at(split, first).not()),
            None => clause.extend(
                previous
                    .into_iter()
                    .flatten()
                    .map(|item| self.at(*item, first).not()),
            ),
        }
        for cycle in first + 1..second {
            clause.extend((0..self.graph.len).map(|item| self.at(item, cycle)));
        }
        self.clauses.any(clause);
    }

    /// Rules out that these items issue together at these distances, wherever it begins.
    fn rule_out_everywhere(&mut self, pattern: &[(usize, u32)]) {
        for start in 0..self.cycles {
            let clause: Vec<Truth> = pattern
                .iter()
                .map(|(item, offset)| self.at(*item, start + offset).not())
                .collect();
            self.clauses.any(clause);
        }
    }
}
