//! Unwind descriptors as records.
//!
//! Formats: Itanium Software Conventions and Runtime Architecture Guide, chapter 11 and appendix B. A descriptor area
//! is a row of regions, prologues and bodies, each a header and its records; what a byte means depends on which of the
//! two it stands in. [`Records`] decodes them in order and stops at the first that is none.

use super::state::Saved;

/// Where a prologue puts a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A general register of the frame.
    General(u8),
    /// A branch register.
    Branch(u8),
    /// A floating-point register.
    Floating(u8),
    /// Memory at this distance from the caller's stack pointer.
    CallerStack(i64),
    /// Memory at this distance from the stack pointer.
    Stack(i64),
    /// Where it was at the procedure's entry: it has been restored.
    Itself,
}

/// One record. Times are instruction slots from the beginning of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A region begins.
    Region {
        /// Whether it is a body; a prologue otherwise.
        is_body: bool,
        /// Its slots.
        slots: u64,
        /// Of a prologue with saves in consecutive general registers: which (8 rp, 4 ar.pfs, 2 psp, 1 pr), and the
        /// first register.
        saves: Option<(u8, u8)>,
    },
    /// The stack pointer goes down by a number of bytes.
    FixedFrame {
        /// When.
        slot: u64,
        /// By how much.
        bytes: u64,
    },
    /// When a register is saved.
    When(Saved, u64),
    /// Where a register is saved, and when if not at the end of the prologue.
    At(Saved, Place, Option<u64>),
    /// Where registers are saved under a predicate: nobody knows whether they are.
    Predicated,
    /// Where the area for spilled registers ends, from the caller's stack pointer.
    SpillBase(i64),
    /// Which kind of register each slot of the prologue spills: 1 floating, 2 general, 3 branch.
    SpillMask(Vec<u8>),
    /// Preserved registers in the spill area, as masks: f2 to f5 and f16 to f31, r4 to r7, b1 to b5.
    Spilled {
        /// Bit 0 is f2.
        floating: u32,
        /// Bit 0 is r4.
        general: u8,
        /// Bit 0 is b1.
        branch: u8,
    },
    /// Preserved registers in consecutive general registers: r4 to r7 and b1 to b5 as masks, the first register.
    Moved {
        /// Bit 0 is r4.
        general: u8,
        /// Bit 0 is b1.
        branch: u8,
        /// The first register that holds one.
        first: u8,
    },
    /// The frame is that of a system's own kind: an interruption, a signal.
    Abi(u8, u8),
    /// From so many slots before the body's end the stack is the caller's; the region's end takes back prologues.
    Epilogue {
        /// Slots before the end.
        slots: u64,
        /// Prologues less one.
        count: u64,
    },
    /// Gives the state a number.
    LabelState(u64),
    /// Returns to the state of a number.
    CopyState(u64),
}

/// What the record formats P3, P7, P8 and X1 to X4 number: the registers that have save locations of their own.
const P3: [Saved; 12] = [
    Saved::StackPointer,
    Saved::ReturnAddress,
    Saved::FunctionState,
    Saved::Predicates,
    Saved::NatCollection,
    Saved::LoopCount,
    Saved::ReturnAddress,
    Saved::RseNat,
    Saved::BackingStore,
    Saved::BackingStoreWrite,
    Saved::FloatStatus,
    Saved::PrimaryNat,
];
/// P7's records come in pairs of a time and a place.
const P7: [Saved; 8] = [
    Saved::StackPointer,
    Saved::StackPointer,
    Saved::ReturnAddress,
    Saved::FunctionState,
    Saved::Predicates,
    Saved::LoopCount,
    Saved::NatCollection,
    Saved::FloatStatus,
];
/// P8's first records are places on the stack.
const P8_STACK: [Saved; 6] = [
    Saved::ReturnAddress,
    Saved::FunctionState,
    Saved::Predicates,
    Saved::LoopCount,
    Saved::NatCollection,
    Saved::FloatStatus,
];
/// Then time, place by the caller's stack pointer and place on the stack of each of these.
const P8_TRIPLES: [Saved; 4] = [
    Saved::BackingStore,
    Saved::BackingStoreWrite,
    Saved::RseNat,
    Saved::PrimaryNat,
];
/// The special registers of the general formats.
const SPECIAL: [Saved; 11] = [
    Saved::Predicates,
    Saved::StackPointer,
    Saved::PrimaryNat,
    Saved::ReturnAddress,
    Saved::BackingStore,
    Saved::BackingStoreWrite,
    Saved::RseNat,
    Saved::NatCollection,
    Saved::FloatStatus,
    Saved::FunctionState,
    Saved::LoopCount,
];

