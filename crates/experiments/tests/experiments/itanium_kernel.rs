//! The kernel of `guests/ia64/kernel`: its own tests under every boot parameter, on one and two CPUs.

use sidestep_experiments::itanium::kernel::{Finished, Guest, KernelError, Run};
use sidestep_ia64::execution::Untimed;

fn run(processors: usize, parameters: &str) -> Result<Finished, KernelError> {
    run_apart(Guest::Kernel(processors).quantum_ticks(), processors, parameters)
}

/// With processors whose counters are up to `quantum` apart.
fn run_apart(quantum_ticks: u64, processors: usize, parameters: &str) -> Result<Finished, KernelError> {
    let run = Run {
        guest: Guest::Kernel(processors),
        parameters: parameters.to_owned(),
        memory_mb: 192,
        instructions_max: 100_000_000,
        quantum_ticks,
        keeps_dumps: false,
    };
    run.run(&mut vec![Untimed; processors], &|| false)
}

/// Every check of `programs/tests.c` holds: page faults on demand, fork, the register stack, system calls by `break`
/// and by `epc`, signals, floating point, pipes, time slices, shared objects.
fn passes(processors: usize, parameters: &str) {
    let finished = run(processors, parameters)
        .unwrap_or_else(|error| panic!("{processors} CPUs, `{parameters}`: {error}"));
    let checks = finished
        .console
        .lines()
        .filter(|line| line.starts_with("ok "))
        .count();
    assert!(checks >= 84, "{}", finished.console);
    let traced = finished
        .console
        .matches("trace: process 1: call 1041(7, 8, 9) = 1\n")
        .count();
    assert_eq!(traced, 2, "by break and by epc: {}", finished.console);
    assert!(finished.console.ends_with("all right\n"), "{}", finished.console);
}

#[test]
fn the_kernel_passes_its_tests_with_either_format_and_the_walker_on_or_off() {
    for (processors, parameters) in [
        (1, ""),
        (2, "walker=off"),
        (2, "format=long"),
        (1, "format=long walker=off"),
    ] {
        passes(processors, parameters);
    }
}

#[test]
fn the_kernel_passes_its_tests_with_superpages_and_shared_translations() {
    for (processors, parameters) in [
        (1, "superpages=on"),
        (2, "superpages=on format=long"),
        (2, "sharing=region"),
        (2, "sharing=key format=long"),
        (1, "format=long hashed-table=15"),
        (2, "format=long hashed-table=15"),
    ] {
        passes(processors, parameters);
    }
}

#[test]
fn the_kernel_passes_its_tests_with_full_signal_state() {
    passes(1, "signal-state=full");
    passes(2, "signal-state=full format=long");
}

#[test]
fn time_goes_back_for_nobody_where_counters_are_far_apart() {
    for parameters in ["", "clock=ticks"] {
        let finished = run_apart(20_000, 2, parameters).expect("the kernel passes its tests");
        let check = "ok    time does not go back between processes";
        assert!(finished.console.contains(check), "{}", finished.console);
    }
}

#[test]
fn the_same_run_gives_the_same_bytes_and_instructions() {
    for processors in [1, 2] {
        let [one, other] =
            [0; 2].map(|_| run(processors, "format=long").expect("the kernel passes its tests"));
        assert_eq!(one, other);
        assert_eq!(one.retired.len(), processors);
        assert!(one.retired.iter().all(|&retired| retired > 0));
    }
}

#[test]
fn wrong_parameters_end_the_machine_and_say_what_is_right() {
    for (parameters, expected) in [
        (
            "format=middle",
            "parameter `format=middle`: expected short or long",
        ),
        (
            "tick=7",
            "parameter `tick=7`: expected a number from 10000 to 1000000000",
        ),
        ("frobnicate=1", "unknown parameter `frobnicate`"),
        ("format", "parameter `format`: expected key=value"),
        ("sharing=key", "sharing=key needs format=long"),
        ("program=nothing", "parameter program"),
    ] {
        match run(1, parameters) {
            Err(KernelError::Exit { code: 70, console }) => {
                assert!(console.contains(expected), "`{parameters}`: {console}");
            }
            other => panic!("`{parameters}`: {other:?}"),
        }
    }
}

#[test]
fn system_calls_and_signals_mark_both_phases_and_take_the_way_they_are_told() {
    let cost = |program: &str| {
        let finished =
            run(1, &format!("program={program}")).unwrap_or_else(|error| panic!("{program}: {error}"));
        finished.between(3, 4).instructions - finished.between(1, 2).instructions
    };
    for call in ["getpid", "getppid", "gettimeofday"] {
        let by_break = cost(&format!("calls {call} break static 100"));
        let by_gate = cost(&format!("calls {call} epc dynamic 100"));
        assert!(
            by_gate * 2 < by_break,
            "{call}: {by_gate} by epc, {by_break} by break"
        );
    }
    let minimal = cost("signals 100");
    let full = run(1, "signal-state=full program=signals 100").expect("the signals arrive");
    let full = full.between(3, 4).instructions - full.between(1, 2).instructions;
    assert!(full > minimal, "{full} with full state, {minimal} with minimal");
}

#[test]
fn switching_contexts_marks_both_phases() {
    for processors in [1, 2] {
        let finished = run(processors, "program=context 5 4 3").expect("the ring turns");
        let labels: Vec<u64> = finished.readings.iter().map(|reading| reading.label).collect();
        assert_eq!(labels, [1, 2, 3, 4]);
        assert!(finished.between(3, 4).instructions > finished.between(1, 2).instructions);
    }
}
