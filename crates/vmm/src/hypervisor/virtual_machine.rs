//! A virtual machine: memory, virtual processors, a console, a disk, packets; what its processors do to each other;
//! and requests on their way to sidecores and back.
//!
//! Everything that a virtual machine does depends on its own state and on what arrives with a time: requests leave
//! with the time at which they were made ([`take_pending`](VirtualMachine::take_pending)), answers come with the time
//! from which they can be seen ([`answer`](VirtualMachine::answer)). So virtual machines can be advanced side by side.

use std::collections::VecDeque;
use std::sync::Arc;

use sidestep_ia64::PhysicalAddress;
use sidestep_ia64::interrupts::Interrupts;
use thiserror::Error;

use super::exit::{ExitCounts, ExitReason};
use super::handle::Needed;
use super::memory::Shared;
use super::processor::{Activity, VirtualProcessor};
use super::service::{Packet, Server};
use crate::bus::Bus;
use crate::host::{Cost, HostCosts};
use crate::image::{self, ImageError};
use crate::memory::{GuestMemory, LayoutError, MemoryRange};
use crate::sidecall::page;
use crate::sidecall::request::{Answer, Kind, Refusal, Request};

/// How guests are kept from the monitor's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Virtualization {
    /// PSR.vm: sensitive instructions are intercepted, guests keep their levels.
    Hardware,
    /// Guests run one level lower; unprivileged sensitive instructions are replaced.
    RingCompression,
}

/// How guests make requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// By leaving the guest.
    Exit,
    /// Through memory, to a sidecore.
    Sidecall,
}

/// How other cores' TLBs are purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PurgeMethod {
    /// Each core is interrupted, and purges itself.
    Interrupt,
    /// `ptc.ga`: the hardware tells every core.
    Broadcast,
}

/// What a virtual machine is made of.
#[derive(Clone, Debug)]
pub struct VirtualMachineConfig {
    /// Its name in reports.
    pub name: String,
    /// Its virtual processors, 1 to 64.
    pub processors: usize,
    /// Bytes of memory at guest-physical address 0; a multiple of 64 kB.
    pub memory: u64,
    /// How its guest is kept apart.
    pub virtualization: Virtualization,
    /// How its guest makes requests at first.
    pub method: Method,
    /// How its TLBs are purged.
    pub purge: PurgeMethod,
    /// What its guest reads with the call for parameters.
    pub parameters: String,
    /// The contents of its block device.
    pub disk: Vec<u8>,
}

impl VirtualMachineConfig {
    /// One processor, 16 MB, hardware virtualisation, requests by exit.
    pub fn new(name: &str) -> VirtualMachineConfig {
        VirtualMachineConfig {
            name: name.to_owned(),
            processors: 1,
            memory: 16 << 20,
            virtualization: Virtualization::Hardware,
            method: Method::Exit,
            purge: PurgeMethod::Broadcast,
            parameters: String::new(),
            disk: Vec::new(),
        }
    }
}

/// Why a virtual machine cannot be made.
#[derive(Debug, Error)]
pub enum VirtualMachineError {
    /// Too few or too many processors.
    #[error("virtual machine `{name}` has {processors} processors: 1 to {PROCESSORS_MAX} are possible")]
    Processors {
        /// The virtual machine.
        name: String,
        /// Its processors.
        processors: usize,
    },
    /// Memory that cannot be.
    #[error("virtual machine `{name}`: {source}")]
    Memory {
        /// The virtual machine.
        name: String,
        /// What is wrong.
        source: LayoutError,
    },
    /// Too much memory.
    #[error("virtual machine `{name}` has {memory:#x} bytes of memory: at most {MEMORY_MAX:#x} are possible")]
    TooMuchMemory {
        /// The virtual machine.
        name: String,
        /// Its memory.
        memory: u64,
    },
    /// An image that cannot be loaded.
    #[error("virtual machine `{name}`: the image {source}")]
    Image {
        /// The virtual machine.
        name: String,
        /// What is wrong.
        source: ImageError,
    },
}

/// The most virtual processors of a virtual machine.
pub const PROCESSORS_MAX: usize = 64;
/// The most memory of a virtual machine.
pub const MEMORY_MAX: u64 = 1 << 36;
/// How far processors of one virtual machine run apart, in cycles.
const SLICE: u64 = 2_000;
/// The most timers that wait for one processor.
const TIMERS_MAX: usize = 64;
/// Console output that is kept.
const CONSOLE_MAX: usize = 1 << 24;

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

