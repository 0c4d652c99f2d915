//! What is known of instructions and blocks before they run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_ia64::encoding::{BranchKind, DecodedSlot, Instruction, Operation, Unit};
use sidestep_ia64::execution::Registers;
use sidestep_ia64::registers::application::{EC, LC};

use super::dependency::{self, Run};
use crate::predicates::{Predicates, Version};
use crate::sequencing::{Effects, Parts, Position, misplaced};

/// What is kept of an instruction with its block.
#[derive(Debug)]
pub struct Known {
    /// The instruction and its effects.
    pub(super) facts: Arc<Facts>,
    /// Whether a stop follows.
    pub(super) stop: bool,
    /// The place in its group that it should have and has not.
    pub(super) misplaced: Option<Position>,
    /// Which of the instructions before it in its group it may depend on with its predicate off, and which with it on:
    /// the nearest in the lowest bit.
    pub(super) suspects: [u64; 2],
    /// What is known of its group as a whole.
    pub(super) marks: Arc<Marks>,
    /// What the block does up to here.
    pub(super) block: BlockFacts,
}

/// An instruction and what it reads and writes.
#[derive(Debug)]
pub(super) struct Facts {
    pub instruction: Instruction,
    pub on: Effects,
    pub off: Effects,
    /// Whether it writes something when its predicate is off.
    pub writes_off: bool,
    /// Whether it does nothing that a group could depend on.
    pub is_nothing: bool,
    /// Whether it is to be looked at wherever it stands.
    pub is_wanted: bool,
    /// Whether registers may have other names behind it.
    pub renames: bool,
}

impl Facts {
    fn new(instruction: &Instruction) -> Facts {
        use Operation as O;
        let on = Effects::of(instruction);
        let off = on.when_off();
        Facts {
            instruction: *instruction,
            writes_off: !off.all_writes().is_empty(),
            is_nothing: matches!(instruction.operation, O::Nop | O::Hint),
            is_wanted: !on.deferred.is_empty()
                || on.reads_system_state()
                || on.serializes.is_some()
                || matches!(instruction.operation, O::ReturnFromInterruption),
            renames: instruction
                .effects()
                .contains(sidestep_ia64::encoding::Effects::CHANGES_FRAME),
            on,
            off,
        }
    }

    /// The effects with the predicate on or off.
    pub fn under(&self, executed: bool) -> &Effects {
        match executed {
            true => &self.on,
            false => &self.off,
        }
    }

    /// The operation is `alloc`, which sees the frame that it makes.
    pub fn is_alloc(&self) -> bool {
        matches!(self.instruction.operation, Operation::Allocate)
    }
}

/// What a block does, by the stacked registers of the frame that it is entered with: the first one is bit 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockFacts {
    /// Whether its instructions have to be looked at whenever it runs.
    pub is_wanted: bool,
    /// Whether its last group goes on behind it.
    pub tail: Tail,
    /// Whether it writes AR.LC or AR.EC before its end.
    counts: bool,
    /// Registers that it may read before it has written them.
    pub reads: u128,
    /// Registers that it may write.
    pub writes: u128,
    /// Registers that it has written whatever its predicates are.
    defined: u128,
    /// The frame's size once it has changed.
    pub size: Option<u8>,
    /// Whether it changes the frame.
    pub renames: bool,
    /// Whether it returns, and from which frame.
    pub returns: Returns,
}

/// What is known of a group of a block.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Whether anything in it has to be looked at whenever it runs.
    pub is_watched: AtomicBool,
    /// Whether it goes on behind the block with nothing that could depend on it, whatever the values are.
    pub is_harmless: AtomicBool,
}

/// What becomes of a block's last group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tail {
    /// It ends with the block.
    #[default]
    Closed,
    /// It may go on behind the block.
    Open,
    /// It may go on behind the block, with registers under other names.
    Renamed,
    /// It goes on if the counted loop branch at its end, whose counts the block does not change, is not taken.
    Counted(BranchKind),
}

impl Tail {
    /// Whether the group may go on behind the block, which is about to be entered.
    pub fn goes_on(self, registers: Registers<'_>) -> bool {
        let count = |register| registers.application(register);
        match self {
            Tail::Closed => false,
            Tail::Open | Tail::Renamed => true,
            Tail::Counted(BranchKind::CountedLoop) => count(LC) == 0,
            Tail::Counted(BranchKind::CountedTop) => count(LC) == 0 && count(EC) <= 1,
            Tail::Counted(BranchKind::CountedExit) => count(LC) != 0 || count(EC) > 1,
            Tail::Counted(BranchKind::Conditional | BranchKind::WhileExit | BranchKind::WhileTop) => true,
        }
    }
}

/// The frame that a block returns from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Returns {
    /// It does not return.
    #[default]
    No,
    /// That which it was entered with, or which it has made of this size.
    From(Option<u8>),
    /// One of several.
    Several,
}

/// The group that is being decoded.
#[derive(Default)]
struct Group {
    members: Vec<(Arc<Facts>, Version)>,
    /// Its instructions, those that do nothing included.
    length: usize,
    /// Whether registers were renamed in it.
    is_renamed: bool,
    marks: Arc<Marks>,
}

/// Decodes blocks.
#[derive(Default)]
pub(super) struct Decoder {
    facts: HashMap<(Unit, u64, i64), Arc<Facts>>,
    block: BlockFacts,
    group: Group,
    predicates: Predicates,
}

