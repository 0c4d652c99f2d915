//! Memory of other processes.
//!
//! A guest's address is an address of its host process once the windows are known. Those of an emulator are at one
//! place where the host lets them be, and a child has its parent's; another process's can be reached if they are where
//! this one's are.

use super::vectors::{MOST_BUFFERS, host_buffers};
use super::{Arguments, SystemCallResult, fail};
use crate::thread::Thread;

fn transfer(thread: &mut Thread, number: i64, arguments: &Arguments) -> SystemCallResult {
    let [process, local, local_count, remote, remote_count, flags] = *arguments;
    if local_count > MOST_BUFFERS || remote_count > MOST_BUFFERS {
        return fail(libc::EINVAL);
    }
    let memory = &thread.process.memory;
    let is_own = process as u32 == std::process::id();
    if !is_own && !memory.has_windows_like(process as u32) {
        return fail(libc::EPERM);
    }
    let local = host_buffers(memory, local, local_count)?;
    let remote = host_buffers(memory, remote, remote_count)?;
    let arguments = [
        process,
        local.as_ptr() as u64,
        local.len() as u64,
        remote.as_ptr() as u64,
        remote.len() as u64,
        flags,
    ];
    thread.host(number, arguments)
}

/// `process_vm_readv(process, local, count, remote, count, flags)`.
pub fn process_vm_readv(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    transfer(thread, libc::SYS_process_vm_readv, arguments)
}

/// `process_vm_writev(process, local, count, remote, count, flags)`.
pub fn process_vm_writev(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    transfer(thread, libc::SYS_process_vm_writev, arguments)
}
