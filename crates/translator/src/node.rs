//! A block that is translated as a whole, as the interpreter divides code.

use std::sync::atomic::{AtomicU8, Ordering};

use sidestep_ia64::Processor;
use sidestep_ia64::encoding::{BranchKind, Effects, Instruction, Operation};
use sidestep_ia64::execution::{DecodedBlock, MicroOperation};

/// A block with what the interpreter executes for it, operation by operation; one more leaves it.
pub struct Node {
    /// The host address of its first bundle, with the slot of its first instruction in the low bits.
    pub place: u64,
    /// The host addresses of the page that it stands on: the first, and the one behind the last.
    pub page: (u64, u64),
    /// Its instructions.
    pub block: DecodedBlock,
    /// What the interpreter executes.
    pub operations: Box<[MicroOperation]>,
    /// How many general registers rotated when it was executed last before it was translated; of a block that ends by
    /// rotating them.
    pub rotating: AtomicU8,
}

impl Node {
    /// The host address and slot so many bytes behind its first bundle, if that is on its page.
    pub fn at(&self, offset: i64, slot: u8) -> Option<u64> {
        let address = (self.place & !15).wrapping_add_signed(offset);
        (self.page.0..self.page.1)
            .contains(&address)
            .then_some(address | u64::from(slot))
    }

    /// Where its branches and its end lead on its page, each with the operation that goes there.
    pub fn ways(&self) -> impl Iterator<Item = (usize, u64)> {
        let instructions = self.block.instructions.iter().enumerate();
        let branches = instructions.filter_map(|(index, entry)| {
            let offset = branch_offset(entry.decoded.instruction.as_ref().ok()?, entry.bundle)?;
            Some((index, self.at(offset, 0)?))
        });
        let (bundle, slot) = self.block.next;
        let end = self.at(i64::from(bundle) * 16, slot);
        let end = end.filter(|_| !self.ends_by_leaving());
        let leaving = self.block.instructions.len();
        branches.chain(end.map(move |place| (leaving, place)))
    }

    /// The places on its page that its calls lead to, as far as they are known, each with the one at which execution
    /// goes on when what was called returns.
    pub fn calls(&self) -> impl Iterator<Item = (u64, u64)> {
        self.block.instructions.iter().filter_map(|entry| {
            let instruction = entry.decoded.instruction.as_ref().ok()?;
            let is_call = matches!(instruction.operation, Operation::Call { .. });
            let offset = branch_offset(instruction, entry.bundle).filter(|_| is_call)?;
            let behind = self.at(i64::from(entry.bundle) * 16 + 16, 0)?;
            Some((self.at(offset, 0)?, behind))
        })
    }

    /// Whether it may return from a call.
    pub fn returns(&self) -> bool {
        let mut instructions = self.block.instructions.iter();
        instructions.any(|entry| {
            let instruction = entry.decoded.instruction.as_ref();
            instruction.is_ok_and(|instruction| matches!(instruction.operation, Operation::Return))
        })
    }

    /// Whether it ends with a loop branch that rotates registers.
    pub fn rotates(&self) -> bool {
        let last = self.block.instructions.last();
        last.is_some_and(|entry| match &entry.decoded.instruction {
            Ok(instruction) => {
                matches!(instruction.operation, Operation::Branch { kind, .. } if rotates(kind))
            }
            Err(_) => false,
        })
    }

    /// Notes how many general registers rotate on the processor that is about to execute it.
    pub fn note_rotating(&self, processor: &Processor) {
        self.rotating
            .store(processor.frame.rotating as u8, Ordering::Relaxed);
    }

    /// How many general registers are likely to rotate where it ends by rotating them.
    pub fn rotating(&self) -> u8 {
        self.rotating.load(Ordering::Relaxed)
    }

    /// Whether its last instruction always goes elsewhere.
    pub fn ends_by_leaving(&self) -> bool {
        let last = self.block.instructions.last();
        last.is_some_and(|entry| match &entry.decoded.instruction {
            Ok(instruction) => instruction.always_transfers(),
            Err(_) => true,
        })
    }
}

/// Whether a branch rotates registers.
pub fn rotates(kind: BranchKind) -> bool {
    use BranchKind as K;
    matches!(kind, K::CountedTop | K::CountedExit | K::WhileTop | K::WhileExit)
}

/// How far behind the block's first bundle the direct target of a branch, call or check is.
pub fn branch_offset(instruction: &Instruction, bundle: u16) -> Option<i64> {
    let is_direct = instruction.is_relative() && instruction.effects().contains(Effects::TRANSFERS);
    is_direct.then(|| {
        i64::from(bundle)
            .wrapping_mul(16)
            .wrapping_add(instruction.immediate)
    })
}
