//! What the Python package does for the command: it computes on a cluster, and it asks results.
//!
//! A cluster's engine and a database are Python's; the command stays without them and starts `python3 -m sidestep`.

use std::env;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::process::{Command, ExitStatus, Stdio};

/// The interpreter that has the package, if it is not the usual one.
const INTERPRETER: &str = "SIDESTEP_PYTHON";
/// The usual one.
const USUAL: &str = "python3";
/// Where this is told.
const TOLD: &str = "the book's page on Python says how it is installed";

/// Starts the package with arguments and an input, and waits for its end. What is wrong it says itself; that it cannot
/// be started is an error.
pub fn run<A: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = A>,
    input: &[u8],
) -> Result<ExitStatus, Box<dyn Error>> {
    let python = env::var_os(INTERPRETER).unwrap_or_else(|| OsString::from(USUAL));
    let shown = python.display().to_string();
    let there = Command::new(&python)
        .args(["-c", "import sidestep"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            format!("{shown}: cannot be started: {error}; {INTERPRETER} names another, and {TOLD}")
        })?;
    if !there.status.success() {
        return Err(
            format!("{shown}: has no package sidestep; {INTERPRETER} names another, and {TOLD}").into(),
        );
    }
    let mut package = Command::new(&python)
        .args(["-m", "sidestep"])
        .args(arguments)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{shown}: cannot be started: {error}"))?;
    let fed = package.stdin.take().expect("a pipe").write_all(input);
    let status = package.wait()?;
    match fed {
        // Who ends before it has read all has said why.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(status),
    }
}