/// Something that a virtual processor will see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    Answer {
        slot: usize,
        answer: Answer,
        vector: u64,
        generation: u64,
    },
    Interrupt {
        vector: u8,
    },
}

/// What arrives at one virtual processor, and what it has asked for.
#[derive(Default)]
struct Mailbox {
    /// Ordered by time; what came first comes first.
    arrivals: VecDeque<(u64, Arrival)>,
    /// Counts the request pages that it had.
    generation: u64,
}

impl Mailbox {
    fn add(&mut self, time: u64, arrival: Arrival) {
        let place = self.arrivals.partition_point(|(earlier, _)| *earlier <= time);
        self.arrivals.insert(place, (time, arrival));
    }

    fn next(&self) -> Option<u64> {
        self.arrivals.front().map(|(time, _)| *time)
    }
}

/// Requests of one kind, by one way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Served by exit, by kind; the last counts unknown kinds.
    pub by_exit: Vec<Vec<u64>>,
    /// Served by sidecall, by kind.
    pub by_sidecall: Vec<Vec<u64>>,
}

/// A virtual machine.
pub struct VirtualMachine {
    name: String,
    index: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) processors: Vec<VirtualProcessor>,
    mailboxes: Vec<Mailbox>,
    interrupts: Vec<Arc<Interrupts>>,
    scheduled: Vec<bool>,
    pub(super) method: Method,
    pub(super) purge_method: PurgeMethod,
    pub(super) parameters: String,
    pub(super) disk: Vec<u8>,
    pub(super) sent: Vec<Packet>,
    pub(super) received: VecDeque<Packet>,
    pub(super) exit_code: Option<u64>,
    pub(super) remote_purges: u64,
    console: Vec<u8>,
    failure: Option<String>,
    pending: Vec<Pending>,
    /// Latencies of requests in cycles: by exit and by sidecall, by kind.
    latencies: RequestCounts,
}

impl VirtualMachine {
    /// The `index`th virtual machine of a host, with an ELF image in its memory at whose entry processor 0 starts.
    pub fn new(
        index: usize,
        config: VirtualMachineConfig,
        image: &[u8],
    ) -> Result<VirtualMachine, VirtualMachineError> {
        let name = config.name.clone();
        let mut machine = VirtualMachine::empty(index, config)?;
        let loaded = image::load(&machine.shared.memory, image)
            .map_err(|source| VirtualMachineError::Image { name, source })?;
        machine.start_processor(0, loaded.entry.0, 0, 0);
        Ok(machine)
    }

