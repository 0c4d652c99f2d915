//! System V semaphores and shared memory where they differ: `struct semid64_ds`, and attaching. Of message queues,
//! `struct sigevent`.

use bytemuck::{Pod, Zeroable};

use super::{Arguments, SystemCallResult};
use crate::host::Errno;
use crate::thread::Thread;

/// `struct semid64_ds` of Linux/ia64; x86-64 pads the two times.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct GuestSemaphores {
    permissions: [u64; 6],
    operated: i64,
    changed: i64,
    count: u64,
    unused: [u64; 2],
}

/// The same on x86-64.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct HostSemaphores {
    permissions: [u64; 6],
    operated: i64,
    unused_operated: u64,
    changed: i64,
    unused_changed: u64,
    count: u64,
    unused: [u64; 2],
}

impl From<GuestSemaphores> for HostSemaphores {
    fn from(guest: GuestSemaphores) -> HostSemaphores {
        HostSemaphores {
            permissions: guest.permissions,
            operated: guest.operated,
            changed: guest.changed,
            count: guest.count,
            ..Zeroable::zeroed()
        }
    }
}

impl From<HostSemaphores> for GuestSemaphores {
    fn from(host: HostSemaphores) -> GuestSemaphores {
        GuestSemaphores {
            permissions: host.permissions,
            operated: host.operated,
            changed: host.changed,
            count: host.count,
            unused: [0; 2],
        }
    }
}

/// `SEM_STAT`, `SEM_STAT_ANY`: like `IPC_STAT`, by index.
const SEM_STAT: i32 = 18;
const SEM_STAT_ANY: i32 = 20;

/// `semctl(set, semaphore, command, argument)`.
pub fn semctl(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [set, semaphore, command, argument, ..] = *arguments;
    let process = thread.process.clone();
    let call = |argument: u64| thread.host(libc::SYS_semctl, [set, semaphore, command, argument, 0, 0]);
    match command as i32 {
        libc::IPC_STAT | SEM_STAT | SEM_STAT_ANY => {
            let mut host: HostSemaphores = Zeroable::zeroed();
            let result = call(&raw mut host as u64)?;
            process.memory.write(argument, &GuestSemaphores::from(host))?;
            Ok(result)
        }
        libc::IPC_SET => {
            let host = HostSemaphores::from(process.memory.read::<GuestSemaphores>(argument)?);
            call(&raw const host as u64)
        }
        libc::GETALL | libc::SETALL | libc::IPC_INFO | libc::SEM_INFO => {
            call(process.memory.pointer(argument)?)
        }
        _ => call(argument),
    }
}

/// `struct sigevent`, the same for both kernels but for addresses in it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct Event {
    value: u64,
    signal: i32,
    /// `SIGEV_*`.
    how: i32,
    rest: [u64; 6],
}

/// `mq_notify(queue, event)`. To begin a thread the C library has the kernel send it a message of 32 bytes, which
/// stand where the value says.
pub fn mq_notify(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [queue, event, ..] = *arguments;
    if event == 0 {
        return thread.host(libc::SYS_mq_notify, [queue, 0, 0, 0, 0, 0]);
    }
    let memory = thread.process.memory.clone();
    let mut event: Event = memory.read(event)?;
    let message: [u64; 4];
    if event.how == libc::SIGEV_THREAD {
        message = memory.read(event.value)?;
        event.value = message.as_ptr() as u64;
    }
    thread.host(libc::SYS_mq_notify, [queue, &raw const event as u64, 0, 0, 0, 0])
}

/// `shmat(segment, address, flags)`.
pub fn shmat(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [segment, address, flags, ..] = *arguments;
    // SAFETY: an all-zero shmid_ds is valid.
    let mut status = unsafe { std::mem::zeroed::<libc::shmid_ds>() };
    // SAFETY: the kernel writes `status`.
    if unsafe { libc::shmctl(segment as i32, libc::IPC_STAT, &mut status) } != 0 {
        return Err(Errno::last().into());
    }
    thread.process.memory.share();
    Ok(thread
        .process
        .memory
        .attach_segment(segment as i32, status.shm_segsz as u64, address, flags)?)
}

/// `shmdt(address)`.
pub fn shmdt(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    thread.process.memory.detach_segment(arguments[0])?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semaphore_sets_are_laid_out_as_each_kernel_does() {
        assert_eq!(size_of::<GuestSemaphores>(), 88);
        assert_eq!(size_of::<HostSemaphores>(), size_of::<libc::semid_ds>());
        let guest = GuestSemaphores {
            operated: 1,
            changed: 2,
            count: 3,
            ..Zeroable::zeroed()
        };
        assert_eq!(GuestSemaphores::from(HostSemaphores::from(guest)), guest);
    }

    #[test]
    fn events_are_laid_out_as_both_kernels_do() {
        assert_eq!(size_of::<Event>(), size_of::<libc::sigevent>());
    }
}
