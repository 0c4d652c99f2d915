//! `execve`: a Linux/ia64 program runs in a fresh emulator with the same options, anything else on the host.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::{Arguments, SystemCallResult, Unfinished, fail, paths, system, threads};
use crate::files::namespace::Last;
use crate::files::{c_string, link_of, reserved};
use crate::host::signals as host_signals;
use crate::host::{self, Errno, How};
use crate::inheritance;
use crate::process::Process;
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

/// What a file is by its first bytes. One that may be executed but not read is the host's affair.
fn format_of_file(file: &OwnedFd) -> Result<Format, Errno> {
    let mut head = Vec::new();
    let file = match reopen(file) {
        Err(error @ Errno(libc::EMFILE | libc::ENFILE)) => return Err(error),
        Err(_) => return Ok(Format::Host),
        Ok(file) => File::from(file),
    };
    let read = file.take(HEAD as u64).read_to_end(&mut head);
    Ok(read.map_or(Format::Host, |_| format_of(&head)))
}

/// Opens for reading what is open by its name only; not as a standard descriptor that the program has closed.
fn reopen(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let how = How {
        flags: libc::O_CLOEXEC as u64,
        ..How::default()
    };
    reserved::beyond_limit(|| {
        let opened = host::open(libc::AT_FDCWD, link_of(file.as_raw_fd()).as_bytes(), &how)?;
        match opened.as_raw_fd() {
            0..=libc::STDERR_FILENO => reserved::copy_from(libc::STDERR_FILENO as u64 + 1, &opened),
            _ => Ok(opened),
        }
    })
}

/// Opens what is to be executed, as an `O_PATH` descriptor, if it may be.
fn open_executable(thread: &Thread, folder: u64, path: &[u8], flags: i32) -> Result<OwnedFd, Errno> {
    let last = if flags & libc::AT_SYMLINK_NOFOLLOW != 0 {
        Last::Keep
    } else {
        Last::Follow
    };
    let object = if path.is_empty() {
        if reserved::is_reserved(folder) {
            return Err(Errno(libc::EBADF));
        }
        let how = How {
            flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
            ..How::default()
        };
        let link = link_of(folder as RawFd);
        let opened = host::open(libc::AT_FDCWD, link.as_bytes(), &how);
        opened.map_err(|error| {
            if error.0 == libc::ENOENT {
                Errno(libc::EBADF)
            } else {
                error
            }
        })?
    } else {
        let located = paths::locate(&thread.process.files, folder, path, last)?;
        let follow = if last == Last::Keep { libc::O_NOFOLLOW } else { 0 };
        let how = How {
            flags: (libc::O_PATH | libc::O_CLOEXEC | follow) as u64,
            ..How::default()
        };
        host::open(located.folder as RawFd, located.path.as_c_str().to_bytes(), &how)?
    };
    match host::file_status(object.as_raw_fd())?.st_mode & libc::S_IFMT {
        libc::S_IFLNK => return Err(Errno(libc::ELOOP)),
        libc::S_IFREG => {}
        _ => return Err(Errno(libc::EACCES)),
    }
    let flags = libc::AT_EMPTY_PATH | libc::AT_EACCESS;
    let arguments = [
        object.as_raw_fd() as u64,
        c"".as_ptr() as u64,
        libc::X_OK as u64,
        flags as u64,
        0,
        0,
    ];
    thread
        .host(libc::SYS_faccessat2, arguments)
        .map_err(|unfinished| match unfinished {
            Unfinished::Error(error) => error,
            _ => Errno(libc::EACCES),
        })?;
    Ok(object)
}

/// What is executed: a file, and the name by which it was found.
struct Command {
    file: OwnedFd,
    path: Vec<u8>,
    arguments: Vec<Vec<u8>>,
}