    /// A virtual machine whose memory is all zero and whose processors are stopped.
    pub fn empty(index: usize, config: VirtualMachineConfig) -> Result<VirtualMachine, VirtualMachineError> {
        let VirtualMachineConfig {
            name,
            processors,
            memory,
            virtualization,
            method,
            purge,
            parameters,
            disk,
        } = config;
        if !(1..=PROCESSORS_MAX).contains(&processors) {
            return Err(VirtualMachineError::Processors { name, processors });
        }
        if memory > MEMORY_MAX {
            return Err(VirtualMachineError::TooMuchMemory { name, memory });
        }
        let memory = GuestMemory::new(&[MemoryRange::ram(0, memory)]).map_err(|source| {
            VirtualMachineError::Memory {
                name: name.clone(),
                source,
            }
        })?;
        let shared = Arc::new(Shared::new(Arc::new(memory), Bus::default()));
        let created: Vec<VirtualProcessor> = (0..processors)
            .map(|processor| VirtualProcessor::new((index, processor), &shared, virtualization))
            .collect();
        let interrupts = (created.iter())
            .map(|processor| {
                processor
                    .processor()
                    .interrupts()
                    .expect("a virtual processor is in system mode")
            })
            .collect();
        Ok(VirtualMachine {
            name,
            index,
            shared,
            mailboxes: created.iter().map(|_| Mailbox::default()).collect(),
            scheduled: vec![true; processors],
            processors: created,
            interrupts,
            method,
            purge_method: purge,
            parameters,
            disk,
            sent: Vec::new(),
            received: VecDeque::new(),
            exit_code: None,
            remote_purges: 0,
            console: Vec::new(),
            failure: None,
            pending: Vec::new(),
            latencies: RequestCounts {
                by_exit: vec![Vec::new(); Kind::ALL.len() + 1],
                by_sidecall: vec![Vec::new(); Kind::ALL.len() + 1],
            },
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number on the host.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its memory.
    pub fn memory(&self) -> &GuestMemory {
        &self.shared.memory
    }

    /// Its virtual processors.
    pub fn processors(&self) -> &[VirtualProcessor] {
        &self.processors
    }

    /// One of its virtual processors, to change it.
    pub fn processor_mut(&mut self, index: usize) -> &mut VirtualProcessor {
        &mut self.processors[index]
    }

    /// What it has printed.
    pub fn console(&self) -> &[u8] {
        &self.console
    }

    /// Takes what it has printed since the last time.
    pub fn take_console(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.console)
    }

    /// Its exit code, once it has ended.
    pub fn exit_code(&self) -> Option<u64> {
        self.exit_code
    }

    /// Why it ended without asking to.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The latencies of its requests.
    pub fn latencies(&self) -> &RequestCounts {
        &self.latencies
    }

    /// How often other cores' TLBs were purged.
    pub fn remote_purges(&self) -> u64 {
        self.remote_purges
    }

    /// The exits of all its processors.
    pub fn exits(&self) -> ExitCounts {
        let mut sum = ExitCounts::default();
        for processor in &self.processors {
            sum += processor.exits();
        }
        sum
    }

    /// Guest instructions of all its processors.
    pub fn instructions(&self) -> u64 {
        self.processors.iter().map(VirtualProcessor::instructions).sum()
    }

    /// How requests are made now.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Switches how requests are made: the guest sees it in its request pages. Requests under way are served as they
    /// were made.
    pub fn set_method(&mut self, method: Method) {
        self.method = method;
        let mode = u64::from(method == Method::Sidecall);
        for processor in &self.processors {
            if let Some(address) = processor.requests.address() {
                let written = self
                    .shared
                    .memory
                    .write_value(PhysicalAddress(address + page::MODE_OFFSET), mode);
                written.expect("a registered page is memory");
            }
        }
    }

    pub(super) fn print(&mut self, bytes: &[u8]) {
        let room = CONSOLE_MAX.saturating_sub(self.console.len());
        self.console.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Makes a processor run at a guest-physical address.
    pub fn start_processor(&mut self, index: usize, entry: u64, argument: u64, time: u64) {
        let processor = &mut self.processors[index];
        processor.wait_until(time);
        processor.activity = Activity::Running;
        let registers = processor.processor_mut();
        registers.status = 0;
        registers.set_instruction_pointer(entry, 0);
        registers.general.set(8, argument);
    }

    /// Says whether a processor has a core from `time` on; the monitor takes `delay` to put it there.
    pub fn schedule(&mut self, index: usize, scheduled: bool, time: u64, delay: u64) {
        self.scheduled[index] = scheduled;
        self.processors[index].wait_until(time);
        if scheduled {
            self.processors[index].charge_more(delay);
        }
    }

    /// Whether a processor could use a core now.
    pub fn wants_core(&self, index: usize) -> bool {
        let processor = &self.processors[index];
        match processor.activity {
            Activity::Running | Activity::Polling => true,
            Activity::Waiting => {
                processor.processor().has_deliverable_interrupt()
                    || processor.processor().ticks_to_timer().is_some()
                    || !self.mailboxes[index].arrivals.is_empty()
            }
            Activity::Stopped => false,
        }
    }

    /// Whether a processor that has a core has not reached `until`.
    pub fn is_behind(&self, until: u64) -> bool {
        let mut scheduled = (0..self.processors.len()).filter(|index| self.scheduled[*index]);
        self.exit_code.is_none() && scheduled.any(|index| self.processors[index].clock() < until)
    }

    /// How many requests it has made that were served.
    pub fn requests(&self) -> u64 {
        let both = self.latencies.by_exit.iter().chain(&self.latencies.by_sidecall);
        both.map(|latencies| latencies.len() as u64).sum()
    }

    /// Has a timer's interrupt come at `time`; false if too many wait already.
    pub(super) fn set_timer(&mut self, index: usize, time: u64, vector: u8) -> bool {
        let mailbox = &mut self.mailboxes[index];
        let has_room = mailbox.arrivals.len() < TIMERS_MAX + page::SLOTS;
        if has_room {
            mailbox.add(time, Arrival::Interrupt { vector });
        }
        has_room
    }

    /// Sends an interrupt that arrives at `time`.
    pub(super) fn interrupt(&mut self, _: &HostCosts, target: usize, vector: u8, time: u64) {
        self.mailboxes[target].add(time, Arrival::Interrupt { vector });
    }

    pub(super) fn forget_requests(&mut self, index: usize) {
        self.mailboxes[index].generation += 1;
        for slot in 0..page::SLOTS {
            self.processors[index].requests.set_served(slot, false);
        }
        self.processors[index].requests.take_rung();
        self.processors[index].requests.take_polled();
    }

    pub(super) fn note_request(&mut self, kind: Option<Kind>, server: Server, cycles: u64) {
        let place = kind.map_or(Kind::ALL.len(), |kind| kind as usize);
        let latencies = match server {
            Server::OwnCore => &mut self.latencies.by_exit,
            Server::Sidecore => &mut self.latencies.by_sidecall,
        };
        latencies[place].push(cycles);
    }

    /// Takes the requests that were made since the last time.
    pub fn take_pending(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.pending)
    }

    /// Takes the packets that it sent.
    pub fn take_sent(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.sent)
    }

    /// Hands it a packet; dropped if too many wait.
    pub fn deliver(&mut self, packet: Packet) {
        const WAITING_MAX: usize = 1024;
        if self.received.len() < WAITING_MAX {
            let place = self
                .received
                .partition_point(|earlier| earlier.time <= packet.time);
            self.received.insert(place, packet);
        }
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
            vector: request.vector,
            generation,
        };
        self.mailboxes[processor].add(time, arrival);
        if let Ok(vector) = u8::try_from(request.vector)
            && vector >= 16
        {
            self.interrupt(costs, processor, vector, time + costs.cycles(Cost::Interrupt));
        }
    }

