//! Devices behind physical addresses.
//!
//! A [`Bus`] is filled while a machine is built and does not change afterwards. A device sees offsets into its
//! own range only, is locked while it answers, and must not reach back into the bus; what it needs of the machine
//! (interrupts, memory, events) it is given when it is made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sidestep_ia64::PhysicalAddress;
use thiserror::Error;

/// A device with registers in memory.
pub trait Device: Send {
    /// Loads `size` (1, 2, 4 or 8) bytes at `offset` from the device's first address.
    fn load(&mut self, offset: u64, size: u64) -> u64;

    /// Stores `size` (1, 2, 4 or 8) bytes at `offset` from the device's first address.
    fn store(&mut self, offset: u64, size: u64, value: u64);
}

/// A device that several owners share.
pub type SharedDevice = Arc<Mutex<dyn Device>>;

/// Two devices that claim one address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the device `{name}` at {start} overlaps the device `{other}`")]
pub struct BusConflict {
    /// The device that came later.
    pub name: String,
    /// Its first address.
    pub start: PhysicalAddress,
    /// The device that is there.
    pub other: String,
}

struct Attached {
    name: String,
    size: u64,
    device: SharedDevice,
}

/// The devices of a machine by their first address.
#[derive(Default)]
pub struct Bus {
    devices: BTreeMap<u64, Attached>,
}

impl Bus {
    /// Attaches a device to the `size` bytes at `start`.
    ///
    /// # Errors
    /// If another device answers at one of them.
    pub fn attach(
        &mut self,
        name: &str,
        start: PhysicalAddress,
        size: u64,
        device: SharedDevice,
    ) -> Result<(), BusConflict> {
        let before = self.devices.range(..start.0.saturating_add(size)).next_back();
        if let Some((&other_start, other)) = before
            && other_start + other.size > start.0
        {
            return Err(BusConflict {
                name: name.to_owned(),
                start,
                other: other.name.clone(),
            });
        }
        let name = name.to_owned();
        self.devices.insert(start.0, Attached { name, size, device });
        Ok(())
    }

    /// Loads from the device at an address; `None` if there is none.
    pub fn load(&self, address: PhysicalAddress, size: u64) -> Option<u64> {
        let (device, offset) = self.find(address, size)?;
        let value = lock(device).load(offset, size);
        Some(if size < 8 {
            value & ((1 << (size * 8)) - 1)
        } else {
            value
        })
    }

    /// Stores to the device at an address; false if there is none.
    pub fn store(&self, address: PhysicalAddress, size: u64, value: u64) -> bool {
        let Some((device, offset)) = self.find(address, size) else {
            return false;
        };
        lock(device).store(offset, size, value);
        true
    }

    /// Every device: its name, first address and size, in ascending order.
    pub fn devices(&self) -> impl Iterator<Item = (&str, PhysicalAddress, u64)> {
        self.devices
            .iter()
            .map(|(&start, attached)| (attached.name.as_str(), PhysicalAddress(start), attached.size))
    }

    fn find(&self, address: PhysicalAddress, size: u64) -> Option<(&SharedDevice, u64)> {
        let (start, attached) = self.devices.range(..=address.0).next_back()?;
        let offset = address.0 - start;
        (offset + size <= attached.size).then_some((&attached.device, offset))
    }
}

/// A device whose method panicked has broken an invariant; that is reported where it happened.
fn lock(device: &SharedDevice) -> std::sync::MutexGuard<'_, dyn Device + 'static> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with the offset; notes the last store.
    struct Echo(u64);

    impl Device for Echo {
        fn load(&mut self, offset: u64, _: u64) -> u64 {
            offset | 0xff00
        }

        fn store(&mut self, offset: u64, _: u64, value: u64) {
            self.0 = offset + value;
        }
    }

    fn echo() -> Arc<Mutex<Echo>> {
        Arc::new(Mutex::new(Echo(0)))
    }

    #[test]
    fn a_device_answers_in_its_range_only() {
        let mut bus = Bus::default();
        let device = echo();
        bus.attach("echo", PhysicalAddress(0x1000), 0x10, device.clone())
            .expect("a free range");
        assert_eq!(bus.load(PhysicalAddress(0x1004), 4), Some(0xff04));
        assert_eq!(
            bus.load(PhysicalAddress(0x1004), 1),
            Some(4),
            "as wide as asked for"
        );
        assert_eq!(bus.load(PhysicalAddress(0x100c), 8), None, "partly behind it");
        assert_eq!(bus.load(PhysicalAddress(0xfff), 1), None);
        assert!(bus.store(PhysicalAddress(0x1008), 8, 5));
        assert_eq!(device.lock().expect("no panic").0, 13);
        assert!(!bus.store(PhysicalAddress(0x1010), 1, 5));
    }

    #[test]
    fn overlapping_devices_are_refused() {
        let mut bus = Bus::default();
        bus.attach("first", PhysicalAddress(0x1000), 0x100, echo())
            .expect("a free range");
        for (start, size) in [(0xfff, 2), (0x1000, 1), (0x10ff, 1), (0x800, 0x1000)] {
            let refused = bus.attach("second", PhysicalAddress(start), size, echo());
            assert_eq!(refused.expect_err("an overlap").other, "first");
        }
        bus.attach("behind", PhysicalAddress(0x1100), 1, echo())
            .expect("a free range");
    }
}
