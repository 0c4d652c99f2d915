//! The processor interrupt block: how processors and devices send interrupts to processors.
//!
//! Manual volume 2, section 5.8.4. The block takes 2 MB of physical addresses at [`INTERRUPT_BLOCK`]. An 8-byte store
//! into its lower half sends the interrupt that the data describe to the processor that the address names by its local
//! identifier (cr.lid: id and eid); single bytes in the upper half acknowledge an 8259 (INTA) and set the external task
//! priority (XTP), which matters to a chipset that chooses among processors: here a message reaches the one it names.
//! Devices send the same messages with [`InterruptBlock::send`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use sidestep_ia64::PhysicalAddress;
use sidestep_ia64::interrupts::{Interrupts, SPURIOUS};

use super::wakeups::Wakeups;
use crate::memory::INTERRUPT_BLOCK;

/// Where the upper half begins.
const UPPER_HALF: u64 = 1 << 20;
/// The interrupt acknowledge byte.
const INTA: u64 = 0x1e_0000;
/// The vector of the non-maskable interrupt, and the one of an 8259.
const NON_MASKABLE: u8 = 2;
const EXTERNAL_CONTROLLER: u8 = 0;

/// What a message asks of its processor (manual volume 2, figure 5-15: delivery mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// An external interrupt with this vector.
    Interrupt(u8),
    /// A platform management interrupt, which belongs to firmware. This one has no use for it.
    PlatformManagement(u8),
    /// The non-maskable interrupt.
    NonMaskable,
    /// An initialisation interrupt, which belongs to firmware. This one calls no OS_INIT handler.
    Initialisation,
    /// The interrupt of an 8259.
    ExternalController,
}

impl Delivery {
    /// What the data of a store or of a redirection entry say: vector in bits 7 to 0, mode in bits 10 to 8;
    /// `None` for a reserved mode.
    pub fn from_data(data: u64) -> Option<Delivery> {
        let vector = data as u8;
        match data >> 8 & 7 {
            0 | 1 => Some(Delivery::Interrupt(vector)),
            2 => Some(Delivery::PlatformManagement(vector)),
            4 => Some(Delivery::NonMaskable),
            5 => Some(Delivery::Initialisation),
            7 => Some(Delivery::ExternalController),
            _ => None,
        }
    }
}

/// A processor's local identifier: what cr.lid holds in bits 31 to 24 (id) and 23 to 16 (eid).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalIdentifier {
    /// The identifier.
    pub id: u8,
    /// The extended identifier.
    pub eid: u8,
}

impl LocalIdentifier {
    /// Of cr.lid.
    pub fn from_register(value: u64) -> LocalIdentifier {
        LocalIdentifier {
            id: (value >> 24) as u8,
            eid: (value >> 16) as u8,
        }
    }

    /// As cr.lid holds it.
    pub fn register(self) -> u64 {
        u64::from(self.id) << 24 | u64::from(self.eid) << 16
    }

    fn bits(self) -> u32 {
        u32::from(self.id) << 8 | u32::from(self.eid)
    }
}

/// One processor, as messages reach it.
struct Target {
    identifier: AtomicU32,
    interrupts: OnceLock<Arc<Interrupts>>,
}

/// One processor as a target, as machines are saved with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetState {
    identifier: u32,
}

/// The processors of a machine as targets of interrupts.
pub struct InterruptBlock {
    targets: Vec<Target>,
    wakeups: Arc<Wakeups>,
}

impl InterruptBlock {
    /// For this many processors; processor `n` has id `n` and eid 0 until it writes cr.lid.
    pub(crate) fn new(processors: usize, wakeups: Arc<Wakeups>) -> InterruptBlock {
        let target = |index: usize| Target {
            identifier: AtomicU32::new(
                LocalIdentifier {
                    id: index as u8,
                    eid: 0,
                }
                .bits(),
            ),
            interrupts: OnceLock::new(),
        };
        let targets = (0..processors).map(target).collect();
        InterruptBlock { targets, wakeups }
    }

    pub(crate) fn connect(&self, index: usize, interrupts: Arc<Interrupts>) {
        let connected = self.targets[index].interrupts.set(interrupts);
        assert!(connected.is_ok(), "a processor is connected once");
    }

    /// Notes that a processor has another local identifier now.
    pub fn identify(&self, index: usize, identifier: LocalIdentifier) {
        self.targets[index]
            .identifier
            .store(identifier.bits(), Ordering::Relaxed);
    }

