//! A virtual machine of `/dev/kvm`, whose processors start in 64-bit mode.
//!
//! There is no firmware, no real mode and no privileged code. A KVM without hardware for virtual machines, which keeps
//! its guests by page tables alone (PVM), emulates those instruction by instruction, and runs by itself what runs for
//! users in 64-bit mode. So the guest starts there, with the right to use ports, on every KVM.

use std::io;
use std::sync::Arc;

use kvm_bindings::{
    KVM_IRQ_ROUTING_MSI, KVM_MAX_CPUID_ENTRIES, KvmIrqRouting, kvm_irq_routing_entry, kvm_lapic_state,
    kvm_segment, kvm_userspace_memory_region,
};
use kvm_ioctls::{IoEventAddress, Kvm, NoDatamatch, VcpuExit, VcpuFd, VmFd};
use vmm_sys_util::eventfd::{EFD_CLOEXEC, EventFd};

use crate::devices::Devices;
use crate::guest::{Way, handler, program};
use crate::layout::{PAGE_BYTES, PAGE_WORDS, PROCESSORS_MAX, SAMPLES_MAX, descriptors, order, page, port};
use crate::memory::GuestMemory;
use crate::operation::Operation;
use crate::service::serve;

/// Present, writable, for users.
const TABLE_FLAGS: u64 = 0b111;
/// Protected mode, coprocessor as it is today, write protection, alignment checks possible, paging.
const CR0: u64 = 1 << 31 | 1 << 18 | 1 << 16 | 1 << 5 | 1 << 4 | 1 << 1 | 1;
/// Physical address extension, which 64-bit mode needs.
const CR4: u64 = 1 << 5;
/// No-execute, 64-bit mode active and enabled, SYSCALL.
const EFER: u64 = 1 << 11 | 1 << 10 | 1 << 8 | 1;
/// The bit that is always set, and the right to use ports (IOPL).
const RFLAGS: u64 = 3 << 12 | 2;
/// The right to be interrupted.
const INTERRUPTS: u64 = 1 << 9;
/// The register of the interrupt controller that switches it on, with the bit that does (Intel's manual, volume 3A,
/// section 12.9), and where it takes messages.
const SPURIOUS: usize = 0xf0;
const SWITCHED_ON: [u8; 2] = [0xff, 0x01];
const CONTROLLER_ADDRESS: u32 = 0xfee0_0000;
/// The line of the machine that interrupts the first processor.
const LINE: u32 = 5;
/// Selectors of 64-bit code and of data for users, as Linux numbers its own: a KVM that runs guests as user code has no
/// others.
const CODE_SELECTOR: u16 = 0x33;
const DATA_SELECTOR: u16 = 0x2b;

/// Why a guest does not run.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// The kernel refuses something.
    #[error("{what} failed")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A number of processors that cannot be.
    #[error("a guest of {0} processors: 1 to {PROCESSORS_MAX} are possible")]
    Processors(usize),
    /// The guest stopped where it should not have.
    #[error("the guest stopped before its order was done: {0}")]
    Stopped(String),
    /// An order that cannot be.
    #[error(
        "an order of {samples} samples of {batch} requests: 1 to {SAMPLES_MAX} samples of 1 or more are possible"
    )]
    Order {
        /// Samples.
        samples: usize,
        /// Requests in each.
        batch: u64,
    },
}

fn refused(what: &'static str) -> impl FnOnce(kvm_ioctls::Error) -> GuestError {
    move |error| GuestError::Refused {
        what,
        source: io::Error::from_raw_os_error(error.errno()),
    }
}

/// What the guest shall do.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// How it reaches the monitor.
    pub way: Way,
    /// What it asks for.
    pub operation: Operation,
    /// About which page of the window, first.
    pub page: u64,
    /// To show which page of memory.
    pub frame: u64,
    /// What the page grows by from request to request.
    pub step: u64,
    /// Requests in a sample.
    pub batch: u64,
    /// Samples.
    pub samples: usize,
    /// Whether the page is read after each: [`order::TOUCH`].
    pub after: u64,
}

impl Order {
    /// One request for `operation` by `way`, about the window's first page and the first page that it may show.
    pub fn one(way: Way, operation: Operation) -> Self {
        Self {
            way,
            operation,
            page: 0,
            frame: page::FRAMES as u64,
            step: 0,
            batch: 1,
            samples: 1,
            after: 0,
        }
    }
}

