//! Linux booted for a test.
//!
//! Needs a Linux/ia64 kernel, see [`tests_need::kernel`].

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;

use sidestep_machine::compressed::expand;

/// The kernel, expanded, and the initramfs; made once.
pub fn files() -> Option<&'static (PathBuf, PathBuf)> {
    static FILES: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let kernel = tests_need::kernel()?;
    let prepare = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let bytes = fs::read(&kernel).expect("the kernel can be read");
        let kernel = match bytes.starts_with(b"\x7fELF") {
            true => kernel,
            false => {
                // Expanded once for all tests: what boots with a compressed kernel has a test of its own.
                let expanded = folder.join("vmlinux");
                let bytes = expand(&bytes, 1 << 30).expect("a compressed kernel");
                fs::write(&expanded, bytes).expect("a folder for temporary files");
                expanded
            }
        };
        let initramfs = folder.join("initramfs.cpio");
        let packed = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/linux/pack"))
            .arg("-o")
            .arg(&initramfs)
            .output()
            .expect("bash runs");
        assert!(packed.status.success(), "{}", text(&packed.stderr));
        (kernel, initramfs)
    };
    Some(FILES.get_or_init(prepare))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The command that boots and runs a line of the guest's shell; `None` without a kernel.
pub fn boot(folder: &Path, options: &[&str], line: &str) -> Option<Command> {
    boot_with(folder, options, "quiet", line)
}

/// The same with more on the kernel's command line.
pub fn boot_with(folder: &Path, options: &[&str], append: &str, line: &str) -> Option<Command> {
    let (kernel, initramfs) = files()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command
        .current_dir(folder)
        .args(["run", "--kernel"])
        .arg(kernel)
        .arg("--initrd")
        .arg(initramfs)
        .args(options)
        .arg("--append")
        .arg(format!("console=ttyS0 panic=-1 {append} -- sh -c \"{line}\""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Some(command)
}

/// Boots, and expects the line to succeed.
pub fn succeed(folder: &Path, options: &[&str], line: &str) -> Option<String> {
    let output = boot(folder, options, line)?.output().expect("sidestep starts");
    Some(successful(&output))
}

pub fn successful(output: &Output) -> String {
    let printed = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{printed}\n{}",
        text(&output.stderr)
    );
    printed
}

/// Reads what a machine prints up to the line with `mark`; nobody reads on.
pub fn wait_for(child: &mut Child, mark: &str) -> String {
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let printed = read_to(&mut output, mark);
    // The pipe stays open.
    thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    printed
}

/// Reads on, up to the line with `mark`.
pub fn read_to(output: &mut impl BufRead, mark: &str) -> String {
    let mut printed = Vec::new();
    while !text(&printed).contains(mark) {
        let size = output.read_until(b'\n', &mut printed).expect("output");
        assert!(size > 0, "`{mark}` did not come: {}", text(&printed));
    }
    text(&printed)
}

pub fn typing(command: &mut Command) -> (Child, ChildStdin) {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("sidestep starts");
    let input = child.stdin.take().expect("a pipe");
    (child, input)
}
