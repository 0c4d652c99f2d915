//! Virtio devices: what a paravirtual driver talks to.
//!
//! - [`facilities`]: status, features, queues and the work on them, whatever the transport; [`pci`] and [`mmio`]: the
//!   transports over PCI and by registers in memory.
//! - [`request`]: the buffers of one request, checked before a device sees them.
//! - [`block`], [`network`], [`folder`], [`console`] and [`entropy`]: the devices; each is a [`VirtioDevice`] and knows
//!   nothing of its transport. [`interface`] is a network device whose frames somebody else carries.
//!
//! A notification only schedules work on the machine's timeline; the work is done there, so the processor that
//! notified goes on. What the driver gets wrong (a chain that loops, a buffer that is not RAM) is counted, and the
//! device asks to be reset; a request that is well formed but impossible (a sector behind the end) is answered with
//! its own status. Everything follows Virtual I/O Device (VIRTIO) version 1.2, without packed rings; event indices are
//! there for queues that are carried. Transitional devices, on PCI, work for drivers of before version 1 too.

pub mod block;
pub mod console;
pub mod entropy;
pub mod facilities;
pub mod folder;
pub mod interface;
pub mod mmio;
pub mod network;
pub mod pci;
pub mod request;
#[cfg(test)]
mod tests;

use request::{Request, RequestError};

/// A kind of device behind a transport.
pub trait VirtioDevice: Send {
    /// The number of its kind (section 5).
    fn identifier(&self) -> u32;

    /// The features of its own that it offers, beside those of the transport.
    fn features(&self) -> u64;

    /// The most entries of each queue, powers of two.
    fn queue_sizes(&self) -> &[u16];

    /// Its configuration space, which drivers only read.
    fn configuration(&self) -> &[u8];

    /// Features of its own of which a driver takes all or none.
    fn features_together(&self) -> u64 {
        0
    }

    /// Whether somebody else carries what is in a queue: takes requests with
    /// [`Facilities::take`](facilities::Facilities::take) and answers them, in place of [`serve`](Self::serve).
    fn is_carried(&self, queue: usize) -> bool {
        let _ = queue;
        false
    }

    /// Serves a request from queue `queue` and says how many bytes of its writable buffers were written.
    ///
    /// # Errors
    /// If the request is not one of this device at all; nobody is answered then and the device must be reset.
    fn serve(&mut self, queue: usize, request: &Request<'_>) -> Result<u32, RequestError>;

    /// Whether it takes a request from this queue now: not, if that waits for what has not come yet.
    fn takes(&mut self, queue: usize) -> bool {
        let _ = queue;
        true
    }

    /// After how much machine time it wants to be asked for what has come from outside; `None` if nothing ever does.
    fn poll_interval(&self) -> Option<u64> {
        None
    }

    /// Takes what has come from outside until `now`, in machine time.
    fn poll(&mut self, now: u64) {
        let _ = now;
    }

    /// Takes note of the features that a driver has accepted, which begins its work now.
    fn begin(&mut self, features: u64) {
        let _ = features;
    }

    /// Forgets what a driver left behind.
    fn reset(&mut self) {}

    /// What it goes on from in a machine that is restored, beside its queues: a number, if anything.
    fn save(&self) -> u64 {
        0
    }

    /// Goes on from what was saved.
    fn restore(&mut self, saved: u64) {
        let _ = saved;
    }
}
