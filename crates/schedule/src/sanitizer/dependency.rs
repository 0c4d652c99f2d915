//! Whether two instructions of a group depend on each other, by what is known of them when they have run.

use sidestep_ia64::encoding::{IndirectFile, Operation};
use sidestep_ia64::execution::{Dynamic, Registers};
use sidestep_ia64::registers::application::UNAT;

use super::known::Facts;
use crate::groups::{INDEXED, Kind};
use crate::sequencing::{Names, Parts};

/// What only a run says of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Whether its predicate was on.
    pub executed: bool,
    /// Which registers its numbers name.
    pub names: Names,
    /// The bits of UNAT that it touches, if it touches any.
    unat: u64,
    /// The register of its file that it touches, or the region that it refers to; `None` for any of them.
    row: Option<u64>,
}

impl Run {
    /// Before it runs: every bit and every row is possible.
    pub fn unknown(executed: bool) -> Run {
        Run {
            executed,
            names: Names::default(),
            unat: u64::MAX,
            row: None,
        }
    }

    /// What is known now that it has run.
    pub fn of(facts: &Facts, dynamic: &Dynamic<'_>, names: Names, registers: Registers<'_>) -> Run {
        let executed = dynamic.executed;
        Run {
            executed,
            names,
            // Spills and fills go by address bits 3 to 8, moves take all.
            unat: dynamic
                .reference
                .map_or(u64::MAX, |address| 1 << (address >> 3 & 0x3f)),
            row: match executed {
                true => row(facts, registers).or(dynamic.reference.map(|address| address >> 61)),
                false => None,
            },
        }
    }
}

/// The register of an indexed file that an instruction names by a value.
fn row(facts: &Facts, registers: Registers<'_>) -> Option<u64> {
    let instruction = &facts.instruction;
    let file = match instruction.operation {
        Operation::MoveToIndirect { file } => file,
        // The value may be gone by now.
        Operation::MoveFromIndirect { file } if instruction.r1() != instruction.r3() => file,
        _ => return None,
    };
    let (value, _) = registers.general(instruction.r3());
    Some(match file {
        IndirectFile::Region => value >> 61,
        IndirectFile::DataBreakpoint
        | IndirectFile::InstructionBreakpoint
        | IndirectFile::ProtectionKey
        | IndirectFile::MonitorConfiguration
        | IndirectFile::MonitorData
        | IndirectFile::ModelSpecific
        | IndirectFile::ProcessorIdentification
        | IndirectFile::DataAccessHint => value & 0xff,
    })
}

/// What the later of two instructions in one group depends on the earlier one by, against the rules.
pub(super) fn find(earlier: &Facts, first: &Run, later: &Facts, second: &Run) -> Option<(Kind, Parts)> {
    let (one, other) = (earlier.under(first.executed), later.under(second.executed));
    // What waits for serialisation is looked at across groups; what stands behind one may be in its group.
    if one.serializes.is_some() {
        return None;
    }
    if other.serializes.is_some() {
        let on = one.deferred;
        return (!on.is_empty()).then_some((Kind::ReadAfterWrite, on));
    }
    let conflict = match first.names == second.names {
        true => one.conflict(other),
        false => one.renamed(&first.names).conflict(&other.renamed(&second.names)),
    };
    let unserialized = one.unserialized(other).without(conflict.output);
    let mut on = conflict.grouped.without(unserialized);
    if first.unat & second.unat == 0 {
        on.application &= !(1 << UNAT);
    }
    if let (Some(row), Some(other)) = (first.row, second.row)
        && row != other
    {
        on.state -= INDEXED;
    }
    (!on.is_empty()).then(|| (Kind::of(&conflict, on), on))
}

/// What a later instruction reads of what an earlier one wrote, not yet serialised.
pub(super) fn unserialized(written: Parts, first: &Run, later: &Facts, second: &Run) -> Parts {
    let reader = later.under(second.executed);
    let mut on = written.and(reader.reads).without(reader.at_once);
    if let (Some(row), Some(other)) = (first.row, second.row)
        && row != other
    {
        // Of a file other than that of the regions, the rows of references are not known.
        on.state -= on.state & crate::sequencing::State::REGION;
    }
    on
}
