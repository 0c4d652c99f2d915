//! Several processors on one memory: Itanium's ordering by acquire, release and fence, on two host threads.
//!
//! What must not happen is looked for in many rounds; what may happen is not asked for, since hosts differ.

use std::sync::{Arc, Barrier};
use std::thread;

use sidestep_ia64::{Exit, FaultKind, PhysicalMemory, Processor};

use super::harness::*;

const ROUNDS: usize = 2000;
/// Two variables on different cache lines.
const X: u64 = DATA;
const Y: u64 = DATA + 0x100;
/// Where the second processor's program stands.
const OTHER_CODE: u64 = CODE + 0x1000;

/// Runs two programs side by side, `ROUNDS` times from X = Y = 0. Each has r9 at X, r10 at Y and r11 = 1; the pairs of
/// r20 and r21 that the two ended with.
fn race(first: &[Line], second: &[Line]) -> Vec<[(u64, u64); 2]> {
    let mut machine = Machine::new();
    let end = [("break.m", 0, &[HYPERCALL as i64][..])];
    let programs = [(CODE, first), (OTHER_CODE, second)];
    for (start, lines) in programs {
        machine.write_code(start, lines);
        machine.write_code(start + lines.len() as u64 * 16, &end);
    }
    let start_line = Arc::new(Barrier::new(2));
    let mut processors = programs.map(|(start, _)| {
        let mut processor = Processor::new_system(Arc::clone(&machine.memory) as Arc<dyn PhysicalMemory>);
        processor.set_hypercall(HYPERCALL);
        for (register, value) in [(9, X), (10, Y), (11, 1)] {
            processor.general.set(register, value);
        }
        (processor, start)
    });
    let mut outcomes = Vec::new();
    for _ in 0..ROUNDS {
        machine.write_words(X, &[0]);
        machine.write_words(Y, &[0]);
        thread::scope(|scope| {
            for (processor, start) in &mut processors {
                let start_line = Arc::clone(&start_line);
                scope.spawn(move || {
                    processor.set_instruction_pointer(*start, 0);
                    start_line.wait();
                    let exit = processor.run(1000);
                    assert!(
                        matches!(exit, Exit::Fault(fault) if fault.kind == FaultKind::Break),
                        "{exit:?}"
                    );
                });
            }
        });
        outcomes.push([0, 1].map(|index| {
            let general = &processors[index].0.general;
            (general.value(20), general.value(21))
        }));
    }
    outcomes
}

#[test]
fn a_release_publishes_what_was_stored_before_it_to_an_acquire() {
    let writer = [("st8", 0, &[9, 11][..]), ("st8.rel", 0, &[10, 11])];
    let reader = [("ld8.acq", 0, &[20, 10][..]), ("ld8", 0, &[21, 9])];
    for [_, (flag, data)] in race(&writer, &reader) {
        assert!(
            (flag, data) != (1, 0),
            "the flag was seen, the data behind it not"
        );
    }
}

#[test]
fn fences_forbid_that_both_miss_the_others_store() {
    let first = [("st8", 0, &[9, 11][..]), ("mf", 0, &[]), ("ld8", 0, &[20, 10])];
    let second = [("st8", 0, &[10, 11][..]), ("mf", 0, &[]), ("ld8", 0, &[20, 9])];
    for [(one, _), (other, _)] in race(&first, &second) {
        assert!((one, other) != (0, 0), "both loads passed both fences");
    }
}

#[test]
fn loads_keep_their_order_behind_an_acquire() {
    // Two acquiring reads of one variable never go back in time.
    let writer = [("st8", 0, &[9, 11][..])];
    let reader = [("ld8.acq", 0, &[20, 9][..]), ("ld8.acq", 0, &[21, 9])];
    for [_, (earlier, later)] in race(&writer, &reader) {
        assert!(earlier <= later, "{earlier} before {later}");
    }
}

#[test]
fn semaphores_lose_no_update() {
    let program = [
        ("fetchadd8.acq", 0, &[20, 9, 1][..]),
        ("fetchadd8.rel", 0, &[21, 9, 1]),
    ];
    for [(a, b), (c, d)] in race(&program, &program) {
        let mut seen = [a, b, c, d];
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3]);
        assert!(a < b && c < d);
    }
}
