//! Decoding and disassembly of a guest program's code, beside the `yaxpeax-ia64` decoder on the same bundles.

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput};
use sidestep_ia64::encoding::{Bundle, NoSymbols};
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_ia64::{InstDecoder, InstructionBundle};

/// The bundles of a program's executable sections (ELF-64: section headers of 64 bytes, flag 4 for code).
fn code() -> Vec<[u8; 16]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin/tour");
    let program = std::fs::read(path).expect("the guest program can be read");
    let word =
        |offset: usize| u64::from_le_bytes(program[offset..offset + 8].try_into().expect("eight bytes"));
    let section_headers = word(40) as usize;
    let sections = program[section_headers..].chunks_exact(64).enumerate();
    let code = sections
        .filter(|(_, header)| header[8] & 4 != 0)
        .flat_map(|(index, _)| {
            let header = section_headers + 64 * index;
            let (offset, size) = (word(header + 24) as usize, word(header + 32) as usize);
            program[offset..offset + size].chunks_exact(16)
        });
    code.map(|bytes| bytes.try_into().expect("chunks of 16 bytes"))
        .collect()
}

fn decoding(criterion: &mut Criterion) {
    let code = code();
    let mut group = criterion.benchmark_group("bundles of a guest program");
    group.throughput(Throughput::Elements(code.len() as u64));
    group.bench_function("decode", |bench| {
        bench.iter(|| {
            for bytes in &code {
                for slot in Bundle::from_bytes(*black_box(bytes)).decode() {
                    let _ = black_box(slot);
                }
            }
        });
    });
    group.bench_function("decode (yaxpeax-ia64)", |bench| {
        let decoder = InstDecoder::default();
        bench.iter(|| {
            for bytes in &code {
                let mut bundle = InstructionBundle::default();
                let _ = decoder.decode_into(&mut bundle, &mut U8Reader::new(black_box(bytes)));
                let _ = black_box(&bundle);
            }
        });
    });
    group.bench_function("disassemble", |bench| {
        let mut text = String::new();
        bench.iter(|| {
            for bytes in &code {
                let bundle = Bundle::from_bytes(*black_box(bytes));
                for slot in bundle.decode() {
                    text.clear();
                    slot.write(bundle, 0, &NoSymbols, &mut text)
                        .expect("writing to a string succeeds");
                }
            }
        });
    });
    group.bench_function("disassemble (yaxpeax-ia64)", |bench| {
        use std::fmt::Write;
        let decoder = InstDecoder::default();
        let mut text = String::new();
        bench.iter(|| {
            for bytes in &code {
                let mut bundle = InstructionBundle::default();
                if decoder
                    .decode_into(&mut bundle, &mut U8Reader::new(black_box(bytes)))
                    .is_ok()
                {
                    text.clear();
                    write!(text, "{bundle}").expect("writing to a string succeeds");
                }
            }
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    decoding(&mut criterion);
    criterion.final_summary();
}
