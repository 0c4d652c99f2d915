//! PCI: a bus behind a host bridge, as the Local Bus Specification 3.0 has it.
//!
//! - [`configuration`]: the configuration space of a function. [`interrupts`]: its interrupts, by a line or by
//!   messages.
//! - [`Bus`]: functions by their slot, each the only one of its device; configuration accesses reach them by
//!   [`Address`]. [`bridge`]: what leads to a bus further behind; the last one has the devices.
//! - [`Window`]: the addresses at which their registers are. [`Ports`]: those among the I/O ports.
//!
//! Functions are where firmware has put them and answer there as soon as a kernel lets them; it may move them inside
//! the window. Where nothing is, loads read ones and stores are dropped. What a function reaches of memory by itself,
//! and whether its messages go out, hangs on whether it may master the bus ([`mastering`]).
//!
//! Lock order: a function, then what it locks.

pub mod bridge;
pub mod configuration;
pub mod interrupts;
pub mod mastering;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::bus::Device;
use bridge::{Bridge, Passage};
use configuration::{Configuration, Identity, Place, Space};
use interrupts::{Interrupts, InterruptsState};
use mastering::Mastering;

/// The most functions on a bus.
pub const SLOTS_MAX: usize = 32;
/// The most bridges, one behind the other.
pub const BRIDGES_MAX: usize = 8;

/// A function of a device.
pub trait Function: Send {
    /// Its configuration space.
    fn configuration(&mut self) -> &mut Configuration;

    /// Its interrupts, if it has any.
    fn interrupts(&self) -> Option<&Interrupts> {
        None
    }

    /// Loads 1, 2 or 4 aligned bytes of its configuration space.
    fn load_configuration(&mut self, offset: u64, size: u64) -> u32 {
        self.configuration().load(offset, size)
    }

    /// Stores 1, 2 or 4 aligned bytes to its configuration space.
    fn store_configuration(&mut self, offset: u64, size: u64, value: u32) {
        self.configuration().store(offset, size, value);
    }

    /// Called where a bridge before it lets it master the bus again, or no longer.
    fn bridge_changed(&mut self) {}

    /// Loads `size` (1, 2, 4 or 8) bytes of its registers.
    fn load(&mut self, offset: u64, size: u64) -> u64;

    /// Stores `size` (1, 2, 4 or 8) bytes to its registers.
    fn store(&mut self, offset: u64, size: u64, value: u64);

    /// What the function goes on from beside its configuration space and its interrupts, to be saved; what is behind
    /// a function of its own, such as a virtio device, is saved with that.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Goes on from what was saved of the same function; false if it was of another.
    fn restore(&mut self, saved: &[u8]) -> bool {
        saved.is_empty()
    }
}

/// Which bytes a configuration access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The segment: a set of buses.
    pub segment: u16,
    /// The bus.
    pub bus: u8,
    /// The device on it.
    pub slot: u8,
    /// The function of the device.
    pub function: u8,
    /// The first byte.
    pub register: u16,
}

/// A function as machines are saved with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionState {
    configuration: Vec<u8>,
    interrupts: Option<InterruptsState>,
    device: Vec<u8>,
}

struct Slot {
    function: Mutex<Box<dyn Function>>,
    place: Place,
    /// Behind how many bridges it is.
    depth: usize,
    number: u8,
}

impl Slot {
    fn function(&self) -> MutexGuard<'_, Box<dyn Function>> {
        self.function.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The buses of segment 0: bus 0, and behind each bridge the next.
#[derive(Default)]
pub struct Bus {
    slots: Vec<Slot>,
    /// By bridge, the one on bus 0 first.
    passages: Vec<Passage>,
    mastering: Option<Mastering>,
}

impl Bus {
    /// A bus with a host bridge in its first slot.
    pub fn new() -> Bus {
        let mut bus = Bus::default();
        bus.add(Box::new(HostBridge(Configuration::new(HOST_BRIDGE))));
        bus
    }

