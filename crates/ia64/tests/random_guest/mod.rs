//! A guest of random bundles on a processor in system mode with random registers, translations and privilege: it may do
//! anything, but it must not harm the host program, and what it does must not depend on how it is run.
//!
//! The fuzz target `system`, the test `random_system` and the virtual machines' tests share it.

#![allow(dead_code, reason = "each user needs a part of it")]

use std::sync::Arc;

use sidestep_ia64::encoding::{Bundle, DecodedSlot, Form, Instruction, Template, UnitClass, all_forms};
use sidestep_ia64::execution::{Dynamic, Observer, UNCACHEABLE};
use sidestep_ia64::mmu::entry::TranslationEntry;
use sidestep_ia64::mmu::vhpt::{PageTableAddress, RegionRegister};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{
    Exit, MemoryRegion, PhysicalAddress, PhysicalMemory, Processor, ProcessorState, TranslationSide,
    VirtualAddress,
};

/// Size of the memory at physical address zero.
pub const MEMORY: u64 = 1 << 17;
/// A second stretch of memory, that cannot be written.
pub const ROM: u64 = 1 << 20;
pub const ROM_SIZE: u64 = 1 << 16;
/// A device that answers every load with the address.
const DEVICE: u64 = 1 << 30;
const DEVICE_SIZE: u64 = 1 << 12;
/// Different bundles; memory is filled with them again and again, so that execution goes on wherever it gets.
const BUNDLES: usize = 192;

#[repr(C, align(65536))]
struct Bytes([u8; (MEMORY + ROM_SIZE) as usize]);

/// The memory of a guest.
struct Memory(*mut Bytes);

// SAFETY: the processor accesses the memory atomically, and the harness only while the processor does not run.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from `Box::into_raw` and goes nowhere else.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

// SAFETY: the memory lives as long as the object.
unsafe impl PhysicalMemory for Memory {
    fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion> {
        let regions = [(0, MEMORY, 0, true), (ROM, ROM_SIZE, MEMORY, false)];
        regions
            .into_iter()
            .find(|&(start, size, ..)| (start..start + size).contains(&address.0))
            .map(|(start, size, offset, writable)| MemoryRegion {
                start: PhysicalAddress(start),
                size,
                host: self.0.cast::<u8>().wrapping_add(offset as usize),
                writable,
            })
    }

    fn load_device(&self, address: PhysicalAddress, _: u64) -> Option<u64> {
        (DEVICE..DEVICE + DEVICE_SIZE)
            .contains(&address.0)
            .then_some(address.0)
    }

    fn store_device(&self, address: PhysicalAddress, _: u64, _: u64) -> bool {
        let drops = (ROM..ROM + ROM_SIZE).contains(&address.0);
        drops || (DEVICE..DEVICE + DEVICE_SIZE).contains(&address.0)
    }
}

/// Random numbers: the given bytes first, then what follows from them.
pub struct Source<'a> {
    bytes: std::slice::Iter<'a, u8>,
    state: u64,
}

