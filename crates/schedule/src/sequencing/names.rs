//! Which register a number names: numbers as encoded stand for others once a loop has rotated or a frame was changed.

use sidestep_ia64::registers::frame::{
    FrameMarker, ROTATING_FLOATING, ROTATING_PREDICATES, STACKED_REGISTERS,
};

use super::{Effects, Parts};

/// How the numbers of an instruction are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Registers of the stack below the frame, modulo the most that a frame has.
    base: u32,
    rotating: u32,
    general: u32,
    float: u32,
    predicate: u32,
}

impl Names {
    /// The names in a frame with `depth` registers of the register stack below it.
    pub fn new(frame: FrameMarker, depth: u64) -> Names {
        Names {
            base: (depth % u64::from(STACKED_REGISTERS)) as u32,
            rotating: frame.rotating,
            general: frame.rename_general,
            float: frame.rename_floating,
            predicate: frame.rename_predicate,
        }
    }
}

impl Parts {
    /// The registers that are meant, numbered so that those of two frames at different places do not meet.
    pub fn renamed(self, names: &Names) -> Parts {
        let stacked = rotated(self.general >> 32, names.rotating, names.general);
        let stacked = rotated(stacked, STACKED_REGISTERS, names.base);
        let float = rotated(self.float >> 32, ROTATING_FLOATING, names.float);
        let predicate = rotated(
            u128::from(self.predicate >> 16),
            ROTATING_PREDICATES,
            names.predicate,
        );
        Parts {
            general: self.general & 0xffff_ffff | stacked << 32,
            float: self.float & 0xffff_ffff | float << 32,
            predicate: self.predicate & 0xffff | (predicate as u64) << 16,
            ..self
        }
    }
}

impl Effects {
    /// The effects with the registers that the numbers name.
    pub fn renamed(&self, names: &Names) -> Effects {
        let predicates = |set: u64| {
            let parts = Parts {
                predicate: set,
                ..Parts::NONE
            };
            parts.renamed(names).predicate
        };
        let loaded = Parts {
            general: self.loaded,
            ..Parts::NONE
        };
        Effects {
            reads: self.reads.renamed(names),
            writes: self.writes.renamed(names),
            clears: predicates(self.clears),
            sets: predicates(self.sets),
            raises: self.raises.renamed(names),
            qualifier: predicates(1 << self.qualifier).trailing_zeros() as u8,
            loaded: loaded.renamed(names).general,
            ..*self
        }
    }
}

/// A set whose first `width` members each became the one `distance` further on, the last ones the first.
fn rotated(set: u128, width: u32, distance: u32) -> u128 {
    if width == 0 || distance.is_multiple_of(width) {
        return set;
    }
    let distance = distance % width;
    let inside = (1 << width) - 1;
    let moved = set & inside;
    set & !inside | (moved << distance | moved >> (width - distance)) & inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_and_frames_decide_which_register_a_number_names() {
        let general = |register: u32| Parts {
            general: 1 << register,
            ..Parts::NONE
        };
        let frame = |rename| FrameMarker {
            size: 20,
            rotating: 16,
            rename_general: rename,
            ..FrameMarker::default()
        };
        let named = |register, rename, depth| general(register).renamed(&Names::new(frame(rename), depth));
        // What was r32 is r33 once the rename base has gone down by one.
        assert_eq!(named(32, 1, 0), named(33, 0, 0));
        assert_eq!(named(47, 1, 0), named(32, 0, 0));
        // What does not rotate keeps its name, and r4 names one register in all frames.
        assert_eq!(named(48, 1, 0), named(48, 0, 0));
        assert_eq!(named(4, 3, 7), general(4));
        // The caller's first output is the callee's r32.
        assert_eq!(named(32 + 18, 0, 5), named(32, 0, 23));
        let predicate = |register: u32, rename| {
            let names = Names::new(
                FrameMarker {
                    rename_predicate: rename,
                    ..FrameMarker::default()
                },
                0,
            );
            let parts = Parts {
                predicate: 1 << register,
                ..Parts::NONE
            };
            parts.renamed(&names)
        };
        assert_eq!(predicate(63, 1), predicate(16, 0));
        assert_eq!(predicate(15, 1), predicate(15, 0));
    }
}
