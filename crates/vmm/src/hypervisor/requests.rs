//! Requests through memory: from the guest's page to those who serve them, and their answers back.

use sidestep_ia64::PhysicalAddress;

use super::configuration::Method;
use super::exit::ExitReason;
use super::mailbox::Arrival;
use super::processor::Activity;
use super::service::Server;
use super::virtual_machine::VirtualMachine;
use crate::host::{Cost, HostCosts};
use crate::sidecall::page;
use crate::sidecall::request::{Answer, Kind, Refusal, Request};

/// A request that no sidecore has seen yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The virtual processor.
    pub processor: usize,
    /// The slot of its page.
    pub slot: usize,
    /// When the status was stored.
    pub time: u64,
    /// What is asked for.
    pub request: Request,
    generation: u64,
}

impl VirtualMachine {
    /// Takes the requests that were made since the last time.
    pub fn take_pending(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.pending)
    }

    /// Answers a request; the guest can see it from `time` on.
    pub fn answer(
        &mut self,
        costs: &HostCosts,
        pending: &Pending,
        kind: Option<Kind>,
        answer: Answer,
        time: u64,
    ) {
        self.note_request(kind, Server::Sidecore, time.saturating_sub(pending.time));
        let Pending {
            processor,
            slot,
            request,
            generation,
            ..
        } = *pending;
        let arrival = Arrival::Answer {
            slot,
            answer,
            generation,
        };
        self.mailboxes[processor].add(time, arrival);
        if let Ok(vector) = u8::try_from(request.vector)
            && vector >= 16
        {
            self.interrupt(processor, vector, time + costs.cycles(Cost::Interrupt));
        }
    }

    pub(super) fn forget_requests(&mut self, index: usize) {
        self.mailboxes[index].generation += 1;
        for slot in 0..page::SLOTS {
            self.processors[index].requests.set_served(slot, false);
        }
        self.processors[index].requests.take_rung();
        self.processors[index].requests.take_polled();
    }

    /// Looks what the guest has left in its request page, and whether it waits for an answer.
    pub(super) fn read_requests(&mut self, index: usize) {
        let processor = &mut self.processors[index];
        let rung = processor.requests.take_rung() & !processor.requests.served();
        let polled = processor.requests.take_polled();
        if rung == 0 && polled == 0 {
            return;
        }
        let Some(address) = processor.requests.address() else {
            return;
        };
        let time = processor.clock();
        for slot in (0..page::SLOTS).filter(|slot| rung >> slot & 1 != 0) {
            let start = address + page::slot_offset(slot);
            let word = |offset: u64| {
                self.shared
                    .memory
                    .read_value::<u64>(PhysicalAddress(start + offset))
                    .unwrap_or(0)
            };
            let request = Request {
                kind: word(page::slot::KIND),
                arguments: [0, 8, 16].map(|offset| word(page::slot::ARGUMENTS + offset)),
                vector: word(page::slot::VECTOR),
            };
            let generation = self.mailboxes[index].generation;
            processor.requests.set_served(slot, true);
            if self.method == Method::Exit {
                let arrival = Arrival::Answer {
                    slot,
                    answer: Err(Refusal::NotServed),
                    generation,
                };
                self.mailboxes[index].add(time, arrival);
            } else {
                self.pending.push(Pending {
                    processor: index,
                    slot,
                    time,
                    request,
                    generation,
                });
            }
        }
        if polled & processor.requests.served() != 0 && processor.activity == Activity::Running {
            processor.activity = Activity::Polling;
        }
    }

    /// Lets a processor see what has arrived by its clock.
    pub(super) fn collect(&mut self, costs: &HostCosts, index: usize) {
        while let Some(arrival) = self.mailboxes[index].take(self.processors[index].clock()) {
            let processor = &mut self.processors[index];
            match arrival {
                Arrival::Interrupt { vector } => {
                    self.interrupts[index].request(vector);
                    if processor.activity == Activity::Running || processor.activity == Activity::Polling {
                        processor.charge(ExitReason::HostInterrupt, costs.round_trip());
                        processor.activity = Activity::Running;
                    }
                }
                Arrival::Answer { generation, .. } if generation != self.mailboxes[index].generation => {}
                Arrival::Answer { slot, answer, .. } => {
                    let (status, result) = match answer {
                        Ok(result) => (page::status::DONE, result),
                        Err(refusal) => (page::status::REFUSED, refusal as u64),
                    };
                    if let Some(address) = processor.requests.address() {
                        let start = address + page::slot_offset(slot);
                        let memory = &self.shared.memory;
                        let written = memory
                            .write_value(PhysicalAddress(start + page::slot::RESULT), result)
                            .and(memory.write_value(PhysicalAddress(start + page::slot::STATUS), status));
                        written.expect("a registered page is memory");
                    }
                    processor.requests.set_served(slot, false);
                    if processor.activity == Activity::Polling {
                        processor.activity = Activity::Running;
                    }
                }
            }
        }
    }
}
