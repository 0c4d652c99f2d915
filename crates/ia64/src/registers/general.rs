//! The general registers with their NaT bits, as the current frame sees them.
//!
//! Register `r` of the current frame always stands at index `r`: the register stack engine moves the
//! contents on a call, a return and a rotation, which are rarer than register reads by far. A deferred
//! exception is rare too, so the NaT bits are one 128-bit set, and reading operands costs a single test
//! of "any NaT at all" on the common path.

use serde::{Deserialize, Serialize};

/// 128 general registers and their NaT bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct GeneralRegisters {
    /// By register number; twice as many as there are, so that any byte is a valid index.
    #[serde(with = "serde_big_array::BigArray")]
    values: [u64; 256],
    #[serde(with = "crate::registers::two_words")]
    nats: u128,
}

impl GeneralRegisters {
    /// Where the values start, in bytes from its own start.
    pub(crate) const VALUES: usize = std::mem::offset_of!(GeneralRegisters, values);
    /// Where the NaT bits start.
    pub(crate) const NATS: usize = std::mem::offset_of!(GeneralRegisters, nats);

    /// All registers zero, no NaT.
    pub fn new() -> GeneralRegisters {
        GeneralRegisters {
            values: [0; 256],
            nats: 0,
        }
    }

    /// The value of a register.
    #[inline(always)]
    pub fn value(&self, register: u8) -> u64 {
        self.values[usize::from(register)]
    }

    /// The NaT bit of a register.
    #[inline(always)]
    pub fn nat(&self, register: u8) -> bool {
        self.nats >> (register & 127) & 1 != 0
    }

    /// Whether any register holds a NaT.
    #[inline(always)]
    pub fn any_nat(&self) -> bool {
        self.nats != 0
    }

    /// Writes a register and clears its NaT bit.
    #[inline(always)]
    pub fn set(&mut self, register: u8, value: u64) {
        self.values[usize::from(register)] = value;
        if self.nats != 0 {
            self.clear_nat(register);
        }
    }

    /// Writes a register and its NaT bit.
    #[inline]
    pub fn set_with_nat(&mut self, register: u8, value: u64, nat: bool) {
        self.values[usize::from(register)] = value;
        self.nats = self.nats & !(1 << (register & 127)) | u128::from(nat) << (register & 127);
    }

    #[cold]
    fn clear_nat(&mut self, register: u8) {
        self.nats &= !(1 << (register & 127));
    }

    /// Forgets the NaT bits of the registers above `last`, which belong to no frame.
    #[inline]
    pub(crate) fn clear_nats_above(&mut self, last: u32) {
        if self.nats != 0 && last < 127 {
            self.nats &= (1 << (last + 1)) - 1;
        }
    }

    /// Copies `count` registers, with their NaT bits, from `source` on to `target` on; the ranges may overlap.
    #[inline]
    pub(crate) fn copy(&mut self, source: usize, target: usize, count: usize) {
        copy_within(&mut self.values, source, target, count);
        if self.nats != 0 && count > 0 {
            let mask = u128::MAX >> (128 - count);
            let moved = self.nats >> source & mask;
            self.nats = self.nats & !(mask << target) | moved << target;
        }
    }

    /// The values of `count` registers from `first` on.
    #[inline]
    pub(crate) fn slice(&self, first: usize, count: usize) -> &[u64] {
        &self.values[first..first + count]
    }

    /// The values of some registers from `first` on, and of what stands behind the last one.
    #[inline(always)]
    pub(crate) fn chunk<const N: usize>(&self, first: usize) -> [u64; N] {
        *self.values[first..]
            .first_chunk()
            .expect("there are twice as many")
    }

    /// Writes some registers from `first` on, none of which has its NaT bit set.
    #[inline(always)]
    pub(crate) fn set_chunk<const N: usize>(&mut self, first: usize, values: [u64; N]) {
        *self.values[first..]
            .first_chunk_mut()
            .expect("there are twice as many") = values;
    }

