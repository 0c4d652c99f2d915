//! The processor abstraction layer: procedures that describe and control the processor.
//!
//! Manual volume 2, chapter 11. Arguments and results as registers hold them; what a caller asks for that this
//! processor does not have is [`NOT_IMPLEMENTED`].

use sidestep_ia64::mmu::entry::PAGE_SIZES_LOG2;

use crate::machine::timeline::TICKS_PER_SECOND;

/// The status of a procedure that is not there.
pub const NOT_IMPLEMENTED: u64 = -1i64 as u64;
/// The status for an argument that is wrong.
pub const INVALID_ARGUMENT: u64 = -2i64 as u64;

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
    pub const MC_REGISTER_MEM: u64 = 27;
    pub const HALT_LIGHT: u64 = 29;
    pub const PMI_ENTRYPOINT: u64 = 32;
    pub const VM_PAGE_SIZE: u64 = 34;
    pub const CACHE_PROT_INFO: u64 = 38;
    pub const SHUTDOWN: u64 = 40;
    pub const PREFETCH_VISIBILITY: u64 = 41;
    pub const HALT_INFO: u64 = 257;
    pub const BRAND_INFO: u64 = 274;
}

/// What a procedure does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// It returns a status and up to three results.
    Return([u64; 4]),
    /// It waits for an interrupt, then returns success.
    Halt,
    /// It writes these bytes to the buffer at this address, then returns success and one result.
    Write(u64, Vec<u8>, u64),
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

/// The cache levels of the Itanium 2: level, type (1 instruction, 2 data or unified), unified, ways, line size and
/// stride as powers of two, latency, size.
const CACHES: &[(u64, u64, bool, u64, u64, u64, u64)] = &[
    (0, 1, false, 4, 6, 1, 16 << 10),
    (0, 2, false, 4, 6, 1, 16 << 10),
    (1, 2, true, 8, 7, 5, 256 << 10),
    (2, 2, true, 12, 7, 12, 3 << 20),
];

/// What procedure `procedure` does with its arguments.
pub fn call(procedure: u64, arguments: [u64; 3]) -> Work {
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
        // One `ptc.e` purges all.
        PTCE_INFO => ok(0, 1 << 32 | 1, 0),
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
        MC_REGISTER_MEM => ok(0, 0, 0),
        HALT_LIGHT | SHUTDOWN => Work::Halt,
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

    use super::*;

    fn results(procedure: u64, arguments: [u64; 3]) -> [u64; 4] {
        match call(procedure, arguments) {
            Work::Return(results) => results,
            other => panic!("procedure {procedure} does {other:?}"),
        }
    }

    #[test]
    fn what_kernels_ask_first_is_answered() {
        assert_eq!(
            results(index::PTCE_INFO, [0; 3])[..2],
            [0, 0],
            "one purge of everything"
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
            match call(procedure, arguments) {
                Work::Write(0x1000, bytes, _) => assert_eq!(bytes.len(), size),
                other => panic!("procedure {procedure} does {other:?}"),
            }
        }
        assert_eq!(call(index::HALT_LIGHT, [0; 3]), Work::Halt);
    }

    proptest! {
        #[test]
        fn any_call_has_an_answer(procedure in prop_oneof![0u64..1100, any::<u64>()], arguments: [u64; 3]) {
            let _ = call(procedure, arguments);
        }

        #[test]
        fn unknown_procedures_are_not_implemented(procedure in 2048u64.., arguments: [u64; 3]) {
            prop_assert_eq!(results(procedure, arguments)[0], NOT_IMPLEMENTED);
        }
    }
}
