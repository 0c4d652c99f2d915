//! Operands: where each sits in a slot, what its bits mean, and how it is written.
//!
//! One row of [`Operand::description`] says all of it; extraction, insertion and text follow from the row.
//! Field positions are those of the manual, volume 3, tables 4-5 to 4-7.

use std::fmt;

use super::disassembly::Symbols;

/// A contiguous run of bits of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The position of the lowest bit.
    pub shift: u8,
    /// The number of bits.
    pub bits: u8,
}

/// How an operand's value follows from its bits. Several fields are concatenated, the first one lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// The bits as they are, times two to the power given.
    Unsigned(u8),
    /// Two's complement, times two to the power given.
    Signed(u8),
    /// Two's complement plus one: the assembler's immediate of a swapped compare.
    SignedPlusOne,
    /// All bits inverted.
    Complement,
    /// One more than the bits.
    PlusOne,
    /// 32 more than the bits: a feature number.
    Plus32,
    /// One of a few values, by the bits as index.
    Choice(&'static [i64]),
    /// `movl`: 64 bits from the X and the L slot.
    Long64,
    /// `nop.x`, `break.x`, `hint.x`: 62 bits.
    Long62,
    /// `brl`: a 64-bit displacement in bytes.
    LongTarget,
    /// Not encoded: the value given.
    Constant(i64),
}

