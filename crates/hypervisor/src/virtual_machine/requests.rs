//! Requests on their way: from the guest's page, or from an exit for a device, to those who serve them, and their
//! answers back.

use sidestep_ia64::PhysicalAddress;
use sidestep_machine::memory::GuestMemory;

use super::VirtualMachine;
use super::configuration::Method;
use super::exit::ExitReason;
use super::mailbox::Arrival;
use super::processor::{Activity, VirtualProcessor};
use super::service::{Progress, Served, Server, interrupt_vector};
use crate::costs::{Cost, HostCosts};
use crate::cycle::Cycle;
use crate::sidecall::page;
use crate::sidecall::request::{Answer, Refusal, Request};

/// In place of a slot: a request by exit, whose answer goes into registers.
pub(super) const EXIT_SLOT: usize = page::SLOTS;

/// In place of a slot: a request that nobody waits for.
const UNANSWERED_SLOT: usize = EXIT_SLOT + 1;
/// The generation of a request page that no processor ever has: answers to it are not looked at.
const NO_GENERATION: u64 = u64::MAX;

/// A guest that looks at the status of a request again within so many instructions does nothing but poll it: time may
/// go on to the next arrival. One that looks now and then has other things to do.
const POLLING_LOOP_INSTRUCTIONS_MAX: u64 = 32;

/// A request and what its guest wants of its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posted {
    pub request: Request,
    /// The vector to interrupt with when it is done.
    pub completion: Option<u8>,
}

/// A request that no sidecore and no device has seen yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The virtual processor.
    pub processor: usize,
    /// The slot of its page; one more than there are for a request by exit.
    pub slot: usize,
    /// From when on it can be seen: the status was stored, or the exit for a device is over.
    pub time: Cycle,
    /// Who has it first: a sidecore, or the device that the processor's own core has handed it to.
    pub server: Server,
    /// What is asked for.
    pub request: Request,
    /// The vector to interrupt with when it is answered.
    completion: Option<u8>,
    /// When the guest asked.
    asked: Cycle,
    generation: u64,
}

impl VirtualMachine {
    /// Takes the requests that were made since the last time.
    pub fn take_pending(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.pending)
    }

    /// Answers a request; the guest can see it from `time` on.
    pub fn answer(&mut self, costs: &HostCosts, pending: &Pending, answer: Answer, time: Cycle) {
        let latency = time.since(pending.asked);
        self.note_request(pending.request.kind(), pending.server, latency);
        let Pending {
            processor,
            slot,
            completion,
            generation,
            ..
        } = *pending;
        let arrival = Arrival::Answer {
            slot,
            answer,
            generation,
        };
        self.mailboxes[processor].add(time, arrival);
        self.announce(costs, processor, completion, time);
    }

    /// Interrupts the processor that made a request which is answered at `time`, if it wants that.
    fn announce(&mut self, costs: &HostCosts, index: usize, completion: Option<u8>, time: Cycle) {
        if let Some(vector) = completion {
            self.interrupt(index, vector, time + costs.cycles(Cost::Interrupt));
        }
    }

    /// Asks a sidecore for what nobody waits for an answer to.
    pub(super) fn ask_unanswered(&mut self, index: usize, request: Request) {
        let time = self.processors[index].clock();
        self.pending.push(Pending {
            processor: index,
            slot: UNANSWERED_SLOT,
            time,
            server: Server::Sidecore,
            request,
            completion: None,
            asked: time,
            generation: NO_GENERATION,
        });
    }

    pub(super) fn forget_requests(&mut self, index: usize) {
        self.mailboxes[index].generation += 1;
        for slot in 0..=EXIT_SLOT {
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
        let Some(address) = processor.requests.page.address() else {
            return;
        };
        let time = processor.clock();
        for slot in (0..page::SLOTS).filter(|slot| rung >> slot & 1 != 0) {
            let Posted { request, completion } =
                posted_at(&self.shared.memory, address + page::slot_offset(slot));
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
                    server: Server::Sidecore,
                    request,
                    completion,
                    asked: time,
                    generation,
                });
            }
        }
        if polled & processor.requests.served() != 0 && processor.activity == Activity::Running {
            let instructions = processor.instructions();
            let (before, at) = std::mem::replace(&mut processor.polled_last, (polled, instructions));
            if before == polled && instructions - at <= POLLING_LOOP_INSTRUCTIONS_MAX {
                processor.activity = Activity::Polling;
            }
        }
    }

    /// Answers a request that its processor's own core has taken by exit at `asked`, or has the device answer that it
    /// was handed to.
    pub(super) fn take_by_exit(
        &mut self,
        costs: &HostCosts,
        index: usize,
        slot: usize,
        (Posted { request, completion }, served): (Posted, Served),
        asked: Cycle,
    ) {
        let time = self.processors[index].clock();
        let generation = self.mailboxes[index].generation;
        self.processors[index].requests.set_served(slot, true);
        match served.progress {
            Progress::Answered(answer) => {
                self.note_request(request.kind(), Server::OwnCore, time - asked);
                let arrival = Arrival::Answer {
                    slot,
                    answer,
                    generation,
                };
                self.mailboxes[index].add(time, arrival);
                self.announce(costs, index, completion, time);
            }
            Progress::Submitted(_) => self.pending.push(Pending {
                processor: index,
                slot,
                time,
                server: Server::OwnCore,
                request,
                completion,
                asked,
                generation,
            }),
        }
    }

    /// Lets a processor see what has arrived by its clock.
    pub(super) fn collect(&mut self, costs: &HostCosts, index: usize) {
        self.pay(index);
        self.collect_writes(index);
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
                Arrival::Signal { shown, signal } => self.take_signal(costs, index, shown, signal),
                Arrival::Answer { generation, .. } if generation != self.mailboxes[index].generation => {}
                Arrival::Answer { slot, answer, .. } => {
                    processor.requests.set_served(slot, false);
                    if slot == EXIT_SLOT {
                        processor.activity = Activity::Running;
                        processor.take_answer(answer);
                        continue;
                    }
                    let (status, result) = as_words(answer);
                    if let Some(address) = processor.requests.page.address() {
                        let start = address + page::slot_offset(slot);
                        let memory = &self.shared.memory;
                        let written = memory
                            .write_value(start + page::slot::RESULT, result)
                            .and(memory.write_value(start + page::slot::STATUS, status));
                        written.expect("a registered page is memory");
                    }
                    if processor.activity == Activity::Polling {
                        processor.activity = Activity::Running;
                    }
                }
            }
        }
    }
}

impl VirtualProcessor {
    /// The answer to a request by exit goes into registers, and the guest goes on behind the call.
    pub(super) fn take_answer(&mut self, answer: Answer) {
        let (status, result) = as_words(answer);
        self.processor.general.set(8, result);
        self.processor.general.set(9, status);
        self.processor.skip_instruction();
    }
}

/// An answer as guests read it: status and result.
fn as_words(answer: Answer) -> (u64, u64) {
    match answer {
        Ok(result) => (page::status::DONE, result),
        Err(refusal) => (page::status::REFUSED, refusal as u64),
    }
}

/// The request that a guest has left in the slot at an address.
pub(super) fn posted_at(memory: &GuestMemory, slot: PhysicalAddress) -> Posted {
    let word = |offset: u64| {
        memory
            .read_value::<u64>(slot + offset)
            .expect("a registered page is memory")
    };
    let arguments = [0, 8, 16].map(|offset| word(page::slot::ARGUMENTS + offset));
    Posted {
        request: Request::read(word(page::slot::KIND), arguments),
        completion: interrupt_vector(word(page::slot::VECTOR)),
    }
}
