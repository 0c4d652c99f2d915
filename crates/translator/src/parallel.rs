//! Several integers at once, of one, two or four bytes in a general register: what the interpreter's family `parallel`
//! computes.
//!
//! Most are operations of the host's vectors, in the low half of one of its registers. What needs no carry to stop at
//! an element is computed in a register of 64 bits.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I16X8, I32X4, I64X2};
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value};
use sidestep_ia64::encoding::{
    Half, Instruction, PackSaturation, ParallelRelation, Saturation, Signedness, Size, Source, UnpackHalf,
};

use crate::emitter::Emitter;
use crate::integer::{compute, two};

/// The vector of a size of elements.
fn vector_of(size: Size) -> Type {
    match size {
        Size::One => I8X16,
        Size::Two => I16X8,
        Size::Four | Size::Eight => I32X4,
    }
}

/// The same bytes as another vector.
fn cast(emitter: &mut Emitter, value: Value, to: Type) -> Value {
    let order = MemFlagsData::new().with_endianness(Endianness::Little);
    emitter.ins().bitcast(to, order, value)
}

/// A register as the low half of a vector.
fn vector(emitter: &mut Emitter, value: Value, of: Type) -> Value {
    let value = emitter.ins().scalar_to_vector(I64X2, value);
    cast(emitter, value, of)
}

/// The low half of a vector.
fn low_half(emitter: &mut Emitter, value: Value) -> Value {
    let value = cast(emitter, value, I64X2);
    emitter.ins().extractlane(value, 0)
}

/// Writes to r1 what is made of the elements of r2 and r3.
fn each(
    emitter: &mut Emitter,
    instruction: &Instruction,
    size: Size,
    combine: impl FnOnce(&mut Emitter, Value, Value) -> Value,
) {
    let (a, b) = two(emitter, instruction);
    let [a, b] = [a, b].map(|value| vector(emitter, value, vector_of(size)));
    let result = combine(emitter, a, b);
    let result = low_half(emitter, result);
    compute(emitter, instruction, result);
}

/// A constant that has the same bits in each element.
fn repeated(size: Size, element: u64) -> i64 {
    let once = u64::MAX / (u64::MAX >> (64 - size.bits()));
    (element * once).cast_signed()
}

/// The elements shifted to the left, and to the right with their signs.
fn left(emitter: &mut Emitter, elements: Value, count: i64) -> Value {
    let count = emitter.constant(count);
    emitter.ins().ishl(elements, count)
}

fn right(emitter: &mut Emitter, elements: Value, count: i64) -> Value {
    let count = emitter.constant(count);
    emitter.ins().sshr(elements, count)
}

/// The elements without their lowest bits, each halved.
fn halved(emitter: &mut Emitter, value: Value, size: Size) -> Value {
    let lowest = repeated(size, 1);
    let others = emitter.ins().band_imm_s(value, !lowest);
    emitter.ins().ushr_imm_u(others, 1)
}

/// The elements that are above zero, and what those below it lack to zero; zero for the others.
fn by_sign(emitter: &mut Emitter, value: Value, size: Size) -> (Value, Value) {
    let zero = emitter.constant(0);
    let zero = vector(emitter, zero, vector_of(size));
    let above = emitter.ins().smax(value, zero);
    let below = emitter.ins().smin(value, zero);
    (above, emitter.ins().isub(zero, below))
}

pub fn add(emitter: &mut Emitter, instruction: &Instruction, size: Size, saturation: Saturation) {
    each(emitter, instruction, size, |emitter, a, b| match saturation {
        Saturation::Modulo => emitter.ins().iadd(a, b),
        Saturation::Signed => emitter.ins().sadd_sat(a, b),
        Saturation::Unsigned => emitter.ins().uadd_sat(a, b),
        Saturation::UnsignedSigned => {
            let (above, below) = by_sign(emitter, b, size);
            let sum = emitter.ins().uadd_sat(a, above);
            emitter.ins().usub_sat(sum, below)
        }
    });
}

pub fn subtract(emitter: &mut Emitter, instruction: &Instruction, size: Size, saturation: Saturation) {
    each(emitter, instruction, size, |emitter, a, b| match saturation {
        Saturation::Modulo => emitter.ins().isub(a, b),
        Saturation::Signed => emitter.ins().ssub_sat(a, b),
        Saturation::Unsigned => emitter.ins().usub_sat(a, b),
        Saturation::UnsignedSigned => {
            let (above, below) = by_sign(emitter, b, size);
            let difference = emitter.ins().usub_sat(a, above);
            emitter.ins().uadd_sat(difference, below)
        }
    });
}

