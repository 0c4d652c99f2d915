//! The blocks of a function that get shorter, and the file with them.

use std::ops::Range;

use sidestep_ia64::encoding::{Bundle, Instruction};
use sidestep_itanium2::Parameters;

use super::function::{Function, Piece};
use super::image::{Program, addressed};
use super::padding::{cost, fit};
use crate::block::Block;
use crate::bundle::Placed;
use crate::graph::{Graph, Latencies};
use crate::groups::Checker;
use crate::optimize::{Options, optimize};
use crate::verify::equivalence::{Compared, Difference, compare};

/// Random states in which each block that is written is compared with what it was.
pub(super) const STATES: u64 = 128;

/// A block that is written anew.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Its addresses.
    pub addresses: Range<u64>,
    /// Its bundles, as many as before.
    pub bundles: Vec<Bundle>,
    /// Its cycles on the model as it was, by [`cost`].
    pub before: u32,
    /// As it is.
    pub after: u32,
    /// In how many random states it was compared with what it was.
    pub compared: Compared,
}

/// A schedule that does something else: a defect of the scheduler.
#[derive(Debug, thiserror::Error)]
#[error("the block at {address:#x}")]
pub struct Different {
    /// Where the block begins.
    pub address: u64,
    /// What differs.
    pub source: Difference,
}

/// Schedules those blocks of a function that `wanted` chooses. The answer has what gets shorter.
///
/// # Errors
/// [`Different`].
pub fn schedule(
    function: &Function,
    wanted: impl Fn(&Piece) -> bool,
    options: &Options,
) -> Result<Vec<Change>, Different> {
    let mut changes = Vec::new();
    let mut written: Vec<Bundle> = function
        .pieces
        .iter()
        .flat_map(|piece| piece.bundles.clone())
        .collect();
    let mut broken = violations(&written);
    let mut next = 0;
    for piece in &function.pieces {
        let place = next..next + piece.bundles.len();
        next = place.end;
        let Ok(block) = &piece.block else { continue };
        if block.items.is_empty() || !wanted(piece) {
            continue;
        }
        let Some(change) = shorten(piece, block, options)? else {
            continue;
        };
        // The group before a block may go on into it, and what was far enough behind in it may now be first.
        let mut candidate = written.clone();
        candidate[place].copy_from_slice(&change.bundles);
        let breaks = violations(&candidate);
        if breaks <= broken {
            (written, broken) = (candidate, breaks);
            changes.push(change);
        }
    }
    Ok(changes)
}

/// A block with fewer cycles in its own room, if there is such a one.
fn shorten(piece: &Piece, block: &Block, options: &Options) -> Result<Option<Change>, Different> {
    let parameters = &options.parameters;
    let before = cost(&piece.bundles, piece.is_loop(), parameters);
    let outcome = optimize(block, options);
    let graph = Graph::new(block, Latencies::Of(parameters));
    let way = (piece.bundles.len(), piece.is_loop());
    let fitted = fit(block, &graph, &outcome.bundles, way, parameters);
    let Some(fitted) = fitted.filter(|fitted| fitted.cycles < before) else {
        return Ok(None);
    };
    let origins: Vec<usize> = (0..block.items.len()).collect();
    let compared =
        compare(block, (block, &origins, &fitted.bundles), STATES).map_err(|source| Different {
            address: piece.addresses.start,
            source,
        })?;
    Ok(encode(
        piece.addresses.start,
        &piece.targets,
        block,
        &fitted.bundles,
        parameters,
    )
    .map(|bundles| Change {
        addresses: piece.addresses.clone(),
        bundles,
        before,
        after: fitted.cycles,
        compared,
    }))
}

/// The bundles of a block from an address on, with branches and checks that go where they went, by item; `None` if one
/// would be too far from there.
pub(super) fn encode(
    start: u64,
    targets: &[Option<u64>],
    block: &Block,
    placed: &[Placed],
    parameters: &Parameters,
) -> Option<Vec<Bundle>> {
    let bundles = addressed(start, placed).map(|(address, placed)| {
        let mut bundle = placed.encode(&block.items);
        for (slot, held) in placed
            .instructions(&block.items, parameters)
            .into_iter()
            .enumerate()
        {
            let Some((item, instruction)) = held else { continue };
            if let Some(target) = targets[item] {
                bundle = aim(bundle, slot, instruction, target.wrapping_sub(address) as i64)?;
            }
        }
        Some(bundle)
    });
    bundles.collect()
}

/// A bundle whose branch or check in a slot goes so many bytes from it.
fn aim(bundle: Bundle, slot: usize, instruction: Instruction, distance: i64) -> Option<Bundle> {
    let operand = instruction.form().immediate?;
    let mut slots = [bundle.slot(0), bundle.slot(1), bundle.slot(2)];
    let (bits, long) = operand.insert(distance, slots[slot] & !operand.mask(), 0)?;
    slots[slot] = bits;
    if instruction.is_long() {
        slots[slot - 1] = long;
    }
    Some(Bundle::new(bundle.template(), slots))
}

/// How many rules the groups of bundles break.
pub(super) fn violations(bundles: &[Bundle]) -> usize {
    let mut checker = Checker::default();
    let mut count = 0;
    for bundle in bundles {
        checker.bundle(0, *bundle, &mut |_| count += 1);
    }
    count
}

/// Writes changes into a program's file.
pub fn write<'a>(file: &mut [u8], program: &Program<'_>, changes: impl Iterator<Item = &'a Change>) {
    for change in changes {
        for (address, bundle) in addressed(change.addresses.start, &change.bundles) {
            let place = program
                .offset(address)
                .and_then(|offset| file.get_mut(offset..offset + 16));
            // A function is refused unless the file has all of it.
            place
                .expect("code of the file")
                .copy_from_slice(&bundle.to_bytes());
        }
    }
}