/// The emulated program to run, if the command leads to one; otherwise the command, for the host.
fn guest_command(thread: &Thread, command: Command, depth: usize) -> Result<Result<Command, Command>, Errno> {
    if depth > DEEPEST_SCRIPT {
        return Err(Errno(libc::ELOOP));
    }
    match format_of_file(&command.file)? {
        Format::Host => Ok(Err(command)),
        Format::Guest => Ok(Ok(command)),
        Format::Script {
            interpreter,
            argument,
        } => {
            let open = || open_executable(thread, paths::CURRENT_FOLDER, &interpreter, 0);
            let file = reserved::beyond_limit(open)?;
            let rest = command.arguments.iter().skip(1).cloned();
            let arguments = [interpreter.clone()]
                .into_iter()
                .chain(argument)
                .chain([command.path.clone()])
                .chain(rest)
                .collect();
            let inner = Command {
                file,
                path: interpreter,
                arguments,
            };
            let found = guest_command(thread, inner, depth + 1)?;
            // The host finds its way through its own scripts.
            Ok(found.map_err(|_| command))
        }
    }
}

/// Whether a command is named by a descriptor.
fn is_by_descriptor(command: &Command) -> bool {
    command.path.starts_with(b"/dev/fd/")
}

fn is_script(file: &OwnedFd) -> bool {
    matches!(format_of_file(file), Ok(Format::Script { .. }))
}

/// `execve(path, arguments, environment)`.
pub fn execve(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [path, strings, environment, ..] = *arguments;
    execveat(thread, &[paths::CURRENT_FOLDER, path, strings, environment, 0, 0])
}

/// `execveat(folder, path, arguments, environment, flags)`.
pub fn execveat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [folder, path, strings, environment, flags, _] = *arguments;
    let flags = flags as i32;
    if flags & !(libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW) != 0 {
        return fail(libc::EINVAL);
    }
    let memory = thread.process.memory.clone();
    let name = memory.read_string(path)?;
    let strings = memory.read_strings(strings)?;
    let environment = memory.read_strings(environment)?;
    if name.is_empty() && flags & libc::AT_EMPTY_PATH == 0 {
        return fail(libc::ENOENT);
    }
    let file = reserved::beyond_limit(|| open_executable(thread, folder, &name, flags))?;
    // The name that the kernel gives a program without a path.
    let path = match name.as_slice() {
        [b'/', ..] => name,
        _ if folder == paths::CURRENT_FOLDER => name,
        [] => format!("/dev/fd/{}", folder as i32).into_bytes(),
        _ => [format!("/dev/fd/{}/", folder as i32).as_bytes(), &name].concat(),
    };
    let command = Command {
        file,
        path,
        arguments: strings,
    };
    // An interpreter could not open the script any more.
    if is_by_descriptor(&command)
        && is_script(&command.file)
        && host::descriptor_flags(folder as RawFd)? & libc::FD_CLOEXEC != 0
    {
        return fail(libc::ENOENT);
    }
    match guest_command(thread, command, 0)? {
        Ok(program) => execute_guest(thread, program, environment),
        Err(_) if thread.process.files.is_confined() => fail(libc::ENOEXEC),
        Err(command) => execute_on_host(thread, &command, environment),
    }
}

/// How variables begin that the emulator's own loader and C library would take for theirs.
const OF_LIBRARIES: [&[u8]; 3] = [b"LD_", b"GLIBC_TUNABLES=", b"MALLOC_"];

/// Replaces this process by an emulator that runs a program with the same options.
fn execute_guest(thread: &mut Thread, program: Command, environment: Vec<Vec<u8>>) -> SystemCallResult {
    let process = thread.process.clone();
    let file = reopen(&program.file)?;
    let (inherited, descriptors) = inheritance::leave(&process.files, &file);
    let mut command = process.options.reenter.clone();
    command.extend(inherited);
    for (resource, [soft, hard]) in process.limits().iter() {
        if system::is_guests_own(*resource) {
            command.push(b"--guest-limit".to_vec());
            command.push(format!("{resource}={soft}:{hard}").into_bytes());
        }
    }
    if process.actions().of(libc::SIGPIPE).is_ignored() {
        command.push(b"--ignore-sigpipe".to_vec());
    }
    let is_of_library = |variable: &Vec<u8>| OF_LIBRARIES.iter().any(|name| variable.starts_with(name));
    let (of_libraries, environment): (Vec<_>, Vec<_>) = environment.into_iter().partition(is_of_library);
    for variable in of_libraries
        .into_iter()
        .filter(|variable| variable.contains(&b'='))
    {
        command.extend([b"--env".to_vec(), variable]);
    }
    let mut arguments = program.arguments.into_iter();
    if let Some(name) = arguments.next() {
        command.extend([b"--argv0".to_vec(), name]);
    }
    command.push(b"--".to_vec());
    let program_path = program.path.clone();
    command.push(program.path);
    command.extend(arguments);
    let keep = |kept: bool| {
        for descriptor in &descriptors {
            let flags = if kept { 0 } else { libc::FD_CLOEXEC };
            // SAFETY: changing a descriptor's flag touches no memory.
            unsafe { libc::fcntl(*descriptor, libc::F_SETFD, flags) };
        }
    };
    process.apply_limits(|resource| !system::is_guests_own(resource));
    process.files.part();
    keep(true);
    tell_debugger(&process, &program_path);
    let result = replace_process(
        thread,
        process.files.emulator.as_raw_fd(),
        c"",
        command,
        environment,
    );
    keep(false);
    result
}