/// How an operand is written in assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// A register of the named file, followed by its number.
    Register(&'static str),
    /// An application register, by name where it has one.
    Application,
    /// A control register, by name where it has one.
    Control,
    /// An element of a file indexed by a general register; memory has no file name.
    Indirect(&'static str),
    /// A decimal number.
    Decimal,
    /// A hexadecimal number.
    Hexadecimal,
    /// The byte permutation of `mux1`, by name where it has one.
    BytePermutation,
    /// An address: that of the bundle plus the value.
    Address,
    /// Fixed text.
    Text(&'static str),
}

/// One row of the operand table.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The bits, lowest part first.
    pub fields: &'static [Field],
    /// Their meaning.
    pub coding: Coding,
    /// Their spelling.
    pub notation: Notation,
}

/// An operand of an instruction, by the manual's name for its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// General register, bits 6 to 12.
    R1,
    /// General register, bits 13 to 19.
    R2,
    /// General register, bits 20 to 26.
    R3,
    /// General register 0 to 3, bits 20 and 21 (`addl`).
    R3Short,
    /// Floating-point register, bits 6 to 12.
    F1,
    /// Floating-point register, bits 13 to 19.
    F2,
    /// Floating-point register, bits 20 to 26.
    F3,
    /// Floating-point register, bits 27 to 33.
    F4,
    /// Predicate register, bits 6 to 11.
    P1,
    /// Predicate register, bits 27 to 32.
    P2,
    /// Branch register, bits 6 to 8.
    B1,
    /// Branch register, bits 13 to 15.
    B2,
    /// Application register, bits 20 to 26.
    Ar3,
    /// Control register, bits 20 to 26.
    Cr3,
    /// Data access hint register, bits 23 to 25.
    Dahr,

    /// Memory at the address in `r3`.
    Memory,
    /// `cpuid[r3]`.
    Cpuid,
    /// `dbr[r3]`.
    Dbr,
    /// `dtr[r3]`.
    Dtr,
    /// `itr[r3]`.
    Itr,
    /// `ibr[r3]`.
    Ibr,
    /// `msr[r3]`.
    Msr,
    /// `pkr[r3]`.
    Pkr,
    /// `pmc[r3]`.
    Pmc,
    /// `pmd[r3]`.
    Pmd,
    /// `dahr[r3]`.
    DahrIndirect,
    /// `rr[r3]`.
    Rr,

    /// `ar.csd`.
    ArCsd,
    /// `ar.ccv`.
    ArCcv,
    /// `ar.pfs`.
    ArPfs,
    /// The constant 1 of `add` and `sub`.
    One,
    /// The constant 8 of `ldfp`.
    Eight,
    /// The constant 16 of `ldfp`.
    Sixteen,
    /// General register 0, not encoded.
    Gr0,
    /// `ip`.
    Ip,
    /// All predicates.
    Pr,
    /// The rotating predicates.
    PrRot,
    /// The processor status register.
    Psr,
    /// Its lower half.
    PsrLower,
    /// The user mask.
    PsrUserMask,

    /// Shift count 0 to 31, stored inverted, of `pshl`.
    Ccount5,
    /// Shift count 1 to 4 of `shladd`.
    Count2a,
    /// Shift count 1 to 3 of `pshladd2`.
    Count2b,
    /// Shift count 0, 7, 15 or 16 of `pmpyshr2`.
    Count2c,
    /// Shift count 0 to 31 of `pshr`.
    Count5,
    /// Shift count 0 to 63 of `shrp`.
    Count6,
    /// Number of lines, 1 to 64, of `lfetch.count`.
    Count6a,
    /// Bit position, stored inverted, of `dep.z`.
    Cposition6a,
    /// Bit position, stored inverted, of `dep` with an immediate.
    Cposition6b,
    /// Bit position, stored inverted, of `dep`.
    Cposition6c,
    /// Bit position of `extr` and `tbit`.
    Position6,
    /// Field length 1 to 16 of `dep`.
    Length4,
    /// Field length 1 to 64.
    Length6,
    /// 0 or -1.
    Imm1,
    /// 8 bits, signed.
    Imm8,
    /// `Imm8` plus one.
    Imm8PlusOne,
    /// 9 bits, signed, of stores.
    Imm9a,
    /// 9 bits, signed, of loads.
    Imm9b,
    /// 14 bits, signed.
    Imm14,
    /// 17 bits, signed, the lowest one clear: the mask of `mov pr`.
    Imm17,
    /// 22 bits, signed.
    Imm22,
    /// 44 bits, signed, the lowest 16 clear: the value of `mov pr.rot`.
    Imm44,
    /// 2 bits: a privilege level.
    Immu2,
    /// Feature number 32 to 63 of `tf`.
    Immu5,
    /// 7 bits: the AND mask of `fsetc`.
    Immu7a,
    /// 7 bits: the OR mask of `fsetc`.
    Immu7b,
    /// 9 bits: the classes of `fclass`.
    Immu9,
    /// 16 bits: the value of `mov dahr`.
    Immu16,
    /// 19 bits, of `hint.m`.
    Immu19,
    /// 21 bits, of `nop`, `break` and `hint`.
    Immu21,
    /// 24 bits: a mask of the PSR.
    Immu24,
    /// 62 bits, of `nop.x`, `break.x` and `hint.x`.
    Immu62,
    /// 64 bits, of `movl`.
    Immu64,
    /// The increment of `fetchadd`.
    Increment3,
    /// The permutation code of `mux1`.
    Permutation4,
    /// The permutation of `mux2`.
    Permutation8,
    /// Size of frame, of `alloc`.
    SizeOfFrame,
    /// Size of locals, of `alloc`.
    SizeOfLocals,
    /// Size of rotating, of `alloc`: a multiple of 8.
    SizeOfRotating,
    /// The stride of `lfetch.count` in bytes: a multiple of 64.
    Stride5,
    /// The tag of `brp`.
    Tag13,
    /// The tag of `mov b`.
    Tag13b,
    /// The target of `fchkf`.
    Target25,
    /// The target of `chk.s`.
    Target25b,
    /// The target of `br` and `chk.a`.
    Target25c,
    /// The target of `brl`.
    Target64,
}

macro_rules! fields {
    ($($bits:literal @ $shift:literal),*) => { &[$(Field { shift: $shift, bits: $bits }),*] };
}

