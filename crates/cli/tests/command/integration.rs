//! `sidestep ci`: commands in a guest, what is said of them, and what a failure is replayed from.
//!
//! What boots is skipped, visibly, without a kernel: see [`crate::linux`].

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::linux::{files, text};

/// Runs commands in a guest of two processors.
fn ci(folder: &Path, options: &[&str]) -> Option<Output> {
    ci_of("console=ttyS0 panic=-1", folder, options)
}

/// The same with a command line of the kernel.
fn ci_of(append: &str, folder: &Path, options: &[&str]) -> Option<Output> {
    let (kernel, initramfs) = files()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command
        .current_dir(folder)
        .arg("ci")
        .arg("--kernel")
        .arg(kernel)
        .arg("--initrd")
        .arg(initramfs)
        .args(["--append", append, "--smp", "2"])
        .args(options);
    Some(command.output().expect("sidestep starts"))
}

fn read(folder: &Path, name: &str) -> String {
    text(&fs::read(folder.join("sidestep-ci").join(name)).expect(name))
}

#[test]
fn a_failure_is_reported_and_replayed_to_the_instruction_with_the_disk_of_then() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let image = File::create(folder.join("disk.raw")).expect("a disk");
    image.set_len(512).expect("room");
    let options = [
        "--record",
        "--disk",
        "disk.raw",
        "--command",
        "echo before >/dev/vda",
        "--command",
        "cat /dev/vda; echo after >/dev/vda; cat /nothing",
        "--command",
        "echo never",
    ];
    let Some(output) = ci(folder, &options) else {
        return;
    };
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lines: Vec<_> = said
        .lines()
        .map(|line| line.split("  ").last().unwrap_or_default())
        .collect();
    assert!(lines.contains(&"echo before >/dev/vda"), "{said}");
    assert!(said.contains("cat /nothing: exit status 1"), "{said}");
    assert!(!said.contains("never"), "{said}");
    let results = read(folder, "junit.xml");
    assert!(
        results.contains(r#"tests="5" skipped="1" failures="1" errors="0""#),
        "{results}"
    );
    let log = read(folder, "console.log");
    assert_eq!(log, text(&output.stdout));
    let image = fs::read(folder.join("disk.raw")).expect("the image");
    assert!(image.iter().all(|byte| *byte == 0), "the guest writes to a copy");

    // The line that replays it, as a shell runs it, where somebody else has put the folder.
    let elsewhere = tempfile::tempdir().expect("a folder");
    fs::rename(folder.join("sidestep-ci"), elsewhere.path().join("sidestep-ci")).expect("a move");
    let replay = said.lines().last().expect("how it is replayed").trim();
    let replay = replay.replacen("sidestep", env!("CARGO_BIN_EXE_sidestep"), 1);
    let replayed = || {
        let output = Command::new("sh")
            .args(["-c", &replay])
            .current_dir(elsewhere.path())
            .stderr(Stdio::piped())
            .output()
            .expect("a shell");
        assert_eq!(output.status.code(), Some(124), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let printed = replayed();
    assert_eq!(printed, replayed(), "as often as one likes");
    assert!(
        printed.contains("before\r\n"),
        "the disk is what it was: {printed}"
    );
    let end = printed.trim_end();
    assert!(end.ends_with("sidestep-status 1\r\n#"), "{printed}");
    let second = log.rfind("cat /dev/vda").expect("the command's echo");
    assert!(
        log[second..].contains(&end[end.find("cat /dev/vda").expect("its echo")..]),
        "{printed}"
    );
}

#[test]
fn the_same_commands_give_the_same_log_and_results_and_no_recording_where_all_is_well() {
    let run = |keeps_quiet: bool| {
        let folder = tempfile::tempdir().expect("a folder");
        let commands = ["--record", "--command", "tour", "--command", "echo -n x"];
        let quiet = ["--quiet"];
        let options = [&commands[..], if keeps_quiet { &quiet } else { &[] }].concat();
        let output = ci(folder.path(), &options)?;
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(output.stdout.is_empty(), keeps_quiet);
        assert!(!folder.path().join("sidestep-ci/recording").exists());
        Some(["console.log", "junit.xml"].map(|name| read(folder.path(), name)))
    };
    let Some(first) = run(false) else { return };
    assert!(first == run(true).expect("as before"));
    assert!(first[0].contains("all right"), "{}", first[0]);
}

#[test]
fn a_panic_a_limit_and_a_guest_that_leaves_are_told_apart() {
    let usual = "console=ttyS0 panic=-1";
    let without_init = "console=ttyS0 panic=-1 rdinit=/none root=/dev/none";
    let cases: [(&str, &[&str], i32, &str); 3] = [
        (
            usual,
            &["--command", "true", "--prompt", "never", "--limit", "7"],
            124,
            "not over after 7 s",
        ),
        (
            usual,
            &["--command", "poweroff"],
            1,
            "the guest has switched the machine off",
        ),
        (
            without_init,
            &["--command", "true"],
            70,
            "the guest's kernel panicked",
        ),
    ];
    for (append, options, code, reason) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(output) = ci_of(append, folder.path(), options) else {
            return;
        };
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(reason), "{said}");
        let results = read(folder.path(), "junit.xml");
        assert!(results.contains("<error message="), "{results}");
    }
}

#[test]
fn a_disk_from_which_nothing_boots_is_told_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = File::create(folder.path().join("blank.raw")).expect("a disk");
    image.set_len(1 << 20).expect("room");
    let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .current_dir(folder.path())
        .args(["ci", "--disk", "blank.raw", "--command", "true"])
        .output()
        .expect("sidestep starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing on the disks boots"), "{said}");
    assert!(read(folder.path(), "console.log").contains("Nothing to boot"));
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_boots() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |options: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .current_dir(folder.path())
            .arg("ci")
            .args(options)
            .output()
            .expect("sidestep starts");
        assert!(!output.status.success() && !folder.path().join("sidestep-ci/junit.xml").exists());
        text(&output.stderr)
    };
    for (options, expected) in [
        (&["--command", "true"][..], "--kernel"),
        (&["--kernel", "k"], "--command"),
        (
            &["--kernel", "k", "--command", "a\nb"],
            "is no line that a terminal takes",
        ),
        (
            &["--kernel", "k", "--command", "true", "--prompt", "["],
            "--prompt",
        ),
        (&["--kernel", "k", "--command", "true", "--limit", "0"], "--limit"),
        (&["--kernel", "none", "--command", "true"], "none"),
        (
            &["--kernel", "none", "--command", "true", "--disk", "no.raw"],
            "no.raw: cannot be copied as a disk",
        ),
        (
            &["--kernel", "none", "--command", "true", "--output", "/dev/null"],
            "/dev/null",
        ),
    ] {
        let said = refused(options);
        assert!(said.contains(expected), "{options:?}: {said}");
    }
}
