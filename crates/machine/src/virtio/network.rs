//! The network device: frames between a driver and a [`Link`] (section 5.1).
//!
//! Queue 0 receives, queue 1 transmits. No offloads: every frame is complete, with its checksums.

use super::VirtioDevice;
use super::facilities::FEATURE_VERSION_1;
use super::request::{Request, RequestError};
use crate::network::{FRAME_BYTES_MAX, Link};

const RECEIVE: usize = 0;
const QUEUE_SIZE: u16 = 256;
/// The header before each frame; zero but for the number of buffers.
pub const HEADER_BYTES: usize = 12;
/// Drivers of before version 1 have a header that ends before that number.
const LEGACY_HEADER_BYTES: usize = BUFFERS_OFFSET;
pub(super) const BUFFERS_OFFSET: usize = 10;

/// Features: the device says its address, and whether the link is up; it takes commands, and has several pairs of
/// queues.
pub(super) mod feature {
    pub const ADDRESS: u64 = 1 << 5;
    pub const STATUS: u64 = 1 << 16;
    pub const COMMANDS: u64 = 1 << 17;
    pub const PAIRS: u64 = 1 << 22;
}

pub(super) const LINK_UP: u16 = 1;

/// A hardware address.
pub type HardwareAddress = [u8; 6];

/// The device.
pub struct Network {
    link: Box<dyn Link>,
    configuration: [u8; 8],
    header_bytes: usize,
}

impl Network {
    /// With this address, at one end of a link.
    pub fn new(address: HardwareAddress, link: Box<dyn Link>) -> Network {
        let mut configuration = [0; 8];
        configuration[..6].copy_from_slice(&address);
        configuration[6..].copy_from_slice(&LINK_UP.to_le_bytes());
        Network {
            link,
            configuration,
            header_bytes: HEADER_BYTES,
        }
    }

    /// Hands the driver a frame; one that does not fit into its buffer is lost.
    fn receive(&mut self, request: &Request<'_>) -> Result<u32, RequestError> {
        let Some(room) = request.writable().checked_sub(self.header_bytes as u64) else {
            return Err(request.short());
        };
        let mut header = [0; HEADER_BYTES];
        header[BUFFERS_OFFSET] = 1;
        request.write(0, &header[..self.header_bytes]);
        let frame = self.link.receive().filter(|frame| frame.len() as u64 <= room);
        let frame = frame.unwrap_or_default();
        request.write(self.header_bytes as u64, &frame);
        Ok((self.header_bytes + frame.len()) as u32)
    }

    /// Takes a frame from the driver; one longer than Ethernet's is lost.
    fn transmit(&mut self, request: &Request<'_>) -> Result<u32, RequestError> {
        let Some(size) = request.readable().checked_sub(self.header_bytes as u64) else {
            return Err(request.short());
        };
        if size <= FRAME_BYTES_MAX as u64 {
            let mut frame = vec![0; size as usize];
            request.read(self.header_bytes as u64, &mut frame);
            self.link.send(&frame);
        }
        Ok(0)
    }
}

impl VirtioDevice for Network {
    fn identifier(&self) -> u32 {
        1
    }

    fn features(&self) -> u64 {
        feature::ADDRESS | feature::STATUS
    }

    fn queue_sizes(&self) -> &[u16] {
        &[QUEUE_SIZE, QUEUE_SIZE]
    }

    fn configuration(&self) -> &[u8] {
        &self.configuration
    }

    fn serve(&mut self, queue: usize, request: &Request<'_>) -> Result<u32, RequestError> {
        if queue == RECEIVE {
            self.receive(request)
        } else {
            self.transmit(request)
        }
    }

    fn takes(&mut self, queue: usize) -> bool {
        queue != RECEIVE || self.link.has_frame()
    }

    fn begin(&mut self, features: u64) {
        self.header_bytes = match features & FEATURE_VERSION_1 {
            0 => LEGACY_HEADER_BYTES,
            _ => HEADER_BYTES,
        };
    }

    fn poll_interval(&self) -> Option<u64> {
        Some(self.link.poll_interval())
    }

    fn poll(&mut self, now: u64) {
        self.link.advance(now);
    }
}
