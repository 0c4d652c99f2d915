//! Socket calls that hold pointers, or that the host does not have.
//!
//! The address of a local socket is a path: in a program's own tree it is resolved there on the way in, and shown as
//! a path of that tree on the way out.

use bytemuck::{Pod, Zeroable};

use super::descriptors::fault_of;
use super::vectors::host_buffers;
use super::{Arguments, SystemCallResult, Unfinished, paths};
use crate::files::HostPath;
use crate::files::namespace::Last;
use crate::host::Errno;
use crate::thread::Thread;

/// `struct msghdr`: the same layout on both sides, with pointers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct MessageHeader {
    name: u64,
    name_length: u32,
    padding: u32,
    buffers: u64,
    buffers_count: u64,
    control: u64,
    control_length: u64,
    flags: u32,
    padding_end: u32,
}

/// `struct mmsghdr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct CountedMessage {
    header: MessageHeader,
    length: u32,
    padding: u32,
}

/// `struct ifconf`: how many bytes of addresses of interfaces are wanted, or there are, and where.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct InterfaceList {
    bytes: u32,
    padding: u32,
    place: u64,
}

/// `ioctl(descriptor, SIOCGIFCONF, list)`.
pub fn interfaces(thread: &mut Thread, descriptor: u64, list: u64) -> SystemCallResult {
    let memory = thread.process.memory.clone();
    let asked: InterfaceList = memory.read(list)?;
    let mut told = InterfaceList {
        place: memory.pointer(asked.place)?,
        ..asked
    };
    let request = [descriptor, libc::SIOCGIFCONF, &raw mut told as u64, 0, 0, 0];
    let result = thread.host(libc::SYS_ioctl, request)?;
    let place = asked.place;
    memory.write(list, &InterfaceList { place, ..told })?;
    Ok(result)
}

/// What a translated header points to.
struct Held {
    _buffers: Vec<[u64; 2]>,
    _name: Option<Address>,
}

/// A message header with host addresses, and what it points to.
fn translate(thread: &Thread, header: &MessageHeader, sends: bool) -> Result<(MessageHeader, Held), Errno> {
    let memory = &thread.process.memory;
    if header.buffers_count > 1024 {
        return Err(Errno(libc::EMSGSIZE));
    }
    let buffers = host_buffers(memory, header.buffers, header.buffers_count)?;
    let name = if sends {
        Address::of_guest(thread, header.name, u64::from(header.name_length), Use::Find)?
    } else {
        None
    };
    let translated = MessageHeader {
        name: match &name {
            Some(name) => name.bytes.as_ptr() as u64,
            None => memory.pointer(header.name)?,
        },
        name_length: name
            .as_ref()
            .map_or(header.name_length, |name| name.bytes.len() as u32),
        buffers: buffers.as_ptr() as u64,
        control: memory.pointer(header.control)?,
        ..*header
    };
    let held = Held {
        _buffers: buffers,
        _name: name,
    };
    Ok((translated, held))
}

/// Bytes before the path of a local address.
const FAMILY: usize = size_of::<libc::sa_family_t>();
/// The longest path of a local address, with its zero.
const LONGEST_PATH: usize = 108;

/// What a local address is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// To make a name.
    Make,
    /// To find a socket by its name.
    Find,
}

/// A local address as the host is told it, with the descriptor that its path leads through.
struct Address {
    bytes: Vec<u8>,
    _through: Option<HostPath>,
}

impl Address {
    fn new(path: &[u8], through: Option<HostPath>) -> Result<Address, Errno> {
        if path.len() >= LONGEST_PATH {
            return Err(Errno(libc::ENAMETOOLONG));
        }
        let mut bytes = (libc::AF_UNIX as libc::sa_family_t).to_le_bytes().to_vec();
        bytes.extend_from_slice(path);
        bytes.push(0);
        Ok(Address {
            bytes,
            _through: through,
        })
    }

