//! A processor in system mode: translation, both page table formats, interruptions, privilege.

mod machine;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use machine::{Line, bundle};
use sidestep_ia64::mmu::vhpt::{PageTableAddress, RegionRegister, hash, tag};
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Exit, FaultKind, MemoryRegion, PhysicalAddress, PhysicalMemory, Processor};

/// Physical memory: 1 MB at zero, and a device behind it that notes what is stored.
const MEMORY: u64 = 1 << 20;
const DEVICE: u64 = 1 << 30;
/// Where the interruption vector table stands; every handler is a hypercall.
const VECTORS: u64 = 0x8000;
/// Where programs are put, and the end of one.
const CODE: u64 = 0x2_0000;
/// A page for data, and where page tables stand.
const DATA: u64 = 0x3_0000;
const TABLE: u64 = 0x4_0000;
/// The `break` that ends a run.
const HYPERCALL: u64 = 0x5ede;

#[repr(C, align(65536))]
struct Bytes([u8; MEMORY as usize]);

struct Memory {
    bytes: *mut Bytes,
    stored: AtomicU64,
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
        (address.0 == DEVICE).then_some(size)
    }

    fn store_device(&self, address: PhysicalAddress, _: u64, value: u64) -> bool {
        self.stored.store(value, Ordering::Relaxed);
        address.0 == DEVICE
    }
}

struct Machine {
    processor: Processor,
    memory: Arc<Memory>,
}

