//! Linux booted for a test.
//!
//! Needs a Linux/ia64 kernel: `SIDESTEP_KERNEL`, or `shared/linux/vmlinux.xz` in a folder above this one. Without one
//! the tests are skipped, and say so.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;

use sidestep_machine::compressed::expand;

/// The kernel as it comes.
pub fn compressed() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/linux/vmlinux.xz"))
        .find(|file| file.exists())
}

/// The kernel, expanded, and the initramfs; made once.
pub fn files() -> Option<&'static (PathBuf, PathBuf)> {
    static FILES: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let files = FILES.get_or_init(|| {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let kernel = match std::env::var_os("SIDESTEP_KERNEL") {
            Some(kernel) => PathBuf::from(kernel),
            None => {
                let compressed = compressed()?;
                let kernel = folder.join("vmlinux");
                let compressed = fs::read(compressed).expect("the kernel can be read");
                // Expanded once for all tests: what boots with a compressed kernel has a test of its own.
                let bytes = expand(&compressed, 1 << 30).expect("a compressed kernel");
                fs::write(&kernel, bytes).expect("a folder for temporary files");
                kernel
            }
        };
        let initramfs = folder.join("initramfs.cpio");
        let packed = Command::new(manifest.join("../../guests/linux/pack"))
            .arg("-o")
            .arg(&initramfs)
            .output()
            .expect("bash runs");
        assert!(packed.status.success(), "{}", text(&packed.stderr));
        Some((kernel, initramfs))
    });
    if files.is_none() {
        eprintln!("skipped: no Linux/ia64 kernel is there (SIDESTEP_KERNEL names one)");
    }
    files.as_ref()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The command that boots and runs a line of the guest's shell; `None` without a kernel.
pub fn boot(folder: &Path, options: &[&str], line: &str) -> Option<Command> {
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
        .arg(format!("console=ttyS0 panic=-1 quiet -- sh -c \"{line}\""))
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

/// Reads what a machine prints up to `mark`.
pub fn wait_for(child: &mut Child, mark: &str) -> String {
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut printed = Vec::new();
    while !text(&printed).contains(mark) {
        let size = output.read_until(b'\n', &mut printed).expect("output");
        assert!(size > 0, "`{mark}` did not come: {}", text(&printed));
    }
    // Nobody reads on, but the pipe stays open.
    thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    text(&printed)
}

pub fn typing(command: &mut Command) -> (Child, ChildStdin) {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("sidestep starts");
    let input = child.stdin.take().expect("a pipe");
    (child, input)
}
