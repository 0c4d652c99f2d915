//! `execve`: a Linux/ia64 program runs in a fresh emulator with the same options, anything else on the host.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{Arguments, SystemCallResult, Unfinished, fail, paths};
use crate::host::Errno;
use crate::host::signals as host_signals;
use crate::thread::Thread;

/// What a file is, as far as running it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Format {
    /// A Linux/ia64 program.
    Guest,
    /// A script: its interpreter, and the one argument its first line may hold.
    Script {
        interpreter: Vec<u8>,
        argument: Option<Vec<u8>>,
    },
    /// Something for the host to judge.
    Host,
}

/// The first bytes the kernel looks at (`BINPRM_BUF_SIZE`).
const HEAD: usize = 256;
/// The most interpreters of interpreters.
const DEEPEST_SCRIPT: usize = 5;

fn format_of(head: &[u8]) -> Format {
    /// Class, byte order and version of the identification; the machine at bytes 18 and 19.
    const IDENTIFICATION: &[u8] = b"\x7fELF\x02\x01\x01";
    if head.starts_with(IDENTIFICATION) && head.get(18..20) == Some(&[50, 0]) {
        return Format::Guest;
    }
    let Some(line) = head.strip_prefix(b"#!") else {
        return Format::Host;
    };
    let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
    let line = line[..end].trim_ascii();
    let split = line
        .iter()
        .position(|byte| matches!(byte, b' ' | b'\t'))
        .unwrap_or(line.len());
    let (interpreter, argument) = (line[..split].to_vec(), line[split..].trim_ascii());
    if interpreter.is_empty() {
        return Format::Host;
    }
    let argument = (!argument.is_empty()).then(|| argument.to_vec());
    Format::Script {
        interpreter,
        argument,
    }
}

fn head_of(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)
        .ok()?
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .ok()?;
    Some(head)
}

/// The file behind a guest's path.
fn located(thread: &Thread, path: &[u8]) -> PathBuf {
    match paths::substitute_path(thread, path) {
        Some(path) => OsString::from_vec(path.into_bytes()).into(),
        None => OsStr::from_bytes(path).into(),
    }
}

/// A program and its arguments.
type Command = (PathBuf, Vec<Vec<u8>>);

/// The emulated program to run and its arguments, if `path` leads to one.
fn guest_command(
    thread: &Thread,
    path: &[u8],
    arguments: &[Vec<u8>],
    depth: usize,
) -> Result<Option<Command>, Errno> {
    if depth > DEEPEST_SCRIPT {
        return Err(Errno(libc::ELOOP));
    }
    let file = located(thread, path);
    let Some(head) = head_of(&file) else {
        return Ok(None);
    };
    match format_of(&head) {
        Format::Host => Ok(None),
        Format::Guest => Ok(Some((file, arguments.to_vec()))),
        Format::Script {
            interpreter,
            argument,
        } => {
            let script = file.as_os_str().as_bytes().to_vec();
            let rest = arguments.iter().skip(1).cloned();
            let arguments: Vec<_> = [interpreter.clone()]
                .into_iter()
                .chain(argument)
                .chain([script])
                .chain(rest)
                .collect();
            guest_command(thread, &interpreter, &arguments, depth + 1)
        }
    }
}

/// `execve(path, arguments, environment)`.
pub fn execve(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let memory = thread.process.memory.clone();
    let path = memory.read_string(arguments[0])?;
    let strings = memory.read_strings(arguments[1])?;
    let environment = memory.read_strings(arguments[2])?;
    execute(thread, &path, strings, environment)
}

/// `execveat(directory, path, arguments, environment, flags)`.
pub fn execveat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [directory, path, strings, environment, flags, _] = *arguments;
    let memory = thread.process.memory.clone();
    let name = memory.read_string(path)?;
    let strings = memory.read_strings(strings)?;
    let environment = memory.read_strings(environment)?;
    let directory = directory as i32;
    let link = format!("/proc/self/fd/{directory}");
    let path = match name.as_slice() {
        [b'/', ..] => name,
        _ if name.is_empty() && flags as i32 & libc::AT_EMPTY_PATH == 0 => return fail(libc::ENOENT),
        _ if directory == libc::AT_FDCWD => name,
        _ => {
            let base = std::fs::read_link(&link).map_err(|_| Errno(libc::EBADF))?;
            let joined = if name.is_empty() {
                base
            } else {
                base.join(OsStr::from_bytes(&name))
            };
            joined.into_os_string().into_vec()
        }
    };
    if flags as i32 & libc::AT_SYMLINK_NOFOLLOW != 0 {
        let status = std::fs::symlink_metadata(located(thread, &path)).map_err(|error| Errno::of(&error))?;
        if status.is_symlink() {
            return fail(libc::ELOOP);
        }
    }
    execute(thread, &path, strings, environment)
}

