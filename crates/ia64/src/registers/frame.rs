//! The current frame marker (CFM) and the registers that save it: PFS and IFS.
//!
//! Manual volume 1, section 3.1.7 (CFM), 3.1.8.10 (PFS); volume 2, section 3.3.5.5 (IFS).

use serde::{Deserialize, Serialize};

/// The largest frame: the stacked general registers r32 to r127.
pub const STACKED_REGISTERS: u32 = 96;
/// The rotating floating-point registers f32 to f127.
pub const ROTATING_FLOATING: u32 = 96;
/// The first general register that is stacked, where rotation begins as well.
pub const FIRST_STACKED: u8 = 32;
/// The first floating-point register that rotates.
pub const FIRST_ROTATING_FLOATING: u8 = 128 - ROTATING_FLOATING as u8;
/// The rotating predicates p16 to p63.
pub const ROTATING_PREDICATES: u32 = 48;

/// The current frame marker: sizes of the frame and the three rename bases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct FrameMarker {
    /// Size of the frame, in registers (0 to 96).
    pub size: u32,
    /// Size of its locals (inputs and locals), in registers.
    pub locals: u32,
    /// Size of the rotating region, in registers: a multiple of eight.
    pub rotating: u32,
    /// Rename base of the general registers, below `rotating`.
    pub rename_general: u32,
    /// Rename base of the floating-point registers, below 96.
    pub rename_floating: u32,
    /// Rename base of the predicates, below 48.
    pub rename_predicate: u32,
}

impl FrameMarker {
    /// The 38 bits that hold a frame marker in PFS and IFS.
    pub const MASK: u64 = (1 << 38) - 1;

    /// The bits of the rename bases in the encoding: zero at most calls and returns.
    const RENAMES: u64 = FrameMarker::MASK & !((1 << 18) - 1);

    /// Reads a frame marker from its 38-bit encoding.
    #[inline]
    pub fn from_bits(bits: u64) -> FrameMarker {
        let field = |position: u32, width: u32| (bits >> position) as u32 & ((1 << width) - 1);
        let sizes = FrameMarker {
            size: field(0, 7),
            locals: field(7, 7),
            rotating: field(14, 4) * 8,
            ..FrameMarker::default()
        };
        if bits & FrameMarker::RENAMES == 0 {
            return sizes;
        }
        FrameMarker {
            rename_general: field(18, 7),
            rename_floating: field(25, 7),
            rename_predicate: field(32, 6),
            ..sizes
        }
    }

    /// Its 38-bit encoding.
    #[inline]
    pub fn bits(self) -> u64 {
        let sizes = u64::from(self.size) | u64::from(self.locals) << 7 | u64::from(self.rotating / 8) << 14;
        if self.rename_general | self.rename_floating | self.rename_predicate == 0 {
            return sizes;
        }
        sizes
            | u64::from(self.rename_general) << 18
            | u64::from(self.rename_floating) << 25
            | u64::from(self.rename_predicate) << 32
    }

    /// Whether the sizes obey locals <= size <= 96, rotating <= size, and each rename base its bound.
    pub fn is_valid(self) -> bool {
        self.size <= STACKED_REGISTERS
            && self.locals <= self.size
            && self.rotating <= self.size
            && self.rename_general < self.rotating.max(1)
            && self.rename_floating < ROTATING_FLOATING
            && self.rename_predicate < ROTATING_PREDICATES
    }
}

/// Fields of the previous function state register (PFS).
pub mod previous_function_state {
    /// Position of the previous epilogue count (6 bits).
    pub const EPILOGUE_COUNT_SHIFT: u32 = 52;
    /// Position of the previous privilege level (2 bits).
    pub const PRIVILEGE_SHIFT: u32 = 62;
    /// Bits that exist; the others must be written as zero.
    pub const IMPLEMENTED: u64 =
        super::FrameMarker::MASK | 0x3f << EPILOGUE_COUNT_SHIFT | 3 << PRIVILEGE_SHIFT;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_marker_survives_its_encoding(bits in 0..=FrameMarker::MASK) {
            prop_assert_eq!(FrameMarker::from_bits(bits).bits(), bits);
        }
    }
}