/// What came of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Ticks of the guest's time-stamp counter that each sample took.
    pub ticks: Vec<u64>,
    /// How the last request went, as the guest read it.
    pub status: u64,
    /// What it returned.
    pub value: u64,
    /// What the window's page held.
    pub touched: u64,
    /// How many requests were refused.
    pub refused: u64,
    /// How often the guest was left for the program to serve a request or to wake the sidecore.
    pub exits: u64,
}

/// A processor of a guest. Whoever calls [`Processor::run`] is its core.
pub struct Processor {
    processor: VcpuFd,
    /// Its interrupt controller as it is when no interrupt is being served.
    controller: Option<kvm_lapic_state>,
    memory: Arc<GuestMemory>,
    devices: Option<Arc<Devices>>,
    index: usize,
}

/// A guest.
pub struct Guest {
    // Closed before the machine, which keeps the memory until then.
    processors: Vec<Processor>,
    machine: VmFd,
    memory: Arc<GuestMemory>,
}

impl Guest {
    /// A guest of one processor that waits for its first order.
    ///
    /// # Errors
    /// When there is no `/dev/kvm`, or it refuses.
    pub fn new() -> Result<Self, GuestError> {
        Self::with_processors(1)
    }

    /// A guest of `count` processors, each of which waits for its first order.
    ///
    /// # Errors
    /// When there is no `/dev/kvm`, or it refuses, or a guest cannot have so many.
    pub fn with_processors(count: usize) -> Result<Self, GuestError> {
        Self::build(count, false)
    }

    /// A guest of one processor that can be interrupted, and is when somebody signals the eventfd.
    ///
    /// # Errors
    /// When there is no `/dev/kvm`, or it refuses.
    pub fn interrupt() -> Result<(Self, EventFd), GuestError> {
        let guest = Self::build(1, true)?;
        let message = kvm_irq_routing_entry {
            gsi: LINE,
            type_: KVM_IRQ_ROUTING_MSI,
            u: kvm_bindings::kvm_irq_routing_entry__bindgen_ty_1 {
                msi: kvm_bindings::kvm_irq_routing_msi {
                    address_lo: CONTROLLER_ADDRESS,
                    data: descriptors::VECTOR as u32,
                    ..Default::default()
                },
            },
            ..Default::default()
        };
        let routing = KvmIrqRouting::from_entries(&[message]).map_err(|_| GuestError::Refused {
            what: "making a table of one interrupt",
            source: io::ErrorKind::OutOfMemory.into(),
        })?;
        guest
            .machine
            .set_gsi_routing(&routing)
            .map_err(refused("saying what interrupts whom"))?;
        let event = guest.event()?;
        guest
            .machine
            .register_irqfd(&event, LINE)
            .map_err(refused("having the kernel interrupt by an eventfd"))?;
        Ok((guest, event))
    }

    fn event(&self) -> Result<EventFd, GuestError> {
        EventFd::new(EFD_CLOEXEC).map_err(|source| GuestError::Refused {
            what: "creating an eventfd",
            source,
        })
    }

    fn build(count: usize, has_interrupts: bool) -> Result<Self, GuestError> {
        if count == 0 || count > PROCESSORS_MAX {
            return Err(GuestError::Processors(count));
        }
        let kvm = Kvm::new().map_err(refused("opening /dev/kvm"))?;
        let machine = kvm.create_vm().map_err(refused("creating a virtual machine"))?;
        let memory = GuestMemory::new().map_err(|source| GuestError::Refused {
            what: "allocating the guest's memory",
            source,
        })?;
        let memory = Arc::new(memory);
        write_tables(&memory);
        write_program(&memory);
        let (userspace_addr, memory_size) = memory.extent();
        let region = kvm_userspace_memory_region {
            slot: 0,
            guest_phys_addr: 0,
            memory_size,
            userspace_addr,
            flags: 0,
        };
        // SAFETY: the memory is page-aligned, and freed after the machine by the order of the fields. It consists of
        // atomic words and of nothing else, so that a guest may change any of it at any time.
        unsafe { machine.set_user_memory_region(region) }.map_err(refused("giving the guest memory"))?;
        if has_interrupts {
            machine
                .create_irq_chip()
                .map_err(refused("creating an interrupt controller"))?;
        }
        let processors =
            (0..count).map(|index| Processor::new(&kvm, &machine, &memory, index, has_interrupts));
        Ok(Self {
            processors: processors.collect::<Result<_, _>>()?,
            machine,
            memory,
        })
    }

    /// The guest's memory.
    pub fn memory(&self) -> &Arc<GuestMemory> {
        &self.memory
    }

