//! From operand values to bits: the inverse of decoding, from the same rows. For tests and generators of guest code.

use super::bundle::Bundle;
use super::form::{Form, all_forms};
use super::operand::Operand;

/// The bits of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoded {
    /// The slot; of a long instruction, the X slot.
    pub slot: u64,
    /// The L slot of a long instruction, otherwise 0.
    pub long: u64,
}

/// Why an instruction cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The number of operand values differs from that of the form's operands.
    #[error("{given} operands given, the form has {expected}")]
    OperandCount {
        /// How many were given.
        given: usize,
        /// How many the form has.
        expected: usize,
    },
    /// An operand's field cannot express the value.
    #[error("operand {operand:?} cannot be {value}")]
    Value {
        /// The operand.
        operand: Operand,
        /// The value given.
        value: i64,
    },
    /// The number of hints differs, or a hint's field has no such value.
    #[error("the form has no such hint")]
    Hint,
    /// A predicate given to an instruction that has none, or above 63.
    #[error("predicate p{0} cannot qualify the instruction")]
    Predicate(u8),
}

impl Form {
    /// The forms with the mnemonic, which is without hints.
    pub fn named(mnemonic: &str) -> impl Iterator<Item = &'static Form> {
        all_forms()
            .map(|(_, form)| form)
            .filter(move |form| form.mnemonic == mnemonic)
    }

    /// Encodes the form with a qualifying predicate, the values of its operands in written order (a constant's
    /// is the constant) and the values of its hints, which may be left out: then they are 0.
    ///
    /// # Errors
    /// See [`EncodeError`].
    pub fn encode(&self, predicate: u8, values: &[i64], hints: &[usize]) -> Result<Encoded, EncodeError> {
        let (given, expected) = (values.len(), self.operands.len());
        if given != expected {
            return Err(EncodeError::OperandCount { given, expected });
        }
        if predicate > 63 || (predicate > 0 && !self.predicated) {
            return Err(EncodeError::Predicate(predicate));
        }
        let mut slot = self.value | u64::from(predicate);
        let mut long = 0;
        for (operand, value) in self.operands.iter().copied().zip(values.iter().copied()) {
            (slot, long) = operand
                .insert(value, slot, long)
                .ok_or(EncodeError::Value { operand, value })?;
        }
        if !hints.is_empty() && hints.len() != self.hints.len() {
            return Err(EncodeError::Hint);
        }
        for (hint, value) in self.hints.iter().zip(hints) {
            if *value >= hint.suffixes.len() {
                return Err(EncodeError::Hint);
            }
            slot |= hint.bits(*value);
        }
        Ok(Encoded {
            slot: slot & Bundle::SLOT_MASK,
            long,
        })
    }
}
