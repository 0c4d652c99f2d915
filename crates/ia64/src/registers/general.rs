//! The general registers with their NaT bits, as the current frame sees them.
//!
//! Register `r` of the current frame stands at index `r`, a stacked one so many places further as the *base* says: a
//! call and a return change the base, and no register is copied. Below the frame stand those of the callers that are
//! still at hand. A deferred exception is rare, so the NaT bits of the frame's registers are one 128-bit set, and
//! reading operands costs a single test of "any NaT at all" on the common path.

use std::mem::offset_of;

use serde::{Deserialize, Serialize};

use crate::registers::frame::{self, STACKED_REGISTERS};

/// The first stacked register.
const FIRST_STACKED: usize = frame::FIRST_STACKED as usize;
/// How many registers there are.
const REGISTERS: usize = 128;
/// How many stacked registers the file has for callers and the frame together, at most.
pub(crate) const CAPACITY_MAX: u32 = 384;
/// The largest base: twice what callers can have at hand and more, so that registers are seldom moved. It also decides
/// where a processor's floating-point registers lie. They must not be a multiple of 4 kB behind r0 to r31: hosts guess
/// by the low twelve bits of an address whether a load has to wait for a store.
const BASE_MAX: usize = 733;
/// The base after they were moved: it can go both ways from there. Callers have a few more places than the file has
/// registers, since an environment may put a small frame on top of as many as there can be, as for a signal's handler.
const BASE_MIDDLE: usize = CAPACITY_MAX as usize + 16;
/// Places of the file: whatever byte names a register and whatever the base, there is one.
const PLACES: usize = BASE_MAX + 256;

/// Registers that a byte can name: half of them there are.
const NAMES: usize = 256;

const _: () = assert!(BASE_MIDDLE + 2 * STACKED_REGISTERS as usize <= BASE_MAX);

/// 128 general registers and their NaT bits, and the callers' registers below the frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
#[repr(C)]
pub struct GeneralRegisters {
    /// r0 to r31, the callers' stacked registers and those of the frame.
    values: [u64; PLACES],
    nats: u128,
    /// How many places behind its number a stacked register stands.
    base: u64,
    /// Where each register stands with the base that follows: to look there costs less than to tell static registers
    /// from stacked ones at each operand.
    places: [u16; NAMES],
    placed: u64,
    /// Whether a NaT bit is set: one word to look at.
    has_nat: u64,
}

/// What a saved state has of the registers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename = "GeneralRegisters")]
struct Saved {
    #[serde(with = "serde_big_array::BigArray")]
    values: [u64; PLACES],
    #[serde(with = "crate::registers::two_words")]
    nats: u128,
    base: u64,
}

impl From<Saved> for GeneralRegisters {
    fn from(Saved { values, nats, base }: Saved) -> GeneralRegisters {
        let mut registers = GeneralRegisters {
            values,
            base,
            ..GeneralRegisters::new()
        };
        registers.set_nats(nats);
        registers.find_places();
        registers
    }
}

impl From<GeneralRegisters> for Saved {
    fn from(
        GeneralRegisters {
            values, nats, base, ..
        }: GeneralRegisters,
    ) -> Saved {
        Saved { values, nats, base }
    }
}

impl GeneralRegisters {
    /// Where the values start, in bytes from its own start.
    pub(crate) const VALUES: usize = offset_of!(GeneralRegisters, values);
    /// Where the NaT bits start.
    pub(crate) const NATS: usize = offset_of!(GeneralRegisters, nats);
    /// Where the word is that is not zero if a NaT bit is set.
    pub(crate) const HAS_NAT: usize = offset_of!(GeneralRegisters, has_nat);
    /// Where the base stands.
    pub(crate) const BASE: usize = offset_of!(GeneralRegisters, base);
    /// The largest base that a call may leave behind.
    pub(crate) const BASE_MAX: usize = BASE_MAX;

    /// All registers zero, no NaT.
    pub fn new() -> GeneralRegisters {
        let mut registers = GeneralRegisters {
            values: [0; PLACES],
            nats: 0,
            base: BASE_MIDDLE as u64,
            places: std::array::from_fn(|register| register as u16),
            placed: 0,
            has_nat: 0,
        };
        registers.find_places();
        registers
    }

    /// Whether registers could be a processor's of whose callers so many registers are at hand.
    pub(crate) fn is_valid(&self, callers: u32) -> bool {
        u64::from(callers) <= self.base && self.base <= BASE_MAX as u64
    }

    /// Where a register stands.
    #[inline(always)]
    fn place(&self, register: u8) -> usize {
        let place = usize::from(self.places[usize::from(register)]);
        // SAFETY: at the start a register stands at its number, which is a byte; `find_places` puts r32 to r127 no
        // further behind that than the largest base. Nothing else writes the table.
        unsafe { std::hint::assert_unchecked(place < PLACES) };
        place
    }

