//! Which instructions of straight code are executed together.
//!
//! Cycles are counted with every predicate on. Of predicates that exclude each other that cannot be, so there are
//! several *worlds*: in each as many predicates are on as can be together. A schedule has to hold in all of them, and
//! takes as many cycles as in the worst.

use sidestep_ia64::encoding::{Bundle, Operation};

use crate::block::Block;
use crate::predicates::{Predicates, Version};
use crate::sequencing::Effects;

/// Worlds of a piece of code at most. Where predicates would make more, the later of them count as if all could be on.
const WORLDS_MAX: usize = 64;

/// By instruction, without `nop`s, whether it is executed.
pub type World = Vec<bool>;

/// The worlds of a piece of code: one, with everything on, where no predicates exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worlds(Vec<World>);

impl Worlds {
    /// Those of a block.
    pub fn of(block: &Block) -> Worlds {
        let mut predicates = Predicates::default();
        let mut qualifiers = Vec::new();
        for (index, item) in block.items.iter().enumerate() {
            for (_, registers) in block.mutex.iter().filter(|(before, _)| *before == index) {
                predicates.assert_exclusive(*registers);
            }
            qualifiers.push(predicates.version(item.effects.qualifier));
            predicates.pass(&item.instruction, &item.effects);
        }
        Worlds::new(&qualifiers, &predicates)
    }

    /// Those of bundles one after the other.
    pub fn of_code(bundles: &[Bundle]) -> Worlds {
        let mut predicates = Predicates::default();
        let mut qualifiers = Vec::new();
        for decoded in bundles.iter().flat_map(|bundle| bundle.decode()) {
            let Ok(instruction) = decoded.instruction else {
                continue;
            };
            if instruction.operation == Operation::Nop {
                continue;
            }
            let effects = Effects::of(&instruction);
            qualifiers.push(predicates.version(effects.qualifier));
            match instruction.operation {
                // Nobody knows what the function called has left in them.
                Operation::Call { .. } => predicates.forget(),
                _ => predicates.pass(&instruction, &effects),
            }
        }
        Worlds::new(&qualifiers, &predicates)
    }

