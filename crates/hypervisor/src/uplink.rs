//! Where the wire of a host's card ends: a network of the computer that this program runs on.
//!
//! Frames go in and out between two stretches of the host's time. When that is depends on the world outside, so such a
//! host is not deterministic.

use sidestep_machine::machine::timeline::TICKS_PER_SECOND;
use sidestep_machine::network::Link;

use crate::cycle::Cycle;
use crate::host::{Host, HostEnd, HostError};
use crate::nic::frame::Frame;

/// The most frames that come in before guests go on: what comes meanwhile waits outside, or is lost there.
const FRAMES_MAX: usize = 256;
const MICROSECONDS_PER_SECOND: u64 = 1_000_000;

/// A host whose card's wire ends outside.
pub struct Uplinked {
    host: Host,
    outside: Box<dyn Link>,
    clock_mhz: u64,
    /// How many cycles guests go on before frames are looked for.
    step: u64,
    /// Counts what came.
    received: u64,
}

impl Uplinked {
    /// Connects a host, whose clock has so many MHz.
    pub fn new(mut host: Host, outside: Box<dyn Link>, clock_mhz: u64) -> Uplinked {
        host.link();
        let interval_us = outside.poll_interval() / (TICKS_PER_SECOND / MICROSECONDS_PER_SECOND);
        Uplinked {
            host,
            outside,
            clock_mhz,
            step: (interval_us * clock_mhz).max(1),
            received: 0,
        }
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Goes on until `until`, or until all virtual machines have ended.
    ///
    /// # Errors
    /// As [`Host::run`].
    pub fn run(&mut self, until: Cycle) -> Result<HostEnd, HostError> {
        while self.host.time() < until {
            let end = self.host.run((self.host.time() + self.step).min(until))?;
            self.exchange();
            if end != HostEnd::Time {
                return Ok(end);
            }
        }
        Ok(HostEnd::Time)
    }

    fn exchange(&mut self) {
        for (_, frame) in self.host.take_frames() {
            self.outside.send(&frame.bytes);
        }
        let time = self.host.time();
        let microseconds = time.since(Cycle::START) / self.clock_mhz;
        self.outside
            .advance(microseconds * (TICKS_PER_SECOND / MICROSECONDS_PER_SECOND));
        for _ in 0..FRAMES_MAX {
            let Some(bytes) = self.outside.receive() else {
                break;
            };
            self.received += 1;
            // Numbers of this computer's frames are apart from those of any host's.
            let number = u64::from(u16::MAX) << 48 | self.received;
            self.host.receive(time, Frame { number, bytes });
        }
    }
}
