//! `sidestep gang` as a user runs it: what it refuses, what it finds, and that it leaves nothing behind.
//!
//! Tests that change the host's scheduling or settings need root.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use sidestep_gang::scatter::scatter;
use sidestep_gang_linux::process;
use sidestep_gang_linux::scheduling::Scheduling;
use sidestep_gang_linux::setting::{AUTOGROUP, NUMA_BALANCING};

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
fn a_commands_exit_code_is_passed_on_and_everything_put_back() {
    if !tests_need::root("scheduling by rank") {
        return;
    }
    let _host = host();
    let folder = Folder::new("exit");
    let before = state(&[]);
    let policies = ["full", "relaxed", "none"];
    for policy in policies {
        let arguments = [
            "run",
            "--state",
            folder.text(),
            "--policy",
            policy,
            "--",
            "sh",
            "-c",
            "sleep 0.1; exit 7",
        ];
        assert_eq!(output(&arguments).status.code(), Some(7), "{policy}");
    }
    for (signal, code) in [("KILL", 137), ("TERM", 143)] {
        let kill = format!("kill -{signal} $$");
        let arguments = [
            "run",
            "--state",
            folder.text(),
            "--policy",
            "none",
            "--",
            "sh",
            "-c",
            &kill,
        ];
        assert_eq!(output(&arguments).status.code(), Some(code), "{signal}");
    }
    let failed = error_of(&[
        "run",
        "--state",
        folder.text(),
        "--policy",
        "full",
        "--",
        "/nowhere/program",
    ]);
    assert!(failed.contains("cannot start `/nowhere/program`"), "{failed}");
    assert_eq!(state(&[]), before);
    assert!(folder.is_empty(), "the regular end leaves no journal");
}

#[test]
fn of_a_program_that_ends_at_once_the_controller_has_not_used_many_cores() {
    if !tests_need::root("changing other threads' ranks") {
        return;
    }
    let _host = host();
    let folder = Folder::new("short");
    let run = output(&["run", "--state", folder.text(), "--policy", "none", "--", "true"]);
    let report = String::from_utf8_lossy(&run.stderr);
    let part = report.split("controller: ").nth(1);
    let part = part.and_then(|part| part.split(' ').next()?.parse::<f64>().ok());
    // It is one thread most of the time, and the kernel may count in coarse steps.
    assert!(part.is_some_and(|part| part < 1000.0), "{report}");
}

#[test]
fn a_killed_controller_leaves_nothing_behind_that_restore_does_not_undo() {
    if !tests_need::root("changing other threads' ranks") {
        return;
    }
    let _host = host();
    let folder = Folder::new("killed");
    let programs = [
        Running::workload(&["pairs", "--threads", "3"]),
        Running::workload(&["pairs", "--threads", "2"]),
    ];
    let numbers = programs.each_ref().map(Running::number);
    // A pattern has one thread that keeps the time.
    wait_for_threads(numbers[0], 4);
    wait_for_threads(numbers[1], 3);
    let before = state(&numbers);
    let texts = numbers.map(|number| number.to_string());
    let (mut caught, mut restored) = (0, 0);
    for round in 0..100_u64 {
        let policy = ["full", "partial", "relaxed"][round as usize % 3];
        let sets = if round % 2 == 0 { "auto" } else { "singles" };
        let mut controller = sidestep(&[
            "run",
            "--state",
            folder.text(),
            "--policy",
            policy,
            "--sets",
            sets,
        ]);
        controller
            .args(["--slot", "3", "--pid", &texts[0], "--pid", &texts[1]])
            .stderr(Stdio::null());
        let mut controller = controller.spawn().expect("the controller starts");
        std::thread::sleep(Duration::from_micros(scatter(&[round]) % 60_000));
        controller.kill().expect("the controller can be killed");
        controller.wait().expect("the controller has ended");
        caught += usize::from(state(&numbers) != before);
        // Every second time the next controller does it; at last restore.
        if round % 2 == 1 || round == 99 {
            let output = output(&["restore", "--state", folder.text()]);
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            restored += 1;
            assert_eq!(state(&numbers), before, "round {round}");
            assert!(folder.is_empty(), "round {round}: a journal is left");
        }
    }
    eprintln!("killed 100 times, {caught} times with changes in force; {restored} restorations");
    assert!(caught > 0, "the controller was never killed at work");
}

#[test]
fn an_interrupted_controller_puts_everything_back_itself() {
    if !tests_need::root("changing other threads' ranks") {
        return;
    }
    let _host = host();
    let folder = Folder::new("interrupted");
    let program = Running::workload(&["pairs", "--threads", "2"]);
    wait_for_threads(program.number(), 3);
    let before = state(&[program.number()]);
    let mut controller = sidestep(&["run", "--state", folder.text(), "--policy", "full", "--pid"])
        .arg(program.number().to_string())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the controller starts");
    let began = Instant::now();
    while state(&[program.number()]) == before && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(5));
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&controller),
        rustix::process::Signal::TERM,
    )
    .expect("the controller is alive");
    assert!(controller.wait().expect("the controller ends").success());
    assert_eq!(state(&[program.number()]), before);
    assert!(folder.is_empty());
}