/// Says to a debugger, if there is one, that this process is about to run another program.
fn tell_debugger(process: &Process, program: &[u8]) {
    if let Some(control) = process.control() {
        control.executes(program);
    }
}

/// Replaces this process by a program of the host.
fn execute_on_host(thread: &mut Thread, command: &Command, environment: Vec<Vec<u8>>) -> SystemCallResult {
    let process = thread.process.clone();
    process.apply_limits(|_| true);
    let namespace = process.files.namespace();
    let Some(namespace) = namespace.filter(|namespace| !namespace.confines()) else {
        return execute_at_root(thread, command, environment);
    };
    // The root that the program chose becomes the host process's own, unless nothing is executed.
    let place = |path: &[u8]| {
        let how = How {
            flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
            ..How::default()
        };
        host::open(libc::AT_FDCWD, path, &how)
    };
    let (root, folder) = (place(b"/")?, place(b".")?);
    let chosen = c_string(link_of(namespace.root()).into_bytes())?;
    thread.host(libc::SYS_chroot, [chosen.as_ptr() as u64, 0, 0, 0, 0, 0])?;
    let result = execute_at_root(thread, command, environment);
    thread.host(libc::SYS_fchdir, [root.as_raw_fd() as u64, 0, 0, 0, 0, 0])?;
    thread.host(libc::SYS_chroot, [c".".as_ptr() as u64, 0, 0, 0, 0, 0])?;
    thread.host(libc::SYS_fchdir, [folder.as_raw_fd() as u64, 0, 0, 0, 0, 0])?;
    result
}

/// The same where the host process's root is the program's.
fn execute_at_root(thread: &mut Thread, command: &Command, environment: Vec<Vec<u8>>) -> SystemCallResult {
    let process = thread.process.clone();
    let arguments = command.arguments.clone();
    tell_debugger(&process, &command.path);
    // A script goes by its name on, by which its interpreter opens it.
    if is_by_descriptor(command) && !is_script(&command.file) {
        return replace_process(thread, command.file.as_raw_fd(), c"", arguments, environment);
    }
    let path = c_string(command.path.clone())?;
    replace_process(thread, libc::AT_FDCWD, &path, arguments, environment)
}

/// Replaces this process by another program of the host; comes back only with an error.
fn replace_process(
    thread: &mut Thread,
    folder: RawFd,
    path: &CStr,
    arguments: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
) -> SystemCallResult {
    let strings = |strings: Vec<Vec<u8>>| strings.into_iter().map(c_string).collect::<Result<Vec<_>, _>>();
    let pointers = |strings: &[CString]| -> Vec<u64> {
        let addresses = strings.iter().map(|string| string.as_ptr() as u64);
        addresses.chain([0]).collect()
    };
    let (arguments, environment) = (strings(arguments)?, strings(environment)?);
    let (argument_pointers, environment_pointers) = (pointers(&arguments), pointers(&environment));
    let process = thread.process.clone();
    thread.flush_trace();
    process.report();
    let ignored = process.actions().ignore_for_execution();
    process.memory.world.stopped(|| {
        for peer in process.peers().iter() {
            threads::release_mutexes(&process.memory, peer);
        }
    });
    let call = [
        folder as u64,
        path.as_ptr() as u64,
        argument_pointers.as_ptr() as u64,
        environment_pointers.as_ptr() as u64,
        if path.is_empty() {
            libc::AT_EMPTY_PATH as u64
        } else {
            0
        },
        0,
    ];
    let result = thread.host(libc::SYS_execveat, call);
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
