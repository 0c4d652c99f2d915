//! Assembly language is scheduled.

use std::path::PathBuf;

use tests_need::{ASSEMBLER, cross_compiler};

use super::*;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../guests/ia64/ipc")
        .join(name)
}

#[test]
fn a_function_gets_shorter_keeps_its_comments_and_is_proved_optimal() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, out) = (written(&folder, SLOW), folder.path().join("out.s"));
    let output = sidestep(&["schedule", &file, "-o", &out.display().to_string()]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(table.starts_with("f: 3 cycles, 5 before"), "{table}");
    assert!(table.contains("optimal"), "{table}");
    let text = fs::read_to_string(&out).expect("the result was written");
    assert!(text.contains("ld8 r14 = [r32]\t// the first word"), "{text}");
    assert!(text.contains(".endp f"), "{text}");
    // Once more there is nothing to gain.
    let again = sidestep(&["schedule", &out.display().to_string()]);
    let table = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(table.starts_with("f: 3 cycles, 3 before"), "{table}");
}

/// A loop whose first block cannot get shorter, so that it stays as it was, with the stop behind its branch.
const LOOP: &str = "\
\t.text
\t.proc f
f:
\t.mib
\tcmp.ge p6, p7 = r34, r14
\tadd r14 = r14, r16
\t(p7) br.cond.dpnt .L3
\t;;
\t.mmi
\tnop 0
\tst1 [r15] = r35
\tcmp.ge p6, p7 = r34, r14
\t.mmb
\tnop 0
\tadd r15 = r15, r16
\t(p6) br.cond.dptk f
\t.mib
\tnop 0
\tnop 0
\tbr .L3
.L3:
\tbr.ret.sptk.many b0
\t;;
\t.endp f
";

#[test]
fn stops_behind_blocks_that_stay_are_kept() {
    let Some(assembler) = ASSEMBLER.find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, out) = (written(&folder, LOOP), folder.path().join("out.s"));
    let output = sidestep(&["schedule", &file, "-o", &out.display().to_string()]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let assembled = Command::new(&assembler)
        .args(["-x", "-o", "/dev/null"])
        .arg(&out)
        .output();
    let warnings = assembled.expect("the assembler starts").stderr;
    assert_eq!(String::from_utf8_lossy(&warnings), "");
}

/// A block whose first group goes on behind the branch before it: what comes into it new may depend on that.
const OPEN_GROUP: &str = "\
\t.text
\t.explicit
\t.proc f
f:
\t.mmb
\tcmp.eq p6, p7 = 1, r32
\tld8 r14 = [r33]
\t(p7) br.cond.sptk .L2
\t.mmi
\tadds r16 = 1, r32
\tnop 0
\tnop 0
\t;;
\tadds r17 = 1, r14
\t;;
\tadds r18 = 1, r34
\t;;
\tadds r19 = 1, r35
\t;;
\tadd r8 = r17, r18
\t;;
.L2:
\tbr.ret.sptk.many b0
\t;;
\t.endp f
";

/// A return from an interruption in the group behind what it reads, a label beside an instruction, a macro that counts
/// its uses, and a counter of time, which no two runs agree on.
const SYSTEM: &str = "\
\t.text
\t.macro on
\tadds r14 = 1, r14
\t;;
.Lhere\\@:
\t.endm
\t.proc f
f:\tmov r16 = ar.itc
\t;;
\tadds r17 = 1, r32
\t;;
\tadds r18 = 1, r33
\t;;
\tadd r16 = r16, r17
\ton
\ton
\tmovl r2 = 0x123456789
\t;;
\tmov cr.ipsr = r2
\tmov cr.ifs = r0
\t;;
\trfi
\t;;
\t.endp f
";

