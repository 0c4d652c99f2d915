//! `userfaultfd`: the host watches the guest's memory; addresses in its messages and requests are translated.
//!
//! The host's pages are smaller than the guest's: requests are held to the guest's, and a message names the guest's
//! page. Messages of changes of the memory (`UFFD_FEATURE_EVENT_*`) are not offered: the host would hold up the change,
//! with all threads, until somebody has read the message.

use super::{Arguments, SystemCallResult, fail};
use crate::host::Errno;
use crate::memory::window::{PAGE, page_floor};
use crate::thread::Thread;

/// The kind of all requests (`UFFDIO`).
pub const KIND: u64 = 0xaa;
/// Bytes of a message.
const MESSAGE: usize = 32;
/// The only kind of message there is without events: somebody lacks a page.
const PAGE_FAULT: u8 = 0x12;
/// Where a message has the address.
const MESSAGE_ADDRESS: usize = 16;
/// `UFFD_FEATURE_EVENT_FORK`, `_REMAP`, `_REMOVE` and `_UNMAP`.
const EVENTS: u64 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6;

/// What a request does to the memory beside bringing pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Nothing.
    None,
    /// Watches it.
    Begin,
    /// Watches it no more.
    End,
    /// Takes rights or pages from it.
    Take,
}

/// A request whose structure begins with addresses, followed by a length.
struct Request {
    number: u64,
    addresses: usize,
    change: Change,
}

const fn request(number: u64, addresses: usize, change: Change) -> Request {
    Request {
        number,
        addresses,
        change,
    }
}

/// The requests, by their number within the kind.
const REQUESTS: [Request; 9] = [
    request(0x00, 1, Change::Begin), // UFFDIO_REGISTER
    request(0x01, 1, Change::End),   // UFFDIO_UNREGISTER
    request(0x02, 1, Change::None),  // UFFDIO_WAKE
    request(0x03, 2, Change::None),  // UFFDIO_COPY
    request(0x04, 1, Change::None),  // UFFDIO_ZEROPAGE
    request(0x05, 2, Change::Take),  // UFFDIO_MOVE
    request(0x06, 1, Change::Take),  // UFFDIO_WRITEPROTECT
    request(0x07, 1, Change::None),  // UFFDIO_CONTINUE
    request(0x08, 1, Change::None),  // UFFDIO_POISON
];
/// `UFFDIO_API`: the handshake.
const HANDSHAKE: u64 = 0x3f;
/// Words of the longest structure.
const WORDS: usize = 6;

/// `userfaultfd(flags)`.
pub fn userfaultfd(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    thread.process.memory.note_watching();
    thread.host(libc::SYS_userfaultfd, [arguments[0], 0, 0, 0, 0, 0])
}

/// An `ioctl` of this kind.
pub fn control(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [descriptor, request, address, ..] = *arguments;
    let request = request & 0xffff_ffff;
    let size = (request >> 16 & 0x3fff) as usize;
    let number = request & 0xff;
    if size == 0 || size > 8 * WORDS || !size.is_multiple_of(8) {
        return fail(libc::EINVAL);
    }
    let memory = thread.process.memory.clone();
    memory.note_watching();
    let mut words = [0u64; WORDS];
    let given: Vec<u64> = memory.read_array(address, size / 8)?;
    words[..given.len()].copy_from_slice(&given);
    let on_host = |words: &mut [u64; WORDS]| {
        thread.host(
            libc::SYS_ioctl,
            [descriptor, request, words.as_mut_ptr() as u64, 0, 0, 0],
        )
    };
    let result = if number == HANDSHAKE {
        if words[1] & EVENTS != 0 {
            return fail(libc::EINVAL);
        }
        let result = on_host(&mut words);
        words[1] &= !EVENTS;
        result
    } else {
        let Some(request) = REQUESTS.iter().find(|row| row.number == number) else {
            return fail(libc::EINVAL);
        };
        let addresses = &given[..request.addresses.min(given.len())];
        let length = given.get(request.addresses).copied().unwrap_or(0);
        if addresses.iter().any(|at| !at.is_multiple_of(PAGE)) || !length.is_multiple_of(PAGE) {
            return fail(libc::EINVAL);
        }
        for (word, address) in words.iter_mut().zip(addresses) {
            *word = memory.host(*address, length).map_err(|_| Errno(libc::EINVAL))? as u64;
        }
        let range = addresses[0]..addresses[0] + length;
        let result = match request.change {
            Change::None => on_host(&mut words),
            Change::Begin => memory.watch(range, Some(true), || on_host(&mut words)),
            Change::End => memory.watch(range, Some(false), || on_host(&mut words)),
            Change::Take => memory.watch(range, None, || on_host(&mut words)),
        };
        words[..addresses.len()].copy_from_slice(addresses);
        result
    };
    memory.write_bytes(address, bytemuck::cast_slice(&words[..given.len()]))?;
    result
}

/// `read(descriptor, buffer, size)`: messages that this process watches memory by tell host addresses.
pub fn read(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let memory = &thread.process.memory;
    let [descriptor, buffer, size, ..] = *arguments;
    let host = memory.pointer(buffer)?;
    let length = thread.host_blocking(libc::SYS_read, [descriptor, host, size, 0, 0, 0])?;
    if !memory.knows_watching() || !(length as usize).is_multiple_of(MESSAGE) || !is_of_watching(descriptor) {
        return Ok(length);
    }
    let mut messages = vec![0u8; length as usize];
    memory.read_bytes(buffer, &mut messages)?;
    for message in messages.chunks_exact_mut(MESSAGE) {
        if message[0] == PAGE_FAULT {
            let at = &mut message[MESSAGE_ADDRESS..MESSAGE_ADDRESS + 8];
            let address = u64::from_le_bytes((&*at).try_into().expect("eight bytes"));
            if let Some(address) = memory.guest(address) {
                at.copy_from_slice(&page_floor(address).to_le_bytes());
            }
        }
    }
    memory.write_bytes(buffer, &messages)?;
    Ok(length)
}

/// Whether a descriptor is one that tells of missing pages.
fn is_of_watching(descriptor: u64) -> bool {
    std::fs::read_link(format!("/proc/self/fd/{}", descriptor as i32))
        .is_ok_and(|name| name.as_os_str() == "anon_inode:[userfaultfd]")
}
