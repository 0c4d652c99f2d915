//! One decoded instruction, and the word it comes from.
//!
//! Decoding is total: a word that is no instruction decodes to an error that says why, and the chip turns it into an
//! illegal-instruction fault when a thread reaches it. `encode` and `decode` are inverse to each other.

use thiserror::Error;

use crate::operation::{self, FIELD_A, FIELD_B, FIELD_C, Operand, Operation};

/// A decoded instruction: its operation, its three register fields and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub operation: Operation,
    /// Field A: a register, or a mode.
    pub a: u8,
    /// Field B: a register, or a count.
    pub b: u8,
    /// Field C: a register.
    pub c: u8,
    /// The number, sign-extended where the operand is signed; places are distances in instructions.
    pub number: i32,
}

/// Why a word is not an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// No operation has the opcode.
    #[error("word {word:#010x} has unknown opcode {opcode:#04x}")]
    UnknownOpcode {
        /// The whole word.
        word: u32,
        /// Its bits 31..24.
        opcode: u8,
    },
    /// Bits that no operand uses are set.
    #[error("word {word:#010x} sets bits {bits:#010x}, which {mnemonic} does not use")]
    UnusedBits {
        /// The whole word.
        word: u32,
        /// The offending bits.
        bits: u32,
        /// The operation the opcode names.
        mnemonic: &'static str,
    },
    /// An operand lies outside its range.
    #[error("word {word:#010x}: {mnemonic} takes {expected}, not {value}")]
    OperandRange {
        /// The whole word.
        word: u32,
        /// The operation the opcode names.
        mnemonic: &'static str,
        /// What the operand must be.
        expected: &'static str,
        /// What it is.
        value: i64,
    },
}

impl Instruction {
    /// The instruction's operand as a number: a register number, or the number it holds.
    pub fn operand(&self, operand: Operand) -> i64 {
        match operand {
            Operand::Destination | Operand::SourceA | Operand::Mode => i64::from(self.a),
            Operand::SourceB | Operand::Count5 => i64::from(self.b),
            Operand::SourceC => i64::from(self.c),
            _ => i64::from(self.number),
        }
    }

    /// Puts an operand's number into place.
    ///
    /// # Panics
    /// When the number lies outside the operand's range, which the assembler checks first.
    pub fn set_operand(&mut self, operand: Operand, value: i64) {
        let (low, high) = operand.range();
        assert!((low..=high).contains(&value), "{operand:?} cannot hold {value}");
        match operand {
            Operand::Destination | Operand::SourceA | Operand::Mode => self.a = value as u8,
            Operand::SourceB | Operand::Count5 => self.b = value as u8,
            Operand::SourceC => self.c = value as u8,
            _ => self.number = value as i32,
        }
    }

    /// An instruction whose operands are all zero.
    pub fn new(operation: Operation) -> Instruction {
        Instruction {
            operation,
            a: 0,
            b: 0,
            c: 0,
            number: 0,
        }
    }

    /// The instruction's word.
    pub fn encode(&self) -> u32 {
        let description = self.operation.description();
        let mut word = u32::from(description.opcode) << 24;
        for operand in description.operands {
            let bits = operand.bits();
            word |= ((self.operand(*operand) as u32) << bits.shift) & bits.mask();
            if *operand == Operand::Address {
                word |= u32::from(self.b) << FIELD_B.shift;
            }
        }
        word
    }

    /// The instruction a word holds.
    ///
    /// # Errors
    /// When the opcode is unknown, unused bits are set, or an operand is out of its range.
    pub fn decode(word: u32) -> Result<Instruction, DecodeError> {
        let opcode = (word >> 24) as u8;
        let description = operation::by_opcode(opcode).ok_or(DecodeError::UnknownOpcode { word, opcode })?;
        let unused = word & !description.used_bits();
        if unused != 0 {
            return Err(DecodeError::UnusedBits {
                word,
                bits: unused,
                mnemonic: description.mnemonic,
            });
        }
        let mut instruction = Instruction::new(description.operation);
        for operand in description.operands {
            let bits = operand.bits();
            let raw = (word & bits.mask()) >> bits.shift;
            let value = if operand.signed() {
                let unused = 32 - bits.width;
                i64::from(((raw << unused) as i32) >> unused)
            } else {
                i64::from(raw)
            };
            let (low, high) = operand.range();
            if !(low..=high).contains(&value) {
                return Err(DecodeError::OperandRange {
                    word,
                    mnemonic: description.mnemonic,
                    expected: operand.description(),
                    value,
                });
            }
            instruction.set_operand(*operand, value);
            if *operand == Operand::Address {
                instruction.b = ((word & FIELD_B.mask()) >> FIELD_B.shift) as u8;
            }
        }
        Ok(instruction)
    }

    /// The two registers whose values the instruction needs; register 0 stands for none.
    pub fn sources(&self) -> (u8, u8) {
        let mut sources = [0u8; 2];
        let mut found = 0;
        for operand in self.operation.description().operands {
            let register = match operand {
                Operand::SourceA => self.a,
                Operand::SourceB | Operand::Address => self.b,
                Operand::SourceC => self.c,
                _ => continue,
            };
            sources[found] = register;
            found += 1;
        }
        (sources[0], sources[1])
    }
}

const _: () = {
    assert!(FIELD_A.mask() & FIELD_B.mask() == 0 && FIELD_B.mask() & FIELD_C.mask() == 0);
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::operation::OPERATIONS;

    proptest! {
        #[test]
        fn a_word_that_decodes_encodes_to_itself(word in any::<u32>(), row in 0..OPERATIONS.len(), known: bool) {
            let word = if known { word & 0x00ff_ffff | u32::from(OPERATIONS[row].opcode) << 24 } else { word };
            let word = if known { word & OPERATIONS[row].used_bits() } else { word };
            if let Ok(instruction) = Instruction::decode(word) {
                prop_assert_eq!(instruction.encode(), word);
            }
        }

        #[test]
        fn an_instruction_that_encodes_decodes_to_itself(row in 0..OPERATIONS.len(), seeds in any::<[u32; 4]>()) {
            let mut instruction = Instruction::new(OPERATIONS[row].operation);
            for (operand, seed) in OPERATIONS[row].operands.iter().zip(seeds) {
                let (low, high) = operand.range();
                instruction.set_operand(*operand, low + i64::from(seed) % (high - low + 1));
                if *operand == Operand::Address {
                    instruction.b = (seeds[3] % 32) as u8;
                }
            }
            prop_assert_eq!(Instruction::decode(instruction.encode()), Ok(instruction));
        }
    }

    #[test]
    fn unused_bits_and_unknown_opcodes_are_refused() {
        assert!(matches!(
            Instruction::decode(0),
            Err(DecodeError::UnknownOpcode { opcode: 0, .. })
        ));
        let end = Instruction::new(Operation::End).encode();
        assert!(matches!(
            Instruction::decode(end | 1),
            Err(DecodeError::UnusedBits { bits: 1, .. })
        ));
        let install = Instruction::new(Operation::Install).encode();
        assert!(matches!(
            Instruction::decode(install),
            Err(DecodeError::OperandRange { value: 0, .. })
        ));
    }

    #[test]
    fn no_two_operands_of_an_operation_share_bits() {
        for description in OPERATIONS {
            let mut used = 0xff00_0000u32;
            for operand in description.operands {
                let mut mask = operand.bits().mask();
                if *operand == Operand::Address {
                    mask |= FIELD_B.mask();
                }
                assert_eq!(used & mask, 0, "{}", description.mnemonic);
                used |= mask;
            }
        }
    }
}
