//! Random loops, those that rotate registers as software-pipelined ones do, and tight ones: translated they end in the
//! same state as interpreted, however many iterations they have and however much of the frame rotates.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
mod programs;

use machine::Machine;
use programs::{CODE, Source, cases, exceptions, loops, translator};
use proptest::prelude::*;
use sidestep_ia64::Processor;
use sidestep_ia64::registers::application::{EC, LC};
use sidestep_ia64::registers::frame::FrameMarker;

const ROUNDS: u64 = 12;

fn compare(make: fn(&mut Source) -> Machine, seed: u64) -> Result<u64, TestCaseError> {
    compare_up_to(8, make, seed)
}

/// The same with so many iterations at most.
fn compare_up_to(iterations: u64, make: fn(&mut Source) -> Machine, seed: u64) -> Result<u64, TestCaseError> {
    exceptions::raise();
    let [mut interpreted, mut translated] = [(); 2].map(|()| make(&mut Source(seed)));
    let mut translator = translator(3);
    for round in 0..ROUNDS {
        let seed = seed ^ round << 32;
        loops::execute_up_to(iterations, &mut interpreted.processor, seed, Processor::run);
        loops::execute_up_to(iterations, &mut translated.processor, seed, |processor, limit| {
            processor.run_with(limit, &mut translator, &mut ())
        });
        let [one, other] = [&interpreted, &translated].map(|machine| machine.processor.save());
        if one != other {
            let states = (format!("{one:#x?}"), format!("{other:#x?}"));
            let lines = states.0.lines().zip(states.1.lines());
            let differ: Vec<_> = lines.filter(|(one, other)| one != other).collect();
            prop_assert!(false, "round {round}: {differ:#?}");
        }
        prop_assert_eq!(interpreted.data(), translated.data());
    }
    Ok(translator.statistics().translated)
}

/// Most of what loops execute is executed translated: a rotation does not end that.
#[test]
fn loops_stay_in_translated_code() {
    for make in [
        loops::pipelined,
        loops::rotating,
        loops::tight,
        loops::tight_of_doubles,
    ] {
        let translated: u64 = (0..8)
            .map(|seed| compare(make, seed).expect("the same states"))
            .sum();
        assert!(translated > 0);
    }
}

/// What moves to the predicates depends on how far they have rotated.
#[test]
fn predicates_are_written_as_they_stand_without_rotation() {
    compare(loops::rotating, 18_259_962_660_188_570_894).expect("the same states");
}

/// A unit that takes another number of registers to rotate goes, for one that takes what has come.
#[test]
fn a_loop_that_rotates_another_number_of_registers_is_translated_anew() {
    let mut machine = loops::counting();
    let processor = &mut machine.processor;
    let mut translator = translator(3);
    for rotating in [16, 24, 0] {
        for _ in 0..100 {
            processor.frame = FrameMarker {
                size: 40,
                locals: 40,
                rotating,
                ..FrameMarker::default()
            };
            processor.set_application(LC, 49);
            processor.set_application(EC, 1);
            processor.set_instruction_pointer(CODE, 0);
            processor.run_with(50 * 3, &mut translator, &mut ());
            assert_eq!(processor.frame.rename_predicate, 48 * 2 - 50);
        }
    }
    let statistics = translator.statistics();
    let (translated, retired) = (statistics.translated, processor.instructions_retired());
    assert!(translated * 10 > retired * 9, "{translated} of {retired}");
    assert!((3..16).contains(&statistics.units), "{}", statistics.units);
}

/// What is moved from one register to another was none on the way before.
#[test]
fn a_number_that_was_looked_at_is_one_from_there_on_only() {
    compare(loops::tight_of_doubles, 16_900_602_726_205_936_312).expect("the same states");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_translated_loop_does_what_an_interpreted_one_does(seed: u64) {
        compare(loops::pipelined, seed)?;
    }

    #[test]
    fn a_tight_loop_does_translated_what_it_does_interpreted(seed: u64) {
        compare(loops::tight, seed)?;
    }

    #[test]
    fn a_loop_that_rotates_what_it_names_does_translated_what_it_does_interpreted(seed: u64) {
        for iterations in [8, 600] {
            compare_up_to(iterations, loops::rotating, seed)?;
        }
    }

    #[test]
    fn a_tight_loop_of_doubles_does_translated_what_it_does_interpreted(seed: u64) {
        compare(loops::tight_of_doubles, seed)?;
    }
}
