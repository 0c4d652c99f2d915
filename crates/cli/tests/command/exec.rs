//! `sidestep exec` on whole programs.
//!
//! The C and C++ programs in `crates/linux-user/tests/programs` check themselves and exit 0. They are built by a
//! cross-compiler, see [`tests_need::cross_compiler`]. The other tests need nothing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

fn sidestep() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.arg("exec").env_remove("SIDESTEP_SYSROOT");
    command
}

fn build(source: &str, options: &[&str]) -> Option<PathBuf> {
    let compiler = tests_need::cross_compiler()?;
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux-user/tests/programs");
    let driver = if source.ends_with(".cc") {
        compiler.gxx()
    } else {
        compiler.gcc()
    };
    let kind = if options.contains(&"-static") {
        "static"
    } else {
        "dynamic"
    };
    // Tests that build the same program do so beside each other.
    static BUILT: AtomicU32 = AtomicU32::new(0);
    let number = BUILT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{source}.{kind}.{}.{number}", std::process::id());
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let built = Command::new(driver)
        .args(["-O2", "-pthread", "-D_GNU_SOURCE", "-w"])
        .args(options)
        .arg(programs.join(source))
        .arg("-o")
        .arg(&output)
        .arg("-lrt")
        .status()
        .expect("the compiler runs");
    assert!(built.success(), "{source} is compiled");
    Some(output)
}

fn expect_success(mut command: Command) -> Output {
    let output = command.stdin(Stdio::null()).output().expect("sidestep runs");
    let shown =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {shown}", output.status);
    output
}

fn run_static(source: &str, options: &[&str]) {
    if let Some(program) = build(source, &[&["-static"], options].concat()) {
        let mut command = sidestep();
        command.arg(&program);
        expect_success(command);
        let _ = fs::remove_file(program);
    }
}

#[test]
fn system_calls_do_what_linux_says() {
    run_static("calls.c", &[]);
}

#[test]
fn light_weight_calls_do_the_same_and_are_counted_whoever_watches() {
    let Some(program) = build("clocks.c", &["-static"]) else {
        return;
    };
    for options in [&[][..], &["--strace"], &["--timing", "itanium2"]] {
        let mut command = sidestep();
        command.args(options).arg(&program);
        expect_success(command);
    }
    let counts = |options: &[&str]| {
        let mut command = sidestep();
        command.args(options).arg("--stats").arg(&program).arg("count");
        let said = String::from_utf8_lossy(&expect_success(command).stderr).into_owned();
        ["system calls", "instructions retired"].map(|what| {
            let count = said.lines().find_map(|line| line.strip_prefix(what));
            count.expect("a count").trim().to_owned()
        })
    };
    let alone = counts(&[]);
    assert_eq!(alone, counts(&["--strace"]));
    // A bound keeps the gate page from being left out.
    assert_eq!(alone, counts(&["--max-instructions", "100000000"]));
    let _ = fs::remove_file(program);
}

#[test]
fn processes_end_replace_each_other_and_see_themselves_as_on_linux() {
    let Some(program) = build("processes.c", &["-static"]) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = sidestep();
    command.arg(&program).current_dir(folder.path());
    expect_success(command);
    let _ = fs::remove_file(program);
}

#[test]
fn a_program_brings_pages_of_its_own_memory() {
    let Some(program) = build("userfault.c", &["-static", "-pthread"]) else {
        return;
    };
    for options in [&[][..], &["--timing", "itanium2"]] {
        let mut command = sidestep();
        let output = command.args(options).arg(&program).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        let is_offered = output.status.code() != Some(77);
        if tests_need::host(is_offered, "the host offers this user no userfaultfd") {
            assert!(output.status.success(), "{said}");
        }
    }
    let _ = fs::remove_file(program);
}

#[test]
fn a_program_with_a_root_folder_names_nothing_beyond_it() {
    let Some(program) = build("rooted.c", &["-static"]) else {
        return;
    };
    let (root, outside) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    // Only root gets through the folder above, which is private: what is executed after `setuid` must not need it.
    let at = |path: &str| root.path().join("root").join(path);
    for folder in ["", "etc", "x", "jail"] {
        fs::create_dir(at(folder)).expect("a folder");
    }
    fs::write(at("etc/greeting"), "inside\n").expect("a file");
    symlink("/etc/greeting", at("etc/absolute")).expect("a link");
    for copy in ["program", "jail/program"] {
        fs::copy(&program, at(copy)).expect("a program");
    }
    fs::write(outside.path().join("given"), "given\n").expect("a file");
    symlink("/etc/greeting", outside.path().join("out")).expect("a link");
    let mut command = sidestep();
    command
        .arg("--sysroot")
        .arg(at(""))
        .arg(at("program"))
        .current_dir(outside.path());
    expect_success(command);
    let mut left: Vec<_> = fs::read_dir(outside.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["given", "out"]);
    let _ = fs::remove_file(program);
}

