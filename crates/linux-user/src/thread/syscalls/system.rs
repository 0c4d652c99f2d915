//! What a process can ask about the system and set for itself.

use std::sync::atomic::Ordering;

use super::{Arguments, SystemCallResult, fail, paths};
use crate::files::namespace::Last;
use crate::host;
use crate::process::Process;
use crate::thread::{Thread, Unaligned};

/// The kernel release that programs see: glibc asks for a minimum.
pub const RELEASE: &str = "6.1.0-sidestep";

/// `/proc/version`, in agreement with `uname`.
pub fn version_line() -> String {
    let version = std::fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    format!("Linux version {RELEASE} (sidestep) (gcc) {}\n", version.trim())
}

/// `uname(name)`.
pub fn uname(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    const FIELD: usize = 65;
    // SAFETY: an all-zero utsname is valid.
    let mut host = unsafe { std::mem::zeroed::<libc::utsname>() };
    thread.host(libc::SYS_uname, [&raw mut host as u64, 0, 0, 0, 0, 0])?;
    let text = |field: &[libc::c_char]| -> Vec<u8> {
        field
            .iter()
            .map(|character| *character as u8)
            .take_while(|byte| *byte != 0)
            .collect()
    };
    let fields: [&[u8]; 6] = [
        b"Linux",
        &text(&host.nodename),
        RELEASE.as_bytes(),
        &text(&host.version),
        b"ia64",
        &text(&host.domainname),
    ];
    let mut name = [0u8; 6 * FIELD];
    for (target, field) in name.chunks_mut(FIELD).zip(fields) {
        let length = field.len().min(FIELD - 1);
        target[..length].copy_from_slice(&field[..length]);
    }
    thread.process.memory.write_bytes(arguments[0], &name)?;
    Ok(0)
}

/// `getpriority(which, who)`: the nice value itself, where other kernels give 20 minus it.
pub fn getpriority(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let priority = thread.host(libc::SYS_getpriority, *arguments)?;
    Ok(20u64.wrapping_sub(priority))
}

/// `setrlimit(resource, limit)`.
pub fn setrlimit(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    prlimit64(thread, &[0, arguments[0], arguments[1], 0, 0, 0])
}

/// `getrlimit(resource, limit)`.
pub fn getrlimit(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    prlimit64(thread, &[0, arguments[0], 0, arguments[1], 0, 0])
}

/// Whether a limit holds for the guest's memory alone: on the host it would hit the emulator's reservation.
pub fn is_guests_own(resource: u32) -> bool {
    matches!(resource, libc::RLIMIT_AS | libc::RLIMIT_DATA)
}

/// `prlimit64(process, resource, new, old)`: limits on memory are kept here, and the host is told that of stacks when
/// a program is executed.
pub fn prlimit64(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [process, resource, new, old, ..] = *arguments;
    let memory = thread.process.memory.clone();
    let limit: Option<[u64; 2]> = memory.read_optional(new)?;
    let own = process == 0 || process as u32 == std::process::id();
    let resource = resource as u32;
    if !own || !is_guests_own(resource) && resource != libc::RLIMIT_STACK {
        let (new, old) = (memory.pointer(new)?, memory.pointer(old)?);
        return thread.host(
            libc::SYS_prlimit64,
            [process, u64::from(resource), new, old, 0, 0],
        );
    }
    let mut limits = thread.process.limits();
    let known = match limits.get(&resource) {
        Some(known) => *known,
        None => host::limit_of(resource)?,
    };
    if let Some(limit) = limit {
        if limit[0] > limit[1] {
            return fail(libc::EINVAL);
        }
        if limit[1] > known[1] && !may_raise_limits(thread) {
            return fail(libc::EPERM);
        }
        limits.insert(resource, limit);
        drop(limits);
        thread.process.keep_limits();
    }
    memory.write_optional(old, &known)?;
    Ok(0)
}

/// Whether this process may raise a hard limit (`CAP_SYS_RESOURCE`).
fn may_raise_limits(thread: &Thread) -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let mut header = [0x2008_0522u32, 0];
    let mut sets = [[0u32; 3]; 2];
    let arguments = [&raw mut header as u64, &raw mut sets as u64, 0, 0, 0, 0];
    thread.host(libc::SYS_capget, arguments).is_ok() && sets[0][0] >> CAP_SYS_RESOURCE & 1 != 0
}

