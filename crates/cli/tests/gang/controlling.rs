//! `sidestep gang run`: what it hands on, and that everything is put back however it ends.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sidestep_gang::scatter::scatter;

use super::{Folder, Running, error_of, host, output, sidestep, state, wait_for_threads};

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
