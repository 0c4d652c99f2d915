//! System calls: `break 0x100000` with the number in r15 and the arguments in the output registers.
//!
//! [`table`] says what every call is; the other files hold those that need more than passing on, by family.
//! A result goes to r8 and sets r10 to 0; an error number goes to r8 and sets r10 to -1; a second result, where
//! there is one, goes to r9.

pub mod descriptors;
pub mod execute;
pub mod ipc;
pub mod light;
pub mod memory;
#[cfg(test)]
mod page;
pub mod paths;
pub mod polling;
pub mod proc;
pub mod processes;
pub mod remote;
pub mod shape;
pub mod signals;
pub mod sockets;
pub mod system;
pub mod table;
pub mod threads;
pub mod userfault;
pub mod vectors;

use crate::files::HostPath;
use crate::files::namespace::Last;
use crate::host::{self, Errno, Interruption};
use crate::thread::Thread;
use crate::thread::strace;
use shape::Shape;
use table::{Action, SystemCall};

/// The arguments of a call.
pub type Arguments = [u64; 6];
/// The function of an emulated call.
pub type Handler = fn(&mut Thread, &Arguments) -> SystemCallResult;
/// What a call comes to.
pub type SystemCallResult = Result<u64, Unfinished>;

/// A call that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// It failed.
    Error(Errno),
    /// A signal came: the call is repeated after a handler with `SA_RESTART`, or fails with `EINTR`.
    Restart,
    /// A signal came before the call began: it is repeated in any case.
    RestartAlways,
    /// It replaced the registers itself (`rt_sigreturn`).
    Resumed,
    /// The thread ends with this status.
    ThreadEnd(i32),
    /// The process ends with this status.
    ProcessEnd(i32),
}

impl From<Errno> for Unfinished {
    fn from(error: Errno) -> Unfinished {
        Unfinished::Error(error)
    }
}

impl From<Interruption> for Unfinished {
    fn from(interruption: Interruption) -> Unfinished {
        match interruption {
            Interruption::Error(error) => Unfinished::Error(error),
            Interruption::Before => Unfinished::RestartAlways,
            Interruption::Restart => Unfinished::Restart,
        }
    }
}

/// Shorthand for a failure.
pub fn fail<T>(number: i32) -> Result<T, Unfinished> {
    Err(Unfinished::Error(Errno(number)))
}

/// Performs a call.
pub fn perform(thread: &mut Thread, number: u64, arguments: &Arguments) -> SystemCallResult {
    if !thread.process.options.strace {
        return dispatch(thread, number, arguments);
    }
    let process = thread.process.clone();
    let line = strace::Line::begin(&process.memory, thread.identifier, number, arguments);
    let may_not_return = table::find(number).is_some_and(|call| DEPARTURES.contains(&call.name));
    if may_not_return {
        strace::Line::begin(&process.memory, thread.identifier, number, arguments)
            .print_without_result(&process.memory);
    }
    let result = dispatch(thread, number, arguments);
    if !may_not_return || matches!(result, Err(Unfinished::Error(_))) {
        line.print(&process.memory, &result);
    }
    result
}

/// Calls that are shown before they are made, since they may not come back.
const DEPARTURES: [&str; 4] = ["exit", "exit_group", "execve", "execveat"];

/// Calls of which some are not for a process with several threads.
const ALONE: [i64; 2] = [libc::SYS_unshare, libc::SYS_setns];

fn dispatch(thread: &mut Thread, number: u64, arguments: &Arguments) -> SystemCallResult {
    match table::find(number) {
        None => fail(libc::ENOSYS),
        Some(call) => match call.action {
            Action::Missing => fail(libc::ENOSYS),
            Action::Emulated(handler) => handler(thread, arguments),
            Action::Light(handler) => Ok(handler(&thread.process.memory, &thread.processor)?),
            Action::Unconfined(_) if thread.process.files.is_confined() => fail(libc::EPERM),
            Action::Host(number) | Action::Unconfined(number) => {
                if ALONE.contains(&number) {
                    thread.process.be_alone();
                }
                forward(thread, call, number, arguments, false)
            }
            Action::Blocking(number) => forward(thread, call, number, arguments, true),
        },
    }
}

/// Passes a call on with its addresses translated.
fn forward(
    thread: &mut Thread,
    call: &SystemCall,
    number: i64,
    arguments: &Arguments,
    blocking: bool,
) -> SystemCallResult {
    let mut translated = *arguments;
    if !call.has_paths {
        for (at, argument) in translated.iter_mut().enumerate() {
            if call.pointers >> at & 1 != 0 {
                *argument = thread.process.memory.pointer(*argument)?;
            }
        }
        return pass_on(thread, number, translated, blocking);
    }
    let mut paths: [Option<HostPath>; 6] = Default::default();
    for (at, shape) in call.arguments.iter().enumerate() {
        if matches!(shape, Shape::Path | Shape::Link) && arguments[at] != 0 {
            let has_folder = at > 0 && matches!(call.arguments[at - 1], Shape::Folder);
            let folder = if has_folder {
                arguments[at - 1]
            } else {
                paths::CURRENT_FOLDER
            };
            let path = thread.process.memory.read_string(arguments[at])?;
            let located = paths::locate(&thread.process.files, folder, &path, call.last(at, arguments))?;
            if has_folder {
                translated[at - 1] = located.folder;
            }
            translated[at] = located.path.address();
            paths[at] = Some(located.path);
        } else if shape.is_pointer() {
            translated[at] = thread.process.memory.pointer(arguments[at])?;
        }
    }
    pass_on(thread, number, translated, blocking)
}

fn pass_on(thread: &Thread, number: i64, translated: Arguments, blocking: bool) -> SystemCallResult {
    if blocking {
        thread.host_blocking(number, translated)
    } else {
        thread.host(number, translated)
    }
}

impl SystemCall {
    /// Whether a symbolic link at the end of the path in argument `at` is followed.
    fn last(&self, at: usize, arguments: &Arguments) -> Last {
        let flags = self
            .arguments
            .iter()
            .position(|shape| matches!(shape, Shape::AtFlags));
        let flags = flags.map_or(0, |at| arguments[at] as i32);
        match self.arguments[at] {
            Shape::Link if flags & libc::AT_SYMLINK_FOLLOW != 0 => Last::Follow,
            Shape::Link => Last::Keep,
            _ if flags & libc::AT_SYMLINK_NOFOLLOW != 0 => Last::Keep,
            _ => Last::Follow,
        }
    }
}

impl Thread {
    /// A call of the host that does not sleep. Addresses in it must be translated, or of this program.
    pub fn host(&self, number: i64, arguments: Arguments) -> SystemCallResult {
        // SAFETY: guest addresses were translated into the guest's windows, where the host checks access; other
        // addresses are of live values of the caller. No call in the table maps or unmaps memory.
        unsafe { host::call(number, arguments) }.map_err(Unfinished::Error)
    }

    /// A call of the host that may sleep; a signal interrupts it.
    pub fn host_blocking(&self, number: i64, arguments: Arguments) -> SystemCallResult {
        // SAFETY: as for `host`; the inbox is this thread's.
        unsafe { host::call_interruptible(self.inbox.pending(), number, arguments) }.map_err(Unfinished::from)
    }
}
