//! The registers of a device, whatever transport they are reached by: status, features, queues, causes of interrupts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sidestep_ia64::PhysicalAddress;
use virtio_queue::{Queue, QueueT};

use super::{Counters, Event, Interrupt};
use crate::machine::timeline::Ticket;
use crate::memory::GuestMemory;
use crate::pci::mastering::Mastering;
use crate::virtio::VirtioDevice;

/// Bits of the device status field (section 2.1).
mod status {
    pub const FEATURES_OK: u32 = 8;
    pub const DRIVER_OK: u32 = 4;
    pub const NEEDS_RESET: u32 = 0x40;
}

/// Features of the transport: chains in tables of their own, event indices, and the standard rather than what was
/// before it.
const FEATURE_INDIRECT: u64 = 1 << 28;
const FEATURE_EVENT_INDEX: u64 = 1 << 29;
pub(in crate::virtio) const FEATURE_VERSION_1: u64 = 1 << 32;

/// Why a device interrupts.
mod cause {
    pub const USED: u32 = 1;
    pub const CONFIGURATION: u32 = 2;
}

/// The registers of a device, whatever transport they are reached by.
pub(in crate::virtio) struct State {
    memory: Arc<GuestMemory>,
    pub(super) interrupt: Box<dyn Interrupt>,
    counters: Arc<Counters>,
    pub(super) queues: Vec<Queue>,
    /// Whether it may reach memory, if that can be forbidden.
    pub(super) mastering: Option<Mastering>,
    offered: u64,
    /// Features of which a driver takes all or none.
    together: u64,
    /// Counts resets and queues that were made ready.
    pub(super) setups: u64,
    /// The device's work on the timeline.
    pub(super) work: Option<Ticket>,
    /// The next poll of the device on the timeline.
    pub(super) poll: Option<Ticket>,
    pub device_features_select: u32,
    pub driver_features_select: u32,
    pub(super) driver_features: u64,
    pub queue_select: u32,
    pub(super) causes: u32,
    pub(super) status: u32,
}

impl State {
    /// Of a device that was reset. Event indices are for queues that somebody else carries.
    pub(super) fn new(
        device: &dyn VirtioDevice,
        queues: Vec<Queue>,
        is_carried: bool,
        (memory, interrupt, counters): (Arc<GuestMemory>, Box<dyn Interrupt>, Arc<Counters>),
    ) -> State {
        let event_index = if is_carried { FEATURE_EVENT_INDEX } else { 0 };
        State {
            memory,
            interrupt,
            counters,
            queues,
            mastering: None,
            offered: device.features() | FEATURE_INDIRECT | FEATURE_VERSION_1 | event_index,
            together: device.features_together(),
            setups: 0,
            work: None,
            poll: None,
            device_features_select: 0,
            driver_features_select: 0,
            driver_features: 0,
            queue_select: 0,
            causes: 0,
            status: 0,
        }
    }

    /// Whether driver and device say by indices from when on they want to be told.
    pub(super) fn has_event_index(&self) -> bool {
        self.driver_features & FEATURE_EVENT_INDEX != 0
    }

    /// Whether the driver has begun its work, and with which features. Drivers of before version 1, which settle no
    /// features, have begun with their first queue: they look for partitions of a disk before they say so.
    pub(super) fn begun(&self) -> Option<u64> {
        let is_settled = self.status & status::FEATURES_OK != 0;
        let has_begun =
            self.status & status::DRIVER_OK != 0 || !is_settled && self.queues.iter().any(QueueT::ready);
        has_begun.then_some(self.driver_features)
    }

    pub(super) fn is_running(&self) -> bool {
        let reaches_memory = self.mastering.as_ref().is_none_or(Mastering::is_allowed);
        reaches_memory && self.begun().is_some() && self.status & status::NEEDS_RESET == 0
    }

    /// The driver broke the rules: nothing more is served until it resets the device.
    pub(super) fn fail(&mut self) {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        self.status |= status::NEEDS_RESET;
        self.raise(Event::Configuration);
    }

    pub(super) fn raise(&mut self, event: Event) {
        if self.interrupt.signal(event) {
            return;
        }
        self.causes |= match event {
            Event::Queue(_) => cause::USED,
            Event::Configuration => cause::CONFIGURATION,
        };
        self.interrupt.set_line(true);
    }

