//! Instructions ahead of the current one: steps of a [division](crate::division) are emitted with the first of them.

use sidestep_ia64::encoding::Instruction;

use super::Emitter;
use crate::division::{Plan, Run};

impl<'a> Emitter<'a, '_> {
    /// The instructions of the block from the current one on, with their places; `None` for one that is illegal.
    pub fn remaining(&self) -> impl Iterator<Item = (usize, Option<&'a Instruction>)> + Clone + use<'a> {
        let instructions = self.region.nodes[self.node].block.instructions.iter();
        instructions
            .map(|entry| entry.decoded.instruction.as_ref().ok())
            .enumerate()
            .skip(self.index)
    }

    /// The instructions of the block behind the current one, as [`Emitter::remaining`].
    pub fn following(&self) -> impl Iterator<Item = (usize, Option<&'a Instruction>)> + Clone + use<'a> {
        self.remaining().skip(1)
    }

    /// The steps of a division among instructions that are emitted together: up to where a tight loop ends, and none
    /// behind the current one where code gathers what each instruction does.
    pub fn run(
        &self,
        plan: &Plan,
        instructions: impl Iterator<Item = (usize, Option<&'a Instruction>)>,
    ) -> Run<'a> {
        let last = match &self.region.tight_loops[self.node] {
            Some(member) if self.index <= member.last => member.last,
            _ => usize::MAX,
        };
        let last = if self.gathering.is_some() {
            self.index
        } else {
            last
        };
        plan.run(instructions.take_while(|&(index, _)| index <= last))
    }

    /// Notes that the instructions up to a place have their code; the current one has.
    pub fn note_emitted(&mut self, last: Option<usize>) {
        self.emitted = last.unwrap_or(self.index) + 1;
    }

    /// Whether the instruction at a place has its code.
    pub fn is_emitted(&self, index: usize) -> bool {
        index < self.emitted
    }
}
