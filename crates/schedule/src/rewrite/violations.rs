//! What the groups of a function break, as its bundles and its source say.

use std::collections::BTreeMap;
use std::path::Path;

use sidestep_ia64::encoding::{Bundle, Instruction, Operation};

use crate::assembly::{AssemblyError, Function, Piece, Source, Statement};
use crate::block::Block;
use crate::groups::Checker;
use crate::worlds::Worlds;

/// What a group breaks.
pub(super) struct Violated {
    /// The two instructions, by their place among those that are no `nop`s.
    pub places: [usize; 2],
    pub what: String,
    pub is_possible: bool,
}

/// What the groups of bundles break.
pub(super) fn violations(bundles: &[Bundle]) -> Vec<Violated> {
    let mut places = BTreeMap::new();
    for (index, bundle) in bundles.iter().enumerate() {
        for decoded in bundle.decode() {
            let is_nop = |instruction: Instruction| instruction.operation == Operation::Nop;
            if !decoded.instruction.is_ok_and(is_nop) {
                places.insert((index as u64, decoded.slot), places.len());
            }
        }
    }
    let place = |at: &(u64, u8)| places.get(at).copied().unwrap_or(usize::MAX);
    let mut checker = Checker::default();
    let mut found = Vec::new();
    for (index, bundle) in bundles.iter().enumerate() {
        checker.bundle(index as u64, *bundle, &mut |violation| {
            let (first, second) = (
                violation.first_instruction.form(),
                violation.second_instruction.form(),
            );
            found.push(Violated {
                places: [place(&violation.first), place(&violation.second)],
                is_possible: violation.is_possible,
                what: format!(
                    "{} behind {} on {}",
                    second.mnemonic, first.mnemonic, violation.on
                ),
            });
        });
    }
    found
}

/// The instructions of a function as its source has them: the block of each, and which of its items it is.
pub(super) fn places(function: &Function) -> Vec<(usize, Option<usize>)> {
    let counts = function.pieces.iter().filter_map(|piece| match piece {
        Piece::Block { original, .. } => Some(original.len()),
        Piece::Verbatim { .. } => None,
    });
    let items = counts
        .enumerate()
        .flat_map(|(block, count)| (0..count).map(move |item| (block, Some(item))));
    items.collect()
}

/// Refuses a function with a group that breaks a rule for certain: what the architecture leaves undefined cannot be
/// kept.
///
/// # Errors
/// [`AssemblyError`] with the line of the later of the two instructions.
pub(super) fn expect_defined(source: &Source, function: &Function, path: &Path) -> Result<(), AssemblyError> {
    let found = Asserted::of(function).left(violations(&function.bundles), &places(function));
    let Some(found) = found.into_iter().find(|violation| !violation.is_possible) else {
        return Ok(());
    };
    let lines = source.lines[function.lines.clone()].iter();
    let mut instructions = lines.flat_map(|line| {
        let is_one = |statement: &&Statement| matches!(statement, Statement::Instruction(_));
        line.statements.iter().filter(is_one).map(|_| line.number)
    });
    let reason = format!(
        "{} in one instruction group, which the architecture leaves undefined: a stop (`;;`) has to part them",
        found.what
    );
    let line = instructions.nth(found.places[1]).unwrap_or(0);
    Err(AssemblyError::statement(path, line, reason))
}

/// The blocks of a function of whose predicates the source says more than their compares do.
pub(super) struct Asserted<'a>(BTreeMap<usize, (&'a Block, Worlds)>);

impl<'a> Asserted<'a> {
    pub fn of(function: &'a Function) -> Asserted<'a> {
        let blocks = function.pieces.iter().filter_map(|piece| match piece {
            Piece::Block { block, .. } => Some(&**block),
            Piece::Verbatim { .. } => None,
        });
        let asserted = blocks.enumerate().filter(|(_, block)| !block.mutex.is_empty());
        Asserted(
            asserted
                .map(|(index, block)| (index, (block, Worlds::of(block))))
                .collect(),
        )
    }

    /// Those violations that are left: not of two instructions of which the source says that one at most is executed.
    /// `members` says of each place which item of which block stands there.
    pub fn left(&self, violations: Vec<Violated>, members: &[(usize, Option<usize>)]) -> Vec<Violated> {
        let is_excluded = |violation: &Violated| {
            let [Some((block, Some(first))), Some((other, Some(second)))] =
                violation.places.map(|place| members.get(place).copied())
            else {
                return false;
            };
            let Some((block, worlds)) = self.0.get(&block).filter(|_| block == other) else {
                return false;
            };
            let writes_anyway = |item: usize| block.items[item].effects.writes_when_off;
            worlds.part(first, second) && !writes_anyway(first) && !writes_anyway(second)
        };
        violations
            .into_iter()
            .filter(|violation| !is_excluded(violation))
            .collect()
    }
}