/// Half of a sum is what both have and half of what one of them has. What is lost by halving rounds away from zero, or
/// to odd.
pub fn average(emitter: &mut Emitter, instruction: &Instruction, size: Size, round_away: bool) {
    let (a, b) = two(emitter, instruction);
    let one = emitter.ins().bxor(a, b);
    let half = halved(emitter, one, size);
    let result = if round_away {
        let either = emitter.ins().bor(a, b);
        emitter.ins().isub(either, half)
    } else {
        let both = emitter.ins().band(a, b);
        let average = emitter.ins().iadd(both, half);
        let lost = emitter.ins().band_imm_s(one, repeated(size, 1));
        emitter.ins().bor(average, lost)
    };
    compute(emitter, instruction, result);
}

/// Half of a difference is half of what one of them has, less what only the second has; what is lost rounds to odd.
pub fn average_subtract(emitter: &mut Emitter, instruction: &Instruction, size: Size) {
    let (a, b) = two(emitter, instruction);
    let one = emitter.ins().bxor(a, b);
    let half = halved(emitter, one, size);
    let only_second = emitter.ins().band_not(b, a);
    let [half, only_second] = [half, only_second].map(|value| vector(emitter, value, vector_of(size)));
    let difference = emitter.ins().isub(half, only_second);
    let difference = low_half(emitter, difference);
    let lost = emitter.ins().band_imm_s(one, repeated(size, 1));
    let result = emitter.ins().bor(difference, lost);
    compute(emitter, instruction, result);
}

pub fn compare(emitter: &mut Emitter, instruction: &Instruction, size: Size, relation: ParallelRelation) {
    let condition = match relation {
        ParallelRelation::Equal => IntCC::Equal,
        ParallelRelation::Greater => IntCC::SignedGreaterThan,
    };
    each(emitter, instruction, size, |emitter, a, b| {
        emitter.ins().icmp(condition, a, b)
    });
}

/// Bytes are unsigned, pairs of them signed.
pub fn minimum(emitter: &mut Emitter, instruction: &Instruction, size: Size) {
    each(emitter, instruction, size, |emitter, a, b| match size {
        Size::One => emitter.ins().umin(a, b),
        _ => emitter.ins().smin(a, b),
    });
}

pub fn maximum(emitter: &mut Emitter, instruction: &Instruction, size: Size) {
    each(emitter, instruction, size, |emitter, a, b| match size {
        Size::One => emitter.ins().umax(a, b),
        _ => emitter.ins().smax(a, b),
    });
}

pub fn sum_absolute_difference(emitter: &mut Emitter, instruction: &Instruction) {
    let (a, b) = two(emitter, instruction);
    let [a, b] = [a, b].map(|value| vector(emitter, value, I8X16));
    let (greater, less) = (emitter.ins().umax(a, b), emitter.ins().umin(a, b));
    let differences = emitter.ins().isub(greater, less);
    let differences = low_half(emitter, differences);
    // Bytes are added to their neighbours, and the product's uppermost pair is the sum of all four.
    let even = repeated(Size::Two, 0xff);
    let neighbours = emitter.ins().ushr_imm_u(differences, 8);
    let [left, right] = [differences, neighbours].map(|value| emitter.ins().band_imm_s(value, even));
    let pairs = emitter.ins().iadd(left, right);
    let sums = emitter.ins().imul_imm_s(pairs, repeated(Size::Two, 1));
    let sum = emitter.ins().ushr_imm_u(sums, 48);
    compute(emitter, instruction, sum);
}

/// Each doubling saturates, which is what the whole shift does.
pub fn shift_left_add(emitter: &mut Emitter, instruction: &Instruction) {
    each(emitter, instruction, Size::Two, |emitter, a, b| {
        let doublings = 0..instruction.immediate & 3;
        let shifted = doublings.fold(a, |value, _| emitter.ins().sadd_sat(value, value));
        emitter.ins().sadd_sat(shifted, b)
    });
}

pub fn shift_right_add(emitter: &mut Emitter, instruction: &Instruction) {
    each(emitter, instruction, Size::Two, |emitter, a, b| {
        let shifted = right(emitter, a, instruction.immediate & 3);
        emitter.ins().sadd_sat(shifted, b)
    });
}

