//! Parallel integer operations: elements of one, two or four bytes in a general register (manual volume 1,
//! section 4.6; formats A9, A10, I1 to I10).

use crate::encoding::{
    Half, PackSaturation, ParallelRelation, Saturation, Signedness, Size, Source, UnpackHalf,
};

use super::computation::{of_second, of_third, of_two};
use super::frequent::{Handler, call};

pub(super) fn add_handler(size: Size, saturation: Saturation) -> Handler {
    call(match (size, saturation) {
        (Size::One, Saturation::Modulo) => add_1,
        (Size::One, Saturation::Signed) => add_1_signed,
        (Size::One, Saturation::Unsigned) => add_1_unsigned,
        (Size::One, Saturation::UnsignedSigned) => add_1_mixed,
        (Size::Two, Saturation::Modulo) => add_2,
        (Size::Two, Saturation::Signed) => add_2_signed,
        (Size::Two, Saturation::Unsigned) => add_2_unsigned,
        (Size::Two, Saturation::UnsignedSigned) => add_2_mixed,
        _ => add_4,
    })
}

pub(super) fn subtract_handler(size: Size, saturation: Saturation) -> Handler {
    call(match (size, saturation) {
        (Size::One, Saturation::Modulo) => subtract_1,
        (Size::One, Saturation::Signed) => subtract_1_signed,
        (Size::One, Saturation::Unsigned) => subtract_1_unsigned,
        (Size::One, Saturation::UnsignedSigned) => subtract_1_mixed,
        (Size::Two, Saturation::Modulo) => subtract_2,
        (Size::Two, Saturation::Signed) => subtract_2_signed,
        (Size::Two, Saturation::Unsigned) => subtract_2_unsigned,
        (Size::Two, Saturation::UnsignedSigned) => subtract_2_mixed,
        _ => subtract_4,
    })
}

pub(super) fn average_handler(size: Size, round_away: bool) -> Handler {
    call(match (size, round_away) {
        (Size::One, false) => average_1,
        (Size::One, true) => average_1_away,
        (_, false) => average_2,
        (_, true) => average_2_away,
    })
}

pub(super) fn average_subtract_handler(size: Size) -> Handler {
    call(match size {
        Size::One => average_subtract_1,
        _ => average_subtract_2,
    })
}

pub(super) fn compare_handler(size: Size, relation: ParallelRelation) -> Handler {
    call(match (size, relation) {
        (Size::One, ParallelRelation::Equal) => equal_1,
        (Size::Two, ParallelRelation::Equal) => equal_2,
        (_, ParallelRelation::Equal) => equal_4,
        (Size::One, ParallelRelation::Greater) => greater_1,
        (Size::Two, ParallelRelation::Greater) => greater_2,
        (_, ParallelRelation::Greater) => greater_4,
    })
}

pub(super) fn multiply_shift_right_handler(signedness: Signedness) -> Handler {
    call(match signedness {
        Signedness::Signed => multiply_shift_right,
        Signedness::Unsigned => multiply_shift_right_unsigned,
    })
}

pub(super) fn multiply_handler(half: Half) -> Handler {
    call(match half {
        Half::Left => multiply_left,
        Half::Right => multiply_right,
    })
}

pub(super) fn mix_handler(size: Size, half: Half) -> Handler {
    call(match (size, half) {
        (Size::One, Half::Left) => mix_1_left,
        (Size::One, Half::Right) => mix_1_right,
        (Size::Two, Half::Left) => mix_2_left,
        (Size::Two, Half::Right) => mix_2_right,
        (_, Half::Left) => mix_4_left,
        (_, Half::Right) => mix_4_right,
    })
}

pub(super) fn pack_handler(size: Size, saturation: PackSaturation) -> Handler {
    call(match (size, saturation) {
        (Size::Two, PackSaturation::Signed) => pack_2_signed,
        (Size::Two, PackSaturation::Unsigned) => pack_2_unsigned,
        _ => pack_4_signed,
    })
}

