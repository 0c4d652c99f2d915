//! Waiting for descriptors: `epoll`, whose event is packed on x86-64 and not on ia64, and the calls that wait
//! with a signal mask of their own.

use bytemuck::{Pod, Zeroable};

use super::{Arguments, SystemCallResult, fail};
use crate::host::signals::{SignalSet, host_mask};
use crate::thread::Thread;

/// `struct epoll_event` of Linux/ia64.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
struct GuestEvent {
    events: u32,
    padding: u32,
    data: u64,
}

/// `epoll_ctl(epoll, operation, descriptor, event)`.
pub fn epoll_ctl(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [epoll, operation, descriptor, event, ..] = *arguments;
    let mut host = libc::epoll_event { events: 0, u64: 0 };
    if operation as i32 != libc::EPOLL_CTL_DEL {
        let event: GuestEvent = thread.process.memory.read(event)?;
        host = libc::epoll_event {
            events: event.events,
            u64: event.data,
        };
    }
    thread.host(
        libc::SYS_epoll_ctl,
        [epoll, operation, descriptor, &raw const host as u64, 0, 0],
    )
}

/// The most events fetched at once: as many as there can be descriptors by usual limits.
const MOST_EVENTS: usize = 1 << 20;

fn wait(
    thread: &mut Thread,
    events: u64,
    count: u64,
    call: impl FnOnce(&mut Thread, u64, u64) -> SystemCallResult,
) -> SystemCallResult {
    if count as i32 <= 0 {
        return fail(libc::EINVAL);
    }
    let count = (count as usize).min(MOST_EVENTS);
    let mut host = vec![libc::epoll_event { events: 0, u64: 0 }; count];
    let ready = call(thread, host.as_mut_ptr() as u64, count as u64)?;
    let ready: Vec<GuestEvent> = host[..ready as usize]
        .iter()
        .map(|event| GuestEvent {
            events: event.events,
            padding: 0,
            data: event.u64,
        })
        .collect();
    thread
        .process
        .memory
        .write_bytes(events, bytemuck::cast_slice(&ready))?;
    Ok(ready.len() as u64)
}

/// `epoll_wait(epoll, events, count, timeout)`.
pub fn epoll_wait(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [epoll, events, count, timeout, ..] = *arguments;
    wait(thread, events, count, |thread, host, count| {
        thread.host_blocking(libc::SYS_epoll_wait, [epoll, host, count, timeout, 0, 0])
    })
}

/// `epoll_pwait(epoll, events, count, timeout, mask, size)`.
pub fn epoll_pwait(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [epoll, events, count, timeout, mask, size] = *arguments;
    wait(thread, events, count, |thread, host, count| {
        thread.with_mask(mask, size, |thread, mask| {
            thread.host_blocking(libc::SYS_epoll_pwait, [epoll, host, count, timeout, mask, 8])
        })
    })
}

/// `epoll_pwait2(epoll, events, count, timeout, mask, size)`.
pub fn epoll_pwait2(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [epoll, events, count, timeout, mask, size] = *arguments;
    let timeout = thread.process.memory.pointer(timeout)?;
    wait(thread, events, count, |thread, host, count| {
        thread.with_mask(mask, size, |thread, mask| {
            thread.host_blocking(libc::SYS_epoll_pwait2, [epoll, host, count, timeout, mask, 8])
        })
    })
}

/// `ppoll(descriptors, count, timeout, mask, size)`.
pub fn ppoll(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [descriptors, count, timeout, mask, size, _] = *arguments;
    let descriptors = thread.process.memory.pointer(descriptors)?;
    let timeout = thread.process.memory.pointer(timeout)?;
    thread.with_mask(mask, size, |thread, mask| {
        thread.host_blocking(libc::SYS_ppoll, [descriptors, count, timeout, mask, 8, 0])
    })
}

/// `pselect6(count, read, write, except, timeout, {mask, size})`.
pub fn pselect6(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [count, sets @ .., timeout, pair] = *arguments;
    let memory = thread.process.memory.clone();
    let [mask, size]: [u64; 2] = memory.read_optional(pair)?.unwrap_or([0, 8]);
    let [read, write, except] = sets.map(|set| memory.pointer(set));
    let (read, write, except, timeout) = (read?, write?, except?, memory.pointer(timeout)?);
    thread.with_mask(mask, size, |thread, mask| {
        let pair = [mask, 8];
        thread.host_blocking(
            libc::SYS_pselect6,
            [count, read, write, except, timeout, &raw const pair as u64],
        )
    })
}

impl Thread {
    /// Makes a call that waits with another signal mask, which the guest gives by address (null for its own).
    ///
    /// If a signal ends the wait, delivery happens under that mask, and the handler returns to the old one.
    pub fn with_mask(
        &mut self,
        address: u64,
        size: u64,
        call: impl FnOnce(&mut Thread, u64) -> SystemCallResult,
    ) -> SystemCallResult {
        if address == 0 {
            return call(self, 0);
        }
        if size != size_of::<SignalSet>() as u64 {
            return fail(libc::EINVAL);
        }
        let mask: SignalSet = self.process.memory.read(address)?;
        let host = host_mask(mask);
        let result = call(self, &raw const host as u64);
        self.keep_mask_for_delivery(mask, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_not_packed() {
        assert_eq!(size_of::<GuestEvent>(), 16);
        assert_eq!(size_of::<libc::epoll_event>(), 12);
    }
}