    /// Finds out where registers stand, if the base is another than it was.
    #[inline(always)]
    pub(crate) fn find_places(&mut self) {
        if self.placed != self.base {
            self.placed = self.base;
            let base = self.base.min(BASE_MAX as u64) as u16;
            let stacked = FIRST_STACKED as u16..REGISTERS as u16;
            for (place, register) in self.places[FIRST_STACKED..REGISTERS].iter_mut().zip(stacked) {
                *place = register + base;
            }
        }
    }

    /// The value of a register.
    #[inline(always)]
    pub fn value(&self, register: u8) -> u64 {
        self.values[self.place(register)]
    }

    /// The NaT bit of a register.
    #[inline(always)]
    pub fn nat(&self, register: u8) -> bool {
        self.nats >> (register & 127) & 1 != 0
    }

    /// Whether any register holds a NaT.
    #[inline(always)]
    pub fn any_nat(&self) -> bool {
        self.has_nat != 0
    }

    #[inline]
    fn set_nats(&mut self, nats: u128) {
        self.nats = nats;
        self.has_nat = u64::from(nats != 0);
    }

    /// Writes a register and clears its NaT bit.
    #[inline(always)]
    pub fn set(&mut self, register: u8, value: u64) {
        // First, so that who has just looked at the bits looks once.
        if self.any_nat() {
            self.clear_nat(register);
        }
        self.values[self.place(register)] = value;
    }

    /// Writes a register and its NaT bit.
    #[inline]
    pub fn set_with_nat(&mut self, register: u8, value: u64, nat: bool) {
        self.values[self.place(register)] = value;
        self.set_nats(self.nats & !(1 << (register & 127)) | u128::from(nat) << (register & 127));
    }

    #[cold]
    fn clear_nat(&mut self, register: u8) {
        self.set_nats(self.nats & !(1 << (register & 127)));
    }

    /// Forgets the NaT bits of the registers above `last`, which belong to no frame.
    #[inline]
    pub(crate) fn clear_nats_above(&mut self, last: u32) {
        if self.any_nat() && last < 127 {
            self.set_nats(self.nats & (1 << (last + 1)) - 1);
        }
    }

    /// The value of the caller's register `distance` below the frame, counted from 1.
    pub(crate) fn below(&self, distance: u32) -> u64 {
        self.values[self.place_below(distance)]
    }

    /// The values of `count` of the callers' registers, the first one `distance` below the frame.
    pub(crate) fn callers(&self, distance: u32, count: u32) -> &[u64] {
        let first = self.place_below(distance);
        &self.values[first..first + count as usize]
    }

    /// Writes registers of the frame, none of whose NaT bits is set, from the `number`th on downwards, the first
    /// stacked one counted as 1.
    pub(crate) fn set_down(&mut self, number: u32, values: impl Iterator<Item = u64>) {
        let end = FIRST_STACKED + self.base as usize + number as usize;
        let places = self.values[..end].iter_mut().rev();
        places.zip(values).for_each(|(place, value)| *place = value);
    }

    /// Writes the caller's register `distance` below the frame, counted from 1.
    pub(crate) fn set_below(&mut self, distance: u32, value: u64) {
        let place = self.place_below(distance);
        self.values[place] = value;
    }

    fn place_below(&self, distance: u32) -> usize {
        FIRST_STACKED + self.base as usize - distance as usize
    }

    /// Clears `count` registers from the one on that is `distance` behind the frame's first.
    pub(crate) fn clear_from(&mut self, distance: u32, count: u32) {
        let first = FIRST_STACKED + self.base as usize + distance as usize;
        self.values[first..first + count as usize].fill(0);
    }

    /// Makes r32 what was so many registers further, without the NaT bits; so many of the callers' registers are at
    /// hand.
    #[inline]
    pub(crate) fn ascend(&mut self, count: u32, callers: u32) {
        if self.base + u64::from(count) > BASE_MAX as u64 {
            self.move_to_middle(callers);
        }
        self.base += u64::from(count);
        self.find_places();
    }

    /// Makes r32 what was so many registers before, likewise. Registers that are not at hand are as they happen to be.
    #[inline]
    pub(crate) fn descend(&mut self, count: u32, callers: u32) {
        self.make_room(count, callers);
        self.base -= u64::from(count);
        self.find_places();
    }

    /// Sees to it that so many registers have a place below the frame.
    #[inline]
    pub(crate) fn make_room(&mut self, count: u32, callers: u32) {
        if self.base < u64::from(count) {
            self.move_to_middle(callers);
        }
    }

    #[cold]
    fn move_to_middle(&mut self, callers: u32) {
        let (base, callers) = (self.base as usize, (callers as usize).min(BASE_MIDDLE));
        let [from, to] = [base, BASE_MIDDLE].map(|base| FIRST_STACKED + base - callers);
        self.values
            .copy_within(from..from + callers + STACKED_REGISTERS as usize, to);
        self.base = BASE_MIDDLE as u64;
        self.find_places();
    }

    /// Takes the NaT bits of the first `count` stacked registers away, the first one's the lowest bit; those of the
    /// others become theirs.
    pub(crate) fn shift_nats_down(&mut self, count: u32) -> u128 {
        let stacked = self.nats >> FIRST_STACKED;
        let taken = stacked & ((1 << count) - 1);
        self.set_stacked_nats(stacked >> count);
        taken
    }

