//! How fast hosts with virtual machines are simulated, in guest instructions a second in all.
//!
//! The rival of each row is the first of its group: one virtual machine on one core, one host thread, few cores.

#![allow(missing_docs)] // criterion_group! makes a public function.

use std::hint::black_box;
use std::sync::Arc;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::{PolicyName, Scheduling};
use sidestep_hypervisor::host::sidecores::{Executor, Polling};
use sidestep_hypervisor::host::{Host, HostConfig};
use sidestep_hypervisor::virtual_machine::{VirtualMachine, VirtualMachineConfig};

const IMAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../guests/ia64/bin/sidecore-requests"
);
/// Cycles of the host in one measurement.
const CYCLES: u64 = 1_000_000;

/// A host in the middle of its work: a virtual machine for each core, and one core that serves.
fn host(machines: usize, threads: usize, work: &str) -> Host {
    let image = std::fs::read(IMAGE).expect("the image is in the repository");
    let machines = (0..machines).map(|index| {
        let mut config = VirtualMachineConfig::new(&format!("guest {index}"));
        config.memory = 8 << 20;
        config.parameters = work.to_owned();
        VirtualMachine::new(index, config, &image).expect("a good virtual machine")
    });
    let machines: Vec<VirtualMachine> = machines.collect();
    let config = HostConfig {
        cores: machines.len() + 1,
        costs: Arc::new(HostCosts::preset("itanium2-vti").expect("a preset")),
        sidecores: SidecorePolicy::Fixed(1),
        polling: Polling {
            spin_cycles: 20_000,
            saves_energy: false,
        },
        scheduling: Scheduling {
            policy: PolicyName::Free,
            slot_ns: 1_000_000,
        },
        core_model: None,
        services: Executor::VirtualTime,
        threads,
        trace: false,
        nic: None,
    };
    let mut host = Host::new(config, machines).expect("a good host");
    run(&mut host);
    host
}

fn run(host: &mut Host) {
    let until = host.time() + CYCLES;
    black_box(host.run(until)).expect("services end");
}

/// Instructions that all guests retire in one measurement.
fn instructions(host: &mut Host) -> u64 {
    let sum = |host: &Host| -> u64 {
        host.report()
            .machines
            .iter()
            .map(|machine| machine.instructions)
            .sum()
    };
    let before = sum(host);
    run(host);
    sum(host) - before
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, parameter: usize, mut host: Host) {
    group.throughput(Throughput::Elements(instructions(&mut host)));
    group.bench_function(BenchmarkId::new(name, parameter), |bencher| {
        bencher.iter(|| run(&mut host));
    });
}

const COMPUTE: &str = "compute 1000000000000";

fn speed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("instructions of all guests");
    group.sample_size(10);
    for (name, work) in [
        ("compute", COMPUTE),
        ("bursts of requests", "bursts 100000000 100"),
        ("a build with page faults", "build 1000000 20 20 1000"),
    ] {
        measure(&mut group, name, 1, host(1, 1, work));
    }
    group.finish();
    let mut group = criterion.benchmark_group("host threads for eight virtual machines");
    group.sample_size(10);
    for threads in [1, 2] {
        measure(&mut group, "threads", threads, host(8, threads, COMPUTE));
    }
    group.finish();
    let mut group = criterion.benchmark_group("virtual machines, each on a core");
    group.sample_size(10);
    for machines in [1, 4, 16, 63] {
        measure(&mut group, "machines", machines, host(machines, 1, COMPUTE));
    }
    group.finish();
}

criterion_group!(benches, speed);
criterion_main!(benches);
