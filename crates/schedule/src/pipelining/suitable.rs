//! Which loops and instructions can be of several iterations at the same time.

use sidestep_ia64::encoding::{BranchKind, Instruction, LoadKind, Operation};
use sidestep_ia64::registers::application::{EC, FPSR, LC, UNAT};
use sidestep_itanium2::flags::Flags;

use super::Loop;
use crate::block::Item;
use crate::sequencing::State;

/// Instructions of a loop at most.
const INSTRUCTIONS_MAX: usize = 150;

/// Whether the instruction is a loop branch of a kind.
pub(super) fn is_counted(instruction: &Instruction, wanted: BranchKind) -> bool {
    matches!(instruction.operation, Operation::Branch { kind, .. } if kind == wanted)
}

/// What ends a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// ar.lc, by `br.cloop`.
    Count,
    /// A predicate that a compare of each iteration writes, by `br.cond`.
    Condition(u8),
}

/// What ends a loop that can be pipelined, as far as that does not hang on its values.
///
/// # Errors
/// Why it cannot.
pub(super) fn ending(given: &Loop<'_>) -> Result<Ending, String> {
    let Some((branch, body)) = given.block.items.split_last() else {
        return Err("it is empty".to_owned());
    };
    if let Some(reason) = given.surroundings.keeps_all {
        return Err(reason.to_owned());
    }
    let ending = match branch.instruction.operation {
        Operation::Branch {
            kind: BranchKind::CountedLoop,
            ..
        } => Ending::Count,
        Operation::Branch {
            kind: BranchKind::Conditional,
            ..
        } => Ending::Condition(branch.instruction.predicate()),
        _ => return Err("its registers rotate already".to_owned()),
    };
    if body.is_empty() {
        return Err("it only counts".to_owned());
    }
    if body.len() > INSTRUCTIONS_MAX {
        return Err(format!("it has more than {INSTRUCTIONS_MAX} instructions"));
    }
    let obstacle = body.iter().zip(given.texts).find_map(|(item, text)| {
        let why = obstacle(item)?;
        Some(format!("`{}` {why}", text.instruction))
    });
    if let Some(reason) = obstacle {
        return Err(reason);
    }
    match ending {
        Ending::Condition(predicate) if maker(body, predicate).is_none() => Err(format!(
            "p{predicate}, which ends it, is not made anew in each iteration by one compare"
        )),
        _ => Ok(ending),
    }
}

/// The one compare of a loop's instructions that writes a predicate, whatever it was before.
pub(super) fn maker(body: &[Item], predicate: u8) -> Option<usize> {
    let writes = |item: &&Item| item.effects.all_writes().predicate >> predicate & 1 != 0;
    let index = body.iter().position(|item| writes(&item))?;
    let effects = &body[index].effects;
    let is_whole =
        effects.writes.predicate >> predicate & 1 != 0 && (effects.qualifier == 0 || effects.writes_when_off);
    let is_alone = body.iter().filter(writes).count() == 1;
    (predicate != 0 && is_whole && is_alone && effects.complements).then_some(index)
}

/// Why an instruction cannot be one of several iterations at the same time.
fn obstacle(item: &Item) -> Option<&'static str> {
    let effects = &item.effects;
    let (reads, writes) = (effects.reads, effects.all_writes());
    let loop_registers = 1u128 << EC | 1 << LC;
    let known = State::FLOAT_STATUS | State::ALAT;
    let is_advanced = matches!(
        item.instruction.operation,
        Operation::Load { kind, .. } | Operation::LoadFloat { kind, .. } | Operation::LoadFloatPair { kind, .. }
            if !matches!(kind, LoadKind::Normal | LoadKind::Speculative | LoadKind::Bias | LoadKind::Acquire)
    );
    if item.is_exit() {
        Some("may leave it in the middle")
    } else if is_advanced {
        Some("is a load whose address is remembered, or that needs such a one")
    } else if item
        .flags()
        .intersects(Flags::READS_PREDICATES | Flags::ALL_PREDICATES)
    {
        Some("names all predicates, of which some rotate")
    } else if (reads.predicate | writes.predicate) >> 16 != 0 {
        Some("names a rotating predicate")
    } else if (reads.float | writes.float) >> 32 != 0 {
        Some("names a floating-point register that rotates")
    } else if reads.application & loop_registers != 0 || writes.application & !(1 << UNAT) != 0 {
        Some("is about an application register")
    } else if reads.application & !(1 << UNAT | 1 << FPSR | 1 << 32) != 0 {
        Some("reads an application register")
    } else if writes.control != 0
        || effects.writes.status != 0
        || writes.branch != 0
        || effects.serializes.is_some()
    {
        Some("is about the system")
    } else if !(writes.state - known).is_empty() {
        Some("writes state that has no register")
    } else {
        None
    }
}
