//! Signal calls.

use super::{Arguments, SystemCallResult, Unfinished, fail};
use crate::host::Errno;
use crate::host::signals::{self as host_signals, SIGNALS, SignalSet, host_mask, set_of};
use crate::signal::actions::Action;
use crate::signal::context::AlternateStack;
use crate::thread::Thread;

/// The smallest alternate stack (`MINSIGSTKSZ` of Linux/ia64, odd as it is).
const SMALLEST_STACK: u64 = 131_027;

fn check_size(size: u64) -> Result<(), Unfinished> {
    if size == size_of::<SignalSet>() as u64 {
        Ok(())
    } else {
        fail(libc::EINVAL)
    }
}

impl Thread {
    /// Blocks host signals, so that what comes next is seen either before or after a change, never amid it. A
    /// signal that waits already comes first: the call is repeated after it.
    fn settle(&mut self) -> Result<(), Unfinished> {
        host_signals::block_all();
        if self.inbox.is_empty() {
            Ok(())
        } else {
            host_signals::set_mask(self.blocked);
            Err(Unfinished::RestartAlways)
        }
    }

    /// Sets the guest's mask, and the host's by it.
    fn set_blocked(&mut self, mask: SignalSet) {
        self.blocked = mask & !(set_of(libc::SIGKILL) | set_of(libc::SIGSTOP));
        self.inbox.recheck(self.blocked);
        host_signals::set_mask(self.blocked);
    }

    /// After a call that waited under another mask: if a signal ended it, delivery is to happen under that mask, and
    /// the call fails whatever the handler asks.
    pub(crate) fn keep_mask_for_delivery(
        &mut self,
        mask: SignalSet,
        result: SystemCallResult,
    ) -> SystemCallResult {
        let interrupted = matches!(
            result,
            Err(Unfinished::Error(Errno(libc::EINTR)) | Unfinished::Restart | Unfinished::RestartAlways)
        );
        if !interrupted {
            return result;
        }
        self.saved_mask = Some(self.blocked);
        self.blocked = mask & !(set_of(libc::SIGKILL) | set_of(libc::SIGSTOP));
        self.inbox.recheck(self.blocked);
        if self.inbox.waiting() & !self.blocked != 0 {
            return fail(libc::EINTR);
        }
        result
    }
}

/// `rt_sigaction(signal, new, old, size)`.
pub fn rt_sigaction(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [signal, new, old, size, ..] = *arguments;
    check_size(size)?;
    let signal = signal as i32;
    let process = thread.process.clone();
    let unchangeable = matches!(signal, libc::SIGKILL | libc::SIGSTOP);
    if !(1..=SIGNALS).contains(&signal) || unchangeable && new != 0 {
        return fail(libc::EINVAL);
    }
    let wanted: Option<Action> = process.memory.read_optional(new)?;
    thread.settle()?;
    let previous = {
        let mut actions = process.actions();
        let previous = actions.of(signal);
        if let Some(mut action) = wanted {
            action.mask &= !(set_of(libc::SIGKILL) | set_of(libc::SIGSTOP));
            actions.set(signal, action);
        }
        previous
    };
    host_signals::set_mask(thread.blocked);
    process.memory.write_optional(old, &previous)?;
    Ok(0)
}

/// `rt_sigprocmask(how, new, old, size)`.
pub fn rt_sigprocmask(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [how, new, old, size, ..] = *arguments;
    check_size(size)?;
    let memory = thread.process.memory.clone();
    let change: Option<SignalSet> = memory.read_optional(new)?;
    let previous = thread.blocked;
    if let Some(change) = change {
        let mask = match how as i32 {
            libc::SIG_BLOCK => previous | change,
            libc::SIG_UNBLOCK => previous & !change,
            libc::SIG_SETMASK => change,
            _ => return fail(libc::EINVAL),
        };
        thread.settle()?;
        thread.set_blocked(mask);
    }
    memory.write_optional(old, &previous)?;
    Ok(0)
}

/// `rt_sigpending(set, size)`.
pub fn rt_sigpending(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [set, size, ..] = *arguments;
    if size > size_of::<SignalSet>() as u64 {
        return fail(libc::EINVAL);
    }
    let mut pending: SignalSet = 0;
    thread.host(libc::SYS_rt_sigpending, [&raw mut pending as u64, 8, 0, 0, 0, 0])?;
    pending |= thread.inbox.waiting() & thread.blocked;
    thread
        .process
        .memory
        .write_bytes(set, &pending.to_le_bytes()[..size as usize])?;
    Ok(0)
}

/// `rt_sigsuspend(mask, size)`.
pub fn rt_sigsuspend(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [address, size, ..] = *arguments;
    check_size(size)?;
    let mask: SignalSet = thread.process.memory.read(address)?;
    let host = host_mask(mask);
    thread.inbox.recheck(mask);
    let result = thread.host_blocking(libc::SYS_rt_sigsuspend, [&raw const host as u64, 8, 0, 0, 0, 0]);
    thread.keep_mask_for_delivery(mask, result)
}

/// `sigaltstack(new, old)`.
pub fn sigaltstack(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    /// `SS_AUTODISARM` and the mode.
    const AUTODISARM: i32 = 1 << 31;
    let [new, old, ..] = *arguments;
    let memory = thread.process.memory.clone();
    let current = thread.alternate_stack;
    let on_stack = current.holds(thread.processor.general.value(12));
    let mut shown = current;
    if on_stack && current.flags & AUTODISARM == 0 {
        shown.flags |= libc::SS_ONSTACK;
    }
    if let Some(stack) = memory.read_optional::<AlternateStack>(new)? {
        if on_stack && current.flags & AUTODISARM == 0 {
            return fail(libc::EPERM);
        }
        thread.alternate_stack = match stack.flags & !AUTODISARM {
            libc::SS_DISABLE => AlternateStack::NONE,
            0 | libc::SS_ONSTACK if stack.size < SMALLEST_STACK => return fail(libc::ENOMEM),
            0 | libc::SS_ONSTACK => AlternateStack {
                flags: stack.flags & AUTODISARM,
                padding: 0,
                ..stack
            },
            _ => return fail(libc::EINVAL),
        };
    }
    memory.write_optional(old, &shown)?;
    Ok(0)
}

/// `rt_sigreturn()`.
pub fn rt_sigreturn(thread: &mut Thread, _arguments: &Arguments) -> SystemCallResult {
    thread.return_from_handler()
}

/// `restart_syscall()`: only for calls that the kernel resumes with a time left, which the host does itself.
pub fn restart_syscall(_thread: &mut Thread, _arguments: &Arguments) -> SystemCallResult {
    fail(libc::EINTR)
}
