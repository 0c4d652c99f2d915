//! Loads that pass branches with a check behind these: `ld.s` before, `chk.s` where the load was.
//!
//! A speculative load defers its fault: the register gets a NaT. Where the load was the check finds that and goes to
//! code that executes the load itself, which faults as the original would have, or loads; then the check is executed
//! once more. What is loaded is used behind the check only, and nothing before it writes the address again, so no more
//! has to be done over.

use sidestep_ia64::encoding::BaseUpdate;

use crate::block::{Block, Item};
use crate::graph::facts::is_load;
use crate::optimize::{Options, order};
use crate::speculate::{Speculated, speculate};

/// Checks of a block at most: each has its own code to recover.
const CHECKS_MAX: usize = 32;

/// Schedules a block over its branches, with checks where they make it shorter.
pub fn speculate_with_checks(block: &Block, options: &Options) -> Speculated {
    let mut best = speculate(block, options);
    let mut loads = candidates(block);
    while !loads.is_empty() && best.outcome.modelled > 1 {
        let (checked, origins) = with_checks(block, &loads, options);
        let mut speculated = speculate(&checked, options);
        let passes = passing(&speculated, &checked);
        let needed: Vec<usize> = (0..checked.items.len())
            .filter(|item| passes[*item])
            .map(|item| origins[item])
            .collect();
        // A check of a load that has stayed behind the branches only takes a slot.
        if needed.len() < loads.len() {
            loads = needed;
            continue;
        }
        if speculated.outcome.modelled < best.outcome.modelled {
            for (item, origin) in speculated.origins.iter_mut().enumerate() {
                speculated.speculative[item] |= passes[*origin];
                *origin = origins[*origin];
            }
            best = speculated;
        }
        break;
    }
    best
}

/// Loads behind branches, of which the source does not say that they cannot fault.
fn candidates(block: &Block) -> Vec<usize> {
    let Some(first) = block.targets.iter().position(Option::is_some) else {
        return Vec::new();
    };
    // What the source says of predicates it says at places that would be others.
    if !block.mutex.is_empty() {
        return Vec::new();
    }
    let is_candidate = |item: &usize| {
        let instruction = &block.items[*item].instruction;
        is_load(&block.items[*item])
            && !block.resident[*item]
            && instruction.base_update() == BaseUpdate::None
            && instruction.r1() != instruction.r3()
            && instruction.r1() != 0
    };
    (first..block.items.len())
        .filter(is_candidate)
        .take(CHECKS_MAX)
        .collect()
}

/// The block with loads as speculative ones, each with its check behind it; and what each item was.
fn with_checks(block: &Block, loads: &[usize], options: &Options) -> (Block, Vec<usize>) {
    let parameters = &options.parameters;
    let mut checked = Block {
        is_addressing_kept: block.is_addressing_kept,
        ..Block::default()
    };
    let mut origins = Vec::new();
    let mut push = |item: Item, origin: usize| {
        checked.items.push(item);
        checked.objects.push(block.objects[origin]);
        checked.areas.push(block.areas[origin]);
        checked.resident.push(block.resident[origin]);
        checked.dead.push(block.dead[origin]);
        checked.targets.push(block.targets[origin]);
        origins.push(origin);
    };
    for (index, item) in block.items.iter().enumerate() {
        if loads.contains(&index) {
            push(item.speculative(parameters), index);
            push(Item::check(&item.instruction, parameters), index);
        } else {
            push(item.clone(), index);
        }
    }
    (checked, origins)
}

/// By item of the block that was scheduled, whether it is a load with a check that stands before a branch now.
fn passing(speculated: &Speculated, checked: &Block) -> Vec<bool> {
    let order = order(&speculated.outcome.bundles).into_iter();
    let order: Vec<usize> = order.map(|item| speculated.origins[item]).collect();
    let mut passes = vec![false; checked.items.len()];
    for (place, item) in order.iter().enumerate() {
        let has_check = checked
            .items
            .get(item + 1)
            .is_some_and(|next| next.recovers.is_some());
        passes[*item] = has_check
            && order[place..]
                .iter()
                .any(|later| checked.items[*later].is_exit() && later < item);
    }
    passes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sidestep_ia64::encoding::{Form, Instruction, Operand, Unit, decode};
    use sidestep_itanium2::Parameters;

    use super::*;
    use crate::bundle::Content;
    use crate::sequencing::Parts;
    use crate::verify::equivalence::compare;

    const STATES: u64 = 64;

    fn instruction(
        unit: Unit,
        name: &str,
        operands: &[Operand],
        predicate: u8,
        values: &[i64],
    ) -> Instruction {
        let mut forms = Form::named(name).filter(|form| form.operands == operands);
        let form = forms.next().expect("it is an instruction");
        let encoded = form
            .encode(predicate, values, &[])
            .expect("operands that it can have");
        decode(unit, encoded.slot, 0).expect("what was encoded")
    }

    /// A load behind a branch that waits for another one, and a sum of what it loads.
    fn block() -> Block {
        let load =
            |to: i64, from: i64| instruction(Unit::M, "ld8", &[Operand::R1, Operand::Memory], 0, &[to, from]);
        let registers = [Operand::P1, Operand::P2, Operand::R2, Operand::R3];
        let compare = instruction(Unit::M, "cmp.eq", &registers, 0, &[6, 7, 13, 0]);
        let branch = instruction(Unit::B, "br.cond", &[Operand::Target25c], 6, &[0]);
        let add = instruction(
            Unit::M,
            "add",
            &[Operand::R1, Operand::R2, Operand::R3],
            0,
            &[15, 14, 33],
        );
        let instructions = [load(13, 34), compare, branch, load(14, 32), add];
        let mut block = Block::new(&instructions, &Parameters::default()).expect("all of them can be placed");
        block.targets[2] = Some(0);
        block.dead[2] = Parts {
            general: 1 << 14 | 1 << 15,
            ..Parts::NONE
        };
        block
    }

    #[test]
    fn what_deferred_is_done_over_and_without_the_check_that_shows() {
        let options = Options {
            parameters: Parameters::default(),
            time_limit: Duration::from_secs(10),
        };
        let block = block();
        let speculated = speculate_with_checks(&block, &options);
        let checks: Vec<usize> = (0..speculated.block.items.len())
            .filter(|item| speculated.block.items[*item].recovers.is_some())
            .collect();
        assert_eq!(checks.len(), 1);
        let mut bundles = speculated.outcome.bundles.clone();
        let same = compare(&block, (&speculated.block, &speculated.origins, &bundles), STATES);
        assert!(same.expect("the check has the load done over").completed > 0);
        for content in bundles.iter_mut().flat_map(|placed| &mut placed.slots) {
            if *content == Content::Item(checks[0]) {
                *content = Content::Nop;
            }
        }
        // The code to recover goes with the check.
        let unchecked = compare(&block, (&speculated.block, &speculated.origins, &bundles), STATES);
        assert!(unchecked.is_err(), "or no load has deferred anything");
    }
}
