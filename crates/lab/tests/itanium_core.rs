//! Core dumps of the kernel of `guests/ia64/kernel`: what its unwinder rebuilds is what the program had.

use sidestep_lab::experiments::itanium::kernel::{Guest, Run};
use sidestep_vmm::machine::Untimed;

/// A core file, as far as these tests read it.
struct Core<'a>(&'a [u8]);

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_PRSTATUS: u32 = 1;
const NT_FPREGSET: u32 = 2;

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

impl<'a> Core<'a> {
    fn number(&self, at: usize, bytes: usize) -> u64 {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&self.0[at..at + bytes]);
        u64::from_le_bytes(value)
    }

    /// Type, offset, address and size of each segment.
    fn segments(&self) -> Vec<(u32, usize, u64, usize)> {
        let (table, count) = (self.number(32, 8) as usize, self.number(56, 2) as usize);
        let segment = |index: usize| {
            let at = table + index * 56;
            let word = |offset: usize| self.number(at + offset, 8);
            let kind = self.number(at, 4) as u32;
            (kind, word(8) as usize, word(16), word(32) as usize)
        };
        (0..count).map(segment).collect()
    }

    fn note(&self, kind: u32) -> &'a [u8] {
        let (_, mut at, _, size) = self.segments()[0];
        let end = at + size;
        while at < end {
            let size = self.number(at + 4, 4) as usize;
            assert_eq!(&self.0[at + 12..at + 17], b"CORE\0");
            if self.number(at + 8, 4) as u32 == kind {
                return &self.0[at + 20..at + 20 + size];
            }
            at += 20 + size.next_multiple_of(4);
        }
        panic!("no note of type {kind}");
    }

    fn registers(&self) -> Vec<u64> {
        let status = self.note(NT_PRSTATUS);
        assert_eq!(status.len(), 1144);
        let words = status[112..112 + 1024].chunks_exact(8);
        words
            .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
            .collect()
    }

    fn word(&self, address: u64) -> u64 {
        let holds = |&&(kind, _, start, size): &&(u32, usize, u64, usize)| {
            kind == PT_LOAD && address >= start && address + 8 <= start + size as u64
        };
        let segments = self.segments();
        let (_, offset, start, _) = segments.iter().find(holds).expect("the page is in the core");
        self.number(offset + (address - start) as usize, 8)
    }
}

fn below(address: u64, count: u64) -> u64 {
    address - (count + (62 - (address >> 3 & 63) + count) / 63) * 8
}

/// The values of `programs/preserved.h` and the frames of `programs/preserved.S`.
fn has_the_values_of_the_program(core: &Core<'_>, depth: u64) {
    let registers = core.registers();
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
    let floating = core.note(NT_FPREGSET);
    assert_eq!(floating.len(), 2048);
    for (value, index) in (0xf000_0000_0000_f000_u64..).zip((2..6).chain(16..32)) {
        assert_eq!(
            floating[index * 16..index * 16 + 8],
            value.to_le_bytes(),
            "f{index}"
        );
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
                core.word(collection)
            } else {
                registers[register::RNAT]
            };
            let is_nat = nats >> (address >> 3 & 63) & 1 == 1;
            assert_eq!(is_nat, level == 3 && index == 8, "level {level}, r{}", 32 + index);
            if !is_nat {
                assert_eq!(core.word(address), level << 8 | (32 + index), "level {level}");
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
                let core = Core(dump);
                assert_eq!(dump[..6], [0x7f, b'E', b'L', b'F', 2, 1]);
                assert_eq!(
                    [core.number(16, 2), core.number(18, 2)],
                    [4, 50],
                    "ET_CORE, EM_IA_64"
                );
                let segments = core.segments();
                assert_eq!(segments[0].0, PT_NOTE);
                let (_, offset, _, size) = segments[segments.len() - 1];
                assert_eq!(offset + size, dump.len());
                has_the_values_of_the_program(&core, depth);
                u64::from(core.note(NT_PRSTATUS)[12])
            });
            assert_eq!(signals.collect::<Vec<_>>(), [11, 6, 6]);
        }
    }
}
