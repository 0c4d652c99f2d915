//! What is at the other end of a network device's cable.
//!
//! - [`user`]: a network of the guest and this program alone, whose connections are sockets of the host: needs no
//!   privileges. [`forward`]: ports of the host that lead into it.
//! - [`tap`]: an interface of the host.
//! - [`udp`]: another emulator's cable.

pub mod forward;
pub mod tap;
pub mod udp;
pub mod user;

/// The longest frame: a header of 14 bytes and 1,500 bytes.
pub const FRAME_BYTES_MAX: usize = 1514;

/// A cable with Ethernet frames.
pub trait Link: Send {
    /// Takes a frame of the guest. What cannot be delivered is lost, as on any Ethernet.
    fn send(&mut self, frame: &[u8]);

    /// Whether a frame for the guest is there.
    fn has_frame(&self) -> bool;

    /// The next frame for the guest.
    fn receive(&mut self) -> Option<Vec<u8>>;

    /// Takes what has come until `now`, in machine time.
    fn advance(&mut self, now: u64);

    /// After how much machine time it wants to look again.
    fn poll_interval(&self) -> u64;
}
