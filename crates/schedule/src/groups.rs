//! Instruction groups in which instructions depend on each other, so that the architecture leaves undefined what they
//! do.
//!
//! Code is read in the order in which it stands. A group goes on behind a branch that may not be taken, and begins
//! where code can be entered. Predicates, addresses and registers that rotate have no values here: what hangs on them
//! is *possible*.

use std::fmt;

use sidestep_ia64::encoding::{Bundle, Instruction, Operation};

use crate::predicates::{Predicates, Version};
use crate::sequencing::{Conflict, Effects, Parts, State};

/// A dependency inside a group.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Bundle and slot of the earlier instruction.
    pub first: (u64, u8),
    /// The earlier instruction.
    pub first_instruction: Instruction,
    /// Bundle and slot of the later one.
    pub second: (u64, u8),
    /// The later instruction.
    pub second_instruction: Instruction,
    /// What kind of dependency it is.
    pub kind: Kind,
    /// On what.
    pub on: Parts,
    /// Whether it hangs on values that only a run has.
    pub is_possible: bool,
}

/// Kinds of dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The later one reads what the earlier one writes.
    ReadAfterWrite,
    /// Both write.
    WriteAfterWrite,
    /// The later one writes what the earlier one reads.
    WriteAfterRead,
}

impl Kind {
    /// The kind of a conflict on some parts of it: the flow first, which is the gravest.
    pub(crate) fn of(conflict: &Conflict, on: Parts) -> Kind {
        if !on.and(conflict.flow).is_empty() {
            Kind::ReadAfterWrite
        } else if !on.and(conflict.output).is_empty() {
            Kind::WriteAfterWrite
        } else {
            Kind::WriteAfterRead
        }
    }

    /// The table of the manual that forbids it.
    pub fn rule(self) -> &'static str {
        match self {
            Kind::ReadAfterWrite => "RAW dependency, manual 3:5.3.2, table 5-2",
            Kind::WriteAfterWrite => "WAW dependency, manual 3:5.3.3, table 5-3",
            Kind::WriteAfterRead => "WAR dependency, manual 3:5.3.4, table 5-4",
        }
    }
}

/// An instruction of the group that goes on.
struct Member {
    place: (u64, u8),
    instruction: Instruction,
    effects: Effects,
    qualifier: Version,
}

/// Reads code and finds what its groups violate.
#[derive(Default)]
pub struct Checker {
    group: Vec<Member>,
    predicates: Predicates,
}

/// State of which one instruction touches a part that its operands do not tell: rows of register files, bits of UNAT.
pub(crate) const INDEXED: State = State::REGION
    .union(State::PROTECTION_KEY)
    .union(State::DATA_BREAKPOINT)
    .union(State::INSTRUCTION_BREAKPOINT)
    .union(State::MONITOR_CONFIGURATION)
    .union(State::MONITOR_DATA)
    .union(State::MODEL_SPECIFIC)
    .union(State::ACCESS_HINT);

impl Checker {
    /// Code begins here, or can be entered here: nothing is known of what ran before.
    pub fn enter(&mut self) {
        self.group.clear();
        self.predicates = Predicates::default();
    }

    /// Code can also be entered here: what was known of predicates need not hold, but the group goes on.
    pub fn join(&mut self) {
        self.predicates.forget();
    }

    /// Reads a bundle; what it violates goes to `found`.
    pub fn bundle(&mut self, address: u64, bundle: Bundle, found: &mut impl FnMut(Violation)) {
        for decoded in bundle.decode() {
            if let Ok(instruction) = decoded.instruction {
                self.instruction((address, decoded.slot), instruction, found);
                if instruction.always_transfers() {
                    self.group.clear();
                }
            }
            if decoded.stop {
                self.group.clear();
            }
        }
    }

    fn instruction(&mut self, place: (u64, u8), instruction: Instruction, found: &mut impl FnMut(Violation)) {
        if matches!(instruction.operation, Operation::Nop | Operation::Hint) {
            return;
        }
        let effects = Effects::of(&instruction);
        let qualifier = self.predicates.version(effects.qualifier);
        for earlier in &self.group {
            let are_apart = self.predicates.are_exclusive(earlier.qualifier, qualifier)
                && !earlier.effects.writes_when_off
                && !effects.writes_when_off;
            let conflict = earlier.effects.conflict(&effects);
            if are_apart || !conflict.is_parted_by_stop() {
                continue;
            }
            found(Violation {
                first: earlier.place,
                first_instruction: earlier.instruction,
                second: place,
                second_instruction: instruction,
                kind: Kind::of(&conflict, conflict.grouped),
                on: conflict.grouped,
                is_possible: is_possible(earlier, &effects, qualifier, conflict.grouped),
            });
        }
        self.predicates.pass(&instruction, &effects);
        self.group.push(Member {
            place,
            instruction,
            effects,
            qualifier,
        });
    }
}

/// Whether a dependency hangs on values: on a predicate other than the same one, or on which part of something is
/// meant.
fn is_possible(earlier: &Member, later: &Effects, qualifier: Version, on: Parts) -> bool {
    // The later one's predicate is read whether it is on or not.
    let is_read = on.predicate & earlier.effects.writes.predicate & 1 << later.qualifier != 0;
    let is_written = earlier.effects.qualifier == 0 || earlier.effects.writes_when_off;
    let is_conditional = earlier.qualifier != qualifier && !(is_read && is_written);
    let bits_of_nat = Parts {
        application: 1 << sidestep_ia64::registers::application::UNAT,
        ..Parts::default()
    };
    let indexed = Parts {
        state: INDEXED,
        ..bits_of_nat
    };
    let spills = earlier.effects.memory.writes || later.memory.writes || later.memory.reads;
    let only_indexed = on.without(indexed).is_empty() && (spills || !on.state.is_empty());
    // What was written before the serialisation may not concern the later instruction.
    is_conditional || only_indexed || earlier.effects.serializes.is_some()
}

