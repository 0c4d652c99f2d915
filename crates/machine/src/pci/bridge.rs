//! A bridge from one bus to another (PCI-to-PCI Bridge Architecture Specification 1.2).
//!
//! It passes on configuration accesses for the buses behind it, by their numbers, and loads and stores at the addresses
//! and ports of its windows, as far as its command lets it; what functions behind it reach of memory by themselves goes
//! the other way, if it may master the bus before it. Nothing behind it answers outside its windows. Resetting what is
//! behind it is not there: the bit for it reads as zero.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Function;
use super::configuration::{Configuration, Identity, Space};

/// The numbers that QEMU's bridge has.
const IDENTITY: Identity = Identity {
    vendor: 0x1b36,
    device: 0x0001,
    subsystem_vendor: 0,
    subsystem: 0,
    revision: 0,
    class: 0x06_04_00,
};

/// Offsets of fields of the header of type 1 (section 3.2 of the specification).
mod field {
    pub const PRIMARY: usize = 0x18;
    pub const SECONDARY: usize = 0x19;
    pub const PORTS: usize = 0x1c;
    pub const MEMORY: usize = 0x20;
    pub const PREFETCHABLE: usize = 0x24;
}

/// The bits of the base and the limit of memory that can be written.
const MEGABYTES: [u8; 4] = [0xf0, 0xff, 0xf0, 0xff];

/// Addresses from the first to the last, both in one number: a bridge's windows end below 4 GB.
#[derive(Debug, Default)]
struct Range(AtomicU64);

impl Range {
    /// Holds nothing.
    const EMPTY: (u32, u32) = (1, 0);

    fn set(&self, (first, last): (u32, u32)) {
        let value = u64::from(last) << 32 | u64::from(first);
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> (u32, u32) {
        let value = self.0.load(Ordering::Relaxed);
        (value as u32, (value >> 32) as u32)
    }

    fn holds(&self, address: u64) -> bool {
        let (first, last) = self.get();
        (u64::from(first)..=u64::from(last)).contains(&address)
    }
}

#[derive(Debug, Default)]
struct Ranges {
    buses: Range,
    memory: Range,
    /// Of memory that may be read ahead: firmware leaves it closed.
    prefetchable: Range,
    ports: Range,
}

/// What a bridge passes on now; clones follow it.
#[derive(Clone, Debug, Default)]
pub struct Passage(Arc<Ranges>);

impl Passage {
    /// Whether a load or store at this address of a space goes to the bus behind.
    pub fn passes(&self, space: Space, address: u64) -> bool {
        match space {
            Space::Memory => self.0.memory.holds(address) || self.0.prefetchable.holds(address),
            Space::Ports => self.0.ports.holds(address),
        }
    }

    /// Whether a bus is the one behind, and whether it is that or further behind.
    pub fn leads_to(&self, bus: u8) -> (bool, bool) {
        let (next, _) = self.0.buses.get();
        (u32::from(bus) == next, self.0.buses.holds(u64::from(bus)))
    }
}

/// A bridge.
pub struct Bridge {
    configuration: Configuration,
    passage: Passage,
}

impl Bridge {
    /// From bus `number` to the next, with the buses as far as `last` behind it: firmware has opened it for a range of
    /// memory and one of ports.
    pub fn new(number: u8, last: u8, memory: std::ops::Range<u64>, ports: std::ops::Range<u32>) -> Bridge {
        let mut configuration = Configuration::new(IDENTITY);
        configuration.become_bridge();
        configuration.add_field(field::PRIMARY, &[number, number + 1, last], &[0xff; 3]);
        let kilobytes = |port: u32| (port >> 8) as u8 & 0xf0;
        let ports = [kilobytes(ports.start), kilobytes(ports.end - 1)];
        configuration.add_field(field::PORTS, &ports, &[0xf0; 2]);
        let megabytes = |address: u64| ((address >> 16) as u16 & 0xfff0).to_le_bytes();
        let memory = [megabytes(memory.start), megabytes(memory.end - 1)].concat();
        configuration.add_field(field::MEMORY, &memory, &MEGABYTES);
        configuration.add_field(field::PREFETCHABLE, &[0xf0, 0xff, 0, 0], &MEGABYTES);
        configuration.enable();
        let mut bridge = Bridge {
            configuration,
            passage: Passage::default(),
        };
        bridge.update();
        bridge
    }

    /// What it passes on.
    pub fn passage(&self) -> Passage {
        self.passage.clone()
    }

