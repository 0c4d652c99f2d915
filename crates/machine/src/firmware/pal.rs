//! The processor abstraction layer: procedures that describe and control the processor.
//!
//! Manual volume 2, chapter 11. Arguments and results as registers hold them; what a caller asks for that this
//! processor does not have is [`NOT_IMPLEMENTED`].

use std::ops::RangeInclusive;

use sidestep_ia64::mmu::buffer::REGISTERS;
use sidestep_ia64::mmu::entry::{PAGE_SIZES_LOG2, TranslationEntry};

use super::gate;
use crate::machine::timeline::TICKS_PER_SECOND;

/// The status of a procedure that is not there.
pub const NOT_IMPLEMENTED: u64 = -1i64 as u64;
/// The status for an argument that is wrong.
pub const INVALID_ARGUMENT: u64 = -2i64 as u64;
/// The status of a procedure that could not do its work.
const ERROR: u64 = -3i64 as u64;
/// The status for a question about an error where there was none.
const NO_INFORMATION: u64 = -6i64 as u64;

/// The numbers of the procedures (manual volume 2, tables 11-13 to 11-18).
mod index {
    pub const CACHE_FLUSH: u64 = 1;
    pub const CACHE_INFO: u64 = 2;
    pub const CACHE_INIT: u64 = 3;
    pub const CACHE_SUMMARY: u64 = 4;
    pub const MEM_ATTRIB: u64 = 5;
    pub const PTCE_INFO: u64 = 6;
    pub const VM_INFO: u64 = 7;
    pub const VM_SUMMARY: u64 = 8;
    pub const BUS_GET_FEATURES: u64 = 9;
    pub const BUS_SET_FEATURES: u64 = 10;
    pub const DEBUG_INFO: u64 = 11;
    pub const FIXED_ADDR: u64 = 12;
    pub const FREQ_BASE: u64 = 13;
    pub const FREQ_RATIOS: u64 = 14;
    pub const PERF_MON_INFO: u64 = 15;
    pub const PLATFORM_ADDR: u64 = 16;
    pub const PROC_GET_FEATURES: u64 = 17;
    pub const PROC_SET_FEATURES: u64 = 18;
    pub const RSE_INFO: u64 = 19;
    pub const VERSION: u64 = 20;
    pub const MC_CLEAR_LOG: u64 = 21;
    pub const MC_DRAIN: u64 = 22;
    pub const MC_EXPECTED: u64 = 23;
    pub const MC_DYNAMIC_STATE: u64 = 24;
    pub const MC_ERROR_INFO: u64 = 25;
    pub const MC_RESUME: u64 = 26;
    pub const MC_REGISTER_MEM: u64 = 27;
    pub const HALT: u64 = 28;
    pub const HALT_LIGHT: u64 = 29;
    pub const COPY_INFO: u64 = 30;
    pub const PMI_ENTRYPOINT: u64 = 32;
    pub const VM_PAGE_SIZE: u64 = 34;
    pub const CACHE_PROT_INFO: u64 = 38;
    pub const REGISTER_INFO: u64 = 39;
    pub const SHUTDOWN: u64 = 40;
    pub const PREFETCH_VISIBILITY: u64 = 41;
    pub const LOGICAL_TO_PHYSICAL: u64 = 42;
    pub const CACHE_SHARED_INFO: u64 = 43;
    pub const COPY_PAL: u64 = 256;
    pub const HALT_INFO: u64 = 257;
    pub const VM_TR_READ: u64 = 261;
    pub const BRAND_INFO: u64 = 274;
}

/// What a procedure does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// It returns a status and up to three results.
    Return([u64; 4]),
    /// It empties the processor's translation caches, then returns the same.
    EmptyTranslationCaches([u64; 4]),
    /// It waits for an interrupt, then returns success.
    Halt,
    /// It writes these bytes to the buffer at this address, then returns success and one result.
    Write(u64, Vec<u8>, u64),
    /// It writes what a translation register holds to the buffer at this address ([`translation_register`]).
    ReadTranslationRegister {
        /// Which one.
        register: usize,
        /// Whether it is one of those for data.
        is_data: bool,
        /// Where the four words go.
        buffer: u64,
    },
}

/// Whether a procedure takes its arguments in stacked registers and is called by `br.call`.
pub fn is_stacked(procedure: u64) -> bool {
    matches!(procedure, 256..=511 | 768..=1023)
}

