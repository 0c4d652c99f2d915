//! Memory calls: arguments to and from [`crate::memory`].

use super::{Arguments, SystemCallResult, fail};
use crate::memory::changes::MapRequest;
use crate::memory::window::PAGE;
use crate::thread::Thread;

/// `brk(end)`.
pub fn brk(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    Ok(thread.process.memory.set_break(arguments[0]))
}

fn map(thread: &mut Thread, arguments: &Arguments, offset: u64) -> SystemCallResult {
    let [address, length, protection, flags, file, _] = *arguments;
    let request = MapRequest {
        address,
        length,
        protection,
        flags,
        file: file as i32,
        offset,
    };
    if request.flags as i32 & libc::MAP_TYPE != libc::MAP_PRIVATE {
        thread.process.memory.share();
    }
    Ok(thread.process.memory.map(&request)?)
}

/// `mmap(address, length, protection, flags, file, offset)`.
pub fn mmap(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    map(thread, arguments, arguments[5])
}

/// `mmap2`: the offset counts pages.
pub fn mmap2(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    match arguments[5].checked_mul(PAGE) {
        Some(offset) => map(thread, arguments, offset),
        None => fail(libc::EOVERFLOW),
    }
}

/// `munmap(address, length)`.
pub fn munmap(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    thread.process.memory.unmap(arguments[0], arguments[1])?;
    Ok(0)
}

/// `mprotect(address, length, protection)`.
pub fn mprotect(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    thread
        .process
        .memory
        .protect(arguments[0], arguments[1], arguments[2])?;
    Ok(0)
}

/// `mremap(old, old_length, new_length, flags, new)`.
pub fn mremap(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [old, old_length, new_length, flags, new, _] = *arguments;
    Ok(thread
        .process
        .memory
        .remap(old, old_length, new_length, flags, new)?)
}

/// `madvise(address, length, advice)`.
pub fn madvise(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    thread
        .process
        .memory
        .advise(arguments[0], arguments[1], arguments[2])?;
    Ok(0)
}

/// `msync(address, length, flags)`.
pub fn msync(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    thread
        .process
        .memory
        .forward(libc::SYS_msync, arguments[0], arguments[1], arguments[2])?;
    Ok(0)
}

/// `mlock(address, length)`: the range is rounded to pages.
pub fn mlock(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    forward_rounded(thread, libc::SYS_mlock, arguments)
}

/// `mlock2(address, length, flags)`.
pub fn mlock2(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    forward_rounded(thread, libc::SYS_mlock2, arguments)
}

/// `munlock(address, length)`.
pub fn munlock(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    forward_rounded(thread, libc::SYS_munlock, arguments)
}

fn forward_rounded(thread: &mut Thread, number: i64, arguments: &Arguments) -> SystemCallResult {
    let [address, length, flags, ..] = *arguments;
    let lead = address % PAGE;
    let Some(length) = length.checked_add(lead) else {
        return fail(libc::EINVAL);
    };
    thread
        .process
        .memory
        .forward(number, address - lead, length, flags)?;
    Ok(0)
}

/// `mlockall(flags)`.
pub fn mlockall(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    thread.process.memory.lock_all(arguments[0])?;
    Ok(0)
}

/// `munlockall()`.
pub fn munlockall(thread: &mut Thread, _arguments: &Arguments) -> SystemCallResult {
    thread.process.memory.unlock_all()?;
    Ok(0)
}

/// `mincore(address, length, vector)`: a byte for each guest page.
pub fn mincore(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let pages = thread.process.memory.residency(arguments[0], arguments[1])?;
    thread.process.memory.write_bytes(arguments[2], &pages)?;
    Ok(0)
}

/// `getpagesize()`.
pub fn getpagesize(_thread: &mut Thread, _arguments: &Arguments) -> SystemCallResult {
    Ok(PAGE)
}
