//! Which registers hold addresses of the code, so that a store there is seen: the code would change.

use sidestep_ia64::encoding::{BaseUpdate, Operation};

use super::places::{Labels, operands};
use crate::block::Item;

/// What general registers hold, in the order of the source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Addresses {
    /// Those with an address in the code.
    into_code: u128,
    /// Those with the address of an entry of the linkage table that holds one.
    of_entries: u128,
}

impl Addresses {
    /// Whether an instruction stores into the code.
    pub fn stores(&self, item: &Item) -> bool {
        let access = item.instruction.operation.memory_access();
        access.is_some_and(|access| access.writes()) && self.into_code >> item.instruction.r3() & 1 != 0
    }

    /// Goes on behind an instruction.
    pub fn follow(&mut self, item: &Item, text: &str, labels: &Labels) {
        let written = item.effects.all_writes().general;
        let read = item.effects.reads.general;
        // A pointer to a function (`@fptr`) is the address of its descriptor, which is data.
        let names = !item.is_exit() && labels.are_in(operands(text)) && !text.contains("@fptr");
        let is_entry = names && text.contains("@ltoff");
        let adds = matches!(
            item.instruction.operation,
            Operation::Add { .. } | Operation::AddImmediate | Operation::AddLongImmediate
        );
        let is_load = item
            .instruction
            .operation
            .memory_access()
            .is_some_and(|access| !access.writes());
        let base = 1 << item.instruction.r3();
        // What a load increments points to what it pointed to.
        let kept = match item.instruction.base_update() {
            BaseUpdate::None => 0,
            _ => base,
        };
        let is_code = names && !is_entry
            || adds && read & self.into_code != 0
            || is_load && base & self.of_entries != 0;
        for (set, is_one) in [(&mut self.into_code, is_code), (&mut self.of_entries, is_entry)] {
            match is_one {
                true => *set |= written & !kept,
                false => *set &= !(written & !kept),
            }
        }
    }
}
