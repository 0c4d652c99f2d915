//! Which virtual processors share memory: the monitor finds out, schedules them by it, and guests notice nothing but
//! the time that it takes.

use proptest::prelude::*;
use sidestep_gang::policy::IdleCores;
use sidestep_gang::{CoscheduledSets, TaskId};
use sidestep_guests::ia64;
use sidestep_hypervisor::Cycle;
use sidestep_hypervisor::host::coscheduling::Coscheduling;
use sidestep_hypervisor::host::dynamic::SidecorePolicy;
use sidestep_hypervisor::host::schedule::PolicyName;
use sidestep_hypervisor::host::{Host, HostEnd, Report, VirtualMachineReport};
use sidestep_hypervisor::nic::Delivery;
use sidestep_hypervisor::nic::frame::{Address, Frame};
use sidestep_hypervisor::virtual_machine::{
    DetectionReport, DetectionSettings, ExitReason, FoundSets, VirtualMachine, VirtualMachineConfig,
    Virtualization,
};

use crate::fixture::{Setup, console};
use crate::hostile::{networked, networked_host};

/// The default with shorter times, so that a test is quick, and with as large a budget.
const QUICK: DetectionSettings = DetectionSettings {
    period_ns: 100_000,
    sample: 64,
    granularity_log2: 14,
    window_ns: 20_000_000,
    start_up_ns: 1_000_000,
    evaluation_ns: 4_000_000,
    keep_permille: 500,
    budget_permille: 100,
    selection: sidestep_gang::Selection::Modularity,
};

/// Has a host find out who shares memory, often.
pub fn watch(host: &mut Host) {
    host.coschedule(&coscheduling(Some(QUICK), Vec::new()))
        .expect("no sets are given");
}

fn coscheduling(detection: Option<DetectionSettings>, given: Vec<Option<CoscheduledSets>>) -> Coscheduling {
    Coscheduling {
        given,
        detection,
        idle_cores: IdleCores::Filled,
    }
}

/// The `index`th virtual machine, with four processors that do `work`.
fn pairs(index: usize, work: &str, virtualization: Virtualization) -> VirtualMachine {
    let config = VirtualMachineConfig {
        processors: 4,
        parameters: work.to_owned(),
        virtualization,
        ..VirtualMachineConfig::new(&format!("vm {index}"))
    };
    VirtualMachine::new(index, config, ia64::SHARING).expect("a good virtual machine")
}

fn sets(sets: &[&[u32]]) -> CoscheduledSets {
    let sets = sets
        .iter()
        .map(|set| set.iter().map(|&task| TaskId(task)).collect());
    CoscheduledSets::new(sets.collect()).expect("a partition")
}

/// Runs a host to its end, within two seconds of its time.
fn run(mut host: Host) -> (Host, Report) {
    let end = host.run(Cycle(3_200_000_000)).expect("services end");
    let report = host.report();
    assert_eq!(end, HostEnd::Ended, "{report:#?}");
    for (index, machine) in report.machines.iter().enumerate() {
        assert_eq!(
            machine.exit_code,
            Some(0),
            "{machine:#?} {}",
            console(&host, index)
        );
    }
    (host, report)
}

fn found(machine: &VirtualMachineReport) -> &DetectionReport {
    machine
        .detection
        .as_ref()
        .expect("it was found out who shares memory")
}

fn last_found(machine: &VirtualMachineReport) -> &FoundSets {
    let found = found(machine).found.last();
    found.unwrap_or_else(|| panic!("no sets were found: {machine:#?}"))
}

#[test]
fn two_guests_with_two_pairs_each_are_found_rightly_within_two_evaluations() {
    for virtualization in [Virtualization::Hardware, Virtualization::RingCompression] {
        let setup = Setup {
            cores: 4,
            policy: PolicyName::Partial,
            ..Setup::default()
        };
        let work = ["pairs 2 160 6000", "pairs 1 160 6000"];
        let machines = work.iter().enumerate();
        let machines = machines.map(|(index, work)| pairs(index, work, virtualization));
        let (mut host, costs) = setup.host_of(machines.collect());
        watch(&mut host);
        let (_, report) = run(host);
        for (machine, expected) in report
            .machines
            .iter()
            .zip([[&[0, 2][..], &[1, 3]], [&[0, 1], &[2, 3]]])
        {
            let found = found(machine);
            assert!(found.counts.evaluations >= 2, "{found:#?}");
            let second_ns = QUICK.start_up_ns + 2 * QUICK.evaluation_ns + 100_000;
            let last = last_found(machine);
            assert_eq!(last.sets, sets(&expected), "{virtualization:?} {found:#?}");
            assert!(last.time <= Cycle(costs.cycles_in(second_ns)), "{found:#?}");
        }
    }
}