pub(super) fn unpack_handler(size: Size, half: UnpackHalf) -> Handler {
    call(match (size, half) {
        (Size::One, UnpackHalf::High) => unpack_1_high,
        (Size::One, UnpackHalf::Low) => unpack_1_low,
        (Size::Two, UnpackHalf::High) => unpack_2_high,
        (Size::Two, UnpackHalf::Low) => unpack_2_low,
        (_, UnpackHalf::High) => unpack_4_high,
        (_, UnpackHalf::Low) => unpack_4_low,
    })
}

pub(super) fn minimum_handler(size: Size) -> Handler {
    call(match size {
        Size::One => minimum_1,
        _ => minimum_2,
    })
}

pub(super) fn maximum_handler(size: Size) -> Handler {
    call(match size {
        Size::One => maximum_1,
        _ => maximum_2,
    })
}

pub(super) fn shift_right_handler(size: Size, signedness: Signedness, count: Source) -> Handler {
    call(match (size, signedness, count) {
        (Size::Two, Signedness::Signed, Source::Register) => shift_right_2,
        (Size::Two, Signedness::Unsigned, Source::Register) => shift_right_2_unsigned,
        (_, Signedness::Signed, Source::Register) => shift_right_4,
        (_, Signedness::Unsigned, Source::Register) => shift_right_4_unsigned,
        (Size::Two, Signedness::Signed, Source::Immediate) => shift_right_2_immediate,
        (Size::Two, Signedness::Unsigned, Source::Immediate) => shift_right_2_unsigned_immediate,
        (_, Signedness::Signed, Source::Immediate) => shift_right_4_immediate,
        (_, Signedness::Unsigned, Source::Immediate) => shift_right_4_unsigned_immediate,
    })
}

pub(super) fn shift_left_handler(size: Size, count: Source) -> Handler {
    call(match (size, count) {
        (Size::Two, Source::Register) => shift_left_2,
        (_, Source::Register) => shift_left_4,
        (Size::Two, Source::Immediate) => shift_left_2_immediate,
        (_, Source::Immediate) => shift_left_4_immediate,
    })
}

pub(super) fn zero_index_handler(size: Size, half: Half) -> Handler {
    call(match (size, half) {
        (Size::One, Half::Left) => zero_index_1_left,
        (Size::One, Half::Right) => zero_index_1_right,
        (_, Half::Left) => zero_index_2_left,
        (_, Half::Right) => zero_index_2_right,
    })
}

/// A register as four 16-bit elements, the least significant first, and back.
fn pairs(value: u64) -> [u16; 4] {
    std::array::from_fn(|index| (value >> (16 * index)) as u16)
}

fn of_pairs(elements: [u16; 4]) -> u64 {
    elements
        .iter()
        .rev()
        .fold(0, |value, &element| value << 16 | u64::from(element))
}

/// A register as two 32-bit elements, the least significant first, and back.
fn words(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

fn of_words(elements: [u32; 2]) -> u64 {
    u64::from(elements[0]) | u64::from(elements[1]) << 32
}

/// Applies a function to the elements of two registers.
fn each_1(a: u64, b: u64, function: impl Fn(u8, u8) -> u8) -> u64 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u64::from_le_bytes(std::array::from_fn(|index| function(a[index], b[index])))
}

fn each_2(a: u64, b: u64, function: impl Fn(u16, u16) -> u16) -> u64 {
    let (a, b) = (pairs(a), pairs(b));
    of_pairs(std::array::from_fn(|index| function(a[index], b[index])))
}

fn each_4(a: u64, b: u64, function: impl Fn(u32, u32) -> u32) -> u64 {
    let (a, b) = (words(a), words(b));
    of_words(std::array::from_fn(|index| function(a[index], b[index])))
}

/// All ones for true.
fn all_ones<T: From<u8> + std::ops::Not<Output = T>>(condition: bool) -> T {
    if condition { !T::from(0) } else { T::from(0) }
}

/// The average of a sum one bit wider than its elements, rounded to odd: the lost bit is kept by an OR.
fn halve_to_odd(sum: u32) -> u32 {
    sum >> 1 | sum & 1
}