impl Operand {
    /// The operand's row.
    pub const fn description(self) -> Description {
        use Coding::*;
        use Notation::{Address, Application, BytePermutation, Control, Decimal, Hexadecimal, Indirect};
        use Notation::{Register, Text};
        let (fields, coding, notation): (&'static [Field], Coding, Notation) = match self {
            Operand::R1 => (fields![7 @ 6], Unsigned(0), Register("r")),
            Operand::R2 => (fields![7 @ 13], Unsigned(0), Register("r")),
            Operand::R3 => (fields![7 @ 20], Unsigned(0), Register("r")),
            Operand::R3Short => (fields![2 @ 20], Unsigned(0), Register("r")),
            Operand::F1 => (fields![7 @ 6], Unsigned(0), Register("f")),
            Operand::F2 => (fields![7 @ 13], Unsigned(0), Register("f")),
            Operand::F3 => (fields![7 @ 20], Unsigned(0), Register("f")),
            Operand::F4 => (fields![7 @ 27], Unsigned(0), Register("f")),
            Operand::P1 => (fields![6 @ 6], Unsigned(0), Register("p")),
            Operand::P2 => (fields![6 @ 27], Unsigned(0), Register("p")),
            Operand::B1 => (fields![3 @ 6], Unsigned(0), Register("b")),
            Operand::B2 => (fields![3 @ 13], Unsigned(0), Register("b")),
            Operand::Ar3 => (fields![7 @ 20], Unsigned(0), Application),
            Operand::Cr3 => (fields![7 @ 20], Unsigned(0), Control),
            Operand::Dahr => (fields![3 @ 23], Unsigned(0), Register("dahr")),

            Operand::Memory => (fields![7 @ 20], Unsigned(0), Indirect("")),
            Operand::Cpuid => (fields![7 @ 20], Unsigned(0), Indirect("cpuid")),
            Operand::Dbr => (fields![7 @ 20], Unsigned(0), Indirect("dbr")),
            Operand::Dtr => (fields![7 @ 20], Unsigned(0), Indirect("dtr")),
            Operand::Itr => (fields![7 @ 20], Unsigned(0), Indirect("itr")),
            Operand::Ibr => (fields![7 @ 20], Unsigned(0), Indirect("ibr")),
            Operand::Msr => (fields![7 @ 20], Unsigned(0), Indirect("msr")),
            Operand::Pkr => (fields![7 @ 20], Unsigned(0), Indirect("pkr")),
            Operand::Pmc => (fields![7 @ 20], Unsigned(0), Indirect("pmc")),
            Operand::Pmd => (fields![7 @ 20], Unsigned(0), Indirect("pmd")),
            Operand::DahrIndirect => (fields![7 @ 20], Unsigned(0), Indirect("dahr")),
            Operand::Rr => (fields![7 @ 20], Unsigned(0), Indirect("rr")),

            Operand::ArCsd => (fields![], Constant(25), Text("ar.csd")),
            Operand::ArCcv => (fields![], Constant(32), Text("ar.ccv")),
            Operand::ArPfs => (fields![], Constant(64), Text("ar.pfs")),
            Operand::One => (fields![], Constant(1), Text("1")),
            Operand::Eight => (fields![], Constant(8), Text("8")),
            Operand::Sixteen => (fields![], Constant(16), Text("16")),
            Operand::Gr0 => (fields![], Constant(0), Text("r0")),
            Operand::Ip => (fields![], Constant(0), Text("ip")),
            Operand::Pr => (fields![], Constant(0), Text("pr")),
            Operand::PrRot => (fields![], Constant(0), Text("pr.rot")),
            Operand::Psr => (fields![], Constant(0), Text("psr")),
            Operand::PsrLower => (fields![], Constant(0), Text("psr.l")),
            Operand::PsrUserMask => (fields![], Constant(0), Text("psr.um")),

            Operand::Ccount5 => (fields![5 @ 20], Complement, Decimal),
            Operand::Count2a => (fields![2 @ 27], PlusOne, Decimal),
            Operand::Count2b => (fields![2 @ 27], PlusOne, Decimal),
            Operand::Count2c => (fields![2 @ 30], Choice(&[0, 7, 15, 16]), Decimal),
            Operand::Count5 => (fields![5 @ 14], Unsigned(0), Decimal),
            Operand::Count6 => (fields![6 @ 27], Unsigned(0), Decimal),
            Operand::Count6a => (fields![6 @ 6], PlusOne, Decimal),
            Operand::Cposition6a => (fields![6 @ 20], Complement, Decimal),
            Operand::Cposition6b => (fields![6 @ 14], Complement, Decimal),
            Operand::Cposition6c => (fields![6 @ 31], Complement, Decimal),
            Operand::Position6 => (fields![6 @ 14], Unsigned(0), Decimal),
            Operand::Length4 => (fields![4 @ 27], PlusOne, Decimal),
            Operand::Length6 => (fields![6 @ 27], PlusOne, Decimal),
            Operand::Imm1 => (fields![1 @ 36], Signed(0), Decimal),
            Operand::Imm8 => (fields![7 @ 13, 1 @ 36], Signed(0), Decimal),
            Operand::Imm8PlusOne => (fields![7 @ 13, 1 @ 36], SignedPlusOne, Decimal),
            Operand::Imm9a => (fields![7 @ 6, 1 @ 27, 1 @ 36], Signed(0), Decimal),
            Operand::Imm9b => (fields![7 @ 13, 1 @ 27, 1 @ 36], Signed(0), Decimal),
            Operand::Imm14 => (fields![7 @ 13, 6 @ 27, 1 @ 36], Signed(0), Decimal),
            Operand::Imm17 => (fields![7 @ 6, 8 @ 24, 1 @ 36], Signed(1), Hexadecimal),
            Operand::Imm22 => (fields![7 @ 13, 9 @ 27, 5 @ 22, 1 @ 36], Signed(0), Decimal),
            Operand::Imm44 => (fields![27 @ 6, 1 @ 36], Signed(16), Hexadecimal),
            Operand::Immu2 => (fields![2 @ 13], Unsigned(0), Decimal),
            Operand::Immu5 => (fields![5 @ 14], Plus32, Decimal),
            Operand::Immu7a => (fields![7 @ 13], Unsigned(0), Hexadecimal),
            Operand::Immu7b => (fields![7 @ 20], Unsigned(0), Hexadecimal),
            Operand::Immu9 => (fields![2 @ 33, 7 @ 20], Unsigned(0), Hexadecimal),
            Operand::Immu16 => (fields![4 @ 6, 11 @ 12, 1 @ 36], Unsigned(0), Decimal),
            Operand::Immu19 => (fields![4 @ 6, 14 @ 12, 1 @ 36], Unsigned(0), Decimal),
            Operand::Immu21 => (fields![20 @ 6, 1 @ 36], Unsigned(0), Hexadecimal),
            Operand::Immu24 => (fields![21 @ 6, 2 @ 31, 1 @ 36], Unsigned(0), Hexadecimal),
            Operand::Immu62 => (fields![20 @ 6, 1 @ 36], Long62, Hexadecimal),
            Operand::Immu64 => (
                fields![7 @ 13, 9 @ 27, 5 @ 22, 1 @ 21, 1 @ 36],
                Long64,
                Hexadecimal,
            ),
            Operand::Increment3 => (fields![3 @ 13], Choice(&[16, 8, 4, 1, -16, -8, -4, -1]), Decimal),
            Operand::Permutation4 => (fields![4 @ 20], Unsigned(0), BytePermutation),
            Operand::Permutation8 => (fields![8 @ 20], Unsigned(0), Hexadecimal),
            Operand::SizeOfFrame => (fields![7 @ 13], Unsigned(0), Decimal),
            Operand::SizeOfLocals => (fields![7 @ 20], Unsigned(0), Decimal),
            Operand::SizeOfRotating => (fields![4 @ 27], Unsigned(3), Decimal),
            Operand::Stride5 => (fields![5 @ 13], Signed(6), Decimal),
            Operand::Tag13 => (fields![7 @ 6, 2 @ 33], Signed(4), Address),
            Operand::Tag13b => (fields![9 @ 24], Signed(4), Address),
            Operand::Target25 => (fields![20 @ 6, 1 @ 36], Signed(4), Address),
            Operand::Target25b => (fields![7 @ 6, 13 @ 20, 1 @ 36], Signed(4), Address),
            Operand::Target25c => (fields![20 @ 13, 1 @ 36], Signed(4), Address),
            Operand::Target64 => (fields![20 @ 13, 1 @ 36], LongTarget, Address),
        };
        Description {
            fields,
            coding,
            notation,
        }
    }