impl<'a> Source<'a> {
    pub fn new(bytes: &'a [u8]) -> Source<'a> {
        Source {
            bytes: bytes.iter(),
            state: 0,
        }
    }

    pub fn next(&mut self) -> u64 {
        let word = self
            .bytes
            .by_ref()
            .take(8)
            .fold(0, |word, &byte| word << 8 | u64::from(byte));
        // The generator is SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ word;
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// The address of code.
    fn code(&mut self) -> u64 {
        let region = if self.one_in(2) { 0 } else { self.next() & 7 << 61 };
        region | ROM + self.below(ROM_SIZE)
    }

    /// An address that may mean something, or one at an edge, or any number.
    pub fn value(&mut self) -> u64 {
        let offset = self.below(MEMORY + 0x4000) & !(self.next() & 15);
        let region = self.next() & 7 << 61;
        match self.below(9) {
            0 => self.next(),
            7 => self.code(),
            1 => self.below(256),
            2 => ROM - 0x20 + self.below(ROM_SIZE + 0x40),
            3 => DEVICE + self.below(DEVICE_SIZE + 0x10),
            4 => region.wrapping_sub(self.below(32)),
            5 => 1 << self.below(64),
            6 => region | offset,
            _ => offset,
        }
    }

    fn bundle(&mut self, forms: &[&Form]) -> Bundle {
        if self.one_in(16) {
            return Bundle::from_bits(u128::from(self.next()) << 64 | u128::from(self.next()));
        }
        let mut slot = |classes: &[UnitClass]| {
            let form = loop {
                let form = forms[self.below(forms.len() as u64) as usize];
                if classes.contains(&form.class) {
                    break form;
                }
            };
            let any = self.next() & Bundle::SLOT_MASK;
            let slot = form.value | any & !form.mask;
            // Most predicates are true, most branches short: otherwise few instructions have an effect.
            if form.predicated && !self.one_in(4) {
                slot & !0x3f
            } else {
                slot
            }
        };
        use UnitClass::{A, B, F, I, LX, M};
        let (template, slots) = match any_of(slot(&[A]) as usize, 6) {
            0 => (0x04, [slot(&[A, M]), slot(&[LX]) ^ slot(&[A]), slot(&[LX])]),
            1 => (0x08, [slot(&[A, M]), slot(&[M]), slot(&[I])]),
            2 => (0x0c, [slot(&[A, M]), slot(&[F]), slot(&[A, I])]),
            3 => (0x10, [slot(&[M]), slot(&[A, I]), slot(&[B])]),
            4 => (0x18, [slot(&[M]), slot(&[M]), slot(&[B])]),
            _ => (0x00, [slot(&[M]), slot(&[A, I]), slot(&[I])]),
        };
        Bundle::new(Template::new(template | self.below(2) as u8), slots)
    }
}

fn any_of(number: usize, count: usize) -> usize {
    (number >> 6) % count
}

/// Notes whether a guest executes what it has written itself.
#[derive(Default)]
pub struct Spectator {
    pub executes_data: bool,
}

impl Observer for Spectator {
    type Static = ();

    fn decode(&mut self, _: &Instruction, _: &DecodedSlot) {}

    fn retired(&mut self, (): &(), dynamic: &Dynamic<'_>) {
        let ip = dynamic.place.ip;
        let physical = dynamic.memory.physical(TranslationSide::Instruction, ip);
        self.executes_data |= physical & !UNCACHEABLE < MEMORY || ip < MEMORY;
    }
}

/// A random guest.
pub struct Guest {
    pub processor: Processor,
    memory: Arc<Memory>,
}

impl Guest {
    /// The guest that follows from some bytes.
    pub fn new(bytes: &[u8]) -> Guest {
        let mut source = Source::new(bytes);
        // SAFETY: all zeros are valid bytes.
        let host = Box::into_raw(unsafe { Box::<Bytes>::new_zeroed().assume_init() });
        let memory = Arc::new(Memory(host));
        let bundles = code(&mut source);
        // Code stands in memory that cannot be written: what instructions do that have been overwritten depends on
        // how far the processor has decoded.
        // SAFETY: nobody else has seen the memory yet.
        let contents = unsafe { &mut (&mut (*host).0)[MEMORY as usize..] };
        for (place, bundle) in contents.chunks_exact_mut(16).zip(bundles.iter().cycle()) {
            place.copy_from_slice(bundle);
        }
        let mut processor = Processor::new_system(Arc::clone(&memory) as Arc<dyn PhysicalMemory>);
        fill_registers(&mut processor, &mut source);
        fill_system_registers(&mut processor, &mut source);
        Guest { processor, memory }
    }

    /// A second guest with a copy of this one's memory, and a fresh processor that goes on from `state`.
    pub fn restored(&self, state: &ProcessorState) -> Guest {
        // SAFETY: the processor does not run.
        let contents = Box::new(Bytes(unsafe { (*self.memory.0).0 }));
        let memory = Arc::new(Memory(Box::into_raw(contents)));
        let mut processor = Processor::new_system(Arc::clone(&memory) as Arc<dyn PhysicalMemory>);
        processor.restore(state).expect("the state of a processor");
        Guest { processor, memory }
    }

    /// Runs up to `end` retired instructions in pieces; false if the guest does not get
    /// there, because it does nothing but take interruptions.
    pub fn run(&mut self, end: u64, piece: u64, mut run: impl FnMut(&mut Processor, u64) -> Exit) -> bool {
        let mut idle = 0;
        loop {
            let before = self.processor.instructions_retired();
            if before == end {
                return true;
            }
            assert_eq!(run(&mut self.processor, piece.min(end - before)), Exit::Limit);
            // A guest may take interruptions for ever.
            idle = if self.processor.instructions_retired() == before {
                idle + 1
            } else {
                0
            };
            if idle == 64 {
                return false;
            }
        }
    }

    /// Everything that the guest could see of itself.
    pub fn state(&self) -> Vec<u64> {
        let processor = &self.processor;
        let (ip, slot) = processor.instruction_pointer();
        let marker = processor.frame.bits();
        let mut state = vec![
            ip,
            u64::from(slot),
            processor.status,
            processor.predicates,
            marker,
        ];
        state.extend(processor.branch);
        for register in 0..32 + processor.frame.size as u8 {
            state.push(processor.general.value(register));
            state.push(u64::from(processor.general.nat(register)));
        }
        state.extend((0..128).map(|register| processor.application(register)));
        state.extend((0..128).flat_map(|register| {
            let value = processor.floating(register);
            [value.significand(), value.sign_exponent()]
        }));
        state.extend(processor.system.control);
        state.extend(processor.system.region);
        state.extend(processor.system.protection_key);
        // SAFETY: the processor does not run.
        let contents = unsafe { &(*self.memory.0).0 };
        state.extend(
            contents
                .as_chunks::<8>()
                .0
                .iter()
                .map(|&word| u64::from_le_bytes(word)),
        );
        state
    }
}

/// The bundles of a guest.
pub fn code(source: &mut Source) -> Vec<[u8; 16]> {
    let forms: Vec<&Form> = all_forms().map(|(_, form)| form).collect();
    (0..BUNDLES).map(|_| source.bundle(&forms).to_bytes()).collect()
}

/// Sets every register that programs have.
pub fn fill_registers(processor: &mut Processor, source: &mut Source) {
    let size = source.below(97) as u32;
    processor.frame = FrameMarker {
        size,
        locals: source.below(u64::from(size) + 1) as u32,
        rotating: source.below(u64::from(size) / 8 + 1) as u32 * 8,
        ..FrameMarker::default()
    };
    for register in 1..32 + size as u8 {
        let (value, nat) = (source.value(), source.one_in(16));
        processor.general.set_with_nat(register, value, nat);
    }
    for register in &mut processor.branch {
        *register = if source.one_in(4) {
            source.value()
        } else {
            source.code()
        };
    }
    processor.predicates = source.next() | 1;
    processor
        .register_stack_mut()
        .restart(source.value() & !7, source.next());
    for register in 0..128 {
        if source.one_in(2) && !(16..20).contains(&register) {
            processor.set_application(register, source.value());
        }
    }
    processor.set_instruction_pointer(source.code(), source.below(3) as u8);
}

/// Sets every register that kernels have, translations, and the privilege level.
pub fn fill_system_registers(processor: &mut Processor, source: &mut Source) {
    const STATUS: u64 = psr::USER_MASK
        | psr::IC
        | psr::I
        | psr::PK
        | psr::DT
        | psr::DFL
        | psr::DFH
        | psr::SP
        | psr::PP
        | psr::DB
        | psr::LP
        | psr::TB
        | psr::RT
        | psr::CPL
        | psr::IT
        | psr::ID
        | psr::DA
        | psr::DD
        | psr::SS
        | psr::ED
        | psr::BN
        | psr::IA
        | psr::VM;
    /// What most kernels run with.
    const USUAL: u64 = psr::IC | psr::I | psr::DT | psr::RT | psr::IT | psr::BN | psr::CPL;
    for index in 0..8 {
        let value = source.below(16) << 8 | (12 + source.below(5)) << 2 | source.below(2);
        if RegionRegister(value).is_valid() {
            processor.system.region[index] = value;
        }
    }
    let table =
        source.value() & !0x7fff | source.below(2) << 8 | (15 + source.below(3)) << 2 | source.below(2);
    if PageTableAddress(table).is_valid() {
        processor.system.control[usize::from(control::PTA)] = table;
    }
    processor.system.control[usize::from(control::DCR)] = source.next() & 0x7f07;
    processor.system.control[usize::from(control::IVA)] = source.code() & !0x7fff;
    processor.system.control[usize::from(control::ITM)] = source.below(4000);
    processor.system.control[usize::from(control::ITV)] = source.below(256);
    processor.system.control[usize::from(control::IIP)] = source.code();
    for register in [control::IPSR, control::IFA, control::IFS] {
        processor.system.control[usize::from(register)] = source.value();
    }
    processor.system.control[usize::from(control::ITIR)] = (12 + source.below(20)) << 2;
    for index in 0..8 {
        processor.system.data_breakpoint[index] = source.value();
        processor.system.instruction_breakpoint[index] = source.value();
    }
    for index in 0..16 {
        processor.system.protection_key[index] = source.below(16) << 8 | source.below(16);
    }
    for _ in 0..source.below(48) {
        let address = source.value();
        let region = source.below(16) as u32;
        let entry = source.next() & (1 << 53) - 1 & !(3 << 50 | 1 << 1);
        let start = if source.one_in(2) { 0 } else { ROM };
        let physical = start + (source.below(MEMORY) & !0xfff);
        // Most pages are in memory, and usable.
        let entry = if source.one_in(4) {
            entry
        } else {
            physical | entry & 0xf80 | 0x61
        };
        let size_log2 = 12 + source.below(21);
        let key = source.below(16) << 8;
        if let Ok(entry) = TranslationEntry::new(VirtualAddress(address), region, entry, size_log2 << 2 | key)
        {
            let side = if source.one_in(2) {
                TranslationSide::Data
            } else {
                TranslationSide::Instruction
            };
            processor.insert_translation(side, entry);
        }
    }
    let status = if source.one_in(2) {
        source.next() & STATUS
    } else {
        source.next() & USUAL
    };
    processor.set_status(status);
    if let Some(interrupts) = processor.interrupts() {
        interrupts.request(source.below(256) as u8);
    }
}

/// How a guest is run.
#[derive(Clone, Copy)]
enum Way {
    Whole,
    Pieces,
    Watched,
}

/// A guest after `end` instructions, if it gets there, and whether it has executed what it wrote.
fn after(bytes: &[u8], end: u64, way: Way) -> (Option<Vec<u64>>, bool) {
    let mut guest = Guest::new(bytes);
    let mut spectator = Spectator::default();
    let finished = match way {
        Way::Whole => guest.run(end, end, Processor::run),
        Way::Pieces => guest.run(end, 7, Processor::run),
        Way::Watched => guest.run(end, 100, |processor, limit| {
            processor.run_observed(limit, &mut spectator)
        }),
    };
    (finished.then(|| guest.state()), spectator.executes_data)
}

/// Where a guest first behaves otherwise when it is stopped or watched.
#[derive(Debug)]
pub struct Difference {
    /// The number of instructions after which it shows.
    pub instructions: u64,
    /// The instruction pointer before the last of them.
    pub ip: u64,
    /// The words of the state that differ: index, and the value of each run.
    pub words: Vec<(usize, u64, u64)>,
}

/// Runs a guest in one run, in pieces and under an observer, and compares.
pub fn compare(bytes: &[u8], end: u64) -> Option<Difference> {
    let differ = |end: u64| {
        let (watched, executes_data) = after(bytes, end, Way::Watched);
        let whole = after(bytes, end, Way::Whole).0?;
        let others = [after(bytes, end, Way::Pieces).0?, watched?];
        let other = others.into_iter().find(|other| *other != whole)?;
        let words = whole.into_iter().zip(other).enumerate();
        let words = words.filter(|(_, (one, other))| one != other);
        let words: Vec<_> = words.map(|(index, (one, other))| (index, one, other)).collect();
        (!executes_data).then_some(words)
    };
    differ(end)?;
    let (mut low, mut high) = (0, end);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if differ(middle).is_some() {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(Difference {
        instructions: high,
        ip: after(bytes, low, Way::Whole).0.map_or(0, |state| state[0]),
        words: differ(high)?,
    })
}