/// The products' 16 bits from a place on.
pub fn multiply_shift_right(emitter: &mut Emitter, instruction: &Instruction, signedness: Signedness) {
    each(emitter, instruction, Size::Two, |emitter, a, b| {
        let count = instruction.immediate & 31;
        if count == 0 {
            return emitter.ins().imul(a, b);
        }
        let [a, b] = [a, b].map(|value| match signedness {
            Signedness::Signed => emitter.ins().swiden_low(value),
            Signedness::Unsigned => emitter.ins().uwiden_low(value),
        });
        let products = emitter.ins().imul(a, b);
        // To the upper half of each product, and back with their sign, so that narrowing finds all in its range.
        let upper = match count {
            16 => products,
            count if count < 16 => left(emitter, products, 16 - count),
            count => {
                let beyond = emitter.constant(count - 16);
                emitter.ins().ushr(products, beyond)
            }
        };
        let lower = right(emitter, upper, 16);
        emitter.ins().snarrow(lower, lower)
    });
}

/// The whole products of the pairs on the left or on the right of each word.
pub fn multiply(emitter: &mut Emitter, instruction: &Instruction, half: Half) {
    each(emitter, instruction, Size::Four, |emitter, a, b| {
        let [a, b] = [a, b].map(|value| {
            let upper = match half {
                Half::Left => value,
                Half::Right => left(emitter, value, 16),
            };
            right(emitter, upper, 16)
        });
        emitter.ins().imul(a, b)
    });
}

/// Every second element of r2, and beside it that of r3.
pub fn mix(emitter: &mut Emitter, instruction: &Instruction, size: Size, half: Half) {
    let (a, b) = two(emitter, instruction);
    let bits = i64::from(size.bits());
    // Of each two elements the lower one.
    let lower = match size {
        Size::One => repeated(Size::Two, 0xff),
        Size::Two => repeated(Size::Four, 0xffff),
        Size::Four | Size::Eight => 0xffff_ffff,
    };
    let [a, b] = match half {
        Half::Left => [a, emitter.ins().ushr_imm_u(b, bits)],
        Half::Right => [emitter.ins().ishl_imm_u(a, bits), b],
    };
    let a = emitter.ins().band_imm_s(a, !lower);
    let b = emitter.ins().band_imm_s(b, lower);
    let result = emitter.ins().bor(a, b);
    compute(emitter, instruction, result);
}

/// The elements of r2 and above them those of r3, each half as wide.
pub fn pack(emitter: &mut Emitter, instruction: &Instruction, size: Size, saturation: PackSaturation) {
    let (a, b) = two(emitter, instruction);
    let a = emitter.ins().scalar_to_vector(I64X2, a);
    let both = emitter.ins().insertlane(a, b, 1);
    let both = cast(emitter, both, vector_of(size));
    let narrow = match saturation {
        PackSaturation::Signed => emitter.ins().snarrow(both, both),
        PackSaturation::Unsigned => emitter.ins().unarrow(both, both),
    };
    let result = low_half(emitter, narrow);
    compute(emitter, instruction, result);
}

/// Bytes of two registers, `a`'s numbered from 0 and `b`'s from 8: those that the order names, the lowest first.
fn arranged(emitter: &mut Emitter, a: Value, b: Value, order: [u8; 8]) -> Value {
    let [a, b] = [a, b].map(|value| vector(emitter, value, I8X16));
    // The vectors' upper halves, which nobody looks at, stay where they are.
    let of_vectors = order
        .map(|byte| byte % 8 + byte / 8 * 16)
        .into_iter()
        .chain(8..16);
    let order = emitter
        .builder
        .func
        .dfg
        .immediates
        .push(of_vectors.collect::<Vec<u8>>().into());
    let arranged = emitter.ins().shuffle(a, b, order);
    low_half(emitter, arranged)
}

/// The elements of two words in turn, those of r2 above those of r3.
pub fn unpack(emitter: &mut Emitter, instruction: &Instruction, size: Size, half: UnpackHalf) {
    let (a, b) = two(emitter, instruction);
    let [a, b] = match half {
        UnpackHalf::High => [a, b].map(|value| emitter.ins().ushr_imm_u(value, 32)),
        UnpackHalf::Low => [a, b],
    };
    let bytes = size.bytes() as u8;
    let in_turn = [0, 1, 2, 3, 4, 5, 6, 7].map(|place: u8| {
        let (element, byte) = (place / bytes, place % bytes);
        element % 2 * 8 + element / 2 * bytes + byte
    });
    let result = arranged(emitter, b, a, in_turn);
    compute(emitter, instruction, result);
}