fn execute(
    thread: &mut Thread,
    path: &[u8],
    arguments: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
) -> SystemCallResult {
    if path.is_empty() {
        return fail(libc::ENOENT);
    }
    let file = c_string(located(thread, path).into_os_string().into_vec())?;
    // SAFETY: the path is a live string.
    if unsafe { libc::access(file.as_ptr(), libc::X_OK) } != 0 {
        return Err(Errno::last().into());
    }
    let (file, arguments) = match guest_command(thread, path, &arguments, 0)? {
        None => (file, arguments),
        Some((program, arguments)) => {
            let command = thread.reentry_command(program, arguments);
            (c_string(b"/proc/self/exe".to_vec())?, command)
        }
    };
    replace_process(thread, &file, arguments, environment)
}

impl Thread {
    /// The emulator's own command line for another program with the same options.
    fn reentry_command(&self, program: PathBuf, arguments: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut command = self.process.options.reenter.clone();
        if self.process.actions().of(libc::SIGPIPE).is_ignored() {
            command.push(b"--ignore-sigpipe".to_vec());
        }
        let mut arguments = arguments.into_iter();
        if let Some(name) = arguments.next() {
            command.extend([b"--argv0".to_vec(), name]);
        }
        command.push(b"--".to_vec());
        command.push(program.into_os_string().into_vec());
        command.extend(arguments);
        command
    }
}

fn c_string(bytes: Vec<u8>) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno(libc::EINVAL))
}

/// Replaces this process by another program of the host; comes back only with an error.
fn replace_process(
    thread: &mut Thread,
    file: &CString,
    arguments: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
) -> SystemCallResult {
    let arguments = arguments
        .into_iter()
        .map(c_string)
        .collect::<Result<Vec<_>, _>>()?;
    let environment = environment
        .into_iter()
        .map(c_string)
        .collect::<Result<Vec<_>, _>>()?;
    let pointers = |strings: &[CString]| -> Vec<u64> {
        strings
            .iter()
            .map(|string| string.as_ptr() as u64)
            .chain([0])
            .collect()
    };
    let (argument_pointers, environment_pointers) = (pointers(&arguments), pointers(&environment));
    thread.flush_trace();
    thread.print_statistics();
    thread.process.apply_limits();
    let ignored = thread.process.actions().ignore_for_execution();
    let call = [
        file.as_ptr() as u64,
        argument_pointers.as_ptr() as u64,
        environment_pointers.as_ptr() as u64,
        0,
        0,
        0,
    ];
    let result = thread.host(libc::SYS_execve, call);
    if ignored {
        host_signals::install_fault_handler();
    }
    match result {
        Err(error) => Err(error),
        Ok(_) => Err(Unfinished::Error(Errno(libc::ENOEXEC))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_first_bytes() {
        let mut program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x32\0".to_vec();
        assert_eq!(format_of(&program), Format::Guest);
        program[18] = 62;
        assert_eq!(format_of(&program), Format::Host);
        let script = |line: &[u8]| match format_of(line) {
            Format::Script {
                interpreter,
                argument,
            } => (interpreter, argument),
            other => panic!("{other:?}"),
        };
        assert_eq!(script(b"#!/bin/sh\nexit"), (b"/bin/sh".to_vec(), None));
        assert_eq!(
            script(b"#! /usr/bin/env -S a b \n"),
            (b"/usr/bin/env".to_vec(), Some(b"-S a b".to_vec()))
        );
        assert_eq!(format_of(b"#!\n"), Format::Host);
        assert_eq!(format_of(b""), Format::Host);
    }
}