    /// Puts `count` NaT bits before those of the stacked registers.
    pub(crate) fn shift_nats_up(&mut self, count: u32, before: u128) {
        let stacked = self.nats >> FIRST_STACKED;
        self.set_stacked_nats(stacked << count | before);
    }

    fn set_stacked_nats(&mut self, stacked: u128) {
        self.set_nats(self.nats & ((1 << FIRST_STACKED) - 1) | stacked << FIRST_STACKED);
    }

    /// Rotates the values of the `count` registers from r32 on upwards by `distance`.
    pub(crate) fn rotate_up(&mut self, count: usize, distance: usize) {
        if count == 0 || distance == 0 {
            return;
        }
        let first = self.place(FIRST_STACKED as u8);
        let rotating = &mut self.values[first..first + count];
        if distance == 1 {
            let last = rotating[count - 1];
            // Most rotating parts are small; their size is a multiple of eight.
            match count {
                8 => move_up::<7>(rotating),
                16 => move_up::<15>(rotating),
                _ => rotating.copy_within(..count - 1, 1),
            }
            rotating[0] = last;
        } else {
            rotating.rotate_right(distance);
        }
        if self.any_nat() {
            let mask = u128::MAX >> (128 - count);
            let field = self.nats >> FIRST_STACKED & mask;
            let rotated = (field << distance | field >> (count - distance)) & mask;
            self.set_nats(self.nats & !(mask << FIRST_STACKED) | rotated << FIRST_STACKED);
        }
    }

    /// Exchanges r16 to r31, with their NaT bits, with another bank.
    pub(crate) fn exchange_bank(&mut self, values: &mut [u64; 16], nats: &mut u16) {
        self.values[16..32].swap_with_slice(values);
        let current = (self.nats >> 16) as u16;
        self.set_nats(self.nats & !(0xffff << 16) | u128::from(*nats) << 16);
        *nats = current;
    }
}

/// Moves the first values one place further.
#[inline(always)]
fn move_up<const N: usize>(values: &mut [u64]) {
    let moved: [u64; N] = *values.first_chunk().expect("one more");
    values[1..=N].copy_from_slice(&moved);
}

impl Default for GeneralRegisters {
    fn default() -> Self {
        GeneralRegisters::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rotation_moves_values_and_nats_together(count in 1usize..=96, distance in 0usize..96, nats: u128) {
            let distance = distance % count;
            let mut registers = GeneralRegisters::new();
            for register in 0..128u8 {
                registers.set_with_nat(register, u64::from(register), nats >> register & 1 != 0);
            }
            registers.rotate_up(count, distance);
            for offset in 0..96 {
                let from = if offset < count { (offset + count - distance) % count } else { offset };
                prop_assert_eq!(registers.value(32 + offset as u8), 32 + from as u64);
                prop_assert_eq!(registers.nat(32 + offset as u8), nats >> (32 + from) & 1 != 0);
            }
        }

        #[test]
        fn frames_share_one_stack_wherever_the_file_has_them(steps in prop::collection::vec(-96i32..=96, 1..200)) {
            let mut registers = GeneralRegisters::new();
            // Beside the file: what every register of the stack holds that was written and could be in a frame since,
            // and how far the frame's first one is up.
            let (mut stack, mut first, mut at_hand) = (vec![None; 96], 0, 0);
            for (number, step) in steps.into_iter().enumerate() {
                let value = number as u64 + 1;
                if step >= 0 {
                    registers.ascend(step as u32, at_hand);
                    at_hand = (at_hand + step as u32).min(96);
                    first += step as usize;
                } else {
                    let count = step.unsigned_abs().min(at_hand);
                    registers.descend(count, at_hand);
                    at_hand -= count;
                    first -= count as usize;
                }
                registers.set(32, value);
                stack.resize(first + 96, None);
                stack[first] = Some(value);
                for distance in 1..=at_hand {
                    let expected = stack[first - distance as usize];
                    prop_assert!(expected.is_none_or(|value| value == registers.below(distance)));
                }
                prop_assert!(registers.is_valid(at_hand));
            }
        }

        #[test]
        fn static_registers_stay_however_many_callers_there_are(callers in 0u32..=CAPACITY_MAX + 96) {
            let mut registers = GeneralRegisters::new();
            for register in 1..32 {
                registers.set(register, register.into());
            }
            for _ in 0..20 {
                registers.ascend(60, callers.min(registers.base as u32));
            }
            prop_assert!((1..32).all(|register| registers.value(register) == u64::from(register)));
        }

        #[test]
        fn nat_bits_go_down_with_a_call_and_come_back(count in 0u32..=96, nats: u128) {
            let mut registers = GeneralRegisters::new();
            for register in 0..128u8 {
                registers.set_with_nat(register, 0, nats >> register & 1 != 0);
            }
            let before = registers.clone();
            let taken = registers.shift_nats_down(count);
            for register in 32..128 - count as u8 {
                prop_assert_eq!(registers.nat(register), before.nat(register + count as u8));
            }
            registers.shift_nats_up(count, taken);
            prop_assert_eq!(registers, before);
        }
    }
}