#[test]
fn a_program_named_as_the_sysroot_has_it_is_told_how_to_be_named() {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("bin")).expect("a folder");
    let program = root.path().join("bin/sidestep-has-none");
    fs::write(&program, "").expect("a file");
    let mut command = sidestep();
    command
        .arg("--sysroot")
        .arg(root.path())
        .arg("/bin/sidestep-has-none");
    let output = command.output().expect("the command starts");
    assert_eq!(output.status.code(), Some(127));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message
            .trim_end()
            .ends_with(&format!("say {}", program.display())),
        "{message}"
    );
}

#[test]
fn a_sysroot_named_relatively_stays_where_it_is_and_more_can_be_allowed() {
    let Some(program) = build("startup.c", &[]) else {
        return;
    };
    let sysroot = tests_need::cross_compiler()
        .expect("it built the program")
        .sysroot();
    let folder = tempfile::tempdir().expect("a folder");
    symlink(&sysroot, folder.path().join("root")).expect("a link");
    let secret = folder.path().join("secret");
    fs::write(&secret, "found\n").expect("a file");
    let shown = |allowed: &[&str]| {
        let mut command = sidestep();
        command
            .args(["--sysroot", "root"])
            .args(allowed)
            .arg(&program)
            .args(["open", secret.to_str().expect("a path")])
            .current_dir(folder.path());
        command.output().expect("sidestep runs").status.code()
    };
    // The current folder is given with it; what is beside it is not.
    assert_eq!(shown(&[]), Some(0));
    let elsewhere = tempfile::tempdir().expect("a folder");
    let from_elsewhere = |allowed: &[&str]| {
        let mut command = sidestep();
        command
            .arg("--sysroot")
            .arg(&sysroot)
            .args(allowed)
            .arg(&program)
            .args(["open", secret.to_str().expect("a path")])
            .current_dir(elsewhere.path());
        command.output().expect("sidestep runs").status.code()
    };
    assert_eq!(from_elsewhere(&[]), Some(2));
    assert_eq!(from_elsewhere(&["--allow", "/"]), Some(0));
    assert_eq!(
        from_elsewhere(&["--allow", folder.path().to_str().expect("a path")]),
        Some(0)
    );
    let _ = fs::remove_file(program);
}

#[test]
fn a_trace_that_cannot_be_written_ends_the_program() {
    let Some(program) = build("startup.c", &["-static"]) else {
        return;
    };
    let output = sidestep()
        .args(["--trace", "insn=/dev/full"])
        .arg(&program)
        .output()
        .expect("sidestep runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{error}");
    assert!(
        error.contains("/dev/full") && error.contains("No space left"),
        "{error}"
    );
    let _ = fs::remove_file(program);
}

#[test]
fn signals_arrive_and_faults_tell_where() {
    run_static("signals.c", &[]);
}

#[test]
fn stack_overflows_reach_a_handler_on_the_alternate_stack() {
    run_static("overflow.c", &[]);
}

#[test]
fn misaligned_accesses_are_served_or_refused() {
    run_static("alignment.c", &[]);
}

#[test]
fn exceptions_unwind_through_signal_frames() {
    run_static("exceptions.cc", &["-fnon-call-exceptions"]);
}

#[test]
fn a_dynamic_program_finds_its_interpreter_below_the_sysroot() {
    let Some(program) = build("signals.c", &[]) else {
        return;
    };
    let sysroot = tests_need::cross_compiler()
        .expect("it built the program")
        .sysroot();
    // The program makes a temporary file, for which the sysroot has no folder.
    let mut command = sidestep();
    command
        .arg("--sysroot")
        .arg(&sysroot)
        .args(["--allow", "/tmp"])
        .arg(&program);
    expect_success(command);
    let mut command = sidestep();
    command
        .env("SIDESTEP_SYSROOT", &sysroot)
        .args(["--allow", "/tmp"])
        .arg(&program);
    expect_success(command);
    let output = sidestep().arg(&program).output().expect("sidestep runs");
    assert_eq!(output.status.code(), Some(126));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("ld-linux-ia64.so.2") && error.contains("--sysroot"),
        "{error}"
    );
    let _ = fs::remove_file(program);
}