    /// Whether the value is the bit position of a field.
    pub const fn is_position(self) -> bool {
        use Operand::{Cposition6a, Cposition6b, Cposition6c, Position6};
        matches!(self, Cposition6a | Cposition6b | Cposition6c | Position6)
    }

    /// Whether the value is the length of a field.
    pub const fn is_length(self) -> bool {
        matches!(self, Operand::Length4 | Operand::Length6)
    }

    /// Whether the value is an instruction's one immediate, rather than a register, a bit position or length,
    /// or one of several numbers that have names of their own.
    pub const fn is_immediate(self) -> bool {
        use Operand::*;
        match self {
            _ if self.is_position() || self.is_length() => false,
            SizeOfFrame | SizeOfLocals | SizeOfRotating | Count6a | Immu7b => false,
            Eight | Sixteen => true,
            _ => matches!(
                self.description().notation,
                Notation::Decimal | Notation::Hexadecimal | Notation::BytePermutation | Notation::Address
            ),
        }
    }

    /// Whether the value is a displacement in bytes from the bundle.
    pub const fn is_address(self) -> bool {
        matches!(self.description().notation, Notation::Address)
    }

    /// The bits of the slot the operand occupies.
    pub fn mask(self) -> u64 {
        self.description()
            .fields
            .iter()
            .fold(0, |mask, field| mask | ones(field.bits) << field.shift)
    }

