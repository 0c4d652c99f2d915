//! The guest programs in `guests/ia64/bin`, run by the `sidestep` command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One round of each benchmark that takes a moment, and what it prints; the same on any IA-64 system.
const BENCHMARKS: &[(&str, &str)] = &[
    ("sieve", "sieve: 1 rounds, checksum 202288087\n"),
    ("sort", "sort: 1 rounds, checksum 5184478138937287441\n"),
    ("hash", "hash: 1 rounds, checksum 17055979105635274752\n"),
    ("strings", "strings: 1 rounds, checksum 1729567\n"),
    ("records", "records: 1 rounds, checksum 9915263498291827558\n"),
    (
        "integer-matrix",
        "integer-matrix: 1 rounds, checksum 50454998737\n",
    ),
    ("calls", "calls: 1 rounds, checksum 3142356794401612204\n"),
    ("matmul", "matmul: 1 rounds, trace 1064.175443\n"),
    (
        "nbody",
        "nbody: 1 rounds, energy -55.877048641 -> -55.877048736\n",
    ),
    (
        "fft",
        "fft: 1 rounds, sum 515.161789, first 0.347427 -> 0.347427\n",
    ),
    ("lu", "lu: 1 rounds, worst error 0.000000000\n"),
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn execute(program: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .arg("exec")
        .arg(repository().join("guests/ia64/bin").join(program))
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the programs print text")
}

#[test]
fn the_tour_finds_everything_right() {
    let output = execute("tour", &[]);
    let expected = fs::read_to_string(repository().join("guests/ia64/tour/expected")).unwrap();
    assert_eq!(printed(&output), expected);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_readme_shows_what_the_tour_prints() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let expected = fs::read_to_string(repository().join("guests/ia64/tour/expected")).unwrap();
    assert!(
        readme.contains(&expected),
        "the README's transcript is not the tour's output:\n{expected}"
    );
}

#[test]
fn benchmarks_print_their_checksums() {
    for (program, expected) in BENCHMARKS {
        let output = execute(program, &["1"]);
        assert_eq!(printed(&output), *expected, "{output:?}");
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn contending_threads_end_with_the_right_answer() {
    for program in [
        "contend-mutex",
        "contend-barrier",
        "contend-atomics",
        "contend-pairs",
    ] {
        for _ in 0..5 {
            let output = execute(program, &["300"]);
            assert!(output.status.success(), "{output:?}");
        }
    }
}

#[test]
fn a_guest_sees_its_arguments_and_its_exit_code_is_the_commands() {
    let output = execute("sieve", &["nonsense"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        printed(&output).ends_with("expected one argument, a positive number, found `nonsense`\n"),
        "{output:?}"
    );
}

#[test]
fn images_are_what_the_sources_give() {
    let Some(compiler) = tests_need::cross_compiler() else {
        return;
    };
    let output = Command::new(repository().join("guests/ia64/build"))
        .arg("--check")
        .env("IA64_CC", compiler.gcc())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// What the userland measures depends on the host; that it ends does not: each process is told by the one before it.
#[test]
fn the_userland_measures_context_switches_and_page_faults() {
    let measure = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .args(["exec", "--argv0", words[0]])
            .arg(repository().join("guests/linux/bin/userland"))
            .args(&words[1..])
            .output()
            .expect("the command starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said)
    };
    for (words, begins) in [
        (
            ["context", "4", "16", "3"].as_slice(),
            "context 4 processes of 16 kB: ",
        ),
        (&["fault", "20", "2"], "fault 20 anonymous pages: "),
    ] {
        let (code, said) = measure(words);
        assert!(
            code == Some(0) && said.starts_with(begins) && said.ends_with(" ns\n"),
            "{code:?} {said}"
        );
    }
    for wrong in [
        ["context", "1", "16", "3"].as_slice(),
        &["fault", "0", "2"],
        &["fault"],
    ] {
        let (code, said) = measure(wrong);
        assert!(
            code == Some(2) && said.starts_with("usage: "),
            "{wrong:?}: {code:?} {said}"
        );
    }
}
