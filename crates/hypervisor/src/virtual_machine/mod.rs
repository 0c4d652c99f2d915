//! The virtual-machine monitor: virtual machines of IA-64 virtual processors on one modelled host.
//!
//! A virtual processor executes on a [`Processor`] in the monitor's system state and has its
//! own system state in a [`SystemState`](sidestep_ia64::SystemState). Whatever ends its run is an [exit](ExitReason);
//! one function decides what happens (`handle`), and the costs of the host's table are charged to its
//! clock.
//!
//! Everything that a virtual machine does depends on its own state and on what arrives with a time: requests leave
//! with the time at which they were made ([`take_pending`](VirtualMachine::take_pending)), answers come with the time
//! from which they can be seen ([`answer`](VirtualMachine::answer)). So virtual machines can be advanced side by side.
//!
//! ```text
//!   configuration     what a virtual machine is made of
//!   advance           which of its processors runs how far; interrupts between them, purges
//!   requests          requests through memory and their answers
//!   mailbox           what arrives at a processor, and when
//!   latency           how long requests took
//!   processor         one virtual processor: entering the guest, leaving it, its clock and its counts
//!     handle          from an exit to what is done about it
//!     call            what guests ask for with `break`: the calls of every machine, and requests
//!     service         what requests do, by exit and by sidecall alike
//!     page_table_lock what keeps updates of page tables by several cores apart
//!     own_service     a service that is no part of the monitor
//!     device          the block device and the network interface
//!     interface       its interface of a self-virtualised card, and the card's signals
//!     front           a virtio device in front of that, for kernels that know no other
//!     core            the core under it, where that is modelled
//!     sampling        its pages, taken away for a while to see which it touches
//!   detection         which of its processors share memory
//!   whole             firmware and devices, where the virtual machine is a whole machine to a kernel
//!   shadow            the monitor's translations: a long-format VHPT that the hardware walks
//!   memory            the physical memory that a guest believes in, and the machine's
//!   machine_address   where in the machine's memory that is
//!   compression       guests without PSR.vm: levels moved down, unprivileged instructions replaced
//! ```
//!
//! Limits. A virtual processor has a TLB of its own, as if region identifiers were tagged with it; guests see 23 bits
//! of region identifier and 60 of address within a region. Where PSR.it, PSR.dt and PSR.rt differ, the monitor
//! interprets the guest, because one address space cannot serve two kinds of reference.

mod advance;
mod call;
mod compression;
mod configuration;
mod core;
mod detection;
mod device;
mod exit;
mod front;
mod handle;
mod interface;
mod latency;
mod machine_address;
mod mailbox;
mod memory;
mod own_service;
mod page_table_lock;
mod processor;
mod requests;
mod sampling;
mod service;
mod shadow;
mod whole;

use std::collections::VecDeque;
use std::sync::Arc;

use sidestep_ia64::interrupts::Interrupts;
use sidestep_ia64::{PhysicalAddress, Processor};
use sidestep_machine::image;
use sidestep_machine::memory::{GuestMemory, MemoryRange};

use crate::cycle::Cycle;
use crate::sidecall::page;
use crate::sidecall::request::Kind;
use configuration::{MEMORY_MAX, PROCESSORS_MAX};
use detection::Detection;
use interface::Interface;
use mailbox::{Arrival, Mailbox};
use memory::Shared;
use page_table_lock::PageTableLock;

pub use configuration::{Method, PurgeMethod, VirtualMachineConfig, VirtualMachineError, Virtualization};
pub use core::{Core, CoreModel};
pub use detection::{DetectionCounts, DetectionReport, DetectionSettings, FoundSets};
pub use device::{DeviceKind, PACKET_MAX, QUEUE_MAX};
pub use exit::{ExitCount, ExitCounts, ExitReason};
pub use front::VirtioFront;
pub use interface::InterruptCounts;
pub(crate) use interface::{Fetched, Reach, Signal, Written};
pub use latency::{Latencies, RequestLatencies};
pub use machine_address::MachineAddress;
pub(crate) use mailbox::{Debt, Whom};
pub use own_service::{OwnServed, OwnService};
pub use page_table_lock::LockCounts;
pub use processor::{Activity, CycleAccount, VirtualProcessor};
pub use requests::Pending;
pub use service::{Packet, Progress, SECTOR, Served, Server};
pub use whole::{Disk, SerialLine, WholeMachine};

/// Console output that is kept.
const CONSOLE_MAX: usize = 1 << 24;