/// One of five permutations of the bytes.
pub fn permute_bytes(emitter: &mut Emitter, instruction: &Instruction) {
    let value = emitter.general(instruction.r2());
    let result = match instruction.immediate {
        0x0 => arranged(emitter, value, value, [0; 8]),
        0x8 => arranged(emitter, value, value, [0, 4, 2, 6, 1, 5, 3, 7]),
        0x9 => arranged(emitter, value, value, [0, 4, 1, 5, 2, 6, 3, 7]),
        0xa => arranged(emitter, value, value, [0, 2, 4, 6, 1, 3, 5, 7]),
        _ => emitter.ins().bswap(value),
    };
    compute(emitter, instruction, result);
}

pub fn permute_pairs(emitter: &mut Emitter, instruction: &Instruction) {
    let value = emitter.general(instruction.r2());
    let order = [0, 1, 2, 3, 4, 5, 6, 7].map(|byte: u8| {
        let pair = instruction.immediate >> (byte / 2 * 2) & 3;
        2 * pair as u8 + byte % 2
    });
    let result = arranged(emitter, value, value, order);
    compute(emitter, instruction, result);
}

/// Shifts elements of two or four bytes by a count, in a register or known; unless that is less than they have bits,
/// nothing is left of them but their signs.
fn shift(
    emitter: &mut Emitter,
    instruction: &Instruction,
    size: Size,
    (value, count): (Value, Value),
    shifted: impl FnOnce(&mut Emitter, Value, Value) -> Value,
    signedness: Signedness,
) {
    let bits = i64::from(size.bits());
    let elements = vector(emitter, value, vector_of(size));
    let result = match signedness {
        Signedness::Signed => {
            let most = emitter.constant(bits - 1);
            let count = emitter.ins().umin(count, most);
            let shifted = shifted(emitter, elements, count);
            low_half(emitter, shifted)
        }
        Signedness::Unsigned => {
            let shifted = shifted(emitter, elements, count);
            let shifted = low_half(emitter, shifted);
            let is_within = emitter.ins().icmp_imm_u(IntCC::UnsignedLessThan, count, bits);
            let nothing = emitter.constant(0);
            emitter.ins().select(is_within, shifted, nothing)
        }
    };
    compute(emitter, instruction, result);
}

/// A register, or the immediate.
fn count(emitter: &mut Emitter, instruction: &Instruction, register: u8, source: Source) -> Value {
    match source {
        Source::Register => emitter.general(register),
        Source::Immediate => emitter.constant(instruction.immediate),
    }
}

pub fn shift_right(
    emitter: &mut Emitter,
    instruction: &Instruction,
    size: Size,
    signedness: Signedness,
    source: Source,
) {
    let value = emitter.general(instruction.r3());
    let count = count(emitter, instruction, instruction.r2(), source);
    let shifted = |emitter: &mut Emitter, elements, count| match signedness {
        Signedness::Signed => emitter.ins().sshr(elements, count),
        Signedness::Unsigned => emitter.ins().ushr(elements, count),
    };
    shift(emitter, instruction, size, (value, count), shifted, signedness);
}

pub fn shift_left(emitter: &mut Emitter, instruction: &Instruction, size: Size, source: Source) {
    let value = emitter.general(instruction.r2());
    let count = count(emitter, instruction, instruction.r3(), source);
    let shifted = |emitter: &mut Emitter, elements, count| emitter.ins().ishl(elements, count);
    shift(
        emitter,
        instruction,
        size,
        (value, count),
        shifted,
        Signedness::Unsigned,
    );
}

/// The number of elements before the first that is zero, from the left or the right.
pub fn zero_index(emitter: &mut Emitter, instruction: &Instruction, size: Size, half: Half) {
    let value = emitter.general(instruction.r3());
    let bits = size.bits();
    // The uppermost bits of the elements that are zero: adding to what is below carries into them, and no further.
    let below = repeated(size, (1 << (bits - 1)) - 1);
    let others = emitter.ins().band_imm_s(value, below);
    let carried = emitter.ins().iadd_imm_s(others, below);
    let is_some = emitter.ins().bor(carried, value);
    let is_some = emitter.ins().bor_imm_s(is_some, below);
    let zeros = emitter.ins().bnot(is_some);
    let place = match half {
        Half::Left => emitter.ins().clz(zeros),
        Half::Right => emitter.ins().ctz(zeros),
    };
    let index = emitter.ins().ushr_imm_u(place, i64::from(bits.ilog2()));
    compute(emitter, instruction, index);
}
