//! A device behind its registers, as machines are saved with it.

use serde::{Deserialize, Serialize};
use virtio_queue::{Queue, QueueT};

use super::{Facilities, lock, set_rings};
use crate::machine::timeline::{Phase, Ticket};

/// A device behind its registers, as machines are saved with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FacilitiesState {
    identifier: u32,
    /// What the device itself goes on from.
    device: u64,
    queues: Vec<QueueRegisters>,
    device_features_select: u32,
    driver_features_select: u32,
    driver_features: u64,
    queue_select: u32,
    causes: u32,
    status: u32,
    work: Option<Ticket>,
    poll: Option<Ticket>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct QueueRegisters {
    size: u16,
    ready: bool,
    rings: [u64; 3],
    next_available: u16,
    next_used: u16,
}

impl QueueRegisters {
    fn of(queue: &Queue) -> QueueRegisters {
        QueueRegisters {
            size: queue.size(),
            ready: queue.ready(),
            rings: [queue.desc_table(), queue.avail_ring(), queue.used_ring()],
            next_available: queue.next_avail(),
            next_used: queue.next_used(),
        }
    }

    fn put_into(&self, queue: &mut Queue) {
        queue.reset();
        queue.set_size(self.size);
        set_rings(queue, self.rings);
        queue.set_next_avail(self.next_available);
        queue.set_next_used(self.next_used);
        queue.set_ready(self.ready);
    }
}

impl Facilities {
    /// Everything, to be saved.
    pub fn save(&self) -> FacilitiesState {
        let device = lock(&self.0.device).save();
        let state = self.state();
        FacilitiesState {
            identifier: self.0.identifier,
            device,
            queues: state.queues.iter().map(QueueRegisters::of).collect(),
            device_features_select: state.device_features_select,
            driver_features_select: state.driver_features_select,
            driver_features: state.driver_features,
            queue_select: state.queue_select,
            causes: state.causes,
            status: state.status,
            work: state.work,
            poll: state.poll,
        }
    }

    /// Goes on from what was saved of a device of the same kind; false, and nothing happens, if it was of another.
    pub fn restore(&self, saved: &FacilitiesState) -> bool {
        let mut device = lock(&self.0.device);
        let mut state = self.state();
        if saved.identifier != self.0.identifier || saved.queues.len() != state.queues.len() {
            return false;
        }
        device.restore(saved.device);
        for (queue, registers) in state.queues.iter_mut().zip(&saved.queues) {
            registers.put_into(queue);
        }
        state.device_features_select = saved.device_features_select;
        state.driver_features_select = saved.driver_features_select;
        state.driver_features = saved.driver_features;
        state.queue_select = saved.queue_select;
        state.causes = saved.causes;
        state.status = saved.status;
        state.work = saved.work;
        state.poll = saved.poll;
        if let Some(features) = state.begun() {
            device.begin(features);
        }
        let timeline = &self.0.timeline;
        if let Some(ticket) = saved.work {
            let again = self.clone();
            timeline.reschedule(ticket, Phase::Transfer, move |due| again.work(due));
        }
        if let Some(ticket) = saved.poll {
            let again = self.clone();
            timeline.reschedule(ticket, Phase::Transfer, move |due| again.poll(due));
        }
        true
    }
}