    /// The address to use in the place of a guest's; none where the guest's stands.
    fn of_guest(thread: &Thread, address: u64, length: u64, usage: Use) -> Result<Option<Address>, Errno> {
        if address == 0 || thread.process.files.namespace().is_none() {
            return Ok(None);
        }
        let mut bytes = vec![0u8; (length as usize).min(FAMILY + LONGEST_PATH)];
        thread.process.memory.read_bytes(address, &mut bytes)?;
        let Some(path) = local_path(&bytes) else {
            return Ok(None);
        };
        let last = match usage {
            Use::Make => Last::Keep,
            Use::Find => Last::Follow,
        };
        let located = paths::locate(&thread.process.files, paths::CURRENT_FOLDER, path, last)?;
        // A name that is made is the socket's address for everybody: the folder's own path, not a descriptor's.
        let lasting = (usage == Use::Make).then(|| located.path.lasting()).flatten();
        match lasting.map(|path| Address::new(&path, None)) {
            Some(Ok(address)) => Ok(Some(address)),
            _ => {
                let path = located.path.as_c_str().to_bytes().to_vec();
                Address::new(&path, Some(located.path)).map(Some)
            }
        }
    }
}

/// The path of a local address that has one.
fn local_path(address: &[u8]) -> Option<&[u8]> {
    let (family, path) = address.split_at_checked(FAMILY)?;
    let is_local = family == (libc::AF_UNIX as libc::sa_family_t).to_le_bytes();
    let path = path.split(|byte| *byte == 0).next()?;
    (is_local && !path.is_empty()).then_some(path)
}

/// Shows an address that the host wrote as one of the program's tree: at `address`, of which the kernel used
/// `length` bytes and the guest has `room`. Answers its length.
fn show_address(thread: &Thread, address: u64, length: u32, room: u32) -> Result<u32, Errno> {
    let Some(namespace) = thread.process.files.namespace() else {
        return Ok(length);
    };
    if address == 0 || length > room {
        return Ok(length);
    }
    let memory = &thread.process.memory;
    let mut bytes = vec![0u8; length as usize];
    memory.read_bytes(address, &mut bytes)?;
    let Some(path) = local_path(&bytes).and_then(|path| namespace.guest_path(path)) else {
        return Ok(length);
    };
    let shown = Address::new(&path, None)?.bytes;
    memory.write_bytes(address, &shown[..shown.len().min(room as usize)])?;
    Ok(shown.len() as u32)
}

/// `bind(socket, address, length)`.
pub fn bind(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, address, length, ..] = *arguments;
    match Address::of_guest(thread, address, length, Use::Make)? {
        Some(host) => {
            let arguments = [
                socket,
                host.bytes.as_ptr() as u64,
                host.bytes.len() as u64,
                0,
                0,
                0,
            ];
            thread.host(libc::SYS_bind, arguments)
        }
        None => {
            let address = thread.process.memory.pointer(address)?;
            thread.host(libc::SYS_bind, [socket, address, length, 0, 0, 0])
        }
    }
}

/// `connect(socket, address, length)`.
pub fn connect(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, address, length, ..] = *arguments;
    let host = Address::of_guest(thread, address, length, Use::Find)?;
    let (address, length) = match &host {
        Some(host) => (host.bytes.as_ptr() as u64, host.bytes.len() as u64),
        None => (thread.process.memory.pointer(address)?, length),
    };
    thread.host_blocking(libc::SYS_connect, [socket, address, length, 0, 0, 0])
}

/// `sendto(socket, buffer, length, flags, address, length)`.
pub fn sendto(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, buffer, length, flags, address, address_length] = *arguments;
    let host = Address::of_guest(thread, address, address_length, Use::Find)?;
    let (address, address_length) = match &host {
        Some(host) => (host.bytes.as_ptr() as u64, host.bytes.len() as u64),
        None => (thread.process.memory.pointer(address)?, address_length),
    };
    let buffer = thread.process.memory.pointer(buffer)?;
    thread.host_blocking(
        libc::SYS_sendto,
        [socket, buffer, length, flags, address, address_length],
    )
}

