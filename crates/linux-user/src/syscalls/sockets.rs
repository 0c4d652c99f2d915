//! Socket calls that hold pointers, or that the host does not have.

use bytemuck::{Pod, Zeroable};

use super::vectors::host_buffers;
use super::{Arguments, SystemCallResult, Unfinished};
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

/// A message header with host addresses, and the buffers it points to.
fn translate(thread: &Thread, header: &MessageHeader) -> Result<(MessageHeader, Vec<[u64; 2]>), Errno> {
    let memory = &thread.process.memory;
    if header.buffers_count > 1024 {
        return Err(Errno(libc::EMSGSIZE));
    }
    let buffers = host_buffers(memory, header.buffers, header.buffers_count)?;
    let translated = MessageHeader {
        name: memory.pointer(header.name)?,
        buffers: buffers.as_ptr() as u64,
        control: memory.pointer(header.control)?,
        ..*header
    };
    Ok((translated, buffers))
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
    let header: MessageHeader = thread.process.memory.read(message)?;
    let (header, _buffers) = translate(thread, &header)?;
    thread.host_blocking(
        libc::SYS_sendmsg,
        [socket, &raw const header as u64, flags, 0, 0, 0],
    )
}

/// `recvmsg(socket, message, flags)`.
pub fn recvmsg(thread: &mut Thread, arguments: &Arguments) -> SystemCallResult {
    let [socket, message, flags, ..] = *arguments;
    let header: MessageHeader = thread.process.memory.read(message)?;
    let (mut received, _buffers) = translate(thread, &header)?;
    let length = thread.host_blocking(
        libc::SYS_recvmsg,
        [socket, &raw mut received as u64, flags, 0, 0, 0],
    )?;
    thread
        .process
        .memory
        .write(message, &returned(&header, &received))?;
    Ok(length)
}

/// The guest's header with what the kernel wrote into the translated one.
fn returned(header: &MessageHeader, received: &MessageHeader) -> MessageHeader {
    MessageHeader {
        name_length: received.name_length,
        control_length: received.control_length,
        flags: received.flags,
        ..*header
    }
}

/// Translates an array of messages, passes it on, and writes the messages that were handled back.
fn several(
    thread: &mut Thread,
    address: u64,
    count: u64,
    call: impl FnOnce(&Thread, u64) -> SystemCallResult,
    receives: bool,
) -> SystemCallResult {
    let count = count.min(1024) as usize;
    let messages: Vec<CountedMessage> = thread.process.memory.read_array(address, count)?;
    let mut translated = Vec::with_capacity(count);
    let mut buffers = Vec::with_capacity(count);
    for message in &messages {
        let (header, host) = translate(thread, &message.header)?;
        translated.push(CountedMessage { header, ..*message });
        buffers.push(host);
    }
    let done = call(thread, translated.as_mut_ptr() as u64)?;
    for (at, (message, host)) in messages.iter().zip(&translated).enumerate().take(done as usize) {
        let header = if receives {
            returned(&message.header, &host.header)
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
    several(thread, messages, count, call, false)
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
    several(thread, messages, count, call, true)
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
