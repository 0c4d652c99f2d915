//! Random states of a processor at privilege level 0, and what a run leaves of them.
//!
//! Wherever code refers to there is memory, with contents that depend on the address and the state's seed alone.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sidestep_ia64::execution::Observer;
use sidestep_ia64::float::FloatRegister;
use sidestep_ia64::memory::{MemoryRegion, PhysicalMemory};
use sidestep_ia64::mmu::entry::{MemoryAttribute, TranslationEntry};
use sidestep_ia64::registers::application::{
    BSP, BSPSTORE, ITC, KERNEL_0, KERNEL_7, LC, RNAT, RSC, RUC, UNAT,
};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control::DCR;
use sidestep_ia64::{Exit, FaultKind, PhysicalAddress, Processor, TranslationSide, VirtualAddress};

use crate::sequencing::{self, Parts};

/// Pages of virtual memory.
pub(super) const PAGE_LOG2: u32 = 14;
pub(super) const PAGE: u64 = 1 << PAGE_LOG2;
/// Physical memory: pages are given out in order.
pub(super) const MEMORY: usize = 8 << 20;
/// Where the code ends, in pages of its own: what is behind it, and where branches go, are `break`s. Sums and multiples
/// of what registers hold lie elsewhere: code that is loaded is not the same in two versions.
pub(super) const CODE_END: u64 = 0x1_2345_4000 + PAGE / 2;
/// The backing store.
pub(super) const BACKING_STORE: u64 = 0x6000_0000;
/// Where kernel registers point to if areas of memory lie apart.
pub(super) const AREAS: u64 = 0x3000_0000;
/// Where general registers point to in tame states, and how far from each other: more than a page, so that lines of
/// different ones fall into different sets of a cache.
const APART: u64 = 0x5000_0000;
const APART_BYTES: u64 = 2 * PAGE + 0x240;
/// What of DCR has a speculative load defer that its page is not in the TLB: `dm` (manual 2:3.3.4.1, table 3-6).
const DEFERS: u64 = 1 << 8;
/// Instructions that a run has at most.
pub(super) const INSTRUCTIONS_MAX: u64 = 10_000;

/// What a run leaves behind.
pub(super) struct State {
    /// Where it ended.
    pub ip: u64,
    general: Vec<(u64, bool)>,
    predicates: u64,
    branch: [u64; 8],
    status: u64,
    frame: FrameMarker,
    application: Vec<(u8, u64)>,
    floating: Vec<FloatRegister>,
    control: Vec<u64>,
    region: Vec<u64>,
    memory: BTreeMap<u64, Vec<u8>>,
}

impl State {
    pub fn of(processor: &Processor, memory: BTreeMap<u64, Vec<u8>>) -> State {
        // Registers behind the frame's end are nobody's.
        let count = 32 + processor.frame.size as u8;
        // What counts time differs.
        let exists = |register: &u8| {
            matches!(*register, KERNEL_0..=KERNEL_7 | RSC..=RNAT | 32 | UNAT | 40 | 64..=66)
                && !matches!(*register, ITC | RUC)
        };
        State {
            ip: processor.instruction_pointer().0,
            general: (0..count)
                .map(|register| (processor.general.value(register), processor.general.nat(register)))
                .collect(),
            predicates: processor.predicates,
            branch: processor.branch,
            status: processor.status,
            frame: processor.frame,
            application: (0..128)
                .filter(exists)
                .map(|register| (register, processor.application(register)))
                .collect(),
            floating: (0..128).map(|register| processor.floating(register)).collect(),
            control: processor.system.control.to_vec(),
            region: processor.system.region.to_vec(),
            memory,
        }
    }

