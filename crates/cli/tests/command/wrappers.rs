//! What the test suites of others run programs by (`contrib`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What glibc's `make check` gets for its words, by an emulator that says how it is called.
fn wrapped(words: &[&str]) -> Output {
    Command::new(repository().join("contrib/glibc/test-wrapper"))
        .args(words)
        .env("SIDESTEP_EXEC", "echo exec")
        .output()
        .expect("the wrapper starts")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn glibcs_wrapper_hands_programs_to_the_emulator_and_the_hosts_own_to_the_host() {
    let tour = repository().join("guests/ia64/bin/tour");
    let tour = tour.to_str().expect("the repository's path is text");
    let emulated = wrapped(&["env", "TEXT=it's a word", "-u", "HOME", tour, "two words"]);
    assert_eq!(
        printed(&emulated),
        format!("exec --env TEXT=it's a word --unset-env HOME -- {tour} two words\n")
    );
    let alone = printed(&wrapped(&["env", "-i", "TEXT=x", tour]));
    assert!(alone.contains("--unset-env HOME "), "{alone}");
    assert!(alone.ends_with(&format!("--env TEXT=x -- {tour}\n")), "{alone}");
    let host = wrapped(&["env", "TEXT=it's a word", "sh", "-c", "echo $TEXT; exit 3"]);
    assert_eq!(
        (printed(&host).as_str(), host.status.code()),
        ("it's a word\n", Some(3))
    );
    let alone = wrapped(&["env", "-i", "TEXT=x", "sh", "-c", "echo $TEXT $HOME"]);
    assert_eq!(printed(&alone), "x\n");
    let script = wrapped(&["/bin/sh", "-c", "echo by its path"]);
    assert_eq!(printed(&script), "by its path\n");
}

#[test]
fn glibcs_wrapper_refuses_what_it_does_not_know() {
    for words in [&[][..], &["env"], &["env", "-0", "program"]] {
        let refused = wrapped(words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(
            String::from_utf8_lossy(&refused.stderr).starts_with("test-wrapper: "),
            "{words:?}"
        );
    }
}
