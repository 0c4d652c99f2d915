//! Two hosts whose cards a link joins, and traffic from elsewhere.
//!
//! A frame waits until those before it are on the link, takes the time of its bytes, and arrives a latency later; of so
//! many frames one may be lost. Hosts go on side by side for one latency at a time, because neither can learn of the
//! other sooner. One clock counts for both.

use thiserror::Error;

use crate::cycle::Cycle;
use crate::host::{Host, HostEnd, HostError};
use crate::nic::frame::Frame;

/// A link between two cards, the same both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// How long a bit is on its way, in nanoseconds.
    pub latency_ns: u64,
    /// How many bits it takes in a microsecond.
    pub megabits: u64,
    /// Of so many frames one is lost, which ones follows from the seed; 0: none.
    pub loss_one_in: u64,
    /// What decides which.
    pub seed: u64,
}

/// A link that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{key}` of a link is {value}: {range} is possible")]
pub struct LinkError {
    key: &'static str,
    value: u64,
    range: &'static str,
}

impl Link {
    /// Gigabit Ethernet through one switch that stores and forwards.
    pub const GIGABIT: Link = Link {
        latency_ns: 5_000,
        megabits: 1000,
        loss_one_in: 0,
        seed: 1,
    };

    /// Checks that it can be.
    ///
    /// # Errors
    /// What is out of its range.
    pub fn check(&self) -> Result<(), LinkError> {
        let ranges = [
            (
                "latency-ns",
                self.latency_ns,
                100,
                1_000_000_000,
                "100 to 1000000000",
            ),
            ("megabits", self.megabits, 1, 1_000_000, "1 to 1000000"),
        ];
        match (ranges.into_iter()).find(|(_, value, least, most, _)| !(least..=most).contains(&value)) {
            Some((key, value, _, _, range)) => Err(LinkError { key, value, range }),
            None => Ok(()),
        }
    }
}

/// One way of a link.
#[derive(Clone, Debug)]
pub struct Wire {
    latency_cycles: u64,
    /// Of the clock, for a thousand bits.
    kilobit_cycles: u64,
    loss_one_in: u64,
    state: u64,
    free: Cycle,
    /// Frames that it has lost.
    pub lost: u64,
}

impl Wire {
    /// One way of a link, in cycles of a clock of so many MHz.
    pub fn new(link: &Link, clock_mhz: u64, way: u64) -> Wire {
        Wire {
            latency_cycles: (link.latency_ns * clock_mhz / 1000).max(1),
            kilobit_cycles: (1000 * clock_mhz / link.megabits).max(1),
            loss_one_in: link.loss_one_in,
            // Never zero, and not the same for the two ways.
            state: (link.seed ^ way << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            free: Cycle::START,
            lost: 0,
        }
    }

    /// When a frame arrives that is ready at `time`; `None` if it is lost. Frames come in the order of their times.
    pub fn carry(&mut self, time: Cycle, frame: &Frame) -> Option<Cycle> {
        let begin = time.max(self.free);
        self.free = begin + (frame.wire_bytes() * 8 * self.kilobit_cycles).div_ceil(1000);
        if self.loss_one_in > 0 && self.random().is_multiple_of(self.loss_one_in) {
            self.lost += 1;
            return None;
        }
        Some(self.free + self.latency_cycles)
    }

    /// Xorshift.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 8
    }
}

/// Two hosts and the link between their cards. The first host's clock counts for both.
pub struct Linked {
    hosts: [Host; 2],
    /// To the second host, and to the first.
    wires: [Wire; 2],
    step: u64,
    time: Cycle,
}

impl Linked {
    /// Joins two hosts whose clocks have so many MHz.
    ///
    /// # Errors
    /// A link that cannot be.
    pub fn new(mut hosts: [Host; 2], link: &Link, clock_mhz: u64) -> Result<Linked, LinkError> {
        link.check()?;
        hosts.iter_mut().for_each(Host::link);
        let wires = [0, 1].map(|way| Wire::new(link, clock_mhz, way));
        Ok(Linked {
            step: wires[0].latency_cycles,
            hosts,
            wires,
            time: Cycle::START,
        })
    }

    /// The hosts.
    pub fn hosts(&self) -> &[Host; 2] {
        &self.hosts
    }

    /// The time.
    pub fn time(&self) -> Cycle {
        self.time
    }

    /// Frames that the link has lost, to the second host and to the first.
    pub fn lost(&self) -> [u64; 2] {
        [self.wires[0].lost, self.wires[1].lost]
    }

    /// Goes on until `until`, or until all virtual machines of both hosts have ended.
    ///
    /// # Errors
    /// As [`Host::run`].
    pub fn run(&mut self, until: Cycle) -> Result<HostEnd, HostError> {
        while self.time < until {
            let end = (self.time + self.step).min(until);
            let mut ended = true;
            for host in &mut self.hosts {
                match host.run(end)? {
                    HostEnd::Halted => return Ok(HostEnd::Halted),
                    HostEnd::Ended => {}
                    HostEnd::Time | HostEnd::Deadlock => ended = false,
                }
            }
            if ended {
                return Ok(HostEnd::Ended);
            }
            let [first, second] = &mut self.hosts;
            let [there, back] = &mut self.wires;
            pass(first, there, second);
            pass(second, back, first);
            self.time = end;
        }
        Ok(HostEnd::Time)
    }
}

fn pass(from: &mut Host, wire: &mut Wire, to: &mut Host) {
    for (time, frame) in from.take_frames() {
        if let Some(arrival) = wire.carry(time, &frame) {
            to.receive(arrival, frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::frame::Address;

    fn frame() -> Frame {
        let [from, to] = [0, 1].map(|host| Address { host, interface: 0 });
        Frame::between(from, to, 60, 1)
    }

    #[test]
    fn frames_follow_each_other_on_a_wire() {
        let mut wire = Wire::new(&Link::GIGABIT, 1000, 0);
        // 84 bytes at a bit a cycle, and 5 us.
        assert_eq!(wire.carry(Cycle(100), &frame()), Some(Cycle(100 + 672 + 5000)));
        assert_eq!(
            wire.carry(Cycle(100), &frame()),
            Some(Cycle(100 + 2 * 672 + 5000))
        );
        assert_eq!(wire.carry(Cycle(9000), &frame()), Some(Cycle(9000 + 672 + 5000)));
    }

    #[test]
    fn loss_is_as_often_as_asked_for_and_repeats() {
        let link = Link {
            loss_one_in: 10,
            ..Link::GIGABIT
        };
        let run = || {
            let mut wire = Wire::new(&link, 1000, 0);
            let arrivals = (0..10_000).map(|_| wire.carry(Cycle::START, &frame()));
            (arrivals.flatten().count(), wire.lost)
        };
        let (arrived, lost) = run();
        assert_eq!(arrived as u64 + lost, 10_000);
        assert!((800..1200).contains(&lost), "{lost}");
        assert_eq!(run(), (arrived, lost));
    }

    #[test]
    fn a_link_that_cannot_be_is_refused() {
        let link = Link {
            megabits: 0,
            ..Link::GIGABIT
        };
        assert!(
            link.check()
                .expect_err("no link")
                .to_string()
                .contains("`megabits` of a link is 0")
        );
        assert_eq!(Link::GIGABIT.check(), Ok(()));
    }
}
