//! What a VMM and a watcher say to each other on a stream socket: JSON, one object a line.
//!
//! The VMM begins with one [`Hello`], with the userfaultfd beside its first byte (`SCM_RIGHTS`). After that only the
//! watcher speaks: [`Request`]s, at least every [`PATIENCE`](super::PATIENCE). Who is at the other end both ask the
//! kernel (`SO_PEERCRED`) and not each other.

use std::io::{BufRead, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// Longer lines are no hello and no request.
const LINE_MOST: u64 = 1 << 20;

/// A part of a guest's memory, as the VMM has it mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestRegion {
    /// Where it begins in the VMM.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// The bytes that fault together: 4096, or the size of the huge pages of its file.
    pub page_size: u64,
}

/// What a VMM tells of its guest's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the protocol.
    pub sidestep_guest_memory: u32,
    /// All regions that are registered with the userfaultfd.
    pub regions: Vec<GuestRegion>,
}

/// What a watcher says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// That it is there.
    Alive,
    /// That touching these bytes of a region, whole pages, is to fault again.
    FaultAgain {
        /// Where they begin in the VMM.
        address: u64,
        /// How many they are.
        size: u64,
    },
}

impl GuestRegion {
    /// Whether these bytes are whole pages of it.
    pub fn holds(&self, address: u64, size: u64) -> bool {
        let Some(from) = address.checked_sub(self.address) else {
            return false;
        };
        let is_whole = from.is_multiple_of(self.page_size) && size.is_multiple_of(self.page_size);
        is_whole && size > 0 && size <= self.size && from <= self.size - size
    }

    /// The page that an address is in; `None` if it is not in the region.
    pub fn page_of(&self, address: u64) -> Option<u64> {
        let is_within = (self.address..self.address + self.size).contains(&address);
        is_within.then_some(address & !(self.page_size - 1))
    }
}

/// What is wrong with some regions, if anything is.
pub(super) fn fault_of(regions: &[GuestRegion]) -> Option<String> {
    if regions.is_empty() {
        return Some("no region; expected at least one".to_owned());
    }
    let mut ranges = Vec::new();
    for (number, region) in regions.iter().enumerate() {
        let GuestRegion {
            address,
            size,
            page_size,
        } = *region;
        if page_size < 4096 || !page_size.is_power_of_two() {
            return Some(format!(
                "region {number}: pages of {page_size} bytes; expected a power of two from 4096 on"
            ));
        }
        if size == 0 || !size.is_multiple_of(page_size) || !address.is_multiple_of(page_size) {
            return Some(format!(
                "region {number}: {size} bytes at {address:#x}; expected whole pages of {page_size} bytes"
            ));
        }
        let Some(end) = address.checked_add(size) else {
            return Some(format!("region {number} ends beyond the last address"));
        };
        ranges.push((address, end, number));
    }
    ranges.sort_unstable();
    let overlap = ranges.windows(2).find(|pair| pair[1].0 < pair[0].1)?;
    Some(format!("regions {} and {} overlap", overlap[0].2, overlap[1].2))
}

impl Hello {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(line: &str) -> Result<Self, String> {
        let hello: Self = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if hello.sidestep_guest_memory != VERSION {
            return Err(format!(
                "version {} of the protocol, expected {VERSION}",
                hello.sidestep_guest_memory
            ));
        }
        fault_of(&hello.regions).map_or(Ok(hello), Err)
    }
}

/// Sends the hello and the descriptor.
pub(super) fn send_hello(
    stream: &mut UnixStream,
    hello: &Hello,
    descriptor: BorrowedFd<'_>,
) -> std::io::Result<()> {
    let text = line_of(hello);
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let fits = beside.push(SendAncillaryMessage::ScmRights(&descriptors));
    assert!(fits, "the space is for one descriptor");
    let sent = sendmsg(
        &*stream,
        &[IoSlice::new(text.as_bytes())],
        &mut beside,
        SendFlags::NOSIGNAL,
    )?;
    stream.write_all(&text.as_bytes()[sent..])
}

/// Receives the hello's line and what came beside it.
pub(super) fn receive_hello(stream: &mut UnixStream) -> std::io::Result<(String, Option<OwnedFd>)> {
    let mut first = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        &*stream,
        &mut [IoSliceMut::new(&mut first)],
        &mut beside,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut descriptor = None;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            descriptor = descriptors.next();
        }
    }
    let mut bytes = first[..received.bytes].to_vec();
    if bytes.first().is_some_and(|&byte| byte != b'\n') {
        // Nothing follows the line, so nothing is lost with the buffer.
        std::io::BufReader::new(stream.take(LINE_MOST)).read_until(b'\n', &mut bytes)?;
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), descriptor))
}

