//! A self-virtualised network interface: a card that shows every virtual machine an interface of its own.
//!
//! A virtual interface (VIF) has a send ring and a receive ring in its guest's own memory. Micro-engines on the card
//! poll the send rings and fill the receive rings, so that neither the monitor nor a driver domain is on a packet's
//! way. What is left to the host is to tell a guest that packets have come; [`Delivery`] names the ways.
//!
//! - [`ring`]: what guest and card share, byte by byte.
//! - [`frame`]: what goes over the wire.
//! - [`costs`]: what the card's work costs, as a table with sources.
//! - [`vif`]: one virtual interface as the card knows it.
//!
//! The card's engines are threads of the host's one program ([`crate::host::sidecores`]).
//!
//! Source: S. Kumar, H. Raj, K. Schwan, I. Ganev, "Re-architecting VMMs for Multicore Systems: The Sidecore Approach",
//! section III.

pub mod costs;
pub mod frame;
pub mod ring;
pub mod vif;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use costs::CardCosts;

/// How a guest learns that packets are in its receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// One interrupt of the card to one core: the monitor there reads the identifier register and signals every guest
    /// that shares a bit that is set.
    Master,
    /// A sidecore polls every receive ring and interrupts the core of the guest that has packets.
    Sidecore,
    /// The same; while a guest's packets follow each other quickly they are signalled together, and the sidecore waits
    /// without executing when nothing comes.
    Adaptive,
    /// Each interface has a vector that goes to its guest's core, where it is an exit.
    Vector,
    /// The card posts the interrupt: a running guest takes it without an exit.
    Posted,
    /// A sidecore polls, and posts.
    PostedBySidecore,
}

impl Delivery {
    /// Every way.
    pub const ALL: [Delivery; 6] = [
        Delivery::Master,
        Delivery::Sidecore,
        Delivery::Adaptive,
        Delivery::Vector,
        Delivery::Posted,
        Delivery::PostedBySidecore,
    ];

    /// The way in descriptions and reports.
    pub fn name(self) -> &'static str {
        match self {
            Delivery::Master => "master",
            Delivery::Sidecore => "sidecore",
            Delivery::Adaptive => "adaptive",
            Delivery::Vector => "vector",
            Delivery::Posted => "posted",
            Delivery::PostedBySidecore => "posted-by-sidecore",
        }
    }

    /// Whether a sidecore polls the receive rings.
    pub fn needs_sidecore(self) -> bool {
        match self {
            Delivery::Sidecore | Delivery::Adaptive | Delivery::PostedBySidecore => true,
            Delivery::Master | Delivery::Vector | Delivery::Posted => false,
        }
    }
}

/// A card and how it is used.
#[derive(Clone, Debug)]
pub struct NicConfig {
    /// How guests learn of packets.
    pub delivery: Delivery,
    /// The number of the host in addresses.
    pub host: u16,
    /// Micro-engines: the interfaces are divided among them.
    pub engines: usize,
    /// Descriptors of each ring, a power of two.
    pub ring_entries: u64,
    /// Frames that the card holds for one interface whose receive ring is full; further ones are dropped.
    pub card_frames: usize,
    /// Frames that wait for an engine; further ones are dropped.
    pub input_frames: usize,
    /// Bits of the identifier register.
    pub register_bits: usize,
    /// The core that gets the master interrupt, and any interrupt for a guest without a core.
    pub interrupt_core: usize,
    /// With [`Delivery::Adaptive`]: the longest that a packet waits for others to be signalled with.
    pub latency_bound_ns: u64,
    /// With [`Delivery::Adaptive`]: how many packets are not kept waiting for more.
    pub batch: u64,
    /// What the card's work costs.
    pub costs: Arc<CardCosts>,
}

impl NicConfig {
    /// The card of the paper, an IXP2400 with eight engines and an identifier register of eight bits, with a way to
    /// deliver interrupts. How many of the engines serve interfaces, and how large rings are, the paper does not say:
    /// two engines, 64 descriptors and as many frames on the card are estimates.
    pub fn new(delivery: Delivery) -> NicConfig {
        let costs = CardCosts::preset("ixp2400").expect("the preset is complete");
        NicConfig {
            delivery,
            host: 0,
            engines: 2,
            ring_entries: 64,
            card_frames: 64,
            input_frames: 256,
            register_bits: 8,
            interrupt_core: 0,
            latency_bound_ns: 20_000,
            batch: 16,
            costs: Arc::new(costs),
        }
    }
}

