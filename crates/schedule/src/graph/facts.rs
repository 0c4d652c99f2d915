//! What is known of the items of a block together: predicates that exclude each other, addresses that do not meet;
//! and the order that follows.

use sidestep_ia64::encoding::{BaseUpdate, Effects, IndirectFile, LoadKind, Operand, Operation, Side};
use sidestep_ia64::registers::application::{BSPSTORE, RNAT, RSC};
use sidestep_ia64::registers::status::psr;

use crate::block::{Block, Item};
use crate::predicates::{Predicates, Version};
use crate::sequencing::{Parts, State};
use crate::worlds::Worlds;

/// What is known of the items together: values of predicates and addresses.
pub(crate) struct Facts<'a> {
    items: &'a [Item],
    qualifiers: Vec<Version>,
    predicates: Predicates,
    references: Vec<Option<Reference>>,
    objects: &'a [Option<(u64, i64)>],
    areas: &'a [Option<u8>],
    resident: &'a [bool],
    dead: &'a [Parts],
    targets: &'a [Option<u32>],
    is_addressing_kept: bool,
    /// How many items an iteration has, if they are some iterations of a loop.
    iteration: usize,
    /// By item, whether the register stack engine is in lazy mode there, whatever it was before the block.
    lazy: Vec<bool>,
    /// The worlds that are told apart, if not all are.
    worlds: Option<&'a Worlds>,
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
            areas: &block.areas,
            resident: &block.resident,
            dead: &block.dead,
            targets: &block.targets,
            is_addressing_kept: block.is_addressing_kept,
            iteration: usize::MAX,
            lazy: lazy(&block.items),
            worlds: None,
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

    /// The same of items whose effects are others, and of which as many as `length` are an iteration each.
    pub fn of_iterations(mut self, items: &'a [Item], length: usize) -> Facts<'a> {
        self.items = items;
        self.iteration = length.max(1);
        self
    }

    /// The same where predicates exclude each other only if these worlds part what is under them.
    pub fn within(mut self, worlds: &'a Worlds) -> Facts<'a> {
        self.worlds = Some(worlds);
        self
    }

    /// Whether two items are never executed both.
    fn are_exclusive(&self, first: usize, second: usize) -> bool {
        match self.worlds {
            Some(worlds) => worlds.part(first, second),
            None => self
                .predicates
                .are_exclusive(self.qualifiers[first], self.qualifiers[second]),
        }
    }

    /// The distance that the architecture asks for between two items, the second behind the first; `None` if they may
    /// change places.
    pub fn order(&self, from: usize, to: usize) -> Option<i32> {
        // What a check has looked at is used behind it.
        let is_checked = self.items[from].recovers.is_some_and(|load| {
            let used = self.items[to]
                .effects
                .reads
                .or(self.items[to].effects.all_writes());
            used.general >> load.r1() & 1 != 0
        });
        self.free_order(from, to).or(is_checked.then_some(0))
    }

    /// The same but for what a check has to come before.
    fn free_order(&self, from: usize, to: usize) -> Option<i32> {
        let (first, second) = (&self.items[from], &self.items[to]);
        if first.is_exit() && !second.is_exit() && self.may_precede(to, from) {
            let conflict = first.effects.conflict(&second.effects);
            if conflict.is_none() {
                return None;
            }
        }
        if self.targets[from].is_some() && self.targets[from] == self.targets[to] {
            return None;
        }
        if self.targets[to].is_some() && !first.is_exit() && self.may_follow(from, to) {
            let conflict = first.effects.conflict(&second.effects);
            if conflict.is_none() {
                return None;
            }
        }
        // A branch stays behind what is before it and before what is behind it.
        if second.is_exit() || first.is_exit() {
            let conflict = first.effects.conflict(&second.effects);
            return Some(i32::from(conflict.is_parted_by_stop() || must_end_group(first)));
        }
        if matches!(second.instruction.operation, Operation::Allocate)
            || self.must_end_group(first)
            || self.must_end_group(second)
        {
            let is_parted = self.must_end_group(first)
                || !self.must_end_group(second)
                || first.effects.conflict(&second.effects).is_parted_by_stop();
            return Some(i32::from(is_parted));
        }
        if is_fence(first) || is_fence(second) {
            let conflict = first.effects.conflict(&second.effects);
            return Some(i32::from(
                conflict.is_parted_by_stop() || is_fence(first) && is_fence(second),
            ));
        }
        if self.are_exclusive(from, to)
            && !first.effects.writes_when_off
            && !second.effects.writes_when_off
            && !decides(first, second)
            && !decides(second, first)
        {
            return None;
        }
        if self.is_addressing_kept
            && (is_flush(first) && is_stack_mode(second) || is_stack_mode(first) && is_flush(second))
        {
            return None;
        }
        let mut conflict = first.effects.conflict(&second.effects);
        if self.is_addressing_kept
            && (is_plain(first) && is_addressing(second) || is_addressing(first) && is_plain(second))
        {
            conflict = conflict.without_system();
            return (!conflict.is_none()).then_some(i32::from(conflict.is_parted_by_stop()));
        }
        if conflict.memory && self.are_apart(from, to) {
            conflict.memory = false;
        }
        let guards = self.guards_interrupts(first) && is_guarded(second)
            || is_guarded(first) && self.guards_interrupts(second);
        if conflict.is_none() && !guards {
            return None;
        }
        Some(i32::from(conflict.is_parted_by_stop()))
    }

    /// Whether an item may be executed although a branch before it goes elsewhere: it cannot fault, and writes nothing
    /// that anybody reads there.
    fn may_precede(&self, item: usize, exit: usize) -> bool {
        let moved = &self.items[item];
        let dead = self.dead[exit];
        let written = moved.effects.all_writes();
        match moved.instruction.operation {
            // What the register stack engine writes it may write at any time.
            Operation::FlushRegisterStack => dead.state.contains(State::STACK),
            // Its registers can be read in lazy mode, and what has set that comes first.
            Operation::MoveFromApplication if self.lazy[item] && is_of_stack(moved) => {
                written.without(dead).is_empty()
            }
            _ if self.resident[item] && is_load(moved) => written.without(dead).is_empty(),
            _ => is_harmless(moved) && written.without(dead).is_empty(),
        }
    }

    /// Whether an item need not be executed where a branch behind it goes: nobody reads there what it writes. A fault
    /// of a load is not taken there either.
    fn may_follow(&self, item: usize, exit: usize) -> bool {
        let moved = &self.items[item];
        let written = moved.effects.all_writes();
        (is_load(moved) || is_harmless(moved)) && written.without(self.dead[exit]).is_empty()
    }

    /// Whether everything behind the instruction is in a later group: where addressing is kept, what is serialised
    /// beside it depends on nothing else.
    fn must_end_group(&self, item: &Item) -> bool {
        let waits = matches!(
            item.instruction.operation,
            Operation::Serialize { side: Side::Data }
        );
        must_end_group(item) && !(self.is_addressing_kept && waits)
    }

    /// Whether the instruction says if interrupts are taken.
    fn guards_interrupts(&self, item: &Item) -> bool {
        let keeps = self.is_addressing_kept && item.instruction.operation == Operation::MoveToPsrLower;
        guards_interrupts(item) && !keeps
    }

    /// Whether two references to memory never meet, as far as addresses and what the source says tell.
    fn are_apart(&self, from: usize, to: usize) -> bool {
        let (first, second) = (&self.items[from].effects.memory, &self.items[to].effects.memory);
        if first.acquires || first.releases || second.acquires || second.releases {
            return false;
        }
        if let (Some(area), Some(other)) = (self.areas[from], self.areas[to])
            && area != other
        {
            return true;
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
            // An offset in an object is one of its iteration.
            if object != other_object || from / self.iteration == to / self.iteration {
                return object != other_object || is_apart(offset, other_offset);
            }
        }
        one.root == other.root && is_apart(one.offset, other.offset)
    }
}

/// By item, whether the register stack engine is in lazy mode there: the last to write ar.rsc was a constant that says
/// so.
fn lazy(items: &[Item]) -> Vec<bool> {
    let mut is_lazy = false;
    let mut lazy = Vec::new();
    for item in items {
        lazy.push(is_lazy);
        if item.effects.all_writes().application >> RSC & 1 != 0 {
            is_lazy =
                is_harmless(item) && item.instruction.predicate() == 0 && item.instruction.immediate & 3 == 0;
        }
    }
    lazy
}

/// Whether the instruction is a load that can be a speculative one.
pub(crate) fn is_load(item: &Item) -> bool {
    matches!(
        item.instruction.operation,
        Operation::Load {
            kind: LoadKind::Normal,
            ..
        }
    )
}

/// Whether the instruction moves from a register of the register stack engine that only lazy mode lets be read.
fn is_of_stack(item: &Item) -> bool {
    matches!(item.instruction.ar3(), BSPSTORE | RNAT)
}

/// Whether the instruction cannot fault, whatever registers hold, and does nothing but write registers.
fn is_harmless(item: &Item) -> bool {
    use Operation as O;
    let is_computation = item.instruction.effects().contains(Effects::COMPUTES);
    // Of application registers those that any program may read in any state, and a constant for ar.rsc.
    let application = item.effects.reads.application | item.effects.all_writes().application;
    let is_application = match item.instruction.operation {
        O::MoveFromApplication => application & !READABLE == 0,
        O::MoveToApplication { .. } => is_stack_mode(item),
        _ => false,
    };
    let is_speculative = matches!(
        item.instruction.operation,
        O::Load {
            kind: LoadKind::Speculative,
            ..
        }
    );
    is_computation || is_application || is_speculative
}

/// Whether the instruction moves a constant to ar.rsc that it can have: mode, privilege and byte order of the register
/// stack.
fn is_stack_mode(item: &Item) -> bool {
    matches!(item.instruction.operation, Operation::MoveToApplication { .. })
        && item.effects.all_writes().application == 1 << RSC
        && item.instruction.form().operands.contains(&Operand::Imm8)
        && (0..16).contains(&item.instruction.immediate)
}

/// Whether the first writes the predicate that says whether the second is executed.
fn decides(first: &Item, second: &Item) -> bool {
    let qualifier = second.effects.qualifier;
    first.effects.all_writes().predicate & !1 & 1 << qualifier != 0
}

/// Whether the instruction writes the register stack to memory.
fn is_flush(item: &Item) -> bool {
    item.instruction.operation == Operation::FlushRegisterStack
}

/// Application registers that any program may read, whatever the mode of the register stack is: kernel registers,
/// ar.rsc, ar.ccv, ar.unat, ar.fpsr, ar.pfs, ar.lc, ar.ec.
const READABLE: u128 = 0xff | 1 << RSC | 1 << 32 | 1 << 36 | 1 << 40 | 0b111 << 64;

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

/// Whether the instruction refers to memory, or moves application registers, and does nothing else: of system state it
/// reads what references and privileges go by.
fn is_plain(item: &Item) -> bool {
    use Operation as O;
    matches!(
        item.instruction.operation,
        O::Load { .. }
            | O::Store { .. }
            | O::LoadFloat { .. }
            | O::StoreFloat { .. }
            | O::LoadFloatPair { .. }
            | O::FlushRegisterStack
            | O::LoadRegisterStack
            | O::MoveToApplication { .. }
            | O::MoveFromApplication
            | O::InvalidateAlat
    )
}

/// Whether the instruction changes what references go by, or waits for such a change.
fn is_addressing(item: &Item) -> bool {
    use Operation as O;
    matches!(
        item.instruction.operation,
        O::MoveToPsrLower
            | O::MoveToIndirect {
                file: IndirectFile::Region
            }
            | O::Serialize { .. }
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

/// By item, the register whose value its address is, but for a constant, while that was in it.
pub(crate) fn roots(items: &[Item]) -> Vec<Option<u8>> {
    let addresses = addresses(items).into_iter();
    addresses
        .map(|reference| reference.map(|reference| reference.root.0))
        .collect()
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
