//! Slots: the 64-bit places of a processor's state that translated code keeps in variables.

use sidestep_ia64::encoding::{Effects, Instruction, Resource, UnitClass};
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::{EC, FPSR, LC};
use sidestep_ia64::registers::frame;

const GENERAL_REGISTERS: u16 = 128;
const FIRST_STACKED: u16 = frame::FIRST_STACKED as u16;
const BRANCH_REGISTERS: u16 = 8;
const APPLICATION_REGISTERS: u16 = 128;
const FIRST_BRANCH: u16 = GENERAL_REGISTERS;
const FIRST_APPLICATION: u16 = FIRST_BRANCH + BRANCH_REGISTERS;
const PREDICATES: u16 = FIRST_APPLICATION + APPLICATION_REGISTERS;
const RETIRED: u16 = PREDICATES + 1;

/// A general, branch or application register, the word of all predicates, or how many instructions have retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u16);

impl Slot {
    /// How many there are.
    pub const COUNT: usize = RETIRED as usize + 1;
    /// All predicates, as the current rotation shows them.
    pub const PREDICATES: Slot = Slot(PREDICATES);
    /// How many instructions have retired.
    pub const RETIRED: Slot = Slot(RETIRED);

    /// A general register of the current frame.
    pub fn general(register: u8) -> Slot {
        Slot(u16::from(register & 127))
    }

    /// A branch register.
    pub fn branch(register: u8) -> Slot {
        Slot(FIRST_BRANCH + u16::from(register & 7))
    }

    /// An application register.
    pub fn application(register: u8) -> Slot {
        Slot(FIRST_APPLICATION + u16::from(register & 127))
    }

    /// The slot that a resource of an instruction stands in, if it is in one.
    fn of(resource: Resource) -> Option<Slot> {
        match resource {
            Resource::General(register) => Some(Slot::general(register)),
            Resource::Branch(register) => Some(Slot::branch(register)),
            Resource::Application(register) => Some(Slot::application(register)),
            Resource::Predicate(_) | Resource::Predicates | Resource::RotatingPredicates => {
                Some(Slot::PREDICATES)
            }
            Resource::Float(_)
            | Resource::Control(_)
            | Resource::Indirect(_)
            | Resource::FrameMarker
            | Resource::ProcessorStatus => None,
        }
    }

    /// Its number, below [`Slot::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Whether it is a stacked register, which lies so much further as the frame does.
    pub fn is_stacked(self) -> bool {
        (FIRST_STACKED..GENERAL_REGISTERS).contains(&self.0)
    }

    /// Whether it is one of so many general registers that rotate.
    pub fn rotates_among(self, size: u8) -> bool {
        (FIRST_STACKED..FIRST_STACKED + u16::from(size)).contains(&self.0)
    }

    /// Whether emitted code alone looks at it in a tight loop, unless something rare happens.
    pub fn may_be_late(self) -> bool {
        let counts = [LC, EC].map(Slot::application);
        self.0 < FIRST_APPLICATION || counts.contains(&self) || self.0 >= PREDICATES
    }

    /// Where it lies, in bytes from the start of the processor, or of the frame.
    pub fn offset(self) -> usize {
        match self.0 {
            register if register < FIRST_BRANCH => layout::GENERAL + usize::from(register) * 8,
            register if register < FIRST_APPLICATION => {
                layout::BRANCH + usize::from(register - FIRST_BRANCH) * 8
            }
            register if register < PREDICATES => {
                layout::APPLICATION + usize::from(register - FIRST_APPLICATION) * 8
            }
            PREDICATES => layout::PREDICATES,
            _ => layout::RETIRED,
        }
    }
}

const WORDS: usize = Slot::COUNT.div_ceil(64);

/// A set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots([u64; WORDS]);

impl Slots {
    /// No slot.
    pub const NONE: Slots = Slots([0; WORDS]);
    /// Every slot.
    pub const ALL: Slots = Slots([u64::MAX; WORDS]);

    /// The slots that an instruction reads.
    pub fn read_by(instruction: &Instruction) -> Slots {
        instruction
            .sources()
            .iter()
            .copied()
            .filter_map(Slot::of)
            .collect()
    }

    /// The slots that an instruction writes when its predicate is true.
    pub fn written_by(instruction: &Instruction) -> Slots {
        instruction
            .destinations()
            .iter()
            .copied()
            .filter_map(Slot::of)
            .collect()
    }

    /// The slots that the interpreter's function for an instruction looks at in memory or changes there, where it is
    /// one that knows of no others. Predicates are written by changing their word.
    pub fn named_by(instruction: &Instruction) -> Slots {
        let mut named = Slots::read_by(instruction).union(Slots::written_by(instruction));
        named.insert(Slot::PREDICATES);
        named.insert(Slot::application(FPSR));
        named
    }

    /// The slots that may hold something else once the interpreter's function has executed an instruction: what is no
    /// general register always, since the functions know more of them than instructions name.
    pub fn changed_by_performing(instruction: &Instruction) -> Slots {
        let effects = instruction.effects();
        if effects.intersects(Effects::CHANGES_FRAME | Effects::CHANGES_STATUS) {
            return Slots::ALL;
        }
        if instruction.unit_class() == UnitClass::F {
            return Slots::named_by(instruction);
        }
        let mut changed = Slots::ALL;
        changed.0[0] = 0;
        changed.0[1] = 0;
        changed.union(Slots::written_by(instruction))
    }

    /// The general registers in it, r0 the lowest bit: the form in which a processor has its NaT bits.
    pub fn general_registers(self) -> [u64; 2] {
        [self.0[0], self.0[1]]
    }

    /// Whether it has a slot.
    pub fn contains(self, slot: Slot) -> bool {
        self.0[slot.index() / 64] >> (slot.index() % 64) & 1 != 0
    }

    /// Adds a slot.
    pub fn insert(&mut self, slot: Slot) {
        self.0[slot.index() / 64] |= 1 << (slot.index() % 64);
    }

    /// Takes a slot out.
    pub fn remove(&mut self, slot: Slot) {
        self.0[slot.index() / 64] &= !(1 << (slot.index() % 64));
    }

    /// The slots in this set or the other.
    pub fn union(self, other: Slots) -> Slots {
        Slots(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The slots in both sets.
    pub fn intersection(self, other: Slots) -> Slots {
        Slots(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// The slots in this set and not in the other.
    pub fn without(self, other: Slots) -> Slots {
        Slots(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Its slots, in order.
    pub fn iter(self) -> impl Iterator<Item = Slot> {
        let words = self.0.into_iter().enumerate();
        let slots = words.flat_map(|(word, mut bits)| {
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        });
        slots
            .take_while(|&slot| slot < Slot::COUNT)
            .map(|slot| Slot(slot as u16))
    }
}

impl FromIterator<Slot> for Slots {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Slots {
        let mut set = Slots::NONE;
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

const _: () = assert!(GENERAL_REGISTERS == 128, "two words of a set");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_lists_what_was_put_in_and_every_slot_lies_elsewhere() {
        let slots = [
            Slot::general(1),
            Slot::general(127),
            Slot::branch(0),
            Slot::application(65),
            Slot::PREDICATES,
        ];
        let set: Slots = slots.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), slots);
        let mut places: Vec<usize> = Slots::ALL.iter().map(Slot::offset).collect();
        assert_eq!(places.len(), Slot::COUNT);
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), Slot::COUNT);
    }
}
