//! Hosts with virtual machines from the command line: reports and timelines, the same bytes each time, mistakes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use sidestep_gang_linux::recording::Recording;

pub const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/ia64/bin");

/// A host with virtual machines that share sidecores, cores and a network.
pub const HOST: &str = "[host]
cores = 4
sidecores = 'dynamic'
slot-us = 50
host-threads = THREADS

[[vm]]
name = 'faults'
image = 'IMAGES/sidecore-requests'
parameters = 'fault 60'
count = 2

[[vm]]
name = 'purges'
image = 'IMAGES/sidecore-requests'
processors = 2
parameters = 'unmap 20'
virtualization = 'ring-compression'

[[vm]]
name = 'from'
image = 'IMAGES/sidecore-requests'
parameters = 'send 4 10'

[[vm]]
name = 'to'
image = 'IMAGES/sidecore-requests'
parameters = 'receive 10'
";

/// Runs the host that a description tells of, in a folder with the description in it.
pub fn run(folder: &Path, description: &str, arguments: &[&str]) -> Output {
    fs::write(folder.join("host.toml"), description.replace("IMAGES", IMAGES))
        .expect("the folder is writable");
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(["run", "host.toml"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("sidestep starts")
}

/// What a description and arguments are refused with.
fn refused(description: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = run(folder.path(), description, arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    assert_eq!(
        fs::read_dir(folder.path()).expect("the folder").count(),
        1,
        "nothing is left behind"
    );
    error
}

#[test]
fn report_console_and_timeline_are_the_same_bytes_with_one_and_two_host_threads() {
    let all = |threads: &str| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let arguments = ["--format", "json", "--trace", "host.json"];
        let output = run(folder.path(), &HOST.replace("THREADS", threads), &arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{error}");
        let timeline = fs::read(folder.path().join("host.json")).expect("a timeline");
        (output.stdout, error, timeline)
    };
    let once = all("1");
    assert_eq!(once, all("1"));
    assert_eq!(once, all("2"));
    let timeline: Value = serde_json::from_slice(&once.2).expect("a timeline is JSON");
    let events = timeline["traceEvents"].as_array().expect("events");
    are_trace_events(events);
    let named = |name: &str| events.iter().any(|event| event["name"] == name);
    assert!(
        named("faults 0 0") && named("purges 1") && named("map for faults 1"),
        "{events:?}"
    );
}

#[test]
fn a_timeline_ends_at_its_limit() {
    let description = HOST.replace("THREADS", "1");
    let timeline = |limit: &str| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = run(
            folder.path(),
            &description,
            &["--trace", "host.json", "--trace-limit", limit],
        );
        assert_eq!(output.status.code(), Some(0));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let file = fs::read(folder.path().join("host.json")).expect("a timeline");
        let events: Value = serde_json::from_slice(&file).expect("a timeline is JSON");
        (
            file.len(),
            events["traceEvents"].as_array().expect("events").clone(),
            error,
        )
    };
    let (bytes, all, error) = timeline("1G");
    assert!(bytes > 4000 && !error.contains("the trace ends early"), "{error}");
    let (bytes, first, error) = timeline("4000");
    assert!(
        bytes <= 4000 && error.contains("host.json: the trace ends early, at --trace-limit"),
        "{error}"
    );
    assert!(!first.is_empty() && first.len() < all.len());
    assert_eq!(first, all[..first.len()]);
}

#[test]
fn a_timeline_shows_a_packet_from_ring_to_guest_as_a_flow() {
    let example = include_str!("../../../../examples/interfaces-host.toml");
    let description = example.replace("../guests/ia64/bin", "IMAGES");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["--format", "json", "--trace", "packets.json"];
    let output = run(folder.path(), &description, &arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{error}");
    let report: Value = serde_json::from_slice(
        &output.stdout[output
            .stdout
            .iter()
            .position(|byte| *byte == b'{')
            .expect("a report")..],
    )
    .expect("a report is JSON");
    let interfaces = report["nic"]["interfaces"].as_array().expect("interfaces");
    assert!(
        interfaces[0]["received"].as_u64() >= Some(20) && interfaces[1]["sent"] == 100,
        "{report}"
    );
    let timeline = fs::read(folder.path().join("packets.json")).expect("a timeline");
    let timeline: Value = serde_json::from_slice(&timeline).expect("a timeline is JSON");
    let events = timeline["traceEvents"].as_array().expect("events");
    // The first packet that the guest has read: each of its steps begins where a span of that name does.
    let of = |phase: &str| {
        events
            .iter()
            .filter(move |event| event["ph"] == phase)
            .collect::<Vec<_>>()
    };
    let spans = of("X");
    let name_at = |event: &Value| {
        let span = spans
            .iter()
            .rev()
            .find(|span| span["ts"] == event["ts"] && span["tid"] == event["tid"]);
        span.and_then(|span| span["name"].as_str())
            .expect("a flow is bound to a span")
            .to_owned()
    };
    let first = of("s")[0];
    let mut way = vec![name_at(first)];
    way.extend(
        of("t")
            .into_iter()
            .filter(|step| step["id"] == first["id"])
            .map(name_at),
    );
    way.extend(
        of("f")
            .into_iter()
            .filter(|step| step["id"] == first["id"])
            .map(name_at),
    );
    assert_eq!(
        way,
        ["transmit", "arrive", "fill", "find and signal", "signal", "read"]
    );
}

#[test]
fn a_card_that_cannot_be_is_refused_by_name() {
    let with = |nic: &str| {
        let host = "[host]\ncores = 2\ncosts = 'xeon'\n";
        let vm = "[[vm]]\nimage = 'IMAGES/sidecore-packets'\nparameters = 'echo'\n";
        refused(&format!("{host}[nic]\n{nic}\n{vm}"), &[])
    };
    assert!(with("delivery = 'master'\nengines = 0").contains("`nic.engines` is 0: 1 to 16 is possible"));
    assert!(with("delivery = 'sidecore'").contains("which needs a fixed number of sidecores"));
    assert!(with("delivery = 'morse'").contains("host.toml:5:12"));
    assert!(
        with("delivery = 'vector'\ncosts = 'ixp'").contains("there is no preset `ixp`; there are ixp2400")
    );
}

/// Checks events against Chrome's Trace Event Format, as Perfetto reads it: metadata that names every track, and
/// complete events in microseconds, which on one track follow each other or lie within each other.
fn are_trace_events(events: &[Value]) {
    let keys = |event: &Value| {
        event
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    let mut tracks = std::collections::BTreeMap::new();
    for event in events {
        assert!(
            event["name"].is_string() && event["pid"].is_u64() && event["tid"].is_u64(),
            "{event}"
        );
        match event["ph"].as_str() {
            Some("M") => {
                assert_eq!(keys(event), ["args", "name", "ph", "pid", "tid"]);
                assert!(event["args"]["name"].is_string(), "{event}");
                tracks.insert(event["tid"].as_u64(), Vec::new());
            }
            Some("X") => {
                assert_eq!(keys(event), ["dur", "name", "ph", "pid", "tid", "ts"]);
                let nanoseconds =
                    |key: &str| (event[key].as_f64().expect("a number") * 1000.0).round() as i64;
                let (start, duration) = (nanoseconds("ts"), nanoseconds("dur"));
                assert!(start >= 0 && duration >= 0, "{event}");
                let track = tracks
                    .get_mut(&event["tid"].as_u64())
                    .expect("a track that has a name");
                track.push((start, -(start + duration), event["name"].as_str()));
            }
            other => panic!("{other:?} is no phase that is written"),
        }
    }
    for mut track in tracks.into_values() {
        track.sort();
        let mut open: Vec<i64> = Vec::new();
        for (start, end, name) in track.into_iter().map(|(start, end, name)| (start, -end, name)) {
            while open.last().is_some_and(|&outer| outer <= start) {
                open.pop();
            }
            assert!(
                open.last().is_none_or(|&outer| end <= outer + 1),
                "{name:?} at {start} ns overlaps"
            );
            open.push(end);
        }
    }
}

#[test]
fn the_report_accounts_for_every_core_exit_and_request() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let host = HOST.replace("THREADS", "1").replace("'dynamic'", "1");
    let output = run(folder.path(), &host, &["--format", "json"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    // Guests print lines under their names first.
    assert!(printed.contains("faults 0: fault "), "{printed}");
    let json = &printed[printed.find("\n{").expect("a report")..];
    let report: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(report["cores"].as_array().map(Vec::len), Some(4));
    assert!(report["cores"][3]["serving"].as_u64() > Some(0), "{report}");
    let faults = &report["machines"][0];
    let mapped = faults["requests"]
        .as_array()
        .expect("requests")
        .iter()
        .find(|requests| requests["kind"] == "map" && requests["method"] == "sidecall")
        .expect("entries were made by sidecall");
    assert!(mapped["count"].as_u64() >= Some(60));
    assert!(mapped["median"].as_u64() <= mapped["percentile_99"].as_u64());
    let exits = faults["exits"].as_array().expect("exits");
    assert!(
        exits.iter().any(|exit| exit["reason"] == "page fault reflected"),
        "{exits:?}"
    );
    // The same for people.
    let output = run(folder.path(), &host, &[]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    for word in ["serving", "page fault reflected", "sidecall  map", "99.9 %"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn the_exit_code_is_the_largest_of_the_guests_and_time_can_be_limited() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one = |parameters: &str| {
        format!("[host]\n[[vm]]\nimage = 'IMAGES/sidecore-requests'\nparameters = '{parameters}'\n")
    };
    let output = run(folder.path(), &one("nonsense"), &[]);
    assert_eq!(output.status.code(), Some(1));
    let output = run(
        folder.path(),
        &one("compute 1000000000"),
        &["--max-host-cycles", "100000"],
    );
    assert_eq!(output.status.code(), Some(124));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("stopped at cycle 100000"), "{error}");
}

#[test]
fn a_signal_ends_a_host_with_its_report() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let description = format!(
        "[host]\n[[vm]]\nimage = '{IMAGES}/sidecore-requests'\nparameters = 'compute 1000000000000'\n"
    );
    fs::write(folder.path().join("host.toml"), description).expect("the folder is writable");
    let host = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(["run", "host.toml", "--trace", "trace.json"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sidestep starts");
    let catches = || {
        let status = fs::read_to_string(format!("/proc/{}/status", host.id())).expect("it runs");
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .expect("a mask");
        u64::from_str_radix(caught.trim(), 16).expect("a number")
            >> (rustix::process::Signal::TERM.as_raw() - 1)
            & 1
            == 1
    };
    while !catches() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&host),
        rustix::process::Signal::TERM,
    )
    .expect("it runs");
    let output = host.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("host.toml: interrupted at cycle"), "{error}");
    let trace = fs::read(folder.path().join("trace.json")).expect("the timeline so far");
    serde_json::from_slice::<Value>(&trace).expect("a whole timeline");
}

#[test]
fn mistakes_are_refused_with_what_is_wrong() {
    let vm = "[[vm]]\nimage = 'IMAGES/sidecore-requests'\n";
    for (description, expected) in [
        ("[host]\n".to_owned(), "host.toml: there are 0 virtual machines"),
        (
            format!("[host]\ncores = 2000\n{vm}"),
            "the host has 2000 cores: 1 to 1024 are possible",
        ),
        (
            format!("[host]\nsidecores = 2\n{vm}"),
            "2 sidecores of 2 cores leave none for guests",
        ),
        (
            format!("[host]\ncosts = 'pentium'\n{vm}"),
            "there is no preset `pentium`",
        ),
        (
            format!("[host]\ncosts = 'none.toml'\n{vm}"),
            "none.toml: cannot be read",
        ),
        (
            format!("[host]\n{vm}processors = 65\n"),
            "has 65 processors: 1 to 64 are possible",
        ),
        (format!("[host]\n{vm}memory = '1000000G'\n"), "memory"),
        (
            format!("[host]\n{vm}kernel = 'vmlinux'\n"),
            "virtual machine `vm 0` needs either `image` or `kernel`",
        ),
        (
            format!("[host]\n{vm}append = 'quiet'\n"),
            "virtual machine `vm 0`: `append` is for a virtual machine with `kernel`",
        ),
        (
            "[host]\n[[vm]]\nkernel = 'vmlinux'\nparameters = 'x'\n".to_owned(),
            "`parameters` is for a virtual machine with `image`",
        ),
        (
            "[host]\n[[vm]]\nkernel = 'vmlinux'\n".to_owned(),
            "virtual machine `vm 0`: ",
        ),
        (
            "[host]\n[[vm]]\nkernel = 'vmlinux'\nmemory = '16M'\n".to_owned(),
            "memory is 16777216 bytes; it must be at least 67108864",
        ),
        (
            "[host]\n[[vm]]\nimage = 'host.toml'\n".to_owned(),
            "host.toml: host.toml: is no ELF executable",
        ),
        (
            format!("[host]\n{vm}colour = 1\n"),
            "host.toml:4:1: unknown key `colour`",
        ),
    ] {
        let error = refused(&description, &[]);
        assert!(error.contains(expected), "`{expected}` in {error}");
    }
    assert!(refused(&format!("[host]\n{vm}"), &["--trace", "none/trace.json"]).contains("none/trace.json"));
}

/// The recording that a host writes.
fn recording(folder: &Path) -> Recording {
    Recording::read(&folder.join("matrix.json")).expect("a recording as `gang run --sets` takes it")
}

#[test]
fn who_shares_memory_is_written_as_a_recording_the_same_bytes_with_one_and_two_host_threads() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let example = fs::read_to_string(examples.join("partial-host.toml")).expect("the example is there");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let all = |threads: u32| {
        let host = format!("cores = 8\nhost-threads = {threads}");
        let description = (example.replace("cores = 8", &host)).replace("../guests/ia64/bin", IMAGES);
        let output = run(
            folder.path(),
            &description,
            &["--matrix", "matrix.json", "--format", "json"],
        );
        assert!(output.status.success(), "{output:?}");
        let written = fs::read(folder.path().join("matrix.json")).expect("it was written");
        (output.stdout, written)
    };
    let once = all(1);
    let found = recording(folder.path());
    assert_eq!(
        found.sets.to_string(),
        "{0 4} {1 5} {2 6} {3 7} {8 10} {9 11}",
        "{}",
        found.matrix
    );
    let names: Vec<_> = found
        .threads
        .iter()
        .map(|thread| (&*thread.program, thread.place))
        .collect();
    assert_eq!(names.len(), 12);
    assert_eq!((names[7], names[8]), (("large", 7), ("small", 0)));
    assert_eq!(all(2), once);
}

#[test]
fn a_matrix_of_a_host_that_finds_out_nothing_is_refused() {
    let vm = "[[vm]]\nimage = 'IMAGES/sidecore-sharing'\nprocessors = 4\nparameters = 'alone 1 1'\n";
    let error = refused(&format!("[host]\n{vm}"), &["--matrix", "matrix.json"]);
    assert!(error.contains("expected a table `[detection]`"), "{error}");
    let error = refused(
        &format!("[host]\n[detection]\n{vm}"),
        &["--matrix", "missing/matrix.json"],
    );
    assert!(error.contains("missing/matrix.json"), "{error}");
}

#[test]
fn gdb_sees_virtual_processors_as_threads() {
    let Some(gdb) = tests_need::GDB.find() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let socket = folder.path().join("gdb.socket");
    let host = "[host]\ncores = 3\n[[vm]]\nname = 'a'\nimage = 'IMAGES/sidecore-requests'\nparameters = 'null 5'\n\
                [[vm]]\nname = 'b'\nprocessors = 2\nimage = 'IMAGES/sidecore-requests'\nparameters = 'interrupts 3'\n";
    fs::write(folder.path().join("host.toml"), host.replace("IMAGES", IMAGES))
        .expect("the folder is writable");
    let mut sidestep = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(["run", "host.toml", "--gdb", "unix:gdb.socket"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sidestep starts");
    // It says when a debugger can connect.
    let mut announced = String::new();
    let mut errors = BufReader::new(sidestep.stderr.take().expect("a pipe"));
    errors.read_line(&mut announced).expect("a line");
    assert!(announced.contains("waiting for gdb"), "{announced}");
    let connect = format!("target remote {}", socket.display());
    let commands = [
        "set confirm off",
        &connect,
        "info threads",
        "break main",
        "continue",
        "info registers r33",
        "backtrace 1",
        "thread 2",
        "print $ip",
        "delete",
        "continue",
    ];
    let gdb = Command::new(gdb)
        .args(["-nx", "-batch"])
        .args(commands.iter().flat_map(|command| ["-ex", command]))
        .arg(Path::new(IMAGES).join("sidecore-requests"))
        .output()
        .expect("gdb starts");
    let said = String::from_utf8_lossy(&gdb.stdout).into_owned() + &String::from_utf8_lossy(&gdb.stderr);
    for expected in [
        "a, processor 0, running",
        "b, processor 1, stopped",
        "Thread 1",
        "main (",
        "exited normally",
    ] {
        assert!(said.contains(expected), "`{expected}` in {said}");
    }
    let mut report = String::new();
    errors.read_to_string(&mut report).expect("a report");
    assert_eq!(sidestep.wait().expect("it ends").code(), Some(0), "{report}");
}

#[test]
fn a_guest_that_only_takes_interruptions_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut image = fs::read(format!("{IMAGES}/sidecore-requests")).expect("an image");
    // All that is loaded is zeros but the headers: `break 0` at the entry, and in the handler of `break`.
    let headers = 64 + 56 * usize::from(image[56]);
    image[headers..].fill(0);
    fs::write(folder.path().join("zeros"), image).expect("the folder is writable");
    let description = "[host]\ncores = 1\n[[vm]]\nname = 'lost'\nimage = 'zeros'\n";
    let output = run(folder.path(), description, &["--max-host-cycles", "100000000"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(124), "{error}");
    let said = "sidestep: virtual machine `lost`: processor 0 executes nothing any more, it takes one interruption \
                after another: break instruction fault at 0x";
    assert_eq!(error.matches(said).count(), 1, "once: {error}");
}
