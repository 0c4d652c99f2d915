//! `sidestep list` and `sidestep compare` as a user meets them: what they print, and what they say when something is
//! wrong.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

/// A deterministic experiment that takes a moment: any will do.
const QUICK: &str = "gang.groups";

/// The command with a cache of its own.
fn sidestep(cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.env("XDG_CACHE_HOME", cache);
    command
}

fn run(cache: &Path, arguments: &[&str]) -> Output {
    sidestep(cache).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs, and expects an error: the one line of it.
fn error(cache: &Path, arguments: &[&str]) -> String {
    let output = run(cache, arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    assert_eq!(text(&output.stdout), "", "{arguments:?} printed results");
    let said = text(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    said.lines().next().unwrap_or_default().to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_list_is_a_line_an_experiment_and_says_the_rest_of_one_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let listed = text(&run(folder.path(), &["list"]).stdout);
    let data: Value =
        serde_json::from_slice(&run(folder.path(), &["list", "--format", "json"]).stdout).unwrap();
    assert_eq!(data["schema"], "sidestep.list/1");
    let experiments = data["experiments"].as_array().unwrap();
    assert!(experiments.len() >= 3);
    for experiment in experiments {
        let part = |name: &str| experiment[name].as_str().unwrap();
        let is_of = |line: &&str| line.starts_with(&format!("{} ", part("experiment")));
        let line = listed.lines().find(is_of).expect("a line of its own");
        assert!(line.contains(part("question")), "{line}");
        let details = text(&run(folder.path(), &["list", part("experiment")]).stdout);
        for said in [part("source"), "setting", "--set"] {
            assert!(details.contains(said), "{said}: {details}");
        }
    }
}

#[test]
fn the_same_command_gives_the_same_bytes_and_the_cache_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (page, trace) = (
        folder.path().join("report.html"),
        folder.path().join("trace.json"),
    );
    let once = |jobs: &str| {
        let arguments = [
            "compare", QUICK, "--quick", "--jobs", jobs, "--format", "json", "--html",
        ];
        let output = sidestep(folder.path())
            .args(arguments)
            .arg(&page)
            .arg("--trace")
            .arg(&trace)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        (output.stdout, fs::read(&page).unwrap(), fs::read(&trace).unwrap())
    };
    let first = once("1");
    assert_eq!(first, once("4"), "from the cache");
    fs::remove_dir_all(folder.path().join("sidestep")).unwrap();
    assert_eq!(first, once("3"), "anew");
    let document: Value = serde_json::from_slice(&first.0).unwrap();
    assert_eq!(document["schema"], "sidestep.compare/2");
    assert_eq!(document["comparisons"][0]["experiment"], QUICK);
    assert!(
        document["comparisons"][0]["command"]
            .as_str()
            .unwrap()
            .contains(QUICK)
    );
}

#[test]
fn every_format_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let write = |format: &str| {
        let path = folder.path().join(format);
        let output = sidestep(folder.path())
            .args(["compare", QUICK, "--quick", "--format", format, "--output"])
            .arg(&path)
            .output()
            .unwrap();
        assert_eq!(
            (text(&output.stdout), text(&output.stderr)),
            (String::new(), String::new())
        );
        fs::read(path).unwrap()
    };
    assert!(text(&write("table")).starts_with(&format!("{QUICK}: ")));
    let csv = text(&write("csv"));
    assert!(
        csv.starts_with("schema,experiment,point,status,error,metric,unit,better,baseline,sidestep,ratio,")
    );
    assert!(write("json").starts_with(b"{"));
    if cfg!(feature = "parquet") {
        let parquet = write("parquet");
        assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    } else {
        assert_eq!(
            error(folder.path(), &["compare", QUICK, "--format", "parquet"]),
            "sidestep: this build writes no Parquet; `cargo install --path crates/cli --features parquet` brings it"
        );
    }
}

#[test]
fn what_is_wrong_with_the_arguments_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let error = |arguments: &[&str]| error(folder.path(), arguments);
    assert_eq!(
        error(&["compare", "gang.group"]),
        "sidestep: no experiment or area is called `gang.group` (did you mean `gang.groups`?); `sidestep list` names them"
    );
    assert!(error(&["list", "nothing"]).contains("no experiment or area is called `nothing`"));
    assert!(error(&["compare", QUICK, "--set", "no-such-key=1"]).contains(" has no input `no-such-key`"));
    assert!(error(&["compare", QUICK, "--set", "key"]).contains("`key` is not a setting; write key=value"));
    assert!(error(&["compare", QUICK, "--format", "jsn"]).contains("invalid value 'jsn'"));
    assert!(error(&["compare", QUICK, "--repeat", "0"]).contains("invalid value '0'"));
    assert!(error(&["compare"]).contains("required arguments were not provided"));
}

#[test]
fn an_output_that_cannot_be_written_is_said_before_any_work_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/report.html");
    let said = error(
        folder.path(),
        &["compare", QUICK, "--html", missing.to_str().unwrap()],
    );
    assert!(
        said.starts_with(&format!("sidestep: cannot write {}: ", missing.display())),
        "{said}"
    );
    assert!(said.contains("No such file or directory"), "{said}");
    let directory = folder.path().to_str().unwrap();
    assert!(error(folder.path(), &["compare", QUICK, "--output", directory]).contains("is a directory"));
    assert_eq!(names(folder.path()), [""; 0], "a point ran all the same");
}

#[test]
fn a_full_device_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let said = error(
        folder.path(),
        &["compare", QUICK, "--quick", "--output", "/dev/full"],
    );
    assert!(
        said.contains("cannot write /dev/full: No space left on device"),
        "{said}"
    );
    let output = sidestep(folder.path())
        .args(["compare", QUICK, "--quick"])
        .stdout(Stdio::from(
            fs::OpenOptions::new().write(true).open("/dev/full").unwrap(),
        ))
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("cannot write to the standard output"));
}