of_two! {
    add_1 = |a, b, operation| each_1(a, b, u8::wrapping_add);
    add_1_signed = |a, b, operation| each_1(a, b, |a, b| (a as i8).saturating_add(b as i8) as u8);
    add_1_unsigned = |a, b, operation| each_1(a, b, u8::saturating_add);
    add_1_mixed = |a, b, operation| each_1(a, b, |a, b| a.saturating_add_signed(b as i8));
    add_2 = |a, b, operation| each_2(a, b, u16::wrapping_add);
    add_2_signed = |a, b, operation| each_2(a, b, |a, b| (a as i16).saturating_add(b as i16) as u16);
    add_2_unsigned = |a, b, operation| each_2(a, b, u16::saturating_add);
    add_2_mixed = |a, b, operation| each_2(a, b, |a, b| a.saturating_add_signed(b as i16));
    add_4 = |a, b, operation| each_4(a, b, u32::wrapping_add);

    subtract_1 = |a, b, operation| each_1(a, b, u8::wrapping_sub);
    subtract_1_signed = |a, b, operation| each_1(a, b, |a, b| (a as i8).saturating_sub(b as i8) as u8);
    subtract_1_unsigned = |a, b, operation| each_1(a, b, u8::saturating_sub);
    subtract_1_mixed = |a, b, operation| {
        each_1(a, b, |a, b| (i16::from(a) - i16::from(b as i8)).clamp(0, 0xff) as u8)
    };
    subtract_2 = |a, b, operation| each_2(a, b, u16::wrapping_sub);
    subtract_2_signed = |a, b, operation| each_2(a, b, |a, b| (a as i16).saturating_sub(b as i16) as u16);
    subtract_2_unsigned = |a, b, operation| each_2(a, b, u16::saturating_sub);
    subtract_2_mixed = |a, b, operation| {
        each_2(a, b, |a, b| (i32::from(a) - i32::from(b as i16)).clamp(0, 0xffff) as u16)
    };
    subtract_4 = |a, b, operation| each_4(a, b, u32::wrapping_sub);

    average_1 = |a, b, operation| each_1(a, b, |a, b| halve_to_odd(u32::from(a) + u32::from(b)) as u8);
    average_1_away = |a, b, operation| each_1(a, b, |a, b| ((u32::from(a) + u32::from(b) + 1) >> 1) as u8);
    average_2 = |a, b, operation| each_2(a, b, |a, b| halve_to_odd(u32::from(a) + u32::from(b)) as u16);
    average_2_away = |a, b, operation| each_2(a, b, |a, b| ((u32::from(a) + u32::from(b) + 1) >> 1) as u16);
    average_subtract_1 = |a, b, operation| {
        each_1(a, b, |a, b| halve_to_odd(u32::from(a).wrapping_sub(u32::from(b)) & 0x1ff) as u8)
    };
    average_subtract_2 = |a, b, operation| {
        each_2(a, b, |a, b| halve_to_odd(u32::from(a).wrapping_sub(u32::from(b)) & 0x1_ffff) as u16)
    };

    equal_1 = |a, b, operation| each_1(a, b, |a, b| all_ones(a == b));
    equal_2 = |a, b, operation| each_2(a, b, |a, b| all_ones(a == b));
    equal_4 = |a, b, operation| each_4(a, b, |a, b| all_ones(a == b));
    greater_1 = |a, b, operation| each_1(a, b, |a, b| all_ones(a as i8 > b as i8));
    greater_2 = |a, b, operation| each_2(a, b, |a, b| all_ones(a as i16 > b as i16));
    greater_4 = |a, b, operation| each_4(a, b, |a, b| all_ones(a as i32 > b as i32));

    minimum_1 = |a, b, operation| each_1(a, b, u8::min);
    maximum_1 = |a, b, operation| each_1(a, b, u8::max);
    minimum_2 = |a, b, operation| each_2(a, b, |a, b| (a as i16).min(b as i16) as u16);
    maximum_2 = |a, b, operation| each_2(a, b, |a, b| (a as i16).max(b as i16) as u16);
    sum_absolute_difference = |a, b, operation| {
        a.to_le_bytes().iter().zip(b.to_le_bytes()).map(|(a, b)| u64::from(a.abs_diff(b))).sum()
    };

    // The shifted operand saturates, and so does the sum.
    shift_left_add_2 = |a, b, operation| {
        each_2(a, b, |a, b| {
            let shifted = i32::from(a as i16) << (operation.immediate & 3);
            saturate_2(saturate_2(shifted) + i32::from(b as i16)) as u16
        })
    };
    shift_right_add_2 = |a, b, operation| {
        each_2(a, b, |a, b| {
            let shifted = i32::from(a as i16) >> (operation.immediate & 3);
            saturate_2(shifted + i32::from(b as i16)) as u16
        })
    };
    multiply_shift_right = |a, b, operation| {
        each_2(a, b, |a, b| ((i32::from(a as i16) * i32::from(b as i16)) >> (operation.immediate & 31)) as u16)
    };
    multiply_shift_right_unsigned = |a, b, operation| {
        each_2(a, b, |a, b| ((u32::from(a) * u32::from(b)) >> (operation.immediate & 31)) as u16)
    };
    multiply_left = |a, b, operation| multiply(a, b, 1);
    multiply_right = |a, b, operation| multiply(a, b, 0);

    mix_1_left = |a, b, operation| a & 0xff00_ff00_ff00_ff00 | b >> 8 & 0x00ff_00ff_00ff_00ff;
    mix_1_right = |a, b, operation| a << 8 & 0xff00_ff00_ff00_ff00 | b & 0x00ff_00ff_00ff_00ff;
    mix_2_left = |a, b, operation| a & 0xffff_0000_ffff_0000 | b >> 16 & 0x0000_ffff_0000_ffff;
    mix_2_right = |a, b, operation| a << 16 & 0xffff_0000_ffff_0000 | b & 0x0000_ffff_0000_ffff;
    mix_4_left = |a, b, operation| a & 0xffff_ffff_0000_0000 | b >> 32;
    mix_4_right = |a, b, operation| a << 32 | b & 0xffff_ffff;

    pack_2_signed = |a, b, operation| {
        pack_2(a, b, |element| element.clamp(i16::from(i8::MIN), i16::from(i8::MAX)) as u8)
    };
    pack_2_unsigned = |a, b, operation| pack_2(a, b, |element| element.clamp(0, 0xff) as u8);
    pack_4_signed = |a, b, operation| {
        let [a, b] = [words(a), words(b)];
        of_pairs([a[0], a[1], b[0], b[1]].map(|element| saturate_2(element as i32) as u16))
    };
    unpack_1_high = |a, b, operation| interleave_1((a >> 32) as u32, (b >> 32) as u32);
    unpack_1_low = |a, b, operation| interleave_1(a as u32, b as u32);
    unpack_2_high = |a, b, operation| interleave_2((a >> 32) as u32, (b >> 32) as u32);
    unpack_2_low = |a, b, operation| interleave_2(a as u32, b as u32);
    unpack_4_high = |a, b, operation| a & 0xffff_ffff_0000_0000 | b >> 32;
    unpack_4_low = |a, b, operation| a << 32 | b & 0xffff_ffff;

    // The count is in r2 for right shifts, in r3 for left shifts.
    shift_right_2 = |count, value, operation| shift_right_pairs(value, count);
    shift_right_2_unsigned = |count, value, operation| shift_right_pairs_unsigned(value, count);
    shift_right_4 = |count, value, operation| shift_right_words(value, count);
    shift_right_4_unsigned = |count, value, operation| shift_right_words_unsigned(value, count);
    shift_left_2 = |value, count, operation| shift_left_pairs(value, count);
    shift_left_4 = |value, count, operation| shift_left_words(value, count);
}

