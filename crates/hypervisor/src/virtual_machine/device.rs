//! The block device and the network interface of a virtual machine: their part of a request.
//!
//! Whichever way a request came, the core that took it only checks it and hands it to the device, which is a zero-wait
//! thread of the [sidecores' program](crate::host::sidecores) with a queue of [`QUEUE_MAX`] requests. The device
//! serves one after the other, reaches guest memory itself, and answers each when it is done. It takes no core's time.

use sidestep_ia64::PhysicalAddress;

use super::VirtualMachine;
use super::service::{CACHE_LINE, Packet, SECTOR, TRANSFER_MAX};
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::sidecall::request::{Answer, DeviceRequest, Refusal, Transfer};

/// How many requests a device has at most, the one in work included; further ones are refused as
/// [`Full`](Refusal::Full).
pub const QUEUE_MAX: usize = 32;
/// The largest packet in bytes.
pub const PACKET_MAX: u64 = 1 << 16;
/// How many packets wait at most for one virtual machine, at the sender and at the receiver each.
const PACKETS_MAX: usize = 256;
/// How many packets of one sender wait at most for all receivers together.
const SENT_MAX: usize = 4 * PACKETS_MAX;

/// A device of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The block device.
    Block,
    /// The network interface.
    Network,
}

impl DeviceKind {
    /// Every device that a virtual machine has.
    pub const ALL: [DeviceKind; 2] = [DeviceKind::Block, DeviceKind::Network];

    /// The device that serves a request.
    pub fn of(request: &DeviceRequest) -> DeviceKind {
        match request {
            DeviceRequest::ReadBlock(_) | DeviceRequest::WriteBlock(_) => DeviceKind::Block,
            DeviceRequest::Send { .. } | DeviceRequest::Receive { .. } => DeviceKind::Network,
        }
    }

    /// The device in reports.
    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Block => "block device",
            DeviceKind::Network => "network interface",
        }
    }
}

impl VirtualMachine {
    /// How long a device works on a request: what the table says of it, and a cache line's time for each that it moves.
    ///
    /// # Errors
    /// A request that the device refuses at sight.
    pub fn device_cycles(
        &self,
        costs: &HostCosts,
        request: &DeviceRequest,
        time: Cycle,
    ) -> Result<u64, Refusal> {
        let lines = |bytes: u64| bytes.div_ceil(CACHE_LINE) * costs.cycles(Cost::CacheLine);
        match request {
            DeviceRequest::ReadBlock(transfer) | DeviceRequest::WriteBlock(transfer) => {
                let bytes = self.range(transfer)?.len() as u64;
                if !self.shared.memory.holds(transfer.address, bytes) {
                    return Err(Refusal::BadAddress);
                }
                Ok(costs.cycles(Cost::BlockDevice) + lines(bytes))
            }
            DeviceRequest::Send { size, .. } if *size > PACKET_MAX => Err(Refusal::BadArgument),
            DeviceRequest::Send { size, .. } => Ok(lines(*size)),
            DeviceRequest::Receive { .. } => Ok(self
                .arrived(time)
                .map_or(0, |packet| lines(packet.bytes.len() as u64))),
        }
    }

    /// Does what a device does for a request; it is done at `time`.
    pub fn transfer(&mut self, costs: &HostCosts, request: &DeviceRequest, time: Cycle) -> Answer {
        match *request {
            DeviceRequest::ReadBlock(transfer) => {
                let range = self.range(&transfer)?;
                let written = self.shared.memory.write(transfer.address, &self.disk[range]);
                written.map(|()| 0).map_err(|_| Refusal::BadAddress)
            }
            DeviceRequest::WriteBlock(transfer) => {
                let range = self.range(&transfer)?;
                let read = (self.shared.memory).read(transfer.address, &mut self.disk[range]);
                read.map(|()| 0).map_err(|_| Refusal::BadAddress)
            }
            DeviceRequest::Send { to, address, size } => {
                self.send(to, address, size, time + costs.cycles(Cost::Network))
            }
            DeviceRequest::Receive { address, size_max } => self.receive(address, size_max, time),
        }
    }

    /// The bytes of the disk that a request names.
    fn range(&self, transfer: &Transfer) -> Result<std::ops::Range<usize>, Refusal> {
        let size = (transfer.sectors)
            .checked_mul(SECTOR)
            .filter(|size| *size <= TRANSFER_MAX)
            .ok_or(Refusal::BadArgument)?;
        let start = (transfer.sector)
            .checked_mul(SECTOR)
            .ok_or(Refusal::BadArgument)?;
        let end = start.checked_add(size).ok_or(Refusal::BadArgument)?;
        if end > self.disk.len() as u64 {
            return Err(Refusal::BadArgument);
        }
        Ok(start as usize..end as usize)
    }

    fn send(&mut self, to: u64, address: PhysicalAddress, size: u64, arrival: Cycle) -> Answer {
        let waiting = self.sent.iter().filter(|packet| packet.to == to).count();
        if waiting >= PACKETS_MAX || self.sent.len() >= SENT_MAX {
            return Err(Refusal::Full);
        }
        let mut bytes = vec![0; size.min(PACKET_MAX) as usize];
        let read = self.shared.memory.read(address, &mut bytes);
        read.map_err(|_| Refusal::BadAddress)?;
        self.sent.push(Packet {
            to,
            bytes,
            time: arrival,
        });
        Ok(0)
    }

    /// The next packet, if it has arrived by `time`.
    fn arrived(&self, time: Cycle) -> Option<&Packet> {
        self.received.front().filter(|packet| packet.time <= time)
    }

    fn receive(&mut self, address: PhysicalAddress, size_max: u64, time: Cycle) -> Answer {
        let packet = self.arrived(time).ok_or(Refusal::Empty)?;
        let size = packet.bytes.len() as u64;
        if size > size_max {
            return Err(Refusal::BadArgument);
        }
        let written = (self.shared.memory).write(address, &packet.bytes);
        written.map_err(|_| Refusal::BadAddress)?;
        self.received.pop_front();
        Ok(size)
    }

    /// Takes the packets that it sent.
    pub fn take_sent(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.sent)
    }

    /// Takes back packets that their receivers have no room for: until they have, the sender's next ones are refused.
    pub fn keep_sent(&mut self, packet: Packet) {
        self.sent.push(packet);
    }

    /// Hands it a packet; gives it back if too many wait. To a virtual machine that has ended every packet can go.
    pub fn deliver(&mut self, packet: Packet) -> Option<Packet> {
        if self.exit_code().is_some() {
            return None;
        }
        if self.received.len() >= PACKETS_MAX {
            return Some(packet);
        }
        let place = self
            .received
            .partition_point(|earlier| earlier.time <= packet.time);
        self.received.insert(place, packet);
        None
    }
}