    /// Writes registers from `first` on, none of which has its NaT bit set.
    #[inline]
    pub(crate) fn set_slice(&mut self, first: usize, values: &[u64]) {
        copy_values(&mut self.values[first..first + values.len()], values);
    }

    /// Rotates the values of the `count` registers from r32 on upwards by `distance`.
    pub(crate) fn rotate_up(&mut self, count: usize, distance: usize) {
        if count == 0 || distance == 0 {
            return;
        }
        if distance == 1 {
            let last = self.values[31 + count];
            // Most rotating parts are small; their size is a multiple of eight.
            match count {
                8 => self.set_chunk(33, self.chunk::<7>(32)),
                16 => self.set_chunk(33, self.chunk::<15>(32)),
                _ => self.values.copy_within(32..31 + count, 33),
            }
            self.values[32] = last;
        } else {
            self.values[32..32 + count].rotate_right(distance);
        }
        if self.nats != 0 {
            let mask = u128::MAX >> (128 - count);
            let field = self.nats >> 32 & mask;
            let rotated = (field << distance | field >> (count - distance)) & mask;
            self.nats = self.nats & !(mask << 32) | rotated << 32;
        }
    }

    /// Exchanges r16 to r31, with their NaT bits, with another bank.
    pub(crate) fn exchange_bank(&mut self, values: &mut [u64; 16], nats: &mut u16) {
        self.values[16..32].swap_with_slice(values);
        let current = (self.nats >> 16) as u16;
        self.nats = self.nats & !(0xffff << 16) | u128::from(*nats) << 16;
        *nats = current;
    }
}

/// Copies values of one length. Frames are small: a function that copies any number of bytes takes longer to begin
/// than to copy most of them.
#[inline]
pub(crate) fn copy_values(target: &mut [u64], source: &[u64]) {
    match source.len() {
        0 => {}
        1 => target[0] = source[0],
        2..4 => put(target, ends::<2>(source)),
        4..8 => put(target, ends::<4>(source)),
        8..=16 => put(target, ends::<8>(source)),
        _ => target.copy_from_slice(source),
    }
}

/// As [`copy_values`], within an array.
#[inline]
fn copy_within(values: &mut [u64; 256], source: usize, target: usize, count: usize) {
    let (from, to) = (source..source + count, target..target + count);
    match count {
        0 => {}
        1 => values[target] = values[source],
        2..4 => {
            let moved = ends::<2>(&values[from]);
            put(&mut values[to], moved);
        }
        4..8 => {
            let moved = ends::<4>(&values[from]);
            put(&mut values[to], moved);
        }
        8..=16 => {
            let moved = ends::<8>(&values[from]);
            put(&mut values[to], moved);
        }
        _ => values.copy_within(from, target),
    }
}

/// The first and the last values of at least `N`; they meet or overlap where there are no more than twice as many.
#[inline(always)]
fn ends<const N: usize>(values: &[u64]) -> [[u64; N]; 2] {
    let first = *values.first_chunk().expect("at least as many");
    let last = *values.last_chunk().expect("at least as many");
    [first, last]
}

#[inline(always)]
fn put<const N: usize>(values: &mut [u64], [first, last]: [[u64; N]; 2]) {
    *values.first_chunk_mut().expect("at least as many") = first;
    *values.last_chunk_mut().expect("at least as many") = last;
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
        fn a_copy_carries_the_nat_bits(
            source in 32usize..128, target in 32usize..128, length in 0usize..96, nats: u128,
        ) {
            let count = length.min(128 - source).min(128 - target);
            let mut registers = GeneralRegisters::new();
            for register in 0..128u8 {
                registers.set_with_nat(register, u64::from(register), nats >> register & 1 != 0);
            }
            registers.copy(source, target, count);
            for register in 0..128usize {
                let is_copied = (target..target + count).contains(&register);
                let from = if is_copied { register - target + source } else { register };
                prop_assert_eq!(registers.value(register as u8), from as u64);
                prop_assert_eq!(registers.nat(register as u8), nats >> from & 1 != 0);
            }
        }
    }
}
