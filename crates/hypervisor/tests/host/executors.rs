//! The services of sidecores and devices on both executors: in virtual time, and on pinned cores of this machine.

use sidestep_hypervisor::host::Host;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::sidecores::{Executor, locked};
use sidestep_hypervisor::sidecall::request::Kind;
use sidestep_hypervisor::virtual_machine::{Method, VirtualMachineConfig};

use crate::fixture::{Setup, console, guest};

/// Work whose requests do not depend on how long others take.
const WORK: &[&str] = &[
    "null 20",
    "identification 20",
    "map 20",
    "change 20",
    "unmap 20",
    "fault 20",
    "disk 1",
    "timer 2",
];

/// How often requests of a kind were served, and by which way.
type Served = Vec<((Option<Kind>, Method), u64)>;

/// What guests got to see but for how long it took: exit code, what was measured how often, and requests.
fn seen(host: &Host, index: usize) -> (Option<u64>, Vec<String>, Served) {
    let machine = &host.report().machines[index];
    let lines = console(host, index);
    let measured = lines.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            // The name of a measurement, its cycles, and how often it was done.
            [name, _, count] => format!("{name} {count}"),
            _ => line.to_owned(),
        }
    });
    let requests = machine.requests.iter();
    let requests = requests.map(|request| ((request.kind, request.method), request.count));
    (machine.exit_code, measured.collect(), requests.collect())
}

fn run(services: Executor, sidecores: usize, machines: Vec<VirtualMachineConfig>) -> Host {
    let setup = Setup {
        cores: sidecores + 2,
        sidecores: SidecorePolicy::Fixed(sidecores),
        services,
        ..Setup::default()
    };
    setup.run(machines).0
}

#[test]
fn both_executors_give_the_same_answers() {
    for work in WORK {
        let machines = || vec![guest("guest", work)];
        let (modelled, real) = (
            run(Executor::VirtualTime, 1, machines()),
            run(Executor::PinnedCores, 1, machines()),
        );
        let expected = seen(&modelled, 0);
        assert_eq!(expected.0, Some(0), "{work}");
        assert_eq!(seen(&real, 0), expected, "{work}");
    }
}

#[test]
fn pinned_sidecores_serve_several_virtual_machines_side_by_side() {
    let machines = || WORK.iter().map(|work| guest(work, work)).collect::<Vec<_>>();
    let (modelled, real) = (
        run(Executor::VirtualTime, 2, machines()),
        run(Executor::PinnedCores, 2, machines()),
    );
    for (index, work) in WORK.iter().enumerate() {
        assert_eq!(locked(&real.machines()[index]).exit_code(), Some(0), "{work}");
        assert_eq!(seen(&real, index), seen(&modelled, index), "{work}");
    }
    assert!(modelled.measured().is_none());
    let measured = real.measured().expect("pinned cores are measured");
    let starts: u64 = measured.threads.iter().map(|thread| thread.runs).sum();
    assert!(starts > 0, "{measured}");
}
