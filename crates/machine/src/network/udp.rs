//! A cable to another emulator: each frame is a datagram, as QEMU's `-netdev socket,udp=` has it.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use super::{FRAME_BYTES_MAX, Link};
use crate::machine::timeline::TICKS_PER_SECOND;

/// How often frames are looked for.
const POLL_TICKS: u64 = TICKS_PER_SECOND / 5_000;
/// The shortest frame: its header.
const FRAME_BYTES_MIN: usize = 14;

/// One end of the cable.
pub struct Udp {
    socket: UdpSocket,
    peer: SocketAddr,
    frame: Option<Vec<u8>>,
}

impl Udp {
    /// Listens at one address, and takes frames from and sends them to another one.
    ///
    /// # Errors
    /// If the host does not listen there.
    pub fn open(listen: SocketAddr, peer: SocketAddr) -> io::Result<Udp> {
        let socket = UdpSocket::bind(listen)?;
        socket.set_nonblocking(true)?;
        Ok(Udp {
            socket,
            peer,
            frame: None,
        })
    }

    fn fill(&mut self) {
        // One byte more than a frame has: what is longer is no frame.
        let mut datagram = [0; FRAME_BYTES_MAX + 1];
        while self.frame.is_none() {
            match self.socket.recv_from(&mut datagram) {
                Ok((size, from)) => {
                    let is_frame = (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&size);
                    self.frame = (is_frame && from == self.peer).then(|| datagram[..size].to_vec());
                }
                // The other end may not be there yet, of which an earlier frame's sender learns here.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => return,
            }
        }
    }
}

impl Link for Udp {
    fn send(&mut self, frame: &[u8]) {
        // A full or absent end loses frames, as a cable does.
        let _ = self.socket.send_to(frame, self.peer);
    }

    fn has_frame(&self) -> bool {
        self.frame.is_some()
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let frame = self.frame.take();
        self.fill();
        frame
    }

    fn advance(&mut self, _: u64) {
        self.fill();
    }

    fn poll_interval(&self) -> u64 {
        POLL_TICKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// What comes at the end of a cable, when it has come.
    fn next(end: &mut Udp) -> Vec<u8> {
        loop {
            end.advance(0);
            if let Some(frame) = end.receive() {
                return frame;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn frames_of_the_peer_come_and_nothing_else() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let [other, stranger] = [0, 1].map(|_| UdpSocket::bind(any).expect("a socket"));
        let peer = other.local_addr().expect("an address");
        let mut end = Udp::open(any, peer).expect("a socket");
        let here = end.socket.local_addr().expect("an address");
        stranger.send_to(&[1; 60], here).expect("room");
        for (size, byte) in [(13, 2), (1515, 3), (60, 4), (1514, 5)] {
            other.send_to(&vec![byte; size], here).expect("room");
        }
        assert_eq!(next(&mut end), [4; 60]);
        assert_eq!(next(&mut end), [5; 1514]);
        end.send(&[6; 14]);
        let mut frame = [0; 20];
        assert_eq!(other.recv(&mut frame).expect("a frame"), 14);
    }
}