/// Makes a call that writes an address and its length, and shows the address as one of the program's tree.
fn with_address(
    thread: &Thread,
    address: u64,
    length: u64,
    call: impl FnOnce(&Thread, u64, u64) -> SystemCallResult,
) -> SystemCallResult {
    let memory = &thread.process.memory;
    let room: Option<u32> = memory.read_optional(length)?;
    let result = call(thread, memory.pointer(address)?, memory.pointer(length)?)?;
    if let Some(room) = room
        && address != 0
    {
        let written: u32 = memory.read(length)?;
        let shown = show_address(thread, address, written, room)?;
        memory.write(length, &shown)?;
    }
    Ok(result)
}

/// `accept(socket, address, length)`.
pub fn accept(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, address, length, ..] = *arguments;
    accept4(thread, &[socket, address, length, 0, 0, 0])
}

/// `accept4(socket, address, length, flags)`.
pub fn accept4(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, address, length, flags, ..] = *arguments;
    with_address(thread, address, length, |thread, address, length| {
        thread.host_blocking(libc::SYS_accept4, [socket, address, length, flags, 0, 0])
    })
}

/// `getsockname(socket, address, length)`.
pub fn getsockname(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, address, length, ..] = *arguments;
    with_address(thread, address, length, |thread, address, length| {
        thread.host(libc::SYS_getsockname, [socket, address, length, 0, 0, 0])
    })
}

/// `getpeername(socket, address, length)`.
pub fn getpeername(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, address, length, ..] = *arguments;
    with_address(thread, address, length, |thread, address, length| {
        thread.host(libc::SYS_getpeername, [socket, address, length, 0, 0, 0])
    })
}

/// `recvfrom(socket, buffer, length, flags, address, length)`.
pub fn recvfrom(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, buffer, size, flags, address, length] = *arguments;
    let buffer = thread.process.memory.pointer(buffer)?;
    with_address(thread, address, length, |thread, address, length| {
        thread.host_blocking(libc::SYS_recvfrom, [socket, buffer, size, flags, address, length])
    })
}

/// `send(socket, buffer, length, flags)`.
pub fn send(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, buffer, length, flags, ..] = *arguments;
    let buffer = thread.process.memory.pointer(buffer)?;
    thread.host_blocking(libc::SYS_sendto, [socket, buffer, length, flags, 0, 0])
}

/// `recv(socket, buffer, length, flags)`.
pub fn recv(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, buffer, length, flags, ..] = *arguments;
    let buffer = thread.process.memory.pointer(buffer)?;
    thread.host_blocking(libc::SYS_recvfrom, [socket, buffer, length, flags, 0, 0])
}

/// `sendmsg(socket, message, flags)`.
pub fn sendmsg(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, message, flags, ..] = *arguments;
    let header = thread.process.memory.read::<MessageHeader>(message);
    let header = header.map_err(|fault| fault_of(socket, fault))?;
    let (header, _held) = translate(thread, &header, true)?;
    thread.host_blocking(
        libc::SYS_sendmsg,
        [socket, &raw const header as u64, flags, 0, 0, 0],
    )
}

/// `recvmsg(socket, message, flags)`.
pub fn recvmsg(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, message, flags, ..] = *arguments;
    let header = thread.process.memory.read::<MessageHeader>(message);
    let header = header.map_err(|fault| fault_of(socket, fault))?;
    let (mut received, _held) = translate(thread, &header, false)?;
    let length = thread.host_blocking(
        libc::SYS_recvmsg,
        [socket, &raw mut received as u64, flags, 0, 0, 0],
    )?;
    let shown = returned(thread, &header, &received)?;
    thread.process.memory.write(message, &shown)?;
    Ok(length)
}