#[test]
fn streams_arguments_environment_and_status_are_the_commands_own() {
    let Some(program) = build("startup.c", &["-static"]) else {
        return;
    };
    let mut child = sidestep()
        .args(["--env", "SIDE_A=0", "--unset-env", "SIDE_B", "--argv0", "zero"])
        .args(["--env", "SIDE_A=1"])
        .arg(&program)
        .args(["one", "--stats"])
        .env("SIDE_B", "2")
        .env("SIDE_C", "3")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sidestep runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"typed\n")
        .expect("a reader");
    let output = child.wait_with_output().expect("an end");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(42));
    assert_eq!(
        text,
        format!(
            "argument zero\nargument one\nargument --stats\nvariable SIDE_C=3\nvariable SIDE_A=1\n\
             page 16384, file {}\nline typed\n",
            program.display()
        )
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "to the error stream\n");

    let ending = |argument: &str| {
        sidestep()
            .arg(&program)
            .arg(argument)
            .output()
            .expect("sidestep runs")
    };
    assert_eq!(ending("abort").status.signal(), Some(libc_signal::ABORT));
    let crash = ending("crash");
    assert_eq!(crash.status.signal(), Some(libc_signal::SEGMENTATION));
    let report = String::from_utf8_lossy(&crash.stderr);
    for expected in ["ip 0x4000", "main+0x", "0x0000000000123450", "=> ", "bsp", "r12"] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
    let mut command = sidestep();
    let bounded = command
        .args(["--stats", "--max-instructions", "100000"])
        .arg(&program)
        .arg("spin");
    let output = bounded.output().expect("sidestep runs");
    let report = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(124), "{report}");
    let retired = report
        .lines()
        .find_map(|line| line.strip_prefix("instructions retired  "));
    assert_eq!(retired.map(str::trim), Some("100000"), "{report}");
    let _ = fs::remove_file(program);
}

/// The two signal numbers the tests look for.
mod libc_signal {
    pub const ABORT: i32 = 6;
    pub const SEGMENTATION: i32 = 11;
}

#[test]
fn system_calls_and_instructions_can_be_watched() {
    let Some(program) = build("startup.c", &["-static"]) else {
        return;
    };
    let trace = program.with_extension("trace");
    let mut command = sidestep();
    command
        .args(["--strace", "--trace", &format!("insn={}", trace.display())])
        .arg(&program);
    let output = command.stdin(Stdio::null()).output().expect("sidestep runs");
    let calls = String::from_utf8_lossy(&output.stderr);
    for expected in [
        "brk(0) = 0x6",
        "write(1, \"argument ",
        "exit_group(42) = ?",
        "read(0, ",
    ] {
        assert!(calls.contains(expected), "{expected} in {calls}");
    }
    let lines = fs::read_to_string(&trace).expect("a trace");
    let first = lines.lines().next().expect("a first instruction");
    assert!(first.contains("4000") && first.contains("alloc"), "{first}");
    assert!(
        lines
            .lines()
            .any(|line| line.contains("ld8 ") && line.contains(" [6")),
        "a reference is shown"
    );
    let _ = fs::remove_file(program);
    let _ = fs::remove_file(trace);
}

#[test]
fn what_is_told_of_a_program_that_closes_its_standard_error_arrives() {
    let Some(program) = build("closing.c", &["-static"]) else {
        return;
    };
    for (options, expected) in [
        (["--stats"].as_slice(), "instructions retired"),
        (&["--timing", "itanium2"], "CPU_CYCLES"),
        (&["--strace"], "exit_group(0) = ?"),
    ] {
        let mut command = sidestep();
        command.args(options).arg(&program);
        let output = expect_success(command);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(expected), "{expected} in {told}");
        assert!(!told.lines().any(|line| line.starts_with("lost")), "{told}");
    }
    let _ = fs::remove_file(program);
}

#[test]
fn a_killed_emulator_leaves_no_files_behind() {
    let Some(program) = build("startup.c", &["-static"]) else {
        return;
    };
    let folder = program.with_extension("empty");
    fs::create_dir_all(&folder).expect("a folder");
    let mut command = sidestep();
    let mut child = command
        .arg(&program)
        .arg("spin")
        .current_dir(&folder)
        .env("TMPDIR", &folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a run");
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("text");
    assert_eq!(line, "spinning\n");
    child.kill().expect("it runs");
    assert_eq!(child.wait().expect("an end").signal(), Some(9));
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 0);
    fs::remove_dir(&folder).expect("it is empty");
    let _ = fs::remove_file(program);
}

