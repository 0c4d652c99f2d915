//! A decoded instruction: its operation, its immediate, and its registers by field.

use super::bundle::Unit;
use super::form::{Form, FormIndex};
use super::operand::Operand;
use super::operation::Operation;

/// The class of an instruction: which unit types execute it (manual, volume 3, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnitClass {
    /// Integer ALU: I or M units.
    A,
    /// Non-ALU integer: I units.
    I,
    /// Memory: M units.
    M,
    /// Branch: B units.
    B,
    /// Floating point: F units.
    F,
    /// Long, in an L and an X slot: executed by an I unit, or a B unit for `brl`.
    LX,
}

/// A decoded instruction.
///
/// The register accessors read the manual's fields whatever the operation is; the [`Operation`]'s comment says
/// which of them mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What the instruction does.
    pub operation: Operation,
    /// The 41 bits of the slot; of a long instruction, the X slot.
    pub slot: u64,
    /// The immediate, sign-extended and scaled: what the assembler would be given. Displacements are in bytes
    /// from the bundle's address. 0 when the operation has none.
    pub immediate: i64,
    /// The bit position of `extr`, `dep`, `dep.z` and `tbit`; otherwise 0.
    pub position: u8,
    /// The field length of `extr`, `dep` and `dep.z`, 1 to 64; otherwise 0.
    pub length: u8,
    /// The unit type of the slot the instruction sits in; `X` for a long one.
    pub unit: Unit,
    pub(super) form: FormIndex,
}

macro_rules! fields {
    ($($(#[$comment:meta])* $name:ident: $shift:literal, $bits:literal;)*) => {
        $($(#[$comment])* #[inline] pub const fn $name(&self) -> u8 {
            (self.slot >> $shift) as u8 & ((1 << $bits) - 1) as u8
        })*
    };
}

impl Instruction {
    fields! {
        /// Qualifying predicate; 0 also where the instruction cannot be predicated and the bits mean something else,
        /// see [`Instruction::predicate`].
        qp: 0, 6;
        /// General register at bits 6 to 12.
        r1: 6, 7;
        /// General register at bits 13 to 19.
        r2: 13, 7;
        /// General register at bits 20 to 26.
        r3: 20, 7;
        /// General register 0 to 3 at bits 20 and 21: the base of `addl`.
        r3_short: 20, 2;
        /// Floating-point register at bits 6 to 12.
        f1: 6, 7;
        /// Floating-point register at bits 13 to 19.
        f2: 13, 7;
        /// Floating-point register at bits 20 to 26.
        f3: 20, 7;
        /// Floating-point register at bits 27 to 33.
        f4: 27, 7;
        /// Predicate register at bits 6 to 11.
        p1: 6, 6;
        /// Predicate register at bits 27 to 32.
        p2: 27, 6;
        /// Branch register at bits 6 to 8.
        b1: 6, 3;
        /// Branch register at bits 13 to 15.
        b2: 13, 3;
        /// Application register at bits 20 to 26.
        ar3: 20, 7;
        /// Control register at bits 20 to 26.
        cr3: 20, 7;
        /// Data access hint register at bits 23 to 25.
        dahr: 23, 3;
        /// Size of frame of `alloc`.
        sof: 13, 7;
        /// Size of locals of `alloc`.
        sol: 20, 7;
        /// The OR mask of `fsetc`.
        omask: 20, 7;
    }

    /// Size of the rotating region of `alloc`, in registers: a multiple of 8.
    #[inline]
    pub const fn sor(&self) -> u8 {
        ((self.slot >> 27) as u8 & 0xf) << 3
    }

    /// The L slot of a long instruction, made again from its immediate; otherwise 0.
    pub fn long_slot(&self) -> u64 {
        if !self.is_long() {
            return 0;
        }
        let inserted = |operand: &Operand| operand.insert(self.immediate, 0, 0);
        let slots = self.form().operands.iter().filter_map(inserted);
        slots.fold(0, |long, (_, inserted)| long | inserted)
    }

    /// The displacement in bytes of the branch that `brp` is about.
    #[inline]
    pub fn tag(&self) -> i64 {
        Operand::Tag13.extract(self.slot, 0)
    }

    /// The predicate that decides whether the instruction executes: the field `qp`, or 0 (always true) for the
    /// few instructions that cannot be predicated.
    #[inline]
    pub fn predicate(&self) -> u8 {
        if self.form().predicated { self.qp() } else { 0 }
    }

    /// The row of the opcode table the instruction was decoded with.
    pub fn form(&self) -> &'static Form {
        self.form.form()
    }

    /// The class of the instruction.
    pub fn unit_class(&self) -> UnitClass {
        self.form().class
    }

    /// Whether assembly text can say the instruction: false for ignored opcodes and reserved hints.
    pub fn has_spelling(&self) -> bool {
        let form = self.form();
        form.has_spelling && form.hints.iter().all(|hint| hint.suffix(self.slot).is_some())
    }

    /// Whether the immediate is a displacement in bytes from the bundle.
    pub fn is_relative(&self) -> bool {
        self.form().is_relative
    }

    /// Whether the instruction fills slots 1 and 2 of an MLX bundle.
    pub fn is_long(&self) -> bool {
        self.unit == Unit::X
    }
}
