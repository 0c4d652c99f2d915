//! What shells and `man` are told about the command.

use std::fs;
use std::process::{Command, Output};

fn sidestep(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.args(arguments).output().expect("sidestep starts")
}

#[test]
fn every_shell_gets_completions_that_know_options_of_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = sidestep(&["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{shell}");
        for known in ["exec", "strace", "max-instructions"] {
            assert!(script.contains(known), "{shell}: {known}");
        }
    }
}

#[test]
fn bash_reads_its_completions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = folder.path().join("sidestep");
    fs::write(&script, sidestep(&["completions", "bash"]).stdout).expect("a file");
    let asks = "source \"$0\" && COMP_WORDS=(sidestep perf st) COMP_CWORD=2 && _sidestep sidestep st perf && echo ${COMPREPLY[@]}";
    let bash = Command::new("bash")
        .args(["-c", asks])
        .arg(&script)
        .output()
        .expect("bash starts");
    let (said, error) = (
        String::from_utf8_lossy(&bash.stdout),
        String::from_utf8_lossy(&bash.stderr),
    );
    assert_eq!(said.trim(), "stat", "{error}");
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pages = folder.path().join("share/man1");
    let output = sidestep(&["manual", pages.to_str().expect("a name")]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for command in ["", "-exec", "-run", "-compare", "-perf-stat", "-gang-watch"] {
        let page = fs::read_to_string(pages.join(format!("sidestep{command}.1"))).expect("a page");
        assert!(page.contains(".TH sidestep"), "{page}");
    }
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let output = sidestep(&["manual", file.to_str().expect("a name")]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains("file: cannot be made"),
        "{error}"
    );
}
