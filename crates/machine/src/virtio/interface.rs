//! A network device whose frames somebody else carries, such as a card that every virtual machine has a part of
//! (section 5.1): pairs of queues, of which the driver says how many it uses.
//!
//! Queue `2 n` receives and queue `2 n + 1` transmits; with more pairs than one the last queue is for commands. No
//! offloads: every frame is complete, with its checksums.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use super::VirtioDevice;
use super::network::{HEADER_BYTES, HardwareAddress, LINK_UP, feature};
use super::request::{Request, RequestError};

/// The most pairs of queues.
pub const PAIRS_MAX: usize = 8;
/// Entries of each queue that carries frames.
pub const QUEUE_SIZE: u16 = 256;
const COMMANDS_SIZE: u16 = 16;

/// A command to use so many pairs: its class, and its number within that.
const USE_PAIRS: [u8; 2] = [4, 0];
const COMMAND_DONE: u8 = 0;
const COMMAND_FAILED: u8 = 1;

/// What stands before each frame that is received: nothing was offloaded, and it is in one buffer.
pub const HEADER: [u8; HEADER_BYTES] = {
    let mut header = [0; HEADER_BYTES];
    header[super::network::BUFFERS_OFFSET] = 1;
    header
};

/// The device.
pub struct Interface {
    configuration: [u8; 10],
    sizes: Vec<u16>,
    pairs: u16,
    used: Arc<AtomicU16>,
}

impl Interface {
    /// With this address and so many pairs of queues.
    ///
    /// # Panics
    /// If no device has so many.
    pub fn new(address: HardwareAddress, pairs: usize) -> Interface {
        assert!(
            (1..=PAIRS_MAX).contains(&pairs),
            "no device has {pairs} pairs of queues"
        );
        let mut configuration = [0; 10];
        configuration[..6].copy_from_slice(&address);
        configuration[6..8].copy_from_slice(&LINK_UP.to_le_bytes());
        configuration[8..].copy_from_slice(&(pairs as u16).to_le_bytes());
        let mut sizes = vec![QUEUE_SIZE; 2 * pairs];
        if pairs > 1 {
            sizes.push(COMMANDS_SIZE);
        }
        Interface {
            configuration,
            sizes,
            pairs: pairs as u16,
            used: Arc::new(AtomicU16::new(1)),
        }
    }

    /// How many pairs the driver uses; changes while it runs.
    pub fn used_pairs(&self) -> Arc<AtomicU16> {
        Arc::clone(&self.used)
    }

    /// Does what a command says.
    fn command(&self, request: &Request<'_>) -> u8 {
        let mut command = [0; 4];
        if request.readable() != command.len() as u64 {
            return COMMAND_FAILED;
        }
        request.read(0, &mut command);
        let [class, number, low, high] = command;
        let pairs = u16::from_le_bytes([low, high]);
        if [class, number] != USE_PAIRS || !(1..=self.pairs).contains(&pairs) {
            return COMMAND_FAILED;
        }
        self.used.store(pairs, Ordering::Relaxed);
        COMMAND_DONE
    }
}

impl VirtioDevice for Interface {
    fn identifier(&self) -> u32 {
        1
    }

    fn features(&self) -> u64 {
        feature::ADDRESS | feature::STATUS | self.features_together()
    }

    fn features_together(&self) -> u64 {
        if self.pairs > 1 {
            feature::COMMANDS | feature::PAIRS
        } else {
            0
        }
    }

    fn queue_sizes(&self) -> &[u16] {
        &self.sizes
    }

    fn configuration(&self) -> &[u8] {
        &self.configuration
    }

    fn is_carried(&self, queue: usize) -> bool {
        queue < 2 * usize::from(self.pairs)
    }

    fn serve(&mut self, _: usize, request: &Request<'_>) -> Result<u32, RequestError> {
        if request.writable() == 0 {
            return Err(request.short());
        }
        request.write(0, &[self.command(request)]);
        Ok(1)
    }

    fn reset(&mut self) {
        self.used.store(1, Ordering::Relaxed);
    }
}
