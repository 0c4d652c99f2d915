//! The block devices and network interfaces that virtual machines have from the monitor, as threads.
//!
//! Each kind of device has a thread on a core of its own, the devices', whose time nobody is charged for. A request
//! starts it where a sidecore, or by exit the guest's core, has handed it over; it joins the queue of its virtual
//! machine's device, and once it is the first, `done` comes as much later as the device works. A queue that is full
//! refuses it.

use std::sync::Arc;

use sidestep_zerowait::{Attributes, Graph, GraphError, Mode, Thread};

use super::sidecores::{Board, Machines, Service, SharedBoard, Worker, board, host_time, locked};
use crate::costs::HostCosts;
use crate::cycle::Cycle;
use crate::sidecall::request::Refusal;
use crate::virtual_machine::{DeviceKind, QUEUE_MAX};

/// The threads of all devices.
pub(super) struct DeviceProgram {
    pub machines: Machines,
    pub costs: Arc<HostCosts>,
    pub board: SharedBoard,
}

impl DeviceProgram {
    pub fn declare(
        self,
        graph: &mut Graph,
        core: u16,
    ) -> Result<[Thread<u64>; DeviceKind::ALL.len()], GraphError> {
        let attributes = Attributes::new(Mode::Kernel).on_core(core);
        let program = Arc::new(self);
        let devices = DeviceKind::ALL.map(|device| graph.declare::<u64>(device.name(), attributes));
        for device in DeviceKind::ALL {
            let thread = devices[device as usize];
            let done = graph.declare::<u64>(format!("{} done", device.name()), attributes);
            let begun = graph.edge(thread, done)?;
            let next = graph.edge(done, done)?;
            const ROOM: &str = "a device works on one request at a time";
            let queues = Arc::clone(&program);
            graph.define(thread, move |cx, ticket| {
                if let Some(cycles) = queues.queue(device, ticket as usize, host_time(cx.now())) {
                    let later = cx.continue_after(begun, cycles, ticket);
                    assert!(later.is_ok(), "{ROOM}");
                }
            });
            let finishes = Arc::clone(&program);
            graph.define(done, move |cx, ticket| {
                if let Some((ticket, cycles)) = finishes.finish(device, ticket as usize, host_time(cx.now()))
                {
                    let later = cx.continue_after(next, cycles, ticket as u64);
                    assert!(later.is_ok(), "{ROOM}");
                }
            });
        }
        Ok(devices)
    }

    /// A request joins its device's queue, or is refused if that is full. How long the device works if it begins now.
    fn queue(&self, device: DeviceKind, number: usize, now: Cycle) -> Option<u64> {
        let mut shared = board(&self.board);
        let ticket = *shared.ticket(number);
        let now = shared.begins(now, &ticket, Cycle::START);
        let queue = &mut shared.queues[ticket.machine][device as usize];
        if queue.len() >= QUEUE_MAX {
            shared.complete(&self.machines, &self.costs, number, Err(Refusal::Full), now);
            return None;
        }
        queue.push_back(number);
        (queue.len() == 1).then(|| self.begin(&mut shared, device, number, now))
    }

    /// A device is done with a request; which one it begins then, and how long it works on it.
    fn finish(&self, device: DeviceKind, number: usize, now: Cycle) -> Option<(usize, u64)> {
        let mut shared = board(&self.board);
        let ticket = *shared.ticket(number);
        let now = shared.begins(now, &ticket, Cycle::START);
        let mut machine = locked(&self.machines[ticket.machine]);
        let answer = machine.transfer(&self.costs, &ticket.device_request(), now);
        drop(machine);
        let queue = &mut shared.queues[ticket.machine][device as usize];
        let first = queue.pop_front();
        assert_eq!(first, Some(number), "a device works on the first of its queue");
        let next = queue.front().copied();
        shared.complete(&self.machines, &self.costs, number, answer, now);
        next.map(|next| (next, self.begin(&mut shared, device, next, now)))
    }

    /// A device begins a request: how long it works. What it refuses takes it no time.
    fn begin(&self, shared: &mut Board, device: DeviceKind, number: usize, now: Cycle) -> u64 {
        let ticket = *shared.ticket(number);
        let request = ticket.device_request();
        let machine = locked(&self.machines[ticket.machine]);
        let cycles = machine.device_cycles(&self.costs, &request, now).unwrap_or(0);
        shared.ticket(number).time = now + cycles;
        if let Some(services) = &mut shared.services {
            let service = Service {
                worker: Worker::Device(device),
                machine: ticket.machine,
                kind: Some(request.kind()),
                start: now,
                cycles,
            };
            services.push(now, service);
        }
        cycles
    }
}