    fn update(&mut self) {
        let configuration = &self.configuration;
        let Ranges {
            buses,
            memory,
            prefetchable,
            ports,
        } = &*self.passage.0;
        let [next, last] = configuration.bytes(field::SECONDARY);
        // A bridge that nobody has given numbers leads nowhere: bus 0 is before it.
        buses.set(match next {
            0 => Range::EMPTY,
            _ => (next.into(), last.into()),
        });
        let open = |space: Space, range: (u32, u32)| match configuration.answers(space) {
            true => range,
            false => Range::EMPTY,
        };
        let [first, last] = configuration
            .bytes(field::PORTS)
            .map(|byte: u8| u32::from(byte & 0xf0) << 8);
        ports.set(open(Space::Ports, (first, last | 0xfff)));
        for (range, at) in [(memory, field::MEMORY), (prefetchable, field::PREFETCHABLE)] {
            let half = |at| u32::from(u16::from_le_bytes(configuration.bytes(at)) & 0xfff0) << 16;
            range.set(open(Space::Memory, (half(at), half(at + 2) | 0xf_ffff)));
        }
    }
}

impl Function for Bridge {
    fn configuration(&mut self) -> &mut Configuration {
        &mut self.configuration
    }

    fn store_configuration(&mut self, offset: u64, size: u64, value: u32) {
        self.configuration.store(offset, size, value);
        self.update();
    }

    fn load(&mut self, _: u64, _: u64) -> u64 {
        u64::MAX
    }

    fn store(&mut self, _: u64, _: u64, _: u64) {}

    fn restore(&mut self, saved: &[u8]) -> bool {
        self.update();
        saved.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MEMORY: std::ops::Range<u64> = 0xe000_0000..0xf000_0000;
    const PORTS: std::ops::Range<u32> = 0x1000..0x3000;

    fn opened(passage: &Passage) -> [bool; 6] {
        [
            passage.passes(Space::Memory, MEMORY.start),
            passage.passes(Space::Memory, MEMORY.end - 1),
            passage.passes(Space::Memory, MEMORY.end),
            passage.passes(Space::Ports, 0x1000),
            passage.passes(Space::Ports, 0x2fff),
            passage.passes(Space::Ports, 0x3000),
        ]
    }

    #[test]
    fn a_bridge_passes_on_what_its_windows_hold_and_its_command_lets_it() {
        let mut bridge = Bridge::new(0, 2, MEMORY, PORTS);
        let passage = bridge.passage();
        assert_eq!(bridge.load_configuration(0x0c, 4) >> 16 & 0xff, 1, "its header");
        assert_eq!(opened(&passage), [true, true, false, true, true, false]);
        bridge.store_configuration(4, 2, 1);
        assert_eq!(opened(&passage), [false, false, false, true, true, false]);
        bridge.store_configuration(4, 2, 6);
        assert_eq!(opened(&passage), [true, true, false, false, false, false]);
        // A limit below the base closes a window.
        bridge.store_configuration(0x20, 4, 0xe000_e010);
        assert_eq!(opened(&passage), [false; 6]);
        assert_eq!(passage.leads_to(1), (true, true));
        assert_eq!(passage.leads_to(2), (false, true));
        assert_eq!(passage.leads_to(3), (false, false));
        bridge.store_configuration(0x18, 4, 0);
        assert_eq!(passage.leads_to(0), (false, false), "without a number");
        bridge.store_configuration(4, 2, 2);
        bridge.store_configuration(0x24, 4, 0xe000_e000);
        assert_eq!(
            bridge.load_configuration(0x24, 4),
            0xe000_e000,
            "addresses of 32 bits"
        );
        assert_eq!(opened(&passage), [true, false, false, false, false, false]);
    }

    proptest! {
        #[test]
        fn no_store_opens_what_is_not_in_the_fields(
            stores in prop::collection::vec((0u64..64, any::<u32>()), 0..20), address: u32,
        ) {
            let mut bridge = Bridge::new(0, 1, MEMORY, PORTS);
            for (word, value) in stores {
                bridge.store_configuration(word * 4, 4, value);
            }
            let is_in = |window: u32| {
                let (base, limit) = (window << 16 & 0xfff0_0000, window & 0xfff0_0000 | 0xf_ffff);
                (base..=limit).contains(&address)
            };
            let [memory, prefetchable] = [0x20, 0x24].map(|offset| bridge.load_configuration(offset, 4));
            let is_on = bridge.load_configuration(4, 2) & 2 != 0;
            let wanted = is_on && (is_in(memory) || is_in(prefetchable));
            prop_assert_eq!(bridge.passage().passes(Space::Memory, address.into()), wanted);
        }
    }
}