const PAGE_SIZES: u64 = {
    let mut sizes = 0;
    let mut index = 0;
    while index < PAGE_SIZES_LOG2.len() {
        sizes |= 1 << PAGE_SIZES_LOG2[index];
        index += 1;
    }
    sizes
};

/// The platform's base clock in Hz, of which processor and interval timer are multiples.
pub const BASE_FREQUENCY: u64 = 100_000_000;

/// The cache levels of the Itanium 2 at 900 MHz, which is also the pipeline model's usual processor: level, type (1
/// instruction, 2 data or unified), unified, ways, line size and stride as powers of two, latency, size.
const CACHES: &[(u64, u64, bool, u64, u64, u64, u64)] = &[
    (0, 1, false, 4, 6, 1, 16 << 10),
    (0, 2, false, 4, 6, 1, 16 << 10),
    (1, 2, true, 8, 7, 5, 256 << 10),
    (2, 2, true, 6, 7, 12, 3 << 19),
];

/// The low-power states: the one of HALT_LIGHT.
const HALT_STATES: u64 = 1;

/// What procedure `procedure` does with its arguments on the processor with this identifier, that of its LID.
pub fn call(procedure: u64, arguments: [u64; 3], local_id: u64) -> Work {
    use index::*;
    let ok = |first: u64, second: u64, third: u64| Work::Return([0, first, second, third]);
    match procedure {
        CACHE_FLUSH | CACHE_INIT | BUS_SET_FEATURES | PROC_SET_FEATURES | MC_CLEAR_LOG | MC_DRAIN
        | MC_EXPECTED | PLATFORM_ADDR | PMI_ENTRYPOINT | PREFETCH_VISIBILITY => ok(0, 0, 0),
        CACHE_INFO => cache(arguments[0], arguments[1]),
        CACHE_SUMMARY => ok(3, 4, 0),
        CACHE_PROT_INFO => Work::Return([INVALID_ARGUMENT, 0, 0, 0]),
        // Write-back, uncacheable, uncacheable exported, write-coalescing and NaT page.
        MEM_ATTRIB => ok(0b1111_0001, 0, 0),
        // One `ptc.e` purges all. A processor may lose entries of its caches at any time, and kernels count on it that
        // by the time they ask this it has lost one that maps the first processor's data where they were before they
        // were moved: Linux writes these numbers there first, and purges with them then.
        PTCE_INFO => Work::EmptyTranslationCaches([0, 0, 1 << 32 | 1, 0]),
        VM_INFO => vm_info(arguments[0], arguments[1]),
        VM_SUMMARY => {
            let (physical_bits, key_bits, keys, tag_kind, registers) = (50, 24, 15, 0, 63);
            let first = 1
                | physical_bits << 1
                | key_bits << 8
                | keys << 16
                | tag_kind << 24
                | registers << 32
                | registers << 40
                | 2 << 48
                | 1 << 56;
            let (implemented_bit, region_bits, purges) = (60, 24, 0);
            ok(first, implemented_bit | region_bits << 8 | purges << 16, 0)
        }
        VM_PAGE_SIZE => ok(PAGE_SIZES, PAGE_SIZES, 0),
        BUS_GET_FEATURES | PROC_GET_FEATURES if arguments[1] == 0 || procedure == BUS_GET_FEATURES => {
            ok(0, 0, 0)
        }
        DEBUG_INFO => ok(4, 4, 0),
        FIXED_ADDR => ok(0, 0, 0),
        FREQ_BASE => ok(BASE_FREQUENCY, 0, 0),
        FREQ_RATIOS => {
            let ratio = |numerator: u64| numerator << 32 | 1;
            let processor = TICKS_PER_SECOND / BASE_FREQUENCY;
            ok(ratio(processor), ratio(1), ratio(processor))
        }
        PERF_MON_INFO => performance(arguments[0]),
        RSE_INFO => ok(96, 0, 0),
        VERSION => ok(0x0001_0000_0000_0000 | 0x0530, 0x0001_0000_0000_0000 | 0x0530, 0),
        // Nothing breaks, so no error has left anything and there is nothing to go back to.
        MC_DYNAMIC_STATE | MC_REGISTER_MEM => ok(0, 0, 0),
        MC_ERROR_INFO => Work::Return([NO_INFORMATION, 0, 0, 0]),
        MC_RESUME => Work::Return([ERROR, 0, 0, 0]),
        HALT if arguments[0] >= HALT_STATES => Work::Return([INVALID_ARGUMENT, 0, 0, 0]),
        HALT | HALT_LIGHT | SHUTDOWN => Work::Halt,
        COPY_INFO => ok(gate::STUB_BYTES, gate::STUB_BYTES, 0),
        COPY_PAL => copy(arguments[0], arguments[1]),
        REGISTER_INFO => registers(arguments[0]),
        LOGICAL_TO_PHYSICAL => match arguments[0] {
            // One thread of one core in every package.
            0 | CALLER => ok(1 | 1 << 16 | 1 << 32, 0, local_id),
            _ => Work::Return([INVALID_ARGUMENT, 0, 0, 0]),
        },
        CACHE_SHARED_INFO => match cache(arguments[0], arguments[1]) {
            Work::Return([0, ..]) if arguments[2] == 0 => ok(1, 0, local_id),
            _ => Work::Return([INVALID_ARGUMENT, 0, 0, 0]),
        },
        VM_TR_READ => match (usize::try_from(arguments[0]), arguments[1]) {
            (Ok(register), kind @ 0..=1) if register < REGISTERS => Work::ReadTranslationRegister {
                register,
                is_data: kind == 1,
                buffer: arguments[2],
            },
            _ => Work::Return([INVALID_ARGUMENT, 0, 0, 0]),
        },
        // One state: exit and entry latency one cycle, coherent, implemented.
        HALT_INFO => {
            let state: u64 = 1 | 1 << 16 | 3 << 60;
            let mut bytes = state.to_le_bytes().to_vec();
            bytes.resize(64, 0);
            Work::Write(arguments[0], bytes, 0)
        }
        BRAND_INFO if arguments[0] == 0 => {
            let mut brand = b"Sidestep Itanium 2".to_vec();
            brand.resize(128, 0);
            Work::Write(arguments[1], brand, 0)
        }
        _ => Work::Return([NOT_IMPLEMENTED, 0, 0, 0]),
    }
}

