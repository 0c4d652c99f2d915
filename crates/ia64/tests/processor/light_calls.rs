//! Calls that are served while the processor runs.

use std::sync::Arc;

use sidestep_ia64::{Exit, FaultKind, LightCalls, Processor};

use crate::machine::{CODE, Machine};

/// Serves `break 1`: doubles r9, and fails for zero.
struct Doubling;

impl LightCalls for Doubling {
    fn perform(&self, immediate: u64, processor: &Processor) -> Option<[u64; 2]> {
        let value = processor.general.value(9);
        match (immediate, value) {
            (1, 0) => Some([22, u64::MAX]),
            (1, value) => Some([2 * value, 0]),
            _ => None,
        }
    }
}

/// What is executed: the call, then r11 = r8 + 1, then another call.
fn machine() -> Machine {
    let mut machine = Machine::new();
    machine.processor.general.set(9, 21);
    machine.load(&[
        ("break.m", 0, &[1]),
        ("adds", 0, &[11, 1, 8]),
        ("break.m", 0, &[2]),
    ]);
    machine
}

#[test]
fn a_call_that_is_served_neither_ends_the_run_nor_retires() {
    let mut machine = machine();
    machine.processor.set_light_calls(Some(Arc::new(Doubling)));
    let Exit::Fault(fault) = machine.processor.run(u64::MAX) else {
        panic!("the second call ends the run");
    };
    assert_eq!((fault.kind, fault.immediate), (FaultKind::Break, 2));
    assert_eq!(machine.processor.instruction_pointer().0, CODE + 32);
    let general = &machine.processor.general;
    assert_eq!([8, 10, 11].map(|register| general.value(register)), [42, 0, 43]);

    // The same by hand: the run ends at the call, which is then stepped over.
    let mut stepped = self::machine();
    assert!(matches!(stepped.processor.run(u64::MAX), Exit::Fault(fault) if fault.immediate == 1));
    stepped.processor.general.set(8, 42);
    stepped.processor.general.set(10, 0);
    stepped.processor.skip_instruction();
    assert!(matches!(stepped.processor.run(u64::MAX), Exit::Fault(fault) if fault.immediate == 2));
    assert_eq!(
        machine.processor.instructions_retired(),
        stepped.processor.instructions_retired()
    );
}

#[test]
fn a_call_that_fails_says_so_and_limits_hold_around_calls() {
    let mut machine = machine();
    machine.processor.general.set(9, 0);
    machine.processor.set_light_calls(Some(Arc::new(Doubling)));
    // The two instructions beside the calls, with what their bundles hold.
    assert_eq!(machine.processor.run(1), Exit::Limit);
    assert!(matches!(machine.processor.run(u64::MAX), Exit::Fault(fault) if fault.immediate == 2));
    let general = &machine.processor.general;
    assert_eq!(
        [8, 10, 11].map(|register| general.value(register)),
        [22, u64::MAX, 23]
    );
}