    /// Gives the guest devices, for requests by [`Way::Exit`]; who serves the others has them of its own.
    pub fn attach(&mut self, devices: &Arc<Devices>) {
        for processor in &mut self.processors {
            processor.devices = Some(Arc::clone(devices));
        }
    }

    /// The guest's processors.
    pub fn processors(&mut self) -> &mut [Processor] {
        &mut self.processors
    }

    /// An eventfd that the kernel signals whenever the guest calls by [`Way::Notify`], without leaving it for the
    /// program.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn notification(&self) -> Result<EventFd, GuestError> {
        let event = self.event()?;
        let address = IoEventAddress::Pio(port::NOTIFY.into());
        self.machine
            .register_ioevent(&event, &address, NoDatamatch)
            .map_err(refused("having the kernel signal an eventfd"))?;
        Ok(event)
    }

    /// Has the first processor carry out `order`.
    ///
    /// # Errors
    /// When the order is impossible, or the guest stops for another reason, as when it touches what is not mapped.
    pub fn run(&mut self, order: Order) -> Result<Outcome, GuestError> {
        self.processors[0].run(order)
    }
}

impl Processor {
    fn new(
        kvm: &Kvm,
        machine: &VmFd,
        memory: &Arc<GuestMemory>,
        index: usize,
        has_interrupts: bool,
    ) -> Result<Self, GuestError> {
        let processor = machine
            .create_vcpu(index as u64)
            .map_err(refused("creating a virtual processor"))?;
        let features = kvm
            .get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)
            .map_err(refused("asking which features a guest may have"))?;
        processor
            .set_cpuid2(&features)
            .map_err(refused("giving the guest the host's features"))?;
        let mut registers = processor
            .get_sregs()
            .map_err(refused("reading the processor's state"))?;
        registers.cs = segment(CODE_SELECTOR, 0xb, 1);
        let data = segment(DATA_SELECTOR, 0x3, 0);
        for register in [
            &mut registers.ds,
            &mut registers.es,
            &mut registers.fs,
            &mut registers.gs,
            &mut registers.ss,
        ] {
            *register = data;
        }
        (registers.cr0, registers.cr3) = (CR0, (page::LEVEL_4 * PAGE_BYTES) as u64);
        (registers.cr4, registers.efer) = (CR4, EFER);
        let table = |word: usize| (page::DESCRIPTORS * PAGE_BYTES + word * 8) as u64;
        (registers.gdt.base, registers.gdt.limit) = (table(descriptors::SEGMENTS), 0xff);
        (registers.idt.base, registers.idt.limit) = (table(descriptors::INTERRUPTS), 0xfff);
        processor
            .set_sregs(&registers)
            .map_err(refused("setting the processor to 64-bit mode"))?;
        let mut general = processor.get_regs().map_err(refused("reading the registers"))?;
        (general.rip, general.rflags) = ((page::CODE * PAGE_BYTES) as u64, RFLAGS);
        general.r8 = (index * page::PROCESSOR * PAGE_BYTES) as u64;
        general.rsp = ((page::DESCRIPTORS + 1) * PAGE_BYTES) as u64;
        processor
            .set_regs(&general)
            .map_err(refused("setting the registers"))?;
        let controller = has_interrupts.then(|| {
            let mut state = processor.get_lapic()?;
            for (register, byte) in state.regs[SPURIOUS..].iter_mut().zip(SWITCHED_ON) {
                *register = byte as _;
            }
            Ok(state)
        });
        let controller = controller
            .transpose()
            .map_err(refused("reading the interrupt controller"))?;
        let memory = Arc::clone(memory);
        Ok(Self {
            processor,
            controller,
            memory,
            devices: None,
            index,
        })
    }

    /// Which of the guest's processors it is.
    pub fn index(&self) -> usize {
        self.index
    }

    /// A page of the processor's own.
    fn own(&self, page: usize) -> usize {
        page + self.index * page::PROCESSOR
    }

    /// Carries out `order`.
    ///
    /// # Errors
    /// When the order is impossible, or the guest stops for another reason, as when it touches what is not mapped.
    pub fn run(&mut self, order: Order) -> Result<Outcome, GuestError> {
        if order.batch == 0 || order.samples == 0 || order.samples > SAMPLES_MAX {
            let (samples, batch) = (order.samples, order.batch);
            return Err(GuestError::Order { samples, batch });
        }
        let words = [
            (order::WAY, order.way as u64),
            (order::OPERATION, order.operation as u64),
            (order::PAGE, order.page),
            (order::FRAME, order.frame),
            (order::STEP, order.step),
            (order::BATCH, order.batch),
            (order::SAMPLES, order.samples as u64),
            (order::AFTER, order.after),
            (order::REFUSED, 0),
        ];
        for (word, value) in words {
            self.memory.store(self.own(page::ORDER), word, value);
        }
        self.allow_interrupt()?;
        let exits = self.until_done()?;
        let result = |word| self.memory.load(self.own(page::ORDER), word);
        let tick = |sample: usize| {
            let page = self.own(page::SAMPLES) + sample / PAGE_WORDS;
            self.memory.load(page, sample % PAGE_WORDS)
        };
        Ok(Outcome {
            ticks: (0..order.samples).map(tick).collect(),
            status: result(order::STATUS),
            value: result(order::VALUE),
            touched: result(order::TOUCHED),
            refused: result(order::REFUSED),
            exits,
        })
    }

    /// Lets the next interrupt come: the guest's handler tells neither the controller nor, without privilege, the
    /// processor that the last one is over.
    fn allow_interrupt(&mut self) -> Result<(), GuestError> {
        let Some(controller) = &self.controller else {
            return Ok(());
        };
        self.processor
            .set_lapic(controller)
            .map_err(refused("setting the interrupt controller"))?;
        let mut general = self
            .processor
            .get_regs()
            .map_err(refused("reading the registers"))?;
        general.rflags |= INTERRUPTS;
        self.processor
            .set_regs(&general)
            .map_err(refused("setting the registers"))
    }

    fn until_done(&mut self) -> Result<u64, GuestError> {
        let mut exits = 0;
        loop {
            let line = self.memory.line(self.index);
            match self.processor.run() {
                Ok(VcpuExit::IoOut(port::DONE, _)) => return Ok(exits),
                Ok(VcpuExit::IoOut(port::SERVE, _)) => {
                    // By exit nothing was announced: what was answered last stays so.
                    let sequence = line.answered();
                    let request = line.copy(sequence);
                    line.answer(sequence, serve(&request, &self.memory, self.devices.as_deref()));
                }
                Ok(VcpuExit::IoOut(port::WAKE, _)) => line.wake(),
                Ok(other) => return Err(GuestError::Stopped(format!("{other:?}"))),
                // A signal.
                Err(error) if error.errno() == rustix::io::Errno::INTR.raw_os_error() => continue,
                Err(error) => return Err(refused("running the guest")(error)),
            }
            exits += 1;
        }
    }
}