#[test]
fn a_full_disk_keeps_the_old_report_and_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    // A disk of a few pages in a mount namespace of its own, with an old report on it.
    let script = "mount -t tmpfs -o size=8k none \"$1\" || exit 77; echo old > \"$1/report.html\"; shift; \
                  \"$@\"; code=$?; cat \"$DISK/report.html\"; ls -A \"$DISK\"; exit $code";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(env!("CARGO_BIN_EXE_sidestep"))
        .args(["compare", QUICK, "--quick", "--output", "/dev/null", "--html"])
        .arg(disk.join("report.html"))
        .env("DISK", &disk)
        .env("XDG_CACHE_HOME", folder.path())
        .output();
    let Some(output) = output.ok().filter(|output| {
        ![Some(77), None].contains(&output.status.code()) && !text(&output.stderr).contains("unshare")
    }) else {
        tests_need::leave_out("this user has no right to mount a small disk");
        return;
    };
    assert!(
        text(&output.stderr).contains("report.html: No space left on device"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "old\nreport.html\n");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = sidestep(folder.path())
        .arg("list")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_corrupt_cache_entry_is_named_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = run(folder.path(), &["compare", QUICK, "--quick"]);
    let cache = folder.path().join("sidestep");
    let entry = cache.join(&names(&cache)[0]);
    fs::write(&entry, "rubbish").unwrap();
    let second = run(folder.path(), &["compare", QUICK, "--quick"]);
    assert_eq!(first.stdout, second.stdout);
    let said = text(&second.stderr);
    assert!(
        said.contains(&format!("cache entry {} is corrupt", entry.display())),
        "{said}"
    );
    assert_eq!(
        text(&run(folder.path(), &["compare", QUICK, "--quick"]).stderr),
        ""
    );
}

/// Whether a process has said what it does on an interrupt: before that it dies of one, or, where its parent ignores
/// them, overlooks it.
fn catches_interrupts(child: &std::process::Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 << 1 != 0))
}

/// Starts a sweep that takes a while and waits until some of its points are finished.
fn started(folder: &Path) -> std::process::Child {
    let child = sidestep(folder)
        .args(LONG)
        .arg("--output")
        .arg(folder.join("result"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let cache = folder.join("sidestep");
    for _ in 0..6000 {
        if cache.exists() && !names(&cache).is_empty() && catches_interrupts(&child) {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    child
}

/// A sweep long enough to be interrupted, on one core.
const LONG: &[&str] = &["compare", "gang.policies", "cefos", "gang.scale", "--jobs", "1"];

#[test]
fn after_an_interrupt_the_finished_points_are_kept_and_it_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let child = started(folder.path());
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("sidestep: interrupted with "), "{said}");
    assert!(said.contains("give the same command again"), "{said}");
    assert!(said.contains("sidestep compare gang.policies"), "{said}");
    assert_eq!(
        names(folder.path()),
        ["sidestep"],
        "no result, and nothing half-written"
    );
}

#[test]
fn after_a_kill_nothing_is_half_written_and_every_kept_point_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = started(folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(folder.path()), ["sidestep"]);
    let kept = names(&folder.path().join("sidestep")).len();
    // Interrupted again at once: what it takes from the cache until then is not corrupt.
    let child = started(folder.path());
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        !text(&output.stderr).contains("corrupt"),
        "{}",
        text(&output.stderr)
    );
    assert!(names(&folder.path().join("sidestep")).len() >= kept);
}

#[test]
fn what_the_package_for_python_does_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["results", "SELECT 1"][..],
        &["results", "diff", "1", "2"],
        &["compare", QUICK, "--on", "tcp://127.0.0.1:1"],
    ] {
        for (interpreter, said) in [
            (
                "/no/python",
                "/no/python: cannot be started: No such file or directory",
            ),
            (
                "false",
                "false: has no package sidestep; SIDESTEP_PYTHON names another",
            ),
        ] {
            let mut command = sidestep(folder.path());
            let output = command
                .args(arguments)
                .env("SIDESTEP_PYTHON", interpreter)
                .output()
                .unwrap();
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{error}");
            assert!(
                error.contains(said) && error.contains("the book's page on Python"),
                "{error}"
            );
        }
    }
    let error = error(
        folder.path(),
        &["compare", QUICK, "--on", "tcp://127.0.0.1:1", "--no-cache"],
    );
    assert!(error.contains("cannot be used with"), "{error}");
}

/// Processes of a group.
#[cfg(target_os = "linux")]
fn group(leader: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_member = |process: &u32| {
        // Behind the name, which may contain anything, stand state, parent and group.
        let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let fields = status.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        fields.first() != Some(&"Z") && fields.get(2) == Some(&leader.to_string().as_str())
    };
    numbers.filter(is_member).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_comparison_that_is_killed_leaves_no_process_behind() {
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    let settings = ["operation=getpid", "way=ptrace", "rounds=1000"];
    let mut command = sidestep(folder.path());
    command.args(["compare", "sidecore.syscalls"]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let mut comparing = command.spawn().unwrap();
    let leader = comparing.id();
    let mut has_child = false;
    while !has_child && comparing.try_wait().unwrap().is_none() {
        has_child = group(leader).len() > 1;
    }
    if !tests_need::host(has_child, "a child must be traced, on two cores") {
        return;
    }
    comparing.kill().unwrap();
    comparing.wait().unwrap();
    for _ in 0..1000 {
        if group(leader).is_empty() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("still there: {:?}", group(leader));
}
