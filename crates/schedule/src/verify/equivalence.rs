//! A block against its schedule on random states, on the interpreter: registers with their NaT bits, memory, where it
//! goes, and whether it faults.
//!
//! The state is that of a kernel at privilege level 0. Wherever the code refers to there is memory, with contents
//! that depend on the address and the state's seed alone. What comes first of two faults may change, as the
//! instructions may.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sidestep_ia64::encoding::{Bundle, Effects, Unit};
use sidestep_ia64::float::FloatRegister;
use sidestep_ia64::memory::{MemoryRegion, PhysicalMemory};
use sidestep_ia64::mmu::entry::{MemoryAttribute, TranslationEntry};
use sidestep_ia64::registers::application::{
    BSP, BSPSTORE, ITC, KERNEL_0, KERNEL_7, LC, RNAT, RSC, RUC, UNAT,
};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::{Exit, FaultKind, PhysicalAddress, Processor, TranslationSide, VirtualAddress};

use super::assertions::{References, as_asserted, exclusive, is_absent};
use crate::block::{Block, Item};
use crate::bundle::{Content, Placed};
use crate::sequencing::{self, Parts};

/// Pages of virtual memory.
const PAGE_LOG2: u32 = 14;
const PAGE: u64 = 1 << PAGE_LOG2;
/// Physical memory: pages are given out in order.
const MEMORY: usize = 8 << 20;
/// Where the code ends, in a page of its own: what is behind it, and where branches go, are `break`s.
const CODE_END: u64 = 0x4000_0000 + PAGE / 2;
/// The backing store.
const BACKING_STORE: u64 = 0x6000_0000;
/// Where kernel registers point to if areas of memory lie apart.
const AREAS: u64 = 0x3000_0000;
/// Instructions that a run has at most.
const INSTRUCTIONS_MAX: u64 = 10_000;

/// How many states were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// States in which neither faulted.
    pub completed: u32,
    /// States in which both did.
    pub faulted: u32,
    /// States in which what the source says of addresses does not hold, that what is resident is in memory among it.
    pub excluded: u32,
}

/// A state in which block and schedule differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedule differs from the original in the random state {seed}: {what}")]
pub struct Difference {
    /// The seed of the state.
    pub seed: u64,
    /// What differs.
    pub what: String,
}

/// Code that is run: a block's bundles, and for each of its items the one of the original that it was.
struct Code<'a> {
    block: &'a Block,
    original: &'a Block,
    origins: &'a [usize],
    bundles: &'a [Placed],
}

impl Code<'_> {
    /// Where its first bundle stands.
    fn start(&self) -> u64 {
        CODE_END - 16 * self.bundles.len() as u64
    }
}

/// Compares a block with its schedule in as many random states. The schedule is of a block with the same instructions
/// in another order, each with its origin in the first; registers may differ where nobody reads them.
///
/// A random state takes a branch soon. So in most states the first few of those that go on are left out, in both.
///
/// # Errors
/// [`Difference`], of the first state that shows one.
pub fn compare(
    block: &Block,
    (scheduled, origins, bundles): (&Block, &[usize], &[Placed]),
    states: u64,
) -> Result<Compared, Difference> {
    let alone: Vec<Placed> = (0..block.items.len())
        .map(|item| alone(&block.items[item], item))
        .collect();
    let (ref block, ref scheduled) = (as_asserted(block), as_asserted(scheduled));
    let own: Vec<usize> = (0..block.items.len()).collect();
    let original = Code {
        block,
        original: block,
        origins: &own,
        bundles: &alone,
    };
    let schedule = Code {
        block: scheduled,
        original: block,
        origins,
        bundles,
    };
    let exits: Vec<usize> = own
        .iter()
        .copied()
        .filter(|item| block.items[*item].is_branch())
        .collect();
    let side_exits = &exits[..exits.len().saturating_sub(1)];
    let mut compared = Compared::default();
    for seed in 0..states {
        // All in half of the states, so that what is behind them is seen as often.
        let left_out = match seed % 2 {
            0 => side_exits.len(),
            _ => (seed / 2) as usize % (side_exits.len() + 1),
        };
        let left_out = &side_exits[..left_out];
        let mut seen = References::default();
        let first = run(&original, left_out, seed, &mut seen);
        if seen.overlap(&block.areas, original.start()) {
            compared.excluded += 1;
            continue;
        }
        let second = run(&schedule, left_out, seed, &mut References::default());
        match (first, second) {
            (End::Faulted(_, ip), _) if is_absent(block, (ip - original.start()) / 16) => {
                compared.excluded += 1
            }
            (End::Faulted(..), End::Faulted(..)) => compared.faulted += 1,
            // Of a fault and a branch behind it the branch may come first, where nobody reads what has faulted.
            (End::Faulted(..), End::Reached(state)) if state.is_at_side_exit(block) => compared.faulted += 1,
            (End::Reached(first), End::Reached(second)) => {
                if let Some(what) = first.difference(&second, &first.dead(block)) {
                    return Err(Difference { seed, what });
                }
                compared.completed += 1;
            }
            (first, second) => {
                return Err(Difference {
                    seed,
                    what: format!("the original {first}, the schedule {second}"),
                });
            }
        }
    }
    Ok(compared)
}