    /// The operand's value in a slot; `long` holds the L slot of a long instruction, otherwise 0.
    pub fn extract(self, slot: u64, long: u64) -> i64 {
        let description = self.description();
        let mut raw = 0;
        let mut width = 0;
        for field in description.fields {
            raw |= (slot >> field.shift & ones(field.bits)) << width;
            width += field.bits;
        }
        let signed = |scale: u8| sign_extend(raw, width) << scale;
        match description.coding {
            Coding::Unsigned(scale) => (raw << scale) as i64,
            Coding::Signed(scale) => signed(scale),
            Coding::SignedPlusOne => signed(0) + 1,
            Coding::Complement => (raw ^ ones(width)) as i64,
            Coding::PlusOne => raw as i64 + 1,
            Coding::Plus32 => raw as i64 + 32,
            Coding::Choice(values) => values[raw as usize],
            // The first 22 bits are the fields below the sign; the sign is the field's last bit.
            Coding::Long64 => (raw & ones(22) | long << 22 | raw >> 22 << 63) as i64,
            Coding::Long62 => (raw | long << 21) as i64,
            // Bits 0 and 1 of the L slot are ignored.
            Coding::LongTarget => ((raw & ones(20) | (long >> 2) << 20 | raw >> 20 << 59) << 4) as i64,
            Coding::Constant(value) => value,
        }
    }

    /// Puts a value into a slot whose bits of the operand are 0, and into the L slot where the operand reaches
    /// there. `None` when the operand cannot express the value.
    pub fn insert(self, value: i64, slot: u64, long: u64) -> Option<(u64, u64)> {
        let description = self.description();
        let width: u8 = description.fields.iter().map(|field| field.bits).sum();
        let bits = value as u64;
        let (raw, long) = match description.coding {
            Coding::Unsigned(scale) | Coding::Signed(scale) => (bits >> scale, long),
            Coding::SignedPlusOne | Coding::PlusOne => (bits.wrapping_sub(1), long),
            Coding::Complement => (bits ^ ones(width), long),
            Coding::Plus32 => (bits.wrapping_sub(32), long),
            Coding::Choice(values) => (values.iter().position(|choice| *choice == value)? as u64, long),
            Coding::Long64 => (bits & ones(22) | bits >> 63 << 22, bits >> 22 & ones(41)),
            Coding::Long62 => (bits & ones(21), bits >> 21 & ones(41)),
            Coding::LongTarget => (
                bits >> 4 & ones(20) | bits >> 63 << 20,
                (bits >> 24 & ones(39)) << 2,
            ),
            Coding::Constant(_) => (0, long),
        };
        let mut slot = slot;
        let mut rest = raw;
        for field in description.fields {
            slot |= (rest & ones(field.bits)) << field.shift;
            rest >>= field.bits;
        }
        (self.extract(slot, long) == value).then_some((slot, long))
    }

