//! The registers of before version 1 (sections 4.1.4.8 and 2.7.2 of the specification): a region of I/O ports, through
//! which drivers set up a device that know nothing of capabilities, those of Linux before 4.0 for instance.
//!
//! A queue has as many entries as the device says, and one place for its three rings; there is no step at which
//! features are settled, and drivers use a queue before they say that they have begun. What stands behind the registers
//! moves by four bytes while messages are enabled.

use virtio_queue::{Queue, QueueT};

use super::{CONFIGURATION_SOURCE, Transport, source};
use crate::virtio::facilities::set_rings;

/// Offsets of registers.
pub(super) mod register {
    pub const DEVICE_FEATURES: u64 = 0;
    pub const DRIVER_FEATURES: u64 = 4;
    pub const QUEUE_PLACE: u64 = 8;
    pub const QUEUE_SIZE: u64 = 12;
    pub const QUEUE_SELECT: u64 = 14;
    pub const QUEUE_NOTIFY: u64 = 16;
    pub const STATUS: u64 = 18;
    pub const INTERRUPT_STATUS: u64 = 19;
    /// Only while messages are enabled; else the device's own configuration begins here.
    pub const CONFIGURATION_MESSAGE: u64 = 20;
    pub const QUEUE_MESSAGE: u64 = 22;
    /// Where the device's own configuration begins while messages are enabled.
    pub const CONFIGURATION: u64 = 24;
}

/// Rings are said to be at multiples of this, and the used ring begins at one.
const ALIGNMENT: u64 = 4096;

/// How many ports a device with a configuration of so many bytes has.
pub(super) fn ports(configuration_bytes: usize) -> u32 {
    (register::CONFIGURATION as u32 + configuration_bytes as u32).next_power_of_two()
}

/// The number of the PCI device that is a kind of virtio device for such drivers, if one is (section 4.1.2.1).
pub(super) fn device(kind: u32) -> Option<u16> {
    Some(match kind {
        1 => 0x1000, // network
        2 => 0x1001, // block
        3 => 0x1003, // console
        4 => 0x1005, // entropy
        9 => 0x1009, // 9P
        _ => return None,
    })
}

/// How wide a register is, in bytes.
fn width(offset: u64) -> u64 {
    match offset {
        ..register::QUEUE_SIZE => 4,
        register::STATUS | register::INTERRUPT_STATUS => 1,
        _ => 2,
    }
}

/// Puts the rings of a queue where its descriptors begin.
fn place(queue: &mut Queue, descriptors: u64) {
    let entries = u64::from(queue.max_size());
    let available = descriptors + 16 * entries;
    let used = (available + 6 + 2 * entries).next_multiple_of(ALIGNMENT);
    set_rings(queue, [descriptors, available, used]);
}

impl Transport {
    /// The offset in the device's own configuration of a port, if it is there.
    fn legacy_configuration(&self, port: u64) -> Option<u64> {
        let begin = match self.sends_messages() {
            true => register::CONFIGURATION,
            false => register::CONFIGURATION_MESSAGE,
        };
        port.checked_sub(begin)
    }

    /// Loads from a port.
    pub(super) fn load_legacy(&self, port: u64, size: u64) -> u64 {
        if let Some(offset) = self.legacy_configuration(port) {
            return self.facilities.load_configuration(offset, size);
        }
        if size != width(port) || !port.is_multiple_of(size) {
            return 0;
        }
        if port == register::INTERRUPT_STATUS {
            return self.take_causes();
        }
        let mut state = self.facilities.state();
        let select = state.queue_select as usize;
        match port {
            register::DEVICE_FEATURES => u64::from(state.offered_first()),
            register::DRIVER_FEATURES => u64::from(state.accepted_first()),
            register::QUEUE_SELECT => select as u64,
            register::STATUS => u64::from(state.status()),
            register::CONFIGURATION_MESSAGE => u64::from(self.interrupts.message(CONFIGURATION_SOURCE)),
            register::QUEUE_MESSAGE => u64::from(self.interrupts.message(source(select))),
            _ => match state.selected_queue() {
                Some(queue) if port == register::QUEUE_SIZE => u64::from(queue.max_size()),
                Some(queue) if port == register::QUEUE_PLACE && queue.ready() => {
                    queue.desc_table() / ALIGNMENT
                }
                _ => 0,
            },
        }
    }

