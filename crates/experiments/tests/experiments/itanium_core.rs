//! Core dumps of the kernel of `guests/ia64/kernel`: what its unwinder rebuilds is what the program had.

use object::LittleEndian;
use object::elf::{EM_IA_64, ET_CORE, PT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader};
use sidestep_experiments::itanium::core_file::CoreFile;
use sidestep_experiments::itanium::kernel::{Guest, Run};
use sidestep_ia64::execution::Untimed;

/// Words of Linux/ia64's `elf_gregset_t`.
mod register {
    pub const NATS: usize = 32;
    pub const PREDICATES: usize = 33;
    pub const B1: usize = 35;
    pub const FRAME_MARKER: usize = 43;
    pub const BSP: usize = 46;
    pub const RNAT: usize = 48;
    pub const UNAT: usize = 50;
    pub const LOOP_COUNT: usize = 53;
}

fn below(address: u64, count: u64) -> u64 {
    address - (count + (62 - (address >> 3 & 63) + count) / 63) * 8
}

/// The values of `programs/preserved.h` and the frames of `programs/preserved.S`.
fn has_the_values_of_the_program(core: &CoreFile<'_>, depth: u64) {
    let registers = core.general();
    assert_eq!(registers[register::NATS] & 0xf0, 0x40, "r6 is NaT");
    for index in [4, 5, 7] {
        assert_eq!(
            registers[index],
            0x4444_4444_0000_0000 + index as u64 - 4,
            "r{index}"
        );
    }
    for index in 0..5 {
        assert_eq!(
            registers[register::B1 + index],
            0xbbbb_bbbb_0000_0000 + index as u64
        );
    }
    assert_eq!(registers[register::LOOP_COUNT], 0x1c1c_1c1c_1c1c_1c1c);
    assert_eq!(registers[register::UNAT], 0x0123_4567_89ab_cdef);
    let preserved = 0xffff_ffff_ffff_003e;
    assert_eq!(registers[register::PREDICATES] & preserved, 0x5a5a_5a5a_5a5a_002a);
    let floating = core.floating();
    for (value, index) in (0xf000_0000_0000_f000_u64..).zip((2..6).chain(16..32)) {
        assert_eq!(floating[index * 2], value, "f{index}");
    }
    // `enter` has eight registers without its outputs; below it are the frames of `preserved`, 16 registers each.
    let size = registers[register::FRAME_MARKER] & 0x7f;
    assert_eq!(size, 11);
    let mut frame = below(registers[register::BSP], size);
    for level in 0..=depth {
        frame = below(frame, 16);
        for index in 3..13_u64 {
            let address = frame + (index + ((frame >> 3 & 63) + index) / 63) * 8;
            let collection = address | 0x1f8;
            let nats = if collection < registers[register::BSP] {
                core.word(collection).expect("the page is in the core")
            } else {
                registers[register::RNAT]
            };
            let is_nat = nats >> (address >> 3 & 63) & 1 == 1;
            assert_eq!(is_nat, level == 3 && index == 8, "level {level}, r{}", 32 + index);
            if !is_nat {
                assert_eq!(
                    core.word(address),
                    Some(level << 8 | (32 + index)),
                    "level {level}"
                );
            }
        }
    }
}

#[test]
fn a_core_has_what_the_program_had_in_every_preserved_register() {
    for (processors, state) in [
        (1, "minimal"),
        (1, "full"),
        (2, "minimal"),
        (2, "full format=long"),
    ] {
        for depth in [1, 10] {
            let run = Run {
                guest: Guest::Kernel(processors),
                parameters: format!("signal-state={state} program=die {depth}"),
                memory_mb: 192,
                instructions_max: 100_000_000,
                quantum_ticks: Guest::Kernel(processors).quantum_ticks(),
                keeps_dumps: true,
            };
            let finished = run
                .run(&mut vec![Untimed; processors], &|| false)
                .unwrap_or_else(|error| panic!("{processors} CPUs, {state}: {error}"));
            // Bit 7 of a status says that there is a core.
            assert!(
                finished.console.contains("nothing: status 8b\n"),
                "{}",
                finished.console
            );
            assert!(
                finished.console.contains("abort: status 86\n"),
                "{}",
                finished.console
            );
            let signals = finished.dumps.values().map(|dump| {
                let core = CoreFile::parse(dump).expect("a core file");
                let kind = [
                    core.header().e_type(LittleEndian),
                    core.header().e_machine(LittleEndian),
                ];
                assert_eq!(kind, [ET_CORE, EM_IA_64]);
                let (first, last) = (core.segments().first(), core.segments().last());
                assert_eq!(first.expect("the notes").p_type(LittleEndian), PT_NOTE);
                let (offset, size) = last.expect("a page").file_range(LittleEndian);
                assert_eq!(offset + size, dump.len() as u64);
                has_the_values_of_the_program(&core, depth);
                core.signal()
            });
            assert_eq!(signals.collect::<Vec<_>>(), [11, 6, 6]);
        }
    }
}

#[test]
fn a_register_that_was_not_rebuilt_is_seen() {
    let run = Run {
        guest: Guest::Kernel(1),
        parameters: "signal-state=minimal program=die 1".to_owned(),
        memory_mb: 192,
        instructions_max: 100_000_000,
        quantum_ticks: Guest::Kernel(1).quantum_ticks(),
        keeps_dumps: true,
    };
    let finished = run.run(&mut [Untimed], &|| false).expect("the kernel ends");
    let dump = finished.dumps.values().next().expect("a core");
    let core = CoreFile::parse(dump).expect("a core file");
    let mut other = dump.clone();
    // r4 and f5, wherever their values are.
    for value in [0x4444_4444_0000_0000_u64, 0xf000_0000_0000_f003] {
        let places = dump
            .windows(8)
            .enumerate()
            .filter(|(_, bytes)| *bytes == value.to_le_bytes());
        for (place, _) in places {
            other[place] ^= 1;
        }
    }
    let other = CoreFile::parse(&other).expect("a core file");
    assert_eq!(other.registers_other_than(&core), 2);
    assert_eq!(core.registers_other_than(&core), 0);
    assert!(CoreFile::parse(&dump[..dump.len() / 2]).is_none_or(|core| core.word(u64::MAX).is_none()));
    assert!(CoreFile::parse(b"no core file").is_none());
}