    /// Writes the operand's value as assembly text; `address` is that of the bundle.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        self,
        value: i64,
        address: u64,
        symbols: &dyn Symbols,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        match self.description().notation {
            Notation::Register(file) => write!(out, "{file}{value}"),
            Notation::Application => match application_register_name(value as u8) {
                Some(name) => write!(out, "ar.{name}"),
                None => write!(out, "ar{value}"),
            },
            Notation::Control => match control_register_name(value as u8) {
                Some(name) => write!(out, "cr.{name}"),
                None => write!(out, "cr{value}"),
            },
            Notation::Indirect(file) => write!(out, "{file}[r{value}]"),
            Notation::Decimal => write!(out, "{value}"),
            Notation::Hexadecimal => write!(out, "{value:#x}"),
            Notation::BytePermutation => match byte_permutation_name(value) {
                Some(name) => out.write_str(name),
                None => write!(out, "{value:#x}"),
            },
            Notation::Address => symbols.write(address.wrapping_add(value as u64), out),
            Notation::Text(text) => out.write_str(text),
        }
    }
}

/// The lowest `count` bits set.
pub(super) const fn ones(count: u8) -> u64 {
    (1 << count) - 1
}

const fn sign_extend(value: u64, width: u8) -> i64 {
    let unused = 64 - width as u32;
    ((value << unused) as i64) >> unused
}

/// The name of an application register without its `ar.` (manual, volume 1, table 3-3).
pub const fn application_register_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "k0",
        1 => "k1",
        2 => "k2",
        3 => "k3",
        4 => "k4",
        5 => "k5",
        6 => "k6",
        7 => "k7",
        16 => "rsc",
        17 => "bsp",
        18 => "bspstore",
        19 => "rnat",
        21 => "fcr",
        24 => "eflag",
        25 => "csd",
        26 => "ssd",
        27 => "cflg",
        28 => "fsr",
        29 => "fir",
        30 => "fdr",
        32 => "ccv",
        36 => "unat",
        40 => "fpsr",
        44 => "itc",
        45 => "ruc",
        64 => "pfs",
        65 => "lc",
        66 => "ec",
        _ => return None,
    })
}

/// The name of a control register without its `cr.` (manual, volume 2, table 3-3).
pub const fn control_register_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "dcr",
        1 => "itm",
        2 => "iva",
        8 => "pta",
        16 => "ipsr",
        17 => "isr",
        19 => "iip",
        20 => "ifa",
        21 => "itir",
        22 => "iipa",
        23 => "ifs",
        24 => "iim",
        25 => "iha",
        26 => "iib0",
        27 => "iib1",
        64 => "lid",
        65 => "ivr",
        66 => "tpr",
        67 => "eoi",
        68 => "irr0",
        69 => "irr1",
        70 => "irr2",
        71 => "irr3",
        72 => "itv",
        73 => "pmv",
        74 => "cmcv",
        80 => "lrr0",
        81 => "lrr1",
        _ => return None,
    })
}

/// The name of a byte permutation of `mux1` (manual, volume 3, table 2-46).
const fn byte_permutation_name(code: i64) -> Option<&'static str> {
    Some(match code {
        0x0 => "@brcst",
        0x8 => "@mix",
        0x9 => "@shuf",
        0xa => "@alt",
        0xb => "@rev",
        _ => return None,
    })
}