/// Why a card cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NicError {
    /// A setting out of its range.
    #[error("`nic.{key}` is {value}: {range} is possible")]
    OutOfRange {
        /// Its key in a description.
        key: &'static str,
        /// Its value.
        value: u64,
        /// What it may be.
        range: &'static str,
    },
    /// A way that needs a sidecore, on a host that always has none.
    #[error(
        "`nic.delivery` is `{0}`, which needs a fixed number of sidecores, one or more (`host.sidecores`)"
    )]
    NoSidecore(&'static str),
    /// A core that no guest has.
    #[error("`nic.interrupt-core` is {core}: guests have the cores 0 to {last}")]
    NoSuchCore {
        /// The core.
        core: usize,
        /// The last one of guests.
        last: usize,
    },
    /// The services do not run in virtual time.
    #[error("a host with a card (`nic`) needs `host.services = \"virtual-time\"`")]
    NotVirtual,
    /// A signal that comes sooner than hosts can be modelled.
    #[error("{what} takes {cycles} cycles: a host with a card (`nic`) needs at least {SIGNAL_CYCLES_MIN}")]
    TooSoon {
        /// What comes so soon.
        what: &'static str,
        /// How soon.
        cycles: u64,
    },
}

/// The shortest way of a signal or of the card's writes to a core, in cycles of the host: virtual machines are advanced
/// at least so far at a time.
pub const SIGNAL_CYCLES_MIN: u64 = 50;
/// The most micro-engines.
pub const ENGINES_MAX: usize = 16;
/// The fewest and the most descriptors of a ring.
pub const RING_ENTRIES: (u64, u64) = (4, 256);
/// The most frames that the card holds for one interface.
pub const CARD_FRAMES_MAX: usize = 4096;
/// The most bits of the identifier register.
pub const REGISTER_BITS_MAX: usize = 64;

impl NicConfig {
    /// Checks the settings for a host with so many cores for guests and so many sidecores at all times.
    ///
    /// # Errors
    /// What is out of its range.
    pub fn check(&self, guest_cores: usize, sidecores: usize) -> Result<(), NicError> {
        let (least, most) = RING_ENTRIES;
        let ranges = [
            ("engines", self.engines as u64, 1, ENGINES_MAX as u64, "1 to 16"),
            ("ring-entries", self.ring_entries, least, most, "4 to 256"),
            (
                "card-frames",
                self.card_frames as u64,
                0,
                CARD_FRAMES_MAX as u64,
                "0 to 4096",
            ),
            (
                "input-frames",
                self.input_frames as u64,
                1,
                CARD_FRAMES_MAX as u64,
                "1 to 4096",
            ),
            (
                "register-bits",
                self.register_bits as u64,
                1,
                REGISTER_BITS_MAX as u64,
                "1 to 64",
            ),
            (
                "latency-bound-us",
                self.latency_bound_ns / 1000,
                0,
                1_000_000,
                "0 to 1000000",
            ),
            ("batch", self.batch, 1, most, "1 to 256"),
        ];
        for (key, value, least, most, range) in ranges {
            if !(least..=most).contains(&value) {
                return Err(NicError::OutOfRange { key, value, range });
            }
        }
        if !self.ring_entries.is_power_of_two() {
            return Err(NicError::OutOfRange {
                key: "ring-entries",
                value: self.ring_entries,
                range: "a power of two",
            });
        }
        if self.delivery.needs_sidecore() && sidecores == 0 {
            return Err(NicError::NoSidecore(self.delivery.name()));
        }
        if self.interrupt_core >= guest_cores {
            return Err(NicError::NoSuchCore {
                core: self.interrupt_core,
                last: guest_cores - 1,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let refused = |change: fn(&mut NicConfig), sidecores| {
            let mut config = NicConfig::new(Delivery::Sidecore);
            change(&mut config);
            config.check(2, sidecores).expect_err("a bad setting").to_string()
        };
        assert_eq!(NicConfig::new(Delivery::Sidecore).check(2, 1), Ok(()));
        assert!(refused(|nic| nic.engines = 0, 1).contains("`nic.engines` is 0: 1 to 16"));
        assert!(refused(|nic| nic.ring_entries = 48, 1).contains("`nic.ring-entries` is 48: a power of two"));
        assert!(refused(|nic| nic.register_bits = 65, 1).contains("`nic.register-bits` is 65"));
        assert!(refused(|nic| nic.interrupt_core = 2, 1).contains("guests have the cores 0 to 1"));
        assert!(refused(|_| (), 0).contains("`sidecore`, which needs a fixed number of sidecores"));
    }

    #[test]
    fn names_are_those_of_descriptions() {
        for delivery in Delivery::ALL {
            let read: Result<Delivery, _> = toml::Value::String(delivery.name().to_owned()).try_into();
            assert_eq!(read, Ok(delivery));
        }
    }
}