    /// The earliest time at which it may make its next request: `None` if it cannot before something is answered.
    pub fn horizon(&self, until: u64) -> Option<u64> {
        let scheduled =
            (0..self.processors.len()).filter(|index| self.scheduled[*index] && self.exit_code.is_none());
        scheduled
            .filter(|index| self.processors[*index].clock() < until)
            .filter_map(|index| {
                let processor = &self.processors[index];
                if self.is_blocked(index) {
                    return self.mailboxes[index].next();
                }
                Some(processor.clock())
            })
            .min()
    }

    /// Whether a processor that has a core can go on towards `until`, all answers before `floor` being known.
    pub fn can_advance(&self, until: u64, floor: u64) -> bool {
        let bound = self.bound(until, floor);
        let mut scheduled = (0..self.processors.len()).filter(|index| self.scheduled[*index]);
        self.exit_code.is_none()
            && scheduled.any(|index| !self.is_blocked(index) && self.processors[index].clock() < bound)
    }

    /// How far processors may go on, because others wait for answers: not much further than those.
    fn bound(&self, until: u64, floor: u64) -> u64 {
        let scheduled = (0..self.processors.len()).filter(|index| self.scheduled[*index]);
        scheduled
            .filter(|index| self.processors[*index].clock() < until && self.is_blocked(*index))
            .map(|index| self.processors[index].clock().max(floor) + SLICE)
            .min()
            .unwrap_or(until)
            .min(until)
    }

    /// Whether a processor cannot go on before an answer comes whose time is not known.
    fn is_blocked(&self, index: usize) -> bool {
        let processor = &self.processors[index];
        let asks = processor.requests.served() != 0;
        match processor.activity {
            Activity::Polling => self.mailboxes[index].next().is_none(),
            Activity::Waiting => asks && self.mailboxes[index].next().is_none(),
            Activity::Running | Activity::Stopped => false,
        }
    }

    /// Whether nothing but the outside can wake any of its processors.
    pub fn is_asleep(&self) -> bool {
        (0..self.processors.len()).all(|index| {
            let processor = &self.processors[index];
            let resting = matches!(processor.activity, Activity::Waiting | Activity::Stopped);
            let timer =
                processor.activity == Activity::Waiting && processor.processor().ticks_to_timer().is_some();
            resting
                && !timer
                && self.mailboxes[index].arrivals.is_empty()
                && processor.requests.served() == 0
                && !(processor.activity == Activity::Waiting
                    && processor.processor().has_deliverable_interrupt())
        })
    }

