//! Code that gathers: it does what a block does, and writes down for an observer which instructions were executed and
//! what they referred to.
//!
//! What is gathered is in memory at once, so that the code may be left anywhere. What instructions change that is
//! gathered, too, a function of the processor's writes down behind them; of the last one that is executed whoever has
//! entered the code does.

use cranelift_codegen::ir::{InstBuilder, Value};
use sidestep_ia64::encoding::{Effects, Instruction};
use sidestep_ia64::execution::GATHERED;
use sidestep_ia64::layout;

use super::Emitter;
use crate::chain::Word;

/// What is known of what the code gathers.
pub(super) struct Gathering {
    /// The address of what it fills.
    filled: Value,
    /// Which of 64 instructions were executed, as memory has it: of those with the current one.
    executed: Value,
    /// What the current instruction changes that is not gathered yet.
    due: Effects,
}

impl Emitter<'_, '_> {
    /// Begins to gather with the node.
    pub(super) fn begin_gathering(&mut self) {
        let filled = self.shared(Word::Gathered);
        self.gathering = Some(Gathering {
            filled,
            executed: self.certain(0),
            due: Effects::empty(),
        });
    }

    /// Those of 64 instructions that are executed whatever the predicates are.
    fn certain(&mut self, first: usize) -> Value {
        let entries = self.region.nodes[self.node].block.instructions.iter();
        let certain = entries.take(self.region.gathers.unwrap_or(0)).map(|entry| {
            let instruction = entry.decoded.instruction.as_ref();
            instruction.is_ok_and(|instruction| instruction.predicate() == 0)
        });
        let bits = certain.skip(first).take(64).enumerate();
        let word = bits.fold(0u64, |word, (bit, is_certain)| {
            word | u64::from(is_certain) << bit
        });
        self.constant(word.cast_signed())
    }

    /// Gathers what is known in front of the current instruction.
    pub fn gather(&mut self, instruction: &Instruction) {
        let Some(Gathering {
            filled, mut executed, ..
        }) = self.gathering
        else {
            return;
        };
        let (word, bit) = (self.index / 64, self.index % 64);
        if bit == 0 {
            executed = self.certain(self.index);
        }
        if let Some(condition) = self.predicate(instruction.predicate()) {
            let (one, none) = (self.constant(1 << bit), self.constant(0));
            let one = self.ins().select(condition, one, none);
            executed = self.ins().bor(executed, one);
            self.store_gathered(filled, executed, layout::GATHERED_EXECUTED + word * 8);
        }
        if instruction.operation.memory_access().is_some() {
            let base = self.general(instruction.r3());
            self.store_gathered(filled, base, layout::GATHERED_REFERENCES + self.index * 8);
        }
        self.gathering = Some(Gathering {
            filled,
            executed,
            due: instruction.effects() & GATHERED,
        });
    }

    fn store_gathered(&mut self, filled: Value, value: Value, offset: usize) {
        let flags = self.state_memory();
        self.ins().store(flags, value, filled, offset as i32);
    }

    /// Gathers what the current instruction has changed, where others follow it.
    pub fn gather_changes(&mut self) {
        let count = self.region.nodes[self.node].block.instructions.len();
        if !self.is_gone && self.index + 1 < count {
            self.gather_due_changes();
        }
        if let Some(gathering) = &mut self.gathering {
            gathering.due = Effects::empty();
        }
    }

    /// Gathers what the current instruction has changed, unless that is gathered.
    pub(super) fn gather_due_changes(&mut self) {
        let due = self
            .gathering
            .as_ref()
            .map_or(Effects::empty(), |gathering| gathering.due);
        if due.is_empty() {
            return;
        }
        let (gather, signature) = self.entry.gather;
        let (processor, operation) = (self.processor(), self.operation());
        let (gather, due) = (self.constant(gather), self.constant(due.bits().into()));
        self.ins()
            .call_indirect(signature, gather, &[processor, operation, due]);
    }

    /// Leaves the instructions that are not gathered, from the current operation on.
    pub fn leave_the_rest(&mut self) {
        if !self.is_gone {
            self.leave_over(self.index);
        }
    }
}