#[test]
fn files_that_are_no_programs_give_one_clear_error() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bad.{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let header = |changes: &[(usize, u8)]| {
        let mut bytes = vec![0u8; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        (bytes[16], bytes[18], bytes[54], bytes[56]) = (2, 50, 56, 1);
        changes.iter().for_each(|(at, value)| bytes[*at] = *value);
        bytes
    };
    let cases: [(&str, Vec<u8>, &str); 7] = [
        ("text", b"hello".to_vec(), "not an ELF file"),
        ("short", header(&[])[..20].to_vec(), "truncated"),
        ("class", header(&[(4, 1)]), "class 1"),
        ("endian", header(&[(5, 2)]), "encoding 2"),
        ("machine", header(&[(18, 62)]), "machine 62"),
        ("object", header(&[(16, 1)]), "type 1"),
        ("headers", header(&[(32, 64)]), "program headers"),
    ];
    for (name, bytes, expected) in cases {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("a file");
        let output = sidestep().arg(&path).output().expect("sidestep runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(126), "{name}: {error}");
        assert!(
            error.contains(expected) && error.contains(name) && error.lines().count() == 1,
            "{error}"
        );
    }
    fs::remove_dir_all(folder).expect("the folder goes");
    let missing = sidestep().arg("/nonexistent").output().expect("sidestep runs");
    assert_eq!(missing.status.code(), Some(127));
    let mut command = sidestep();
    let output = command
        .args(["--sysroot", "/nonexistent", "/bin/true"])
        .output()
        .expect("sidestep runs");
    assert_eq!(output.status.code(), Some(125));
}

fn tour(options: &[&str]) -> Command {
    let mut command = sidestep();
    command.args(options);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin/tour"));
    command
}

fn expect_tour(command: Command) {
    let output = expect_success(command);
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/tour/expected");
    assert!(output.stdout == fs::read(expected).expect("what the tour prints"));
}

#[test]
fn a_process_of_one_thread_is_one_for_the_kernel() {
    run_static("alone.c", &[]);
}

#[test]
fn the_tour_runs() {
    expect_tour(tour(&[]));
}

/// Needs the feature `translator`, without which the command says so.
#[test]
fn translated_programs_do_the_same_also_in_lock_step() {
    if cfg!(feature = "translator") {
        for options in [
            &["--translate", "auto"][..],
            &["--translate", "always", "--check-translation"],
            // Nobody has to ask for it.
            &[],
        ] {
            expect_tour(tour(options));
        }
        if let Some(program) = build("alone.c", &["-static"]) {
            for options in [&[][..], &["--timing", "itanium2,sample=1M"]] {
                let mut command = sidestep();
                command.args(options).arg(&program);
                expect_success(command);
            }
        }
        let units = |options: &[&str]| {
            let output = tour(&[&["--stats"], options].concat())
                .output()
                .expect("sidestep runs");
            String::from_utf8_lossy(&output.stderr)
                .matches("units translated")
                .count()
        };
        assert!(units(&[]) > 0);
        for watched in [
            &["--translate", "never"][..],
            &["--check-groups"],
            &["--trace=insn=/dev/null", "--trace-limit=1K"],
        ] {
            assert_eq!(units(watched), 0, "{watched:?}");
        }
    } else {
        let output = tour(&["--translate", "auto"]).output().expect("sidestep runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains("--features translator"),
            "{error}"
        );
    }
}

/// Code that is hot touches what it may not, in every way.
#[test]
fn memory_refuses_translated_code_what_it_refuses_the_interpreter() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin/memory-protections");
    let run = |options: &[&str]| {
        let mut command = sidestep();
        command.args(options).arg(&program);
        let output = command.output().expect("sidestep runs");
        assert!(output.status.success(), "{options:?}: {output:?}");
        String::from_utf8(output.stdout).expect("it prints text")
    };
    let interpreted = run(&[]);
    let faults = interpreted.matches("signal 11, code").count();
    assert!(faults > 100, "{interpreted}");
    if cfg!(feature = "translator") {
        assert_eq!(run(&["--translate", "never"]), interpreted);
        for options in [
            &["--translate", "always"][..],
            &["--translate", "always", "--check-translation"],
            &["--translate", "auto", "--translate-synchronously"],
        ] {
            assert_eq!(run(options), interpreted, "{options:?}");
        }
    }
}

/// Runs a program that is checked in, with a trace.
fn traced(arguments: &[&str]) -> Output {
    let tour = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin/tour");
    let mut command = sidestep();
    command.args(arguments).arg(tour);
    command.output().expect("sidestep runs")
}

#[test]
fn a_trace_ends_at_its_limit_and_the_program_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let output = traced(&[
        &format!("--trace=insn={}", trace.display()),
        "--trace-limit=100000",
    ]);
    assert_eq!(output.status.code(), Some(0));
    let trace = fs::read_to_string(trace).expect("a trace");
    let cut = "cut here: the trace has reached its limit of 100000 bytes\n";
    assert!(
        trace.ends_with(cut) && trace.len() <= 100_000 + cut.len(),
        "{}",
        trace.len()
    );
}

#[test]
fn a_trace_on_a_full_disk_ends_the_program() {
    let output = traced(&["--trace=insn=/dev/full"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{error}");
    assert!(
        error.contains("/dev/full: the trace cannot be written"),
        "{error}"
    );
}