/// The number of a processor that means the caller.
const CALLER: u64 = u64::MAX;

/// PAL is one stub, which works at any address.
fn copy(target: u64, size: u64) -> Work {
    if size < gate::STUB_BYTES || !target.is_multiple_of(gate::STUB_BYTES) {
        return Work::Return([INVALID_ARGUMENT, 0, 0, 0]);
    }
    Work::Write(target, gate::stub(gate::Entry::Pal), 0)
}

/// Which application registers (0) and control registers (2) may be read, and which of them (1, 3) change something
/// when they are: two words, a bit for each register.
fn registers(kind: u64) -> Work {
    let mask = |ranges: &[RangeInclusive<u8>]| {
        let bits = ranges.iter().cloned().flatten();
        let mask = bits.fold(0u128, |mask, bit| mask | 1 << bit);
        Work::Return([0, mask as u64, (mask >> 64) as u64, 0])
    };
    match kind {
        0 => mask(&[
            0..=7,
            16..=19,
            21..=21,
            24..=30,
            32..=32,
            36..=36,
            40..=40,
            44..=44,
            48..=66,
            112..=127,
        ]),
        2 => mask(&[0..=2, 8..=8, 16..=17, 19..=25, 64..=74, 80..=81]),
        1 => mask(&[]),
        // IVR.
        3 => mask(&[65..=65]),
        _ => Work::Return([INVALID_ARGUMENT, 0, 0, 0]),
    }
}

/// The four words that describe a translation register, and which of its fields they hold: none of an empty one.
pub fn translation_register(entry: Option<&TranslationEntry>) -> ([u64; 4], u64) {
    const ALL_FIELDS: u64 = 0b1111;
    const IS_VALID: u64 = 1;
    match entry {
        None => ([0; 4], 0),
        Some(entry) => {
            let (pte, itir) = entry.words();
            let region = u64::from(entry.region) << 8;
            ([pte, itir, entry.page.0 | IS_VALID, region], ALL_FIELDS)
        }
    }
}

fn cache(level: u64, kind: u64) -> Work {
    let found = CACHES.iter().find(|cache| cache.0 == level && cache.1 == kind);
    let Some(&(_, _, unified, ways, line, latency, size)) = found else {
        return Work::Return([INVALID_ARGUMENT, 0, 0, 0]);
    };
    let write_back = 1 << 1;
    let first =
        u64::from(unified) | write_back | ways << 8 | line << 16 | line << 24 | latency << 32 | latency << 40;
    let (alias, low, high) = (line, line, 49);
    Work::Return([0, first, size | alias << 32 | low << 40 | high << 48, 0])
}