/// A virtual machine.
pub struct VirtualMachine {
    name: String,
    index: usize,
    shared: Arc<Shared>,
    processors: Vec<VirtualProcessor>,
    mailboxes: Vec<Mailbox>,
    interrupts: Vec<Arc<Interrupts>>,
    scheduled: Vec<bool>,
    method: Method,
    purge_method: PurgeMethod,
    page_table_lock: Option<PageTableLock>,
    parameters: String,
    disk: Vec<u8>,
    sent: Vec<Packet>,
    received: VecDeque<Packet>,
    exit_code: Option<u64>,
    remote_purges: u64,
    console: Vec<u8>,
    marks: Vec<(u64, Cycle)>,
    failure: Option<String>,
    own_service: Option<Box<dyn OwnService>>,
    pending: Vec<Pending>,
    /// The processor that a debugger has halted, and how far it was to go.
    interrupted: Option<(usize, Cycle)>,
    latencies: RequestLatencies,
    interface: Option<Interface>,
    interrupt_counts: InterruptCounts,
    /// Whether the processor of the interface has got a signal since it waited last.
    is_woken: bool,
    /// The first part of an interrupt of the card's of which the rest is owed next.
    begun: u64,
    /// What is around its processors, if it is a whole machine.
    whole: Option<WholeMachine>,
    /// What is found out of its sharing, if that is asked for.
    detection: Option<Detection>,
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
        machine.start_processor(0, loaded.entry, 0, Cycle::START);
        Ok(machine)
    }

    /// A virtual machine whose memory is all zero and whose processors are stopped.
    pub fn empty(index: usize, config: VirtualMachineConfig) -> Result<VirtualMachine, VirtualMachineError> {
        let (processors, memory) = (config.processors, config.memory);
        let name = config.name.clone();
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
        Ok(VirtualMachine::around(index, config, Arc::new(memory), None))
    }

    /// A virtual machine that is a whole machine: `prepare` gives each processor the state in which firmware leaves it.
    ///
    /// # Errors
    /// A number of processors that is not the platform's, or out of range.
    pub fn whole(
        index: usize,
        config: VirtualMachineConfig,
        whole: WholeMachine,
        prepare: impl Fn(&mut Processor, usize),
    ) -> Result<VirtualMachine, VirtualMachineError> {
        let processors = config.processors;
        if !(1..=PROCESSORS_MAX).contains(&processors) || processors != whole.platform.processors() {
            let name = config.name;
            return Err(VirtualMachineError::Processors { name, processors });
        }
        let memory = Arc::clone(&whole.platform.memory);
        let mut machine = VirtualMachine::around(index, config, memory, Some(whole));
        for (number, processor) in machine.processors.iter_mut().enumerate() {
            prepare(processor.processor_mut(), number);
            processor.activity = Activity::Running;
        }
        Ok(machine)
    }

    /// Processors around a memory.
    fn around(
        index: usize,
        config: VirtualMachineConfig,
        memory: Arc<GuestMemory>,
        whole: Option<WholeMachine>,
    ) -> VirtualMachine {
        let VirtualMachineConfig {
            name,
            processors,
            virtualization,
            method,
            purge,
            handler_bytes,
            page_table_lock,
            parameters,
            disk,
            ..
        } = config;
        let platform = whole.as_ref().map(|whole| Arc::clone(&whole.platform));
        let doorbells = whole
            .as_ref()
            .and_then(|whole| whole.network.as_ref()?.doorbells.clone());
        let shared = Arc::new(Shared::new(memory, platform, doorbells));
        let created: Vec<VirtualProcessor> = (0..processors)
            .map(|processor| {
                VirtualProcessor::new((index, processor), &shared, virtualization, handler_bytes)
            })
            .collect();
        let interrupts = (created.iter())
            .map(|processor| {
                processor
                    .processor()
                    .interrupts()
                    .expect("a virtual processor is in system mode")
            })
            .collect();
        let machine = VirtualMachine {
            name,
            index,
            shared,
            mailboxes: created.iter().map(|_| Mailbox::default()).collect(),
            scheduled: vec![true; processors],
            processors: created,
            interrupts,
            method,
            purge_method: purge,
            page_table_lock: page_table_lock.then(PageTableLock::default),
            parameters,
            disk,
            sent: Vec::new(),
            received: VecDeque::new(),
            exit_code: None,
            remote_purges: 0,
            console: Vec::new(),
            marks: Vec::new(),
            failure: None,
            own_service: None,
            pending: Vec::new(),
            interrupted: None,
            latencies: RequestLatencies::new(),
            interface: None,
            interrupt_counts: InterruptCounts::default(),
            is_woken: false,
            begun: 0,
            whole,
            detection: None,
        };
        if let Some(whole) = &machine.whole {
            whole::connect(&whole.platform, &machine);
        }
        machine
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

    /// The same, for whoever keeps it.
    pub fn shared_memory(&self) -> Arc<GuestMemory> {
        Arc::clone(&self.shared.memory)
    }

    /// Its virtual processors.
    pub fn processors(&self) -> &[VirtualProcessor] {
        &self.processors
    }

    /// The same, to give them cores.
    pub(crate) fn processors_mut(&mut self) -> &mut [VirtualProcessor] {
        &mut self.processors
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

    /// The labels that its guest has marked phases of a measurement with, and when: as it asked for it.
    pub fn marks(&self) -> &[(u64, Cycle)] {
        &self.marks
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
    pub fn latencies(&self) -> &RequestLatencies {
        &self.latencies
    }

    /// How often other cores' TLBs were purged.
    pub fn remote_purges(&self) -> u64 {
        self.remote_purges
    }

    /// What the lock of its page tables cost, if it has one.
    pub fn lock_counts(&self) -> Option<LockCounts> {
        self.page_table_lock.as_ref().map(|lock| lock.counts)
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
        self.watch_doorbell(method == Method::Sidecall);
        let mode = u64::from(method == Method::Sidecall);
        for processor in &self.processors {
            if let Some(address) = processor.requests.page.address() {
                let memory = &self.shared.memory;
                let written = memory.write_value(address + page::MODE_OFFSET, mode);
                written.expect("a registered page is memory");
            }
        }
    }

    fn print(&mut self, bytes: &[u8]) {
        let room = CONSOLE_MAX.saturating_sub(self.console.len());
        self.console.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Makes a processor run at a guest-physical address.
    pub fn start_processor(&mut self, index: usize, entry: PhysicalAddress, argument: u64, time: Cycle) {
        if self.processors[index].activity == Activity::Asking {
            // Whoever asked is no more.
            self.forget_requests(index);
        }
        let processor = &mut self.processors[index];
        processor.wait_until(time);
        processor.activity = Activity::Running;
        let registers = processor.processor_mut();
        registers.status = 0;
        registers.set_instruction_pointer(entry.0, 0);
        registers.general.set(8, argument);
    }

    /// Says whether a processor has a core from `time` on; the monitor takes so many cycles to put it there.
    pub fn schedule(&mut self, index: usize, scheduled: bool, time: Cycle, switch_cycles: u64) {
        self.scheduled[index] = scheduled;
        if self.exit_code.is_some() {
            // What has ended is not idle.
            return;
        }
        self.processors[index].wait_until(time);
        if scheduled {
            self.processors[index].charge_more(switch_cycles);
        }
    }

    /// Whether a processor could use a core before `until`: it executes, or something arrives or is due by then. One
    /// that polls for an answer is to get it at once and counts as executing.
    pub fn wants_core(&self, index: usize, until: Cycle) -> bool {
        let processor = &self.processors[index];
        match processor.activity {
            Activity::Running | Activity::Polling => true,
            _ if index == 0 && self.next_of_devices().is_some_and(|time| time <= until) => true,
            Activity::Asking => !self.mailboxes[index].is_empty(),
            Activity::Waiting => {
                let ticks = processor.processor().ticks_to_timer();
                processor.processor().has_deliverable_interrupt()
                    || ticks.is_some_and(|ticks| processor.clock().saturating_add(ticks) <= until)
                    || !self.mailboxes[index].is_empty()
            }
            Activity::Stopped => false,
        }
    }

    /// Whether a processor that waits has a timer or a device to wait for.
    pub(crate) fn expects(&self, index: usize) -> bool {
        let has_timer = self.processors[index].processor().ticks_to_timer().is_some();
        has_timer || index == 0 && self.awaits_devices()
    }

    /// Whether a processor that has a core has not reached `until`.
    pub fn is_behind(&self, until: Cycle) -> bool {
        let mut scheduled = (0..self.processors.len()).filter(|index| self.scheduled[*index]);
        self.exit_code.is_none() && scheduled.any(|index| self.processors[index].clock() < until)
    }

    /// How many requests it has made that were served.
    pub fn requests(&self) -> u64 {
        self.latencies.count()
    }

    /// Has a timer's interrupt come at `time`; false if too many wait already.
    fn set_timer(&mut self, index: usize, time: Cycle, vector: u8) -> bool {
        let mailbox = &mut self.mailboxes[index];
        let has_room = mailbox.has_room_for_timer();
        if has_room {
            mailbox.add(time, Arrival::Interrupt { vector });
        }
        has_room
    }

    /// Sends an interrupt that arrives at `time`.
    fn interrupt(&mut self, target: usize, vector: u8, time: Cycle) {
        self.mailboxes[target].add(time, Arrival::Interrupt { vector });
    }

    fn note_request(&mut self, kind: Option<Kind>, server: Server, cycles: u64) {
        self.latencies.note(kind, server, cycles);
    }
}
