//! How fast machines execute: a compute loop in system mode with address translation on.
//!
//! The rival of each row is the first one, virtual time without an observer: the others say what host threads, an
//! observer and a debugger's guard cost.

#![allow(missing_docs)] // criterion_group! makes a public function.

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sidestep_ia64::Processor;
use sidestep_ia64::execution::{Observer, Retired};
use sidestep_vmm::Machine;
use sidestep_vmm::debug::guard::{Guard, Mode, Points};
use sidestep_vmm::description::{self, bare::Description};
use sidestep_vmm::machine::{Driver, HostThreads, Observed, Untimed, VirtualTime};

/// Instructions of one measurement.
const INSTRUCTIONS: u64 = 2_000_000;

/// Looks at nothing.
#[derive(Clone)]
struct Blind;

impl Observer for Blind {
    fn retired(&mut self, _: &Processor, retired: &Retired<'_>) {
        black_box(retired.ip);
    }
}

/// A machine in the middle of its loop.
fn machine(processors: usize) -> Machine {
    let text = format!(
        "machine = {{ processors = {processors}, parameters = 'compute 1000000000000' }}
         image.file = 'machine-smp'
         memory = [{{ start = 0x100000, size = '15M' }}]"
    );
    let description: Description = description::parse("speed.toml", &text).expect("a good description");
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin");
    let mut machine = description
        .build(&images, Box::new(std::io::sink()))
        .expect("the image is in the repository")
        .machine;
    in_virtual_time(&mut machine, Untimed);
    machine
}

fn in_virtual_time<D: Driver + Clone>(machine: &mut Machine, driver: D) {
    let executor = VirtualTime {
        instructions_max: INSTRUCTIONS,
        ..VirtualTime::default()
    };
    let mut drivers = vec![driver; machine.cpus.len()];
    black_box(executor.run_driven(machine, &mut drivers));
}

fn speed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compute, translation on");
    group.throughput(Throughput::Elements(INSTRUCTIONS));
    let mut one = machine(1);
    group.bench_function("virtual time", |bencher| {
        bencher.iter(|| in_virtual_time(&mut one, Untimed))
    });
    let mut four = machine(4);
    group.bench_function("virtual time, 4 processors", |bencher| {
        bencher.iter(|| in_virtual_time(&mut four, Untimed));
    });
    let mut threads = machine(1);
    let executor = HostThreads {
        instructions_max: INSTRUCTIONS,
        ..HostThreads::default()
    };
    group.bench_function("host threads", |bencher| {
        bencher.iter(|| black_box(executor.run(&mut threads)))
    });
    let mut observed = machine(1);
    group.bench_function("observer", |bencher| {
        bencher.iter(|| in_virtual_time(&mut observed, Observed(Blind)));
    });
    let mut guarded = machine(1);
    let points = Points {
        breakpoints: [0].into(),
        ..Points::default()
    };
    group.bench_function("debugger's guard", |bencher| {
        let guard = Guard::new(points.clone(), Mode::Continue, None);
        bencher.iter(|| in_virtual_time(&mut guarded, guard.clone()));
    });
    group.finish();
}

criterion_group!(benches, speed);
criterion_main!(benches);
