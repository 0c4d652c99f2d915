//! What a source asserts, in random states: states and stand-ins for which it holds.

use sidestep_ia64::encoding::{DecodedSlot, Form, Instruction, Operand, Operation, Unit, decode};
use sidestep_ia64::execution::{Detail, Dynamic, Observer};
use sidestep_ia64::registers::application::{ITC, RUC};

use crate::block::Block;

/// Bytes that a reference has at most.
const WIDEST_REFERENCE: u64 = 16;
/// The lowest bit of the number of an application register.
const AR3: u32 = 20;
/// Whose contents are compared like any other's: `ar.ccv`.
const CCV: i64 = 32;

/// A block whose assertion about addressing holds in every state: what would go to psr.l goes to ar.ccv. What counts
/// time, which differs between two runs, is another register as well.
pub(super) fn as_asserted(block: &Block) -> Block {
    let mut block = block.clone();
    for item in &mut block.items {
        let instruction = &item.instruction;
        if instruction.operation == Operation::MoveFromApplication && matches!(instruction.ar3(), ITC | RUC) {
            let slot = instruction.slot & !(0x7f << AR3) | (CCV as u64) << AR3;
            item.instruction = decode(instruction.unit, slot, 0).expect("another application register");
        }
    }
    if block.is_addressing_kept {
        for item in &mut block.items {
            if item.instruction.operation == Operation::MoveToPsrLower {
                let value = i64::from(item.instruction.r2());
                let mut forms =
                    Form::named("mov.m").filter(|form| form.operands == [Operand::Ar3, Operand::R2]);
                let form = forms.next().expect("moves to application registers are known");
                let encoded = form
                    .encode(item.instruction.predicate(), &[CCV, value], &[])
                    .expect("a register");
                item.instruction = decode(Unit::M, encoded.slot, 0).expect("what was encoded");
            }
        }
    }
    block
}

/// Predicates with which a block begins as its source says of them: of registers that are never on together, and that
/// nothing in the block has written by then, the first that is on.
pub(super) fn exclusive(block: &Block, predicates: u64) -> u64 {
    let mut exclusive = predicates;
    for (before, registers) in &block.mutex {
        let written = block.items[..*before].iter();
        let written = written.fold(0, |set, item| set | item.effects.all_writes().predicate);
        let given = exclusive & registers & !written;
        let first = given & given.wrapping_neg();
        exclusive &= !(given & !first);
    }
    exclusive
}

/// Whether an item that has faulted refers to what the source calls resident, which does not hold in this state then.
pub(super) fn is_absent(block: &Block, item: u64) -> bool {
    block
        .resident
        .get(item as usize)
        .is_some_and(|resident| *resident)
}

/// References to memory as they happened: the bundle, the address.
#[derive(Default)]
pub(super) struct References {
    places: Vec<(u64, u64)>,
}

impl Observer for References {
    type Static = ();
    const DETAIL: Detail = Detail::Everything;

    fn decode(&mut self, _: &Instruction, _: &DecodedSlot) {}

    fn retired(&mut self, (): &(), dynamic: &Dynamic<'_>) {
        if let Some(address) = dynamic.reference {
            self.places.push((dynamic.place.ip, address));
        }
    }
}

impl References {
    /// Whether two areas met, in code with one item to each bundle from `start` on, each with its area.
    pub fn overlap(&self, of: &[Option<u8>], start: u64) -> bool {
        let areas: Vec<(u8, u64)> = self
            .places
            .iter()
            .filter_map(|(ip, address)| {
                let item = ip.checked_sub(start)? / 16;
                let area = *of.get(item as usize)?;
                Some((area?, *address))
            })
            .collect();
        let meets = |first: &(u8, u64), second: &(u8, u64)| {
            first.0 != second.0 && first.1.abs_diff(second.1) < WIDEST_REFERENCE
        };
        areas
            .iter()
            .enumerate()
            .any(|(index, first)| areas[index + 1..].iter().any(|second| meets(first, second)))
    }
}