    /// Lets its processors go on up to `until`, or to where they cannot without an answer. All answers before `floor`
    /// are known.
    pub fn advance(&mut self, costs: &HostCosts, until: u64, floor: u64) {
        while self.exit_code.is_none() {
            let bound = self.bound(until, floor);
            let mut ready: Vec<usize> = (0..self.processors.len())
                .filter(|index| self.scheduled[*index] && self.processors[*index].clock() < bound)
                .filter(|index| !self.is_blocked(*index))
                .collect();
            ready.sort_by_key(|index| (self.processors[*index].clock(), *index));
            let Some(first) = ready.first().copied() else {
                return;
            };
            let apart = ready
                .get(1)
                .map_or(bound, |second| self.processors[*second].clock() + SLICE);
            self.run_processor(costs, first, bound.min(apart));
        }
    }

    /// Lets time pass up to `until` for processors that cannot go on without an answer.
    pub fn pass(&mut self, until: u64) {
        for index in 0..self.processors.len() {
            if self.scheduled[index] && self.is_blocked(index) {
                match self.processors[index].activity {
                    Activity::Polling => self.processors[index].poll_until(until),
                    _ => self.processors[index].wait_until(until),
                }
            }
        }
    }

    /// Lets one processor go on up to `until`, or to where it cannot without an answer.
    fn run_processor(&mut self, costs: &HostCosts, index: usize, until: u64) {
        while self.exit_code.is_none() && self.processors[index].clock() < until {
            self.collect(costs, index);
            let next = self.mailboxes[index].next().unwrap_or(u64::MAX);
            let target = until.min(next);
            let is_blocked = self.is_blocked(index);
            let processor = &mut self.processors[index];
            match processor.activity {
                Activity::Stopped => processor.wait_until(target),
                Activity::Waiting if processor.processor().has_deliverable_interrupt() => {
                    processor.activity = Activity::Running;
                }
                Activity::Polling | Activity::Waiting if is_blocked => return,
                Activity::Polling => processor.poll_until(target),
                Activity::Waiting => processor.idle(target),
                Activity::Running => self.execute(costs, index, target),
            }
        }
        self.collect(costs, index);
    }

    /// Executes guest instructions up to an exit, and handles it.
    fn execute(&mut self, costs: &HostCosts, index: usize, until: u64) {
        let processor = &mut self.processors[index];
        processor.inject();
        let needed = if processor.is_split() {
            processor.interpret(&self.shared, costs)
        } else {
            let left = processor.run(costs, until - processor.clock());
            processor.handle(&self.shared, costs, left)
        };
        match needed {
            Needed::Nothing => {}
            Needed::Call => self.call(costs, index),
            Needed::Dead => {
                let (ip, _) = self.processors[index].processor().instruction_pointer();
                self.failure = Some(format!(
                    "processor {index} at {ip:#x} refers to where no memory is"
                ));
                self.exit_code = Some(u64::MAX);
            }
        }
        self.route(costs, index);
        self.read_requests(index);
    }

    /// Does what the guest's processor asked of its platform: interrupts and purges.
    fn route(&mut self, costs: &HostCosts, index: usize) {
        let mut outbox = self.shared.outbox();
        if outbox.messages.is_empty() && outbox.purges.is_empty() {
            return;
        }
        let messages = std::mem::take(&mut outbox.messages);
        let purges = std::mem::take(&mut outbox.purges);
        drop(outbox);
        let time = self.processors[index].clock() + costs.cycles(Cost::Interrupt);
        for (offset, data) in messages {
            let (id, vector) = ((offset >> 12 & 0xff) as usize, data as u8);
            let is_fixed = data >> 8 & 7 <= 1;
            if id < self.processors.len() && is_fixed && vector >= 16 {
                self.interrupt(costs, id, vector, time);
            }
        }
        for purge in purges {
            for processor in &mut self.processors {
                processor.purge_from_outside(purge);
            }
            let cycles = self.purge_others(costs, Some(index));
            self.processors[index].charge_more(cycles);
        }
    }

    /// Looks what the guest has left in its request page, and whether it waits for an answer.
    fn read_requests(&mut self, index: usize) {
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
                    vector: 0,
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
    fn collect(&mut self, costs: &HostCosts, index: usize) {
        while self.mailboxes[index]
            .next()
            .is_some_and(|time| time <= self.processors[index].clock())
        {
            let (_, arrival) = self.mailboxes[index]
                .arrivals
                .pop_front()
                .expect("there is a next one");
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