    pub(super) fn reset(&mut self) {
        for queue in &mut self.queues {
            queue.reset();
        }
        self.setups += 1;
        self.driver_features = 0;
        self.device_features_select = 0;
        self.driver_features_select = 0;
        self.queue_select = 0;
        self.status = 0;
        self.causes = 0;
        self.interrupt.set_line(false);
        self.interrupt.reset();
    }

    pub(super) fn set_status(&mut self, value: u32) {
        let together = self.driver_features & self.together;
        let acceptable = self.driver_features & !self.offered == 0
            && self.driver_features & FEATURE_VERSION_1 != 0
            && (together == 0 || together == self.together);
        let refused = if acceptable { 0 } else { status::FEATURES_OK };
        self.status = value & 0xff & !refused | self.status & status::NEEDS_RESET;
    }

    /// The device status field.
    pub fn status(&self) -> u32 {
        self.status
    }

    /// Why the device interrupts.
    pub fn causes(&self) -> u32 {
        self.causes
    }

    /// Takes back causes of the interrupt.
    pub fn acknowledge(&mut self, causes: u32) {
        self.causes &= !causes;
        if self.causes == 0 {
            self.interrupt.set_line(false);
        }
    }

    /// The selected half of the features that are offered.
    pub fn device_features(&self) -> u32 {
        half(self.offered, self.device_features_select)
    }

    /// Accepts features by the selected half, as long as that is not settled.
    pub fn accept_features(&mut self, value: u32) {
        self.accept_half(self.driver_features_select, value);
    }

    fn accept_half(&mut self, select: u32, value: u32) {
        if self.status & status::FEATURES_OK != 0 {
            return;
        }
        match select {
            0 => self.driver_features = self.driver_features >> 32 << 32 | u64::from(value),
            1 => self.driver_features = self.driver_features & 0xffff_ffff | u64::from(value) << 32,
            _ => {}
        }
    }

    /// The selected half of the features that the driver has accepted.
    pub fn driver_features(&self) -> u32 {
        half(self.driver_features, self.driver_features_select)
    }

    /// The first half of the features that are offered, all that drivers of before version 1 see.
    pub fn offered_first(&self) -> u32 {
        half(self.offered, 0)
    }

    /// Accepts features of the first half, of those that are offered: a driver of before version 1 is not told which
    /// are refused.
    pub fn accept_first(&mut self, value: u32) {
        self.accept_half(0, value & self.offered_first());
    }

    /// The first half of the features that the driver has accepted.
    pub fn accepted_first(&self) -> u32 {
        half(self.driver_features, 0)
    }

    /// How many queues there are.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// The selected queue, if there is such a one.
    pub fn selected_queue(&mut self) -> Option<&mut Queue> {
        self.queues.get_mut(self.queue_select as usize)
    }

    /// The selected queue, if the driver may still set it up.
    pub fn open_queue(&mut self) -> Option<&mut Queue> {
        self.selected_queue().filter(|queue| !queue.ready())
    }

    /// Makes the selected queue ready if its rings are RAM; rings elsewhere are the driver's error.
    pub(super) fn make_ready(&mut self) {
        let memory = Arc::clone(&self.memory);
        let has_event_index = self.has_event_index();
        let Some(queue) = self.selected_queue() else {
            return;
        };
        let entries = u64::from(queue.size());
        // Sizes of the three rings (section 2.7).
        let rings = [
            (queue.desc_table(), 16 * entries),
            (queue.avail_ring(), 6 + 2 * entries),
            (queue.used_ring(), 6 + 8 * entries),
        ];
        if rings
            .iter()
            .all(|&(address, size)| memory.is_ram(PhysicalAddress(address), size))
        {
            queue.set_event_idx(has_event_index);
            queue.set_ready(true);
            self.setups += 1;
        } else {
            self.fail();
        }
    }
}

/// The low or the high half of a word; zero for others.
fn half(word: u64, select: u32) -> u32 {
    match select {
        0 => word as u32,
        1 => (word >> 32) as u32,
        _ => 0,
    }
}
