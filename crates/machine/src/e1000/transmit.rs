//! From the driver's ring of descriptors to the cable (section 3.3 of the manual).

use serde::{Deserialize, Serialize};
use sidestep_ia64::PhysicalAddress;

use super::offload::{self, Checksum, Context, Wanted};
use super::registers::{at, bit, cause, statistic};
use super::{CHECKSUM_BYTES, DESCRIPTOR_BYTES, DESCRIPTORS_MAX, FRAME_BYTES_MIN, State, TAG_BYTES};
use crate::network::FRAME_BYTES_MAX;

/// The most bytes of a packet that is cut into segments, with its headers.
const PACKET_BYTES_MAX: usize = 68 << 10;

/// Bits of a descriptor's second half, in both of its formats.
mod command {
    pub const END: u64 = 1 << 24;
    pub const OWN_CHECKSUM: u64 = 1 << 26;
    pub const SEGMENT: u64 = 1 << 26;
    pub const REPORT: u64 = 1 << 27 | 1 << 28;
    pub const EXTENDED: u64 = 1 << 29;
    pub const TAG: u64 = 1 << 30;
}

/// Bits of a descriptor's second half that the adapter or the driver puts behind the command.
const DONE: u64 = 1 << 32;
const NETWORK_CHECKSUM: u64 = 1 << 40;
const TRANSPORT_CHECKSUM: u64 = 1 << 41;
/// Bits of a context's command.
const CONTEXT_IS_TCP: u64 = 1 << 24;
const CONTEXT_IS_VERSION_4: u64 = 1 << 25;

/// A packet whose descriptors have not all come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    bytes: Vec<u8>,
    wanted: Wanted,
    /// The tag of its virtual network.
    tag: Option<u16>,
    /// Whether a part of it could not be had.
    is_spoilt: bool,
    /// Whether its first descriptor has come.
    has_begun: bool,
}

impl Packet {
    /// Whether it is none that a driver could have made.
    pub fn is_sound(&self) -> bool {
        self.bytes.len() <= PACKET_BYTES_MAX
    }
}

impl State {
    /// Sends what is in the ring; says whether there is more.
    pub(super) fn transmit(&mut self) -> bool {
        let count = self.registers.get(at::TDLEN) / DESCRIPTOR_BYTES;
        let tail = self.registers.get(at::TDT);
        let mut reported = false;
        let mut sent = 0;
        while self.registers.has(at::TCTL, bit::TCTL_ENABLE) {
            let head = self.registers.get(at::TDH);
            if head >= count || tail >= count || head == tail || sent == DESCRIPTORS_MAX {
                break;
            }
            let ring = self.registers.address(at::TDBAL, at::TDBAH);
            let place = PhysicalAddress(ring.wrapping_add(u64::from(head * DESCRIPTOR_BYTES)));
            let mut halves = [0; 16];
            // Where no memory is, a real one stops as well.
            if self.memory.read_ram(place, &mut halves).is_err() {
                break;
            }
            let half = |at: usize| u64::from_le_bytes(halves[at..at + 8].try_into().expect("eight bytes"));
            let second = half(8);
            self.take(half(0), second);
            if second & command::REPORT != 0 {
                let done = (second | DONE).to_le_bytes();
                if self.memory.write_ram(place + 8, &done).is_err() {
                    break;
                }
                reported = true;
            }
            self.registers.set(at::TDH, (head + 1) % count);
            sent += 1;
        }
        let is_empty = self.registers.get(at::TDH) == tail;
        let mut causes = if reported { cause::TRANSMITTED } else { 0 };
        if sent > 0 && is_empty {
            causes |= cause::TRANSMIT_EMPTY;
        }
        self.raise(causes);
        sent == DESCRIPTORS_MAX && !is_empty
    }

    /// Takes a descriptor.
    fn take(&mut self, first: u64, second: u64) {
        const CONTEXT: u64 = 0;
        const DATA: u64 = 1;
        if second & command::EXTENDED == 0 {
            return self.take_data(first, second & 0xffff, second);
        }
        match second >> 20 & 0xf {
            CONTEXT => {
                let segments = second & command::SEGMENT != 0;
                self.contexts[usize::from(segments)] = context(first, second);
            }
            DATA => self.take_data(first, second & 0xf_ffff, second),
            _ => {}
        }
    }