    /// The same, and in the next slot a bridge to another bus, which has one in its first; so many in all, open for
    /// these ranges of memory and of ports. What is added is behind the last of them.
    ///
    /// # Panics
    /// If they are too many.
    pub fn behind(bridges: usize, memory: &std::ops::Range<u64>, ports: &std::ops::Range<u32>) -> Bus {
        assert!(bridges <= BRIDGES_MAX, "{BRIDGES_MAX} bridges");
        let mut bus = Bus::new();
        for number in 0..bridges {
            let mut bridge = Bridge::new(number as u8, bridges as u8, memory.clone(), ports.clone());
            let (passage, mastering) = (bridge.passage(), bridge.configuration().mastering());
            bus.add(Box::new(bridge));
            bus.passages.push(passage);
            bus.mastering = Some(mastering);
        }
        bus
    }

    /// How many bridges devices are behind.
    pub fn bridges(&self) -> usize {
        self.passages.len()
    }

    /// Puts a function into the next slot of the last bus; answers which that is.
    ///
    /// # Panics
    /// If there is no slot left.
    pub fn add(&mut self, mut function: Box<dyn Function>) -> usize {
        let depth = self.passages.len();
        let number = self.slots.iter().filter(|slot| slot.depth == depth).count();
        assert!(number < SLOTS_MAX, "{SLOTS_MAX} slots");
        let configuration = function.configuration();
        let place = configuration.place();
        if let Some(bridge) = &self.mastering {
            configuration.mastering().put_behind(bridge.clone());
        }
        self.slots.push(Slot {
            function: Mutex::new(function),
            place,
            depth,
            number: number as u8,
        });
        number
    }

    /// How many functions there are beside the bridges.
    pub fn devices(&self) -> usize {
        self.slots.len() - 1 - self.passages.len()
    }

    /// Loads 1, 2 or 4 aligned bytes of a function's configuration space; ones where there is none.
    pub fn load(&self, address: Address, size: u64) -> u32 {
        match self.find(address) {
            Some(slot) => slot
                .function()
                .load_configuration(u64::from(address.register), size),
            None => u32::MAX >> (32 - 8 * size),
        }
    }

    /// Stores 1, 2 or 4 aligned bytes to a function's configuration space.
    pub fn store(&self, address: Address, size: u64, value: u32) {
        let Some(slot) = self.find(address) else {
            return;
        };
        let changed = {
            let mut function = slot.function();
            let mastering = function.configuration().mastering();
            let before = mastering.is_allowed();
            function.store_configuration(u64::from(address.register), size, value);
            before != mastering.is_allowed()
        };
        if changed {
            let behind = self.slots.iter().filter(|other| other.depth > slot.depth);
            behind.for_each(|other| other.function().bridge_changed());
        }
    }

    /// Every function, to be saved.
    pub fn save(&self) -> Vec<FunctionState> {
        let state = |slot: &Slot| {
            let mut function = slot.function();
            FunctionState {
                configuration: function.configuration().save(),
                interrupts: function.interrupts().map(Interrupts::save),
                device: function.save(),
            }
        };
        self.slots.iter().map(state).collect()
    }

    /// Goes on from what was saved of the same functions; false if it was of others.
    pub fn restore(&self, states: &[FunctionState]) -> bool {
        let restored = |(slot, state): (&Slot, &FunctionState)| {
            let mut function = slot.function();
            let interrupts = match (function.interrupts(), &state.interrupts) {
                (None, None) => true,
                (Some(interrupts), Some(state)) => interrupts.restore(state),
                _ => false,
            };
            interrupts
                && function.configuration().restore(&state.configuration)
                && function.restore(&state.device)
        };
        states.len() == self.slots.len() && self.slots.iter().zip(states).all(restored)
    }

    fn find(&self, address: Address) -> Option<&Slot> {
        let in_space = usize::from(address.register) < configuration::BYTES;
        if address.segment != 0 || address.function != 0 || !in_space {
            return None;
        }
        let depth = self.depth(address.bus)?;
        let is_it = |slot: &&Slot| (slot.depth, slot.number) == (depth, address.slot);
        self.slots.iter().find(is_it)
    }