of_third! {
    shift_right_2_immediate = |value, operation| shift_right_pairs(value, operation.immediate);
    shift_right_2_unsigned_immediate = |value, operation| shift_right_pairs_unsigned(value, operation.immediate);
    shift_right_4_immediate = |value, operation| shift_right_words(value, operation.immediate);
    shift_right_4_unsigned_immediate = |value, operation| shift_right_words_unsigned(value, operation.immediate);
    zero_index_1_left = |value, operation| index(value.to_be_bytes().iter().position(|&byte| byte == 0), 8);
    zero_index_1_right = |value, operation| index(value.to_le_bytes().iter().position(|&byte| byte == 0), 8);
    zero_index_2_left = |value, operation| index(pairs(value).iter().rev().position(|&pair| pair == 0), 4);
    zero_index_2_right = |value, operation| index(pairs(value).iter().position(|&pair| pair == 0), 4);
}

of_second! {
    shift_left_2_immediate = |value, operation| shift_left_pairs(value, operation.immediate);
    shift_left_4_immediate = |value, operation| shift_left_words(value, operation.immediate);
    mux_bytes = |value, operation| permute_bytes(value, operation.immediate);
    mux_pairs = |value, operation| {
        let elements = pairs(value);
        of_pairs(std::array::from_fn(|index| elements[(operation.immediate >> (2 * index) & 3) as usize]))
    };
}

