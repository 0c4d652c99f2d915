//! Predicates that compares, tests and approximations write.

use sidestep_ia64::encoding::*;

use super::{Effects, Kind};

impl Effects {
    /// The targets of a compare or test, which those of parallel types only clear or only set.
    pub(super) fn add_targets(&mut self, instruction: &Instruction, update: PredicateUpdate) {
        let (first, second) = (1 << instruction.p1() & !1, 1 << instruction.p2() & !1);
        match update {
            PredicateUpdate::Normal => self.complements = true,
            PredicateUpdate::Unconditional => {
                self.complements = true;
                self.writes_when_off = true;
            }
            PredicateUpdate::And => self.clears = first | second,
            PredicateUpdate::Or => self.sets = first | second,
            PredicateUpdate::OrAndComplement => {
                self.kind = Kind::Complement;
                (self.sets, self.clears) = (first, second);
            }
        }
        self.writes.predicate &= !(self.sets | self.clears);
    }

    /// The targets of a floating-point compare or class test.
    pub(super) fn add_float_targets(&mut self, unconditional: bool) {
        self.kind = Kind::FloatPredicate;
        self.complements = true;
        self.writes_when_off = unconditional;
    }

    /// The target of an approximation, which says whether the program has to go on with it.
    pub(super) fn add_approximation(&mut self) {
        self.kind = Kind::FloatPredicate;
        self.writes_when_off = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(update: PredicateUpdate) -> impl Iterator<Item = Effects> {
        let (p1, p2, off) = (8 << 6, 9 << 27, 7);
        let forms = all_forms().filter(move |(_, form)| match form.operation {
            Operation::Compare { update: its, .. }
            | Operation::TestBit { update: its, .. }
            | Operation::TestNat { update: its, .. }
            | Operation::TestFeature { update: its, .. } => its == update,
            _ => false,
        });
        forms.map(move |(_, form)| {
            let unit = match form.class {
                UnitClass::A => Unit::M,
                _ => Unit::I,
            };
            Effects::of(&decode(unit, form.value | p1 | p2 | off, 0).expect("the form decodes"))
        })
    }

    #[test]
    fn every_test_writes_a_pair_that_is_never_on_together() {
        for effects in with(PredicateUpdate::Normal) {
            assert!(effects.complements && !effects.writes_when_off);
            assert_eq!(effects.when_off().writes.predicate, 0);
        }
        for effects in with(PredicateUpdate::Unconditional) {
            assert!(effects.complements && effects.writes_when_off);
            assert_eq!(effects.when_off().writes.predicate, 1 << 8 | 1 << 9);
        }
        assert!(with(PredicateUpdate::Or).all(|effects| !effects.complements && effects.sets != 0));
    }
}