    /// What is not the same, but for what is dead.
    pub fn difference(&self, other: &State, dead: &Parts) -> Option<String> {
        if self.ip != other.ip {
            return Some(format!("one goes to {:x}, the other to {:x}", self.ip, other.ip));
        }
        for (register, (first, second)) in self.general.iter().zip(&other.general).enumerate() {
            if first != second && dead.general >> register & 1 == 0 {
                return Some(format!("r{register} is {first:x?}, and {second:x?}"));
            }
        }
        for (first, second) in self.application.iter().zip(&other.application) {
            if first != second && dead.application >> first.0 & 1 == 0 {
                return Some(format!("ar{} is {:x}, and {:x}", first.0, first.1, second.1));
            }
        }
        for (page, bytes) in &self.memory {
            // What of the register stack is in memory is dead as well.
            if dead.state.contains(sequencing::State::STACK) && *page >> 28 == BACKING_STORE >> 28 {
                continue;
            }
            let same = other.memory.get(page);
            if same.is_some_and(|other| other != bytes) {
                return Some(format!("memory in the page at {page:x}"));
            }
        }
        for (what, same) in [
            (
                "predicates",
                (self.predicates ^ other.predicates) & !dead.predicate == 0,
            ),
            ("branch registers", self.branch == other.branch),
            ("psr", (self.status ^ other.status) & !dead.status == 0),
            (
                "the frame",
                dead.state.contains(sequencing::State::FRAME) || self.frame == other.frame,
            ),
            (
                "floating-point registers",
                (0..128).all(|register| {
                    dead.float >> register & 1 != 0 || self.floating[register] == other.floating[register]
                }),
            ),
            ("control registers", self.control == other.control),
            ("region registers", self.region == other.region),
        ] {
            if !same {
                return Some(what.to_owned());
            }
        }
        None
    }
}

/// A reproducible generator of random bits (SplitMix64).
pub(super) struct Random(u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn one_of(&mut self, chances: u64) -> bool {
        self.bits().is_multiple_of(chances)
    }

    /// A value as registers and memory have it: an address, a small number, anything; in a gentle state one that also
    /// most system registers can have.
    fn value(&mut self, is_gentle: bool) -> u64 {
        if is_gentle {
            return GENTLE[(self.bits() % GENTLE.len() as u64) as usize];
        }
        match self.bits() % 4 {
            0 => self.bits() % 64,
            1 => self.bits(),
            // Few places, so that references meet.
            _ => 0x2000_0000 + (self.bits() % 64) * 16,
        }
    }
}

/// Values of gentle states: nothing, flags, a region register's page size.
pub(super) const GENTLE: [u64; 4] = [0, 0, 8, 14 << 2];

/// Whether a state is one of those in which privileged code does not fault at once.
pub(super) fn is_gentle(seed: u64) -> bool {
    !seed.is_multiple_of(4)
}

/// Translations of data that are inserted in a run at most: pages of two regions can drive each other out for ever.
const FAULTS_MAX: u32 = 4_000;

/// Host memory behind the physical addresses.
struct Memory {
    allocated: *mut u8,
    /// The first aligned address in what was allocated.
    host: *mut u8,
}

const ALIGNMENT: usize = 1 << 16;
/// Of so small an alignment the allocator takes pages from the system that are zero, and need not be written. There is
/// a memory for each state, which touches a few of its pages.
const LAYOUT: Layout = match Layout::from_size_align(MEMORY + ALIGNMENT, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("a size and a power of two"),
};

impl Memory {
    fn new() -> Memory {
        // SAFETY: the layout's size is not zero.
        let allocated = unsafe { alloc_zeroed(LAYOUT) };
        assert!(!allocated.is_null(), "memory for a verification");
        // SAFETY: the first aligned address is less than the alignment away, by which the allocation is larger.
        let host = unsafe { allocated.add(allocated.align_offset(ALIGNMENT)) };
        Memory { allocated, host }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody uses it any more: the processor keeps the memory alive.
        unsafe { dealloc(self.allocated, LAYOUT) };
    }
}

// SAFETY: the memory belongs to this object alone; its one processor runs on one thread.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

// SAFETY: the one region lives as long as the object.
unsafe impl PhysicalMemory for Memory {
    fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion> {
        (address.0 < MEMORY as u64).then_some(MemoryRegion {
            start: PhysicalAddress(0),
            size: MEMORY as u64,
            host: self.host,
            writable: true,
        })
    }

    fn load_device(&self, _: PhysicalAddress, _: u64) -> Option<u64> {
        Some(0)
    }

    fn store_device(&self, _: PhysicalAddress, _: u64, _: u64) -> bool {
        true
    }
}

/// What random states have in common.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The frame of the registers.
    pub frame: FrameMarker,
    /// Whether kernel registers point to areas of memory that lie apart.
    pub has_areas: bool,
    /// The loop count, if it is none of a few.
    pub count: Option<u64>,
    /// Whether speculative loads defer the fault of a page that is not mapped yet.
    pub defers: bool,
    /// Whether no register holds a NaT, and all that are general point far from each other.
    pub is_tame: bool,
}

