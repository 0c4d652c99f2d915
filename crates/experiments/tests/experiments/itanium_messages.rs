//! What messages do besides being fast: the cases of `guests/ia64/ipc`, by each version of the path. A fast path has to
//! notice every one of them and leave it to the generic path, which has to do it right.

use sidestep_experiments::itanium::kernel::{Guest, KernelError, Meter, Run};
use sidestep_ia64::execution::Untimed;
use sidestep_itanium2::Parameters;
use sidestep_runner::machine::Timed;

const VERSIONS: [&str; 4] = ["generic", "first", "scheduled", "measured"];
/// The machine's exit code when a program has an exception, which nobody handles.
const EXCEPTION: u64 = 3;

/// The cases that the guest's sources name.
fn cases() -> Vec<&'static str> {
    let header = include_str!("../../../../guests/ia64/ipc/cases.h");
    let rows = header
        .lines()
        .filter_map(|line| line.trim().strip_prefix("row(\""));
    rows.filter_map(|row| row.split('"').next()).collect()
}

/// The exit code of a case: where one is not zero, the line of `cases.c` behind 1000, or what `layout.h` says.
fn code<M: Meter>(version: &str, case: &str, meter: M) -> u64 {
    let run = Run {
        guest: Guest::Messages,
        parameters: format!("ipc {version} {case}"),
        memory_mb: 64,
        instructions_max: 100_000_000,
        quantum_ticks: Guest::Messages.quantum_ticks(),
        keeps_dumps: false,
    };
    match run.run(&mut [meter], &|| false) {
        Ok(_) => 0,
        Err(KernelError::Exit { code, .. }) => code,
        Err(error) => panic!("{version} {case}: {error}"),
    }
}

/// What is no value, and what is no longer mapped, ends in the program's exception; all else goes well.
fn expected(case: &str) -> u64 {
    if case.starts_with("nat-") || case == "grant" {
        EXCEPTION
    } else {
        0
    }
}

#[test]
fn every_version_leaves_every_case_to_the_generic_path() {
    let cases = cases();
    assert!(cases.len() > 20, "{cases:?}");
    for case in cases {
        for version in VERSIONS {
            assert_eq!(code(version, case, Untimed), expected(case), "{version} {case}");
        }
    }
}

#[test]
fn time_is_over_when_it_is_with_a_pipeline_model_too() {
    for case in ["no-time", "period", "point-in-time", "in-time"] {
        for version in VERSIONS {
            let meter = Timed::new(Parameters::default());
            assert_eq!(code(version, case, meter), expected(case), "{version} {case}");
        }
    }
}

#[test]
fn an_unknown_version_or_case_is_refused() {
    for (version, case) in [("fastest", "queue"), ("first", "queues"), ("first", "0")] {
        assert_eq!(code(version, case, Untimed), 64, "{version} {case}");
    }
}