    /// Stores to a port. The device's own configuration is not written to.
    pub(super) fn store_legacy(&mut self, port: u64, size: u64, value: u64) {
        let is_register = self.legacy_configuration(port).is_none();
        if !is_register || size != width(port) || !port.is_multiple_of(size) {
            return;
        }
        match port {
            register::DRIVER_FEATURES => self.facilities.state().accept_first(value as u32),
            register::QUEUE_PLACE => {
                self.facilities.set_ready(false);
                if value != 0 {
                    // Linux before 2.6.34 never lets the device do what its driver relies on.
                    self.become_master();
                    if let Some(queue) = self.facilities.state().selected_queue() {
                        place(queue, value * ALIGNMENT);
                    }
                    self.facilities.set_ready(true);
                }
            }
            register::QUEUE_SELECT => self.facilities.state().queue_select = value as u32,
            register::QUEUE_NOTIFY => self.facilities.notify(value as u32),
            register::STATUS => self.facilities.set_status(value as u32),
            register::CONFIGURATION_MESSAGE => self.interrupts.assign(CONFIGURATION_SOURCE, value as u16),
            register::QUEUE_MESSAGE => {
                let select = self.facilities.state().queue_select as usize;
                self.interrupts.assign(source(select), value as u16);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use sidestep_ia64::PhysicalAddress;

    use super::super::{LEGACY, legacy_ports, sources};
    use super::*;
    use crate::machine::interrupt_block::InterruptBlock;
    use crate::machine::timeline::Timeline;
    use crate::memory::{GRANULE, GuestMemory, MemoryRange};
    use crate::network::Link;
    use crate::pci::Function;
    use crate::pci::interrupts::Interrupts;
    use crate::virtio::facilities::Facilities;
    use crate::virtio::network::Network;

    const ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 7];
    const TRANSMIT: u64 = 1;
    /// Where the queue to transmit has its descriptors, and with 256 entries its other rings.
    const DESCRIPTORS: u64 = 0x4000;
    const AVAILABLE: u64 = DESCRIPTORS + 4096;
    const USED: u64 = DESCRIPTORS + 8192;
    const FRAME: u64 = 0x8000;

    /// Keeps what is sent.
    struct Cable(Arc<Mutex<Vec<u8>>>);

    impl Link for Cable {
        fn send(&mut self, frame: &[u8]) {
            self.0.lock().expect("no panic").extend_from_slice(frame);
        }

        fn has_frame(&self) -> bool {
            false
        }

        fn receive(&mut self) -> Option<Vec<u8>> {
            None
        }

        fn advance(&mut self, _: u64) {}

        fn poll_interval(&self) -> u64 {
            1_000_000
        }
    }

    /// A network device and its driver.
    struct Driver {
        transport: Transport,
        memory: Arc<GuestMemory>,
        timeline: Arc<Timeline>,
        sent: Arc<Mutex<Vec<u8>>>,
    }

    impl Driver {
        fn new() -> Driver {
            let memory = GuestMemory::new(&[MemoryRange::ram(0, GRANULE)]).expect("a good layout");
            let memory = Arc::new(memory);
            let timeline = Arc::new(Timeline::new(Arc::default()));
            let processors = Arc::new(InterruptBlock::new(1, Arc::default()));
            let interrupts = Interrupts::new(sources(2), Box::new(|_| {}), processors);
            let sent = Arc::<Mutex<Vec<u8>>>::default();
            let facilities = Facilities::new(
                Box::new(Network::new(ADDRESS, Box::new(Cable(Arc::clone(&sent))))),
                Arc::clone(&memory),
                Box::new(interrupts.clone()),
                Arc::clone(&timeline),
            );
            assert_eq!(legacy_ports(&facilities), 32);
            let mut transport = Transport::transitional(facilities, interrupts, (0xe000_0000, 0x1000), 16);
            // As drivers did: it may answer, and nobody lets it master the bus.
            transport.store_configuration(4, 2, 3);
            Driver {
                transport,
                memory,
                timeline,
                sent,
            }
        }

        fn load(&mut self, port: u64, size: u64) -> u64 {
            self.transport.load(LEGACY + port, size)
        }

        fn store(&mut self, port: u64, size: u64, value: u64) {
            self.transport.store(LEGACY + port, size, value);
        }

        /// Sets up the queue to transmit, as drivers did.
        fn set_up(&mut self) {
            for (port, size, value) in [
                (register::STATUS, 1, 0),
                (register::STATUS, 1, 3),
                (register::DRIVER_FEATURES, 4, 1 << 5),
                (register::QUEUE_SELECT, 2, TRANSMIT),
                (register::QUEUE_PLACE, 4, DESCRIPTORS / ALIGNMENT),
            ] {
                self.store(port, size, value);
            }
        }

        /// Sends so many bytes, headers included, for the `number`th time.
        fn send(&mut self, number: u64, bytes: u64) {
            for (address, value) in [
                (DESCRIPTORS, FRAME),
                (DESCRIPTORS + 8, bytes),
                (AVAILABLE, number << 16),
            ] {
                let place = PhysicalAddress(address);
                self.memory.write_value(place, value).expect("RAM");
            }
            self.store(register::QUEUE_NOTIFY, 2, TRANSMIT);
            self.timeline.perform_until(number * 1_000_000);
        }
    }

    #[test]
    fn a_driver_of_before_version_1_is_served() {
        let mut driver = Driver::new();
        let number = driver.transport.load_configuration(0, 4);
        assert_eq!(number, 0x1000_1af4, "a transitional network device");
        assert_eq!(driver.transport.load_configuration(0x2c, 4), 0x0001_1af4);
        assert_eq!(driver.load(register::DEVICE_FEATURES, 4) & 1 << 5, 1 << 5);
        driver.set_up();
        assert_eq!(driver.load(register::QUEUE_SIZE, 2), 256);
        assert_eq!(driver.load(register::QUEUE_PLACE, 4), DESCRIPTORS / ALIGNMENT);
        let frame: Vec<u8> = (0..64).collect();
        let written = driver.memory.write(PhysicalAddress(FRAME + 10), &frame);
        written.expect("RAM");
        driver.send(1, 74);
        assert_eq!(*driver.sent.lock().expect("no panic"), frame);
        let used: u16 = driver.memory.read_value(PhysicalAddress(USED + 2)).expect("RAM");
        assert_eq!(used, 1);
        assert_eq!(driver.load(register::INTERRUPT_STATUS, 1), 1);
        assert_eq!(driver.load(register::INTERRUPT_STATUS, 1), 0, "taken");
        driver.store(register::STATUS, 1, 7);
        driver.send(2, 74);
        assert_eq!(driver.sent.lock().expect("no panic").len(), 128, "as before");
        driver.store(register::QUEUE_PLACE, 4, 0);
        assert_eq!(driver.load(register::QUEUE_PLACE, 4), 0, "taken back");
    }

    #[test]
    fn a_driver_of_version_1_has_the_longer_header() {
        let mut driver = Driver::new();
        driver.set_up();
        driver.store(register::STATUS, 1, 0);
        driver.set_up();
        driver.store(register::STATUS, 1, 0);
        // The same queue by the registers of version 1.
        for (register, size, value) in [
            (0x14, 1, 3),
            (0x08, 4, 1),
            (0x0c, 4, 1),
            (0x14, 1, 0xb),
            (0x16, 2, TRANSMIT),
            (0x20, 8, DESCRIPTORS),
            (0x28, 8, AVAILABLE),
            (0x30, 8, USED),
            (0x1c, 2, 1),
            (0x14, 1, 0xf),
        ] {
            driver.transport.store(register, size, value);
        }
        driver.send(1, 74);
        assert_eq!(driver.sent.lock().expect("no panic").len(), 62);
    }

    #[test]
    fn the_devices_configuration_moves_behind_the_messages() {
        let mut driver = Driver::new();
        assert_eq!(driver.load(20, 4), 0x0002, "two bytes of its address, and zeros");
        assert_eq!(driver.load(25, 1), 7);
        let capability = driver.transport.messages;
        driver.transport.store_configuration(capability + 2, 2, 0x8000);
        assert_eq!(driver.load(register::CONFIGURATION_MESSAGE, 2), 0xffff);
        driver.store(register::QUEUE_SELECT, 2, TRANSMIT);
        driver.store(register::QUEUE_MESSAGE, 2, 2);
        assert_eq!(driver.load(register::QUEUE_MESSAGE, 2), 2);
        assert_eq!(driver.load(29, 1), 7);
    }

    #[test]
    fn what_is_no_queue_in_memory_is_refused() {
        let mut driver = Driver::new();
        driver.set_up();
        driver.store(register::QUEUE_SELECT, 2, 9);
        assert_eq!(driver.load(register::QUEUE_SIZE, 2), 0);
        driver.store(register::QUEUE_PLACE, 4, 1);
        assert_eq!(driver.load(register::STATUS, 1), 3, "nothing happens");
        driver.store(register::QUEUE_SELECT, 2, 0);
        driver.store(register::QUEUE_PLACE, 4, u64::from(u32::MAX));
        assert_eq!(driver.load(register::QUEUE_PLACE, 4), 0);
        assert_eq!(driver.load(register::STATUS, 1), 0x43, "asks to be reset");
        assert_eq!(driver.load(register::STATUS, 2), 0, "not its width");
    }
}
