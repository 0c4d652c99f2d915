//! A whole function of a linked program, scheduled over its branches and with other registers, by what comments of
//! its source assert. Its machine code is what is scheduled: no assembler takes part.

use std::path::Path;

use sidestep_ia64::encoding::{Bundle, Instruction, Operation};

use super::function::{Reason, Refused};
use super::image::{Extent, Program, addressed, target};
use super::rewrite::{Change, Different, STATES, encode, violations};
use crate::assembly::AssemblyError;
use crate::assembly::assertions::Assertions;
use crate::block::{Block, Refusal};
use crate::bundle::{Content, Placed};
use crate::optimize::{Options, Outcome};
use crate::speculate::speculate;
use crate::verify;
use crate::verify::equivalence::compare;
use crate::worlds::Worlds;

/// Why a function has no schedule in its place.
#[derive(Debug, thiserror::Error)]
pub enum AssertedError {
    /// The program has no such function.
    #[error("no function `{0}`")]
    Missing(String),
    /// It is not one block.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// An instruction that cannot be placed anew.
    #[error("instruction {place} of `{name}` {refusal}, so it cannot be moved")]
    Instruction {
        /// The function.
        name: String,
        /// Which, from 0, without `nop`s.
        place: usize,
        /// Why.
        refusal: Refusal,
    },
    /// What the source asserts cannot be read.
    #[error(transparent)]
    Assertions(#[from] AssemblyError),
    /// The schedule does something else: a defect of the scheduler.
    #[error(transparent)]
    Different(#[from] Different),
    /// The schedule has more bundles than the function, or breaks a rule that the function kept.
    #[error("`{0}` has no schedule that fits in its place")]
    NoRoom(String),
}

/// A bundle behind the end.
const BEHIND: Placed = Placed {
    template: 0x08,
    stop: true,
    slots: [Content::Nop; 3],
};

/// Schedules a function that is left by branches and entered at its start alone. The source has its comments; `path` is
/// the source's, for messages.
///
/// # Errors
/// [`AssertedError`].
pub fn schedule(
    program: &Program<'_>,
    name: &str,
    (text, path): (&str, &Path),
    options: &Options,
) -> Result<(Change, Outcome), AssertedError> {
    let parameters = &options.parameters;
    let assertions = Assertions::of_function(text, name, path)?;
    let extent = program.functions.iter().find(|extent| extent.name == name);
    let extent = extent.ok_or_else(|| AssertedError::Missing(name.to_owned()))?;
    let original = bundles(program, extent)?;
    let mut instructions = Vec::new();
    let mut targets = Vec::new();
    let mut texts = Vec::new();
    for (address, bundle) in addressed(extent.addresses.start, &original) {
        for decoded in bundle.decode() {
            let instruction = decoded.instruction.map_err(|illegal| Refused {
                address,
                reason: Reason::Undecodable(illegal),
            })?;
            if instruction.operation == Operation::Nop {
                continue;
            }
            let target = target(&instruction, address);
            texts.push(target.map_or_else(String::new, |target| label(program, target)));
            targets.push(target);
            instructions.push(assertions.weakened(instruction, "").0);
        }
    }
    let block = block(&instructions, name, options)?;
    let block = asserted(block, &assertions, &texts);
    let speculated = speculate(&block, options);
    let placed = &speculated.outcome.bundles;
    let address = extent.addresses.start;
    let compared = compare(&block, (&speculated.block, &speculated.origins, placed), STATES)
        .map_err(|source| Different { address, source })?;
    let mut padded = placed.clone();
    padded.resize(original.len().max(placed.len()), BEHIND);
    let targets: Vec<Option<u64>> = speculated.origins.iter().map(|origin| targets[*origin]).collect();
    let written = encode(address, &targets, &speculated.block, &padded, parameters);
    let written = written
        .filter(|written| written.len() == original.len() && violations(written) <= violations(&original));
    let change = Change {
        addresses: extent.addresses.clone(),
        bundles: written.ok_or_else(|| AssertedError::NoRoom(name.to_owned()))?,
        before: verify::cycles(&original, &Worlds::of(&block), parameters),
        after: speculated.outcome.modelled,
        compared,
    };
    Ok((change, speculated.outcome))
}

/// The bundles of a function that nobody enters in its middle.
fn bundles(program: &Program<'_>, extent: &Extent) -> Result<Vec<Bundle>, Refused> {
    let start = extent.addresses.start;
    let refused = |address, reason| Refused { address, reason };
    let bundles = program.bundles(&extent.addresses);
    let bundles =
        bundles.filter(|bundles| !bundles.is_empty() && program.offset(extent.addresses.end - 1).is_some());
    if let Some((target, from)) = program.arrivals.range(start + 1..extent.addresses.end).next() {
        return Err(refused(*target, Reason::Entered(from[0])));
    }
    bundles.ok_or_else(|| refused(start, Reason::Extent))
}

/// The name of an address, for what is dead there.
fn label(program: &Program<'_>, address: u64) -> String {
    let symbols = &program.image.symbols;
    let symbol = symbols.iter().find(|symbol| symbol.address == address);
    symbol.map_or_else(String::new, |symbol| symbol.name.clone())
}

fn block(instructions: &[Instruction], name: &str, options: &Options) -> Result<Block, AssertedError> {
    Block::new(instructions, &options.parameters).map_err(|(place, refusal)| AssertedError::Instruction {
        name: name.to_owned(),
        place,
        refusal,
    })
}

fn asserted(mut block: Block, assertions: &Assertions, texts: &[String]) -> Block {
    assertions.apply(&mut block, texts.iter().map(String::as_str));
    block
}
