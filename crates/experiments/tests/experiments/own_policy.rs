//! The example of a policy of one's own: short, and it runs.

use std::process::Command;

const LINES_MAX: usize = 60;

#[test]
fn the_example_is_short() {
    let lines = include_str!("../../../../examples/own_policy.rs").lines().count();
    assert!(lines < LINES_MAX, "{lines} lines");
}

#[test]
fn the_example_runs() {
    // Cargo builds examples beside the tests, before it runs them.
    let here = std::env::current_exe().unwrap();
    let example = here
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/own_policy");
    let output = Command::new(example).output().expect("cargo built the example");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(
        printed.contains("own.policy") && printed.contains("bulk"),
        "{printed}"
    );
}