#[test]
fn sets_change_when_the_guests_pairs_do() {
    let setup = Setup {
        cores: 3,
        policy: PolicyName::Partial,
        ..Setup::default()
    };
    let (mut host, _) = setup.host_of(vec![pairs(0, "phases 120 10000", Virtualization::Hardware)]);
    watch(&mut host);
    let (host, report) = run(host);
    let found: Vec<_> = found(&report.machines[0])
        .found
        .iter()
        .map(|found| found.sets.clone())
        .collect();
    assert_eq!(found.first(), Some(&sets(&[&[0, 2], &[1, 3]])), "{found:?}");
    assert_eq!(found.last(), Some(&sets(&[&[0, 1], &[2, 3]])), "{found:?}");
    assert_eq!(found.last(), Some(host.sets_of(0)));
}

#[test]
fn a_run_that_finds_sets_repeats_with_any_number_of_host_threads() {
    let run = |host_threads| {
        let setup = Setup {
            cores: 4,
            sidecores: SidecorePolicy::Fixed(1),
            policy: PolicyName::Partial,
            host_threads,
            trace: true,
            ..Setup::default()
        };
        let work = ["pairs 2 60 2000", "halting 1 40 2000", "churn 2 20 500"];
        let machines = work.iter().enumerate();
        let machines = machines.map(|(index, work)| pairs(index, work, Virtualization::Hardware));
        let (mut host, _) = setup.host_of(machines.collect());
        watch(&mut host);
        let (host, report) = run(host);
        (report, host.spans(), console(&host, 1))
    };
    let once = run(1);
    assert!(found(&once.0.machines[0]).counts.faults > 0);
    assert_eq!(once, run(1));
    assert_eq!(once, run(2));
    assert_eq!(once, run(3));
}

#[test]
fn a_guest_whose_page_tables_churn_is_found_rightly_and_costs_no_more_than_the_budget() {
    for virtualization in [Virtualization::Hardware, Virtualization::RingCompression] {
        let budget_permille = 10;
        let setup = Setup {
            cores: 4,
            policy: PolicyName::Partial,
            ..Setup::default()
        };
        let (mut host, _) = setup.host_of(vec![pairs(0, "churn 2 300 1500", virtualization)]);
        let settings = DetectionSettings {
            budget_permille,
            ..QUICK
        };
        host.coschedule(&coscheduling(Some(settings), Vec::new()))
            .expect("no sets are given");
        let (_, report) = run(host);
        let machine = &report.machines[0];
        let found = found(machine);
        let ran = machine.cycles[0] + machine.cycles[1];
        let most = ran * u64::from(budget_permille) / 1000;
        assert!(found.cycles <= most, "{} of {most}: {found:#?}", found.cycles);
        assert!(
            found.counts.left_out > 0,
            "the budget was never spent: {found:#?}"
        );
        let last = last_found(machine);
        assert_eq!(last.sets, sets(&[&[0, 2], &[1, 3]]), "{found:#?}");
        // Far more fills than are noted.
        assert!(machine.exits_for(ExitReason::ShadowFill).count > 4 * found.counts.fills);
    }
}

#[test]
fn what_detection_does_not_watch_costs_nothing_and_shows_nothing() {
    let report = |detection| {
        let setup = Setup {
            cores: 4,
            ..Setup::default()
        };
        let (mut host, _) = setup.host_of(vec![pairs(0, "alone 20 2000", Virtualization::Hardware)]);
        host.coschedule(&coscheduling(detection, Vec::new()))
            .expect("no sets are given");
        run(host).1
    };
    let plain = report(None);
    assert_eq!(plain.machines[0].detection, None);
    assert_eq!(plain.machines[0].exits_for(ExitReason::SampledPage).count, 0);
    let watched = report(Some(QUICK));
    let found = found(&watched.machines[0]);
    let sampled = watched.machines[0].exits_for(ExitReason::SampledPage);
    assert_eq!(sampled.count, found.counts.faults);
    assert!(found.counts.faults > 0 && found.counts.faults <= found.counts.taken);
    // All that it took is in the account, and in the time of the processors.
    let [guest, monitor, ..] = watched.machines[0].cycles;
    let [plain_guest, plain_monitor, ..] = plain.machines[0].cycles;
    let more = (guest + monitor).abs_diff(plain_guest + plain_monitor);
    assert!(
        more >= found.cycles * 9 / 10,
        "{more} cycles more, {} of them detection's",
        found.cycles
    );
}

