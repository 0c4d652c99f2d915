//! Calls that threads are made of: `futex`, robust lists, thread identifiers.

use std::sync::atomic::Ordering;

use bytemuck::{Pod, Zeroable};

use super::{Arguments, SystemCallResult, Unfinished, fail};
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
    let [guest_word, operation, value, fourth, second, third] = *arguments;
    let memory = &thread.process.memory;
    let word = memory.pointer(guest_word)?;
    let second = memory.pointer(second);
    if let Some(wait) = RobustWait::of(thread, arguments) {
        return wait.perform(thread, word);
    }
    let (sleeps, fourth, second) = match operation as i32 & !MODIFIERS {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => {
            (true, memory.pointer(fourth)?, 0)
        }
        libc::FUTEX_WAIT_REQUEUE_PI => (true, memory.pointer(fourth)?, second?),
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_WAKE_OP | libc::FUTEX_CMP_REQUEUE_PI => {
            (false, fourth, second?)
        }
        _ => (false, 0, 0),
    };
    let arguments = [word, operation, value, fourth, second, third];
    loop {
        let result = if sleeps {
            thread.host_blocking(libc::SYS_futex, arguments)
        } else {
            thread.host(libc::SYS_futex, arguments)
        };
        // What locks and lends priority looks for the owner, and says so where there is no such thread.
        let lacks_owner = second == 0 && result == Err(Unfinished::Error(Errno(libc::ESRCH)));
        if !lacks_owner || !orphan_announced(thread, guest_word)? {
            return result;
        }
    }
}

/// Whether a word is of the robust mutex that a thread has announced in its list as what it is about to lock.
fn is_announced(thread: &Thread, word: u64) -> bool {
    let list = thread.peer.robust_list.load(Ordering::Relaxed);
    if list == 0 {
        return false;
    }
    let head = thread.process.memory.read::<[u64; 3]>(list);
    head.is_ok_and(|[_, offset, pending]| pending != 0 && (pending & !1).wrapping_add(offset) == word)
}

/// Marks the robust mutex that a thread is about to lock, if its owner has ended without that; answers whether it has.
fn orphan_announced(thread: &Thread, word: u64) -> Result<bool, Errno> {
    let memory = &thread.process.memory;
    let owner = memory.read::<u32>(word)? & OWNER;
    let is_orphan = owner != 0 && is_announced(thread, word) && has_ended(owner);
    if is_orphan {
        orphan(memory, word, owner)?;
    }
    Ok(is_orphan)
}

/// A thread waits for a robust mutex of several processes.
///
/// A process that is killed cannot mark its mutexes, and the host knows nothing of the guest's lists. So who waits for
/// such a mutex looks now and then whether its owner is still there, and marks it for the owner otherwise. That the
/// word is a robust mutex's is certain: the thread has announced it in its own list as what it is about to lock.
struct RobustWait {
    word: u64,
    owner: u32,
    /// The operation's modifiers and its clock.
    operation: i32,
    value: u64,
    /// When it ends, by the clock.
    until: Option<[i64; 2]>,
    mask: u64,
}

impl RobustWait {
    /// How long to wait before the first look and before later ones, in nanoseconds.
    const LOOKS: [i64; 2] = [10_000_000, 200_000_000];

    fn of(thread: &Thread, arguments: &Arguments) -> Option<RobustWait> {
        let [word, operation, value, timeout, _, mask] = *arguments;
        let operation = operation as i32;
        let kind = operation & !MODIFIERS;
        let owner = value as u32 & OWNER;
        let waits = matches!(kind, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET);
        let is_private = operation & libc::FUTEX_PRIVATE_FLAG != 0;
        if !waits || is_private || owner == 0 || !is_announced(thread, word) {
            return None;
        }
        let memory = &thread.process.memory;
        let clock = Self::clock_of(operation, kind);
        let timeout: Option<[i64; 2]> = memory.read_optional(timeout).ok()?;
        let until = match (kind, timeout) {
            (libc::FUTEX_WAIT, Some([seconds, nanoseconds])) => {
                let now = now_of(clock);
                Some(later([now[0].saturating_add(seconds), now[1]], nanoseconds))
            }
            (_, until) => until,
        };
        Some(RobustWait {
            word,
            owner,
            operation: operation & MODIFIERS | libc::FUTEX_WAIT_BITSET,
            value,
            until,
            mask: if kind == libc::FUTEX_WAIT {
                u64::from(u32::MAX)
            } else {
                mask
            },
        })
    }