/// The distance that stands behind a `psp`-relative offset: from 16 bytes above the caller's stack pointer downwards.
fn below_caller(offset: u64) -> Place {
    Place::CallerStack(16_i64.wrapping_sub((offset as i64).wrapping_mul(4)))
}

fn on_stack(offset: u64) -> Place {
    Place::Stack((offset as i64).wrapping_mul(4))
}

/// The records of a descriptor area.
pub struct Records<'a> {
    bytes: &'a [u8],
    is_body: bool,
    slots: u64,
}

impl<'a> Records<'a> {
    /// Of an area's bytes.
    pub fn new(bytes: &'a [u8]) -> Records<'a> {
        Records {
            bytes,
            is_body: false,
            slots: 0,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    /// A number in seven bits a byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn region(&mut self, is_body: bool, slots: u64, saves: Option<(u8, u8)>) -> Record {
        (self.is_body, self.slots) = (is_body, slots);
        Record::Region {
            is_body,
            slots,
            saves,
        }
    }

    fn header(&mut self, first: u8) -> Option<Record> {
        Some(match first {
            0x00..=0x3f => self.region(first & 0x20 != 0, u64::from(first & 0x1f), None),
            0x40..=0x47 => {
                let second = self.byte()?;
                let slots = self.number()?;
                let mask = (first & 7) << 1 | second >> 7;
                self.region(false, slots, Some((mask, second & 0x7f)))
            }
            0x60 | 0x61 => {
                let slots = self.number()?;
                self.region(first & 1 != 0, slots, None)
            }
            _ => return None,
        })
    }

    fn body(&mut self, first: u8) -> Option<Record> {
        let state = |is_copy, label| match is_copy {
            true => Record::CopyState(label),
            false => Record::LabelState(label),
        };
        Some(match first {
            0x80..=0xbf => state(first & 0x20 != 0, u64::from(first & 0x1f)),
            0xc0..=0xdf => Record::Epilogue {
                slots: self.number()?,
                count: u64::from(first & 0x1f),
            },
            0xe0 => Record::Epilogue {
                slots: self.number()?,
                count: self.number()?,
            },
            0xf0 | 0xf8 => state(first & 8 != 0, self.number()?),
            _ => return self.general(first),
        })
    }

    fn prologue(&mut self, first: u8) -> Option<Record> {
        Some(match first {
            0x80..=0x9f => Record::Spilled {
                floating: 0,
                general: 0,
                branch: first & 0x1f,
            },
            0xa0..=0xaf => {
                let second = self.byte()?;
                Record::Moved {
                    general: 0,
                    branch: (first & 0xf) << 1 | second >> 7,
                    first: second & 0x7f,
                }
            }
            0xb0..=0xb7 => {
                let second = self.byte()?;
                let kind = (first & 7) << 1 | second >> 7;
                let register = second & 0x7f;
                let place = if kind == 6 {
                    Place::Branch(register)
                } else {
                    Place::General(register)
                };
                Record::At(*P3.get(usize::from(kind))?, place, None)
            }
            0xb8 => self.spill_mask()?,
            0xb9 => {
                let [high, middle, low] = [self.byte()?, self.byte()?, self.byte()?];
                Record::Spilled {
                    floating: u32::from(high & 0xf) << 16 | u32::from(middle) << 8 | u32::from(low),
                    general: high >> 4,
                    branch: 0,
                }
            }
            0xc0..=0xdf => {
                let (mask, is_general) = (first & 0xf, first & 0x10 != 0);
                Record::Spilled {
                    floating: if is_general { 0 } else { u32::from(mask) },
                    general: if is_general { mask } else { 0 },
                    branch: 0,
                }
            }
            0xe0..=0xef => {
                let value = self.number()?;
                let saved = P7[usize::from(first & 0xf) >> 1];
                match first & 0xf {
                    0 => Record::FixedFrame {
                        slot: value,
                        bytes: self.number()?.wrapping_mul(16),
                    },
                    2 => Record::SpillBase(16_i64.wrapping_sub((value as i64).wrapping_mul(4))),
                    3 => Record::At(saved, on_stack(value), None),
                    1 | 4 | 6 | 8 | 10 | 12 | 14 => Record::When(saved, value),
                    _ => Record::At(saved, below_caller(value), None),
                }
            }
            0xf0 => {
                let (kind, value) = (usize::from(self.byte()?), self.number()?);
                match kind {
                    1..=6 => Record::At(P8_STACK[kind - 1], on_stack(value), None),
                    7..=18 => {
                        let saved = P8_TRIPLES[(kind - 7) / 3];
                        match (kind - 7) % 3 {
                            0 => Record::When(saved, value),
                            1 => Record::At(saved, below_caller(value), None),
                            _ => Record::At(saved, on_stack(value), None),
                        }
                    }
                    19 => Record::When(Saved::PrimaryNat, value),
                    _ => return None,
                }
            }
            0xf1 => {
                let (mask, register) = (self.byte()?, self.byte()?);
                Record::Moved {
                    general: mask & 0xf,
                    branch: 0,
                    first: register & 0x7f,
                }
            }
            0xff => Record::Abi(self.byte()?, self.byte()?),
            _ => return self.general(first),
        })
    }

    /// Two bits for each slot of the prologue, the highest first.
    fn spill_mask(&mut self) -> Option<Record> {
        let size = usize::try_from(self.slots.div_ceil(4)).ok()?;
        let (mask, rest) = self.bytes.split_at_checked(size)?;
        self.bytes = rest;
        let kind = |slot: usize| mask[slot / 4] >> (6 - slot % 4 * 2) & 3;
        Some(Record::SpillMask((0..self.slots as usize).map(kind).collect()))
    }

    /// Formats X1 to X4, which both regions have.
    fn general(&mut self, first: u8) -> Option<Record> {
        match first {
            0xf9 => {
                let register = self.byte()?;
                let (slot, offset) = (self.number()?, self.number()?);
                let place = if register & 0x80 != 0 {
                    on_stack(offset)
                } else {
                    below_caller(offset)
                };
                Some(Record::At(any_register(register)?, place, Some(slot)))
            }
            0xfa => {
                let (register, target) = (self.byte()?, self.byte()?);
                let slot = self.number()?;
                let number = target & 0x7f;
                let place = match (register & 0x80 != 0, target & 0x80 != 0) {
                    (true, _) => Place::Branch(number),
                    (false, true) => Place::Floating(number),
                    (false, false) if number == 0 => Place::Itself,
                    (false, false) => Place::General(number),
                };
                Some(Record::At(any_register(register)?, place, Some(slot)))
            }
            0xfb | 0xfc => {
                let operands = if first == 0xfb { 2 } else { 3 };
                let numbers = if first == 0xfb { 2 } else { 1 };
                for _ in 0..operands {
                    self.byte()?;
                }
                for _ in 0..numbers {
                    self.number()?;
                }
                Some(Record::Predicated)
            }
            _ => None,
        }
    }
}

/// A register as the general formats number it.
fn any_register(bits: u8) -> Option<Saved> {
    let number = bits & 0x1f;
    Some(match bits >> 5 & 3 {
        0 => Saved::General(number),
        1 => Saved::Floating(number),
        2 => Saved::Branch(number),
        _ => *SPECIAL.get(usize::from(number))?,
    })
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let first = self.byte()?;
        let record = match first {
            0x00..=0x7f => self.header(first),
            _ if self.is_body => self.body(first),
            _ => self.prologue(first),
        };
        if record.is_none() {
            self.bytes = &[];
        }
        record
    }
}
