//! `sidestep calibrate`: the table that it writes describes a host that runs; mistakes are refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn sidestep(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("sidestep starts")
}

#[test]
fn the_table_that_is_written_describes_a_host() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let output = sidestep(
        folder,
        &[
            "calibrate",
            "--samples",
            "6",
            "-o",
            "here.toml",
            "--format",
            "json",
        ],
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let measurements = report["measurements"].as_array().expect("measurements");
    for measurement in measurements {
        let has_reason = measurement["unavailable"].is_string();
        assert!(
            has_reason || measurement["picoseconds"]["median"].is_u64(),
            "{measurement}"
        );
    }
    let image = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../guests/ia64/bin/sidecore-requests"
    );
    let host = format!(
        "[host]\ncosts = 'here.toml'\nsidecores = 1\n[[vm]]\nimage = '{image}'\nparameters = 'null 10'\n"
    );
    fs::write(folder.join("host.toml"), host).expect("the folder is writable");
    let output = sidestep(folder, &["run", "host.toml", "--format", "json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        String::from_utf8_lossy(&output.stdout).contains(", measured\""),
        "the host has the table's name"
    );
}

#[test]
fn mistakes_are_refused_and_write_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (arguments, expected) in [
        (&["--samples", "2"][..], "2 samples: 6 to 10000 are possible"),
        (
            &["--cores", "0,1000"],
            "core 1000 is not among the cores that this process may run on: ",
        ),
        (&["--cores", "0"], "must be the numbers of two cores"),
        (&["--samples", "6", "-o", "none/here.toml"], "none/here.toml"),
    ] {
        let output = sidestep(folder.path(), &[&["calibrate"], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(expected), "{error}");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
    }
}
