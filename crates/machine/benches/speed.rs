//! How fast machines execute: a compute loop in system mode with address translation on, and the context switches of
//! the experiments' kernel.
//!
//! The rival of the compute loop is the same loop at the same place on a processor without system mode, as programs are
//! executed; the rows below say what virtual time, host threads, an observer and a debugger's guard cost. The rival of
//! the context switches is the compute loop.

#![allow(missing_docs)] // criterion_group! makes a public function.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sidestep_ia64::encoding::{DecodedSlot, Instruction};
use sidestep_ia64::execution::guard::{Guard, Mode, Points};
use sidestep_ia64::execution::{Driver, Dynamic, Observed, Observer, Untimed};
use sidestep_ia64::fault::Access;
use sidestep_ia64::memory::{AddressSpace, HostPage, Refusal};
use sidestep_ia64::{PhysicalAddress, VirtualAddress};
use sidestep_machine::description::bare::begin;
use sidestep_machine::description::{self, bare::Description};
use sidestep_machine::machine::hypercall::{Call, HypercallHandler, Reaction, StandardCalls};
use sidestep_machine::machine::{HostThreads, VirtualTime};
use sidestep_machine::{End, GuestMemory, Machine, MachineBuilder, MemoryRange, image};

/// Instructions of one measurement.
const INSTRUCTIONS: u64 = 2_000_000;

/// Looks at nothing.
#[derive(Clone)]
struct Blind;

impl Observer for Blind {
    type Static = ();

    fn decode(&mut self, _: &Instruction, _: &DecodedSlot) {}

    fn retired(&mut self, (): &(), dynamic: &Dynamic<'_>) {
        black_box(dynamic.place);
    }
}

/// The folder of the guests' images.
fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/bin")
}

/// A machine in the middle of its loop.
fn machine(processors: usize) -> Machine {
    let text = format!(
        "machine = {{ processors = {processors}, parameters = 'compute 1000000000000' }}
         image.file = 'machine-smp'
         memory = [{{ start = 0x100000, size = '15M' }}]"
    );
    let description: Description = description::parse("speed.toml", &text).expect("a good description");
    let mut machine = description
        .build(&images(), Box::new(std::io::sink()))
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

/// A machine's memory as a program's address space: every address is the physical one.
struct Identity(Arc<GuestMemory>);

// SAFETY: the memory stays mapped as long as the address space holds it.
unsafe impl AddressSpace for Identity {
    fn resolve(&self, address: VirtualAddress, _: Access) -> Result<HostPage, Refusal> {
        const PAGE_LOG2: u32 = 14;
        let start = address.0 >> PAGE_LOG2 << PAGE_LOG2;
        let region = self.0.region(PhysicalAddress(start)).ok_or(Refusal::NotPresent)?;
        Ok(HostPage {
            start: VirtualAddress(start),
            size_log2: PAGE_LOG2,
            host: region.host.wrapping_add((start - region.start.0) as usize),
            readable: true,
            writable: region.writable,
            executable: true,
        })
    }
}

/// The kernel of the experiments, switching between processes that pass a token and read a working set.
struct Ring {
    parameters: String,
    processors: usize,
    machine: Machine,
    mark: Arc<AtomicU64>,
}

/// Keeps the label of the last mark, and stops the machine there.
struct Marker(Arc<AtomicU64>);

impl HypercallHandler for Marker {
    fn call(&self, call: &mut Call<'_>) -> Option<Reaction> {
        const MARK: u64 = 0x100;
        if call.function() != MARK {
            return None;
        }
        self.0.store(call.argument(0), Ordering::Relaxed);
        call.set_result(0, 0);
        call.platform.request_stop();
        Some(Reaction::Return)
    }
}

impl Ring {
    /// How often the token goes round before the machine is made anew.
    const PASSES: u64 = 1000;
    /// The label of the mark where the ring begins.
    const BEGINS: u64 = 3;

    fn new(processors: usize, setup: &str, (processes, kilobytes): (u64, u64)) -> Ring {
        let parameters = format!(
            "memory=512 {setup} program=context {processes} {kilobytes} {}",
            Ring::PASSES
        );
        let (machine, mark) = Ring::machine(processors, &parameters);
        Ring {
            parameters,
            processors,
            machine,
            mark,
        }
    }

    /// A machine at the beginning of the ring.
    fn machine(processors: usize, parameters: &str) -> (Machine, Arc<AtomicU64>) {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, 512 << 20)]).expect("a good layout");
        let file = std::fs::read(images().join(format!("kernel-{processors}")));
        let loaded = image::load(&memory, &file.expect("the image is in the repository")).expect("it fits");
        let mark = Arc::new(AtomicU64::new(0));
        let mut builder = MachineBuilder::new(memory, processors);
        builder.handle(StandardCalls::new(Box::new(std::io::sink()), parameters));
        builder.handle(Marker(Arc::clone(&mark)));
        let mut machine = builder.build();
        begin(&mut machine.cpus[0].processor, loaded.entry, 0, processors);
        while mark.load(Ordering::Relaxed) != Ring::BEGINS {
            let end = Ring::run(&mut machine, u64::MAX);
            assert_eq!(end, End::Stopped, "the kernel reaches the ring");
        }
        (machine, mark)
    }

    fn run(machine: &mut Machine, instructions_max: u64) -> End {
        let executor = VirtualTime {
            instructions_max,
            ..VirtualTime::default()
        };
        let mut drivers = vec![Untimed; machine.cpus.len()];
        executor.run_driven(machine, &mut drivers).end
    }

    /// How long some measurements take; making a new machine when the ring has ended is no part of them.
    fn measure(&mut self, measurements: u64) -> Duration {
        let mut taken = Duration::ZERO;
        let mut left = measurements;
        while left > 0 {
            let start = Instant::now();
            let end = Ring::run(&mut self.machine, INSTRUCTIONS);
            if end == End::Limit {
                taken += start.elapsed();
                left -= 1;
            } else {
                (self.machine, self.mark) = Ring::machine(self.processors, &self.parameters);
            }
        }
        taken
    }
}

fn switches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("context switches");
    group.throughput(Throughput::Elements(INSTRUCTIONS));
    group.sample_size(10);
    for format in ["short", "long"] {
        for (processors, processes, kilobytes) in
            [(1, 2, 0), (1, 96, 0), (1, 16, 16), (1, 96, 64), (2, 16, 16)]
        {
            let setup = format!("format={format} walker=on");
            let mut ring = Ring::new(processors, &setup, (processes, kilobytes));
            let name = format!(
                "{format} format, {processors} processors, {processes} processes with {kilobytes} kB"
            );
            group.bench_function(&name, |bencher| {
                bencher.iter_custom(|measurements| ring.measure(measurements));
            });
        }
    }
    group.finish();
}

fn compute(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compute, translation on");
    group.throughput(Throughput::Elements(INSTRUCTIONS));
    let mut one = machine(1);
    let space = Arc::new(Identity(Arc::clone(&one.platform().memory)));
    let mut program = one.cpus[0].processor.duplicate(space);
    group.bench_function("without system mode", |bencher| {
        bencher.iter(|| black_box(program.run(INSTRUCTIONS)))
    });
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

criterion_group!(benches, compute, switches);
criterion_main!(benches);