fn saturate_2(value: i32) -> i32 {
    value.clamp(i32::from(i16::MIN), i32::from(i16::MAX))
}

/// `pmpy2`: the products of the odd (`first` 1) or even (0) pairs.
fn multiply(a: u64, b: u64, first: usize) -> u64 {
    let (a, b) = (pairs(a), pairs(b));
    let product = |index: usize| (i32::from(a[index] as i16) * i32::from(b[index] as i16)) as u32;
    of_words([product(first), product(first + 2)])
}

fn pack_2(a: u64, b: u64, narrow: impl Fn(i16) -> u8) -> u64 {
    let (a, b) = (pairs(a), pairs(b));
    u64::from_le_bytes(std::array::from_fn(|index| {
        narrow(if index < 4 { a[index] } else { b[index - 4] } as i16)
    }))
}

/// The bytes of two words in turn, those of `a` above those of `b`.
fn interleave_1(a: u32, b: u32) -> u64 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u64::from_le_bytes(std::array::from_fn(|index| {
        if index % 2 == 0 {
            b[index / 2]
        } else {
            a[index / 2]
        }
    }))
}

/// The pairs of two words in turn, those of `a` above those of `b`.
fn interleave_2(a: u32, b: u32) -> u64 {
    of_pairs([b as u16, a as u16, (b >> 16) as u16, (a >> 16) as u16])
}

fn shift_right_pairs(value: u64, count: u64) -> u64 {
    of_pairs(pairs(value).map(|element| (element as i16 >> count.min(15)) as u16))
}

fn shift_right_pairs_unsigned(value: u64, count: u64) -> u64 {
    of_pairs(pairs(value).map(|element| if count < 16 { element >> count } else { 0 }))
}

fn shift_right_words(value: u64, count: u64) -> u64 {
    of_words(words(value).map(|element| (element as i32 >> count.min(31)) as u32))
}

fn shift_right_words_unsigned(value: u64, count: u64) -> u64 {
    of_words(words(value).map(|element| if count < 32 { element >> count } else { 0 }))
}

fn shift_left_pairs(value: u64, count: u64) -> u64 {
    of_pairs(pairs(value).map(|element| if count < 16 { element << count } else { 0 }))
}

fn shift_left_words(value: u64, count: u64) -> u64 {
    of_words(words(value).map(|element| if count < 32 { element << count } else { 0 }))
}

/// `mux1`: one of five permutations of the bytes (manual volume 3, page of `mux`).
fn permute_bytes(value: u64, code: u64) -> u64 {
    /// For each permutation, the source byte of every result byte, least significant first.
    const BROADCAST: [usize; 8] = [0; 8];
    const MIX: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];
    const SHUFFLE: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];
    const ALTERNATE: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
    const REVERSE: [usize; 8] = [7, 6, 5, 4, 3, 2, 1, 0];
    let sources = match code {
        0x0 => BROADCAST,
        0x8 => MIX,
        0x9 => SHUFFLE,
        0xa => ALTERNATE,
        _ => REVERSE,
    };
    let bytes = value.to_le_bytes();
    u64::from_le_bytes(sources.map(|source| bytes[source]))
}

/// The index of the first zero element, or the number of elements if there is none.
fn index(position: Option<usize>, elements: u64) -> u64 {
    position.map_or(elements, |position| position as u64)
}
