//! `--check-groups` of programs and machines that run, as a user calls it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sidestep(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(arguments)
        .output();
    command.expect("the command starts")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A program that misses a stop in `wrong`, twice, and ends with status 7.
const WRONG: &str = "\
\t.text
\t.global _start
\t.proc wrong
wrong:
{ .mmi
\tadd r8 = r9, r10
\tadd r11 = r8, r10
\tnop.i 0
\t;;
}
{ .mib
\tnop.m 0
\tnop.i 0
\tbr.ret.sptk b0
\t;;
}
\t.endp wrong
\t.proc _start
_start:
\talloc r2 = ar.pfs, 0, 0, 1, 0
\t;;
\tbr.call.sptk b0 = wrong
\t;;
\tbr.call.sptk b0 = wrong
\t;;
\tmov r32 = 7
\tmov r15 = 1025
\t;;
\tbreak.m 0x100000
\t;;
\t.endp _start
";

/// The program, assembled and linked into a folder.
fn wrong(folder: &Path) -> Option<PathBuf> {
    let assembler = tests_need::ASSEMBLER.find()?;
    let linker = assembler.with_file_name("ia64-linux-gnu-ld");
    let path = |name: &str| folder.join(name);
    fs::write(path("wrong.s"), WRONG).expect("a temporary file can be written");
    let run = |command: &mut Command| {
        let status = command.status().expect("the tool starts");
        assert!(status.success());
    };
    let (source, object, program) = (path("wrong.s"), path("wrong.o"), path("wrong"));
    run(Command::new(&assembler)
        .args(["-xnone", "-o"])
        .arg(&object)
        .arg(source));
    run(Command::new(linker).arg("-o").arg(&program).arg(object));
    Some(program)
}

#[test]
fn a_missing_stop_is_told_with_both_instructions_or_ends_the_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(program) = wrong(folder.path()) else {
        return;
    };
    let program = program.display().to_string();
    let output = sidestep(&["exec", "--check-groups", &program]);
    let text = errors(&output);
    assert_eq!(output.status.code(), Some(7), "{text}");
    let line = text.lines().next().unwrap_or_default();
    assert!(
        line.contains(".1 <wrong+0x0>: `add r11=r8,r10` behind `add r8=r9,r10` ("),
        "{text}"
    );
    assert!(
        line.ends_with("RAW dependency, manual 3:5.3.2, table 5-2 on r8; 2 times"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2, "{text}");

    let output = sidestep(&["exec", "--check-groups=error", &program]);
    let text = errors(&output);
    assert_eq!(output.status.code(), Some(123), "{text}");
    assert!(text.contains("on r8; once"), "{text}");
}

#[test]
fn what_is_suppressed_is_not_told_and_ends_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(program) = wrong(folder.path()) else {
        return;
    };
    let program = program.display().to_string();
    let list = folder.path().join("list");
    let run = |lines: &str| {
        fs::write(&list, lines).expect("a temporary file can be written");
        let list = format!("--group-suppressions={}", list.display());
        sidestep(&["exec", "--check-groups=error", &list, &program])
    };
    for lines in ["symbol=wrong", "# why\nsymbol=wr* rule=raw"] {
        let output = run(lines);
        assert_eq!(output.status.code(), Some(7), "{lines}: {}", errors(&output));
        assert_eq!(errors(&output), "");
    }
    for lines in ["symbol=wrong rule=waw", "address=10"] {
        assert_eq!(run(lines).status.code(), Some(123), "{lines}");
    }
    let output = run("symbol=wrong\nrule=wrong");
    let text = errors(&output);
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(
        text.contains(":2: no rule is called `wrong`; there are raw, waw, war, first"),
        "{text}"
    );
}

#[test]
fn programs_that_keep_the_rules_run_as_ever_and_nothing_is_said() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin");
    let runs: [(&str, &[&str]); 3] = [("tour", &[]), ("calls", &["3"]), ("strings", &[])];
    for (name, arguments) in runs {
        let program = programs.join(name).display().to_string();
        let run = |option: &[&str]| {
            let arguments: Vec<&str> = ["exec"]
                .iter()
                .chain(option)
                .chain([&program.as_str()])
                .chain(arguments)
                .copied()
                .collect();
            sidestep(&arguments)
        };
        let (plain, checked) = (run(&[]), run(&["--check-groups"]));
        assert_eq!(errors(&checked), errors(&plain), "{name}");
        assert_eq!(checked.status.code(), plain.status.code(), "{name}");
        assert_eq!(checked.stdout, plain.stdout, "{name}");
    }
}

#[test]
fn it_excludes_what_watches_in_other_ways() {
    for option in ["--timing=itanium2", "--trace=insn"] {
        let output = sidestep(&["exec", "--check-groups", option, "program"]);
        assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
        assert!(
            errors(&output).contains("cannot be used with"),
            "{}",
            errors(&output)
        );
    }
}