#[test]
fn groups_that_go_on_and_system_code_are_written_right() {
    let Some(assembler) = ASSEMBLER.find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    for text in [OPEN_GROUP, SYSTEM] {
        let (file, out) = (written(&folder, text), folder.path().join("out.s"));
        let output = sidestep(&["schedule", &file, "-o", &out.display().to_string()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let assembled = Command::new(&assembler)
            .args(["-x", "-o", "/dev/null"])
            .arg(&out)
            .output();
        let warnings = assembled.expect("the assembler starts").stderr;
        assert_eq!(String::from_utf8_lossy(&warnings), "");
        let written = fs::read_to_string(&out).expect("the result was written");
        assert!(
            text != OPEN_GROUP || written.contains("(p7) br.cond.sptk .L2\n\t;;\n{"),
            "{written}"
        );
    }
}

/// What throws, and what catches it, in one source: the handlers' tables name places between blocks.
const CATCHES: &str = "
extern \"C\" int printf(const char *, ...);
__attribute__((noinline)) void thrower(int value) { if (value > 2) throw value; }
__attribute__((noinline)) int catches(const int *values, int count) {
    int sum = 0;
    for (int place = 0; place < count; place++) {
        try {
            thrower(values[place]);
            sum += values[place];
        } catch (int caught) {
            sum += 100 * caught;
        }
    }
    return sum;
}
int main() {
    int values[] = {1, 2, 3, 4};
    return catches(values, 4) != 703;
}
";

#[test]
fn exceptions_are_caught_in_a_source_that_was_scheduled() {
    let (Some(_), Some(compiler)) = (ASSEMBLER.find(), cross_compiler()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("catches.cc"), CATCHES).expect("a temporary file can be written");
    let built = |arguments: &[&str]| {
        let status = Command::new(compiler.gxx()).args(arguments).status();
        assert!(status.expect("the compiler starts").success());
    };
    built(&["-O2", "-S", "-o", &at("catches.s"), &at("catches.cc")]);
    let output = sidestep(&[
        "schedule",
        &at("catches.s"),
        "--time-limit",
        "0",
        "-o",
        &at("out.s"),
    ]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    built(&["-static", "-o", &at("catches"), &at("out.s")]);
    assert_eq!(sidestep(&["exec", &at("catches")]).status.code(), Some(0));
}

/// A sum through two pointers, of which the first may be none, and what calls it: with pointers, with none, and, if it
/// has an argument, with one to nothing, which faults.
const GUARDED: &str = "\
\t.text
\t.global f
\t.proc f
f:
\t// schedule: dead at none: r8, r14-r17
\t// schedule: dead at return: r14-r17
\tcmp.eq p6, p7 = 0, r32
(p6)\tbr.cond.spnt none
\t;;
\tld8 r14 = [r32]
\t;;
\tadd r15 = r14, r33
\t;;
\tld8 r16 = [r33]
\t;;
\tadd r8 = r15, r16
\tbr.ret.sptk.many b0
\t;;
none:
\tmov r8 = 99
\tbr.ret.sptk.many b0
\t;;
\t.endp f
";
const CALLS: &str = "
long f(const long *, const long *);
int main(int count, char **arguments) {
    (void)arguments;
    long first = 5, second = 7;
    if (count > 1) f((const long *)16, &second);
    return f(&first, &second) - (long)&second != 12 || f(0, (const long *)8) != 99;
}
";

#[test]
fn a_load_with_a_check_faults_where_it_would_have_and_nowhere_else() {
    let (Some(_), Some(compiler)) = (ASSEMBLER.find(), cross_compiler()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let text = written(&folder, GUARDED);
    fs::write(at("calls.c"), CALLS).expect("a temporary file can be written");
    let output = sidestep(&[
        "schedule",
        "--speculate",
        "--time-limit",
        "5",
        &text,
        "-o",
        &at("out.s"),
    ]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.starts_with("f: 4 cycles, 6 before"), "{table}");
    assert!(table.contains("2 loads pass branches, with a check"), "{table}");
    let built = Command::new(compiler.gcc())
        .args(["-O1", "-static", "-o", &at("calls"), &at("calls.c"), &at("out.s")])
        .status();
    assert!(built.expect("the compiler starts").success());
    assert_eq!(
        sidestep(&["exec", "--check-groups=error", &at("calls")])
            .status
            .code(),
        Some(0)
    );
    let faulted = sidestep(&["exec", &at("calls"), "1"]);
    let said = String::from_utf8_lossy(&faulted.stderr).into_owned();
    assert!(said.contains("=> ld8 r14=[r32]"), "in what recovers: {said}");
}

#[test]
fn what_cannot_be_scheduled_is_refused_with_its_line() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (text, message) in [
        (
            ".proc f\nf:\nmov r8 = ip\n;;\n.endp f\n",
            "line 3: the instruction reads the address",
        ),
        (
            ".proc f\nf:\nadd r8 = r9, r10\n.long 7\n.endp f\n",
            "line 4: `.long` in the code",
        ),
        (".proc f\nf:\nadd r8 = r9, r10\n", "line 1: `f` has no .endp"),
        (
            ".proc f\nf:\n.rept 2\nadd r8 = r9, r10\n;;\n.endr\n.endp f\n",
            "line 3: `.rept` in the code",
        ),
        (
            ".proc f\nf:\nst8 [r32] = r33\n;;\nfc.i r32\n;;\nsync.i\n;;\nsrlz.i\n;;\n.endp f\n",
            "line 7: the instruction has stored code executed",
        ),
        (
            ".proc f\nf:\nadd r8 = r9, r10\n.skip 16\n.endp f\n",
            "line 4: `.skip` in the code",
        ),
        ("wrong r8\n", "wrong"),
        // What counts bundles is elsewhere when these are others.
        (
            ".proc f\nf:\nadd r8 = r9, r10\nbr.cond.sptk .+32\n;;\nadd r8 = r8, r9\n;;\n.endp f\n",
            "line 4: `.+32` counts bundles",
        ),
        (
            ".proc f\nf:\nbr.cond.sptk 1f+16\n;;\n1: add r8 = r8, r9\n;;\n.endp f\n",
            "line 3: `1f+16` counts bundles",
        ),
        (
            ".proc f\nf:\nadd r8 = r8, r9\n;;\n.endp f\n.data\ndata8 f+16\n",
            "line 7: `f+16` counts bundles",
        ),
        (
            ".proc f\nf:\nmovl r14 = f\n;;\nst8 [r14] = r8\n;;\n.endp f\n",
            "line 5: `st8 [r14] = r8` stores into code",
        ),
        // By way of an addition, and of the linkage table.
        (
            ".proc f\nf:\nmovl r14 = f\n;;\nadds r15 = 16, r14\n;;\nst8 [r15] = r8\n;;\n.endp f\n",
            "line 7: `st8 [r15] = r8` stores into code",
        ),
        (
            ".proc f\nf:\naddl r14 = @ltoff(f), gp\n;;\nld8 r14 = [r14]\n;;\nst8 [r14] = r8\n;;\n.endp f\n",
            "line 7: `st8 [r14] = r8` stores into code",
        ),
        // Of these the assembler names no line.
        (
            ".proc f\nf:\nadd r8 = r9, r10\ndata8 7\n.endp f\n",
            "line 4: `data8` in the code",
        ),
        (
            ".proc f\nf:\nadd r8 = r9, r10\nx = 7\n.endp f\n",
            "line 4: `x` in the code",
        ),
        (
            ".proc f\nf:\ncmp.lt p6, p7 = r8, r9\n(p6) st8 [r32] = r9\n;;\n.endp f\n",
            "line 4: st8 behind cmp.lt on p6 in one instruction group",
        ),
        ("// Nothing.\n", "no function"),
    ] {
        let output = sidestep(&["schedule", &written(&folder, text)]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(message), "{said}");
    }
    let output = sidestep(&["schedule", &written(&folder, SLOW), "--function", "g"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there are: f"));
}

#[test]
fn what_a_source_says_of_predicates_and_places_of_branches_holds_in_what_is_written() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Two moves of which one is executed at most, as the source says and nothing else: one group. And a move to a
    // branch register with the place of its branch, which is another one then.
    for text in [
        ".proc f\nf:\n.pred.rel \"mutex\", p6, p7\n(p6) mov r8 = 1\n;;\n(p7) mov r8 = 2\n;;\n.endp f\n",
        ".proc f\nf:\nmov b6 = r14, .L1\n;;\nadd r8 = r8, r15\n;;\nadd r9 = r9, r15\n;;\n\
         [.L1:] br.call.sptk b0 = b6\n;;\n.endp f\n",
    ] {
        let (file, out) = (written(&folder, text), folder.path().join("out.s"));
        let output = sidestep(&["schedule", &file, "-o", &out.display().to_string()]);
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let (after, before) = table
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("f: ")?.split_once(" cycles, "))
            .expect("the function's cycles");
        assert_ne!(before, format!("{after} before"), "{table}");
    }
}

#[test]
fn a_path_of_the_paper_gains_and_no_block_has_a_gap() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let output = sidestep(&["schedule", &source("scheduled.S").display().to_string()]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.starts_with("ipc_scheduled: 73 cycles, 85 before"),
        "{table}"
    );
    assert!(table.contains("optimal") && !table.contains("at most"), "{table}");
}

/// The guest with the path that the command writes in place of the one that it reads.
#[test]
fn messages_go_the_scheduled_way_and_every_case_ends_as_it_should() {
    let (Some(_), Some(compiler)) = (ASSEMBLER.find(), cross_compiler()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(sources)
        .arg(folder.path())
        .status();
    assert!(copied.expect("cp starts").success());
    let guest = folder.path().join("ia64");
    let first = guest.join("ipc/first.S").display().to_string();
    let scheduled = sidestep(&[
        "schedule",
        &first,
        "--speculate",
        "--time-limit",
        "30",
        "-o",
        &first,
    ]);
    let said = String::from_utf8_lossy(&scheduled.stderr).into_owned();
    assert!(scheduled.status.success(), "{said}");
    let built = Command::new(guest.join("build"))
        .arg(folder.path())
        .arg("ipc")
        .env("IA64_CC", compiler.gcc())
        .status();
    assert!(built.expect("the script starts").success());
    for (case, code) in [
        ("20", 0),
        ("queue", 0),
        ("long-message", 0),
        ("one-way", 0),
        ("no-partner", 0),
        ("nat-word", 3),
    ] {
        let machine = format!(
            "[machine]\nparameters = \"memory=64 ipc first {case}\"\n[image]\nfile = \"ipc\"\n\
             [[memory]]\nstart = 0\nsize = \"64M\"\n"
        );
        let path = folder.path().join("machine.toml");
        fs::write(&path, machine).expect("a temporary file can be written");
        let output = sidestep(&["run", &path.display().to_string()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{case}: {said}");
    }
}