    /// Behind how many bridges a bus is by the numbers that they have now, if it is there.
    fn depth(&self, bus: u8) -> Option<usize> {
        if bus == 0 {
            return Some(0);
        }
        for (depth, passage) in self.passages.iter().enumerate() {
            match passage.leads_to(bus) {
                (true, _) => return Some(depth + 1),
                (false, true) => {}
                (false, false) => return None,
            }
        }
        None
    }

    /// The function whose registers are at an address of a space, and the offset in them.
    fn decode(&self, space: Space, address: u64, size: u64) -> Option<(&Slot, u64)> {
        let passes = |passage: &&Passage| passage.passes(space, address);
        let reached = self.passages.iter().take_while(passes).count();
        let reached = self.slots.iter().filter(|slot| slot.depth <= reached);
        reached
            .into_iter()
            .find_map(|slot| Some((slot, slot.place.offset(space, address, size)?)))
    }

    fn load_at(&self, space: Space, address: u64, size: u64) -> u64 {
        match self.decode(space, address, size) {
            Some((slot, offset)) => slot.function().load(offset, size),
            None => u64::MAX,
        }
    }

    fn store_at(&self, space: Space, address: u64, size: u64, value: u64) {
        if let Some((slot, offset)) = self.decode(space, address, size) {
            slot.function().store(offset, size, value);
        }
    }
}

/// The addresses that the host bridge passes on to the bus.
pub struct Window {
    bus: Arc<Bus>,
    start: u64,
}

impl Window {
    /// From physical address `start` on, as far as whoever attaches it says.
    pub fn new(bus: Arc<Bus>, start: u64) -> Window {
        Window { bus, start }
    }
}

impl Device for Window {
    fn load(&mut self, offset: u64, size: u64) -> u64 {
        self.bus.load_at(Space::Memory, self.start + offset, size)
    }

    fn store(&mut self, offset: u64, size: u64, value: u64) {
        self.bus.store_at(Space::Memory, self.start + offset, size, value);
    }
}

/// The I/O ports that the host bridge passes on to the bus, as a processor sees them: four on each page of 4 kB, so
/// that protection can be given by page (Architecture Software Developer's Manual, volume 2, 10.7).
pub struct Ports(Arc<Bus>);

impl Ports {
    /// Of this bus.
    pub fn new(bus: Arc<Bus>) -> Ports {
        Ports(bus)
    }

    fn port(offset: u64) -> u64 {
        offset >> 12 << 2 | offset & 3
    }
}

impl Device for Ports {
    fn load(&mut self, offset: u64, size: u64) -> u64 {
        self.0.load_at(Space::Ports, Ports::port(offset), size)
    }

    fn store(&mut self, offset: u64, size: u64, value: u64) {
        self.0.store_at(Space::Ports, Ports::port(offset), size, value);
    }
}

/// The numbers that QEMU's generic host bridge has, which mean no particular chip.
const HOST_BRIDGE: Identity = Identity {
    vendor: 0x1b36,
    device: 0x0008,
    subsystem_vendor: 0x1af4,
    subsystem: 0x1100,
    revision: 0,
    class: 0x06_00_00,
};

/// The bridge as a function on its own bus: there to be seen.
struct HostBridge(Configuration);

impl Function for HostBridge {
    fn configuration(&mut self) -> &mut Configuration {
        &mut self.0
    }

    fn load(&mut self, _: u64, _: u64) -> u64 {
        u64::MAX
    }

