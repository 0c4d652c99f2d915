//! Calls that are served while the processor runs.

use std::sync::Arc;

use sidestep_ia64::encoding::Bundle;
use sidestep_ia64::{Exit, FaultKind, Gate, LightCalls, Processor};

use crate::machine::{CODE, Machine, bundle};

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

/// Serves the call 7 by `break 256`: adds its two arguments; the gate is known of or not.
struct Adding {
    gate: Option<Gate>,
}

impl LightCalls for Adding {
    fn perform(&self, immediate: u64, processor: &Processor) -> Option<[u64; 2]> {
        let first = 32 + processor.frame.locals as u8;
        let argument = |index| processor.general.value(first + index);
        let is_known = (immediate, processor.general.value(15)) == (256, 7);
        is_known.then(|| [argument(0) + argument(1), 0])
    }

    fn gate(&self) -> Option<Gate> {
        self.gate
    }
}

/// Where the gate is.
const GATE: u64 = CODE + 16 * 16;

/// A machine whose program calls the gate with 5 and 8, by the branch register `link`, for the call `number`.
fn machine_with_gate(number: i64, link: i64, is_known: bool) -> Machine {
    let mut machine = Machine::new();
    machine.processor.branch[7] = GATE;
    let mut bundles: Vec<Bundle> = [
        ("alloc", 0, &[14, 64, 6, 4, 0][..]),
        ("adds", 0, &[33, 1, 0]),
        ("adds", 0, &[36, 5, 0]),
        ("adds", 0, &[37, 8, 0]),
        ("adds", 0, &[15, number, 0]),
        ("br.call B5", 0, &[link, 7]),
        ("adds", 0, &[11, 1, 8]),
    ]
    .map(bundle)
    .into();
    bundles.resize(16, Bundle::from_bits(0));
    let (call, back) = (bundle(("break.m", 0, &[256])), bundle(("br.ret", 0, &[link])));
    bundles.push(Bundle::new(
        back.template(),
        [call.slot(0), back.slot(1), back.slot(2)],
    ));
    machine.load_bundles(&bundles);
    let gate = Gate {
        address: GATE,
        immediate: 256,
    };
    let calls = Adding {
        gate: is_known.then_some(gate),
    };
    machine.processor.set_light_calls(Some(Arc::new(calls)));
    machine
}

/// What a program and its environment see of a processor.
fn visible(processor: &Processor) -> impl PartialEq + std::fmt::Debug + use<> {
    let stack = processor.register_stack();
    (
        processor.instruction_pointer(),
        processor.instructions_retired(),
        processor.frame.bits(),
        (32..32 + processor.frame.size as u8)
            .chain(0..32)
            .map(|register| processor.general.value(register))
            .collect::<Vec<_>>(),
        processor.branch,
        (0..128)
            .map(|register| processor.application(register))
            .collect::<Vec<_>>(),
        (processor.predicates, stack.dirty(), stack.depth()),
    )
}

#[test]
fn a_call_through_a_gate_leaves_what_the_gate_would_have_left() {
    // One that is served, one that ends the run inside the gate, and one that returns by another register.
    for (number, link, last) in [(7, 6, 0), (8, 6, 256), (7, 5, 0)] {
        let [through, at] = [false, true].map(|is_known| {
            let mut machine = machine_with_gate(number, link, is_known);
            let Exit::Fault(fault) = machine.processor.run(u64::MAX) else {
                panic!("a break that nobody serves ends the run");
            };
            assert_eq!((fault.kind, fault.immediate), (FaultKind::Break, last));
            visible(&machine.processor)
        });
        assert_eq!(through, at, "call {number} by b{link}");
    }
    let mut machine = machine_with_gate(7, 6, true);
    machine.processor.run(u64::MAX);
    assert_eq!(machine.processor.general.value(11), 14);
}

#[test]
fn runs_end_inside_a_gate_where_their_limit_is() {
    for limit in 1..24 {
        let [through, at] = [false, true].map(|is_known| {
            let mut machine = machine_with_gate(7, 6, is_known);
            let exit = machine.processor.run(limit);
            (format!("{exit:?}"), visible(&machine.processor))
        });
        assert_eq!(through, at, "{limit} instructions");
        assert!(through.0 == "Limit" || limit > 20);
    }
}