/// `personality(persona)`: noted, and without effect.
pub fn personality(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let noted = &thread.process.persona;
    let before = match arguments[0] as u32 {
        u32::MAX => noted.load(Ordering::Relaxed),
        persona => noted.swap(persona, Ordering::Relaxed),
    };
    Ok(before.into())
}

/// `getunwind(buffer, size)`: the size of the kernel's unwind table; there is none beside the gate page's own.
pub fn getunwind(_thread: &mut Thread, _arguments: &Arguments) -> SystemCallResult {
    Ok(0)
}

fn file_system(thread: &mut Thread, arguments: &Arguments, number: i64, first: u64) -> SystemCallResult {
    if arguments[1] != size_of::<libc::statfs>() as u64 {
        return fail(libc::EINVAL);
    }
    let result = thread.process.memory.pointer(arguments[2])?;
    thread.host(number, [first, result, 0, 0, 0, 0])
}

/// `statfs64(path, size, result)`.
pub fn statfs64(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let path = thread.process.memory.read_string(arguments[0])?;
    let located = paths::locate(&thread.process.files, paths::CURRENT_FOLDER, &path, Last::Follow)?;
    file_system(thread, arguments, libc::SYS_statfs, located.path.address())
}

/// `fstatfs64(descriptor, size, result)`.
pub fn fstatfs64(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    file_system(thread, arguments, libc::SYS_fstatfs, arguments[0])
}

/// How `prctl` shows a misaligned access: silently emulated, or by `SIGBUS`.
const PR_UNALIGN_SIGBUS: u64 = 2;

/// `prctl(operation, ...)`: the IA-64 controls are the thread's own, operations that hold addresses are
/// translated, and those that would change how the host runs the emulator are refused.
pub fn prctl(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let memory = thread.process.memory.clone();
    let mut translated = *arguments;
    match arguments[0] as i32 {
        libc::PR_SET_UNALIGN => {
            thread.unaligned = Unaligned {
                control: arguments[1] & 3,
            };
            Ok(0)
        }
        libc::PR_GET_UNALIGN => {
            memory.write(arguments[1], &(thread.unaligned.control as u32))?;
            Ok(0)
        }
        libc::PR_SET_FPEMU => {
            thread.floating_point_control = arguments[1] & 3;
            Ok(0)
        }
        libc::PR_GET_FPEMU => {
            memory.write(arguments[1], &(thread.floating_point_control as u32))?;
            Ok(0)
        }
        libc::PR_GET_PDEATHSIG | libc::PR_SET_NAME | libc::PR_GET_NAME | libc::PR_GET_CHILD_SUBREAPER => {
            translated[1] = memory.pointer(arguments[1])?;
            thread.host(libc::SYS_prctl, translated)
        }
        // Names of anonymous memory are for a debugger of the host.
        libc::PR_SET_VMA => fail(libc::EINVAL),
        libc::PR_GET_TID_ADDRESS => {
            memory.write(arguments[1], &thread.clear_identifier)?;
            Ok(0)
        }
        libc::PR_SET_SECCOMP | libc::PR_SET_MM | libc::PR_GET_SECCOMP => fail(libc::EINVAL),
        _ => thread.host(libc::SYS_prctl, translated),
    }
}

impl Unaligned {
    /// Whether a misaligned access ends in `SIGBUS`.
    pub fn raises(self) -> bool {
        self.control & PR_UNALIGN_SIGBUS != 0
    }
}

impl Process {
    /// Makes the limits that are the guest's own hold from now on.
    pub fn keep_limits(&self) {
        let limits = self.limits();
        let soft = |resource| limits.get(&resource).map(|[soft, _]| *soft);
        if let Some(bytes) = soft(libc::RLIMIT_STACK) {
            self.memory.set_stack_limit(bytes);
        }
        self.memory
            .set_limits(soft(libc::RLIMIT_AS), soft(libc::RLIMIT_DATA));
    }

    /// Tells the host the limits that were kept from it and that `chosen` holds for, for a program that is executed.
    pub fn apply_limits(&self, chosen: impl Fn(u32) -> bool) {
        let limits = self.limits();
        for (resource, limit) in limits.iter().filter(|(resource, _)| chosen(**resource)) {
            // A failure leaves the old one, as on Linux.
            let _ = host::set_limit(*resource, *limit);
        }
    }
}
