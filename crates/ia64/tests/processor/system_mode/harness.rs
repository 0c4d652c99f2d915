//! A processor in system mode on a megabyte of memory, with a hypercall in every interruption vector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use crate::machine::Line;
use crate::machine::bundle;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Exit, FaultKind, MemoryRegion, PhysicalAddress, PhysicalMemory, Processor};

/// Physical memory: 1 MB at zero, and a device behind it that notes what is stored.
pub const MEMORY: u64 = 1 << 20;
pub const DEVICE: u64 = 1 << 30;
/// Where the interruption vector table stands; every handler is a hypercall.
pub const VECTORS: u64 = 0x8000;
/// Where programs are put, and the end of one.
pub const CODE: u64 = 0x2_0000;
/// A page for data, and where page tables stand.
pub const DATA: u64 = 0x3_0000;
pub const TABLE: u64 = 0x4_0000;
/// The `break` that ends a run.
pub const HYPERCALL: u64 = 0x5ede;

#[repr(C, align(65536))]
pub struct Bytes([u8; MEMORY as usize]);

pub struct Memory {
    bytes: *mut Bytes,
    stored: AtomicU64,
    loads: AtomicU64,
}

// SAFETY: the memory is leaked; one processor uses it, and the test while that does not run.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

// SAFETY: the memory lives as long as the program.
unsafe impl PhysicalMemory for Memory {
    fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion> {
        let region = MemoryRegion {
            start: PhysicalAddress(0),
            size: MEMORY,
            host: self.bytes.cast(),
            writable: true,
        };
        (address.0 < MEMORY).then_some(region)
    }

    fn load_device(&self, address: PhysicalAddress, size: u64) -> Option<u64> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        (address.0 == DEVICE).then_some(size)
    }

    fn store_device(&self, address: PhysicalAddress, _: u64, value: u64) -> bool {
        self.stored.store(value, Ordering::Relaxed);
        address.0 == DEVICE
    }
}

pub struct Machine {
    pub processor: Processor,
    pub memory: Arc<Memory>,
}

