//! Parallel integer operations: formats A9 and A10, and I1 to I9 where they work on elements.

use super::{Bits, Field, Form, field, form, major};
use crate::encoding::completers::{
    Half, PackSaturation, ParallelRelation, Saturation, Signedness, Size, Source, UnpackHalf,
};
use crate::encoding::instruction::UnitClass::{A, I};
use crate::encoding::operand::Operand::*;
use crate::encoding::operation::Operation;

const X2A: Field = field(34, 2);
const ZA: Field = field(36, 1);
const ZB: Field = field(33, 1);

/// The fixed bits that give an element size, za and zb.
fn sized(bits: Bits, size: Size) -> Bits {
    bits.set(ZA, size as u64 >> 1).set(ZB, size as u64 & 1)
}

pub(super) fn rows(forms: &mut Vec<Form>) {
    alu(forms);
    rearrangement(forms);
    multiplication(forms);
    shifts(forms);
    counts(forms);
}

/// Formats A9 and A10.
fn alu(forms: &mut Vec<Form>) {
    const X4: Field = field(29, 4);
    const X2B: Field = field(27, 2);
    /// x2b, suffix, overflow behaviour; four-byte elements only know the first.
    const SATURATIONS: [(u64, &str, Saturation); 4] = [
        (0, "", Saturation::Modulo),
        (1, ".sss", Saturation::Signed),
        (2, ".uuu", Saturation::Unsigned),
        (3, ".uus", Saturation::UnsignedSigned),
    ];
    let bits = |size, x4| sized(major(8).set(X2A, 1), size).set(X4, x4);
    let mut row = |name: String, size, x4, x2b, operation| {
        forms.push(form((A, "A9"), name, bits(size, x4).set(X2B, x2b), 1, &[R1, R2, R3], operation));
    };
    for size in [Size::One, Size::Two, Size::Four] {
        let bytes = size.bytes();
        for (x2b, suffix, saturation) in SATURATIONS {
            if size == Size::Four && saturation != Saturation::Modulo {
                continue;
            }
            row(format!("padd{bytes}{suffix}"), size, 0, x2b, Operation::ParallelAdd { size, saturation });
            row(format!("psub{bytes}{suffix}"), size, 1, x2b, Operation::ParallelSubtract { size, saturation });
        }
        let compare = |relation| Operation::ParallelCompare { size, relation };
        row(format!("pcmp{bytes}.eq"), size, 9, 0, compare(ParallelRelation::Equal));
        row(format!("pcmp{bytes}.gt"), size, 9, 1, compare(ParallelRelation::Greater));
    }
    for size in [Size::One, Size::Two] {
        let bytes = size.bytes();
        let average = |round_away| Operation::ParallelAverage { size, round_away };
        row(format!("pavg{bytes}"), size, 2, 2, average(false));
        row(format!("pavg{bytes}.raz"), size, 2, 3, average(true));
        row(format!("pavgsub{bytes}"), size, 3, 2, Operation::ParallelAverageSubtract { size });
    }
    let operands = &[R1, R2, Count2b, R3];
    let (left, right) = (Operation::ParallelShiftLeftAdd, Operation::ParallelShiftRightAdd);
    forms.extend([
        form((A, "A10"), "pshladd2", bits(Size::Two, 4), 1, operands, left),
        form((A, "A10"), "pshradd2", bits(Size::Two, 6), 1, operands, right),
    ]);
}

const VE: Field = field(32, 1);
const X2B: Field = field(28, 2);
const X2C: Field = field(30, 2);

/// The fixed bits of formats I1 to I9 without x2c.
fn multimedia(size: Size, x2a: u64, x2b: u64) -> Bits {
    sized(major(7).set(VE, 0), size).set(X2A, x2a).set(X2B, x2b)
}

/// `mix`, `pack`, `unpack`, minimum, maximum, `psad1` (I2), `mux1` (I3) and `mux2` (I4).
fn rearrangement(forms: &mut Vec<Form>) {
    let mut row = |name: String, size, x2b, x2c, operation| {
        let bits = multimedia(size, 2, x2b).set(X2C, x2c);
        forms.push(form((I, "I2"), name, bits, 1, &[R1, R2, R3], operation));
    };
    for size in [Size::One, Size::Two, Size::Four] {
        let bytes = size.bytes();
        let mix = |half| Operation::Mix { size, half };
        let unpack = |half| Operation::Unpack { size, half };
        row(format!("mix{bytes}.r"), size, 0, 2, mix(Half::Right));
        row(format!("mix{bytes}.l"), size, 2, 2, mix(Half::Left));
        row(format!("unpack{bytes}.h"), size, 0, 1, unpack(UnpackHalf::High));
        row(format!("unpack{bytes}.l"), size, 2, 1, unpack(UnpackHalf::Low));
    }
    let pack = |size, saturation| Operation::Pack { size, saturation };
    let (two, four) = (Size::Two, Size::Four);
    row("pack2.uss".into(), two, 0, 0, pack(two, PackSaturation::Unsigned));
    row("pack2.sss".into(), two, 2, 0, pack(two, PackSaturation::Signed));
    row("pack4.sss".into(), four, 2, 0, pack(four, PackSaturation::Signed));
    for (size, suffix, x2b) in [(Size::One, ".u", 1), (Size::Two, "", 3)] {
        let bytes = size.bytes();
        row(format!("pmin{bytes}{suffix}"), size, x2b, 0, Operation::ParallelMinimum { size });
        row(format!("pmax{bytes}{suffix}"), size, x2b, 1, Operation::ParallelMaximum { size });
    }
    row("psad1".into(), Size::One, 3, 2, Operation::ParallelSumAbsoluteDifference);
    let mux = |size| multimedia(size, 3, 2).set(X2C, 2);
    let (bytes, pairs) = (Operation::MuxBytes, Operation::MuxPairs);
    forms.extend([
        form((I, "I3"), "mux1", mux(Size::One), 1, &[R1, R2, Permutation4], bytes),
        form((I, "I4"), "mux2", mux(Size::Two), 1, &[R1, R2, Permutation8], pairs),
    ]);
}