fn vm_info(level: u64, kind: u64) -> Work {
    if level != 0 || !(1..=2).contains(&kind) {
        return Work::Return([INVALID_ARGUMENT, 0, 0, 0]);
    }
    let (sets, ways, entries) = (1, 128, 128);
    Work::Return([0, sets | ways << 8 | entries << 16, PAGE_SIZES, 0])
}

/// Four generic counters, PMC4 to PMC7 with PMD4 to PMD7, of 47 bits; masks of 256 bits each.
fn performance(buffer: u64) -> Work {
    let (generic, width, cycles, retired) = (4, 47, 0x12, 0x8);
    let implemented: [u64; 4] = [0xffff, 0, 0, 0];
    let counting: [u64; 4] = [0xf0, 0, 0, 0];
    let masks = [implemented, implemented, counting, counting];
    let bytes: Vec<u8> = masks
        .iter()
        .flatten()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    debug_assert_eq!(bytes.len(), 128);
    Work::Write(buffer, bytes, generic | width << 8 | cycles << 16 | retired << 24)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use sidestep_ia64::VirtualAddress;

    use super::*;

    fn results(procedure: u64, arguments: [u64; 3]) -> [u64; 4] {
        match call(procedure, arguments, 0) {
            Work::Return(results) | Work::EmptyTranslationCaches(results) => results,
            other => panic!("procedure {procedure} does {other:?}"),
        }
    }

    #[test]
    fn what_kernels_ask_first_is_answered() {
        let purges = call(index::PTCE_INFO, [0; 3], 0);
        assert_eq!(
            purges,
            Work::EmptyTranslationCaches([0, 0, 1 << 32 | 1, 0]),
            "one purge of everything, behind which nothing is left"
        );
        assert_eq!(results(index::FREQ_BASE, [0; 3])[..2], [0, BASE_FREQUENCY]);
        let [status, processor, bus, timer] = results(index::FREQ_RATIOS, [0; 3]);
        let hertz = |ratio: u64| BASE_FREQUENCY * (ratio >> 32) / (ratio & 0xffff_ffff);
        assert_eq!((status, hertz(bus)), (0, BASE_FREQUENCY));
        assert_eq!(
            (hertz(processor), hertz(timer)),
            (TICKS_PER_SECOND, TICKS_PER_SECOND)
        );
        assert_eq!(results(index::RSE_INFO, [0; 3])[..2], [0, 96]);
        assert_eq!(
            results(index::VM_PAGE_SIZE, [0; 3])[1] >> 14 & 1,
            1,
            "16 kB pages"
        );
        assert_eq!(
            results(index::VM_PAGE_SIZE, [0; 3])[1] >> 16 & 1,
            1,
            "64 kB pages"
        );
    }

    #[test]
    fn every_cache_of_the_summary_is_described() {
        let [status, levels, unique, _] = results(index::CACHE_SUMMARY, [0; 3]);
        assert_eq!(status, 0);
        let described = (0..levels)
            .flat_map(|level| [1, 2].map(|kind| results(index::CACHE_INFO, [level, kind, 0])))
            .filter(|results| results[0] == 0);
        assert_eq!(described.count() as u64, unique);
        assert_eq!(results(index::CACHE_INFO, [levels, 2, 0])[0], INVALID_ARGUMENT);
    }

    #[test]
    fn buffers_are_as_large_as_callers_make_them() {
        for (procedure, arguments, size) in [
            (index::PERF_MON_INFO, [0x1000, 0, 0], 128),
            (index::HALT_INFO, [0x1000, 0, 0], 64),
            (index::BRAND_INFO, [0, 0x1000, 0], 128),
        ] {
            match call(procedure, arguments, 0) {
                Work::Write(0x1000, bytes, _) => assert_eq!(bytes.len(), size),
                other => panic!("procedure {procedure} does {other:?}"),
            }
        }
        assert_eq!(call(index::HALT_LIGHT, [0; 3], 0), Work::Halt);
    }

    #[test]
    fn every_procedure_of_the_manual_is_answered_or_refused() {
        // By number: what is there (volume 2, tables 11-13 to 11-18) and what this processor does not have.
        let refused = |procedure: u64| {
            matches!(
                call(procedure, [0x1000, 0, 0], 0),
                Work::Return([NOT_IMPLEMENTED, ..])
            )
        };
        // Cache lines and self-tests by hand, the IA-32 environment, and what processors after the Itanium 2 brought.
        let absent = [31, 33, 37, 44, 48, 49, 50, 51, 258, 259, 260, 262, 263, 276];
        let brand_of_another_kind = 274;
        for procedure in (1..=51).chain(256..=276) {
            let numbered = !matches!(procedure, 35..=36 | 45..=47 | 264..=273 | 275);
            let expected = !numbered || absent.contains(&procedure) || procedure == brand_of_another_kind;
            // Feature sets above the first are refused as well.
            assert_eq!(refused(procedure), expected, "procedure {procedure}");
        }
    }

    #[test]
    fn pal_is_copied_whole_or_not_at_all() {
        let [status, size, alignment, _] = results(index::COPY_INFO, [0; 3]);
        assert_eq!(status, 0);
        let copy = |target, size| call(index::COPY_PAL, [target, size, 0], 0);
        let stub = gate::stub(gate::Entry::Pal);
        assert_eq!(copy(16 * alignment, size), Work::Write(16 * alignment, stub, 0));
        let refused = Work::Return([INVALID_ARGUMENT, 0, 0, 0]);
        assert_eq!(copy(16 * alignment, size - 1), refused);
        assert_eq!(copy(16 * alignment + 16, size), refused);
    }

    #[test]
    fn a_halt_state_is_one_that_is_described() {
        let Work::Write(_, states, _) = call(index::HALT_INFO, [0x1000, 0, 0], 0) else {
            panic!("states are written");
        };
        for (state, described) in states.chunks_exact(8).enumerate() {
            let is_there = described[7] >> 4 & 1 != 0;
            let halts = call(index::HALT, [state as u64, 0, 0], 0) == Work::Halt;
            assert_eq!(halts, is_there, "state {state}");
        }
    }

    #[test]
    fn every_package_has_one_processor_with_its_caches() {
        let [status, overview, thread, address] =
            match call(index::LOGICAL_TO_PHYSICAL, [CALLER, 0, 0], 0x300) {
                Work::Return(results) => results,
                other => panic!("{other:?}"),
            };
        assert_eq!((status, overview & 0xffff, thread, address), (0, 1, 0, 0x300));
        assert_eq!(
            results(index::LOGICAL_TO_PHYSICAL, [1, 0, 0])[0],
            INVALID_ARGUMENT
        );
        assert_eq!(results(index::CACHE_SHARED_INFO, [2, 2, 0])[..2], [0, 1]);
        assert_eq!(results(index::CACHE_SHARED_INFO, [3, 2, 0])[0], INVALID_ARGUMENT);
    }

    #[test]
    fn registers_are_those_of_the_architecture() {
        let [status, low, high, _] = results(index::REGISTER_INFO, [0; 3]);
        let has = |register: u32| (u128::from(high) << 64 | u128::from(low)) >> register & 1 != 0;
        assert_eq!(status, 0);
        assert!([0, 7, 16, 19, 32, 36, 40, 44, 64, 66].into_iter().all(has));
        assert!(![8, 20, 22, 31, 33, 67, 111].into_iter().any(has));
        assert_eq!(results(index::REGISTER_INFO, [3, 0, 0]), [0, 0, 2, 0]);
        assert_eq!(results(index::REGISTER_INFO, [4, 0, 0])[0], INVALID_ARGUMENT);
    }

    #[test]
    fn translation_registers_are_described_as_they_were_inserted() {
        let (pte, itir) = (0x0010_0000_0400_0661, 26 << 2 | 5 << 8);
        let entry =
            TranslationEntry::new(VirtualAddress(0xa000_0001_0000_1234), 7, pte, itir).expect("good words");
        let page = 0xa000_0001_0000_0000;
        assert_eq!(
            translation_register(Some(&entry)),
            ([pte, itir, page | 1, 7 << 8], 0b1111)
        );
        assert_eq!(translation_register(None), ([0; 4], 0));
        let read = |register, kind| call(index::VM_TR_READ, [register, kind, 0x1000], 0);
        assert!(matches!(
            read(63, 1),
            Work::ReadTranslationRegister {
                register: 63,
                is_data: true,
                ..
            }
        ));
        for (register, kind) in [(64, 0), (0, 2)] {
            assert_eq!(read(register, kind), Work::Return([INVALID_ARGUMENT, 0, 0, 0]));
        }
    }

    proptest! {
        #[test]
        fn any_call_has_an_answer(procedure in prop_oneof![0u64..1100, any::<u64>()], arguments: [u64; 3]) {
            let _ = call(procedure, arguments, 0);
        }

        #[test]
        fn unknown_procedures_are_not_implemented(procedure in 2048u64.., arguments: [u64; 3]) {
            prop_assert_eq!(results(procedure, arguments)[0], NOT_IMPLEMENTED);
        }
    }
}
