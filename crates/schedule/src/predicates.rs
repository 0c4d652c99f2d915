//! Which predicates are never on together, as far as the code before says.
//!
//! A compare that writes two predicates turns at most one of them on; one of the unconditional type does so only if
//! its own predicate is on. Each write of a predicate makes a new version of it.

use sidestep_ia64::encoding::Instruction;

use crate::sequencing::Effects;

/// A version of a predicate: its register, and how often it was written before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    register: u8,
    number: u32,
}

/// What is known of predicates at a point of the code.
#[derive(Clone, Debug)]
pub struct Predicates {
    versions: [u32; 64],
    /// Pairs of which at most one is on.
    exclusive: Vec<(Version, Version)>,
    /// Predicates that are on only if another one is.
    implied: Vec<(Version, Version)>,
}

impl Default for Predicates {
    fn default() -> Self {
        Predicates {
            versions: [0; 64],
            exclusive: Vec::new(),
            implied: Vec::new(),
        }
    }
}

impl Predicates {
    /// The version of a register that holds now.
    pub fn version(&self, register: u8) -> Version {
        Version {
            register,
            number: self.versions[usize::from(register)],
        }
    }

    /// Nothing is known any more; every register has a new version.
    pub fn forget(&mut self) {
        self.versions.iter_mut().for_each(|version| *version += 1);
        self.exclusive.clear();
        self.implied.clear();
    }

    /// The source says that of these registers at most one is on.
    pub fn assert_exclusive(&mut self, registers: u64) {
        let registers: Vec<u8> = (1..64)
            .filter(|register| registers >> register & 1 != 0)
            .collect();
        for (place, first) in registers.iter().enumerate() {
            for second in &registers[place + 1..] {
                let pair = (self.version(*first), self.version(*second));
                self.exclusive.push(pair);
            }
        }
    }

    /// Goes on behind an instruction.
    pub fn pass(&mut self, instruction: &Instruction, effects: &Effects) {
        let qualifier = self.version(effects.qualifier);
        let written = effects.all_writes().predicate;
        for register in (1..64).filter(|register| written >> register & 1 != 0) {
            self.versions[register] += 1;
        }
        if !effects.complements {
            return;
        }
        let unconditional = effects.writes_when_off;
        let (first, second) = (instruction.p1(), instruction.p2());
        if (unconditional || qualifier.register == 0) && first != 0 && second != 0 {
            self.exclusive.push((self.version(first), self.version(second)));
        }
        if unconditional && qualifier.register != 0 {
            let versions = [first, second].map(|register| (self.version(register), qualifier));
            self.implied.extend(versions);
        }
    }

    /// Whether at most one of two predicates is on.
    pub fn are_exclusive(&self, first: Version, second: Version) -> bool {
        if first.register == 0 || second.register == 0 {
            return false;
        }
        let (first, second) = (self.above(first), self.above(second));
        self.exclusive.iter().any(|(one, other)| {
            first.contains(one) && second.contains(other) || first.contains(other) && second.contains(one)
        })
    }

    /// A predicate and those that are on if it is.
    fn above(&self, version: Version) -> Vec<Version> {
        let mut all = vec![version];
        let mut next = 0;
        while next < all.len() {
            let of = all[next];
            for (on, also) in &self.implied {
                if *on == of && !all.contains(also) {
                    all.push(*also);
                }
            }
            next += 1;
        }
        all
    }
}
