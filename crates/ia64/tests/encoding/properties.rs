//! Properties of the opcode table, its encoder and its decoder that need no other program.

use crate::support::{Random, slot_of};
use proptest::prelude::*;
use sidestep_ia64::encoding::*;

/// Decodes a slot of a form in a unit of its class.
fn decode_as(class: UnitClass, encoded: Encoded) -> Result<Instruction, Illegal> {
    let unit = match class {
        UnitClass::A | UnitClass::I => Unit::I,
        UnitClass::M => Unit::M,
        UnitClass::B => Unit::B,
        UnitClass::F => Unit::F,
        UnitClass::LX => Unit::X,
    };
    decode(unit, encoded.slot, encoded.long)
}

#[test]
fn decoding_inverts_encoding_for_every_form() {
    let mut random = Random(5);
    for (index, form) in all_forms() {
        for _ in 0..50 {
            let raw = slot_of(form, &mut random);
            let long = if form.class == UnitClass::LX {
                random.bits() & Bundle::SLOT_MASK
            } else {
                0
            };
            let values: Vec<i64> = form
                .operands
                .iter()
                .map(|operand| operand.extract(raw, long))
                .collect();
            let hints: Vec<usize> = form.hints.iter().map(|hint| hint.value(raw)).collect();
            let predicate = if form.predicated { (raw & 0x3f) as u8 } else { 0 };
            let encoded = form
                .encode(predicate, &values, &hints)
                .expect("extracted values can be encoded");
            let instruction = decode_as(form.class, encoded).expect("an encoded instruction decodes");
            // A spelt form inside an ignored region, and the region itself, are told apart by their masks.
            if form.has_spelling {
                assert_eq!(
                    instruction.form().mnemonic,
                    form.mnemonic,
                    "{index:?} {:#x}",
                    encoded.slot
                );
                assert_eq!(instruction.operation, form.operation);
            }
            assert_eq!(instruction.predicate(), predicate);
            let again: Vec<i64> = form
                .operands
                .iter()
                .map(|operand| operand.extract(encoded.slot, encoded.long))
                .collect();
            assert_eq!(again, values, "{}", form.mnemonic);
            let hints_again: Vec<usize> = form.hints.iter().map(|hint| hint.value(encoded.slot)).collect();
            assert_eq!(hints_again, hints, "{}", form.mnemonic);
            if let Some(operand) = form.immediate {
                assert_eq!(instruction.immediate, operand.extract(encoded.slot, encoded.long));
            }
        }
    }
}

#[test]
fn no_two_forms_of_a_class_claim_a_slot_unless_one_is_more_specific() {
    let forms: Vec<_> = all_forms().map(|(_, form)| form).collect();
    for (index, first) in forms.iter().enumerate() {
        for second in &forms[index + 1..] {
            let common = first.mask & second.mask;
            if first.class != second.class || (first.value ^ second.value) & common != 0 {
                continue;
            }
            let nested = common == first.mask || common == second.mask;
            assert!(
                nested && first.mask != second.mask && first.has_spelling != second.has_spelling,
                "{} and {} overlap",
                first.mnemonic,
                second.mnemonic
            );
        }
    }
}

#[test]
fn fixed_bits_operands_and_hints_of_a_form_do_not_overlap() {
    for (_, form) in all_forms() {
        let mut taken = form.mask;
        assert_eq!(form.value & !form.mask, 0, "{}", form.mnemonic);
        if form.predicated {
            assert_eq!(taken & 0x3f, 0, "{}", form.mnemonic);
            taken |= 0x3f;
        }
        for mask in form
            .operands
            .iter()
            .map(|operand| operand.mask())
            .chain(form.hints.iter().map(Hint::mask))
        {
            assert_eq!(taken & mask, 0, "{}: {mask:#x}", form.mnemonic);
            taken |= mask;
        }
    }
}

#[test]
fn values_an_operand_cannot_express_are_refused() {
    let adds = Form::named("adds").next().expect("adds is an instruction");
    assert!(adds.encode(0, &[1, 8191, 2], &[]).is_ok());
    assert_eq!(
        adds.encode(0, &[1, 8192, 2], &[]),
        Err(EncodeError::Value {
            operand: Operand::Imm14,
            value: 8192
        })
    );
    assert_eq!(
        adds.encode(0, &[128, 0, 2], &[]),
        Err(EncodeError::Value {
            operand: Operand::R1,
            value: 128
        })
    );
    assert_eq!(
        adds.encode(0, &[1], &[]),
        Err(EncodeError::OperandCount {
            given: 1,
            expected: 3
        })
    );
    assert_eq!(adds.encode(64, &[1, 0, 2], &[]), Err(EncodeError::Predicate(64)));
    let alloc = Form::named("alloc").next().expect("alloc is an instruction");
    assert_eq!(
        alloc.encode(6, &[1, 64, 8, 4, 0], &[]),
        Err(EncodeError::Predicate(6))
    );
    let branch = Form::named("br.ret").next().expect("br.ret is an instruction");
    assert_eq!(branch.encode(0, &[0], &[0, 0]), Err(EncodeError::Hint));
    assert_eq!(branch.encode(0, &[0], &[4, 0, 0]), Err(EncodeError::Hint));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_bundle_decodes_and_disassembles(bits in any::<u128>(), address in any::<u64>()) {
        let bundle = Bundle::from_bits(bits);
        for slot in bundle.decode() {
            let text = slot.text(bundle, address, &NoSymbols);
            prop_assert!(!text.is_empty());
            if let Ok(instruction) = slot.instruction {
                // The lists have a fixed capacity: this would panic beyond it.
                let _ = (instruction.sources(), instruction.destinations());
            }
        }
    }

    #[test]
    fn long_operands_survive_a_round_trip(value in any::<i64>()) {
        let insert = |operand: Operand, value: i64| {
            let (slot, long) = operand.insert(value, 0, 0).expect("the value fits");
            operand.extract(slot, long)
        };
        prop_assert_eq!(insert(Operand::Immu64, value), value);
        prop_assert_eq!(insert(Operand::Immu62, value & ((1 << 62) - 1)), value & ((1 << 62) - 1));
        prop_assert_eq!(insert(Operand::Target64, value & !0xf), value & !0xf);
    }
}