fn segment(selector: u16, kind: u8, is_long: u8) -> kvm_segment {
    kvm_segment {
        base: 0,
        limit: u32::MAX,
        selector,
        type_: kind,
        present: 1,
        dpl: 3,
        db: 1 - is_long,
        s: 1,
        l: is_long,
        g: 1,
        ..Default::default()
    }
}

/// The guest's own memory where it lies, and after it the window, empty.
fn write_tables(memory: &GuestMemory) {
    let entry = |page: usize| (page * PAGE_BYTES) as u64 | TABLE_FLAGS;
    memory.store(page::LEVEL_4, 0, entry(page::LEVEL_3));
    memory.store(page::LEVEL_3, 0, entry(page::LEVEL_2));
    memory.store(page::LEVEL_2, 0, entry(page::IDENTITY));
    memory.store(page::LEVEL_2, 1, entry(page::WINDOW));
    for page in 0..page::COUNT {
        memory.store(page::IDENTITY, page, entry(page));
    }
    // Descriptors of data and 64-bit code for users, at the places that their selectors say, and the interrupt's gate.
    // Intel's manual, volume 3A, sections 3.4.5 and 7.14.1.
    let descriptor = |word: usize, value: u64| memory.store(page::DESCRIPTORS, word, value);
    descriptor(
        descriptors::SEGMENTS + usize::from(DATA_SELECTOR / 8),
        0x00cf_f300_0000_ffff,
    );
    descriptor(
        descriptors::SEGMENTS + usize::from(CODE_SELECTOR / 8),
        0x00af_fb00_0000_ffff,
    );
    let target = (page::CODE * PAGE_BYTES + handler()) as u64;
    let gate = target & 0xffff | u64::from(CODE_SELECTOR) << 16 | 0xee << 40 | target >> 16 << 48;
    descriptor(descriptors::INTERRUPTS + 2 * descriptors::VECTOR, gate);
}

fn write_program(memory: &GuestMemory) {
    for (word, bytes) in program().chunks(8).enumerate() {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        memory.store(page::CODE, word, u64::from_le_bytes(padded));
    }
}