/// `pmpyshr2` (I1), `pmpy2`, `mpy4` and `mpyshl4` (I2).
fn multiplication(forms: &mut Vec<Form>) {
    let two = |x2b| multimedia(Size::Two, 0, x2b);
    let pmpy = |x2b| multimedia(Size::Two, 2, x2b).set(X2C, 3);
    let four = |x2b| multimedia(Size::Four, 0, x2b).set(X2C, 3);
    let counted = &[R1, R2, R3, Count2c];
    let shifted = |signedness| Operation::ParallelMultiplyShiftRight { signedness };
    let multiply = |half| Operation::ParallelMultiply { half };
    forms.extend([
        form((I, "I1"), "pmpyshr2", two(3), 1, counted, shifted(Signedness::Signed)),
        form((I, "I1"), "pmpyshr2.u", two(1), 1, counted, shifted(Signedness::Unsigned)),
        form((I, "I2"), "pmpy2.r", pmpy(1), 1, &[R1, R2, R3], multiply(Half::Right)),
        form((I, "I2"), "pmpy2.l", pmpy(3), 1, &[R1, R2, R3], multiply(Half::Left)),
        form((I, "I2"), "mpy4", four(1), 1, &[R1, R2, R3], Operation::MultiplyWord),
        form((I, "I2"), "mpyshl4", four(3), 1, &[R1, R2, R3], Operation::MultiplyShiftLeftWord),
    ]);
}

/// Shifts of elements, and of the whole register by a variable count (I5 to I8).
fn shifts(forms: &mut Vec<Form>) {
    let directions = [("", Signedness::Signed, 2, 3), (".u", Signedness::Unsigned, 0, 1)];
    for size in [Size::Two, Size::Four] {
        let bytes = size.bytes();
        for (suffix, signedness, variable, fixed) in directions {
            let name = format!("pshr{bytes}{suffix}");
            let shift = |count| Operation::ParallelShiftRight { size, signedness, count };
            let by_register = multimedia(size, 0, variable).set(X2C, 0);
            let by_immediate = multimedia(size, 1, fixed).set(X2C, 0);
            forms.extend([
                form((I, "I5"), &name, by_register, 1, &[R1, R3, R2], shift(Source::Register)),
                form((I, "I6"), &name, by_immediate, 1, &[R1, R3, Count5], shift(Source::Immediate)),
            ]);
        }
        let name = format!("pshl{bytes}");
        let shift = |count| Operation::ParallelShiftLeft { size, count };
        let by_register = multimedia(size, 0, 0).set(X2C, 1);
        let by_immediate = multimedia(size, 3, 1).set(X2C, 1);
        forms.extend([
            form((I, "I7"), &name, by_register, 1, &[R1, R2, R3], shift(Source::Register)),
            form((I, "I8"), &name, by_immediate, 1, &[R1, R2, Ccount5], shift(Source::Immediate)),
        ]);
    }
    for (suffix, signedness, x2b, _) in directions {
        let bits = multimedia(Size::Eight, 0, x2b).set(X2C, 0);
        let operation = Operation::ShiftRight { signedness };
        forms.push(form((I, "I5"), format!("shr{suffix}"), bits, 1, &[R1, R3, R2], operation));
    }
    let bits = multimedia(Size::Eight, 0, 0).set(X2C, 1);
    forms.push(form((I, "I7"), "shl", bits, 1, &[R1, R2, R3], Operation::ShiftLeft));
}

/// `popcnt` and `clz` (I9).
fn counts(forms: &mut Vec<Form>) {
    let bits = |x2c| multimedia(Size::Two, 1, 1).set(X2C, x2c);
    forms.extend([
        form((I, "I9"), "popcnt", bits(2), 1, &[R1, R3], Operation::PopulationCount),
        form((I, "I9"), "clz", bits(3), 1, &[R1, R3], Operation::CountLeadingZeros),
    ]);
}