/// The guest's header with what the kernel wrote into the translated one.
fn returned(
    thread: &Thread,
    header: &MessageHeader,
    received: &MessageHeader,
) -> Result<MessageHeader, Errno> {
    Ok(MessageHeader {
        name_length: show_address(thread, header.name, received.name_length, header.name_length)?,
        control_length: received.control_length,
        flags: received.flags,
        ..*header
    })
}

/// Translates an array of messages, passes it on, and writes the messages that were handled back.
fn several(
    thread: &mut Thread,
    socket: u64,
    (address, count): (u64, u64),
    call: impl FnOnce(&Thread, u64) -> SystemCallResult,
    receives: bool,
) -> SystemCallResult {
    let count = count.min(1024) as usize;
    let messages = thread.process.memory.read_array::<CountedMessage>(address, count);
    let messages = messages.map_err(|fault| fault_of(socket, fault))?;
    let mut translated = Vec::with_capacity(count);
    let mut held = Vec::with_capacity(count);
    for message in &messages {
        let (header, host) = translate(thread, &message.header, !receives)?;
        translated.push(CountedMessage { header, ..*message });
        held.push(host);
    }
    let done = call(thread, translated.as_mut_ptr() as u64)?;
    for (at, (message, host)) in messages.iter().zip(&translated).enumerate().take(done as usize) {
        let header = if receives {
            returned(thread, &message.header, &host.header)?
        } else {
            message.header
        };
        let message = CountedMessage {
            header,
            length: host.length,
            padding: 0,
        };
        thread
            .process
            .memory
            .write(address + (at * size_of::<CountedMessage>()) as u64, &message)?;
    }
    Ok(done)
}

/// `sendmmsg(socket, messages, count, flags)`.
pub fn sendmmsg(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, messages, count, flags, ..] = *arguments;
    let call = |thread: &Thread, host: u64| {
        thread.host_blocking(libc::SYS_sendmmsg, [socket, host, count.min(1024), flags, 0, 0])
    };
    several(thread, socket, (messages, count), call, false)
}

/// `recvmmsg(socket, messages, count, flags, timeout)`.
pub fn recvmmsg(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, messages, count, flags, timeout, _] = *arguments;
    let timeout = thread.process.memory.pointer(timeout)?;
    let call = |thread: &Thread, host: u64| {
        thread.host_blocking(
            libc::SYS_recvmmsg,
            [socket, host, count.min(1024), flags, timeout, 0],
        )
    };
    several(thread, socket, (messages, count), call, true)
}

/// `setsockopt(socket, level, option, value, length)`: a packet filter holds a pointer.
pub fn setsockopt(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, level, option, value, length, _] = *arguments;
    let memory = &thread.process.memory;
    let has_filter = level as i32 == libc::SOL_SOCKET
        && matches!(
            option as i32,
            libc::SO_ATTACH_FILTER | libc::SO_ATTACH_REUSEPORT_CBPF
        );
    if !has_filter {
        let value = memory.pointer(value)?;
        return thread.host(libc::SYS_setsockopt, [socket, level, option, value, length, 0]);
    }
    let [count, address]: [u64; 2] = memory.read(value)?;
    if length < 16 {
        return Err(Unfinished::Error(Errno(libc::EINVAL)));
    }
    let program = [count, memory.pointer(address)?];
    thread.host(
        libc::SYS_setsockopt,
        [socket, level, option, &raw const program as u64, 16, 0],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_headers_have_the_host_layout() {
        assert_eq!(size_of::<MessageHeader>(), size_of::<libc::msghdr>());
        assert_eq!(size_of::<CountedMessage>(), size_of::<libc::mmsghdr>());
        assert_eq!(
            std::mem::offset_of!(MessageHeader, flags),
            std::mem::offset_of!(libc::msghdr, msg_flags)
        );
    }
}
