//! What is known of the items of a block together: predicates that exclude each other, addresses that do not meet;
//! and the order that follows.

use sidestep_ia64::encoding::{BaseUpdate, Effects, Operation};
use sidestep_ia64::registers::status::psr;

use crate::block::{Block, Item};
use crate::predicates::{Predicates, Version};
use crate::sequencing::State;

/// What is known of the items together: values of predicates and addresses.
pub(super) struct Facts<'a> {
    items: &'a [Item],
    qualifiers: Vec<Version>,
    predicates: Predicates,
    references: Vec<Option<Reference>>,
    objects: &'a [Option<(u64, i64)>],
}

/// Where an item refers to: an unknown value, what is added to it, and how many bytes.
#[derive(Clone, Copy, Debug)]
struct Reference {
    root: (u8, u32),
    offset: i64,
    size: u32,
}

impl<'a> Facts<'a> {
    pub fn new(block: &'a Block) -> Facts<'a> {
        let mut facts = Facts {
            items: &block.items,
            qualifiers: Vec::new(),
            predicates: Predicates::default(),
            references: addresses(&block.items),
            objects: &block.objects,
        };
        for (index, item) in block.items.iter().enumerate() {
            for (_, registers) in block.mutex.iter().filter(|(before, _)| *before == index) {
                facts.predicates.assert_exclusive(*registers);
            }
            facts
                .qualifiers
                .push(facts.predicates.version(item.effects.qualifier));
            facts.predicates.pass(&item.instruction, &item.effects);
        }
        facts
    }

    /// The distance that the architecture asks for between two items, the second behind the first; `None` if they may
    /// change places.
    pub fn order(&self, from: usize, to: usize) -> Option<i32> {
        let (first, second) = (&self.items[from], &self.items[to]);
        // A branch stays behind what is before it and before what is behind it.
        if second.is_exit() || first.is_exit() {
            let conflict = first.effects.conflict(&second.effects);
            return Some(i32::from(conflict.is_parted_by_stop() || must_end_group(first)));
        }
        if matches!(second.instruction.operation, Operation::Allocate)
            || must_end_group(first)
            || must_end_group(second)
        {
            return Some(i32::from(must_end_group(first) || !must_end_group(second)));
        }
        if is_fence(first) || is_fence(second) {
            let conflict = first.effects.conflict(&second.effects);
            return Some(i32::from(
                conflict.is_parted_by_stop() || is_fence(first) && is_fence(second),
            ));
        }
        if self
            .predicates
            .are_exclusive(self.qualifiers[from], self.qualifiers[to])
            && !first.effects.writes_when_off
            && !second.effects.writes_when_off
        {
            return None;
        }
        let mut conflict = first.effects.conflict(&second.effects);
        if conflict.memory && self.are_apart(from, to) {
            conflict.memory = false;
        }
        let guards =
            guards_interrupts(first) && is_guarded(second) || is_guarded(first) && guards_interrupts(second);
        if conflict.is_none() && !guards {
            return None;
        }
        Some(i32::from(conflict.is_parted_by_stop()))
    }

    /// Whether two references to memory never meet, as far as addresses and what the source says tell.
    fn are_apart(&self, from: usize, to: usize) -> bool {
        let (first, second) = (&self.items[from].effects.memory, &self.items[to].effects.memory);
        if first.acquires || first.releases || second.acquires || second.releases {
            return false;
        }
        let (Some(one), Some(other)) = (self.references[from], self.references[to]) else {
            return false;
        };
        let is_apart = |first: i64, second: i64| {
            first + i64::from(one.size) <= second || second + i64::from(other.size) <= first
        };
        if let (Some((object, offset)), Some((other_object, other_offset))) =
            (self.objects[from], self.objects[to])
        {
            return object != other_object || is_apart(offset, other_offset);
        }
        one.root == other.root && is_apart(one.offset, other.offset)
    }
}

/// Whether everything behind the instruction is in a later group, whatever it is.
fn must_end_group(item: &Item) -> bool {
    let effects = item.instruction.effects();
    effects.contains(Effects::CHANGES_TRANSLATIONS)
        || matches!(
            item.instruction.operation,
            Operation::EnterPrivilegedCode
                | Operation::BankSwitch { .. }
                | Operation::ReturnFromInterruption
                | Operation::Break
        )
}

/// Whether nothing moves across the instruction: what it is about is not known here.
fn is_fence(item: &Item) -> bool {
    matches!(
        item.instruction.operation,
        Operation::Hint | Operation::MoveToDataAccessHint
    )
}

/// Whether the instruction says if interrupts are taken.
fn guards_interrupts(item: &Item) -> bool {
    item.effects.writes.status & (psr::I | psr::IC) != 0 && item.effects.serializes.is_none()
}

/// Whether an interrupt in the middle could see the instruction's effect, or the other way round.
fn is_guarded(item: &Item) -> bool {
    let effects = &item.effects;
    let memory = effects.memory.reads || effects.memory.writes;
    let system = effects.writes.control != 0
        || effects.writes.application != 0
        || !(effects.writes.state - State::FRAME - State::FLOAT_STATUS - State::ALAT).is_empty();
    memory || system || effects.writes.status != 0
}

/// The addresses that items refer to, as sums of a value that is in a register at some point and a constant.
fn addresses(items: &[Item]) -> Vec<Option<Reference>> {
    let mut versions = [0u32; 128];
    // What each register holds: r0 is nothing and 0.
    let mut values: Vec<((u8, u32), i64)> = (0..128).map(|register| ((register as u8, 0), 0)).collect();
    let mut references = Vec::new();
    for item in items {
        let instruction = &item.instruction;
        let base = usize::from(instruction.r3());
        let access = instruction.operation.memory_access();
        let access = access.filter(|access| access.reads() || access.writes());
        references.push(access.map(|access| Reference {
            root: values[base].0,
            offset: values[base].1,
            size: access.bytes.into(),
        }));
        let updated = match (instruction.operation, instruction.base_update()) {
            (_, BaseUpdate::Immediate) => {
                Some((base, (values[base].0, values[base].1 + instruction.immediate)))
            }
            (Operation::AddImmediate, _) => {
                let (root, offset) = values[base];
                Some((
                    usize::from(instruction.r1()),
                    (root, offset + instruction.immediate),
                ))
            }
            (Operation::MoveLong, _) => {
                Some((usize::from(instruction.r1()), ((0, 0), instruction.immediate)))
            }
            (Operation::AddLongImmediate, _) => {
                let (root, offset) = values[usize::from(instruction.r3_short())];
                Some((
                    usize::from(instruction.r1()),
                    (root, offset + instruction.immediate),
                ))
            }
            _ => None,
        };
        let written = item.effects.all_writes().general;
        for register in (1..128).filter(|register| written >> register & 1 != 0) {
            versions[register] += 1;
            values[register] = ((register as u8, versions[register]), 0);
        }
        if let (Some((register, value)), 0) = (updated, item.effects.qualifier) {
            values[register] = value;
        }
    }
    references
}