impl Machine {
    fn new() -> Machine {
        // SAFETY: all zeros are valid bytes.
        let bytes = Box::into_raw(unsafe { Box::<Bytes>::new_zeroed().assume_init() });
        let memory = Arc::new(Memory {
            bytes,
            stored: AtomicU64::new(0),
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

    fn write(&mut self, address: u64, bytes: &[u8]) {
        // SAFETY: the memory is leaked and the processor does not run now.
        let memory = unsafe { &mut (*self.memory.bytes).0 };
        memory[address as usize..address as usize + bytes.len()].copy_from_slice(bytes);
    }

    fn write_words(&mut self, address: u64, words: &[u64]) {
        for (index, word) in words.iter().enumerate() {
            self.write(address + index as u64 * 8, &word.to_le_bytes());
        }
    }

    fn write_code(&mut self, address: u64, lines: &[Line]) {
        for (index, line) in lines.iter().enumerate() {
            self.write(address + index as u64 * 16, &bundle(*line).to_bytes());
        }
    }

    /// Runs a program at CODE until a hypercall: its own at the end, or a handler's. Returns the handler's
    /// vector, if one was entered.
    fn run(&mut self, lines: &[Line]) -> Option<u64> {
        self.write_code(CODE, lines);
        self.write_code(
            CODE + lines.len() as u64 * 16,
            &[("break.m", 0, &[HYPERCALL as i64])],
        );
        self.processor.flush_translations();
        self.processor.set_instruction_pointer(CODE, 0);
        self.go_on()
    }

    fn go_on(&mut self) -> Option<u64> {
        match self.processor.run(10_000) {
            Exit::Fault(fault) if fault.kind == FaultKind::Break && fault.immediate == HYPERCALL => {
                let (ip, _) = self.processor.instruction_pointer();
                (ip & !0x7fff == VECTORS).then_some(ip - VECTORS)
            }
            exit => panic!("{exit:?} at {:x?}", self.processor.instruction_pointer()),
        }
    }

    fn control(&self, register: u8) -> u64 {
        self.processor.system.control[usize::from(register)]
    }

    fn set_control(&mut self, register: u8, value: u64) {
        self.processor.system.control[usize::from(register)] = value;
    }

    /// Pins the code and the vectors, one to one, and switches instruction translation on.
    fn translate_code(&mut self) {
        for (index, page) in [CODE, VECTORS].into_iter().enumerate() {
            self.insert("itr.i", index as i64, page, pte(page, 3, 3), 16);
        }
        self.processor.status |= psr::IT;
    }

    /// Executes `itr` or, with `itc`, an insertion into the cache.
    fn insert(&mut self, mnemonic: &str, register: i64, address: u64, pte: u64, size_log2: u64) {
        let status = self.processor.status;
        self.processor.status = 0;
        self.set_control(control::IFA, address);
        self.set_control(control::ITIR, size_log2 << 2);
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
fn pte(physical: u64, rights: u64, level: u64) -> u64 {
    physical | rights << 9 | level << 7 | 1 << 6 | 1 << 5 | 1
}

const RWX: u64 = 3;
/// Region 1, where the tests put their virtual data.
const REGION_1: u64 = 1 << 61;
const LOAD: Line = ("ld8", 0, &[8, 9]);
const STORE: Line = ("st8", 0, &[9, 8]);

/// A machine with data translation, collection, and r9 at an address of region 1.
fn translating() -> Machine {
    let mut machine = Machine::new();
    machine.processor.system.region[1] = 14 << 2 | 7 << 8;
    machine.processor.status |= psr::DT | psr::IC;
    machine.processor.general.set(9, REGION_1 | 0x4008);
    machine
}

#[test]
fn physical_addressing_reaches_memory_and_devices() {
    let mut machine = Machine::new();
    machine.write_words(DATA, &[0x1234]);
    machine.processor.general.set(9, DATA);
    assert_eq!(machine.run(&[LOAD]), None);
    assert_eq!(machine.processor.general.value(8), 0x1234);
    machine.processor.general.set(9, DEVICE);
    assert_eq!(machine.run(&[STORE, ("ld4", 0, &[8, 9])]), None);
    assert_eq!(machine.memory.stored.load(Ordering::Relaxed), 0x1234);
    assert_eq!(machine.processor.general.value(8), 4);
    machine.processor.general.set(9, DEVICE + 8);
    assert_eq!(
        machine.run(&[LOAD]),
        Some(FaultKind::UnsupportedReference.vector())
    );
}

#[test]
fn a_data_reference_without_translation_collects_its_address() {
    let mut machine = translating();
    assert_eq!(
        machine.run(&[("nop.m", 0, &[0]), LOAD]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
    assert_eq!(machine.control(control::IFA), REGION_1 | 0x4008);
    assert_eq!(machine.control(control::ITIR), 14 << 2 | 7 << 8);
    assert_eq!(machine.control(control::IIP), CODE + 16);
    assert_eq!(machine.control(control::ISR), 1 << 34, "a read in slot 0");
    assert_eq!(
        machine.control(control::IPSR) & (psr::DT | psr::IC),
        psr::DT | psr::IC
    );
    assert_eq!(machine.processor.status & psr::IC, 0);
    // Without collection the same reference nests, and the registers keep the first fault.
    let mut nested = translating();
    nested.processor.status &= !psr::IC;
    assert_eq!(nested.run(&[LOAD]), Some(FaultKind::DataNestedTlb.vector()));
    assert_eq!(nested.control(control::IIP), 0);
}

#[test]
fn an_inserted_page_translates_until_it_is_purged() {
    let mut machine = translating();
    machine.write_words(DATA + 8, &[77]);
    machine.insert("itc.d", 0, REGION_1 | 0x4000, pte(DATA, RWX, 0), 14);
    assert_eq!(machine.run(&[LOAD]), None);
    assert_eq!(machine.processor.general.value(8), 77);
    machine.processor.general.set(10, 14 << 2);
    assert_eq!(
        machine.run(&[("ptc.l", 0, &[9, 10]), LOAD]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
}

#[test]
fn rights_and_dirty_and_accessed_bits_fault_in_the_order_of_the_manual() {
    let all = pte(DATA, RWX, 0);
    for (word, line, kind) in [
        (all & !1, LOAD, FaultKind::PageNotPresent),
        (all | 7 << 2, LOAD, FaultKind::NatConsumption),
        (all & !(7 << 9), STORE, FaultKind::DataAccessRights),
        (all & !(7 << 9) & !(1 << 6), STORE, FaultKind::DataAccessRights),
        (all & !(1 << 6), STORE, FaultKind::DirtyBit),
        (all & !(1 << 5), LOAD, FaultKind::DataAccessBit),
        (all & !(3 << 5), STORE, FaultKind::DirtyBit),
    ] {
        let mut machine = translating();
        machine.insert("itc.d", 0, REGION_1 | 0x4000, word, 14);
        assert_eq!(
            machine.run(&[line]),
            Some(kind.vector()),
            "{kind:?} for {word:#x}"
        );
    }
}

#[test]
fn the_walker_fills_from_the_short_table() {
    let mut machine = translating();
    let table = PageTableAddress((1 << 61) - (1 << 15) & !0x7fff | 15 << 2 | 1);
    machine.set_control(control::PTA, table.0);
    machine.processor.system.region[1] |= 1;
    let region = RegionRegister(machine.processor.system.region[1]);
    let entry = hash(REGION_1 | 0x4008, region, table);
    // The walker reads the table through the data translations: without one it faults.
    assert_eq!(machine.run(&[LOAD]), Some(FaultKind::VhptTranslation.vector()));
    assert_eq!(machine.control(control::IHA), entry);
    machine.processor.status |= psr::DT | psr::IC;
    machine.insert("itr.d", 0, entry & !0x7fff, pte(TABLE, RWX, 0), 16 - 2);
    assert_eq!(
        machine.run(&[LOAD]),
        Some(FaultKind::PageNotPresent.vector()),
        "the entry is all zeros"
    );
    machine.processor.status |= psr::DT | psr::IC;
    machine.write_words(TABLE + (entry & 0x3fff), &[pte(DATA, RWX, 0)]);
    machine.write_words(DATA + 8, &[4711]);
    machine.processor.general.set(10, 14 << 2);
    assert_eq!(machine.run(&[("ptc.l", 0, &[9, 10]), LOAD]), None);
    assert_eq!(machine.processor.general.value(8), 4711);
    assert_eq!(machine.processor.mmu().unwrap().events.walker_hits, 2);
}

#[test]
fn the_long_table_needs_a_matching_tag_and_brings_page_size_and_key() {
    let mut machine = translating();
    let table = PageTableAddress(TABLE | 15 << 2 | 1 << 8 | 1);
    machine.set_control(control::PTA, table.0);
    machine.processor.system.region[1] |= 1;
    machine.processor.system.region[0] = 14 << 2;
    let region = RegionRegister(machine.processor.system.region[1]);
    let address = REGION_1 | 0x4008;
    let entry = hash(address, region, table);
    machine.insert("itr.d", 0, TABLE, pte(TABLE, RWX, 0), 16);
    machine.write_words(
        entry,
        &[pte(DATA, RWX, 0), 14 << 2 | 9 << 8, tag(address, region) ^ 1, 0],
    );
    assert_eq!(
        machine.run(&[LOAD]),
        Some(FaultKind::DataTlb.vector()),
        "another page's entry"
    );
    assert_eq!(machine.control(control::IHA), entry);
    machine.write_words(entry + 16, &[tag(address, region)]);
    // The table's own page has key 0, which the walker needs as well.
    machine.processor.system.protection_key[0] = 1;
    machine.processor.status |= psr::DT | psr::IC | psr::PK;
    assert_eq!(machine.run(&[LOAD]), Some(FaultKind::DataKeyMiss.vector()));
    machine.processor.system.protection_key[3] = 9 << 8 | 1 << 2 | 1;
    machine.processor.status |= psr::DT | psr::IC | psr::PK;
    assert_eq!(machine.run(&[LOAD]), Some(FaultKind::KeyPermission.vector()));
    machine.processor.system.protection_key[3] = 9 << 8 | 1;
    machine.processor.status |= psr::DT | psr::IC | psr::PK;
    assert_eq!(machine.run(&[LOAD]), None);
}

#[test]
fn privileged_instructions_fault_at_other_levels_and_in_virtual_machines() {
    for line in [
        ("rfi", 0, &[][..]),
        ("ssm", 0, &[1 << 13][..]),
        ("ptc.e", 0, &[9][..]),
        ("mov M33", 0, &[8, 16][..]),
    ] {
        let mut machine = Machine::new();
        machine.processor.status = psr::IC;
        machine.processor.set_privilege_level(3);
        assert_eq!(
            machine.run(&[line]),
            Some(FaultKind::GeneralException.vector()),
            "{}",
            line.0
        );
        assert_eq!(machine.control(control::ISR) & 0xff, 0x10);
        let mut machine = Machine::new();
        machine.processor.status = psr::IC | psr::VM;
        assert_eq!(
            machine.run(&[line]),
            Some(FaultKind::Virtualization.vector()),
            "{}",
            line.0
        );
    }
}

#[test]
fn a_virtual_machine_is_refused_what_shows_or_changes_the_monitors_state() {
    for line in [("cover", 0, &[][..]), ("thash", 0, &[8, 9]), ("ttag", 0, &[8, 9])] {
        let mut machine = Machine::new();
        machine.processor.status = psr::IC | psr::VM;
        let intercepted = Some(FaultKind::Virtualization.vector());
        assert_eq!(machine.run(&[line]), intercepted, "{}", line.0);
    }
    // Half of each region's addresses belongs to the monitor.
    let mut machine = translating();
    machine.processor.general.set(9, REGION_1 | 1 << 60);
    machine.processor.status |= psr::VM;
    assert_eq!(machine.run(&[LOAD]), Some(FaultKind::GeneralException.vector()));
    assert_eq!(machine.control(control::ISR) & 0xff, 0x30, "unimplemented");
}

#[test]
fn rfi_restores_psr_place_and_frame() {
    let mut machine = Machine::new();
    let handler = CODE + 0x1000;
    machine.write_code(
        handler,
        &[("nop.m", 0, &[0]), ("break.m", 0, &[HYPERCALL as i64])],
    );
    machine.set_control(control::IIP, handler);
    machine.set_control(control::IPSR, psr::IC | psr::BN | 1 << psr::RI_SHIFT);
    machine.set_control(control::IFS, 1 << 63 | 5 | 3 << 7);
    machine.processor.register_stack_mut().restart(DATA, 0);
    // The five registers below the collection that stands just below DATA.
    machine.write_words(DATA - 48, &[1, 2, 3, 4, 5]);
    machine.processor.system.other_bank.0[0] = 99;
    assert_eq!(machine.run(&[("rfi", 0, &[])]), None);
    assert_eq!(machine.processor.instruction_pointer(), (handler + 16, 0));
    assert_eq!(machine.processor.general.value(16), 99, "bank 1");
    assert_eq!(
        (machine.processor.frame.size, machine.processor.frame.locals),
        (5, 3)
    );
    let frame: Vec<u64> = (32..37)
        .map(|register| machine.processor.general.value(register))
        .collect();
    assert_eq!(frame, [1, 2, 3, 4, 5], "filled from the backing store");
}

#[test]
fn a_fill_that_faults_is_reported_at_the_target_with_an_incomplete_frame() {
    let mut machine = Machine::new();
    machine.translate_code();
    machine.processor.system.region[1] = 14 << 2 | 7 << 8;
    machine.set_control(control::IIP, CODE + 16);
    machine.set_control(control::IPSR, psr::IC | psr::RT | psr::IT);
    machine.set_control(control::IFS, 1 << 63 | 4);
    machine
        .processor
        .register_stack_mut()
        .restart(REGION_1 | 0x100, 0);
    assert_eq!(
        machine.run(&[("rfi", 0, &[])]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
    let status = machine.control(control::ISR);
    assert_eq!(
        status >> 37 & 3,
        3,
        "a register stack reference in an incomplete frame"
    );
    assert_eq!(machine.control(control::IIP), CODE + 16);
    assert_eq!(machine.control(control::IFA), REGION_1 | 0xf8);
}

#[test]
fn cover_and_rfi_carry_an_incomplete_frame_through_its_handler() {
    let mut machine = Machine::new();
    machine.translate_code();
    machine.processor.system.region[1] = 14 << 2 | 7 << 8;
    machine.set_control(control::IIP, CODE + 16);
    machine.set_control(control::IPSR, psr::IC | psr::RT | psr::IT);
    machine.set_control(control::IFS, 1 << 63 | 4);
    machine
        .processor
        .register_stack_mut()
        .restart(REGION_1 | 0x100, 0);
    assert_eq!(
        machine.run(&[("rfi", 0, &[])]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
    // The handler covers, maps the backing store and returns: now the frame is filled.
    machine.write_words(DATA + 0xe0, &[10, 11, 12, 13]);
    machine.insert("itc.d", 0, REGION_1, pte(DATA, RWX, 0), 14);
    machine.processor.status = psr::IT;
    let store_pointer = machine.processor.register_stack().store_pointer();
    assert_eq!(machine.run(&[("cover", 0, &[])]), None);
    assert_eq!(
        machine.processor.register_stack().backing_store_pointer(),
        REGION_1 | 0x100
    );
    assert_eq!(store_pointer, REGION_1 | 0xe0);
    machine.write_code(CODE + 0x1000, &[("rfi", 0, &[])]);
    machine.processor.set_instruction_pointer(CODE + 0x1000, 0);
    machine.set_control(control::IPSR, psr::IC | psr::RT | psr::IT);
    assert_eq!(machine.go_on(), None);
    let frame: Vec<u64> = (32..36)
        .map(|register| machine.processor.general.value(register))
        .collect();
    assert_eq!(frame, [10, 11, 12, 13]);
}

#[test]
fn epc_on_a_gate_page_promotes_and_the_return_demotes() {
    let mut machine = Machine::new();
    machine.insert("itr.i", 0, VECTORS & !0xffff, pte(0, 3, 3), 16);
    machine.insert("itr.i", 1, CODE, pte(CODE, 7, 0), 16);
    machine.processor.status = psr::IC | psr::IT;
    machine.processor.set_privilege_level(3);
    machine
        .processor
        .set_application(sidestep_ia64::registers::application::PFS, 3 << 62);
    assert_eq!(
        machine.run(&[("epc", 0, &[])]),
        None,
        "the hypercall behind it needs level 0"
    );
    assert_eq!(machine.processor.privilege_level(), 0);
    machine.processor.branch[0] = CODE + 16;
    assert_eq!(
        machine.run(&[("br.ret", 0, &[0])]),
        Some(FaultKind::Break.vector()),
        "a break at level 3"
    );
    assert_eq!(machine.control(control::IIM), HYPERCALL);
    assert_eq!(machine.control(control::IPSR) >> 32 & 3, 3);
}

#[test]
fn external_interrupts_wait_for_psr_i_and_priority() {
    let mut machine = Machine::new();
    let interrupts = machine.processor.interrupts().unwrap();
    interrupts.request(0x41);
    machine.processor.status = psr::IC;
    assert_eq!(machine.run(&[("nop.m", 0, &[0])]), None);
    assert_eq!(
        machine.run(&[("ssm", 0, &[1 << 14]), ("srlz.d", 0, &[]), ("nop.m", 0, &[0])]),
        Some(FaultKind::ExternalInterrupt.vector())
    );
    // IVR gives the vector and puts it in service; a request of the same class then waits.
    let handler = [("mov M33", 0, &[8, i64::from(control::IVR)][..])];
    assert_eq!(machine.run(&handler), None);
    assert_eq!(machine.processor.general.value(8), 0x41);
    interrupts.request(0x42);
    assert_eq!(machine.run(&handler), None);
    assert_eq!(machine.processor.general.value(8), 15, "spurious");
    assert_eq!(
        machine.run(&[("mov M32", 0, &[i64::from(control::EOI), 0]), handler[0]]),
        None
    );
    assert_eq!(machine.processor.general.value(8), 0x42);
}

#[test]
fn the_interval_timer_interrupts_at_its_match() {
    let mut machine = Machine::new();
    machine.set_control(control::ITV, 0xef);
    machine.set_control(control::ITM, machine.processor.instructions_retired() + 300);
    machine.processor.status = psr::IC | psr::I;
    let spin = [("nop.m", 0, &[0][..]), ("brl.cond", 0, &[-16])];
    assert_eq!(machine.run(&spin), Some(FaultKind::ExternalInterrupt.vector()));
    assert!(machine.processor.instructions_retired() >= 300);
}

#[test]
fn a_match_is_not_lost_where_an_interruption_is_taken_at_the_same_instruction() {
    for distance in 1..=12 {
        let mut machine = Machine::new();
        machine.translate_code();
        machine.set_control(control::ITV, 0xef);
        let begin = machine.processor.instructions_retired();
        machine.set_control(control::ITM, begin + distance);
        machine.processor.status |= psr::IC;
        // To a page that cannot be fetched.
        let program = [("nop.m", 0, &[0][..]), ("brl.cond", 0, &[1 << 24])];
        assert_eq!(
            machine.run(&program),
            Some(FaultKind::AlternateInstructionTlb.vector())
        );
        let passed = machine.processor.instructions_retired() - begin;
        let requests = machine.processor.interrupts().expect("system mode").requests(3);
        assert_eq!(
            requests >> (0xef - 192) & 1 != 0,
            passed >= distance,
            "{passed} instructions, the match at {distance}"
        );
    }
}

#[test]
fn speculative_loads_defer_as_dcr_and_the_code_page_say() {
    let speculative: Line = ("ld8.s", 0, &[8, 9]);
    let mut machine = translating();
    assert_eq!(
        machine.run(&[speculative]),
        Some(FaultKind::AlternateDataTlb.vector())
    );
    assert_eq!(
        machine.control(control::ISR) >> 36 & 1,
        1,
        "a speculative reference"
    );
    let mut collecting_off = translating();
    collecting_off.processor.status &= !psr::IC;
    assert_eq!(collecting_off.run(&[speculative]), None);
    assert!(collecting_off.processor.general.nat(8));
    for (defer_misses, expected) in [(1 << 8, None), (0, Some(FaultKind::AlternateDataTlb.vector()))] {
        let mut machine = translating();
        machine.translate_code();
        machine.insert("itr.i", 0, CODE, pte(CODE, 3, 3) | 1 << 52, 16);
        machine.set_control(control::DCR, defer_misses);
        assert_eq!(machine.run(&[speculative]), expected);
    }
}

#[test]
fn single_step_traps_behind_each_instruction() {
    let mut machine = Machine::new();
    machine.set_control(control::IIP, CODE + 0x1000);
    machine.set_control(control::IPSR, psr::IC | psr::SS);
    machine.write_code(CODE + 0x1000, &[("adds", 0, &[8, 1, 0])]);
    assert_eq!(
        machine.run(&[("rfi", 0, &[])]),
        Some(FaultKind::SingleStep.vector())
    );
    assert_eq!(machine.processor.general.value(8), 1);
    assert_eq!(machine.control(control::IIP), CODE + 0x1000);
    assert_eq!(machine.control(control::IPSR) >> 41 & 3, 1, "at the next slot");
    assert_eq!(machine.control(control::IIPA), CODE + 0x1000);
}

#[test]
fn cover_saves_the_frame_in_ifs_while_collection_is_off() {
    let mut machine = Machine::new();
    assert_eq!(
        machine.run(&[("alloc", 0, &[14, 64, 6, 4, 0]), ("cover", 0, &[])]),
        None
    );
    assert_eq!(machine.control(control::IFS), 1 << 63 | 6 | 4 << 7);
    machine.set_control(control::IFS, 0);
    machine.processor.status = psr::IC;
    assert_eq!(machine.run(&[("cover", 0, &[])]), None);
    assert_eq!(machine.control(control::IFS), 0);
}
