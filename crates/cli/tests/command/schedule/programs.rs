//! The functions of a program are scheduled.

use tests_need::cross_compiler;

use super::*;

#[test]
fn a_programs_hottest_functions_get_faster_and_it_prints_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("hash").display().to_string();
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin/hash");
    let guest = guest.display().to_string();
    let schedule = |out: &[&str]| {
        let command = ["schedule", "--time-limit", "0", "--hot", "3", "--program", &guest];
        let output = sidestep(&[&command[..], out, &["--", "1"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let table = schedule(&["-o", &out]);
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 4, "{table}");
    for row in &rows {
        let cycles = |column: usize| row[column].parse::<u64>().expect("a number of cycles");
        assert!(cycles(1) <= cycles(0), "{table}");
    }
    let main = rows
        .iter()
        .find(|row| row[4] == "main")
        .expect("the hottest function");
    assert!(
        main[1].parse::<u64>().ok() < main[0].parse::<u64>().ok(),
        "{table}"
    );
    // The same again, to the bit, and the program does what it did.
    let first = fs::read(&out).expect("it was written");
    assert_eq!(schedule(&["-o", &out]), table);
    assert_eq!(fs::read(&out).expect("it was written"), first);
    assert_ne!(first, fs::read(&guest).expect("a checked-in guest"));
    assert_eq!(
        sidestep(&["exec", &out, "1"]).stdout,
        sidestep(&["exec", &guest, "1"]).stdout
    );
}

#[test]
fn no_function_of_a_program_gets_slower_unless_that_is_allowed() {
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin/records");
    let guest = guest.display().to_string();
    let table = |allowed: &str| {
        let command = [
            "schedule",
            "--time-limit",
            "0",
            "--hot",
            "15",
            "--slower",
            allowed,
            "--program",
            &guest,
        ];
        let output = sidestep(&[&command[..], &["--", "1"]].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let cycles = |table: &str, name: &str| {
        let row = table.lines().find(|line| {
            line.split_whitespace()
                .nth(4)
                .is_some_and(|it| it.trim_end_matches(':') == name)
        });
        let row = row.unwrap_or_else(|| panic!("{name} is among the hottest: {table}"));
        let number = |column: usize| row.split_whitespace().nth(column)?.parse::<u64>().ok();
        (number(0).expect("before"), number(1).expect("after"))
    };
    // A line of `visit` comes into the cache while `weigh` runs: the less that takes, the longer `visit` waits.
    let any = table("0.1");
    assert!(cycles(&any, "weigh").1 < cycles(&any, "weigh").0, "{any}");
    assert!(cycles(&any, "visit").1 > cycles(&any, "visit").0, "{any}");
    let none = table("0");
    assert!(
        none.contains("weigh: 1 put back, `visit` gets slower by it"),
        "{none}"
    );
    for row in none.lines().skip(1) {
        let numbers: Vec<u64> = row
            .split_whitespace()
            .take(2)
            .filter_map(|word| word.parse().ok())
            .collect();
        assert!(numbers[1] <= numbers[0], "{none}");
    }
}

#[test]
fn refused_functions_are_listed_with_place_and_reason() {
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin/hash");
    let guest = guest.display().to_string();
    let output = sidestep(&["schedule", "--time-limit", "0", "--program", &guest, "--", "1"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let refused = table.lines().find(|line| line.contains("print_list"));
    let refused = refused.expect("it is among the ten");
    assert!(refused.contains("refused: 0x4"), "{table}");
    assert!(refused.contains("neither a call nor a return"), "{table}");
}

/// A program that ends at once, with 7.
const ENDS: &str = "\
\t.text
\t.global _start
\t.proc _start
_start:
\talloc r2 = ar.pfs, 0, 0, 1, 0
\tmov r15 = 1025
\tmov out0 = 7
\t;;
\tbreak 0x100000
\t;;
\t.endp _start
";

#[test]
fn a_program_that_is_loaded_elsewhere_is_refused() {
    let Some(compiler) = cross_compiler() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (text, program) = (written(&folder, ENDS), folder.path().join("ends"));
    let linked = Command::new(compiler.gcc())
        .args(["-pie", "-nostdlib", "-Wl,--no-dynamic-linker", &text, "-o"])
        .arg(&program)
        .status();
    assert!(linked.expect("the compiler starts").success());
    let program = program.display().to_string();
    assert_eq!(sidestep(&["exec", &program]).status.code(), Some(7));
    let output = sidestep(&["schedule", "--time-limit", "0", "--program", &program]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("it is loaded elsewhere"),
        "{said}"
    );
}

#[test]
fn a_program_that_can_write_its_code_is_refused() {
    let Some(compiler) = cross_compiler() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (text, program) = (written(&folder, ENDS), folder.path().join("ends"));
    let linked = Command::new(compiler.gcc())
        .args(["-static", "-nostdlib", "-Wl,--omagic", &text, "-o"])
        .arg(&program)
        .status();
    assert!(linked.expect("the compiler starts").success());
    let output = sidestep(&["schedule", "--program", &program.display().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("the code of `_start` is in a segment that can be written"),
        "{said}"
    );
}

#[test]
fn what_is_no_program_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = written(&folder, SLOW);
    for (arguments, part) in [
        (vec!["--program", &text], "not an ELF file"),
        (vec!["--program", &text, "--speculate"], "cannot be used with"),
        (vec!["--program", &text, "--hot", "0"], "0 is not in"),
        (vec!["--program", &text, "--slower", "101"], "from 0 to 100"),
        (vec!["--slower", "1", &text], "cannot be used with"),
        (vec!["--hot", "1", &text], "cannot be used with"),
        (vec![&text, "--", "1"], "cannot be used with"),
        (vec![], "required arguments"),
    ] {
        let output = sidestep(&[&["schedule"], &arguments[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(part), "{said}");
    }
}
