//! From the cable to the driver's ring of descriptors (section 3.2 of the manual).

use sidestep_ia64::PhysicalAddress;

use super::registers::{ADDRESSES, HASHES, at, bit, cause, statistic};
use super::{
    CHECKSUM_BYTES, DESCRIPTOR_BYTES, DESCRIPTORS_MAX, Destination, FRAME_BYTES_MIN, State, TAG_BYTES,
    offload,
};
use crate::virtio::network::HardwareAddress;

/// The status of a descriptor: done, the end of its frame, checksums are not looked at, a tag was taken out.
const DONE: u8 = 1 << 0;
const END: u8 = 1 << 1;
const IGNORE_CHECKSUM: u8 = 1 << 2;
const TAGGED: u8 = 1 << 3;

/// Where a frame's tag is.
const TAG: std::ops::Range<usize> = 12..12 + TAG_BYTES;

impl State {
    /// Hands the driver what has come, as far as it has room; says whether there is more.
    pub(super) fn receive(&mut self) -> bool {
        let mut received = 0;
        while self.registers.has(at::RCTL, bit::RCTL_ENABLE) {
            if received == DESCRIPTORS_MAX {
                return true;
            }
            let was_held = self.held.is_some();
            let Some(frame) = self.held.take().or_else(|| self.link.receive()) else {
                return false;
            };
            received += 1;
            if !self.is_wanted(&frame) {
                continue;
            }
            if let Err(frame) = self.deliver(frame) {
                // It waits as in the adapter's memory; the driver learns of it once.
                if !was_held {
                    self.registers.count(statistic::NO_BUFFER);
                    self.raise(cause::RECEIVE_OVERRUN);
                }
                self.held = Some(frame);
                return false;
            }
        }
        false
    }

    /// Whether the driver wants frames for this address, or from this virtual network.
    fn is_wanted(&self, frame: &[u8]) -> bool {
        let Some(address) = frame.first_chunk() else {
            return false;
        };
        let has = |bit| self.registers.has(at::RCTL, bit);
        let by_address = match Destination::of(frame) {
            Destination::Broadcast => has(bit::RCTL_BROADCAST),
            Destination::Multicast => has(bit::RCTL_ALL_MULTICAST) || self.has_hash(address),
            Destination::Unicast => has(bit::RCTL_ALL_UNICAST),
        };
        (by_address || self.has_address(address)) && self.has_virtual_network(frame)
    }

    fn has_address(&self, address: &HardwareAddress) -> bool {
        let low = u32::from_le_bytes([address[0], address[1], address[2], address[3]]);
        let high = u32::from(u16::from_le_bytes([address[4], address[5]])) | bit::RAH_VALID;
        (0..ADDRESSES).any(|pair| {
            let is_low = self.registers.get(at::RAL + 8 * pair) == low;
            is_low && self.registers.get(at::RAH + 8 * pair) & (bit::RAH_VALID | 0xffff) == high
        })
    }

    /// Whether the table has the bit of a multicast address: 12 of its highest bits, the driver says which.
    fn has_hash(&self, address: &HardwareAddress) -> bool {
        let shift = [4, 3, 2, 0][(self.registers.get(at::RCTL) >> 12 & 3) as usize];
        let hash = u32::from(u16::from_le_bytes([address[4], address[5]])) >> shift & 0xfff;
        let word = self.registers.get(at::MTA + 4 * (hash / 32 % HASHES));
        word >> (hash % 32) & 1 != 0
    }

    fn has_virtual_network(&self, frame: &[u8]) -> bool {
        let Some(tag) = self
            .tag(frame)
            .filter(|_| self.registers.has(at::RCTL, bit::RCTL_VLAN_FILTER))
        else {
            return true;
        };
        let network = u32::from(tag & 0xfff);
        self.registers.get(at::VFTA + 4 * (network / 32)) >> (network % 32) & 1 != 0
    }

    fn tag(&self, frame: &[u8]) -> Option<u16> {
        let tag = frame.get(TAG)?;
        let kind = u16::from_be_bytes([tag[0], tag[1]]);
        let is_tagged = u32::from(kind) == self.registers.get(at::VET);
        is_tagged.then_some(u16::from_be_bytes([tag[2], tag[3]]))
    }

    /// Bytes of a buffer.
    fn buffer_bytes(&self) -> usize {
        let control = self.registers.get(at::RCTL);
        let small = 2048 >> (control >> 16 & 3);
        match control & bit::RCTL_LARGE_BUFFERS {
            0 => small,
            _ => 16 * small.min(1024),
        }
    }