    /// Takes `bytes` of a packet at an address.
    fn take_data(&mut self, address: u64, bytes: u64, second: u64) {
        let packet = &mut self.packet;
        if !packet.has_begun {
            packet.has_begun = true;
            packet.wanted = wanted(second);
        }
        let bytes = bytes as usize;
        let start = packet.bytes.len();
        if packet.is_spoilt || start + bytes > PACKET_BYTES_MAX {
            packet.is_spoilt = true;
        } else {
            packet.bytes.resize(start + bytes, 0);
            let read = self
                .memory
                .read_ram(PhysicalAddress(address), &mut packet.bytes[start..]);
            packet.is_spoilt = read.is_err();
        }
        if second & command::END != 0 {
            let mut packet = std::mem::take(&mut self.packet);
            packet.tag = (second & command::TAG != 0).then_some((second >> 48) as u16);
            self.send(packet);
        }
    }

    fn send(&mut self, packet: Packet) {
        if packet.is_spoilt {
            return;
        }
        let context = self.contexts[usize::from(packet.wanted.segments)];
        if packet.wanted.segments {
            self.registers.count(statistic::SEGMENTED);
        }
        for frame in offload::frames(packet.bytes, &context, packet.wanted) {
            self.send_frame(frame, packet.tag);
        }
    }

    /// Puts a frame on the cable; one that is no frame of Ethernet's is lost.
    fn send_frame(&mut self, mut frame: Vec<u8>, tag: Option<u16>) {
        const ADDRESSES_BYTES: usize = 12;
        let mut most = FRAME_BYTES_MAX;
        if let Some(tag) = tag.filter(|_| frame.len() >= ADDRESSES_BYTES) {
            let kind = self.registers.get(at::VET) as u16;
            let inserted = [kind.to_be_bytes(), tag.to_be_bytes()].concat();
            frame.splice(ADDRESSES_BYTES..ADDRESSES_BYTES, inserted);
            most += TAG_BYTES;
        }
        if self.registers.has(at::TCTL, bit::TCTL_PAD) && frame.len() < FRAME_BYTES_MIN {
            frame.resize(FRAME_BYTES_MIN, 0);
        }
        if frame.len() < ADDRESSES_BYTES || frame.len() > most {
            return;
        }
        self.count_transmitted(&frame);
        self.link.send(&frame);
    }

    fn count_transmitted(&mut self, frame: &[u8]) {
        let bytes = frame.len() + CHECKSUM_BYTES;
        let registers = &mut self.registers;
        registers.count(statistic::TRANSMITTED);
        registers.count(statistic::TOTAL_TRANSMITTED);
        registers.count(statistic::TRANSMITTED_BY_SIZE + super::size_class(bytes));
        registers.count_bytes(statistic::TRANSMITTED_BYTES, bytes as u64);
        registers.count_bytes(statistic::TOTAL_TRANSMITTED_BYTES, bytes as u64);
        match super::Destination::of(frame) {
            super::Destination::Broadcast => registers.count(statistic::TRANSMITTED_BROADCAST),
            super::Destination::Multicast => registers.count(statistic::TRANSMITTED_MULTICAST),
            super::Destination::Unicast => {}
        }
    }
}

/// What a packet's first descriptor wants.
fn wanted(second: u64) -> Wanted {
    if second & command::EXTENDED != 0 {
        return Wanted {
            segments: second & command::SEGMENT != 0,
            network: second & NETWORK_CHECKSUM != 0,
            transport: second & TRANSPORT_CHECKSUM != 0,
            own: None,
        };
    }
    let own = (second & command::OWN_CHECKSUM != 0).then_some(Checksum {
        start: (second >> 40) as u8,
        at: (second >> 16) as u8,
        last: 0,
    });
    Wanted {
        own,
        ..Wanted::default()
    }
}

fn context(first: u64, second: u64) -> Context {
    let checksum = |from: u64| Checksum {
        start: from as u8,
        at: (from >> 8) as u8,
        last: (from >> 16) as u16,
    };
    Context {
        network: checksum(first),
        transport: checksum(first >> 32),
        is_version_4: second & CONTEXT_IS_VERSION_4 != 0,
        is_tcp: second & CONTEXT_IS_TCP != 0,
        header_bytes: (second >> 40) as u8,
        payload_bytes: (second & 0xf_ffff) as u32,
        segment_bytes: (second >> 48) as u16,
    }
}