fn pages_fault_again() -> bool {
    tests_need::host(
        Path::new(NUMA_BALANCING).exists(),
        "this kernel has no NUMA balancing, so pages do not fault again",
    )
}

/// How many seconds a watch may take to see what is shared; on an idle host it takes a few.
const PATIENCE: &str = "40";

/// The most pages that a pair which shares nothing may seem to share, for each hundred of a pair that does.
const STRAY_PERCENT: u64 = 25;

#[test]
fn known_sharing_is_found() {
    if !tests_need::root("watching page faults of the host") || !pages_fault_again() {
        return;
    }
    let _host = host();
    let folder = Folder::new("watch");
    // The kernel makes pages fault some four times and then hardly ever: enough for pairs, not for sharing in which a
    // thread faults before each of several others. Those are tried where a VMM makes its own pages fault.
    for (pattern, threads) in [("pairs", 4), ("nobody", 2)] {
        find(pattern, threads, &folder);
    }
    assert!(folder.is_empty());
}

/// Watches a pattern until what it shares has been seen.
fn find(pattern: &str, threads: usize, folder: &Folder) {
    let count = threads.to_string();
    let watch = sidestep(&[
        "watch",
        "--state",
        folder.text(),
        "--steady",
        "--interval",
        "0.5",
        "--seconds",
        PATIENCE,
        "--",
    ])
    .args([
        env!("CARGO_BIN_EXE_sidestep"),
        "gang",
        "workload",
        pattern,
        "--pages",
        "64",
        "--seconds",
        "600",
    ])
    .args(["--threads", &count])
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .expect("the watch starts");
    let found = sharing_seen(watch, pattern, threads, |thread| thread);
    assert_sharing(pattern, threads, found);
}

/// What a watch found between threads that share, at least, and between strangers, at most, and the faults it had; both
/// `None` if it saw too few threads.
type Found = (Option<(Option<u64>, u64)>, u64);

/// Reads a watch's lines until what a pattern shares has been seen, or the watch's time is over; ends it.
/// `at_work` says which task a thread of the pattern is.
fn sharing_seen(mut watch: Child, pattern: &str, threads: usize, at_work: impl Fn(usize) -> usize) -> Found {
    let lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let kind = sidestep_gang_linux::workload::Pattern::ALL
        .iter()
        .find(|(name, _)| *name == pattern);
    let kind = kind.expect("a pattern").1;
    let pairs: Vec<(usize, usize)> = (0..threads)
        .flat_map(|right| (0..right).map(move |left| (left, right)))
        .collect();
    let shares = |&(left, right): &(usize, usize)| kind.is_shared(left, right, threads);
    let mut outcome = None;
    let mut faults = 0;
    for line in lines {
        let line: serde_json::Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let matrix: Vec<Vec<u64>> = serde_json::from_value(line["matrix"].clone()).expect("a matrix");
        faults = line["faults"].as_u64().expect("a count");
        if matrix.len() < at_work(threads) {
            continue;
        }
        let least = pairs
            .iter()
            .filter(|pair| shares(pair))
            .map(|&(left, right)| matrix[at_work(left)][at_work(right)])
            .min();
        let stray = pairs
            .iter()
            .filter(|pair| !shares(pair))
            .map(|&(left, right)| matrix[at_work(left)][at_work(right)])
            .max();
        outcome = Some((least, stray.unwrap_or(0)));
        let is_seen = least.map_or(faults > 64 * 2 * threads as u64, |least| least >= 8);
        if is_seen {
            break;
        }
    }
    // The pipe is closed; the watch ends, and with it the workload.
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&watch),
        rustix::process::Signal::TERM,
    )
    .expect("the watch is not collected yet");
    watch.wait().expect("the watch ends");
    (outcome, faults)
}

fn assert_sharing(pattern: &str, threads: usize, (outcome, faults): Found) {
    match outcome {
        Some((Some(least), stray)) if least >= 8 => {
            assert!(
                stray * 100 <= least * STRAY_PERCENT,
                "{pattern}: {stray} between strangers, {least} between pairs"
            );
            eprintln!(
                "{pattern} of {threads}: at least {least} between pairs, at most {stray} between strangers"
            );
        }
        Some((None, stray)) => {
            assert!(
                stray <= faults / 20,
                "{pattern}: {stray} events between strangers in {faults} faults"
            );
        }
        _ => {
            let seen = format!("{outcome:?} in {faults} faults");
            tests_need::host(
                false,
                &format!("too busy: {pattern} of {threads} not seen in {PATIENCE} s: {seen}"),
            );
        }
    }
}

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
