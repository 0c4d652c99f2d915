//! Registers of the stack that have no value: those outside the frame, and outputs that the callee's frame did not
//! hold.
//!
//! A callee's frame begins with its caller's outputs. Where it is made smaller than they are, those beyond it belong to
//! nobody until the return: whoever is called next, or the register stack engine, may have them.

use sidestep_ia64::execution::Registers;
use sidestep_ia64::registers::frame::FrameMarker;

use super::Member;
use super::findings::Findings;
use super::known::{BlockFacts, Returns, stacked};
use super::rule::Rule;
use crate::sequencing::Parts;

/// What is known of the frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stacked {
    /// The frame that the last block was entered with, its depth, and whether it returned from which size.
    frame: FrameMarker,
    depth: u64,
    returned_from: Option<u32>,
    /// The size of the frame that the next instruction sees.
    size: u32,
    /// Registers of this frame without a value, the first stacked one as bit 0.
    undefined: u128,
}

impl Stacked {
    /// Nothing is known of what ran before.
    pub fn clear(&mut self) {
        *self = Stacked::default();
    }

    /// A block is entered; answers whether it may read what has no value.
    pub fn enter(&mut self, block: &BlockFacts, registers: Registers<'_>) -> bool {
        let (frame, depth) = (registers.frame(), registers.depth());
        if depth != self.depth || frame != self.frame {
            // Of a caller without locals this says nothing: frames of one depth need not be caller and callee.
            let is_return = frame.locals > 0 && self.depth.wrapping_sub(depth) == u64::from(frame.locals);
            self.undefined = match self.returned_from {
                Some(size) if is_return => outputs_beyond(frame, size),
                _ => 0,
            };
        }
        let reads_undefined = block.reads & self.undefined != 0 || block.reads >> frame.size != 0;
        if !reads_undefined && self.undefined != 0 {
            // If it is not followed, it may have written them.
            self.undefined &= !block.writes;
            if block.renames {
                self.undefined = 0;
            }
        }
        self.returned_from = match block.returns {
            Returns::From(size) => Some(size.map_or(frame.size, u32::from)),
            Returns::No | Returns::Several => None,
        };
        (self.frame, self.depth, self.size) = (frame, depth, frame.size);
        reads_undefined
    }

    /// An instruction was executed.
    pub fn pass(&mut self, member: &Member, registers: Registers<'_>, findings: &mut Findings) {
        if member.facts.is_alloc() {
            self.rename(registers);
        }
        let effects = &member.facts.on;
        let reads = stacked(&effects.reads);
        let outside = reads >> self.size << self.size;
        let undefined = reads & self.undefined & !outside;
        for (registers, rule) in [(outside, Rule::OutsideFrame), (undefined, Rule::BehindReturn)] {
            if registers != 0 {
                let on = Parts {
                    general: registers << 32,
                    ..Parts::NONE
                };
                findings.add(None, member.located(), rule, on);
            }
        }
        self.undefined &= !stacked(&effects.writes);
        if member.facts.renames {
            self.rename(registers);
        }
    }

    /// The frame has changed.
    pub fn rename(&mut self, registers: Registers<'_>) {
        self.size = registers.frame().size;
        self.undefined = 0;
    }
}

/// The outputs of a frame that a callee's frame of some size did not hold. Those that rotate go by other names; they
/// are left out.
fn outputs_beyond(frame: FrameMarker, size: u32) -> u128 {
    let first = frame.locals + size;
    if first >= frame.size || frame.rotating > first {
        return 0;
    }
    (1u128 << frame.size) - (1u128 << first)
}
