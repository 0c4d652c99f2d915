//! `sidestep gang` as a user runs it: what it refuses, what it finds, and that it leaves nothing behind.
//!
//! Tests that change the host's scheduling or settings need root.

mod controlling;
mod guest_memory;
mod watching;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use sidestep_gang_linux::process;
use sidestep_gang_linux::scheduling::Scheduling;
use sidestep_gang_linux::setting::{AUTOGROUP, NUMA_BALANCING};

use watching::pages_fault_again;

/// The kernel's settings belong to the host: one test at a time.
static HOST: Mutex<()> = Mutex::new(());

fn host() -> MutexGuard<'static, ()> {
    HOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn sidestep(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.arg("gang").args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    sidestep(arguments).output().expect("the command starts")
}

fn error_of(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert!(!output.status.success(), "{arguments:?} must fail");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder for one test's journals, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sidestep-gang-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("a temporary folder's name is text")
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(&self.0).expect("the folder").next().is_none()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A workload that runs until the test ends.
struct Running(Child);

impl Running {
    fn workload(arguments: &[&str]) -> Self {
        let mut command = sidestep(&["workload"]);
        command
            .args(arguments)
            .args(["--seconds", "600"])
            .stdout(Stdio::null());
        Self(command.spawn().expect("the workload starts"))
    }

    fn number(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How all threads of some processes are scheduled, and the kernel's settings.
fn state(processes: &[i32]) -> (Vec<(i32, Scheduling)>, Vec<String>) {
    let threads = processes.iter().flat_map(|&process| process::threads(process));
    let scheduling = threads
        .map(|thread| (thread, Scheduling::of(thread).expect("a living thread")))
        .collect();
    let settings = [NUMA_BALANCING, AUTOGROUP].map(|path| fs::read_to_string(path).unwrap_or_default());
    (scheduling, settings.to_vec())
}

/// Waits until a workload has all its threads.
fn wait_for_threads(process: i32, threads: usize) {
    let began = Instant::now();
    while process::threads(process).len() < threads {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the workload has no {threads} threads"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_must_be_left_alone_is_refused() {
    let folder = Folder::new("refused");
    for command in ["run", "watch"] {
        let refusal = error_of(&[command, "--state", folder.text(), "--pid", "1"]);
        assert!(refusal.contains("process 1: is PID 1"), "{refusal}");
        let missing = error_of(&[command, "--state", folder.text(), "--pid", "2147483647"]);
        assert!(missing.contains("does not exist"), "{missing}");
        let nothing = error_of(&[command, "--state", folder.text()]);
        assert!(
            nothing.contains("expected --pid PID,") && nothing.contains("or -- COMMAND"),
            "{nothing}"
        );
    }
    let empty = error_of(&["run", "--state", folder.text(), "--", "true", "::"]);
    assert!(empty.contains("an empty command"), "{empty}");
    let missing = error_of(&[
        "run",
        "--state",
        folder.text(),
        "--sets",
        "/nowhere/a.json",
        "--",
        "true",
    ]);
    assert!(missing.contains("cannot read /nowhere/a.json"), "{missing}");
    let factor = error_of(&["run", "--factor=-1", "--", "true"]);
    assert!(factor.contains("positive decimal number"), "{factor}");
    assert!(folder.is_empty(), "a refusal leaves no journal");
}

#[test]
fn that_nobody_reads_is_no_error() {
    let folder = Folder::new("unread");
    for arguments in [
        &["restore", "--state", folder.text()][..],
        &["workload", "is", "--class", "s", "--threads", "1"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = sidestep(arguments)
            .stdout(writer)
            .output()
            .expect("the command starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && error.is_empty(),
            "{arguments:?}: {error}"
        );
    }
}

#[test]
fn a_malformed_recording_is_named() {
    let folder = Folder::new("malformed");
    let path = folder.0.join("recording.json");
    fs::write(&path, "{\"threads\": 3}").expect("a file");
    let error = error_of(&["run", "--sets", path.to_str().expect("text"), "--", "true"]);
    assert!(
        error.contains("recording.json") && error.contains("expected a recording"),
        "{error}"
    );
}

#[test]
fn a_recording_of_a_watch_serves_the_runner_and_the_laboratory() {
    if !tests_need::root("watching page faults of the host") || !pages_fault_again() {
        return;
    }
    let _host = host();
    let folder = Folder::new("recording");
    let path = folder.0.join("recording.json");
    let path = path.to_str().expect("text");
    let program = env!("CARGO_BIN_EXE_sidestep");
    let watched = output(&[
        "watch",
        "--state",
        folder.text(),
        "--save",
        path,
        "--",
        program,
        "gang",
        "workload",
        "pairs",
        "--threads",
        "2",
        "--seconds",
        "1",
    ]);
    assert!(
        watched.status.success(),
        "{}",
        String::from_utf8_lossy(&watched.stderr)
    );
    let run = output(&[
        "run",
        "--state",
        folder.text(),
        "--sets",
        path,
        "--",
        program,
        "gang",
        "workload",
        "is",
        "--runs",
        "3",
    ]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let setting = format!("matrix={path}");
    let quickly = ["--quick", "--repeat", "1", "--set", "workloads=bulk"];
    for arguments in [
        &["gang.groups", "--set", &setting][..],
        &["gang.groups", "--matrix", path],
        &[&["gang.policies", "--matrix", path][..], &quickly].concat(),
    ] {
        let compared = Command::new(program)
            .args(["compare", "--no-cache"])
            .args(arguments)
            .output()
            .expect("the command starts");
        assert!(
            compared.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&compared.stderr)
        );
    }
}
