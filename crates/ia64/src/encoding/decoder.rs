//! From bits to instructions.

use super::bundle::{Bundle, Unit};
use super::form;
use super::instruction::{Instruction, UnitClass};

/// Bits that are no instruction: executing them is an Illegal Operation fault.
///
/// Some reserved bits do not fault. Reserved values of hints are hints without effect, and some opcodes of the B
/// unit are ignored: both decode to instructions that have no spelling ([`Instruction::has_spelling`]), which
/// disassemblers write as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Illegal {
    /// The template is reserved, whatever the slots hold.
    #[error("reserved template")]
    Template,
    /// The opcode is reserved.
    #[error("reserved encoding")]
    Encoding,
    /// The opcode is reserved when the predicate is 1; when it is 0 the slot does nothing.
    #[error("reserved encoding under predicate p{0}")]
    EncodingIfPredicate(u8),
}

/// One slot of a decoded bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedSlot {
    /// The slot's number; a long instruction has number 1, as the hardware reports it.
    pub slot: u8,
    /// The instruction, or why there is none.
    pub instruction: Result<Instruction, Illegal>,
    /// Whether an instruction group ends after it.
    pub stop: bool,
}

/// Decodes a slot for the unit its template gives it. For an `X` slot, `long` is the L slot; otherwise it is
/// ignored. An `L` slot by itself is no instruction.
///
/// # Errors
/// The reason the architecture gives for an Illegal Operation fault. Reserved values of registers and
/// immediates are not encodings: they fault at execution.
pub fn decode(unit: Unit, slot: u64, long: u64) -> Result<Instruction, Illegal> {
    let slot = slot & Bundle::SLOT_MASK;
    let major = slot >> 37;
    let class = match unit {
        Unit::I | Unit::M if major >= 8 => UnitClass::A,
        Unit::I => UnitClass::I,
        Unit::M => UnitClass::M,
        Unit::F => UnitClass::F,
        Unit::B => UnitClass::B,
        Unit::X => UnitClass::LX,
        Unit::L => return Err(Illegal::Encoding),
    };
    let Some(index) = form::find(class, slot) else {
        return Err(reserved(class, slot));
    };
    let form = index.form();
    let long = if unit == Unit::X {
        long & Bundle::SLOT_MASK
    } else {
        0
    };
    let value = |operand: super::operand::Operand| operand.extract(slot, long);
    Ok(Instruction {
        operation: form.operation,
        slot,
        immediate: form.immediate.map_or(0, value),
        position: form.position().map_or(0, value) as u8,
        length: form.length().map_or(0, value) as u8,
        unit,
        form: index,
    })
}

/// How a slot without a row faults (manual, volume 3, section 4.1: the shades of the opcode tables).
fn reserved(class: UnitClass, slot: u64) -> Illegal {
    let (major, x6) = (slot >> 37, slot >> 27 & 0x3f);
    match class {
        UnitClass::B if major != 0 || x6 >= 0x20 => Illegal::Encoding,
        _ => Illegal::EncodingIfPredicate((slot & 0x3f) as u8),
    }
}

impl Bundle {
    /// The bundle's instructions in order: three, or two when slots 1 and 2 hold a long one.
    pub fn decode(self) -> impl Iterator<Item = DecodedSlot> {
        let template = self.template();
        let long = template.is_long();
        [0u8, 1, 2]
            .into_iter()
            .filter(move |slot| !(long && *slot == 2))
            .map(move |slot| {
                let bits = if long && slot == 1 { 2 } else { slot };
                let instruction = match template.units() {
                    None => Err(Illegal::Template),
                    Some(units) => decode(units[bits as usize], self.slot(bits), self.slot(1)),
                };
                DecodedSlot {
                    slot,
                    instruction,
                    stop: template.stop_after(bits),
                }
            })
    }
}