/// Instructions whose facts are kept before they are found anew.
const FACTS_MAX: usize = 1 << 16;

impl Decoder {
    /// Another block begins.
    pub fn begin(&mut self) {
        self.block = BlockFacts::default();
        self.group = Group::default();
        self.predicates = Predicates::default();
    }

    /// The next instruction of the block.
    pub fn decode(&mut self, instruction: &Instruction, slot: &DecodedSlot) -> Known {
        let facts = self.facts(instruction);
        let misplaced = misplaced(&facts.on, slot, self.group.length == 0);
        let qualifier = self.predicates.version(facts.on.qualifier);
        let suspects = match facts.is_nothing {
            true => [0; 2],
            false => self.suspects(&facts, qualifier),
        };
        let is_outside = self.follow_registers(&facts);
        if suspects != [0; 2] || misplaced.is_some() || facts.is_wanted || is_outside {
            self.block.is_wanted = true;
            self.group.marks.is_watched.store(true, Ordering::Relaxed);
        }
        let marks = Arc::clone(&self.group.marks);
        if !facts.is_nothing {
            self.predicates.pass(instruction, &facts.on);
            self.group.members.push((Arc::clone(&facts), qualifier));
        }
        self.group.length += 1;
        self.group.is_renamed |= facts.renames && !facts.is_alloc();
        if slot.stop || leaves(instruction) {
            self.group = Group::default();
        }
        self.block.tail = self.tail(instruction);
        self.block.counts |= facts.on.writes.application & (1 << LC | 1 << EC) != 0;
        Known {
            facts,
            stop: slot.stop,
            misplaced,
            suspects,
            marks,
            block: self.block,
        }
    }

    /// What becomes of the group if the block ends behind an instruction.
    fn tail(&self, instruction: &Instruction) -> Tail {
        use BranchKind::{CountedExit, CountedLoop, CountedTop};
        let is_counted = !self.block.counts;
        match instruction.operation {
            _ if self.group.members.is_empty() => Tail::Closed,
            Operation::Branch {
                kind: kind @ (CountedLoop | CountedTop | CountedExit),
                ..
            } if is_counted => Tail::Counted(kind),
            Operation::Branch {
                kind: CountedLoop, ..
            } => Tail::Open,
            _ if self.group.is_renamed => Tail::Renamed,
            _ => Tail::Open,
        }
    }

    /// An instruction's facts, which those of one encoding share.
    fn facts(&mut self, instruction: &Instruction) -> Arc<Facts> {
        if self.facts.len() >= FACTS_MAX {
            self.facts.clear();
        }
        let key = (instruction.unit, instruction.slot, instruction.immediate);
        let facts = self
            .facts
            .entry(key)
            .or_insert_with(|| Arc::new(Facts::new(instruction)));
        Arc::clone(facts)
    }

    /// Which members of the group an instruction may depend on.
    fn suspects(&self, later: &Facts, qualifier: Version) -> [u64; 2] {
        if self.group.is_renamed {
            return [u64::MAX; 2];
        }
        let mut suspects = [0; 2];
        for (distance, (earlier, version)) in self.group.members.iter().rev().enumerate() {
            let are_apart = self.predicates.are_exclusive(*version, qualifier)
                && !earlier.on.writes_when_off
                && !later.on.writes_when_off;
            for (executed, suspects) in [false, true].into_iter().zip(&mut suspects) {
                if !are_apart && may_depend(earlier, later, executed) {
                    // What is further away shares the last bit.
                    *suspects |= 1 << distance.min(63);
                }
            }
        }
        suspects
    }

    /// Follows which stacked registers are read and written; answers whether it reads one outside the frame.
    fn follow_registers(&mut self, facts: &Facts) -> bool {
        let block = &mut self.block;
        if facts.is_alloc() {
            block.size = Some(facts.instruction.sof());
            block.renames = true;
        }
        let (reads, writes) = (facts.on.reads.general >> 32, facts.on.writes.general >> 32);
        match block.size {
            Some(_) => {}
            None if !block.renames => {
                block.reads |= reads & !block.defined;
                block.writes |= writes;
                if facts.on.qualifier == 0 {
                    block.defined |= writes;
                }
            }
            None => {}
        }
        if matches!(facts.instruction.operation, Operation::Return) {
            block.returns = match block.returns {
                Returns::No => Returns::From(block.size),
                Returns::From(size) if size == block.size => Returns::From(size),
                Returns::From(_) | Returns::Several => Returns::Several,
            };
        }
        block.renames |= facts.renames;
        block.size.is_some_and(|size| reads >> size.min(96) != 0)
    }
}

/// Whether an instruction whose predicate is off or on may depend on an earlier one, whatever the values are.
pub(super) fn may_depend(earlier: &Facts, later: &Facts, executed: bool) -> bool {
    let second = Run::unknown(executed);
    let may = |first| dependency::find(earlier, &Run::unknown(first), later, &second).is_some();
    may(true) || earlier.writes_off && may(false)
}

/// Whether nothing follows the instruction in its group, whatever its predicate is.
pub(super) fn leaves(instruction: &Instruction) -> bool {
    let always_breaks = instruction.operation == Operation::Break && instruction.predicate() == 0;
    instruction.always_transfers() || always_breaks
}

/// The registers of the stack in a set, the first one as bit 0.
pub(super) fn stacked(parts: &Parts) -> u128 {
    parts.general >> 32
}
