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

/// Why a loop cannot be pipelined, whatever its values are.
pub(super) fn unsuitable(given: &Loop<'_>) -> Option<String> {
    let (branch, body) = given.block.items.split_last()?;
    if let Some(reason) = given.surroundings.keeps_all {
        return Some(reason.to_owned());
    }
    match branch.instruction.operation {
        Operation::Branch {
            kind: BranchKind::CountedLoop,
            ..
        } => {}
        Operation::Branch {
            kind: BranchKind::Conditional,
            ..
        } => {
            return Some(
                "a condition ends it: how often it runs is not known before it, as ar.lc says it for \
                 br.cloop"
                    .to_owned(),
            );
        }
        _ => return Some("its registers rotate already".to_owned()),
    }
    if body.is_empty() {
        return Some("it only counts".to_owned());
    }
    if body.len() > INSTRUCTIONS_MAX {
        return Some(format!("it has more than {INSTRUCTIONS_MAX} instructions"));
    }
    body.iter().zip(given.texts).find_map(|(item, text)| {
        let why = obstacle(item)?;
        Some(format!("`{}` {why}", text.instruction))
    })
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
