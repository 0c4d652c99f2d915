//! The blocks of a function of a linked program.

use std::collections::BTreeSet;
use std::ops::Range;

use sidestep_ia64::encoding::{Bundle, Effects, Illegal, Instruction, Operation, Unit};
use sidestep_itanium2::Parameters;

use super::frames::described;
use super::image::{Extent, Program, addressed, target};
use crate::block::{self, Block};

/// Why a function cannot be scheduled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address:#x}: {reason}")]
pub struct Refused {
    /// Of what is in the way.
    pub address: u64,
    /// What that is.
    pub reason: Reason,
}

/// What is in the way of scheduling a function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The symbol does not say where the function ends, or that is nowhere in the code.
    #[error("its symbol gives no whole bundles of code as its size")]
    Extent,
    /// Data, or nothing.
    #[error("is no instruction ({0})")]
    Undecodable(Illegal),
    /// It has code executed that was stored.
    #[error("sync.i, by which stored code is executed, maybe its own")]
    ChangesCode,
    /// Where it goes is not known.
    #[error("a branch to what a register holds, which is neither a call nor a return")]
    Indirect,
    /// Others rely on what its middle is.
    #[error("the branch at {0:#x}, outside of the function, goes into the middle of it")]
    Entered(u64),
    /// A table names places inside.
    #[error("has a handler for exceptions, whose table may name addresses of instructions")]
    Handler,
}

/// Why a block stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// Unwinding counts its slots.
    #[error("makes or gives back the frame, where unwinding counts instructions")]
    Frame,
    /// An instruction of it has to stay.
    #[error("{0}")]
    Instruction(block::Refusal),
    /// It tells of where a branch is.
    #[error("predicts a branch by its address")]
    Prediction,
}

/// Instructions that are entered at the first only, and left behind the last but for branches and checks.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The addresses of its bundles.
    pub addresses: Range<u64>,
    /// Its bundles.
    pub bundles: Vec<Bundle>,
    /// Its instructions to place anew, or why they stay.
    pub block: Result<Block, Kept>,
    /// By item, where it goes if it is a branch or check that says so.
    pub targets: Vec<Option<u64>>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name and addresses.
    pub extent: Extent,
    /// Its blocks, in the order of their addresses: all of it.
    pub pieces: Vec<Piece>,
}

impl Function {
    /// The blocks of a function.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn read(
        program: &Program<'_>,
        extent: &Extent,
        parameters: &Parameters,
    ) -> Result<Function, Refused> {
        let Range { start, end } = extent.addresses;
        let refuse = |address, reason| Err(Refused { address, reason });
        let is_whole =
            start.is_multiple_of(Bundle::BYTES) && end.is_multiple_of(Bundle::BYTES) && start < end;
        let bundles = program.bundles(&extent.addresses);
        let Some(bundles) = bundles.filter(|_| is_whole && program.offset(end - 1).is_some()) else {
            return refuse(start, Reason::Extent);
        };
        let mut leaders = BTreeSet::from([start]);
        // Assembly has functions with several entries, and branches from one into another one.
        let named = program.functions.iter().map(|other| other.addresses.start);
        let entered = named.chain(program.arrivals.keys().copied());
        for entry in entered.filter(|entry| (start + 1..end).contains(entry)) {
            if !entry.is_multiple_of(Bundle::BYTES) {
                return refuse(entry, Reason::Extent);
            }
            leaders.insert(entry);
        }
        for (address, bundle) in addressed(start, &bundles) {
            for decoded in bundle.decode() {
                let instruction = match decoded.instruction {
                    Ok(instruction) => instruction,
                    Err(illegal) => return refuse(address, Reason::Undecodable(illegal)),
                };
                if instruction.operation == Operation::SynchronizeInstructionCache {
                    return refuse(address, Reason::ChangesCode);
                }
                if is_indirect(&instruction) {
                    return refuse(address, Reason::Indirect);
                }
                if ends_block(&instruction) {
                    leaders.insert(address.saturating_add(Bundle::BYTES));
                }
            }
        }
        let mut frames = Vec::new();
        for procedure in program.unwind.procedures() {
            if procedure.start < end && procedure.end > start {
                if procedure.has_handler {
                    return refuse(procedure.start, Reason::Handler);
                }
                frames.extend(described(&procedure));
            }
        }
        leaders.remove(&end);
        let ends = leaders.iter().skip(1).copied().chain([end]);
        let pieces = leaders.iter().copied().zip(ends).map(|(first, behind)| {
            let place = |address: u64| ((address - start) / Bundle::BYTES) as usize;
            let addresses = first..behind;
            let is_frame = |frame: &Range<u64>| frame.start < behind && first < frame.end;
            let is_frame = frames.iter().any(is_frame);
            Piece::new(
                addresses,
                &bundles[place(first)..place(behind)],
                is_frame,
                parameters,
            )
        });
        Ok(Function {
            extent: extent.clone(),
            pieces: pieces.collect(),
        })
    }
}

impl Piece {
    fn new(addresses: Range<u64>, bundles: &[Bundle], is_frame: bool, parameters: &Parameters) -> Piece {
        let mut instructions = Vec::new();
        let mut targets = Vec::new();
        for (address, bundle) in addressed(addresses.start, bundles) {
            let decoded = bundle.decode().filter_map(|decoded| decoded.instruction.ok());
            for instruction in decoded.filter(|instruction| instruction.operation != Operation::Nop) {
                targets.push(target(&instruction, address));
                instructions.push(instruction);
            }
        }
        let predicts = |instruction: &Instruction| {
            matches!(
                instruction.operation,
                Operation::BranchPredict | Operation::BranchPredictIndirect { .. }
            )
        };
        let block = match () {
            () if is_frame => Err(Kept::Frame),
            () if instructions.iter().any(predicts) => Err(Kept::Prediction),
            () => Block::new(&instructions, parameters).map_err(|(_, refusal)| Kept::Instruction(refusal)),
        };
        Piece {
            addresses,
            bundles: bundles.to_vec(),
            block,
            targets,
        }
    }

    /// Whether it can be followed by itself at once.
    pub fn is_loop(&self) -> bool {
        self.targets.contains(&Some(self.addresses.start))
    }
}

/// Whether an instruction is a branch: a check, which may go elsewhere too, ends no block.
fn ends_block(instruction: &Instruction) -> bool {
    instruction.effects().contains(Effects::TRANSFERS) && matches!(instruction.unit, Unit::B | Unit::X)
}

/// Whether it goes where a register says, and does not come back or return.
fn is_indirect(instruction: &Instruction) -> bool {
    let is_known = matches!(
        instruction.operation,
        Operation::Call { .. } | Operation::Return | Operation::ReturnFromInterruption
    );
    ends_block(instruction) && !instruction.is_relative() && !is_known
}