impl Setting {
    /// That of straight code: a frame of all stacked registers.
    pub fn straight(has_areas: bool) -> Setting {
        Setting {
            frame: FrameMarker {
                size: 96,
                locals: 96,
                ..FrameMarker::default()
            },
            has_areas,
            count: None,
            defers: false,
            is_tame: false,
        }
    }
}

/// How a run ended.
pub(super) enum End {
    /// Behind the code, or where a branch went.
    Reached(Box<State>),
    /// Why, and the address of the bundle.
    Faulted(FaultKind, u64),
}

impl fmt::Display for End {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Reached(state) => write!(out, "reaches {:x}", state.ip),
            End::Faulted(kind, _) => write!(out, "faults ({kind:?})"),
        }
    }
}

/// A processor and its pages.
pub(super) struct Ground {
    pub processor: Processor,
    memory: Arc<Memory>,
    seed: u64,
    /// Bundles and where they stand.
    pub code: Vec<(u64, [u8; 16])>,
    /// Physical pages by virtual page.
    pages: BTreeMap<u64, u64>,
    /// Whether its code defers faults.
    defers: bool,
}

impl Ground {
    /// Memory and a processor, of a state's seed.
    pub fn new(seed: u64) -> Ground {
        let memory = Arc::new(Memory::new());
        Ground {
            processor: Processor::new_system(memory.clone()),
            memory,
            seed,
            code: Vec::new(),
            pages: BTreeMap::new(),
            defers: false,
        }
    }

    /// Puts the processor into the state of the seed, before the bundle at `start`.
    pub fn begin(&mut self, start: u64, setting: &Setting, predicates: impl Fn(u64) -> u64) {
        let mut random = Random(self.seed);
        let is_gentle = is_gentle(self.seed);
        for page in 0..4 {
            self.map(BACKING_STORE + page * PAGE, TranslationSide::Data);
        }
        let processor = &mut self.processor;
        processor.set_monitored(true);
        processor.set_status(psr::IC | psr::DT | psr::RT | psr::IT | psr::BN);
        processor.set_application(RSC, 0);
        processor.set_application(BSPSTORE, BACKING_STORE + PAGE);
        processor
            .resume_frame(setting.frame)
            .expect("the backing store is mapped");
        processor.set_application(RSC, if random.one_of(2) { 0 } else { 3 });
        for register in 1..32 + setting.frame.size as u8 {
            let (value, is_nat) = match setting.is_tame {
                true => (APART + u64::from(register) * APART_BYTES, false),
                false => (random.value(is_gentle), random.one_of(100)),
            };
            processor.general.set_with_nat(register, value, is_nat);
        }
        processor.predicates = predicates(random.bits()) | 1;
        for register in 2..128 {
            let value = FloatRegister::from_significand(random.value(false));
            processor.set_floating(register, value);
        }
        for register in 0..8 {
            processor.branch[register] = CODE_END + 0x1000 + 16 * (random.bits() % 64);
        }
        for register in KERNEL_0..=KERNEL_7 {
            // What areas lie apart begins far from everything else.
            let value = match setting.has_areas {
                true => AREAS + u64::from(register) * PAGE,
                false => random.value(is_gentle),
            };
            processor.set_application(register, value);
        }
        for (register, value) in [
            (32, random.value(is_gentle)),
            (UNAT, random.bits()),
            (LC, setting.count.unwrap_or(random.bits() % 8)),
        ] {
            processor.set_application(register, value);
        }
        processor.set_application(BSP, 0);
        self.defers = setting.defers;
        if setting.defers {
            processor.system.control[usize::from(DCR)] |= DEFERS;
        }
        processor.set_instruction_pointer(start, 0);
    }

    /// Runs from where the processor stands, to the code's end or a fault; pages appear where it refers to.
    pub fn run<O: Observer>(&mut self, limit: u64, observer: &mut O) -> End {
        let start = self.code.first().map_or(CODE_END, |(address, _)| *address);
        self.run_to_limit(limit, observer)
            .unwrap_or(End::Faulted(FaultKind::SingleStep, start))
    }

    /// The same, instruction by instruction; behind each `change` is told where it stood and what the predicates were.
    pub fn run_stepwise<O: Observer>(
        &mut self,
        limit: u64,
        observer: &mut O,
        mut change: impl FnMut(&mut Processor, (u64, u8), u64),
    ) -> End {
        let start = self.code.first().map_or(CODE_END, |(address, _)| *address);
        for _ in 0..limit {
            let place = self.processor.instruction_pointer();
            let predicates = self.processor.predicates;
            if let Some(end) = self.run_to_limit(1, observer) {
                return end;
            }
            change(&mut self.processor, place, predicates);
        }
        End::Faulted(FaultKind::SingleStep, start)
    }

