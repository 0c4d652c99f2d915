//! Operations that the table says only compute: whatever registers hold, they do nothing else.

use crate::machine::{CODE, Machine};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sidestep_ia64::encoding::{
    Bundle, Effects, Form, Notation, Template, Unit, UnitClass, all_forms, decode,
};

/// A bundle with an instruction of the form alone in it, its operands taken from random bits but for registers: those
/// are among the static ones but the first, and two predicates are two. `None` where the form does more than compute.
fn bundle(form: &Form, slot: u64, long: u64) -> Option<Bundle> {
    let mut predicates = 6..;
    let values = form.operands.iter().map(|operand| {
        let value = operand.extract(slot, long);
        match operand.description().notation {
            Notation::Register("r") if value > 31 || value == 0 => 1 + value % 31,
            Notation::Register("p") => predicates.next().unwrap_or_default(),
            _ => value,
        }
    });
    let values: Vec<i64> = values.collect();
    let (template, unit) = match form.class {
        UnitClass::A | UnitClass::M => (0x11, Unit::M),
        UnitClass::I => (0x11, Unit::I),
        UnitClass::F => (0x1d, Unit::F),
        UnitClass::B => (0x11, Unit::B),
        UnitClass::LX => (0x05, Unit::X),
    };
    let encoded = form.encode((slot & 1) as u8, &values, &[]).ok()?;
    let instruction = decode(unit, encoded.slot, encoded.long).ok()?;
    if !instruction.effects().contains(Effects::COMPUTES) {
        return None;
    }
    assert_eq!(
        instruction.effects(),
        Effects::COMPUTES,
        "{}: nothing else",
        form.mnemonic
    );
    let access = instruction.operation.memory_access();
    assert!(access.is_none(), "{}: no memory", form.mnemonic);
    let nop = |mnemonic| Form::named(mnemonic).next()?.encode(0, &[0], &[]).ok();
    let (memory, integer, branch) = (nop("nop.m")?.slot, nop("nop.i")?.slot, nop("nop.b")?.slot);
    let slots = match unit {
        Unit::M => [encoded.slot, integer, branch],
        Unit::I => [memory, encoded.slot, branch],
        Unit::X => [memory, encoded.long, encoded.slot],
        Unit::F | Unit::B | Unit::L => unreachable!("{} computes outside the integer units", form.mnemonic),
    };
    Some(Bundle::new(Template::new(template), slots))
}

#[test]
fn what_only_computes_neither_faults_nor_touches_what_it_does_not_name() {
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(16)
    });
    let (slots, longs) = (any::<u64>(), any::<u64>());
    let registers = prop::collection::vec((any::<u64>(), any::<bool>()), 31);
    runner
        .run(&(slots, longs, registers), |(slot, long, registers)| {
            let bundles: Vec<Bundle> = all_forms()
                .filter_map(|(_, form)| bundle(form, slot, long))
                .collect();
            prop_assert!(bundles.len() > 80, "{} forms compute", bundles.len());
            for bundle in &bundles {
                let mut machine = Machine::new();
                machine.processor.predicates = slot | 1;
                for (register, (value, nat)) in (1..).zip(&registers) {
                    machine.processor.general.set_with_nat(register, *value, *nat);
                }
                let (status, data) = (machine.processor.status, machine.data().to_vec());
                machine.load_bundles(std::slice::from_ref(bundle));
                let executed = machine.processor.run(u64::MAX);
                let place = machine.processor.instruction_pointer();
                prop_assert_eq!(place, (CODE + 16, 0), "{:?} {:?}", bundle, executed);
                prop_assert_eq!(machine.processor.status, status);
                prop_assert!(machine.data() == data);
            }
            Ok(())
        })
        .unwrap();
}