    /// Puts a frame into the ring; hands it back if there is no room now, and loses it if there never is.
    fn deliver(&mut self, frame: Vec<u8>) -> Result<(), Vec<u8>> {
        let count = self.registers.get(at::RDLEN) / DESCRIPTOR_BYTES;
        let (head, tail) = (self.registers.get(at::RDH), self.registers.get(at::RDT));
        let size = self.buffer_bytes();
        let most_bytes = frame.len().max(FRAME_BYTES_MIN) + CHECKSUM_BYTES;
        let needed = most_bytes.div_ceil(size) as u32;
        if head >= count || tail >= count || needed >= count {
            self.registers.count(statistic::MISSED);
            return Ok(());
        }
        let free = (tail + count - head) % count;
        if needed > free {
            return Err(frame);
        }
        self.count_received(&frame);
        let (bytes, tag) = self.bytes(frame);
        let sum = offload::sum(&bytes[(self.registers.get(at::RXCSUM) as usize & 0xff).min(bytes.len())..]);
        let pieces = bytes.chunks(size);
        let last = pieces.len() - 1;
        for (number, piece) in pieces.enumerate() {
            let head = self.registers.get(at::RDH);
            let mut status = DONE;
            if number == last {
                status |= END | IGNORE_CHECKSUM | if tag.is_some() { TAGGED } else { 0 };
            }
            let [sum, tag] = if number == last {
                [sum, tag.unwrap_or(0)]
            } else {
                [0; 2]
            };
            self.fill(head, piece, [sum, u16::from(status), tag]);
            self.registers.set(at::RDH, (head + 1) % count);
        }
        let used = last as u32 + 1;
        let threshold = count >> (1 + (self.registers.get(at::RCTL) >> 8 & 3));
        let is_low = free - used <= threshold;
        self.raise(cause::RECEIVED | if is_low { cause::RECEIVE_LOW } else { 0 });
        Ok(())
    }

    /// Fills the buffer of a descriptor and says so in it: with a sum, a status and a tag. What is for no memory is
    /// lost.
    fn fill(&self, descriptor: u32, bytes: &[u8], [sum, status, tag]: [u16; 3]) {
        let ring = self.registers.address(at::RDBAL, at::RDBAH);
        let place = PhysicalAddress(ring.wrapping_add(u64::from(descriptor * DESCRIPTOR_BYTES)));
        let mut address = [0; 8];
        if self.memory.read_ram(place, &mut address).is_err() {
            return;
        }
        let buffer = PhysicalAddress(u64::from_le_bytes(address));
        let written = [bytes.len() as u16, sum, status, tag].map(u16::to_le_bytes);
        for (place, bytes) in [(buffer, bytes), (place + 8, written.as_flattened())] {
            // A buffer that is no memory is the driver's own mistake, and its loss.
            let _ = self.memory.write_ram(place, bytes);
        }
    }

    /// What goes into the buffers: the frame without its tag and with its checksum, as the driver has asked for.
    fn bytes(&self, mut frame: Vec<u8>) -> (Vec<u8>, Option<u16>) {
        let tag = self
            .tag(&frame)
            .filter(|_| self.registers.has(at::CTRL, bit::CTRL_VLAN));
        if tag.is_some() {
            frame.drain(TAG);
        }
        if frame.len() < FRAME_BYTES_MIN {
            frame.resize(FRAME_BYTES_MIN, 0);
        }
        if !self.registers.has(at::RCTL, bit::RCTL_STRIP_CHECKSUM) {
            frame.extend(crc32fast::hash(&frame).to_le_bytes());
        }
        (frame, tag)
    }

    fn count_received(&mut self, frame: &[u8]) {
        let bytes = frame.len().max(FRAME_BYTES_MIN) + CHECKSUM_BYTES;
        let registers = &mut self.registers;
        registers.count(statistic::RECEIVED);
        registers.count(statistic::TOTAL_RECEIVED);
        registers.count(statistic::RECEIVED_BY_SIZE + super::size_class(bytes));
        registers.count_bytes(statistic::RECEIVED_BYTES, bytes as u64);
        registers.count_bytes(statistic::TOTAL_RECEIVED_BYTES, bytes as u64);
        match Destination::of(frame) {
            Destination::Broadcast => registers.count(statistic::RECEIVED_BROADCAST),
            Destination::Multicast => registers.count(statistic::RECEIVED_MULTICAST),
            Destination::Unicast => {}
        }
    }
}