/// Guests that need each other, of which half halt, on fewer cores than processors, beside one that only computes.
fn crowd(policy: PolicyName, idle_cores: IdleCores) -> Report {
    let setup = Setup {
        cores: 3,
        policy,
        ..Setup::default()
    };
    let work = ["pairs 2 20 2000", "halting 1 20 2000", "alone 20 8000"];
    let machines = work.iter().enumerate();
    let machines = machines.map(|(index, work)| pairs(index, work, Virtualization::Hardware));
    let (mut host, _) = setup.host_of(machines.collect());
    let given = (policy == PolicyName::Partial).then(|| sets(&[&[0, 2], &[1, 3]]));
    host.coschedule(&Coscheduling {
        given: vec![given],
        detection: None,
        idle_cores,
    })
    .expect("the processors are there");
    run(host).1
}

#[test]
fn nobody_starves_under_any_policy() {
    for policy in [
        PolicyName::Free,
        PolicyName::Gang,
        PolicyName::Partial,
        PolicyName::Relaxed,
    ] {
        for idle_cores in [IdleCores::Filled, IdleCores::Kept] {
            let report = crowd(policy, idle_cores);
            assert!(report.machines.iter().all(|machine| machine.exit_code == Some(0)));
        }
    }
}

#[test]
fn a_processor_that_halts_gives_its_core_to_others() {
    // One pair spins for its partner, which computes much longer, or halts: what is left of three cores goes to those
    // that compute.
    let computing = |waiting: &str| {
        let setup = Setup {
            cores: 2,
            policy: PolicyName::Relaxed,
            ..Setup::default()
        };
        let machines = vec![
            pairs(0, waiting, Virtualization::Hardware),
            pairs(1, "alone 40 8000", Virtualization::Hardware),
        ];
        let (host, _) = setup.host_of(machines);
        run(host).1
    };
    let (spins, halts) = (computing("pairs 2 40 500"), computing("halting 2 40 500"));
    let polling = |report: &Report| report.machines[0].instructions;
    assert!(
        polling(&halts) < polling(&spins),
        "{} instructions by halting, {} by spinning",
        polling(&halts),
        polling(&spins)
    );
}

#[test]
fn sidecores_interrupts_and_gangs_work_on_one_host_at_once() {
    const FRAMES: u64 = 12;
    let run = |threads| {
        let machines = vec![
            networked(0, "taker", &format!("take {FRAMES} 100")),
            pairs(1, "pairs 2 400 4000", Virtualization::Hardware),
            pairs(2, "halting 1 400 4000", Virtualization::Hardware),
        ];
        let mut host = networked_host(0, 5, Delivery::Sidecore, threads, PolicyName::Partial, machines);
        watch(&mut host);
        let from = Address {
            host: 9,
            interface: 0,
        };
        let to = Address {
            host: 0,
            interface: 0,
        };
        for number in 0..FRAMES {
            let mut frame = Frame::between(from, to, 64, number);
            frame.bytes[16..24].copy_from_slice(&number.to_le_bytes());
            host.receive(Cycle(1_000_000 * (number + 1)), frame);
        }
        assert_eq!(
            host.run(Cycle(2_000_000_000)).expect("services end"),
            HostEnd::Ended
        );
        host.report()
    };
    let report = run(1);
    let nic = report.nic.as_ref().expect("the host has a card");
    assert_eq!(nic.interfaces[0].counts.received, FRAMES);
    assert!(nic.counts.sidecore_signals > 0, "{nic:#?}");
    assert_eq!(report.machines[0].exit_code, Some(0), "{report:#?}");
    for (machine, expected) in report.machines[1..]
        .iter()
        .zip([[&[0, 2][..], &[1, 3]], [&[0, 1], &[2, 3]]])
    {
        assert_eq!(machine.exit_code, Some(0), "{report:#?}");
        let last = last_found(machine);
        assert_eq!(last.sets, sets(&expected), "{report:#?}");
    }
    assert_eq!(report, run(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever is taken away how often: what guests compute is the same.
    #[test]
    fn guests_compute_the_same_however_they_are_watched(
        period_ns in 30_000u64..400_000,
        sample in 1usize..200,
        granularity_log2 in 6u32..24,
        compressed: bool,
        work in prop::sample::select(vec!["pairs 2 6 500", "churn 1 5 200", "halting 2 5 500", "phases 3 300"]),
    ) {
        let virtualization = match compressed {
            true => Virtualization::RingCompression,
            false => Virtualization::Hardware,
        };
        let setup = Setup { cores: 3, policy: PolicyName::Partial, ..Setup::default() };
        let (mut host, _) = setup.host_of(vec![pairs(0, work, virtualization)]);
        let settings = DetectionSettings {
            period_ns, sample, granularity_log2, budget_permille: 1000, start_up_ns: 0, evaluation_ns: 500_000, ..QUICK
        };
        host.coschedule(&coscheduling(Some(settings), Vec::new())).expect("no sets are given");
        // The guest checks what it reads, and says so by its exit code.
        run(host);
    }
}
