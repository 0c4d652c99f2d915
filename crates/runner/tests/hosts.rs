//! Hosts whose cores have a model of the pipeline.

use std::sync::Arc;

use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::costs::HostCosts;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::{PolicyName, Scheduling};
use sidestep_hypervisor::host::sidecores::{Executor, Polling, locked};
use sidestep_hypervisor::host::{Host, HostConfig, HostEnd};
use sidestep_hypervisor::virtual_machine::{CoreModel, VirtualMachine, VirtualMachineConfig};
use sidestep_itanium2::{Counters, Event, Parameters};
use sidestep_runner::host::ModelledCores;

/// What a host of `guests` that do `work` printed and took, by the table or on modelled cores.
struct Outcome {
    consoles: Vec<String>,
    report: String,
    guest_cycles: u64,
    counters: Vec<Counters>,
}

fn run(
    work: &[&str],
    cores: usize,
    sidecores: usize,
    model: Option<&Arc<ModelledCores>>,
    threads: usize,
) -> Outcome {
    let machines = work.iter().enumerate().map(|(index, work)| {
        let mut config = VirtualMachineConfig::new(&format!("guest {index}"));
        config.parameters = (*work).to_owned();
        VirtualMachine::new(index, config, sidestep_guests::ia64::REQUESTS).expect("a good virtual machine")
    });
    let config = HostConfig {
        cores,
        costs: Arc::new(HostCosts::preset("itanium2-vti").expect("a preset")),
        sidecores: SidecorePolicy::Fixed(sidecores),
        polling: Polling {
            spin_cycles: 20_000,
            saves_energy: false,
        },
        services: Executor::VirtualTime,
        scheduling: Scheduling {
            policy: PolicyName::Free,
            slot_ns: 100_000,
        },
        core_model: model.map(|model| Arc::clone(model) as Arc<dyn CoreModel>),
        threads,
        trace: false,
        nic: None,
    };
    let mut host = Host::new(config, machines.collect()).expect("a good host");
    let end = host.run(Cycle(1_000_000_000)).expect("services end");
    assert_eq!(end, HostEnd::Ended, "{:#?}", host.report());
    let report = host.report();
    for machine in &report.machines {
        assert_eq!(machine.exit_code, Some(0), "{machine:#?}");
    }
    let consoles = host
        .machines()
        .iter()
        .map(|machine| String::from_utf8_lossy(locked(machine).console()).into_owned());
    Outcome {
        consoles: consoles.collect(),
        guest_cycles: report.cores.iter().map(|core| core.guest).sum(),
        report: format!("{report:?}"),
        counters: model.map(|model| model.counters()).unwrap_or_default(),
    }
}

fn model() -> Arc<ModelledCores> {
    Arc::new(ModelledCores::new(Parameters::default()))
}

fn sum(counters: &[Counters], event: Event) -> u64 {
    counters.iter().map(|counters| counters.get(event)).sum()
}

#[test]
fn guests_do_on_modelled_cores_what_they_do_by_the_table() {
    for work in ["null 20", "map 20", "fault 20", "build 2 5 5 10", "timer 2"] {
        for sidecores in [0, 1] {
            let model = model();
            let timed = run(&[work], 2, sidecores, Some(&model), 1);
            let words = |outcome: &Outcome| outcome.consoles[0].split(' ').next().map(str::to_owned);
            assert_eq!(
                words(&timed),
                words(&run(&[work], 2, sidecores, None, 1)),
                "{work}"
            );
            // What the cores say that guests took is what the host has charged for guest instructions.
            let cycles = sum(&timed.counters, Event::CpuCycles);
            assert!(sum(&timed.counters, Event::InstructionsRetired) > 0);
            assert_eq!(cycles, timed.guest_cycles, "{work}");
        }
    }
}

#[test]
fn modelled_cores_count_the_same_on_one_and_on_two_host_threads() {
    let work = ["build 2 5 5 10", "map 40", "context 4 3"];
    let [one, two] = [1, 2].map(|threads| run(&work, 3, 1, Some(&model()), threads));
    assert_eq!(one.report, two.report);
    assert_eq!(one.consoles, two.consoles);
    assert_eq!(one.counters, two.counters);
}

#[test]
fn handlers_on_the_own_core_leave_guests_less_of_the_caches() {
    let misses = |sidecores: usize| {
        let timed = run(&["map 200"], 2, sidecores, Some(&model()), 1);
        let reads = sum(&timed.counters, Event::L1dReads);
        (sum(&timed.counters, Event::L1dReadMisses) as f64, reads as f64)
    };
    let ((by_exit, reads_by_exit), (by_sidecall, reads_by_sidecall)) = (misses(0), misses(1));
    assert!(
        by_exit / reads_by_exit > by_sidecall / reads_by_sidecall,
        "{by_exit} of {reads_by_exit}, {by_sidecall} of {reads_by_sidecall}"
    );
}
