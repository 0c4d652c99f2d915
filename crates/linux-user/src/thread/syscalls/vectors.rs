//! Calls with arrays of buffers.

use super::descriptors::fault_of;
use super::{Arguments, SystemCallResult, fail};
use crate::host::Errno;
use crate::memory::Memory;
use crate::memory::window::PAGE;
use crate::thread::Thread;

/// The most buffers of one call (`UIO_MAXIOV`).
pub const MOST_BUFFERS: u64 = 1024;

/// The most bytes that one call moves (`MAX_RW_COUNT`): whole pages of the guest's.
const BYTES_MAX: u64 = (1 << 31) - PAGE;

/// An array of buffers with host addresses.
pub fn host_buffers(memory: &Memory, address: u64, count: u64) -> Result<Vec<[u64; 2]>, Errno> {
    if count > MOST_BUFFERS {
        return Err(Errno(libc::EINVAL));
    }
    let mut buffers: Vec<[u64; 2]> = memory.read_array(address, count as usize)?;
    for [base, length] in &mut buffers {
        *base = if *length == 0 { 0 } else { memory.pointer(*base)? };
    }
    Ok(buffers)
}

/// Passes a call on whose second and third argument are an array of buffers.
fn transfer(thread: &mut Thread, number: i64, arguments: &Arguments) -> SystemCallResult {
    if arguments[2] > MOST_BUFFERS {
        return fail(libc::EINVAL);
    }
    let buffers = host_buffers(&thread.process.memory, arguments[1], arguments[2]);
    let mut buffers = buffers.map_err(|fault| fault_of(arguments[0], fault))?;
    // Lengths that no memory has are left for the host to refuse.
    if buffers.iter().all(|[_, length]| *length <= i64::MAX as u64) {
        let mut left = BYTES_MAX;
        for [_, length] in &mut buffers {
            *length = left.min(*length);
            left -= *length;
        }
    }
    let mut translated = *arguments;
    translated[1] = buffers.as_ptr() as u64;
    thread.host_blocking(number, translated)
}

/// `readv(descriptor, buffers, count)`.
pub fn readv(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    transfer(thread, libc::SYS_readv, arguments)
}

/// `writev(descriptor, buffers, count)`.
pub fn writev(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    transfer(thread, libc::SYS_writev, arguments)
}

/// `preadv(descriptor, buffers, count, offset)`.
pub fn preadv(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    transfer(thread, libc::SYS_preadv, arguments)
}

/// `pwritev(descriptor, buffers, count, offset)`.
pub fn pwritev(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    transfer(thread, libc::SYS_pwritev, arguments)
}

/// `preadv2(descriptor, buffers, count, offset, flags)`.
pub fn preadv2(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    transfer(thread, libc::SYS_preadv2, arguments)
}

/// `pwritev2(descriptor, buffers, count, offset, flags)`.
pub fn pwritev2(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    transfer(thread, libc::SYS_pwritev2, arguments)
}

/// `vmsplice(pipe, buffers, count, flags)`.
pub fn vmsplice(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    transfer(thread, libc::SYS_vmsplice, arguments)
}