impl fmt::Display for Parts {
    /// The names of what is in it, in the assembler's words where it has any.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use sidestep_ia64::encoding::{application_register_name, control_register_name};
        let mut names = Vec::new();
        let bits = |set: u128| (0..128u8).filter(move |bit| set >> bit & 1 != 0);
        names.extend(bits(self.general).map(|number| format!("r{number}")));
        names.extend(bits(self.float).map(|number| format!("f{number}")));
        names.extend(bits(self.predicate.into()).map(|number| format!("p{number}")));
        names.extend(bits(self.branch.into()).map(|number| format!("b{number}")));
        names.extend(
            bits(self.application).map(|number| match application_register_name(number) {
                Some(name) => format!("ar.{name}"),
                None => format!("ar{number}"),
            }),
        );
        names.extend(
            bits(self.control).map(|number| match control_register_name(number) {
                Some(name) => format!("cr.{name}"),
                None => format!("cr{number}"),
            }),
        );
        if self.status != 0 {
            names.push("psr".to_owned());
        }
        names.extend(
            self.state
                .iter_names()
                .map(|(name, _)| name.to_lowercase().replace('_', " ")),
        );
        out.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use sidestep_ia64::encoding::{Form, Template};

    use super::*;

    /// An instruction in slot 0 or 1 of an MMI bundle, its group open.
    fn bundle(slots: [(&str, u8, &[i64]); 2], template: u8) -> Bundle {
        let slot = |(mnemonic, predicate, values): (&str, u8, &[i64])| {
            let form = Form::named(mnemonic).find(|form| form.operands.len() == values.len());
            let form = form.expect("the form exists");
            form.encode(predicate, values, &[])
                .expect("the form takes the values")
                .slot
        };
        let nop = crate::bundle::nop(sidestep_ia64::encoding::Unit::I);
        Bundle::new(Template::new(template), [slot(slots[0]), slot(slots[1]), nop])
    }

    fn check(bundles: &[Bundle]) -> Vec<(Kind, String, bool)> {
        let mut checker = Checker::default();
        let mut found = Vec::new();
        for (index, bundle) in bundles.iter().enumerate() {
            checker.bundle(16 * index as u64, *bundle, &mut |violation: Violation| {
                found.push((violation.kind, violation.on.to_string(), violation.is_possible));
            });
        }
        found
    }

    const OPEN: u8 = 0x08;
    const STOP_BETWEEN: u8 = 0x0a;

    #[test]
    fn what_a_stop_has_to_part_is_found_and_named() {
        let write: (&str, u8, &[i64]) = ("add", 0, &[4, 5, 6]);
        let read: (&str, u8, &[i64]) = ("add", 0, &[7, 4, 6]);
        assert_eq!(
            check(&[bundle([write, read], OPEN)]),
            [(Kind::ReadAfterWrite, "r4".to_owned(), false)]
        );
        assert_eq!(
            check(&[bundle([write, write], OPEN)]),
            [(Kind::WriteAfterWrite, "r4".to_owned(), false)]
        );
        assert_eq!(check(&[bundle([read, write], OPEN)]), []);
        assert_eq!(check(&[bundle([write, read], STOP_BETWEEN)]), []);
    }

    #[test]
    fn the_predicate_that_an_instruction_is_under_is_read_whatever_it_is() {
        let compare: (&str, u8, &[i64]) = ("cmp.lt", 0, &[6, 7, 4, 5]);
        let found =
            |before: (&str, u8, &[i64]), under| check(&[bundle([before, ("add", under, &[8, 9, 10])], OPEN)]);
        assert_eq!(
            found(compare, 6),
            [(Kind::ReadAfterWrite, "p6".to_owned(), false)]
        );
        assert_eq!(found(compare, 8), []);
        // The compare may not be executed.
        assert_eq!(
            found(("cmp.lt", 8, &[6, 7, 4, 5]), 6),
            [(Kind::ReadAfterWrite, "p6".to_owned(), true)]
        );
    }

    #[test]
    fn groups_reach_across_bundles() {
        let nothing: (&str, u8, &[i64]) = ("nop.m", 0, &[0]);
        let write: (&str, u8, &[i64]) = ("add", 0, &[4, 5, 6]);
        let read: (&str, u8, &[i64]) = ("ld8", 0, &[7, 4]);
        let found = check(&[bundle([nothing, write], OPEN), bundle([read, nothing], OPEN)]);
        assert_eq!(found, [(Kind::ReadAfterWrite, "r4".to_owned(), false)]);
    }

    #[test]
    fn predicates_decide_what_is_certain() {
        let under = |predicate| -> (&str, u8, &[i64]) { ("add", predicate, &[4, 5, 6]) };
        let compare: (&str, u8, &[i64]) = ("cmp.eq", 0, &[6, 7, 8, 9]);
        let nothing: (&str, u8, &[i64]) = ("nop.m", 0, &[0]);
        let both = bundle([under(6), under(7)], OPEN);
        // Of unknown predicates both may be on; of a compare's two only one; one twice is on or off.
        assert_eq!(check(&[both]), [(Kind::WriteAfterWrite, "r4".to_owned(), true)]);
        assert_eq!(check(&[bundle([nothing, compare], OPEN | 1), both]), []);
        assert_eq!(
            check(&[bundle([under(6), under(6)], OPEN)]),
            [(Kind::WriteAfterWrite, "r4".to_owned(), false)]
        );
    }
}