    /// Every target, to be saved.
    pub(crate) fn save(&self) -> Vec<TargetState> {
        let state = |target: &Target| TargetState {
            identifier: target.identifier.load(Ordering::Relaxed),
        };
        self.targets.iter().map(state).collect()
    }

    /// Goes on from what was saved of as many targets.
    pub(crate) fn restore(&self, states: &[TargetState]) {
        for (target, state) in self.targets.iter().zip(states) {
            target.identifier.store(state.identifier, Ordering::Relaxed);
        }
    }

    /// Sends a message to the processor that an identifier names; false if there is none.
    pub fn send(&self, to: LocalIdentifier, delivery: Delivery) -> bool {
        let named = |target: &&Target| target.identifier.load(Ordering::Relaxed) == to.bits();
        let Some(target) = self.targets.iter().find(named) else {
            return false;
        };
        self.deliver(target, delivery);
        true
    }

    /// Sends what a device's store of `data` to an address says; false if that is not in the lower half
    /// of the block, or nobody is there.
    pub fn message(&self, address: PhysicalAddress, data: u32) -> bool {
        let Some(offset) = address
            .0
            .checked_sub(INTERRUPT_BLOCK.0)
            .filter(|&offset| offset < UPPER_HALF)
        else {
            return false;
        };
        let delivery = Delivery::from_data(u64::from(data));
        delivery.is_some_and(|delivery| self.send(named(offset), delivery))
    }

    /// The processor that a message to an address reaches.
    pub fn processor_at(&self, address: PhysicalAddress) -> Option<usize> {
        let offset = address.0.checked_sub(INTERRUPT_BLOCK.0)?;
        let bits = (offset < UPPER_HALF).then(|| named(offset).bits())?;
        let is_named = |target: &Target| target.identifier.load(Ordering::Relaxed) == bits;
        self.targets.iter().position(is_named)
    }

    /// How many processors there are.
    pub fn processors(&self) -> usize {
        self.targets.len()
    }

    /// A load of a processor from the block.
    pub(crate) fn load(&self, offset: u64, size: u64) -> u64 {
        // There is no 8259 whose vector could be acknowledged; the rest of the block is not for reading.
        if offset == INTA && size == 1 {
            u64::from(SPURIOUS)
        } else {
            0
        }
    }

    /// A store of a processor to the block.
    pub(crate) fn store(&self, offset: u64, size: u64, value: u64) {
        if let (true, 8, Some(delivery)) = (offset < UPPER_HALF, size, Delivery::from_data(value)) {
            self.send(named(offset), delivery);
        }
    }

    fn deliver(&self, target: &Target, delivery: Delivery) {
        let vector = match delivery {
            Delivery::Interrupt(vector) => Some(vector),
            Delivery::NonMaskable => Some(NON_MASKABLE),
            Delivery::ExternalController => Some(EXTERNAL_CONTROLLER),
            Delivery::PlatformManagement(_) | Delivery::Initialisation => None,
        };
        if let (Some(vector), Some(interrupts)) = (vector, target.interrupts.get()) {
            interrupts.request(vector);
        }
        self.wakeups.wake();
    }
}

/// The processor that an offset in the lower half names.
fn named(offset: u64) -> LocalIdentifier {
    LocalIdentifier {
        id: (offset >> 12) as u8,
        eid: (offset >> 4) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> (InterruptBlock, Vec<Arc<Interrupts>>) {
        let block = InterruptBlock::new(2, Arc::default());
        let interrupts: Vec<Arc<Interrupts>> = (0..2).map(|_| Arc::default()).collect();
        for (index, interrupts) in interrupts.iter().enumerate() {
            block.connect(index, Arc::clone(interrupts));
        }
        (block, interrupts)
    }

    #[test]
    fn a_store_sends_to_the_processor_that_the_address_names() {
        let (block, interrupts) = block();
        block.store(1 << 12, 8, 0x41);
        assert_eq!(interrupts[1].requests(1), 1 << 1);
        assert_eq!(interrupts[0].requests(1), 0);
        block.identify(0, LocalIdentifier { id: 5, eid: 3 });
        block.store(5 << 12 | 3 << 4, 8, 4 << 8);
        assert_eq!(interrupts[0].requests(0), 1 << 2, "the non-maskable interrupt");
        block.store(9 << 12, 8, 0x41);
        block.store(1 << 12, 4, 0x42);
        assert_eq!(interrupts[1].requests(1), 1 << 1, "nobody there; not eight bytes");
    }

    #[test]
    fn nobody_acknowledges_an_8259() {
        let (block, _) = block();
        assert_eq!(block.load(INTA, 1), 15);
    }
}