    /// Runs to the code's end or a fault, or `None` if so many instructions have come before that.
    fn run_to_limit<O: Observer>(&mut self, limit: u64, observer: &mut O) -> Option<End> {
        let start = self.code.first().map_or(CODE_END, |(address, _)| *address);
        // Code of checks stands behind the end.
        let is_code = |code: &[(u64, [u8; 16])], ip: u64| {
            (start..CODE_END).contains(&ip) || code.iter().any(|(address, _)| *address == ip)
        };
        let mut faults = 0;
        loop {
            match self.processor.run_observed(limit, observer) {
                Exit::Fault(fault) => {
                    let ip = self.processor.instruction_pointer().0;
                    let is_inside = is_code(&self.code, ip);
                    match fault.kind {
                        FaultKind::AlternateInstructionTlb | FaultKind::InstructionTlb => {
                            self.map(fault.address.0, TranslationSide::Instruction);
                        }
                        FaultKind::AlternateDataTlb | FaultKind::DataTlb
                            if self.has_memory() && faults < FAULTS_MAX =>
                        {
                            faults += 1;
                            self.map(fault.address.0, TranslationSide::Data);
                        }
                        _ if is_inside => return Some(End::Faulted(fault.kind, ip)),
                        _ => {
                            return Some(End::Reached(Box::new(State::of(
                                &self.processor,
                                self.contents(),
                            ))));
                        }
                    }
                }
                Exit::Limit => return None,
                Exit::Attention | Exit::Halted => {}
            }
        }
    }

    fn has_memory(&self) -> bool {
        (self.pages.len() as u64 + 1) * PAGE < MEMORY as u64
    }

    fn map(&mut self, address: u64, side: TranslationSide) {
        let page = address & !(PAGE - 1);
        let next = self.pages.len() as u64 * PAGE;
        let physical = *self.pages.entry(page).or_insert(next);
        if physical == next {
            self.fill(page, physical);
        }
        let region = (self.processor.system.region[(page >> 61) as usize] >> 8) as u32 & 0xff_ffff;
        let entry = TranslationEntry {
            page: VirtualAddress(page),
            region,
            size_log2: PAGE_LOG2,
            physical: PhysicalAddress(physical),
            key: 0,
            present: true,
            attribute: MemoryAttribute::WriteBack,
            accessed: true,
            dirty: true,
            level: 3,
            // Read, write and execute for all.
            rights: 3,
            deferral: self.defers && matches!(side, TranslationSide::Instruction),
        };
        self.processor.insert_translation(side, entry);
    }

    /// Whether a page is one of those up to the code's end in which it stands: a long block begins pages before.
    fn is_code(&self, page: u64) -> bool {
        let first = self.code.first().map_or(CODE_END, |(address, _)| *address);
        first.saturating_sub(page) < PAGE && page <= CODE_END
    }

    /// The contents of a page: code, or what its address and the seed say.
    fn fill(&mut self, page: u64, physical: u64) {
        let is_code = self.is_code(page);
        let mut random = Random(page ^ self.seed.rotate_left(32));
        // SAFETY: the page lies in the allocation, and the processor does not run.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(self.memory.host.add(physical as usize), PAGE as usize) };
        if is_code {
            let here = page..page + PAGE;
            for (address, bundle) in self.code.iter().filter(|(address, _)| here.contains(address)) {
                let at = (address - page) as usize;
                bytes[at..at + 16].copy_from_slice(bundle);
            }
            return;
        }
        let is_gentle = is_gentle(self.seed);
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&random.value(is_gentle).to_le_bytes());
        }
    }

    /// The pages but that of the code.
    fn contents(&self) -> BTreeMap<u64, Vec<u8>> {
        let data = self.pages.iter().filter(|(page, _)| !self.is_code(**page));
        data.map(|(page, physical)| {
            // SAFETY: the page lies in the allocation, and the processor does not run.
            let bytes = unsafe {
                std::slice::from_raw_parts(self.memory.host.add(*physical as usize), PAGE as usize)
            };
            (*page, bytes.to_vec())
        })
        .collect()
    }
}
