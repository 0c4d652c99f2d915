//! Files that make no sense as inputs: whatever a file argument leads to, the answer is one line that names it.

use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};

/// Each file argument of each subcommand; `@` stands for the file.
const ARGUMENTS: &[&[&str]] = &[
    &["run", "@"],
    &["run", "--kernel", "@"],
    &["run", "--disk", "@"],
    &["run", "--restore", "@"],
    &["exec", "@"],
    &["disasm", "@"],
    &["assemble", "@", "--output", "image"],
    &["explain", "@"],
    &["perf", "annotate", "--input", "@"],
    &["perf", "record", "--output", "recording", "@"],
    &["gang", "run", "--sets", "@", "--", "true"],
    &[
        "compare",
        "gang.groups",
        "--no-cache",
        "--set",
        "factors=2",
        "--set",
        "matrix=@",
    ],
];

#[test]
fn what_has_no_end_or_is_a_folder_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    // Named as descriptions are, so that they are taken for such.
    symlink("/dev/zero", folder.path().join("endless.toml")).expect("a link");
    std::fs::create_dir(folder.path().join("folder.toml")).expect("a folder");
    for arguments in ARGUMENTS {
        for file in ["endless.toml", "folder.toml"] {
            let arguments = arguments.iter().map(|word| word.replace('@', file));
            let arguments: Vec<String> = arguments.collect();
            let output: Output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
                .args(&arguments)
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .output()
                .expect("the command runs");
            let error = String::from_utf8(output.stderr).expect("errors are UTF-8");
            assert!(!output.status.success(), "{arguments:?}");
            assert!(error.contains(file), "{arguments:?}: {error}");
            assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left.len(), 2, "nothing is written: {left:?}");
}

#[test]
fn options_that_mean_nothing_for_what_is_booted_are_refused() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let console = format!("{examples}/console.toml");
    let host = format!("{examples}/sidecore-host.toml");
    for option in [
        &["--initrd", "file"][..],
        &["--append", "text"],
        &["--smp", "2"],
        &["--memory", "1G"],
        &["--net", "user"],
        &["--virtio", "pci"],
    ] {
        for booted in [
            &[&console][..],
            &[&host],
            &[&"--restore".to_owned(), &"saved".to_owned()],
        ] {
            let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
                .arg("run")
                .args(booted)
                .args(option)
                .stdin(Stdio::null())
                .output()
                .expect("the command runs");
            let error = String::from_utf8(output.stderr).expect("errors are UTF-8");
            assert_eq!(output.status.code(), Some(1), "{booted:?} {option:?}: {error}");
            assert!(error.contains(&format!(": {} is not for", option[0])), "{error}");
            assert!(output.stdout.is_empty(), "{booted:?} {option:?} was started");
        }
    }
    let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(["run", &console, "--accept-changed-disks"])
        .stdin(Stdio::null())
        .output()
        .expect("the command runs");
    let error = String::from_utf8(output.stderr).expect("errors are UTF-8");
    assert!(
        error.contains("--accept-changed-disks is not for machines that start anew"),
        "{error}"
    );
}

#[test]
fn disks_that_are_to_stay_as_they_are_must_be_there() {
    for booted in [&["image.fuce"][..], &["--kernel", "vmlinux"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .arg("run")
            .args(booted)
            .arg("--snapshot")
            .stdin(Stdio::null())
            .output()
            .expect("the command runs");
        let error = String::from_utf8(output.stderr).expect("errors are UTF-8");
        assert!(!output.status.success(), "{booted:?}");
        assert!(
            error.contains("--snapshot is for disks, and there is none"),
            "{error}"
        );
    }
}