    /// Relative times are by the monotonic clock, absolute ones by the clock that the operation names.
    fn clock_of(operation: i32, kind: i32) -> libc::clockid_t {
        if kind == libc::FUTEX_WAIT_BITSET && operation & libc::FUTEX_CLOCK_REALTIME != 0 {
            libc::CLOCK_REALTIME
        } else {
            libc::CLOCK_MONOTONIC
        }
    }

    fn perform(&self, thread: &Thread, host_word: u64) -> SystemCallResult {
        let operation = match self.operation & libc::FUTEX_CLOCK_REALTIME {
            0 => libc::FUTEX_WAIT_BITSET,
            _ => libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME,
        };
        let clock = Self::clock_of(operation, libc::FUTEX_WAIT_BITSET);
        let mut looks = Self::LOOKS.into_iter();
        let mut pause = Self::LOOKS[0];
        let mut has_looked = false;
        loop {
            pause = looks.next().unwrap_or(pause);
            let look = later(now_of(clock), pause);
            let is_last = self.until.is_some_and(|until| until <= look);
            let until = if is_last { self.until.unwrap_or(look) } else { look };
            let arguments = [
                host_word,
                operation as u64,
                self.value,
                &raw const until as u64,
                0,
                self.mask,
            ];
            let result = thread.host_blocking(libc::SYS_futex, arguments);
            match result {
                Err(Unfinished::Error(Errno(libc::ETIMEDOUT))) => {}
                // Only of the first look is "before" true.
                Err(Unfinished::RestartAlways) if has_looked => return Err(Unfinished::Restart),
                other => return other,
            }
            if has_ended(self.owner) {
                orphan(&thread.process.memory, self.word, self.owner)?;
                return fail(libc::EAGAIN);
            }
            if is_last {
                return result;
            }
            has_looked = true;
        }
    }
}

fn now_of(clock: libc::clockid_t) -> [i64; 2] {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes `now`.
    unsafe { libc::clock_gettime(clock, &mut now) };
    [now.tv_sec, now.tv_nsec]
}

/// A time some nanoseconds later.
fn later([seconds, nanoseconds]: [i64; 2], by: i64) -> [i64; 2] {
    const SECOND: i64 = 1_000_000_000;
    let nanoseconds = nanoseconds.saturating_add(by);
    [seconds.saturating_add(nanoseconds / SECOND), nanoseconds % SECOND]
}

/// Whether a thread of the host has ended, waited for or not.
fn has_ended(thread: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{thread}/stat")) {
        Ok(text) => text
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// `struct futex_waitv`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Waiter {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

/// `futex_waitv(waiters, count, flags, timeout, clock)`.
pub fn futex_waitv(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    const MOST: u64 = 128;
    let [waiters, count, flags, timeout, clock, _] = *arguments;
    if count > MOST {
        return fail(libc::EINVAL);
    }
    let memory = &thread.process.memory;
    let mut waiters: Vec<Waiter> = memory.read_array(waiters, count as usize)?;
    for waiter in &mut waiters {
        waiter.address = memory.pointer(waiter.address)?;
    }
    let timeout = memory.pointer(timeout)?;
    let waiters = waiters.as_ptr() as u64;
    thread.host_blocking(libc::SYS_futex_waitv, [waiters, count, flags, timeout, clock, 0])
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

/// The bits of a robust mutex's word that are its owner's number.
const OWNER: u32 = 0x3fff_ffff;
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
