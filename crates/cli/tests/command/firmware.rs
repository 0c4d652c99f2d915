//! Disks that are booted, by the command: what is tried on them is tried in `sidestep-machine`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .arg("run")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the command runs")
}

#[test]
fn a_disk_with_nothing_to_boot_is_an_error_however_it_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("disk.raw"), [0; 64 << 10]).expect("written");
    fs::write(
        folder.path().join("machine.toml"),
        "[[disk]]\nfile = 'disk.raw'\n",
    )
    .expect("written");
    for (arguments, device) in [
        (&["--disk", "disk.raw"][..], "hd0"),
        (&["--disk", "disk.raw,bus=scsi,media=cdrom", "--smp", "2"], "cd0"),
        (&["machine.toml"], "hd0"),
    ] {
        let output = run(folder.path(), arguments);
        let said = String::from_utf8_lossy(&output.stdout);
        let expected = format!("Nothing to boot: no FAT file system of {device} has");
        assert!(said.contains(&expected), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn what_is_a_kernels_is_refused_where_a_disk_is_booted() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("disk.raw"), [0; 64 << 10]).expect("written");
    for option in ["--initrd", "--append"] {
        let output = run(folder.path(), &["--disk", "disk.raw", option, "text"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains(&format!("disk.raw: {option} is not for disks that are booted")),
            "{error}"
        );
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
    }
}
