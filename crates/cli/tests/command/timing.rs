//! The commands that run programs on the model of a processor: `exec --timing`, `perf`, `explain`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn sidestep(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.args(arguments).env_remove("SIDESTEP_SYSROOT");
    command.output().expect("the command starts")
}

fn program(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../guests/ia64/bin")
        .join(name);
    path.to_str().expect("a UTF-8 path").to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of its own for each test, in a folder that goes away with the value.
fn scratch(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join(name);
    (folder, file)
}

/// A source in assembly, for commands that have it assembled; `None` where there is no assembler, which is said.
#[track_caller]
fn assembly(name: &str, code: &str) -> Option<(tempfile::TempDir, String)> {
    tests_need::ASSEMBLER.find()?;
    let (folder, file) = scratch(name);
    std::fs::write(&file, code).expect("the source can be written");
    Some((folder, file.to_str().expect("a UTF-8 path").to_owned()))
}

/// The one line that a mistake is answered with; the exit code is not zero and nothing was printed as a result.
fn mistake(arguments: &[&str], named: &[&str]) {
    let output = sidestep(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    let said = text(&output.stderr);
    for word in named {
        assert!(said.contains(word), "{arguments:?}: `{word}` is not in {said}");
    }
}

#[test]
fn what_is_computed_block_by_block_is_not_translated() {
    for option in ["--profile", "--compute-blocks"] {
        let tour = program("tour");
        let words = [
            "exec",
            "--timing",
            "itanium2",
            option,
            "--translate",
            "always",
            &tour,
        ];
        mistake(&words, &["--translate", option]);
    }
}

#[test]
fn timing_changes_neither_what_a_program_writes_nor_how_it_ends() {
    for (name, rounds) in [
        ("tour", None),
        ("calls", Some("2")),
        ("sieve", Some("1")),
        ("hash", Some("1")),
        ("sort", Some("1")),
        ("strings", Some("1")),
        ("matmul", Some("1")),
        ("records", Some("1")),
    ] {
        let path = program(name);
        let mut plain = vec!["exec", &path];
        plain.extend(rounds);
        let mut timed = vec!["exec", "--timing", "itanium2", &path];
        timed.extend(rounds);
        let (plain, timed) = (sidestep(&plain), sidestep(&timed));
        assert_eq!(text(&timed.stdout), text(&plain.stdout), "{name}");
        assert_eq!(timed.status.code(), plain.status.code(), "{name}");
    }
}

#[test]
fn the_same_program_takes_the_same_cycles() {
    let path = program("sieve");
    let run = || text(&sidestep(&["perf", "stat", &path, "1"]).stderr);
    let first = run();
    assert!(
        first.contains("CPU_CYCLES") && first.contains("BACK_END_BUBBLE.ALL"),
        "{first}"
    );
    assert_eq!(run(), first);
}

/// The cycles in what `--timing` prints.
fn cycles(said: &str) -> f64 {
    let line = said.lines().find(|line| line.ends_with("  CPU_CYCLES"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).expect(said)
}

#[test]
fn samples_of_a_run_say_nearly_what_all_of_it_takes_and_always_the_same() {
    for (name, rounds) in [("sort", "2"), ("matmul", "2")] {
        let program = program(name);
        let run = |timing: &str| {
            let output = sidestep(&["exec", "--timing", timing, &program, rounds]);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            (text(&output.stdout), text(&output.stderr))
        };
        let (printed, whole) = run("itanium2");
        let sampling = "itanium2,sample=100k,warm=60k,unit=4k";
        let (sampled, estimate) = run(sampling);
        assert_eq!(printed, sampled);
        assert_eq!(run(sampling).1, estimate);
        assert!(estimate.contains("samples of"), "{estimate}");
        let (exact, estimated) = (cycles(&whole), cycles(&estimate));
        assert!(
            (estimated / exact - 1.0).abs() < 0.05,
            "{exact} cycles\n{estimate}"
        );
    }
}

#[test]
fn what_cannot_be_sampled_is_said_in_one_error() {
    let program = program("sort");
    let few = sidestep(&["exec", "--timing", "itanium2,sample=100M", &program, "1"]);
    assert!(few.status.success());
    let said = text(&few.stderr);
    assert!(
        said.contains("samples, and an estimate takes 30: sample more often than once in 100000000"),
        "{said}"
    );
    for (timing, more, named) in [
        (
            "itanium2,sample=1M,cold=5",
            None,
            "`cold` is neither `warm` nor `unit`",
        ),
        (
            "itanium2,1M",
            None,
            "`1M` is not `sample=PERIOD[,warm=N][,unit=N]`",
        ),
        (
            "itanium2,sample=1M",
            Some("--profile"),
            "--profile is of a whole run",
        ),
    ] {
        let options = ["exec", "--timing", timing].into_iter().chain(more);
        let arguments: Vec<&str> = options.chain([program.as_str()]).collect();
        mistake(&arguments, &[named]);
    }
    mistake(
        &["run", "--timing", "itanium2,sample=1M", &program],
        &["samples are of programs"],
    );
}

#[test]
fn an_unknown_processor_counter_or_symbol_is_answered_with_the_nearest_names() {
    let path = program("sieve");
    mistake(
        &["exec", "--timing", "itanium3", &path],
        &["itanium3", "itanium2"],
    );
    mistake(
        &["perf", "stat", "-e", "CPU_CYCLE", &path],
        &["CPU_CYCLE", "CPU_CYCLES"],
    );
    let code = "\t.text\n\t.global pair\n\t.proc pair\npair:\n\tadd r8 = r32, r33\n\tbr.ret.sptk.many rp\n\t.endp pair\n";
    let Some((_folder, source)) = assembly("f.S", code) else {
        return;
    };
    mistake(&["explain", &source, "--function", "pear"], &["pear", "pair"]);
}

#[test]
fn a_recording_is_annotated_even_where_no_symbol_names_the_code() {
    let (_folder, file) = scratch("perf.json");
    let file = file.to_str().expect("a UTF-8 path");
    let (_stripped, path) = without_sections("sieve");
    let recorded = sidestep(&["perf", "record", "-o", file, &path, "1"]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let annotated = sidestep(&["perf", "annotate", "-i", file]);
    let said = text(&annotated.stdout);
    assert!(annotated.status.success(), "{}", text(&annotated.stderr));
    assert!(said.contains("[unknown]") && said.contains("br.cond"), "{said}");
    mistake(
        &["perf", "annotate", "-i", file, "--symbol", "main"],
        &["main", "the file names no code at all"],
    );
}

/// A copy of a program that has neither section headers nor, with them, symbols.
fn without_sections(name: &str) -> (tempfile::TempDir, String) {
    let (folder, file) = scratch(name);
    let mut bytes = std::fs::read(program(name)).expect("a program");
    // The offset of the section headers, and behind their size how many there are and which has their names.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    std::fs::write(&file, bytes).expect("the file can be written");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let path = file.to_str().expect("a UTF-8 path").to_owned();
    (folder, path)
}

#[test]
fn programs_of_the_repository_have_names() {
    let (_folder, file) = record("sieve", &[]);
    let said = report(&file, &[]);
    assert!(said.contains("  main") && !said.contains("[unknown]"), "{said}");
    mistake(
        &["perf", "annotate", "-i", &file, "--symbol", "mian"],
        &["the nearest names are main"],
    );
}

/// The recorded processes of a file, as data.
fn processes(file: &str) -> Vec<serde_json::Value> {
    let recording = std::fs::read(file).expect("a recording");
    let mut recording: serde_json::Value = serde_json::from_slice(&recording).expect("JSON");
    let processes = recording["processes"].take();
    processes.as_array().expect("a list").clone()
}

#[test]
fn all_processes_are_in_one_recording() {
    let (_folder, file) = record("tour", &["-c", "10007"]);
    let processes = processes(&file);
    assert!(processes.len() > 1, "the tour forks: {}", processes.len());
    let events = |process: &serde_json::Value| {
        let events = &process["contents"]["samples"][0]["events"];
        events.as_u64().expect("a number")
    };
    let all: u64 = processes.iter().map(events).sum();
    assert!(report(&file, &[]).contains(&format!("CPU_CYCLES: {all} events")));
    let by_process = report(&file, &["--sort", "pid,comm,tid"]);
    for process in &processes {
        let row = format!("{}", process["pid"]);
        let is_there = process["contents"]["samples"][0]["samples"] == serde_json::json!([])
            || by_process.contains(&row);
        assert!(is_there, "{row}: {by_process}");
    }
    let first = processes[0]["pid"].to_string();
    let one = report(&file, &["--pid", &first]);
    assert!(
        one.contains(&format!("CPU_CYCLES: {} events", events(&processes[0]))),
        "{one}"
    );
    mistake(
        &["perf", "report", "-i", &file, "--pid", "1"],
        &["no such process", &first],
    );
    mistake(
        &["perf", "report", "-i", &file, "--comm", "cat"],
        &["no such process", "tour"],
    );
}

#[test]
fn counters_of_all_processes_are_summed_up() {
    let path = program("tour");
    let output = sidestep(&["perf", "stat", "--per-process", "-e", "IA64_INST_RETIRED", &path]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let (each, all) = said.split_once("all processes\n").expect("a sum");
    let counts = |said: &str| -> Vec<u64> {
        let lines = said.lines().filter(|line| line.ends_with("IA64_INST_RETIRED"));
        let count = |line: &str| line.split_whitespace().next().and_then(|word| word.parse().ok());
        lines.map(|line| count(line).expect("a count")).collect()
    };
    let labels = each.lines().filter(|line| line.starts_with("process ")).count();
    assert!(labels > 1 && counts(each).len() == labels, "{said}");
    assert_eq!(counts(all), [counts(each).iter().sum::<u64>()], "{said}");
}

#[test]
fn programs_that_a_program_executes_are_recorded_and_its_end_is_theirs() {
    let Some(compiler) = tests_need::cross_compiler() else {
        return;
    };
    let (folder, source) = scratch("execute.c");
    let executed = program("sieve");
    std::fs::write(
        &source,
        format!(
            "#include <unistd.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n\
             int main(void) {{ int status; if (fork() == 0) execl(\"{executed}\", \"sieve\", \"1\", (char *) 0);\n\
             wait(&status); abort(); }}"
        ),
    )
    .expect("the file can be written");
    let execute = folder.path().join("execute");
    let built = std::process::Command::new(compiler.gcc())
        .args(["-O2", "-static", "-o"])
        .args([&execute, &source])
        .status();
    assert!(built.expect("the compiler runs").success());
    let recording = folder.path().join("perf.json");
    let recording = recording.to_str().expect("a UTF-8 path");
    let execute = execute.to_str().expect("a UTF-8 path");
    let output = sidestep(&["perf", "record", "-o", recording, execute]);
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, Some(6), "{}", text(&output.stderr));
    let commands: Vec<String> = processes(recording)
        .iter()
        .map(|process| process["command"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(commands, ["execute", "execute", "sieve"]);
    let said = report(recording, &[]);
    assert!(
        said.contains("sieve (process ") && said.contains("  main"),
        "{said}"
    );
    let said = report(recording, &["--comm", "sieve"]);
    assert!(!said.contains("execute (process "), "{said}");
}

#[test]
fn a_file_that_is_no_recording_is_named() {
    let (_folder, file) = scratch("perf.json");
    std::fs::write(&file, "{}").expect("the file can be written");
    let file = file.to_str().expect("a UTF-8 path");
    mistake(&["perf", "annotate", "-i", file], &[file]);
}

/// Records a program with some options; answers the recording's file in its folder.
fn record(name: &str, options: &[&str]) -> (tempfile::TempDir, String) {
    let (folder, file) = scratch("perf.json");
    let file = file.to_str().expect("a UTF-8 path").to_owned();
    let path = program(name);
    let arguments = [&["perf", "record", "-o", &file], options, &[&path, "1"]].concat();
    let recorded = sidestep(&arguments);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    (folder, file)
}

fn report(file: &str, options: &[&str]) -> String {
    let output = sidestep(&[&["perf", "report", "-i", file], options].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn loads_are_sampled_with_latency_level_and_address_and_always_alike() {
    let options = ["-e", "DATA_EAR_CACHE_LAT4:1,DATA_EAR_TLB_ALL:1"];
    let (_folder, file) = record("sieve", &options);
    let (_other_folder, again) = record("sieve", &options);
    let read = |file: &str| {
        processes(file)
            .iter()
            .map(|process| process["contents"].clone())
            .collect::<Vec<_>>()
    };
    assert!(read(&file) == read(&again), "two recordings of one run differ");

    let said = report(&file, &[]);
    for word in [
        "DATA_EAR_CACHE_LAT4",
        "(one of 1)",
        "memory",
        "L2",
        "cycles",
        "walker",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let by_latency = report(&file, &["--sort", "local_weight,symbol_daddr", "--rows", "3"]);
    assert!(
        by_latency.contains("more rows") && by_latency.contains("0x6"),
        "{by_latency}"
    );
    let annotated = text(&sidestep(&["perf", "annotate", "-i", &file]).stdout);
    assert!(
        annotated.contains("^ ") && annotated.contains("ld"),
        "{annotated}"
    );
}

#[test]
fn branches_are_sampled_with_their_outcomes() {
    let (_folder, file) = record("sort", &["-e", "BRANCH_EVENT:101"]);
    let said = report(&file, &[]);
    for word in ["not taken", "direction", "mispredicted", "target"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let annotated = text(&sidestep(&["perf", "annotate", "-i", &file]).stdout);
    assert!(annotated.contains("% mispredicted"), "{annotated}");
}

#[test]
fn counters_and_cycles_are_sampled_by_period_and_by_time() {
    let (_folder, file) = record(
        "sieve",
        &["-c", "1009", "-e", "IA64_INST_RETIRED,BE_EXE_BUBBLE.ALL:7"],
    );
    let said = report(&file, &[]);
    assert!(
        said.contains("(one of 1009)") && said.contains("(one of 7)"),
        "{said}"
    );
    let (_folder, file) = record("sieve", &["-F", "9000"]);
    let said = report(&file, &["--sort", "symoff"]);
    assert!(
        said.contains("CPU_CYCLES") && said.contains("(one in 100000 cycles)"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_recorded_or_reported_is_said_in_one_error() {
    let path = program("sieve");
    let (_folder, file) = scratch("perf.json");
    let file = file.to_str().expect("a UTF-8 path");
    let wrong = |options: &[&str], named: &[&str]| {
        let arguments = [&["perf", "record", "-o", file], options, &[&path]].concat();
        mistake(&arguments, named);
        assert!(!Path::new(file).exists(), "{options:?} left a file behind");
    };
    wrong(
        &["-e", "DATA_EAR_CACHE_LAT65"],
        &["LAT65", "DATA_EAR_CACHE_LAT64"],
    );
    wrong(&["-e", "L2_MISSES:0"], &["`0`", "from 1"]);
    wrong(&["-c", "0"], &["`0`", "from 1"]);
    wrong(
        &["-c", "5", "-F", "5"],
        &["--count", "--freq", "cannot be used with"],
    );
    wrong(&["-F", "1000000000"], &["1000000000", "900000000"]);
    let full = sidestep(&["perf", "record", "-o", "/dev/full", &path, "1"]);
    let said = text(&full.stderr);
    assert!(
        !full.status.success() && said.contains("cannot write /dev/full: No space left on device"),
        "{said}"
    );
    // Nobody reads what cannot be written, but the exit code tells.
    let device = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let counted = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(["perf", "stat", &path, "1"])
        .env_remove("SIDESTEP_SYSROOT")
        .stdout(Stdio::null())
        .stderr(device.expect("the full device"))
        .status();
    assert_eq!(counted.expect("the command starts").code(), Some(1));
    mistake(
        &["perf", "report", "-i", file, "--sort", "symbol"],
        &["symbol", "sym"],
    );
    let (_folder, profile) = record("sieve", &[]);
    mistake(
        &["perf", "report", "-i", &profile, "--sort", "mem"],
        &[&profile, "sym"],
    );
    assert!(report(&profile, &[]).contains("cycles"));
    std::fs::write(&profile, r#"{"version": 1, "places": []}"#).expect("the file can be written");
    mistake(&["perf", "report", "-i", &profile], &["version 1", "version 3"]);
}

/// Assembles with warnings in line 3, and errors in lines 4 and 6.
const WRONG_SOURCE: &str = "#define FIRST 1\nf:\tmov r14 = FIRST\n\tadd r15 = r14, r14\n\tfoo r1 = r2\n\tbr.ret.sptk.many b0\n\tadds r1 = 99999, r2\n";

#[test]
fn of_assembly_that_is_wrong_the_errors_are_shown_with_their_lines_and_no_warnings() {
    let Some((_folder, file)) = assembly("wrong.S", WRONG_SOURCE) else {
        return;
    };
    let output = sidestep(&["explain", &file]);
    let said = text(&output.stderr);
    assert!(!output.status.success());
    for line in [4, 6] {
        assert!(said.contains(&format!("wrong.S:{line}: Error: ")), "{said}");
    }
    assert!(
        !said.contains("Warning") && !said.contains("Assembler messages"),
        "{said}"
    );
}

#[test]
fn the_rules_of_a_processor_are_printed_with_their_sources() {
    let rules = |processor| text(&sidestep(&["explain", "--rules", "--timing", processor]).stdout);
    let said = rules("itanium2-1500");
    let rows: Vec<String> = said
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let has = |start: &str, end: &str| {
        let suits = |row: &&String| row.starts_with(start) && row.ends_with(end);
        assert!(rows.iter().any(|row| suits(&row)), "no row {start} in {said}");
    };
    has("M2 12 mov =psr ", "Linux, M2; queue of system registers");
    has("M0-M3 6 ldf ", "GCC, fld; from the second-level cache");
    has("13 mov ar.rsc=", "paper table 4");
    has("167 memory", "");
    assert_ne!(said, rules("itanium2"));
}

#[test]
fn a_piece_of_assembly_is_explained_cycle_by_cycle() {
    let code = "\t.text\n\t.global wait\n\t.proc wait\nwait:\n\tmov ar.rsc = 0\n\t;;\n\tmov r8 = ar.bspstore\n\t;;\n\tbr.ret.sptk.many rp\n\t.endp wait\n";
    let Some((_folder, source)) = assembly("wait.S", code) else {
        return;
    };
    let output = sidestep(&["explain", &source]);
    let said = text(&output.stdout);
    assert!(
        said.contains("12 bubbles: BE_RSE_BUBBLE.AR_DEP"),
        "{said}{}",
        text(&output.stderr)
    );
}

#[test]
fn what_holds_up_everything_behind_it_is_named() {
    let code = "\t.text\n\t.global mask\n\t.proc mask\nmask:\n\tmov psr.um = r8\n\t;;\n\tadds r9 = 1, r10\n\t.endp mask\n";
    let Some((_folder, source)) = assembly("mask.S", code) else {
        return;
    };
    let said = text(&sidestep(&["explain", &source]).stdout);
    let bubbles = said.lines().find(|line| line.contains("4 bubbles"));
    assert!(
        bubbles.is_some_and(|line| line.contains("mov psr.um=r8")),
        "{said}"
    );
}

#[test]
fn a_listing_that_is_not_run_shows_references_behind_a_region_register() {
    let pause = "\tnop.m 0\n\t;;\n".repeat(4);
    let code = format!(
        "\t.text\n\t.global region\n\t.proc region\nregion:\n\tmov rr[r0] = r8\n\t;;\n{pause}\tld8 r9 = [r10]\n\t;;\n\
         \tadds r9 = 1, r9\n\t.endp region\n"
    );
    let Some((_folder, source)) = assembly("region.S", &code) else {
        return;
    };
    let said = text(&sidestep(&["explain", &source]).stdout);
    assert!(said.contains("BE_L1D_FPU_BUBBLE.L1D_DCURECIR"), "{said}");
}

#[test]
fn a_machine_on_the_model_says_the_same_and_what_it_took() {
    let (_folder, description) = scratch("machine.toml");
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin/kernel-2");
    let text_of_machine = format!(
        "machine = {{ processors = 2, quantum = 200, parameters = 'memory=112 program=context 2 0 10' }}
         image.file = '{}'
         memory = [{{ start = 0, size = '112M' }}]",
        image.display()
    );
    std::fs::write(&description, text_of_machine).expect("the description can be written");
    let example = description.to_str().expect("a UTF-8 path");
    let plain = sidestep(&["run", "--deterministic", example]);
    assert!(text(&plain.stdout).contains("context"), "{}", text(&plain.stderr));
    let timed = sidestep(&["run", "--timing", "itanium2", "--profile", example]);
    assert_eq!(text(&timed.stdout), text(&plain.stdout));
    assert_eq!(timed.status.code(), plain.status.code());
    let said = text(&timed.stderr);
    assert!(
        said.contains("BACK_END_BUBBLE.ALL") && said.contains("  function\n"),
        "{said}"
    );
    mistake(
        &["run", "--timing", "itanium3", example],
        &["itanium3", "itanium2"],
    );
    mistake(
        &["run", "--timing", "itanium2", "--gdb", ":0", example],
        &["--gdb"],
    );
}

/// A function that sums a list of words, with a load that misses nothing once it is warm.
const SUM: &str = "\t.text
\t.global sum
\t.proc sum
sum:
\tmov ar.lc = r33
\tmov r8 = r0
\t;;
1:\tld8 r9 = [r32], 8
\t;;
\tcmp.eq p6, p7 = 0, r9
\t;;
(p7)\tadd r8 = r8, r9
\tbr.cloop.sptk.few 1b
\t;;
\tbr.ret.sptk.many rp
\t.endp sum
";

#[test]
fn a_function_is_run_and_explained_as_it_went() {
    let Some((_folder, source)) = assembly("sum.S", SUM) else {
        return;
    };
    let source = source.as_str();
    let run = |options: &[&str]| {
        let words = ["explain", source, "--function", "sum", "--run"];
        sidestep(&[&words[..], options].concat())
    };
    let options = ["--set", "in0=0x2000", "--set", "in1=1", "--memory", "0x2000=7"];
    let output = run(&options);
    let said = text(&output.stdout);
    for row in [
        "[2000]",
        "[2008]",
        "-> return",
        "It returned.",
        " groups of ",
        "  off",
    ] {
        assert!(
            said.contains(row),
            "`{row}` is not in {said}{}",
            text(&output.stderr)
        );
    }
    // The same to the byte.
    let again = run(&options);
    assert_eq!(text(&again.stdout), said);
    for (option, value, named) in [
        ("--set", "in9=1", "r1 to r39"),
        ("--memory", "0x2004=1", "multiple of 8"),
        ("--set", "in0=nowhere", "symbol"),
    ] {
        let words = ["explain", source, "--function", "sum", "--run", option, value];
        mistake(&words, &[value, named]);
    }
    mistake(
        &["explain", source, "--function", "sum", "--set", "in0=1"],
        &["--run"],
    );
}

#[test]
fn the_books_example_of_a_run_reaches_its_end() {
    if tests_need::ASSEMBLER.find().is_none() {
        return;
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/src/itanium/pipeline.md")).expect("the page");
    let start = page.find("sidestep explain guests/").expect("the command");
    let command = page[start..]
        .split("```")
        .next()
        .expect("its end")
        .replace("\\\n", " ");
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sidestep"));
        command
            .args(words)
            .current_dir(&root)
            .output()
            .expect("the command runs")
    };
    let output = run(&words);
    let said = text(&output.stdout);
    let error = text(&output.stderr);
    assert!(said.contains("It returned."), "{said}{error}");
    // What a file refers to and nobody defines is said, not taken for zero.
    let definitions = words
        .iter()
        .position(|word| *word == "--define")
        .expect("definitions");
    let output = run(&words[..definitions]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("tcbs") && error.contains("--define"), "{error}");
}