    fn store(&mut self, _: u64, _: u64, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 0xe000_0000;
    const FIRST: u32 = 0xe000_4000;

    /// Answers with the offset and notes the last store.
    struct Echo {
        configuration: Configuration,
        stored: Arc<Mutex<u64>>,
    }

    impl Function for Echo {
        fn configuration(&mut self) -> &mut Configuration {
            &mut self.configuration
        }

        fn load(&mut self, offset: u64, _: u64) -> u64 {
            offset
        }

        fn store(&mut self, offset: u64, _: u64, value: u64) {
            *self.stored.lock().expect("no panic") = offset + value;
        }
    }

    fn at(slot: u8, register: u16) -> Address {
        Address {
            segment: 0,
            bus: 0,
            slot,
            function: 0,
            register,
        }
    }

    fn bus() -> (Arc<Bus>, Arc<Mutex<u64>>) {
        let stored = Arc::<Mutex<u64>>::default();
        let mut configuration = Configuration::new(Identity {
            device: 0x1042,
            ..HOST_BRIDGE
        });
        configuration.add_region(0x1000, FIRST);
        let mut bus = Bus::new();
        let slot = bus.add(Box::new(Echo {
            configuration,
            stored: Arc::clone(&stored),
        }));
        assert_eq!(slot, 1);
        (Arc::new(bus), stored)
    }

    #[test]
    fn functions_are_found_by_their_slot_alone() {
        let (bus, _) = bus();
        assert_eq!(bus.load(at(0, 0), 4), 0x0008_1b36);
        assert_eq!(bus.load(at(1, 2), 2), 0x1042);
        assert_eq!(bus.load(at(1, 8), 4), 0x0600_0000, "class and revision");
        for nowhere in [
            at(2, 0),
            at(255, 0),
            at(1, 0x100),
            Address { bus: 1, ..at(1, 0) },
            Address {
                segment: 1,
                ..at(1, 0)
            },
            Address {
                function: 1,
                ..at(1, 0)
            },
        ] {
            bus.store(nowhere, 4, 0);
            assert_eq!(bus.load(nowhere, 1), 0xff);
            assert_eq!(bus.load(nowhere, 4), u32::MAX);
        }
    }

    #[test]
    fn registers_answer_where_they_are_put_once_they_may() {
        let (bus, stored) = bus();
        let mut window = Window::new(Arc::clone(&bus), WINDOW);
        assert_eq!(window.load(0x4008, 4), u64::MAX, "not yet");
        bus.store(at(1, 4), 2, 2);
        assert_eq!(window.load(0x4008, 4), 8);
        window.store(0x4008, 4, 5);
        assert_eq!(*stored.lock().expect("no panic"), 13);
        assert_eq!(window.load(0x5000, 4), u64::MAX);
        assert_eq!(window.load(0x4ffe, 4), u64::MAX, "partly behind it");
        bus.store(at(1, 0x10), 4, u32::MAX);
        assert_eq!(bus.load(at(1, 0x10), 4), 0xffff_f000, "its size");
        bus.store(at(1, 0x10), 4, FIRST + 0x1000);
        assert_eq!(window.load(0x4008, 4), u64::MAX);
        assert_eq!(window.load(0x5008, 4), 8);
    }

    #[test]
    fn ports_are_sparse_and_apart_from_memory() {
        let mut configuration = Configuration::new(HOST_BRIDGE);
        configuration.add_region_at(0, Space::Memory, 0x1000, FIRST);
        configuration.add_region_at(2, Space::Ports, 64, 0x1040);
        let stored = Arc::<Mutex<u64>>::default();
        let mut bus = Bus::new();
        bus.add(Box::new(Echo {
            configuration,
            stored: Arc::clone(&stored),
        }));
        let bus = Arc::new(bus);
        let mut ports = Ports::new(Arc::clone(&bus));
        let sparse = |port: u64| port >> 2 << 12 | port & 0xfff;
        assert_eq!(bus.load(at(1, 0x18), 4), 0x1041, "it says that it is ports");
        bus.store(at(1, 4), 2, 2);
        assert_eq!(ports.load(sparse(0x1046), 2), u64::MAX, "memory alone answers");
        bus.store(at(1, 4), 2, 1);
        assert_eq!(ports.load(sparse(0x1046), 2), 0x1006);
        ports.store(sparse(0x1044), 4, 7);
        assert_eq!(*stored.lock().expect("no panic"), 0x1004 + 7);
        assert_eq!(ports.load(sparse(0x1080), 4), u64::MAX, "behind it");
        assert_eq!(Window::new(bus, 0).load(0x1046, 2), u64::MAX);
    }

    /// Behind two bridges, in the second of which it is alone.
    fn behind_bridges() -> Arc<Bus> {
        let mut bus = Bus::behind(2, &(WINDOW..WINDOW + 0x1000_0000), &(0x1000..0x3000));
        let mut configuration = Configuration::new(HOST_BRIDGE);
        configuration.add_region(0x1000, FIRST);
        let echo = Echo {
            configuration,
            stored: Arc::default(),
        };
        assert_eq!(bus.add(Box::new(echo)), 0);
        assert_eq!((bus.devices(), bus.bridges()), (1, 2));
        Arc::new(bus)
    }

    #[test]
    fn functions_behind_bridges_are_found_by_the_numbers_that_the_bridges_have() {
        let bus = behind_bridges();
        let on = |bus, slot, register| Address {
            bus,
            ..at(slot, register)
        };
        let first = on(0, 1, 0);
        assert_eq!(bus.load(first, 4), 0x0001_1b36, "a bridge");
        assert_eq!(bus.load(on(1, 0, 0), 4), 0x0001_1b36, "another");
        assert_eq!(bus.load(on(2, 0, 0), 4), 0x0008_1b36);
        assert_eq!(bus.load(on(3, 0, 0), 4), u32::MAX);
        // A kernel may number them anew: 0, 4 and 9.
        bus.store(on(0, 1, 0x18), 4, 0x0009_0400);
        assert_eq!(bus.load(on(4, 0, 0), 4), 0x0001_1b36);
        assert_eq!(bus.load(on(2, 0, 0), 4), u32::MAX, "not there any more");
        bus.store(on(4, 0, 0x18), 4, 0x0009_0904);
        assert_eq!(bus.load(on(9, 0, 0), 4), 0x0008_1b36);
        // Not where the first bridge does not lead.
        bus.store(on(0, 1, 0x1a), 1, 8);
        assert_eq!(bus.load(on(9, 0, 0), 4), u32::MAX);
    }

    #[test]
    fn every_bridge_on_the_way_lets_loads_and_masters_through_or_none() {
        let bus = behind_bridges();
        let device = Address { bus: 2, ..at(0, 4) };
        let bridges = [at(1, 4), Address { bus: 1, ..at(0, 4) }];
        let mut window = Window::new(Arc::clone(&bus), WINDOW);
        let mastering = bus.slots[3].function().configuration().mastering();
        bus.store(device, 2, 6);
        assert_eq!((window.load(0x4008, 4), mastering.is_allowed()), (8, true));
        for bridge in bridges {
            bus.store(bridge, 2, 2);
            assert_eq!((window.load(0x4008, 4), mastering.is_allowed()), (8, false));
            bus.store(bridge, 2, 4);
            assert_eq!((window.load(0x4008, 4), mastering.is_allowed()), (u64::MAX, true));
            bus.store(bridge, 2, 6);
        }
        let saved = bus.save();
        bus.store(bridges[1], 2, 0);
        assert_eq!(window.load(0x4008, 4), u64::MAX);
        assert!(bus.restore(&saved));
        assert_eq!((window.load(0x4008, 4), mastering.is_allowed()), (8, true));
    }

    #[test]
    fn a_bus_goes_on_as_another_was_saved() {
        let (old, _) = bus();
        old.store(at(1, 4), 2, 2);
        old.store(at(1, 0x10), 4, FIRST + 0x2000);
        let saved = old.save();
        let (new, _) = bus();
        assert!(new.restore(&saved));
        assert_eq!(Window::new(new.clone(), WINDOW).load(0x6010, 1), 0x10);
        assert_eq!(new.save(), saved);
        assert!(!new.restore(&saved[..1]), "another number of functions");
        let mut wrong = saved;
        wrong[1].configuration.pop();
        assert!(!new.restore(&wrong));
    }
}