/// A line of JSON.
pub(super) fn line_of(message: &impl Serialize) -> String {
    let mut text = serde_json::to_string(message).expect("a message has no keys that JSON lacks");
    text.push('\n');
    text
}

/// The requests in what has been received so far, which keeps what is not a whole line yet.
///
/// # Errors
/// What is wrong with the first line that is no request.
pub(super) fn take_requests(received: &mut Vec<u8>) -> Result<Vec<Request>, String> {
    let Some(end) = received.iter().rposition(|&byte| byte == b'\n') else {
        return match received.len() as u64 > LINE_MOST {
            true => Err(format!("a line of more than {LINE_MOST} bytes")),
            false => Ok(Vec::new()),
        };
    };
    let rest = received.split_off(end + 1);
    let lines = std::mem::replace(received, rest);
    let lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).map_err(|error| error.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::AsFd;

    const REGION: GuestRegion = GuestRegion {
        address: 0x10_0000,
        size: 0x4000,
        page_size: 4096,
    };

    #[test]
    fn a_descriptor_and_facts_arrive() {
        let (mut vmm, mut watcher) = UnixStream::pair().expect("a pair of sockets");
        let hello = Hello {
            sidestep_guest_memory: VERSION,
            regions: vec![REGION; 1],
        };
        let file = tempfile();
        send_hello(&mut vmm, &hello, file.as_fd()).expect("there is room for a line");
        let (line, descriptor) = receive_hello(&mut watcher).expect("a line was sent");
        assert_eq!(Hello::parse(&line), Ok(hello));
        assert!(descriptor.is_some());
        drop(vmm);
        let (line, descriptor) = receive_hello(&mut watcher).expect("an end is no error");
        assert!(line.is_empty() && descriptor.is_none());
    }

    fn tempfile() -> OwnedFd {
        rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("memory")
    }

    #[test]
    fn regions_hold_whole_pages_of_their_own() {
        assert!(REGION.holds(0x10_1000, 0x3000));
        for (address, size) in [
            (0x10_1000, 0x4000),
            (0xf_f000, 0x1000),
            (0x10_0800, 0x1000),
            (0x10_0000, 0),
        ] {
            assert!(!REGION.holds(address, size), "{size:#x} at {address:#x}");
        }
        assert_eq!(REGION.page_of(0x10_3fff), Some(0x10_3000));
        assert_eq!(REGION.page_of(0x10_4000), None);
    }

    #[test]
    fn malformed_hellos_are_named() {
        let with = |regions: &str| format!("{{\"sidestep_guest_memory\":1,\"regions\":[{regions}]}}");
        let region = |address: u64, size: u64, page: u64| {
            format!("{{\"address\":{address},\"size\":{size},\"page_size\":{page}}}")
        };
        for (text, expected) in [
            ("{}".to_owned(), "missing field"),
            (
                "{\"sidestep_guest_memory\":2,\"regions\":[]}".to_owned(),
                "version 2",
            ),
            (with(""), "no region"),
            (with(&region(4096, 4096, 100)), "power of two"),
            (with(&region(4096, 4097, 4096)), "whole pages"),
            (with(&region(u64::MAX - 4095, 8192, 4096)), "beyond the last"),
            (
                with(&[region(0, 8192, 4096), region(4096, 4096, 4096)].join(",")),
                "regions 0 and 1 overlap",
            ),
        ] {
            let error = Hello::parse(&text).expect_err("malformed");
            assert!(error.contains(expected), "{error} should say {expected}");
        }
    }

    #[test]
    fn requests_are_taken_line_by_line() {
        let again = Request::FaultAgain {
            address: 4096,
            size: 8192,
        };
        let text = line_of(&Request::Alive) + &line_of(&again);
        assert!(text.starts_with("{\"request\":\"alive\"}\n{\"request\":\"fault-again\",\"address\":4096"));
        let (first, rest) = text.as_bytes().split_at(30);
        let mut received = first.to_vec();
        assert_eq!(take_requests(&mut received), Ok(vec![Request::Alive]));
        received.extend_from_slice(rest);
        assert_eq!(take_requests(&mut received), Ok(vec![again]));
        assert!(received.is_empty());
        received.extend_from_slice(b"{\"request\":\"stop\"}\n");
        assert!(take_requests(&mut received).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(text) = std::str::from_utf8(&bytes) {
                let _ = Hello::parse(text);
            }
            let _ = take_requests(&mut bytes);
        }
    }
}