    fn new(qualifiers: &[Version], predicates: &Predicates) -> Worlds {
        let mut used: Vec<Version> = Vec::new();
        for qualifier in qualifiers {
            if !used.contains(qualifier) {
                used.push(*qualifier);
            }
        }
        let excludes = |first: usize, second: usize| predicates.are_exclusive(used[first], used[second]);
        // What is off in each world.
        let mut worlds: Vec<Vec<usize>> = vec![Vec::new()];
        for part in parts(used.len(), excludes) {
            let Some(sets) = largest_sets(&part, excludes, WORLDS_MAX / worlds.len()) else {
                continue;
            };
            let with = |world: &Vec<usize>, set: &Vec<usize>| {
                let off = part.iter().filter(|version| !set.contains(version));
                world.iter().chain(off).copied().collect()
            };
            worlds = worlds
                .iter()
                .flat_map(|world| sets.iter().map(move |set| with(world, set)))
                .collect();
        }
        let is_on = |off: &[usize], qualifier| !off.iter().any(|version| used[*version] == qualifier);
        let worlds = worlds.iter().map(|off| {
            qualifiers
                .iter()
                .map(|qualifier| is_on(off, *qualifier))
                .collect()
        });
        Worlds(worlds.collect())
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &World> {
        self.0.iter()
    }

    /// Whether there is more than one.
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Whether two instructions are never executed both.
    pub fn part(&self, first: usize, second: usize) -> bool {
        !self.iter().any(|world| world[first] && world[second])
    }

    /// The same of instructions in another order.
    pub fn in_order(&self, order: &[usize]) -> Worlds {
        let ordered = |world: &World| order.iter().map(|place| world[*place]).collect();
        Worlds(self.iter().map(ordered).collect())
    }

    /// The same of code that follows itself, which is each time as it was the first time.
    pub fn repeated(&self, times: usize) -> Worlds {
        Worlds(self.iter().map(|world| world.repeat(times)).collect())
    }
}

/// The parts of a graph that hang together, of more than one member, by their first.
fn parts(count: usize, excludes: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut parts = Vec::new();
    let mut left: Vec<usize> = (0..count).collect();
    while !left.is_empty() {
        let mut part = vec![left.remove(0)];
        let mut next = 0;
        while let Some(member) = part.get(next).copied() {
            part.extend(left.extract_if(.., |other| excludes(member, *other)));
            next += 1;
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts.retain(|part| part.len() > 1);
    parts
}

/// The sets of members of which no two exclude each other and to which none can be added; `None` if there are more
/// than `most`. The members in order, each set goes on without the next one or with it.
fn largest_sets(
    part: &[usize],
    excludes: impl Fn(usize, usize) -> bool,
    most: usize,
) -> Option<Vec<Vec<usize>>> {
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for (place, member) in part.iter().enumerate() {
        let meets = |set: &[usize]| set.iter().any(|other| excludes(*other, *member));
        let mut next: Vec<Vec<usize>> = Vec::new();
        if place == 0 {
            next.push(vec![*member]);
        }
        for set in &sets {
            let mut with: Vec<usize> = set.clone();
            if meets(set) {
                next.push(set.clone());
                with.retain(|other| !excludes(*other, *member));
            }
            with.push(*member);
            // Not a part of another set.
            let passed = &part[..place];
            let is_largest = passed
                .iter()
                .all(|other| with.iter().any(|one| one == other || excludes(*one, *other)));
            if is_largest && !next.contains(&with) {
                next.push(with);
            }
        }
        if next.len() > most {
            return None;
        }
        sets = next;
    }
    Some(sets)
}

#[cfg(test)]
mod tests {
    use sidestep_ia64::encoding::{Form, Instruction, Unit, decode};
    use sidestep_itanium2::Parameters;

    use super::*;

    fn compare(name: &str, qualifier: u8, targets: (i64, i64)) -> Instruction {
        let form = Form::named(name).next().expect("it is an instruction");
        let encoded = form.encode(qualifier, &[targets.0, targets.1, 4, 5], &[]);
        decode(Unit::M, encoded.expect("registers").slot, 0).expect("what was encoded")
    }

    fn add(qualifier: u8) -> Instruction {
        let form = Form::named("add").next().expect("it is an instruction");
        let encoded = form.encode(qualifier, &[14, 4, 5], &[]).expect("registers");
        decode(Unit::M, encoded.slot, 0).expect("what was encoded")
    }

    fn block(instructions: &[Instruction]) -> Block {
        Block::new(instructions, &Parameters::default()).expect("all of them can be placed")
    }

    /// The worlds with 1 for what is executed, in order.
    fn shown(block: &Block) -> Vec<String> {
        let digit = |executed: &bool| if *executed { '1' } else { '0' };
        let mut shown: Vec<String> = Worlds::of(block)
            .iter()
            .map(|world| world.iter().map(digit).collect())
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn predicates_that_nothing_parts_are_on_together() {
        let block = block(&[compare("cmp.eq", 3, (6, 7)), add(6), add(7), add(8)]);
        assert_eq!(shown(&block), ["1111"]);
    }

    #[test]
    fn a_predicate_that_another_one_implies_is_on_with_it() {
        // p8 and p9 are on only if p6 is.
        let nested = [
            compare("cmp.eq", 0, (6, 7)),
            compare("cmp.eq.unc", 6, (8, 9)),
            add(7),
            add(8),
            add(9),
        ];
        assert_eq!(shown(&block(&nested)), ["10100", "11001", "11010"]);
    }

    #[test]
    fn what_is_written_anew_is_another_predicate() {
        let again = [
            compare("cmp.eq", 0, (6, 7)),
            add(6),
            compare("cmp.eq", 0, (6, 8)),
            add(6),
            add(7),
        ];
        assert_eq!(shown(&block(&again)), ["10111", "11110"]);
    }

    #[test]
    fn what_the_source_asserts_parts_from_there_on() {
        let mut block = block(&[add(6), add(7), add(6), add(7), add(10)]);
        block.mutex.push((2, 1 << 6 | 1 << 7 | 1 << 10));
        // The same predicates before and behind: none was written.
        assert_eq!(shown(&block), ["00001", "01010", "10100"]);
    }

    #[test]
    fn of_too_many_predicates_the_later_ones_count_as_on() {
        let pairs = (0..8).flat_map(|_| [compare("cmp.eq", 0, (6, 7)), add(6), add(7)]);
        let block = block(&pairs.collect::<Vec<_>>());
        let worlds = Worlds::of(&block);
        assert_eq!(worlds.iter().count(), WORLDS_MAX);
        assert!(worlds.part(1, 2) && worlds.part(16, 17));
        assert!(!worlds.part(19, 20) && !worlds.part(1, 5));
    }
}
