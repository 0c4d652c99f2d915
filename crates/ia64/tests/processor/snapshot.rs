//! Saving a processor and going on elsewhere: the restored one does what the first does.

use crate::random_guest::{Guest, Spectator};
use proptest::prelude::*;
use serde_json::{Value, json};
use sidestep_ia64::{InvalidState, Processor, ProcessorState};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn a_restored_processor_goes_on_like_the_saved_one(bytes: [u8; 16], before in 0u64..600, after in 1u64..600) {
        let mut first = Guest::new(&bytes);
        let mut spectator = Spectator::default();
        let mut run = |guest: &mut Guest, end| {
            guest.run(end, 50, |processor, limit| processor.run_observed(limit, &mut spectator))
        };
        run(&mut first, before);
        let text = serde_json::to_string(&first.processor.save()).expect("any state can be written");
        let state: ProcessorState = serde_json::from_str(&text).expect("what was written can be read");
        prop_assert_eq!(&state, &first.processor.save());
        let mut second = first.restored(&state);
        let end = first.processor.instructions_retired() + after;
        let finished = [run(&mut first, end), run(&mut second, end)];
        if !spectator.executes_data {
            prop_assert_eq!(finished[0], finished[1]);
            prop_assert_eq!(first.state(), second.state());
            prop_assert_eq!(first.processor.save(), second.processor.save());
        }
    }

    #[test]
    fn a_processor_goes_on_after_any_change_of_its_state(
        bytes: [u8; 16],
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..6),
    ) {
        let mut guest = Guest::new(&bytes);
        guest.run(100, 100, Processor::run);
        let mut state = serde_json::to_value(guest.processor.save()).expect("any state can be written");
        for (place, value) in changes {
            let mut numbers = Vec::new();
            collect_numbers(&mut state, &mut numbers);
            **place.get_mut(&mut numbers) = value.into();
        }
        if let Ok(state) = serde_json::from_value::<ProcessorState>(state)
            && guest.processor.restore(&state).is_ok()
        {
            guest.run(state.instructions_retired().saturating_add(200), 50, Processor::run);
        }
    }
}

/// Every number within a value.
fn collect_numbers<'a>(value: &'a mut Value, numbers: &mut Vec<&'a mut Value>) {
    match value {
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| collect_numbers(value, numbers)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|value| collect_numbers(value, numbers)),
        Value::Number(_) => numbers.push(value),
        _ => {}
    }
}

/// What is said of a state with one field changed.
fn refusal(pointer: &str, value: Value) -> InvalidState {
    let mut guest = Guest::new(&[7; 16]);
    let saved = guest.processor.save();
    let mut state = serde_json::to_value(&saved).expect("any state can be written");
    *state.pointer_mut(pointer).expect("the field exists") = value;
    let state: ProcessorState = serde_json::from_value(state).expect("the types are right");
    let refusal = guest
        .processor
        .restore(&state)
        .expect_err("no processor holds that");
    assert_eq!(guest.processor.save(), saved, "a refused state changes nothing");
    refusal
}

#[test]
fn impossible_states_are_refused_by_name() {
    let cases = [
        ("/predicates", json!(2), "constant registers"),
        ("/floating/1", json!([5, 5]), "constant registers"),
        ("/frame/locals", json!(97), "frame marker"),
        ("/register_stack/stored", json!(-97), "register stack"),
        ("/register_stack/loaded", json!(1), "register stack"),
        ("/register_stack/position", json!(u64::MAX >> 2), "register stack"),
        ("/register_stack/is_unusual", json!(1), "register stack"),
        ("/general/base", json!(801), "register stack"),
        ("/ip", json!(8), "instruction pointer"),
        ("/slot", json!(3), "instruction pointer"),
        ("/application/66", json!(64), "epilogue count"),
        ("/system/region/3", json!(2), "region registers"),
        ("/system/control/8", json!(2), "page table address"),
        ("/system_mode/mmu/data/next", json!(128), "translations"),
        ("/system_mode/mmu/instruction/cache", json!([]), "translations"),
    ];
    for (pointer, value, part) in cases {
        assert_eq!(
            refusal(pointer, value),
            InvalidState::Impossible(part),
            "{pointer}"
        );
    }
    let error = refusal("/system_mode", Value::Null);
    assert_eq!(error, InvalidState::Kind { system: false });
    assert_eq!(
        error.to_string(),
        "the state is that of a processor that runs a program"
    );
}
