//! `sidestep gang watch` of memory that a VMM offers.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sidestep_gang::scatter::scatter;
use sidestep_gang_linux::setting::NUMA_BALANCING;

use super::watching::{PATIENCE, STRAY_PERCENT, assert_sharing, sharing_seen};
use super::{Folder, Running, error_of, host, sidestep, wait_for_threads};

/// A workload that offers its memory as a VMM does, and counts its steps.
struct Vmm {
    running: Running,
    socket: String,
    steps: PathBuf,
}

impl Vmm {
    /// `None` where the kernel does not let it, which is said.
    fn start(name: &str, arguments: &[&str], threads: usize, folder: &Folder) -> Option<Self> {
        let socket = format!("{}/{name}.socket", folder.text());
        let steps = folder.0.join(format!("{name}.steps"));
        let mut command = sidestep(&["workload", "--offer", &socket, "--pages", "64"]);
        command
            .args(arguments)
            .args(["--threads", &threads.to_string(), "--seconds", "600"])
            .env(sidestep_gang_linux::workload::PROGRESS_VARIABLE, &steps)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut running = Running(command.spawn().expect("the workload starts"));
        while !Path::new(&socket).exists() {
            if running.0.try_wait().expect("a child").is_some() {
                let mut error = String::new();
                let mut errors = running.0.stderr.take().expect("a pipe");
                std::io::Read::read_to_string(&mut errors, &mut error).expect("text");
                assert!(error.contains("userfaultfd"), "{error}");
                tests_need::leave_out(error.trim_end());
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let vmm = Self {
            running,
            socket,
            steps,
        };
        wait_for_threads(vmm.running.number(), threads + 2);
        Some(vmm)
    }

    fn watch(&self, arguments: &[&str]) -> Command {
        let mut command = sidestep(&[
            "watch",
            "--userfaultfd",
            &self.socket,
            "--interval",
            "0.2",
            "--steady",
        ]);
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    /// Waits until its first thread has done more steps: no thread of it may be stuck.
    fn goes_on(&self) {
        let steps = || {
            fs::read(&self.steps)
                .ok()
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u64::from_le_bytes)
        };
        let (before, began) = (steps(), Instant::now());
        while steps() < before + 20 {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the VMM's threads are stuck"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn known_sharing_of_guest_memory_is_found_without_touching_the_host() {
    let _host = host();
    let folder = Folder::new("guests");
    for (pattern, threads) in [("pairs", 4), ("ring", 8), ("all", 3), ("nobody", 2)] {
        let Some(vmm) = Vmm::start(pattern, &[pattern], threads, &folder) else {
            return;
        };
        let settings = || fs::read_to_string(NUMA_BALANCING).ok();
        let before = settings();
        let watch = vmm
            .watch(&["--seconds", PATIENCE])
            .spawn()
            .expect("the watch starts");
        // Its first thread is the process's, the second serves the offer.
        let at_work = |thread| thread + usize::from(thread > 0);
        let found = sharing_seen(watch, pattern, threads, at_work);
        assert_eq!(settings(), before);
        assert_sharing(pattern, threads, found);
        vmm.goes_on();
    }
}

#[test]
fn two_programs_that_share_a_mapping_are_found() {
    let folder = Folder::new("mapping");
    let held = rustix::fs::memfd_create("memory", rustix::fs::MemfdFlags::CLOEXEC).expect("a descriptor");
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&held);
    let file = format!("/proc/{}/fd/{descriptor}", std::process::id());
    let arguments = ["nobody", "--memory", &file];
    let Some(one) = Vmm::start("one", &arguments, 1, &folder) else {
        return;
    };
    let other = Vmm::start("other", &arguments, 1, &folder).expect("as the one before");
    // One more has memory of its own.
    let stranger = Vmm::start("stranger", &["nobody"], 1, &folder).expect("as the one before");
    let mut watch = one
        .watch(&[
            "--userfaultfd",
            &other.socket,
            "--userfaultfd",
            &stranger.socket,
            "--seconds",
            PATIENCE,
        ])
        .spawn()
        .expect("the watch starts");
    let mut found = (0, 0);
    for line in BufReader::new(watch.stdout.take().expect("a pipe")).lines() {
        let line: serde_json::Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let task = |vmm: &Vmm| {
            let threads = line["threads"].as_array().expect("threads");
            let is_first = |thread: &&serde_json::Value| thread["thread"] == vmm.running.number();
            threads.iter().find(is_first).expect("it is watched")["task"]
                .as_u64()
                .expect("a number") as usize
        };
        let events = |left, right| line["matrix"][task(left)][task(right)].as_u64().expect("a count");
        found = (events(&one, &other), events(&one, &stranger));
        if found.0 >= 16 {
            break;
        }
    }
    watch.kill().expect("the watch is not collected yet");
    watch.wait().expect("the watch ends");
    if found.0 < 16 {
        tests_need::host(false, &format!("too busy: not seen in {PATIENCE} s: {found:?}"));
        return;
    }
    assert!(found.1 * 100 <= found.0 * STRAY_PERCENT, "{found:?}");
}

#[test]
fn a_watcher_that_is_killed_or_stopped_leaves_no_thread_of_a_vmm_stuck() {
    let folder = Folder::new("stuck");
    let Some(vmm) = Vmm::start("ring", &["ring"], 4, &folder) else {
        return;
    };
    for round in 0..25_u64 {
        let started = vmm.watch(&["--scan-period", "100"]).spawn();
        let mut watch = Running(started.expect("the watch starts"));
        let mut lines = BufReader::new(watch.0.stdout.take().expect("a pipe")).lines();
        // From the first line on memory faults.
        assert!(lines.next().is_some());
        std::thread::sleep(Duration::from_micros(scatter(&[round]) % 60_000));
        let pid = rustix::process::Pid::from_child(&watch.0);
        let is_stopped = round % 24 == 0;
        if is_stopped {
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("the watch is alive");
        } else {
            watch.0.kill().expect("the watch can be killed");
        }
        vmm.goes_on();
    }
    // The offer still stands.
    let output = vmm.watch(&["--seconds", "1"]).output().expect("the watch starts");
    assert!(output.status.success());
}

#[test]
fn what_offers_no_guest_memory_is_named() {
    let folder = Folder::new("no-offer");
    let path = folder.0.join("none.socket");
    let path = path.to_str().expect("text");
    let missing = error_of(&["watch", "--userfaultfd", path]);
    assert!(
        missing.contains("cannot connect to") && missing.contains("none.socket"),
        "{missing}"
    );
    let listener = std::os::unix::net::UnixListener::bind(path).expect("a socket");
    let said = |text: &'static str| {
        let listener = listener.try_clone().expect("a descriptor");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a watcher");
            std::io::Write::write_all(&mut stream, text.as_bytes()).expect("room for a line");
        });
        let error = error_of(&["watch", "--userfaultfd", path]);
        server.join().expect("the server ends");
        error
    };
    for (text, expected) in [
        ("", "has refused"),
        ("{}\n", "expected a hello"),
        ("nonsense", "expected a hello"),
        (
            "{\"sidestep_guest_memory\":1,\"regions\":[{\"address\":4096,\"size\":4096,\"page_size\":4096}]}\n",
            "no descriptor came",
        ),
    ] {
        let error = said(text);
        assert!(error.contains(expected), "`{expected}` in {error}");
    }
    let kernel = error_of(&["workload", "cg", "--offer", path]);
    assert!(kernel.contains("only patterns"), "{kernel}");
}
