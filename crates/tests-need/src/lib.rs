//! What tests need of the machine they run on: tools, a kernel, rights. And the count of the tests that went without.
//!
//! A test asks here for what it needs. It gets it, or it is left out: it returns, after the reason was written to the
//! terminal, past the test harness, which keeps what a passing test prints to itself. `cargo test --workspace` closes
//! with one line that counts both. In continuous integration (`CI=true`, with `shared/` beside the repository) nothing
//! that can be installed may be missing: there the test fails.
//!
//! ```
//! # fn a_test() {
//! let Some(gdb) = tests_need::GDB.find() else { return };
//! assert!(std::process::Command::new(gdb).arg("--version").status().unwrap().success());
//! # }
//! # // The last of the doc tests, which are the last of the tests.
//! # tests_need::close();
//! ```

mod record;
mod tool;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use record::{Summary, close, leave_out};
pub use tool::{ASSEMBLER, CHROMIUM, CrossCompiler, GDB, GHDL, MKE2FS, OBJDUMP, Tool, cross_compiler};

use record::{had, missing};

/// The variable that names a Linux/ia64 kernel.
const KERNEL: &str = "SIDESTEP_KERNEL";

/// An ELF file of a Linux/ia64 kernel, which can be compressed: what `SIDESTEP_KERNEL` names, or
/// `shared/linux/vmlinux.xz` in a folder above the repository.
///
/// # Panics
///
/// When the variable names no file.
#[track_caller]
pub fn kernel() -> Option<PathBuf> {
    let found = match std::env::var_os(KERNEL) {
        Some(named) => Some(named_file(KERNEL, named.into())),
        None => shared()
            .map(|shared| shared.join("linux/vmlinux.xz"))
            .filter(|file| file.exists()),
    };
    match &found {
        Some(_) => had(),
        None => missing("there is no Linux/ia64 kernel (SIDESTEP_KERNEL names one)"),
    }
    found
}

/// Whether the test runs as root; `what` says what for.
#[track_caller]
pub fn root(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    match is_root {
        true => had(),
        false => leave_out(&format!("{what} needs root")),
    }
    is_root
}

/// Whether the host has what `is_there` says; `reason` is why the test is left out where it has not.
#[track_caller]
pub fn host(is_there: bool, reason: &str) -> bool {
    match is_there {
        true => had(),
        false => leave_out(reason),
    }
    is_there
}

/// The folder of large data beside the repository, where there is one.
fn shared() -> Option<&'static Path> {
    static SHARED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|folder| folder.join("shared"))
            .find(|folder| folder.join("toolchain").is_dir() || folder.join("linux").is_dir())
    };
    SHARED.get_or_init(find).as_deref()
}

/// Whether what can be installed must be there: in continuous integration, beside the folder of large data.
fn is_complete() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true") && shared().is_some()
}

/// The file that a variable names.
fn named_file(variable: &str, file: PathBuf) -> PathBuf {
    assert!(file.is_file(), "{variable}: {} is no file", file.display());
    file
}