/// An item in a bundle and a group of its own.
fn alone(item: &Item, index: usize) -> Placed {
    let mut slots = [Content::Nop; 3];
    let content = Content::Item(index);
    let template = match item.instruction.unit {
        Unit::M => {
            slots[0] = content;
            0x08
        }
        Unit::I => {
            slots[1] = content;
            0x00
        }
        Unit::F => {
            slots[1] = content;
            0x0c
        }
        Unit::B => {
            slots[2] = content;
            0x10
        }
        Unit::L | Unit::X => {
            slots = [Content::Nop, Content::Half, content];
            0x04
        }
    };
    Placed {
        template,
        stop: true,
        slots,
    }
}

/// How a run ended.
enum End {
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

/// What a run leaves behind.
struct State {
    ip: u64,
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
    fn of(processor: &Processor, memory: BTreeMap<u64, Vec<u8>>) -> State {
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

    /// Whether a branch to a label behind which a block goes on was taken.
    fn is_at_side_exit(&self, block: &Block) -> bool {
        let mut exits = (0..block.items.len()).filter(|item| block.targets[*item].is_some());
        exits.any(|item| target(block, item) == self.ip)
    }

    /// What nobody reads where a run has ended, by what a block's branches say of their targets.
    fn dead(&self, block: &Block) -> Parts {
        let relative = (0..block.items.len()).find(|item| target(block, *item) == self.ip);
        let exits = (0..block.items.len()).filter(|item| match relative {
            Some(relative) => *item == relative,
            None => block.items[*item].is_branch() && !block.items[*item].instruction.is_relative(),
        });
        let dead = exits.map(|exit| block.dead[exit]).reduce(Parts::and);
        dead.filter(|_| self.ip != CODE_END).unwrap_or_default()
    }

    /// What is not the same, but for what is dead.
    fn difference(&self, other: &State, dead: &Parts) -> Option<String> {
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
            ("psr", self.status == other.status),
            ("the frame", self.frame == other.frame),
            ("floating-point registers", self.floating == other.floating),
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
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
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
const GENTLE: [u64; 4] = [0, 0, 8, 14 << 2];

/// Whether a state is one of those in which privileged code does not fault at once.
fn is_gentle(seed: u64) -> bool {
    !seed.is_multiple_of(4)
}

/// Where a branch of the original goes: those to one label to one place.
fn target(original: &Block, item: usize) -> u64 {
    let label = original.targets[item];
    let first = label.and_then(|_| original.targets.iter().position(|other| *other == label));
    CODE_END + 16 * (1 + first.unwrap_or(item) as u64)
}

/// Runs bundles in a random state; branches that are left out are `nop`s.
fn run(code: &Code<'_>, left_out: &[usize], seed: u64, seen: &mut References) -> End {
    let start = code.start();
    let mut ground = Ground::new(seed);
    for (index, placed) in code.bundles.iter().enumerate() {
        let address = start + 16 * index as u64;
        let mut placed = *placed;
        for content in &mut placed.slots {
            if matches!(*content, Content::Item(item) if left_out.contains(&code.origins[item])) {
                *content = Content::Nop;
            }
        }
        let bundle = aimed(code, &placed, address);
        ground.code.push((address, bundle.to_bytes()));
    }
    ground.begin(start, seed, code.original);
    let limit = INSTRUCTIONS_MAX;
    loop {
        match ground.processor.run_observed(limit, seen) {
            Exit::Fault(fault) => {
                let ip = ground.processor.instruction_pointer().0;
                let is_inside = (start..CODE_END).contains(&ip);
                match fault.kind {
                    FaultKind::AlternateInstructionTlb | FaultKind::InstructionTlb => {
                        ground.map(fault.address.0, TranslationSide::Instruction);
                    }
                    FaultKind::AlternateDataTlb | FaultKind::DataTlb if ground.has_memory() => {
                        ground.map(fault.address.0, TranslationSide::Data);
                    }
                    _ if is_inside => return End::Faulted(fault.kind, ip),
                    _ => return End::Reached(Box::new(State::of(&ground.processor, ground.contents()))),
                }
            }
            Exit::Limit => return End::Faulted(FaultKind::SingleStep, start),
            Exit::Attention | Exit::Halted => {}
        }
    }
}

/// The bundle at an address, each branch of which goes to a place of its own.
fn aimed(code: &Code<'_>, placed: &Placed, address: u64) -> Bundle {
    let mut bundle = placed.encode(&code.block.items);
    for slot in 0..3u8 {
        let Content::Item(index) = placed.slots[usize::from(slot)] else {
            continue;
        };
        let instruction = &code.block.items[index].instruction;
        if !instruction.is_relative() || !instruction.effects().contains(Effects::TRANSFERS) {
            continue;
        }
        let target = target(code.original, code.origins[index]);
        let operand = instruction
            .form()
            .operands
            .iter()
            .find(|operand| format!("{operand:?}").starts_with("Target"));
        let inserted = operand.and_then(|operand| {
            let distance = target.wrapping_sub(address) as i64;
            operand.insert(distance, instruction.slot & !operand.mask(), 0)
        });
        if let Some((bits, _)) = inserted {
            let mut slots = [bundle.slot(0), bundle.slot(1), bundle.slot(2)];
            slots[usize::from(slot)] = bits;
            bundle = Bundle::new(bundle.template(), slots);
        }
    }
    bundle
}

/// Host memory behind the physical addresses.
struct Memory {
    host: *mut u8,
}

const LAYOUT: Layout = match Layout::from_size_align(MEMORY, 1 << 16) {
    Ok(layout) => layout,
    Err(_) => panic!("a size and a power of two"),
};

impl Memory {
    fn new() -> Memory {
        // SAFETY: the layout's size is not zero.
        let host = unsafe { alloc_zeroed(LAYOUT) };
        assert!(!host.is_null(), "memory for a verification");
        Memory { host }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody uses it any more: the processor keeps the memory alive.
        unsafe { dealloc(self.host, LAYOUT) };
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

/// A processor and its pages.
struct Ground {
    processor: Processor,
    memory: Arc<Memory>,
    seed: u64,
    code: Vec<(u64, [u8; 16])>,
    /// Physical pages by virtual page.
    pages: BTreeMap<u64, u64>,
}

impl Ground {
    fn new(seed: u64) -> Ground {
        let memory = Arc::new(Memory::new());
        Ground {
            processor: Processor::new_system(memory.clone()),
            memory,
            seed,
            code: Vec::new(),
            pages: BTreeMap::new(),
        }
    }

    fn begin(&mut self, start: u64, seed: u64, block: &Block) {
        let has_areas = block.areas.iter().any(Option::is_some);
        let mut random = Random(seed);
        let is_gentle = is_gentle(seed);
        for page in 0..4 {
            self.map(BACKING_STORE + page * PAGE, TranslationSide::Data);
        }
        let processor = &mut self.processor;
        processor.set_monitored(true);
        processor.set_status(psr::IC | psr::DT | psr::RT | psr::IT | psr::BN);
        processor.set_application(RSC, 0);
        processor.set_application(BSPSTORE, BACKING_STORE + PAGE);
        let frame = FrameMarker {
            size: 96,
            locals: 96,
            ..FrameMarker::default()
        };
        processor
            .resume_frame(frame)
            .expect("the backing store is mapped");
        processor.set_application(RSC, if random.one_of(2) { 0 } else { 3 });
        for register in 1..128 {
            let value = random.value(is_gentle);
            processor
                .general
                .set_with_nat(register, value, random.one_of(100));
        }
        processor.predicates = exclusive(block, random.bits()) | 1;
        for register in 2..128 {
            let value = FloatRegister::from_significand(random.value(false));
            processor.set_floating(register, value);
        }
        for register in 0..8 {
            processor.branch[register] = CODE_END + 0x1000 + 16 * (random.bits() % 64);
        }
        for register in KERNEL_0..=KERNEL_7 {
            // What areas lie apart begins far from everything else.
            let value = match has_areas {
                true => AREAS + u64::from(register) * PAGE,
                false => random.value(is_gentle),
            };
            processor.set_application(register, value);
        }
        for (register, value) in [
            (32, random.value(is_gentle)),
            (UNAT, random.bits()),
            (LC, random.bits() % 8),
        ] {
            processor.set_application(register, value);
        }
        processor.set_application(BSP, 0);
        processor.set_instruction_pointer(start, 0);
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
            deferral: false,
        };
        self.processor.insert_translation(side, entry);
    }

    /// The contents of a page: code, or what its address and the seed say.
    fn fill(&mut self, page: u64, physical: u64) {
        let is_code = page == CODE_END & !(PAGE - 1);
        let mut random = Random(page ^ self.seed.rotate_left(32));
        // SAFETY: the page lies in the allocation, and the processor does not run.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(self.memory.host.add(physical as usize), PAGE as usize) };
        if is_code {
            for (address, bundle) in &self.code {
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
        let data = self
            .pages
            .iter()
            .filter(|(page, _)| **page != CODE_END & !(PAGE - 1));
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
