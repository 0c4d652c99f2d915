//! Random straight code that computes with several integers at once, on elements at the ends of what they can be:
//! translated it gives the same numbers as interpreted.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
mod programs;

use machine::Machine;
use programs::{BUNDLES, CODE, INTEGER, STACKED, Source, cases, instruction, nothing, translator};
use proptest::prelude::*;
use sidestep_ia64::encoding::{Bundle, Form, Template, Unit, UnitClass, all_forms};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Processor, ProcessorState};

/// The formats of operations on several integers, and of those that count zero elements.
const FORMATS: [&str; 11] = ["A9", "A10", "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I29"];
const ROUNDS: u64 = 8;

fn code(source: &mut Source) -> Machine {
    use UnitClass::{A, B, I, M};
    let forms: Vec<&Form> = all_forms()
        .map(|(_, form)| form)
        .filter(|form| FORMATS.contains(&form.format))
        .collect();
    let bundles = (0..BUNDLES).map(|bundle| {
        let computes = instruction(source, &forms, &[A, I], Unit::I, bundle);
        Bundle::new(Template::new(INTEGER), [nothing(M), computes, nothing(B)])
    });
    let bundles: Vec<Bundle> = bundles.collect();
    let mut machine = Machine::new();
    machine.load_bundles_at(CODE, &bundles);
    machine
}

/// Elements of one size, each at an end, in the middle or anywhere; or a number as small as counts are.
fn elements(source: &mut Source) -> u64 {
    let bits = 8 << source.below(3);
    let ends = [0, 1, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << bits) - 1];
    match source.below(8) {
        0 => source.below(40),
        _ => (0..64 / bits).fold(0, |all, _| {
            let element = match source.below(8) as usize {
                place if place < ends.len() => ends[place],
                _ => source.next() & ends[4],
            };
            all << bits | element
        }),
    }
}

/// Executes the code once, on other numbers.
fn compute(machine: &mut Machine, seed: u64, mut run: impl FnMut(&mut Processor, u64)) -> ProcessorState {
    let mut source = Source(seed);
    let processor = &mut machine.processor;
    processor.predicates = source.next() | 1;
    processor.frame = FrameMarker {
        size: u32::from(STACKED),
        ..FrameMarker::default()
    };
    for register in 1..32 + STACKED {
        processor.general.set(register, elements(&mut source));
    }
    processor.set_instruction_pointer(CODE, 0);
    let end = processor.instructions_retired() + 3 * BUNDLES;
    while processor.instructions_retired() < end {
        let left = end - processor.instructions_retired();
        run(processor, left);
    }
    processor.save()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32 * cases()) })]

    #[test]
    fn translated_elements_are_those_of_the_interpreter(seed: u64) {
        let [mut interpreted, mut translated] = [(); 2].map(|()| code(&mut Source(seed)));
        let mut translator = translator(1);
        for round in 0..ROUNDS {
            let one = compute(&mut interpreted, seed ^ round, |processor, limit| {
                processor.run(limit);
            });
            let other = compute(&mut translated, seed ^ round, |processor, limit| {
                processor.run_with(limit, &mut translator, &mut ());
            });
            prop_assert!(one == other, "round {round}");
        }
        prop_assert!(translator.statistics().translated > 0);
    }
}
