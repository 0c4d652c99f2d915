//! FUCE from the command line: assemble, list, boot.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sidestep(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("sidestep starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/cefos")
}

/// Assembles a program of the repository into a folder.
fn assemble(program: &str, folder: &Path) {
    let guests = guests();
    let source = guests.join("programs").join(format!("{program}.s"));
    let image = format!("{program}.fuce");
    let paths = [source, guests].map(|path| path.display().to_string());
    let output = sidestep(
        &[
            "assemble",
            &paths[0],
            "-I",
            &paths[1],
            "-D",
            "SOFTWARE_QUEUE",
            "-o",
            &image,
        ],
        folder,
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn the_sort_is_assembled_listed_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    assemble("sort", folder.path());
    let listed = sidestep(
        &["disasm", "sort.fuce", "--symbol", "write_thread"],
        folder.path(),
    );
    let listing = text(&listed.stdout);
    assert!(
        listing.contains("write_thread:\n") && listing.contains("contd"),
        "{listing}"
    );
    let run = sidestep(&["run", "sort.fuce", "--units", "8", "--stats"], folder.path());
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_eq!(text(&run.stdout), "1024 numbers sorted; out of order: 0\n");
    assert!(text(&run.stderr).contains("self-continuations"));
}

#[test]
fn the_wordcount_reads_its_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    assemble("wordcount", folder.path());
    std::fs::write(folder.path().join("disk"), "one two\nthree ".repeat(300)).expect("a disk");
    let run = sidestep(&["run", "wordcount.fuce", "--disk", "disk"], folder.path());
    assert_eq!(
        (text(&run.stdout), run.status.code()),
        ("900 words\n".into(), Some(0))
    );
    let run = sidestep(&["run", "wordcount.fuce"], folder.path());
    assert_eq!(
        run.status.code(),
        Some(1),
        "without a disk the program exits with 1"
    );
}

#[test]
fn bad_input_gives_one_error_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("bad.s"), "boot: jmp nowhere\n.entry boot\n").expect("written");
    std::fs::write(folder.path().join("bad.fuce"), "FUCE and no more").expect("written");
    std::fs::write(
        folder.path().join("fault.s"),
        ".entry boot\nboot: ldw r1, 2(r0)\n",
    )
    .expect("written");
    std::fs::write(folder.path().join("wait.s"), ".entry boot\nboot: end\n").expect("written");
    std::fs::write(folder.path().join("spin.s"), ".entry boot\nboot: jmp boot\n").expect("written");
    for program in ["fault", "wait", "spin"] {
        assert!(
            sidestep(&["assemble", &format!("{program}.s")], folder.path())
                .status
                .success()
        );
    }
    let cases: [(&[&str], &str); 9] = [
        (
            &["assemble", "bad.s", "-o", "out"],
            "bad.s:1:11: undefined label `nowhere`",
        ),
        (&["assemble", "none.s"], "none.s: cannot be read"),
        (&["assemble", "spin.s", "-o", "no/where"], "cannot write no/where"),
        (&["run", "none"], "none: cannot be read"),
        (&["run", "bad.s"], "bad.s: nothing that can be booted"),
        (
            &["run", "bad.fuce"],
            "bad.fuce: the image has 16 bytes where its header promises",
        ),
        (
            &["run", "wait.fuce", "--units", "65"],
            "units must be 1 to 64, not 65",
        ),
        (
            &["run", "fault.fuce"],
            "thread 0.0 at 0x0: misaligned address (value 0x2), in boot",
        ),
        (
            &["run", "spin.fuce", "--max-cycles", "1000"],
            "stopped after 1000 cycles",
        ),
    ];
    for (arguments, expected) in cases {
        let output = sidestep(arguments, folder.path());
        let error = text(&output.stderr);
        assert!(
            output.status.code() == Some(1) && error.contains(expected),
            "{arguments:?}: {error}"
        );
    }
    assert!(!folder.path().join("out").exists());
    let idle = sidestep(&["run", "wait.fuce"], folder.path());
    assert!(
        text(&idle.stderr).contains("no thread is ready"),
        "{}",
        text(&idle.stderr)
    );
}