impl Machine {
    pub fn new() -> Machine {
        // SAFETY: all zeros are valid bytes.
        let bytes = Box::into_raw(unsafe { Box::<Bytes>::new_zeroed().assume_init() });
        let memory = Arc::new(Memory {
            bytes,
            stored: AtomicU64::new(0),
            loads: AtomicU64::new(0),
        });
        let mut processor = Processor::new_system(Arc::clone(&memory) as Arc<dyn PhysicalMemory>);
        processor.set_hypercall(HYPERCALL);
        processor.system.control[usize::from(control::IVA)] = VECTORS;
        let mut machine = Machine { processor, memory };
        for vector in (0..0x7000).step_by(0x100) {
            machine.write_code(VECTORS + vector, &[("break.m", 0, &[HYPERCALL as i64])]);
        }
        machine
    }

    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        // SAFETY: the memory is leaked and the processor does not run now.
        let memory = unsafe { &mut (*self.memory.bytes).0 };
        memory[address as usize..address as usize + bytes.len()].copy_from_slice(bytes);
    }

    pub fn write_words(&mut self, address: u64, words: &[u64]) {
        for (index, word) in words.iter().enumerate() {
            self.write(address + index as u64 * 8, &word.to_le_bytes());
        }
    }

    pub fn write_code(&mut self, address: u64, lines: &[Line]) {
        for (index, line) in lines.iter().enumerate() {
            self.write(address + index as u64 * 16, &bundle(*line).to_bytes());
        }
    }

    /// Runs a program at CODE until a hypercall: its own at the end, or a handler's. Returns the handler's
    /// vector, if one was entered.
    pub fn run(&mut self, lines: &[Line]) -> Option<u64> {
        self.write_code(CODE, lines);
        self.write_code(
            CODE + lines.len() as u64 * 16,
            &[("break.m", 0, &[HYPERCALL as i64])],
        );
        self.processor.flush_translations();
        self.processor.set_instruction_pointer(CODE, 0);
        self.go_on()
    }

    pub fn go_on(&mut self) -> Option<u64> {
        match self.processor.run(10_000) {
            Exit::Fault(fault) if fault.kind == FaultKind::Break && fault.immediate == HYPERCALL => {
                let (ip, _) = self.processor.instruction_pointer();
                (ip & !0x7fff == VECTORS).then_some(ip - VECTORS)
            }
            exit => panic!("{exit:?} at {:x?}", self.processor.instruction_pointer()),
        }
    }

    /// What was last stored to the device.
    pub fn stored(&self) -> u64 {
        self.memory.stored.load(Ordering::Relaxed)
    }

    /// How often the device was read.
    pub fn loads(&self) -> u64 {
        self.memory.loads.load(Ordering::Relaxed)
    }

    /// ISR after an interruption.
    pub fn isr(&self) -> u64 {
        self.control(control::ISR)
    }

    pub fn control(&self, register: u8) -> u64 {
        self.processor.system.control[usize::from(register)]
    }

    pub fn set_control(&mut self, register: u8, value: u64) {
        self.processor.system.control[usize::from(register)] = value;
    }

    /// Pins the code and the vectors, one to one, and switches instruction translation on.
    pub fn translate_code(&mut self) {
        for (index, page) in [CODE, VECTORS].into_iter().enumerate() {
            self.insert("itr.i", index as i64, page, pte(page, 3, 3), 16);
        }
        self.processor.status |= psr::IT;
    }

    /// Runs a program at level 0 with physical addresses and without collection, and restores PSR behind it.
    pub fn run_physically(&mut self, lines: &[Line]) -> Option<u64> {
        let status = std::mem::take(&mut self.processor.status);
        let entered = self.run(lines);
        self.processor.status = status;
        entered
    }

    /// As [`run_physically`](Self::run_physically), with instruction addresses translated; PSR stays as it is left.
    pub fn run_physically_translated(&mut self, lines: &[Line]) -> Option<u64> {
        self.processor.set_status(psr::IT);
        self.run(lines)
    }

    /// Executes `itr` or, with `itc`, an insertion into the cache.
    pub fn insert(&mut self, mnemonic: &str, register: i64, address: u64, pte: u64, size_log2: u64) {
        self.set_control(control::ITIR, size_log2 << 2);
        self.insert_as_itir_says(mnemonic, register, address, pte);
    }

    /// As [`insert`](Self::insert), into the cache and with a protection key.
    pub fn insert_with_key(&mut self, mnemonic: &str, address: u64, pte: u64, size_log2: u64, key: u64) {
        self.set_control(control::ITIR, size_log2 << 2 | key << 8);
        self.insert_as_itir_says(mnemonic, 0, address, pte);
    }

    fn insert_as_itir_says(&mut self, mnemonic: &str, register: i64, address: u64, pte: u64) {
        let status = self.processor.status;
        self.processor.status = 0;
        self.set_control(control::IFA, address);
        self.processor.general.set(2, pte);
        self.processor.general.set(3, register as u64);
        let operands: &[i64] = if mnemonic.starts_with("itr") {
            &[3, 2]
        } else {
            &[2]
        };
        assert_eq!(self.run(&[(mnemonic, 0, operands)]), None);
        self.processor.status = status;
    }
}

/// A present, accessed, dirty, write-back page.
pub fn pte(physical: u64, rights: u64, level: u64) -> u64 {
    physical | rights << 9 | level << 7 | 1 << 6 | 1 << 5 | 1
}

pub const RWX: u64 = 3;
/// Region 1, where the tests put their virtual data.
pub const REGION_1: u64 = 1 << 61;
pub const LOAD: Line = ("ld8", 0, &[8, 9]);
pub const STORE: Line = ("st8", 0, &[9, 8]);

/// A machine with data translation, collection, and r9 at an address of region 1.
pub fn translating() -> Machine {
    let mut machine = Machine::new();
    machine.processor.system.region[1] = 14 << 2 | 7 << 8;
    machine.processor.status |= psr::DT | psr::IC;
    machine.processor.general.set(9, REGION_1 | 0x4008);
    machine
}
