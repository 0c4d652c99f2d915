//! Linux on a whole machine: boots, ends, determinism, what is typed, what cannot be booted.
//!
//! Skipped, visibly, without a kernel: see [`linux`].

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::linux::*;

fn here() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Boots and waits for the end.
fn output(options: &[&str], line: &str) -> Option<Output> {
    Some(boot(here(), options, line)?.output().expect("sidestep starts"))
}

#[test]
fn every_number_of_processors_comes_up_with_little_and_much_memory() {
    for (processors, memory) in [("1", "256M"), ("4", "5G"), ("16", "8G")] {
        let options = ["--smp", processors, "--memory", memory];
        let Some(printed) = succeed(here(), &options, "dmesg; tour") else {
            return;
        };
        let activated = format!("Total of {processors} processors activated");
        assert!(processors == "1" || printed.contains(&activated), "{printed}");
        assert!(
            printed.contains("tour: 317 checks in 11 parts, all right"),
            "{printed}"
        );
    }
}

#[test]
fn nodes_have_their_processors_and_memory_for_the_kernel_too() {
    let options = ["--smp", "4", "--nodes", "2", "--memory", "5G"];
    let Some(printed) = succeed(here(), &options, "dmesg; tour") else {
        return;
    };
    for line in [
        "Number of logical nodes in system = 2",
        "Brought up 2 nodes, 4 CPUs",
        "tour: 317 checks in 11 parts, all right",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

#[test]
fn devices_behind_bridges_are_found_and_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.raw");
    fs::write(&image, b"behind three bridges\n".repeat(512)).expect("the folder is writable");
    let disk = image.display().to_string();
    let options = ["--pci-bridges", "3", "--disk", &disk, "--net", "user"];
    let line = "dmesg; cat /dev/vda; ls /sys/class/net; tour";
    let Some(printed) = succeed(here(), &options, line) else {
        return;
    };
    for line in [
        "pci 0000:00:01.0: PCI bridge to [bus 01-03]",
        "pci 0000:02:00.0: PCI bridge to [bus 03]",
        "virtio-pci 0000:03:00.0",
        "behind three bridges",
        "eth0",
        "tour: 317 checks in 11 parts, all right",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

#[test]
fn two_boots_with_four_processors_are_the_same_to_the_byte_and_the_instruction() {
    // The time that a command takes is counted in instructions; a limit cuts the output at one.
    let run = |options: &[&str]| output(&[&["--smp", "4"], options].concat(), "time tour; dmesg");
    let Some(first) = run(&[]) else { return };
    let second = run(&[]).expect("as before");
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stdout));
    assert_eq!(first.status, second.status);
    assert!(first.stdout == second.stdout, "{}", text(&second.stdout));
    let cut = run(&["--max-instructions", "190000000"]).expect("as before");
    assert_eq!(cut.status.code(), Some(124), "{}", text(&cut.stdout));
    assert!(cut.stdout.len() < first.stdout.len() && first.stdout.starts_with(&cut.stdout));
}

#[test]
fn what_is_written_before_power_off_is_shown_on_the_hosts_clock() {
    let Some((kernel, initramfs)) = files() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let description = folder.path().join("host-clock.toml");
    let contents = format!(
        "[machine]\nprocessors = 4\nclock = 'host'\n[kernel]\nfile = '{}'\ninitrd = '{}'\nappend = '{}'\n",
        kernel.display(),
        initramfs.display(),
        "console=ttyS0 panic=-1 quiet -- sh -c \"dmesg; tour\"",
    );
    fs::write(&description, contents).expect("a description");
    let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .arg("run")
        .arg(&description)
        .stdin(Stdio::null())
        .output()
        .expect("sidestep starts");
    // Thousands of characters are on their way through the serial port when the program's last line is written; behind
    // it the kernel says that it is the end.
    let printed = successful(&output);
    let written = printed
        .trim_end()
        .lines()
        .rev()
        .find(|line| !line.contains("reboot: "));
    assert_eq!(
        written,
        Some("tour: 317 checks in 11 parts, all right"),
        "{printed}"
    );
}

#[test]
fn a_compressed_kernel_boots_with_one_processor_of_several() {
    let (Some(kernel), Some((expanded, initramfs))) = (tests_need::kernel(), files()) else {
        return;
    };
    if !tests_need::host(
        &kernel != expanded,
        "the kernel that SIDESTEP_KERNEL names is not compressed",
    ) {
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(["run", "--smp", "4", "--kernel"])
        .arg(kernel)
        .arg("--initrd")
        .arg(initramfs)
        .args(["--append", "console=ttyS0 nosmp panic=-1 -- uname"])
        .output()
        .expect("sidestep starts");
    assert!(successful(&output).contains("smp: Brought up 1 node, 1 CPU"));
}

#[test]
fn what_is_typed_is_run_and_a_reset_starts_again() {
    let Some((kernel, initramfs)) = files() else {
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command
        .args(["run", "--kernel"])
        .arg(kernel)
        .arg("--initrd")
        .arg(initramfs);
    command
        .args(["--append", "console=ttyS0 quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut child, mut input) = typing(&mut command);
    // Typed ahead: the machine has yet to start.
    input.write_all(b"uname\nreboot\n").expect("it reads");
    let printed = wait_for(&mut child, "Restarting system");
    assert!(printed.contains("Linux (none)"), "{printed}");
    input.write_all(b"poweroff\n").expect("it reads");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_reset_ends_the_command_where_that_is_asked_for() {
    let Some(output) = output(&["--no-reboot"], "reboot") else {
        return;
    };
    successful(&output);
}

#[test]
fn a_panic_has_an_exit_code_of_its_own_whether_the_kernel_resets_or_waits() {
    let Some((kernel, initramfs)) = files() else {
        return;
    };
    for wait in ["panic=-1", "panic=0"] {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .args(["run", "--kernel"])
            .arg(kernel)
            .arg("--initrd")
            .arg(initramfs)
            .args(["--append", &format!("console=ttyS0 {wait} -- cat /nothing")])
            .output()
            .expect("sidestep starts");
        assert_eq!(output.status.code(), Some(70), "{wait}: {}", text(&output.stdout));
        let said = text(&output.stderr);
        assert!(
            said.contains("the guest's kernel panicked: Attempted to kill init!"),
            "{said}"
        );
        // Who called whom, from the unwind tables: from the panic to the end of the process.
        let callers: Vec<_> = ["  panic+0x", "  do_exit+0x", "  do_group_exit+0x"]
            .iter()
            .map(|name| said.find(name))
            .collect();
        assert!(
            callers.iter().all(Option::is_some) && callers.is_sorted(),
            "{said}"
        );
    }
}

#[test]
fn what_cannot_be_booted_is_named_with_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("empty"), "").expect("the folder is writable");
    fs::write(path("text"), "no kernel").expect("the folder is writable");
    fs::write(path("cut.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03").expect("the folder is writable");
    fs::write(path("cut.xz"), b"\xfd7zXZ\0\0\x04").expect("the folder is writable");
    for (options, expected) in [
        (&["--kernel", "missing"][..], "missing: cannot be read"),
        (&["--kernel", "."], "cannot be read"),
        (&["--kernel", "empty"], "empty: is no ELF executable"),
        (&["--kernel", "text"], "text: is no ELF executable"),
        (
            &["--kernel", "cut.gz"],
            "cut.gz: is a damaged or truncated gzip file",
        ),
        (
            &["--kernel", "cut.xz"],
            "cut.xz: is a damaged or truncated xz file",
        ),
        (&["--kernel", "text", "--smp", "0"], "from 1 to 256, not 0"),
        (&["--kernel", "text", "--smp", "257"], "from 1 to 256, not 257"),
        (&["--kernel", "text", "--smp", "two"], "--smp"),
        (&["--kernel", "text", "--nodes", "2"], "from 1 to 1, not 2"),
        (&["--kernel", "text", "--memory", "1M"], "at least"),
        (&["--kernel", "text", "--memory", "much"], "--memory"),
        (&["--kernel", "text", "--disk", "missing"], "missing"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .arg("run")
            .args(options)
            .current_dir(&folder)
            .output()
            .expect("sidestep starts");
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{options:?}: {said}");
        assert!(said.contains(expected), "{options:?}: {said}");
    }
    let Some((kernel, _)) = files() else { return };
    fs::write(path("large"), vec![0; 300 << 20]).expect("the folder is writable");
    let kernel_bytes = fs::read(kernel).expect("the kernel");
    fs::write(path("truncated"), &kernel_bytes[..kernel_bytes.len() / 2]).expect("the folder is writable");
    let kernel = kernel.display().to_string();
    for (options, expected) in [
        (
            &["--kernel", &kernel, "--memory", "256M", "--initrd", "large"][..],
            "do not fit",
        ),
        (
            &["--kernel", &kernel, "--initrd", "missing"],
            "missing: cannot be read",
        ),
        (&["--kernel", "truncated"], "truncated: is truncated"),
        (
            &["--kernel", &kernel, "--memory", "64M"],
            "where the machine has no memory",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .arg("run")
            .args(options)
            .current_dir(&folder)
            .output()
            .expect("sidestep starts");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options:?}: {said}");
        assert!(said.contains(expected), "{options:?}: {said}");
    }
}
