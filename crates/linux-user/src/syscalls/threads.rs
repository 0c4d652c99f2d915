//! Calls that threads are made of: `futex`, robust lists, thread identifiers.

use std::sync::atomic::Ordering;

use super::{Arguments, SystemCallResult, fail};
use crate::host::Errno;
use crate::memory::Memory;
use crate::process::Peer;
use crate::thread::Thread;

/// Bits of `futex`'s operation that modify it.
const MODIFIERS: i32 = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
/// `FUTEX_LOCK_PI2`, which `libc` does not name.
const FUTEX_LOCK_PI2: i32 = 13;

/// `futex(word, operation, value, timeout or second value, second word, third value)`.
///
/// The host's futexes serve: the same guest word is the same host word, in all threads and, for shared
/// mappings, in all processes.
pub fn futex(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [word, operation, value, fourth, second, third] = *arguments;
    let memory = &thread.process.memory;
    let word = memory.pointer(word)?;
    let second = memory.pointer(second);
    let (fourth, second) = match operation as i32 & !MODIFIERS {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => {
            (memory.pointer(fourth)?, 0)
        }
        libc::FUTEX_WAIT_REQUEUE_PI => (memory.pointer(fourth)?, second?),
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_WAKE_OP | libc::FUTEX_CMP_REQUEUE_PI => {
            (fourth, second?)
        }
        _ => (0, 0),
    };
    thread.host_blocking(libc::SYS_futex, [word, operation, value, fourth, second, third])
}

/// `set_tid_address(address)`.
pub fn set_tid_address(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    thread.clear_identifier = arguments[0];
    Ok(thread.identifier as u64)
}

/// The size of `struct robust_list_head`.
const ROBUST_HEAD: u64 = 24;

/// `set_robust_list(head, size)`.
pub fn set_robust_list(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    if arguments[1] != ROBUST_HEAD {
        return fail(libc::EINVAL);
    }
    thread.peer.robust_list.store(arguments[0], Ordering::Relaxed);
    Ok(0)
}

/// `get_robust_list(thread, head, size)`, for the calling thread.
pub fn get_robust_list(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [which, head, size, ..] = *arguments;
    let which = if which == 0 {
        thread.identifier
    } else {
        which as i32
    };
    let list = thread
        .process
        .peers()
        .iter()
        .find(|peer| peer.identifier.load(Ordering::Relaxed) == which)
        .map(|peer| peer.robust_list.load(Ordering::Relaxed));
    let Some(list) = list else {
        return fail(libc::EPERM);
    };
    thread.process.memory.write(head, &list)?;
    thread.process.memory.write(size, &ROBUST_HEAD)?;
    Ok(0)
}

/// Wakes waiters on a word.
fn wake(memory: &Memory, word: u64, count: u64) {
    if let Ok(word) = memory.pointer(word) {
        // SAFETY: waking touches no memory; a bad address fails.
        let _ =
            unsafe { crate::host::call(libc::SYS_futex, [word, libc::FUTEX_WAKE as u64, count, 0, 0, 0]) };
    }
}

/// What the kernel does when a thread ends: its robust mutexes are marked as orphaned, and whoever joins it is
/// told.
pub fn at_end(thread: &Thread) {
    let memory = &thread.process.memory;
    release_mutexes(memory, &thread.peer);
    if thread.clear_identifier != 0 && memory.write(thread.clear_identifier, &0u32).is_ok() {
        wake(memory, thread.clear_identifier, 1);
    }
}

/// Marks the robust mutexes of a thread that ends, or that goes with the program that another one replaces.
pub fn release_mutexes(memory: &Memory, peer: &Peer) {
    let list = peer.robust_list.swap(0, Ordering::Relaxed);
    if list != 0 {
        // A list that cannot be read ends early, as in the kernel.
        let _ = orphan_mutexes(memory, list, peer.identifier.load(Ordering::Relaxed) as u32);
    }
}

/// The longest robust list (`ROBUST_LIST_LIMIT`).
const LONGEST_LIST: usize = 2048;

fn orphan_mutexes(memory: &Memory, head: u64, owner: u32) -> Result<(), Errno> {
    let [first, offset, pending]: [u64; 3] = memory.read(head)?;
    let pending = pending & !1;
    let mut entry = first & !1;
    for _ in 0..LONGEST_LIST {
        if entry == head {
            break;
        }
        let next = memory.read::<u64>(entry)? & !1;
        if entry != pending {
            orphan(memory, entry.wrapping_add(offset), owner)?;
        }
        entry = next;
    }
    if pending != 0 {
        orphan(memory, pending.wrapping_add(offset), owner)?;
    }
    Ok(())
}

fn orphan(memory: &Memory, word: u64, owner: u32) -> Result<(), Errno> {
    const OWNER: u32 = 0x3fff_ffff;
    const ORPHANED: u32 = 0x4000_0000;
    const WAITERS: u32 = 0x8000_0000;
    let mut found: u32 = memory.read(word)?;
    while found & OWNER == owner {
        let old = memory.compare_exchange(word, found, found & WAITERS | ORPHANED)?;
        if old == found {
            if found & WAITERS != 0 {
                wake(memory, word, 1);
            }
            break;
        }
        found = old;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::changes::MapRequest;

    #[test]
    fn the_mutexes_of_a_dead_thread_are_marked() {
        let memory = Memory::new().expect("an address space");
        let page = memory.map(&MapRequest::anonymous(16384)).expect("room");
        let (head, entry) = (page, page + 256);
        memory.write(head, &[entry, 32u64, 0]).expect("mapped");
        memory.write(entry, &head).expect("mapped");
        memory.write(entry + 32, &(77u32 | 0x8000_0000)).expect("mapped");
        orphan_mutexes(&memory, head, 77).expect("a readable list");
        assert_eq!(memory.read::<u32>(entry + 32), Ok(0xc000_0000));
        memory.write(entry + 32, &78u32).expect("mapped");
        orphan_mutexes(&memory, head, 77).expect("a readable list");
        assert_eq!(memory.read::<u32>(entry + 32), Ok(78));
    }
}
