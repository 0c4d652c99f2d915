//! How fast the chip model runs, and how its cost grows with the units.
//!
//! Every unit is kept busy: worker threads compute, load, store and self-continue for ever. The criterion groups give
//! chip cycles a second; the summary at the end gives, from one run, the cost of a chip cycle with 1 to 64 units and
//! how much more than the one-unit chip it costs a unit (at most 1 when cost grows no faster than the units).

#![allow(missing_docs)] // criterion_group! makes a public function.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidestep_fuce::assembler::assemble_text;
use sidestep_fuce::chip::{Chip, ChipConfig, Stop};
use sidestep_fuce::image::Image;

const CYCLES: u64 = 100_000;
const UNITS: [usize; 5] = [1, 4, 8, 16, 64];

const WORKERS: &str = "
    .entry boot
    boot:   la r5, worker
            la r7, frames
            li r6, 128
    next:   create r4, r7, 8
            install kernel, r4, r5, 1
            cont r4
            addi r7, r7, 32
            addi r6, r6, -1
            bnez r6, next
            end
    worker: preload r3, 0, 4
            li r20, 20
    work:   add r3, r3, r4
            xor r4, r4, r5
            slli r5, r3, 3
            mul r6, r3, r5
            add r6, r6, r20
            addi r20, r20, -1
            bnez r20, work
            ldw r7, 4(r1)
            add r7, r7, r6
            stw r7, 8(r1)
            self
    .data
    frames: .space 4096
";

fn busy_chip(units: usize, image: &Image) -> Chip {
    let config = ChipConfig {
        units,
        memory_bytes: 1 << 20,
        ..ChipConfig::default()
    };
    let mut chip = Chip::new(&config, image, Vec::new()).expect("the chip can be made");
    assert_eq!(chip.run(20_000), Stop::CycleLimit, "the workers never end");
    chip
}

fn cycles(criterion: &mut Criterion) {
    let image = assemble_text("workers.s", WORKERS)
        .expect("the program is right")
        .image;
    let mut group = criterion.benchmark_group("chip cycles");
    group.throughput(Throughput::Elements(CYCLES));
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(300));
    for units in UNITS {
        let mut chip = busy_chip(units, &image);
        group.bench_function(BenchmarkId::new("busy units", units), |bencher| {
            bencher.iter(|| chip.run(chip.now() + CYCLES));
        });
    }
    group.finish();
    summary(&image);
}

/// The least of several rounds for each number of units, taken in turn, so that a disturbance meets all alike.
fn summary(image: &Image) {
    let mut chips: Vec<Chip> = UNITS.iter().map(|units| busy_chip(*units, image)).collect();
    let mut best = [Duration::MAX; UNITS.len()];
    for _ in 0..20 {
        for (chip, best) in chips.iter_mut().zip(&mut best) {
            let begin = Instant::now();
            chip.run(chip.now() + CYCLES);
            *best = (*best).min(begin.elapsed());
        }
    }
    println!("units  million chip cycles/s  ns/chip cycle  cost a unit, of the one-unit chip's");
    for (units, time) in UNITS.iter().zip(best) {
        let nanoseconds = time.as_secs_f64() * 1e9 / CYCLES as f64;
        let relative = nanoseconds / *units as f64 / (best[0].as_secs_f64() * 1e9 / CYCLES as f64);
        println!(
            "{units:5}  {:21.1}  {nanoseconds:13.1}  {relative:.2}",
            1e3 / nanoseconds
        );
    }
}

criterion_group!(benches, cycles);
criterion_main!(benches);
