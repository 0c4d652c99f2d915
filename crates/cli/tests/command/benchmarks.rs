//! The NAS Parallel Benchmarks of `guests/npb`: under `exec`, in virtual machines, and as programs of this host. Each
//! run holds its results against the values of the specification and says so with its exit code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A kernel's words for a number of threads. Waiting threads yield at once, since tests run beside each other.
fn words(kernel: &str, threads: usize) -> Vec<String> {
    let text = format!("{kernel} S --threads {threads} --spins 0");
    text.split(' ').map(str::to_owned).collect()
}

fn execute(words: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .arg("exec")
        .arg(repository().join("guests/ia64/bin/npb"))
        .args(words)
        .output()
        .expect("the command starts")
}

/// Runs a virtual machine with a processor for each thread, and as many host threads as are given.
fn run_machine(parameters: &str, processors: usize, host_threads: usize) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = repository().join("guests/ia64/bin/machine-npb");
    let description = format!(
        "[host]\ncores = 4\nhost-threads = {host_threads}\n\n[[vm]]\nname = 'npb'\nimage = '{}'\n\
         processors = {processors}\nparameters = '{parameters}'\n",
        image.display()
    );
    fs::write(folder.path().join("host.toml"), description).expect("the folder is writable");
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(["run", "host.toml"])
        .current_dir(folder.path())
        .output()
        .expect("the command starts")
}

/// All that a run has printed, on either stream.
fn printed(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr].map(|stream| String::from_utf8_lossy(stream).into_owned());
    streams.concat()
}

fn is_verified(output: &Output, label: &str) {
    let text = printed(output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains(&format!("{label}: verified, ")), "{text}");
    assert!(!text.contains("WRONG"), "{text}");
}

#[test]
fn programs_under_exec_are_verified() {
    for (kernel, threads) in [("is", 2), ("mg", 2)] {
        is_verified(&execute(&words(kernel, threads)), &format!("{kernel}.S"));
    }
}

#[test]
fn instances_on_the_processors_of_a_virtual_machine_are_verified() {
    let parameters = "is S --threads 2 + mg S --threads 2";
    let once = run_machine(parameters, 4, 1);
    is_verified(&once, "0 is.S");
    is_verified(&once, "1 mg.S");
    // A machine is the same, to the nanosecond that it prints, however many host threads there are.
    assert_eq!(printed(&once), printed(&run_machine(parameters, 4, 2)));
}

#[test]
fn a_pipeline_of_threads_in_a_virtual_machine_is_verified() {
    is_verified(&run_machine("lu S --threads 4", 4, 1), "lu.S");
}

#[test]
fn a_step_on_a_mesh_is_made_by_the_processors_of_a_virtual_machine() {
    // All fifty take seven billion instructions; programs of this host do them.
    let output = run_machine("ua S --threads 2 --spins 0 --steps 1", 2, 1);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(
        printed(&output).contains("ua.S: steps done, 2 threads"),
        "{}",
        printed(&output)
    );
}

#[test]
fn words_that_mean_nothing_are_refused() {
    for (words, expected) in [
        ("", "expected a kernel, found ``"),
        ("dc S", "expected a kernel, found `dc`"),
        ("cg X", "expected a class, found `X`"),
        ("cg", "expected a class, found ``"),
        ("cg S --threads 65", "`--threads`: expected 1 to 64, found `65`"),
        ("cg S --rounds", "`--rounds`: expected 1 to 1000000, found ``"),
        ("cg S --speed 9", "expected an option, found `--speed`"),
        (
            "cg S --threads 40 + is S --threads 40",
            "at most 64 threads in all",
        ),
        ("cg S +", "expected a kernel, found ``"),
    ] {
        let arguments: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let output = execute(&arguments);
        assert_eq!(output.status.code(), Some(2), "{words}: {}", printed(&output));
        assert!(
            printed(&output).contains(expected),
            "{words}: {}",
            printed(&output)
        );
    }
}

#[test]
fn a_machine_that_is_too_small_is_named() {
    let processors = printed(&run_machine("is S --threads 4", 2, 1));
    assert!(
        processors.contains("4 threads on 2 processors: expected one processor for each"),
        "{processors}"
    );
    let memory = printed(&run_machine("mg A", 1, 1));
    assert!(memory.contains("out of memory"), "{memory}");
}

#[test]
fn programs_of_this_host_are_verified_and_say_who_shares() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let built = Command::new(repository().join("guests/npb/build"))
        .arg("--observe")
        .arg(folder.path())
        .output()
        .expect("the script starts");
    assert!(built.status.success(), "{}", printed(&built));
    for kernel in ["is", "cg", "mg", "ft", "lu", "sp", "bt", "ua"] {
        for threads in [1, 2] {
            let program = folder.path().join(format!("npb-{kernel}"));
            let output = Command::new(program).args(&words(kernel, threads)[1..]).output();
            is_verified(&output.expect("it was built"), &format!("{kernel}.S"));
        }
    }
    let sharing = folder.path().join("sharing.json");
    let observed = Command::new(folder.path().join("observed-npb"))
        .args(
            words("is", 2)
                .into_iter()
                .chain(["+".to_owned()])
                .chain(words("mg", 4)),
        )
        .env("NPB_SHARING", &sharing)
        .output()
        .expect("it was built");
    is_verified(&observed, "1 mg.S");
    let text = fs::read_to_string(&sharing).expect("a recording");
    let recording: serde_json::Value = serde_json::from_str(&text).expect("a recording is JSON");
    assert_eq!(recording["sets"], serde_json::json!([[0, 1], [2, 3, 4, 5]]));
    let shared = |row: usize, column: usize| recording["matrix"][row][column].as_u64().expect("a count");
    // Instances share nothing. Of the threads of MG those with neighbouring planes share most: a ring, since the cube
    // is periodic.
    assert_eq!(shared(0, 2) + shared(1, 5), 0, "{text}");
    assert!(shared(0, 1) > 0, "{text}");
    assert!(
        shared(2, 3) > 2 * shared(2, 4) && shared(2, 5) > 2 * shared(2, 4),
        "{text}"
    );
}
