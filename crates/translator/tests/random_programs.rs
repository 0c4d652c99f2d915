//! Random programs in user mode, made of what programs are made of: translated they end in the same state as
//! interpreted, whatever they do and however they are run.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
mod programs;

use std::sync::Arc;
use std::time::Duration;

use machine::Machine;
use programs::{
    BUNDLES, CODE, FLOATING, Source, aim, cases, instruction, nothing, run, set_numbers, translator,
};
use proptest::prelude::*;
use sidestep_ia64::encoding::{Bundle, Form, Operation, Template, Unit, UnitClass, all_forms};
use sidestep_ia64::{Exit, Processor, ProcessorState};
use sidestep_translator::{Background, LockStep, Settings, Translator};

/// Straight code of floating-point operations, each behind a load, a store or a move.
fn computation(source: &mut Source) -> Machine {
    use UnitClass::{B, F, M};
    let all: Vec<&Form> = all_forms().map(|(_, form)| form).collect();
    let is_memory = |form: &&&Form| {
        use Operation as O;
        matches!(
            form.operation,
            O::LoadFloat { .. }
                | O::LoadFloatPair { .. }
                | O::StoreFloat { .. }
                | O::SetFloat { .. }
                | O::GetFloat { .. }
        )
    };
    let memory: Vec<&Form> = all.iter().filter(is_memory).copied().collect();
    let bundles = (0..BUNDLES).map(|bundle| {
        let memory = instruction(source, &memory, &[M], Unit::M, bundle);
        let floating = instruction(source, &all, &[F], Unit::F, bundle);
        Bundle::new(Template::new(FLOATING), [memory, floating, nothing(B)])
    });
    let bundles: Vec<Bundle> = bundles.collect();
    let mut machine = Machine::new();
    machine.load_bundles_at(CODE, &bundles);
    machine
}

/// Executes a computation once, on other numbers.
fn compute(
    machine: &mut Machine,
    seed: u64,
    mut run: impl FnMut(&mut Processor, u64) -> Exit,
) -> ProcessorState {
    let mut source = Source(seed);
    let processor = &mut machine.processor;
    processor.predicates = source.next() | 1;
    set_numbers(processor, &mut source);
    aim(processor, &mut source);
    processor.set_instruction_pointer(CODE, 0);
    let end = processor.instructions_retired() + 3 * BUNDLES;
    while processor.instructions_retired() < end && processor.instruction_pointer().0 < CODE + 16 * BUNDLES {
        let left = end - processor.instructions_retired();
        if let Exit::Fault(fault) = run(processor, left) {
            if !fault.kind.is_trap() {
                processor.skip_instruction();
            }
            aim(processor, &mut source);
        }
    }
    machine.processor.save()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_translated_program_does_what_an_interpreted_one_does(seed: u64, threshold in 1u32..6) {
        let mut translator = translator(threshold);
        let interpreted = run(seed, Processor::run);
        let translated = run(seed, |processor, limit| processor.run_with(limit, &mut translator, &mut ()));
        let differ = |(one, other): (String, String)| {
            let lines = one.lines().zip(other.lines()).filter(|(one, other)| one != other);
            lines.map(|(one, other)| format!("{one} {other}")).collect::<Vec<_>>()
        };
        let states = (format!("{:#x?}", interpreted.0), format!("{:#x?}", translated.0));
        prop_assert!(interpreted.0 == translated.0, "{:#?}", differ(states));
        prop_assert_eq!(interpreted.1, translated.1);
    }
}

/// Runs a computation interpreted and translated, on other numbers in each round. Answers how many instructions were
/// translated: none of one that leaves its only block early, which a run is just long enough for.
fn compare_computations(seed: u64) -> Result<u64, TestCaseError> {
    let [mut interpreted, mut translated] = [(); 2].map(|()| computation(&mut Source(seed)));
    let mut translator = translator(2);
    for round in 0..40 {
        let one = compute(&mut interpreted, seed ^ round, Processor::run);
        let other = compute(&mut translated, seed ^ round, |processor, limit| {
            processor.run_with(limit, &mut translator, &mut ())
        });
        prop_assert!(one == other, "round {round}");
        prop_assert_eq!(interpreted.data(), translated.data());
    }
    Ok(translator.statistics().translated)
}

/// An operation of single precision delivers, by the interpreter, a value whose exponent only registers have room for;
/// its storing as a single is not the host's conversion.
#[test]
fn what_an_operation_of_single_precision_delivers_may_be_none() {
    let translated = compare_computations(1_121_345_127_178_069_177).expect("the same numbers");
    assert!(translated > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn translated_computations_give_the_same_numbers(seed: u64) {
        compare_computations(seed)?;
    }
}

/// Whether a program ends translated as it does interpreted.
fn ends_the_same(seed: u64) -> bool {
    let mut translator = translator(1);
    let interpreted = run(seed, Processor::run);
    let translated = run(seed, |processor, limit| {
        processor.run_with(limit, &mut translator, &mut ())
    });
    interpreted == translated
}

/// A unit that leaves its first block to the interpreter is entered from another one shortly before the end of a run.
#[test]
fn a_unit_entered_from_another_keeps_the_limit_where_a_nat_is() {
    assert!(ends_the_same(2_857_206_062_128_420_386));
}

/// An advanced load to a stacked register of a frame below the one that the program began with.
#[test]
fn an_advanced_load_below_the_first_frame_is_of_a_general_register() {
    assert!(ends_the_same(14_731_891_742_052_992_088));
}

#[test]
fn lock_step_finds_nothing_and_changes_nothing() {
    for seed in 0..4 {
        let mut lock_step = LockStep::new(translator(2));
        let interpreted = run(seed, Processor::run);
        let checked = run(seed, |processor, limit| lock_step.run(processor, limit));
        assert_eq!(lock_step.difference(), None);
        assert!(lock_step.translator().statistics().translated > 0);
        assert!(interpreted == checked);
    }
}

/// What another thread has finished by when is up to the host: whatever it is, the program does the same.
#[test]
fn a_program_translated_in_the_background_does_what_an_interpreted_one_does() {
    let background = Arc::<Background>::default();
    let settings = Settings {
        threshold: 1,
        ..Settings::ALWAYS
    };
    let mut translated = 0;
    for seed in 0..100 {
        let mut translator =
            Translator::new(settings, Some(Arc::clone(&background))).expect("a host with memory");
        let interpreted = run(seed, Processor::run);
        let other = run(seed, |processor, limit| {
            std::thread::sleep(Duration::from_millis(2));
            processor.run_with(limit, &mut translator, &mut ())
        });
        assert!(interpreted == other, "seed {seed}");
        translated += translator.statistics().translated;
        if translated > 0 && seed > 0 {
            break;
        }
    }
    assert!(translated > 0);
}
