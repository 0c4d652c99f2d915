//! From bits to instructions.

use super::bundle::{Bundle, Template, Unit};
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

impl Illegal {
    /// The predicate under which executing the slot is an illegal operation.
    pub fn predicate(self) -> u8 {
        match self {
            Illegal::EncodingIfPredicate(predicate) => predicate,
            Illegal::Template | Illegal::Encoding => 0,
        }
    }
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
    /// The bundle's template.
    pub template: Template,
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
        position: form.position.map_or(0, value) as u8,
        length: form.length.map_or(0, value) as u8,
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
                    template,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Form, Operation};

    /// A slot of a major opcode with six more opcode bits at 27, under predicate 6.
    fn slot(major: u64, x6: u64) -> u64 {
        major << 37 | x6 << 27 | 6
    }

    #[test]
    fn reserved_opcodes_fault_under_their_predicate_or_always() {
        assert_eq!(
            decode(Unit::M, slot(1, 0x3f), 0),
            Err(Illegal::EncodingIfPredicate(6))
        );
        assert_eq!(
            decode(Unit::I, slot(1, 0), 0),
            Err(Illegal::EncodingIfPredicate(6))
        );
        assert_eq!(
            decode(Unit::F, slot(0xf, 0), 0),
            Err(Illegal::EncodingIfPredicate(6))
        );
        assert_eq!(
            decode(Unit::X, slot(8, 0), 0),
            Err(Illegal::EncodingIfPredicate(6))
        );
        assert_eq!(
            decode(Unit::B, slot(0, 0x03), 0),
            Err(Illegal::EncodingIfPredicate(6))
        );
        assert_eq!(decode(Unit::B, slot(0, 0x22), 0), Err(Illegal::Encoding));
        assert_eq!(decode(Unit::B, slot(4, 0) | 1 << 6, 0), Err(Illegal::Encoding));
        assert_eq!(decode(Unit::B, slot(9, 0), 0), Err(Illegal::Encoding));
        let reserved = Bundle::from_bits(0x06);
        assert!(
            reserved
                .decode()
                .all(|slot| slot.instruction == Err(Illegal::Template))
        );
    }

    #[test]
    fn ignored_opcodes_and_reserved_hints_execute_without_a_spelling() {
        for ignored in [slot(0, 0x01), slot(2, 0x3f), slot(3, 0), slot(6, 0x15)] {
            let instruction = decode(Unit::B, ignored, 0).expect("an ignored opcode is no fault");
            assert_eq!(instruction.operation, Operation::Nop);
            assert!(!instruction.has_spelling());
        }
        let load = Form::named("ld8")
            .find(|form| form.format == "M3")
            .expect("a load with base update");
        let encoded = load
            .encode(0, &[10, 11, 8], &[2])
            .expect("the reserved hint has bits");
        let instruction = decode(Unit::M, encoded.slot, 0).expect("a reserved hint is no fault");
        assert_eq!(instruction.operation, load.operation);
        assert!(!instruction.has_spelling());
    }

    #[test]
    fn a_long_instruction_is_one_slot_with_both_slots_bits() {
        let movl = Form::named("movl").next().expect("movl is an instruction");
        let encoded = movl
            .encode(0, &[8, 0x0123_4567_89ab_cdef], &[])
            .expect("any value fits");
        let bundle = Bundle::new(crate::encoding::Template::new(5), [0, encoded.long, encoded.slot]);
        let slots: Vec<DecodedSlot> = bundle.decode().collect();
        assert_eq!(slots.len(), 2);
        let instruction = slots[1].instruction.expect("movl decodes");
        assert_eq!((slots[1].slot, slots[1].stop), (1, true));
        assert_eq!(
            (instruction.immediate, instruction.r1()),
            (0x0123_4567_89ab_cdef, 8)
        );
        assert!(instruction.is_long());
    }
}
