//! How fast machines execute with the model of the pipeline attached, against the same machine without it and with an
//! observer that looks at nothing: what the model itself costs, and what being shown every instruction does.

#![allow(missing_docs)] // criterion_group! makes a public function.

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::{Driver, Dynamic, Observed, Observer, Untimed};
use sidestep_itanium2::Parameters;
use sidestep_machine::Machine;
use sidestep_machine::description::{self, bare::Description};
use sidestep_machine::machine::VirtualTime;
use sidestep_runner::machine::Timed;

/// Instructions of one measurement.
const INSTRUCTIONS: u64 = 1_000_000;

/// Looks at nothing.
struct Blind;

impl Observer for Blind {
    type Static = ();

    fn decode(&mut self, _: &Instruction, _: &DecodedSlot) {}

    fn retired(&mut self, (): &(), dynamic: &Dynamic<'_>) {
        black_box(dynamic.place);
    }
}

/// A machine in the middle of a loop that only computes.
fn machine() -> Machine {
    let text = "machine = { processors = 1, parameters = 'compute 1000000000000' }
         image.file = 'machine-smp'
         memory = [{ start = 0x100000, size = '15M' }]";
    let description: Description = description::parse("pipeline.toml", text).expect("a good description");
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin");
    description
        .build(&images, Box::new(std::io::sink()))
        .expect("the image is in the repository")
        .machine
}

/// Runs a machine on, with the driver as the last run left it.
fn run_on<D: Driver>(machine: &mut Machine, driver: &mut [D]) {
    let executor = VirtualTime {
        instructions_max: INSTRUCTIONS,
        ..VirtualTime::default()
    };
    black_box(executor.run_driven(machine, driver));
}

fn speed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("instructions with a pipeline");
    group.throughput(Throughput::Elements(INSTRUCTIONS));
    group.bench_function("none", |bencher| {
        let (mut machine, mut driver) = (machine(), [Untimed]);
        bencher.iter(|| run_on(&mut machine, &mut driver));
    });
    group.bench_function("observer that looks at nothing", |bencher| {
        let (mut machine, mut driver) = (machine(), [Observed(Blind)]);
        bencher.iter(|| run_on(&mut machine, &mut driver));
    });
    group.bench_function("itanium2", |bencher| {
        let (mut machine, mut driver) = (machine(), Timed::each(&Parameters::default(), 1));
        bencher.iter(|| run_on(&mut machine, &mut driver));
    });
    group.finish();
}

criterion_group!(benches, speed);
criterion_main!(benches);
